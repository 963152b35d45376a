"""Rényi differential privacy: divergences of every order, their composition, and (ε, δ) from them.

For laws P, Q with privacy loss L = ln dP/dQ and an order α > 1, put s = α − 1 and

    K(s) = s·D_α(P‖Q) = ln E_P[e^(sL)],

a cumulant generating function: convex, K(0) = 0, and K adds up under composition, adaptive too
(Mironov 2017, proposition 1). Neighbours come in both orders, so every K here is the larger of K
for (P, Q) and for (Q, P), which is convex as well.

**Conversion.** δ(ε) = E_P[(1 − e^(ε−L))⁺] ≤ e^(K(s) − sε)·max over z of (1 − e^(−z))·e^(−sz). The
last factor is at most 1 (Mironov 2017, proposition 3), and exactly sˢ/(s + 1)^(s+1), reached at
e^(−z) = s/(s + 1) (Canonne, Kamath and Steinke 2020, proposition 12). With c(s) its logarithm, 0 or
s·ln s − (s + 1)·ln(s + 1), the least that the bound proves is

    ln δ(ε) = inf over s > 0 of F(s) − sε,      F = K + c,
    ε(δ)    = inf over t > 0 of t·(F(1/t) − ln δ).

c″ = 1/s − 1/(s + 1) > 0, so F is convex, and so is its perspective t·F(1/t). Both are minima of a
convex function f on the positive numbers, and three values enclose such a minimum: if f(a) ≥ f(m)
and f(b) ≥ f(m) at a = m − d, b = m + d, a minimum lies in [a, b], and there f is above the lines
through (m, b) and through (a, m), extended beyond m. Hence

    2·f(m) − max(f(a), f(b)) ≤ inf f ≤ f(m).

The search for m is not trusted. For d = m (so a = 0, where f is not needed) the lower bound holds
on (0, m] from f(2m) ≥ f(m) alone; that settles infima at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import ClassVar, Literal, Protocol

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.solve import brentq
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import NumericalError, ParameterError, require, require_known
from dpverify.guarantee import PrivacyBound
from dpverify.numbers import to_positive_rational

__all__ = [
    "RDP",
    "Conversion",
    "FiniteRenyi",
    "GaussianRenyi",
    "LaplaceRenyi",
    "PureRenyi",
    "RenyiDivergence",
    "convex_minimum",
    "minimum_near",
]

Conversion = Literal["mironov", "canonne-kamath-steinke"]
"""How a Rényi divergence becomes (ε, δ); the second is the best that one order can prove."""

_THEOREMS: dict[Conversion, str] = {
    "mironov": "Mironov 2017 (arXiv:1702.07476v3), propositions 1 and 3, at the best order",
    "canonne-kamath-steinke": (
        "Mironov 2017 (arXiv:1702.07476v3), proposition 1; Canonne, Kamath and Steinke 2020 "
        "(arXiv:2004.00010), proposition 12, at the best order"
    ),
}
_PRECISION = 320
_RANGE = 64  # the search's argument lies between 2⁻⁶⁴ and 2⁶⁴
_HALF_WIDTHS = tuple(2.0**-exponent for exponent in range(40, 8, -4))


class RenyiDivergence(Protocol):
    """The worst neighbours' divergence at every order."""

    def cumulant(self, shift: arb) -> arb:
        """K(s) = s·D_(1+s), the larger of both directions, for an exact s > 0."""
        ...

    def max_loss(self) -> Enclosure | None:
        """Encloses D_∞, the largest privacy loss; None where the loss is unbounded."""
        ...


@frozen(kw_only=True)
class GaussianRenyi:
    """N(0, σ²) against N(Δ, σ²): D_α = α·μ²/2 with μ = Δ/σ (Mironov 2017, proposition 7).

    The exact divergence of a Gaussian, and the bound that (μ²/2)-zero-concentrated privacy states.
    """

    statements: ClassVar[tuple[str, ...]] = ("mironov2017.proposition-7",)

    mu_squared: Fraction = field(converter=to_positive_rational)

    def cumulant(self, shift: arb) -> arb:
        """K(s) = s(s + 1)·μ²/2."""
        return shift * (shift + 1) * to_arb(self.mu_squared) / 2

    def max_loss(self) -> Enclosure | None:
        """None: the loss is unbounded."""
        return None


@frozen(kw_only=True)
class LaplaceRenyi:
    """Laplace noise of scale b on a query of sensitivity Δ: `ratio` is Δ/b.

    K(s) = ln(((s + 1)·e^(sr) + s·e^(−(s+1)r))/(2s + 1)) for r = Δ/b (Mironov 2017, proposition 6):
    the density's integral over x < 0, 0 < x < Δ and x > Δ.
    """

    statements: ClassVar[tuple[str, ...]] = ("mironov2017.proposition-6",)

    ratio: Fraction = field(converter=to_positive_rational)

    def cumulant(self, shift: arb) -> arb:
        """K(s), with e^(sr) taken out so that large orders don't overflow."""
        s, r = shift, to_arb(self.ratio)
        return s * r + ((s + 1 + s * (-(2 * s + 1) * r).exp()) / (2 * s + 1)).log()

    def max_loss(self) -> Enclosure | None:
        """Δ/b."""
        return Enclosure.of_exact(self.ratio)


@frozen(kw_only=True)
class PureRenyi:
    """Any ε₀-differentially private mechanism: at most randomized response with odds e^ε₀.

    Every such mechanism is a post-processing of it (Kairouz, Oh and Viswanath 2015, theorem 3.1),
    whose K(s) = ln(cosh((2s + 1)·ε₀/2)/cosh(ε₀/2)).
    """

    epsilon: Fraction = field(converter=to_positive_rational)

    def cumulant(self, shift: arb) -> arb:
        """K(s), with e^(s·ε₀) taken out."""
        s, bound = shift, to_arb(self.epsilon)
        return s * bound + ((1 + (-(2 * s + 1) * bound).exp()) / (1 + (-bound).exp())).log()

    def max_loss(self) -> Enclosure | None:
        """ε₀."""
        return Enclosure.of_exact(self.epsilon)


@frozen(kw_only=True)
class FiniteRenyi:
    """Any two laws on finitely many outcomes, by their exact probabilities.

    Parameters
    ----------
    pairs : (P, Q) of each outcome; each sums to 1, and none is zero on one side alone, where the
        divergence would be infinite
    """

    statements: ClassVar[tuple[str, ...]] = ("mironov2017.proposition-5",)

    pairs: tuple[tuple[Fraction, Fraction], ...]

    def __attrs_post_init__(self) -> None:
        for side in (0, 1):
            total = sum((pair[side] for pair in self.pairs), Fraction(0))
            require(total == 1, "pairs", f"a law of total {total}", "of total 1")
        for p, q in self.pairs:
            finite = (p > 0 and q > 0) or p == q == 0
            require(finite, "pairs", (str(p), str(q)), "both positive or both 0")
        require(
            any(p != q for p, q in self.pairs),
            "pairs",
            "the same distribution twice",
            "two distributions",
        )

    @classmethod
    def response(cls, *, keep: Fraction, values: int = 2) -> FiniteRenyi:
        """Randomized response over `values` values that tells the truth with probability `keep`."""
        require(values >= 2, "values", values, "at least 2")
        require(Fraction(1, values) < keep < 1, "keep", keep, f"in (1/{values}, 1)")
        other = (1 - keep) / (values - 1)
        rest = 1 - keep - other
        pairs = ((keep, other), (other, keep), (rest, rest))
        return cls(pairs=pairs if rest else pairs[:2])

    def cumulant(self, shift: arb) -> arb:
        """The larger of ln Σ P·(P/Q)ˢ and ln Σ Q·(Q/P)ˢ, the largest power taken out."""
        forward = [(p, p / q) for p, q in self.pairs if p]
        backward = [(q, q / p) for p, q in self.pairs if p]
        return _cumulant(forward, shift).max(_cumulant(backward, shift))

    def max_loss(self) -> Enclosure | None:
        """Ln of the largest ratio in either direction."""
        ratio = max(max(p / q, q / p) for p, q in self.pairs if p)
        return enclose(lambda: to_arb(ratio).log())


@frozen(kw_only=True)
class RDP(PrivacyBound):
    """What the Rényi divergences of several releases prove: their sum, converted at the best order.

    `delta_at` and `epsilon_at` enclose the bound, not the privacy curve, so their upper ends may be
    promised and their lower ends say how much of the gap to the truth is the theorem's.

    Parameters
    ----------
    parts : divergences with their multiplicities, at least one
    conversion : the tail bound that is used
    """

    statements: ClassVar[tuple[str, ...]] = (
        "mironov2017.proposition-1",
        "mironov2017.proposition-3",
    )

    parts: tuple[tuple[RenyiDivergence, int], ...]
    conversion: Conversion = "canonne-kamath-steinke"

    def __attrs_post_init__(self) -> None:
        require(len(self.parts) > 0, "parts", "none", "at least one release")
        for _, count in self.parts:
            require(count >= 1, "count", count, "at least 1")
        require_known("conversion", self.conversion, _THEOREMS)

    @classmethod
    def composed(cls, curves: Iterable[RDP]) -> RDP:
        """Curve of all releases together (Mironov 2017, proposition 1), with one conversion."""
        curves = tuple(curves)
        conversions = {curve.conversion for curve in curves}
        require(len(conversions) == 1, "curves", f"of {len(conversions)} conversions", "of one")
        parts = tuple(part for curve in curves for part in curve.parts)
        return cls(parts=parts, conversion=conversions.pop())

    @property
    def theorem(self) -> str:
        """What proves the bound."""
        return _THEOREMS[self.conversion]

    def divergence(self, order: Real) -> Enclosure:
        """Encloses D_α of the composition, for α > 1, in nats."""
        shift = rational("order", order) - 1
        require(shift > 0, "order", order, "greater than 1")
        return enclose(lambda: self._cumulant(to_arb(shift)) / to_arb(shift))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses the bound on δ(ε); 0 exactly from the largest loss on.

        Relative width at most 1e-12, except within a relative 2⁻⁵⁰ or so below the largest loss,
        where the best order is beyond 2⁶⁴ and the lower end is 0.
        """
        largest = self._largest()
        if largest is not None and epsilon >= Fraction(largest.upper):
            return Enclosure(0.0, 0.0)
        least = convex_minimum(lambda s: self._exponent(s) - s * to_arb(epsilon))
        with ctx.workprec(_PRECISION):
            low, high = least
            upper = Enclosure.of_ball(high.exp()).upper
            lower = 0.0 if low is None else Enclosure.of_ball(low.exp()).lower
        return Enclosure(min(lower, 1.0), min(upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the bound on the smallest ε ≥ 0 with δ(ε) ≤ delta.

        Raises
        ------
        ParameterError
            If `delta` isn't in [0, 1), or is 0 and the privacy loss is unbounded.
        """
        if delta == 0:
            largest = self._largest()
            if largest is None:
                raise ParameterError(
                    "delta",
                    delta,
                    "positive where a privacy loss is unbounded",
                    "Laplace noise or randomized response reach delta=0.",
                )
            return largest

        def value(t: arb) -> arb:
            return t * (self._exponent(1 / t) - to_arb(delta).log())

        low, high = convex_minimum(value)
        if low is None:
            raise NumericalError("no order is best")
        with ctx.workprec(_PRECISION):
            lower, upper = Enclosure.of_ball(low).lower, Enclosure.of_ball(high).upper
        if (largest := self._largest()) is not None:
            upper = min(upper, largest.upper)
        return Enclosure(max(lower, 0.0), max(upper, 0.0))

    def _cumulant(self, shift: arb) -> arb:
        return sum((count * part.cumulant(shift) for part, count in self.parts), arb(0))

    def _exponent(self, s: arb) -> arb:
        """F(s) = K(s) + c(s)."""
        if self.conversion == "mironov":
            return self._cumulant(s)
        return self._cumulant(s) - s * (1 + 1 / s).log() - (s + 1).log()

    def _largest(self) -> Enclosure | None:
        """Encloses the largest privacy loss of the composition."""
        lower = upper = arb(0)
        with ctx.workprec(_PRECISION):
            for part, count in self.parts:
                largest = part.max_loss()
                if largest is None:
                    return None
                lower, upper = (
                    lower + count * arb(largest.lower),
                    upper + count * arb(largest.upper),
                )
            return Enclosure.of_ball(lower.union(upper))


def convex_minimum(function: Callable[[arb], arb]) -> tuple[arb | None, arb]:
    """Proven lower and upper bound of inf f over the positive numbers, for convex f.

    Parameters
    ----------
    function : balls of f at exact arguments; its accuracy must follow the precision in force

    Returns
    -------
    (lower, upper)
        Balls, of which the first's lower and the second's upper end count. `lower` is None where f
        still falls at 2⁶⁴.

    Raises
    ------
    NumericalError
        If the values around the proposed minimum don't prove it.
    """
    with ctx.workprec(_PRECISION):

        def slope(exponent: float) -> float:
            x = arb(2.0**exponent)
            return float((function(x + x * arb(2) ** -80) - function(x)) * arb(2) ** 80)

        first, last = arb(2) ** -_RANGE, arb(2) ** _RANGE
        if slope(_RANGE) <= 0:
            return None, function(last)
        if slope(-_RANGE) >= 0:
            least, twice = function(first), function(2 * first)
            if twice >= least:
                return 2 * least - twice, least
            raise NumericalError("the convex function's minimum near 0 is not proven")
        return minimum_near(function, 2 ** brentq(slope, -_RANGE, _RANGE, xtol=1e-14))


def minimum_near(function: Callable[[arb], arb], middle: float) -> tuple[arb, arb]:
    """Proven lower and upper bound of inf f for convex f, from three values around `middle`.

    The distance between them is the smallest tried at which both outer values are proven to be at
    least the middle one.
    """
    m = arb(middle)
    least = function(m)
    for half_width in _HALF_WIDTHS:
        step = m * arb(half_width)
        before, after = function(m - step), function(m + step)
        if before >= least and after >= least:
            return 2 * least - before.max(after), least
    raise NumericalError(f"the convex function's minimum near {middle!r} is not proven")


def _cumulant(terms: list[tuple[Fraction, Fraction]], shift: arb) -> arb:
    """Ln Σ weight·ratioˢ."""
    largest = max(ratio for _, ratio in terms)
    total = sum(
        (to_arb(weight) * (shift * to_arb(ratio / largest).log()).exp() for weight, ratio in terms),
        arb(0),
    )
    return shift * to_arb(largest).log() + total.log()
