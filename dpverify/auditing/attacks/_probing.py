"""Runs with noise of the check's own choice, and what they say of the noise that is added."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.auditing.attacks._proposals import numbers
from dpverify.auditing.attacks._recording import Call, Recorder
from dpverify.auditing.outputs.foreign import alone
from dpverify.data.rows import copied
from dpverify.errors import PASSING
from dpverify.privacy import Pair
from dpverify.sampling.words import ReplayableWords
from dpverify.visible import raised

__all__ = [
    "OUTSIDE",
    "Run",
    "Vector",
    "difference",
    "distance",
    "least_l1",
    "noise_matrix",
    "run_with",
]

Vector = NDArray[Any]

OUTSIDE = 1e-6
"""Relative: what is farther from a linear model than that isn't round-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run with noise of the check's choice.

    Attributes
    ----------
    output, shape : flattened, and as it was; None where it isn't an array of numbers
    recorder : what the noise source was asked for, and gave
    raised : the exception in words; empty if none was raised
    """

    output: Vector
    shape: tuple[int, ...] | None
    recorder: Recorder
    raised: str

    def agrees(self, other: Run) -> bool:
        """Whether two runs did the same."""
        same = self.raised == other.raised and self.shape == other.shape
        same = same and self.recorder.calls == other.recorder.calls
        return same and np.array_equal(self.output, other.output, equal_nan=True)


def run_with(function: Callable[[Any, Any], Any], data: Any, source: Any) -> Run:
    """One run on a copy of the data, with a noise source that records what it is asked for."""
    try:
        # A copy: a run that changes its argument must not change the next one's.
        output, said = numbers(alone(partial(function, copied(data), source))()), ""
    except PASSING:
        raise
    except BaseException as error:  # whatever a mechanism raises is part of what it does
        output, said = None, raised(error)
    return Run(
        output=np.zeros(0) if output is None else output.ravel(),
        shape=None if output is None else output.shape,
        recorder=source.recorder,
        raised=said,
    )


def difference(calls: Sequence[Call], others: Sequence[Call]) -> str:
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


def distance(own: Run, other: Run, inverse: Vector | None) -> float:
    """How far outputs without noise are apart; infinite where they differ in more than numbers."""
    if own.raised != other.raised or own.shape != other.shape:
        return math.inf
    if own.recorder.calls != other.recorder.calls:
        return math.inf
    with np.errstate(invalid="ignore"):
        change = other.output - own.output
        units = change if inverse is None else inverse @ change
    return float(np.nan_to_num(np.abs(units).sum(), nan=math.inf))


def noise_matrix(
    run: Callable[[Any, Vector], Run],
    pair: Pair,
    own: Run,
    other: Run,
    scales: Vector,
    known: Vector | None = None,
) -> Vector | None:
    """B·diag(s) of shape (outputs, variables of s > 0); None where outputs aren't affine in noise.

    Parameters
    ----------
    run : with the noise that it is given
    own, other : what was done without noise at the record and at the neighbour
    scales : s
    known : the same of another pair, which saves a run for each variable where it is so here, too
    """
    live = np.flatnonzero(scales > 0)

    def moved(noise: Vector, data: Any, start: Run) -> tuple[Vector, Vector] | None:
        noisy = run(data, noise)
        if noisy.raised or noisy.shape != own.shape:
            return None
        given = np.concatenate([np.zeros(0), *(g.ravel() for g in noisy.recorder.given)])
        # How much noise is asked for may depend on the noise, as where outputs are drawn again.
        return (noisy.output - start.output, given) if given.size == scales.size else None

    def by_columns() -> Vector | None:
        matrix = np.zeros((own.output.size, live.size))
        for column, place in enumerate(live.tolist()):
            noise = np.zeros(scales.size)
            # Whole-number noise of a small scale would round to none.
            noise[place] = max(1.0, 1 / float(scales[place]))
            result = moved(noise, pair.record, own)
            if result is None:
                return None
            change, given = result
            matrix[:, column] = change / given[place] * scales[place]
        return matrix

    def holds(matrix: Vector) -> bool:
        """Whether some noise moves both outputs as it says."""
        uniform = ReplayableWords(0, "grey-box", "probe").words(scales.size) * 2.0**-64
        for most in (0.5, 8.0):
            for data, start in ((pair.record, own), (pair.neighbour, other)):
                result = moved(most * (2 * uniform - 1), data, start)
                if result is None:
                    return False
                change, given = result
                units = given[live] / scales[live]
                tolerance = OUTSIDE * (
                    np.abs(matrix) @ np.abs(units) + np.abs(start.output) + 1e-300
                )
                if not np.all(np.abs(change - matrix @ units) <= tolerance):
                    return False
        return True

    if known is not None and known.shape == (own.output.size, live.size) and holds(known):
        return known
    matrix = by_columns()
    return matrix if matrix is not None and holds(matrix) else None


def least_l1(matrix: Vector, change: Vector) -> float:
    """Least ‖v‖₁ with matrix @ v = change."""
    both = np.hstack([matrix, -matrix])
    solved = scipy.optimize.linprog(
        np.ones(both.shape[1]), A_eq=both, b_eq=change, bounds=(0, None)
    )
    return math.inf if solved.fun is None else float(solved.fun)
