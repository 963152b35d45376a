"""Privacy loss of discrete Gaussian noise.

At the output y, with probability e^{−y²/2σ²}/θ(0) on the integers, the loss against the same noise
moved by Δ is L = (Δ² − 2yΔ)/2σ². So it lives on the lattice Δ²/2σ² + (Δ/σ²)·ℤ, without an end, and
completing the square

    M(s) = Σ_y e^{−y²/2σ² + sL}/θ(0) = e^{Δ²s(s + 1)/2σ²}·θ(sΔ)/θ(0),
    θ(x) = Σ_y e^{−(y + x)²/2σ²},

the moment generating function of the normal noise times a quotient. θ has period 1, and by
Poisson's summation θ(x) = σ√(2π)·Σ_k e^{−2π²σ²k² + 2πikx}, which is Jacobi's θ₃(x | 2πiσ²) but for
the factor; acb encloses that. The law is its own mirror image, so that both orders have this loss.

**Tails.** L ≥ x where y ≤ Δ/2 − σ²x/Δ, and the other law is the same at y − Δ. Few terms are
added up from far out; those from m > 0 on are at most e^{−m²/2σ²}/(1 − e^{−m/σ²}), as (m + j)² is
at least m² + 2mj.
Where they are many, Euler and Maclaurin's formula (DLMF 2.10.1) for f(y) = e^{−y²/2σ²} is

    Σ_{y ≥ m} f(y) = ∫_m^∞ f + f(m)/2 − Σ_{k ≤ p} B₂ₖ·f^{(2k − 1)}(m)/(2k)! + R,
    |R| ≤ |B₂ₚ|/(2p)!·∫_m^∞ |f^{(2p)}|,      |B₂ₚ|/(2p)! = 2ζ(2p)/(2π)^{2p} < 4/(2π)^{2p}.

On a circle of radius r around y > 0, Re z² = y² + 2yr·cos θ + r²·cos 2θ ≥ (y − r)² − 2r², so that
by Cauchy |f^{(n)}(y)| ≤ n!·r^{−n}·e^{r²/σ² − (y − r)²/2σ²}, and for any r > 0

    |R| ≤ 4·(2p)!/(2πr)^{2p}·e^{r²/σ²}·σ√(π/2)·erfc((m − r)/σ√2).

At r ≤ σ²/(m + σ) the factors after the first two are within a constant of the sum, which 2p near
2πr makes relatively e^{−2πr}. With aₙ = f^{(n)}(m)/n!, (n + 1)·aₙ₊₁ = −(m·aₙ + aₙ₋₁)/σ².

**Doubles.** With a = Δ²/2σ² and P = 2πσ²/Δ, at s = c + iy the terms of the sums over k are

    M(s)/M(c) = Σ_m e^{−a(y − mP)² + i(a(2c + 1)y − 2πmcΔ)} / Σ_k e^{−2π²σ²k²}·cos(2πkcΔ).

For σ ≥ 1, aP² = 2π²σ² > 19: the three m nearest to y/P leave out less than 3·e^{−9aP²/4} < 2⁻⁶²,
k = −1, 0, 1 less than 3·e^{−4aP²}, and the denominator is near 1. For σ < 1 the sum over the
outputs themselves is short: at c their law is e^{−(y + cΔ)²/2σ²} but for a constant, and more than
10 away from −cΔ it has less than 3·e^{−50 + ⅛} of its largest term.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate

import numpy as np
from attrs import field, frozen
from flint import acb, arb, ctx

from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    Support,
    TailedLoss,
    TransformedLoss,
)
from dpverify.accounting.losses.discrete import AtomicLoss
from dpverify.enclosure import root_string, to_arb
from dpverify.errors import NumericalError
from dpverify.numbers import to_count, to_positive_rational

__all__ = ["CutDiscreteGaussianLoss", "DiscreteGaussianLoss"]

_OUTPUTS = np.arange(-11.0, 12.0)  # from the one next to the middle
_MOST_OUTPUTS = 1 << 12  # of a law without its tails
_MOST_SUMMED = 10**6  # σ² up to which sums from all numbers of a block on are kept
_BLOCK = 256
_FARTHEST, _BOUND = 1 << 64, 64  # radius, and bits of the bound on what a formula leaves out


@frozen(kw_only=True)
class DiscreteGaussianLoss(TransformedLoss, TailedLoss):
    """The loss between discrete Gaussian noise and the same moved by a whole number.

    Parameters
    ----------
    sigma_squared : σ² > 0, exact
    sensitivity : Δ, at least 1
    """

    sigma_squared: Fraction = field(converter=to_positive_rational)
    sensitivity: int = field(converter=to_count)

    def __str__(self) -> str:
        sigma = root_string(self.sigma_squared)
        return f"DiscreteGaussian(sigma={sigma}, sensitivity={self.sensitivity})"

    @property
    def support(self) -> Support:
        """Steps of Δ/σ² from Δ²/2σ²."""
        step = self.sensitivity / self.sigma_squared
        return Support(base=((step * self.sensitivity / 2, 1),), spacings=(step,))

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Formula of the module's docstring."""
        half = to_arb(Fraction(self.sensitivity**2) / (2 * self.sigma_squared))
        tau = acb(0, 2 * arb.pi() * to_arb(self.sigma_squared))
        at_zero = acb(0).modular_theta(tau)[2]
        return [
            (half * s * (s + 1)).exp() * (s * self.sensitivity).modular_theta(tau)[2] / at_zero
            for s in points
        ]

    def tails(self, place: arb) -> tuple[arb, arb]:
        """Of outputs up to a number, which of two they are where that stays open."""
        last = self.sensitivity / arb(2) - to_arb(self.sigma_squared) * place / self.sensitivity
        low, high = (end.floor().unique_fmpz() for end in (last.lower(), last.upper()))
        if low is None or high is None:
            raise NumericalError(f"the tails of {self} at {place} are not resolved")
        ends = {int(low), int(high)}
        own, other = (
            reduce(arb.union, (_up_to(self.sigma_squared, end - move, ctx.prec) for end in ends))
            for move in (0, self.sensitivity)
        )
        return own, other

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        variance, move = float(self.sigma_squared), self.sensitivity
        normal = move**2 / (2 * variance) * c * (c + 1)
        if variance >= 1:
            first = 2 * math.exp(-2 * math.pi**2 * variance)
            quotient = np.log1p(first * np.cos(2 * math.pi * move * c)) - math.log1p(first)
        else:
            squares = (_OUTPUTS[:, None] + move * c - np.round(move * c)) ** 2
            quotient = np.logaddexp.reduce(-squares / (2 * variance), axis=0)
            quotient -= np.logaddexp.reduce(-(_OUTPUTS**2) / (2 * variance))
        total: Doubles = normal + quotient
        return total

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """A few terms of one of the two sums; a rounding of y moves each of them."""
        variance, move = float(self.sigma_squared), self.sensitivity
        scale = move**2 / variance
        if variance >= 1:
            period = 2 * math.pi * variance / move
            values = np.zeros(y.shape, dtype=np.complex128)
            for m in np.round(y / period) + np.array([-1.0, 0.0, 1.0])[:, None]:
                decay = scale / 2 * (y - m * period) ** 2
                angle = scale * (c + 0.5) * y - 2 * math.pi * m * c * move
                values += np.exp(-decay + 1j * angle)
            values /= 1 + 2 * math.exp(-2 * math.pi**2 * variance) * math.cos(
                2 * math.pi * c * move
            )
            slope = 4 * math.sqrt(scale) + 3 * scale * (c + 1)
            return values, ROUND_OFF * (8 + slope * y)
        centre = round(-c * move)
        outputs = centre + _OUTPUTS
        exponents = -((outputs + c * move) ** 2) / (2 * variance)
        weights = np.exp(exponents - exponents.max())
        losses = scale / 2 - outputs * move / variance
        turns = np.exp(1j * losses[:, None] * y)
        most = float(np.abs(losses).max())
        fixed = 100 + 20 * c * move / math.sqrt(variance) + 1 / variance
        return (weights / weights.sum()) @ turns, ROUND_OFF * (fixed + most * y)

    def envelope(self, c: float, y: float) -> float:
        """Atoms never die out."""
        del c, y
        return 0.0


@frozen(kw_only=True)
class CutDiscreteGaussianLoss(AtomicLoss):
    """The same of finitely many outputs, its own reverse: less than a law.

    Parameters
    ----------
    whole : the loss
    reach : outputs y with −reach ≤ y ≤ Δ + reach are left
    """

    whole: DiscreteGaussianLoss
    reach: int

    @property
    def is_law(self) -> bool:
        """Not: probabilities don't add up to 1."""
        return False

    @property
    def support(self) -> Support:
        """That of all outputs."""
        return self.whole.support

    def atoms(self) -> list[tuple[arb, arb]]:
        """One for each output."""
        square, move = self.whole.sigma_squared, self.whole.sensitivity
        variance, rest = to_arb(square), _normalization(square, ctx.prec)
        return [
            ((-(arb(y) ** 2) / (2 * variance)).exp() / rest, move * (move - 2 * y) / (2 * variance))
            for y in range(-self.reach, self.reach + move + 1)
        ]

    def lost(self) -> arb:
        """The first law's mass on other outputs, which is the second one's too."""
        square, first = self.whole.sigma_squared, -self.reach - 1
        moves = (0, self.whole.sensitivity)
        return sum((_up_to(square, first - move, ctx.prec) for move in moves), arb(0)).upper()

    @classmethod
    def of(cls, whole: DiscreteGaussianLoss, most: arb) -> CutDiscreteGaussianLoss | None:
        """With no more left out than that; None where too many outputs are left."""
        reaches = range(_MOST_OUTPUTS // 2)
        place = bisect_left(
            reaches, 1, key=lambda reach: cls(whole=whole, reach=reach).lost() <= most
        )
        if place == len(reaches) or 2 * place + whole.sensitivity >= _MOST_OUTPUTS:
            return None
        return cls(whole=whole, reach=place)


def _up_to(square: Fraction, last: int, precision: int) -> arb:
    """The probability of outputs up to a number; the law is its own mirror image."""
    if last >= 0:
        return 1 - _up_to(square, -last - 1, precision)
    found = _smoothly(square, -last, precision) if square > _MOST_SUMMED else None
    if found is None:
        table, place = divmod(-last, _BLOCK)
        found = _from(square, table, precision)[place]
    return found / _normalization(square, precision)


@lru_cache(maxsize=256)
def _normalization(square: Fraction, precision: int) -> arb:
    """θ(0)."""
    del precision  # in force
    variance = to_arb(square)
    theta = acb(0).modular_theta(acb(0, 2 * arb.pi() * variance))[2].real
    return (2 * arb.pi() * variance).sqrt() * theta


def _smoothly(square: Fraction, first: int, precision: int) -> arb | None:
    """Σ f(y) from so many on, by Euler and Maclaurin; None where that doesn't reach the precision.

    Which r and p it takes only decides how wide R is.
    """
    variance, m = to_arb(square), arb(first)
    r = min(math.floor(square / (first + math.isqrt(math.ceil(square)))), _FARTHEST)
    turn, goal = 2 * math.pi * max(r, 1), (precision + 8) * math.log(2)
    orders = range(2, math.ceil(turn), 2) if turn > goal else ()
    last = next((n for n in orders if n * math.log(turn) - math.lgamma(n + 1) > goal), None)
    if last is None:
        return None
    half, deviation = (arb.pi() / 2).sqrt(), variance.sqrt()
    before, here = arb(0), (-(m**2) / (2 * variance)).exp()
    total = deviation * half * (m / deviation / arb(2).sqrt()).erfc() + here / 2
    for n in range(1, last):
        before, here = here, -(m * here + before) / (n * variance)
        if n % 2:
            total -= arb.bernoulli(n + 1) * here / (n + 1)
    with ctx.workprec(_BOUND):
        rest = ((m - r) / deviation / arb(2).sqrt()).erfc() * (r**2 / variance).exp()
        rest *= 4 * deviation * half * arb.fac_ui(last) / (2 * arb.pi() * r) ** last
    return total + rest.union(-rest)


@lru_cache(maxsize=256)
def _from(square: Fraction, table: int, precision: int) -> tuple[arb, ...]:
    """The same for a block of numbers in a row, term by term."""
    first, variance = table * _BLOCK, to_arb(square)
    end = first + _BLOCK
    beyond = _smoothly(square, end, precision)
    if beyond is None:  # what is left out is relatively less than what the precision tells
        end = math.isqrt(math.ceil(2 * square * precision) + end**2) + 2
        most = (-(arb(end) ** 2) / (2 * variance)).exp() / (1 - (-end / variance).exp())
        beyond = arb(0).union(most.upper())
    terms = ((-(arb(y) ** 2) / (2 * variance)).exp() for y in range(end - 1, first - 1, -1))
    sums = list(accumulate(terms, initial=beyond))[1:]
    return tuple(sums[::-1][:_BLOCK])
