"""Journals: a killed audit goes on, and its report is that of an uninterrupted one."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import time
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.outputs.journal import (
    AuditJournal,
    fingerprint,
    pair_from_plain,
    pair_plain,
)
from dpverify.auditing.report import Report
from dpverify.auditing.targets.functions import adapt
from dpverify.cli import _run
from dpverify.data.adjacency import AddRemove, Attribute
from dpverify.data.domain import Box
from dpverify.errors import ConfigurationError, OutputError, ParameterError
from dpverify.privacy import Mechanism, Pair
from tests.helpers.profiles import day_and_night

UNIT = Attribute(beta=Fraction(1))
# search, trials, telling, grey-box, determinism, precision, black-box, trade-off, sequential
STEPS = 10  # pace, search, trials, the more telling of two pairs, and 6 kinds


def halved(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return record + rng.laplace(scale=0.5, size=record.shape)


def of(function: Any, bound: int = 1) -> Mechanism:
    return adapt(
        function,
        adjacency=UNIT,
        claim=ApproxDP(epsilon=Fraction(bound)),
        domain=Box(low=Fraction(0), high=Fraction(8)),
        of="record",
        attributes=2,
        name="mine",
    )


def audited(path: Path | None, function: Any = halved, **options: Any) -> Report:
    settings: dict[str, Any] = {"draws": 60, "seed": 1, "workers": 1, "brief": False} | options
    return audit(of(function), journal=AuditJournal(path), **settings)


def shown(report: Report) -> list[str]:
    pairs = [
        [finding.pair.record.tolist(), finding.pair.neighbour.tolist()]
        for finding in report.findings
        if finding.pair is not None
    ]
    return [str(report), *(repr(finding) for finding in report.findings), repr(pairs)]


def whole_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def uninterrupted() -> Report:
    return audited(None)


@pytest.mark.nightly
@pytest.mark.parametrize("after", range(1, STEPS + 1))
def test_an_audit_killed_at_any_step_ends_with_the_same_report(
    after: int, tmp_path: Path, uninterrupted: Report
) -> None:
    path = tmp_path / "journal"
    child = multiprocessing.get_context("fork").Process(target=audited, args=(path,))
    child.start()
    while whole_lines(path) < after and child.is_alive():
        time.sleep(0.002)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert child.exitcode == -signal.SIGKILL
    before = path.read_bytes()
    resumed = audited(path)
    assert path.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert whole_lines(path) == STEPS + 1
    assert shown(resumed) == shown(uninterrupted)


def but_pace(journal: bytes) -> list[bytes]:
    """Its lines but those that say how long a release took."""
    return [line for line in journal.splitlines() if b'"pace"' not in line]


@pytest.mark.nightly
@pytest.mark.parametrize("first", [0])
def test_a_torn_last_line_is_done_again(tmp_path: Path, uninterrupted: Report, first: int) -> None:
    path = tmp_path / "journal"
    audited(path)
    whole = path.read_bytes()
    rows = whole.splitlines(keepends=True)
    assert len(rows) == STEPS + 1
    torn = [b"".join(rows[:2])[:-1], rows[0][:9], b"", b"".join(rows[:4]) + rows[4][:30]]
    for left in torn[first:]:
        path.write_bytes(left)
        assert shown(audited(path)) == shown(uninterrupted)
        assert but_pace(path.read_bytes()) == but_pace(whole)


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def counted(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        calls.append(1)
        return record + rng.laplace(size=record.shape)

    # A list that grows would tell the two mechanisms apart.
    path, mechanism = tmp_path / "journal", of(counted)
    journal = AuditJournal(path, run="one")
    options: dict[str, Any] = {"draws": 100, "kinds": ["black-box"], "workers": 1}
    before = fingerprint(mechanism)
    audit(mechanism, journal=journal, **options)
    assert fingerprint(mechanism) != before  # this one is told apart by what it closes over
    done = len(calls)
    calls.clear()
    audit(mechanism, journal=journal, **options)
    assert len(calls) == 0
    assert done > 200


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"function": lambda record, rng: record + rng.laplace()}, "mechanism was mine"),
        *day_and_night(
            ({"seed": 2}, "seed was 1 and is 2"),
            ({"alpha": 0.02}, "alpha was 0.01 and is 0.02"),
            ({"draws": 300}, "draws was 60 and is 300"),
            ({"kinds": ["black-box"]}, "kinds was .* and is black-box"),
            ({"delta": Fraction(1, 1000)}, "delta was 0 and is 1/1000"),
            ({"brief": True}, "brief was False and is True"),
        ),
    ],
)
def test_the_journal_of_another_audit_is_refused(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    first = {"kinds": ["grey-box"]} if "kinds" in change else {}
    with pytest.raises(KeyboardInterrupt):
        audited(path, progress=_interrupt, **first)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=f"journal of another audit .*{says}.*Give anoth"):
        audited(path, **change)
    assert path.read_bytes() == before


def test_the_journal_of_an_audit_without_a_search_is_refused_by_one_with(tmp_path: Path) -> None:
    path, neighbour = tmp_path / "journal", np.array([[1.0, 0.0]])
    pairs = [Pair(name="ends", record=np.zeros((1, 2)), neighbour=neighbour)]
    with pytest.raises(KeyboardInterrupt):
        audited(path, pairs=pairs, progress=_interrupt)
    with pytest.raises(ConfigurationError, match="search was False and is True"):
        audited(path, pairs=pairs, search=True)


def _interrupt(step: str) -> None:
    if step != "search":
        raise KeyboardInterrupt


@pytest.mark.parametrize("text", ["no newline", "a line\n", "[1]\n", '{"dpverify": 1}\nx\n'])
def test_a_file_that_is_no_journal_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"notes\.txt is no journal"):
        audited(path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"violation"', '"no_violation_found"'),
        ('"trials"', '"search"'),
        ('"gave": ', '"gave": [1], "gave": '),
        ('"gave": ', '"gave": NaN, "was": '),
        (r"[0-9a-f]{64}", "0" * 64),
    ],
)
def test_a_line_that_was_changed_is_refused(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal, identity = AuditJournal(path), {"mechanism": "one"}
    found = {"verdict": "violation", "hits": [1, 2]}
    assert journal.kept(identity, "trials", lambda: found) == found
    assert journal.kept(identity, "trials", lambda: "again") == found
    text = path.read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    path.write_text(changed)
    if old == '"gave": ' and "NaN" not in new:  # JSON's last key counts
        assert journal.kept(identity, "trials", lambda: "again") == found
        return
    with pytest.raises(ConfigurationError, match="line 2 was changed after it was written"):
        journal.kept(identity, "trials", lambda: "again")
    assert path.read_text() == changed


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("none")])
def test_a_journal_that_is_no_file(make: Any, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    make(path)
    with pytest.raises(ConfigurationError, match="journal is not a file"):
        AuditJournal(path).kept({}, "trials", lambda: 1)


def test_a_journal_that_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="can't be written"):
        audited(tmp_path / "missing" / "journal")


@dataclass(frozen=True, slots=True)
class Scaled:
    scale: float
    values: Any = None


def test_fingerprints_tell_mechanisms_apart() -> None:
    def inner(scale: float) -> Any:
        return lambda record, rng: record + rng.laplace(scale=scale)

    assert fingerprint(of(inner(1.0))) == fingerprint(of(inner(1.0)))
    things = [
        of(inner(1.0)),
        of(inner(2.0)),
        of(halved),
        of(halved, 2),
        Scaled(1.0),
        Scaled(2.0),
        Scaled(1.0, np.zeros(2000)),
        Scaled(1.0, np.arange(2000) * 1e-9),
        partial(halved, rng=np.random.default_rng(1)),
    ]
    assert len({fingerprint(thing) for thing in things}) == len(things)


class Named:
    __slots__ = ("rows",)

    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return f"{len(self.rows)} rows"


def test_fingerprints_tell_data_apart() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    deep: list[Any] = [[[[[[[[[[1]]]]]]]]]]
    things = [
        frame,
        frame.rename(columns={"a": "c"}),
        frame.set_index("b", drop=False),
        frame.astype({"b": "category"}),
        frame["a"],
        frame["a"].rename("c"),
        pl.DataFrame({"a": [1]}),
        pl.DataFrame({"c": [1]}),
        pa.table({"a": [1]}),
        pa.table({"c": [1]}),
        Named(1),
        Named(2),
        deep,
        [*deep, 2],
        [[*deep[0], 2]],
        [[[[[[[[[[2]]]]]]]]]],
    ]
    assert len({fingerprint([thing]) for thing in things}) == len(things)
    assert fingerprint(frame) == fingerprint(frame.copy())
    assert fingerprint(Named(*"ab")) == fingerprint(Named(*"ab"))
    itself: list[Any] = []
    itself.append(itself)
    assert fingerprint(itself) == fingerprint(itself)


def counted(rows: Any, rng: np.random.Generator) -> Any:
    time.sleep(0.02)
    return len(rows) + rng.laplace()


def test_what_was_late_is_tried_again_with_a_higher_limit(tmp_path: Path) -> None:
    pair = Pair(name="one", record=[1], neighbour=[])
    options: dict[str, Any] = {"epsilon": 1, "adjacency": AddRemove(), "pairs": [pair]}
    options |= {"draws": 20, "kinds": ["sequential"], "workers": 1}
    journal = AuditJournal(tmp_path / "journal")
    late = audit(counted, journal=journal, time_limit=0.005, **options)
    assert "took longer than 0.005 s" in late.failed[0]
    assert not audit(counted, journal=journal, time_limit=10, **options).failed


@pytest.mark.nightly
def test_the_command_line_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "journal"
    words = ["audit", "planted", "--draws", "40", "--kind", "grey-box", "--journal", str(path)]
    code = _run(words)
    first = capsys.readouterr().out
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[: len(rows) // 2]))
    assert _run(words) == code
    assert capsys.readouterr().out == first
    assert but_pace(path.read_bytes()) == but_pace(b"".join(rows))
    assert _run([*words, "--seed", "1"]) == 2
    assert "is the journal of another audit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "sides",
    [
        (np.zeros((0, 2)), np.ones((1, 2))),  # of no rows, and still of two columns
        (np.array([[1, 2]]), np.array([[1, 3]])),
        ([], [{"age": 41, "when": date(2024, 2, 29), "x": float("inf"), "note": None, "b": True}]),
        ([(1, "a")], [(1, "b")]),
    ],
    ids=str,
)
def test_a_pair_comes_back_as_it_was(sides: Any) -> None:
    pair = Pair(name="mine", record=sides[0], neighbour=sides[1])
    back = pair_from_plain(json.loads(json.dumps(pair_plain(pair))))
    for side, was in ((back.record, pair.record), (back.neighbour, pair.neighbour)):
        assert type(side) is type(was)
        assert np.shape(side) == np.shape(was)
        assert np.array_equal(side, was) if isinstance(was, np.ndarray) else side == was


def test_a_pair_that_can_not_be_written_is_refused() -> None:
    pair = Pair(name="mine", record=[object()], neighbour=[])
    with pytest.raises(ParameterError, match=r"of lists, dicts, numbers, text and dates"):
        pair_plain(pair)
