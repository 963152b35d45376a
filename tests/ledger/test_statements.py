"""The ledger's engine: verdicts come out of checks, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64encode
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from math import comb
from pathlib import Path

import numpy as np
import pytest

from dpverify.certificate.report import statements as errata
from dpverify.certificate.report.errata import rows, sheet
from dpverify.cli import _run
from dpverify.errors import ParameterError
from dpverify.ledger.checks import Check, Formula, at_most, equals, simulated
from dpverify.ledger.statements import (
    Correction,
    Reading,
    Statement,
    Verdict,
    judge,
    known_papers,
    known_statements,
    perturbed,
)
from tests.helpers.browser import CHROMIUM
from tests.helpers.profiles import day_and_night

TOLD = {"reason": "The diagonal counts too.", "instead": "Leave the diagonal out."}
EQUALS = equals(lambda n: comb(n, 2), [(n,) for n in range(8)], "enumeration")
BOUNDS = at_most(lambda f, n: (comb(n, 2), f(n)), [(n,) for n in range(2, 8)], "enumeration")


def pairs(n: int) -> Fraction:
    return Fraction(n * (n - 1), 2)


def squares(n: int) -> Fraction:
    return Fraction(n * n, 2)


def statement(printed: Formula, check: Check = EQUALS, **others: object) -> Statement:
    return Statement(
        id="toy2026.lemma-1",
        printed=printed,
        check=check,
        **{"where": "section 1, page 1", "text": "The number of pairs."} | others,  # type: ignore[arg-type]
    )


def beside(**others: object) -> Statement:
    """The wrong formula, with what stands beside it."""
    return statement(squares, EQUALS, **TOLD | others)


def own(formula: Formula) -> Correction:
    return Correction(formula, place="the proof", change="n − 1 for n")


def elsewhere(formula: Formula) -> Correction:
    return Correction(formula, place="section 2")


def ours(formula: Formula) -> Correction:
    return Correction(formula, proof="there are n(n − 1)/2 of them")


def read(formula: Formula) -> Reading:
    return Reading(formula, place="section 1: “of different ones”", covers="every graph of it")


def sizes(n: int, *, seed: int) -> tuple[float, float]:
    """Mean of the sizes of 4,000 random graphs, times 2, and its standard error."""
    drawn = 2.0 * np.random.default_rng(seed).binomial(comb(n, 2), 0.5, size=4000)
    return float(drawn.mean()), float(drawn.std()) / 4000**0.5


DRAWN = simulated(sizes, [(8,)], level=1e-6)


def within(formula: Formula) -> Formula:
    return lambda n: (formula(n), formula(n))


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (statement(pairs), "confirmed_exactly"),
        (statement(within(pairs), DRAWN), "confirmed_statistically"),
        (statement(within(squares), DRAWN), "refuted"),
        (statement(pairs, BOUNDS), "confirmed_exactly"),
        (statement(squares, BOUNDS), "conservative"),
        (statement(squares), "refuted"),
        (beside(corrections={"without the diagonal": own(pairs)}), "misprint"),
        (beside(corrections={"without the diagonal": elsewhere(pairs)}), "refuted"),
        (beside(corrections={"without the diagonal": ours(pairs)}), "refuted"),
        (beside(corrections={"without the diagonal": own(lambda n: n)}), "refuted"),
        (beside(readings={"pairs of different ones": read(pairs)}), "holds_under_reading"),
        (beside(readings={"pairs of different ones": read(lambda n: n)}), "refuted"),
        (
            beside(
                readings={"pairs of different ones": read(pairs)},
                corrections={"without the diagonal": own(pairs)},
            ),
            "holds_under_reading",
        ),
        (
            Statement(
                id="toy2026.remark-2", where="page 2", text="It is nice.", reason="an opinion"
            ),
            "not_checkable",
        ),
    ],
)
def test_the_verdict_comes_out_of_the_check(made: Statement, verdict: Verdict) -> None:
    found = judge(made)
    assert found.verdict == verdict
    assert found.holds is (
        verdict in {"confirmed_exactly", "confirmed_statistically", "conservative"}
    )
    corrected = any(found.others[name].holds for name in made.corrections)
    expected = "without the diagonal" if corrected and not found.reading() else ""
    assert found.correction() == expected
    assert bool(found.reading()) is (verdict == "holds_under_reading")


def test_a_condition_that_is_not_the_papers_stands_under_no_statement_that_holds() -> None:
    with pytest.raises(ParameterError, match="conditions"):
        statement(pairs, conditions="not stated: n of at least 2")
    beside(conditions="not stated: n", corrections={"without the diagonal": own(pairs)})


def test_a_simulation_has_a_seed_and_can_be_repeated() -> None:
    made = statement(within(pairs), DRAWN)
    first, again, other = (judge(made, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.printed != other.printed
    assert first.verdict == other.verdict


def test_every_kind_of_value_is_perturbed() -> None:
    value = (True, 2, Fraction(1, 3), 0, 1.0, [None, {"a": False}])
    changed = perturbed(statement(lambda: value), Fraction(3, 2)).printed
    assert changed is not None
    assert changed() == (False, 3, Fraction(1, 2), Fraction(1, 2), 1.5, [None, {"a": True}])


def test_a_perturbed_formula_is_noticed() -> None:
    assert judge(perturbed(statement(pairs), Fraction(21, 20))).verdict == "refuted"
    shrunk = perturbed(statement(squares, BOUNDS), Fraction(1, 2))
    assert judge(shrunk).verdict == "refuted"
    made = beside(corrections={"right": own(pairs)})
    assert judge(perturbed(made, Fraction(2))).verdict == "refuted"
    as_float = perturbed(statement(lambda n: n / 2), Fraction(3, 2))
    assert as_float.printed is not None
    assert as_float.printed(1) == 0.75


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": "lemma-1"}, "paper.statement"),
        ({"id": "Toy.lemma"}, "lower case"),
        ({"printed": pairs}, "together"),
        ({"reason": ""}, "reason"),
    ],
)
def test_incomplete_statements(values: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"id": "a.b", "where": "", "text": "", "reason": "a definition"}
    with pytest.raises(ParameterError, match=message):
        Statement(**good | values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "covers"), [("section 1", "it"), ("", "it"), ("section 1: “of it”", "")]
)
def test_a_reading_names_the_words_that_support_it_and_what_it_covers(
    place: str, covers: str
) -> None:
    with pytest.raises(ParameterError, match=r"place|covers"):
        Reading(pairs, place=place, covers=covers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "neither"),
        ({"place": "the proof", "proof": "by counting"}, "both"),
        ({"change": "n − 1 for n", "proof": "by counting"}, "has the change"),
    ],
)
def test_a_correction_has_a_place_of_the_paper_or_is_ours(
    given: dict[str, str], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        Correction(pairs, **given)


def test_only_what_has_no_place_is_said_to_be_ours() -> None:
    corrections = {"pairs": elsewhere(pairs), "half": ours(pairs)}
    both = judge(beside(corrections=corrections))
    assert (both.verdict, both.correction()) == ("refuted", "pairs")
    assert [row.correct for row in rows([both], ["refuted"])] == ["pairs"]
    assert "True: pairs (section 2)" in sheet([both], "a paper")
    alone = judge(beside(corrections={"half": corrections["half"]}))
    assert [row.correct for row in rows([alone], ["refuted"])] == ["by us: half"]
    assert "True: half, by us: there are" in sheet([alone], "a paper")


@pytest.mark.parametrize("left_out", TOLD)
def test_what_stands_beside_the_printed_one_is_explained(left_out: str) -> None:
    with pytest.raises(ParameterError, match="reason"):
        beside(corrections={"right": own(pairs)}, **{left_out: ""})


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        beside(corrections={"without the diagonal": own(pairs)}),
        Statement(id="toy2026.remark-2", where="page 2", text="It is nice.", reason="an opinion"),
    ]
    monkeypatch.setattr("dpverify.cli.claims.known_statements", lambda: iter(made))


def test_the_table(ledger: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["claims", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "toy2026.lemma-1   misprint       section 1, page 1  true: without the diagonal" in out
    assert out.endswith("1 misprint, 1 not_checkable\n")
    assert _run(["claims", "--verdict", "misprint", "--workers", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["result"]
    assert (found["id"], found["paper"], found["verdict"]) == (
        "toy2026.lemma-1",
        "toy2026",
        "misprint",
    )
    assert found["evidence"]["printed"]["holds"] is False


def test_the_page_of_errata(ledger: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["claims", "--markdown", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 statements: 1 misprint, 1 not_checkable." in out
    assert "| [toy2026](#toy2026) | 1 | 1 |" in out
    assert "#### toy2026.lemma-1: misprint" in out
    assert " - Fails: at n=1: 1/2 in place of 0" in out
    assert " - True: without the diagonal" in out
    assert " - Place: the proof" in out
    assert " - Change: n − 1 for n" in out
    assert " - Instead: Leave the diagonal out." in out
    assert " - `toy2026.remark-2` (page 2): It is nice. *an opinion*" in out


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("paper", "title"),
    day_and_night(
        ("mironov2017", "Mironov 2017"), ("aumuller2020", "Aumüller, Bourgeat and Schmurr 2020")
    ),
)
def test_the_page_on_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], paper: str, title: str
) -> None:
    file = tmp_path / "claims.html"
    assert _run(["claims", "--paper", paper, "--html", str(file), "--workers", "1"]) == 0
    assert capsys.readouterr().out == ""
    text = file.read_text(encoding="utf-8")
    assert title in text
    for statement in known_statements():
        assert (f"<code>{statement.id}</code>" in text) == (statement.paper == paper)
    assert [word for word in ("http://", "https://", "url(h") if word in pure(text)] == []
    (script,) = re.findall("<script>(.*?)</script>", text, flags=re.DOTALL)
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'\"" in text
    assert _run(["claims", "--html", str(tmp_path / "nowhere" / "claims.html")]) == 2


@pytest.mark.nightly
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: it opens the page")
@pytest.mark.parametrize(
    ("query", "expected", "count"),
    [
        ("", ["b.n-1", "b.n-2", "b.n-10", "c.n-1", "c.n-2", "c.n-10"], 6),
        ("?paper=c", ["c.n-1", "c.n-2", "c.n-10"], 3),
        ("?words=9.10%20LEMMA", ["b.n-10", "c.n-10"], 2),
        ("?verdict=refuted&order=id", ["b.n-1", "b.n-2", "b.n-10", "c.n-1", "c.n-2", "c.n-10"], 6),
        ("?verdict=misprint", [], 0),
        ("?nothing=such", ["b.n-1", "b.n-2", "b.n-10", "c.n-1", "c.n-2", "c.n-10"], 6),
    ],
)
def test_the_page_is_searched_and_filtered(
    tmp_path: Path, query: str, expected: list[str], count: int
) -> None:
    made = [
        replace(
            statement(squares, text="a lemma", where=f"section 9.{number}"),
            id=f"{paper}.n-{number}",
        )
        for paper in "cb"
        for number in (10, 2, 1)
    ]
    page = tmp_path / "claims.html"
    page.write_text(errata.page([judge(one) for one in made], {}), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    seen = subprocess.run(
        [*command, page.as_uri() + query], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in seen.stderr
    articles = re.findall(r'<article class="entry [^>]*? id="([^"]+)"([^>]*)>', seen.stdout)
    assert [name for name, rest in articles if "hidden" not in rest] == expected
    assert f">{count} of 6 statements</output>" in seen.stdout


def pure(text: str) -> str:
    """The page without the name of SVG's own namespace, which nothing fetches."""
    return re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)


def test_the_page_escapes_what_a_ledger_says() -> None:
    hostile = "<script>alert(1)</script>"
    made = [
        replace(statement(squares, text=hostile, where=hostile), id=f"{paper}.lemma-1")
        for paper in ("a", "b")
    ]
    found = errata.page([judge(one) for one in made], {"a": hostile})
    assert hostile not in found
    assert found.count("&lt;script&gt;") >= 4


def test_the_failing_come_first_in_the_papers_order() -> None:
    places = ("section 10", "section 9.2", "appendix B", "section 9.10", "page 3")
    made = [
        replace(statement(printed), id=f"toy2026.n-{number}", where=place)
        for number, place in enumerate(places)
        for printed in (pairs if place == "page 3" else squares,)
    ]
    (chapter,) = errata.chapters([judge(one) for one in made], {})
    assert [entry.where for entry in chapter.failing] == [
        "section 9.2",
        "section 9.10",
        "section 10",
        "appendix B",
    ]
    assert [entry.where for entry in chapter.others] == ["page 3"]
    assert (chapter.total, chapter.counts) == (5, {"refuted": 4, "confirmed_exactly": 1})


def test_every_ledger_names_its_paper() -> None:
    assert {statement.paper for statement in known_statements()} == set(known_papers())
    assert all(title != paper for paper, title in known_papers().items())


def test_one_statement(ledger: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["claims", "show", "toy2026.lemma-1"]) == 0
    out = capsys.readouterr().out
    assert "true is" in out
    assert "at n=1: 1/2 in place of 0" in out  # the counterexample
    assert _run(["claims", "show", "toy2026.lemma-9"]) == 2
    assert _run(["claims", "--paper", "nobody2026"]) == 2
    assert "toy2026" in capsys.readouterr().err
