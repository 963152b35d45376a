"""The page of statements: what not to follow in each paper, then what was confirmed.

Written for someone who holds the paper in the other hand: the failing statements come first, in the
paper's order, each with what is printed, where that fails, and what to read instead. `markdown` and
`page` (HTML that needs nothing else) show the same things.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import get_args

from dpverify._version import __version__
from dpverify.ledger.checks import Oracle
from dpverify.ledger.reliance import relation, users
from dpverify.ledger.statements import Judgement, Verdict

__all__ = ["Chapter", "Entry", "by_place", "chapters", "markdown", "page"]

MEANINGS: Mapping[Verdict, str] = {
    "refuted": "false at a setting that it covers, and no single change that the paper supports "
    "elsewhere corrects it",
    "misprint": "false as printed; true after a change of one symbol, sign, constant or word, "
    "which another place in the paper has right",
    "holds_under_reading": "false as printed; true under a reading that the paper's own text "
    "supports and that covers its own settings",
    "conservative": "true; an inequality that is never reached, except at ends that are named",
    "confirmed_exactly": "true wherever it was tested, in symbols, fractions or enclosures that "
    "agree to 12 digits or more",
    "confirmed_statistically": "agrees with simulation within a stated margin",
    "not_checkable": "can't be tested",
}
ORACLES: Mapping[Oracle, str] = {
    "identity": "another derivation in symbols: the same rational function, for all numbers",
    "enumeration": "all outcomes, or all cases of a size, in fractions",
    "points": "another derivation in fractions, compared at some points",
    "enclosure": "another derivation with proven enclosures, compared at some points",
    "quadrature": "an enclosed integral over the noise, to a stated number of digits",
    "simulation": "draws, at a stated level",
}
_FAILING: tuple[Verdict, ...] = ("refuted", "misprint", "holds_under_reading")
_PLACE = re.compile(
    r"\b(section|page|appendix)(?:s?[ -](\d+|[a-z]\b)((?:\.\d+)*)|(?<=appendix)\b)", re.IGNORECASE
)
_KINDS = {"section": 0, "page": 0, "appendix": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One statement as the page shows it: its id, its verdict, and facts by what they are."""

    id: str
    verdict: Verdict
    where: str
    text: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One paper's statements, the failing ones apart, each in the paper's order."""

    paper: str
    title: str
    counts: Mapping[Verdict, int]
    oracles: Mapping[Oracle, int]
    failing: tuple[Entry, ...]
    others: tuple[Entry, ...]

    @property
    def total(self) -> int:
        """Number of statements."""
        return len(self.failing) + len(self.others)

    def having(self, verdict: Verdict) -> list[Entry]:
        """Entries with this verdict."""
        return [entry for entry in (*self.failing, *self.others) if entry.verdict == verdict]


def chapters(found: Sequence[Judgement], titles: Mapping[str, str]) -> list[Chapter]:
    """The page's content.

    Parameters
    ----------
    found : judged statements
    titles : papers in words, by their names in the statements' ids
    """
    made = []
    by_paper = sorted(found, key=lambda judgement: judgement.statement.paper)
    for paper, group in groupby(by_paper, key=lambda judgement: judgement.statement.paper):
        own = sorted(group, key=by_place)
        entries = [_entry(judgement) for judgement in own]
        counted = Counter(entry.verdict for entry in entries)
        made.append(
            Chapter(
                paper=paper,
                title=titles.get(paper, paper),
                counts={verdict: counted[verdict] for verdict in MEANINGS if counted[verdict]},
                oracles=Counter(
                    found.statement.check.oracle for found in own if found.statement.check
                ),
                failing=tuple(entry for entry in entries if entry.verdict in _FAILING),
                others=tuple(entry for entry in entries if entry.verdict not in _FAILING),
            )
        )
    return made


def markdown(found: Sequence[Judgement], titles: Mapping[str, str]) -> str:
    """The page in Markdown."""
    return "\n".join(_lines(chapters(found, titles)))


def page(found: Sequence[Judgement], titles: Mapping[str, str]) -> str:
    """The page in HTML, with nothing to fetch; every text is escaped.

    One script searches, filters and orders what is there. The page allows no other, by its hash.
    """
    from dpverify.certificate.report import html, plots  # late: they need the extra

    content = chapters(found, titles)
    script = (files(__package__) / "templates" / "claims.js").read_text(encoding="utf-8")
    return html.template("claims.html.j2").render(
        chapters=content,
        meanings=MEANINGS,
        total=sum(chapter.total for chapter in content),
        failing=sum(len(chapter.failing) for chapter in content),
        version=__version__,
        figure=plots.verdict_plot({chapter.paper: chapter.counts for chapter in content}),
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _lines(content: Sequence[Chapter]) -> Iterator[str]:
    total = sum(chapter.total for chapter in content)
    yield "# What the papers say, checked by machine"
    yield ""
    yield f"{total} statements, each with the verdict that its check computed. For each paper,"
    yield "those that fail come first. `dpverify claims show ID` has the numbers of one of them."
    yield "`dpverify claims --markdown` prints this page; `--html FILE` writes one with a search."
    yield ""
    verdicts = [verdict for verdict in MEANINGS if any(c.counts.get(verdict) for c in content)]
    yield f"| paper | {' | '.join(verdicts)} |"
    yield f"|---|{'---|' * len(verdicts)}"
    for chapter in content:
        counts = " | ".join(str(chapter.counts.get(verdict, "")) for verdict in verdicts)
        yield f"| [{chapter.paper}](#{chapter.paper}) | {counts} |"
    yield ""
    for verdict in verdicts:
        yield f" - **{verdict}**: {MEANINGS[verdict]}."
    yield ""
    yield "What a check compares with, its oracle:"
    yield ""
    for oracle, meaning in ORACLES.items():
        count = sum(chapter.oracles[oracle] for chapter in content)
        if count:
            yield f" - **{oracle}** ({count}): {meaning}."
    for chapter in content:
        yield from _chapter(chapter)


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield from ("", f"## {chapter.paper}", "", f"{chapter.title}.", "")
    total = ", ".join(f"{count} {name}" for name, count in chapter.counts.items())
    yield f"{chapter.total} statements: {total}."
    if chapter.failing:
        yield from ("", "### not as printed")
    for entry in chapter.failing:
        yield from ("", f"#### {entry.id}: {entry.verdict}", "", f" - Where: {entry.where}")
        yield f" - Says: {entry.text}"
        yield from (f" - {name}: {text}" for name, text in entry.facts.items())
    for verdict in get_args(Verdict):
        entries = [] if verdict in _FAILING else chapter.having(verdict)
        if entries:
            yield from ("", f"### {verdict}", "")
        for entry in entries:
            remark = "; ".join(
                f"used by {text}" if name == "Used by" else text
                for name in ("Off by", "Tried", "Note", "Used by")
                if (text := entry.facts.get(name))
            )
            yield f" - `{entry.id}` ({entry.where}): {entry.text} *{remark}*"


def _entry(judgement: Judgement) -> Entry:
    statement, printed = judgement.statement, judgement.printed
    name = judgement.reading() or judgement.correction()
    reading, correction = statement.readings.get(name), statement.corrections.get(name)
    failed = "" if printed is None else printed.counterexample
    facts = {
        "Supposing": statement.conditions,
        "Fails": failed if judgement.verdict in _FAILING else "",
        "True": f"{name}, a claim of ours" if correction and not correction.place else name,
        "Place": reading.place if reading else correction.place if correction else "",
        "Covers": reading.covers if reading else "",
        "Change": correction.change if correction else "",
        "Proof": correction.proof if correction else "",
        "Off by": "" if printed is None or printed.tight else printed.slack,
        "Tried": "" if printed is None else printed.how,
        "Note": statement.reason,
        "Instead": statement.instead if judgement.verdict in _FAILING else "",
        relation(judgement).capitalize(): ", ".join(users(statement)),
    }
    return Entry(
        id=statement.id,
        verdict=judgement.verdict,
        where=statement.where,
        text=statement.text,
        facts={name: text for name, text in facts.items() if text},
    )


def by_place(judgement: Judgement) -> tuple[int, tuple[int, ...]]:
    """Where a statement stands, for sorting; what doesn't say so keeps its order, in front."""
    for text in (judgement.statement.where, judgement.statement.id):
        if found := _PLACE.search(text):
            kind, number, parts = found.groups("")
            if not number:
                return _KINDS[kind.lower()], ()
            first = int(number) if number.isdecimal() else ord(number.lower())
            rest = (int(part) for part in parts.split(".") if part)
            return _KINDS[kind.lower()], (first, *rest)
    return 0, ()
