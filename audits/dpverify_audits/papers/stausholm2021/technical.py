"""Sections 1.1, 1.2, 4 and 6.2, appendix A: the estimators with noise at the output.

Noise enters as the law of η − μ, which is symmetric whatever the law of η is. Its scale is chosen
so that projection and noise have one irrational factor in common (see `truth`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial, prod

from flint import arb

from dpverify.ledger.checks import at_most, equals, order
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import integral, number, rounded
from dpverify.ledger.statements import Correction, Reading, Statement

from .transforms import (
    GAUSSIAN,
    LAPLACE,
    Law,
    difference,
    image,
    moments,
    normal_matrix,
    power,
    sjlt,
)

__all__ = ["CASES", "CLAIMS", "IID", "added_to_gaussian", "noisy", "of"]

_SKEWED: Law = {-1: Fraction(2, 3), 2: Fraction(1, 3)}
_LAWS: dict[str, Law] = {"gaussian": GAUSSIAN, "laplace": LAPLACE, "skewed": _SKEWED}
CASES = [
    (k, s, z, law) for k, s in ((2, 1), (4, 2)) for z in ((1, 0), (0, 0), (2, -1)) for law in _LAWS
]
_USED_BY = ("sjlt",)


def of(law: str, order: int, s: int) -> Fraction:
    """E[η^order] for the law in units of 1/√s, the scale of the entries of S; order even."""
    total = sum((p * x**order for x, p in _LAWS[law].items()), Fraction(0))
    return total * Fraction(1, s ** (order // 2))


@cache
def noisy(k: int, s: int, z: tuple[int, ...], law: str) -> tuple[Fraction, Fraction]:
    """Mean and variance of ‖Sz + η − μ‖²."""
    return moments(image(sjlt(k, s, 2), z), Fraction(1, s), difference(_LAWS[law]))


@cache
def _plain(k: int, s: int, z: tuple[int, ...]) -> Fraction:
    return moments(image(sjlt(k, s, 2), z), Fraction(1, s))[1]


def _general_variance(k: int, s: int, z: tuple[int, ...], law: str) -> Fraction:
    m2, m4 = of(law, 2, s), of(law, 4, s)
    return _plain(k, s, z) + 8 * m2 * power(z, 2) + 2 * k * m4 + 2 * k * m2**2


def _fourth_moment(k: int, s: int, z: tuple[int, ...], law: str) -> Fraction:
    """Claim A, with E‖Sz‖⁴ = Var‖Sz‖² + ‖z‖⁴."""
    m2, m4 = of(law, 2, s), of(law, 4, s)
    kept = _plain(k, s, z) + power(z, 2) ** 2
    return kept + 4 * (k + 2) * m2 * power(z, 2) + 2 * k * m4 + 2 * k * (1 + 2 * k) * m2**2


def _of_difference(law: str, n: int, s: int) -> Fraction:
    """E[(η − μ)ⁿ] for even n, from the law of the difference."""
    total = sum((p * x**n for x, p in difference(_LAWS[law]).items()), Fraction(0))
    return total * Fraction(1, s ** (n // 2))


def _true_fourth_moment(k: int, s: int, z: tuple[int, ...], law: str) -> Fraction:
    mean, variance = noisy(k, s, z, law)
    return variance + mean**2


def _gaussian_projection(
    entry: Fraction, k: int, z: tuple[int, ...], step: int
) -> tuple[Fraction, Fraction, Fraction]:
    """σ², mean and variance of ‖Pz + η − μ‖², Pᵢⱼ ~ N(0, entry), σ² = step²·entry.

    η − μ is √(3·entry) times step times the difference of two three-point laws.
    """
    mean, variance = moments(image(normal_matrix(k, 2), z), 3 * entry, difference(GAUSSIAN, step))
    return step * step * entry, mean, variance


def added_to_gaussian(k: int, z: tuple[int, ...], step: int) -> Fraction:
    """What noise of variance step²/k adds to the variance for entries N(0, 1/k)."""
    entry = Fraction(1, k)
    return _gaussian_projection(entry, k, z, step)[2] - _gaussian_projection(entry, k, z, 0)[2]


def _left_mean(entry: Fraction, k: int, z: tuple[int, ...], step: int) -> Fraction:
    """Mean of ‖Pz + η − μ‖² − 2kσ²."""
    sigma2, mean, _ = _gaussian_projection(entry, k, z, step)
    return mean - 2 * k * sigma2


def _beside_noise(entry: Fraction, k: int, z: tuple[int, ...], step: int) -> Fraction:
    """Variance of that, less theorem 2's 8σ²‖z‖² + 8σ⁴k."""
    sigma2, _, variance = _gaussian_projection(entry, k, z, step)
    return variance - 8 * sigma2 * power(z, 2) - 8 * sigma2**2 * k


def _laplace_moment(n: int, b: Fraction) -> arb:
    """E[Lⁿ]; what lies beyond 400 b weighs less than 10⁻¹⁵⁰ at these orders."""
    if n % 2:
        return arb(0)  # by symmetry
    scale = number(b)
    return integral(lambda x: x**n * (-x / scale).exp() / scale, 0, 400 * scale)


def _gaussian_moment(n: int, sigma: Fraction) -> arb:
    deviation = number(sigma)
    scale = deviation * (2 * arb.pi()).sqrt()
    return 2 * integral(
        lambda x: x**n * (-x * x / (2 * deviation**2)).exp() / scale, 0, 40 * deviation
    )


def _bound_of_four(k: int, a: int, m2: int, m4: int) -> Fraction:
    """The right side of (4), a = ‖z‖²."""
    return Fraction(2 * a * a, k) + 8 * m2 * a + 2 * k * (m4 + m2 * m2)


def _best_dimension(a: int, m2: int, m4: int) -> int:
    """The k from 1 to 4000 at which (4) is least."""
    return min(range(1, 4001), key=lambda k: _bound_of_four(k, a, m2, m4))


def _crossing(stated: tuple[arb, Fraction], s: Fraction, k: int, norm: Fraction) -> tuple[arb, arb]:
    """Noise part of the variance at δ = threshold: of Laplace, and of Gaussian noise; Δ₂ = ε = 1.

    What is stated is the threshold, and the constant that the second is multiplied by.

    By lemma 3 and note 4: 16Δ₁²‖z‖² + 56kΔ₁⁴ with b = Δ₁, and 8σ²‖z‖² + 8kσ⁴, σ² = 2 ln(1.25/δ).
    """
    threshold, constant = stated
    variance = 2 * (number(Fraction(5, 4)) / threshold).log()
    laplace = 16 * s * norm + 56 * k * s**2
    gaussian = 8 * variance * number(norm) + 8 * k * variance**2
    return number(laplace), number(constant) * gaussian


IID = [(k, z, step) for k in (1, 2) for z in ((1, 0), (1, 1), (2, -1)) for step in (0, 1, 2)]
_CROSSINGS = [
    (Fraction(s), k, Fraction(norm))
    for s in (1, 2, 4, 16)
    for k in (8, 64)
    for norm in (0, 1, 1000)
]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="stausholm2021.theorem-2.unbiased",
        where="section 1.1, theorem 2, part 1",
        text="‖(Px + η) − (Py + μ)‖² − 2kσ² has mean ‖x − y‖², P of standard normal entries.",
        printed=lambda k: Fraction(1),
        corrections={
            "entries N(0, 1/k)": Correction(
                lambda k: Fraction(1, k),
                place="part 2 of the theorem, whose (2/k)‖x − y‖⁴ is that of entries N(0, 1/k); "
                "definition 4",
                change="1/k for the variance 1",
            )
        },
        check=equals(
            lambda k, z, step: Fraction(power(z, 2)),
            IID,
            "enumeration",
            of=lambda entry: lambda k, z, step: _left_mean(Fraction(entry(k)), k, z, step),
        ),
        mechanisms=("dp-rp-g",),
        reason="Sections 1.1 and 2.1 say standard normal; the mean of the estimate is then k‖x − "
        "y‖². With variance 1/k it is unbiased.",
        instead="Draw entries of variance 1/k.",
    ),
    Statement(
        id="stausholm2021.theorem-2.variance",
        where="section 1.1, theorem 2, part 2",
        text="Var = (2/k)‖z‖⁴ + 8σ²‖z‖² + 8σ⁴k, z = x − y, P of standard normal entries.",
        printed=lambda k: Fraction(1),
        corrections={
            "entries N(0, 1/k)": Correction(
                lambda k: Fraction(1, k),
                place="definition 4, by which E‖Sx‖² is ‖x‖²",
                change="1/k for the variance 1",
            )
        },
        check=equals(
            lambda k, z, step: 2 * Fraction(power(z, 2)) ** 2 / k,
            IID,
            "enumeration",
            of=lambda entry: lambda k, z, step: _beside_noise(Fraction(entry(k)), k, z, step),
        ),
        reason="With standard normal entries, as printed, the first two terms are k² and k times "
        "as large. With variance 1/k the formula is right.",
        instead="Draw entries of variance 1/k.",
        mechanisms=("dp-rp-g",),
    ),
    Statement(
        id="stausholm2021.definition-4.inner-products",
        where="section 3.3, after definition 4",
        text="(‖x‖² + ‖y‖² − ‖x − y‖²)/2 = ⟨x, y⟩, so E⟨Sx, Sy⟩ = ⟨x, y⟩.",
        printed=lambda x, y: Fraction(
            power(x, 2) + power(y, 2) - sum((a - b) ** 2 for a, b in zip(x, y, strict=True)), 2
        ),
        check=equals(
            lambda x, y: sum(
                (
                    p * Fraction(sum(u * v for u, v in zip(mx, my, strict=True)), 2)
                    for m, p in sjlt(4, 2, 2).items()
                    for mx, my in [
                        [
                            [sum(e * c for e, c in zip(row, v, strict=True)) for row in m]
                            for v in (x, y)
                        ]
                    ]
                ),
                Fraction(0),
            ),
            [((1, 2), (3, -1)), ((1, 1), (1, 0)), ((2, 1), (1, 3))],
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.lemma-3.unbiased",
        where="section 4, lemma 3, part 1; appendix A",
        text="E‖Sz + η − μ‖² = ‖z‖² + 2kE[η²].",
        printed=lambda k, s, z, law: power(z, 2) + 2 * k * of(law, 2, s),
        check=equals(lambda *c: noisy(*c)[0], CASES, "enumeration"),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.lemma-3.variance",
        where="section 4, lemma 3, part 2; appendix A",
        text="Var = Var‖Sz‖² + 8E[η²]‖z‖² + 2kE[η⁴] + 2kE[η²]².",
        conditions="zero mean; the check has a skewed law too",
        printed=_general_variance,
        check=equals(lambda *c: noisy(*c)[1], CASES, "enumeration"),
        mechanisms=_USED_BY,
    ),
    Statement(
        id="stausholm2021.appendix-a.fourth-moment",
        where="appendices A and A.0.1, claim A",
        text="E‖Sz + η − μ‖⁴ = E‖Sz‖⁴ + 4(k+2)E[η²]‖z‖² + 2kE[η⁴] + 2k(1+2k)E[η²]².",
        printed=_fourth_moment,
        check=equals(_true_fourth_moment, CASES, "enumeration"),
    ),
    Statement(
        id="stausholm2021.appendix-a.unfolded",
        where="appendix A.0.1, first display, the sum unfolded",
        text="E‖Sz + η − μ‖⁴ is E‖Sz‖⁴, 2Σ_{i,ℓ} 2E[η²]E(Sz)_ℓ², Σ E(η_i − μ_i)⁴, "
        "Σ_{i≠ℓ} E(η_i − μ_i)²E(η_ℓ − μ_ℓ)² and 4Σ E(η_i − μ_i)²E(Sz)_i²; the rest is 0.",
        printed=lambda k, s, z, law: (
            _plain(k, s, z)
            + power(z, 2) ** 2
            + 4 * k * of(law, 2, s) * power(z, 2)
            + k * _of_difference(law, 4, s)
            + k * (k - 1) * _of_difference(law, 2, s) ** 2
            + 4 * _of_difference(law, 2, s) * power(z, 2)
        ),
        check=equals(_true_fourth_moment, CASES, "enumeration"),
    ),
    Statement(
        id="stausholm2021.equation-8",
        where="appendix A, (8)",
        text="4kE[η²]·E‖Sz + η − μ‖² = 4kE[η²]‖z‖² + 8k²E[η²]².",
        printed=lambda k, s, z, law: (
            4 * k * of(law, 2, s) * power(z, 2) + 8 * k * k * of(law, 2, s) ** 2
        ),
        check=equals(
            lambda k, s, z, law: 4 * k * of(law, 2, s) * noisy(k, s, z, law)[0],
            CASES,
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.equation-7",
        where="appendix A, (6) and (7)",
        text="E[Ê²] = E‖Sz + η − μ‖⁴ + 4k²E[η²]² − 4kE[η²]·E‖Sz + η − μ‖².",
        printed=lambda k, s, z, law: (
            _true_fourth_moment(k, s, z, law)
            + 4 * k * k * of(law, 2, s) ** 2
            - 4 * k * of(law, 2, s) * noisy(k, s, z, law)[0]
        ),
        check=equals(
            # by (6): the variance, which a constant doesn't change, and the squared mean
            lambda k, s, z, law: noisy(k, s, z, law)[1] + power(z, 2) ** 2,
            CASES,
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.appendix-a.noise-difference",
        where="appendix A.0.1, second display",
        text="E(η − μ)⁴ = 2E[η⁴] + 6E[η²]².",
        printed=lambda law: 2 * of(law, 4, 1) + 6 * of(law, 2, 1) ** 2,
        check=equals(
            lambda law: sum((p * x**4 for x, p in difference(_LAWS[law]).items()), Fraction(0)),
            [(law,) for law in _LAWS],
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.note-4.laplace",
        where="section 4, note 4",
        text="E[Lⁿ] = n!·bⁿ for L ~ Lap(b) and all n.",
        printed=lambda n, b: factorial(n) * b**n,
        corrections={
            "0 for odd n": Correction(
                lambda n, b: factorial(n) * b**n if n % 2 == 0 else Fraction(0),
                place="the next line, which says “for even”",
                change="even for all n",
            )
        },
        check=equals(_laplace_moment, [(n, Fraction(3, 2)) for n in range(1, 7)], "quadrature"),
        reason="The printed value is E|L|ⁿ; odd moments of L are 0. The paper uses n = 2 and 4, "
        "where both are the same.",
        instead="Use it for n = 2 and 4, as the paper does.",
    ),
    Statement(
        id="stausholm2021.note-4.gaussian",
        where="section 4, note 4",
        text="E[Gⁿ] = (n−1)!!·σⁿ for G ~ N(0, σ²) and even n.",
        printed=lambda n, sigma: prod(range(1, n, 2)) * sigma**n,
        check=equals(_gaussian_moment, [(n, Fraction(3, 2)) for n in (2, 4, 6, 8)], "quadrature"),
    ),
    Statement(
        id="stausholm2021.equation-1.constants",
        where="section 4, (1), with its constants from lemma 3 and note 4",
        text="Gaussian noise adds 8σ²‖z‖² + 8kσ⁴.",
        printed=lambda k, s, z: (
            8 * of("gaussian", 2, s) * power(z, 2) + 8 * k * of("gaussian", 2, s) ** 2
        ),
        check=equals(
            lambda k, s, z: noisy(k, s, z, "gaussian")[1] - _plain(k, s, z),
            [(k, s, z) for k, s, z, law in CASES if law == "gaussian"],
            "enumeration",
        ),
    ),
    Statement(
        id="stausholm2021.equation-2.constants",
        where="section 4, (2), with its constants from lemma 3 and note 4",
        text="Laplace noise of scale b adds 16b²‖z‖² + 56kb⁴.",
        printed=lambda k, s, z: (
            16 * Fraction(1, 12 * s) * power(z, 2) + 56 * k * Fraction(1, 12 * s) ** 2
        ),
        check=equals(
            lambda k, s, z: noisy(k, s, z, "laplace")[1] - _plain(k, s, z),
            [(k, s, z) for k, s, z, law in CASES if law == "laplace"],
            "enumeration",
        ),
        mechanisms=_USED_BY,
        reason="the check's law stands for b² = 1/(12s)",
    ),
    Statement(
        id="stausholm2021.equation-3",
        where="section 4, note 5, (3)",
        text="Δ₁ < Δ₂√ln(1/δ) is the same as δ < exp(−Δ₁²/Δ₂²); δ one per cent to either "
        "side, Δ₁ = 2, 3, Δ₂ = 1, 2.",
        printed=lambda d1, d2: (-(number(d1) ** 2) / number(d2) ** 2).exp(),
        check=equals(
            lambda d1, d2, share: share < 1,
            [
                (Fraction(a), Fraction(b), Fraction(s, 100))
                for a, b in ((2, 1), (3, 2))
                for s in (99, 101)
            ],
            "enclosure",
            of=lambda f: (
                lambda d1, d2, share: bool(
                    number(d1) < number(d2) * (-(f(d1, d2) * number(share)).log()).sqrt()
                )
            ),
        ),
        reason="the left side is decided at each δ; the right one is which side δ is on",
    ),
    Statement(
        id="stausholm2021.section-6.2.3.smaller-variance",
        where="section 6.2.3, last sentence, by note 5",
        text="For δ below e^(−s), s = Δ₁²/Δ₂², Laplace noise gives the smaller variance.",
        conditions="σ = Δ₂√(2 ln(1.25/δ))/ε",
        printed=lambda s: ((-number(s)).exp(), Fraction(1)),
        readings={
            "up to a constant, 7/4": Reading(
                lambda s: ((-number(s)).exp(), Fraction(7, 4)),
                place="note 5, by which the sentence is: “Ignoring constants”",
                covers="every δ below e^(−s): 16s is at most 8σ², and 56s² at most 7/4 of 8σ⁴",
            )
        },
        check=at_most(lambda f, s, k, norm: _crossing(f(s), s, k, norm), _CROSSINGS, "enclosure"),
        mechanisms=_USED_BY,
        reason="At δ just below e^(−1), s = 1 and k = 8, Laplace noise adds 448 and Gaussian "
        "noise 383. The sentence has no “ignoring constants”, and needs none: it says “by Note "
        "5”, which has it.",
        instead="Choose by the exact variances: Laplace noise below δ = 1.25·exp(−√(7/4)·s).",
    ),
    Statement(
        id="stausholm2021.corollary-2",
        where="section 6.2, (4)",
        text="Var ≤ (2/k)‖z‖⁴ + 8E[η²]‖z‖² + 2k(E[η⁴] + E[η²]²).",
        printed=lambda k, s, z, law: (
            Fraction(2 * power(z, 2) ** 2, k)
            + 8 * of(law, 2, s) * power(z, 2)
            + 2 * k * (of(law, 4, s) + of(law, 2, s) ** 2)
        ),
        check=at_most(lambda f, *c: (noisy(*c)[1], f(*c)), CASES, "enumeration"),
        mechanisms=_USED_BY,
        reason="reached at x = y",
    ),
    Statement(
        id="stausholm2021.theorem-3.unbiased",
        where="section 1.2, theorem 3, the number taken off",
        text="‖(Sx + η) − (Sy + μ)‖² − 2ks/ε² has mean ‖x − y‖² for noise Lap(√s/ε).",
        printed=lambda k, s, e: 2 * k * s / e**2,
        corrections={
            "4ks/ε², as E[η²] = 2s/ε²": Correction(
                lambda k, s, e: 4 * k * s / e**2,
                place="corollary 2, which takes off 2kE[η²], with note 4’s E[η²] = 2s/ε²",
                change="4 for 2",
            )
        },
        check=equals(
            # at x = y, where only the noise is left: the law's unit is √12·b = √12·√s/ε
            lambda k, s, e: moments(
                image(sjlt(k, s, 2), (0, 0)), 12 * s / e**2, difference(LAPLACE)
            )[0],
            [(k, s, *letters("e")) for k, s in ((2, 1), (4, 2))],
            "identity",
        ),
        mechanisms=_USED_BY,
        reason="Corollary 2 with note 4 gives twice what theorem 3 takes off. With the printed "
        "number every estimate is too large by 2ks/ε².",
        instead="Subtract 4ks/ε².",
    ),
    Statement(
        id="stausholm2021.section-6.2.1.dimension",
        where="section 6.2.1, k = Θ(‖z‖²/√(E[η⁴] + E[η²]²))",
        text="That k minimises (4), with factor 1; to the nearest whole number.",
        printed=lambda a, m2, m4: number(Fraction(a)) / number(Fraction(m4 + m2**2)).sqrt(),
        check=equals(
            _best_dimension,
            [(9000, 2, 24), (4000, 1, 3), (77, 8, 384)],
            "enumeration",
            of=lambda f: lambda a, m2, m4: rounded(f(a, m2, m4), 0),
        ),
        reason="a Θ in the paper; every k up to 4000 is tried, for noise with moments m2 and m4",
    ),
    Statement(
        id="stausholm2021.section-6.2.1.laplace",
        where="section 6.2.1, k = Θ(νε²/Δ₁²) for Laplace noise",
        text="With Laplace noise of scale b = Δ₁/ε, k = ‖z‖²/b² minimises (4) up to a factor 6.",
        conditions="ν = ‖z‖², the distance that is looked for",
        printed=lambda a, b: Fraction(a, b * b),
        check=order(
            lambda a, b: _best_dimension(a, 2 * b**2, 24 * b**4),
            [(9000, 1), (4000, 2), (3600, 3)],
            "points",
            factor=6,
        ),
        reason="A Θ in the paper. Taken with factor 1, k is √28 = 5.3 times too large, and the "
        "variance at x = y as many times.",
    ),
)
