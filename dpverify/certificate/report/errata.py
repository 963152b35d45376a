"""A sheet of errata for one paper, as one would send it to its authors.

Each entry has the place, what is printed, what is true, why, and three lines that compute it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpverify._version import __version__
from dpverify.certificate.report.statements import by_place
from dpverify.ledger.statements import Judgement, Verdict

__all__ = ["check_lines", "sheet"]

_PARTS: dict[Verdict, str] = {
    "misprint": "Misprints: one symbol, sign, constant or word",
    "refuted": "False at a setting that is covered",
    "holds_under_reading": "True as the paper's own text means it, and false as it is printed",
}


def check_lines(id: str) -> list[str]:  # noqa: A002
    """Three lines of Python that judge a statement again and print what was found."""
    return [
        "from dpverify.ledger.statements import judge, known_statement",
        f'found = judge(known_statement("{id}"))',
        "print(found.verdict, found.shown)",
    ]


def sheet(judgements: Sequence[Judgement], title: str) -> str:
    """The sheet in Markdown.

    Parameters
    ----------
    judgements : of one paper's statements
    title : the paper in words
    """
    return "\n".join(_lines(sorted(judgements, key=by_place), title)) + "\n"


def _lines(judgements: Sequence[Judgement], title: str) -> Iterator[str]:
    counts = {name: sum(j.verdict == name for j in judgements) for name in _PARTS}
    yield f"# Errata: {title}"
    yield ""
    yield f"Of {len(judgements)} statements {counts['misprint']} have a misprint,"
    yield f"{counts['refuted']} are false at a setting that they cover, and"
    yield f"{counts['holds_under_reading']} are true only as the paper's own text means them."
    yield f"Printed by `dpverify claims errata`, dpverify {__version__}. The three lines under each"
    yield "entry compute it again and print what stands behind the `#`. What is true in place of a"
    yield "false line is the paper's own where a place is named, and ours elsewhere."
    for verdict, heading in _PARTS.items():
        chosen = [judgement for judgement in judgements if judgement.verdict == verdict]
        if chosen:
            yield from ("", f"## {heading}")
        for judgement in chosen:
            yield from _entry(judgement)


def _entry(judgement: Judgement) -> Iterator[str]:
    statement = judgement.statement
    name = judgement.reading() or judgement.correction()
    reading, correction = statement.readings.get(name), statement.corrections.get(name)
    place = reading.place if reading else correction.place if correction else ""
    yield from ("", f"### {statement.where[0].upper()}{statement.where[1:]}", "")
    yield f"- Printed, in our words: {statement.text}"
    if statement.conditions:
        yield f"- Settings: {statement.conditions}"
    ours = f", by us: {correction.proof}" if correction and correction.proof else ", by us"
    if name:
        yield f"- {'Meant' if reading else 'True'}: {name}{f' ({place})' if place else ours}"
    yield f"- Why: {statement.reason}"
    yield f"- Instead: {statement.instead}"
    yield ""
    yield from (f"      {line}" for line in check_lines(statement.id))
    yield f"      # {judgement.verdict} {judgement.shown}"
