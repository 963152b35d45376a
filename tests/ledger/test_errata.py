"""Sheets of errata: what fails is on them, and the three lines print what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from dpverify.certificate.report.errata import check_lines
from dpverify.cli import _run
from dpverify.ledger.statements import judge, known_papers, known_statement, known_statements
from tests.helpers.paths import ROOT
from tests.helpers.profiles import thinned

SHEETS = ROOT / "docs" / "errata"
_ENTRY = re.compile(r'known_statement\("(?P<id>[^"]+)"\)\)\n +print\(.*\)\n +# (?P<printed>.*)\n')
PRINTED = {
    found["id"]: found["printed"]
    for paper in known_papers()
    for found in _ENTRY.finditer((SHEETS / f"{paper}.md").read_text("utf-8"))
}


def test_every_paper_has_a_sheet() -> None:
    assert {page.stem for page in SHEETS.glob("*.md")} == set(known_papers())


@pytest.mark.parametrize("name", thinned(PRINTED, 57))
def test_the_three_lines_print_what_the_sheet_says(name: str) -> None:
    lines = check_lines(name)
    text = (SHEETS / f"{name.partition('.')[0]}.md").read_text("utf-8")
    assert len(lines) == 3
    assert "\n".join(f"      {line}" for line in lines) in text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(lines), {})  # noqa: S102  # of the sheet, letter by letter
    assert printed.getvalue() == PRINTED[name] + "\n"


@pytest.mark.nightly
def test_what_fails_is_on_the_sheet() -> None:
    failing = {
        statement.id
        for statement in known_statements()
        if judge(statement).verdict in ("misprint", "refuted", "holds_under_reading")
    }
    assert failing == set(PRINTED)


def test_what_stands_beside_a_statement_is_on_the_sheet() -> None:
    """Only what fails has a reading or a correction, so that it is known without a check."""
    beside = {one.id for one in known_statements() if one.readings or one.corrections}
    assert beside <= set(PRINTED)
    assert all(known_statement(name).instead for name in PRINTED)


def test_an_unknown_paper_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["claims", "errata", "li2032"]) == 2
    assert "li2023" in capsys.readouterr().err


def test_a_sheet_is_in_the_papers_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def few() -> object:
        names = ("kenthapadi2013.lemma-5.right", "kenthapadi2013.section-4.1.entries")
        return (known_statement(name) for name in names)

    monkeypatch.setattr("dpverify.cli.claims.known_statements", few)
    assert _run(["claims", "errata", "kenthapadi2013", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "Of 2 statements 2 have a misprint," in out
    assert out.index("section-4.1.entries") < out.index("lemma-5.right")
