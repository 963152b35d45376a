"""The discrete Gaussian of Canonne, Kamath and Steinke 2020 (arXiv:2004.00010v5), definition 1.

P[Y = y] is proportional to e^{−y²/2σ²} on the integers. This is no rounding of N(0, σ²), and its
curve isn't that of N(0, σ²): at σ = 1 its δ is up to 2.7 times as large. Against the same noise
moved by a whole Δ ≥ 1 the privacy loss at y is (Δ² − 2yΔ)/2σ². With Y turned round it is above ε
exactly where y > εσ²/Δ − Δ/2, so that with the least whole n from there on

    δ(ε) = T(n) − e^ε·T(n + Δ),   T(n) = P[Y ≥ n],

the best of all tests {y ≥ m}: each of them is a lower bound. The law is its own mirror image, so
both directions have this curve.

**Tails.** With f(y) = e^{−y²/2σ²}, S(n) = Σ_{y ≥ n} f(y) for n ≥ 0, and T(n) = S(n)/(1 + 2S(1)),
for n ≤ 0 one less T(1 − n). S is added up term by term where few terms count; the ratio of
neighbouring terms falls, so that a geometric series bounds the rest. Where many do, by Euler and
Maclaurin: with u = n/σ and Hermite's polynomials f⁽ᵐ⁾(n) = (−1)ᵐσ⁻ᵐHeₘ(u)f(n), and

    S(n) = σ√(π/2)·erfc(u/√2) + f(n)/2 + f(n)·Σ_{k ≤ K} B₂ₖ/(2k)!·σ^{1−2k}·He₂ₖ₋₁(u) + R,
    |R| ≤ 2ζ(2K)/(2π)^{2K}·σ^{1−2K}·∫_u^∞ |He₂ₖ(v)|e^{−v²/2} dv.

Heₘ is bounded by its coefficients' sizes, and I_j = ∫_u^∞ v^j e^{−v²/2} dv by
I_j = u^{j−1}e^{−u²/2} + (j − 1)I_{j−2}. All of that is positive, so that the bound is tight.

**Far out.** P[Y ≥ n] ≤ e^{−n²/2σ²}: E[e^{tY}] is e^{t²σ²/2}·Σ_y e^{−(y−tσ²)²/2σ²}/Σ_y e^{−y²/2σ²},
whose quotient is at most 1 (by Poisson's summation the numerator is a sum of cosines with positive
coefficients), at t = n/σ².
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from attrs import field, frozen
from flint import arb, ctx, fmpq

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.solve import brentq, certified_solution
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Exact, SquareRoot, enclose, squared, to_arb
from dpverify.errors import NumericalError, require
from dpverify.guarantee import PrivacyCurve, group_adjacency, to_adjacency
from dpverify.numbers import count, to_count, to_positive

__all__ = ["DiscreteGaussian"]

_MOST_TERMS = 4096
_FAR = 10**100
_UNDERFLOW = 746  # e^−746 < 2⁻¹⁰⁷⁴


@frozen(kw_only=True)
class DiscreteGaussian(PrivacyCurve):
    """Exact curve of discrete Gaussian noise on a whole number that changes by at most Δ.

    Noise on a grid of step g has σ/g and Δ/g here. Equal σ² and Δ are equal curves.

    Parameters
    ----------
    sigma : σ > 0, exact
    sensitivity : Δ, a whole number of at least 1
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> f"{dpv.DiscreteGaussian(sigma=1).delta_at(epsilon=4):.3g}"
    '0.0000539'
    """

    sigma: Exact = field(converter=to_positive, eq=False)
    sensitivity: int = field(default=1, converter=to_count)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)
    sigma_squared: Fraction = field(init=False, repr=False)

    @sigma_squared.default
    def _(self) -> Fraction:
        return squared(self.sigma)

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13 while δ is a normal double."""
        first = self._first(epsilon)
        if first > 0 and first**2 >= 2 * _UNDERFLOW * self.sigma_squared:
            return Enclosure(0.0, math.ulp(0.0))

        def value() -> arb:
            own, other = self._tails(first)
            return own - to_arb(epsilon).exp() * other

        found = enclose(value)
        return Enclosure(max(found.lower, 0.0), min(found.upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ) for δ > 0, to a relative width of 1e-13.

        The ε at which one test alone has δ is a lower bound; the upper end is where δ is proven to
        be reached.

        Raises
        ------
        ParameterError
            If δ is 0: the privacy loss is unbounded.
        NumericalError
            If ε exceeds 1e15.
        """
        target = delta
        require(
            target > 0, "delta", delta, "in (0, 1): the privacy loss of this noise is unbounded"
        )
        if Fraction(self.delta_at(0).upper) <= delta:
            return Enclosure(0.0, 0.0)
        first = self._proposal(delta)
        return certified_solution(
            enclose(lambda: self._reached(first, delta)),
            lambda eps: Fraction(self.delta_at(eps).upper) <= delta,
        )

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides, or of noise with σ times `noise`."""
        first = self._first(Fraction(threshold))
        square = self.sigma_squared * Fraction(noise) ** 2
        last = first + self.sensitivity
        if first * last > 0 and min(first**2, last**2) > 2 * _UNDERFLOW * square:
            return (0.0, 0.0) if first > 0 else (1.0, 1.0)
        scaled = DiscreteGaussian(sigma=SquareRoot(square), sensitivity=self.sensitivity)
        with ctx.workprec(64):
            own, other = scaled._tails(first)
            return float(own), float(other)

    def group(self, size: int) -> DiscreteGaussian:
        """The noise against so many times the change: exact."""
        return DiscreteGaussian(
            sigma=self.sigma,
            sensitivity=count("size", size) * self.sensitivity,
            adjacency=group_adjacency(self.adjacency, size),
        )

    def losses(self) -> Losses:
        """The privacy loss, for composition, which plans in doubles."""
        square, rule = self.sigma_squared, "from 1e-50 to 1e50 sensitivities, and at most 1e50"
        near = square <= _FAR * self.sensitivity**2 <= square * _FAR**2
        require(near and square <= _FAR, "sigma", self.sigma, rule, "It is composed no further.")
        loss = DiscreteGaussianLoss(sigma_squared=self.sigma_squared, sensitivity=self.sensitivity)
        return ((loss, 1),)

    def _first(self, eps: Fraction) -> int:
        """The least output, turned round, whose loss is at least ε."""
        return math.ceil(
            eps * self.sigma_squared / self.sensitivity - Fraction(self.sensitivity, 2)
        )

    def _tails(self, first: int) -> tuple[arb, arb]:
        """T(n) and T(n + Δ) at the current precision."""
        precision = ctx.prec
        return (
            _tail(self.sigma_squared, first, precision),
            _tail(self.sigma_squared, first + self.sensitivity, precision),
        )

    def _reached(self, first: int, target: Fraction) -> arb:
        """The ε at which a test has so large a δ; −∞ where it has it at none."""
        own, other = self._tails(first)
        room = own - to_arb(target)
        return arb("-inf") if room <= 0 else (room / other).log()

    def _proposal(self, target: Fraction) -> int:
        """The test that is best where δ(ε) = target, or one that is as good in doubles.

        A root in doubles of ln δ, which is steep enough wherever δ(ε) isn't near 1. With little
        noise δ is nearly a step function, and a double may lie on the wrong side of a step: of the
        tests beside, the best is taken.
        """
        ratio = self.sigma_squared / self.sensitivity**2
        with ctx.workprec(128 + math.ceil(ratio).bit_length()):
            log_target = float(to_arb(target).log().mid())

            def excess(eps: float) -> float:
                own, other = self._tails(self._first(Fraction(eps)))
                value = own - arb(eps).exp() * other
                return float(value.log().mid()) - log_target if value > 0 else -1e6

            high = 1.0
            while excess(high) > 0:
                high *= 2
                if high > 1e15:
                    raise NumericalError(f"no epsilon below 1e15 reaches delta={target}")
            root = brentq(excess, 0.0, high, xtol=1e-300, rtol=2.0**-50)
            found = self._first(Fraction(root))
            return max(found, found - 1, found + 1, key=lambda first: self._reached(first, target))


@lru_cache(maxsize=1024)
def _tail(variance: Fraction, first: int, precision: int) -> arb:
    """T(n) at a precision, the one in force."""
    if first <= 0:
        return 1 - _tail(variance, 1 - first, precision)
    return _sum(variance, first) / (1 + 2 * _sum(variance, 1))


def _sum(variance: Fraction, first: int) -> arb:
    """S(n) for n ≥ 1, relative to the precision in force."""
    bits = ctx.prec
    terms = min(bits * variance / first, math.isqrt(math.ceil(2 * bits * variance)) + 1)
    return _added(variance, first) if terms <= _MOST_TERMS else _by_integral(variance, first)


def _added(variance: Fraction, first: int) -> arb:
    term = to_arb(-(Fraction(first) ** 2) / (2 * variance)).exp()
    ratio = to_arb(-Fraction(2 * first + 1) / (2 * variance)).exp()
    fall = to_arb(-1 / variance).exp()
    total, small = arb(0), term * arb(2) ** -ctx.prec
    for _ in range(2 * _MOST_TERMS):
        total += term
        term *= ratio
        ratio *= fall
        rest = term / (1 - ratio)
        if rest <= small:
            return total + arb(0, rest.upper())
    raise NumericalError(f"the tail from {first} for a variance of {variance} stays open")


def _by_integral(variance: Fraction, first: int) -> arb:
    sigma = to_arb(variance).sqrt()
    u = first / sigma
    density = to_arb(-(Fraction(first) ** 2) / (2 * variance)).exp()
    plain = (u / arb(2).sqrt()).erfc() * (arb.pi() / 2).sqrt()
    total = sigma * plain + density / 2
    before, hermite = arb(1), u  # He₀ and He₁
    sizes = [[arb(1)], [arb(0), arb(1)]]  # coefficients' sizes of the last two
    moments = [plain, density]  # I₀ and I₁
    small, power = density * arb(2) ** -ctx.prec, u
    for k in range(1, ctx.prec):
        weight = arb(fmpq.bernoulli(2 * k)) / math.factorial(2 * k)
        total += density * weight * sigma ** (1 - 2 * k) * hermite
        for m in (2 * k - 1, 2 * k):
            before, hermite = hermite, u * hermite - m * before
            raised = [arb(0), *sizes[1]]
            padded = [*sizes[0], arb(0), arb(0)]
            sizes = [sizes[1], [a + m * b for a, b in zip(raised, padded, strict=True)]]
            moments.append(power * density + m * moments[-2])
            power *= u
        # Here sizes[0] belongs to He₂ₖ and ζ(2K) ≤ ζ(2) < 2.
        bound = sum((a * b for a, b in zip(sizes[0], moments, strict=False)), arb(0))
        rest = 4 * bound * sigma * (2 * arb.pi() * sigma) ** (-2 * k)
        if rest <= small:
            return total + arb(0, rest.upper())
    raise NumericalError(f"the tail from {first} for a variance of {variance} stays open")
