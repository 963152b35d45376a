"""Where f(ε) of a composition is a target: proposals in doubles, of which two signs are proven."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from dpverify.accounting.solve import brentq
from dpverify.enclosure import Enclosure

__all__ = ["WIDTH", "root"]

WIDTH = 1e-13
"""Relative, above which more effort is made."""


def root(
    value: Callable[[arb], arb],
    guess: float,
    scale: float,
    target: arb,
    ceiling: float,
    *,
    is_exact: bool,
) -> Enclosure | None:
    """Encloses where f is `target`, from a guess that is off by a few `scale`; None if it can't.

    From the ceiling on, f is 0. Where its balls are exact but for round-off, a wide enclosure is a
    failure.
    """
    least = min(scale, 1.0)  # below it, ε is resolved absolutely: near δ(0) a target leaves no more

    def excess(eps: float) -> float:
        if eps >= ceiling:
            return -1e6
        upper = value(arb(eps)).upper()
        if not upper.is_finite():  # far from where it is known, which is below the guess
            return 1e6
        # By balls, as where f hardly falls doubles of both logarithms are the same.
        return float((upper / target).log().mid()) if upper > 0 else -1e6

    low = high = guess
    reach = scale
    while low > 0 and excess(low) < 0:
        low, reach = max(low - reach, 0.0), 2 * reach
    if low == 0 and value(arb(0)) <= target:
        return Enclosure(0.0, 0.0)
    reach = scale
    while excess(high) > 0:
        high, reach = min(high + reach, ceiling), 2 * reach
        if reach > 1e9 * scale:
            return None
    near = high if low == high else brentq(excess, low, high, xtol=1e-300, rtol=2**-50)
    near = min(near, ceiling)
    spread = value(arb(near)).rad() / target
    first = max(min(float(spread), 1.0) * scale, max(near, least) * 2.0**-52)
    upper = _beside(near, first, lambda eps: eps >= ceiling or bool(value(arb(eps)) <= target))
    lower = _beside(near, -first, lambda eps: eps < ceiling and bool(value(arb(eps)) >= target))
    if upper is None or lower is None:
        return None
    upper = min(upper, ceiling)
    if is_exact and upper - lower > 10 * WIDTH * max(upper, least):
        return None
    return Enclosure(lower, upper)


def _beside(near: float, first: float, holds: Callable[[float], bool]) -> float | None:
    """Nearest proven point on the side that the sign of `first` names; 0 needs no proof below."""
    step = first / 8
    for _ in range(24):
        point = near + step
        if point <= 0:
            return 0.0 if first < 0 else None
        if holds(point):
            return point
        step *= 1.5
    return None
