"""The report: a pure function of the certificate, safe to open, and plain about its verdict."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.certificate.build import build
from dpverify.certificate.certify import environment
from dpverify.certificate.checklist import answers
from dpverify.certificate.derive import AuditPlan, collect, derive
from dpverify.certificate.report.html import render
from dpverify.certificate.rounding import about, at_least, at_most, exact
from dpverify.certificate.schema import (
    Certificate,
    Ends,
    Inputs,
    KindInput,
    Release,
)
from dpverify.sampling.words import SecureWords
from tests.helpers.fixtures import Figures

pytestmark = pytest.mark.usefixtures("own_figures")

VOID = {"meta", "br", "link", "img", "input", "hr"}
HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """Tags, ids, links and visible text of a page; complains of what isn't balanced."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids.update(value or "" for name, value in attrs if name == "id")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += " " if tag in {"td", "th"} else ""  # cells are apart on the page

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def small() -> Certificate:
    """A certificate of few draws, made as `certify` makes it but without records."""
    inputs = Inputs(
        mechanism="dp-oporp",
        parameters={"k": 4},
        rows=7,
        attributes=16,
        domain=KindInput(kind="box", numbers={"low": Fraction(0), "high": Fraction(1)}),
        outside="clip",
        adjacency=KindInput(kind="attribute", numbers={"beta": Fraction(1)}),
        epsilon=Fraction("2"),
        delta=Fraction("0.001"),
        projection_seed=1,
        alpha=Fraction("0.05"),
        draws=200,
        moment_draws=50,
        audit_seed=3,
        purpose=None,
    )
    mechanism = build(inputs)
    plan = AuditPlan.of(inputs, mechanism)
    evidence = collect(plan)
    derived = derive(plan, evidence)
    return Certificate(
        schema="dpverify-certificate/1",
        inputs=inputs,
        evidence=evidence,
        derived=derived,
        checklist=answers(inputs, derived),
        release=Release(
            file="sketch.npz",
            sha256="ab" * 32,
            array="steps",
            shape=[7, 4],
            dtype="int64",
            step=Ends(lower="1", upper="1"),
            randomness=SecureWords.policy,
        ),
        environment=environment().model_copy(update={"created": "2026-01-02T03:04:05+00:00"}),
        digest="cd" * 32,
    )


def altered(certificate: Certificate, changes: dict[str, Any]) -> Certificate:
    """The certificate with the values at dotted paths replaced."""
    fields = certificate.model_dump(by_alias=True)
    for path, value in changes.items():
        *parents, last = path.split(".")
        part: Any = fields
        for key in parents:
            part = part[int(key) if isinstance(part, list) else key]
        part[int(last) if isinstance(part, list) else last] = value
    return Certificate.model_validate(fields)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(part) for part in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def violated(small: Certificate) -> Certificate:
    return altered(
        small,
        {
            "release": None,
            "derived.white_box.verdict": "violation",
            "derived.white_box.epsilon_lower": "3.21098765",
            "derived.white_box.findings.1.refuted_at": "1.25",
            "derived.white_box.findings.1.epsilon_lower": "3.21098765",
        },
    )


def test_tests_draw_a_figure_once_whatever_the_order_of_keys(
    small: Certificate, figures: Figures
) -> None:
    """Or a certificate that was read would be given what was drawn first of another."""
    render(small)
    drawn = len(figures)
    render(Certificate.model_validate(reordered(small.model_dump(by_alias=True))))
    assert len(figures) == drawn


@pytest.mark.nightly
def test_the_same_certificate_gives_the_same_bytes(
    small: Certificate, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    html = render(small)
    for drawn in [*figures]:
        monkeypatch.delitem(figures, drawn)
    # Neither the order of an object's keys in the file nor a user's own style may change it.
    fields = small.model_dump(by_alias=True)
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 20, "svg.fonttype": "path"}):
        assert render(Certificate.model_validate(reordered(fields))) == html


@pytest.mark.nightly
def test_another_process_gives_the_same_bytes(small: Certificate, tmp_path: Path) -> None:
    source, target = tmp_path / "certificate.json", tmp_path / "report.html"
    source.write_text(small.model_dump_json(by_alias=True))
    code = (
        "import sys, json, pathlib\n"
        "from dpverify.certificate.schema import Certificate\n"
        "from dpverify.certificate.report.html import render\n"
        "source, target = map(pathlib.Path, sys.argv[1:])\n"
        "page = render(Certificate.model_validate(json.loads(source.read_text())))\n"
        "target.write_text(page, encoding='utf-8')\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(source), str(target)],
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "12345"},
    )
    assert target.read_text(encoding="utf-8") == render(small)


def test_nothing_runs_and_nothing_is_fetched(small: Certificate, violated: Certificate) -> None:
    for certificate in (small, violated):
        html = render(certificate)
        page = Page(html)
        assert not page.tags.keys() & {"script", "iframe", "object", "embed", "link", "img", "base"}
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        for name, value in page.attributes:
            if name in {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}:
                assert value.startswith("#")
            if not name.startswith("xmlns"):
                assert "://" not in value
        assert "@import" not in html
        assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
        assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


def test_tags_balance_and_ids_are_unique(small: Certificate, violated: Certificate) -> None:
    for certificate in (small, violated):
        html = render(certificate)
        page = Page(html)
        # What it means to a hundred people isn't known of a claim that was refuted.
        people = certificate is not violated
        assert page.tags["svg"] - people == page.tags["figure"] == page.tags["figcaption"] == 4
        assert page.ids
        assert not [name for name, count in page.ids.items() if count > 1]
        referred = set(re.findall(r'(?:href="|url\()#([^")]+)', html))
        referred |= {v for n, v in page.attributes if n in {"aria-labelledby", "aria-describedby"}}
        assert referred <= page.ids.keys()
        assert html.lstrip().startswith("<!DOCTYPE html>")
        assert "<?xml" not in html


def test_figures_and_tables_can_be_read_aloud(small: Certificate) -> None:
    html = render(small)
    assert len(re.findall(r'<svg [^>]*role="img" aria-label="[^"]{20,}"', html)) == 5
    assert html.count("<table") == html.count("<caption>")
    assert len(re.findall(r"<th\b", html)) == len(re.findall(r"<th scope=", html))


def test_every_string_is_escaped(small: Certificate) -> None:
    strings = [
        "inputs.mechanism",
        "derived.protects",
        "derived.guarantee.theorem",
        "derived.guarantee.randomness",
        "derived.guarantee.data_choice",
        "derived.white_box.findings.0.event",
        "derived.estimators.0.name",
        "derived.facts.projection.kind",
        "evidence.white_box.0.pair",
        "checklist.0.title",
        "checklist.0.evidence",
        "checklist.1.id",
        "checklist.2.section",
    ]
    clean = Page(render(small))
    keys = {
        "derived.facts." + HOSTILE: {HOSTILE: HOSTILE},
        "inputs.parameters": {HOSTILE: 1, "k": 4},
    }
    html = render(altered(small, dict.fromkeys(strings, HOSTILE) | keys))
    page = Page(html)
    assert "<script" not in html
    assert "<img" not in html
    assert page.text.count("<script>alert(1)</script>") >= len(strings)
    assert page.tags.keys() == clean.tags.keys()
    assert page.ids == clean.ids


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("verdict", ["no_violation_found", "inconclusive"])
def test_verdict_is_said_in_its_own_word(small: Certificate, verdict: str) -> None:
    html = render(altered(small, {"derived.white_box.verdict": verdict}))
    assert f'class="verdict {verdict}">{verdict}<' in html
    assert "Nothing was released" not in Page(html).text
    assert "passed" not in html.lower()


@pytest.mark.usefixtures("no_figures")
def test_violation_is_announced_before_all_else(violated: Certificate) -> None:
    html = render(violated)
    text = Page(html).words
    assert text.index("An audit found a violation. Nothing was released.") < text.index("Guarantee")
    assert "contradict the claim" in text
    assert "1.25 3.21098" in text  # where it was refuted, and the bound, rounded down
    assert "claimed and refuted by the audit" in text
    assert "Whatever anyone may conclude" not in text
    assert 'class="verdict violation">violation<' in html
    assert "sketch.npz" not in text
    assert "passed" not in text.lower()


@pytest.mark.usefixtures("no_figures")
def test_the_page_for_the_signer_comes_first(small: Certificate) -> None:
    text = Page(render(small)).words
    parts = [
        "Differential privacy was proven, and an attack on the program",
        "One attribute of one record, changed by at most 1",
        "Of 100 guesses whether that change was made, 50 are right without the release",
        "ε = 2, δ = 0.001",
        "What it is worth",
        "What a machine checked",
        "What rests on the owner's word",
        "What the owner has yet to answer",
        "What nobody checked",
        "an array of 7 × 4",
        "Who signs",
        "What was proven",
        "What was attacked",
        "What it could find",
        "Figures",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "the whole width of the domain" in text
    assert "protection of a whole record, or against larger changes, is not claimed" in text
    assert "at most 7.39 (eε, rounded up)" in text
    first = text[: text.index("In detail")]
    asked = [answer.title for answer in small.checklist if answer.answer == "needs_owner"]
    assert f"Before you sign, ask the owner about {len(asked)} hazards." in first
    assert all(title in first for title in asked)
    date, time = small.environment.created[:16].split("T")
    assert f"Made on {date}, {time} UTC, with dpverify" in first
    for said in ("no_violation_found", "needs_owner", "e ε ·q", "eε·q", "trust-model", "unit-of-"):
        assert said not in first


@pytest.mark.usefixtures("no_figures")
def test_the_number_of_right_guesses_is_that_of_the_curve(small: Certificate) -> None:
    """(1 + δ(0))/2 of 100, and no less; nothing is said of how hard it is to tell."""
    words = Page(render(small)).words
    (said,) = re.findall(r"50 are right without the release, and at most ([\d.]+) with it", words)
    at_zero = next(point.delta.upper for point in small.derived.curve if point.epsilon == "0")
    truth = 50 * (1 + Fraction(at_zero))
    assert truth <= Fraction(said) <= truth + Fraction(1, 10)
    assert "hardly" not in words


@pytest.mark.parametrize("verdict", ["no_violation_found", "inconclusive", "violation"])
@pytest.mark.usefixtures("no_figures")
def test_the_judgement_is_what_was_found(small: Certificate, verdict: str) -> None:
    text = Page(render(altered(small, {"derived.white_box.verdict": verdict}))).words
    said = {
        "no_violation_found": "an attack on the program found nothing against it",
        "inconclusive": "could neither refute it nor come near enough to",
        "violation": "An attack refuted the protection that was claimed: don't use this",
    }
    assert [word for word, sentence in said.items() if sentence in text] == [verdict]


@pytest.mark.usefixtures("no_figures")
def test_attacker_is_said_in_percent_rounded_up(small: Certificate) -> None:
    text = Page(render(small)).words
    for rate in small.derived.attacker:
        shown = 100 * Fraction(rate.true_positive_rate.upper)
        (percent,) = {
            Fraction(found)
            for found in re.findall(r"at most ([\d.]+)\s%", text)
            if abs(Fraction(found) - shown) < Fraction(1, 100)
        }
        assert percent >= shown


@pytest.mark.usefixtures("no_figures")
def test_a_refuted_claim_promises_nothing_against_attackers(violated: Certificate) -> None:
    text = Page(render(violated)).words
    summary = text[: text.index("Figures")]
    assert "nothing is known of what it leaves to an attacker" in summary
    assert "notices" not in summary
    assert "right without the release" not in summary


@pytest.mark.usefixtures("no_figures")
def test_owner_is_named_where_the_owner_answers(small: Certificate) -> None:
    before = Page(render(small)).words
    assert "The owner says" not in before
    given = {"trust-model": {"answer": "pass", "reason": HOSTILE}}
    inputs = Inputs.model_validate(small.inputs.model_dump() | {"owner": given})
    listed = [answer.model_dump() for answer in answers(inputs, small.derived)]
    html = render(altered(small, {"inputs": inputs.model_dump(), "checklist": listed}))
    text = Page(html).words
    title = next(answer.title for answer in small.checklist if answer.id == "trust-model")
    assert f"And that “{title}” isn't so here." in text
    assert "And that" not in before
    assert "The owner says: <script>alert(1)</script>" in text
    assert "<script" not in html


@pytest.mark.parametrize("verdict", ["useful", "coarse", "useless"])
@pytest.mark.usefixtures("no_figures")
def test_what_it_is_worth_is_said(small: Certificate, verdict: str) -> None:
    text = Page(render(altered(small, {"derived.usefulness.verdict": verdict}))).words
    said = text.partition("What it is worth")[2]
    assert said.lstrip().startswith(verdict.title())
    assert "one estimate of the squared distance is off by about" in said


@pytest.mark.usefixtures("no_figures")
def test_without_a_range_nothing_is_said_of_its_worth(small: Certificate) -> None:
    page = Page(render(altered(small, {"derived.usefulness": None})))
    assert "What it is worth" not in page.words


@pytest.mark.usefixtures("no_figures")
def test_every_hazard_is_listed(small: Certificate) -> None:
    text = Page(render(small)).words
    for answer in small.checklist:
        row = f"{answer.id} {answer.section} {answer.answer} {answer.evidence}"
        assert " ".join(row.split()) in text


@pytest.mark.usefixtures("no_figures")
def test_a_mechanism_without_a_size_has_no_figure_of_sizes(small: Certificate) -> None:
    page = Page(render(altered(small, {"derived.sizes": []})))
    assert page.tags["svg"] == page.tags["figure"] + 1 == 4


@pytest.mark.usefixtures("no_figures")
def test_other_adjacency_has_its_own_limit(small: Certificate) -> None:
    ball = {"inputs.adjacency": {"kind": "l1-ball", "numbers": {"radius": "0.5"}}}
    text = Page(render(altered(small, ball))).words
    assert "the whole width of the domain" not in text
    assert "protection of a whole record, or against larger changes, is not claimed" in text


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("power", "said"),
    [
        ({"reach": None}, "twice the claimed δ(ε) would have been found at no ε"),
        (
            {"reach": None, "noise_scale": None},
            "no part of the curve: all of it rests on its proof alone",
        ),
        ({"reach": "0.5"}, "the part up to ε = 0.5; beyond, the claim rests on its proof alone"),
        ({"reach": "2"}, "the draws could have refuted the curve up to the claimed ε = 2"),
        ({"smallest_excess": "inf"}, "no excess over eε·q + δ, however large"),
        ({"smallest_excess": "0.12345"}, "an excess of 0.124 (rounded up)"),
        ({"noise_scale": None}, "no smaller scale of the noise, down to a hundredth"),
        ({"noise_scale": "0.87659"}, "its noise scaled by 0.8765 (rounded down)"),
    ],
)
def test_power_says_what_the_draws_could_find(
    small: Certificate, power: dict[str, str | None], said: str
) -> None:
    changes = {f"derived.white_box.power.{name}": value for name, value in power.items()}
    assert said.lower() in Page(render(altered(small, changes))).words.lower()


@pytest.mark.usefixtures("no_figures")
def test_every_number_of_the_evidence_is_shown(small: Certificate) -> None:
    text = Page(render(small)).words
    for pair in small.evidence.white_box:
        for counts in pair.counts:
            assert f"{counts.hits:,}" in text
            assert f"{counts.false_hits:,}" in text
    facts = small.derived.facts
    assert str(facts["projection"]["sha256"]) in text
    sigma = facts["noise"]["sigma"]
    assert isinstance(sigma, Ends)
    assert exact(sigma.lower) in text
    assert exact(sigma.upper) in text
    assert small.digest in text
    assert "moved to the nearest point of the domain" in text


def test_a_certificate_without_information_can_be_drawn(small: Certificate) -> None:
    """Counts of zero, a bound of zero, estimates that are undefined: nothing may fail."""
    changes: dict[str, Any] = {
        f"evidence.roc.{place}": {"hits": 0, "false_hits": 0}
        for place in range(len(small.evidence.roc))
    }
    changes |= {
        "derived.white_box.ceiling": "0",
        "derived.white_box.epsilon_lower": "0",
        "evidence.moments.0.mean": "nan",
        "derived.estimators.0.variance": "0",
        "derived.curve.26.delta": {"lower": "0", "upper": "4.94065645841246545E-324"},
    }
    text = Page(render(altered(small, changes))).words
    assert "(ratio" not in text
    assert "undefined" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.000001", "10⁻⁶"),
        ("9.99999999999992966E-7", "9.99999999999992966×10⁻⁷"),
        ("5", "5"),
        ("0.050", "0.05"),
        ("-1024", "−1024"),
        ("1/3", "1/3"),
        ("0", "0"),
        ("inf", "∞"),
        ("nan", "undefined"),
    ],
)
def test_exact_keeps_every_digit(text: str, shown: str) -> None:
    assert exact(text) == shown


@given(st.fractions(), st.integers(1, 9))
def test_rounding_keeps_to_its_side(number: Fraction, digits: int) -> None:
    def read(shown: str) -> Fraction:
        form = re.fullmatch(r"(−?)([\d.]+)?(?:×?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", shown)
        assert form is not None
        power = (form[3] or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        value = Fraction(form[2] or 1) * Fraction(10) ** int(power)
        return -value if form[1] else value

    text = str(number)
    low, high = read(at_least(text, digits)), read(at_most(text, digits))
    assert low <= number <= high
    assert low <= read(about(text, digits)) <= high
    assert high - low <= abs(number) * Fraction(10) ** (1 - digits)
