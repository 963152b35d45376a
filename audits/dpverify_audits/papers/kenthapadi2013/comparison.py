"""Sections 4.1 and 4.2: noise on the distances themselves, against projection."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import gaussian_delta, number
from dpverify.ledger.statements import Correction, Statement

from .privacy import sigma_needed
from .utility import distance_moments

__all__ = ["CLAIMS"]

_SETS = [(n, d) for n, d in ((2, 1), (2, 3), (3, 2), (4, 2))]


def _apart(x: Any, y: Any) -> int:
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def _changes(n: int, d: int) -> set[tuple[int, ...]]:
    """Absolute changes of the strict upper triangle, over all data sets and changed bits."""
    found = set()
    for data in product(product((0, 1), repeat=d), repeat=n):
        for i, j in product(range(n), range(d)):
            row = (*data[i][:j], 1 - data[i][j], *data[i][j + 1 :])
            other = (*data[:i], row, *data[i + 1 :])
            found.add(
                tuple(
                    abs(_apart(other[a], other[b]) - _apart(data[a], data[b]))
                    for a, b in combinations(range(n), 2)
                )
            )
    return found


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.section-4.1.entries",
        where="section 4.1, below algorithm 4",
        text="One changed bit changes n entries of the strict upper triangle.",
        printed=lambda n, d: n,
        corrections={
            "n − 1": Correction(
                lambda n, d: n - 1,
                place="algorithm 3, “strictly upper triangular n × n matrix”: a user stands in n "
                "− 1 of its entries",
                change="n − 1 for n",
            )
        },
        check=equals(
            lambda n, d: max(sum(c > 0 for c in change) for change in _changes(n, d)),
            _SETS,
            "enumeration",
        ),
        mechanisms=("noise-addition",),
        reason="A user has n − 1 distances to others, not n. Noise for n is a little more than "
        "needed: safe.",
        instead="Use n − 1, or n: the noise is then a little more than needed.",
    ),
    Statement(
        id="kenthapadi2013.section-4.1.magnitude",
        where="section 4.1, below algorithm 4",
        text="Each entry that changes does so by 1.",
        printed=lambda n, d: 1,
        check=equals(
            lambda n, d: max(max(change) for change in _changes(n, d)), _SETS, "enumeration"
        ),
        mechanisms=("noise-addition",),
    ),
    Statement(
        id="kenthapadi2013.section-4.1.noise",
        where="section 4.1, below algorithm 4",
        text="σ = √(n·2(ln(1/2δ) + ε))/ε is (ε, δ)-DP for algorithm 3.",
        printed=lambda n, e, d: number(n).sqrt() * sigma_needed(e, d),
        check=at_most(
            lambda f, n, e, d: (
                gaussian_delta(number(e), number(n - 1).sqrt() / f(n, e, d)),
                d,
            ),
            [(n, Fraction(e), Fraction(1, 10**6)) for n in (2, 1000) for e in ("1/10", "1", "5")],
            "quadrature",
        ),
        mechanisms=("noise-addition",),
    ),
    Statement(
        id="kenthapadi2013.section-4.2.hamming",
        where="section 4.2",
        text="‖x − y‖₂ of bit vectors is their Hamming distance h.",
        printed=lambda h: h**2,
        corrections={
            "‖x − y‖₂² is the Hamming distance": Correction(
                lambda h: h,
                place="theorem 3’s proof, where ‖x − y‖² is the number w of bits that differ",
                change="the square of the norm",
            )
        },
        check=equals(
            # squares, so that no root is taken
            lambda h: _apart((1,) * h + (0,), (0,) * (h + 1)),
            [(h,) for h in range(5)],
            "enumeration",
        ),
        reason="The squared distance of bit vectors is their Hamming distance, not the distance "
        "itself. At a Hamming distance of 2 the distance is 1.41.",
        instead="Take the squared distance for the Hamming distance.",
    ),
    Statement(
        id="kenthapadi2013.section-4.2.weights",
        where="section 4.2",
        text="The squared distance of bit vectors of weight at most μ is at most 2μ.",
        printed=lambda d, w: 2 * w,
        check=at_most(
            lambda f, d, w: (
                max(
                    _apart(x, y)
                    for x, y in product(product((0, 1), repeat=d), repeat=2)
                    if sum(x) <= w and sum(y) <= w
                ),
                f(d, w),
            ),
            [(4, 1), (4, 2)],
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.section-4.2.order",
        where="section 4.2",
        text="At k = μ the variance is O(σ⁴μ): at most 32σ⁴μ.",
        printed=lambda w, s: 32 * (s * s / w) ** 2 * w,
        corrections={
            "8(1 + σ²)²μ": Correction(
                lambda w, s: 8 * (1 + s * s / w) ** 2 * w,
                proof="2r⁴/k + 8σ²r² + 8σ⁴k at k = μ and the largest r² = 2μ",
            )
        },
        check=at_most(
            lambda f, w, s: (distance_moments(w, 2 * w, s)[1], f(w, s)),
            [(1, Fraction(1, 2)), (1, Fraction(1)), (1, Fraction(2)), (2, Fraction(2))],
            "enumeration",
        ),
        reason=(
            "As σ goes to 0 the variance stays above 8μ, so that no constant does. Ours, 32, does "
            "where σ ≥ 1. With lemma 2's σ = 4√ln(1/δ)/ε that is for ε up to 4√ln(1/δ), for all "
            "that the lemma allows at δ = 10⁻⁶; near ε = ln(1/δ), its end, σ goes to 0 with δ. "
            "Section 4.3.3 has ε < 1, and section 4.2 no bound on ε."
        ),
        instead="Read O((1 + σ²)²μ).",
    ),
)
