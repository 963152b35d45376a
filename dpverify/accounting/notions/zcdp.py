"""Zero-concentrated differential privacy (zCDP): one number ρ, sums of it, and (ε, δ) from it.

A mechanism is ρ-zCDP if D_α(P‖Q) ≤ αρ for all orders α > 1 and all neighbours, in both orders (Bun
and Steinke 2016, definition 1.1). A Gaussian has exactly ρ = Δ²/2σ², so ρ-zCDP promises of each
order what a Gaussian with μ² = 2ρ would, and the conversions are those of `renyi` for it.

**Pure privacy.** Randomized response with odds e^ε, of which every ε-private mechanism is a
post-processing, has D_α = ln(cosh(ux)/cosh x)/(α − 1) for x = ε/2, u = 2α − 1, and α(α − 1) =
(u² − 1)/4. v ↦ ln cosh(√v·x) is concave, its slope (x/2)·tanh(√v·x)/√v falling in v. Hence

    (α − 1)·D_α ≤ (u² − 1)·(x/2)·tanh x = α(α − 1)·ε·tanh(ε/2),

so ε-privacy is ρ-zCDP with ρ = ε·tanh(ε/2), and with no smaller one: D_α/α tends to it as α → 1.
Since tanh y < y it is below the ε²/2 of Bun and Steinke 2016, proposition 1.4.

**Conversions.** Markov's inequality at the best order (Bun and Steinke 2016, proposition 1.3; its
inverse follows by solving for δ):

    ε(δ) = ρ + 2√(ρ·ln(1/δ)),      δ(ε) = exp(−(ε − ρ)²/4ρ) for ε ≥ ρ, else 1.

Canonne, Kamath and Steinke 2020, corollary 13, use the best tail bound of one order:

    δ(ε) = inf over α > 1 of exp((α − 1)(αρ − ε))/(α − 1)·(1 − 1/α)^α.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from attrs import field, frozen

from dpverify.accounting.notions.renyi import RDP, GaussianRenyi
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import require, require_known
from dpverify.guarantee import PrivacyBound
from dpverify.numbers import to_positive_rational

__all__ = ["ZCDP", "ZCDPConversion", "rho_of_pure"]

ZCDPConversion = Literal["bun-steinke", "canonne-kamath-steinke"]
"""How ρ becomes (ε, δ); the second is never worse."""

_THEOREMS: dict[ZCDPConversion, str] = {
    "bun-steinke": "Bun and Steinke 2016 (arXiv:1605.02065), lemma 1.7 and proposition 1.3",
    "canonne-kamath-steinke": (
        "Bun and Steinke 2016 (arXiv:1605.02065), lemma 1.7; Canonne, Kamath and Steinke 2020 "
        "(arXiv:2004.00010), corollary 13"
    ),
}


def rho_of_pure(epsilon: Real) -> Enclosure:
    """Encloses ε·tanh(ε/2), the least ρ that ε-differential privacy implies, for ε > 0."""
    eps = rational("epsilon", epsilon)
    require(eps > 0, "epsilon", epsilon, "positive")
    return enclose(lambda: to_arb(eps) * (to_arb(eps) / 2).tanh())


@frozen(kw_only=True)
class ZCDP(PrivacyBound):
    """What ρ-zCDP proves of (ε, δ): an enclosure of the bound, whose upper end may be promised.

    Parameters
    ----------
    rho : ρ > 0, exact; where the least ρ is irrational, a double above it
    conversion : how ρ becomes (ε, δ)
    """

    rho: Fraction = field(converter=to_positive_rational)
    conversion: ZCDPConversion = "canonne-kamath-steinke"

    def __attrs_post_init__(self) -> None:
        require_known("conversion", self.conversion, _THEOREMS)

    @classmethod
    def gaussian(
        cls,
        mu_squared: Fraction,
        *,
        conversion: ZCDPConversion = "canonne-kamath-steinke",
    ) -> ZCDP:
        """Gaussian noise with Δ²/σ² = `mu_squared` (Bun and Steinke 2016, proposition 1.6)."""
        return cls(rho=mu_squared / 2, conversion=conversion)

    @classmethod
    def pure(
        cls,
        epsilon: Real,
        *,
        conversion: ZCDPConversion = "canonne-kamath-steinke",
    ) -> ZCDP:
        """Any ε-differentially private mechanism, with the least ρ, rounded up to a double."""
        return cls(rho=Fraction(rho_of_pure(epsilon).upper), conversion=conversion)

    @classmethod
    def composed(cls, curves: Iterable[ZCDP]) -> ZCDP:
        """Curve of all releases together: ρ adds up (Bun and Steinke 2016, lemma 1.7)."""
        curves = tuple(curves)
        conversions = {curve.conversion for curve in curves}
        require(len(conversions) == 1, "curves", f"of {len(conversions)} conversions", "of one")
        total = sum((curve.rho for curve in curves), Fraction(0))
        return cls(rho=total, conversion=conversions.pop())

    def group(self, size: int) -> ZCDP:
        """Curve for groups of `size` people: size²·ρ (Bun and Steinke 2016, proposition 1.9)."""
        require(size >= 1, "size", size, "at least 1")
        return ZCDP(rho=size * size * self.rho, conversion=self.conversion)

    @property
    def theorem(self) -> str:
        """What proves the bound."""
        return _THEOREMS[self.conversion]

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses the bound on δ(ε), for ε ≥ 0."""
        if self.conversion == "canonne-kamath-steinke":
            return self._at_best_order().delta_at(epsilon)
        if epsilon <= self.rho:
            return Enclosure(1.0, 1.0)
        exponent = -((epsilon - self.rho) ** 2) / (4 * self.rho)
        value = enclose(lambda: to_arb(exponent).exp())
        return Enclosure(value.lower, min(value.upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the bound on the smallest ε ≥ 0 with δ(ε) ≤ delta, for delta in (0, 1)."""
        require(
            delta > 0,
            "delta",
            delta,
            "positive, since zCDP bounds no largest privacy loss",
            "The pure bound of Laplace noise or randomized response reaches delta=0.",
        )
        if self.conversion == "canonne-kamath-steinke":
            return self._at_best_order().epsilon_at(delta)
        rho = self.rho
        return enclose(lambda: to_arb(rho) + 2 * (-to_arb(rho) * to_arb(delta).log()).sqrt())

    def _at_best_order(self) -> RDP:
        return RDP(parts=((GaussianRenyi(mu_squared=2 * self.rho), 1),))
