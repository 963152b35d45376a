"""Which value counts: command line, environment, file, default."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.auditing.settings import DEFAULTS, PROFILES, VARIABLE, Source, settings_file, settle
from dpverify.cli import _run
from dpverify.errors import ConfigurationError, did_you_mean

pytest_plugins = ["pytester"]
NOTHING = Source("command line", {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(folder: Path, **named: Any) -> dict[str, Any]:
    settled = settle(Source("command line", named), folder=folder)
    return {name: setting.value for name, setting in settled.items()}


def test_defaults(folder: Path) -> None:
    settled = settle(NOTHING, folder=folder)
    assert {name: setting.value for name, setting in settled.items()} == DEFAULTS
    assert {setting.origin for setting in settled.values()} == {"default"}


def test_every_source_covers_the_ones_after_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dpverify.toml").write_text("alpha = 0.2\ndraws = 500\nseed = 3\n")
    assert values(folder, alpha=0.5) == {**DEFAULTS, "alpha": 0.5, "draws": 500, "seed": 3}
    monkeypatch.setenv(VARIABLE, "nightly")
    found = settle(Source("command line", {"alpha": 0.5}), folder=folder)
    origin = f"profile nightly, {VARIABLE}"
    assert (found["alpha"].value, found["alpha"].origin) == (0.5, "command line")
    assert (found["draws"].value, found["draws"].origin) == (PROFILES["nightly"].draws, origin)
    assert (found["seed"].value, found["seed"].origin) == (3, str(folder / "dpverify.toml"))
    assert values(folder, profile="dev")["draws"] == PROFILES["dev"].draws


def test_a_named_value_comes_before_the_profile_of_its_source(folder: Path) -> None:
    (folder / "dpverify.toml").write_text('profile = "ci"\ndraws = 500\n')
    found = values(folder)
    assert (found["draws"], found["alpha"], found["without"]) == (
        500,
        1e-4,
        ("precision-of-doubles",),
    )


def test_kinds_and_without_are_one_choice(folder: Path) -> None:
    (folder / "dpverify.toml").write_text('kinds = ["precision"]\n')
    assert values(folder)["kinds"] == ("precision",)
    found = values(folder, without=("precision",))
    assert (found["kinds"], found["without"]) == (None, ("precision",))
    found = values(folder, profile="dev", kinds=("precision",))
    assert found["kinds"] == ("precision",)


def test_the_nearest_file(folder: Path) -> None:
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.dpverify]\ndraws = 100\n")
    (folder / "a" / "pyproject.toml").write_text("[tool.other]\ndraws = 300\n")
    assert settings_file(below) == Source(str(folder / "pyproject.toml"), {"draws": 100})
    (folder / "dpverify.toml").write_text("draws = 200\n")
    assert settings_file(below).values == {"draws": 200}
    (below / "dpverify.toml").write_text("")
    assert settings_file(below) == Source(str(below / "dpverify.toml"), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drows = 100", "unknown setting drows. Did you mean draws?"),
        ("[audit]", "unknown setting audit. Known: profile, alpha"),
        ("draws = 3", "draws=3 must be at least 20."),
        ("draws = true", "draws=True must be a finite real number"),
        ("draws = 20.5", "draws=20.5 must be a whole number"),
        ("alpha = nan", "alpha=nan must be a finite real number."),
        ("alpha = 1", "alpha=1 must be"),
        ("seed = -1", "seed=-1 must be"),
        ("workers = 0", "workers=0 must be"),
        ("workers = -2", "workers=-2 must be"),
        ("time_limit = 0", "time_limit=0 must be"),
        ('profile = "certfy"', "profile=certfy is unknown. Did you mean certify?"),
        ('kinds = "precision"', "kinds=precision must be a list"),
        ("kinds = []", "kinds is empty"),
        ('kinds = ["blackbox"]', "kinds=blackbox is unknown. Did you mean black-box?"),
        ('without = ["moments"]', "without=moments is unknown. Known: exhaustive"),
        ("draws =", "is not TOML"),
    ],
)
def test_mistakes_in_the_file(
    folder: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dpverify.toml").write_text(text)
    assert _run(["audit", "--show-config"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(folder / "dpverify.toml") in shown.err
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_the_table_must_be_one(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool]\ndpverify = 3\n")
    with pytest.raises(ConfigurationError, match=r"tool\.dpverify=3 must be a table"):
        settings_file(folder)


@pytest.mark.parametrize("name", ["dpverify.toml", "pyproject.toml"])
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("none")])
def test_what_is_no_file_is_not_passed_over(name: str, make: Any, folder: Path) -> None:
    (folder / "pyproject.toml").unlink(missing_ok=True)
    make(folder / name)
    with pytest.raises(ConfigurationError, match=f"{name}: is not a file, but a folder"):
        settings_file(folder)


def test_show_config(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text('[tool.dpverify]\nprofile = "ci"\n')
    assert _run(["audit", "--show-config", "--draws", "300"]) == 0
    shown = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    origin = str(folder / "pyproject.toml")
    assert shown == [
        ["setting", "value", "from"],
        ["profile", "ci", origin],
        ["alpha", "0.0001", f"profile ci, {origin}"],
        ["draws", "300", "command line"],
        ["seed", "0", "default"],
        ["kinds", "those that apply", f"profile ci, {origin}"],
        ["without", "precision-of-doubles", f"profile ci, {origin}"],
        ["workers", "-1", "default"],
        ["time_limit", "10.0", "default"],
    ]
    assert _run(["audit", "--show-config", "--json", "--draws", "300"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["result"]["draws"] == {"value": 300, "from": "command line"}
    assert list(document["result"]) == list(DEFAULTS)


@given(st.lists(st.sampled_from([*DEFAULTS]), unique=True), st.data())
def test_the_first_that_speaks_decides(speakers: list[str], data: st.DataObject) -> None:
    """For settings without profiles: the rule, said again in one line."""
    options: dict[str, list[Any]] = {
        "alpha": [0.1, 0.2],
        "draws": [20, 30],
        "seed": [1, 2],
        "workers": [1, 2],
        "time_limit": [1.0, 2.0],
    }
    first = {n: data.draw(st.sampled_from(options[n])) for n in speakers if n in options}
    settled = settle(Source("command line", first), folder=Path("/"))
    for name in options:
        assert settled[name].value == first.get(name, DEFAULTS[name])


@pytest.mark.parametrize(
    ("given_name", "known", "says"),
    [
        ("blackbox", ["black-box", "white-box"], "Did you mean black-box?"),
        ("x", ["black-box"], "Known: black-box."),
        ("x", [], "None is installed."),
    ],
)
def test_did_you_mean(given_name: str, known: list[str], says: str) -> None:
    assert did_you_mean(given_name, known) == says
    assert did_you_mean("x", known, otherwise="Ask.") == "Ask."


TEST = """
from fractions import Fraction
from dpverify.data.adjacency import Attribute

def test_mine(dp_audit):
    report = dp_audit(
        lambda record, rng: record + rng.laplace(size=record.shape),
        of="record",
        attributes=1,
        adjacency=Attribute(beta=Fraction(1)),
        epsilon=1,
    )
    kinds = "+".join(finding.audit for finding in report.findings)
    print(report.alpha, kinds, report.findings[0].statement)
"""


def test_the_plugin_reads_the_table(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    pytester.makepyfile(test_mine=TEST)
    table = '[tool.dpverify]\nkinds = ["black-box"]\ndraws = 150\nseed = {}\n'
    options = ("-p", "no:randomly", "-p", "no:cacheprovider", "-s")
    shown = []
    for seed in (1, 2):
        pytester.makepyprojecttoml(table.format(seed))
        result = pytester.runpytest_inprocess(*options)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["*0.001 black-box* of 150 on the *"])
        shown.append(next(line for line in result.outlines if "black-box" in line))
    assert shown[0] != shown[1]
    pytester.makepyprojecttoml("[tool.dpverify]\ndrows = 3\n")
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*pyproject.toml: unknown setting drows. Did you mean draws?"])
