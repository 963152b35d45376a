"""The published composition theorems for (ε, δ) points, each a bound with its theorem's name.

T releases are (εᵢ, δᵢ)-private, chosen adaptively. Every bound encloses the least δ(ε) and ε(δ)
that its theorem proves; upper ends may be promised.

**One reduction.** Each release is a post-processing of the worst mechanism of its point (see
`approximate_dp`): it reveals its input with probability δᵢ and answers by randomized response with
odds e^εᵢ otherwise (Kairouz, Oh and Viswanath 2015, theorem 3.1), also in adaptive composition. So
with probability Π(1 − δᵢ) nothing is revealed, and then the loss is Λ = Σ ±εᵢ with independent
signs, plus with probability e^εᵢ/(1 + e^εᵢ). If δ*(ε) bounds E[(1 − e^(ε−Λ))⁺], the total is

    δ(ε) = 1 − Π(1 − δᵢ)·(1 − δ*(ε)).

- *Basic*: Λ ≤ Σ εᵢ, and 1 − Π(1 − δᵢ) ≤ Σ δᵢ.
- *Advanced*: a signed εᵢ has mean εᵢ·tanh(εᵢ/2) ≤ εᵢ(e^εᵢ − 1) and range 2εᵢ, so Hoeffding gives
  P[Λ > mean + x] ≤ exp(−x²/2Σεᵢ²): with either mean, δ*(ε) ≤ exp(−(ε − mean)²/2Σεᵢ²) beyond it.
- *Optimal*: δ* is computed, which no bound from the points alone can better. An ε of multiplicity m
  contributes (m − 2i)·ε with the binomial probability of i minus signs, so Π(mⱼ + 1) outcomes
  suffice. Turning all signs exchanges P with Q = P·e^(−Λ). For ε(δ): every set S of outcomes has
  δ*(ε) ≥ P(S) − e^ε·Q(S), hence the lower bound ln((P(S) − δ)/Q(S)), which is the solution itself
  if S is Λ > ε(δ). S is proposed in doubles; an upper bound is a value with δ*(value) ≤ δ proven.
- *Approximate optimal*: δ* rises in every εᵢ, since a less biased randomized response is a
  post-processing. So rounding all εᵢ up to multiples of a step gives an upper and rounding down a
  lower bound, and on the step's lattice the law of Λ is `LatticeLaw`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import scipy
from attrs import field, frozen
from flint import arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.composition._lattice_law import (
    LATTICE_PRECISION,
    Doubles,
    LatticeLaw,
)
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.losses.base import Log, step_ball
from dpverify.accounting.solve import certified_solution
from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyBound
from dpverify.numbers import to_count

__all__ = [
    "MAX_OUTCOMES",
    "AdvancedBound",
    "ApproximateOptimalBound",
    "BasicBound",
    "Bound",
    "OptimalBound",
    "Points",
    "SimplifiedOptimalBound",
    "applicable_bounds",
]

Points = tuple[ApproxDP, ...]
"""Releases: ε₀ (or e^ε₀) and δ₀ of each, rational."""

MAX_OUTCOMES = 200_000
"""Outcomes that `OptimalBound` enumerates at most."""

_KAIROUZ = "Kairouz, Oh and Viswanath 2015 (arXiv:1311.0776v4)"
_MURTAGH = "Murtagh and Vadhan 2016 (arXiv:1507.03113)"


def _to_points(value: Points) -> Points:
    require(len(value) > 0, "points", "none", "at least one release")
    for point in value:
        rational_odds = isinstance(point.epsilon, Fraction | Log)
        require(rational_odds, "epsilon", point.epsilon, "rational, or the logarithm of a rational")
    return tuple(value)


@frozen(kw_only=True)
class Bound(PrivacyBound):
    """A bound on the privacy curve, and the theorem that proves it.

    Parameters
    ----------
    points : at least one release
    """

    points: Points = field(converter=_to_points)

    @property
    @abstractmethod
    def theorem(self) -> str:
        """Name of the theorem."""


def applicable_bounds(points: Points) -> tuple[Bound, ...]:
    """Every theorem of this module whose conditions hold, the weakest first.

    Parameters
    ----------
    points : at least one release, of rational ε₀ or e^ε₀
    """
    bounds: list[Bound] = [BasicBound(points=points)]
    if any(_is_lossy(point) for point in points):
        if len(set(points)) == 1:
            bounds.append(AdvancedBound(points=points))
        bounds.append(SimplifiedOptimalBound(points=points))
    if _outcomes(points) <= MAX_OUTCOMES:
        bounds.append(OptimalBound(points=points))
    else:
        bounds.append(ApproximateOptimalBound(points=points))
    return tuple(bounds)


@frozen(kw_only=True)
class BasicBound(Bound):
    """The ε add up and the δ add up (infinite or 1 where they say nothing).

    What (Σε, Σδ) implies for other ε is `ApproxDP`'s.
    """

    @property
    def theorem(self) -> str:
        """Name of the theorem."""
        return "basic composition: Dwork and Roth 2014, theorem 3.16"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses the bound on δ(ε)."""
        total = self._total()
        return Enclosure(1.0, 1.0) if total is None else total.delta_at(epsilon)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the bound on ε(δ)."""
        total = self._total()
        return Enclosure(math.inf, math.inf) if total is None else total.epsilon_at(delta)

    def _total(self) -> ApproxDP | None:
        leak = _sum_of_leaks(self.points)
        if leak >= 1:
            return None
        losses = [point.epsilon for point in self.points if _is_lossy(point)]
        odds = [loss.argument for loss in losses if isinstance(loss, Log)]
        if len(odds) == len(losses):
            return ApproxDP.from_odds(math.prod(odds, start=Fraction(1)), delta=leak)
        # A logarithm added to nats is rounded up, which only weakens the claim.
        ends = (_ends(point)[1] for point in self.points)
        return ApproxDP(epsilon=sum(ends, Fraction(0)), delta=leak)


@frozen(kw_only=True)
class AdvancedBound(Bound):
    """T equal points: ε√(2T ln(1/δ′)) + Tε(e^ε − 1) at Tδ + δ′, for every δ′ > 0."""

    statements: ClassVar[tuple[str, ...]] = ("mironov2017.section-2.advanced",)

    def __attrs_post_init__(self) -> None:
        distinct = len(set(self.points))
        require(distinct == 1, "points", f"of {distinct} kinds", "equal for this theorem")
        _require_loss(self.points)

    @property
    def theorem(self) -> str:
        """Name of the theorem."""
        return "advanced composition: Dwork, Rothblum and Vadhan 2010, theorem III.3"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses the bound on δ(ε), at most 1."""
        leak = _sum_of_leaks(self.points)
        return _at_most_one(
            enclose(lambda: to_arb(leak) + _tail(epsilon, self._mean(), self.points))
        )

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the bound on ε(δ); infinite where δ ≤ Tδ₀."""
        rest = delta - _sum_of_leaks(self.points)
        if rest <= 0:
            return Enclosure(math.inf, math.inf)
        return enclose(lambda: self._mean() + _deviation(rest, self.points))

    def _mean(self) -> arb:
        eps = _loss(self.points[0])
        return len(self.points) * eps * eps.expm1()


@frozen(kw_only=True)
class SimplifiedOptimalBound(Bound):
    """Any points: Σεᵢ·tanh(εᵢ/2) + √(2Σεᵢ²·ln(1/δ′)) at 1 − (1 − δ′)·Π(1 − δᵢ), for δ′ > 0."""

    def __attrs_post_init__(self) -> None:
        _require_loss(self.points)

    @property
    def theorem(self) -> str:
        """Name of the theorem."""
        return f"advanced composition of unequal points: {_KAIROUZ}, theorem 3.5, third expression"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses the bound on δ(ε)."""
        return _with_leaks(self.points, lambda: _tail(epsilon, self._mean(), self.points))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the bound on ε(δ); infinite where δ ≤ 1 − Π(1 − δᵢ)."""
        rest = _without_leaks(self.points, delta)
        if rest <= 0:
            return Enclosure(math.inf, math.inf)
        return enclose(lambda: self._mean() + _deviation(rest, self.points))

    def _mean(self) -> arb:
        terms = (
            count * _loss(point) * (_loss(point) / 2).tanh()
            for point, count in _factors(self.points)
        )
        return sum(terms, arb(0))


@frozen(kw_only=True)
class OptimalBound(Bound):
    """The exact curve of the worst mechanisms, by enumeration of outcomes.

    Raises
    ------
    ParameterError
        If the distinct points have more than `MAX_OUTCOMES` outcomes together.
    """

    def __attrs_post_init__(self) -> None:
        outcomes = _outcomes(self.points)
        require(
            outcomes <= MAX_OUTCOMES,
            "points",
            f"of {outcomes} outcomes",
            f"of at most {MAX_OUTCOMES}",
            "ApproximateOptimalBound takes any number of distinct points.",
        )

    @property
    def theorem(self) -> str:
        """Name of the theorem: the homogeneous one where all points are equal."""
        if len(set(self.points)) == 1:
            return f"optimal homogeneous composition: {_KAIROUZ}, theorem 3.3"
        return f"optimal heterogeneous composition: {_MURTAGH}, theorem 1.5"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13 while it is a normal double."""
        return _with_leaks(self.points, lambda: self._excess(epsilon))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ); Σεᵢ at δ = 1 − Π(1 − δᵢ), and infinite below."""
        rest = _without_leaks(self.points, delta)
        if rest < 0:
            return Enclosure(math.inf, math.inf)
        if enclose(lambda: self._excess(Fraction(0))).upper <= rest:
            return Enclosure(0.0, 0.0)
        if rest == 0:
            return enclose(
                lambda: sum((n * _loss(point) for point, n in _factors(self.points)), arb(0))
            )
        chosen = self._proposal(rest)

        def solution() -> arb:
            own = other = arb(0)
            for p, q in self._probabilities(chosen):
                own, other = own + p, other + q
            return ((own - to_arb(rest)) / other).log()

        def accepts(eps: Fraction) -> bool:
            with ctx.workprec(256):
                return bool(self._excess(eps) <= to_arb(rest))

        return certified_solution(enclose(solution), accepts)

    def _excess(self, eps: Fraction) -> arb:
        """δ*(ε) at the current precision."""
        losses, _ = _outcomes_in_doubles(self.points)
        # Beyond all losses the terms are 0, which balls can't decide at the largest loss itself.
        ratios = any(isinstance(point.epsilon, Log) for point in self.points)
        largest = (
            Fraction(losses[0]) if ratios else sum((_ends(p)[1] for p in self.points), Fraction(0))
        )
        if largest == 0 or (not ratios and eps >= largest):
            return arb(0)
        # Doubles settle all outcomes but those within their round-off of ε.
        near = float(min(eps, 2 * Fraction(losses[0]) + 1))
        chosen = np.flatnonzero(losses >= near - 1e-9 * (losses[0] + near))
        factor, total = to_arb(eps).exp(), arb(0)
        for p, q in self._probabilities(chosen):
            total += (p - factor * q).max(arb(0))
        return total

    def _probabilities(self, chosen: NDArray[np.intp]) -> Iterator[tuple[arb, arb]]:
        """P and Q of the chosen outcomes."""
        laws = [_signs(_loss(point), count) for point, count in _factors(self.points)]
        shape = [len(law) for law in laws]
        for index in zip(*(axis.tolist() for axis in np.unravel_index(chosen, shape)), strict=True):
            own = other = arb(1)
            for law, minus in zip(laws, index, strict=True):
                own, other = own * law[minus], other * law[-1 - minus]
            yield own, other

    def _proposal(self, rest: Fraction) -> NDArray[np.intp]:
        """Outcomes with Λ > ε where δ*(ε) is about `rest`: the line that is highest there."""
        losses, logs = _outcomes_in_doubles(self.points)
        order = np.argsort(-losses, kind="stable")
        own = np.logaddexp.accumulate(logs[order])
        other = np.logaddexp.accumulate((logs - losses)[order])
        log_rest = math.log(rest.numerator) - math.log(rest.denominator)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            lines = own + np.log(-np.expm1(log_rest - own)) - other
        lines[own <= log_rest] = -math.inf
        return order[: int(np.argmax(lines)) + 1]


@frozen(kw_only=True)
class ApproximateOptimalBound(Bound):
    """The optimal curve between the curves of all ε rounded down and up to a common step.

    The enclosures hold the optimal δ(ε) and ε(δ). Where all ε are multiples of a step that needs at
    most `cells` steps for their sum, only round-off is left (about T·1e-15, times the cancellation
    in P − e^ε·Q); else the step is the sum over `cells`, and ε(δ) is known to within about T steps.

    Parameters
    ----------
    points : at least one release
    cells : steps that the sum of all ε may have; time and memory grow with it
    """

    cells: int = field(default=1 << 17, converter=to_count)

    def __attrs_post_init__(self) -> None:
        _require_loss(self.points)

    @property
    def theorem(self) -> str:
        """Name of the theorem."""
        return f"approximate optimal composition: {_MURTAGH}, theorem 1.7"

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses the optimal δ(ε)."""
        down, up = self._laws()
        rest = _unrevealed(self.points)

        def value(law: LatticeLaw) -> Enclosure:
            leak = 1 - rest
            return Enclosure.of_ball(to_arb(leak) + to_arb(rest) * law.excess(epsilon))

        with ctx.workprec(LATTICE_PRECISION):
            return Enclosure(max(value(down).lower, 0.0), min(value(up).upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the optimal ε(δ); infinite where δ < 1 − Π(1 − δᵢ).

        Raises
        ------
        NumericalError
            If the probabilities that decide it are too small for doubles (e^(−ε)·δ below 1e-290).
        """
        rest = _without_leaks(self.points, delta)
        if rest < 0:
            return Enclosure(math.inf, math.inf)
        down, up = self._laws()
        return Enclosure(down.epsilon_at(rest).lower, up.epsilon_at(rest).upper)

    def _laws(self) -> tuple[LatticeLaw, LatticeLaw]:
        """Laws of the losses rounded down and rounded up."""
        ends = [(_ends(point), count) for point, count in _factors(self.points)]
        total = sum((count * high for (_, high), count in ends), Fraction(0))
        step = _common_step([high for (_, high), _ in ends])
        if total > self.cells * step or any(low < high for (low, high), _ in ends):
            step = total / self.cells
        down = tuple((math.floor(low / step), count) for (low, _), count in ends)
        up = tuple((math.ceil(high / step), count) for (_, high), count in ends)
        return LatticeLaw(step=step, moves=down), LatticeLaw(step=step, moves=up)


def _common_step(values: list[Fraction]) -> Fraction:
    """Largest number of which all values are multiples."""
    denominator = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * denominator) for value in values)), denominator)


def _ends(point: ApproxDP) -> tuple[Fraction, Fraction]:
    """ε₀ from below and from above."""
    if isinstance(point.epsilon, Fraction):
        return point.epsilon, point.epsilon
    known = point.epsilon_bound()
    return Fraction(known.lower), Fraction(known.upper)


def _require_loss(points: Points) -> None:
    lossy = any(_is_lossy(point) for point in points)
    require(lossy, "points", "all of epsilon 0", "of some epsilon", "Basic composition is exact.")


def _is_lossy(point: ApproxDP) -> bool:
    return point.epsilon != 0


def _loss(point: ApproxDP) -> arb:
    """ε₀ at the current precision."""
    return step_ball(point.epsilon)


def _factors(points: Points) -> list[tuple[ApproxDP, int]]:
    """Points with some loss, distinct but for their δ₀, with multiplicities."""
    counts = Counter(ApproxDP(epsilon=point.epsilon) for point in points if _is_lossy(point))
    return list(counts.items())


def _outcomes(points: Points) -> int:
    return math.prod(count + 1 for _, count in _factors(points))


@lru_cache(maxsize=8)
def _outcomes_in_doubles(points: Points) -> tuple[Doubles, Doubles]:
    """Λ and ln P of every outcome, by the numbers of minus signs in row-major order."""
    losses, logs = np.zeros(1), np.zeros(1)
    for point, count in _factors(points):
        eps, minus = point.epsilon_bound().upper, np.arange(count + 1)
        gammaln, log_expit = scipy.special.gammaln, scipy.special.log_expit
        binomial = gammaln(count + 1) - gammaln(minus + 1) - gammaln(count - minus + 1)
        log = binomial + (count - minus) * log_expit(eps) + minus * log_expit(-eps)
        losses = np.add.outer(losses, (count - 2 * minus) * eps).ravel()
        logs = np.add.outer(logs, log).ravel()
    return losses, logs


def _signs(eps: arb, count: int) -> list[arb]:
    """Probability of each number of minus signs among `count`."""
    odds = (-eps).exp()
    law = [1 / (1 + odds) ** count]
    for minus in range(count):
        law.append(law[-1] * odds * (count - minus) / (minus + 1))
    return law


def _tail(eps: Fraction, mean: arb, points: Points) -> arb:
    """exp(−(ε − mean)²/2Σεᵢ²) beyond the mean, else 1."""
    beyond = (to_arb(eps) - mean).max(arb(0))
    return (-beyond * beyond / (2 * _sum_of_squares(points))).exp()


def _deviation(rest: Fraction, points: Points) -> arb:
    """√(2Σεᵢ²·ln(1/rest)): what `_tail` of mean + x equals rest at."""
    return (-2 * _sum_of_squares(points) * to_arb(rest).log()).sqrt()


def _sum_of_squares(points: Points) -> arb:
    return sum((count * _loss(point) ** 2 for point, count in _factors(points)), arb(0))


def _sum_of_leaks(points: Points) -> Fraction:
    return sum((point.delta for point in points), Fraction(0))


@lru_cache(maxsize=8)
def _unrevealed(points: Points) -> Fraction:
    """Π(1 − δᵢ)."""
    leaks = Counter(point.delta for point in points)
    return math.prod(((1 - leak) ** count for leak, count in leaks.items()), start=Fraction(1))


def _with_leaks(points: Points, excess: Callable[[], arb]) -> Enclosure:
    """Encloses 1 − Π(1 − δᵢ)·(1 − δ*)."""
    rest = _unrevealed(points)
    return _at_most_one(enclose(lambda: to_arb(1 - rest) + to_arb(rest) * excess()))


def _without_leaks(points: Points, delta: Fraction) -> Fraction:
    """δ* of the total δ; negative below 1 − Π(1 − δᵢ)."""
    return 1 - (1 - delta) / _unrevealed(points)


def _at_most_one(value: Enclosure) -> Enclosure:
    return Enclosure(min(value.lower, 1.0), min(value.upper, 1.0))
