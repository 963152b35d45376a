"""The black-box attack: only `release` is known.

Twice as many draws as are counted are for training; the first quarter of them is enough where it
has an event of all outputs of one side and of none of the other. (Where the audit is to be brief,
half of all these do; and 200 others, or a thousand, or that quarter, where an event's cautious
bound is clearly above the claim, or a rare one exceeds it by 4 standard errors. Then no more are
counted than twice those that refute it even if the event is three standard errors less telling.)
Scores are learned from their first third (`_scores.learned`), and one event {score ≥ t} or
{score ≤ t} of one side is chosen on the rest, or on all of them where the score wasn't fitted to
them. Two rules choose. Of two pairs of which one is spare, the first part of the training draws,
that quarter or thousand, says which is attacked.

- The *largest ε*: by the delta-method lower bound on ln((p − δ)/q), taken with more caution than
  the level asks for: the best of some thousand estimates is good by luck too, and a limit of 3.5
  standard errors is what luck seldom reaches. For the same reason a simpler score is kept unless
  another is better by half a standard error.
- The *rare event*, which comes before it where it refutes the claim better. A δ that is too small
  for its mechanism shows in outputs that the other side hardly ever gives, a few of thousands: too
  few for any ratio. Of the events at which more than half of what the claim allows is its δ, the
  one is taken that exceeds the claim by most standard errors, if these are 2 or more. Such events
  are few, so that luck has little choice among them, and a pure claim has none.

**Power.** One event is tested, on as many draws and at nearly the same level as by a test that is
told the best event. What is lost is the small part of the level that the other kinds have, and the
runs in which another event looked better in training: few, as training has twice the draws.

**Level.** The event is a function of the training draws alone, and the counted draws are
independent of them. Given the training draws the counts are therefore two binomials, and one exact
test at the full level judges them (`claim_test`): the lower limit of ε and the refutation of the
claimed curve come from one region, so that together they err with probability at most α. There is
nothing to correct for, however many scores were tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
import scipy
from attrs import evolve
from numpy.typing import NDArray

from dpverify.auditing.attacks._scores import Score, learned
from dpverify.auditing.attacks.base import HELD, Attack, Target, counted
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import EventEvidence, Finding, undrawn
from dpverify.auditing.formatting import at_least, exactly
from dpverify.auditing.outputs.arrays import Drawn, raised_in
from dpverify.auditing.outputs.features import Features, Matrix, features
from dpverify.auditing.outputs.samples import CHUNK, Sampled, sampled
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.statistics.claim_test import judge, refuted_part
from dpverify.auditing.statistics.two_sample_binomial import Counts, Line, claim_lines
from dpverify.errors import DrawError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Pair, WhiteBox

__all__ = ["BlackBoxAttack", "Choice", "choose", "chosen", "most_telling"]

_TRAINING = "black-box training"
_CAUTION = 3.5  # standard errors, in the choice of the event
_THRESHOLDS = 400  # of a score that are tried, by their quantiles, with their neighbours
_TRAINED = 2  # training draws for each that is counted
_FIRST = 4  # of this many parts of the training draws the first may do
_GLANCE = 200  # training draws on a side before all others, where the audit is to be brief
_FITTED = 3  # of this many parts of the training draws scores are fitted to the first
_ERRORS = 3.0  # standard errors by which an event may be less telling than training has it
_ABOVE = 0.2  # nats above the claim, beyond which training is long enough for a brief audit
_RARE = 4.0  # standard errors above what the claim allows a rare event, likewise
_CLEAR = 2.0  # standard errors by which a rare event must exceed the claim
_FEW = 1.0  # z of the ordering for a rare event
_UNSEEN = 2.0  # and for an event that training never showed on the other side
_SURE = 8.0  # standard errors beyond which a pair needs to show no more
_SLIGHT = 0.1  # nats by which a simple pair may be less telling
_STEP = 1.2  # between the ranks of thresholds at each end
_DETECTION = 0.99
_LEAST, _TRIED = 1e-3, 500  # nats above the claim, and how many, up to what so many draws can show
_KINDS = tuple(product((True, False), (False, True)))
"""Kinds of event: whether the score is above the threshold, whether the neighbour's it is."""


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
    error : standard error of the ln((p − δ)/q) that they give, with caution
    bound : lower bound on ε that the draws that chose it promise, a cautious one; −∞ for none
    excess : over the claim, in standard errors of the draws that chose it; −∞ for none
    rare : whether it was chosen as a rare event
    usual : where a rare event was chosen, the choice of the largest ε
    like : one of the outputs that it was learned from, for `Sampled.told_apart`
    """

    columns: Features
    score: Score
    threshold: float
    above: bool
    swapped: bool
    p: float
    q: float
    error: float
    bound: float
    excess: float
    rare: bool = False
    usual: Choice | None = None
    like: NDArray[Any] | None = None

    @property
    def caution(self) -> float | None:
        """That of the test's ordering, None for the level's own.

        It is small where few false hits are expected: of a rare event, and of one that training
        never showed on the other side.
        """
        if self.rare:
            return _FEW
        return _UNSEEN if self.q == 0 else None

    @property
    def event(self) -> str:
        """In words."""
        return self.score.event(self.threshold, above=self.above)

    def hits(self, outputs: NDArray[Any]) -> int:
        """How many of the outputs are in the event."""
        values = self.score(self.columns.matrix(outputs))
        inside = values >= self.threshold if self.above else values <= self.threshold
        return int(np.count_nonzero(inside))

    def count(self, record: NDArray[Any], neighbour: NDArray[Any]) -> Counts:
        """Counts on fresh draws of both sides."""
        own, other = (neighbour, record) if self.swapped else (record, neighbour)
        return Counts(
            hits=self.hits(own),
            draws=len(own),
            false_hits=self.hits(other),
            false_draws=len(other),
        )


def choose(
    record: NDArray[Any],
    neighbour: NDArray[Any],
    *,
    delta: float = 0.0,
    lines: Sequence[Line] = (),
    unpack: bool = True,
    classifiers: bool = True,
) -> Choice:
    """Learn scores from training outputs of both sides, and choose one event.

    Parameters
    ----------
    record, neighbour : outputs of shape (draws, …), at least 2 each
    delta : in [0, 1): the event is to show a large ε at it
    lines : of a claim that a rare event may refute better
    unpack : whether bytes are packed bits
    classifiers : whether scikit-learn's are tried, which take most of the time
    """
    least = min(len(record), len(neighbour))
    require(least >= 2, "training draws", least, "at least 2")
    columns = features(np.concatenate([record, neighbour]), unpack=unpack)
    own, other = columns.matrix(record), columns.matrix(neighbour)
    third = max(least // _FITTED, 1)
    scores = learned(own[:third], other[:third], columns.names, classifiers=classifiers)
    tried, rare = [], []
    for score in scores:
        start = third if score.fitted else 0
        events = _Events.of(columns, score, own[start:], other[start:], delta, lines)
        tried.append(events.largest())
        rare.append(events.rarest())
    best = max(tried, key=lambda choice: choice.bound)
    # The simple ones come first.
    simple = next(choice for choice in tried if choice.bound >= best.bound - best.error / 2)
    clear = max(rare, key=lambda choice: choice.excess)
    rarest = clear.excess >= max(simple.excess, _CLEAR)
    usual = replace(simple, like=record[:1])
    return replace(clear, rare=True, usual=usual, like=record[:1]) if rarest else usual


def chosen(target: Target, pair: Pair, config: AuditConfig, *, unpack: bool = True) -> Choice:
    """The event that training draws choose, which all attacks on outputs share.

    Raises
    ------
    DrawError
        If the mechanism can't be drawn from.
    """
    return _trained(target, pair, config, unpack, len(_stages(config)) - 1)[0]


def most_telling(target: Target, config: AuditConfig) -> Pair:
    """The pair at which the first training draws exceed the claim by most standard errors.

    Where that isn't clear of any, the pair of the largest bound. A spare one, which is simple, is
    taken unless another is better by a standard error, or by 0.1 in its bound, and if 8 errors
    leave no doubt. One that can't be drawn from is taken at once, to be reported; and so is one
    that needs no more draws in a brief audit. Of equals the last one.
    """
    best, most = target.drawable[0], (0.0, -math.inf)
    for pair in target.drawable if len(target.drawable) > 1 else ():
        try:
            choice, _ = _trained(target, pair, config, True, 0)
        except DrawError:
            return pair
        if _tells(choice, target.claim, config):
            return pair
        simple = pair.name in target.spare
        excess = choice.excess + simple
        bound = (choice.usual or choice).bound + _SLIGHT * simple
        shown = (min(excess, _SURE), 0.0) if excess > _CLEAR else (_CLEAR, bound)
        if shown >= most:
            best, most = pair, shown
    return best


def _stages(config: AuditConfig) -> Sequence[int]:
    """How many training draws on a side there are whenever an event is chosen."""
    draws = config.draws if config.brief else _TRAINED * config.draws
    first = max(draws // _FIRST // CHUNK, 1) * CHUNK
    sizes = (CHUNK, first, draws) if config.brief else (first, draws)
    return sorted({min(size, draws) for size in sizes})


def _trained(
    target: Target, pair: Pair, config: AuditConfig, unpack: bool, stage: int
) -> tuple[Choice, Sampled | None]:
    """The event that is chosen at this stage, or at an earlier one that suffices, and the draws.

    There are none after the last one.
    """
    claim, stages = target.claim, _stages(config)
    delta = config.delta_for(claim)
    lines = claim_lines(min(claimed_epsilon(claim, delta), 50.0), float(delta))[:1]
    event = partial(choose, delta=float(delta), lines=lines, unpack=unpack)
    draw = partial(sampled, target.mechanism, pair, config)

    def made() -> tuple[Choice, Sampled | None]:
        begun: Sequence[tuple[Drawn, Drawn]] = ()
        if stage:
            choice, earlier = _trained(target, pair, config, unpack, stage - 1)
            if earlier is None or _suffices(choice, claim, config):
                return choice, None
            begun = earlier.chunks
        elif config.brief:
            glance = draw(f"{_TRAINING}, glance", draws=min(_GLANCE, stages[-1]))
            choice = event(*glance.outputs, classifiers=False)
            if _tells(choice, claim, config):
                return choice, None
        last = stage == len(stages) - 1
        drawn = draw(_TRAINING, draws=stages[stage], begun=begun)
        return event(*drawn.outputs, classifiers=last), None if last else drawn

    return target.once(
        (_TRAINING, unpack, stage),
        pair,
        config,
        made,
        small=lambda made: made[1] is None or made[1].size <= HELD,
    )


def _suffices(choice: Choice, claim: PrivacyCurve, config: AuditConfig) -> bool:
    """Whether no event is better, or none is needed."""
    return (choice.p == 1 and choice.q == 0) or _tells(choice, claim, config)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBoxAttack(Attack):
    """Attacks a claim through the outputs alone, at each pair by an equal share of the level.

    Beside the counted draws twice as many on each side are for training.

    Parameters
    ----------
    unpack : whether bytes are packed bits
    """

    name: ClassVar[AuditKind] = "black-box"
    weight: ClassVar[float] = 36.0
    everywhere: ClassVar[bool] = False
    shares: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    unpack: bool = True

    def unasked(self, mechanism: Any) -> bool:
        return not isinstance(mechanism, WhiteBox)

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation where an event's counts refute the claim; inconclusive without draws."""
        require(config.draws >= 2, "draws", config.draws, "at least 2")
        pairs, claim = target.drawable, target.claim
        config = config.at_level(config.alpha / len(pairs))
        attack = partial(self._finding, target, claim, config)
        return list(target.attacked(pairs, attack))

    def _finding(
        self, target: Target, claim: PrivacyCurve, config: AuditConfig, pair: Pair
    ) -> Finding:
        try:
            choice = chosen(target, pair, config, unpack=self.unpack)
            draws = _enough(choice, claim, config)
            outputs = counted(target, pair, evolve(config, draws=draws)).told_apart(choice.like)
        except DrawError as error:
            return undrawn(self.name, error, level=config.alpha, pair=pair)
        delta = config.delta_for(claim)
        finding = _judged(choice, choice.count(*outputs), claim, pair, delta, config.alpha)
        told = raised_in(*outputs)
        return replace(finding, statement=f"{finding.statement} {told}") if told else finding


def _tells(choice: Choice, claim: PrivacyCurve, config: AuditConfig) -> bool:
    """Whether a brief audit needs no other event: this one is clearly above the claim."""
    claimed = claimed_epsilon(claim, config.delta_for(claim))
    clear = choice.excess > _RARE if choice.rare else choice.bound > claimed + _ABOVE
    return bool(config.brief) and clear


def _enough(choice: Choice, claim: PrivacyCurve, config: AuditConfig) -> int:
    """Draws to count: all, or as many as a brief audit needs, by training alone."""
    if not _tells(choice, claim, config):
        return config.draws
    delta, draws = config.delta_for(claim), _GLANCE
    while 2 * draws < config.draws:
        hits, false_hits = choice.p * draws, max(choice.q, 1 / _GLANCE) * draws
        counts = Counts(
            hits=max(0, math.floor(hits - _ERRORS * math.sqrt(hits * (1 - choice.p)))),
            draws=draws,
            false_hits=min(draws, math.ceil(false_hits + _ERRORS * math.sqrt(false_hits))),
            false_draws=draws,
        )
        judged = judge(counts, claim, delta, config.alpha, caution=choice.caution)
        if judged.refuted_at is not None:
            return 2 * draws
        draws *= 2
    return config.draws


def _judged(
    choice: Choice,
    counts: Counts,
    curve: PrivacyCurve,
    pair: Pair,
    delta: Fraction,
    alpha: float,
) -> Finding:
    claimed = claimed_epsilon(curve, delta)
    judgement = judge(counts, curve, delta, alpha, caution=choice.caution)
    lower, refuted = judgement.epsilon_lower, judgement.refuted_at is not None
    own, other = ("neighbour", "record") if choice.swapped else ("record", "neighbour")
    counted = (
        f"{choice.event}: {counts.hits} of {counts.draws} on the {own}, "
        f"{counts.false_hits} of {counts.false_draws} on the {other}"
    )
    part = refuted_part(judgement, curve, delta)
    place = f"δ = {exactly(delta)}"
    bounded = "ε" if place in part else f"ε at {place}"
    verb = "refutes" if refuted else "does not refute"
    return Finding(
        audit="black-box",
        verdict="violation" if refuted else "no_violation_found",
        statement=(
            f"{counted}. That {verb} {part}: {bounded} is at least {at_least(lower, '.4f')}, "
            f"at level {alpha:g}."
        ),
        level=alpha,
        pair=pair,
        epsilon_lower=lower,
        evidence=EventEvidence(
            event=choice.event,
            swapped=choice.swapped,
            hits=counts.hits,
            draws=counts.draws,
            false_hits=counts.false_hits,
            false_draws=counts.false_draws,
            refuted_at=judgement.refuted_at,
        ),
        power=_power(choice, claimed, float(delta), alpha, counts.draws),
    )


def _power(
    choice: Choice, claimed: float, delta: float, alpha: float, draws: int
) -> dict[str, float]:
    """What the chosen event promised before it was counted: planning, by the delta method.

    `expected_bound` is reached with probability 0.99, by the errors of training and of counting;
    `smallest_epsilon_found` is the least true ε that would have been told from the claimed one with
    that probability, on the event p = e^ε q + δ: whether a larger ε comes with a larger p, or with
    a smaller q, as of less noise in a tail. Of these it is the larger number.
    """
    of_level, of_luck = (float(-scipy.special.ndtri(x)) for x in (alpha, 1 - _DETECTION))

    def error(p: float, q: float) -> float:
        excess = max(p - delta, 1 / draws)
        return math.sqrt(p * (1 - p) / (draws * excess**2) + (1 - q) / (draws * q))

    p, q = max(choice.p, 1 / draws), max(choice.q, 1 / draws)
    excess = max(p - delta, 1 / draws)
    expected = 0.0
    if math.isfinite(choice.bound):
        cautious = choice.bound + _CAUTION * choice.error  # ln((p − δ)/q) with some false hits more
        own = error(p, min(excess * math.exp(-cautious), 1.0))
        both = math.hypot(own, choice.error)
        expected = max(0.0, cautious - of_level * own - of_luck * both)

    def found(epsilon: float) -> bool:
        larger = min(math.exp(min(epsilon, 700.0)) * q + delta, 1.0)
        smaller = max(excess * math.exp(-epsilon), 1 / draws)
        return epsilon - (of_level + of_luck) * max(error(larger, q), error(p, smaller)) > claimed

    tried = (claimed + np.geomspace(_LEAST, math.log(draws), _TRIED)).tolist()
    return {
        "probability": _DETECTION,
        "expected_bound": expected,
        "smallest_epsilon_found": next(filter(found, tried), math.inf),
    }


@dataclass(frozen=True, slots=True)
class _Events:
    """All events of a score that are tried, of shape (kinds, thresholds), with their counts.

    The kinds are {score ≥ t} and {score ≤ t}, of either side.
    """

    columns: Features
    score: Score
    thresholds: NDArray[np.float64]
    shares: NDArray[np.float64]
    false_shares: NDArray[np.float64]
    bounds: NDArray[np.float64]
    errors: NDArray[np.float64]
    excesses: NDArray[np.float64]
    rare: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        columns: Features,
        score: Score,
        record: Matrix,
        neighbour: Matrix,
        delta: float,
        lines: Sequence[Line],
    ) -> _Events:
        sides = np.sort(score(record)), np.sort(score(neighbour))
        values = np.sort(np.concatenate(sides), kind="stable")  # merges two sorted runs
        thresholds = _thresholds(values)
        sizes = np.array([sides[swapped].size for _, swapped in _KINDS])[:, None]
        false_sizes = np.array([sides[not swapped].size for _, swapped in _KINDS])[:, None]
        hits = np.stack([_counts(sides[swapped], thresholds, above) for above, swapped in _KINDS])
        false_hits = np.stack(
            [_counts(sides[not swapped], thresholds, above) for above, swapped in _KINDS]
        )
        bounds, errors = _cautious(hits, sizes, false_hits, false_sizes, delta)
        excesses, rare = _beyond(hits, sizes, false_hits, false_sizes, lines)
        return cls(
            columns=columns,
            score=score,
            thresholds=thresholds,
            shares=hits / sizes,
            false_shares=false_hits / false_sizes,
            bounds=bounds,
            errors=errors,
            excesses=excesses,
            rare=rare,
        )

    def largest(self) -> Choice:
        """The event of the largest cautious bound."""
        return self._choice(int(np.argmax(self.bounds)))

    def rarest(self) -> Choice:
        """The rare event that exceeds the claim by most; any, with no excess, where none is."""
        return self._choice(int(np.argmax(np.where(self.rare, self.excesses, -math.inf))))

    def _choice(self, place: int) -> Choice:
        kind, threshold = divmod(place, self.thresholds.size)
        above, swapped = _KINDS[kind]
        return Choice(
            columns=self.columns,
            score=self.score,
            threshold=float(self.thresholds[threshold]),
            above=above,
            swapped=swapped,
            p=float(self.shares.flat[place]),
            q=float(self.false_shares.flat[place]),
            error=float(self.errors.flat[place]),
            bound=float(self.bounds.flat[place]),
            excess=float(self.excesses.flat[place]),
        )


@lru_cache(maxsize=64)
def _ranks(size: int) -> NDArray[np.int64]:
    """Ranks of so many values: evenly spaced, ever closer at both ends."""
    steps = math.ceil(math.log(size) / math.log(_STEP))
    near = np.geomspace(1, size, steps + 1).astype(np.int64) - 1
    middle = np.arange(0, size, max(1, size // _THRESHOLDS))
    return np.unique(np.concatenate([near, middle, size - 1 - near]))


def _thresholds(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those that are tried, of sorted scores. Rare values may tell most.

    With each value come those next to it, so that an event may begin right where a value that came
    often ends.
    """
    first = np.append(True, values[1:] > values[:-1])
    places = np.cumsum(first)[_ranks(values.size)]
    tried = np.zeros(np.count_nonzero(first) + 2, dtype=np.bool_)
    for beside in (-1, 0, 1):
        tried[places + beside] = True
    thresholds: NDArray[np.float64] = values[first][tried[1:-1]]
    return thresholds


def _counts(
    values: NDArray[np.float64], thresholds: NDArray[np.float64], above: bool
) -> NDArray[np.int64]:
    """How many of the sorted values are in each event."""
    if above:
        return values.size - np.searchsorted(values, thresholds, side="left")
    return np.searchsorted(values, thresholds, side="right")


def _beyond(
    hits: NDArray[np.int64],
    n: NDArray[np.int64],
    false_hits: NDArray[np.int64],
    m: NDArray[np.int64],
    lines: Sequence[Line],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """By how many standard errors p exceeds what the claim's lines allow; whether most is δ there.

    Half a false hit more stands for what a few draws didn't show.
    """
    if not lines:
        return np.full(hits.shape, -math.inf), np.zeros(hits.shape, dtype=np.bool_)
    share, leak = hits / n, (false_hits + 0.5) / m
    allowed, slopes, bases = (np.full(share.shape, value) for value in (1.0, 0.0, 1.0))
    for slope, base in lines:
        tighter = slope * leak + base < allowed
        slopes, bases = np.where(tighter, slope, slopes), np.where(tighter, base, bases)
        allowed = np.minimum(allowed, slope * leak + base)
    variance = (share * (1 - share) + 1 / n) / n + slopes**2 * (false_hits + 1) / m**2
    return (share - allowed) / np.sqrt(variance), bases > slopes * leak


def _cautious(
    hits: NDArray[np.int64],
    n: NDArray[np.int64],
    false_hits: NDArray[np.int64],
    m: NDArray[np.int64],
    delta: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The statistic T of `two_sample_binomial` for another z, and its standard error √V."""
    share = hits / n
    excess = share - delta
    shifted = false_hits + _CAUTION**2 / 4
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(share * (1 - share) / (n * excess**2) + 1 / shifted)
        bounds = np.log(excess) - np.log(shifted / m) - _CAUTION * errors
    return np.where(excess > 0, bounds, -math.inf), errors
