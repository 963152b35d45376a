"""Noise at the input and Laplace-like noise: moments by enumerating projections *and* noise.

The noise is replaced by one with three values, whose moments are as far from a Gaussian's as
possible, so that a fourth moment that is taken for 3v² would show.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.data.grid import Grid
from dpverify.enclosure import Enclosure
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify_mechanisms.linear.estimators import InnerProduct, SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP, Projection, RademacherProjection

VALUES = (-3, 0, 3)
WEIGHTS = (Fraction(1, 6), Fraction(2, 3), Fraction(1, 6))


@dataclass(frozen=True)
class ThreeValues:
    """−3, 0, 3 with probabilities 1/6, 2/3, 1/6: v = 3, w = 27."""

    scale: float = 3.0

    def variance(self) -> Enclosure:
        return Enclosure(3.0, 3.0)

    def fourth_moment(self) -> Enclosure:
        return Enclosure(27.0, 27.0)


def every(projection: Projection) -> list[np.ndarray[Any, Any]]:
    p, k = projection.p, projection.k
    if projection.name == "rademacher":
        return [np.array(signs).reshape(p, k) for signs in itertools.product((-1, 1), repeat=p * k)]
    found = []
    for order in itertools.permutations(range(p)):
        for signs in itertools.product((-1, 1), repeat=p):
            matrix = np.zeros((p, k), dtype=int)
            for place, coordinate in enumerate(order):
                matrix[coordinate, place * k // p] = signs[coordinate]
            found.append(matrix)
    return found


@pytest.mark.parametrize("at", ["output", "input"])
@pytest.mark.parametrize(
    "projection", [RademacherProjection(p=2, k=2, seed=0), OPORP(p=2, k=1, seed=0)]
)
def test_mean_and_variance(projection: Projection, at: Any) -> None:
    sketch = LinearSketch(
        projection=projection,
        noise=RoundedLaplace(scale=3.0),
        grid=Grid(step=Fraction(1, 8)),
        domain=Box(low=Fraction(-1), high=Fraction(1)),
        adjacency=Attribute(beta=Fraction(1)),
        at=at,
    )
    object.__setattr__(sketch, "noise", ThreeValues())
    x, y = np.array([4, -2]), np.array([1, 3])
    values = projection.p if at == "input" else projection.k
    scale = {"rademacher": Fraction(1, projection.k), "oporp": Fraction(1)}[projection.name]
    moments = {"squared distance": [Fraction(0)] * 2, "inner product": [Fraction(0)] * 2}
    matrices = every(projection)
    for (noise, weight), (other, other_weight) in itertools.product(_noises(values), repeat=2):
        probability = weight * other_weight / len(matrices)
        for matrix in matrices:
            a, b = (
                ((z + e) @ matrix if at == "input" else z @ matrix + e)
                for z, e in ((x, noise), (y, other))
            )
            estimates = {
                "squared distance": scale * int((a - b) @ (a - b)) - 2 * values * 3 * scale
                if at == "output"
                else scale * int((a - b) @ (a - b)) - 2 * values * 3,
                "inner product": scale * int(a @ b),
            }
            for name, estimate in estimates.items():
                moments[name][0] += probability * estimate
                moments[name][1] += probability * estimate**2
    unit = Fraction(1, 64)
    records = x / 8, y / 8
    for estimator in (SquaredDistance(sketch=sketch), InnerProduct(sketch=sketch)):
        mean, square = moments[estimator.name]
        assert estimator.expectation(*records) == pytest.approx(float(mean * unit), rel=1e-12)
        assert estimator.truth(*records) == pytest.approx(float(mean * unit), rel=1e-12)
        variance = float((square - mean**2) * unit**2)
        assert estimator.variance(*records) == pytest.approx(variance, rel=1e-12)
        assert estimator.variance(*records) != pytest.approx(variance * (1 + 1e-6), rel=1e-9)


def _noises(count: int) -> list[tuple[np.ndarray[Any, Any], Fraction]]:
    found = []
    for places in itertools.product(range(3), repeat=count):
        weight = Fraction(1)
        for place in places:
            weight *= WEIGHTS[place]
        found.append((np.array([VALUES[place] for place in places]), weight))
    return found
