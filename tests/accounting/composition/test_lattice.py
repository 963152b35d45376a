"""The common unit of losses, exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.composition._lattice import common_unit
from dpverify.accounting.losses.base import Log, Step
from dpverify.enclosure import SquareRoot

F = Fraction


@pytest.mark.parametrize(
    ("steps", "unit"),
    [
        ([Log(F(13, 7) ** 6), Log(F(13, 7) ** 15), Log(F(13, 7) ** 10)], Log(F(13, 7))),
        ([Log(F(4)), Log(F(8))], Log(F(2))),
        ([Log(F(2)), Log(F(3))], None),
        ([Log(F(4)), Log(F(4, 3))], None),
        ([F(1, 3), F(1, 2)], F(1, 6)),
        ([SquareRoot(F(2)), SquareRoot(F(8)), SquareRoot(F(9, 2))], SquareRoot(F(1, 2))),
        ([SquareRoot(F(2)), F(1)], None),
        ([Log(F(3)), F(1)], None),
    ],
)
def test_the_common_unit_of_steps_in_any_order(steps: list[Step], unit: Step | None) -> None:
    assert common_unit(steps) == unit
    assert common_unit(reversed(steps)) == unit


@given(
    ratio=st.fractions(F(9, 8), 10, max_denominator=50),
    powers=st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_the_unit_of_powers_is_that_of_their_greatest_common_divisor(
    ratio: Fraction, powers: list[int]
) -> None:
    assert common_unit(Log(ratio**power) for power in powers) == Log(ratio ** math.gcd(*powers))
