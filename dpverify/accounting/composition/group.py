"""Group privacy: neighbours that are several changes apart.

Let x₀, x₁, …, x_k be neighbours one by one. From P₀(S) ≤ e^{ε₁}P₁(S) + δ(ε₁) and so on,

    P₀(S) − e^ε P_k(S) ≤ Σᵢ e^{ε₁ + … + εᵢ₋₁}·δ(εᵢ)    for every ε₁ + … + ε_k = ε,

so every way to part ε proves an upper bound of the group's δ(ε); the even one is the classical
δ·(e^ε − 1)/(e^{ε/k} − 1). Parts may be negative: since δ holds in both orders of a pair,
δ(−t) = 1 − e^{−t} + e^{−t}δ(t) for t ≥ 0, by the complement of S in the other order. Minimized over
all parts and made convex in e^ε, this is the iterated trade-off function 1 − (1 − f)∘…∘(1 − f) of
Dong, Roth and Su 2022 (arXiv:1905.02383v3, theorem 2.14), the best that the curve alone proves:
1 − f is the infimum of the lines of slope e^ε and height δ(ε), and to iterate it adds up their ε.

**Exact ones.** Let the logarithm of the noise's density be concave, on the line or, as the discrete
Gaussian's, on the whole numbers. Then for every shift a > 0 the best tests of the noise against the
noise moved by a are half lines {y ≥ t}, with a coin at an atom. So the best test of the first step
is one of the second, and of both together: 1 − f of the shift 2a is that of a iterated, and a group
of k is exactly the noise against k shifts. That is so for Gaussian noise, for Laplace noise on one
coordinate, and for the discrete Gaussian. For randomized response k changes differ in at most k
times as many answers, of which each is independent.

**The parts** that `GroupBound` tries are those in equal steps, εᵢ = c + i·d, cut off where δ no
longer falls: at the largest loss, but for infinite ones. For Gaussian noise the best ones are of
this form, with d = μ². Where losses may be infinite, less than ε may be the best to part: a δ that
stays is multiplied by e^ε₁ and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache, partial

import scipy
from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.solve import beside, brentq
from dpverify.accounting.targets import LEAST_DELTA, MOST_DELTA
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError, require
from dpverify.guarantee import PrivacyBound, PrivacyCurve, group_adjacency
from dpverify.numbers import to_count

__all__ = ["GroupBound"]

_PRECISION = 128
_MOST = 1000
_ACCURACY = 1e-5
_TINY = 1e-320
_FARTHEST = 2**100
_NEXT = Fraction(1, 2**30)
_DOUBLINGS = 60


def _to_curve(value: PrivacyCurve) -> PrivacyCurve:
    require(isinstance(value, PrivacyCurve), "one", value, "a privacy curve")
    return value


@frozen(kw_only=True)
class GroupBound(PrivacyBound):
    """What a curve for one change proves for groups of up to `size` changes.

    The upper ends are bounds by the best chain that is found; the lower ends are those of one
    change, which is a group as well.

    Parameters
    ----------
    one : the curve of one change
    size : how many changes, from 1 to 1000
    """

    one: PrivacyCurve = field(converter=_to_curve)
    size: int = field(converter=to_count)

    def __attrs_post_init__(self) -> None:
        require(self.size <= _MOST, "size", self.size, f"at most {_MOST}")

    @property
    def adjacency(self) -> Adjacency | None:
        """The groups that it protects, where it was said of one change."""
        return group_adjacency(self.one.adjacency, self.size)

    def __str__(self) -> str:
        return f"GroupBound(one={self.one}, size={self.size})"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        one = self.one.delta_at(epsilon)
        if self.size == 1:
            return one
        if epsilon > _FARTHEST:  # δ falls
            return Enclosure(one.lower, self._delta(Fraction(_FARTHEST)).upper)
        mass, most = _floor(self.one)
        if most < math.inf:  # δ falls, so less than ε may be parted
            epsilon = min(epsilon, self.size * Fraction(most))
        upper = min(self._bound(epsilon, self._best_step(epsilon)), self._bound(epsilon, 0.0))
        if mass and most < math.inf:
            total, step = epsilon, 0.0
            for _ in range(2):  # the best step changes little with ε
                total = Fraction(self._least_at(partial(_chain, step=step), float(epsilon)))
                step = self._best_step(total)
            upper = min(upper, self._bound(total, step))
        return Enclosure(one.lower, max(upper, one.upper))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        one = self.one.epsilon_at(delta)
        if self.size == 1 or one.lower == math.inf or (delta == 0 and one.upper == math.inf):
            return one
        if delta == 0:  # the largest loss of one change, so many times
            return Enclosure(one.lower, Enclosure.of_exact(self.size * Fraction(one.upper)).upper)
        goal = Enclosure.of_exact(delta).lower
        step = high = 0.0
        for _ in range(2):  # the best step changes little with ε
            high = self._root(goal, step)
            if high == math.inf:
                return Enclosure(one.lower, math.inf)
            step = self._best_step(Fraction(high))
        for near in beside(self._root(goal, step), 1):
            if self._bound(Fraction(near), step) <= goal:
                return Enclosure(one.lower, max(near, one.upper))
        raise NumericalError(f"no certified epsilon of the group near {high!r}")

    def _root(self, goal: float, step: float) -> float:
        """Where the bound of chains with this step is about the goal; infinite if it never is."""

        def excess(epsilon: float) -> float:
            bound = self._bound(Fraction(epsilon), step)
            return math.log(max(bound, _TINY)) - math.log(max(goal, _TINY / 2))

        if excess(0.0) <= 0:
            return 0.0
        share = max(Fraction(goal) / self.size, LEAST_DELTA)
        low, high = 0.0, max(self.size * self.one.epsilon_at(share).upper, 1e-9)
        for _ in range(_DOUBLINGS):
            if not high < math.inf:
                break
            if excess(high) <= 0:
                return brentq(excess, low, high, xtol=1e-300, rtol=2**-48)
            low, high = high, 2 * high
        return math.inf

    def _best_step(self, epsilon: Fraction) -> float:
        scale = 4 * (self.one.epsilon_at(Fraction(1, 100)).upper + 1e-3)
        return self._least_at(lambda step: (epsilon, step), scale) if scale < math.inf else 0.0

    def _least_at(self, chain: Callable[[float], tuple[Fraction, float]], most: float) -> float:
        """Where from 0 to `most` the bound of such a chain is about the least."""
        found = scipy.optimize.minimize_scalar(
            lambda x: math.log(max(self._bound(*chain(x)), _TINY)),
            bounds=(0.0, most),
            method="bounded",
            options={"xatol": _ACCURACY * most},
        )
        return float(found.x)

    def _bound(self, epsilon: Fraction, step: float) -> float:
        """Proven by one chain, whatever its step."""
        with ctx.workprec(_PRECISION):
            total, reached = arb(0), arb(0)
            for part in self._parts(epsilon, step):
                own = to_arb(Fraction(self.one.delta_at(abs(part)).upper))
                factor = to_arb(part).exp()
                total += reached.exp() * (own if part >= 0 else 1 - factor + factor * own)
                reached += to_arb(part)
            return min(Enclosure.of_ball(total).upper, 1.0)

    def _parts(self, epsilon: Fraction, step: float) -> list[Fraction]:
        """Rising parts of ε in equal steps, cut off at the largest loss; their sum is exact."""
        _, most = _floor(self.one)
        places = [step * (number - (self.size - 1) / 2) for number in range(self.size)]
        middle = float(epsilon) / self.size
        if most < math.inf:
            middle = _centred(places, float(epsilon), most)
        cut = [Fraction(min(max(middle + place, -most), most)) for place in places]
        rest = epsilon - sum(cut, Fraction(0))
        free = [n for n, part in enumerate(cut) if abs(part) < most] or [self.size - 1]
        cut[free[len(free) // 2]] += rest
        return cut


def _chain(total: float, step: float) -> tuple[Fraction, float]:
    return Fraction(total), step


@lru_cache(maxsize=64)
def _floor(one: PrivacyCurve) -> tuple[Fraction, float]:
    """The δ that no ε takes away, 0 below all targets, and where δ has fallen to it or next to it.

    That is the largest loss but for infinite ones. Infinite where no such ε is found.
    """
    least = Fraction(one.delta_at(_FARTHEST).upper)
    mass = least if LEAST_DELTA <= least <= MOST_DELTA else Fraction(0)
    for near in (mass * (1 + _NEXT), LEAST_DELTA):
        with suppress(ValueError, NumericalError):  # ValueError: its loss is unbounded
            most = one.epsilon_at(near).upper
            if most < math.inf:
                return mass, most
    return mass, math.inf


def _centred(places: Sequence[float], epsilon: float, most: float) -> float:
    """The middle at which the parts, cut off, have the sum ε, or come nearest to it."""
    low, high = -most - max(places), most + max(places)
    for _ in range(60):
        middle = (low + high) / 2
        total = sum(min(max(middle + place, -most), most) for place in places)
        low, high = (middle, high) if total < epsilon else (low, middle)
    return high
