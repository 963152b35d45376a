"""The displayed formulas of a paper's text, in order, and the statements that are of them.

The list is in ``displays.txt``; the texts are no part of this project. With one at hand,
``python -m tests.audits.papers.displays PAPER TEXT`` prints each formula's number, its section and
what the list has for it, so that a formula without a line shows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["displayed", "listed"]

_LIST = Path(__file__).with_suffix(".txt")
_MARKED = re.compile(r"^#+ (?P<heading>.*)$|\$\$[\s\S]+?\$\$", re.MULTILINE)
_SECTION = re.compile(r"\W*((?:[A-F]|\d+)(?:\.\d+)*)\b")
_WORDS = re.compile(r" (?:a|and|be|by|for|in|is|of|that|the|to|with) ")


def displayed(text: str) -> Iterator[str]:
    """The section of each displayed formula: between ``$$``, or else a line without a sentence."""
    section = ""
    if "$$" not in text:
        for line in text.splitlines():
            heading = re.match(r"(\d(?:\.\d)?|Appendix 0\.\w) [A-Z]", line)
            section = heading[1] if heading else section
            sentence = _WORDS.search(line) or re.match(r"[A-Z][a-z]+[ .A-Z]", line)
            if re.search(r"\\\w", line) and not sentence:
                yield section
        return
    for found in _MARKED.finditer(text):
        if found["heading"] is None:
            yield section
        elif number := _SECTION.match(found["heading"]):
            section = number[1]


def listed() -> dict[str, dict[int, str]]:
    """By paper and number of the formula: ids without the paper, or a dash and a reason."""
    papers: dict[str, dict[int, str]] = {}
    for line in _LIST.read_text("utf-8").splitlines():
        if line.startswith("["):
            formulas = papers.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            number, _, said = line.strip().partition(" ")
            formulas[int(number)] = said
    return papers


if __name__ == "__main__":
    paper, text = sys.argv[1], Path(sys.argv[2]).read_text("utf-8")
    known = listed()[paper]
    for number, section in enumerate(displayed(text), start=1):
        print(number, section, known.get(number, "MISSING"), sep="\t")
