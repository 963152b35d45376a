"""Section 6.2: what the text says of table 1, against the table as it is printed.

The data sets that it was measured on aren't part of this project.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpverify.ledger.checks import at_most, wherever
from dpverify.ledger.statements import Reading, Statement

__all__ = ["CLAIMS"]

_COLUMNS = ("R@10", "R@50", "R@100", "Approx")
_DATA = ("Last.FM", "MovieLens 50", "MovieLens 100", "MovieLens 500")
_TABLE: dict[tuple[str, str, int], Sequence[str]] = {
    ("Last.FM", "MinHash", 0): ("0.42", "0.72", "0.82", "0.55"),
    ("Last.FM", "RRMinHash", 4): ("0.04", "0.15", "0.25", "0.19"),
    ("Last.FM", "RRMinHash", 8): ("0.16", "0.38", "0.51", "0.35"),
    ("Last.FM", "NoisyMinHash", 4): ("0.03", "0.11", "0.19", "0.16"),
    ("Last.FM", "NoisyMinHash", 8): ("0.06", "0.19", "0.31", "0.23"),
    ("MovieLens 50", "MinHash", 0): ("0.13", "0.34", "0.47", "0.61"),
    ("MovieLens 50", "RRMinHash", 4): ("0.02", "0.09", "0.18", "0.49"),
    ("MovieLens 50", "RRMinHash", 8): ("0.05", "0.17", "0.28", "0.53"),
    ("MovieLens 50", "NoisyMinHash", 4): ("0.01", "0.05", "0.11", "0.49"),
    ("MovieLens 50", "NoisyMinHash", 8): ("0.02", "0.11", "0.21", "0.50"),
    ("MovieLens 100", "MinHash", 0): ("0.31", "0.62", "0.75", "0.72"),
    ("MovieLens 100", "RRMinHash", 4): ("0.04", "0.12", "0.22", "0.52"),
    ("MovieLens 100", "RRMinHash", 8): ("0.07", "0.24", "0.36", "0.57"),
    ("MovieLens 100", "NoisyMinHash", 4): ("0.04", "0.09", "0.18", "0.52"),
    ("MovieLens 100", "NoisyMinHash", 8): ("0.04", "0.15", "0.27", "0.54"),
    ("MovieLens 500", "MinHash", 0): ("0.58", "0.93", "0.99", "0.83"),
    ("MovieLens 500", "RRMinHash", 4): ("0.19", "0.65", "0.91", "0.72"),
    ("MovieLens 500", "RRMinHash", 8): ("0.31", "0.76", "0.96", "0.76"),
    ("MovieLens 500", "NoisyMinHash", 4): ("0.14", "0.63", "0.90", "0.71"),
    ("MovieLens 500", "NoisyMinHash", 8): ("0.25", "0.69", "0.92", "0.73"),
}


def _entry(data: str, name: str, epsilon: int, column: str) -> Fraction:
    return Fraction(_TABLE[data, name, epsilon][_COLUMNS.index(column)])


def _factor(data: str, epsilon: int, column: str) -> Fraction:
    """How many times better MinHash without privacy is than RRMinHash."""
    return _entry(data, "MinHash", 0, column) / _entry(data, "RRMinHash", epsilon, column)


def _rounding(data: str, epsilon: int, column: str) -> Fraction:
    """By how much such a factor is open, as the table is rounded to two digits."""
    plain, private, half = (
        _entry(data, "MinHash", 0, column),
        _entry(data, "RRMinHash", epsilon, column),
        Fraction(1, 200),
    )
    return (plain + half) / (private - half) - plain / private


def _whole(data: str, column: str, said: Fraction) -> tuple[Fraction, Fraction]:
    """How far a factor at ε = 4 is from what is said, and what a whole number leaves open."""
    return abs(_factor(data, 4, column) - said), Fraction(1, 2) + _rounding(data, 4, column)


def _at_least_as_good(one: str, other: str) -> tuple[Fraction, int]:
    """The other's entries over this one's: the largest quotient, which is to be at most 1."""
    return max(
        _entry(data, other, e, column) / _entry(data, one, e, column)
        for data in _DATA
        for e in (4, 8)
        for column in _COLUMNS
    ), 1


def _grows_faster(a: int, b: int, c: int, d: int) -> tuple[Fraction, int]:
    """What RRMinHash's entries gain from a to b items over what they gain from c to d: the most."""

    def gain(low: int, high: int, e: int, column: str) -> Fraction:
        return _entry(f"MovieLens {high}", "RRMinHash", e, column) - _entry(
            f"MovieLens {low}", "RRMinHash", e, column
        )

    return max(
        gain(a, b, e, column) / gain(c, d, e, column) for e in (4, 8) for column in _COLUMNS
    ), 1


_NEIGHBOURS = [
    ((Fraction("0.9"), Fraction("0.8")), (Fraction("0.8"), Fraction("0.3"))),
    ((Fraction("0.5"), Fraction("0.4")), (Fraction("0.5"), Fraction("0.4"))),
]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="aumuller2020.section-6.approximation",
        where="section 6, experimental setting, approximate similarity ratio",
        text="“The ratio of” the true neighbours' similarities “and” those found, as table 1 has "
        "it: at most 1.",
        printed=lambda true, found: sum(true) / sum(found),
        readings={
            "found over true": Reading(
                lambda true, found: sum(found) / sum(true),
                place="table 1, column “Approx”, whose numbers are below 1",
                covers="every number of that column",
            )
        },
        check=at_most(lambda f, *case: (f(*case), Fraction(1)), _NEIGHBOURS, "points"),
        reason=(
            "A ratio of this “and” that has no order, and in the words’ order it is above 1. "
            "Found neighbours are never more similar than the true ones, and table 1 has numbers "
            "below 1."
        ),
        instead="Divide the similarities of what was found by those of the true neighbours.",
    ),
    Statement(
        id="aumuller2020.section-6.data",
        where="section 6, experimental setting",
        text="Sizes of MovieLens and Last.FM: m, users, mean set sizes and deviations.",
        reason="The data sets aren't part of this project.",
    ),
    Statement(
        id="aumuller2020.table-1",
        where="section 6.2, table 1",
        text="Recall and approximation of MinHash, RRMinHash and NoisyMinHash on both sets.",
        reason="Needs the data sets; what the text says of the table is checked against it.",
    ),
    Statement(
        id="aumuller2020.section-6.2.comparison",
        where="section 6.2, second paragraph, against table 1",
        text="RRMinHash is equal or better than NoisyMinHash in all measurements.",
        printed=lambda: [("RRMinHash", "NoisyMinHash")],
        check=wherever(_at_least_as_good, "enumeration"),
    ),
    Statement(
        id="aumuller2020.section-6.2.recall",
        where="section 6.2, second paragraph, against table 1",
        text="MinHash itself doesn't achieve close to perfect recall.",
        reason=(
            "The paper doesn't say which recall is close to perfect, nor of how many neighbours. "
            "MinHash's R@100 is 0.99 at τ = 500, where it says little: of 124 users 100 of the "
            "123 others hold the nearest one with probability 100/123 by chance. Elsewhere "
            "recall is at most 0.93."
        ),
    ),
    *(
        Statement(
            id=f"aumuller2020.section-6.2.last-fm.{name}",
            where="section 6.2, second paragraph, against table 1",
            text=f"On Last.FM at ε = 4 privacy costs a factor around {said} in {column}.",
            conditions="to a whole number, and within the digits of table 1",
            printed=lambda said=said: Fraction(said),
            check=at_most(
                lambda f, column: _whole("Last.FM", column, f()), [(column,)], "enumeration"
            ),
        )
        for name, column, said in (
            ("r-10", "R@10", 10),
            ("r-100", "R@100", 3),
            ("approx", "Approx", 3),
        )
    ),
    Statement(
        id="aumuller2020.section-6.2.last-fm.highest",
        where="section 6.2, second paragraph, against table 1",
        text="On Last.FM at ε = 8 privacy costs a factor of at most 3.",
        printed=lambda: Fraction(3),
        check=at_most(
            lambda f: (max(_factor("Last.FM", 8, column) for column in _COLUMNS), f()),
            [()],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.section-6.2.last-fm.lowest",
        where="section 6.2, second paragraph, against table 1",
        text="On Last.FM at ε = 8 privacy costs a factor of at least 1.5.",
        printed=lambda: Fraction(3, 2),
        check=at_most(
            lambda f: (f(), min(_factor("Last.FM", 8, column) for column in _COLUMNS)),
            [()],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.section-6.2.movielens.lowest",
        where="section 6.2, second paragraph, against table 1",
        text="On MovieLens, τ = 50, ε = 4, the least factor that privacy costs recall is 3.",
        conditions="to a whole number, and within the digits of table 1",
        printed=lambda: Fraction(3),
        check=at_most(lambda f: _whole("MovieLens 50", "R@100", f()), [()], "enumeration"),
        reason="it is 0.47/0.18 = 2.6, in R@100",
    ),
    Statement(
        id="aumuller2020.section-6.2.movielens.highest",
        where="section 6.2, second paragraph, against table 1",
        text="On MovieLens, τ = 50, ε = 4, the largest factor that privacy costs recall is 6.",
        conditions="to a whole number, and within the digits of table 1",
        printed=lambda: Fraction(6),
        check=at_most(lambda f: _whole("MovieLens 50", "R@10", f()), [()], "enumeration"),
        reason="it is 0.13/0.02 = 6.5, in R@10, and from 5 to 9 before the table was rounded",
    ),
    Statement(
        id="aumuller2020.section-6.2.sizes",
        where="section 6.2, second paragraph, against table 1",
        text="Quality grows slowly from 50 to 100 items, and more from 100 to 500.",
        printed=lambda: [(50, 100, 100, 500)],
        check=wherever(_grows_faster, "enumeration"),
    ),
)
