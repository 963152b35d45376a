"""The design helper of linear sketches."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.errors import ParameterError
from dpverify_mechanisms.linear.design import design_linear_sketch
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.projections.independent import OPORP

TARGET: dict[str, Any] = {
    "epsilon": Fraction(2),
    "delta": Fraction(1, 10**6),
    "domain": Box(low=Fraction(0), high=Fraction(1)),
    "adjacency": Attribute(beta=Fraction(1)),
}


def draw(k: int) -> OPORP:
    return OPORP(p=64, k=k, seed=3)


def test_the_best_is_the_least_exact_variance() -> None:
    sizes = [1, 2, 4, 8, 16, 32, 64]
    found = design_linear_sketch(draw, sizes, squared_distances=[16.0], differing=64, **TARGET)
    assert len(found.curve) == 2 * len(sizes)
    record, other = np.full(64, 0.5), np.zeros(64)
    for point in found.curve:
        exact = SquaredDistance(sketch=point.mechanism).variance(record, other)
        assert point.variance == pytest.approx(exact, rel=1e-12)
        assert point.variance >= found.best.variance
    # Small k adds variance of the projection, large k adds noise: the optimum lies between.
    assert 1 < found.best.parameters["k"] < 64


def test_without_delta_only_laplace_is_tried() -> None:
    target = TARGET | {"delta": Fraction(0)}
    found = design_linear_sketch(draw, [4, 8], squared_distances=[1.0, 9.0], **target)
    assert {point.parameters["noise"] for point in found.curve} == {"laplace"}
    with pytest.raises(ParameterError, match="non-empty"):
        design_linear_sketch(draw, [4], squared_distances=[1.0], noises=["gaussian"], **target)
    with pytest.raises(ParameterError, match=r"squared_distances=-1\.0 must be at least 0"):
        design_linear_sketch(draw, [4], squared_distances=[-1.0], **TARGET)
    with pytest.raises(ParameterError, match=r"squared_distances=\[\] must be non-empty"):
        design_linear_sketch(draw, [4], squared_distances=[], **TARGET)
    with pytest.raises(ParameterError, match="differing=0 must be at least 1"):
        design_linear_sketch(draw, [4], squared_distances=[1.0], differing=0, **TARGET)
