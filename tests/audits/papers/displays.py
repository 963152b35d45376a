"""What a paper's text has, item by item, and the statements that are of each: four lists.

``displays.txt`` is of displayed formulas in order, ``remarks.txt`` of each sentence of a caption, a
remark or a note, ``sentences.txt`` of those of abstracts, footnotes and appendices, ``rows.txt`` of
tables. The texts are no part of this project: they are Markdown, lines of words and symbols, or
pages in two columns. With one at hand, ``python -m tests.audits.papers.displays PAPER TEXT`` prints
every item and what the lists have for it, so that one without a line shows.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

__all__ = ["LISTS", "columns", "displayed", "listed", "remarked", "tabled", "told"]

_MARKED = re.compile(
    r"^#+ (?P<heading>.*)$|\$\$[\s\S]+?\$\$|(?P<proof>^\**Proof\b)"
    r"|(?P<end>^\**(?:Theorem|Lemma|Corollary|Remark|Note) \d|□|\\(?:Box|square))",
    re.MULTILINE,
)
_SECTION = re.compile(r"\W*(?:Appendix )?((?:[A-F]|\d+)(?:\.\d+)*)\b")
_WORDS = re.compile(r" (?:a|and|be|by|for|if|in|is|of|that|the|to|we|where|with) ")
_LABEL = re.compile(
    r"^[#* ]*(Fig|Table|Remark|Note)(?:u\we|\.)? (\d+(?:\.\d+)?|I+)(?:[:.]\W*|$\s*)"
    r"(\w.*(?:\n(?=\w)(?!Remark).*)*)",
    re.MULTILINE | re.IGNORECASE,
)
_PART = re.compile(
    r"\W*(?:(?P<abstract>Abstract)\b\W*|(?P<all>A PPENDIX)"
    r"|(?:(?<=# )|Appendix |0\.)(?:Appendix )?(?:0\.)?(?P<letter>[A-F](?:\.\d)*)\b.*"
    r"|(?P<end>References|R E\w+S|Contents|1 Introduction|I\. I NTRO).*)"
)
_FOOTNOTE = re.compile(
    r"^<sup>(?:&</sup>lt;sup>|&lt;sup>)?(\d)</sup>(.*)$|[a-z](\d)\3\3([A-Z].*?\.)(?= [a-z])",
    re.MULTILINE,
)


def columns(text: str) -> str:
    """Pages in two columns as one column, each line without its column's margin."""
    lines = []
    for page in text.split("\f"):
        rows = page.splitlines()
        gaps = (gap.end() for row in rows for gap in re.finditer(r"(?<=\S) {3,}(?=\S)", row))
        common = Counter(place for place in gaps if place >= 60).most_common(1)
        middle = common[0][0] if common else len(page)
        for part in (slice(middle), slice(middle, None)):
            column = [row[part].rstrip() for row in rows]
            said = [row for row in column if re.match(r" *\w+ \w+ \w+", row)]
            margin = min((len(row) - len(row.lstrip()) for row in said), default=0)
            lines += [row.lstrip() if row[:margin].strip() else row[margin:] for row in column]
            lines.append("")
    return "\n".join(lines)


def displayed(text: str) -> Iterator[str]:
    """The section of each displayed formula: between ``$$``, or else lines without a sentence.

    Of a formula in a proof or an appendix the word “proof” follows.
    """
    section, proof = "", ""
    if "\f" in text:
        yield from _indented(columns(text))
    elif "$$" not in text:
        for line in text.splitlines():
            heading = re.match(r"(\d(?:\.\d)?|Appendix 0\.\w) [A-Z]", line)
            section = heading[1] if heading else section
            sentence = _WORDS.search(line) or re.match(r"[A-Z][a-z]+[ .A-Z]", line)
            if (
                line == "Proof"
                or heading
                or re.match(r"(?:Lemma|Theorem) \d|.*(?:Analysis|Estimation)\.", line)
            ):
                proof = " proof" if line == "Proof" or "Appendix" in line else ""
            if re.search(r"\\\w", line) and not sentence:
                yield section + proof
    else:
        for found in _MARKED.finditer(text):
            if found["proof"] or found["end"]:
                proof = " proof" if found["proof"] or section[:1].isalpha() else ""
            elif found["heading"] is None:
                yield section + proof
            elif number := _SECTION.match(found["heading"]):
                section = number[1]
                proof = " proof" if section[:1].isalpha() else ""


def _indented(text: str) -> Iterator[str]:
    """The section of each run of indented lines without a sentence, one of them a relation."""
    section, run = "", ""
    for line in [*text.splitlines(), "end"]:
        said = _WORDS.search(f" {line} ") or re.match(r" {3,5}[A-Z“(]?[a-z]{2,} [a-z]", line)
        if line.startswith("   ") and not said:
            run += line
        elif line.strip():
            if re.search(r"[=≤≥<∈]|[)f] , ", run):
                yield section
            run = ""
        heading = re.match(r"\s*([IVX]+|[A-D])\. [A-Z]", line)
        section = heading[1] if heading else section


def remarked(text: str) -> Iterator[str]:
    """Label and number of each sentence of a caption, a remark or a note."""
    labelled = _LABEL.findall(text)
    if "\f" in text:  # captions are across both columns
        labelled = [one for one in labelled if one[0] != "Remark"]
        labelled += [one for one in _LABEL.findall(columns(text)) if one[0] == "Remark"]
    for kind, number, said in labelled:
        label = kind.lower().replace("fig", "figure")
        count = len(number) if number.strip("I") == "" else number
        for place, _ in enumerate(re.split(r"[.?!] +(?=[A-Z])", " ".join(said.split())), start=1):
            yield f"{label} {count}, {place}"


def told(text: str) -> Iterator[str]:
    """Part and number of each sentence of the abstract, the footnotes and the appendices."""
    text = columns(text) if "\f" in text else text
    part, parts = "", dict[str, list[str]]()
    for line in text.splitlines():
        if found := _PART.match(line):
            letter = f"appendix {found['letter']}" if found["letter"] else ""
            part = "abstract" if found["abstract"] else "appendix" if found["all"] else letter
        if part and (found or not line.startswith("#")):
            parts.setdefault(part, []).append(line[found.end() if found else 0 :])
    for one, said, other, more in _FOOTNOTE.findall(text):
        parts[f"footnote {one or other}"] = [said or more]
    for part, lines in parts.items():
        joined = re.sub(r"\$\$[\s\S]+?\$\$", " § ", "\n".join(lines))
        joined = " ".join(re.sub(r"\n\s*[-•]+ ", ". ", joined).split())
        sentences = re.split(r"(?:[.?!]|§)[*)”]* +(?=\W{0,6}[A-Z])", joined)
        of_words = [one for one in sentences if len(re.findall("[A-Za-z]{2,}", one)) >= 3]
        for place, _ in enumerate(of_words, start=1):
            yield f"{part}, {place}"


def tabled(text: str) -> Iterator[str]:
    """Number of each row of a table: with cells between tabs, of numbers, or on top of a page."""
    if "\f" in text:
        tops = [page.split("TABLE")[0] for page in text.split("\f") if "TABLE I" in page]
        rows = [row for top in tops for row in re.findall(r"^ {2,4}[A-Z][a-z]+", top, re.MULTILINE)]
    else:
        cells = r"^[A-Z][^\t\n]*(?:\t[^\t\n]*){2,}$|^.*(?: 0\.\d\d(?: / 0\.\d\d)?){4}$"
        rows = re.findall(cells, text, re.MULTILINE)
    yield from (str(number) for number, _ in enumerate(rows, start=1))


LISTS: Mapping[str, Callable[[str], Iterator[str]]] = {
    "displays": displayed,
    "remarks": remarked,
    "sentences": told,
    "rows": tabled,
}


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
            key = str(number) if name == "displays" else item
            key += f" {item.split()[0]}" if name == "displays" and item.endswith("proof") else ""
            print(name, key, known.get(key, "MISSING"), sep="\t")
