"""``dpverify audit``: targets, formats and exit codes."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dpverify.cli import _run
from dpverify.cli.audit import _read
from tests.helpers.paths import ROOT
from tests.helpers.profiles import day_and_night

MODULE = """
import os
from fractions import Fraction
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import Attribute
from dpverify.auditing.targets.functions import adapt

def claimed(function):
    unit = Attribute(beta=Fraction(1))
    claim = ApproxDP(epsilon=Fraction(1))
    return adapt(function, of="record", attributes=1, adjacency=unit, claim=claim)

def laplace(record, rng):
    return record + rng.laplace(size=record.shape)

def halved(record, rng):
    return record + rng.laplace(scale=0.5, size=record.shape)

def lost(record, rng):
    raise KeyError("lost")

def prints(record, rng):
    print("printed")
    os.write(1, b"written\\n")
    return laplace(record, rng)

GOOD, BAD, LOST = claimed(laplace), claimed(halved), claimed(lost)
PRINTS = claimed(prints)
BOTH = [GOOD, BAD]

class Claimless:
    adjacency, release = None, laplace

    def privacy(self):
        return 1

CLAIMLESS = [BAD, Claimless()]
NUMBERS = [1, 2]
"""
FAST = ["--draws", "200", "--kind", "black-box", "--workers", "1"]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    name = f"audited_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.mark.parametrize(
    ("target", "more", "code"),
    [
        ("GOOD", [], 0),
        ("BAD", [], 1),
        pytest.param("BOTH", [], 1, marks=pytest.mark.nightly),
        ("LOST", [], 3),
        ("LOST", ["--allow-inconclusive"], 0),
        ("MISSING", [], 2),
        ("NUMBERS", [], 2),
        ("laplace", [], 2),
        ("GOOD", ["--alpha", "0"], 2),
        ("GOOD", ["--alpha", "nan"], 2),
        ("GOOD", ["--seed", "-1"], 2),
        ("GOOD", ["--draws", "3"], 2),
        ("GOOD", ["--kind", "white-box"], 2),
    ],
)
def test_exit_codes(module: str, target: str, more: list[str], code: int) -> None:
    assert _run(["audit", f"{module}:{target}", *FAST, *more]) == code


def test_what_a_mechanism_prints_is_no_part_of_the_report(
    module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _run(["audit", f"{module}:PRINTS", *FAST, "--json"]) == 0
    captured = capfd.readouterr()
    (report,) = json.loads(captured.out)["result"]
    assert report["notes"] == ["prints prints “printed”."]
    assert captured.err.count("printed") == captured.err.count("written") > 400


BOUNDING = """
from dpverify_audits.museum.accountants import EXHIBITS
from dpverify_audits.museum.auditors import EXHIBITS as AUDITORS

WRONG = [each for each in EXHIBITS if each.name == "A lie that may be true"]
LOOSE = [each for each in EXHIBITS if each.shown == "loose"][:1]
BOUND = [each for each in AUDITORS if each.name == "Looking until it is found"]
"""


@pytest.mark.parametrize(
    ("target", "code", "audit"),
    [("WRONG", 1, "accountant"), ("LOOSE", 0, "accountant"), ("BOUND", 1, "auditor")],
)
def test_accountants_and_auditors_are_audited_too(
    target: str, code: int, audit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bounding.py").write_text(BOUNDING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = ["audit", f"bounding:{target}", "--format", "junit", "--output", "audit.xml"]
    assert _run(line) == code
    cases = ElementTree.parse(tmp_path / "audit.xml").iter("testcase")  # noqa: S314
    outcomes = {case.get("name", "").split(",")[0]: len(case.findall("failure")) for case in cases}
    assert outcomes.keys() == {audit}
    assert max(outcomes.values()) == code


PROGRAM = """
import json, random, sys
for line in sys.stdin:
    request = json.loads(line)
    rng = random.Random(request["seed"])
    for _ in range(request["draws"]):
        noise = rng.expovariate(1) - rng.expovariate(1)
        print(json.dumps({"rows": len(request["data"]) + noise * float(sys.argv[1])}))
    sys.stdout.flush()
"""
COUNTS = """
def counted(rows, rng):
    return len(rows) + rng.laplace(scale=0.3)
"""


@pytest.mark.parametrize(
    ("target", "more", "code"),
    [
        ("python count.py 1", ["--seeded", "--many"], 0),
        ("python count.py 0.3", ["--seeded", "--many"], 1),
        ("python none.py", [], 3),
        ("counts_of_rows:counted", [], 1),
        ("counts_of_rows:counted", ["--seeded"], 2),
    ],
)
def test_commands_and_functions_of_a_data_set(
    target: str,
    more: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "count.py").write_text(PROGRAM)
    (tmp_path / "counts_of_rows.py").write_text(COUNTS)
    (tmp_path / "pairs.jsonl").write_text('{"record": [{"age": 1}], "neighbour": []}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    claim = ["--epsilon", "1", "--adjacency", "add-remove", "--pairs", "pairs.jsonl"]
    target = target.replace("python", shlex.quote(sys.executable))
    assert _run(["audit", target, *claim, *more, *FAST]) == code
    if code == 1:
        assert "--adjacency add-remove --pairs pairs.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words", "says"),
    [
        ("{}", ["--epsilon", "1", "--adjacency", "replace"], "line 1, isn't"),
        ("{}", ["--epsilon", "1"], "--adjacency are missing"),
    ],
)
def test_pairs_that_are_none(
    line: str,
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pairs.jsonl").write_text(line)
    monkeypatch.chdir(tmp_path)
    assert _run(["audit", "python -V", *words, "--pairs", "pairs.jsonl"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"record": ["\xff"], "neighbour": []}', "can't be read: 'utf-8'"),
        (b'{"record": ' + b"[" * 50_000, "line 1, isn't"),
        (b'{"record": [], "neighbour": [1], "neighbour": [2]}', "the same key twice"),
        (b'{"record": [], "neighbour": [{"a": 1, "a": 2}]}', "the same key twice"),
        (b'{"record": [], "neighbour": [1], "delta": 0}', "it has 'delta'"),
        (b'{"record": [], "neighbour": [1]}\n\n', "line 2, isn't"),
        (b"[1, 2]", "it is [1, 2]."),
        (b"null", "it is None."),
        (b'{"record": []}', "it has no 'neighbour'."),
        (b'{"record": [], "neighbour": [1e400]}', "1e400 is beyond the range of doubles."),
        (b'{"record": [], "neighbour": [{"a": -1e-400}]}', "-1e-400 is beyond the range"),
        (b'{"record": [], "neighbour": [NaN]}', "NaN isn't a number of JSON; write null"),
        (b'{"record": [-Infinity], "neighbour": []}', "-Infinity isn't a number of JSON"),
    ],
)
def test_pairs_that_cannot_be_read(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(content)
    words = ["--epsilon", "1", "--adjacency", "add-remove", "--pairs", str(pairs)]
    assert _run(["audit", "python -V", *words]) == 2
    said = capsys.readouterr().err
    assert f"dpverify: {pairs}" in said
    assert says in said


def test_zeros_of_pairs_are_no_numbers_out_of_range(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"record": [0e500, -0.00, 1E-300], "neighbour": [5e-324]}')
    (pair,) = _read(pairs)
    assert (pair.record, pair.neighbour) == ([0, 0, 1e-300], [5e-324])


def test_pairs_are_of_any_text(tmp_path: Path) -> None:
    """Of what JSON writes as it stands, Python takes some for the end of a line."""
    pairs, texts = tmp_path / "pairs.jsonl", ["\u2028", "\u0085", "é"]
    lines = [json.dumps({"record": [], "neighbour": [t]}, ensure_ascii=False) for t in texts]
    pairs.write_bytes("".join(f"{line}\r\n" for line in lines).encode("utf-8-sig"))
    assert [pair.neighbour for pair in _read(pairs)] == [[text] for text in texts]


@pytest.mark.parametrize("target", ["no-such-suite", "no_such_module:THING", ":THING"])
def test_unknown_targets(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["audit", target]) == 2
    assert "dpverify: TARGET" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["import sys; sys.exit(0)", "1 + None", "f(", "import no_such"])
def test_modules_that_cannot_be_imported(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"broken_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert _run(["audit", f"{name}:THING"]) == 2
    assert f"TARGET {name}:THING can't be loaded: " in capsys.readouterr().err


@pytest.mark.nightly
def test_what_runs_and_how_long(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a first mechanism of 100 s, two as long are left."""
    clock = iter((0.0, 0.0, 0.0, 100.0, 100.0, 200.0, 200.0))
    monkeypatch.setattr("dpverify.cli.audit.perf_counter", lambda: next(clock))
    assert _run(["audit", f"{module}:GOOD", f"{module}:GOOD", f"{module}:GOOD", *FAST]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(" ")]
    assert said == [
        "3 mechanisms, 200 draws from each side of each pair; what is left is told after the first",
        "1 of 3: laplace",
        "2 of 3: laplace, about 4 minutes left",
        "3 of 3: laplace, about 100 seconds left",
    ]


def test_reports_before_one_that_cannot_be_audited_are_written(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["audit", f"{module}:CLAIMLESS", *FAST]) == 2
    shown = capsys.readouterr()
    assert "halved: violation, at level 0.005" in shown.out
    *_, which, why = shown.err.splitlines()
    assert which.startswith("2 of 2: Claimless")
    assert why.startswith("dpverify: privacy()=1 must be a privacy curve")


def test_text(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["audit", f"{module}:BAD", *FAST]) == 1
    shown = capsys.readouterr()
    assert "halved: violation, at level 0.01" in shown.out
    for word in ("refuted by", "record", "neighbour", "epsilon is at least 1.", "at level"):
        assert word in shown.out
    assert shown.err.splitlines() == ["1 of 1: halved", "  search", "  black-box"]
    # The replay line gives the same report, with as many processes of the determinism audit.
    assert "--workers 1" in shown.out
    line = next(line for line in shown.out.splitlines() if "replay" in line)
    assert _run(shlex.split(line.split("replay: ")[1])[1:]) == 1
    assert capsys.readouterr().out == shown.out


def test_json_shares_the_level(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["audit", f"{module}:BOTH", *FAST, "--json", "--alpha", "0.02"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "audit"
    assert [found["verdict"] for found in document["result"]] == ["no_violation_found", "violation"]
    levels = [finding["level"] for found in document["result"] for finding in found["findings"]]
    assert 0.0199 < sum(levels) <= 0.02


def test_junit_into_a_file(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--format", "junit", "--output", "audit.xml"]
    assert _run(["audit", f"{module}:BOTH", f"{module}:LOST", *FAST, *options]) == 1
    assert capsys.readouterr().out == ""
    suite = ElementTree.parse("audit.xml").getroot()  # noqa: S314  # our own file
    assert suite.tag == "testsuites"
    assert [(one.get("name"), one.get("failures"), one.get("skipped")) for one in suite] == [
        ("laplace", "0", "0"),
        ("halved", "1", "0"),
        ("lost", "0", "1"),
    ]
    tags = [[child.tag for child in case] for case in suite.iter("testcase")]
    assert [one for one in tags if one != ["system-out"]] == [["failure"], ["skipped"]]
    assert tags[0] == ["system-out"]
    counts = suite.get("tests"), suite.get("failures"), suite.get("skipped")
    assert counts == (str(len(tags)), "1", "1")
    failed = suite.find(".//failure")
    assert failed is not None
    assert failed.attrib["message"].startswith("violation: output")
    assert "replay: dpverify audit" in (failed.text or "")
    left = [path.name for path in Path().iterdir() if "audit.xml" in path.name]
    assert left == ["audit.xml"]


def test_an_output_that_can_not_be_written(module: str) -> None:
    assert _run(["audit", f"{module}:GOOD", *FAST, "--output", "no/such/folder.txt"]) == 2


@pytest.mark.nightly
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "audit_your_own.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "clipped_mean: no violation found" in shown
    assert "clipped_mean_of_too_little_noise: violation" in shown


def test_quiet_and_verbose(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for option in ("--quiet", "--draws=200", "--verbose"):  # the second says nothing new
        assert _run(["audit", f"{module}:GOOD", *FAST, option]) == 0
        shown[option] = capsys.readouterr()
    assert len({text.out for text in shown.values()}) == 1
    assert shown["--quiet"].err == ""
    assert shown["--draws=200"].err.splitlines() == ["1 of 1: laplace", "  search", "  black-box"]
    said = shown["--verbose"].err
    assert "draws: 200 (command line)" in said
    assert "seed: 0 (default)" in said
    assert "  no_violation_found, " in said
    assert _run(["audit", f"{module}:GOOD", *FAST, "-q", "-v"]) == 2
    assert "not both" in capsys.readouterr().err


@pytest.mark.nightly
def test_a_profile(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["audit", f"{module}:BAD", "--profile", "dev", "--draws", "120", "-q"]) == 1
    shown = capsys.readouterr().out
    assert "halved: violation, at level 0.001" in shown
    assert "precision" not in shown.split("replay")[0]
    assert shown.rstrip().endswith(
        "--alpha 0.001 --draws 120 --seed 0 --without precision-of-doubles"
    )


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize("given", day_and_night("1", ""))
def test_no_color(given: str) -> None:
    import pty

    own, other = pty.openpty()
    environment = {**os.environ, "NO_COLOR": given, "TERM": "xterm-256color", "COLUMNS": "100"}
    code = "from dpverify.cli import main; main(['audit', '--show-config'])"
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, env=environment, stdout=other, stderr=other)
    os.close(other)
    shown = os.read(own, 1 << 16)
    os.close(own)
    assert b"default" in shown
    assert (b"\x1b" in shown) == (not given)


@pytest.mark.parametrize("option", ["--draws", "--seed", "--alpha", "--workers"])
@pytest.mark.parametrize("number", ["٥", "1_0", "５"])
def test_numbers_are_ascii(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`int` and `float` read digits of every script, and underscores."""
    assert _run(["audit", "planted", option, number]) == 2
    assert "is not a number" in capsys.readouterr().err
