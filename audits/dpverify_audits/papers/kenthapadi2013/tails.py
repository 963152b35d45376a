"""Appendix A: chi-square and normal tails, and inner products with Gaussian noise.

Chi-square tails of even degree 2m are finite sums, P(χ² > x) = e^(−x/2) Σ_{i<m} (x/2)ⁱ/i!. Normal
tails are integrals of the density; 40 standard deviations leave less than 10⁻³⁰⁰.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import factorial, log
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import cdf, density, integral, number
from dpverify.ledger.statements import Correction, Statement

__all__ = ["CLAIMS", "chi_square_above"]

_POINTS = [(Fraction(x), Fraction(s)) for x in ("1/10", "4/5", "2", "6") for s in ("1/2", "1", "3")]
_NEAR = [(x, s) for x, s in _POINTS if x < 4 * s]  # farther, 1 − Φ has lost its digits
_DEGREES = [(k, Fraction(x)) for k in (2, 10, 64) for x in ("1/100", "1", "10")]
_LARGEST = [(n, k, x) for n in (1, 2, 1000) for k, x in _DEGREES if x > log(n)]


def chi_square_above(k: int, x: Any) -> arb:
    """P(χ² of k degrees > x), k even."""
    half = number(x) / 2
    return (-half).exp() * sum((half**i / factorial(i) for i in range(k // 2)), arb(0))


def _largest_above(n: int, k: int, x: arb) -> arb:
    """P(the largest of n χ² of k degrees > x)."""
    return 1 - (1 - chi_square_above(k, x)) ** n


def _above(x: Any, sigma: Any) -> arb:
    """P(N(0, σ²) > x)."""
    t = number(x) / number(sigma)
    return integral(density, t, abs(t) + 40)


def _inside(x: Fraction, sigma: Fraction) -> arb:
    return 1 - 2 * _above(x, sigma)


def _exponential(x: Fraction, sigma: Fraction) -> arb:
    return (-number(x * x / (2 * sigma * sigma))).exp()


def _mills(x: Any, sigma: Fraction) -> arb:
    t = number(x) / number(sigma)
    return 2 / (t * (2 * arb.pi()).sqrt()) * (-t * t / 2).exp()


_X_LAW = ((Fraction(1, 4), (0, 0)), (Fraction(1, 2), (1, 2)), (Fraction(1, 4), (3, -1)))
_THREE = {-1: Fraction(1, 6), 0: Fraction(2, 3), 1: Fraction(1, 6)}
"""Times √3σ, the moments of N(0, σ²) up to order 5."""


_LOPSIDED = {-1: Fraction(1, 4), 0: Fraction(2, 3), 3: Fraction(1, 12)}
"""Mean and variance of N(0, 1); a mean of 0 is no accident of symmetry."""


def _norm_moment(order: int) -> Fraction:
    """E‖X‖^(2·order) of the law above, which is not of one length."""
    return sum((p * Fraction(a * a + b * b) ** order for p, (a, b) in _X_LAW), Fraction(0))


def _product_moment(order: int, variance: Fraction) -> Fraction:
    """E⟨X, Y⟩^order, order 2 or 4, enumerated."""
    total = sum(
        (
            p * _THREE[u] * _THREE[v] * (a * u + b * v) ** order
            for (p, (a, b)), u, v in product(_X_LAW, _THREE, _THREE)
        ),
        Fraction(0),
    )
    return total * (3 * variance) ** (order // 2)


def _product_mean(law: Sequence[tuple[Fraction, tuple[int, int]]]) -> Fraction:
    """E⟨X, Y⟩ for a lopsided Y of mean 0, enumerated."""
    return sum(
        (
            p * _LOPSIDED[u] * _LOPSIDED[v] * (a * u + b * v)
            for (p, (a, b)), u, v in product(law, _LOPSIDED, _LOPSIDED)
        ),
        Fraction(0),
    )


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.lemma-4.one",
        where="appendix A, proof of lemma 4",
        text="P(χ²ₖ ≥ k + 2√(kx) + 2x) ≤ e^(−x).",
        printed=lambda k, x: k + 2 * (k * number(x)).sqrt() + 2 * number(x),
        check=at_most(
            lambda f, k, x: (chi_square_above(k, f(k, x)), (-number(x)).exp()),
            _DEGREES,
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-4.root",
        where="appendix A, proof of lemma 4, last display",
        text="√(k + 2√(kx) + 2x) < √k + √(2x).",
        printed=lambda k, x: arb(k).sqrt() + (2 * number(x)).sqrt(),
        check=at_most(
            lambda f, k, x: ((k + 2 * (k * number(x)).sqrt() + 2 * number(x)).sqrt(), f(k, x)),
            _DEGREES,
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-4",
        where="appendix A, lemma 4",
        text="Of n χ²ₖ, the root of the largest is above √k + √(2x) with probability below "
        "n e^(−x).",
        printed=lambda n, k, x: n * (-number(x)).exp(),
        check=at_most(
            lambda f, n, k, x: (
                _largest_above(n, k, (arb(k).sqrt() + (2 * number(x)).sqrt()) ** 2),
                f(n, k, x),
            ),
            _LARGEST,
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-5.first",
        where="appendix A, lemma 5, first bound",
        text="P(|N(0, σ²)| ≥ x) ≤ exp(−x²/2σ²).",
        printed=_exponential,
        check=at_most(
            lambda f, x, s: (1 - _inside(x, s), f(x, s)),
            _POINTS,
            "quadrature",
            ends=[(Fraction(0), Fraction(1))],
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-5.second",
        where="appendix A, lemma 5, second bound",
        text="P(|N(0, σ²)| ≥ x) ≤ 2σ/(x√(2π))·exp(−x²/2σ²).",
        printed=_mills,
        check=at_most(lambda f, x, s: (1 - _inside(x, s), f(x, s)), _POINTS, "quadrature"),
    ),
    Statement(
        id="kenthapadi2013.lemma-5.crossing",
        where="appendix A, lemma 5, last sentence",
        text="From x = 0.8σ on, the second bound is the stronger: there 2σ/(x√(2π)) ≤ 1.",
        printed=lambda s: Fraction(4, 5) * s,
        check=at_most(
            lambda f, s: (number(s) * (2 / arb.pi()).sqrt(), f(s)),
            [(Fraction(1, 2),), (Fraction(1),), (Fraction(3),)],
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-5.left",
        where="appendix A, proof of lemma 5, first display, first line",
        text="P(X < −x) = Φ(−x/σ).",
        printed=lambda x, s: cdf(-number(x) / number(s)),
        check=equals(lambda x, s: _above(x, s), _POINTS, "quadrature"),
    ),
    Statement(
        id="kenthapadi2013.lemma-5.right",
        where="appendix A, proof of lemma 5, first display, second line",
        text="P(X > −x) = 1 − Φ(x/σ) for X ~ N(0, σ²).",
        printed=lambda x: -x,
        corrections={
            "P(X > x) = 1 − Φ(x/σ)": Correction(
                lambda x: x,
                place="the next line, which goes on with P(X > x)",
                change="the sign of x",
            )
        },
        check=equals(
            lambda x, s: 1 - cdf(number(x / s)),
            _NEAR,
            "quadrature",
            of=lambda formula: lambda x, s: _above(formula(x), s),
        ),
        reason="The sign is lost: P(X > −x) is above ½. The next line goes on with P(X > x).",
        instead="Nothing: the lemma stands.",
    ),
    Statement(
        id="kenthapadi2013.lemma-5.error-function",
        where="appendix A, proof of lemma 5, second display",
        text="P(|X| < x) = erf(x/σ√2).",
        printed=lambda x, s: (number(x / s) / arb(2).sqrt()).erf(),
        check=equals(_inside, _POINTS, "quadrature"),
    ),
    Statement(
        id="kenthapadi2013.lemma-6.mean",
        where="appendix A, lemma 6",
        text="E⟨X, Y⟩ = 0 for Gaussian Y independent of X.",
        printed=lambda law: Fraction(0),
        check=equals(_product_mean, [(_X_LAW,), (_X_LAW[1:2],)], "enumeration"),
    ),
    Statement(
        id="kenthapadi2013.lemma-6.variance",
        where="appendix A, lemma 6, over X",
        text="Var⟨X, Y⟩ = σ²E‖X‖².",
        printed=lambda v: v * _norm_moment(1),
        check=equals(
            lambda v: _product_moment(2, v), [(Fraction(1),), (Fraction(2),)], "enumeration"
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-6",
        where="appendix A, lemma 6",
        text="⟨X, Y⟩ is N(0, σ²‖X‖²) given X: its fourth moment over X is 3σ⁴E‖X‖⁴.",
        printed=lambda v: 3 * v * v * _norm_moment(2),
        check=equals(
            lambda v: _product_moment(4, v), [(Fraction(1),), (Fraction(2),)], "enumeration"
        ),
        reason="over X it is a mixture, and not normal",
    ),
)
