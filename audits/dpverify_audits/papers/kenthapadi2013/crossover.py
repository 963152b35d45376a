"""Sections 4.3.3, 5 and 6: projection against randomized response.

Both deviation bounds are taken at the same failure probability μ, λ_JL = √(6 ln(2/μ)/k),
λ_χ² = √ln(2/μ), λ_N = √ln(1/μ), σ = 2√ln(n)/ε and p = 1/(1 + e^ε), so that 1 − 2p = tanh(ε/2).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, order, wherever
from dpverify.ledger.oracles import gaussian_delta, number
from dpverify.ledger.statements import Correction, Reading, Statement

from .privacy import sigma_needed
from .utility import variance

__all__ = ["CLAIMS"]

_MU = Fraction(1, 1000)
_EPSILONS = [Fraction(1, 10), Fraction(1, 2), Fraction(1)]
_SIZES = [(10**6, 64), (10**9, 1000)]
_CROSSINGS = [(d, k, e) for d, k in _SIZES for e in _EPSILONS]
_USERS = [(k, n, e) for k in (64, 1000) for n in (100, 10**6) for e in _EPSILONS]


def _log(mu: Fraction) -> arb:
    return number(2 / mu).log()


def _kept(e: Fraction) -> arb:
    """1 − 2p."""
    return number(e / 2).tanh()


def _noise(n: int, e: Fraction) -> arb:
    """σ²."""
    return 4 * arb(n).log() / number(e) ** 2


def _responses(d: int, e: Fraction) -> arb:
    """Theorem 3's deviation bound."""
    flipped = 1 / (1 + number(e).exp())
    return (d * _log(_MU)).sqrt() / (arb(2).sqrt() * (1 - 2 * flipped) ** 2)


def _projection(k: int, n: int, e: Fraction, r2: arb) -> arb:
    """Theorem 2's, (4)."""
    jl, chi, normal = (6 * _log(_MU) / k).sqrt(), _log(_MU).sqrt(), number(1 / _MU).log().sqrt()
    s2 = _noise(n, e)
    rest = 4 * s2 * (arb(k).sqrt() * chi + chi**2) + 4 * (s2 * r2).sqrt() * (1 + jl) * normal
    return jl * r2 + rest


def _crossing(d: int, k: int, e: Fraction) -> arb:
    """The r² at which the first term of (4) is theorem 3's bound."""
    return _responses(d, e) / (6 * _log(_MU) / k).sqrt()


def _printed_crossing(d: int, k: int, e: Fraction) -> arb:
    return (arb(d) * k).sqrt() / number(e) ** 2


def _least_bits(k: int, n: int, e: Fraction) -> arb:
    """The d from which on the second term of (4) is within theorem 3's bound."""
    return 512 * k * arb(n).log() ** 2 * (_kept(e) ** 2 / number(e) ** 2) ** 2


def _range(share: Fraction) -> list[tuple[int, int, int, Fraction, Fraction]]:
    """The top of the range, times a share, where d = 1000·k·ln²n."""
    return [
        (int(1000 * k * float(arb(n).log()) ** 2), k, n, e, share)
        for k in (256, 1024)
        for n in (100, 10**6)
        for e in _EPSILONS
    ]


def _bounds(d: int, k: int, n: int, e: Fraction, share: Fraction) -> tuple[arb, arb]:
    """(4) and theorem 3's bound at a share of the range."""
    r2 = number(share) * _printed_crossing(d, k, e)
    return _projection(k, n, e, r2), _responses(d, e)


def _response_variance(d: int, e: Fraction) -> arb:
    q = (1 - _kept(e) ** 2) / 2
    return d * q * (1 - q) / _kept(e) ** 4


def _poor(formula: Any, d: int, k: int, n: int, e: Fraction) -> tuple[Any, arb]:
    """The square of a distance r², and the smaller of the two variances there."""
    r2 = formula(k)
    ours, theirs = variance(k, r2, _noise(n, e)), _response_variance(d, e)
    return r2**2, ours if ours < theirs else theirs


def _is_near(weight: int, k: int) -> tuple[int, int]:
    """Squares of ‖x − eᵢ‖², for a record of that weight without attribute i, and of 2√k."""
    record = [1] * weight + [0]
    attribute = [0] * weight + [1]
    squared = sum((a - b) ** 2 for a, b in zip(record, attribute, strict=True))
    return squared**2, 4 * k


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.section-4.3.3.crossover",
        where="section 4.3.3, and the contributions in section 1",
        text="Randomized response overtakes at squared distances of the order of √(dk)/ε²: "
        "the first term of (4) meets theorem 3's bound there, within a factor 2.",
        conditions="ε ≤ 1, equal failure probabilities",
        printed=_printed_crossing,
        check=order(_crossing, _CROSSINGS, "enclosure", factor=2),
        mechanisms=("dp-rp-g", "randomized-response"),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.crossover.any-epsilon",
        where="section 4.3.3 and section 1, which have no bound on ε there",
        text="Randomized response overtakes at squared distances of the order of √(dk)/ε² for "
        "every ε, here up to 20 and within a factor 2.",
        printed=_printed_crossing,
        readings={
            "for ε of at most 1": Reading(
                lambda d, k, e: _printed_crossing(d, k, e) if e <= 1 else None,
                place="the same paragraph, of the flip that the distance is from: “accurate to "
                "within 10% for ε < 1”",
                covers="the ε that the approximation is stated for",
            )
        },
        check=order(
            _crossing, [(10**6, 64, Fraction(e)) for e in (1, 5, 20)], "enclosure", factor=2
        ),
        reason="1/(1 − 2p)² tends to 1, not to 0, as ε grows. At ε = 5 the printed distance is 7 "
        "times off, at ε = 20 over 100 times.",
        instead="Use √(dk)/(4 tanh²(ε/2)) above ε = 1.",
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.second-term",
        where="section 4.3.3, k(ln n)² ≪ d",
        text="The second term of (4) is within theorem 3's bound from d = k ln²n on, up to a "
        "constant, here 32.",
        conditions="ε ≤ 1, σ = 2√ln(n)/ε",
        printed=lambda k, n, e: k * arb(n).log() ** 2,
        check=order(_least_bits, _USERS, "enclosure", factor=32),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.projection-better",
        where="section 4.3.3, the middle range",
        text="Up to a constant times √(dk)/ε², here a quarter, the bound (4) is the smaller one, "
        "where k ln²n ≪ d.",
        conditions="the paper leaves constants open; d = 1000·k·ln²n, μ = 1/1000, ε ≤ 1",
        printed=lambda: _range(Fraction(1, 4)),
        check=wherever(_bounds, "enclosure"),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.responses-better",
        where="section 4.3.3, the far range",
        text="From a constant times √(dk)/ε² on, here twice that, theorem 3's bound is the "
        "smaller one.",
        conditions="as above, and d much larger, so that noise terms don't matter",
        printed=lambda: [(10**14, 256, 100, e, Fraction(2)) for e in _EPSILONS],
        check=wherever(lambda d, k, n, e, share: _bounds(d, k, n, e, share)[::-1], "enclosure"),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.near",
        where="section 4.3.3, the near range",
        text="At squared distances up to √k both are inaccurate: r⁴ is at most either variance.",
        conditions="ε ≤ 1, k ≤ d",
        printed=lambda k: arb(k).sqrt(),
        check=at_most(
            _poor,
            [(d, k, n, e) for d, k in _SIZES for n in (100, 10**6) for e in _EPSILONS],
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.budget",
        where="section 4.3.3, last sentence",
        text="t sketches, each with noise for (ε/t, δ/t), are (ε, δ)-DP together.",
        printed=lambda t, e, d: sigma_needed(e / t, d / t),
        check=at_most(
            lambda f, t, e, d: (gaussian_delta(number(e), arb(t).sqrt() / f(t, e, d)), d),
            [(t, Fraction(e), Fraction(1, 10**6)) for t in (1, 2, 8) for e in (1, 5)],
            "quadrature",
        ),
        reason="Noise for (ε, δ) times √t is enough: t sketches are one of t·k numbers.",
    ),
    Statement(
        id="kenthapadi2013.section-5.2.1.attribute",
        where="section 5.2.1, first paragraph",
        text="Distances of records to one attribute's vector are in the near range, O(√k).",
        conditions="not stated: the records' weight; 2 is taken for the constant",
        printed=lambda: [(100, 64)],
        corrections={
            "weights up to √k": Correction(
                lambda: [(w, 64) for w in (1, 8, 15)],
                proof="a record of weight w that lacks the attribute is w + 1 away from it",
            )
        },
        check=wherever(_is_near, "enumeration"),
        reason="A record of weight 100 is 101 away from the vector of an attribute that it "
        "lacks, far above 2√k for k = 64. What must be told apart is always weight + 1 from "
        "weight − 1, and that is a small difference at every weight.",
        instead="Look at the difference of the two squared distances, weight + 1 and weight − 1, "
        "and not at their size.",
    ),
    Statement(
        id="kenthapadi2013.section-6.range",
        where="section 6, second paragraph",
        text="Projection is better up to the distance √(dk), that is the squared distance dk.",
        conditions="ε ≤ 1",
        printed=lambda d, k, e: arb(d) * k,
        corrections={
            "the squared distance √(dk)": Correction(
                lambda d, k, e: (arb(d) * k).sqrt(),
                place="section 4.3.3: “the squared distance is between √k and √(dk)/ε²”",
                change="“squared” before distance",
            )
        },
        check=at_most(lambda f, *case: (f(*case), 2 * _crossing(*case)), _CROSSINGS, "enclosure"),
        reason="No two records of d bits are farther apart than √d, so that a distance of √(dk) "
        "never occurs. Section 4.3.3 has the squared distance √(dk)/ε².",
        instead="Use section 4.3.3’s range.",
    ),
)
