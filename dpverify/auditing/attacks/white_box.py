"""The white-box attack: the likelihood-ratio test on neighbouring records, through `release`.

For a pair of neighbours, outputs are drawn on both sides by separate calls of `release` and scored
by the mechanism's own log-likelihood ratio L, the best score there is (Neyman and Pearson). Events
are {L ≥ t} for the pair in one order and {L ≤ −t} in the other, with thresholds t and a level for
each fixed before any draw (`power`): "tail" is where the claim itself promises the largest lower
bound on epsilon, "reach" the farthest point of its curve at which twice the δ would show, "middle"
(t = 0) where a noise level that is off shows most. What the counts of an event prove, they prove at
its level (`claim_test`), so that all of it holds at α.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding, LikelihoodRatioEvidence, Verdict
from dpverify.auditing.formatting import at_least
from dpverify.auditing.outputs.arrays import require_numbers
from dpverify.auditing.outputs.foreign import foreign_code
from dpverify.auditing.outputs.samples import both_sides, by_chunks, over_the_draw, prepares
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.power import Event, Power, events, levels, power
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.data.rows import copies
from dpverify.errors import PASSING, ClusterError, DrawError, require
from dpverify.guarantee import claimed_epsilon
from dpverify.privacy import Pair, WhiteBox
from dpverify.sampling.words import ReplayableWords, Words
from dpverify.visible import raised

__all__ = ["EventCounts", "WhiteBoxAttack", "count_events", "verdict"]

CHUNK = 500
"""Draws that share a stream of words, named by their place: no result depends on the workers."""
_WAYS = ("release", "release_blocks", "prepared_blocks", "log_likelihood_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
    """Raw evidence: counts for each pair and event, and for the first pair's ROC."""

    counts: tuple[tuple[Counts, ...], ...]
    roc: tuple[Counts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhiteBoxAttack(Attack):
    """Attacks by the mechanism's own likelihood ratio.

    Where the guarantee is over the draw of public randomness, every release draws it anew.
    """

    name: ClassVar[AuditKind] = "white-box"
    weight: ClassVar[float] = 36.0

    def applies(self, mechanism: Any) -> bool:
        return isinstance(mechanism, WhiteBox)

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """One finding of all pairs and events.

        Raises
        ------
        DPVerifyError
            As for `count_events`; also where the claim has no ε at the configured delta.
        """
        curve, pairs, draws = target.claim, target.drawable, config.draws
        delta = config.delta_for(curve)
        claimed = claimed_epsilon(curve, delta)
        rule = "one at which the claim has a finite epsilon"
        require(math.isfinite(claimed), "delta", delta, rule)
        shared = levels(config.alpha, len(pairs))
        tests = events(curve, delta, draws, shared[0][0])
        counted = count_events(target.mechanism, pairs, tests, config)
        judged = [
            (judge(counts, curve, delta, level, ordering=event.ordering), pair, event, counts)
            for pair, row, own in zip(pairs, counted.counts, shared, strict=True)
            for event, counts, level in zip(tests, row, own, strict=True)
        ]
        # The strongest: a refutation before none, then the larger bound, then the first.
        best, pair, event, counts = max(
            judged, key=lambda case: (case[0].refuted_at is not None, case[0].epsilon_lower)
        )
        in_order = shared[0][: len(tests) // 2]
        promised = power(curve, Fraction(claimed), delta, draws, in_order)
        refuted = best.refuted_at
        where = "" if refuted is None else f"; the claimed curve is refuted near ε = {refuted:.4g}"
        finding = Finding(
            audit=self.name,
            verdict=verdict(refuted is not None, promised),
            statement=(
                f"At the pair “{pair.name}” {{{'−L' if event.swapped else 'L'} ≥ "
                f"{event.threshold:.4g}}} happened {counts.hits} times of {draws}, and "
                f"{counts.false_hits} times on the other side: ε ≥ "
                f"{at_least(best.epsilon_lower, '.4g')} at this δ{where}"
            ),
            level=config.alpha,
            pair=pair,
            epsilon_lower=max(case[0].epsilon_lower for case in judged),
            evidence=LikelihoodRatioEvidence(
                event=event.name,
                threshold=event.threshold,
                swapped=event.swapped,
                hits=counts.hits,
                draws=counts.draws,
                false_hits=counts.false_hits,
                false_draws=counts.false_draws,
                refuted_at=refuted,
            ),
            power={
                "noise_scale": promised.noise_scale,
                "smallest_excess": promised.smallest_excess,
                "reach": promised.reach,
            },
        )
        return [finding]


def verdict(refuted: bool, promised: Power) -> Verdict:
    """Of an attack: one that would have found nothing that is asked has not run to any purpose."""
    if refuted:
        return "violation"
    blind = promised.reach is None and promised.noise_scale is None
    return "inconclusive" if blind else "no_violation_found"


def count_events(
    mechanism: WhiteBox,
    pairs: Sequence[Pair],
    tests: Sequence[Event],
    config: AuditConfig,
    *,
    roc: Sequence[float] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> EventCounts:
    """Draw on both sides of every pair and count the events.

    Where the mechanism's guarantee is over the draw, every release realises the public randomness
    anew; it is revealed, so that the privacy loss is that of what was realised.

    Parameters
    ----------
    mechanism : audited through its `release`, one data set a call
    pairs : neighbours
    tests : the events; roc : thresholds counted for the first pair besides
    config : its time limit is also that of scoring a chunk
    progress : called with the number of draws done since the last call

    Raises
    ------
    DrawError
        If the mechanism raises, can't be sent to a worker, or scores an output with no number.
    ClusterError
        As `parallel.spread`.
    """
    counts: list[tuple[Counts, ...]] = []
    curve_counts: tuple[Counts, ...] = ()
    for index, pair in enumerate(pairs):
        try:
            own, other = _scores(mechanism, pair, index, config, progress)
        except (DrawError, ClusterError, *PASSING):
            raise
        except BaseException as error:  # whatever a mechanism raises, or its pickling
            raise DrawError(
                f"{type(mechanism).__name__} can't be attacked at the pair “{pair.name}”: "
                f"{raised(error)}"
            ) from error
        counts.append(
            tuple(_count(own, other, event.threshold, swapped=event.swapped) for event in tests)
        )
        if index == 0:
            curve_counts = tuple(_count(own, other, t, swapped=False) for t in roc)
    return EventCounts(counts=tuple(counts), roc=curve_counts)


def _scores(
    mechanism: WhiteBox,
    pair: Pair,
    index: int,
    config: AuditConfig,
    progress: Callable[[int], None],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the outputs on each side."""
    draws, redraw = config.draws, over_the_draw(mechanism)
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    case = (config.seed, "white-box", index)
    tasks = [
        (mechanism, pair, size, redraw, (*case, number), config.time_limit)
        for number, size in enumerate(sizes)
    ]
    chunks = []
    for chunk in by_chunks(_chunk, tasks, config):
        chunks.append(chunk)
        progress(sum(side.size for side in chunk))
    own, other = (np.concatenate(side) for side in zip(*chunks, strict=True))
    # Infinite scores are outputs that one side can't give; what is no number has no side.
    due, shapes = ((draws,), (draws,)), (own.shape, other.shape)
    require(shapes == due, "log_likelihood_ratio", shapes, f"of shapes {due}")
    nan = np.isnan(own).any() or np.isnan(other).any()
    require(not nan, "log_likelihood_ratio", math.nan, "a number")
    return own, other


def _chunk(
    mechanism: WhiteBox,
    pair: Pair,
    size: int,
    redraw: bool,
    key: tuple[int | str, ...],
    time_limit: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of both sides, which are released in turn."""
    if redraw:
        *case, number = key
        first, second = (
            _redrawn(mechanism, pair, side, size, (*case, side, number), time_limit)
            for side in (0, 1)
        )
        return first, second
    drawn = both_sides(mechanism, pair, size, key, time_limit)

    def scored(side: int) -> NDArray[np.float64]:
        outputs = require_numbers(drawn[side].outputs, mechanism, pair, side)

        def score() -> NDArray[np.float64]:
            return mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)

        return foreign_code(score, mechanism, pair, side, (), time_limit)

    return scored(0), scored(1)


def _redrawn(
    mechanism: WhiteBox,
    pair: Pair,
    side: int,
    size: int,
    key: tuple[Any, ...],
    time_limit: float,
) -> NDArray[np.float64]:
    """Scores of one side, each with public randomness of its own."""
    rng = ReplayableWords(*key)
    scores: list[NDArray[np.float64]] = []

    def draw() -> None:
        score = _redrawer(mechanism, pair, side)
        for _ in range(size):
            seed = int(rng.words(1)[0] >> np.uint64(11))
            scores.append(score(seed, rng))

    foreign_code(draw, mechanism, pair, side, scores, time_limit)
    return np.concatenate(scores)


def _redrawer(mechanism: Any, pair: Pair, side: int) -> Callable[[int, Words], NDArray[np.float64]]:
    """Draw the public randomness from a seed, release and score, at each call."""
    if prepares(mechanism, "redrawer", *_WAYS):
        prepared: Callable[[int, Words], NDArray[np.float64]] = mechanism.redrawer(pair, side)
        return prepared
    data = copies(pair.neighbour if side else pair.record)

    def score(seed: int, rng: Words) -> NDArray[np.float64]:
        fresh = mechanism.redrawn(seed)
        output = fresh.release(data(), rng=rng)[None]
        scores: NDArray[np.float64] = fresh.log_likelihood_ratio(
            output, pair.record, pair.neighbour
        )
        return scores

    return score


def _count(
    own: NDArray[np.float64], other: NDArray[np.float64], threshold: float, *, swapped: bool
) -> Counts:
    if swapped:
        own, other = -other, -own
    return Counts(
        hits=int(np.count_nonzero(own >= threshold)),
        false_hits=int(np.count_nonzero(other >= threshold)),
        draws=int(own.size),
    )
