"""The grey-box check: whether the noise requested covers how the noiseless output changes.

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

**A few runs prove nothing**: all this is a proposal. `_proposals.confirm` counts the event on fresh
draws of `release`, and a violation is what these refute, at their level.

**Outside the model**, as the finding then says, is a mechanism that draws from elsewhere (two runs
without noise at the same record differ, or no call was recorded); one whose calls differ between
the neighbours in number, distribution, scale or shape, as those of a correct sparse vector do; and
one whose output isn't numbers, or isn't affine in the noise. A pair at which the calls differ is
proposed all the same, with an event that is learned from training draws.

Least norms are computed in doubles and count as above the claim only by more than a relative 1e-9,
a D as outside the range of B by more than 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

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
from dpverify.auditing.attacks._probing import (
    OUTSIDE,
    Run,
    Vector,
    difference,
    distance,
    least_l1,
    noise_matrix,
    run_with,
)
from dpverify.auditing.attacks._proposals import Event, Plan, Proposal, confirm, planned
from dpverify.auditing.attacks._recording import (
    Call,
    RecordingGenerator,
    RecordingWords,
    recorded,
)
from dpverify.auditing.attacks.base import Attack, Target
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import Finding, NoiseEvidence
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.search import LOST, shrunk
from dpverify.auditing.settings import AuditKind
from dpverify.errors import DrawError
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords

__all__ = ["MOST", "GreyBoxAttack"]

MOST = 1024
"""Noise variables that are probed, one run each."""
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
    examples : pairs that are drawn, a quarter of them where the audit is to be brief
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
            examples = self.examples // 4 if config.brief else self.examples
            most = examples // 4
            extremes = space.extremes(most)
            pairs += [*extremes, *space.drawn(examples, rng)]
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
class _Check:
    """The model at one pair after another."""

    mechanism: Mechanism
    function: Callable[[Any, Any], Any]
    source: Callable[[Vector | None], Any]
    claim: PrivacyCurve
    allowed: float
    config: AuditConfig
    matrices: dict[tuple[Call, ...], Vector] = field(default_factory=dict)

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
        runs: list[Run] = []

        def run(data: Any, noise: Vector | None = None) -> Run:
            runs.append(run_with(self.function, data, self.source(noise)))
            return runs[-1]

        def distances() -> list[float]:
            own = run(pairs[0].record)
            others = [run(pair.neighbour) for pair in pairs]
            calls, inverse = own.recorder.calls, None
            scales = np.concatenate([np.zeros(0), *(call.scale for call in calls)])
            if 0 < scales.size <= MOST and np.all(np.isfinite(scales)):
                matrix = noise_matrix(run, pairs[0], own, others[0], scales)
                inverse = None if matrix is None else np.linalg.pinv(matrix, rcond=1e-12)
            return [distance(own, other, inverse) for other in others]

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

    def _seen(self, pair: Pair, runs: list[Any]) -> _Seen:
        def run(data: Any, noise: Vector | None = None) -> Run:
            runs.append(self.source(noise))
            return run_with(self.function, data, runs[-1])

        own, other = run(pair.record), run(pair.neighbour)
        if not (own.agrees(run(pair.record)) and other.agrees(run(pair.neighbour))):
            reason = "it draws from elsewhere, as runs without noise at one record differ"
            return _outside(pair, reason)
        return _unlike(pair, own, other) or self._modelled(pair, run, own, other)

    def _modelled(
        self, pair: Pair, run: Callable[[Any, Vector | None], Run], own: Run, other: Run
    ) -> _Seen:
        """What the model says of two runs that asked for the same noise; or why it doesn't hold."""
        calls = own.recorder.calls
        with np.errstate(over="ignore", invalid="ignore"):  # ∞ − ∞
            change = other.output - own.output
        if not np.all(np.isfinite(change)):
            return _outside(pair, "an output without noise isn't finite")
        if not calls:
            reason = "no noise was asked for that can be recorded"
            if not np.any(change):
                return _outside(pair, reason)
            seen = _outside(pair, f"{reason}, and the output depends on the data", _NO_NOISE)
            return replace(seen, distance=math.inf, event=_apart(own, change))
        laws = {call.method for call in calls} - {"words"}
        if len(laws) != 1 or not laws <= {"normal", "laplace"}:
            return _outside(pair, ", ".join(sorted(laws)) or "noise that is made of random words")
        places = list(dict.fromkeys(call.place for call in calls if call.method in laws))
        asked = f" (noise asked for at {', '.join(places[:_PLACES])})"
        scales = np.concatenate([call.scale for call in calls if call.method in laws])
        if not np.all(np.isfinite(scales) & (scales >= 0)):
            return _outside(pair, "a noise scale is negative or not finite" + asked)
        if scales.size > MOST:
            return _outside(pair, f"{scales.size} noise variables, more than {MOST}")
        known = self.matrices.get(tuple(calls))
        matrix = noise_matrix(run, pair, own, other, scales, known)
        if matrix is None:
            return _outside(pair, "the output isn't affine in the noise" + asked)
        self.matrices[tuple(calls)] = matrix
        seen = self._compared(pair, matrix, change, laws.pop(), own)
        return replace(seen, reason=seen.reason + asked)

    def _compared(self, pair: Pair, matrix: Vector, change: Vector, law: str, own: Run) -> _Seen:
        """The change D of f against the noise, with B·diag(s) as the matrix."""
        size = float(np.linalg.norm(change))
        if size == 0:
            reason = "without noise both outputs are the same"
            return _Seen(pair=pair, rank=_FITS, reason=reason)
        inverse = np.linalg.pinv(matrix, rcond=1e-12)
        shift = inverse @ change
        rest = change - matrix @ shift
        if float(np.linalg.norm(rest)) > OUTSIDE * size:
            reason = "the outputs differ where they have no independent noise of their own"
            seen = _Seen(pair=pair, rank=_NO_NOISE, reason=reason)
            return replace(seen, distance=math.inf, event=_apart(own, rest))
        if law == "normal":
            least = float(np.linalg.norm(shift))
            text = f"the outputs are μ = {least:.6g} standard deviations of the noise apart"
            loss: Loss = NormalLoss(own.output, shift @ inverse, least)
        else:
            least = float(np.abs(shift).sum())
            text = f"the outputs are {least:.6g} scales of the noise apart in ℓ1"
            unique = np.linalg.matrix_rank(matrix, rtol=1e-12) == matrix.shape[1]
            if not unique:
                least = least_l1(matrix, change)
                text = f"a shift of the noise by {least:.6g} scales in ℓ1 explains the change"
            if least <= self.allowed * (1 + ROUND_OFF):
                return _Seen(pair=pair, rank=_FITS, reason=text, distance=least)
            if not unique:
                return _Seen(pair=pair, rank=_TOO_LITTLE, reason=text, distance=least)
            moved = shift != 0
            loss = LaplaceLoss(own.output, inverse[moved], shift[moved])
        seen = _Seen(pair=pair, rank=_FITS, reason=text, distance=least)
        if not math.isfinite(self.allowed):
            text += "; the claim has no finite ε there"
            return replace(seen, rank=_OUTSIDE_MODEL, reason=text)
        leak = loss.leak(self.claim, self.allowed)
        return replace(seen, rank=_TOO_LITTLE, reason=text + leak, loss=loss) if leak else seen


def _outside(pair: Pair, reason: str, rank: int = _OUTSIDE_MODEL) -> _Seen:
    return _Seen(pair=pair, rank=rank, reason=f"outside the model: {reason}")


def _unlike(pair: Pair, own: Run, other: Run) -> _Seen | None:
    """What is seen where two runs differ in more than numbers, or have none; else None."""
    if own.raised and other.raised:
        return _outside(pair, f"it raised {own.raised}")
    if own.raised or other.raised:
        side = "neighbour" if other.raised else "record"
        reason = f"without noise it raised {own.raised or other.raised} on the {side} alone"
        name = "it raises" if other.raised else "it doesn't raise"
        event = Event(name=name, holds=Raised(bool(other.raised)))
        return _Seen(pair=pair, rank=_ONE_SIDE, reason=reason, event=event)
    if own.shape is None or other.shape is None:
        return _outside(pair, "its output isn't an array of numbers")
    differing = difference(own.recorder.calls, other.recorder.calls)
    if own.shape != other.shape:
        reason = f"without noise the shape is {own.shape} or {other.shape}, by the data"
        reason += f"; {differing}" if differing else ""
        event = Event(name=f"the shape is {other.shape}", holds=HasShape(other.shape))
        return _Seen(pair=pair, rank=_ONE_SIDE, reason=reason, event=event)
    return _outside(pair, differing, _CALLS_DIFFER) if differing else None


def _apart(own: Run, change: Vector) -> Event:
    """The output lies nearer to the neighbour's than to the record's, along the change."""
    size = float(np.linalg.norm(change))
    along = Along(change / size)
    middle = along(own.output) + size / 2
    name = "the output, where no noise reaches, is nearer to the neighbour's"
    return Event(name=name, holds=AtLeast(along, middle, own.output.size))
