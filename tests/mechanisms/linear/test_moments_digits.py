"""The moments of estimators of sketches beside fractions: no digits are lost far from 0."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.data.adjacency import Attribute, L1Ball
from dpverify.data.domain import Box
from dpverify_check import dpverify_check as second
from dpverify_mechanisms.linear.estimators import Cosine, InnerProduct, SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)
from dpverify_mechanisms.projections.sjlt import SJLT
from tests.helpers.profiles import crossed, day_and_night

DOMAINS = {
    "unit": Box(low=Fraction(0), high=Fraction(1)),
    "far from 0": Box(low=Fraction(10**6), high=Fraction(10**6) + Fraction(7, 10)),
    "far below 0": Box(low=Fraction(-1000), high=Fraction(-1000) + Fraction(1, 3)),
}
PROJECTIONS = {
    "one value": RademacherProjection(p=1, k=3, seed=1),
    "rademacher": RademacherProjection(p=5, k=3, seed=1),
    "oporp": OPORP(p=5, k=3, seed=1),
    "sjlt": SJLT(p=5, k=4, sparsity=2, seed=1),
    "fjlt": FJLT(p=5, k=3, seed=1, density=Fraction(1, 2)),
    "fjlt of one value": FJLT(p=1, k=3, seed=1, density=Fraction(1, 2)),
}

WIDE = Box(low=Fraction(-1), high=Fraction(1))
FAR = Box(low=Fraction(1000), high=Fraction(10001, 10))


def total(*vectors: list[Fraction]) -> Fraction:
    return sum((np.prod(values) for values in zip(*vectors, strict=True)), Fraction(0))


def over_projection(projection: Any, crossed: Fraction, square: Fraction, same: Fraction) -> Any:
    return (
        projection.pair_variance * (crossed - 2 * same)
        + projection.diagonal_variance * same
        + projection.diagonal_covariance * (square - same)
    )


def exactly(sketch: LinearSketch, record: Any, other: Any) -> dict[type, tuple[Fraction, ...]]:
    """Truth and variance as the estimators' docstring has them, each term as it stands."""
    distance, projection = SquaredDistance(sketch=sketch), sketch.projection
    v, w = map(Fraction, distance._noise())
    many, at_input = distance._values(), sketch.at == "input"
    x, y = (
        [int(step) * sketch.grid.step for step in sketch.grid.round(each[None])[0]]
        for each in (record, other)
    )
    z = [a - b for a, b in zip(x, y, strict=True)]

    xy, xx, yy, zz = total(x, y), total(x, x), total(y, y), total(z, z)
    spread, norms, same = v * (xx + yy) + many * v * v, xx * yy, total(x, x, y, y)
    square = xy * xy
    apart, fourth, squared = 8 * v * zz + many * (2 * w + 2 * v * v), total(z, z, z, z), zz * zz
    if at_input:
        norms, square, same = (xx + many * v) * (yy + many * v), square + spread, same + spread
        fourth += 12 * v * zz + many * (2 * w + 6 * v * v)
        squared = apart + (zz + 2 * many * v) ** 2
    return {
        SquaredDistance: (zz, apart + over_projection(projection, 2 * squared, squared, fourth)),
        InnerProduct: (xy, spread + over_projection(projection, norms + square, square, same)),
    }


@pytest.mark.parametrize(
    ("projection", "domain", "at"), crossed(PROJECTIONS, DOMAINS, ["output", "input"])
)
def test_no_digits_are_lost(projection: str, domain: str, at: Any) -> None:
    box = DOMAINS[domain]
    sketch = LinearSketch.calibrated(
        PROJECTIONS[projection],
        epsilon=200,
        delta=Fraction(1, 100),
        domain=box,
        adjacency=Attribute((box.high - box.low) / 7),
        at=at,
    )
    rng = np.random.default_rng(2)
    for _ in range(5):
        low, high = float(box.low), np.nextafter(float(box.high), -np.inf)
        pair = rng.uniform(low, high, (2, sketch.projection.p))
        for estimator, (truth, variance) in exactly(sketch, *pair).items():
            one = estimator(sketch=sketch)
            assert one.truth(*pair) == pytest.approx(float(truth), rel=1e-13, abs=0)
            assert one.expectation(*pair) == pytest.approx(float(truth), rel=1e-13, abs=0)
            assert one.variance(*pair) == pytest.approx(float(variance), rel=1e-12, abs=0)


def test_one_large_attribute_hides_no_others() -> None:
    """As in records of which one attribute outweighs all: pairs of attributes count alone."""
    projection = RademacherProjection(p=3, k=1, seed=1)
    one = np.array([1e12, 1.0, 2.0])
    expected = 2 * (1e12**2 * 5 + 1 * 4) * 2  # Σ over i ≠ j of 2xᵢ²xⱼ²
    assert projection.form_covariance(one, one, one, one) == pytest.approx(expected, rel=1e-12)


def of_cosine(cosine: Cosine, record: Any, other: Any) -> Fraction:
    """∇gᵀ Cov ∇g of the delta method, by the covariances of the estimators' docstring."""
    projection, (v, w) = cosine.sketch.projection, map(Fraction, cosine._noise())
    x, y = (
        list(map(Fraction, cosine._seen(cosine._gridded(each))[0].tolist()))
        for each in (record, other)
    )
    k, forms = projection.k, ((x, y), (x, x), (y, y))
    a, b, c = (total(*form) for form in forms)
    noise = [
        [v * (b + c) + k * v * v, 2 * v * a, 2 * v * a],
        [2 * v * a, 4 * v * b + k * (w - v * v), Fraction(0)],
        [2 * v * a, Fraction(0), 4 * v * c + k * (w - v * v)],
    ]
    gradient = Fraction(1), -a / (2 * b), -a / (2 * c)  # times √(bc)
    found = Fraction(0)
    for i, j in product(range(3), repeat=2):
        (p, q), (r, s) = forms[i], forms[j]
        crossed = total(p, r) * total(q, s) + total(p, s) * total(q, r)
        square, same = total(p, q) * total(r, s), total(p, q, r, s)
        drawn = 0 if cosine.realised else over_projection(projection, crossed, square, same)
        found += gradient[i] * (noise[i][j] + drawn) * gradient[j]
    return found / (b * c)


@pytest.mark.parametrize("pairs", day_and_night(5, 20))
@pytest.mark.parametrize(
    ("projection", "domain", "realised"),
    crossed(
        [
            OPORP(p=6, k=4, seed=1),
            GaussianProjection(p=6, k=3, seed=1),
            SJLT(p=6, k=4, sparsity=2, seed=1),
        ],
        [FAR, WIDE],
        [False, True],
    ),
)
def test_no_digits_of_a_cosine_are_lost_where_records_are_nearly_parallel(
    projection: Any, domain: Box, realised: bool, pairs: int
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
    for _ in range(pairs):
        one, other = rng.uniform(low, high, (2, projection.p))
        near = np.clip(one + rng.uniform(-1e-3, 1e-3, projection.p), low, high)
        for moved in (other, near, -other if low < 0 else other):
            exact = float(of_cosine(cosine, one, moved))
            assert cosine.variance(one, moved) == pytest.approx(exact, rel=1e-8, abs=0)


@pytest.mark.nightly
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
