"""The design helper of linear sketches."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.designs import Design, design
from dpverify.errors import ParameterError
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch

TARGET: dict[str, Any] = {
    "epsilon": Fraction(2),
    "delta": Fraction(1, 10**6),
    "domain": Box(low=Fraction(0), high=Fraction(1)),
    "adjacency": Attribute(beta=Fraction(1)),
}


def found(**choices: Any) -> Design:
    options: dict[str, Any] = {"p": 64, "seed": 3, "at": [16.0]} | TARGET | choices
    return design("dp-oporp", **options)


def test_the_best_is_the_least_exact_variance() -> None:
    sizes = [1, 2, 4, 8, 16, 32, 64]
    choice = found(k=sizes, noise=["gaussian", "laplace"])
    assert len(choice.curve) == 2 * len(sizes)
    record, other = np.full(64, 0.5), np.zeros(64)
    for point in choice.curve:
        assert isinstance(point.mechanism, LinearSketch)
        exact = SquaredDistance(sketch=point.mechanism).variance(record, other)
        assert point.variance == pytest.approx(exact, rel=1e-12)
        assert point.variance >= choice.best.variance
    # Small k adds variance of the projection, large k adds noise: the optimum lies between.
    assert 1 < choice.best.parameters["k"] < 64
    assert str(choice).count("\n") == len(choice.curve) - 1
    assert "(best)" in str(choice)


def test_a_quarter_of_the_attributes_differs() -> None:
    record, other = np.zeros(64), np.zeros(64)
    record[:16] = 0.5
    choice = found(k=8, at=[(4.0, 16)]).best
    assert isinstance(choice.mechanism, LinearSketch)
    exact = SquaredDistance(sketch=choice.mechanism).variance(record, other)
    assert choice.variance == pytest.approx(exact, rel=1e-12)


def test_without_delta_only_laplace_is_left() -> None:
    choice = found(k=[4, 8], noise=["gaussian", "laplace"], delta=0, at=[1.0, 9.0])
    assert [point.parameters["noise"] for point in choice.curve] == ["laplace"] * 2
    assert [chosen["noise"] for chosen, _ in choice.refused] == ["gaussian"] * 2
    with pytest.raises(ParameterError, match="delta"):
        found(k=[4], noise=["gaussian"], delta=0)
    for wrong, message in (
        ({"at": [-1.0]}, r"at=-1\.0 must be at least 0"),
        ({"at": []}, r"at=\[\] must be non-empty"),
        ({"at": [(1.0, 0)]}, "differing=0 must be from 1 to p=64"),
        ({"k": []}, r"k=\[\] must be non-empty"),
    ):
        with pytest.raises(ParameterError, match=message):
            found(**{"k": [4]} | wrong)
