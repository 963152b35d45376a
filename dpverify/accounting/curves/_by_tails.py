"""δ(ε) of one loss that is known by its tails: P[L ≥ ε] − e^ε·Q[L ≥ ε]."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx

from dpverify.accounting.losses.base import TailedLoss
from dpverify.accounting.solve import falling_root
from dpverify.enclosure import Enclosure, enclose, to_arb

__all__ = ["delta_by_tails", "epsilon_by_tails", "largest_loss"]

_PRECISION = 256


def delta_by_tails(loss: TailedLoss, epsilon: Fraction) -> Enclosure:
    """Encloses δ(ε), to a relative width of 1e-13; what is infinite from the largest loss on."""
    infinite, end = Enclosure.of_exact(loss.infinity_mass), largest_loss(loss)
    if end is not None and end.upper <= epsilon:
        return infinite
    if end is not None and end.lower <= epsilon:  # δ falls
        before = delta_by_tails(loss, Fraction(math.nextafter(end.lower, -math.inf)))
        return Enclosure(infinite.lower, before.upper)

    with ctx.workprec(_PRECISION):
        if loss.tails(to_arb(epsilon))[0] < arb(2) ** -1074:  # no double's probability
            return Enclosure(0.0, 5e-324)

    def value() -> arb:
        own, other = loss.tails(to_arb(epsilon))
        return own - to_arb(epsilon).exp() * other

    found = enclose(value, width=1e-13)
    return Enclosure(max(found.lower, infinite.lower), min(found.upper, 1.0))


def epsilon_by_tails(loss: TailedLoss, delta: Fraction) -> Enclosure:
    """Encloses ε(δ); infinite where δ is never as small."""
    if delta < loss.infinity_mass:
        return Enclosure(math.inf, math.inf)
    if delta == loss.infinity_mass:
        end = largest_loss(loss)
        return Enclosure(math.inf, math.inf) if end is None else end
    return falling_root(lambda eps: delta_by_tails(loss, Fraction(eps)), delta)


def largest_loss(loss: TailedLoss) -> Enclosure | None:
    """Encloses the largest finite loss, where there is one."""
    with ctx.workprec(_PRECISION):
        most = loss.max_loss()
        return None if most is None else Enclosure.of_ball(most)
