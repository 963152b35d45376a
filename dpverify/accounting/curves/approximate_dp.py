"""What a single proven (ε, δ) implies for every other ε.

Published theorems give one point, not a curve. The worst mechanism that satisfies it is known:
Kairouz, Oh and Viswanath 2015 (arXiv:1311.0776v4), theorem 3.1, show that every (ε₀, δ₀)-private
mechanism is a post-processing of the one that reveals its input with probability δ₀ and answers by
randomized response with odds e^ε₀ otherwise. Its curve is

    δ(ε) = δ₀ + (1 − δ₀)·(e^ε₀ − e^ε)⁺/(1 + e^ε₀),

from the four outcomes' probabilities (δ₀, (1−δ₀)e^ε₀/(1+e^ε₀), (1−δ₀)/(1+e^ε₀), 0) and the same in
reverse order. So this is the least function that the point alone proves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from dpverify.accounting.losses.base import Log, Losses
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.enclosure import Enclosure, Exact, Real, SquareRoot, enclose, exact, rational, to_arb
from dpverify.errors import ParameterError, require

__all__ = ["PointCurve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCurve:
    """Curve of the worst mechanism that is (ε₀, δ₀)-differentially private.

    Parameters
    ----------
    bound : ε₀ ≥ 0, in nats, exact; or, with `is_ratio`, its exponential e^ε₀ ≥ 1 (a randomized
        response has a rational ratio and an irrational ε₀)
    leak : δ₀ in [0, 1), exact; 0 for pure differential privacy
    """

    bound: Exact
    leak: Fraction = Fraction(0)
    is_ratio: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", exact("bound", self.bound))
        object.__setattr__(self, "leak", rational("leak", self.leak))
        value = self.bound
        least = 1 if self.is_ratio else 0
        positive = value.radicand >= least if isinstance(value, SquareRoot) else value >= least
        require(positive, "bound", value, f"at least {least}")
        require(0 <= self.leak < 1, "leak", self.leak, "in [0, 1)")

    def delta_at(self, epsilon: Real) -> Enclosure:
        """Encloses δ(ε); 0 or δ₀ exactly from ε₀ on."""
        eps = rational("epsilon", epsilon)
        require(eps >= 0, "epsilon", epsilon, "at least 0")
        if self._certainly_beyond(eps):
            return Enclosure.of_exact(self.leak)

        def value() -> arb:
            ratio = self._ratio()
            excess = (ratio - to_arb(eps).exp()) / (1 + ratio)
            return to_arb(self.leak) + (1 - to_arb(self.leak)) * excess

        # Between ε₀ and the double above it the line would go on below δ₀.
        found, least = enclose(value), Enclosure.of_exact(self.leak)
        return Enclosure(max(found.lower, least.lower), max(found.upper, least.upper))

    def epsilon_at(self, delta: Real) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta; infinite where delta is below δ₀."""
        target = rational("delta", delta)
        require(0 <= target < 1, "delta", delta, "in [0, 1)")
        if target < self.leak:
            return Enclosure(math.inf, math.inf)
        if target == self.leak:
            return self.epsilon_bound()
        share = (target - self.leak) / (1 - self.leak)

        def argument() -> arb:  # δ(ε) = delta where e^ε is this
            ratio = self._ratio()
            return ratio - to_arb(share) * (1 + ratio)

        ratio = enclose(argument, width=1e-12)
        if ratio.upper <= 1:
            return Enclosure(0.0, 0.0)
        if ratio.lower <= 1:
            return Enclosure(0.0, math.nextafter(ratio.upper - 1, math.inf))
        return enclose(lambda: argument().log())

    def epsilon_bound(self) -> Enclosure:
        """Encloses ε₀."""
        if self.is_ratio and self.bound == 1:
            return Enclosure(0.0, 0.0)
        if not self.is_ratio:
            return Enclosure.of_exact(self.bound)
        return enclose(lambda: to_arb(self.bound).log())

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides, of the worst mechanism; ε₀/noise replaces ε₀."""
        eps = self.epsilon_bound().upper
        p = 1 / (1 + math.exp(-min(eps / noise, 700.0)))
        leak, rest = float(self.leak), 1 - float(self.leak)
        if threshold > eps:
            return leak, 0.0
        if threshold > -eps:
            return leak + rest * p, rest * (1 - p)
        return 1.0, rest

    def losses(self) -> Losses:
        """The worst mechanism's privacy loss, for composition.

        Raises
        ------
        ParameterError
            If e^ε₀ is given, and irrational.
        """
        value = self.bound
        if self.is_ratio and isinstance(value, SquareRoot):
            raise ParameterError("bound", value, "rational where it is a ratio")
        least = Fraction(self.is_ratio)
        if value in (least, SquareRoot(least)):
            rest = 1 - self.leak, 1 - self.leak
            pairs = (self.leak, Fraction(0)), rest, (Fraction(0), self.leak)
            return ((FiniteLoss(pairs=pairs), 1),)
        step = Log(value) if self.is_ratio and isinstance(value, Fraction) else value
        return ((ResponseLoss(step=step, leak=self.leak), 1),)

    def _ratio(self) -> arb:
        return to_arb(self.bound) if self.is_ratio else to_arb(self.bound).exp()

    def _certainly_beyond(self, eps: Fraction) -> bool:
        """Whether eps ≥ ε₀; where a logarithm would have to be compared with itself, by its end."""
        if self.is_ratio:
            return eps >= Fraction(self.epsilon_bound().upper)
        if isinstance(self.bound, SquareRoot):
            return eps * eps >= self.bound.radicand
        return eps >= self.bound
