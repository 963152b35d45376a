"""Roots: what is found in place of scipy's, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from dpverify.accounting.solve import brentq, falling_root, largest_argument
from dpverify.enclosure import Enclosure
from dpverify.errors import NumericalError
from tests.helpers.profiles import examples

RISING: list[Callable[[float, float], float]] = [
    lambda x, shift: x**3 - shift,
    lambda x, shift: math.expm1(x) - shift,
    lambda x, shift: math.atan(40 * (x - shift)) + 0.3,
    lambda x, shift: math.copysign(1.0, x - shift),
    lambda x, shift: (x - shift) ** 7,
]


@pytest.mark.parametrize("function", RISING)
@examples(30)
@given(
    shift=st.floats(0.01, 2.9),
    low=st.floats(-10, -3),
    high=st.floats(3, 10),
    xtol=st.sampled_from([1e-300, 1e-7]),
)
def test_the_points_are_those_of_scipy(
    function: Callable[[float, float], float], shift: float, low: float, high: float, xtol: float
) -> None:
    ours: list[float] = []
    theirs: list[float] = []

    def seen(points: list[float]) -> Callable[[float], float]:
        def called(x: float) -> float:
            points.append(x)
            return function(x, shift)

        return called

    root = brentq(seen(ours), low, high, xtol=xtol)
    rtol = 4 * 2.0**-52
    assert root == optimize.brentq(seen(theirs), low, high, xtol=xtol, rtol=rtol, maxiter=400)
    assert ours == theirs


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 0.0)])
def test_an_end_may_be_the_root(low: float, high: float) -> None:
    assert brentq(lambda x: x, low, high, xtol=1e-12) == 0.0


def test_both_ends_of_one_sign_are_refused() -> None:
    with pytest.raises(NumericalError, match=r"no change of sign between 1.0 and 2.0"):
        brentq(lambda x: x, 1.0, 2.0, xtol=1e-12)


def test_what_is_no_number_is_no_root() -> None:
    with pytest.raises(NumericalError, match="no "):
        brentq(lambda _: math.nan, -1.0, 1.0, xtol=1e-12)


@pytest.mark.parametrize(("below", "above"), [(0.9, 1.1), (1.0, 1.1), (0.9, 1.0), (0.5, 4.0)])
def test_a_wide_function_has_a_root_for_each_end(below: float, above: float) -> None:
    root = falling_root(
        lambda x: Enclosure(below * math.exp(-x), above * math.exp(-x)), Fraction("1e-3")
    )
    assert root.lower == pytest.approx(math.log(1000 * below), rel=1e-12)
    assert root.upper == pytest.approx(math.log(1000 * above), rel=1e-12)
    assert below * math.exp(-root.lower) >= 1e-3 >= above * math.exp(-root.upper)


def test_an_argument_whose_value_is_next_to_1() -> None:
    """Doubles next to 1 are a tenth of the distance apart, and an enclosure is wider than one."""
    target = 1 - Fraction(1, 10**15)

    def value(x: float) -> Enclosure:
        middle = -math.expm1(-x)
        return Enclosure(math.nextafter(middle, 0), min(math.nextafter(middle, 2), 1.0))

    found = largest_argument(value, target)
    assert value(found).upper <= target
    assert 0.9 * math.log(10**15) < found < math.log(10**15)
