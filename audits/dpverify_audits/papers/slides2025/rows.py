"""Appendices D and F: how private the rows of a secret projection are, exactly.

Smoothed neighbours differ along one direction (appendix D), or have one column (appendix F, here).
Then a row is N(0, 1) against N(0, 1 + γ) along it, r rows see the sum of r squares alone, and δ at
ε is a difference of chi-square tails. Where the slides leave w open it is that of the paper. What r
mechanisms of any kind compose to is that of the pair of laws that dominates every (ε₀, δ₀)-private
one (Kairouz, Oh and Viswanath 2015, theorem 3.3): r randomized bits, and with probability
1 − (1 − δ₀)^r anything.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb, sqrt
from typing import Any

from flint import arb, ctx

from dpverify.ledger.checks import at_most, wherever
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Reading, Statement

from .covariances import published_offset
from .distances import chi_square
from .graphs import published_floor, row_delta, row_epsilon

__all__ = ["CLAIMS"]

_DELTAS = (Fraction(1, 10**6), Fraction(1, 100))
_TARGETS = [(Fraction(e), d, r) for e in ("1/10", "1", "4") for d in _DELTAS for r in (2, 32)]


def _above(rows: int, x: arb) -> arb:
    """P(χ² of that many degrees > x); 1 or even."""
    return (x / 2).sqrt().erfc() if rows == 1 else chi_square(rows, x)


def _exact_delta(rows: int, gamma: arb, epsilon: arb) -> arb:
    """Least δ at ε of r rows of variance 1 + γ against r of variance 1, the worse way round."""
    drift, slope = rows * (1 + gamma).log(), gamma / (1 + gamma)
    above = (2 * epsilon + drift) / slope
    more = _above(rows, above / (1 + gamma)) - epsilon.exp() * _above(rows, above)
    below = (drift - 2 * epsilon) / slope
    if not below > 0:
        return more
    less = 1 - _above(rows, below) - epsilon.exp() * (1 - _above(rows, below / (1 + gamma)))
    return less.max(more)


def _edge(w: arb) -> arb:
    """γ of an edge of weight 1 at the empty graph of many vertices: 2/w."""
    return 2 / w


def _record(w: arb) -> arb:
    """Largest γ when a number a among the records becomes a + 1 and squares are raised by w².

    (2a + 1)/(a² + w²) is largest where a² + a = w², and is 1/a there.
    """
    return 2 / ((1 + 4 * w * w).sqrt() - 1)


def _least_w(gamma: Callable[[arb], arb], rows: int, epsilon: arb, delta: Any) -> Fraction:
    """Least w at which r rows are (ε, δ)-private, to a tenth of a percent from above.

    δ falls as w grows: N(0, 1 + γ) against N(0, 1) is harder to tell the smaller γ is.
    """
    low, high = Fraction(1, 1000), Fraction(10**9)
    while high > low * Fraction(1001, 1000):
        middle = Fraction(sqrt(low * high)).limit_denominator(10**6)
        enough = _exact_delta(rows, gamma(number(middle)), epsilon) <= number(delta)
        low, high = (low, middle) if enough else (middle, high)
    return high


def _whole(gamma: Callable[[arb], arb]) -> Any:
    """Least w for r rows against the w that is said."""

    def truth(formula: Any, e: Fraction, d: Fraction, rows: int) -> tuple[Fraction, Any]:
        return _least_w(gamma, rows, number(e), d), formula(e, d, rows)

    return truth


def _of_any(epsilon: Fraction, delta: Fraction, rows: int) -> arb:
    """δ at ε of the dominating pair of r mechanisms that are (ε₀, δ₀)-private."""
    e0 = row_epsilon(epsilon, delta, rows)
    p = e0.exp() / (1 + e0.exp())
    total = arb(0)
    for i in range(rows + 1):
        loss = (2 * i - rows) * e0
        if loss > number(epsilon):
            mass = comb(rows, i) * p**i * (1 - p) ** (rows - i)
            total += mass * (1 - (number(epsilon) - loss).exp())
    return 1 - (1 - number(row_delta(delta, rows))) ** rows * (1 - total)


def _of_rows(epsilon: Fraction, delta: Fraction, rows: int) -> arb:
    """δ at ε of r rows at the least w at which one of them is (ε₀, δ₀)-private."""
    w = _least_w(_edge, 1, row_epsilon(epsilon, delta, rows), row_delta(delta, rows))
    with ctx.workprec(2048):  # δ is as small as 10⁻³⁹², a difference of larger numbers
        return _exact_delta(rows, _edge(number(w)), number(epsilon))


def _composes(kind: str, e: Fraction, d: Fraction, rows: int) -> tuple[arb, Fraction]:
    return {"any": _of_any, "rows": _of_rows}[kind](e, d, rows), d


def _row(formula: Any, e: Fraction, d: Fraction, rows: int) -> tuple[arb, Fraction]:
    gamma = _edge(published_floor(e, d, rows))
    return _exact_delta(1, gamma, formula(e, d, rows)), row_delta(d, rows)


_RECORDS = [(Fraction(a), Fraction(b)) for a, b in ((0, 0), (1, 0), (1, 1), (2, -1))]
_MOVES = [(Fraction(1), Fraction(0)), (Fraction(3, 5), Fraction(4, 5)), (Fraction(0), Fraction(-1))]


def _eigenvalues(w: arb, record: Any, move: Any) -> tuple[arb, arb]:
    """Of the covariance AᵀA + w²I of two columns after a move, against that before.

    A's other rows are 0; the record is given in multiples of w, where its move counts most.
    """

    def covariance(shift: int) -> tuple[arb, arb, arb]:
        a, b = (number(x) * w + shift * number(m) for x, m in zip(record, move, strict=True))
        return a * a + w * w, a * b, b * b + w * w

    (a, b, c), (p, q, r) = covariance(0), covariance(1)
    determinant = a * c - b * b
    half = (c * p - 2 * b * q + a * r) / determinant / 2
    root = (half * half - (p * r - q * q) / determinant).sqrt()
    return half + root, half - root


def _chernoff(rows: int, ratios: tuple[arb, arb], epsilon: arb) -> arb:
    """δ at ε from above, the least over orders α of exp((α − 1)(r·D_α − ε)), D_α of Rényi's."""
    best = arb(1)
    for order in (2**n for n in range(1, 16)):
        inner = [order + (1 - order) * ratio for ratio in ratios]
        if all(x > 0 for x in inner):
            log = sum(
                (
                    -(order - 1) * y.log() / 2 - x.log() / 2
                    for x, y in zip(inner, ratios, strict=True)
                ),
                arb(0),
            )
            best = best.min((rows * log - (order - 1) * epsilon).exp())
    return best


def _two_columns(formula: Any, e: Fraction, d: Fraction, rows: int) -> tuple[arb, Fraction]:
    """The worst over records, moves and both ways round."""
    found = arb(0)
    for record, move in product(_RECORDS, _MOVES):
        one, other = _eigenvalues(formula(e, d, rows), record, move)
        for ratios in ((one, other), (1 / one, 1 / other)):
            found = found.max(_chernoff(rows, ratios, number(e)))
    return found, d


_COMPOSED = [
    (Fraction(e), Fraction(d), rows)
    for e, d, rows in (
        ("60", "1/1000000", 100),
        ("15", "1/10", 100),
        ("1", "1/1000000", 32),
        ("1/10", "9/10", 2),
    )
]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.appendix-d.row",
        where="appendix D, row-wise DP",
        text="One row is (ε₀, δ₀)-private with ε₀ = ε/√(4r ln(2/δ)), δ₀ = δ/2r.",
        conditions="the slide has no w: that is where it sends one, “See Section 3.1 of Blocki et "
        "al. for derivation”; an edge of weight 1",
        printed=row_epsilon,
        check=at_most(_row, _TARGETS, "enclosure"),
        mechanisms=("jl-graph-cuts",),
    ),
    Statement(
        id="slides2025.appendix-d.composition",
        where="appendix D, row-wise DP and last item",
        text="r rows of ε₀ = ε/√(4r ln(2/δ)), δ₀ = δ/2r compose to (ε, δ), for every ε.",
        printed=lambda: [(kind, *case) for case in _COMPOSED for kind in ("any", "rows")],
        readings={
            "the rows of a smoothed graph": Reading(
                lambda: [("rows", *case) for case in _COMPOSED],
                place="appendix D, first item: “Each sample yᵀE_G is a Gaussian with cov L_G”",
                covers="all that the appendix composes: r such rows, here at the least w at which "
                "one of them is (ε₀, δ₀)-private",
            )
        },
        check=wherever(_composes, "enclosure"),
        reason=(
            "At large ε mechanisms of another kind, each (ε₀, δ₀)-private, can compose to more "
            "than δ. At ε = 60 and δ = 10⁻⁶ 100 randomized responses come to 1.9 times that δ, at "
            "ε = 15 and δ = 1/10 to 1.05 times. Rows of a graph, of which one is just "
            "(ε₀, δ₀)-private, are far below δ there. For any mechanisms ε of at most "
            "2.3·ln(2/δ) suffices, by Kairouz, Oh and Viswanath 2015, theorem 3.4."
        ),
        instead="Don't take ε₀ and δ₀ over for other mechanisms, or compose those exactly.",
    ),
    Statement(
        id="slides2025.appendix-d.guarantee",
        where="appendix D, last item; page 16",
        text="r rows of a graph smoothed by √(32r ln(2/δ))·ln(4r/δ)/ε are (ε, δ)-private.",
        conditions="the slide has no w: that is where it sends one, “See Section 3.1 of Blocki et "
        "al. for derivation”",
        printed=published_floor,
        check=at_most(_whole(_edge), _TARGETS, "enclosure"),
        mechanisms=("jl-graph-cuts",),
        reason="The slack is in w: what an exact account of r rows asks for, of what is said.",
    ),
    Statement(
        id="slides2025.appendix-f.guarantee",
        where="appendix F, row-wise DP and its composition",
        text="r rows of one column of records, its square raised by w², are (ε, δ)-private "
        "with w = 16√(r ln(2/δ))·ln(16r/δ)/ε.",
        conditions="the slide has no w: that is where it sends one, “See Section 4 of Blocki et "
        "al., for details”; records move by 1; one column, where rank two is rank one",
        printed=published_offset,
        check=at_most(_whole(_record), _TARGETS, "enclosure"),
        mechanisms=("jl-covariance",),
        reason="The slack is in w, and for one column only.",
    ),
    Statement(
        id="slides2025.appendix-f.guarantee.rank-two",
        where="appendix F, row-wise DP and its composition",
        text="r rows of two columns of records, squares raised by w², are (ε, δ)-private too, "
        "though a move changes the covariance by rank two; w as for one column.",
        conditions="the slide has no w: that is where it sends one, “See Section 4 of Blocki et "
        "al., for details”; 12 pairs of records and moves of length 1 are tried; δ from above",
        printed=published_offset,
        check=at_most(_two_columns, _TARGETS, "enclosure"),
        mechanisms=("jl-covariance",),
    ),
)
