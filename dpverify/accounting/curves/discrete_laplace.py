"""Discrete Laplace noise (two-sided geometric) on a whole number: its exact privacy curve.

P[Z = z] = (1 − q)/(1 + q)·q^|z| with q = e^(−1/b): Ghosh, Roughgarden and Sundararajan 2009. Beside
a shift of Δ the loss is Δ/b at outputs up to 0, −Δ/b from Δ on and (Δ − 2o)/b at o between, so
{L ≥ ε} is {o ≤ m} with m = ⌊(Δ − εb)/2⌋, and by Neyman and Pearson's lemma

    δ(ε) = P[Z ≤ m] − e^ε P[Z ≤ m − Δ] = 1 − (q^(m+1) + e^ε q^(Δ−m))/(1 + q)    for ε < Δ/b,

and 0 from Δ/b on. Every other m gives a smaller value, so that

    ε(δ) = ln max over 0 ≤ m < Δ of ((1 + q)(1 − δ) − q^(m+1))·q^(m−Δ),

a concave function of q^m: the largest is next to where the real one is, at q^m = (1 + q)(1 − δ)/2q.

The noise is log-concave, so that δ rises with the shift: a smaller one is no worse. And δ falls as
b rises, since the noise of a larger b is that of b plus independent noise: the quotient of their
generating functions is, up to a constant, a product of (1 − qz)/(1 − q′z) = q/q′ + (1 − q/q′)/(1 −
q′z) and the same in 1/z, and all coefficients of these are positive.
"""

from __future__ import annotations

import math
from fractions import Fraction

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import DiscreteLaplaceLoss
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, enclose, short_string, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_count, to_positive_rational

__all__ = ["DiscreteLaplace"]

_PRECISION = 256


@frozen(kw_only=True)
class DiscreteLaplace(PrivacyCurve):
    """Exact privacy curve of discrete Laplace noise on a whole number.

    Parameters
    ----------
    scale : b > 0 of the noise, of probabilities like exp(-abs(z)/b); exact
    sensitivity : Δ, a whole number of at least 1, in the same unit
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> f"{dpv.curves.DiscreteLaplace(scale=2).delta_at(epsilon='0.25'):.4f}"
    '0.1378'
    """

    scale: Fraction = field(converter=to_positive_rational)
    sensitivity: int = field(default=1, converter=to_count)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        rule = "from 2**-60 to 2**60 times the sensitivity"
        good = Fraction(1, 2**60) <= self.scale / self.sensitivity <= 2**60
        require(good, "scale", short_string(self.scale), rule)

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13; exactly 0 from the largest loss on."""
        if epsilon * self.scale >= self.sensitivity:
            return Enclosure(0.0, 0.0)
        last = math.floor((self.sensitivity - epsilon * self.scale) / 2)

        def value() -> arb:
            own, other = self._masses(last)
            return own - to_arb(epsilon).exp() * other

        return enclose(value)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ): the largest loss where δ is 0."""
        if delta == 0:
            return Enclosure.of_exact(self.sensitivity / self.scale)
        with ctx.workprec(_PRECISION):
            q = self._ratio()
            best = -to_arb(self.scale) * ((1 + q) * to_arb(1 - delta) / (2 * q)).log()
            near = math.floor(float(best)) if math.isfinite(float(best)) else 0
            tried = {min(max(near + step, 0), self.sensitivity - 1) for step in (-1, 0, 1, 2)}
            most = self._odds(delta, tried)
            if most <= 1:
                return Enclosure(0.0, 0.0)
            if not most > 1:
                return Enclosure(0.0, Enclosure.of_ball(most.log()).upper)
        return enclose(lambda: self._odds(delta, tried).log())

    def _odds(self, delta: Fraction, tried: set[int]) -> arb:
        """The largest e^ε at which one of these tests has δ."""
        q, most = self._ratio(), arb(0)
        for m in tried:
            most = most.max(
                ((1 + q) * to_arb(1 - delta) - q ** (m + 1)) / q ** (self.sensitivity - m)
            )
        return most

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[o ≤ m] on both sides, m the largest output of such a loss; b is scaled by `noise`."""
        reach = float(self.sensitivity / self.scale)
        if not -reach < threshold <= reach:
            return (0.0, 0.0) if threshold > 0 else (1.0, 1.0)
        last = math.floor((self.sensitivity - Fraction(threshold) * self.scale) / 2)
        with ctx.workprec(64):
            scaled = DiscreteLaplace(
                scale=self.scale * Fraction(noise), sensitivity=self.sensitivity
            )
            own, other = scaled._masses(min(last, self.sensitivity - 1))
            return float(own), float(other)

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        return ((DiscreteLaplaceLoss(scale=self.scale, sensitivity=self.sensitivity), 1),)

    def _ratio(self) -> arb:
        return to_arb(-1 / self.scale).exp()

    def _masses(self, last: int) -> tuple[arb, arb]:
        """P[Z ≤ m] and P[Z ≤ m − Δ] for 0 ≤ m < Δ."""
        q = self._ratio()
        return 1 - q ** (last + 1) / (1 + q), q ** (self.sensitivity - last) / (1 + q)
