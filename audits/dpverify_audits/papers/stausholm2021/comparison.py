"""Sections 1.2, 2.1.1, 6.2 and 7: times, and whose variance is smaller.

O(·) is tried with constant 1 in times, and with the constants of the exact variances: noise adds
16b²‖z‖² + 56kb⁴ (Laplace, b² = s/ε²), 8σ²‖z‖² + 8kσ⁴ (Gaussian at the output), and what
`noise_at_input` has for Gaussian noise at the input of the fast transform. ε = 1 throughout.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.oracles import chi_square, integral, number
from dpverify.ledger.statements import Correction, Reading, Statement

from .technical import CASES, IID, added_to_gaussian, noisy, of
from .transforms import power, sjlt

__all__ = ["CLAIMS", "noise_at_input"]

_F = Fraction
_USED_BY = ("sjlt",)
_SHARES = [(_F(1, 10), _F(1, 1000)), (_F(1, 4), _F(1, 10**6))]  # α, β
_SPARSE = [
    (s, k, _F(norm), _F(squared))
    for s in (1, 4, 16)
    for k, squared in ((1000, "1.18"), (64, "1.45"))
    for norm in (0, 1, 1000)
]
"""With a Δ₂² that about half of all P exceed where d is 10⁴, and 65."""
_SIDES = [_F(1, 100), _F(99, 100), _F(101, 100), _F(100)]
"""Where an inequality is decided, in units of its threshold."""
_FAST = [(s, k, d, _F(norm)) for s in (4, 16) for k in (8, 64) for d in (128, 1024)
         for norm in (0, 1, 1000)]  # fmt: skip


def _laplace(s: int, k: int, norm: Fraction) -> Fraction:
    return 16 * s * norm + 56 * k * s * s


def _gaussian(variance: Any, k: int, norm: Fraction) -> Any:
    return 8 * variance * number(norm) + 8 * k * variance**2


def noise_at_input(variance: Any, k: int, d: int, norm: Fraction) -> Any:
    """What noise at the fast transform's input adds to the variance at q = 1, exactly.

    Lemma 11's last display, 2‖z + w‖⁴/k for w = η − μ, averaged over w, with the variance of
    ‖z + w‖², less 2‖z‖⁴/k.
    """
    spread = (4 * d + 8) * variance * number(norm) + 4 * (d * d + 2 * d) * variance**2
    return 2 * spread / k + 8 * variance * number(norm) + 8 * d * variance**2


def _classical(rest: Any) -> Any:
    """σ² = 2 ln(1.25/δ) from ln(1/δ)."""
    return 2 * (rest + number(_F(5, 4)).log())


def _sparsity(alpha: Fraction, beta: Fraction) -> arb:
    return -number(beta).log() / number(alpha)


def _dimension(alpha: Fraction, beta: Fraction) -> arb:
    return -number(beta).log() / number(alpha) ** 2


def _fast_time(alpha: Fraction, beta: Fraction, d: int) -> arb:
    """max{d·log d, dq·log(1/β)/α²} with q = min{log²(1/β)/d, 1}."""
    rest = -number(beta).log()
    q = rest**2 / d if rest**2 < d else arb(1)
    transform, product = arb(d).log() * d, d * q * _dimension(alpha, beta)
    return transform if transform > product else product


def _faster(alpha: Fraction, beta: Fraction, d: int) -> tuple[arb, arb]:
    """Steps of the fast and of the sparse transform."""
    return _fast_time(alpha, beta, d), _sparsity(alpha, beta) * d


def _range(low: float, high: float) -> list[tuple[Fraction, Fraction, int]]:
    """Lengths d in (low·log²(1/β)/α, β^(−high/α)), near both ends and between."""
    found = []
    for alpha, beta in _SHARES:
        least = float(low * (-number(beta).log()) ** 2 / number(alpha))
        most = float(high * _sparsity(alpha, beta).exp())
        found += [(alpha, beta, int(d)) for d in (1.01 * least + 1, 10 * least, 0.99 * most)]
    return found


def _mean_of_largest(k: int, d: int) -> arb:
    """E max_j ‖column_j‖² for d columns of k entries N(0, 1/k), k even; beyond 400 below 10⁻¹⁶⁰."""
    return integral(
        lambda x: 1 - (1 - chi_square(k, k * x)) ** d,
        0,
        400,
    )


def _touched(k: int, s: int, d: int, z: tuple[int, ...]) -> set[int]:
    """Numbers of non-zero products S_ij·x_j, over every draw."""
    return {
        sum(1 for row in m for e, x in zip(row, z, strict=True) if e and x) for m in sjlt(k, s, d)
    }


def _of_theorem_2(k: int, s: int, z: tuple[int, ...]) -> Fraction:
    noise = of("gaussian", 2, s)
    return _F(2 * power(z, 2) ** 2, k) + 8 * noise * power(z, 2) + 8 * noise**2 * k


def _one(values: set[int]) -> int:
    (value,) = values
    return value


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="stausholm2021.section-1.2.kenthapadi",
        where="section 1.2, first item: Var of Ê_iid with the σ of theorem 1",
        text="Noise adds 128·ln(1/δ)‖z‖² + 2048·ln²(1/δ)k; O(·) with its constants.",
        printed=lambda rest, k, norm: 128 * rest * norm + 2048 * rest**2 * k,
        check=equals(
            added_to_gaussian,
            IID,
            "enumeration",
            # theorem 1's σ² is 16 ln(1/δ), and the enumerated one step²/k
            of=lambda f: lambda k, z, step: f(_F(step * step, 16 * k), k, power(z, 2)),
        ),
    ),
    Statement(
        id="stausholm2021.section-1.2.improvement",
        where="section 1.2, first item; section 7, below the variance of Kenthapadi et al.",
        text="For δ < e^(−s) Laplace noise of scale √s/ε adds less than Gaussian noise does on an "
        "i.i.d. projection.",
        conditions="σ of note 1, with the Δ₂ of the P that was drawn",
        printed=lambda s, squared: _classical(arb(s)) * number(squared),
        readings={
            "with theorem 1’s σ": Reading(
                lambda s, squared: arb(16 * s),
                place="the same item, “we combine Theorems 1, 2 and Note 1”, and section 7, “the "
                "estimator from Theorem 2 by Kenthapadi et al.”: theorem 1 has its σ",
                covers="every δ < e^(−s), s and k: σ² is 16 ln(1/δ), above 16s",
            )
        },
        check=at_most(
            lambda f, s, k, norm, squared: (
                _laplace(s, k, norm),
                _gaussian(f(s, squared), k, norm),
            ),
            _SPARSE,
            "enclosure",
        ),
        mechanisms=_USED_BY,
        reason="With theorem 1’s σ it holds; with note 1’s it doesn’t always. A Δ₂² of 1.18, which "
        "half of all P exceed at k = 1000, d = 10⁴, is too small from s = 2 on. Note 1 says "
        "that its σ can replace theorem 1’s; but theorem 2, whose variance is compared, "
        "has a σ “independent of the realization of P”, which note 1’s isn’t.",
        instead="Choose by the exact variances, with the Δ₂ of your P: Laplace noise below "
        "δ = 1.25·exp(−√(7/4)·s/Δ₂²).",
    ),
    Statement(
        id="stausholm2021.section-1.2.exponent",
        where="section 1.2, first item; abstract; section 7",
        text="e^(−s) = β^(O(1/α)), here with s = log(1/β)/α and exponent 1/α.",
        printed=lambda alpha, beta: beta ** int(1 / alpha),
        check=equals(lambda *c: (-_sparsity(*c)).exp(), _SHARES, "enclosure"),
        reason="α is 1/10 and 1/4: the power of β is a product of fractions. A constant in s is "
        "one in the exponent.",
    ),
    Statement(
        id="stausholm2021.section-2.1.1.sensitivity",
        where="section 2.1.1, “only 1 in expectation”",
        text="E Δ₂ = 1, here squared, for d columns of k entries N(0, 1/k).",
        printed=lambda k, d: _F(1),
        corrections={
            "a column, squared": Correction(
                lambda k, d: _F(1) if d == 1 else None,
                proof="a column has k squares of mean 1/k",
            )
        },
        check=equals(
            _mean_of_largest, [(k, d) for d in (1, 2, 100) for k in (2, 16)], "quadrature"
        ),
        reason="The longest of d columns is longer in the mean: its square is 1.5 at k = d = 2. "
        "The squared length of one column has mean 1.",
        instead="Compute the longest column of the matrix that was drawn.",
    ),
    Statement(
        id="stausholm2021.theorem-3.variance",
        where="section 1.2, theorem 3, part 2, with its constants; b² = s/ε²",
        text="Var ≤ (2/k)‖z‖⁴ + 16b²‖z‖² + 56kb⁴.",
        printed=lambda k, s, z: (
            _F(2 * power(z, 2) ** 2, k)
            + 16 * _F(1, 12 * s) * power(z, 2)
            + 56 * k * _F(1, 12 * s) ** 2
        ),
        check=at_most(
            lambda f, k, s, z: (noisy(k, s, z, "laplace")[1], f(k, s, z)),
            [(k, s, z) for k, s, z, law in CASES if law == "laplace"],
            "enumeration",
        ),
        mechanisms=_USED_BY,
        reason="reached at x = y; the check's law stands for b² = 1/(12s)",
    ),
    Statement(
        id="stausholm2021.theorem-3.time",
        where="section 1.2, theorem 3, parts 4 and 5; sections 2.1 and 6.2.2",
        text="Sx takes s‖x‖₀ multiplications whatever S is, an update s.",
        printed=lambda k, s, d, z: s * sum(1 for a in z if a),
        check=equals(
            lambda *c: _one(_touched(*c)),
            [(k, s, 2, z) for k, s in ((2, 1), (4, 2), (4, 4)) for z in ((1, 0), (2, -1))],
            "enumeration",
        ),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.theorem-3.dimensions",
        where="section 1.2, theorem 3; abstract",
        text="k = Θ(α⁻² log(1/β)) and s = O(α⁻¹ log(1/β)) give 1 ± α with probability 1 − β.",
        reason="the constants are not given; Kane and Nelson 2014 is cited",
    ),
    Statement(
        id="stausholm2021.section-2.4.lower-bounds",
        where="section 2.4",
        text="Private inner products of k bits are off by Ω̃(√k), F₂ by Ω(1/ε).",
        reason="cited without constants; a bound for all mechanisms isn't tried by trying some",
    ),
    Statement(
        id="stausholm2021.corollary-2.unbiased",
        where="section 6.2, corollary 2",
        text="‖(Sx + η) − (Sy + μ)‖² exceeds ‖x − y‖² by 2kE[η²] in the mean.",
        printed=lambda k, s, z, law: 2 * k * of(law, 2, s),
        check=equals(
            lambda k, s, z, law: noisy(k, s, z, law)[0] - power(z, 2), CASES, "enumeration"
        ),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.section-6.2.3.same-variance",
        where="section 6.2.3: Gaussian noise on the sparse transform, by corollary 2",
        text="By corollary 2, a bound, it has the variance of theorem 2.",
        printed=_of_theorem_2,
        check=at_most(
            lambda f, k, s, z: (noisy(k, s, z, "gaussian")[1], f(k, s, z)),
            [(k, s, z) for k, s, z, law in CASES if law == "gaussian"],
            "enumeration",
        ),
        mechanisms=_USED_BY,
        reason="reached at x = y; elsewhere it is less by (2/k)‖z‖₄⁴",
    ),
    Statement(
        id="stausholm2021.section-7.fast-time",
        where="section 7, first display; lemma 8, last item",
        text="max{d·log d, dq·log(1/β)/α²} is at most max{d·log d, log³(1/β)/α²}.",
        printed=lambda alpha, beta, d: (-number(beta).log()) ** 3 / number(alpha) ** 2,
        check=at_most(
            lambda f, *c: (_fast_time(*c), f(*c)),
            # d·log d isn't the larger one
            [(a, b, d) for a, b in _SHARES for d in (16, 100)],
            "enclosure",
        ),
        reason="reached for d ≥ log²(1/β); below that q = 1",
    ),
    Statement(
        id="stausholm2021.section-7.time-above",
        where="section 7, second display",
        text="s·d > d·log d just where d < β^(−1/α); d one per cent to either side, and far off.",
        printed=lambda alpha, beta, d: d < (1 / beta) ** int(1 / alpha),
        check=equals(
            lambda alpha, beta, d: bool(_sparsity(alpha, beta) * d > arb(d).log() * d),
            [
                (*share, d * 10**zeros)
                for share, zeros in zip(_SHARES, (28, 22), strict=True)
                for d in (1, 99, 101, 10**6)
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="stausholm2021.section-7.time-below",
        where="section 7, third display",
        text="s·d > log³(1/β)/α² just where d > log²(1/β)/α; d near to either side, and far off.",
        printed=lambda alpha, beta, d: bool(number(beta).log() ** 2 / number(alpha) < d),
        check=equals(
            lambda alpha, beta, d: bool(
                _sparsity(alpha, beta) * d > (-number(beta).log()) ** 3 / number(alpha) ** 2
            ),
            [(*_SHARES[0], d) for d in (1, 477, 478, 10**6)]
            + [(*_SHARES[1], d) for d in (1, 763, 764, 10**6)],
            "enclosure",
        ),
    ),
    Statement(
        id="stausholm2021.equation-5",
        where="section 7, (5)",
        text="For log²(1/β)/α < d < β^(−1/α) the fast transform takes fewer steps.",
        printed=lambda: _range(1, 1),
        check=wherever(_faster, "enclosure"),
        mechanisms=("fjlt",),
        reason="with constant 1 in every O(·)",
    ),
    Statement(
        id="stausholm2021.section-7.first-inequality",
        where="section 7, fifth display; L = ln(1/δ)",
        text="d²L²/k > s²k just where L > sk/d; L one per cent to either side, and far off.",
        printed=lambda s, k, d, rest: rest > _F(s * k, d),
        check=equals(
            lambda s, k, d, rest: d**2 * rest**2 / k > s**2 * k,
            [(4, 8, 128, rest / 4) for rest in _SIDES] + [(16, 64, 1024, rest) for rest in _SIDES],
            "points",
        ),
    ),
    Statement(
        id="stausholm2021.section-7.second-inequality",
        where="section 7, sixth display; L = ln(1/δ)",
        text="dL‖z‖² > s‖z‖² just where L > s/d; L one per cent to either side, and far off.",
        printed=lambda s, d, norm, rest: rest > _F(s, d),
        check=equals(
            lambda s, d, norm, rest: d * rest * norm > s * norm,
            [(4, 128, 3, rest / 32) for rest in _SIDES] + [(16, 16, 1, rest) for rest in _SIDES],
            "points",
        ),
    ),
    Statement(
        id="stausholm2021.section-7.exponent",
        where="section 7, last display but one",
        text="e^(−sk/d) = β^(log(1/β)/(α³d)), the smaller of the two thresholds.",
        printed=lambda alpha, beta, d: (
            number(beta).log() * -number(beta).log() / (number(alpha) ** 3 * d)
        ).exp(),
        check=equals(
            lambda alpha, beta, d: (-_sparsity(alpha, beta) * _dimension(alpha, beta) / d).exp(),
            [(*share, d) for share in _SHARES for d in (10**4, 10**6)],
            "enclosure",
        ),
    ),
    Statement(
        id="stausholm2021.section-7.smaller-variance",
        where="section 7, “hence, in particular”",
        text="For ln(1/δ) > √(7/4)·sk/d, a constant in O(·), Laplace noise adds less than noise "
        "at the fast input.",
        conditions="σ = √(2 ln(1.25/δ))/ε, q = 1",
        printed=lambda s, k, d: arb(7).sqrt() / 2 * number(_F(s * k, d)),
        check=at_most(
            lambda f, s, k, d, norm: (
                _laplace(s, k, norm),
                noise_at_input(_classical(f(s, k, d)), k, d, norm),
            ),
            _FAST,
            "enclosure",
        ),
        reason="with 1 for the constant it fails just above the threshold: 114688 against 105707 "
        "at s = 16, k = 8, d = 128",
    ),
    Statement(
        id="stausholm2021.section-7.noise-at-input",
        where="section 7, “Clearly, Kenthapadi et al. always”",
        text="For k < d noise on i.i.d. projections adds less variance than noise at the fast "
        "input.",
        conditions="σ of note 1 for both, with the Δ₂ of the P that was drawn; q = 1",
        printed=lambda k, d, squared: squared,
        corrections={
            "for Δ₂² of at most d/k": Correction(
                lambda k, d, squared: squared if squared * k <= d else None,
                proof="8kΔ₂⁴σ⁴ is at most 8d²σ⁴/k then, and 8Δ₂²σ²‖z‖² at most 8(d/k)σ²‖z‖²",
            )
        },
        check=at_most(
            lambda f, rest, k, d, squared, norm: (
                None
                if (ratio := f(k, d, squared)) is None
                else (
                    _gaussian(_classical(rest) * number(ratio), k, norm),
                    noise_at_input(_classical(rest), k, d, norm),
                )
            ),
            [
                (arb(rest), k, d, _F(squared), _F(norm))
                for rest in (1, 14)
                for k, d, squared in (
                    (1, 2, "2"),
                    (1, 2, "1"),
                    (64, 128, "2"),
                    (64, 1024, "16"),
                    (127, 128, "1"),
                    (64, 65, "29/20"),
                )
                for norm in (0, 1, 1000)
            ],
            "enclosure",
        ),
        reason=(
            "“Always” leaves out the Δ₂ of note 1, which is the longest column’s. At k = 64 and "
            "d = 65 half of all P have a Δ₂² of 1.45 and more, with which the i.i.d. projection "
            "adds more at x = y. With theorem 1’s σ, about √8 times note 1’s, it does at k = 64 "
            "and d = 128 too."
        ),
        instead="Compute both for your P; for Δ₂² up to d/k the i.i.d. projection adds less.",
    ),
)
