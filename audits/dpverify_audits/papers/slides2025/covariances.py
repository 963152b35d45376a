"""Page 11, appendix F: sketches of a covariance matrix by a secret projection.

Sign matrices have the first two moments of normal ones, so that means of quadratic forms are found
by enumeration. The smoothing is that of the paper: w = 16√(r ln(2/δ))·ln(16r/δ)/ε.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Correction, Reading, Statement

__all__ = ["CLAIMS", "published_offset"]

Matrix = tuple[tuple[Any, ...], ...]
_A: Matrix = ((1, 2), (0, 3))
_B: Matrix = ((2, -1), (1, 1))


def _transposed(a: Matrix) -> Matrix:
    return tuple(zip(*a, strict=True))


def _times(a: Matrix, b: Matrix) -> Matrix:
    columns = _transposed(b)
    return tuple(
        tuple(sum(x * y for x, y in zip(row, c, strict=True)) for c in columns) for row in a
    )


def _added(a: Matrix, b: Matrix, factor: Any = 1) -> Matrix:
    return tuple(
        tuple(x + factor * y for x, y in zip(p, q, strict=True)) for p, q in zip(a, b, strict=True)
    )


def _squared_norm(a: Matrix) -> Any:
    return sum(x * x for row in a for x in row)


def _rank(a: Matrix) -> int:
    rows = [[Fraction(x) for x in row] for row in a]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            share = rows[i][column] / rows[rank][column]
            rows[i] = [x - share * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def _neighbours(a: Matrix) -> list[Matrix]:
    """First row moved by small integer vectors."""
    moves = product((-1, 0, 1), repeat=len(a[0]))
    return [_added(a, (move, *((0,) * len(a[0]),) * (len(a) - 1))) for move in moves]


def _gram(a: Matrix) -> Matrix:
    return _times(_transposed(a), a)


def _row_covariance(a: Matrix) -> Matrix:
    """Second moments of yᵀA over all signs y."""
    signs = list(product((1, -1), repeat=len(a)))
    sketches = [
        [sum(s * row[i] for s, row in zip(y, a, strict=True)) for i in range(len(a[0]))]
        for y in signs
    ]
    places = range(len(a[0]))
    return tuple(
        tuple(Fraction(sum(z[i] * z[j] for z in sketches), len(signs)) for j in places)
        for i in places
    )


def _mean_over_signs(query: Any, a: Matrix, x: tuple[int, ...]) -> Fraction:
    """Mean of a query's value over all sign matrices M of two rows."""
    draws = [
        (entries[: len(a)], entries[len(a) :]) for entries in product((1, -1), repeat=2 * len(a))
    ]
    column = tuple((c,) for c in x)
    return Fraction(sum(query(_times(m, a), column) for m in draws), 2 * len(draws))


def _transposed_query(a: Matrix, x: tuple[int, ...]) -> Fraction:
    return _mean_over_signs(lambda y, c: _squared_norm(_times(_transposed(y), c)), a, x)


def _query(a: Matrix, x: tuple[int, ...]) -> Fraction:
    return _mean_over_signs(lambda y, c: _squared_norm(_times(y, c)), a, x)


def _worst_query(
    f: Any, value: Fraction, w: Fraction, width: Fraction, subtracted: bool
) -> tuple[Fraction, Any]:
    lifted = (1 + width) * (value + w**2)
    return lifted - (w**2 if subtracted else 0), f(value, w, width)


def _utility(value: Fraction, w: Fraction, width: Fraction) -> Fraction:
    return (1 + width) * value + w**2 * width


def _within(
    subtracted: bool, value: Fraction, w: Fraction, width: Fraction
) -> tuple[Fraction, Fraction]:
    """The larger error at the two ends of what the lemma allows, and the printed one."""
    centre = w**2 if subtracted else 0
    errors = [abs((1 + s * width) * (value + w**2) - centre - value) for s in (-1, 1)]
    return max(errors), width * value + w**2 * width


def published_offset(epsilon: Fraction, delta: Fraction, rows: Any) -> arb:
    """The w of Blocki et al. 2012, section 4."""
    return _floor(number(rows), epsilon, delta)


def _floor(rows: arb, epsilon: Fraction, delta: Fraction) -> arb:
    d = number(delta)
    return 16 * (rows * (2 / d).log()).sqrt() * (16 * rows / d).log() / number(epsilon)


def _rows(width: Fraction, failure: Fraction) -> arb:
    return 8 * (2 / number(failure)).log() / number(width) ** 2


def _growth(coarse: Fraction, fine: Fraction, failure: Fraction, delta: Fraction) -> arb:
    """η²w² at fine η over that at coarse η, ε = 1: 1 if ηw² depends on η as 1/η does."""
    ends = [
        (number(x) * _floor(_rows(x, failure), Fraction(1), delta)) ** 2 for x in (coarse, fine)
    ]
    return ends[1] / ends[0]


def _log_growth(coarse: Fraction, fine: Fraction, failure: Fraction, delta: Fraction) -> arb:
    one, other = ((16 * _rows(x, failure) / number(delta)).log() for x in (coarse, fine))
    return (other / one) ** 2


_CELLS = [
    (Fraction(v), Fraction(w), Fraction(x))
    for v in (0, 5)
    for w in (1, 10)
    for x in ("1/10", "1/2")
]
_SMALL = Fraction(1, 10**6)
_ETAS = [(Fraction(1, 2), Fraction(1, 64), Fraction(1, 100), _SMALL)]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.page-11.rank-one",
        where="Key Differences, data requirements",
        text="Neighbouring data matrices, one row of which moves, differ by rank one.",
        printed=lambda a: 1,
        check=equals(
            lambda a: max(_rank(_added(b, a, -1)) for b in _neighbours(a)),
            [(_A,), (_B,)],
            "enumeration",
        ),
    ),
    Statement(
        id="slides2025.appendix-f.translation",
        where="appendix F, data translation",
        text="An offset raises all singular values of A to w or more.",
        reason="The slide doesn't say what the offset is added to. One in every entry leaves "
        "directions whose sum is 0 where they are; what the paper does is to raise the squared "
        "singular values by w², and then they are w² or more whatever A is.",
    ),
    Statement(
        id="slides2025.appendix-f.covariance",
        where="appendix F, row-wise DP",
        text="A row of MA has covariance AAᵀ.",
        conditions="A has a record in each row, as M is multiplied from the left",
        printed=lambda a: _times(a, _transposed(a)),
        corrections={
            "AᵀA": Correction(
                _gram,
                place="appendix D, where a row of a product from the left has the covariance L_G "
                "= EᵀE",
                change="the transposition",
            )
        },
        check=equals(_row_covariance, [(_A,), (_B,)], "enumeration"),
        reason=(
            "M multiplies from the left, so that a row of MA combines records. Its covariance is "
            "AᵀA, attribute by attribute; AAᵀ would be record by record."
        ),
        instead="Use AᵀA.",
    ),
    Statement(
        id="slides2025.appendix-f.query",
        where="appendix F, JL-utility, left side",
        text="‖(MA/√r)ᵀx‖² is ‖Ax‖² in the mean.",
        printed=_transposed_query,
        corrections={
            "‖(MA/√r)x‖²": Correction(
                _query,
                place="appendix E, “(1/r)‖ME1_S‖²”, without a transposition",
                change="the transposition",
            )
        },
        check=equals(
            lambda a, x: Fraction(_squared_norm(_times(a, tuple((c,) for c in x)))),
            [(_A, (1, 0)), (_A, (1, 2)), (_B, (1, -1))],
            "enumeration",
        ),
        reason="The shapes of (MA/√r)ᵀ and x fit only where r = d. Taken square, r = 2, "
        "the mean is that of another form.",
        instead="Use ‖(MA/√r)x‖².",
    ),
    Statement(
        id="slides2025.appendix-f.utility",
        where="appendix F, JL-utility, right side",
        text="The lifted query is (1 ± η)‖Ax‖² + ηw².",
        conditions="not stated: before or after w² is subtracted; the next item does, and has "
        "O(ηw²) as an error either way",
        printed=lambda: [(False, *cell) for cell in _CELLS],
        readings={
            "after w² is subtracted": Reading(
                lambda: [(True, *cell) for cell in _CELLS],
                place="the next item: “Subtract w² to center variance”",
                covers="the value that the slide reports, w² taken off",
            )
        },
        check=wherever(_within, "points"),
        reason="Before w² is subtracted the lifted query is too large by w² itself, not by ηw². "
        "Subtract first, as the next item does.",
        instead="Subtract w² first.",
    ),
    Statement(
        id="slides2025.appendix-f.error",
        where="appendix F, resulting error, first form",
        text="After w² is subtracted the value is at most (1 + η)‖Ax‖² + ηw².",
        printed=_utility,
        check=at_most(_worst_query, [(*cell, True) for cell in _CELLS], "points"),
        mechanisms=("jl-covariance",),
    ),
    Statement(
        id="slides2025.appendix-f.error.logarithm",
        where="appendix F, resulting error, second form",
        text="ηw² is O(ln(1/δ) ln(1/ν)/(ε²η)): η²w² doesn't grow as η falls.",
        conditions="w of the paper, r = 8 ln(2/ν)/η², η from ½ to 1/64",
        printed=lambda *case: Fraction(1),
        corrections={
            "with the factor ln²(16r/δ)": Correction(
                _log_growth,
                proof="w² is 256r ln(2/δ)·ln²(16r/δ)/ε², and r is 8 ln(2/ν)/η²",
            )
        },
        check=equals(_growth, _ETAS, "enclosure"),
        reason=(
            "No O covers the factor ln²(16r/δ) of w², which grows without end as δ, ν or η falls. "
            "At δ = 10⁻⁶ and ν = 1/100 it is 472 for η = ½, and 821 for η = 1/64."
        ),
        instead="Keep the factor ln²(16r/δ) when you compute the error.",
    ),
)
