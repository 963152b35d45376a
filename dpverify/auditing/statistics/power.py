"""What an attack is going to test, at which levels, and what it would find: before any draw.

All follows from the claim. Planning is done in doubles: a threshold that is not the best one costs
power and no validity, and nothing is proven with a statement of power.

**Levels** add up to α (Bonferroni), and nearly all of it goes to the first pair's tail event in
record order, where the claim says that most is to be seen: 38 parts of 39, the rest in equal shares
to all other events, orders and pairs. A lower bound is a signal less z standard errors, and the
normal quantile z grows slowly as a level falls: with two pairs at α = 0.01 it is 2.34 for the
leading test, where all of α would give 2.33 and an even split 3.02, and 3.97 for each other test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy

from dpverify.auditing.statistics.claim_test import curve_lines
from dpverify.auditing.statistics.two_sample_binomial import Counts, Line, claim_lines
from dpverify.enclosure import Enclosure
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve

__all__ = [
    "Event",
    "Power",
    "ceiling",
    "events",
    "few_hits",
    "least_hits",
    "levels",
    "many_hits",
    "power",
    "roc_thresholds",
    "shares",
    "unlucky",
]

DETECTION = 0.99
"""Probability with which the power statement promises a find."""

_NAMES = ("tail", "reach", "middle")
_LEADING = 38  # weight of the leading test; all others together have 1
_LARGEST = 50.0  # nats; no threshold is beyond, where no draws reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of the output, chosen before any draw.

    Attributes
    ----------
    name : "tail", "reach" or "middle"
    threshold : t, in nats
    swapped : whether record and neighbour change places, the event being {−L ≥ t}
    ordering : δ′ of the test's ordering (`claim_test`)
    """

    name: str
    threshold: float
    swapped: bool
    ordering: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What would have been found with probability 0.99.

    Attributes
    ----------
    noise_scale : the factor on the noise nearest to 1 from below that would have been found, or
        None if none above 0.01 would
    smallest_excess : p − (e^ε q + δ) on the tail event at the claimed (ε, δ)
    reach : largest ε of the claimed curve at which twice the δ(ε) would have been found; beyond it
        the claim rests on its proof alone. None if there is no such ε.
    """

    noise_scale: float | None
    smallest_excess: float
    reach: float | None


def shares(alpha: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Levels that add up to at most alpha, in proportion to the weights.

    Raises
    ------
    ParameterError
        If alpha isn't in (0, 1), or a weight is negative or all are 0.
    """
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    require(all(weight >= 0 for weight in weights.values()), "weights", weights, "at least 0")
    total = sum(weights.values())
    require(total > 0, "weights", weights, "not all 0")
    # Rounded down so that no sum of doubles passes alpha.
    return {name: alpha * weight / total * (1 - 1e-12) for name, weight in weights.items()}


def levels(alpha: float, pairs: int) -> tuple[tuple[float, ...], ...]:
    """Level of each event of each pair, in the order of `events`: at most alpha together."""
    places = range(2 * len(_NAMES))
    weights = {f"{pair}/{place}": 1.0 for pair in range(pairs) for place in places}
    weights["0/0"] = _LEADING * (len(weights) - 1.0)
    level = shares(alpha, weights)
    return tuple(tuple(level[f"{pair}/{place}"] for place in places) for pair in range(pairs))


@lru_cache(maxsize=64)
def events(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> tuple[Event, ...]:
    """Events to test for a pair, from the claim alone; `level` is that of the first."""
    reach = _farthest_threshold(curve, draws, level)
    chosen = {
        "tail": (_best_threshold(curve, delta, draws, level), Enclosure.of_exact(delta).upper),
        "reach": (reach, curve.delta_at(reach).upper),
        "middle": (0.0, curve.delta_at(0).upper),
    }
    return tuple(
        # An ordering needs some p − δ′ to speak of.
        Event(
            name=name,
            threshold=chosen[name][0],
            swapped=swapped,
            ordering=min(chosen[name][1], 0.99),
        )
        for swapped in (False, True)
        for name in _NAMES
    )


def roc_thresholds(curve: PrivacyCurve) -> list[float]:
    """Thresholds at which the ROC is counted: evenly spaced where the claim puts most losses."""
    reach = curve.epsilon_at(Fraction(1, 1000)).upper
    return [float(t) for t in np.linspace(-reach, reach, 17)]


@lru_cache(maxsize=64)
def ceiling(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> float:
    """Lower bound on epsilon that the best event, known beforehand, would be expected to give.

    The claim's own best event, with its expected counts, tested alone at the whole level.
    """
    p, q = curve.rates(_best_threshold(curve, delta, draws, level))
    expected = Counts(hits=round(draws * p), false_hits=round(draws * q), draws=draws)
    return expected.epsilon_lower(delta=Enclosure.of_exact(delta).upper, alpha=level)


@lru_cache(maxsize=64)
def power(
    curve: PrivacyCurve,
    epsilon: Fraction,
    delta: Fraction,
    draws: int,
    level: tuple[float, ...],
) -> Power:
    """What the audit would have found with probability at least 0.99.

    Sufficient conditions: a find is counted where one event is refuted by the 0.5 % quantile of its
    hits together with the 99.5 % quantile of its false hits (two independent sides). Planning, in
    doubles: nothing is proven with it.

    Parameters
    ----------
    curve : the claim
    epsilon, delta : its point
    draws : on each side
    level : of the first pair's events in record order
    """
    tests = list(zip(events(curve, delta, draws, level[0])[: len(level)], level, strict=True))

    def found(p: float, q: float, lines: Sequence[Line], event: Event, alpha: float) -> bool:
        return unlucky(p, q, draws).refutes(lines, alpha=alpha, delta=event.ordering)

    def finds_noise(scale: float) -> bool:
        lines = curve_lines(curve, delta)
        return any(
            found(*curve.rates(event.threshold, noise=scale), lines, event, alpha)
            for event, alpha in tests
        )

    low, high = 0.01, 1.0
    findable = finds_noise(low)
    while findable and high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if finds_noise(middle) else (low, middle)

    def finds_twice_delta(eps: float) -> bool:
        """By this point of the curve alone, at the claim's own q."""
        allowed = curve.delta_at(eps).upper
        lines = claim_lines(eps, allowed)
        doubled = claim_lines(eps, min(2 * allowed, 1.0))
        leaks = [(curve.rates(event.threshold)[1], event, alpha) for event, alpha in tests]
        return any(
            found(min(1.0, *(slope * q + base for slope, base in doubled)), q, lines, event, alpha)
            for q, event, alpha in leaks
        )

    scan = np.linspace(0, float(epsilon), 51)[::-1]
    return Power(
        noise_scale=low if findable else None,
        smallest_excess=_smallest_excess(curve, epsilon, draws, *tests[0]),
        reach=next(
            (eps for eps in scan.tolist() if finds_twice_delta(eps)),
            None,
        ),
    )


@lru_cache(maxsize=64)
def _best_threshold(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> float:
    """Where the delta method's limit of ln((p − δ)/q) is largest at the expected counts."""
    reach = curve.epsilon_at(Fraction(1, max(draws, 10))).upper
    grid = np.linspace(0, max(min(reach, _LARGEST), 1e-9), 201)
    p, q = np.array([curve.rates(t) for t in grid.tolist()]).T
    z = max(float(-scipy.special.ndtri(level)), 0.5)
    excess = np.maximum(p - float(delta), 1e-100)
    shifted = q + z**2 / 4 / draws
    spread = (p * (1 - p) / excess**2 + (1 - q) / shifted) / draws
    return float(grid[int(np.argmax(np.log(excess / shifted) - z * np.sqrt(spread)))])


def _farthest_threshold(curve: PrivacyCurve, draws: int, level: float) -> float:
    """Largest t at which {L ≥ t} would show twice the δ(t), about; 0 where there is none."""
    reach = min(curve.epsilon_at(Fraction(1, max(draws, 10))).upper, _LARGEST)
    z = float(-scipy.special.ndtri(level / 100) - scipy.special.ndtri(1 - DETECTION))

    def shows(t: float) -> bool:
        (p, q), delta = curve.rates(t), curve.delta_at(t).upper
        p = min(p + delta, 1.0)
        return delta > z * math.sqrt((p * (1 - p) + math.exp(2 * t) * q * (1 - q)) / draws)

    return next((t for t in np.linspace(0, reach, 101)[::-1].tolist() if shows(t)), 0.0)


def unlucky(p: float, q: float, draws: int) -> Counts:
    """Counts that an event of these probabilities does at least as well as, with 0.99."""
    return Counts(hits=few_hits(p, draws), false_hits=many_hits(q, draws), draws=draws)


def few_hits(p: float, draws: int) -> int:
    """0.5 % quantile of Bin(draws, p): the least k with P[Bin(draws, p) ≤ k] of that or more.

    As ``scipy.stats.binom.ppf`` has it, which takes half a second to import.
    """
    level = (1 - DETECTION) / 2
    # Where the probability, continued between the integers, is that.
    near = scipy.special.bdtrik(level, draws, p)
    k = math.ceil(near) if 0 < near < draws else draws * (p > 0.5)
    while k > 0 and scipy.special.bdtr(k - 1, draws, p) >= level:
        k -= 1
    while k < draws and not scipy.special.bdtr(k, draws, p) >= level:
        k += 1
    return k


def many_hits(q: float, draws: int) -> int:
    """99.5 % quantile of Bin(draws, q)."""
    return draws - few_hits(1 - q, draws)


def _smallest_excess(
    curve: PrivacyCurve, epsilon: Fraction, draws: int, tail: Event, alpha: float
) -> float:
    """Smallest p − (e^ε q + δ) found with probability 0.99 on {L ≥ t} at the claim's own q."""
    q, delta = curve.rates(tail.threshold)[1], tail.ordering
    false_hits, lines = many_hits(q, draws), claim_lines(float(epsilon), delta)[:1]

    def refuted(hits: int) -> bool:
        counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
        return counts.refutes(lines, alpha=alpha, delta=delta)

    hits = least_hits(refuted, draws)
    if hits is None:
        return math.inf
    p = float(scipy.special.betaincinv(hits, draws - hits + 1, 1 - (1 - DETECTION) / 2))
    return p - (math.exp(epsilon) * q + delta)


def least_hits(refuted: Callable[[int], bool], draws: int) -> int | None:
    """Fewest of so many draws with which a claim is refuted, as it then is with more; or None."""
    few, many = 0, 1  # sought upwards, as few hits are judged soonest
    while not refuted(many):
        if many == draws:
            return None
        few, many = many, min(2 * many, draws)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if refuted(middle) else (middle, many)
    return many
