"""Releases of dpmm: its pipelines with the domain given and without, and what they are made of."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
from dpmm.models import AIMGM, MSTGM, PrivBayesGM
from dpmm.pipelines import PrivBayesPipeline
from dpmm.processing.utils import approx_bounds

__all__ = ["RELEASES"]

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

_DOMAIN = {
    "age": {"lower": 0.0, "upper": 80.0},
    "city": {"categories": ["a", "b", "c"]},
    "pet": {"categories": ["cat", "dog"]},
}
_COMMON = {"delta": 0.05, "n_jobs": 1}


def _synthetic(domain: Any) -> Callable[[Any], Any]:
    """Six rows of synthetic data; the inference, which is post-processing, takes few steps."""
    unfitted = PrivBayesPipeline(
        epsilon=0.5, proc_epsilon=0.5, n_bins=4, gen_kwargs={"n_iters": 20}, **_COMMON
    )

    def release(rows: Any) -> Any:
        made = copy.deepcopy(unfitted)
        made.fit(pd.DataFrame(rows), domain=copy.deepcopy(domain))  # it adds columns to it
        told = made.generate(n_records=6)
        return {name: sorted(told[name].tolist()) for name in told.columns}

    return release


def _fitted(kind: Any, domain: Any, tell: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a model keeps of the data, of which its inference is post-processing."""
    unfitted = kind(epsilon=1, compress=False, domain=domain, **_COMMON)
    unfitted.set_domain(domain)

    def release(rows: Any) -> Any:
        made = copy.deepcopy(unfitted)
        made.fit(pd.DataFrame(rows), marginals_only=True)
        return tell(made.generator)

    return release


def _counts(generator: Any) -> Any:
    return {str(sorted(proj)): noisy.ravel().tolist() for _, noisy, _, proj in generator.measures}


def _marginals(generator: Any) -> Any:
    return sorted("".join(sorted(clique)) for clique in generator.cliques)


def _bounds(rows: Any) -> Any:
    return [end and float(end) for end in approx_bounds([row["age"] for row in rows], epsilon=1)]


RELEASES: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "PrivBayes without a domain": partial(_synthetic, None),
    "PrivBayes": partial(_synthetic, _DOMAIN),
    "counts of MST": partial(_fitted, MSTGM, {"x": 3}, _counts),
    "counts of AIM": partial(_fitted, AIMGM, {"x": 3, "y": 2}, _counts),
    "counts of PrivBayes": partial(_fitted, PrivBayesGM, {"x": 3}, _counts),
    "counts without a domain": partial(_fitted, MSTGM, None, _counts),
    "marginals of PrivBayes": partial(_fitted, PrivBayesGM, dict.fromkeys("abc", 2), _marginals),
    "approx_bounds": lambda: _bounds,
}
"""What makes each of them."""
