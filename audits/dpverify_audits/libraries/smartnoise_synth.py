"""smartnoise-synth: its covariances, and what its transformers estimate before synthesis.

The synthesizers themselves aren't audited: a fit of AIM, MST or a GAN takes seconds to minutes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from snsynth.models.dp_covariance import DPcovariance
from snsynth.transform import BinTransformer, MinMaxTransformer, StandardScaler

from dpverify.data.adjacency import AddRemove, Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]


def _covariance(rows: Any, ranges: list[list[float]]) -> Any:
    names = list("abc"[: len(ranges)])
    made = DPcovariance(len(rows), names, pd.DataFrame(ranges).T, 1.0)
    return [float(each) for each in made.release(pd.DataFrame(list(rows), columns=names))]


def _scaled(rows: Any) -> Any:
    scaler = StandardScaler(lower=0.0, upper=10.0, epsilon=1.0)
    scaler.fit(list(rows))
    return [float(scaler.mean), float(scaler.var)]


def _bounded(rows: Any, kind: Any) -> Any:
    made = kind(epsilon=1.0)
    made.fit(list(rows))
    return [float(made.fit_lower), float(made.fit_upper)]


def entries() -> Iterator[Entry]:
    """All of them."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    report = "new: docs/reports/smartnoise-synth.md"
    covariance = partial(
        Entry,
        reading="global_eps of DPcovariance; the number of rows is public, and one is replaced",
        claim=claimed(1),
        adjacency=Replace(),
        draws=200,
    )
    two = partial(_covariance, ranges=[[0.0, 1.0], [0.0, 1.0]])
    yield covariance(
        name="DPcovariance of two columns",
        function=two,
        pairs=(([(0, 0), (0, 0), (1, 1)], [(1, 1), (0, 0), (1, 1)]),),
    )
    yield covariance(
        name="DPcovariance, a value outside of its range (mended: issue 622)",
        function=two,
        pairs=(([(0, 0), (0, 0), (1, 1)], [(50, 50), (0, 0), (1, 1)]),),
    )
    yield covariance(
        name="DPcovariance of three columns, the second the widest",
        function=partial(_covariance, ranges=[[0.0, 0.1], [0.0, 10.0], [0.0, 0.1]]),
        pairs=(([(0, 0, 0)] * 3, [(0, 10, 0), (0, 0, 0), (0, 0, 0)]),),
        known=report,
        example=_COVARIANCE,
    )
    yield Entry(
        name="StandardScaler, bounds given: mean and variance",
        reading="epsilon of the transformer, some of which is “always used to estimate the mean "
        "and variance”; one row is replaced",
        function=_scaled,
        claim=claimed(1),
        adjacency=Replace(),
        pairs=(([0.0, 5.0, 5.0, 5.0], [10.0, 5.0, 5.0, 5.0]),),
        draws=60,
        known=report,
        example=_SCALER,
    )
    bounds = partial(
        Entry,
        reading="epsilon of the transformer, by which it infers bounds; one row comes or goes",
        claim=claimed(1),
        adjacency=AddRemove(),
        pairs=(([3.0] * 9, [*[3.0] * 9, 70.0]),),
        draws=200,
    )
    for kind in (MinMaxTransformer, BinTransformer):
        function = partial(_bounded, kind=kind)
        yield bounds(name=f"{kind.__name__}, bounds inferred", function=function)


_COVARIANCE = """\
import numpy as np, pandas as pd
from snsynth.models.dp_covariance import DPcovariance
ranges = pd.DataFrame({0: [0.0, 0.1], 1: [0.0, 10.0], 2: [0.0, 0.1]})
for first in (0.0, 10.0):  # one row is replaced
    data = pd.DataFrame({"a": [0.0] * 3, "b": [first, 0.0, 0.0], "c": [0.0] * 3})
    made = DPcovariance(3, list("abc"), ranges.copy(), 1.0)
    told = [made.release(data.copy())[2] for _ in range(500)]  # the variance of b
    print(first, "median and middle half:", np.quantile(told, [0.5, 0.25, 0.75]))
print("its range allows a change of", 10**2 / 3, "and its noise has the scale", made.sens[2] * 6)
"""

_SCALER = """\
from snsynth.transform import StandardScaler
for first in (0.0, 10.0):  # one row is replaced
    for _ in range(3):
        scaler = StandardScaler(lower=0.0, upper=10.0, epsilon=1.0)
        scaler.fit([first, 5.0, 5.0, 5.0])
        print("epsilon spent:", sum(scaler.budget_spent), "mean told:", scaler.mean)
"""
