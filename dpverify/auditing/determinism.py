"""Determinism: noise that is not fresh, and behaviour that depends on the data.

**Coincidences.** Let two releases of one data set be independent, as the claim takes them. They are
equal with some probability c, the same for every two of them: 0 for continuous outputs, ½ and more
for a coin, 1 for a constant. So equal outputs are suspect only where they come more often between
releases that share something than between releases that don't. Both are counted over disjoint
pairs, hits ~ Bin(r, c) and false hits ~ Bin(r, c) independently if nothing is shared, and p ≤ q is
tested by the exact test of two binomials. What may be shared:

- *rows*: two rows of one release, of equal records;
- *consecutive releases* of one process;
- *fresh processes*: the same place in two processes, each with a source of randomness of its own
  (they show a seed fixed in the code);
- *forked workers*: the same with two children of this process (they show a state inherited).

Continuous outputs that are equal even once are certain evidence for a person; the verdict keeps its
level whatever the output is.

**Dependence on the data.** What a release does is a label: the exception that it raised, or shape,
dtype and, as a second label, all the bytes of the output, and as a third the number of random words
it asked for. On half the draws the labels are found that one neighbour shows and the other never
does; on the other half they are counted and the claim is tested, as for `precision`. A seed fixed
inside `release` shows by its bytes: always the same, and others for the neighbour. The number of
words doesn't leave with the output; it shows in the running time, and the finding says so.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.draws import guarded, named
from dpverify.auditing.findings import Finding, Verdict
from dpverify.auditing.judging import Counts, judge
from dpverify.auditing.precision import smallest_share, unreached
from dpverify.auditing.two_binomials import Outcome
from dpverify.domain import is_sparse
from dpverify.errors import DrawError, require
from dpverify.mechanism import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords, Words

__all__ = ["audit"]

Start = Literal["spawn", "fork"]

_SETS = (set, frozenset)
_EQUAL = ((1.0, 0.0),)  # the line p ≤ q
_STARTS: dict[str, Start] = {"fresh processes": "spawn", "forked workers": "fork"}
_PATIENCE = 6  # times the limit of one release, for a process to answer
_LABELS = {
    "behaviour": "what is raised, or the shape or type of the output,",
    "output": "the output itself",
    "words": "the number of random words asked for, which shows in the running time",
}


def audit(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    *,
    delta: Fraction = Fraction(0),
    alpha: float = 0.01,
    draws: int = 1000,
    seed: int = 0,
    processes: bool = True,
    time_limit: float = 10.0,
) -> tuple[Finding, ...]:
    """Look for noise that is not fresh and for behaviour that depends on the data.

    Parameters
    ----------
    mechanism : audited through its `release`
    pairs : neighbours; coincidences are sought at the first pair's record
    delta : that of the claim, at which ε is bounded below
    alpha : level of all findings together
    draws : on each side of each pair
    seed : of the replayable randomness
    processes : whether to start processes too, which takes seconds
    time_limit : seconds that one release may take; a process, six times as many to answer

    Returns
    -------
    One finding for each of rows, consecutive releases, fresh processes and forked workers, and one
    for each pair's dependence on the data.

    Raises
    ------
    ParameterError
        If there are no pairs, or fewer than 20 draws.
    """
    require(bool(pairs), "pairs", pairs, "at least one pair of neighbours")
    require(draws >= 20, "draws", draws, "at least 20")
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    starts = _STARTS if processes else {}
    level = alpha / (2 + len(starts) + len(pairs)) * (1 - 1e-12)
    replay = (
        f"audit(mechanism, pairs, delta=Fraction('{delta}'), alpha={alpha}, draws={draws}, "
        f"seed={seed}, processes={processes})"
    )
    first = pairs[0]
    findings = [_rows(mechanism, first, draws, seed, level, replay, time_limit)]
    key = (seed, "determinism", "consecutive")
    try:
        drawn = _Runs.drawn(mechanism, first, 0, draws, key, time_limit)
    except DrawError as error:
        findings.append(
            _unable(mechanism, first, "consecutive releases", f"{error}", replay, failed=True)
        )
    else:
        findings.append(_consecutive(mechanism, first, drawn, level, replay))
    for name, start in starts.items():
        findings.append(
            _between(mechanism, first, (name, start), draws, seed, level, replay, time_limit)
        )
    for pair in pairs:
        try:
            findings.append(
                _dependence(mechanism, pair, delta, draws, seed, level, replay, time_limit)
            )
        except DrawError as error:
            findings.append(_unable(mechanism, pair, "dependence", f"{error}", replay, failed=True))
    return tuple(findings)


@dataclass(slots=True)
class _CountingWords:
    """Counts the words asked for; the words are those of another source."""

    policy: ClassVar[str] = "replayable: counted"
    source: Words
    count: int = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words of the source."""
        self.count += count
        return self.source.words(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """Labels of every release, in order, by the name of the label."""

    labels: dict[str, list[bytes]] = field(default_factory=lambda: {name: [] for name in _LABELS})

    @classmethod
    def drawn(
        cls,
        mechanism: Mechanism,
        pair: Pair,
        side: int,
        draws: int,
        key: tuple[int | str, ...],
        time_limit: float,
    ) -> _Runs:
        """Of the pair's record (side 0) or neighbour (1); a `DrawError` if a release is late."""
        seed, *case = key
        rng = _CountingWords(ReplayableWords(int(seed), *case))
        runs = cls()
        records = pair.neighbour if side else pair.record
        with guarded(mechanism, pair, side, runs.labels["words"], time_limit):
            for _ in range(draws):
                rng.count = 0
                try:
                    released: Any = mechanism.release(records, rng=rng)
                    output = np.asarray(released.toarray() if is_sparse(released) else released)
                    behaviour = f"{type(released).__name__} {output.dtype} {output.shape}"
                    content = _content(output)
                except Exception as error:
                    behaviour = f"raised {type(error).__name__}"
                    content = b""  # the text is for the owner, and may well name a value
                runs.labels["behaviour"].append(behaviour.encode())
                runs.labels["output"].append(behaviour.encode() + b"\0" + content)
                runs.labels["words"].append(str(rng.count).encode())
        return runs

    @property
    def failure(self) -> str:
        """The exception, if all releases raised; else empty."""
        behaviours = self.labels["behaviour"]
        raised = all(behaviour.startswith(b"raised") for behaviour in behaviours)
        return f"every release {behaviours[0].decode()}" if raised else ""


def _content(output: NDArray[Any]) -> bytes:
    if output.dtype != object:
        return output.tobytes()
    # Sets have no order of their own.
    return repr([sorted(map(repr, x)) if isinstance(x, _SETS) else x for x in output.flat]).encode()


def _equal(first: Sequence[bytes], second: Sequence[bytes]) -> Counts:
    hits = sum(a == b for a, b in zip(first, second, strict=True))
    return Counts(hits=hits, false_hits=0, draws=len(first))


def _consecutive(
    mechanism: Mechanism, pair: Pair, drawn: _Runs, level: float, replay: str
) -> Finding:
    """Consecutive outputs, against outputs a quarter of all draws apart; disjoint pairs."""
    name, outputs = "consecutive releases", drawn.labels["output"]
    if drawn.failure:
        return _unable(mechanism, pair, name, drawn.failure, replay)
    quarter = len(outputs) // 4
    near, far = outputs[: 2 * quarter], outputs[2 * quarter : 4 * quarter]
    shared, apart = _equal(near[0::2], near[1::2]), _equal(far[:quarter], far[quarter:])
    return _coincidence(mechanism, pair, name, shared, apart, level, replay)


def _coincidence(
    mechanism: Mechanism,
    pair: Pair,
    name: str,
    shared: Counts,
    apart: Counts,
    level: float,
    replay: str,
) -> Finding:
    outcome = Outcome(
        hits=shared.hits,
        draws=shared.draws,
        false_hits=apart.hits,
        false_draws=apart.draws,
    )
    refuted = shared.hits > 0 and outcome.refutes(_EQUAL, alpha=level)
    return Finding(
        audit="determinism",
        verdict="violation" if refuted else "no_violation_found",
        statement=(
            f"{named(mechanism)}, {name}: {shared.hits} of {shared.draws} outputs are equal, and "
            f"{apart.hits} of {apart.draws} between releases that share nothing"
            + (": the noise is not fresh" if refuted else "")
        ),
        level=level,
        pair=pair,
        evidence={
            "check": name,
            "equal": shared.hits,
            "compared": shared.draws,
            "equal_apart": apart.hits,
            "compared_apart": apart.draws,
        },
        power={"fewest": _fewest(shared.draws, apart.draws, level)},
        replay=replay,
    )


@lru_cache(maxsize=256)
def _fewest(draws: int, apart: int, level: float) -> int | None:
    """Fewest equal outputs that are a violation where outputs that share nothing never are."""
    for hits in range(1, draws + 1):
        outcome = Outcome(hits=hits, draws=draws, false_hits=0, false_draws=apart)
        if outcome.refutes(_EQUAL, alpha=level):
            return hits
    return None


def _rows(
    mechanism: Mechanism,
    pair: Pair,
    draws: int,
    seed: int,
    level: float,
    replay: str,
    time_limit: float,
) -> Finding:
    """Two equal records in one data set, against the first of two releases."""
    record = pair.record
    if is_sparse(record) or np.ndim(record) != 2 or len(record) != 1:
        return _unable(mechanism, pair, "rows", "the record is no single dense row", replay)
    twice = np.concatenate([record, record])
    released: list[list[bytes]] = []
    rng = ReplayableWords(seed, "determinism", "rows")
    try:
        with guarded(mechanism, pair, 0, released, time_limit):
            for _ in range(draws):
                output = np.asarray(mechanism.release(twice, rng=rng))
                if output.ndim == 0 or len(output) != 2:
                    reason = f"the release of two rows has shape {output.shape}"
                    return _unable(mechanism, pair, "rows", reason, replay)
                released.append([_content(np.asarray(row)) for row in output])
    except DrawError as error:
        return _unable(mechanism, pair, "rows", f"of two rows {error}", replay)
    half = draws // 2
    quarter = half // 2
    within = _equal(*([rows[side] for rows in released[:half]] for side in (0, 1)))
    rest = [rows[0] for rows in released[half:]]
    apart = _equal(rest[:quarter], rest[quarter : 2 * quarter])
    return _coincidence(mechanism, pair, "rows", within, apart, level, replay)


def _between(
    mechanism: Mechanism,
    pair: Pair,
    start: tuple[str, Start],
    draws: int,
    seed: int,
    level: float,
    replay: str,
    time_limit: float,
) -> Finding:
    """The same places in two processes, against different places within one of them."""
    name, method = start
    context: Any = multiprocessing.get_context(method)
    receivers, children = [], []
    try:
        for number in range(2):
            receiver, sender = context.Pipe(duplex=False)
            key = (seed, "determinism", name, number)
            child = context.Process(
                target=_send, args=(sender, mechanism, pair, draws, key, time_limit)
            )
            child.start()
            sender.close()
            receivers.append(receiver)
            children.append(child)
        runs: list[_Runs] = []
        for receiver in receivers:
            if not receiver.poll(_PATIENCE * time_limit):
                reason = f"a process took longer than {_PATIENCE * time_limit:g} s"
                return _unable(mechanism, pair, name, reason, replay)
            sent = receiver.recv()
            if isinstance(sent, DrawError):
                return _unable(mechanism, pair, name, f"{sent}", replay, failed=True)
            runs.append(sent)
    except Exception as error:  # what pickling says of it, or a child that died
        reason = f"it can't be sent to a process ({type(error).__name__}: {error})"
        return _unable(mechanism, pair, name, reason, replay)
    finally:
        for child in children:
            child.terminate()
            child.join()
    for drawn in runs:
        if drawn.failure:
            return _unable(mechanism, pair, name, drawn.failure, replay)
    here, there = (drawn.labels["output"] for drawn in runs)
    half = draws // 2
    quarter = half // 2
    shared = _equal(here[:half], there[:half])
    apart = _equal(here[half : half + quarter], here[half + quarter :][:quarter])
    return _coincidence(mechanism, pair, name, shared, apart, level, replay)


def _send(
    sender: Connection,
    mechanism: Mechanism,
    pair: Pair,
    draws: int,
    key: tuple[int | str, ...],
    time_limit: float,
) -> None:
    try:
        sender.send(_Runs.drawn(mechanism, pair, 0, draws, key, time_limit))
    except DrawError as error:
        sender.send(error)


def _unable(
    mechanism: Mechanism, pair: Pair, name: str, reason: str, replay: str, *, failed: bool = False
) -> Finding:
    return Finding(
        audit="determinism",
        verdict="inconclusive",
        statement=f"{named(mechanism)}, {name}: not compared, for {reason}",
        pair=pair,
        evidence={"check": name},
        failed=failed,
        replay=replay,
    )


def _dependence(
    mechanism: Mechanism,
    pair: Pair,
    delta: Fraction,
    draws: int,
    seed: int,
    level: float,
    replay: str,
    time_limit: float,
) -> Finding:
    """Labels that one neighbour shows and the other doesn't, for each label in both orders."""
    own, other = (
        _Runs.drawn(
            mechanism, pair, side, draws, (seed, "determinism", pair.name, side), time_limit
        )
        for side in (0, 1)
    )
    curve, share = mechanism.privacy(), level / (2 * len(_LABELS))
    half = draws // 2
    statement = f"{named(mechanism)}, at the pair “{pair.name}”: "
    best, evidence, verdict = 0.0, {}, False
    for name, meaning in _LABELS.items():
        numbers: dict[bytes, int] = {}
        sides = [
            np.array([numbers.setdefault(label, len(numbers)) for label in runs.labels[name]])
            for runs in (own, other)
        ]
        texts = list(numbers)
        for swapped in (False, True):
            shown, absent = (side[:, None] for side in (sides[::-1] if swapped else sides))
            event = unreached(
                (shown[:half], np.zeros_like(shown[:half])),
                (absent[:half], np.zeros_like(absent[:half])),
            )
            hits, false_hits = (
                int(event.holds(side[half:], np.zeros_like(side[half:])).sum())
                for side in (shown, absent)
            )
            if hits <= false_hits:
                continue
            counts = Counts(hits=hits, false_hits=false_hits, draws=draws - half)
            judged = judge(counts, curve, delta, share)
            found = judged.refuted_at is not None
            if (found, judged.epsilon_lower) > (verdict, best):
                verdict, best = found, judged.epsilon_lower
                evidence = {
                    "label": name,
                    "swapped": swapped,
                    "seen": texts[int(event.cells[0])][:80].decode(errors="replace"),
                    "hits": hits,
                    "false_hits": false_hits,
                    "draws": counts.draws,
                }
                side = "neighbour" if swapped else "record"
                statement = (
                    f"{named(mechanism)}, at the pair “{pair.name}”: {meaning} tells the {side}, "
                    f"{hits} times of {counts.draws} and {false_hits} times on the other side"
                )
    failure = own.failure or other.failure
    if failure and not verdict:
        return _unable(mechanism, pair, "dependence", failure, replay)
    if not evidence:
        statement += "nothing that it did depends on the data"
    findable = smallest_share(curve, delta, draws - half, share)
    silent: Verdict = "no_violation_found" if findable is not None else "inconclusive"
    return Finding(
        audit="determinism",
        verdict="violation" if verdict else silent,
        statement=statement,
        level=level,
        pair=pair,
        epsilon_lower=best,
        evidence={"check": "dependence", **evidence},
        power={"smallest_share": findable},
        replay=replay,
    )
