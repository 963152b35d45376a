"""Sheets of errata: what fails is on them, and the three lines print what they say."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from fractions import Fraction
from inspect import signature
from pathlib import Path
from types import FunctionType

import pytest

from dpverify.certificate.report.errata import check_lines
from dpverify.cli import _run
from dpverify.ledger.statements import judge, known_papers, known_statement, known_statements
from tests.helpers.browser import CHROMIUM
from tests.helpers.paths import ROOT
from tests.helpers.profiles import thinned

SHEETS = ROOT / "docs" / "errata"
FAILING = ("misprint", "refuted", "holds_under_reading")
_ENTRY = re.compile(
    r"^- Printed by the three lines for `(?P<id>\S+)`:\n\n {6}(?P<printed>.*)$", re.M
)
_CELL = r"(?:\\\||[^|\n])*"
_ROW = re.compile(
    rf"^\| (?P<place>{_CELL}) \| (?P<printed>{_CELL}) \| (?P<correct>{_CELL}) \| (?P<why>{_CELL}) "
    r"\| `(?P<name>\S+)` \|$",
    re.M,
)
TEXTS = {paper: (SHEETS / f"{paper}.md").read_text("utf-8") for paper in known_papers()}
PRINTED = {
    found["id"]: found["printed"] for text in TEXTS.values() for found in _ENTRY.finditer(text)
}
ROWS = {
    f"{paper}.{found['name']}": found.groupdict()
    for paper, text in TEXTS.items()
    for found in _ROW.finditer(text)
}
# Letters of the papers, and of everybody; any other is defined in its row.
LETTERS = {
    "aumuller2020": "B D E J K L O P X j n p Δ α β δ ε τ",
    "kenthapadi2013": "N O P R X d e h k n p r w x y Φ δ ε λ μ π σ",
    "li2023": "E F L N P R V W X Y b e i k m n p r s t u v w x y z Δ Π Σ Φ β δ ε θ π ρ σ φ",
    "mironov2017": "B D N P Q c e f g n p q α β δ ε σ",
    "slides2025": "A G H K L M O P S d e k n r s w x y δ ε η λ ν σ",
    "stausholm2021": "E H L N O P S b d e f g i j k n q r s x y z Σ Φ δ ε η μ σ",
}
# “a” and “A” are words, unless they stand in a formula.
_LETTER = re.compile(
    r"(?<![^\W\d_])(?<!['’])([B-Zb-zα-ωΑ-Ω]|[aA](?=[\^²³⁴·/]))(?![^\W\d_])(?!['’]\w)"
)


def test_every_paper_has_a_sheet() -> None:
    for kind in ("md", "html"):
        assert {page.stem for page in SHEETS.glob(f"*.{kind}")} == set(known_papers())


@pytest.mark.parametrize("paper", known_papers())
def test_every_entry_has_a_short_row_in_the_table_for_its_kind(paper: str) -> None:
    first, second = TEXTS[paper].partition("\n## ")[0].split("| meant |")
    for table, kinds in ((first, FAILING[:2]), (second, FAILING[2:])):
        shown = {found["name"]: found["why"] for found in _ROW.finditer(table)}
        entries = {
            name.removeprefix(f"{paper}.")
            for name, printed in PRINTED.items()
            if name.startswith(f"{paper}.") and printed.startswith(kinds)
        }
        assert shown.keys() == entries
        assert {name for name, why in shown.items() if not 3 < len(why.split()) <= 20} == set()
        page = (SHEETS / f"{paper}.html").read_text("utf-8")
        assert all(f"<code>{name}</code>" in page for name in shown)


def test_a_correction_has_its_settings_beside_it() -> None:
    """A row is read alone, so that what the check supposes stands in it."""
    lacking = set()
    for name, row in ROWS.items():
        statement = known_statement(name)
        settings = statement.conditions.replace("|", r"\|").replace("*", r"\*")
        if statement.corrections and settings:
            lacking |= {name} - ({name} if f"(settings: {settings})" in row["correct"] else set())
    assert lacking == set()


def test_only_a_scale_that_nothing_tells_is_left_without_a_correction() -> None:
    open_ends = {name for name, row in ROWS.items() if row["correct"].startswith("nothing")}
    assert open_ends == {"aumuller2020.appendix-c.scale"}


def test_what_is_printed_is_in_its_row() -> None:
    """A formula is shown and not spoken of, and a number that is printed stands there."""
    spoken = re.compile(r"the formula is|the one printed is|tried (?:as|at|by)|is tried|checked by")
    assert {name for name, row in ROWS.items() if spoken.search(row["printed"])} == set()
    for name, row in ROWS.items():
        printed = known_statement(name).printed
        assert isinstance(printed, FunctionType)
        given = set(printed.__code__.co_names) <= {"Fraction", "_F"}
        value = printed() if given and not signature(printed).parameters else None
        if isinstance(value, int | Fraction):
            assert any(form in row["printed"] for form in (str(value), f"{float(value):g}")), name


def test_letters_are_the_papers_or_defined_in_their_row() -> None:
    unknown = set()
    for name, row in ROWS.items():
        known = LETTERS[name.partition(".")[0]].split()
        text = " ; ".join((row["printed"], row["correct"], row["why"]))
        for letter in set(_LETTER.findall(text)) - set(known):
            if not re.search(rf"\b(?:of|probability) {letter}\b|\b{letter} [=~]", text):
                unknown.add((name, letter))
    assert unknown == set()


@pytest.mark.nightly
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: it prints the page")
@pytest.mark.parametrize("paper", known_papers())
def test_the_tables_go_on_one_page(paper: str, tmp_path: Path) -> None:
    """On A4; those of Li and Li, with 45 rows, on two."""
    pdf = tmp_path / "sheet.pdf"
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--no-pdf-header-footer"]
    command += [f"--print-to-pdf={pdf}", (SHEETS / f"{paper}.html").as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    printed = pdf.read_bytes()
    assert re.search(rb"/MediaBox \[0 0 59\d[.\d]* 84\d[.\d]*\]", printed)
    assert printed.count(b"/Type /Page\n") == (2 if paper == "li2023" else 1)


@pytest.mark.parametrize("name", thinned(PRINTED, 57))
def test_the_three_lines_print_what_the_sheet_says(name: str) -> None:
    lines = check_lines(name)
    paper, _, part = name.partition(".")
    asked = "\n".join(f"      {line}" for line in check_lines(f"{paper}.NAME"))
    assert len(lines) == 3
    assert asked in TEXTS[paper]
    assert asked.replace("NAME", part) == "\n".join(f"      {line}" for line in lines)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(lines), {})  # noqa: S102  # of the sheet, letter by letter
    assert printed.getvalue() == PRINTED[name] + "\n"


@pytest.mark.nightly
def test_what_fails_is_on_the_sheet() -> None:
    failing = {
        statement.id for statement in known_statements() if judge(statement).verdict in FAILING
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
    page = tmp_path / "sheet.html"
    command = ["claims", "errata", "kenthapadi2013", "--workers", "1", "--html"]
    assert _run([*command, str(page)]) == 0
    out = capsys.readouterr().out
    assert "2 statements: 2 with a misprint," in out
    order = ["section-4.1.entries", "lemma-5.right"]
    assert [found["name"] for found in _ROW.finditer(out)] == order
    assert [found["id"].partition(".")[2] for found in _ENTRY.finditer(out)] == order
    assert re.findall("<code>([a-z][^<]+)</code></td>", page.read_text("utf-8")) == order
    assert _run([*command, str(tmp_path / "nowhere" / "sheet.html")]) == 2
