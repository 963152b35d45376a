"""Programs in any language, over JSON lines: what they answer, and how they fail and end."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.outputs import samples
from dpverify.auditing.targets.command import Command
from dpverify.errors import DrawError, ParameterError
from dpverify.privacy import Pair
from tests.helpers.profiles import crossed

READ = "import json, os, random, sys\nfor line in sys.stdin:\n request = json.loads(line)\n "
SUM = "print(json.dumps(sum(x for [x] in request['data'])), flush=True)"
RNG = np.random.default_rng(1)
PAIR = Pair(name="one row", record=[[1.0]], neighbour=[[1.0], [1.0]])


class Rows:
    """One row more or less."""

    unit = "one row"
    of = "dataset"

    def relates(self, data: Any, neighbour: Any) -> bool:
        return abs(len(data) - len(neighbour)) == 1


def program(body: str, **declared: bool) -> Command:
    return Command([sys.executable, "-c", READ + body], **declared)


def audited(command: Any, **words: Any) -> dpv.Report:
    settings: dict[str, Any] = {"epsilon": 1, "adjacency": Rows(), "pairs": [PAIR], "workers": 1}
    return dpv.audit(command, **settings | {"kinds": ["black-box"], "draws": 120} | words)


def children() -> set[str]:
    """Processes that this one started and that have not been waited for."""
    tasks = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(tasks.read_text().split()) if tasks.exists() else set()


def test_one_process_answers_every_request_and_ends() -> None:
    before = children()
    command = program("print(json.dumps([os.getpid(), request['data']]), flush=True)")
    first, second = command([[1.0]]), command(np.array([[2.0]]))
    assert first == [second[0], [[1.0]]]
    assert second[1] == [[2.0]]
    copy = pickle.loads(pickle.dumps(command))  # noqa: S301 - our own
    assert copy == command
    assert copy([[1.0]])[0] != first[0]
    copy.close()
    del command
    assert children() == before


def test_a_seed_decides_all() -> None:
    command = program("print(random.Random(request['seed']).random(), flush=True)", seeded=True)
    one, two = (command([], np.random.default_rng(3)) for _ in range(2))
    assert one == two != command([], np.random.default_rng(4))
    command.close()


BROKEN = {
    "rubbish": ("print('done.', flush=True)", "wrote a line that isn't JSON: done."),
    "digits": ("print('9' * 5000, flush=True)", "wrote a line that Python can't read (ValueError"),
    "depth": ("print('[' * 10**5, flush=True)", "Python can't read (RecursionError"),
    "two values": ('print(\'{"a": 1, "a": 2}\', flush=True)', "an object has the same key twice"),
    "exponent": ("print('1e9999999999999999999', flush=True)", "Python can't read (InvalidOperat"),
    "two lines": ("print(1); print(2, flush=True)", "wrote a line that no request asked for"),
    "ends": (
        "sys.exit('no money left')",
        "ended, with exit status 1. Its standard error: no money",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_goes_wrong_is_inconclusive_with_its_standard_error(name: str) -> None:
    body, says = BROKEN[name]
    before = children()
    report = audited(program(body))
    assert report.verdict == "inconclusive"
    assert says in str(report)
    assert "-c 'import json, os" in report.mechanism
    assert report.mechanism.isprintable()
    assert children() == before


def test_a_greeting_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each answer would be that of the request before, as often as not of the other side."""
    settled = "dpverify.auditing.targets.command._SETTLED"
    monkeypatch.setattr(settled, 60.0)  # of which none is waited for
    greeting = Command([sys.executable, "-c", f"print(0, flush=True)\n{READ}{SUM}"])
    with pytest.raises(DrawError, match="wrote a line that no request asked for"):
        greeting([[1.0]])


@pytest.mark.parametrize(
    ("numeral", "said"),
    [
        ("0.10", 0.1),
        ("0.1000000000000000055511151231257827", 0.1),  # by a language that prints them all
        ("5e-324", 5e-324),
        ("-0", -0.0),
        ("0.1000000000000000000000000000000001", Decimal("0.1000000000000000000000000000000001")),
        ("1e-400", Decimal("1e-400")),
        ("1E400", Decimal("1e400")),
        ("123456789012345678901", 123456789012345678901),
    ],
)
def test_all_digits_of_a_number_are_read(numeral: str, said: Any) -> None:
    command = program(f"print('{numeral}', flush=True)")
    assert repr(command([[1.0]])) == repr(said)
    command.close()


def test_one_that_hangs_is_ended_with_what_it_started() -> None:
    before = children()
    start = time.perf_counter()
    body = "import subprocess; subprocess.run(['sleep', '60'])"
    report = audited(program(body), time_limit=0.3)
    assert report.verdict == "inconclusive"
    assert "took longer than 0.3 s" in str(report)
    assert time.perf_counter() - start < 20
    assert children() == before


def test_what_can_not_be_started_or_asked() -> None:
    assert "can't be started" in str(audited(Command("no-such-program-at-all")))
    with pytest.raises(DrawError, match="JSON can't hold the data"):
        program(SUM)([[float("nan")]])
    with pytest.raises(ParameterError, match="a program and its arguments"):
        Command([])


NOISE = (
    "rng = random.Random(request['seed']); "
    "draws = request.get('draws', 1)\n for _ in range(draws): "
    "print(len(request['data']) + SCALE * (rng.expovariate(1) - rng.expovariate(1)))\n "
    "sys.stdout.flush()"
)


@pytest.mark.parametrize(("scale", "many"), crossed(["1", ".4"], [False, True]))
def test_a_program_is_audited(scale: str, many: bool) -> None:
    command = program(NOISE.replace("SCALE", scale), seeded=True, many=many)
    assert audited(command).verdict == ("no_violation_found" if scale == "1" else "violation")


@pytest.mark.parametrize(
    ("words", "leak"), [("len(request['data']), 'rows'", True), ("rng.random(), 'noise'", False)]
)
def test_what_a_program_says_as_errors_is_watched(words: str, leak: bool) -> None:
    noisy = NOISE.replace("SCALE", "1").replace(
        "draws =", f"print({words}, file=sys.stderr); draws ="
    )
    report = audited(program(noisy, seeded=True))
    assert report.verdict == ("inconclusive" if leak else "no_violation_found")
    assert [("what" in reason, "depends on the data" in reason) for reason in report.failed] == (
        [(True, True)] if leak else []
    )
    assert [note for note in report.notes if "prints “" in note]


def test_that_a_program_is_started_again_is_none_of_its_effects() -> None:
    few = "count = globals().get('count', 0) + 1\n count > 20 and sys.exit()\n "
    report = audited(program(few + NOISE.replace("SCALE", "1"), seeded=True))
    assert report.verdict == "inconclusive"
    assert report.notes == ()


@pytest.mark.parametrize(
    ("start", "verdict"), [(0, "no_violation_found"), ("count + 1", "inconclusive")]
)
def test_what_a_program_adds_up_is_not_judged(start: Any, verdict: str) -> None:
    """Behind a number that rises, noise that is too small can't be seen."""
    count = f"count = globals().get('count', 0)\n count = {start}\n "
    report = audited(
        program(
            count + NOISE.replace("SCALE", "1").replace("print(", "print(count + "), seeded=True
        )
    )
    assert report.verdict == verdict
    assert ["gives others later than sooner" in reason for reason in report.failed] == (
        [True] if verdict == "inconclusive" else []
    )


@pytest.mark.nightly
def test_workers_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    mark = f"# {tmp_path.name} {os.getpid()}"
    command = program(f"{NOISE.replace('SCALE', '1')} {mark}", seeded=True)
    one, two = (audited(command, draws=2000, workers=workers) for workers in (1, 2))
    assert one.findings[0].statement == two.findings[0].statement

    def left() -> list[Path]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                found += [process] if mark.encode() in (process / "cmdline").read_bytes() else []
        return found

    until = time.monotonic() + 10  # a worker gives its last answer before it ends its program
    while left() and time.monotonic() < until:
        time.sleep(0.01)
    assert left() == []


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_program_of_node() -> None:
    script = """
    require('readline').createInterface({input: process.stdin}).on('line', line => {
      const noise = Math.log(Math.random()) - Math.log(Math.random());
      console.log(JSON.stringify({count: JSON.parse(line).data.length + SCALE * noise}));
    });"""
    for scale, verdict in (("1", "no_violation_found"), ("0.4", "violation")):
        command = Command(["node", "-e", script.replace("SCALE", scale)])
        assert audited(command).verdict == verdict
