"""What the command line says of what can't be done: with the way out, and as JSON where asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpverify import cli

OPORP = (
    "dp-oporp",
    "-p",
    "k=8",
    "-p",
    "attributes=20",
    "-p",
    "domain.low=0",
    "-p",
    "domain.high=1",
)
TARGET = ("-p", "epsilon=5", "-p", "delta=1e-6", "--delta", "1e-6")


def run(*arguments: str) -> int:
    return cli._run(list(arguments))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("account", "gaussian", "sigma=3"), "sigma=3 is a parameter: write -p sigma=3"),
        (("account", "gaussian", "--json", "sigma=3"), "write -p sigma=3"),
        (("account", "gaussian", "-p", "sigma", "3"), "-p sigma has no value: write -p sigma=…"),
        (("calibrate", "gaussian", "sensitivity=2", "--epsilon", "1"), "write -p sensitivity=2"),
        (("design", "dp-oporp", "--at", "1", "k=8"), "write -p k=8"),
        (("account", "gaussian", "--delta", "1e-6"), "sigma is missing, the standard deviation"),
        (("account", "gaussian", "-p", "sigm=3", "--delta", "0.1"), "Did you mean sigma?"),
        (("account", "gaussian", "-p=sigm=3", "--delta", "0.1"), "no parameter sigm. Did you mean"),
        (
            ("account", "truncated-laplace", "-p", "scale=1", "-p", "bound=2", "--delta", "1e-6"),
            "delta=1e-6 must be at least the probability with which everything is shown",
        ),
        (
            ("account", "compose", "3 x gaussian sigma=4 rate=0.1", "--delta", "0"),
            "delta=0 must be at least the probability with which everything is shown",
        ),
        (("account", "compose", "gaussian sigma=1 rate=1.1", "--delta", "1e-6"), "in (0, 1]"),
        (("account", "compose", "0 x gaussian sigma=1", "--delta", "1e-6"), "count=0 must be"),
        (("budget", "new", "", "--epsilon", "1"), "path=. must be the name of a file"),
        (("account", "compose", "year.cvs", "--delta", "1e-6"), "Did you mean .csv?"),
        (("account", *OPORP, "-p", "adjacency=a", "-p", "adjacency.kind=b", *TARGET), "the same"),
        (("account", *OPORP, "-p", "adjacency.kind=recrd", *TARGET), "Did you mean record?"),
    ],
)
def test_the_way_out(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err


def test_kinds_are_written_as_in_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for kind in ("adjacency=record", "adjacency.kind=record"):
        assert run("account", *OPORP, "-p", kind, *TARGET) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "one whole record" in shown[0]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_releases_in_other_cells(
    separator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "year.csv"
    path.write_text(f"mechanism{separator}count\ngaussian{separator}3\n")
    assert run("account", "compose", str(path), "--delta", "1e-6") == 2
    assert "separated by commas" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "command", "kind", "code"),
    [
        (("account", "gaussian", "--json", "--delta", "2"), "account", "ConfigurationError", 2),
        (("account", "gaussian", "-p", "sigma=1", "--delta", "2", "--json"), "account", "", 2),
        (("account", "--json"), "account", "UsageError", 2),
        (("certify", "no.toml", "--out", "o", "--json"), "certify", "ConfigurationError", 2),
        (("verify", "no.json", "--json"), "verify", "CertificateError", 2),
        (("accnt", "--json"), "", "UsageError", 2),
        (("audit", "no-such", "--json"), "audit", "ConfigurationError", 2),
    ],
)
def test_errors_as_json(
    arguments: tuple[str, ...],
    command: str,
    kind: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == code
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert set(document) == {"dpverify", "command", "error"}
    assert document["command"] == command
    assert document["error"]["kind"] == (kind or "ParameterError")
    assert document["error"]["exit_code"] == code
    assert document["error"]["message"] in said.err
    assert run(*(word for word in arguments if word != "--json")) == code
    assert capsys.readouterr().out == ""


def test_internal_errors_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(cli.cli, "main", broken)
    monkeypatch.delenv("DPVERIFY_TRACEBACK", raising=False)
    assert run("plan", "x.toml", "--json") == 4
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "InternalError"
    assert "a fault" in error["message"]
