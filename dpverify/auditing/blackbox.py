"""The black-box attack: only `release` is known.

Training draws are halved: scores are learned from the first half (`features.learned`), and one
event {score ≥ t} or {score ≤ t} of one side is chosen on the second by the delta-method lower bound
on ln((p − δ)/q), taken with more caution than the level asks for: the best of some thousand
estimates is good by luck too, and a limit of 3.5 standard errors is what luck seldom reaches. For
the same reason a simpler score is kept unless another is better by half a standard error. The
threshold of a score that wasn't fitted to the draws is chosen on all of them.

**Level.** The event is a function of the training draws alone, and the counted draws are
independent of them. Given the training draws the counts are therefore two binomials, and one exact
test at the full level judges them (`judging`): the lower limit of ε and the refutation of the
claimed curve come from one region, so that together they err with probability at most α. There is
nothing to correct for, however many scores were tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpverify.auditing.draws import both_sides, named
from dpverify.auditing.features import Features, Score, features, learned
from dpverify.auditing.findings import Finding, undrawn
from dpverify.auditing.judging import Counts, judge
from dpverify.auditing.two_binomials import Outcome
from dpverify.errors import DrawError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.mechanism import Mechanism, Pair

__all__ = ["COUNTED", "Choice", "black_box", "choose"]

COUNTED = "black-box counted"
"""Kind of the draws that are counted, as their streams are named."""
_TRAINING = "black-box training"
_CAUTION = 3.5  # standard errors, in the choice of the event
_THRESHOLDS = 400  # of a score that are tried, by their quantiles
_STEP = 1.2  # between the ranks of thresholds at each end
_DETECTION = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An event that was chosen on training draws.

    Attributes
    ----------
    columns : how an output becomes features
    score : of the features
    threshold, above : the event is {score ≥ threshold} if `above`, else {score ≤ threshold}
    swapped : whether the neighbour is the event's own side, on which it is more likely
    p, q : its probabilities on its own side and on the other, estimated
    bound : lower bound on ε that the draws that chose it promise, a cautious one; −∞ for none
    """

    columns: Features
    score: Score
    threshold: float
    above: bool
    swapped: bool
    p: float
    q: float
    bound: float

    @property
    def event(self) -> str:
        """In words."""
        return self.score.event(self.threshold, above=self.above)

    def count(self, outputs: NDArray[Any]) -> int:
        """How many of the outputs are in the event."""
        values = self.score(self.columns.matrix(outputs))
        inside = values >= self.threshold if self.above else values <= self.threshold
        return int(np.count_nonzero(inside))

    def outcome(self, record: NDArray[Any], neighbour: NDArray[Any]) -> Outcome:
        """Counts on fresh draws of both sides."""
        own, other = (neighbour, record) if self.swapped else (record, neighbour)
        return Outcome(
            hits=self.count(own),
            draws=len(own),
            false_hits=self.count(other),
            false_draws=len(other),
        )


def choose(
    record: NDArray[Any],
    neighbour: NDArray[Any],
    *,
    delta: float = 0.0,
    unpack: bool = True,
    classifiers: bool = True,
) -> Choice:
    """Learn scores from training outputs of both sides, and choose one event.

    Parameters
    ----------
    record, neighbour : outputs of shape (draws, …), at least 2 each
    delta : in [0, 1): the event is to show a large ε at it
    unpack : whether bytes are packed bits
    classifiers : whether scikit-learn's are tried, which take most of the time
    """
    least = min(len(record), len(neighbour))
    require(least >= 2, "training draws", least, "at least 2")
    columns = features(np.concatenate([record, neighbour]), unpack=unpack)
    own, other = columns.matrix(record), columns.matrix(neighbour)
    half = least // 2
    scores = learned(own[:half], other[:half], columns.names, classifiers=classifiers)
    tried = [_best(columns, score, own[half:], other[half:], delta) for score in scores]
    error, best = max(tried, key=lambda item: item[1].bound)
    # The simple ones come first.
    score = next(choice.score for _, choice in tried if choice.bound >= best.bound - error / 2)
    start = half if score.fitted else 0
    return _best(columns, score, own[start:], other[start:], delta)[1]


def black_box(
    mechanism: Mechanism,
    pair: Pair,
    *,
    delta: Fraction = Fraction(0),
    alpha: float = 0.05,
    draws: int = 10_000,
    seed: int,
    unpack: bool = True,
    workers: int = -1,
    time_limit: float = 10.0,
) -> Finding:
    """Attack a mechanism's claim through its outputs alone.

    Parameters
    ----------
    mechanism : drawn from by separate calls of `release`
    pair : neighbouring data sets
    delta : in [0, 1): the claimed δ, at which ε is bounded
    alpha : level in (0, 1)
    draws : counted on each side; as many more on each side are for training
    seed : of the replayable randomness
    unpack : whether bytes are packed bits
    workers, time_limit : as in `both_sides`; no effect on the result

    Returns
    -------
    Finding
        A violation if the event's counts refute the claimed curve; inconclusive if the mechanism
        couldn't be drawn from.
    """
    require(0 <= delta < 1, "delta", delta, "in [0, 1)")
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    require(draws >= 2, "draws", draws, "at least 2")

    def drawn(kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
        return both_sides(
            mechanism,
            pair,
            draws=draws,
            seed=seed,
            kind=kind,
            workers=workers,
            time_limit=time_limit,
        )

    replay = (
        f"black_box({named(mechanism)}, {pair.name!r}, {delta=!r}, {alpha=!r}, {draws=!r}, "
        f"{seed=!r}, {unpack=!r})"
    )
    try:
        choice = choose(*drawn(_TRAINING), delta=float(delta), unpack=unpack)
        outcome = choice.outcome(*drawn(COUNTED))
    except DrawError as error:
        return undrawn("black-box", error, level=alpha, pair=pair, replay=replay)
    return _judged(choice, outcome, mechanism.privacy(), pair, delta, alpha, replay)


def _judged(
    choice: Choice,
    outcome: Outcome,
    curve: PrivacyCurve,
    pair: Pair,
    delta: Fraction,
    alpha: float,
    replay: str,
) -> Finding:
    claimed = claimed_epsilon(curve, delta)
    counts = Counts(hits=outcome.hits, false_hits=outcome.false_hits, draws=outcome.draws)
    judgement = judge(counts, curve, delta, alpha)
    lower, refuted = judgement.epsilon_lower, judgement.refuted_at is not None
    own, other = ("neighbour", "record") if choice.swapped else ("record", "neighbour")
    counted = (
        f"{choice.event}: {outcome.hits} of {outcome.draws} on the {own}, "
        f"{outcome.false_hits} of {outcome.false_draws} on the {other}"
    )
    verdict = "refutes the claim" if refuted else "does not refute the claim"
    return Finding(
        audit="black-box",
        verdict="violation" if refuted else "no_violation_found",
        statement=(
            f"{counted}. That {verdict} of ε = {claimed:.6g} at δ = {float(delta):g}: "
            f"ε is at least {lower:.4f}, at level {alpha:g}."
        ),
        level=alpha,
        pair=pair,
        epsilon_lower=lower,
        evidence={
            "event": choice.event,
            "own side": own,
            "hits": outcome.hits,
            "draws": outcome.draws,
            "false hits": outcome.false_hits,
            "false draws": outcome.false_draws,
            "p": outcome.hits / outcome.draws,
            "q": outcome.false_hits / outcome.false_draws,
            "claimed epsilon": claimed,
            "delta": delta,
        },
        power=_power(choice, claimed, float(delta), alpha, outcome.draws),
        replay=replay,
    )


def _power(
    choice: Choice, claimed: float, delta: float, alpha: float, draws: int
) -> dict[str, float]:
    """What the chosen event promised before it was counted: planning, by the delta method.

    `expected bound` is reached with probability 0.99 if the training estimates are right;
    `smallest epsilon found` is the least true ε that would have been told from the claimed one with
    that probability, had the event's probability on the other side been as estimated.
    """
    z = float(-ndtri(alpha)) - float(ndtri(1 - _DETECTION))
    q = max(choice.q, 1 / draws)

    def error(p: float) -> float:
        excess = max(p - delta, 1 / draws)
        return math.sqrt(p * (1 - p) / (draws * excess**2) + (1 - q) / (draws * q))

    p = max(choice.p, 1 / draws)
    excess = max(p - delta, 1 / draws)
    expected = max(0.0, math.log(excess / q) - z * error(p))
    power = {"probability": _DETECTION, "expected bound": expected}
    # On the event p = e^ε q + δ; at most 1.
    low, high = claimed, math.log((1 - delta) / q)
    if high - z * error(1.0) <= claimed:
        return power | {"smallest epsilon found": math.inf}
    while high - low > 1e-6:
        middle = (low + high) / 2
        found = middle - z * error(min(math.exp(middle) * q + delta, 1.0)) > claimed
        low, high = (low, middle) if found else (middle, high)
    return power | {"smallest epsilon found": high}


def _best(
    columns: Features, score: Score, record: NDArray[Any], neighbour: NDArray[Any], delta: float
) -> tuple[float, Choice]:
    """The standard error of the largest cautious bound of a score's events, and that event."""
    sides = np.sort(score(record)), np.sort(score(neighbour))
    values = np.sort(np.concatenate(sides))
    thresholds = np.unique(values[_ranks(values.size)])
    tried = []
    for above, swapped in product((True, False), (False, True)):
        own, other = sides[::-1] if swapped else sides
        hits, false_hits = (_counts(side, thresholds, above) for side in (own, other))
        bounds, errors = _cautious(hits, own.size, false_hits, other.size, delta)
        place = int(np.argmax(bounds))
        choice = Choice(
            columns=columns,
            score=score,
            threshold=float(thresholds[place]),
            above=above,
            swapped=swapped,
            p=float(hits[place] / own.size),
            q=float(false_hits[place] / other.size),
            bound=float(bounds[place]),
        )
        tried.append((float(errors[place]), choice))
    return max(tried, key=lambda item: item[1].bound)


def _ranks(size: int) -> NDArray[np.int64]:
    """Ranks that are tried: evenly spaced, ever closer at both ends, for rare values may tell."""
    steps = math.ceil(math.log(size) / math.log(_STEP))
    near = np.geomspace(1, size, steps + 1).astype(np.int64) - 1
    middle = np.arange(0, size, max(1, size // _THRESHOLDS))
    return np.unique(np.concatenate([near, middle, size - 1 - near]))


def _counts(
    values: NDArray[np.float64], thresholds: NDArray[np.float64], above: bool
) -> NDArray[np.int64]:
    """How many of the sorted values are in each event."""
    if above:
        return values.size - np.searchsorted(values, thresholds, side="left")
    return np.searchsorted(values, thresholds, side="right")


def _cautious(
    hits: NDArray[np.int64], n: int, false_hits: NDArray[np.int64], m: int, delta: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The statistic T of `two_binomials` for another z, and its standard error √V."""
    share = hits / n
    excess = share - delta
    shifted = false_hits + _CAUTION**2 / 4
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(share * (1 - share) / (n * excess**2) + 1 / shifted)
        bounds = np.log(excess) - np.log(shifted / m) - _CAUTION * errors
    return np.where(excess > 0, bounds, -math.inf), errors
