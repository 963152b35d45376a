"""Trade-off functions (f-DP), Gaussian differential privacy among them.

f(α) is the least type II error of a test between two neighbours' releases that has type I error α:
convex, falling, at most 1 − α. A mechanism is f-DP if no test does better for any neighbours, in
both orders (Dong, Roth and Su 2022, arXiv:1905.02383v3, definition 2.3).

**Gaussian.** G_μ(α) = Φ(Φ⁻¹(1 − α) − μ) is that of N(0, 1) against N(μ, 1). Noise N(0, σ²) on a
query of ℓ2-sensitivity Δ is exactly G_μ with μ = Δ/σ; composition adds μ², a group of n multiplies
μ by n, and the (ε, δ) curve is that of the analytic Gaussian, `Gaussian` (theorem 2.7,
corollary 3.3, theorem 2.14 and corollary 2.13 there).

**Duality.** Rejecting on S has α = P(S) and β = 1 − Q(S), so that
δ(ε) = sup over S of Q(S) − e^ε·P(S) = sup over α of 1 − f(α) − e^ε·α. For a piecewise linear f the
supremum is at a vertex; neighbours come in both orders, which exchanges α and β. Back, δ(ε) bounds
every test: 1 − β ≤ e^ε·α + δ(ε), and in the other order 1 − α ≤ e^ε·β + δ(ε), hence

    f(α) = sup over ε ≥ 0 of max(0, 1 − δ(ε) − e^ε·α, e^(−ε)·(1 − δ(ε) − α)),

of which every ε proves a lower bound (proposition 2.12).

**Domination.** G_μ ≤ f for piecewise linear f if and only if it holds at the vertices: between two
of them the convex G_μ is below its chord, and that is below f. G_μ(α) ≤ β is
μ ≥ Φ⁻¹(1 − α) − Φ⁻¹(β). So the least μ of a finite mechanism is a maximum over vertices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise

from attrs import field, frozen
from flint import arb

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyBound
from dpverify.numbers import to_positive_rational

__all__ = ["FiniteTradeOff", "GaussianTradeOff"]

_PAPER = "Dong, Roth and Su 2022 (arXiv:1905.02383v3)"


@frozen(kw_only=True)
class GaussianTradeOff(PrivacyBound):
    """G_μ, and μ-Gaussian differential privacy.

    Parameters
    ----------
    mu_squared : μ² > 0, exact; Δ²/σ² for Gaussian noise
    """

    mu_squared: Fraction = field(converter=to_positive_rational)

    @classmethod
    def composed(cls, parts: Iterable[GaussianTradeOff]) -> GaussianTradeOff:
        """All releases together: μ² adds up."""
        return cls(mu_squared=sum((part.mu_squared for part in parts), Fraction(0)))

    def group(self, size: int) -> GaussianTradeOff:
        """For groups of `size` people: μ times their number."""
        require(size >= 1, "size", size, "at least 1")
        return GaussianTradeOff(mu_squared=size * size * self.mu_squared)

    @property
    def theorem(self) -> str:
        """What proves the curve of a composition."""
        return f"Gaussian differential privacy: {_PAPER}, corollaries 3.3 and 2.13"

    def type_two(self, alpha: Real) -> Enclosure:
        """Encloses G_μ(α), for α in [0, 1]."""
        level = _level(alpha)
        if level in (0, 1):
            return Enclosure.of_exact(1 - level)
        return enclose(lambda: _upper_tail(to_arb(self.mu_squared).sqrt() - _upper_quantile(level)))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        return Gaussian.from_mu_squared(self.mu_squared).delta_at(epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        return Gaussian.from_mu_squared(self.mu_squared).epsilon_at(delta)


@frozen(kw_only=True)
class FiniteTradeOff(PrivacyBound):
    """A piecewise linear trade-off function, by its vertices (α, f(α)) from α = 0 to (1, 0).

    `delta_at` and `epsilon_at` are those of neighbours in both orders.
    """

    vertices: tuple[tuple[Fraction, Fraction], ...]

    def __attrs_post_init__(self) -> None:
        points = self.vertices
        ends = len(points) >= 2 and points[0][0] == 0 and points[-1] == (Fraction(1), Fraction(0))
        require(ends, "vertices", "a path", "from type I error 0 to (1, 0)")
        require(0 <= points[0][1] <= 1, "vertices", points[0][1], "at most 1 at type I error 0")
        slopes = []
        for (left, high), (right, low) in pairwise(points):
            require(left < right and low <= high, "vertices", "a path", "falling to the right")
            slopes.append((low - high) / (right - left))
        require(slopes == sorted(slopes), "vertices", "a path", "convex")

    @classmethod
    def of_pair(cls, pairs: Iterable[tuple[Fraction, Fraction]]) -> FiniteTradeOff:
        """T(P, Q) of two laws by the exact (P, Q) of every outcome, each of total 1.

        By Neyman and Pearson's lemma the best tests reject outcomes in the order of falling Q/P.
        """
        outcomes = [(p, q) for p, q in pairs if p or q]
        for side in (0, 1):
            require(all(pair[side] >= 0 for pair in outcomes), "pairs", "a law", "non-negative")
            total = sum((pair[side] for pair in outcomes), Fraction(0))
            require(total == 1, "pairs", f"a law of total {total}", "of total 1")
        # Q/P falls as P/(P + Q) rises, which is finite.
        outcomes.sort(key=lambda pair: pair[0] / (pair[0] + pair[1]))
        alpha, beta = Fraction(0), Fraction(1)
        vertices = {alpha: beta}
        for p, q in outcomes:
            alpha, beta = alpha + p, beta - q
            vertices[alpha] = beta  # where P = 0, f(0) falls below 1
        return cls(vertices=tuple(vertices.items()))

    @property
    def theorem(self) -> str:
        """What proves the curve."""
        return f"trade-off function: Neyman and Pearson's lemma; {_PAPER}, proposition 2.12"

    def type_two(self, alpha: Real) -> Fraction:
        """f(α), exactly, for α in [0, 1]."""
        level = _level(alpha)
        steps = pairwise(self.vertices)
        (left, high), (right, low) = next(step for step in steps if level <= step[1][0])
        return high + (low - high) * (level - left) / (right - left)

    def inverse(self) -> FiniteTradeOff:
        """T(Q, P): the two errors exchanged."""
        # Of equal type II errors the least type I error is the last one.
        swapped = {beta: alpha for alpha, beta in reversed(self.vertices)}
        return FiniteTradeOff(vertices=tuple({**swapped, Fraction(1): Fraction(0)}.items()))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        if epsilon == 0:
            return Enclosure.of_exact(max(1 - b - a for a, b in self.vertices))

        def value() -> arb:
            factor, most = to_arb(epsilon).exp(), arb(0)
            for alpha, beta in self._both_orders():
                most = most.max(to_arb(1 - beta) - factor * to_arb(alpha))
            return most

        return enclose(value)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ); infinite where none will do."""
        ratio = Fraction(1)
        for alpha, beta in self._both_orders():
            if 1 - beta > delta:
                if alpha == 0:
                    return Enclosure(math.inf, math.inf)
                ratio = max(ratio, (1 - beta - delta) / alpha)
        return enclose(lambda: to_arb(ratio).log())

    def mu(self) -> Enclosure:
        """Encloses the least μ with G_μ ≤ f; 0 for f(α) = 1 − α, infinite where no μ will do."""
        if self.vertices[0][1] < 1 or any(b == 0 for a, b in self.vertices if a < 1):
            return Enclosure(math.inf, math.inf)
        values = [_mu_through(alpha, beta) for alpha, beta in self.vertices if 0 < alpha < 1 - beta]
        if not values:
            return Enclosure(0.0, 0.0)
        return Enclosure(max(v.lower for v in values), max(v.upper for v in values))

    def _both_orders(self) -> Iterator[tuple[Fraction, Fraction]]:
        for alpha, beta in self.vertices:
            yield alpha, beta
            yield beta, alpha


def _mu_through(alpha: Fraction, beta: Fraction) -> Enclosure:
    """Encloses the μ > 0 with G_μ(α) = β."""
    return enclose(lambda: _upper_quantile(alpha) + _upper_quantile(beta))


def _level(alpha: Real) -> Fraction:
    level = rational("alpha", alpha)
    require(0 <= level <= 1, "alpha", alpha, "in [0, 1]")
    return level


def _upper_quantile(level: Fraction) -> arb:
    """Φ⁻¹(1 − level)."""
    return arb(2).sqrt() * (2 * to_arb(level)).erfcinv()


def _upper_tail(x: arb) -> arb:
    """1 − Φ(x)."""
    return (x / arb(2).sqrt()).erfc() / 2
