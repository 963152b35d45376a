"""The grey-box check: what was asked of the noise source, against what changed without the noise.

Nothing is drawn. The mechanism runs with a noise source that records each call and returns noise of
our choice: none, or one unit in one place. So the run without noise gives f(x), and a run for each
of the m noise variables gives the column of the matrix B in

    release(x) = f(x) + B·(s₁N₁, …, s_mN_m),

with the recorded scales s and N standard normal or Laplace. A run with noise everywhere, of several
sizes, must agree with that: where it doesn't (clipping or rounding after the noise), the model is
not the mechanism's, and nothing is said. For a neighbour x′ let D = f(x′) − f(x).

- If D isn't in the range of B, some outputs of x′ are none of x: no ε holds, and no δ < 1.
- Normal: the least ‖v‖₂ with B·diag(s)·v = D is μ, and the pair's curve is exactly the Gaussian
  one with μ. (Projecting on the row space of B·diag(s) leaves standard normal noise.)
- Laplace: any v with B·diag(s)·v = D makes the release a post-processing of m Laplace variables
  moved by v, so ε ≤ ‖v‖₁. If the columns of B are independent, v is unique and can be undone: the
  pair's curve is exactly that of Laplace noise on v, which is positive below ‖v‖₁. Else the least
  ‖v‖₁, by linear programming, clears but doesn't accuse.

Both runs without noise must make the same calls, in number, distribution, scale and shape. Where
they don't, a scale or the control flow was read off the data, and no sensitivity bound that holds
for all data stands behind the claim. (Mechanisms that adapt their noise to the data and prove it
otherwise, such as the sparse vector technique, are outside this model: don't check them by it.)

A finding is certain up to round-off: the least norms are computed in doubles and count as above the
claim only by more than a relative 1e-9, a D as outside the range of B by more than 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from dpverify.accounting.gaussian import GaussianCurve
from dpverify.accounting.laplace import LaplaceCurve
from dpverify.adjacency import Adjacency
from dpverify.auditing.draws import guarded
from dpverify.auditing.findings import Finding, Verdict
from dpverify.auditing.neighbours import drawn_pairs, extreme_pairs
from dpverify.auditing.recording import Call, Recorder, RecordingGenerator
from dpverify.auditing.search import shrunk
from dpverify.domain import Domain, is_sparse
from dpverify.errors import DrawError, require
from dpverify.guarantee import PrivacyCurve, claimed_epsilon
from dpverify.mechanism import Pair
from dpverify.sampling.words import ReplayableWords

__all__ = ["MOST", "grey_box", "grey_box_search"]

MOST = 1024
"""Noise variables that are probed, one run each."""
_ROUND_OFF = 1e-9
_OUTSIDE = 1e-6


def grey_box(
    function: Callable[[Any, Any], Any],
    pairs: Sequence[Pair],
    claim: PrivacyCurve,
    *,
    delta: Fraction = Fraction(0),
    source: Callable[[NDArray[np.float64] | None], Any] = RecordingGenerator,
    time_limit: float = 10.0,
) -> Finding:
    """Check a noise-adding mechanism at the given neighbours, in the model above.

    Parameters
    ----------
    function : called as function(record, rng); what `recorded` makes, or any that takes numpy's
        generator
    pairs : neighbours
    claim : what it promises
    delta : at which the claim's ε is compared; positive where the claim has no finite ε at 0
    source : makes the recording noise source, `RecordingWords` for what `recorded` makes
    time_limit : seconds that one run may take

    Returns
    -------
    A violation at the first pair that shows one; inconclusive where a pair is outside the model and
    none shows one; else none found.
    """
    require(bool(pairs), "pairs", pairs, "at least one pair of neighbours")
    allowed = claimed_epsilon(claim, delta)
    name = getattr(function, "__name__", type(function).__name__)
    judged = []
    for pair in pairs:
        runs: list[Any] = []

        def counted(noise: NDArray[np.float64] | None, runs: list[Any] = runs) -> Any:
            runs.append(source(noise))
            return runs[-1]

        try:
            with guarded(function, pair, None, runs, time_limit):
                judged.append(_judged(function, pair, claim, allowed, counted))
        except DrawError as error:
            judged.append(
                _Judged(pair=pair, verdict="inconclusive", reason=str(error), failed=True)
            )
        if judged[-1].verdict == "violation":
            break
    rank = ("no_violation_found", "inconclusive", "violation")
    worst = max(judged, key=lambda one: (rank.index(one.verdict), one.distance))
    return _finding(name, worst, allowed)


def grey_box_search(
    function: Callable[[Any, Any], Any],
    adjacency: Adjacency,
    domain: Domain | None,
    claim: PrivacyCurve,
    *,
    attributes: int,
    given: Sequence[Pair] = (),
    delta: Fraction = Fraction(0),
    rows: Sequence[int] = (1,),
    examples: int = 100,
    seed: int = 0,
    source: Callable[[NDArray[np.float64] | None], Any] = RecordingGenerator,
    time_limit: float = 10.0,
) -> Finding:
    """Look for neighbours at which `grey_box` finds a violation, and shrink them.

    Parameters
    ----------
    function, claim, delta, source, time_limit : as for `grey_box`
    adjacency, domain, attributes, rows : of the neighbours, as for `extreme_pairs`
    given : pairs that are tried first
    examples : that are tried last, after the extreme ones
    seed : of their choice

    Returns
    -------
    A violation at a pair none of whose simplifications shows one; else the first that is outside
    the model; else the one farthest apart.
    """
    rng = ReplayableWords(seed, "grey-box search")
    extreme = extreme_pairs(adjacency, domain, attributes, rows=rows)
    drawn = drawn_pairs(adjacency, domain, attributes, count=examples, rng=rng, rows=rows)
    pairs = [*given, *extreme, *drawn]
    finding = grey_box(function, pairs, claim, delta=delta, source=source, time_limit=time_limit)
    if finding.verdict != "violation" or finding.pair is None:
        return finding

    def checked(pair: Pair) -> Finding:
        return grey_box(function, [pair], claim, delta=delta, source=source, time_limit=time_limit)

    pair = shrunk(
        finding.pair, adjacency, domain, lambda pair: checked(pair).verdict == "violation"
    )
    return checked(pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What one pair shows; the distance is ‖v‖ in the noise's norm."""

    pair: Pair
    verdict: Verdict
    reason: str
    distance: float = 0.0
    failed: bool = False


def _finding(name: str, judged: _Judged, allowed: float) -> Finding:
    return Finding(
        audit="grey-box",
        verdict=judged.verdict,
        statement=f"{name}, at the pair “{judged.pair.name}”: {judged.reason}",
        pair=judged.pair,
        evidence={"distance": judged.distance, "epsilon_claimed": allowed},
        failed=judged.failed,
        replay="grey_box(function, [pair], claim)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Output, flattened, with its shape, and what the noise source noted; or what was raised."""

    output: NDArray[np.float64]
    shape: tuple[int, ...]
    recorder: Recorder
    raised: str


def _run(function: Any, data: Any, source: Any, noise: NDArray[np.float64] | None = None) -> _Run:
    rng = source(noise)
    try:
        released = function(data, rng)
        output = np.asarray(released.toarray() if is_sparse(released) else released)
        raised, shape = "", output.shape
        flat = output.astype(np.float64).ravel()
    except Exception as error:
        raised, shape, flat = f"{type(error).__name__}: {error}", (), np.zeros(0)
    return _Run(output=flat, shape=shape, recorder=rng.recorder, raised=raised)


def _judged(function: Any, pair: Pair, claim: PrivacyCurve, allowed: float, source: Any) -> _Judged:
    def say(verdict: Verdict, reason: str, distance: float = 0.0) -> _Judged:
        return _Judged(pair=pair, verdict=verdict, reason=reason, distance=distance)

    own, other = (_run(function, data, source) for data in (pair.record, pair.neighbour))
    if own.raised and other.raised:
        return say("inconclusive", f"it raised {own.raised}")
    if own.raised or other.raised:
        return say("violation", f"it raised {own.raised or other.raised} on one side alone")
    if own.shape != other.shape:
        return say("violation", f"the shape is {own.shape} or {other.shape}, by the data")
    calls = own.recorder.calls
    if calls != other.recorder.calls:
        return say("violation", _difference(calls, other.recorder.calls))
    change = other.output - own.output
    if not np.all(np.isfinite(change)):
        return say("inconclusive", "an output without noise isn't finite")
    laws = {call.method for call in calls} - {"words"}
    if len(laws) != 1 or not laws <= {"normal", "laplace"}:
        if not laws and not any(call.method == "words" for call in calls) and np.any(change):
            return say("violation", "the output depends on the data, and no noise was asked for")
        asked = ", ".join(sorted(laws)) or "no noise that can be recorded"
        return say("inconclusive", f"the calls agree; outside the model: {asked}")
    scales = np.concatenate([call.scale for call in calls if call.method in laws])
    if not np.all(np.isfinite(scales) & (scales >= 0)):
        return say("inconclusive", "a noise scale is negative or not finite")
    if scales.size > MOST:
        return say("inconclusive", f"{scales.size} noise variables, more than {MOST}")
    matrix = _matrix(function, pair, source, own, scales)
    if matrix is None:
        return say("inconclusive", "the output isn't affine in the noise")
    return say(*_compared(matrix, change, laws.pop(), claim, allowed))


def _difference(calls: Sequence[Call], others: Sequence[Call]) -> str:
    """Words for the first place where two sequences of calls differ."""
    for place, (call, other) in enumerate(zip(calls, others, strict=False)):
        if call != other:
            return f"noise call {place} depends on the data: {_short(call)} or {_short(other)}"
    return f"the number of noise calls depends on the data: {len(calls)} or {len(others)}"


def _short(call: Call) -> str:
    scales = sorted(set(call.scale))
    text = f"{call.method} of shape {call.shape}"
    return text + f" and scale {scales[0]:.6g} to {scales[-1]:.6g}" if scales else text


def _matrix(
    function: Any, pair: Pair, source: Any, own: _Run, scales: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """B·diag(s) of shape (outputs, variables); None where the output isn't affine in the noise."""
    matrix = np.zeros((own.output.size, scales.size))

    def moved(noise: NDArray[Any], data: Any, start: NDArray[np.float64]) -> Any:
        run = _run(function, data, source, noise)
        if run.raised or run.shape != own.shape:
            return None
        given = np.concatenate([np.zeros(0), *(g.ravel() for g in run.recorder.given)])
        # How much noise is asked for may depend on the noise, as where outputs are drawn again.
        return (run.output - start, given) if given.size == scales.size else None

    for place in range(scales.size):
        noise = np.zeros(scales.size)
        if not scales[place]:
            continue
        # Whole-number noise of a small scale would round to none.
        noise[place] = max(1.0, 1 / scales[place])
        result = moved(noise, pair.record, own.output)
        if result is None:
            return None
        change, given = result
        matrix[:, place] = change / given[place] * scales[place]
    uniform = ReplayableWords(0, "grey-box", "probe").words(scales.size) * 2.0**-64
    other = _run(function, pair.neighbour, source)
    for size in (0.5, 8.0):
        for data, start in ((pair.record, own.output), (pair.neighbour, other.output)):
            result = moved(size * (2 * uniform - 1), data, start)
            if result is None:
                return None
            change, given = result
            units = np.divide(given, scales, out=np.zeros(scales.size), where=scales > 0)
            tolerance = _OUTSIDE * (np.abs(matrix) @ np.abs(units) + np.abs(start) + 1e-300)
            if not np.all(np.abs(change - matrix @ units) <= tolerance):
                return None
    # Variables of scale 0 are none.
    return np.asarray(matrix[:, scales > 0])


def _compared(
    matrix: NDArray[np.float64],
    change: NDArray[np.float64],
    law: str,
    claim: PrivacyCurve,
    allowed: float,
) -> tuple[Verdict, str, float]:
    """Verdict, reason and ‖v‖ for a change D of f, with B·diag(s) as the matrix."""
    size = float(np.linalg.norm(change))
    if size == 0:
        return "no_violation_found", "without noise both outputs are the same", 0.0
    shift, _, rank, _ = np.linalg.lstsq(matrix, change, rcond=1e-12)
    if float(np.linalg.norm(matrix @ shift - change)) > _OUTSIDE * size:
        reason = "the outputs differ where they have no independent noise of their own"
        return "violation", reason, math.inf
    if law == "normal":
        return _normal(float(np.linalg.norm(shift)), claim, allowed)
    if rank == matrix.shape[1]:
        return _laplace(shift, claim, allowed)
    distance = _least_l1(matrix, change)
    text = f"a shift of the noise by {distance:.6g} scales in ℓ1 explains the change"
    cleared = distance <= allowed * (1 + _ROUND_OFF)
    return "no_violation_found" if cleared else "inconclusive", text, distance


def _normal(mu: float, claim: PrivacyCurve, allowed: float) -> tuple[Verdict, str, float]:
    text = f"the outputs are μ = {mu:.6g} standard deviations of the noise apart"
    if not math.isfinite(allowed):
        return "inconclusive", text + "; the claim has no finite ε there", mu
    curve = GaussianCurve(mu_squared=(Fraction(mu) * (1 - Fraction(_ROUND_OFF))) ** 2)
    for eps in (allowed, allowed / 2, 0.0):
        leaked, limit = curve.delta(eps).lower, claim.delta(eps).upper
        if leaked > limit:
            text += f": δ({eps:.6g}) is {leaked:.4g}, and {limit:.4g} is claimed"
            return "violation", text, mu
    return "no_violation_found", text, mu


def _laplace(
    shift: NDArray[Any], claim: PrivacyCurve, allowed: float
) -> tuple[Verdict, str, float]:
    distance = float(np.abs(shift).sum())
    text = f"the outputs are {distance:.6g} scales of the noise apart in ℓ1"
    if distance <= allowed * (1 + _ROUND_OFF):
        return "no_violation_found", text, distance
    if not math.isfinite(allowed):
        return "inconclusive", text + "; the claim has no finite ε there", distance
    # Nine digits, so that equal shifts stay equal; then below the truth, as δ rises with each.
    sizes = [Fraction(f"{size:.9g}") * (1 - Fraction(_ROUND_OFF)) for size in np.abs(shift)]
    leaked = LaplaceCurve.of_row(sizes, scale=1).delta(allowed).lower
    limit = claim.delta(allowed).upper
    if leaked > limit:
        text += f": δ({allowed:.6g}) is {leaked:.4g}, and {limit:.4g} is claimed"
        return "violation", text, distance
    return "no_violation_found", text, distance


def _least_l1(matrix: NDArray[np.float64], change: NDArray[np.float64]) -> float:
    """Least ‖v‖₁ with matrix @ v = change."""
    both = np.hstack([matrix, -matrix])
    solved = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=change, bounds=(0, None))
    return math.inf if solved.fun is None else float(solved.fun)
