"""Exactly rounded Gaussian noise on the integers: Z = round(s·N(0, 1)) for any scale s ≥ 1.

**Why rounded.** A mechanism whose noiseless output lies on a grid and whose noise is N(0, s²) in
grid steps may publish the noisy value rounded to that grid: rounding commutes with whole-step
shifts, so ``y + round(N)`` is ``round(y + N)``, a post-processing of the ideal mechanism. The
analytic Gaussian curve holds for it as it stands.

**How it is exact.** See `_quantile_table`: a draw is decided by a table where a proven bound allows
it and by ball arithmetic where not, so the law of Z is exact to the last bit. Here the tail
probability is Φ(−x), and the score of φ is x: the quantile obeys z″ = z·z′², from z′ = −1/φ(z).
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from attrs import frozen
from flint import arb

from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.sampling._quantile_table import Law
from dpverify.sampling._rounded_noise import RoundedNoise

__all__ = ["RoundedGaussian"]


@frozen(kw_only=True)
class RoundedGaussian(RoundedNoise):
    """Distribution of round(N(0, scale²)) on the integers, sampled exactly.

    Parameters
    ----------
    scale : standard deviation s before rounding, in grid steps; the double's exact value counts.
        From 1 (a coarser grid would round the noise away) to 2⁴⁴.
    """

    law: ClassVar[Law] = Law(
        tail=lambda x: (x / arb(2).sqrt()).erfc() / 2,
        quantile=lambda p: arb(2).sqrt() * (2 * p).erfcinv(),
        density=lambda x: (-x * x / 2).exp() / (2 * arb.pi()).sqrt(),
        score=lambda z: z,
    )
    min_scale: ClassVar[float] = 1.0

    def probability(self, value: int) -> Enclosure:
        """Encloses P[Z = value] = Φ((value + ½)/s) − Φ((value − ½)/s)."""
        low, high = (
            (Fraction(2 * abs(value) + side, 2)) / Fraction(self.scale) for side in (-1, 1)
        )
        return enclose(lambda: self.law.tail(to_arb(low)) - self.law.tail(to_arb(high)))

    def _moment(self, order: int) -> arb:
        """E[Z²] is s² + 1/12, E[Z⁴] is 3s⁴ + s²/2 + 1/80, both up to about e^(−2π²s²).

        P[Z = n] is f(n) for the density f of N(0, s²) plus a uniform variable on [−½, ½], whose
        characteristic function is f̂(t) = g(t)·S(t) with g = exp(−2π²s²t²), S = sin(πt)/πt. By
        Poisson's summation E[Z²] is the variance of that sum, plus −f̂″(m)/4π² over integers m ≠ 0.
        """
        s2 = to_arb(Fraction(self.scale)) ** 2
        total = s2 + arb(1) / 12 if order == 2 else 3 * s2**2 + s2 / 2 + arb(1) / 80
        sign = -1 if order == 2 else 1
        terms = [
            2 * sign * _derivative_at_integer(s2, m, order) / (2 * arb.pi()) ** order
            for m in range(1, _POISSON_TERMS + 2)
        ]
        # Each term beyond is less than half the one before it in absolute value (the exponential
        # falls by e^(−2π²(2m+1)) for s ≥ 1, the polynomial factor grows by less than 16), so the
        # last one, kept as a radius twice its size, bounds the rest of the series.
        last = terms.pop()
        bound = (2 * abs(last)).upper()
        return sum(terms, total) + bound * arb(0, 1)


_POISSON_TERMS = 4


def _derivative_at_integer(s2: arb, m: int, order: int) -> arb:
    """Second or fourth derivative of g·S at an integer m ≥ 1, by Leibniz's rule; S(m) = 0."""
    c = 4 * arb.pi() ** 2 * s2
    parity = -1 if m % 2 else 1
    g = (-c * m * m / 2).exp()
    g1, g2, g3 = -c * m * g, (c * c * m * m - c) * g, (3 * c * c * m - c**3 * m**3) * g
    pi2 = arb.pi() ** 2
    s1, s_2 = arb(parity) / m, arb(-2 * parity) / (m * m)
    s3 = parity * (arb(6) / m**3 - pi2 / m)
    s4 = parity * (4 * pi2 / (m * m) - arb(24) / m**4)
    if order == 2:
        return 2 * g1 * s1 + g * s_2
    return 4 * g3 * s1 + 6 * g2 * s_2 + 4 * g1 * s3 + g * s4
