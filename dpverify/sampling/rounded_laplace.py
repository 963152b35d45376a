"""Exactly rounded Laplace noise on the integers: Z = round(b·X), X with density e^(−|x|)/2.

**Why rounded.** As for Gaussian noise (see `rounded_gaussian`): where the noiseless output y is a
whole number of grid steps, ``y + round(N)`` is ``round(y + N)``, a post-processing of the ideal
mechanism. The law is

    P[Z = 0] = 1 − e^(−1/2b),        P[Z = n] = sinh(1/2b)·e^(−|n|/b)   for n ≠ 0,

by integrating the density over [n − ½, n + ½]. Between n and n − a on one side of 0 the log ratio
of these is exactly a/b, and P[Z = 0]/P[Z = 1] = 2e^(1/2b)/(1 + e^(−1/2b)) lies between 1 and
e^(1/b): so |ln P[Z = n] − ln P[Z = n − a]| ≤ |a|/b with equality almost everywhere. Rounding keeps
the pure ε of the ideal mechanism and does not lower it.

**How it is exact.** See `_quantile_table`. Here the tail probability is e^(−x)/2, the quantile
−ln(2p), and the score is 1: z″ = z′², from z′ = −1/f(z). A boundary (n + ½)/b belongs to a
transcendental p, which no finite number of bits equals (Lindemann), so a draw ends almost surely.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from attrs import frozen
from flint import arb

from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.sampling._quantile_table import Law
from dpverify.sampling._rounded_noise import RoundedNoise

__all__ = ["RoundedLaplace"]


@frozen(kw_only=True)
class RoundedLaplace(RoundedNoise):
    """Distribution of round(Laplace(0, scale)) on the integers, sampled exactly.

    Parameters
    ----------
    scale : b, so that the density before rounding is e^(−|x|/b)/2b, in grid steps; the double's
        exact value counts. From 1/64, below which P[Z ≠ 0] < e^(−32) is no noise worth the name,
        to 2⁴⁴.
    """

    law: ClassVar[Law] = Law(
        tail=lambda x: (-x).exp() / 2,
        quantile=lambda p: -(2 * p).log(),
        density=lambda x: (-x).exp() / 2,
        score=lambda z: [arb(1)] + [arb(0)] * (len(z) - 1),
    )
    min_scale: ClassVar[float] = 2.0**-6

    def probability(self, value: int) -> Enclosure:
        """Encloses P[Z = value]."""
        return enclose(lambda: self._probability(value))

    def _probability(self, value: int) -> arb:
        rate = 1 / to_arb(Fraction(self.scale))
        if value == 0:
            return -(-rate / 2).expm1()
        return (rate / 2).sinh() * (-abs(value) * rate).exp()

    def _moment(self, order: int) -> arb:
        """E[Z²] is cosh r/(2 sinh² r) with r = 1/2b, near 2b² + 1/12; E[Z⁴] E[Z²]·(1 + 3/sinh² r).

        The sum 2 sinh r·Σ n²qⁿ over n ≥ 1 is 2 sinh r·q(1 + q)/(1 − q)³ with q = e^(−2r), where
        1 − q = 2e^(−r) sinh r and 1 + q = 2e^(−r) cosh r; and Σ n⁴qⁿ is
        q(1 + q)(1 + 10q + q²)/(1 − q)⁵.
        """
        rate = 1 / (2 * to_arb(Fraction(self.scale)))
        square = rate.sinh() ** 2
        variance = rate.cosh() / (2 * square)
        return variance if order == 2 else variance * (1 + 3 / square)
