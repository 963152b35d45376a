"""Privacy filters: what releases may cost in all, where each is chosen by what the others showed.

A curve of a sum is for releases whose parameters don't depend on outcomes. Where they may, a filter
decides before each release whether it still fits, by a cost that adds up and a limit that is fixed
beforehand. Each filter's theorem is proven in ``docs/budgets.md``, for neighbours x and y that stay
the same throughout. All three rest on one step: a release that is (ε, δ)-private says all that it
knows with probability δ, and is ε-private otherwise (Kairouz, Oh and Viswanath 2015,
arXiv:1311.0776v4, theorem 3.1).

 - `BasicFilter`: Σεᵢ ≤ ε and Σδᵢ ≤ δ (Rogers, Roth, Ullman and Vadhan 2016, arXiv:1605.08294).
 - `GaussianFilter`: Σμᵢ² ≤ μ², where μ-Gaussian differential privacy is (ε, δ − slack)-private, and
   Σδᵢ ≤ slack (Smith and Thakurta 2022, arXiv:2210.17520; Koskela, Tobaben and Honkela 2023,
   arXiv:2209.15596).
 - `ZCDPFilter`: Σρᵢ ≤ ρ, where ρ-zCDP is (ε, δ − slack)-private, and Σδᵢ ≤ slack (Feldman and
   Zrnic 2021, arXiv:2008.11193; Whitehouse, Ramdas, Rogers and Wu 2023, arXiv:2203.05481).

Costs are exact numbers at or above the least ones, limits exact ones at or below the largest.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import ClassVar, cast

from flint import arb

from dpverify._decimals import context
from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.accounting.losses.base import PrivacyLoss, escaping
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.notions.zcdp import ZCDP, rho_of_pure
from dpverify.accounting.solve import largest_argument
from dpverify.accounting.targets import check_delta
from dpverify.enclosure import Enclosure, enclose, exact_string, short_string, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve

__all__ = [
    "FILTERS",
    "BasicFilter",
    "Cost",
    "Filter",
    "GaussianFilter",
    "ZCDPFilter",
    "infinity_mass",
]

Cost = Mapping[str, Fraction]
"""How much of each resource."""

_DOWN = context(17, ROUND_FLOOR)
_UP, _NEAREST = context(12, ROUND_CEILING), context(12)
_LARGEST = 10**150  # target of a filter that computes in balls, whose ends are doubles
_MOST_ORDERS = 200  # of an odometer
_FAR = 400.0  # of its first order, the logarithm: any order is sound
_STATE_DELTA = "Give the delta at which it counts as one point (epsilon, delta)."


def infinity_mass(curve: PrivacyCurve) -> Fraction:
    """The δ that no ε takes away: P[L = ∞], the larger one of both orders."""
    losses = curve.losses()
    return max(escaping(losses), escaping(tuple((loss.reverse(), n) for loss, n in losses)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(ABC):
    """A limit for releases that are (ε, δ)-private together, and what each costs.

    Attributes
    ----------
    epsilon, delta : the target
    slack : the share of δ that is kept for releases which may show everything, δᵢ of an (εᵢ, δᵢ)
    """

    epsilon: Fraction
    delta: Fraction
    slack: Fraction = Fraction(0)

    name: ClassVar[str]
    resource: ClassVar[str]
    theorem: ClassVar[str]

    @abstractmethod
    def limits(self) -> Cost:
        """What may be spent of each resource."""

    @abstractmethod
    def sets(self, limits: Cost) -> bool:
        """Whether such limits, stored beside this target, may be its own; it takes no proof."""

    @abstractmethod
    def proves(self, limits: Cost) -> bool:
        """Whether what stays within these limits is (ε, δ)-private: a check of stored ones."""

    @abstractmethod
    def odometer(self, spent: Cost, limits: Cost) -> Fraction:
        """The ε that, with the target's δ, bounds what was lost so far, whenever one looks."""

    @abstractmethod
    def cost(self, curve: PrivacyCurve, delta: Fraction | None) -> Cost:
        """What a release with this curve costs.

        Parameters
        ----------
        curve : of the release, whose parameters are fixed when it is spent
        delta : at which it counts as one point where that is needed

        Raises
        ------
        ParameterError
            If it has no finite cost, or δ has to be stated.
        """

    def _point(self, curve: PrivacyCurve, delta: Fraction) -> tuple[Fraction, Fraction]:
        """ε and δ of one point, ε in a few digits: a certified ε(δ) = 1 counts as 1."""
        epsilon = curve.epsilon_at(delta).upper
        rule = "larger: at this delta no epsilon is finite"
        require(epsilon < math.inf, "delta", delta, rule, _STATE_DELTA)
        near = Fraction(_NEAREST.create_decimal_from_float(epsilon))
        proven = Fraction(curve.delta_at(near).upper) <= delta
        return (near if proven else _up(epsilon)), delta


class BasicFilter(Filter):
    """Σεᵢ ≤ ε and Σδᵢ ≤ δ; each release at a δ of its own."""

    __slots__ = ()

    name = "basic"
    resource = "epsilon"
    theorem = "Rogers, Roth, Ullman and Vadhan 2016 (arXiv:1605.08294), basic composition"

    def limits(self) -> Cost:
        return {"epsilon": self.epsilon, "delta": self.delta}

    def sets(self, limits: Cost) -> bool:
        return self.slack == 0 and limits == self.limits()

    def proves(self, limits: Cost) -> bool:
        return limits["epsilon"] <= self.epsilon and limits["delta"] <= self.delta

    def odometer(self, spent: Cost, limits: Cost) -> Fraction:
        return spent["epsilon"]

    def cost(self, curve: PrivacyCurve, delta: Fraction | None) -> Cost:
        """ε at δ; without a δ, the worst loss, at the δ that no ε takes away."""
        try:
            losses, least = curve.losses(), infinity_mass(curve)
        except ParameterError:
            losses, least = (), Fraction(0)
        worst = [(_worst(loss), count) for loss, count in losses]
        known = [count * largest for largest, count in worst if largest is not None]
        if losses and len(known) == len(losses) and delta in {None, least}:
            return {"epsilon": sum(known, Fraction(0)), "delta": least}
        rule = "given for a release whose privacy loss is unbounded or unknown"
        if delta is None:
            raise ParameterError("delta", delta, rule, _STATE_DELTA)
        epsilon, leak = self._point(curve, delta)
        return {"epsilon": epsilon, "delta": leak}


class _LossFilter(Filter):
    """A filter that knows what each privacy loss costs."""

    __slots__ = ()

    def limits(self) -> Cost:
        rule = f"below delta={exact_string(self.delta)} for the {self.name} filter"
        hint = "At delta=0 take basic composition."
        require(self.slack < self.delta, "slack", exact_string(self.slack), rule, hint)
        most = f"at most 1e150 for the {self.name} filter"
        require(self.epsilon <= _LARGEST, "epsilon", short_string(self.epsilon), most)
        check_delta(self.delta - self.slack)
        return {self.resource: self._limit(self.delta - self.slack), "delta": self.slack}

    def sets(self, limits: Cost) -> bool:
        amount = limits[self.resource]
        return limits["delta"] == self.slack < self.delta and 0 < amount <= 100 * _LARGEST

    def proves(self, limits: Cost) -> bool:
        share, limit = self.delta - limits["delta"], limits[self.resource]
        if self._delta_at(limit).upper <= Enclosure.of_exact(share).lower:
            return True
        # Next to 1 a δ has fewer digits than the limit, whose own search is a proof as well.
        return share > 0 and limit <= self._limit(share)

    def odometer(self, spent: Cost, limits: Cost) -> Fraction:
        """The least bound of those at orders 1 + λ·2^{k/2}, with λ the best one at the limit."""
        rho, most = (self._rho(cost[self.resource]) for cost in (spent, limits))
        if rho == 0:
            return Fraction(0)
        share = self.delta - limits["delta"]
        best_log = (math.log(max(-_log(share), math.ulp(0))) - _log(most)) / 2
        order = math.exp(min(max(best_log, -_FAR), _FAR))
        best = math.inf
        for k in range(_MOST_ORDERS):
            exact = Fraction(order * 2 ** (k / 2))
            if exact * rho > best:
                break

            def bound(k: int = k, order: Fraction = exact) -> arb:
                log = to_arb((k + 1) * (k + 2) / share).log()
                return to_arb((order + 1) * rho) + log / to_arb(order)

            best = min(best, enclose(bound).upper)
        return _up(best)

    def cost(self, curve: PrivacyCurve, delta: Fraction | None) -> Cost:
        """That of the losses, where these are known; else that of the point at δ."""
        try:
            losses = curve.losses()
        except ParameterError:
            losses = ()
        total, leak = Fraction(0), Fraction(0)
        for loss, count in losses:
            each = self._of_loss(loss)
            if each is None:
                break
            total, leak = total + count * each[0], leak + count * each[1]
        else:
            if losses:
                return {self.resource: total, "delta": leak}
        rule = "given for a release whose cost this filter doesn't know"
        if delta is None:
            raise ParameterError("delta", delta, rule, _STATE_DELTA)
        epsilon, leak = self._point(curve, delta)
        return {self.resource: self._of_pure(epsilon), "delta": leak}

    def _of_loss(self, loss: PrivacyLoss) -> tuple[Fraction, Fraction] | None:
        """Cost, and the probability to show everything; None where neither is known."""
        known = self._of_unbounded(loss)
        if known is not None:
            return known, Fraction(0)
        worst = _worst(loss)
        mass = max(loss.infinity_mass, loss.reverse().infinity_mass)
        return None if worst is None else (self._of_pure(worst), mass)

    @abstractmethod
    def _limit(self, delta: Fraction) -> Fraction:
        """The most that is (ε, δ)-private."""

    @abstractmethod
    def _delta_at(self, limit: Fraction) -> Enclosure:
        """δ(ε) of so much."""

    @abstractmethod
    def _rho(self, amount: Fraction) -> Fraction:
        """So much as concentrated differential privacy."""

    @abstractmethod
    def _of_unbounded(self, loss: PrivacyLoss) -> Fraction | None:
        """Cost of a loss that is unbounded; None where it isn't known."""

    @abstractmethod
    def _of_pure(self, epsilon: Fraction) -> Fraction:
        """Cost of an ε-private release."""


class GaussianFilter(_LossFilter):
    """Σμᵢ² ≤ μ²: exact for Gaussian noise."""

    __slots__ = ()

    name = "gaussian"
    resource = "mu_squared"
    theorem = "Smith and Thakurta 2022 (arXiv:2210.17520), Gaussian differential privacy"

    def _limit(self, delta: Fraction) -> Fraction:
        sigma = Decimal.from_float(sigma_gaussian(self.epsilon, delta).upper)
        return Fraction(_DOWN.divide(1, context(200).multiply(sigma, sigma)))

    def _delta_at(self, limit: Fraction) -> Enclosure:
        return Gaussian.from_mu_squared(limit).delta_at(self.epsilon)

    def _rho(self, amount: Fraction) -> Fraction:
        return amount / 2

    def _of_unbounded(self, loss: PrivacyLoss) -> Fraction | None:
        return loss.mu_squared if isinstance(loss, GaussianLoss) else None

    def _of_pure(self, epsilon: Fraction) -> Fraction:
        """The least μ² with G_μ below the trade-off function of randomized response."""
        if epsilon == 0:
            return Fraction(0)

        def half() -> arb:  # at its one vertex: `dpverify.accounting.notions.fdp`, domination
            error = 1 / (1 + to_arb(epsilon).exp())
            return arb(2).sqrt() * (2 * error).erfcinv()

        return _up(4 * Fraction(enclose(half).upper) ** 2)


class ZCDPFilter(_LossFilter):
    """Σρᵢ ≤ ρ: for many releases of little pure ε."""

    __slots__ = ()

    name = "zcdp"
    resource = "rho"
    theorem = (
        "Whitehouse, Ramdas, Rogers and Wu 2023 (arXiv:2203.05481), concentrated differential "
        "privacy; Canonne, Kamath and Steinke 2020 (arXiv:2004.00010), corollary 13"
    )

    def _limit(self, delta: Fraction) -> Fraction:
        return Fraction(largest_argument(lambda rho: self._delta_at(Fraction(rho)), delta))

    def _delta_at(self, limit: Fraction) -> Enclosure:
        return ZCDP(rho=limit).delta_at(self.epsilon)

    def _rho(self, amount: Fraction) -> Fraction:
        return amount

    def _of_unbounded(self, loss: PrivacyLoss) -> Fraction | None:
        match loss:
            case GaussianLoss(mu_squared=mu_squared):
                return mu_squared / 2
            case DiscreteGaussianLoss(sigma_squared=sigma_squared, sensitivity=size):
                # Canonne, Kamath and Steinke 2020 (arXiv:2004.00010), theorem 4.
                return size * size / (2 * sigma_squared)
        return None

    def _of_pure(self, epsilon: Fraction) -> Fraction:
        return _up(rho_of_pure(epsilon).upper) if epsilon else Fraction(0)


FILTERS: Mapping[str, type[Filter]] = {
    kind.name: kind for kind in (BasicFilter, GaussianFilter, ZCDPFilter)
}


def _worst(loss: PrivacyLoss) -> Fraction | None:
    """The largest finite loss in both orders, or a little more; None where there is none."""
    if loss.exact_max_loss is not None:
        return loss.exact_max_loss
    worst = Fraction(0)
    for side in (loss, loss.reverse()):
        if side.max_loss() is None:
            return None
        largest = enclose(cast("Callable[[], arb]", side.max_loss))
        worst = max(worst, _up(largest.upper))
    return worst


def _log(value: Fraction) -> float:
    """Near the logarithm, also of what is no double."""
    return math.log(value.numerator) - math.log(value.denominator)


def _up(value: float | Fraction) -> Fraction:
    """A decimal of a few digits that is at least so large."""
    exact = Fraction(value)
    return Fraction(_UP.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
