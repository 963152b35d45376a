"""What releases do beside giving outputs: noted, bounded, and never taken for private."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.side_effects import SideEffects, side_effects
from dpverify.auditing.targets.encoded import Encoded
from dpverify.auditing.targets.functions import adapt

LOG = logging.getLogger("its own")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())  # as one whose file is open
PAIR = dpv.Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


def prints(data: Any, rng: Any) -> None:
    print("hello")


def prints_native(data: Any, rng: Any) -> None:
    os.write(2, b"hello\n")


def prints_noise(data: Any, rng: Any) -> None:
    print("noisy", data.sum() + rng.laplace(), file=sys.stderr)


def writes(data: Any, rng: Any) -> None:
    Path("noted").write_text("x")


def removes(data: Any, rng: Any) -> None:
    Path("noted").touch()
    Path("noted").unlink()


def connects(data: Any, rng: Any) -> None:
    with socket.socket() as there:
        there.settimeout(0.01)
        there.connect_ex(("127.0.0.1", 9))


def starts(data: Any, rng: Any) -> None:
    subprocess.Popen([sys.executable, "-c", ""]).wait()


def forks(data: Any, rng: Any) -> None:
    if os.fork():
        os.wait()


def changes(data: Any, rng: Any) -> None:
    data[...] = 7


def writes_in_a_thread(data: Any, rng: Any) -> None:
    thread = threading.Thread(target=writes, args=(data, rng))
    thread.start()
    thread.join()


def sets(data: Any, rng: Any) -> None:
    os.environ["NOTED"] = "x"


def moves(data: Any, rng: Any) -> None:
    os.chdir(".")


def quiet(data: Any, rng: Any) -> None:
    Path(os.devnull).write_text("x")
    Path(__file__).read_text()


def of(does: Callable[[Any, Any], None]) -> dpv.Mechanism:
    def named(data: Any, rng: Any) -> float:
        does(data, rng)
        return float(data.sum() + rng.laplace())

    claim = dpv.ApproxDP(epsilon=1)
    return adapt(named, of="record", adjacency=dpv.Attribute(1), claim=claim)


def watched(does: Callable[[Any, Any], None]) -> SideEffects:
    return side_effects(of(does), PAIR, AuditConfig(workers=1))


@pytest.mark.parametrize(
    ("does", "note"),
    [
        (prints, "prints “hello”."),
        (prints_native, "prints “hello”."),
        (prints_noise, "prints “noisy "),
        (writes, "writes noted."),
        (removes, "removes noted."),
        (writes_in_a_thread, "writes noted."),
        (sets, "changes the environment: NOTED=x."),
        (moves, "changes the working folder to .."),
        (connects, "connects to 127.0.0.1:9."),
        (changes, "changes the data that it is given; each release got a copy."),
        pytest.param(starts, "starts ", marks=pytest.mark.nightly),
        pytest.param(forks, "forks.", marks=pytest.mark.nightly),
    ],
)
def test_what_a_release_does_is_noted(
    does: Callable[[Any, Any], None],
    note: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTED", "")
    effects = watched(does)
    assert any(each.startswith(f"named {note}") for each in effects.notes), effects.notes
    assert not effects.leak


def test_nothing_is_noted_of_what_does_nothing_else() -> None:
    assert watched(quiet) == SideEffects(())


def test_who_asks_for_the_hash_of_a_path_changes_nothing() -> None:
    def hashed(path: Path, rng: Any) -> float:
        return float(hash(path) * 0 + rng.laplace())

    class Anything:
        unit = "anything"

        def relates(self, data: Any, neighbour: Any) -> bool:
            return True

    pair = dpv.Pair(name="a", record=Path("a"), neighbour=Path("b"))
    claim = dpv.ApproxDP(epsilon=1)
    mechanism = adapt(hashed, of="dataset", adjacency=Anything(), claim=claim)
    assert side_effects(mechanism, pair, AuditConfig(workers=1)) == SideEffects(())


class KeepsRows:
    """An estimator that is published with the rows that it learned from."""

    def __init__(self) -> None:
        self.rows: Any = None

    def fit(self, X: Any) -> KeepsRows:
        self.rows, self._size = X, len(X)
        self.mean_ = X.mean() + np.random.default_rng().laplace()
        return self


def test_what_an_estimator_keeps_beside_what_it_learned_is_noted() -> None:
    kept = adapt(KeepsRows(), adjacency=dpv.AddRemove(), claim=dpv.ApproxDP(epsilon=1))
    pair = dpv.Pair(name="a row", record=np.ones((2, 1)), neighbour=np.ones((1, 1)))
    effects = side_effects(kept, pair, AuditConfig(workers=1))
    assert effects.notes == (
        "KeepsRows keeps rows, _size of its fit: what ends in _ is its output.",
    )


def test_a_function_that_returns_nothing_is_said_to() -> None:
    def named(data: Any, rng: Any) -> None:
        data.sum() + rng.laplace()

    claim = dpv.ApproxDP(epsilon=1)
    silent = adapt(named, of="record", adjacency=dpv.Attribute(1), claim=claim)
    effects = side_effects(silent, PAIR, AuditConfig(workers=1))
    assert effects.notes == ("named returns nothing but None, where 18 calls were watched.",)


def leaks_a_number(data: Any, rng: Any) -> None:
    print(f"true {data.sum()}, noisy {data.sum() + rng.laplace()}")


def leaks_a_word(data: Any, rng: Any) -> None:
    os.write(1, b"large\n" if data.sum() > 0.5 else b"small\n")


def leaks_a_sentence(data: Any, rng: Any) -> None:
    """Whose characters are an array of ours."""
    print("somebody is here" if data.sum() > 0.5 else "nobody at all is")


def leaks_a_file(data: Any, rng: Any) -> None:
    if data.sum() > 0.5:
        Path("noted").touch()


def leaks_a_warning(data: Any, rng: Any) -> None:
    """Python shows it once for each text and place, which may have been before."""
    warnings.warn(f"{data.sum():g} rows", RuntimeWarning, stacklevel=1)


def leaks_into_a_file(data: Any, rng: Any) -> None:
    with Path("noted").open("a") as file:
        file.write(f"{data.sum():g} rows, noisy {rng.laplace()}\n")


def leaks_by_renaming(data: Any, rng: Any) -> None:
    Path("new").write_text(f"{data.sum():g} rows")
    Path("new").replace("noted")


def leaks_by_a_thread(data: Any, rng: Any) -> None:
    thread = threading.Thread(target=leaks_into_a_file, args=(data, rng))
    thread.start()
    thread.join()


def leaks_into_the_environment(data: Any, rng: Any) -> None:
    os.environ["NOTED"] = f"{data.sum():g}"


def leaks_elsewhere(data: Any, rng: Any) -> None:
    here = Path.cwd()
    (here / "there").mkdir(exist_ok=True)
    os.chdir("there")
    leaks_into_a_file(data, rng)
    os.chdir(here)


def leaks_into_the_log(data: Any, rng: Any) -> None:
    LOG.warning("%d rows, noisy %s", int(data.sum()), rng.laplace())


def leaks_by_its_place(data: Any, rng: Any) -> None:
    os.chdir("." if data.sum() > 0.5 else "..")


LEAKS = [
    leaks_a_number,
    leaks_a_word,
    leaks_a_sentence,
    leaks_a_file,
    leaks_a_warning,
    leaks_into_a_file,
]
LEAKS += [leaks_by_renaming, leaks_by_a_thread, leaks_into_the_environment]
LEAKS += [leaks_elsewhere, leaks_by_its_place, leaks_into_the_log]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("does", LEAKS)
def test_what_depends_on_the_data_is_not_counted_as_private(
    does: Callable[[Any, Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTED", "")

    def showwarning(message: Any, *more: Any, **named: Any) -> None:  # as outside of pytest
        print(message, file=sys.stderr)

    monkeypatch.setattr(warnings, "showwarning", showwarning)
    report = dpv.audit(of(does), pairs=[PAIR], kinds=["black-box"], draws=50, workers=1)
    assert report.verdict == "inconclusive"
    assert "depends on the data" in report.failed[0]
    assert "shape=" not in report.failed[0]  # of our own arrays
    assert report.notes == tuple(report.to_dict()["notes"])
    assert f"not audited: {report.notes[0]}" in str(report)


def test_noise_in_a_log_is_no_leak() -> None:
    def logs(data: Any, rng: Any) -> None:
        LOG.warning("noisy %s", data.sum() + rng.laplace())
        LOG.info("not shown: %s", data.sum())
        LOG.warning("%d", "no number")

    assert watched(logs) == SideEffects(("named logs to its own.",))


def test_noise_in_a_file_is_no_leak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def logs(data: Any, rng: Any) -> None:
        with Path("noted").open("a") as file:
            file.write(f"noisy {data.sum() + rng.laplace()}\n")

    monkeypatch.chdir(tmp_path)
    effects = watched(logs)
    assert effects.notes == ("named writes noted.",)
    assert not effects.leak


@pytest.mark.parametrize(("cut_off", "told"), [(0.0, True), (1.0, False)])
def test_what_is_cut_off_from_an_arrow_array_is_no_output(cut_off: float, told: bool) -> None:
    pa = pytest.importorskip("pyarrow")

    def slices(data: Any, rng: Any) -> Any:
        noise = rng.laplace(size=2) * [1, cut_off]
        return {"sum": pa.array(data.sum() + noise)[:1]}

    claim = dpv.ApproxDP(epsilon=1)
    mechanism = adapt(slices, claim=claim, adjacency=dpv.Attribute(1), of="record", attributes=1)
    leak = side_effects(mechanism, PAIR, AuditConfig(workers=1)).leak
    assert ("cut off from its Arrow arrays" in leak) == told == bool(leak)


@dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
def noisy(total: float, rng: Any) -> float:
    return float(total + rng.laplace())


def declares(data: Any, rng: Any) -> float:
    dpv.ensure_equal("sum", float(data.sum()))
    return noisy(float(data.sum()), rng)


def test_what_code_declares_is_named_where_nobody_checks_it() -> None:
    marked = adapt(declares, of="record", adjacency=dpv.Attribute(1), claim=dpv.ApproxDP(epsilon=1))
    found = side_effects(marked, PAIR, AuditConfig(workers=1))
    assert found == SideEffects((), "", ("ensure_equal(“sum”)", "primitive noisy"))
    audited = partial(dpv.audit, marked, pairs=[PAIR], draws=50, workers=1)
    note = (
        "declares declares ensure_equal(“sum”), primitive noisy, which "
        'kinds=["frozen-outputs"] checks.'
    )
    assert audited(kinds=["black-box"]).notes == (note,)
    report = audited(kinds=["frozen-outputs"])
    assert (report.verdict, report.notes) == ("violation", ())


def test_the_file_of_a_table_is_not_the_mechanisms() -> None:
    rows = dpv.Table({"age": dpv.Integers(0, 120)}, make="csv")
    pair = dpv.Pair(name="a row more", record=[{"age": 7}], neighbour=[])

    def counts(path: Path, rng: Any) -> float:
        return float(len(path.read_text().splitlines()) + rng.laplace())

    claim = dpv.ApproxDP(epsilon=1)
    counted = adapt(counts, adjacency=dpv.AddRemove(), claim=claim, domain=rows)
    for mechanism in (counted, Encoded(counted, round)):
        assert side_effects(mechanism, pair, AuditConfig(workers=1)) == SideEffects(())


@pytest.mark.parametrize(
    ("make", "adjacency", "alike"),
    [
        (lambda rows: [row["Age"] for row in rows if "Age" in row], dpv.AddRemove(), True),
        (lambda rows: [row["age"] for row in rows], dpv.AddRemove(), False),
        (lambda rows: [], dpv.Permutation(), False),
        ("dicts", dpv.AddRemove(), False),
    ],
)
def test_data_that_are_made_alike_are_noted(
    make: Any, adjacency: dpv.Adjacency, alike: bool
) -> None:
    table = dpv.Table({"age": dpv.Integers(0, 120)}, rows=(0, 3), make=make)

    def count(people: Any, rng: Any) -> float:
        return float(len(people) + rng.laplace())

    report = dpv.audit(
        count,
        epsilon=1,
        adjacency=adjacency,
        domain=table,
        draws=20,
        workers=1,
        kinds=["black-box"],
    )
    said = "count is given the same for both data sets of every pair"
    assert any(note.startswith(said) for note in report.notes) == alike


def test_what_is_said_once_is_no_leak() -> None:
    said: list[int] = []

    def warns(data: Any, rng: Any) -> None:
        if not said:
            print("odd")
        said.append(1)

    assert watched(warns) == SideEffects(("named prints “odd”.",))


def test_what_is_said_each_other_time_is_no_leak() -> None:
    numbers = itertools.count()

    def flushes(data: Any, rng: Any) -> None:
        if next(numbers) % 2:
            print("flushed")

    assert watched(flushes) == SideEffects(("named prints “flushed”.",))


def test_what_others_do_is_not_the_mechanisms(tmp_path: Path) -> None:
    """Another thread writes all the while; and streams and descriptors are as before."""
    idle = threading.Event()

    def load() -> None:
        while not idle.is_set():
            (tmp_path / "other").write_text("x")

    before = sys.stdout, sys.stderr, os.fstat(1), os.fstat(2)
    other = threading.Thread(target=load)
    other.start()
    try:
        assert watched(quiet).notes == ()
    finally:
        idle.set()
        other.join()
    after = sys.stdout, sys.stderr, os.fstat(1), os.fstat(2)
    assert [getattr(each, "st_ino", each) for each in after] == [
        getattr(each, "st_ino", each) for each in before
    ]


def test_a_closed_stream_is_left_closed() -> None:
    """As in a daemon, which has no standard output."""
    program = """
import os, sys, tempfile
os.close(1)
from dpverify.auditing.side_effects import _watching
with tempfile.TemporaryFile(), _watching() as effects:
    print("hello", file=sys.stderr)
os.write(2, repr(effects.text).encode())
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert run.stderr == b"'hello\\n'"


def test_a_stream_that_a_release_detaches_is_given_back() -> None:
    def detaches(data: Any, rng: Any) -> None:
        sys.stdout.detach()  # type: ignore[union-attr]

    before = sys.stdout
    assert watched(detaches) == SideEffects(())
    assert sys.stdout is before


def test_a_late_release_leaves_the_streams_alone() -> None:
    def hangs(data: Any, rng: Any) -> None:
        while True:
            pass

    before = sys.stdout, os.fstat(1).st_ino
    with pytest.raises(dpv.DPVerifyError, match="took longer"):
        side_effects(of(hangs), PAIR, AuditConfig(workers=1, time_limit=0.02))
    assert before == (sys.stdout, os.fstat(1).st_ino)
