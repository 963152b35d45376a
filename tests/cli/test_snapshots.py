"""What people read when something is wrong, word for word.

The counts in them come from replayable draws, and numpy's distributions of the pinned version.
Each text is a file under tests/snapshots. After a change that is meant, write them anew with
``DPVERIFY_WRITE_SNAPSHOTS=1 pytest tests/cli/test_snapshots.py`` and read the difference.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpverify.auditing.settings import VARIABLE
from dpverify.cli import _run
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.usefixtures("all_candidates")  # of which reports speak

pytest_plugins = ["pytester"]

FOLDER = ROOT / "tests" / "snapshots"
SCREEN = 40  # lines
WRITE = "DPVERIFY_WRITE_SNAPSHOTS"

MINE = """\
from fractions import Fraction

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import Attribute
from dpverify.auditing.targets.functions import adapt

UNIT = Attribute(beta=Fraction(1))


def count(record, rng):
    return record.sum() + rng.laplace(scale=1.0)


def halved(record, rng):
    return record.sum() + rng.laplace(scale=0.5)


def zero_without_noise(record, rng):
    if record[0] == 0:
        return record[0]
    return record[0] + rng.laplace()


def lost(record, rng):
    return {}["total"]


def claimed(function):
    claim = ApproxDP(epsilon=Fraction(1))
    return adapt(function, of="record", attributes=1, adjacency=UNIT, claim=claim)


COUNT, HALVED, LEAKS, LOST = map(claimed, (count, halved, zero_without_noise, lost))
"""
TEST = """
import pytest
from mine import UNIT, count, halved

pytestmark = pytest.mark.dp_audit(epsilon=1, adjacency=UNIT, of="record", attributes=1)


def test_halved(dp_audit):
    dp_audit(halved)


def test_a_bug_that_is_none(dp_audit):
    dp_audit(count, expect="violation", kinds=["black-box"])


def test_forgets(dp_audit):
    pass
"""


def compare(name: str, shown: str) -> None:
    path = FOLDER / name
    if os.environ.get(WRITE):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8"), f"{path} differs: {WRITE}=1 writes it anew"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    sys.modules.pop("mine", None)


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("scale-halved", ["mine:HALVED", "--without", "precision"], 1),
        pytest.param("noise-missing", ["mine:LEAKS"], 1, marks=pytest.mark.nightly),
        ("doubles", ["mine:COUNT", "--kind", "precision"], 1),
        ("no-violation", ["mine:COUNT", "--kind", "black-box", "--kind", "sequential"], 0),
        ("raises", ["mine:LOST"], 3),
        ("mistyped-object", ["mine:HALVD"], 2),
        ("not-adapted", ["mine:halved"], 2),
        ("mistyped-suite", ["plantd"], 2),
        ("draws-too-few", ["mine:COUNT", "--draws", "3"], 2),
    ],
)
def test_audit(
    name: str, arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = ["--draws", "1000"] if "--draws" not in arguments else []
    assert _run(["audit", *arguments, *fixed, "--workers", "1"]) == code
    shown = capsys.readouterr()
    text = f"{shown.out}--- stderr\n{shown.err}"
    compare(f"audit-{name}.txt", text)
    assert shown.out.count("\n") <= SCREEN
    if code == 1:  # what is broken, by the third line
        assert "violation" in shown.out.splitlines()[0]
        assert "refuted by" in shown.out.splitlines()[2]


@pytest.mark.usefixtures("mine")
def test_what_a_refused_function_lacks_works_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["audit", "mine:halved"]) == 2
    message = capsys.readouterr().err
    claim = textwrap.dedent(message.partition("mine:audited\n")[2])
    with Path("mine.py").open("a", encoding="utf-8") as file:
        file.write(claim)
    sys.modules.pop("mine")
    arguments = ["mine:audited", "--draws", "1000", "--kind", "trade-off", "--workers", "1"]
    assert _run(["audit", *arguments]) == 1
    assert "refuted by" in capsys.readouterr().out


@pytest.mark.nightly
def test_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, "CI", "BUILD_NUMBER"):  # with the last two, pytest tells more
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    pytester.makepyfile(mine=MINE, test_mine=TEST)
    options = ("-p", "no:randomly", "-p", "no:cacheprovider", "-q", "--no-header", "--color=no")
    result = pytester.runpytest_inprocess(*options)
    assert result.outlines[-1].startswith("2 failed, 1 passed, 1 error in ")
    compare("pytest.txt", "\n".join(result.outlines[:-1]) + "\n")
