"""The delta method's variance of a cosine, beside ∇gᵀ Cov ∇g with 80 digits."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import dpverify as dpv
from dpverify.data.adjacency import L1Ball
from dpverify.data.domain import Box
from dpverify_check import dpverify_check as second
from dpverify_mechanisms.linear.estimators import Cosine
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP, GaussianProjection
from dpverify_mechanisms.projections.sjlt import SJLT

WIDE = Box(low=Fraction(-1), high=Fraction(1))
FAR = Box(low=Fraction(1000), high=Fraction(10001, 10))
PROJECTIONS = [
    OPORP(p=6, k=4, seed=1),
    GaussianProjection(p=6, k=3, seed=1),
    SJLT(p=6, k=4, sparsity=2, seed=1),
]


def by_digits(cosine: Cosine, record: Any, other: Any) -> float:
    """By the covariances of the estimators' docstring, each term as it stands."""
    projection, (v, w) = cosine.sketch.projection, cosine._noise()
    rows: list[list[mp.mpf]] = [
        [mp.mpf(value) for value in cosine._seen(cosine._gridded(each))[0].tolist()]
        for each in (record, other)
    ]

    def form(*vectors: int) -> mp.mpf:
        return mp.fsum(
            mp.fprod(values) for values in zip(*(rows[each] for each in vectors), strict=True)
        )

    k, v, w = projection.k, mp.mpf(v), mp.mpf(w)
    pair, diagonal, common = (
        mp.mpf(each.numerator) / each.denominator
        for each in map(
            Fraction,
            (
                projection.pair_variance,
                projection.diagonal_variance,
                projection.diagonal_covariance,
            ),
        )
    )
    forms = (0, 1), (0, 0), (1, 1)
    a, b, c = (form(*each) for each in forms)
    noise = [
        [v * (b + c) + k * v * v, 2 * v * a, 2 * v * a],
        [2 * v * a, 4 * v * b + k * (w - v * v), mp.mpf(0)],
        [2 * v * a, mp.mpf(0), 4 * v * c + k * (w - v * v)],
    ]
    root = mp.sqrt(b * c)
    gradient = 1 / root, -a / (2 * b * root), -a / (2 * c * root)
    total = mp.mpf(0)
    for i, j in product(range(3), repeat=2):
        (p, q), (r, s), same = forms[i], forms[j], form(*forms[i], *forms[j])
        drawn = pair * (form(p, r) * form(q, s) + form(p, s) * form(q, r) - 2 * same)
        drawn += diagonal * same + common * (form(p, q) * form(r, s) - same)
        total += gradient[i] * (noise[i][j] + (0 if cosine.realised else drawn)) * gradient[j]
    return float(total)


@pytest.mark.parametrize("realised", [False, True])
@pytest.mark.parametrize("domain", [WIDE, FAR], ids=["wide", "far from 0"])
@pytest.mark.parametrize("projection", PROJECTIONS, ids=lambda each: type(each).__name__)
def test_no_digits_are_lost_where_records_are_nearly_parallel(
    projection: Any, domain: Box, realised: bool
) -> None:
    sketch = LinearSketch.calibrated(
        projection,
        epsilon=50,
        delta=Fraction(1, 1000),
        domain=domain,
        adjacency=L1Ball(radius=Fraction(1, 1000)),
    )
    cosine = Cosine(sketch=sketch, realised=realised)
    rng = np.random.default_rng(3)
    low, high = float(domain.low), float(domain.high)
    for _ in range(20):
        one, other = rng.uniform(low, high, (2, projection.p))
        near = np.clip(one + rng.uniform(-1e-3, 1e-3, projection.p), low, high)
        for moved in (other, near, -other if low < 0 else other):
            with mp.workdps(80):
                exact = by_digits(cosine, one, moved)
            assert cosine.variance(one, moved) == pytest.approx(exact, rel=1e-8, abs=0)


@pytest.mark.usefixtures("no_figures")
def test_both_checkers_agree_far_from_0(tmp_path: Path) -> None:
    configuration = {
        "data": {"domain": {"low": 1000, "high": "1000.1"}},
        "mechanism": {"name": "dp-rp-g-opt", "k": 4},
        "privacy": {
            "epsilon": "0.1",
            "delta": "0.3",
            "adjacency": {"kind": "l1-ball", "radius": "3/100"},
        },
        "projection": {"seed": 63},
        "audit": {"draws": 100, "moment_draws": 50},
    }
    records = np.random.default_rng(1).uniform(1000, 1000.1, (3, 5))
    made = dpv.certify(
        records, tmp_path / "out", configuration=configuration, accept=lambda _: True, workers=1
    )
    fields = made.certificate.model_dump(by_alias=True)
    lines = second.check_fields(fields, made.folder / "sketch.npz")
    assert [line for line in lines if line.status == "differs"] == []
    (cosine,) = (e for e in made.certificate.derived.estimators if e.name == "cosine")
    assert float(cosine.variance) > 0
