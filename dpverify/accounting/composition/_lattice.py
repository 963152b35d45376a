"""Commensurable losses: the exact common unit of numbers like ln(3), ln(9) or 1/3 and 1/2.

Two positive numbers are commensurable if both are whole multiples of a third. For logarithms of
rationals in lowest terms, ln(a/b) = i·ln(g/h) means a = gⁱ and b = hⁱ. So Euclid's algorithm on the
multiples i, j is an exact division of numerators and of denominators, and it fails at the first
division that leaves a remainder if and only if there is no common unit. For nats, v and w are
commensurable if and only if (v/w)² is the square of a rational. A logarithm of a rational and a
number of nats whose square is rational never are: e to a nonzero algebraic power is transcendental
(Lindemann).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dpverify.accounting.losses.base import Log, Step
from dpverify.enclosure import Exact, SquareRoot, squared

__all__ = ["common_unit"]


def common_unit(steps: Iterable[Step]) -> Step | None:
    """Largest number of which every step is a whole multiple, exactly; None if there is none.

    Parameters
    ----------
    steps : positive numbers, at least one
    """
    unit: Step | None = None
    for step in steps:
        if unit is None:
            unit = step
        elif isinstance(unit, Log) and isinstance(step, Log):
            unit = _common_log(unit, step)
        elif not isinstance(unit, Log) and not isinstance(step, Log):
            unit = _common_nats(unit, step)
        else:
            return None
        if unit is None:
            return None
    return unit


def _common_log(first: Log, second: Log) -> Log | None:
    larger, smaller = first.argument.as_integer_ratio(), second.argument.as_integer_ratio()
    while True:
        if larger[0] < smaller[0]:
            larger, smaller = smaller, larger
        if larger[0] % smaller[0] or larger[1] % smaller[1]:
            return None
        larger = larger[0] // smaller[0], larger[1] // smaller[1]
        if larger == (1, 1):
            return Log(Fraction(*smaller))
        if larger[0] <= larger[1]:  # a ratio above 1 would have been left
            return None


def _common_nats(first: Exact, second: Exact) -> Exact | None:
    ratio = squared(second) / squared(first)
    root = Fraction(math.isqrt(ratio.numerator), math.isqrt(ratio.denominator))
    if root * root != ratio:
        return None
    # first·gcd(1, n/d) = first/d
    if isinstance(first, SquareRoot):
        return SquareRoot(first.radicand / root.denominator**2)
    return first / root.denominator
