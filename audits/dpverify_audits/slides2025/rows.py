"""Appendices D and F: how private the rows of a secret projection are, exactly.

Smoothed neighbours differ along one direction (appendix D), or have one column (appendix F, here).
Then a row is N(0, 1) against N(0, 1 + γ) along it, r rows see the sum of r squares alone, and δ at
ε is a difference of chi-square tails. Where the slides leave w open it is that of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Any

from flint import arb

from dpverify.auditing.claims import Claim
from dpverify_audits.li2023.truth import at_most, equals, integral, number

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
    return less if less > more else more


def _by_integral(rows: int, gamma: arb, epsilon: arb) -> arb:
    """The same for two rows and the first way round: ∫ (p − e^ε·q)₊ over the sum of squares."""
    start = (2 * epsilon + rows * (1 + gamma).log()) * (1 + gamma) / gamma
    return integral(
        lambda s: (
            (-s / (2 * (1 + gamma))).exp() / (2 * (1 + gamma)) - epsilon.exp() * (-s / 2).exp() / 2
        ),
        start,
        start + 300 * (1 + gamma),
    )


def _edge(w: arb) -> arb:
    """γ of an edge of weight 1 at the empty graph of many vertices: 2/w."""
    return 2 / w


def _record(w: arb) -> arb:
    """Largest γ when a number a among the records becomes a + 1 and squares are raised by w².

    (2a + 1)/(a² + w²) is largest where a² + a = w², and is 1/a there.
    """
    return 2 / ((1 + 4 * w * w).sqrt() - 1)


def _whole(gamma: Callable[[arb], arb]) -> Any:
    """Least w for r rows, to a tenth of a percent from above, against the w that is said.

    δ falls as w grows: N(0, 1 + γ) against N(0, 1) is harder to tell the smaller γ is.
    """

    def truth(formula: Any, e: Fraction, d: Fraction, rows: int) -> tuple[Fraction, Any]:
        low, high = Fraction(1, 1000), Fraction(10**9)
        while high > low * Fraction(1001, 1000):
            middle = Fraction(sqrt(low * high)).limit_denominator(10**6)
            enough = _exact_delta(rows, gamma(number(middle)), number(e)) <= number(d)
            low, high = (low, middle) if enough else (middle, high)
        return high, formula(e, d, rows)

    return truth


def _row(formula: Any, e: Fraction, d: Fraction, rows: int) -> tuple[arb, Fraction]:
    gamma = _edge(published_floor(e, d, rows))
    return _exact_delta(1, gamma, formula(e, d, rows)), row_delta(d, rows)


_GAMMAS = [(2, Fraction(g), Fraction(e)) for g in ("1/2", "3") for e in ("1/10", "1")]

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="slides2025.appendix-d.exact",
        where="appendix D, not on the slide: the number that its statements are about",
        statement="Two rows' δ, one direction changed by 1 + γ, is a difference of chi-square "
        "tails.",
        printed=lambda r, g, e: _exact_delta(r, number(g), number(e)),
        check=equals(lambda r, g, e: _by_integral(r, number(g), number(e)), _GAMMAS, "enclosure"),
    ),
    Claim(
        id="slides2025.appendix-d.row",
        where="appendix D, row-wise DP",
        statement="One row is (ε₀, δ₀)-private with ε₀ = ε/√(4r ln(2/δ)), δ₀ = δ/2r.",
        conditions="w of the paper, an edge of weight 1",
        printed=row_epsilon,
        check=at_most(_row, _TARGETS, "enclosure"),
        mechanisms=("jl-graph-cuts",),
    ),
    Claim(
        id="slides2025.appendix-d.guarantee",
        where="appendix D, last item; page 16",
        statement="r rows of a graph smoothed by √(32r ln(2/δ))·ln(4r/δ)/ε are (ε, δ)-private.",
        conditions="w of the paper, as the slides give none",
        printed=published_floor,
        check=at_most(_whole(_edge), _TARGETS, "enclosure"),
        mechanisms=("jl-graph-cuts",),
        reason="The slack is in w: what an exact account of r rows asks for, of what is said.",
    ),
    Claim(
        id="slides2025.appendix-f.guarantee",
        where="appendix F, row-wise DP and its composition",
        statement="r rows of one column of records, its square raised by w², are (ε, δ)-private "
        "with w = 16√(r ln(2/δ))·ln(16r/δ)/ε.",
        conditions="w of the paper; records move by 1; one column, where rank two is rank one",
        printed=published_offset,
        check=at_most(_whole(_record), _TARGETS, "enclosure"),
        mechanisms=("jl-covariance",),
        reason="The slack is in w, and for one column only.",
    ),
)
