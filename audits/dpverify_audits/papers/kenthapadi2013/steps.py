"""Steps of the proofs in section 3.2, and what section 3.2.2 and 4 say of their consequences.

Each displayed line that another rests on, where the statement itself doesn't already check it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, order, wherever
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import density, gaussian_delta, integral, number
from dpverify.ledger.statements import Reading, Statement

from .privacy import sigma_needed
from .utility import distance_moments, error

__all__ = ["CLAIMS"]

_TINY = Fraction(1, 10**6)
_DELTAS = [(_TINY,), (Fraction(1, 10),), (Fraction(49, 100),)]
_THREE = {-1: Fraction(1, 6), 0: Fraction(2, 3), 1: Fraction(1, 6)}
"""Times √3, the normal law's moments up to order 5."""
_A, _B, _C, _D, _S2 = letters("a b c d s2")
_RECORDS = [(1, 1), (1, -1, 1), (2,)]
_GAUSSIAN = (1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945)
"""Moments of N(0, 1)."""


def _outer(t: Any) -> Any:
    """The radius R/σ of (2)."""
    return (-2 * number(2 * t).log()).sqrt()


def _weighted(z: tuple[int, ...], order_: int) -> Fraction:
    """E(Σ zⱼPⱼ)^order for normal Pⱼ of variance 1."""
    total = Fraction(0)
    for signs in product(_THREE, repeat=len(z)):
        weight = Fraction(1)
        for sign in signs:
            weight *= _THREE[sign]
        total += weight * sum(a * b for a, b in zip(z, signs, strict=True)) ** order_
    return Fraction(3) ** (order_ // 2) * total


def _moment_of_sum(z: tuple[int, ...], n: int) -> Fraction:
    """E(Σ zⱼPⱼ)ⁿ for normal Pⱼ of variance 1, one summand after the other."""
    moments = [Fraction(order_ == 0) for order_ in range(n + 1)]
    for c in z:
        moments = [
            sum(
                (comb(m, i) * moments[i] * c ** (m - i) * _GAUSSIAN[m - i] for i in range(m + 1)),
                Fraction(0),
            )
            for m in range(n + 1)
        ]
    return moments[n]


def _chi_square(k: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of χ²ₖ: the squared distance of noiseless sketches, times k."""
    mean, spread = distance_moments(k, 1, Fraction(0))
    return k * mean, k * k * spread


def _needed(w: int, epsilon: Fraction, delta: Fraction) -> arb:
    """(3): theorem 1 at δ/2."""
    log = -number(delta).log()
    return w * (2 * (log + number(epsilon))).sqrt() / number(epsilon)


def _threshold(formula: Any, delta: Fraction) -> arb:
    """Ratio of the two sides of lemma 2's last step, at the ε of the formula."""
    log, e = -number(delta).log(), formula(delta)
    return 4 * log.sqrt() / (2 * (2 * (log + e)).sqrt())


def _longest(formula: Any, d: int, delta: Fraction) -> arb:
    """1 + √(2x/k) of lemma 2 at the k of the formula."""
    return 1 + (2 * number(2 * d / delta).log() / formula(d, delta)).sqrt()


_ERRORS = [
    *((Fraction(10**6), Fraction(s), Fraction(x)) for s in (1, 10) for x in (2, 200)),
    (Fraction(14), Fraction(1), Fraction(2)),  # λ_JL = √(6/k)λ just below ½ at k = r²/2σ²
]
_ENTRIES = [((1, 0, 1), y, sigma) for y in ((0, 1, 1), (0, 0, 0)) for sigma in (1, 4)]
_FAILURES = [(Fraction(m),) for m in ("33/100", "1/100", "1/1000000")]


def _least_normal(failure: Fraction) -> Fraction:
    """The λ at which exp(−λ²)/(λ√π) is μ, by halving: it falls as λ grows."""
    low, high = Fraction(1, 100), Fraction(10)
    for _ in range(40):
        middle = (low + high) / 2
        x = number(middle)
        above = (-x * x).exp() / (x * arb.pi().sqrt()) > number(failure)
        low, high = (middle, high) if above else (low, middle)
    return high


def _direct(n: int, e: Fraction, d: Fraction) -> arb:
    """σ² of section 4.1."""
    return n * sigma_needed(e, d) ** 2


def _is_of_order(n: int, e: Fraction, d: Fraction) -> tuple[arb, int]:
    """How far σ² is from between one and four times n ln(1/δ)/ε², as a factor, and 1."""
    ratio = _direct(n, e, d) * number(e) ** 2 / (n * -number(d).log())
    return (ratio / 4).max(1 / ratio), 1


def _released(x: tuple[int, ...], y: tuple[int, ...], sigma: int, power: int) -> arb:
    """E zᵖ for algorithm 4's output z, the squared distance and N(0, σ²), integrated."""
    apart = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
    return integral(lambda t: (apart + sigma * t) ** power * density(t), -40, 40)


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.lemma-1.rotation",
        where="section 3.2.1, proof of lemma 1, first paragraph",
        text="The log ratio of densities, times 2σ², is that of one dimension along Y′ − Y.",
        printed=lambda z, v, w: 2 * w * (sum(a * b for a, b in zip(z, v, strict=True)) / w) - w * w,
        check=equals(
            lambda z, v, w: (
                sum(a * a for a in z) - sum((a - b) ** 2 for a, b in zip(z, v, strict=True))
            ),
            [(letters("a b"), (3, 4), 5), (letters("a b c"), (2, -3, 6), 7)],
            "identity",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-1.outer-mass",
        where="section 3.2.1, proof of (2), from the integral to the error function",
        text="P(N(0, σ²) < −wR/t) = ½(1 − erf(wR/(√2σt))), t = ‖Y − Y′‖, here in units of σ.",
        printed=lambda w, r, t: (1 - (number(w * r / t) / arb(2).sqrt()).erf()) / 2,
        check=equals(
            lambda w, r, t: integral(density, number(w * r / t), number(w * r / t) + 40),
            [(Fraction(w), Fraction(r), Fraction(1, 2)) for r in ("1/2", "2") for w in (1, 2)],
            "quadrature",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-1.outer-nearer",
        where="section 3.2.1, proof of (2), last line but one",
        text="½ exp(−(wR/t)²/2σ²) ≤ ½ exp(−R²/2σ²) for t = ‖Y − Y′‖ ≤ w.",
        printed=lambda r, t: (-number(r * r) / 2).exp() / 2,
        check=at_most(
            lambda f, r, t: ((-number((r / t) ** 2) / 2).exp() / 2, f(r, t)),
            [(Fraction(r), Fraction(t)) for r in (1, 3) for t in ("1/2", "1")],
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-1.outer-last",
        where="section 3.2.1, proof of (2), last line",
        text="½ exp(−R²/2σ²) = δ at R = σ√(2 ln(1/2δ)), σ = 1.",
        printed=_outer,
        check=equals(
            lambda d: number(d),
            _DELTAS,
            "enclosure",
            of=lambda formula: lambda d: (-(formula(d) ** 2) / 2).exp() / 2,
        ),
    ),
    Statement(
        id="kenthapadi2013.equation-3",
        where="section 3.2.2, proof of lemma 2, (3)",
        text="σ = w√(2(ln(1/δ) + ε))/ε is (ε, δ/2)-DP.",
        printed=_needed,
        check=at_most(
            lambda f, w, e, d: (gaussian_delta(number(e), w / f(w, e, d)), d / 2),
            [(w, Fraction(e), _TINY) for w in (1, 2) for e in ("1/10", "1", "10")],
            "quadrature",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-2.row",
        where="section 3.2.2, proof of lemma 2: a row's squared norm is χ²ₖ/k",
        text="The squared norm of a normal row has variance 2/k.",
        printed=lambda k: Fraction(2, k),
        check=equals(
            lambda k: distance_moments(k, 1, Fraction(0))[1], [(1,), (2,), (5,)], "enumeration"
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-2.condition-epsilon",
        where="section 3.2.2, lemma 2, ε < ln(1/δ)",
        text="ln(1/δ) is the ε up to which 4√ln(1/δ)/ε suffices for (3) at w = 2.",
        printed=lambda d: -number(d).log(),
        check=equals(
            lambda d: arb(1),
            _DELTAS[:2],
            "enclosure",
            of=lambda formula: lambda d: _threshold(formula, d),
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-2.condition-k",
        where="section 3.2.2, lemma 2, k > 2(ln d + ln(2/δ))",
        text="That k is where 1 + √(2x/k) = 2.",
        printed=lambda d, delta: 2 * (arb(d).log() + number(2 / delta).log()),
        check=equals(
            lambda d, delta: arb(2),
            [(2, _TINY), (10**6, Fraction(1, 10))],
            "enclosure",
            of=lambda formula: lambda d, delta: _longest(formula, d, delta),
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.coordinate",
        where="section 3.2.2, proof of theorem 2, law of the i-th entry",
        text="An entry of zP has variance ‖z‖²/k, here times k.",
        printed=lambda z: Fraction(sum(a * a for a in z)),
        check=equals(lambda z: _weighted(z, 2), [(z,) for z in _RECORDS], "enumeration"),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.coordinate-normal",
        where="section 3.2.2, proof of theorem 2, law of the i-th entry",
        text="The i-th entry of zP is normal: its moments of the orders 2 to 10 are those of "
        "N(0, ‖z‖²/k), times powers of k.",
        printed=lambda z, n: prod(range(1, n, 2)) * Fraction(sum(a * a for a in z)) ** (n // 2),
        check=equals(
            _moment_of_sum, [(z, n) for z in _RECORDS for n in range(2, 11, 2)], "enumeration"
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.decomposition",
        where="section 3.2.2, proof of theorem 2, first display",
        text="The estimate is Z₁ + Z₂ + Z₃: ‖u‖², 2⟨u, n⟩ and ‖n‖² − 2kσ², here u, n in two "
        "dimensions.",
        printed=lambda u, n, s2: (
            sum(a * a for a in u)
            + 2 * sum(a * b for a, b in zip(u, n, strict=True))
            + (sum(b * b for b in n) - 2 * len(n) * s2)
        ),
        check=equals(
            lambda u, n, s2: sum((a + b) ** 2 for a, b in zip(u, n, strict=True)) - 4 * s2,
            [((_A, _B), (_C, _D), _S2)],
            "identity",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.means",
        where="section 3.2.2, proof of theorem 2, claim 1, the three means",
        text="E Z₁ = r², E Z₂ = 0 and E Z₃ = 0.",
        printed=lambda k, r, s: (Fraction(r), 0, 0),
        check=equals(
            lambda k, r, s: (
                distance_moments(k, r, Fraction(0))[0],
                distance_moments(k, r, s)[0]
                - distance_moments(k, r, Fraction(0))[0]
                - distance_moments(k, 0, s)[0],
                distance_moments(k, 0, s)[0] - 2 * s * s,
            ),
            [(k, r, s) for k in (1, 2) for r in (1, 2) for s in (Fraction(1, 2), Fraction(2))],
            "enumeration",
        ),
        reason="The noise's variance is s²/k, so that 2kσ² is 2s².",
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.chi-square-mean",
        where="section 3.2.2, proof of theorem 2, claim 1",
        text="χ²ₖ has mean k.",
        printed=lambda k: Fraction(k),
        check=equals(lambda k: _chi_square(k)[0], [(1,), (2,), (5,)], "enumeration"),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.chi-square-variance",
        where="section 3.2.2, proof of theorem 2, claim 2",
        text="χ²ₖ has variance 2k.",
        printed=lambda k: Fraction(2 * k),
        check=equals(lambda k: _chi_square(k)[1], [(1,), (2,), (5,)], "enumeration"),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.cross-given",
        where="section 3.2.2, proof of theorem 2, law of Z₂",
        text="Given zP = u, Z₂ = 2⟨u, Δ₁ − Δ₂⟩ has variance 8σ²‖u‖², σ = 1.",
        printed=lambda u: Fraction(8 * sum(a * a for a in u)),
        check=equals(
            lambda u: 4 * _weighted((*u, *(-a for a in u)), 2), [((1, 2),), ((3,),)], "enumeration"
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.union",
        where="section 3.2.2, proof of theorem 2, plugging the bound on Z₁ into that on Z₂",
        text="√Z₁ ≤ (1 + λ)r where Z₁ ≤ (1 + λ)r²; r = 1.",
        printed=lambda x: 1 + x,
        check=at_most(
            lambda f, x: ((1 + number(x)).sqrt(), f(x)),
            [(Fraction(x),) for x in ("1/10", "1/4", "49/100")],
            "enclosure",
        ),
        reason="√(1 + λ) would do in (4).",
    ),
    Statement(
        id="kenthapadi2013.optimal-k.lambda-chi",
        where="section 3.2.2, optimal projection dimension, first item",
        text="2 exp(−λ²) = μ at λ_χ² of the order √log(1/μ), within a factor 2.",
        conditions="μ < 1/3",
        printed=lambda m: number(1 / m).log().sqrt(),
        check=order(lambda m: number(2 / m).log().sqrt(), _FAILURES, "enclosure", factor=2),
    ),
    Statement(
        id="kenthapadi2013.optimal-k.lambda-jl",
        where="section 3.2.2, optimal projection dimension, first item; section 4.3.3",
        text="2 exp(−kλ²/6) = μ at λ_JL of the order √(log(1/μ)/k), within a factor 4.",
        conditions="μ < 1/3",
        printed=lambda m: (number(1 / m).log() / 64).sqrt(),
        check=order(
            lambda m: (6 * number(2 / m).log() / 64).sqrt(), _FAILURES, "enclosure", factor=4
        ),
    ),
    Statement(
        id="kenthapadi2013.optimal-k.lambda-normal",
        where="section 3.2.2, optimal projection dimension, first item",
        text="exp(−λ²)/(λ√π) = μ at λ_N of the order √log(1/μ), within a factor 2.",
        conditions="μ < 1/3",
        printed=lambda m: number(1 / m).log().sqrt(),
        check=order(_least_normal, _FAILURES, "enclosure", factor=2),
    ),
    Statement(
        id="kenthapadi2013.optimal-k.error",
        where="section 3.2.2, below the items on the optimal dimension",
        text="With this choice of k (4) is O(σλr), λ = √log(1/μ): at most 16σλr.",
        conditions="“assuming that log 1/μ ≪ k”; not stated: which item's k is meant",
        printed=lambda r, s, x: x * r * r / s**2,
        readings={
            "k of the second item": Reading(
                lambda r, s, x: r * r / (2 * s**2),
                place="the next sentence: “The variance of the estimator when k = ‖x − y‖²/(2σ²)”",
                covers="the only k that the paragraph goes on with, where λ_JL < ½",
            )
        },
        check=at_most(
            lambda f, r, s, x: (error(f(r, s, x), r, s, x), 16 * s * x * r), _ERRORS, "enclosure"
        ),
        reason="With k of the first item, λr²/σ², the error grows as σλ^(3/2)·r. At λ = 200, "
        "μ = e^(−40000), 16 is not enough. With k of the second item it is as printed, for every "
        "μ.",
        instead="Take k = r²/(2σ²), the second item.",
    ),
    Statement(
        id="kenthapadi2013.optimal-k.noise",
        where="section 3.2.2, below the items: σ² = Θ(ln(1/δ)/ε²), of lemma 2",
        text="Lemma 2's σ² is of the order ln(1/δ)/ε², within a factor 16.",
        printed=lambda e, d: -number(d).log() / number(e) ** 2,
        check=order(
            lambda e, d: (4 * (-number(d).log()).sqrt() / number(e)) ** 2,
            [(Fraction(e), d) for e in ("1/1000", "1", "13") for d in (_TINY, Fraction(9, 10))],
            "enclosure",
            factor=16,
        ),
    ),
    Statement(
        id="kenthapadi2013.section-4.1.mean",
        where="section 4.1, algorithm 4",
        text="The noisy entry is unbiased for the squared distance of two records.",
        printed=lambda x, y, sigma: Fraction(sum(a != b for a, b in zip(x, y, strict=True))),
        check=equals(lambda x, y, sigma: _released(x, y, sigma, 1), _ENTRIES, "quadrature"),
        mechanisms=("noise-addition",),
    ),
    Statement(
        id="kenthapadi2013.section-4.1.variance",
        where="section 4.1, displayed variance",
        text="The noisy squared distance has variance σ².",
        printed=lambda x, y, sigma: Fraction(sigma**2),
        check=equals(
            lambda x, y, sigma: _released(x, y, sigma, 2) - _released(x, y, sigma, 1) ** 2,
            _ENTRIES,
            "quadrature",
        ),
        mechanisms=("noise-addition",),
    ),
    Statement(
        id="kenthapadi2013.section-4.1.order",
        where="section 4.1, displayed variance; section 4.2",
        text="σ² is of the order n ln(1/δ)/ε²: one to four times that.",
        conditions="not stated: ε < ln(1/δ), which lemma 2 asks for, and δ ≤ 1/n, n ≥ 4",
        printed=lambda: [(1000, Fraction(40), _TINY)],
        readings={
            "ε < ln(1/δ) and δ ≤ 1/n, n ≥ 4": Reading(
                lambda: [
                    (n, Fraction(e), d)
                    for n in (4, 1000)
                    for d, largest in ((Fraction(1, n), "5/4"), (_TINY, "12"))
                    for e in ("1/1000", "1/10", "1", largest)
                ],
                place="lemma 2, “ε < ln(1/δ)”, and section 2.3, “δ typically thought of as O(1/n)”",
                covers="what lemma 2, to which the paper compares, allows at its typical δ",
            )
        },
        check=wherever(_is_of_order, "enclosure"),
        reason="Beyond ε = ln(1/δ) the order is n/ε, and the printed one is too small. At ε = 40 "
        "and δ = 10⁻⁶ it is more than four times too small.",
        instead="For ε above ln(1/δ) read n/ε.",
    ),
    Statement(
        id="kenthapadi2013.section-4.2.sum-of-weights",
        where="section 4.2",
        text="The squared distance of bit vectors is at most the sum of their weights.",
        printed=lambda x, y: sum(x) + sum(y),
        check=at_most(
            lambda f, x, y: (sum((a - b) ** 2 for a, b in zip(x, y, strict=True)), f(x, y)),
            [(x, y) for x in ((1, 1, 0), (1, 0, 0)) for y in ((0, 0, 1), (1, 0, 1))],
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.section-4.2.users",
        where="section 4.2, last two sentences, and section 1",
        text="Projection has less variance than noise on distances if μσ² = o(n): if the largest "
        "weight is much smaller than the number of users.",
        reason=(
            "The paper doesn't say how many times smaller the weight has to be. For given ε and "
            "δ it is so as μ/n goes to 0: at k = μ and w₂(P) = 1 where 8(1 + σ²)²μ < nσ², which "
            "at δ = 10⁻⁶ is n > 21,172μ at ε = 1/10, 243μ at ε = 1 and 34μ at ε = 5."
        ),
    ),
    Statement(
        id="kenthapadi2013.figure-1",
        where="section 3.2.1, figure 1",
        text="Three curves of feasible (ε, δ) for three choices of σ.",
        reason="The figure is a drawing without numbers, but for the point checked apart; "
        "`dpverify account gaussian` gives the exact curve.",
    ),
)
