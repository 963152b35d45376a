"""Curves of a privacy loss that takes whole numbers of equal steps, from the tails of its law.

With A(j) = P[L ≥ j steps] and B(j) the other side's probability of the same, for 1 ≤ j ≤ m where
the loss is at most m steps of size s, Neyman and Pearson's lemma gives

    δ(ε) = max over 1 ≤ j ≤ m + 1 of A(j) − e^ε B(j),      the maximum being at j = ⌊ε/s⌋ + 1,
    ε(δ) = ln max(1, max over 1 ≤ j ≤ m of (A(j) − δ)/B(j)),

since δ(ε) ≤ δ asks every one of these lines to be. Neither needs to know whether ε is a whole
number of steps: beside one, the two lines agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import arb, ctx

from dpverify.enclosure import Enclosure, enclose, to_arb

__all__ = ["Tails", "step_delta", "step_epsilon"]

Tails = Callable[[], tuple[Sequence[arb], Sequence[arb]]]
"""A and B from 0 to m steps, as balls at the working precision."""

_SIGN_PRECISIONS = (128, 512, 4096)


def step_delta(eps: Fraction, *, step: Enclosure, reach: int, tails: Tails) -> Enclosure:
    """Encloses δ(ε); exactly 0 from the largest loss on.

    Parameters
    ----------
    eps : at least 0
    step : s, positive where m is
    reach : m ≥ 0
    tails : of the loss
    """
    if reach == 0:
        return Enclosure(0.0, 0.0)
    # The best line, with one more on each side for the rounding of this quotient.
    best = math.floor(min(eps / Fraction(step.lower), Fraction(reach + 1))) + 1
    lines = range(max(best - 1, 1), min(best + 1, reach) + 1)
    if not lines:
        return Enclosure(0.0, 0.0)

    def value() -> arb:
        own, other = tails()
        factor = to_arb(eps).exp()
        most = own[lines[0]] - factor * other[lines[0]]
        for j in lines[1:]:
            most = most.max(own[j] - factor * other[j])
        return most.max(arb(0)) if lines[-1] == reach else most

    return enclose(value)


def step_epsilon(delta: Fraction, *, reach: int, tails: Tails) -> Enclosure:
    """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta; the largest loss where delta is 0.

    Parameters
    ----------
    delta : in [0, 1)
    reach : m ≥ 0
    tails : of the loss
    """

    def excess() -> arb:  # e^ε − 1
        own, other = tails()
        share = to_arb(delta)
        most = arb(-1)
        for j in range(1, reach + 1):
            most = most.max((own[j] - other[j] - share) / other[j])
        return most

    for precision in _SIGN_PRECISIONS:
        with ctx.workprec(precision):
            most = excess()
            if most <= 0:
                return Enclosure(0.0, 0.0)
            if most > 0:
                return enclose(lambda: excess().log1p())
            nearly = Enclosure.of_ball(most.upper().log1p()).upper
    return Enclosure(0.0, nearly)  # delta is δ(0), or as good as that
