"""Certified solutions of δ(x) = δ₀ for a monotone function that is known by enclosures.

A root is certified by two signs: if δ is monotone and δ₀ lies between proven values at two doubles,
the solution lies between them. The search only proposes the doubles; that it converged is never
trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain

from dpverify.enclosure import Enclosure
from dpverify.errors import NumericalError

__all__ = [
    "beside",
    "bisected",
    "brentq",
    "certified_solution",
    "falling_root",
    "largest_argument",
    "last_holding",
    "lowest",
]

_DOUBLINGS = 1023  # from 1, to the largest power of 2 among doubles
_HALVINGS = 1100
_STEPS = (0.0, *(2.0**-exponent for exponent in range(52, 15, -3)))
_PRECISE = 4 * 2.0**-52
_ITERATIONS = 400
_GOLDEN = (math.sqrt(5) - 1) / 2
_SMALL = tuple(2.0**exponent for exponent in range(-60, -15, 3))
_WIDENINGS = tuple(2.0**-exponent for exponent in range(51, 20, -3))
_LOG_OF_NONE = -750.0  # below that of every double above 0
_FARTHER = tuple(2.0**-exponent for exponent in range(18, 2, -3))


def falling_root(function: Callable[[float], Enclosure], target: Fraction) -> Enclosure:
    """Encloses the smallest x ≥ 0 with f(x) ≤ target, for f that falls and ends below it.

    Parameters
    ----------
    function : encloses f(x), non-increasing in x ≥ 0
    target : positive

    Returns
    -------
    Enclosure
        The point 0 where f(0) ≤ target. Its width follows from that of `function`: the ends are
        the nearest tried doubles whose signs are decided, of a wide one next to where its own ends
        cross the target. Where the target is within f(0)'s enclosure, from 0 to the least tried
        power of 2 that is decided.

    Raises
    ------
    NumericalError
        If none within a relative 2⁻²⁰ or an absolute 2⁻¹⁸ of these is decided.
    """
    goal = Enclosure.of_exact(target)
    start = function(0.0)
    if start.upper <= goal.lower:
        return Enclosure(0.0, 0.0)
    if start.lower <= goal.upper:
        for small in _SMALL:
            if function(small).upper <= goal.lower:
                return Enclosure(0.0, small)

    def below(guess: float) -> float:
        return next((x for x in beside(guess, -1) if function(x).lower >= goal.upper), 0.0)

    def above(guess: float) -> float | None:
        places = chain(beside(guess, 1), (guess + small for small in _SMALL))
        return next((x for x in places if function(x).upper <= goal.lower), None)

    guess = _search(lambda x: -_excess(function(x), goal.upper))
    lower, upper = below(guess), above(guess)
    if upper is None:  # of a wide enclosure each end has a root of its own
        upper = above(_search(lambda x: -_excess(_end(function(x).upper), goal.upper)))
    if lower == 0 and guess > _SMALL[-1] and start.lower > goal.upper:
        lower = below(_search(lambda x: -_excess(_end(function(x).lower), goal.upper)))
    if upper is None or (lower == 0 and guess > _SMALL[-1]):
        raise NumericalError(f"no certified root near {guess!r}")
    return Enclosure(lower, upper)


def largest_argument(function: Callable[[float], Enclosure], target: Fraction) -> float:
    """A double x > 0 with f(x) ≤ target proven, next to the largest one, for f that rises.

    Where doubles of f are too coarse to decide next to it, it is the nearest one that is decided.

    Parameters
    ----------
    function : encloses f(x), non-decreasing in x > 0, that starts below `target` and ends above
    target : positive
    """
    goal = Enclosure.of_exact(target).lower
    guess = _search(lambda x: _excess(function(x), goal))
    # Near 1 neighboring doubles of f lie far apart in x.
    for x in chain(beside(guess, -1), (guess * (1 - step) for step in _FARTHER)):
        if function(x).upper <= goal:
            return x
    raise NumericalError(f"no certified root near {guess!r}")


def _end(value: float) -> Enclosure:
    """One end of an enclosure as a point."""
    return Enclosure(value, value)


def _excess(value: Enclosure, target: float) -> float:
    """Ln f − ln target, kept finite."""
    middle = value.lower / 2 + value.upper / 2
    return (math.log(middle) if middle > 0 else _LOG_OF_NONE) - math.log(target)


def _search(rising: Callable[[float], float]) -> float:
    """Root of a rising function of x > 0."""
    low = high = 1.0
    for _ in range(_DOUBLINGS):
        if rising(high) > 0:
            break
        low, high = high, 2 * high
    else:
        raise NumericalError("no root below the largest double")
    if low == high:
        for _ in range(_HALVINGS):
            if rising(low) <= 0:
                break
            low, high = low / 2, low
    return brentq(rising, low, high, xtol=1e-300, rtol=4 * 2.0**-52)


def brentq(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float,
    rtol: float = _PRECISE,
) -> float:
    """A root between two points of opposite signs, as ``scipy.optimize.brentq`` finds it.

    To the last bit, where a compiler rounds every step as Python does: of scipy.optimize, which
    takes a quarter of a second to import, nothing else is needed here.

    Raises
    ------
    NumericalError
        If both ends have one sign, or 400 steps don't do.
    """
    before, now, behind = low, high, 0.0  # behind is on the other side of the root
    at_before, at_now, at_behind = function(before), function(now), 0.0
    if at_before == 0:
        return before
    if at_now != 0 and (at_before < 0) == (at_now < 0):
        raise NumericalError(f"no change of sign between {low!r} and {high!r}")
    last = step = 0.0
    for _ in range(_ITERATIONS):
        if at_before != 0 and at_now != 0 and (at_before < 0) != (at_now < 0):
            behind, at_behind = before, at_before
            last = step = now - before
        if abs(at_behind) < abs(at_now):
            before, now, behind = now, behind, now
            at_before, at_now, at_behind = at_now, at_behind, at_now
        tolerance, half = (xtol + rtol * abs(now)) / 2, (behind - now) / 2
        if at_now == 0 or abs(half) < tolerance:
            return now
        longer, last, step_tried = last, half, half
        if abs(longer) > tolerance and abs(at_now) < abs(at_before):
            if before == behind:
                tried = -at_now * (now - before) / (at_now - at_before)
            else:
                slope = (at_before - at_now) / (before - now)
                slope_behind = (at_behind - at_now) / (behind - now)
                tried = -at_now * (at_behind * slope_behind - at_before * slope)
                tried /= slope_behind * slope * (at_behind - at_before) or math.nan
            if 2 * abs(tried) < min(abs(longer), 3 * abs(half) - tolerance):
                last, step_tried = step, tried
        step = step_tried
        before, at_before = now, at_now
        now += step if abs(step) > tolerance else math.copysign(tolerance, half)
        at_now = function(now)
    raise NumericalError(f"no root between {low!r} and {high!r} in {_ITERATIONS} steps")


def lowest(function: Callable[[float], float], low: float, high: float, *, width: float) -> float:
    """Where a function that first falls and then rises is least, by golden sections.

    Parameters
    ----------
    function : of one minimum between `low` and `high`; of others, some low point is proposed
    width : of the range that is left
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > width:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return left if at_left < at_right else right


def beside(guess: float, side: int) -> Iterator[float]:
    """The guess, and points at rising distances from it, above for side 1 and below for −1."""
    yield guess
    for step in _WIDENINGS:
        yield guess * (1 + side * step)


def bisected(
    safe: int, unsafe: int, holds: Callable[[int], bool], *, halvings: int | None = None
) -> int:
    """The whole number next to `unsafe` that holds, if what is nearer to `safe` than it does too.

    What is returned holds in any case: it is `safe`, or was tried.

    Parameters
    ----------
    safe, unsafe : ends, in either order, of which the first one holds
    holds : whether a number between them does
    halvings : of the range, after which it is narrow enough; None until nothing is left between
    """
    while abs(unsafe - safe) > 1 and halvings != 0:
        middle = (safe + unsafe) // 2
        safe, unsafe = (middle, unsafe) if holds(middle) else (safe, middle)
        halvings = None if halvings is None else halvings - 1
    return safe


def last_holding(
    holds: Callable[[float], bool], end: float, *, width: float
) -> tuple[float, float]:
    """Two doubles next to one another, of which the first holds, or is 0, and the second doesn't.

    Parameters
    ----------
    holds : of doubles from 0 up to some place, and of none beyond
    end : where it doesn't, unless it is the second one
    width : of what is left, relative to the second one
    """
    low, high = 0.0, end
    while high - low > width * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def certified_solution(found: Enclosure, accepts: Callable[[Fraction], bool]) -> Enclosure:
    """Certify a solution whose lower end is proven, moving the upper end until it is accepted.

    Parameters
    ----------
    found : encloses a proven lower bound, which is the solution if all went well
    accepts : whether δ is proven to be reached at an ε ≥ 0

    Raises
    ------
    NumericalError
        If nothing within a relative 2⁻¹⁶ or an absolute 2⁻¹⁸ above is accepted.
    """
    start = max(found.upper, 2.0**-60)  # rounding may have put a solution near 0 below it
    relative = (start * (1 + step) for step in _STEPS)
    # Where δ hardly falls at 0, it differs by less than its own rounding for some way.
    for upper in chain(relative, (start + small for small in _SMALL)):
        if accepts(Fraction(upper)):
            return Enclosure(max(found.lower, 0.0), upper)
    raise NumericalError(f"no certified solution near {found.upper!r}")
