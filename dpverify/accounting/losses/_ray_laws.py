"""Laws of losses of Gaussian noise on samples, continued along rays into the complex plane.

The loss x of a release on a sample is an analytic function of the noise, with an inverse that is
analytic for Re x > 0. So is the first law's density p there: with w = e^{−x}, and with
ln r = x + λ(w) the noise's own loss in a batch, or μz of the noisy number z where a record is
replaced, ln p is a polynomial in x of functions of w in |w| < 1:

**Batch, removed.** e^{ln r} = 1 + (e^x − 1)/q = e^x·(1 + (1 − q)(1 − w)/q), and with the density m
of ln r under the second law, p = m·(d ln r/dx)·e^x, where

    λ = ln(1 + (1 − q)(1 − w)/q),      d ln r/dx = e^{−λ}/q,      ln m = −(x + λ + μ²/2)²/2μ² + …

1 − w has a positive real part, so that the main branch is meant.

**Replaced.** With v = e^{μz}, k = e^{−μ²/2} and W = (1 − q)(1 − w)/2qk, v·w = W + √(W² + w) is e^λ
(`sampled`). √(W² + w) is W·√(1 + w/W²), of the main branch: w/W² = (qk/((1 − q)·sinh(x/2)))² is in
(−∞, −1] nowhere, as sinh(x/2) is imaginary for Re x > 0 only where its modulus is above 1 > qk/(1 −
q). Where |W| < ½ it is the main branch of the former too, since |1 − w| < qk/(1 − q) ≤ ½ and so Re
(W² + w) > ¼, for q ≤ ⅓. The law of z is (1 − q + qkv)·φ(z) = e^x·g₋·φ(z) with g₋ = 1 − q + qk/v,
and dx/dz = μ(a + b), b = qk/(v·g₋), a = 1 − (1 − q)·w/g₋. |v| > 1, as |v| = 1 only where Re x = 0,
so that the main branch is meant of ln g₋; that of ln(a + b) is meant up to a multiple of 2πi, which
p doesn't see.

The slope d ln p/dx is αx + β with α and β functions of w alone.

**The other side.** The density at −x is e^{−x}·p(x) of a batch, besides an atom at 0, and where a
record is replaced. Of a removed record it is what the noise's loss −z makes, z > 0: under the first
law the density e^y·m(−z), y = ln(1 − q + q·e^{−z}), which is analytic for Re z > 0, since
|q·e^{−z}| < q < 1 − q. There |e^y| ≤ 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from flint import acb, arb

from dpverify.accounting.losses.base import PrivacyLoss
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.accounting.losses.smooth_samples import SmoothBatchLoss
from dpverify.enclosure import to_arb

__all__ = ["RayLaw", "Slope", "ray_law"]

_MOST_RATE = Fraction(1, 3)
_PART = 64  # of the scale on which the density varies, as far as which it is nearly constant


class Slope(NamedTuple):
    """D ln p/dx = αx + β."""

    alpha: acb
    beta: acb


@dataclass(frozen=True, slots=True, kw_only=True)
class RayLaw:
    """The law of one loss.

    Attributes
    ----------
    mu_squared, rate : of the noise, where a record comes or is moved, and of the sample
    replaced : whether a record is replaced by a coin
    mirrored : whether the density at −x is e^{−x}·p(x); else the record is removed
    """

    mu_squared: Fraction
    rate: Fraction
    replaced: bool
    mirrored: bool

    def atom(self) -> arb:
        """The mass at 0."""
        if self.replaced or not self.mirrored:
            return arb(0)
        own, other = GaussianLoss(mu_squared=self.mu_squared).tails(arb(0))
        q = to_arb(self.rate)
        return 1 - (1 - q) * other - q * own - other

    def scale(self) -> float:
        """A loss up to which the density hardly varies."""
        mu, q = math.sqrt(self.mu_squared), float(self.rate)
        if self.replaced:
            return q * math.exp(-mu * mu / 2) * min(mu, 1.0) / _PART
        return q * min(mu, 1.0) / _PART

    def log_density(self, x: acb) -> acb:
        """Ln p for Re x > 0, or for x in a small ball around 0."""
        square, q = to_arb(self.mu_squared), to_arb(self.rate)
        w = (-x).exp()
        rise = self._rise(w)
        if not self.replaced:
            log = -((x + rise + square / 2) ** 2) / (2 * square)
            return log + x - rise - (2 * arb.pi() * square).log() / 2 - q.log()
        rest, above, below = self._shares(w, rise)
        log = -((x + rise) ** 2) / (2 * square) + x + rest.log() - (above + below).log()
        return log - (2 * arb.pi() * square).log() / 2

    def slope(self, w: acb) -> Slope:
        """Its derivative in x, from w = e^{−x}."""
        square, q = to_arb(self.mu_squared), to_arb(self.rate)
        rise = self._rise(w)
        if not self.replaced:
            turn = (-rise).exp() / q
            return Slope(-turn / square, -turn * (rise + square / 2) / square + 2 - turn)
        _, above, below = self._shares(w, rise)
        # Of μz in x, and in μz of ln((1 − q + qkv)/(a + b)).
        turn = 1 / (above + below)
        shrunk = above * (1 - above) - below * (1 - below)
        beta = turn * (-rise / square + above - shrunk * turn)
        return Slope(-turn / square, beta)

    def below(self, z: acb) -> tuple[acb, acb]:
        """Of a removed record y at a z, and ln of the first law's density of z."""
        square, q = to_arb(self.mu_squared), to_arb(self.rate)
        place = (q * (-z).expm1()).log1p()
        log = -((square / 2 - z) ** 2) / (2 * square) - (2 * arb.pi() * square).log() / 2
        return place, log + place

    def _rise(self, w: acb) -> acb:
        """λ."""
        q = to_arb(self.rate)
        odds = (1 - q) / q
        if not self.replaced:
            return (1 + odds * (1 - w)).log()
        half = odds / 2 * (to_arb(self.mu_squared) / 2).exp() * (1 - w)
        if abs(half) < 1 / arb(2):
            return (half + (half**2 + w).sqrt()).log()
        return half.log() + (1 + (1 + w / half**2).sqrt()).log()

    def _shares(self, w: acb, rise: acb) -> tuple[acb, acb, acb]:
        """The ratio g₋ and the shares a and b."""
        q = to_arb(self.rate)
        small = q * (-to_arb(self.mu_squared) / 2).exp() * w * (-rise).exp()
        rest = 1 - q + small
        return rest, 1 - (1 - q) * w / rest, small / rest


def ray_law(loss: PrivacyLoss) -> RayLaw | None:
    """The law of a loss that is one of these."""
    match loss:
        case SmoothBatchLoss(base=GaussianLoss(mu_squared=square), rate=rate):
            replaced, mirrored = False, True
        case PoissonReplacedLoss(base=GaussianLoss(mu_squared=square), rate=rate):
            replaced, mirrored = True, True
        case PoissonSampledLoss(base=GaussianLoss(mu_squared=square), rate=rate, added=False):
            replaced, mirrored = False, False
        case _:
            return None
    if rate > _MOST_RATE:
        return None
    return RayLaw(mu_squared=square, rate=rate, replaced=replaced, mirrored=mirrored)
