"""Privacy targets that noise is calibrated for: outside, doubles that guide the proofs end."""

from __future__ import annotations

from fractions import Fraction

from dpverify.enclosure import short_string
from dpverify.errors import require

__all__ = ["LEAST_DELTA", "check_delta", "check_target"]

LEAST_DELTA = Fraction(1, 10**300)
"""Smallest target but 0."""
_MOST_DELTA = 1 - Fraction(1, 10**15)
_MOST_EPSILON = Fraction(10**100)


def check_target(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse a target that no noise is calibrated for.

    Raises
    ------
    ParameterError
        Naming the value and the range.
    """
    require(0 <= epsilon <= _MOST_EPSILON, "epsilon", short_string(epsilon), "in [0, 1e100]")
    check_delta(delta)


def check_delta(delta: Fraction, *, least: Fraction = LEAST_DELTA) -> None:
    """Refuse a δ that isn't a target: outside [0, 1), or within reach of 0 or 1 but for 0 itself.

    Raises
    ------
    ParameterError
        Naming the value and the range.
    """
    near_one = Fraction(1, 2) < delta < 1
    shown = f"1 - {short_string(1 - delta)}" if near_one else short_string(delta)
    good = delta == 0 or least <= delta <= _MOST_DELTA
    require(good, "delta", shown, f"0, or in [{short_string(least)}, 1 - 1e-15]")
