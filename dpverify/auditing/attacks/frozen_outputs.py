"""Frozen outputs: a mechanism's calls for noise on D, replayed on a neighbour D′.

The calls are recorded on D and replayed on D′ with their outputs frozen (`_tape`), so that what
depends on earlier noise is the same on both sides, and control flow and inputs can be compared call
by call. (The idea is that of Cebere, Erb, Desfontaines, Bellet and Fitzsimons 2026; this is not
their code.)

**What is looked at.** Given the same outputs so far the next call should be of the same kind, scale
and shape. Additive noise on an input that moves by d loses Σdᵢ/bᵢ (Laplace) or is Gaussian with
μ² = Σ(dᵢ/σᵢ)²; a choice loses the largest logarithm of the ratio of its probabilities, a marked
primitive or a library's call what it declares. The accountant composes these, and the sum is held
against the claim. At last, all outputs being frozen, the mechanism's own output should be the same,
and so should what it raises, warns, logs and prints.

**What is disproved, and of which pairs.** Between the pair's data sets and given the recorded
outputs, which the mechanism itself drew on one of them, the input of a call is what its run on each
says: a deterministic number, if runs on one side agree. Two on each do, in the order D, D′, D′, D,
and before a violation more, on either side as a drawn coin falls, so that what a mechanism counts
or draws elsewhere shows as a difference. So two statements are violations *of a declaration in the
code*, at this pair and these outputs:

- a marked primitive's input moves by more than the sensitivity that it declares (`primitive`), by
  more than round-off (1e-6 of the sensitivity and 1e-9 of the inputs, or 1e-5 of inputs that are
  of single precision);
- what must not depend on the data does (`ensure_equal`).

Neither says that the claim is false: who declared less than the truth may have more noise than is
needed, and a sensitivity that holds but for δ is disproved by outputs that come that rarely.
Nothing is proven about other pairs and other outputs.

**Their level.** Say that a declaration holds, whatever the mechanism counts or draws elsewhere. So
in no state, and for no such draw, does D what it did and D′ what *it* did, which together break the
declaration. So at each further run at most one side can do as before, and the coin, which knows of
neither, falls on it with probability ½ at most. Of R recordings one accuses with probability at
most R·2⁻ᶜ after c such runs; c is the least for which that is a 64th of the check's level, and the
rest of the level is for what is counted. (What one remembers by the data set itself, as the first
that it saw, is a state in which the declaration doesn't hold.)

**What is only shown.** Everything else is a proposal. The sum of losses is an upper bound of what
the calls reveal, which for sparse vectors, noisy maxima and rejection is far from what the output
does. So a sum above the claim, an output that depends on the data although all calls agree, and
calls that differ are named with their line; then an event is chosen and counted on fresh draws of
`release` (`confirm`), whose violation has its level. What these don't confirm is inconclusive:
smooth sensitivity and sparse vector are right. So is what can't be measured: random numbers that no
input is added to, generators that were made beforehand, an `ensure_equal` on one side alone,
declarations in several threads, whose calls have no order of their own. A replay ends at the call
that differs, also where the mechanism catches what ends it: what it does then isn't looked at.
That no violation is found says that the calls are covered at the pairs and the outputs that were
tried.
"""

from __future__ import annotations

import copy
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks._noise_model import ROUND_OFF, Raised
from dpverify.auditing.attacks._proposals import Event, Proposal, confirm
from dpverify.auditing.attacks._tape import Tape
from dpverify.auditing.attacks._taped_call import Diverged, TapedCall, digest
from dpverify.auditing.attacks._taped_losses import (
    Calls,
    composed,
    known,
    located,
    loss,
    moved,
    relative,
    too_much,
)
from dpverify.auditing.attacks._taped_sources import TapedGenerator, patched
from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import DeclarationEvidence, Finding, NoiseEvidence, Verdict
from dpverify.auditing.outputs.foreign import alone, display_name, foreign_code
from dpverify.auditing.settings import AuditKind
from dpverify.auditing.targets.primitives import taped
from dpverify.data.rows import copied
from dpverify.enclosure import rational
from dpverify.errors import PASSING, DrawError
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Pair
from dpverify.sampling.words import ReplayableWords
from dpverify.visible import raised

__all__ = ["FrozenOutputsAttack"]

_KEEPS = (
    "outside the model: it draws from elsewhere or keeps something between runs, as two runs on "
    "one data set with the same outputs differ"
)
_UNORDERED = "outside the model: calls of several threads, whose order the code doesn't decide"
_REORDERED = (
    "outside the model: calls of one primitive in an order that may depend on the data, as in "
    "another order none moves by more than is declared"
)
_DECLARED = 1 / 64  # of the level, for declarations
_SLACK = 1e-6  # of a declared sensitivity: round-off of norms clipped in single precision
_SINGLE = 1e-5  # of inputs of single precision, 84 units in their last place
_EXTREMES = 8  # pairs of a search's first that are tried

_Facts = dict[tuple[int, str], list[tuple[str, str]]]
"""By calls so far and name, digests of values with their places."""

# How much a pair shows, the most last.
_COVERED, _OUTSIDE, _ELSEWHERE, _CALLS_DIFFER, _TOO_MUCH, _UNCOVERED, _ONE_SIDE, _BROKEN = range(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenOutputsAttack(Attack):
    """Replays a mechanism's calls for noise at the neighbours, with their outputs frozen.

    It is made where it is asked for by name. The mechanism draws from a generator that it is given
    (`with_generator`), from global functions or by libraries. Where data sets may be made
    (`Target.space`), extreme pairs are tried too.

    Parameters
    ----------
    recordings : of each pair, with outputs of their own, on either side in turn
    """

    name: ClassVar[AuditKind] = "frozen-outputs"
    counts_failures: ClassVar[bool] = True
    recordings: int = 3

    def unasked(self, mechanism: Any) -> bool:
        return False

    def run(self, target: Target, config: AuditConfig) -> list[Finding]:
        """A violation of a declaration, or where fresh draws confirm what the replay suggests.

        None found where the calls are covered at all pairs that were tried; else inconclusive.
        """
        mechanism, pairs = target.mechanism, list(target.pairs)
        if target.space is not None:
            pairs += target.space.extremes(_EXTREMES)
        claim = mechanism.privacy()
        allowed = claimed_epsilon(claim, config.delta_for(claim))
        checks = math.ceil(math.log2(len(pairs) * self.recordings / (_DECLARED * config.alpha)))
        seen = [
            _at(mechanism, pair, claim, allowed, number, checks, config)
            for pair in pairs
            for number in range(self.recordings)
        ]
        best = max(seen, key=lambda one: (one.rank, one.distance))
        statement = f"{display_name(mechanism)}, at the pair “{best.pair.name}”: {best.reason}"
        evidence: Any = NoiseEvidence(distance=best.distance, claimed_epsilon=allowed)
        verdict: Verdict = "no_violation_found" if best.rank == _COVERED else "inconclusive"
        if best.rank == _BROKEN:
            verdict, evidence = "violation", best.broken
        finding = Finding(
            audit=self.name,
            verdict=verdict,
            statement=statement,
            level=config.alpha,
            pair=best.pair,
            evidence=evidence,
            failed=best.failed,
        )
        if not _CALLS_DIFFER <= best.rank <= _ONE_SIDE:
            return [finding]
        proposal = Proposal(pair=best.pair, reason=best.reason, event=best.event, evidence=evidence)
        try:
            rest = config.at_level(config.alpha * (1 - _DECLARED))
            counted = replace(confirm(mechanism, proposal, self.name, rest), level=config.alpha)
        except DrawError as error:
            return [replace(finding, statement=f"{statement}. Could not be confirmed: {error}")]
        if counted.verdict == "violation":
            return [counted]
        return [replace(counted, verdict="inconclusive")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one recording shows; the distance is the largest move of an input, in its noise."""

    pair: Pair
    rank: int
    reason: str
    distance: float = 0.0
    event: Event | None = None
    broken: DeclarationEvidence | None = None
    failed: bool = False


@dataclass(slots=True)
class _Run:
    """What one run did; outputs and side effects as digests."""

    tape: Tape
    output: str = ""
    raised: str = ""
    diverged: str = ""
    said: list[str] = field(default_factory=list)

    @property
    def facts(self) -> _Facts:
        """What must not depend on the data, as it was said."""
        facts: _Facts = {}
        for so_far, name, value, place in self.tape.facts:
            facts.setdefault((so_far, name), []).append((value, place))
        return facts

    def agrees(self, other: _Run) -> bool:
        """Whether two runs on the same data did the same."""
        own, theirs = self.tape, other.tape
        return (
            (self.output, self.raised, self.diverged, self.said, own.facts)
            == (other.output, other.raised, other.diverged, other.said, theirs.facts)
            and len(own.calls) == len(theirs.calls)
            and all(_same_inputs(a, b) for a, b in zip(own.calls, theirs.calls, strict=True))
        )


def _same_inputs(one: TapedCall, other: TapedCall) -> bool:
    if one.inputs is None or other.inputs is None:
        return one.inputs is other.inputs
    whole = object in (one.inputs.dtype, other.inputs.dtype)  # which are no NaN
    return np.array_equal(one.inputs, other.inputs, equal_nan=not whole)


def _at(
    mechanism: Any,
    pair: Pair,
    claim: PrivacyCurve,
    allowed: float,
    number: int,
    checks: int,
    config: AuditConfig,
) -> _Seen:
    """What one recording shows at a pair; a run that is late fails.

    So many more runs are made before a declaration is said to be broken.
    """
    case = f"pair {pair.name!r}"
    seed = int(ReplayableWords(config.seed, "frozen-outputs", case, number).words(1)[0])
    sides = (pair.record, pair.neighbour)
    own, other = sides if number % 2 == 0 else sides[::-1]
    runs: list[_Run] = []

    def run(data: Any, recorded: Tape | None = None, further: int = 0) -> _Run:
        runs.append(_run(mechanism, data, Tape(seed, recorded), further))
        return runs[-1]

    def four() -> tuple[_Run, ...]:
        first = run(own)
        return first, run(other, first.tape), run(other, first.tape), run(own, first.tape)

    def again(first: _Run, second: _Run) -> bool:
        order = ReplayableWords(seed, "frozen-outputs", "order").words(checks) % 2
        return all(
            second.agrees(run(other, first.tape, further))
            if swapped
            else first.agrees(run(own, first.tape, further))
            for further, swapped in enumerate(order.tolist(), 1)
        )

    def called(work: Callable[[], Any]) -> Any:
        return foreign_code(work, mechanism, pair, None, runs, config.time_limit)

    try:
        first, second, third, fourth = called(four)
        seen = _judged(pair, first, second, claim, allowed)
        agree = first.agrees(fourth) and second.agrees(third)
        if agree and seen.rank == _BROKEN:
            agree = called(partial(again, first, second))
    except DrawError as error:
        return _Seen(pair=pair, rank=_OUTSIDE, reason=str(error), failed=True)
    return seen if agree else _Seen(pair=pair, rank=_ELSEWHERE, reason=_KEEPS)


def _judged(pair: Pair, first: _Run, second: _Run, claim: PrivacyCurve, allowed: float) -> _Seen:
    """What a recording and its replay on the neighbour show."""
    calls = list(zip(first.tape.calls, second.tape.calls, strict=False))
    if second.diverged:  # the last call is the one that differs
        calls = calls[: len(second.tape.calls) - 1]
    moves = [moved(*both) for both in calls]
    sized = [relative(call, move) for (call, _), move in zip(calls, moves, strict=True)]
    seen = _Seen(pair=pair, rank=_COVERED, reason="", distance=max(sized, default=0.0))
    reordered = _reordered(calls)
    broken = _broken(first, second, calls, in_order=not reordered)
    threads = max(len(run.tape.threads) for run in (first, second))
    if (broken is not None or reordered) and threads > 1:
        return replace(seen, rank=_OUTSIDE, reason=_UNORDERED)
    if broken is not None:
        return replace(seen, rank=_BROKEN, reason=_breach(broken), broken=broken)
    if reordered:
        return replace(seen, rank=_CALLS_DIFFER, reason=_REORDERED)
    if first.raised and second.raised:
        reason = f"outside the model: it raised {first.raised}"
        return replace(seen, rank=_OUTSIDE, reason=reason, failed=True)
    if first.raised or second.raised:
        reason = f"with the same outputs it raised {first.raised or second.raised} on one side"
        event = Event(name="it raises", holds=Raised(True))
        return replace(seen, rank=_ONE_SIDE, reason=reason, event=event)
    rank, reason = _compared(first, second, calls, moves, claim, allowed)
    return replace(seen, rank=rank, reason=reason)


def _compared(
    first: _Run,
    second: _Run,
    calls: Calls,
    moves: list[float],
    claim: PrivacyCurve,
    allowed: float,
) -> tuple[int, str]:
    """How much two runs show that raised nothing and broke no declaration, and why."""
    if second.diverged or len(first.tape.calls) > len(second.tape.calls):
        reason = second.diverged or _alone(first.tape.calls[len(second.tape.calls)])
        return _CALLS_DIFFER, f"outside the model: {reason}"
    if not calls:
        rank = _OUTSIDE if first.output == second.output else _UNCOVERED
        return rank, "outside the model: no call for noise was recorded"
    unmeasured, bare = _unmeasured(calls, moves)
    outside = (
        f"outside the model: {', '.join(unmeasured[:2])} can't be measured. Mark what adds it by "
        "dpv.primitive, and its declaration is checked"
    )
    if bare:
        return _UNCOVERED, bare
    if first.output != second.output:
        reason = "with the outputs of all its calls frozen its own output depends on the data"
        return _UNCOVERED, f"{reason}; {outside}" if unmeasured else reason
    if unmeasured:
        return _OUTSIDE, outside
    losses = [loss(call, move) for (call, _), move in zip(calls, moves, strict=True)]
    total = composed(calls, losses)
    if total is not None and total.delta_at(allowed).lower > claim.delta_at(allowed).upper:
        return _TOO_MUCH, too_much(calls, losses, allowed)
    if alone := _said_alone(first.facts, second.facts):
        return _OUTSIDE, alone
    if first.said != second.said:
        return _OUTSIDE, "what it warns, logs or prints depends on the data"
    return _COVERED, f"{_counted(len(calls))} covered by the claim at what was tried"


def _unmeasured(calls: Calls, moves: list[float]) -> tuple[list[str], str]:
    """What no loss is known of, in words; and a call that has no noise where its input moves."""
    unmeasured, bare = [], ""
    for (call, twin), move in zip(calls, moves, strict=True):
        where = f"call {call.number}, {call.kind} at {call.place}"
        if call.raw and not located(call, twin) and not known(call, twin, move):
            unmeasured.append(f"{call.raw} (call {call.number} at {call.place})")
        elif math.isinf(move) and call.kind in ("normal", "laplace"):
            bare = f"{where}, has no noise and an input that moves"
        elif not math.isfinite(move):
            unmeasured.append(f"the input of {where}")
    return unmeasured, bare


def _counted(count: int) -> str:
    return "1 call for noise is" if count == 1 else f"{count} calls for noise are"


def _alone(call: TapedCall) -> str:
    return f"call {call.number}, {call.kind} at {call.place}, is made on one side alone"


def _said_alone(own: _Facts, other: _Facts) -> str:
    """An `ensure_equal` that one run called more often than the other, in words; empty if none."""
    for facts, others in ((own, other), (other, own)):
        for (calls, name), said in facts.items():
            for _, place in said[len(others.get((calls, name), ())) :]:
                return f"outside the model: {_equal(name)} at {place} is called on one side alone"
    return ""


def _equal(name: str) -> str:
    return f"ensure_equal({name!r})"


def _breach(broken: DeclarationEvidence) -> str:
    """The disproved declaration, in words."""
    how = f"moves by {broken.moved:.6g}, and at most {broken.allowed:.6g} is declared"
    if broken.declaration.startswith("ensure_equal"):
        how = "differs between the neighbours"
    return f"{broken.declaration} at {broken.place}: given the same outputs so far it {how}"


def _broken(
    first: _Run, second: _Run, calls: Calls, *, in_order: bool
) -> DeclarationEvidence | None:
    """A declaration that the runs disprove: an input's move, or a fact that isn't equal."""
    for call, twin in calls if in_order else ():
        declared = call.declared
        if declared is not None and (most := _beyond(call, twin)) is not None:
            return DeclarationEvidence(
                declaration=f"primitive {declared.name} (call {call.number}, in {declared.norm})",
                place=call.place,
                moved=moved(call, twin),
                allowed=most,
            )
    for (so_far, name), said in first.facts.items():
        others = second.facts.get((so_far, name), [])
        if so_far > len(calls) or len(said) != len(others):
            continue
        for (one, place), (other, _) in zip(said, others, strict=True):
            if one != other:
                return DeclarationEvidence(
                    declaration=_equal(name), place=place, moved=1.0, allowed=0.0
                )
    return None


def _beyond(call: TapedCall, twin: TapedCall) -> float | None:
    """The declared sensitivity, where the input of a primitive moves by more; else None."""
    declared = call.declared
    if declared is None or call.inputs is None or twin.inputs is None:
        return None
    if call.inputs.shape != twin.inputs.shape:
        return None
    inputs = np.concatenate([call.inputs, twin.inputs])
    move = moved(call, twin)
    most = float(rational("sensitivity", declared.sensitivity))
    slack = _SLACK * most
    if inputs.dtype != object:  # whole numbers have no round-off
        size = float(np.max(np.abs(inputs), initial=0.0)) * max(call.inputs.size, 1)
        slack += (_SINGLE if _is_single(inputs) else ROUND_OFF) * size
    return most if math.isfinite(move) and move > most + slack else None


def _reordered(calls: Calls) -> bool:
    """Whether declarations are broken by the order of calls of equal primitives alone.

    So it is where a loop over groups begins with the largest. What a call is given is then no
    longer the input of the call in its place, and a person has to say whether the order shows.
    """
    marked: dict[str, Calls] = {}
    for call, twin in calls:
        if call.declared is not None:
            marked.setdefault(call.settings, []).append((call, twin))
    broken = [alike for alike in marked.values() if _any_beyond(alike)]
    return bool(broken) and not any(map(_any_beyond, map(_sorted, broken)))


def _any_beyond(calls: Calls) -> bool:
    return any(_beyond(*both) is not None for both in calls)


def _sorted(calls: Calls) -> Calls:
    """Calls of one primitive, each with one of the replay whose input is near.

    Of numbers no other order has a smaller largest move.
    """
    runs = ([each[side] for each in calls] for side in (0, 1))
    own, other = (
        sorted(run, key=lambda call: [] if call.inputs is None else call.inputs.tolist())
        for run in runs
    )
    return list(zip(own, other, strict=True))


def _is_single(inputs: NDArray[np.float64]) -> bool:
    """Whether numbers look like those of single precision: all fit it, and not all are whole."""
    with np.errstate(all="ignore"):
        return bool(np.array_equal(inputs.astype(np.float32), inputs) and np.any(inputs % 1))


def _run(mechanism: Any, data: Any, tape: Tape, further: int) -> _Run:
    """One run, with everything that leaves it."""
    run = _Run(tape=tape)
    function: Callable[[Any], Any] = _releasing(mechanism, tape, further)
    with _heard(run.said), patched(tape), taped(tape):
        try:
            output = alone(partial(function, copied(data)))()
        except Diverged:
            pass
        except PASSING:
            raise
        except BaseException as error:
            run.raised = raised(error)
        else:
            run.output = digest(output)
    # What it does afterwards, if it caught that, isn't given the same outputs.
    return _Run(tape=tape, diverged=tape.differences[0]) if tape.differences else run


def _releasing(mechanism: Any, tape: Tape, further: int) -> Callable[[Any], Any]:
    """A run; what isn't recorded is the same in all but further ones, which draw it anew."""
    if hasattr(mechanism, "with_generator"):
        generator = TapedGenerator(tape)
        return lambda data: mechanism.with_generator(data, generator)
    words = ReplayableWords(further, "frozen-outputs")
    used = mechanism if further else copy.deepcopy(mechanism)
    return lambda data: used.release(data, rng=words)


@contextmanager
def _heard(said: list[str]) -> Iterator[None]:
    """Note warnings, log lines and what is printed."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"log {record.name} {record.levelname} {record.getMessage()}")

    out, listener, root = io.StringIO(), Listener(), logging.getLogger()
    root.addHandler(listener)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stdout(out),
            redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            yield
    finally:
        root.removeHandler(listener)
    said += [f"warning {entry.category.__name__} {entry.message}" for entry in warned]
    said += [f"printed {out.getvalue()}"] if out.getvalue() else []
