"""The white-box attack: the likelihood-ratio test on neighbouring records, through `release`.

For a pair of neighbours, outputs are drawn on both sides by separate calls of `release` and scored
by the mechanism's own log-likelihood ratio L, the best score there is (Neyman and Pearson). Events
are {L ≥ t} for the pair in one order and {L ≤ −t} in the other, with thresholds t fixed before any
draw: "tail" is where the claim itself promises the largest lower bound on epsilon, "middle" (t = 0)
where a noise level that is off shows most.

**Level.** Every event of every pair and order is tested at α/m, with m their number (Bonferroni),
half of it for each of its two binomial limits. So with probability at least 1 − α, for all m events
at once, p ≥ p₋ and q ≤ q₊. Everything said follows from that one statement: ln((p₋ − δ)/q₊) bounds
epsilon below, and p₋ > e^ε q₊ + δ(ε) at *any* ε refutes the claimed curve.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import binom

from dpverify.auditing.binomial import lower_limit, upper_limit
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve
from dpverify.mechanism import Pair, WhiteBox
from dpverify.sampling.words import ReplayableWords

__all__ = [
    "Attack",
    "Counts",
    "Event",
    "Finding",
    "Power",
    "attack",
    "ceiling",
    "events",
    "judge",
    "power",
    "roc_thresholds",
]

CHUNK = 500
"""Draws that share a stream of words, named by their place: no result depends on the workers."""
DETECTION = 0.99
"""Probability with which the power statement promises a find."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of the output, chosen before any draw.

    Attributes
    ----------
    name : "tail" or "middle"
    threshold : t, in nats
    swapped : whether record and neighbour change places, the event being {−L ≥ t}
    """

    name: str
    threshold: float
    swapped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often an event happened on its own side and on the other, of `draws` each."""

    hits: int
    false_hits: int
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one event's counts prove at its share of the level.

    Attributes
    ----------
    p_lower, q_upper : limits of the event's probability on its own side and on the other
    epsilon_lower : lower bound on the mechanism's epsilon at the claimed delta
    refuted_at : an ε at which the claimed curve can't be true, or None
    """

    p_lower: float
    q_upper: float
    epsilon_lower: float
    refuted_at: float | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Raw evidence: counts for each pair and event, and for the first pair's ROC."""

    counts: tuple[tuple[Counts, ...], ...]
    roc: tuple[Counts, ...]


def events(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> tuple[Event, ...]:
    """Events to test for a pair, from the claim alone."""
    tail = _best_threshold(curve, delta, draws, level)
    return tuple(
        Event(name=name, threshold=threshold, swapped=swapped)
        for swapped in (False, True)
        for name, threshold in (("tail", tail), ("middle", 0.0))
    )


def roc_thresholds(curve: PrivacyCurve) -> list[float]:
    """Thresholds at which the ROC is counted: evenly spaced where the claim puts most losses."""
    reach = curve.epsilon(Fraction(1, 1000)).upper
    return [float(t) for t in np.linspace(-reach, reach, 17)]


def attack(
    mechanism: WhiteBox,
    *,
    draws: int,
    seed: int,
    tests: Sequence[Event],
    roc: Sequence[float] = (),
    progress: Callable[[int], None] = lambda _: None,
    workers: int = -1,
    redraw: bool = False,
) -> Attack:
    """Draw on both sides of every worst pair and count the events.

    Parameters
    ----------
    mechanism : audited through its `release`, one record a call
    draws : on each side of each pair
    seed : of the replayable randomness
    tests : the events; roc : thresholds counted for the first pair besides
    progress : called with the number of draws done since the last call
    workers : processes, −1 for all cores; no effect on the result
    redraw : whether every draw realises the public randomness anew, as a guarantee over its draw
        asks; it is revealed, so that the privacy loss is that of what was realised
    """
    pairs = mechanism.worst_pairs()
    counts: list[tuple[Counts, ...]] = []
    curve_counts: tuple[Counts, ...] = ()
    with Parallel(
        n_jobs=workers, return_as="generator", initializer=_leave_interrupts_to_the_parent
    ) as parallel:
        for index, pair in enumerate(pairs):
            own, other = (
                _scores(parallel, mechanism, pair, side, draws, (seed, index, redraw), progress)
                for side in (0, 1)
            )
            counts.append(tuple(_count(event, own, other) for event in tests))
            if index == 0:
                curve_counts = tuple(
                    _count(Event(name="roc", threshold=t, swapped=False), own, other) for t in roc
                )
    return Attack(counts=tuple(counts), roc=curve_counts)


def judge(counts: Counts, curve: PrivacyCurve, delta: Fraction, level: float) -> Finding:
    """Bounds that the counts prove at the given level for both limits together."""
    p = lower_limit(counts.hits, counts.draws, level / 2)
    q = upper_limit(counts.false_hits, counts.draws, level / 2)
    return Finding(
        p_lower=p,
        q_upper=q,
        epsilon_lower=_epsilon(p, q, delta),
        refuted_at=_refute(p, q, curve, curve.epsilon(delta).upper),
    )


def ceiling(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> float:
    """Lower bound on epsilon that the best event, known beforehand, would be expected to give.

    The claim's own best event, with its expected counts, tested alone at the whole level.
    """
    return _expected(curve, delta, draws, level, _best_threshold(curve, delta, draws, level))


@lru_cache(maxsize=64)
def power(
    curve: PrivacyCurve, epsilon: Fraction, delta: Fraction, draws: int, level: float
) -> Power:
    """What the audit would have found with probability at least 0.99.

    Sufficient conditions: a find is counted where one event is refuted by the 0.5 % quantile of its
    hits together with the 99.5 % quantile of its false hits (two independent sides). Planning, in
    doubles: nothing is proven with it.
    """
    thresholds = [event.threshold for event in events(curve, delta, draws, level)[:2]]

    def found(scale: float) -> bool:
        return any(
            _found(curve, draws, level, *curve.rates(t, noise=scale), float(epsilon))
            for t in thresholds
        )

    low, high = 0.01, 1.0
    findable = found(low)
    while findable and high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) else (low, middle)
    excess = _excess(curve, float(epsilon), float(delta), draws, level, thresholds[0])
    reach = None
    for eps in np.linspace(0, float(epsilon), 51).tolist():
        allowed = curve.delta(eps).upper
        if min(_excess(curve, eps, allowed, draws, level, t) for t in thresholds) <= allowed:
            reach = eps
    return Power(noise_scale=low if findable else None, smallest_excess=excess, reach=reach)


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches every process of a terminal; the parent answers alone and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _scores(
    parallel: Parallel,
    mechanism: WhiteBox,
    pair: Pair,
    side: int,
    draws: int,
    case: tuple[int, int, bool],
    progress: Callable[[int], None],
) -> NDArray[np.float64]:
    seed, index, redraw = case
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    tasks: Iterator[NDArray[np.float64]] = parallel(
        delayed(_chunk)(
            mechanism, pair, side, size, redraw, (seed, "white-box", index, side, number)
        )
        for number, size in enumerate(sizes)
    )
    chunks = []
    for chunk in tasks:
        chunks.append(chunk)
        progress(chunk.size)
    return np.concatenate(chunks)


def _chunk(
    mechanism: WhiteBox,
    pair: Pair,
    side: int,
    size: int,
    redraw: bool,
    key: tuple[int, str, int, int, int],
) -> NDArray[np.float64]:
    rng = ReplayableWords(*key)
    data = pair.neighbour if side else pair.record
    if not redraw:
        outputs = np.stack([mechanism.release(data, rng=rng) for _ in range(size)])
        return mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)
    scores = []
    for _ in range(size):
        fresh = mechanism.redrawn(int(rng.words(1)[0] >> np.uint64(11)))  # type: ignore[attr-defined]
        output = fresh.release(data, rng=rng)[None]
        scores.append(fresh.log_likelihood_ratio(output, pair.record, pair.neighbour))
    return np.concatenate(scores)


def _count(event: Event, own: NDArray[np.float64], other: NDArray[np.float64]) -> Counts:
    if event.swapped:
        own, other = -other, -own
    return Counts(
        hits=int(np.count_nonzero(own >= event.threshold)),
        false_hits=int(np.count_nonzero(other >= event.threshold)),
        draws=int(own.size),
    )


def _epsilon(p: float, q: float, delta: Fraction) -> float:
    excess = arb(p) - arb(Enclosure.of_exact(delta).upper)
    if not excess > q:
        return 0.0
    return max(0.0, Enclosure.of_ball((excess / arb(q)).log()).lower)


def _refute(p: float, q: float, curve: PrivacyCurve, claimed: float) -> float | None:
    """An ε with p > e^ε q + δ(ε), proven, or None if there seems to be none.

    The right side is convex in e^ε, hence falls and then rises in ε: a ternary search finds its
    minimum. The claimed ε is tried as well, so that a lower bound above it is always a refutation.
    """
    if not p > q:
        return None

    def bound(eps: float) -> arb:
        return arb(eps).exp() * arb(q) + arb(curve.delta(eps).upper)

    low, high = 0.0, math.log(p / q)
    while high - low > 1e-6 * (1 + high):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) <= bound(right) else (left, high)
    return next((eps for eps in (low, claimed) if arb(p) > bound(eps)), None)


def _best_threshold(curve: PrivacyCurve, delta: Fraction, draws: int, level: float) -> float:
    reach = curve.epsilon(Fraction(1, max(draws, 10))).upper
    grid = np.linspace(0, max(reach, 1e-9), 201)
    bounds = [_expected(curve, delta, draws, level, t) for t in grid.tolist()]
    return float(grid[int(np.argmax(bounds))])


def _expected(
    curve: PrivacyCurve, delta: Fraction, draws: int, level: float, threshold: float
) -> float:
    """Lower bound on epsilon from the expected counts of {L ≥ threshold}."""
    p, q = curve.rates(threshold)
    p_lower = float(betaincinv(max(draws * p, 1e-9), draws * (1 - p) + 1, level / 2))
    q_upper = float(betaincinv(draws * q + 1, max(draws * (1 - q), 1e-9), 1 - level / 2))
    excess = p_lower - float(delta)
    return math.log(excess / q_upper) if excess > q_upper else 0.0


def _low_count(p: float, draws: int) -> int:
    """0.5 % quantile of Bin(draws, p), as a probability that is safely below it."""
    return int(binom.ppf((1 - DETECTION) / 2, draws, p))


def _found(
    curve: PrivacyCurve, draws: int, level: float, p: float, q: float, claimed: float
) -> bool:
    hits = _low_count(p, draws)
    misses = _low_count(1 - q, draws)
    counts = Counts(hits=hits, false_hits=draws - misses, draws=draws)
    low = lower_limit(counts.hits, draws, level / 2)
    high = upper_limit(counts.false_hits, draws, level / 2)
    return _refute(low, high, curve, claimed) is not None


def _excess(
    curve: PrivacyCurve, eps: float, allowed: float, draws: int, level: float, threshold: float
) -> float:
    """Smallest p − (e^ε q + δ) found with probability 0.99 on {L ≥ t} at the claim's own q."""
    q = curve.rates(threshold)[1]
    q_upper = upper_limit(draws - _low_count(1 - q, draws), draws, level / 2)
    bound = math.exp(eps) * q_upper + allowed
    if bound >= 1:
        return math.inf
    # Least number of hits whose lower limit passes the bound, then the p that reaches it.
    few, many = 0, draws + 1
    while many - few > 1:
        middle = (few + many) // 2
        passed = float(betaincinv(middle, draws - middle + 1, level / 2)) > bound
        few, many = (few, middle) if passed else (middle, many)
    if many > draws:
        return math.inf
    p = float(betaincinv(many, draws - many + 1, 1 - (1 - DETECTION) / 2))
    return p - (math.exp(eps) * q + allowed)
