"""Noise that is not fresh: outputs that equal one with which they share something.

Let A be a release of the record, B another one of it, and C one of the neighbour in the very place
of B. Where noise is fresh, B and C are drawn by the claim whatever A was: for every a, P[B = a] is
at most g(P[C = a]), with g the least of the claim's lines. As g is concave, p = P[B = A] and
q = P[C = A] keep p ≤ g(q) too. Hits are counted over pairs (A, B) and false hits over other pairs
(A, C), independently, and the exact test of two binomials judges the claim by them. Which pairs are
which is drawn, so that what changes in time falls on both alike. Where noise is used again, B is A
and C is not.

Equal outputs alone accuse nobody. A coin gives them, and a constant; a release's number, the hour,
a code that is drawn for all rows are equal for releases that share them, and not for others: but
for the neighbour's as for the record's.

What may be shared:

- *rows*: two rows of one release; C is the neighbour's row beside the record's;
- *consecutive releases* of one process;
- *fresh processes*: the same place in processes, each with a source of randomness of its own
  (they show a seed fixed in the code), which are started as new interpreters and, unlike those of
  multiprocessing, run no script again. Of what keeps a state they have copies, which show nothing;
- *forked workers*: the same with children of this process. A generator that is kept, as numpy's
  global one, is copied to them, and the noise is theirs together. Each release by itself keeps its
  claim, which says nothing of such workers, so that this is remarked and no violation.
"""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import count, takewhile
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from dpverify.auditing.attacks._behaviour import Runs, Trial, content, send
from dpverify.auditing.finding import CoincidenceEvidence, Finding, Verdict
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.outputs.samples import dumped, packed, releaser
from dpverify.auditing.spaces.base import related
from dpverify.auditing.statistics.claim_test import curve_lines, judge
from dpverify.auditing.statistics.power import least_hits
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.errors import PASSING, DrawError
from dpverify.guarantee import PrivacyCurve
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
        told = pickle.dumps(sys.path) + dumped(work)
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


_FORKED = "forked workers"
STARTS: Mapping[str, Callable[[Callable[[Connection], None], Connection], Any]] = {
    "fresh processes": _Fresh,
    _FORKED: _forked,
}
"""Ways to start the processes that `between` compares."""

_FEWEST = 128  # draws that are compared, if there are as many
_PATIENCE = 6  # times the limit of one release, for a process to answer
_REMARK = "{mechanism} gives the same noise in forked workers: each of them needs a new seed"


def rows(trial: Trial, pair: Pair) -> Finding:
    """Two equal records in one data set, against the first of two releases."""
    record = pair.record
    if not isinstance(record, np.ndarray) or record.ndim != 2 or len(record) != 1:
        return trial.unable(pair, "rows", "the record is no single dense row")
    try:
        lengths = [_length(trial, pair, number) for number in (2, 3)]
        both = [np.concatenate([record, each]) for each in (record, pair.neighbour)]
        neighbours = related(trial.mechanism.adjacency, *both)
    except DrawError as error:
        return trial.unable(pair, "rows", f"{error}")
    except PASSING:
        raise
    except BaseException as error:  # whatever an adjacency says to two rows
        return trial.unable(pair, "rows", f"two rows aren't taken: {raised(error)}")
    if lengths != [2, 3]:
        reason = f"the release of two rows and of three has lengths {lengths}, not a row each"
        return trial.unable(pair, "rows", reason)
    if not neighbours:
        return trial.unable(pair, "rows", "one of two rows may not change")
    equal: list[bool] = []
    order = _drawn_order(trial, trial.config.draws, "rows")

    def draw() -> str:
        """Why two rows can't be compared, if they can't."""
        releases = [
            releaser(
                trial.mechanism,
                data,
                trial.config.draws,
                ReplayableWords(trial.config.seed, "determinism", "rows", side),
            )
            for side, data in enumerate(both)
        ]
        for side in order.tolist():
            output = np.asarray(releases[side]())
            if output.ndim == 0 or len(output) != 2:
                return f"the release of two rows has shape {output.shape}"
            first, second = (content(np.asarray(row)) for row in output)
            equal.append(first == second)
        return ""

    try:
        reason = foreign_code(draw, trial.mechanism, pair, None, equal, trial.config.time_limit)
    except DrawError as error:
        reason = f"of two rows {error}"
    if reason:
        return trial.unable(pair, "rows", reason)
    return _judged(trial, pair, "rows", np.array(equal), order)


def _length(trial: Trial, pair: Pair, number: int) -> int:
    """Of the release of so many equal rows."""
    data = np.repeat(pair.record, number, axis=0)
    rng = ReplayableWords(trial.config.seed, "determinism", "length")

    def draw() -> int:
        return len(np.atleast_1d(np.asarray(releaser(trial.mechanism, data, 1, rng)())))

    return foreign_code(draw, trial.mechanism, pair, 0, (), trial.config.time_limit)


def consecutive(trial: Trial, pair: Pair) -> Finding:
    """Disjoint pairs of consecutive outputs, of which the first is the record's.

    Where the audit is to be brief, no more than show noise that is always used twice.
    """
    name = "consecutive releases"
    draws = _fewest_draws(trial) if trial.config.brief else trial.config.draws
    order = _drawn_order(trial, draws // 2, "consecutive")
    sides = np.column_stack([np.zeros_like(order), order]).ravel().tolist()
    try:
        drawn = trial.in_turn(pair, sides, "consecutive")
    except DrawError as error:
        return trial.unable(pair, name, f"{error}", failed=True)
    if drawn.failure:
        return trial.unable(pair, name, drawn.failure)
    outputs = drawn.labels["output"]
    return _judged(trial, pair, name, _equal(outputs[0::2], outputs[1::2]), order)


@contextmanager
def between(trial: Trial, pair: Pair, name: str) -> Iterator[Callable[[], Finding]]:
    """The same places in three processes: two release the record, the third the neighbour.

    They are at work inside the context, and what is given waits for them.
    """
    trial = replace(trial, config=evolve(trial.config, draws=_fewest_draws(trial)))
    receivers: list[Connection] = []
    failure, sent = "", packed(trial.mechanism)
    with ExitStack() as stack:
        try:
            for number in range(3):
                receiver, sender = multiprocessing.Pipe(duplex=False)
                receivers.append(stack.enter_context(receiver))
                with sender:
                    child = STARTS[name](partial(send, trial, pair, name, number), sender)
                stack.callback(child.join)
                stack.callback(child.terminate)
        except Exception as error:  # what pickling says of it
            failure = f"it can't be sent to a process ({raised(error)})"

        def compared() -> Finding:
            why = failure
            if name == "fresh processes" and packed(trial.mechanism) != sent:
                why = why or "it keeps a state, of which processes get copies"
            return trial.unable(pair, name, why) if why else _compared(trial, pair, name, receivers)

        yield compared


def _fewest_draws(trial: Trial) -> int:
    """Draws that tell outputs which are always equal from such that are a quarter of the time.

    All, where these are too few for that.
    """
    config, curve = trial.config, trial.mechanism.privacy()
    delta = config.delta_for(curve)
    lines = curve_lines(curve, delta)

    def tell(draws: int) -> bool:
        counts = Counts(hits=draws, draws=draws, false_hits=draws // 4, false_draws=draws)
        return counts.refutes(lines, alpha=config.alpha, delta=float(delta))

    sizes = takewhile(lambda size: size < config.draws, (_FEWEST << times for times in count()))
    return next((size for size in sizes if tell(size // 2)), config.draws)


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
    first, again, other = (drawn.labels["output"] for drawn in runs)
    order = _drawn_order(trial, trial.config.draws, name)
    equal = np.where(order, _equal(first, other), _equal(first, again))
    return _judged(trial, pair, name, equal, order)


def _drawn_order(trial: Trial, count: int, name: str) -> NDArray[np.int64]:
    """0 and 1 equally often, or nearly so, in an order that is drawn."""
    words = ReplayableWords(trial.config.seed, "determinism", name, "order").words(count)
    return np.argsort(words) % 2


def _equal(first: Sequence[bytes], second: Sequence[bytes]) -> NDArray[np.bool_]:
    """Which are equal."""
    return np.array([a == b for a, b in zip(first, second, strict=True)])


def _judged(
    trial: Trial, pair: Pair, name: str, equal: NDArray[np.bool_], order: NDArray[np.int64]
) -> Finding:
    """What equal outputs say of the claim; `order` is 1 where the second is the neighbour's."""
    curve, config = trial.mechanism.privacy(), trial.config
    mechanism = display_name(trial.mechanism)
    delta, level = config.delta_for(curve), config.alpha
    hits, false_hits = (int(np.count_nonzero(equal[order == side])) for side in (0, 1))
    draws, false_draws = (int(np.count_nonzero(order == side)) for side in (0, 1))
    counts = Counts(hits=hits, draws=draws, false_hits=false_hits, false_draws=false_draws)
    leans = hits * false_draws > false_hits * draws
    shared = leans and judge(counts, curve, delta, level).refuted_at is not None
    refuted = shared and name != _FORKED
    fewest = _fewest(curve, delta, draws, false_draws, level)
    silent: Verdict = "no_violation_found" if fewest is not None else "inconclusive"
    return Finding(
        audit="determinism",
        verdict="violation" if refuted else silent,
        statement=(
            f"{mechanism}, {name}: {hits} of {draws} outputs of the record "
            f"equal another one of it, and {false_hits} of {false_draws} of the neighbour do"
            + (": the noise isn't fresh, or too little" if refuted else "")
        ),
        level=level,
        pair=pair,
        evidence=CoincidenceEvidence(
            check=name, hits=hits, draws=draws, false_hits=false_hits, false_draws=false_draws
        ),
        power={"fewest": fewest},
        remark=_REMARK.format(mechanism=mechanism) if shared and not refuted else "",
    )


@lru_cache(maxsize=256)
def _fewest(
    curve: PrivacyCurve, delta: Fraction, draws: int, false_draws: int, level: float
) -> int | None:
    """Fewest equal outputs that are a violation where none of the neighbour's is equal."""
    lines = curve_lines(curve, delta)

    def refuted(hits: int) -> bool:
        counts = Counts(hits=hits, draws=draws, false_hits=0, false_draws=false_draws)
        return counts.refutes(lines, alpha=level, delta=float(delta))

    return least_hits(refuted, draws)
