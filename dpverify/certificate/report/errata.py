"""A sheet of errata for one paper, as one would send it to its authors.

It begins with a table that goes on one page: the place, what is printed, what is correct, why, and
the name that the three lines of Python below it take to compute the row again. `page` is that page
in HTML; `sheet` has it in Markdown, and each entry in full after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpverify._version import __version__
from dpverify.certificate.report.statements import by_place
from dpverify.ledger.statements import Judgement, Verdict

__all__ = ["Row", "check_lines", "page", "rows", "sheet"]

_PARTS: dict[Verdict, str] = {
    "misprint": "Misprints: one symbol, sign, constant or word",
    "refuted": "False at a setting that they cover",
    "holds_under_reading": "False as printed, and true under a reading that the paper supports",
}
_TABLES: dict[str, tuple[Verdict, ...]] = {
    "correct": ("misprint", "refuted"),
    "meant": ("holds_under_reading",),
}

_SENTENCE = re.compile(r"(?<=\.) (?![a-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A statement that isn't to be followed as it is printed, in one line of a table.

    Attributes
    ----------
    place : in the paper
    printed : in our words
    correct : what is true, or meant, in its place, with the settings at which the check found it
        so; said to be ours where the paper has it nowhere
    why : the first sentence of the reason
    name : of the statement, without the paper's
    """

    place: str
    printed: str
    correct: str
    why: str
    name: str


def check_lines(id: str) -> list[str]:  # noqa: A002
    """Three lines of Python that judge a statement again and print what was found."""
    return [
        "from dpverify.ledger.statements import judge, known_statement",
        f'found = judge(known_statement("{id}"))',
        "print(found.verdict, found.shown)",
    ]


def rows(judgements: Sequence[Judgement], verdicts: Sequence[Verdict]) -> list[Row]:
    """The table's rows for statements with one of these verdicts, in the paper's order."""
    chosen = [judgement for judgement in judgements if judgement.verdict in verdicts]
    return [_row(judgement) for judgement in sorted(chosen, key=by_place)]


def page(judgements: Sequence[Judgement], title: str) -> str:
    """The tables in HTML, on one A4 page or, of a paper with many entries, two.

    Parameters
    ----------
    judgements : of one paper's statements
    title : the paper in words
    """
    from dpverify.certificate.report import html  # late: it needs the extra

    return html.template("errata.html.j2").render(
        title=title,
        summary=_summary(judgements),
        tables=_tables(judgements),
        lines=_check(judgements),
    )


def sheet(judgements: Sequence[Judgement], title: str) -> str:
    """The tables in Markdown, and each entry in full.

    Parameters
    ----------
    judgements : of one paper's statements
    title : the paper in words
    """
    return "\n".join(_lines(judgements, title)) + "\n"


def _summary(judgements: Sequence[Judgement]) -> str:
    counts = {name: sum(j.verdict == name for j in judgements) for name in _PARTS}
    return (
        f"{len(judgements)} statements: {counts['misprint']} with a misprint, "
        f"{counts['refuted']} false at a setting that they cover, and "
        f"{counts['holds_under_reading']} true only under a reading that the text supports. "
        f"Printed statements are in our words. “By us” marks corrections that the paper doesn't "
        f"have. Our text was extracted from the paper's file, where a sign can get lost. "
        f"Computed by dpverify {__version__}."
    )


def _tables(judgements: Sequence[Judgement]) -> dict[str, list[Row]]:
    """By the heading of what stands beside what is printed."""
    return {word: rows(judgements, verdicts) for word, verdicts in _TABLES.items()}


def _check(judgements: Sequence[Judgement]) -> list[str]:
    return check_lines(f"{judgements[0].statement.paper}.NAME")


def _row(judgement: Judgement) -> Row:
    statement, name = judgement.statement, judgement.reading() or judgement.correction()
    correct = name or "nothing that we know"
    correction = statement.corrections.get(name)
    if correction and not correction.place:
        correct = f"by us: {correct}"
    if correction and statement.conditions:
        correct = f"{correct} (settings: {statement.conditions})"
    return Row(
        place=_capital(statement.where),
        printed=statement.text,
        correct=correct,
        why=_SENTENCE.split(statement.reason, maxsplit=1)[0],
        name=statement.id.partition(".")[2],
    )


def _lines(judgements: Sequence[Judgement], title: str) -> Iterator[str]:
    yield from (f"# Errata: {title}", "", _summary(judgements))
    for word, table in _tables(judgements).items():
        yield from ("", f"| place | printed | {word} | why | name |", "|---|---|---|---|---|")
        for row in table:
            cells = (row.place, row.printed, row.correct, row.why, f"`{row.name}`")
            yield f"| {' | '.join(_cell(text) for text in cells)} |"
        if word == "correct":
            yield from ("", "Three lines compute a row again, with its name for `NAME`:", "")
            yield from (f"      {line}" for line in _check(judgements))
    yield from ("", "The rest of the page has each of them in full.")
    for verdict, heading in _PARTS.items():
        chosen = [judgement for judgement in judgements if judgement.verdict == verdict]
        if chosen:
            yield from ("", f"## {heading}")
        for judgement in sorted(chosen, key=by_place):
            yield from _entry(judgement)


def _entry(judgement: Judgement) -> Iterator[str]:
    statement = judgement.statement
    name = judgement.reading() or judgement.correction()
    reading, correction = statement.readings.get(name), statement.corrections.get(name)
    place = reading.place if reading else correction.place if correction else ""
    yield from ("", f"### {_capital(statement.where)}", "")
    yield f"- Printed, in our words: {statement.text}"
    if statement.conditions:
        yield f"- Settings: {statement.conditions}"
    ours = f", by us: {correction.proof}" if correction else ""
    if name:
        yield f"- {'Meant' if reading else 'True'}: {name}{f' ({place})' if place else ours}"
    yield f"- Why: {statement.reason}"
    yield f"- Instead: {statement.instead}"
    yield f"- Printed by the three lines for `{statement.id}`:"
    yield from ("", f"      {judgement.verdict} {judgement.shown}")


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _cell(text: str) -> str:
    """A text as a cell of a table in Markdown."""
    return text.replace("|", r"\|").replace("*", r"\*")
