"""The moments of distances and inner products beside fractions: no digits are lost far from 0."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify_mechanisms.linear.estimators import InnerProduct, SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import OPORP, RademacherProjection
from dpverify_mechanisms.projections.sjlt import SJLT

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

    def drawn(norms: Fraction, product: Fraction, same: Fraction) -> Fraction:
        return (
            projection.pair_variance * (norms + product - 2 * same)
            + projection.diagonal_variance * same
            + projection.diagonal_covariance * (product - same)
        )

    def total(*vectors: list[Fraction]) -> Fraction:
        return sum((np.prod(values) for values in zip(*vectors, strict=True)), Fraction(0))

    xy, xx, yy, zz = total(x, y), total(x, x), total(y, y), total(z, z)
    spread, norms, same = v * (xx + yy) + many * v * v, xx * yy, total(x, x, y, y)
    square = xy * xy
    apart, fourth, squared = 8 * v * zz + many * (2 * w + 2 * v * v), total(z, z, z, z), zz * zz
    if at_input:
        norms, square, same = (xx + many * v) * (yy + many * v), square + spread, same + spread
        fourth += 12 * v * zz + many * (2 * w + 6 * v * v)
        squared = apart + (zz + 2 * many * v) ** 2
    return {
        SquaredDistance: (zz, apart + drawn(squared, squared, fourth)),
        InnerProduct: (xy, spread + drawn(norms, square, same)),
    }


@pytest.mark.parametrize("at", ["output", "input"])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("projection", PROJECTIONS)
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
