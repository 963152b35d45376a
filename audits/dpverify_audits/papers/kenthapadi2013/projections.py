"""Sections 2.4 and 3.1: the projections on offer, their sensitivity and what they keep.

Projections are enumerated at small sizes: an entry is a small law of integers times a root, and
squares of it are fractions. Dasgupta, Kumar and Sarlós's sparse projection, which the paper only
names, is taken as c copies of each attribute, each hashed to a column with a sign, over √c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import comb

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Statement

from .tails import chi_square_above

__all__ = ["CLAIMS"]

_HALF, _THIRD, _SIXTH = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
Entries = tuple[Mapping[int, Fraction], int]
"""A law of integers, and the square of what they are multiplied by to have variance 1."""
_SIGNS: Entries = ({1: _HALF, -1: _HALF}, 1)
_SPARSE: Entries = ({1: _SIXTH, 0: 4 * _SIXTH, -1: _SIXTH}, 3)
_GAUSSIAN: Entries = ({0: _HALF, 1: _SIXTH, -1: _SIXTH, 2: _SIXTH / 2, -2: _SIXTH / 2}, 1)
"""The normal law's first five moments."""
_KINDS = {"normal": _GAUSSIAN, "sparse": _SPARSE, "signs": _SIGNS}


def _distorted(k: int, width: arb) -> arb:
    """P(|χ²ₖ/k − 1| > width)."""
    low = 1 - chi_square_above(k, k * (1 - width)) if width < 1 else arb(0)
    return low + chi_square_above(k, k * (1 + width))


def _keeps_all(n: int, width: Fraction) -> tuple[arb, int]:
    """How many of n points' pairs 12·ln(n)/λ² columns, made even, distort in the mean, and 1."""
    k = 2 * int(float(6 * arb(n).log() / number(width) ** 2) + 1)
    return comb(n, 2) * _distorted(k, number(width)), 1


def _square_law(kind: Entries, k: int, z: tuple[int, ...]) -> dict[Fraction, Fraction]:
    """Law of ‖zP‖² for k columns of independent entries of variance 1/k."""
    law, scale = kind
    one: dict[int, Fraction] = {0: Fraction(1)}
    for c in z:
        longer: dict[int, Fraction] = {}
        for (u, p), (v, q) in product(one.items(), law.items()):
            longer[u + c * v] = longer.get(u + c * v, Fraction(0)) + p * q
        one = longer
    total: dict[Fraction, Fraction] = {Fraction(0): Fraction(1)}
    for _ in range(k):
        wider: dict[Fraction, Fraction] = {}
        for (square, p), (v, q) in product(total.items(), one.items()):
            key = square + Fraction(scale * v * v, k)
            wider[key] = wider.get(key, Fraction(0)) + p * q
        total = wider
    return total


def _mean(law: Mapping[Fraction, Fraction]) -> Fraction:
    return sum((p * v for v, p in law.items()), Fraction(0))


def _length(z: tuple[int, ...]) -> int:
    return sum(c * c for c in z)


def _outside(kind: Entries, k: int, z: tuple[int, ...], width: Fraction) -> Fraction:
    r2 = _length(z)
    law = _square_law(kind, k, z).items()
    return sum((p for v, p in law if abs(v - r2) >= width * r2), Fraction(0))


def _variance_of(kind: str, k: int, z: tuple[int, ...]) -> Fraction:
    law = _square_law(_KINDS[kind], k, z)
    return sum((p * v * v for v, p in law.items()), Fraction(0)) - _mean(law) ** 2


def _hashed(k: int, c: int, d: int) -> Iterator[list[list[int]]]:
    """All d × k sparse projections of c hashed copies, times √c."""
    for places in product(range(k), repeat=c * d):
        for signs in product((-1, 1), repeat=c * d):
            rows = [[0] * k for _ in range(d)]
            for copy, (place, sign) in enumerate(zip(places, signs, strict=True)):
                rows[copy // c][place] += sign
            yield rows


def _hashed_mean(k: int, c: int, z: tuple[int, ...]) -> Fraction:
    squares = [
        _length(tuple(sum(a * row[j] for a, row in zip(z, rows, strict=True)) for j in range(k)))
        for rows in _hashed(k, c, len(z))
    ]
    return Fraction(sum(squares), c * len(squares))


def _spread(k: int, scale: Fraction) -> Fraction:
    """Variance of scale·χ²ₖ, enumerated."""
    law = _square_law(_GAUSSIAN, k, (1,))
    square = sum((p * v * v for v, p in law.items()), Fraction(0))
    return scale**2 * k**2 * (square - _mean(law) ** 2)


_POINTS = [(1, 1, 0), (1, -1, 1), (1,)]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.section-2.4.dimension",
        where="section 2.4, first sentence",
        text="12·ln(n)/λ² columns keep all squared distances of n points within 1 ± λ.",
        conditions="the constant under Ω is theorem 2's",
        printed=lambda: [(n, Fraction(x)) for n in (10, 1000) for x in ("1/4", "1/2", "99/100")],
        check=wherever(_keeps_all, "enclosure"),
        reason="A map exists where a random one distorts less than one pair on average; from λ = 1 "
        "on the map to 0 does.",
    ),
    Statement(
        id="kenthapadi2013.section-2.4.failure",
        where="section 2.4, second sentence",
        text="log(1/δ_JL) = O(kλ²).",
        reason="O(·) names no constant, and it is the other side that the union bound needs: δ_JL "
        "that small, which is Ω(kλ²), as in section 3.2.2’s λ_JL = Θ(√(log(1/μ)/k)).",
    ),
    Statement(
        id="kenthapadi2013.section-2.4.signs",
        where="section 3.2.2, end of the proof of theorem 2, the lemma that it cites; signs",
        text="‖zP‖² is off by λ‖z‖² with probability at most 2 exp(−(k/2)(λ²/2 − λ³/3)).",
        printed=lambda k, x: 2 * number(-Fraction(k, 2) * (x**2 / 2 - x**3 / 3)).exp(),
        check=at_most(
            lambda f, k, z, x: (_outside(_SIGNS, k, z, x), f(k, x)),
            [
                (k, z, Fraction(x))
                for k, z, x in (
                    (16, (1, 1, 1, 1), "9/10"),
                    (64, (1, 1), "1/2"),
                    (64, (1, 1), "9/10"),
                )
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.section-2.4.distances",
        where="section 2.4, first sentence against the display",
        text="Squared distances within 1 ± λ are distances within 1 ± λ: the upper end.",
        printed=lambda x: 1 + x,
        check=at_most(
            lambda f, x: ((1 + number(x)).sqrt(), f(x)),
            [(Fraction(x),) for x in ("1/10", "1/2", "9/10")],
            "enclosure",
        ),
        reason="The lower end, √(1 − λ) ≥ 1 − λ, is the same inequality of 1 − λ.",
    ),
    Statement(
        id="kenthapadi2013.section-3.1.1.fewer",
        where="section 3.1.1, trade-off",
        text="As k gets smaller the projection distorts more: half the columns double its share of "
        "the variance.",
        reason="the paper says that it grows; the factor is ours",
        printed=lambda k, z: Fraction(2),
        check=equals(
            lambda k, z: (
                _spread(k, Fraction(_length(z), k)) / _spread(2 * k, Fraction(_length(z), 2 * k))
            ),
            [(1, (1, 1)), (2, (1,))],
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.section-3.1.1.more",
        where="section 3.1.1, trade-off",
        text="As k gets larger the noise distorts more: twice the columns double its share of the "
        "variance, for given σ.",
        reason="the paper says that it grows; the factor is ours",
        printed=lambda k, s2: Fraction(2),
        check=equals(
            lambda k, s2: _spread(2 * k, 2 * s2) / _spread(k, 2 * s2),
            [(1, Fraction(1)), (2, Fraction(1, 4))],
            "enumeration",
        ),
    ),
    *(
        Statement(
            id=f"kenthapadi2013.section-3.1.3.{name}.mean",
            where=f"section 3.1.3, item {item}: it preserves squared distances",
            text=f"E‖zP‖² = ‖z‖² for {said}.",
            printed=lambda k, z: Fraction(_length(z)),
            check=equals(
                lambda k, z, kind=kind: _mean(_square_law(kind, k, z)),
                [(k, z) for k in (1, 3) for z in _POINTS],
                "enumeration",
            ),
        )
        for name, item, kind, said in (
            ("gaussian", 1, _GAUSSIAN, "normal entries of variance 1/k"),
            ("signs", 2, _SIGNS, "entries ±1/√k"),
            ("sparse", 3, _SPARSE, "entries ±√(3/k), a third of them, else 0"),
        )
    ),
    Statement(
        id="kenthapadi2013.section-3.1.3.dasgupta.mean",
        where="section 3.1.3, item 4: it preserves squared distances",
        text="E‖zP‖² = ‖z‖² for c hashed copies with signs.",
        printed=lambda k, c, z: Fraction(_length(z)),
        check=equals(_hashed_mean, [(2, 2, (1, 1)), (3, 2, (1, -1)), (2, 3, (2,))], "enumeration"),
    ),
    Statement(
        id="kenthapadi2013.section-3.1.3.concentrated",
        where="section 3.1.3, the sensitivity below the list",
        text="w₂(P) is tightly concentrated around 1.",
        reason=(
            "The paper says neither how near to 1 nor for how many columns. Of 1,000 normal rows "
            "of 64 numbers the longest is above 5/4 with 93 %; with k of 50 ln(10d) and more, w₂ "
            "is within 1/4 of 1 with 99 % for items 1 and 3, and for item 2 it is 1."
        ),
    ),
    Statement(
        id="kenthapadi2013.section-3.2.2.matrices",
        where="section 3.2.2, with the matrices of section 3.1.3",
        text="Utility depends on the type of the matrix: entries of signs have less variance than "
        "normal ones, or sparse ones.",
        printed=lambda: [("signs", k, z) for k in (1, 2) for z in _POINTS],
        check=wherever(
            lambda kind, k, z: (
                _variance_of(kind, k, z) + Fraction(1, k),
                min(_variance_of("normal", k, z), _variance_of("sparse", k, z)),
            ),
            "enumeration",
        ),
        reason="less by 2Σzᵢ⁴/k; the paper says that it depends, and not how",
    ),
)
