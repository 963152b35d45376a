"""The white-box attack: the likelihood-ratio test on neighbouring records, through `release`.

For a pair of neighbours, outputs are drawn on both sides by separate calls of `release` and scored
by the mechanism's own log-likelihood ratio L, the best score there is (Neyman and Pearson). Events
are {L ≥ t} for the pair in one order and {L ≤ −t} in the other, with thresholds t and a level for
each fixed before any draw (`planning`): "tail" is where the claim itself promises the largest lower
bound on epsilon, "reach" the farthest point of its curve at which twice the δ would show, "middle"
(t = 0) where a noise level that is off shows most. What the counts of an event prove, they prove at
its level (`judging`), so that all of it holds at α.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.finding import Finding, Verdict
from dpverify.auditing.outputs.draws import by_chunks, guarded, one_side, over_the_draw
from dpverify.auditing.statistics.claim_test import Counts, judge
from dpverify.auditing.statistics.power import Event, Power, events, levels, power
from dpverify.errors import ClusterError, DrawError, require
from dpverify.guarantee import claimed_epsilon
from dpverify.privacy import Pair, WhiteBox
from dpverify.sampling.words import ReplayableWords
from dpverify.visible import raised

__all__ = ["Attack", "attack", "audit", "verdict"]

CHUNK = 500
"""Draws that share a stream of words, named by their place: no result depends on the workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Raw evidence: counts for each pair and event, and for the first pair's ROC."""

    counts: tuple[tuple[Counts, ...], ...]
    roc: tuple[Counts, ...]


def audit(
    mechanism: WhiteBox,
    *,
    delta: Fraction,
    alpha: float = 0.01,
    draws: int = 10_000,
    seed: int = 0,
    workers: int = -1,
    redraw: bool | None = None,
    time_limit: float = 10.0,
) -> Finding:
    """Attack a mechanism at its worst pairs, and say what that shows of its claim.

    Parameters
    ----------
    mechanism : audited through its `release`, one data set a call
    delta : at which ε is bounded below; the whole claimed curve is tested
    alpha : level of all that is said
    draws, seed, workers, time_limit : as for `attack`
    redraw : as for `attack`; by default if the mechanism's guarantee is over the draw

    Raises
    ------
    DPVerifyError
        As for `attack`; also where the claim has no ε at this delta.
    """
    curve, pairs = mechanism.privacy(), mechanism.worst_pairs()
    claimed = claimed_epsilon(curve, delta)
    require(math.isfinite(claimed), "delta", delta, "one at which the claim has a finite epsilon")
    shared = levels(alpha, len(pairs))
    tests = events(curve, delta, draws, shared[0][0])
    redraw = over_the_draw(mechanism) if redraw is None else redraw
    found = attack(
        mechanism,
        draws=draws,
        seed=seed,
        tests=tests,
        workers=workers,
        redraw=redraw,
        time_limit=time_limit,
    )
    judged = [
        (judge(counts, curve, delta, level, ordering=event.ordering), pair, event, counts)
        for pair, row, own in zip(pairs, found.counts, shared, strict=True)
        for event, counts, level in zip(tests, row, own, strict=True)
    ]
    # The strongest: a refutation before none, then the larger bound, then the first.
    best, pair, event, counts = max(
        judged, key=lambda case: (case[0].refuted_at is not None, case[0].epsilon_lower)
    )
    in_order = shared[0][: len(tests) // 2]
    promised = power(curve, Fraction(claimed), delta, draws, in_order)
    refuted = best.refuted_at is not None
    return Finding(
        audit="white-box",
        verdict=verdict(refuted, promised),
        statement=(
            f"At the pair “{pair.name}” {{{'−L' if event.swapped else 'L'} ≥ "
            f"{event.threshold:.4g}}} happened {counts.hits} times of {draws}, and "
            f"{counts.false_hits} times on the other side: ε ≥ {best.epsilon_lower:.4g} at this δ"
            + (f"; the claimed curve is refuted near ε = {best.refuted_at:.4g}" if refuted else "")
        ),
        level=alpha,
        pair=pair,
        epsilon_lower=max(case[0].epsilon_lower for case in judged),
        evidence={
            "event": event.name,
            "threshold": event.threshold,
            "swapped": event.swapped,
            "hits": counts.hits,
            "false_hits": counts.false_hits,
            "draws": draws,
            "refuted_at": best.refuted_at,
        },
        power={
            "noise_scale": promised.noise_scale,
            "smallest_excess": promised.smallest_excess,
            "reach": promised.reach,
        },
        replay=f"audit(mechanism, delta=Fraction('{delta}'), alpha={alpha}, draws={draws}, "
        f"seed={seed}, redraw={redraw})",
    )


def verdict(refuted: bool, promised: Power) -> Verdict:
    """Of an attack: one that would have found nothing that is asked has not run to any purpose."""
    if refuted:
        return "violation"
    blind = promised.reach is None and promised.noise_scale is None
    return "inconclusive" if blind else "no_violation_found"


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
    time_limit: float = 10.0,
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
    time_limit : seconds that one release, or the scoring of a chunk, may take

    Raises
    ------
    DrawError
        If the mechanism raises, can't be sent to a worker, or scores an output with no number.
    ClusterError
        As `parallel.spread`.
    """
    pairs = mechanism.worst_pairs()
    counts: list[tuple[Counts, ...]] = []
    curve_counts: tuple[Counts, ...] = ()
    for index, pair in enumerate(pairs):
        case = (seed, index, redraw, time_limit)
        try:
            own, other = _scores(workers, mechanism, pair, draws, case, progress)
        except (DrawError, ClusterError):
            raise
        except Exception as error:  # whatever a mechanism raises, or its pickling
            raise DrawError(
                f"{type(mechanism).__name__} can't be attacked at the pair “{pair.name}”: "
                f"{raised(error)}"
            ) from error
        counts.append(
            tuple(_count(own, other, event.threshold, swapped=event.swapped) for event in tests)
        )
        if index == 0:
            curve_counts = tuple(_count(own, other, t, swapped=False) for t in roc)
    return Attack(counts=tuple(counts), roc=curve_counts)


def _scores(
    workers: int,
    mechanism: WhiteBox,
    pair: Pair,
    draws: int,
    case: tuple[int, int, bool, float],
    progress: Callable[[int], None],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the outputs on each side."""
    seed, index, redraw, time_limit = case
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    tasks = [
        (mechanism, pair, side, size, redraw, (seed, "white-box", index, side, number), time_limit)
        for side in (0, 1)
        for number, size in enumerate(sizes)
    ]
    chunks = []
    for chunk in by_chunks(_chunk, tasks, workers=workers, time_limit=time_limit):
        chunks.append(chunk)
        progress(chunk.size)
    scores = np.concatenate(chunks)
    # Infinite scores are outputs that one side can't give; what is no number has no side.
    due = (2 * draws,)
    require(scores.shape == due, "log_likelihood_ratio", scores.shape, f"of shape {due}")
    require(not np.isnan(scores).any(), "log_likelihood_ratio", math.nan, "a number")
    return scores[:draws], scores[draws:]


def _chunk(
    mechanism: WhiteBox,
    pair: Pair,
    side: int,
    size: int,
    redraw: bool,
    key: tuple[int, str, int, int, int],
    time_limit: float,
) -> NDArray[np.float64]:
    if not redraw:
        outputs = one_side(mechanism, pair, side, size, key, time_limit)

        def score() -> NDArray[np.float64]:
            return mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)

        return guarded(score, mechanism, pair, side, (), time_limit)
    rng = ReplayableWords(*key)
    data = pair.neighbour if side else pair.record
    scores: list[NDArray[np.float64]] = []

    def draw() -> None:
        for _ in range(size):
            fresh = mechanism.redrawn(int(rng.words(1)[0] >> np.uint64(11)))
            output = fresh.release(copy.deepcopy(data), rng=rng)[None]
            scores.append(fresh.log_likelihood_ratio(output, pair.record, pair.neighbour))

    guarded(draw, mechanism, pair, side, scores, time_limit)
    return np.concatenate(scores)


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
