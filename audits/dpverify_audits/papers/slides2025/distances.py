"""Pages 5 to 8 and 14 to 20, appendices B and C: distances after projection and noise.

A law on {0, ±1, ±2} with masses 1/2, 1/6, 1/12 has the normal law's first five moments, and the
estimate is quadratic in every entry of P, Δ and Δ′: its mean and variance are those for normal
entries, found by enumeration in fractions. Tails come from chi-square laws of even degree, which
are finite sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb, factorial, lcm
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import cdf, number
from dpverify.ledger.statements import Reading, Statement

__all__ = ["CLAIMS", "Law", "chi_square", "mapped", "moment", "outside", "sum_of", "variance"]

Law = dict[Fraction, Fraction]
_NORMAL: Law = {
    Fraction(v): m
    for v, m in (
        (0, Fraction(1, 2)),
        *((s, Fraction(1, 6)) for s in (1, -1)),
        *((s, Fraction(1, 12)) for s in (2, -2)),
    )
}
_SIGNS: Law = {Fraction(s): Fraction(1, 2) for s in (1, -1)}
_ROOT = {1: Fraction(1), 4: Fraction(1, 2)}  # 1/√k


def sum_of(*laws: Law) -> Law:
    """Law of a sum of independent variables."""
    step = lcm(*(value.denominator for law in laws for value in law))
    total, size = Counter({0: 1}), 1  # in whole numbers, which are quicker than fractions
    for law in laws:
        of = lcm(*(mass.denominator for mass in law.values()))
        size *= of
        whole = [(int(value * step), int(mass * of)) for value, mass in law.items()]
        out: Counter[int] = Counter()
        for (a, p), (b, q) in product(total.items(), whole):
            out[a + b] += p * q
        total = out
    return {Fraction(a, step): Fraction(p, size) for a, p in total.items()}


def mapped(law: Law, function: Callable[[Fraction], Fraction]) -> Law:
    """Law of a function of a variable."""
    out: Law = {}
    for value, mass in law.items():
        image = function(value)
        out[image] = out.get(image, Fraction(0)) + mass
    return out


def _scaled(law: Law, factor: Fraction) -> Law:
    return mapped(law, lambda x: x * factor)


def moment(law: Law, power: int) -> Fraction:
    """Mean of a power."""
    return sum((mass * value**power for value, mass in law.items()), Fraction(0))


def _estimate(v: tuple[int, ...], k: int, sigma: Fraction, entries: Law = _NORMAL) -> Law:
    """Law of ‖vP + Δ − Δ′‖² with entries of P of variance 1/k, those of Δ and Δ′ of σ²."""
    projected = [_scaled(entries, c * _ROOT[k]) for c in v]
    noise = _scaled(_NORMAL, sigma)
    return sum_of(*[mapped(sum_of(*projected, noise, noise), lambda x: x * x)] * k)


def variance(law: Law) -> Fraction:
    """Variance."""
    return moment(law, 2) - moment(law, 1) ** 2


def _length(v: tuple[int, ...]) -> int:
    return sum(a * a for a in v)


def _printed_variance(v: tuple[int, ...], k: int, sigma: Fraction) -> Fraction:
    r = Fraction(_length(v))
    return 2 * r**2 / k + 8 * sigma**2 * r + 8 * sigma**4 * k


def _variance_of(entries: str, v: tuple[int, ...], k: int, sigma: Fraction) -> Fraction:
    return variance(_estimate(v, k, sigma, _SIGNS if entries == "signs" else _NORMAL))


_GIVEN = "σ given"


def _of_dimension(use: str, v: tuple[int, ...]) -> Fraction:
    """Variance of the estimate at σ = k = 1, or the mean of w₂(P)² of so many rows.

    Squared norms of normal rows of two numbers of variance ½ are exponential: P(the largest of d is
    above x) is Σ ±C(d, j)e^(−jx), j from 1 on.
    """
    if use == _GIVEN:
        return variance(_estimate(v, 1, Fraction(1)))
    d = len(v)
    return sum((Fraction((-1) ** (j + 1) * comb(d, j), j) for j in range(1, d + 1)), Fraction(0))


def _cross(v: tuple[int, ...], k: int, sigma: Fraction) -> Fraction:
    """Variance of 2⟨vP, Δ − Δ′⟩: k independent products of mean 0."""
    projected = sum_of(*[_scaled(_NORMAL, c * _ROOT[k]) for c in v])
    noise = _scaled(_NORMAL, sigma)
    return 4 * k * moment(projected, 2) * moment(sum_of(noise, noise), 2)


def _decomposed(u: tuple[int, ...], n: tuple[int, ...], k: int, sigma: int) -> int:
    cross = 2 * sum(a * b for a, b in zip(u, n, strict=True))
    return _length(u) + cross + _length(n) - 2 * k * sigma**2


def chi_square(k: int, x: arb) -> arb:
    """P(χ² of k degrees > x), k even; 1 at negative x."""
    half = x / 2
    if not half > 0:
        return arb(1)
    return (-half).exp() * sum((half**i / factorial(i) for i in range(k // 2)), arb(0))


def outside(k: int, width: Any) -> arb:
    """P(|χ²/k − 1| > width)."""
    x = number(width)
    return chi_square(k, k * (1 + x)) + 1 - chi_square(k, k * (1 - x))


def _jl_holds(r: int, width: Fraction) -> tuple[arb, arb]:
    return outside(r, width), 2 * (-r * number(width) ** 2 / 8).exp()


def _deviation(
    jl: Fraction, chi: Fraction, normal: Fraction, k: int, sigma: Fraction, r: Fraction
) -> arb:
    j, c, n, s, length = (number(x) for x in (jl, chi, normal, sigma, r))
    noise = 4 * s**2 * (arb(k).sqrt() * c + c**2)
    return j * length**2 + noise + 4 * s * (1 + j) * n * length


def _deviation_fails(f: Any, *case: Any) -> tuple[arb, arb]:
    """P(estimate off by more than the bound), and the sum of the three δ as the paper has them.

    The estimate is (r²/k + 2σ²)·χ² − 2kσ², as all coordinates are normal given the data.
    """
    jl, chi, normal, k, sigma, r = case
    bound = f(*case)
    variance = number(r) ** 2 / k + 2 * number(sigma) ** 2
    fails = outside(k, bound / (k * variance))
    n = number(normal)
    allowed = (
        2 * (-k * number(jl) ** 2 / 6).exp()
        + 2 * (-(number(chi) ** 2)).exp()
        + (-(n**2)).exp() / (n * arb.pi().sqrt())
    )
    return fails, allowed


def _chi_bound(k: int, x: Fraction) -> arb:
    return k + 2 * (k * number(x)).sqrt() + 2 * number(x)


def _union(f: Any, n: int, width: Fraction) -> tuple[arb, arb]:
    """Mean number of pairs that are distorted by more than the width, at most 1."""
    k = 2 * (int(float(f(n, width))) // 2 + 1)
    return comb(n, 2) * outside(k, width), arb(1)


_CASES = [
    ((2,), 1, Fraction(1, 2)),
    ((1, 2), 1, Fraction(1)),
    ((1, -1, 2), 1, Fraction(1, 3)),
    ((3,), 4, Fraction(1)),
]
*_U, _A, _B, _S = letters("u v a b s")
_N = (_A, _B)
_DEVIATIONS = [
    (Fraction(jl), Fraction(c), Fraction(n), k, Fraction(s), Fraction(10))
    for jl, c, n in (("2/5", "2", "2"), ("9/20", "3", "3"))
    for k in (64, 256)
    for s in ("1/2", "5")
]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="slides2025.page-8.dimension",
        where="Johnson-Lindenstrauss Lemma: Formal Statement",
        text="k = 16·ln(n)/ε² suffices for all pairs of n points: O(log n/ε²).",
        conditions="the constant under O is appendix C's with a union bound",
        printed=lambda n, width: 16 * arb(n).log() / number(width) ** 2,
        check=at_most(
            _union,
            [(n, Fraction(e)) for n in (3, 10, 100) for e in ("1/2", "9/10")],
            "enclosure",
        ),
        reason="from ε = 1 on the map to 0 does",
    ),
    Statement(
        id="slides2025.page-8.binary",
        where="Johnson-Lindenstrauss Lemma: Formal Statement, last item",
        text="Signs do what normal entries do: squared distances are right in the mean.",
        printed=lambda v, k: Fraction(_length(v)),
        check=equals(
            lambda v, k: moment(_estimate(v, k, Fraction(0), _SIGNS), 1),
            [((1, 2), 1), ((1, 2, -3), 4)],
            "enumeration",
        ),
    ),
    Statement(
        id="slides2025.page-14.estimate",
        where="Utility – Preserving Distances with Noise, displayed formula",
        text="The noise adds 2kσ² to the squared distance in the mean.",
        printed=lambda v, k, sigma: 2 * k * sigma**2,
        check=equals(
            lambda v, k, sigma: moment(_estimate(v, k, sigma), 1) - _length(v),
            _CASES,
            "enumeration",
        ),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="slides2025.page-14.expectation",
        where="Utility – Preserving Distances with Noise, first item",
        text="Squared distances of noisy projections are right in the mean.",
        conditions="not stated: before or after the correction of the second item",
        printed=lambda v, k, sigma: Fraction(_length(v)),
        readings={
            "after 2kσ² is subtracted": Reading(
                lambda v, k, sigma: _length(v) + 2 * k * sigma**2,
                place="the next item, which “removes the expected noise contribution”",
                covers="the estimate of the slide, 2kσ² taken off",
            )
        },
        check=equals(lambda v, k, sigma: moment(_estimate(v, k, sigma), 1), _CASES, "enumeration"),
        reason=(
            "Distances of noisy projections are too large by 2kσ² in the mean. The next item on "
            "the slide takes that off."
        ),
        instead="Subtract 2kσ².",
    ),
    Statement(
        id="slides2025.page-19.dimension",
        where="Theoretical Guarantees, error bounds",
        text="Error bounds don't depend on the dimension of the data: neither the variance for a "
        "given distance, nor σ² in units of that for one attribute.",
        conditions="not stated: that σ is given; normal rows of two numbers, at the mean of w₂(P)²",
        printed=lambda use, v: _printed_variance((2,), 1, Fraction(1)) if use == _GIVEN else 1,
        readings={
            "for given σ": Reading(
                lambda use, v: _printed_variance((2,), 1, Fraction(1)) if use == _GIVEN else None,
                place="appendix B, whose bound has σ and not d: “4σ(1 + λ_JL)λ_N‖x − y‖₂”",
                covers="the formulas of appendix B",
            )
        },
        check=equals(
            _of_dimension,
            [
                *((_GIVEN, v) for v in ((2,), (2, 0, 0), (1, 1, 1, 1))),
                ("σ of appendix A", (1, 1, 1, 1)),
            ],
            "enumeration",
        ),
        reason=(
            "Appendix A's σ is in proportion to w₂(P), the longest of one row an attribute. At k "
            "= 64, ε = 1, δ = 10⁻⁶ and ‖x − y‖² = 10 the variance is 0.67 million for 10 "
            "attributes and 1.80 million for 10⁶, at the median of w₂(P)."
        ),
        instead="Take σ from the P that was drawn, of signs if it may be chosen: their rows have "
        "one length.",
    ),
    Statement(
        id="slides2025.appendix-b.unbiased",
        where="appendix B, unbiasedness",
        text="E‖xP + Δ − (yP + Δ′)‖² − 2kσ² = ‖x − y‖².",
        printed=lambda v, k, sigma: Fraction(_length(v)),
        check=equals(
            lambda v, k, sigma: moment(_estimate(v, k, sigma), 1) - 2 * k * sigma**2,
            _CASES,
            "enumeration",
        ),
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="slides2025.appendix-b.decomposition",
        where="appendix B, variance decomposition",
        text="The estimate is Z₁ + Z₂ + Z₃: projection, cross term, centred noise.",
        printed=_decomposed,
        check=equals(
            lambda u, n, k, sigma: (
                sum((a + b) ** 2 for a, b in zip(u, n, strict=True)) - 2 * k * sigma**2
            ),
            [(_U, _N, 2, _S)],
            "identity",
        ),
        reason="The slide calls the estimate, not its difference from the truth, the error.",
    ),
    Statement(
        id="slides2025.appendix-b.variance",
        where="appendix B, variance formula",
        text="The variance is 2‖x − y‖⁴/k + 8σ²‖x − y‖² + 8σ⁴k.",
        conditions="not stated: the law of P's entries; our text has lost what stands before "
        "[error], and Var is read",
        printed=lambda entries, v, k, sigma: _printed_variance(v, k, sigma),
        readings={
            "for normal entries": Reading(
                lambda entries, *case: _printed_variance(*case) if entries == "normal" else None,
                place="appendix C, whose projection has entries “∼ N(0,1)”",
                covers="the projection of the appendices and of the paper that they summarise",
            )
        },
        check=equals(
            _variance_of,
            [(entries, *case) for entries in ("normal", "signs") for case in _CASES],
            "enumeration",
        ),
        mechanisms=("dp-rp-g",),
        reason="With signs, which page 8 names too, the first term is 2(‖x − y‖⁴ − ‖x − y‖₄⁴)/k: "
        "less variance. The formula is that of normal entries.",
        instead="For signs use 2(‖x − y‖⁴ − ‖x − y‖₄⁴)/k for the first term.",
    ),
    Statement(
        id="slides2025.appendix-b.variance.projection",
        where="appendix B, variance formula, term 1",
        text="Var Z₁ = 2‖x − y‖⁴/k.",
        conditions="not stated: the law of P's entries",
        printed=lambda entries, v, k: 2 * Fraction(_length(v)) ** 2 / k,
        readings={
            "for normal entries": Reading(
                lambda entries, v, k: (
                    2 * Fraction(_length(v)) ** 2 / k if entries == "normal" else None
                ),
                place="appendix C, whose projection has entries “∼ N(0,1)”",
                covers="the projection of the appendices and of the paper that they summarise",
            )
        },
        check=equals(
            lambda entries, v, k: _variance_of(entries, v, k, Fraction(0)),
            [
                (entries, v, k)
                for entries in ("normal", "signs")
                for v, k in (((2,), 1), ((1, 2), 4), ((1, -1, 3), 1))
            ],
            "enumeration",
        ),
        reason="With signs, which page 8 names too, it is 2(‖x − y‖⁴ − ‖x − y‖₄⁴)/k: less "
        "variance. For one number that differs it is 0.",
        instead="For signs use 2(‖x − y‖⁴ − ‖x − y‖₄⁴)/k.",
    ),
    Statement(
        id="slides2025.appendix-b.variance.cross",
        where="appendix B, variance formula, term 2",
        text="Var Z₂ = 8σ²‖x − y‖².",
        printed=lambda v, k, sigma: 8 * sigma**2 * _length(v),
        check=equals(_cross, _CASES, "enumeration"),
    ),
    Statement(
        id="slides2025.appendix-b.variance.noise",
        where="appendix B, variance formula, term 3",
        text="Var Z₃ = 8σ⁴k.",
        printed=lambda k, sigma: 8 * sigma**4 * k,
        check=equals(
            lambda k, sigma: variance(_estimate((0,), k, sigma)),
            [(1, Fraction(1)), (4, Fraction(1, 2))],
            "enumeration",
        ),
    ),
    Statement(
        id="slides2025.appendix-b.deviation",
        where="appendix B, deviation bound",
        text="The estimate is off by more than the bound with at most the three δ in sum.",
        conditions="the slide has no δ for each λ: those, and λ_JL < ½, are where it sends one, "
        "“See Section 3.2.2 of the paper for full details”",
        printed=_deviation,
        check=at_most(_deviation_fails, _DEVIATIONS, "enclosure"),
    ),
    Statement(
        id="slides2025.appendix-b.deviation.noise",
        where="appendix B, deviation bound, second term",
        text="|Z₃| > 4σ²(√k·λ + λ²) with probability at most 2·exp(−λ²); σ = 1.",
        printed=lambda k, x: 4 * (arb(k).sqrt() * number(x) + number(x) ** 2),
        check=at_most(
            lambda f, k, x: (outside(k, f(k, x) / (2 * k)), 2 * (-(number(x) ** 2)).exp()),
            [(k, Fraction(x)) for k in (2, 16, 64) for x in ("1", "2", "3")],
            "enclosure",
        ),
    ),
    Statement(
        id="slides2025.appendix-b.deviation.cross",
        where="appendix B, deviation bound, third term",
        text="|Z₂| > 4σλ√Z₁ with probability at most exp(−λ²)/(λ√π); σ = Z₁ = 1.",
        printed=lambda x: 4 * number(x),
        check=at_most(
            lambda f, x: (
                2 * cdf(-f(x) / arb(8).sqrt()),
                (-(number(x) ** 2)).exp() / (number(x) * arb.pi().sqrt()),
            ),
            [(Fraction(x),) for x in ("1/2", "1", "4")],
            "enclosure",
        ),
    ),
    Statement(
        id="slides2025.appendix-c.johnson-lindenstrauss",
        where="appendix C, second item",
        text="‖Mx‖²/r is within 1 ± λ of ‖x‖² but for probability 2·exp(−rλ²/8).",
        conditions="not stated: the range of λ",
        printed=lambda: [(20, Fraction(4))],
        readings={
            "for λ below 1": Reading(
                lambda: [
                    (r, Fraction(x))
                    for r, x in (
                        *((20, "99/100"), (100, "1/2"), (100, "99/100")),
                        *((1000, "1/10"), (1000, "1/2")),
                    )
                ],
                place="the line itself, “(1 − λ)‖x‖²”, a lower end that is below 0 for a larger λ",
                covers="the η of the graphs, a share of a cut",
            )
        },
        check=wherever(_jl_holds, "enclosure"),
        reason=(
            "The tail of χ² falls off more slowly than e^(−rλ²/8). At λ = 4 and r = 20 it is "
            "fatter than printed. For λ below 1 it holds."
        ),
        instead="Use λ below 1.",
    ),
    Statement(
        id="slides2025.appendix-c.scale",
        where="appendix C, second item: the factor before ‖Mx‖²",
        text="The factor that makes the mean of ‖Mx‖² equal ‖x‖².",
        reason="our text has 1/π, and the slide may well have the 1/r of appendix E, with which "
        "appendix-c.johnson-lindenstrauss is judged",
    ),
    Statement(
        id="slides2025.appendix-c.gaussian-tail",
        where="appendix C, tail bounds",
        text="P(|N(0, 1)| > t) ≤ exp(−t²/2), t ≥ 0.",
        printed=lambda t: (-(number(t) ** 2) / 2).exp(),
        check=at_most(
            lambda f, t: (2 * cdf(-number(t)), f(t)),
            [(Fraction(t),) for t in ("1/10", "1", "5")],
            "enclosure",
            ends=[(Fraction(0),)],
        ),
    ),
    Statement(
        id="slides2025.appendix-c.chi-square",
        where="appendix C, tail bounds",
        text="P(χ²_k > k + 2√(kx) + 2x) ≤ exp(−x).",
        printed=_chi_bound,
        check=at_most(
            lambda f, k, x: (chi_square(k, f(k, x)), (-number(x)).exp()),
            [(k, Fraction(x)) for k in (2, 10, 64) for x in ("1/10", "1", "10")],
            "enclosure",
        ),
    ),
)
