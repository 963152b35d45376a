"""Each numbered item of a paper is in its ledger, or it is said here why it isn't.

Numbered items are definitions, theorems and their like, equations, figures and tables. One counts
as covered where a statement's id or place names it, an equation also by its number in brackets. The
slides number nothing: their statements go by page and appendix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dpverify.ledger.statements import known_statements
from tests.audits.papers.displays import (
    LISTS,
    columns,
    displayed,
    listed,
    remarked,
    tabled,
    told,
)
from tests.helpers.paths import ROOT

ITEMS = {
    "aumuller2020": (
        "definition 1; equation 1-5; figure 1-3; lemma 1-6; table 1; theorem 3.1 4.1 5.1"
    ),
    "kenthapadi2013": (
        "algorithm 1-6; definition 1-2; equation 1-5; figure 1; lemma 1-6; theorem 1-3"
    ),
    "li2023": (
        "algorithm 1-11; definition 2.1-2.6; equation 1-28; figure 1-16; "
        "lemma 3.2-3.3 3.6-3.7 4.2-4.4; proposition 4.5; "
        "remark 3.1 4.1-4.2; theorem 2.1-2.3 3.1 3.4-3.5 3.8-3.10 4.1 4.6-4.8 6.1-6.2"
    ),
    "mironov2017": (
        "corollary 1-4; definition 1-4; equation 1-3; figure 1-3; lemma 1; proposition 1-11; "
        "remark 1-3; table 1-2"
    ),
    "stausholm2021": (
        "corollary 1-2; definition 1-4; equation 1-12; lemma 1-13; note 1-7; theorem 1-3"
    ),
}
# What has no statement of its own: what is claimed of it is elsewhere.
LEFT_OUT = {
    "kenthapadi2013.algorithm 3": "NoiseAddition: noise and variance are statements of section 4.1",
    "kenthapadi2013.equation 5": "the variance of a sum written out, whose terms are statements",
    "li2023.algorithm 1": "DP-RP-G: its noise is that of the theorems of section 3",
    "li2023.algorithm 6": "DP-SignRP-RR: its flips are those of theorem 4.1",
    "li2023.algorithm 8": "DP-SignOPORP-RR: its flips are those of theorem 4.8",
    "li2023.algorithm 11": "iDP-SignRP-RR: its guarantee is in section 6",
    "li2023.equation 22": "the probability that equations 23 and 24 are of",
    "li2023.figure 6": "an illustration of algorithm 7's flips",
    "li2023.figure 9": "simulations of algorithm 7's levels, without numbers in the text",
    "li2023.figure 15": "an experiment on MNIST, without numbers in the text",
    "li2023.figure 16": "an experiment on WEBSPAM, without numbers in the text",
    "mironov2017.figure 1": "the curves of table 2 drawn",
    "mironov2017.remark 2": "of orders below 1, which the paper doesn't use",
}

_NAMED = re.compile(r"([a-z]+?)s? (\d[\d.]*(?:(?:,| and| to) \d[\d.]*)*)")


def items(paper: str) -> Iterator[str]:
    for group in ITEMS[paper].split("; "):
        kind, *numbers = group.split(" ")
        for number in numbers:
            first, _, last = number.partition("-")
            chapter, _, start = first.rpartition(".")
            end = (last or first).rpartition(".")[2]
            for n in range(int(start), int(end) + 1):
                yield f"{kind} {chapter}{'.' if chapter else ''}{n}"


def covered(paper: str) -> set[str]:
    """Items that ids and places name, "lemmas 2 and 3" and "algorithms 1 to 4" too."""
    found = set()
    for statement in known_statements():
        if statement.paper != paper:
            continue
        for text in (statement.id.partition(".")[2].replace("-", " "), statement.where.lower()):
            found |= {f"equation {number}" for number in re.findall(r"\((\d+)\)", text)}
            for kind, numbers in _NAMED.findall(text):
                each = re.findall(r"\d[\d.]*", numbers)
                found |= {f"{kind} {number.rstrip('.')}" for number in each}
                for low, high in re.findall(r"(\d+) to (\d+)", numbers):
                    found |= {f"{kind} {n}" for n in range(int(low), int(high) + 1)}
    return found


@pytest.mark.parametrize("paper", ITEMS)
def test_every_numbered_item_is_covered(paper: str) -> None:
    found = covered(paper)
    missing = [item for item in items(paper) if item not in found]
    assert [f"{paper}.{item}" for item in missing] == [
        item for item in LEFT_OUT if item.startswith(f"{paper}.")
    ]


@pytest.mark.parametrize(
    ("name", "paper"), [(name, paper) for name in LISTS for paper in listed(name)]
)
def test_every_item_of_a_list_has_a_statement_or_a_reason(name: str, paper: str) -> None:
    known = {one.id.removeprefix(f"{paper}.") for one in known_statements() if one.paper == paper}
    for item, said in listed(name)[paper].items():
        reason = said.removeprefix("- ")
        named = set(said.split())
        assert reason if reason != said else named and named <= known, (item, said)


@pytest.mark.parametrize(
    ("name", "paper"), [(name, paper) for name in ("displays", "rows") for paper in listed(name)]
)
def test_no_number_of_a_list_is_left_out(name: str, paper: str) -> None:
    numbers = [int(item.split()[0]) for item in listed(name)[paper]]
    assert numbers == list(range(1, len(numbers) + 1))


def names_the_proof(where: str, section: str) -> bool:
    """Whether a place is in a section, and in a proof unless the section is an appendix."""
    there = re.search(rf"(?<![\w.]){re.escape(section)}(?!\.?\w)", where) is not None
    return there and (section[0].isalpha() or "proof" in where)


@pytest.mark.parametrize("paper", listed("displays"))
def test_a_formula_of_a_proof_has_a_statement_of_that_proof(paper: str) -> None:
    """That of the theorem isn't enough: it doesn't look at what the proof writes."""
    where = {statement.id: statement.where for statement in known_statements()}
    unseen, proofs = [], 0
    for item, said in listed("displays")[paper].items():
        _, _, section = item.partition(" ")
        named = [where[f"{paper}.{name}"] for name in said.split()] if said[0] != "-" else []
        proofs += bool(section and named)
        if section and named and not any(names_the_proof(one, section) for one in named):
            unseen.append(item)
    assert proofs
    assert unseen == []


@pytest.mark.parametrize("paper", ITEMS)
def test_abstracts_footnotes_and_appendices_are_listed_sentence_by_sentence(paper: str) -> None:
    parts: dict[str, list[int]] = {}
    for item in listed("sentences")[paper]:
        part, _, number = item.rpartition(", ")
        parts.setdefault(part, []).append(int(number))
    assert "abstract" in parts
    assert any(part.startswith("appendix") for part in parts)
    for numbers in parts.values():
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("paper", listed("remarks"))
def test_no_caption_remark_or_note_is_left_out_of_the_list(paper: str) -> None:
    sentences: dict[str, list[int]] = {}
    for item in listed("remarks")[paper]:
        label, _, number = item.partition(", ")
        sentences.setdefault(label, []).append(int(number))
    labelled = {"figure", "note", "remark", "table"}
    assert set(sentences) == {one for one in items(paper) if one.partition(" ")[0] in labelled}
    for numbers in sentences.values():
        assert numbers == list(range(1, len(numbers) + 1))


def test_the_page_has_the_numbers_of_the_lists() -> None:
    text = (ROOT / "docs" / "ledger.md").read_text("utf-8")
    for name in LISTS:
        for paper, listing in listed(name).items():
            reasons = sum(said.startswith("- ") for said in listing.values())
            numbers = f"{len(listing)} | {len(listing) - reasons} | {reasons}"
            assert f"| {name} | {paper} | {numbers} |" in text


MARKED = """# Title
## 2.1 First
$$a = b$$ and $$
c = d $$
*Proof.* By $$f$$ it is so. □
And $$g$$
#### B.3 Proof
$$e$$
"""
PLAIN = """2.1 First
Pr[x]=yPr\\Pr[x]=y
Let x be \\alpha of the set.
Proof
Laplace noise\\alpha
=zz\\alpha
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [(MARKED, ["2.1", "2.1", "2.1 proof", "2.1", "B.3 proof"]), (PLAIN, ["2.1", "2.1 proof"])],
)
def test_displayed_formulas_are_found_in_a_text(text: str, found: list[str]) -> None:
    assert list(displayed(text)) == found


COLUMNS = """\
The left column has some words of its own                     The right one has words of its own
on this line and on more                                      that go on with the right one
              x < y                                                         c = d
and it goes on with words of the left                         and ends with words of the right
"""


def test_pages_in_columns_are_read_column_by_column() -> None:
    said = [line.split()[:2] for line in columns(COLUMNS).splitlines() if line]
    left = [["The", "left"], ["on", "this"], ["x", "<"], ["and", "it"]]
    assert said == [*left, ["The", "right"], ["that", "go"], ["c", "="], ["and", "ends"]]
    assert list(displayed(f"{COLUMNS}\f")) == ["", ""]


def test_sentences_of_parts_are_found_in_a_text() -> None:
    text = (
        "# Title\n## Abstract\nWe show a thing. It is of use<sup>1</sup> here.\n"
        "## 1 Introduction\nNot this one.\n<sup>1</sup>Said below the page.\n"
        "## A Proofs\nThis follows from $$x$$ Then this is so.\n### A.1 More\nAnd a last one.\n"
    )
    assert list(told(text)) == [
        "abstract, 1",
        "abstract, 2",
        "appendix A, 1",
        "appendix A, 2",
        "appendix A.1, 1",
        "footnote 1, 1",
    ]


def test_rows_of_tables_are_found_in_a_text() -> None:
    text = "One 0.1\nA 0.11 0.22 / 0.33 0.44 0.55\nB\tsome\tmore\n"
    assert list(tabled(text)) == ["1", "2"]


def test_sentences_of_captions_are_found_in_a_text() -> None:
    text = (
        "Figure 1: One. A two.\n\nFigure 1 shows it.\n\n**Remark 3.1.** If so, then $N = k$. So.\n"
    )
    assert list(remarked(text)) == ["figure 1, 1", "figure 1, 2", "remark 3.1, 1", "remark 3.1, 2"]
