"""Noise that is not fresh: equal outputs of releases that share something.

Let two releases of one data set be independent, as the claim takes them. They are equal with some
probability c, the same for every two of them: 0 for continuous outputs, ½ and more for a coin, 1
for a constant. So equal outputs are suspect only where they come more often between releases that
share something than between releases that don't. Both are counted over disjoint pairs, hits ~
Bin(r, c) and false hits ~ Bin(r, c) independently if nothing is shared, and p ≤ q is tested by the
exact test of two binomials. What may be shared:

- *rows*: two rows of one release, of equal records;
- *consecutive releases* of one process;
- *fresh processes*: the same place in two processes, each with a source of randomness of its own
  (they show a seed fixed in the code), which are started as new interpreters and, unlike those of
  multiprocessing, run no script again;
- *forked workers*: the same with two children of this process (they show a state inherited).

The verdict keeps its level whatever the output is: equal outputs are counted, even where a person
would be sure at the first.
"""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import numpy as np

from dpverify.auditing.attacks._behaviour import Runs, Trial, content, send
from dpverify.auditing.finding import CoincidenceEvidence, Finding
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.outputs.samples import releaser
from dpverify.auditing.statistics.power import least_hits
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.errors import DrawError
from dpverify.privacy import Pair
from dpverify.sampling.words import ReplayableWords
from dpverify.visible import raised

__all__ = ["STARTS", "between", "consecutive", "rows"]


class _Fresh(subprocess.Popen[bytes]):
    """A new interpreter that does some work with one end of a pipe."""

    _CODE = """
import pickle, sys
from multiprocessing.connection import Connection
sys.path[:] = pickle.load(sys.stdin.buffer)
work = pickle.load(sys.stdin.buffer)
work(Connection(int(sys.argv[1]), readable=False))
"""
    join = subprocess.Popen.wait

    def __init__(self, work: Callable[[Connection], None], sender: Connection) -> None:
        told = pickle.dumps(sys.path) + cloudpickle.dumps(work)
        end = sender.fileno()
        super().__init__(
            [sys.executable, "-P", "-c", self._CODE, str(end)],
            stdin=subprocess.PIPE,
            pass_fds=(end,),
        )
        if self.stdin:
            with self.stdin as stdin:
                stdin.write(told)


def _forked(work: Callable[[Connection], None], sender: Connection) -> Any:
    child = multiprocessing.get_context("fork").Process(target=work, args=(sender,))
    child.start()
    return child


STARTS: Mapping[str, Callable[[Callable[[Connection], None], Connection], Any]] = {
    "fresh processes": _Fresh,
    "forked workers": _forked,
}
"""Ways to start the two processes that `between` compares."""

_EQUAL = ((1.0, 0.0),)  # the line p ≤ q
_PATIENCE = 6  # times the limit of one release, for a process to answer


def rows(trial: Trial, pair: Pair) -> Finding:
    """Two equal records in one data set, against the first of two releases."""
    record = pair.record
    if not isinstance(record, np.ndarray) or record.ndim != 2 or len(record) != 1:
        return trial.unable(pair, "rows", "the record is no single dense row")
    twice = np.concatenate([record, record])
    try:
        lengths = [_length(trial, pair, number) for number in (2, 3)]
    except DrawError as error:
        return trial.unable(pair, "rows", f"{error}")
    if lengths != [2, 3]:
        reason = f"the release of two rows and of three has lengths {lengths}, not a row each"
        return trial.unable(pair, "rows", reason)
    released: list[list[bytes]] = []
    rng = ReplayableWords(trial.config.seed, "determinism", "rows")

    def draw() -> str:
        """Why two rows can't be compared, if they can't."""
        release = releaser(trial.mechanism, twice, trial.config.draws, rng)
        for _ in range(trial.config.draws):
            output = np.asarray(release())
            if output.ndim == 0 or len(output) != 2:
                return f"the release of two rows has shape {output.shape}"
            released.append([content(np.asarray(row)) for row in output])
        return ""

    try:
        reason = foreign_code(draw, trial.mechanism, pair, 0, released, trial.config.time_limit)
    except DrawError as error:
        reason = f"of two rows {error}"
    if reason:
        return trial.unable(pair, "rows", reason)
    half = trial.config.draws // 2
    quarter = half // 2
    within = _equal(*([rows[side] for rows in released[:half]] for side in (0, 1)))
    rest = [rows[0] for rows in released[half:]]
    apart = _equal(rest[:quarter], rest[quarter : 2 * quarter])
    return _coincidence(trial, pair, "rows", within, apart)


def _length(trial: Trial, pair: Pair, number: int) -> int:
    """Of the release of so many equal rows."""
    data = np.repeat(pair.record, number, axis=0)
    rng = ReplayableWords(trial.config.seed, "determinism", "length")

    def draw() -> int:
        return len(np.atleast_1d(np.asarray(releaser(trial.mechanism, data, 1, rng)())))

    return foreign_code(draw, trial.mechanism, pair, 0, (), trial.config.time_limit)


def consecutive(trial: Trial, pair: Pair) -> Finding:
    """Consecutive outputs, against outputs a quarter of all draws apart; disjoint pairs."""
    name = "consecutive releases"
    try:
        drawn = trial.runs(pair, 0, "consecutive")
    except DrawError as error:
        return trial.unable(pair, name, f"{error}", failed=True)
    if drawn.failure:
        return trial.unable(pair, name, drawn.failure)
    outputs = drawn.labels["output"]
    quarter = len(outputs) // 4
    near, far = outputs[: 2 * quarter], outputs[2 * quarter : 4 * quarter]
    shared, apart = _equal(near[0::2], near[1::2]), _equal(far[:quarter], far[quarter:])
    return _coincidence(trial, pair, name, shared, apart)


@contextmanager
def between(trial: Trial, pair: Pair, name: str) -> Iterator[Callable[[], Finding]]:
    """The same places in two processes, against different places within one of them.

    They are at work inside the context, and what is given waits for them.
    """
    receivers: list[Connection] = []
    failure = ""
    with ExitStack() as stack:
        try:
            for number in range(2):
                receiver, sender = multiprocessing.Pipe(duplex=False)
                receivers.append(stack.enter_context(receiver))
                with sender:
                    child = STARTS[name](partial(send, trial, pair, name, number), sender)
                stack.callback(child.join)
                stack.callback(child.terminate)
        except Exception as error:  # what pickling says of it
            failure = f"it can't be sent to a process ({raised(error)})"
        yield (
            lambda: (
                trial.unable(pair, name, failure)
                if failure
                else _compared(trial, pair, name, receivers)
            )
        )


def _compared(trial: Trial, pair: Pair, name: str, receivers: Sequence[Connection]) -> Finding:
    runs: list[Runs] = []
    for receiver in receivers:
        if not receiver.poll(_PATIENCE * trial.config.time_limit):
            reason = f"a process took longer than {_PATIENCE * trial.config.time_limit:g} s"
            return trial.unable(pair, name, reason)
        try:
            sent = receiver.recv()
        except Exception as error:  # of a child that died
            return trial.unable(pair, name, f"a process ended without an answer ({raised(error)})")
        if isinstance(sent, DrawError):
            return trial.unable(pair, name, f"{sent}", failed=True)
        runs.append(sent)
    for drawn in runs:
        if drawn.failure:
            return trial.unable(pair, name, drawn.failure)
    here, there = (drawn.labels["output"] for drawn in runs)
    half = trial.config.draws // 2
    quarter = half // 2
    shared = _equal(here[:half], there[:half])
    apart = _equal(here[half : half + quarter], here[half + quarter :][:quarter])
    return _coincidence(trial, pair, name, shared, apart)


def _equal(first: Sequence[bytes], second: Sequence[bytes]) -> tuple[int, int]:
    """How many are equal, and of how many."""
    return sum(a == b for a, b in zip(first, second, strict=True)), len(first)


def _coincidence(
    trial: Trial, pair: Pair, name: str, shared: tuple[int, int], apart: tuple[int, int]
) -> Finding:
    level = trial.config.alpha
    (hits, draws), (false_hits, false_draws) = shared, apart
    counts = Counts(hits=hits, draws=draws, false_hits=false_hits, false_draws=false_draws)
    refuted = hits > 0 and counts.refutes(_EQUAL, alpha=level)
    return Finding(
        audit="determinism",
        verdict="violation" if refuted else "no_violation_found",
        statement=(
            f"{display_name(trial.mechanism)}, {name}: {hits} of {draws} outputs are equal, and "
            f"{false_hits} of {false_draws} between releases that share nothing"
            + (": the noise is not fresh" if refuted else "")
        ),
        level=level,
        pair=pair,
        evidence=CoincidenceEvidence(
            check=name, hits=hits, draws=draws, false_hits=false_hits, false_draws=false_draws
        ),
        power={"fewest": _fewest(draws, false_draws, level)},
    )


@lru_cache(maxsize=256)
def _fewest(draws: int, apart: int, level: float) -> int | None:
    """Fewest equal outputs that are a violation where outputs that share nothing never are."""

    def refuted(hits: int) -> bool:
        counts = Counts(hits=hits, draws=draws, false_hits=0, false_draws=apart)
        return counts.refutes(_EQUAL, alpha=level)

    return least_hits(refuted, draws)
