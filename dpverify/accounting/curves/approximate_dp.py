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
from fractions import Fraction
from typing import Self

from attrs import field, frozen
from flint import arb

from dpverify.accounting.losses.base import Log, Losses, Step, step_ball
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import (
    Enclosure,
    Real,
    SquareRoot,
    enclose,
    exact,
    rational,
    squared,
    to_arb,
)
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency

__all__ = ["ApproxDP"]


def _to_epsilon(value: Real | SquareRoot | Log) -> Step:
    if isinstance(value, Log):
        return value
    number = exact("epsilon", value)
    require(isinstance(number, SquareRoot) or number >= 0, "epsilon", value, "at least 0")
    return number


def _to_delta(value: Real) -> Fraction:
    number = rational("delta", value)
    require(0 <= number < 1, "delta", value, "in [0, 1)")
    return number


@frozen(kw_only=True)
class ApproxDP(PrivacyCurve):
    """Curve of the worst mechanism that is (ε₀, δ₀)-differentially private.

    Parameters
    ----------
    epsilon : ε₀ ≥ 0, in nats, exact: a number, a square root, or the logarithm of a rational
        (`from_odds`), which a randomized response has
    delta : δ₀ in [0, 1), exact; 0 for pure differential privacy
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> dpv.ApproxDP(epsilon=1, delta=1e-6).delta_at(epsilon=1).upper
    1e-06
    """

    epsilon: Step = field(converter=_to_epsilon)
    delta: Fraction = field(default=Fraction(0), converter=_to_delta)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    @classmethod
    def from_odds(cls, odds: Real, *, delta: Real = 0) -> Self:
        """The curve of ε₀ = ln(odds), for rational odds of at least 1."""
        ratio = rational("odds", odds)
        require(ratio >= 1, "odds", odds, "at least 1")
        return cls(epsilon=Fraction(0) if ratio == 1 else Log(ratio), delta=delta)

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε); 0 or δ₀ exactly from ε₀ on."""
        if self._certainly_beyond(epsilon):
            return Enclosure.of_exact(self.delta)

        def value() -> arb:
            ratio = self._ratio()
            excess = (ratio - to_arb(epsilon).exp()) / (1 + ratio)
            return to_arb(self.delta) + (1 - to_arb(self.delta)) * excess

        # Between ε₀ and the double above it the line would go on below δ₀.
        found, least = enclose(value), Enclosure.of_exact(self.delta)
        return Enclosure(max(found.lower, least.lower), min(max(found.upper, least.upper), 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ); infinite where delta is below δ₀."""
        if delta < self.delta:
            return Enclosure(math.inf, math.inf)
        if delta == self.delta:
            return self.epsilon_bound()
        share = (delta - self.delta) / (1 - self.delta)

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
        if isinstance(self.epsilon, Log):
            return enclose(lambda: step_ball(self.epsilon))
        return Enclosure.of_exact(self.epsilon)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides, of the worst mechanism; ε₀/noise replaces ε₀."""
        eps = self.epsilon_bound().upper
        q = 1 / (1 + math.exp(min(eps / noise, 700.0)))
        delta, rest = float(self.delta), 1 - float(self.delta)
        if threshold > eps:
            return delta, 0.0
        if threshold > -eps:
            return delta + rest * (1 - q), rest * q
        return 1.0, rest

    def losses(self) -> Losses:
        """The worst mechanism's privacy loss, for composition."""
        if not isinstance(self.epsilon, Log) and squared(self.epsilon) == 0:
            rest = 1 - self.delta, 1 - self.delta
            pairs = (self.delta, Fraction(0)), rest, (Fraction(0), self.delta)
            return ((FiniteLoss(pairs=pairs), 1),)
        return ((ResponseLoss(step=self.epsilon, infinity_mass=self.delta), 1),)

    def _ratio(self) -> arb:
        if isinstance(self.epsilon, Log):
            return to_arb(self.epsilon.argument)
        return to_arb(self.epsilon).exp()

    def _certainly_beyond(self, eps: Fraction) -> bool:
        """Whether eps ≥ ε₀; where a logarithm would have to be compared with itself, by its end."""
        match self.epsilon:
            case Log():
                return eps >= Fraction(self.epsilon_bound().upper)
            case SquareRoot(radicand=radicand):
                return eps * eps >= radicand
            case number:
                return eps >= number
