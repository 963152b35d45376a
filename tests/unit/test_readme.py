"""The README's numbers are what the commands print."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from dpverify.cli import _run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# The commands of ``console`` blocks, each with the output that the README shows for it.
SHOWN = {
    command.strip(): output.strip("\n")
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
}


@pytest.mark.parametrize(
    "command", [c for c in SHOWN if c.startswith(("dpverify ca", "dpverify a"))]
)
def test_accountant(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.strip("\n") == SHOWN[command]


def test_mechanisms(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert _run(["mechanisms"]) == 0
    assert capsys.readouterr().out.strip("\n") == SHOWN["dpverify mechanisms"]


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["--help"]) == 0
    assert capsys.readouterr().out.strip("\n") == SHOWN["dpverify --help"]


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_sessions_print_what_they_show(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


@pytest.mark.nightly
def test_the_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line is the same on every run: audits replay, and the release shows its size alone."""
    monkeypatch.chdir(ROOT)
    assert _run(["certify", "examples/mnist.toml", "--out", "out/mnist"]) == 0
    assert capsys.readouterr().out.strip("\n") == SHOWN["make certify"]
    assert _run(["verify", "out/mnist/certificate.json"]) == 0
    assert (
        capsys.readouterr().out.strip("\n") == SHOWN["dpverify verify out/mnist/certificate.json"]
    )
