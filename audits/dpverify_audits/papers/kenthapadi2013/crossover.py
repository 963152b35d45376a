"""Sections 4.3.3, 5 and 6: projection against randomized response.

Both deviation bounds are taken at the same failure probability μ, λ_JL = √(6 ln(2/μ)/k),
λ_χ² = √ln(2/μ), λ_N = √ln(1/μ), σ = 2√ln(n)/ε and p = 1/(1 + e^ε), so that 1 − 2p = tanh(ε/2).
Theorem 2 asks for λ_JL < ½, which at μ = 1/1000 is k > 182.

Let L = ln(2/μ). At r² = √(dk)/4ε² and d ≥ 1000·k·ln²n the terms of (4), over theorem 3's bound,
which is at least 4√(dL/2)/ε², are at most .22, .18(1 + √(L/k)) and .26(1 + λ_JL): .82 in sum, for
every k, n, ε and μ that theorem 2 allows. (4) grows with r², so that it is the smaller bound up to
there. At r² = √(dk), d ≥ 10⁵·k·ln²n and ε ≤ 1 they are at most √12·tanh²(ε/2) ≤ .74,
.018(1 + √(L/k)) and .14(1 + λ_JL): .97 in sum.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpverify.ledger.checks import at_most, order, wherever
from dpverify.ledger.oracles import gaussian_delta, number
from dpverify.ledger.statements import Correction, Reading, Statement

from .privacy import sigma_needed

__all__ = ["CLAIMS"]

_MU = Fraction(1, 1000)
_SMALL = [Fraction(1, 1000), Fraction(1, 2), Fraction(99, 100)]
_EPSILONS = [*_SMALL, Fraction(5), Fraction(20)]
_SIZES = [(10**6, 183), (10**9, 1000)]
_CROSSINGS = [(d, k, e) for d, k in _SIZES for e in _EPSILONS]
_USERS = [(k, n, e) for k in (183, 1000) for n in (2, 100, 10**6) for e in _EPSILONS]


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


def _enough_bits(k: int, n: int, many: int = 1000) -> int:
    """The least whole number above `many` times k·ln²n."""
    return int(many * k * float(arb(n).log()) ** 2) + 1


def _range(share: Fraction) -> list[tuple[int, int, int, Fraction, Fraction]]:
    """The top of the range, times a share, where d = 1000·k·ln²n."""
    return [(_enough_bits(k, n), k, n, e, share) for k, n, e in _USERS]


def _bounds(d: int, k: int, n: int, e: Fraction, share: Fraction) -> tuple[arb, arb]:
    """(4) and theorem 3's bound at a share of the range."""
    r2 = number(share) * _printed_crossing(d, k, e)
    return _projection(k, n, e, r2), _responses(d, e)


def _beyond(epsilons: list[Fraction]) -> list[tuple[int, int, int, Fraction, Fraction]]:
    return [(d, k, 100, e, Fraction(2)) for d, k in _SIZES for e in epsilons]


IN_THE_PARAGRAPH = "the same paragraph, of the flip that theorem 3’s bound is from: “for ε < 1”"

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.section-4.3.3.crossover",
        where="section 4.3.3, √(dk)/ε², “which controls the first term of the bound (4)”",
        text="The first term of (4) is theorem 3's bound at a squared distance of the order of "
        "√(dk)/ε², within a factor 2.",
        conditions="the same failure probability μ in both",
        printed=_printed_crossing,
        readings={
            "for ε < 1": Reading(
                lambda d, k, e: _printed_crossing(d, k, e) if e < 1 else None,
                place=IN_THE_PARAGRAPH,
                covers="the ε that the paragraph’s approximation of the flip is stated for",
            )
        },
        check=order(_crossing, _CROSSINGS, "enclosure", factor=2),
        mechanisms=("dp-rp-g", "randomized-response"),
        reason="1/(1 − 2p)² tends to 1, not to 0, as ε grows. At ε = 5 the printed distance is 7 "
        "times off, at ε = 20 over 100 times.",
        instead="From ε = 2 on read √(dk)/(√12·tanh²(ε/2)), where the two terms meet.",
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.second-term",
        where="section 4.3.3, k(ln n)² ≪ d, “which bounds the second term”",
        text="From d = 32·k ln²n on, for every ε, the second term of (4) is within theorem 3's "
        "bound.",
        conditions="32 for the constant that ≪ leaves open",
        printed=lambda k, n, e: 32 * k * arb(n).log() ** 2,
        check=at_most(lambda f, k, n, e: (_least_bits(k, n, e), f(k, n, e)), _USERS, "enclosure"),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.projection-better",
        where="section 4.3.3, the middle range",
        text="Up to a constant times √(dk)/ε², here a quarter, the bound (4) is the smaller one, "
        "where k ln²n ≪ d, here d = 1000·k·ln²n.",
        conditions="“The exact constants separating these regions” are left open",
        printed=lambda: _range(Fraction(1, 4)),
        check=wherever(_bounds, "enclosure"),
        reason="for every k, n, ε and μ of theorem 2, and every larger d",
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.responses-better",
        where="section 4.3.3, the far range, and the contributions in section 1",
        text="From a constant times √(dk)/ε² on, here twice that, theorem 3's bound is the "
        "smaller one.",
        conditions="“The exact constants separating these regions” are left open",
        printed=lambda: _beyond(_EPSILONS),
        readings={
            "for ε < 1": Reading(
                lambda: _beyond(_SMALL),
                place=IN_THE_PARAGRAPH,
                covers="the ε that the paragraph’s approximation of the flip is stated for",
            )
        },
        check=wherever(lambda d, k, n, e, share: _bounds(d, k, n, e, share)[::-1], "enclosure"),
        reason="As ε grows √(dk)/ε² goes to 0 and theorem 3's bound doesn't. At ε = 5, d = 10⁶, "
        "k = 183 and n = 100 projection has the smaller bound at twice that distance.",
        instead="Compare the two bounds for your ε.",
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.near",
        where="section 4.3.3, the near range, and the contributions in section 1",
        text="At squared distances of O(√k) both are inaccurate.",
        reason=(
            "The paper doesn't say which error is inaccurate, and O(·) leaves the constant open. "
            "By standard deviations it is so for small ε: at ε = 1, d = 10⁶, k = 64 and n = 100 "
            "a squared distance of √k = 8 has one of 418 by projection and of 2287 by randomized "
            "response."
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
        text="For distances of records to one attribute's vector both methods perform poorly.",
        reason=(
            "The paper doesn't say how large an error is poor. A record of weight w is w + 1 or "
            "w − 1 away from that vector, and these two must be told apart; at ε = 1, d = 10⁶, k "
            "= 64, n = 100 and w = 100 the smaller standard deviation is 435."
        ),
    ),
    Statement(
        id="kenthapadi2013.section-6.range",
        where="section 6, second paragraph",
        text="Projection has the stronger guarantee for users that are less than √(dk) apart: "
        "(4) is below theorem 3's bound.",
        conditions="those of section 4.3.3, which the paragraph names: “for ε < 1”, one μ for "
        "both, σ = 2√ln(n)/ε, p = 1/(1 + e^ε), and “k(ln n)² ≪ d”, here d ≥ 10⁵·k·ln²n",
        # squared, and records of d bits are no farther apart than √d
        printed=lambda d, k: arb(min(d * k, d)),
        corrections={
            "a squared distance of less than √(dk)": Correction(
                lambda d, k: (arb(d) * k).sqrt(),
                place="section 4.3.3, “when the squared distance is between √k and √(dk)/ε²”",
                change="the word “squared”",
            )
        },
        check=at_most(
            lambda f, d, k, n, e: (_projection(k, n, e, f(d, k)), _responses(d, e)),
            [(_enough_bits(k, n, 10**5), k, n, e) for k, n, e in _USERS if e < 1],
            "enclosure",
        ),
        reason=(
            "Section 4.3.3 has the squared distance; without that word no two records of d bits "
            "are too far apart. For records that differ in every bit randomized response has the "
            "smaller bound, 306 times smaller at ε = ½, k = 183, n = 100 and d = 10⁵·k·ln²n. From "
            "that d on all of (4) is below theorem 3’s bound up to a squared distance of √(dk), "
            "for every ε below 1; from d = 1000·k·ln²n on it is up to a quarter of that."
        ),
        instead="Use section 4.3.3’s range, of squared distances.",
    ),
)
