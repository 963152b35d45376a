"""Exact confidence limits for binomial proportions, verified in the last digit.

Clopper-Pearson limits from ``scipy.special.betaincinv`` can miss their level in the last digits.
Here that value is only proposed: the tail probability at the limit is then enclosed by ball
arithmetic, and the limit moves outwards until the level provably holds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import scipy
from flint import arb, ctx

from dpverify.errors import NumericalError, require

_BITS = 160  # of the sum in `_tail`: some 30 are lost

__all__ = ["judge_at_least", "judge_at_most", "lower_limit", "upper_limit"]


@lru_cache(maxsize=4096)
def lower_limit(successes: int, draws: int, alpha: float) -> float:
    """Lower confidence limit for a proportion: true p is below it with probability at most alpha.

    Largest p (up to about 1e-13 relatively) with P[Bin(draws, p) ≥ successes] ≤ alpha, Clopper and
    Pearson 1934.

    Parameters
    ----------
    successes, draws : int, 0 ≤ successes ≤ draws, draws ≥ 1
    alpha : level in (0, 1)
    """
    _check(successes, draws, alpha)
    if successes == 0:
        return 0.0
    limit = float(scipy.special.betaincinv(successes, draws - successes + 1, alpha))
    for shrink in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-6):
        candidate = limit * (1 - shrink)
        if _tail(candidate, successes, draws) <= arb(alpha):
            return candidate
    raise NumericalError(f"no verified limit for {successes} of {draws} at alpha={alpha}")


def upper_limit(successes: int, draws: int, alpha: float) -> float:
    """Upper confidence limit: true p is above it with probability at most alpha.

    One minus the lower limit of the failures, rounded up.
    """
    _check(successes, draws, alpha)
    lower = lower_limit(draws - successes, draws, alpha)
    return min(1.0, math.nextafter(1 - lower, math.inf))


def judge_at_least(
    successes: int, draws: int, probability: Fraction, alpha: float
) -> Literal["refuted", "confirmed", "inconclusive"]:
    """Verdict on "this happens with probability at least …", from independent draws.

    The verdict is false with probability at most alpha, exactly: if the statement is true, only
    "refuted" is false, and needs the upper limit below the true probability; if it isn't, only
    "confirmed" is, and needs the lower limit above it.

    Parameters
    ----------
    successes, draws : int, 0 ≤ successes ≤ draws, draws ≥ 1
    probability : exact, in [0, 1], such as 1 − δ
    alpha : level in (0, 1)
    """
    require(0 <= probability <= 1, "probability", probability, "in [0, 1]")
    if Fraction(upper_limit(successes, draws, alpha)) < probability:
        return "refuted"
    enough = Fraction(lower_limit(successes, draws, alpha)) >= probability
    return "confirmed" if enough else "inconclusive"


def judge_at_most(
    successes: int, draws: int, probability: Fraction, alpha: float
) -> Literal["refuted", "confirmed", "inconclusive"]:
    """The same for "with probability at most …": its opposite happens at least so often."""
    return judge_at_least(draws - successes, draws, 1 - probability, alpha)


def _check(successes: int, draws: int, alpha: float) -> None:
    require(draws >= 1, "draws", draws, "at least 1")
    require(0 <= successes <= draws, "successes", successes, f"between 0 and draws={draws}")
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")


def _tail(p: float, successes: int, draws: int) -> arb:
    """P[Bin(draws, p) ≥ successes]: the first term, by arb, times a sum of ratios to it.

    From j to j + 1 the terms change by r = (draws − j)p/((j + 1)(1 − p)), which falls. Where r < 1
    at the first, the sum is taken in integers, of which 2**_BITS are one. Each ratio is rounded
    down, so that the k-th is less than k too small, and all K of them less than K²/2. It ends
    where one is 0, which is then below K in truth, and all from it on below K/(1 − r).
    Elsewhere, where no small level has its limit, this is arb's incomplete beta function, which
    takes up to a hundred times as long.
    """
    hit, whole = p.as_integer_ratio()
    miss, misses = whole - hit, draws - successes
    with ctx.workprec(128):
        if not misses or misses * hit >= (successes + 1) * miss:
            return arb(p).beta_lower(successes, misses + 1, regularized=1)
        terms, ratio, total = 0, 1 << _BITS, 0
        up, down = misses * hit, (successes + 1) * miss
        while ratio:
            terms, total = terms + 1, total + ratio
            ratio = ratio * up // down
            up, down = up - hit, down + miss
        most = total + terms**2 + terms * down // (down - up) + 1
        first = arb(draws + 1).lgamma() - arb(successes + 1).lgamma() - arb(misses + 1).lgamma()
        first = first.exp() * arb(p) ** successes * (1 - arb(p)) ** misses
        return first * arb(total).union(most) / (1 << _BITS)
