"""The grey-box check: what was asked of the noise source, against what changed without the noise.

The mechanism runs with a noise source that records each call and returns noise of our choice: none,
or one unit in one place. So the run without noise gives f(x), and a run for each of the m noise
variables gives the column of the matrix B in

    release(x) = f(x) + B·(s₁N₁, …, s_mN_m),

with the recorded scales s and N standard normal or Laplace. Let D = f(x′) − f(x) for a neighbour.

- If D isn't in the range of B, some outputs of x′ are none of x. The event: the output lies nearer
  to f(x′) than to f(x), in the part of D that no noise reaches.
- Normal: the least ‖v‖₂ with B·diag(s)·v = D is μ, and the pair's curve is the Gaussian one with μ.
  (Projecting on the row space of B·diag(s) leaves standard normal noise.)
- Laplace: any v with B·diag(s)·v = D makes the release a post-processing of m Laplace variables
  moved by v, so ε ≤ ‖v‖₁. If the columns of B are independent, v is unique and can be undone: the
  pair's curve is exactly that of Laplace noise on v. Else the least ‖v‖₁, by linear programming, is
  only an upper bound.

In the last two cases the event is {loss ≥ t} for the model's own privacy loss, which is the best
there is by the lemma of Neyman and Pearson; t and the draws are planned by simulating the model.

**A few runs prove nothing**: all this is a proposal. `proposals.confirm` counts the event on fresh
draws of `release`, and a violation is what these refute, at their level.

**Outside the model** is, and is said to be: a mechanism that draws from elsewhere (two runs without
noise at the same record differ, or no call was recorded); one whose calls differ between the
neighbours in number, distribution, scale or shape, as those of a correct sparse vector do; one
whose output isn't numbers, or not affine in the noise. Where the calls differ, the pair is proposed
all the same, with an event that is learned from training draws.

Least norms are computed in doubles and count as above the claim only by more than a relative 1e-9,
a D as outside the range of B by more than 1e-6.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.attacks._noise_model import (
    ROUND_OFF,
    Along,
    AtLeast,
    HasShape,
    LaplaceLoss,
    Loss,
    NormalLoss,
    Raised,
)
from dpverify.auditing.attacks._proposals import Event, Plan, Proposal, confirm, numbers, planned
from dpverify.auditing.attacks._recording import (
    Call,
    Recorder,
    RecordingGenerator,
    RecordingWords,
    recorded,
)
from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding, NoiseEvidence
from dpverify.auditing.outputs.foreign import alone, display_name, foreign_code
from dpverify.auditing.search import LOST, shrunk
from dpverify.auditing.settings import AuditKind
from dpverify.errors import PASSING, DrawError
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords
from dpverify.visible import raised

__all__ = ["MOST", "GreyBoxAttack"]

Vector = NDArray[Any]

MOST = 1024
"""Noise variables that are probed, one run each."""
_OUTSIDE = 1e-6
_RUNS = 20_000  # without noise, or with one unit of it, after which no more pairs are looked at
_LEAST = 8  # pairs beside the known ones that are looked at all the same
_PLANNED = 3  # pairs of those that were seen
_SHRINKS = 60  # simpler pairs that are tried
_PLACES = 3  # lines of the mechanism that a reason names

# How much a pair shows, the most last.
_FITS, _OUTSIDE_MODEL, _CALLS_DIFFER, _TOO_LITTLE, _ONE_SIDE, _NO_NOISE = range(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class GreyBoxAttack(Attack):
    """Looks for noise that doesn't cover what changes without it, and confirms it by fresh draws.

    The mechanism has `with_generator`, which takes numpy's generator, or rounded noise among its
    fields (`recorded`). Where data sets may be made (`Target.space`), extreme pairs and drawn ones
    are tried too, and what they show is shrunk. Of the one pair that is proposed up to 8 times the
    configured draws are counted, where the model says that it takes so many.

    Parameters
    ----------
    examples : pairs that are drawn
    """

    name: ClassVar[AuditKind] = "grey-box"
    counts_failures: ClassVar[bool] = True
    examples: int = 100

    def unasked(self, mechanism: Any) -> bool:
        # Of what draws its own randomness, or elsewhere, nothing is recorded.
        return all(
            getattr(mechanism, name, True) is not False for name in ("replayable", "recordable")
        )

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation where fresh draws confirm the proposal.

        None found where they don't, or where the model clears all pairs; else inconclusive, as some
        pair is outside the model.
        """
        mechanism = target.mechanism
        check = _Check.of(mechanism, config)
        best = self._most_telling(target, check, config)
        evidence = NoiseEvidence(distance=best.distance, claimed_epsilon=check.allowed)
        finding = Finding(
            audit=self.name,
            verdict="no_violation_found" if best.rank == _FITS else "inconclusive",
            statement=f"{display_name(mechanism)}, at the pair “{best.pair.name}”: {best.reason}",
            level=config.alpha,
            pair=best.pair,
            evidence=evidence,
            failed=best.failed,
        )
        if not best.proposed:
            return [finding]
        proposal = Proposal(
            pair=best.pair,
            reason=best.reason,
            event=best.event,
            plan=best.plan,
            evidence=evidence,
        )
        try:
            return [confirm(mechanism, proposal, self.name, config)]
        except DrawError as error:
            statement = f"{finding.statement}. Could not be confirmed: {error}"
            return [replace(finding, statement=statement, failed=True)]

    def _most_telling(self, target: Target, check: _Check, config: AuditConfig) -> _Seen:
        """What the pair shows that shows most."""
        pairs, space = list(target.pairs), target.space
        if space is not None:
            rng = ReplayableWords(config.seed, "grey-box search")
            most = self.examples // 4
            extremes = space.extremes(most)
            pairs += [*extremes, *space.drawn(self.examples, rng)]
            # More places than are tried: first those at which outputs move most without noise.
            swept = space.swept() if len(extremes) == most else ()
            pairs[len(target.pairs) : len(target.pairs)] = check.farthest(swept)[:most]
        seen: list[_Seen] = []
        lost = 0.0
        for pair in pairs:
            start = perf_counter()
            seen.append(check(pair))
            lost += perf_counter() - start if seen[-1].failed else 0.0
            if seen[-1].rank == _NO_NOISE or lost > LOST * config.time_limit:
                break
            if len(seen) >= len(target.pairs) + _LEAST and sum(one.runs for one in seen) > _RUNS:
                break
        # Plans are dear, and the farthest pairs promise most.
        first = sorted(seen, key=lambda one: (-one.rank, -one.distance))[:_PLANNED]
        best = max(map(check.planned, first), key=lambda one: (one.rank, one.promise, one.distance))
        if not best.proposed or space is None:
            return best
        least = best.promise / 2 if best.promise > 0 else best.promise
        left = iter(range(_RUNS // max(best.runs, 1)))

        def keeps(pair: Pair) -> bool:
            if next(left, None) is None:
                return False
            simpler = check.planned(check(pair))
            return simpler.rank == best.rank and simpler.promise >= least

        return check.planned(check(shrunk(best.pair, space, keeps, most=_SHRINKS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one pair shows, in so many runs; the distance is ‖v‖ in the noise's norm."""

    pair: Pair
    rank: int
    reason: str
    distance: float = 0.0
    loss: Loss | None = None
    event: Event | None = None
    plan: Plan | None = None
    failed: bool = False
    runs: int = 0

    @property
    def proposed(self) -> bool:
        """Whether there is something to confirm."""
        return self.rank >= _CALLS_DIFFER

    @property
    def promise(self) -> float:
        """How much is to be seen, by the plan."""
        return self.plan.promise if self.plan else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Output, flattened, with its shape, and what the noise source noted; or what was raised."""

    output: Vector
    shape: tuple[int, ...] | None
    recorder: Recorder
    raised: str

    def agrees(self, other: _Run) -> bool:
        """Whether two runs did the same."""
        same = self.raised == other.raised and self.shape == other.shape
        same = same and self.recorder.calls == other.recorder.calls
        return same and np.array_equal(self.output, other.output, equal_nan=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """The model at one pair after another."""

    mechanism: Mechanism
    function: Callable[[Any, Any], Any]
    source: Callable[[Vector | None], Any]
    claim: PrivacyCurve
    allowed: float
    config: AuditConfig

    @classmethod
    def of(cls, mechanism: Any, config: AuditConfig) -> _Check:
        """Records what the mechanism takes: numpy's generator, or words."""
        generated = hasattr(mechanism, "with_generator")
        claim = mechanism.privacy()
        return cls(
            mechanism=mechanism,
            function=mechanism.with_generator if generated else recorded(mechanism),
            source=RecordingGenerator if generated else RecordingWords,
            claim=claim,
            allowed=claimed_epsilon(claim, config.delta_for(claim)),
            config=config,
        )

    def __call__(self, pair: Pair) -> _Seen:
        """What the pair shows; a run that is late fails."""
        runs: list[Any] = []
        try:
            seen = partial(self._seen, pair, runs)
            limit = self.config.time_limit
            shown: _Seen = foreign_code(seen, self.mechanism, pair, None, runs, limit)
            return replace(shown, runs=len(runs))
        except DrawError as error:
            return _Seen(pair=pair, rank=_OUTSIDE_MODEL, reason=str(error), failed=True)

    def farthest(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """The pairs, those first whose outputs are farthest apart, in units of the first's noise.

        An order for more pairs than can be looked at: two runs each, where the model takes one for
        each noise variable. The noise is taken to be the same at all of them.
        """
        runs: list[_Run] = []

        def run(data: Any, noise: Vector | None = None) -> _Run:
            runs.append(_run(self.function, data, self.source(noise)))
            return runs[-1]

        def distances() -> list[float]:
            own = run(pairs[0].record)
            others = [run(pair.neighbour) for pair in pairs]
            calls, inverse = own.recorder.calls, None
            scales = np.concatenate([np.zeros(0), *(call.scale for call in calls)])
            if 0 < scales.size <= MOST and np.all(np.isfinite(scales)):
                matrix = _matrix(run, pairs[0], own, others[0], scales)
                inverse = None if matrix is None else np.linalg.pinv(matrix, rcond=1e-12)
            return [_apart_by(own, other, inverse) for other in others]

        if not pairs:
            return pairs
        try:
            limit = self.config.time_limit
            found = foreign_code(distances, self.mechanism, pairs[0], None, runs, limit)
        except DrawError:
            return pairs
        return [pairs[place] for place in sorted(range(len(pairs)), key=lambda at: -found[at])]

    def planned(self, seen: _Seen) -> _Seen:
        """With the event that is to be counted, where a loss is known."""
        if seen.loss is None or seen.plan is not None:
            return seen
        plan = planned(seen.loss.simulated(), self.claim, self.config)
        name = f"log-likelihood ratio of the noise ≥ {plan.threshold:.6g}"
        holds = AtLeast(seen.loss, plan.threshold, seen.loss.origin.size)
        return replace(seen, event=Event(name=name, holds=holds), plan=plan)

    def _seen(self, pair: Pair, runs: list[Any]) -> _Seen:  # noqa: C901  # a refusal a line
        def run(data: Any, noise: Vector | None = None) -> _Run:
            runs.append(self.source(noise))
            return _run(self.function, data, runs[-1])

        def say(rank: int, reason: str, **more: Any) -> _Seen:
            return _Seen(pair=pair, rank=rank, reason=reason, **more)

        def outside(reason: str, rank: int = _OUTSIDE_MODEL, **more: Any) -> _Seen:
            return say(rank, f"outside the model: {reason}", **more)

        own, other = run(pair.record), run(pair.neighbour)
        if not (own.agrees(run(pair.record)) and other.agrees(run(pair.neighbour))):
            return outside("it draws from elsewhere, as runs without noise at one record differ")
        if own.raised and other.raised:
            return outside(f"it raised {own.raised}")
        if own.raised or other.raised:
            side = "neighbour" if other.raised else "record"
            reason = f"without noise it raised {own.raised or other.raised} on the {side} alone"
            name = "it raises" if other.raised else "it doesn't raise"
            event = Event(name=name, holds=Raised(bool(other.raised)))
            return say(_ONE_SIDE, reason, event=event)
        if own.shape is None or other.shape is None:
            return outside("its output isn't an array of numbers")
        calls = own.recorder.calls
        differing = _difference(calls, other.recorder.calls)
        if own.shape != other.shape:
            reason = f"without noise the shape is {own.shape} or {other.shape}, by the data"
            event = Event(name=f"the shape is {other.shape}", holds=HasShape(other.shape))
            return say(_ONE_SIDE, f"{reason}; {differing}" if differing else reason, event=event)
        if differing:
            return outside(differing, _CALLS_DIFFER)
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            change = other.output - own.output
        if not np.all(np.isfinite(change)):
            return outside("an output without noise isn't finite")
        if not calls:
            reason = "no noise was asked for that can be recorded"
            if not np.any(change):
                return outside(reason)
            more = {"distance": math.inf, "event": _apart(own, change)}
            return outside(f"{reason}, and the output depends on the data", _NO_NOISE, **more)
        laws = {call.method for call in calls} - {"words"}
        if len(laws) != 1 or not laws <= {"normal", "laplace"}:
            return outside(", ".join(sorted(laws)) or "noise that is made of random words")
        places = list(dict.fromkeys(call.place for call in calls if call.method in laws))
        asked = f" (noise asked for at {', '.join(places[:_PLACES])})"
        scales = np.concatenate([call.scale for call in calls if call.method in laws])
        if not np.all(np.isfinite(scales) & (scales >= 0)):
            return outside("a noise scale is negative or not finite" + asked)
        if scales.size > MOST:
            return outside(f"{scales.size} noise variables, more than {MOST}")
        matrix = _matrix(run, pair, own, other, scales)
        if matrix is None:
            return outside("the output isn't affine in the noise" + asked)
        shown = self._compared(matrix, change, laws.pop(), own)
        return say(shown.pop("rank"), shown.pop("reason") + asked, **shown)

    def _compared(self, matrix: Vector, change: Vector, law: str, own: _Run) -> dict[str, Any]:
        """Rank, reason and more, for a change D of f, with B·diag(s) as the matrix."""
        size = float(np.linalg.norm(change))
        if size == 0:
            return {"rank": _FITS, "reason": "without noise both outputs are the same"}
        inverse = np.linalg.pinv(matrix, rcond=1e-12)
        shift = inverse @ change
        rest = change - matrix @ shift
        if float(np.linalg.norm(rest)) > _OUTSIDE * size:
            reason = "the outputs differ where they have no independent noise of their own"
            event = _apart(own, rest)
            return {"rank": _NO_NOISE, "reason": reason, "distance": math.inf, "event": event}
        if law == "normal":
            distance = float(np.linalg.norm(shift))
            text = f"the outputs are μ = {distance:.6g} standard deviations of the noise apart"
            loss: Loss = NormalLoss(own.output, shift @ inverse, distance)
        else:
            distance = float(np.abs(shift).sum())
            text = f"the outputs are {distance:.6g} scales of the noise apart in ℓ1"
            unique = np.linalg.matrix_rank(matrix, rtol=1e-12) == matrix.shape[1]
            if not unique:
                distance = _least_l1(matrix, change)
                text = f"a shift of the noise by {distance:.6g} scales in ℓ1 explains the change"
            if distance <= self.allowed * (1 + ROUND_OFF):
                return {"rank": _FITS, "reason": text, "distance": distance}
            if not unique:
                return {"rank": _TOO_LITTLE, "reason": text, "distance": distance}
            moved = shift != 0
            loss = LaplaceLoss(own.output, inverse[moved], shift[moved])
        if not math.isfinite(self.allowed):
            text += "; the claim has no finite ε there"
            return {"rank": _OUTSIDE_MODEL, "reason": text, "distance": distance}
        leak = loss.leak(self.claim, self.allowed)
        shown = {"rank": _FITS, "reason": text + leak, "distance": distance}
        if not leak:
            return shown
        return {**shown, "rank": _TOO_LITTLE, "loss": loss}


def _apart_by(own: _Run, other: _Run, inverse: Vector | None) -> float:
    """How far outputs without noise are apart; infinite where they differ in more than numbers."""
    if own.raised != other.raised or own.shape != other.shape:
        return math.inf
    if own.recorder.calls != other.recorder.calls:
        return math.inf
    with np.errstate(invalid="ignore"):
        change = other.output - own.output
        units = change if inverse is None else inverse @ change
    return float(np.nan_to_num(np.abs(units).sum(), nan=math.inf))


def _apart(own: _Run, change: Vector) -> Event:
    """The output lies nearer to the neighbour's than to the record's, along the change."""
    size = float(np.linalg.norm(change))
    along = Along(change / size)
    middle = along(own.output) + size / 2
    name = "the output, where no noise reaches, is nearer to the neighbour's"
    return Event(name=name, holds=AtLeast(along, middle, own.output.size))


def _run(function: Callable[[Any, Any], Any], data: Any, source: Any) -> _Run:
    try:
        # A copy: a run that changes its argument must not change the next one's.
        output, said = numbers(alone(partial(function, copy.deepcopy(data), source))()), ""
    except PASSING:
        raise
    except BaseException as error:  # whatever a mechanism raises is part of what it does
        output, said = None, raised(error)
    return _Run(
        output=np.zeros(0) if output is None else output.ravel(),
        shape=None if output is None else output.shape,
        recorder=source.recorder,
        raised=said,
    )


def _difference(calls: Sequence[Call], others: Sequence[Call]) -> str:
    """Words for the first place where two sequences of calls differ; empty where none does."""
    for number, (call, other) in enumerate(zip(calls, others, strict=False)):
        if call != other:
            places = " or ".join(dict.fromkeys((call.place, other.place)))
            asked = f"{_short(call)} or {_short(other)}"
            return f"noise call {number} depends on the data: {asked} ({places})"
    if len(calls) == len(others):
        return ""
    more = max(calls, others, key=len)[min(len(calls), len(others))]
    counts = f"{len(calls)} or {len(others)}"
    return f"the number of noise calls depends on the data: {counts} ({more.place})"


def _short(call: Call) -> str:
    scales = sorted(set(call.scale))
    text = f"{call.method} of shape {call.shape}"
    return text + f" and scale {scales[0]:.6g} to {scales[-1]:.6g}" if scales else text


def _matrix(
    run: Callable[[Any, Vector], _Run], pair: Pair, own: _Run, other: _Run, scales: Vector
) -> Vector | None:
    """B·diag(s) of shape (outputs, variables); None where the output isn't affine in the noise."""
    matrix = np.zeros((own.output.size, scales.size))

    def moved(noise: Vector, data: Any, start: _Run) -> tuple[Vector, Vector] | None:
        noisy = run(data, noise)
        if noisy.raised or noisy.shape != own.shape:
            return None
        given = np.concatenate([np.zeros(0), *(g.ravel() for g in noisy.recorder.given)])
        # How much noise is asked for may depend on the noise, as where outputs are drawn again.
        return (noisy.output - start.output, given) if given.size == scales.size else None

    for place in np.flatnonzero(scales).tolist():
        noise = np.zeros(scales.size)
        # Whole-number noise of a small scale would round to none.
        noise[place] = max(1.0, 1 / float(scales[place]))
        result = moved(noise, pair.record, own)
        if result is None:
            return None
        change, given = result
        matrix[:, place] = change / given[place] * scales[place]
    uniform = ReplayableWords(0, "grey-box", "probe").words(scales.size) * 2.0**-64
    for size in (0.5, 8.0):
        for data, start in ((pair.record, own), (pair.neighbour, other)):
            result = moved(size * (2 * uniform - 1), data, start)
            if result is None:
                return None
            change, given = result
            units = np.divide(given, scales, out=np.zeros(scales.size), where=scales > 0)
            tolerance = _OUTSIDE * (np.abs(matrix) @ np.abs(units) + np.abs(start.output) + 1e-300)
            if not np.all(np.abs(change - matrix @ units) <= tolerance):
                return None
    # Variables of scale 0 are none.
    return np.asarray(matrix[:, scales > 0])


def _least_l1(matrix: Vector, change: Vector) -> float:
    """Least ‖v‖₁ with matrix @ v = change."""
    both = np.hstack([matrix, -matrix])
    solved = scipy.optimize.linprog(
        np.ones(both.shape[1]), A_eq=both, b_eq=change, bounds=(0, None)
    )
    return math.inf if solved.fun is None else float(solved.fun)
