"""Section 3.2.2: theorem 2 and the optimal dimension.

Variances are of degree 4 in every Gaussian, so the law ±√3σ with probability 1/6 each, else 0, has
the same ones, and they are sums of fractions. Coordinates are independent of each other. For tails,
(x − y)P + Δ is Gaussian with variance r²/k + 2σ² in every coordinate, so ‖x̂ − ŷ‖² is that times a
chi-square of k degrees.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, order
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Reading, Statement

from .tails import chi_square_above

__all__ = ["CLAIMS", "distance_moments", "error", "variance"]

_THREE = {-1: Fraction(1, 6), 0: Fraction(2, 3), 1: Fraction(1, 6)}
_CASES = [(k, r, Fraction(s)) for k in (1, 2, 3) for r in (1, 2) for s in ("0", "1/2", "2")]


@cache
def distance_moments(k: int, r: int, s: Fraction) -> tuple[Fraction, Fraction]:
    """Mean and variance of ‖x̂ − ŷ‖², r bits apart, with σ² = s²/k: k coordinates, convolved."""
    one: Counter[Fraction] = Counter()
    for *signs, a, b in product(_THREE, repeat=r + 2):
        weight = Fraction(1)
        for sign in (*signs, a, b):
            weight *= _THREE[sign]
        one[Fraction(3, k) * (sum(signs) + s * (a - b)) ** 2] += weight  # type: ignore[assignment]
    law: Mapping[Fraction, Any] = {Fraction(0): Fraction(1)}
    for _ in range(k):
        longer: Counter[Fraction] = Counter()
        for (u, p), (v, q) in product(law.items(), one.items()):
            longer[u + v] += p * q
        law = longer
    mean = sum((p * u for u, p in law.items()), Fraction(0))
    return mean, sum((p * u * u for u, p in law.items()), Fraction(0)) - mean**2


def _cross_terms(s: Fraction) -> tuple[Fraction, ...]:
    """E Z₁Z₂, E Z₁Z₃ and E Z₂Z₃ for k = r = 1 and σ = s, in √3·u for P and √3·s(a − b) for Δ."""
    found = [Fraction(0)] * 3
    for u, a, b in product(_THREE, repeat=3):
        noise = s * (a - b)
        parts = 3 * u * u, 6 * u * noise, 3 * noise**2 - 2 * s * s
        weight = _THREE[u] * _THREE[a] * _THREE[b]
        for place, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
            found[place] += weight * parts[i] * parts[j]
    return tuple(found)


def variance(k: Any, r2: Any, s2: Any) -> Any:
    """Theorem 2, part 2, from the squared distance and σ²."""
    return 2 * r2**2 / k + 8 * s2 * r2 + 8 * s2**2 * k


def _one_column(q: Fraction) -> Fraction:
    """Variance of the estimate for one column and one bit of distance, with σ = |P|·q/√3.

    So theorem 1 has it for the P that was drawn, with w₂(P) = |P|: in √3·(u, v, w) for P and the
    noise the estimate is 3u²((1 + q(v − w))² − 2q²/3).
    """
    law = [
        (_THREE[u] * _THREE[v] * _THREE[w], 3 * u * u * ((1 + q * (v - w)) ** 2 - 2 * q * q / 3))
        for u, v, w in product(_THREE, repeat=3)
    ]
    mean = sum((p * x for p, x in law), Fraction(0))
    square = sum((p * x * x for p, x in law), Fraction(0))
    return square - mean**2


def _outside(k: int, scale: Any, low: Any, high: Any) -> arb:
    """P(scale·χ²ₖ is below low or above high)."""
    inside = arb(0) if not low > 0 else 1 - chi_square_above(k, low / scale)
    return inside + chi_square_above(k, high / scale)


def _radius(k: Any, r2: Fraction, s2: Fraction, jl: Any, chi: Fraction, n: Fraction) -> Any:
    """The right side of (4)."""
    k, r, s = number(k), number(r2).sqrt(), number(s2).sqrt()
    noise = 4 * s**2 * (k.sqrt() * number(chi) + number(chi) ** 2)
    return number(jl) * number(r2) + noise + 4 * s * (1 + number(jl)) * number(n) * r


def _failure(k: int, jl: Fraction, chi: Fraction, n: Fraction) -> arb:
    normal = (-number(n * n)).exp() / (number(n) * arb.pi().sqrt())
    return 2 * _projection(k, jl) + 2 * (-number(chi * chi)).exp() + normal


def _projection(k: int, jl: Fraction) -> arb:
    return (-k * number(jl * jl) / 6).exp()


def _deviates(formula: Any, k: int, r2: Fraction, s2: Fraction, *lam: Fraction) -> tuple[arb, arb]:
    radius = formula(k, r2, s2, *lam)
    middle = number(r2 + 2 * k * s2)
    return _outside(k, number(r2 / k + 2 * s2), middle - radius, middle + radius), _failure(k, *lam)


def error(k: Any, r: Fraction, s: Fraction, x: Fraction) -> Any:
    """(4) at λ_χ² = λ_N = λ and λ_JL = λ√(6/k)."""
    return _radius(k, r * r, s * s, number(x) * (6 / number(k)).sqrt(), x, x)


def _best(r: Fraction, s: Fraction, x: Fraction) -> int:
    """The k at which (4) is least: it falls before and rises behind it."""
    return 1 + bisect_left(
        range(1, 2**60), True, key=lambda k: error(k, r, s, x) < error(k + 1, r, s, x)
    )


def _least_variance(r2: Fraction, s2: Fraction) -> tuple[int, Fraction]:
    """The k from 1 to 10⁵ at which the variance is least, and the variance there."""
    values = ((variance(k, r2, s2), k) for k in range(1, int(4 * r2 / s2) + 2))
    least, k = min(values)
    return k, Fraction(least)


# λ = 93/25 is μ = 10⁻⁶
_ORDERS = [
    (Fraction(r), Fraction(s), Fraction(x))
    for x in ("93/25", "2", "200")
    for r, s in ((10**6, 1), (10**6, 10), (5 * Fraction(x), 1))
]
# Bounds on probabilities are tried where they are below 1: elsewhere they say nothing.
_JL = [
    (k, Fraction(j))
    for k, j in ((64, "3/10"), (64, "49/100"), (256, "3/10"), (256, "49/100"), (1024, "1/10"))
]
_DEVIATIONS = [
    (k, Fraction(r2), Fraction(s2), j, Fraction(c), Fraction(c))
    for (k, j), r2, s2, c in product(_JL[1::2] + _JL[-1:], (1, 100), ("1/100", "4"), ("3/2", "3"))
]
_CHI = [(k, Fraction(x)) for k in (2, 16, 256) for x in ("1", "3")]
_OPTIMA = [(Fraction(r), Fraction(s)) for r, s in (("1", "1/4"), ("12", "2"), ("99", "1/4"))]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.algorithm-2",
        where="section 3.1.5, algorithm 2",
        text="Noise adds 2kσ² to the expected squared distance.",
        printed=lambda k, r, s: 2 * k * s * s / k,
        check=equals(lambda k, r, s: distance_moments(k, r, s)[0] - r, _CASES, "enumeration"),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.mean",
        where="section 3.2.2, theorem 2, part 1",
        text="The estimate is unbiased for ‖x − y‖².",
        printed=lambda k, r, s: Fraction(r),
        check=equals(
            lambda k, r, s: distance_moments(k, r, s)[0] - 2 * s * s, _CASES, "enumeration"
        ),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.variance",
        where="section 3.2.2, theorem 2, part 2",
        text="The variance of the estimated squared distance is 2r⁴/k + 8σ²r² + 8σ⁴k.",
        printed=lambda k, r, s: variance(k, Fraction(r), s * s / k),
        check=equals(lambda k, r, s: distance_moments(k, r, s)[1], _CASES, "enumeration"),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.independence",
        where="section 3.2.2, theorem 2, condition on σ; above it, “This property is crucial”",
        text="Theorem 2 needs its condition: with σ in proportion to w₂(P), as theorem 1 has it "
        "and lemma 2 hasn't, the variance is above the printed one.",
        conditions="one column and one bit of distance; the printed variance at the mean of σ²",
        printed=lambda q: Fraction(variance(1, Fraction(1), q * q / 3)),
        check=at_most(
            lambda f, q: (f(q), _one_column(q)), [(Fraction(1, 2),), (Fraction(2),)], "enumeration"
        ),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.projection",
        where="section 3.2.2, proof of theorem 2, claim 2",
        text="Var Z₁ = 2r⁴/k.",
        printed=lambda k, r: Fraction(2 * r * r, k),
        check=equals(
            lambda k, r: distance_moments(k, r, Fraction(0))[1],
            [(k, r) for k in (1, 2, 3) for r in (1, 2)],
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.noise",
        where="section 3.2.2, proof of theorem 2, claim 2",
        text="Var Z₃ = 8σ⁴k.",
        printed=lambda k, s: 8 * s**4 / k,
        check=equals(
            lambda k, s: distance_moments(k, 0, s)[1],
            [(k, Fraction(s)) for k in (1, 2, 3) for s in (1, 2)],
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.product",
        where="section 3.2.2, proof of theorem 2, claim 2",
        text="Var Z₂ = 8σ²r² is what is left beside Var Z₁ and Var Z₃: no cross terms.",
        printed=lambda k, r, s: 8 * r * s * s / k,
        check=equals(
            lambda k, r, s: (
                distance_moments(k, r, s)[1]
                - distance_moments(k, r, Fraction(0))[1]
                - distance_moments(k, 0, s)[1]
            ),
            _CASES,
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.cross-terms",
        where="section 3.2.2, proof of theorem 2, claim 2, the three products",
        text="E Z₁Z₂ = E Z₁Z₃ = E Z₂Z₃ = 0, here for one column and one bit of distance.",
        printed=lambda s: (0, 0, 0),
        check=equals(_cross_terms, [(Fraction(1, 2),), (Fraction(2),)], "enumeration"),
        reason="the third isn’t of lemma 6, as ‖Δ‖² depends on Δ: it is 0 as Z₂ is odd in Δ",
    ),
    Statement(
        id="kenthapadi2013.theorem-2.deviation",
        where="section 3.2.2, theorem 2, part 3, (4)",
        text="|estimate − r²| is within (4), but for the sum of the three probabilities.",
        conditions="λ_JL < ½",
        printed=_radius,
        check=at_most(_deviates, _DEVIATIONS, "enclosure"),
    ),
    Statement(
        id="kenthapadi2013.section-1.additive",
        where="section 1, contributions: “an additive factor that depends on k and the variance of "
        "the noise”",
        text="(4) is at most 2λ_JL‖x − y‖² and a term without the distance.",
        printed=lambda k, s2, jl, chi, n: (
            4 * number(s2) * (arb(k).sqrt() * number(chi) + number(chi) ** 2)
            + 4 * number(s2) * (1 + number(jl)) ** 2 * number(n) ** 2 / number(jl)
        ),
        check=at_most(
            lambda f, k, r2, s2, jl, chi, n: (
                _radius(k, r2, s2, jl, chi, n),
                2 * number(jl * r2) + f(k, s2, jl, chi, n),
            ),
            [
                (256, Fraction(r2), Fraction(1), Fraction(1, 4), Fraction(2), Fraction(2))
                for r2 in (1, 400, 10**6)
            ],
            "enclosure",
        ),
        reason="(4)’s last term has the distance too; twice a product of two is at most the sum of "
        "their squares, here λ_JL‖x − y‖² and the rest",
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.z1",
        where="section 3.2.2, proof of theorem 2, claim 3",
        text="P(|Z₁ − r²| ≥ λr²) ≤ 2 exp(−kλ²/6) for λ < ½.",
        printed=lambda k, j: 2 * _projection(k, j),
        check=at_most(
            lambda f, k, j: (
                _outside(k, arb(1), number(k * (1 - j)), number(k * (1 + j))),
                f(k, j),
            ),
            _JL,
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.z2",
        where="section 3.2.2, proof of theorem 2, claim 3",
        text="P(|Z₂| > 4σλ√Z₁) ≤ exp(−λ²)/(λ√π), Z₂ being N(0, 8σ²Z₁) given Z₁.",
        printed=lambda x: (-number(x * x)).exp() / (number(x) * arb.pi().sqrt()),
        check=at_most(
            lambda f, x: (number(x).erfc(), f(x)),
            [(Fraction(x),) for x in ("1/2", "1", "5")],
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.z3",
        where="section 3.2.2, proof of theorem 2, claim 3, divided by 2σ²",
        text="P(|χ²ₖ − k| > 2√kλ + 2λ²) ≤ 2 exp(−λ²).",
        printed=lambda k, x: 2 * arb(k).sqrt() * number(x) + 2 * number(x * x),
        check=at_most(
            lambda f, k, x: (
                _outside(k, arb(1), k - f(k, x), k + f(k, x)),
                2 * (-number(x * x)).exp(),
            ),
            _CHI,
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-2.proof.exponent",
        where="section 3.2.2, end of the proof of theorem 2",
        text="The exponent of the lemma that is cited, and that it is at least kλ²/6 for λ < ½.",
        reason="(k/2)(λ²/2 − λ³/3) is. Our text has λ² twice, with which it is kλ²/12, and in "
        "print the second may well be λ³.",
    ),
    Statement(
        id="kenthapadi2013.optimal-k.dimension",
        where="section 3.2.2, optimal projection dimension, second item",
        text="k = r²/2σ² is where the variance is least, of all k.",
        printed=lambda r2, s2: r2 / (2 * s2),
        check=equals(lambda r2, s2: _least_variance(r2, s2)[0], _OPTIMA, "enumeration"),
        reason="the variance is theorem 2's; every k from 1 to eight times the best one is tried",
    ),
    Statement(
        id="kenthapadi2013.optimal-k.variance",
        where="section 3.2.2, below the items on the optimal dimension",
        text="The variance there is 16σ²r².",
        printed=lambda r2, s2: 16 * s2 * r2,
        check=equals(lambda r2, s2: _least_variance(r2, s2)[1], _OPTIMA, "enumeration"),
    ),
    Statement(
        id="kenthapadi2013.optimal-k.bound",
        where="section 3.2.2, optimal projection dimension, first item",
        text="The k that minimizes (4) at equal failure probabilities μ, with λ = √log(1/μ), is of "
        "the order λr²/σ², here within a factor 2.",
        conditions="“To find the asymptotic”: r ≥ 5λσ, from where on theorem 2's λ_JL is below ½ "
        "at the best k",
        printed=lambda r, s, x: x * r * r / s**2,
        readings={
            "at one μ: of the order r²/σ²": Reading(
                lambda r, s, x: r * r / s**2,
                place="the same item, “for a fixed setting of the noise σ and the failure "
                "probability” and “for some fixed μ < 1/3”",
                covers="a μ that is chosen once, whose λ is a constant",
            )
        },
        check=order(_best, _ORDERS, "enclosure", factor=2),
        reason=(
            "At a fixed μ λ is a constant, and the order is right; as a function of μ it isn't. "
            "(4) is least at √6·r(r + 4λσ)/4σ², where λ cancels as r grows: with constant 1 "
            "the printed k is up to 1.64λ times the best one, 6 times at μ = 10⁻⁶."
        ),
        instead="Take k = r²/(2σ²), the second item, at which the variance is least.",
    ),
)
