"""Trade-off curves: a simultaneous confidence band on the whole ROC of one score.

**The band of one side.** Let X₍₁₎ ≤ … ≤ X₍ₙ₎ be the scores drawn on one side, X = F⁻¹(U) with U
uniform. For ranks r of a fixed set that is symmetric (with r, n + 1 − r is in it) and numbers aᵣ,

    E: aᵣ ≤ U₍ᵣ₎ ≤ 1 − a₍ₙ₊₁₋ᵣ₎ for all r    implies    P[X ≤ X₍ᵣ₎] ≥ aᵣ and P[X ≥ X₍ᵣ₎] ≥ a₍ₙ₊₁₋ᵣ₎,

for any law, with ties or without, since P[X ≤ X₍ᵣ₎] ≥ U₍ᵣ₎ ≥ P[X < X₍ᵣ₎]. Both tails of every
half-line follow by monotony, {X ≥ t} from the smallest such X₍ᵣ₎ ≥ t and the largest below t.
The aᵣ are the quantiles of U₍ᵣ₎ at one level η for all r (equal local levels: Berk and Jones 1979),
which is narrow in the tails, where ε is decided and the band of Dvoretzky, Kiefer and Wolfowitz has
its full width.

**Its level is computed.** With N(t) = #{U ≤ t}, E says N(aᵣ) ≤ r − 1 and N(1 − a₍ₙ₊₁₋ᵣ₎) ≥ r. A
Poisson process of rate n given N(1) = n has the law of N, and its increments are independent: P[E]
comes from one convolution of nonnegative numbers a constraint. States beyond 8 standard deviations
are left out, which makes P[E] smaller. Products and sums of nonnegative terms are right to about
1e-10 relatively, from the logarithms of the Poisson weights; 1e-7 is charged. η is the largest
tried with P[E] ≥ √(1 − α), so that both sides hold with probability at least 1 − α, the draws of
the two sides being independent.

**What follows** holds for all thresholds, both orders of the pair and all ε at once: ε at the
claimed δ, δ at every ε, and a refutation of the claimed curve at any of its points. Beside it
stands the Gaussian model, which never decides a verdict (`gaussian_model`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.attacks.base import Attack, Target, counted
from dpverify.auditing.attacks.black_box import chosen
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import BandEvidence, Finding, undrawn
from dpverify.auditing.formatting import at_least, exactly
from dpverify.auditing.outputs.arrays import require_numbers
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.gaussian_model import gaussian_fit
from dpverify.auditing.statistics.power import DETECTION, few_hits, many_hits
from dpverify.enclosure import Enclosure
from dpverify.errors import DrawError, require
from dpverify.guarantee import PrivacyBound, PrivacyCurve, claimed_epsilon
from dpverify.privacy import Pair, WhiteBox

__all__ = ["Band", "TradeOffAttack", "band", "coverage"]

Array = NDArray[np.float64]
_Points = tuple[tuple[float, float], ...]
_Limits = tuple[tuple[int, ...], tuple[float, ...]]
"""Ranks r and their aᵣ."""

_RANKS = 300
_REACH = 8.0  # standard deviations of the states that are kept
_MARGIN = 1e-7  # relative: what round-off may have added to a coverage
_TRIALS = 5  # of η
_POINTS = 32  # of the claimed curve
_SAFE = 1e-12  # relative: taken off what a logarithm or an exponential gave


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A confidence band on the ROC.

    Attributes
    ----------
    blocks : for each event considered p₋ and q₊: with probability 1 − α, at once for all, its
        probability on its own side is at least p₋ and on the other at most q₊. The events are
        {score ≥ t}, whose own side is the first in the first block and the second in the second,
        then {score ≤ t} likewise
    ranks, levels : r and aᵣ
    draws : on the own side, and so are ranks and levels
    """

    blocks: tuple[_Points, _Points, _Points, _Points]
    ranks: tuple[int, ...]
    levels: tuple[float, ...]
    draws: int

    @property
    def points(self) -> _Points:
        """All p₋ and q₊."""
        return sum(self.blocks, start=())

    @property
    def roc(self) -> tuple[_Points, _Points]:
        """Limits on the ROC of {score ≥ t} and {score > t}, the first side being positive.

        For some t the rate of false positives and of true ones: at most and at least; then for
        others at least and at most.
        """
        first, second, third, fourth = self.blocks
        lower = [(q, p) for p, q in first] + [(1 - p, 1 - q) for p, q in fourth]
        upper = [*second] + [(1 - q, 1 - p) for p, q in third]
        return tuple(sorted(lower)), tuple(sorted(upper))

    def epsilon_lower(self, delta: float) -> float:
        """Lower confidence limit of ε at delta, in nats; at all delta at once."""
        ratios = [(p - delta) / q for p, q in self.points if p - delta > q]
        return max(0.0, math.log(max(ratios)) * (1 - _SAFE) - _SAFE) if ratios else 0.0

    def delta_lower(self, epsilon: float) -> float:
        """Lower confidence limit of δ at epsilon; at all epsilon at once."""
        ratio = math.exp(min(epsilon, 700.0)) * (1 + _SAFE)
        return max(0.0, *(p - ratio * q - _SAFE for p, q in self.points))

    def refuted_at(self, curve: PrivacyCurve, delta: Fraction) -> float | None:
        """An ε at which the claimed curve is below the band, or None."""
        return next(
            (
                eps
                for eps in _grid(curve, delta)
                if self.delta_lower(eps) > curve.delta_at(eps).upper
            ),
            None,
        )

    def visible(self, curve: PrivacyCurve, delta: Fraction) -> tuple[tuple[float, float], ...]:
        """For some ε of the claimed curve the least δ that would have been shown to be above it.

        With probability 0.99, on the event {L ≥ ε} with the probability that the claim gives it on
        the other side; infinite where none would. Planning, in doubles. Empty where the claim is a
        bound, such as one of Rényi divergences, whose privacy loss has no law.
        """
        if not isinstance(curve, PrivacyCurve):
            return ()
        return _visible(self.ranks, self.levels, self.draws, curve, delta)


def band(own: Array, other: Array, *, alpha: float) -> Band:
    """Confidence band on the ROC from independent scores of both sides.

    Parameters
    ----------
    own, other : scores of shape (draws,), of as many draws as there are, by a function that was
        fixed beforehand
    alpha : level in (0, 1)
    """
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    for name, scores in (("own", own), ("other", other)):
        require(scores.ndim == 1 and scores.size >= 1, name, scores.shape, "of shape (draws,)")
    limits = _levels(own.size, alpha), _levels(other.size, alpha)
    rising, falling = ([np.sort(sign * side) for side in (own, other)] for sign in (1, -1))
    first, second = limits
    blocks = (
        _points(rising[0], rising[1], first, second),
        _points(rising[1], rising[0], second, first),
        _points(falling[0], falling[1], first, second),
        _points(falling[1], falling[0], second, first),
    )
    return Band(blocks=blocks, ranks=limits[0][0], levels=limits[0][1], draws=own.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffAttack(Attack):
    """Tests the whole claimed curve by a band on the ROC of the best score there is.

    That is the mechanism's own log-likelihood ratio; where it has none, the score that the
    black-box attack learns, of the draws that it counts. Each pair has an equal share of the level.

    Parameters
    ----------
    unpack : whether bytes are packed bits
    """

    name: ClassVar[AuditKind] = "trade-off"
    everywhere: ClassVar[bool] = False
    shares: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    unpack: bool = True

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation where the band is above the claimed curve; inconclusive without draws."""
        require(config.draws >= 8, "draws", config.draws, "at least 8")
        pairs, claim = target.drawable, target.claim
        config = config.at_level(config.alpha / len(pairs))

        def attack(pair: Pair) -> Finding:
            try:
                scores = self._scores(target, pair, config)
            except DrawError as error:
                return undrawn(self.name, error, level=config.alpha, pair=pair)
            return _finding(*scores, pair, claim, config)

        return list(target.attacked(pairs, attack))

    def _scores(self, target: Target, pair: Pair, config: AuditConfig) -> tuple[str, Array, Array]:
        """The score, in words, and its values on both sides."""
        mechanism = target.mechanism
        if isinstance(mechanism, WhiteBox):
            score = "log-likelihood ratio"
            sides = counted(target, pair, config).outputs
            ratio = partial(_ratio, mechanism, pair, config.time_limit)
            own, other = (ratio(number, side) for number, side in enumerate(sides))
        else:
            choice = chosen(target, pair, config, unpack=self.unpack)
            choice = choice.usual or choice
            score = choice.event
            own, other = (
                choice.score(choice.columns.matrix(side))
                for side in counted(target, pair, config).told_apart(choice.like)
            )
        if np.any(np.isnan(own)) or np.any(np.isnan(other)):
            named = f"{display_name(mechanism)}: the {score}"
            raise DrawError(f"{named} of an output on {pair.name!r} is NaN")
        return score, own, other


def _ratio(
    mechanism: WhiteBox, pair: Pair, time_limit: float, side: int, drawn: NDArray[Any]
) -> Array:
    outputs = require_numbers(drawn, mechanism, pair, side)

    def score() -> Array:
        return np.asarray(mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour))

    return foreign_code(score, mechanism, pair, side, (), time_limit)


def _finding(
    score: str, own: Array, other: Array, pair: Pair, curve: PrivacyCurve, config: AuditConfig
) -> Finding:
    delta, alpha, draws = config.delta_for(curve), config.alpha, config.draws
    limits = band(own, other, alpha=alpha)
    claimed = claimed_epsilon(curve, delta)
    lower = limits.epsilon_lower(Enclosure.of_exact(delta).upper)
    refuted = limits.refuted_at(curve, delta)
    visible = limits.visible(curve, delta)
    seen = [eps for eps, least in visible if least <= 2 * curve.delta_at(eps).upper]
    model, fit = "", None
    if delta > 0:
        fit = gaussian_fit(own, other, delta=delta, alpha=alpha)
        model = f" A Gaussian model doesn't fit (p = {fit.p_value:.3g}): no number is given by it."
        if fit.epsilon_lower is not None:
            model = (
                f" Under a Gaussian model, which they don't reject (p = {fit.p_value:.3g}) and "
                f"can't show, ε would be at least {at_least(fit.epsilon_lower, '.4f')}; no verdict "
                "rests on it."
            )
    said = "refute" if refuted is not None else "do not refute"
    where = "" if refuted is None else f" (at ε = {refuted:.4g})"
    reach = f"up to ε = {max(seen):.4g}" if seen else "nowhere"
    plan = f" They would have shown twice the claimed δ {reach}." if visible else ""
    return Finding(
        audit="trade-off",
        verdict="no_violation_found" if refuted is None else "violation",
        statement=(
            f"{draws} draws a side {said} the claimed curve{where}: ε is at least "
            f"{at_least(lower, '.4f')} at δ = {exactly(delta)}, "
            f"at level {alpha:g}.{plan}{model}"
        ),
        level=alpha,
        pair=pair,
        epsilon_lower=lower,
        evidence=BandEvidence(
            score=score,
            draws=draws,
            claimed_epsilon=claimed,
            delta_lower=limits.delta_lower(claimed),
            refuted_at=refuted,
            gaussian_model=fit,
        ),
        power={
            "probability": DETECTION,
            "reach": max(seen, default=None),
            "least_delta_shown_by_epsilon": visible,
        },
    )


@lru_cache(maxsize=32)
def _visible(
    ranks: tuple[int, ...],
    levels: tuple[float, ...],
    draws: int,
    curve: PrivacyCurve,
    delta: Fraction,
) -> tuple[tuple[float, float], ...]:
    """`Band.visible`, which is the same for every band of so many draws at one level."""

    def limit(count: int) -> float:
        place = bisect_right(ranks, count)
        return levels[place - 1] if place else 0.0

    def least(epsilon: float) -> float:
        q, ratio = _false_rate(curve, epsilon), math.exp(min(epsilon, 700.0))
        false_hits = many_hits(q, draws)
        bound = ratio * (1 - limit(draws - false_hits)) + curve.delta_at(epsilon).upper

        def shown(p: float) -> bool:
            return limit(few_hits(p, draws)) > bound

        if not shown(1.0):
            return math.inf
        low, high = 0.0, 1.0
        while high - low > 1e-7:
            middle = (low + high) / 2
            low, high = (low, middle) if shown(middle) else (middle, high)
        return max(high - ratio * q, 0.0)

    return tuple((eps, least(eps)) for eps in _grid(curve, delta))


def _false_rate(curve: PrivacyBound, epsilon: float) -> float:
    """P[L ≥ ε] on the other side: −dδ/d(e^ε), by a secant of a bound (zCDP), which has no law."""
    if isinstance(curve, PrivacyCurve):
        return curve.rates(epsilon)[1]
    ends = min(epsilon, 700.0), min(epsilon, 700.0) + 1e-3
    fall = curve.delta_at(ends[0]).upper - curve.delta_at(ends[1]).upper
    return max(fall, 0.0) / (math.exp(ends[1]) - math.exp(ends[0]))


def _grid(curve: PrivacyCurve, delta: Fraction) -> list[float]:
    """ε's of the claimed curve, the claimed one included where it is finite."""
    claimed = min(claimed_epsilon(curve, delta), 50.0)
    return [*np.linspace(0.0, claimed, _POINTS, endpoint=False).tolist(), claimed]


def _points(own: Array, other: Array, own_limits: _Limits, other_limits: _Limits) -> _Points:
    """p₋ and q₊ of {score ≥ t} for t at the own side's order statistics, of sorted scores.

    Between them p₋ stays and q₊ falls with t, so that no other t gives more.
    """
    (ranks, a), (other_ranks, b) = (map(np.array, limits) for limits in (own_limits, other_limits))
    thresholds = own[ranks - 1]
    # P[X ≥ X₍ᵣ₎] ≥ a₍ₙ₊₁₋ᵣ₎; outwards by what the doubles of 1 − a in `coverage` lose.
    p = np.maximum(a[::-1] * (1 - 1e-9) - 2.0**-52, 0.0)
    below = np.searchsorted(other[other_ranks - 1], thresholds, side="left")
    q = 1 - np.concatenate([[0.0], b])[below]
    return tuple(zip(p.tolist(), np.minimum(q * (1 + 1e-9) + 2.0**-52, 1.0).tolist(), strict=True))


@lru_cache(maxsize=32)
def _levels(n: int, alpha: float) -> _Limits:
    """Ranks and their aᵣ for both sides together at level alpha."""
    share = -math.expm1(math.log1p(-alpha) / 2) * (1 - 1e-9)  # 1 − √(1 − α)
    kept = _lower_half(n)
    ranks = np.array(sorted({*kept, *(n + 1 - rank for rank in kept)}))

    def at(eta: float) -> Array:
        levels = np.asarray(scipy.special.betaincinv(ranks, n - ranks + 1, eta), dtype=np.float64)
        return np.nan_to_num(levels)  # of the least eta it finds none, and 0 holds always

    best = share / (2 * ranks.size) * (1 - 1e-5)  # Bonferroni's, less the margin of `coverage`
    eta = 3 * best
    best_levels = at(best)
    for _ in range(_TRIALS):
        levels = at(eta)
        missed = 1 - coverage(n, ranks, levels)
        if missed <= share and eta > best:
            best, best_levels = eta, levels
        eta *= share / missed * (1 - 1e-4)
        if eta < best:  # of a level that doubles of a coverage don't see
            break
    return tuple(ranks.tolist()), tuple(best_levels.tolist())


def _lower_half(n: int) -> set[int]:
    """Ranks up to the median: some `_RANKS` in all, evenly many a standard deviation of U₍ᵣ₎.

    That would leave gaps between the smallest where n is large: powers of √2 are added.
    """
    kept = {round(2 ** (step / 2)) for step in range(2 * n.bit_length())}
    stride, rank = math.pi * math.sqrt(n) / _RANKS, 1.0
    while rank <= (n + 1) / 2:
        kept.add(int(rank))
        rank += max(1.0, stride * math.sqrt(rank * (n + 1 - rank) / n))
    return {rank for rank in kept if rank <= (n + 1) // 2}


def coverage(n: int, ranks: NDArray[np.int64], levels: Array) -> float:
    """Lower bound on P[E].

    Parameters
    ----------
    n : draws
    ranks : of shape (ranks,), rising and symmetric
    levels : their aᵣ in (0, 1), of shape (ranks,), rising
    """
    times = np.concatenate([levels, 1 - levels[::-1]])
    caps = np.concatenate([ranks - 1, np.full(ranks.size, n)])
    floors = np.concatenate([np.zeros(ranks.size, dtype=int), ranks])
    order = np.argsort(times, kind="stable")
    times, caps, floors = times[order], caps[order], floors[order]
    first, weights, now = 0, np.ones(1), 0.0
    for time, cap, floor in zip(times.tolist(), caps.tolist(), floors.tolist(), strict=True):
        start, steps = _poisson(n * (time - now))
        weights = np.convolve(weights, steps).astype(np.float64)
        first, now = first + start, time
        spread = _REACH * math.sqrt(n * time * (1 - time)) + _REACH**2
        low = max(floor, math.floor(n * time - spread), first)
        high = min(cap, math.ceil(n * time + spread), first + weights.size - 1)
        if high < low:
            return 0.0
        weights, first = weights[low - first : high - first + 1], low
    # What is left of n draws comes after the last constraint.
    rest = _log_poisson(n * (1 - now), n - np.arange(first, first + weights.size))
    total = float(weights @ np.exp(rest - float(_log_poisson(n, np.array([n]))[0])))
    return min(1.0, total * (1 - _MARGIN))


def _poisson(mean: float) -> tuple[int, Array]:
    """Poisson weights within `_REACH` standard deviations and some, and the first's count."""
    if mean == 0:
        return 0, np.ones(1)
    spread = _REACH * math.sqrt(mean) + _REACH**2
    start = max(0, math.floor(mean - spread))
    return start, np.exp(_log_poisson(mean, np.arange(start, math.ceil(mean + spread) + 1)))


def _log_poisson(mean: float, counts: NDArray[Any]) -> Array:
    logs: Array = scipy.special.xlogy(counts, mean) - mean - scipy.special.gammaln(counts + 1.0)
    return logs
