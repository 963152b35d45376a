"""Proposals, and how they are confirmed: what a few runs suggest, counted on fresh draws.

A few runs of code that we don't control prove nothing about its law. So a check that looks inside
(at the noise that was asked for, say) only *proposes*: a pair of neighbours and, where its model
gives one, an event of the output. `confirm` counts that event on fresh draws of `release` itself
and judges the counts by the exact test of two binomials. Where there is no event, one is chosen on
training draws, as by the black-box attack.

**Level.** Pair and event are decided before the counted draws and independently of them, so that
one test at the check's whole level accuses a true claim with probability at most that level,
whatever led to the proposal and however wrong its model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding, NoiseEventEvidence, NoiseEvidence
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.outputs.samples import CHUNK, by_chunks, releaser, sample_pair
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import curve_lines, judge, refuted_part
from dpverify.auditing.statistics.power import unlucky
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.data.domain import is_sparse
from dpverify.errors import PASSING, DrawError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords

__all__ = ["Event", "Plan", "Proposal", "confirm", "numbers", "planned"]

_TIMES = (1, 2, 4, 8)
"""Multiples of the draws that a confirmation may take."""
_RARE = 40  # losses of the model that an event holds at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A property of one release, or of what it raised.

    Attributes
    ----------
    name : in words
    holds : whether a release has it; gets the exception where one was raised
    """

    name: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an event is counted, decided before any draw.

    Attributes
    ----------
    threshold : t, in nats, of the event {loss ≥ t}
    ordering : δ′ of the test (`claim_test`)
    times : multiple of the draws that are made
    found : whether that refutes the claim with probability 0.99, if the model is right
    promise : what the limit of its probability has beyond the claim, at the limit of the other's
    """

    threshold: float
    ordering: float
    times: int
    found: bool
    promise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Where a violation may be, and by what it would show.

    Attributes
    ----------
    pair : neighbours
    reason : why, in words
    evidence : of the model, for the finding
    event : more likely on its own side; None where it is chosen on training draws
    swapped : whether the neighbour is the event's own side
    plan : how it is counted; None for as many draws as there are, ordered for the claimed δ
    """

    pair: Pair
    reason: str
    evidence: NoiseEvidence
    event: Event | None = None
    swapped: bool = True
    plan: Plan | None = None


def planned(losses: NDArray[np.float64], claim: PrivacyCurve, config: AuditConfig) -> Plan:
    """The threshold of a privacy loss at which most is above the claim, and the draws it takes.

    Planning: a loss drawn by a wrong model costs power alone.

    Parameters
    ----------
    losses : of outputs of the event's own side, drawn by the model
    claim : what is tested
    config : of its draws on each side a multiple may be taken
    """
    delta, draws, level = config.delta_for(claim), config.draws, config.alpha
    tested = curve_lines(claim, delta)
    lines = np.array(tested)
    falling = np.sort(losses)[::-1]
    count = np.arange(1, losses.size + 1)
    p = count / losses.size
    # Under the other side's law the probability of what has loss L is e^−L times as large.
    q = np.minimum(np.cumsum(np.exp(-falling)) / losses.size, 1.0)
    # Of equal losses an event has all.
    ends = np.searchsorted(-falling, -falling + 1e-9, side="right") - 1
    ends = np.unique(ends[count >= min(_RARE, losses.size)])
    for times in _TIMES:
        least, most = (_limit(x[ends], times * draws, level, s) for x, s in ((p, -1), (q, 1)))
        allowed = lines[:, :1] * most + lines[:, 1:]
        excess = least - allowed.min(axis=0)
        best = int(np.argmax(excess))
        slope, base = lines[int(np.argmin(allowed[:, best]))]
        # An ordering needs some p − δ′ to speak of; the lines of complements have none.
        ordering = min(float(base) if slope >= 1 else float(delta), 0.99)
        place = int(ends[best])
        counts = unlucky(float(p[place]), float(q[place]), times * draws)
        found = counts.refutes(tested, alpha=level, delta=ordering)
        if found or times == _TIMES[-1]:
            break
    edge = float(falling[place])
    return Plan(
        # Round-off must not take away what stands at the threshold itself.
        threshold=edge - 1e-6 * (1 + abs(edge)),
        ordering=ordering,
        times=times,
        found=found,
        promise=float(excess[best]),
    )


def _limit(share: NDArray[np.float64], draws: int, level: float, sign: int) -> NDArray[np.float64]:
    """Wilson's limit of a probability whose share is observed, in doubles."""
    z = max(1.0, -float(scipy.special.ndtri(level)))
    spread = np.sqrt(share * (1 - share) / draws + z**2 / (4 * draws**2))
    middle = share + z**2 / (2 * draws)
    return np.asarray((middle + sign * z * spread) / (1 + z**2 / draws))


def confirm(
    mechanism: Mechanism, proposal: Proposal, audit: AuditKind, config: AuditConfig
) -> Finding:
    """Count what is proposed on fresh draws: a violation if they refute the claim.

    Parameters
    ----------
    mechanism : drawn from by separate calls of `release`
    proposal : decided without the draws that are counted
    audit : the kind that proposes, which names the streams of words
    config : a plan's multiple of its draws is made

    Raises
    ------
    DrawError
        If a release is late; where the event is chosen on training draws, as `sample_pair`.
    """
    pair, plan, swapped = proposal.pair, proposal.plan, proposal.swapped
    curve = mechanism.privacy()
    delta = config.delta_for(curve)
    if proposal.event is None:
        training = sample_pair(mechanism, pair, config, f"{audit} training")
        choice = choose(*training, delta=float(delta), classifiers=False)
        counted = sample_pair(mechanism, pair, config, f"{audit} counted", like=training[0])
        counts = choice.count(*counted)
        event, swapped = choice.event, choice.swapped
    else:
        event, draws = proposal.event.name, config.draws * (plan.times if plan else 1)
        sides = _hits(mechanism, pair, draws, proposal.event, f"{audit} counted", config)
        hits, false_hits = sides[::-1] if swapped else sides
        counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
    ordering = plan.ordering if plan else None
    judged = judge(counts, curve, delta, config.alpha, ordering=ordering)
    # An event that isn't more likely on its own side is none of what was proposed.
    refuted = judged.refuted_at is not None
    own, other = ("neighbour", "record") if swapped else ("record", "neighbour")
    said = "refutes" if refuted else "doesn't refute"
    reached = plan is None or plan.found
    few = "" if refuted or reached else f" {counts.draws} draws are too few to tell."
    return Finding(
        audit=audit,
        verdict="violation" if refuted else "no_violation_found",
        statement=(
            f"{display_name(mechanism)}, at the pair “{pair.name}”: {proposal.reason}. On fresh "
            f"draws, {event}: {counts.hits} of {counts.draws} on the {own}, {counts.false_hits} of "
            f"{counts.draws} on the {other}, which {said} "
            f"{refuted_part(judged, curve, delta)}.{few}"
        ),
        level=config.alpha,
        pair=pair,
        epsilon_lower=judged.epsilon_lower,
        evidence=NoiseEventEvidence(
            distance=proposal.evidence.distance,
            claimed_epsilon=proposal.evidence.claimed_epsilon,
            event=event,
            swapped=swapped,
            hits=counts.hits,
            draws=counts.draws,
            false_hits=counts.false_hits,
            false_draws=counts.false_draws,
            refuted_at=judged.refuted_at,
        ),
    )


def numbers(released: Any) -> NDArray[np.float64] | None:
    """A release as an array of numbers; None where it is none, an exception say."""
    if isinstance(released, BaseException):
        return None
    try:
        output = np.asarray(released.toarray() if is_sparse(released) else released)
        return None if output.dtype.kind == "c" else output.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _hits(
    mechanism: Mechanism, pair: Pair, draws: int, event: Event, stream: str, config: AuditConfig
) -> tuple[int, int]:
    """How many releases of the record, and of the neighbour, have the event.

    They are released in turn, as by `both_sides`: a budget that ends falls on both alike.
    """
    sizes = [min(CHUNK, draws - start) for start in range(0, draws, CHUNK)]
    case = (config.seed, stream, f"pair {pair.name!r}")
    tasks = [
        (mechanism, pair, size, event, (*case, number), config.time_limit)
        for number, size in enumerate(sizes)
    ]
    own, other = np.sum(list(by_chunks(_chunk, tasks, config)), axis=0).tolist()
    return own, other


def _chunk(
    mechanism: Mechanism,
    pair: Pair,
    size: int,
    event: Event,
    key: tuple[Any, ...],
    time_limit: float,
) -> tuple[int, int]:
    *case, number = key
    order = ReplayableWords(*case, "order", number).words(size) % 2
    seen: list[tuple[int, bool]] = []

    def draw() -> None:
        releases = [
            releaser(mechanism, data, size, ReplayableWords(*case, side, number))
            for side, data in enumerate((pair.record, pair.neighbour))
        ]
        for first in order.tolist():
            for side in (first, 1 - first):
                try:
                    released: Any = releases[side]()
                except (DrawError, *PASSING):
                    raise
                except BaseException as error:  # what it raises is an output too
                    released = error
                seen.append((side, event.holds(released)))

    foreign_code(draw, mechanism, pair, None, seen, time_limit)
    return seen.count((0, True)), seen.count((1, True))
