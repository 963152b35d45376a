"""What a paper's text has, item by item, and the statements that are of each: two lists.

``displays.txt`` is of displayed formulas in order, ``remarks.txt`` of each sentence of a caption, a
remark or a note. The texts are no part of this project. With one at hand,
``python -m tests.audits.papers.displays PAPER TEXT`` prints every item and what the lists have for
it, so that one without a line shows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

__all__ = ["LISTS", "displayed", "listed", "remarked"]

_MARKED = re.compile(r"^#+ (?P<heading>.*)$|\$\$[\s\S]+?\$\$", re.MULTILINE)
_SECTION = re.compile(r"\W*((?:[A-F]|\d+)(?:\.\d+)*)\b")
_WORDS = re.compile(r" (?:a|and|be|by|for|in|is|of|that|the|to|with) ")
_LABEL = re.compile(r"^[#* ]*(Figure|Table|Remark|Note) (\d+(?:\.\d+)?)[:.]\W*(.*)$", re.MULTILINE)


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


def remarked(text: str) -> Iterator[str]:
    """Label and number of each sentence of a caption, a remark or a note."""
    for kind, number, said in _LABEL.findall(text):
        for place, _ in enumerate(re.split(r"[.?!] +(?=[A-Z])", said), start=1):
            yield f"{kind.lower()} {number}, {place}"


LISTS: Mapping[str, Callable[[str], Iterator[str]]] = {"displays": displayed, "remarks": remarked}


def listed(name: str) -> dict[str, dict[str, str]]:
    """Of a list, by paper and item: ids without the paper, or a dash and a reason."""
    papers: dict[str, dict[str, str]] = {}
    for line in Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            items = papers.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            item, _, said = line.strip().partition(": ")
            items[item] = said
    return papers


if __name__ == "__main__":
    paper, text = sys.argv[1], Path(sys.argv[2]).read_text("utf-8")
    for name, found in LISTS.items():
        known = listed(name).get(paper, {})
        for number, item in enumerate(found(text), start=1):
            key = item if name == "remarks" else str(number)
            print(item, key, known.get(key, "MISSING"), sep="\t")
