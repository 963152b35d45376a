"""Section 5: sketches with Laplace noise.

An unbiased estimator that is quadratic in the noise sees only its variance, so that a coin ±w of
the same variance w² = 2s² stands for noise of scale s. Write a = α/τ. At B = 2 and J = 1/2 the
buckets differ with probability 1/4, whence Var(Ĵ) ≥ 3/(4K), whatever the noise; and noise of scale
s adds more than s⁴/K. As s ≥ max(Ka, √(Ka))/ε up to constants, no K makes the error smaller than
the order of √a: theorem 5.1's rate a^(4/5) can't hold.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import integral, number
from dpverify.ledger.statements import Correction, Statement

from .laws import PAIRS, Items, averaged, bucket_law, jaccard

__all__ = ["CLAIMS", "estimate"]

_CASES = [(x, y, b) for x, y in PAIRS for b in (2, 3, 5)]
_EQUATED = [(3, Fraction(1, 100)), (7, Fraction(1, 10**6))]
_NOISY = [(*case, Fraction(w)) for case in _CASES for w in (1, 3)]


def estimate(square: Fraction, k: int, b: int, scale_square: Fraction) -> Fraction:
    """Equation 5, from the sum of squared differences and (Δ/ε)²."""
    top = (b * b - 1) * k - 6 * square + 24 * k * scale_square
    return top / ((b - 1) * (b + 1) * k)


def _noisy(x: Items, y: Items, b: int, w: Fraction) -> list[tuple[Fraction, tuple[Any, ...]]]:
    """One position's squared difference with coins ±w added, that is (Δ/ε)² = w²/2."""
    return [
        (weight / 4, ((u - v + m - n) ** 2, 1, b, w * w / 2))
        for (u, v), weight in bucket_law(x, y, b).items()
        for m, n in product((-w, w), repeat=2)
    ]


def _square(x: Items, y: Items, b: int) -> Fraction:
    law = bucket_law(x, y, b).items()
    return sum((weight * (u - v) ** 2 for (u, v), weight in law), Fraction(0))


def _noisy_square(x: Items, y: Items, b: int, w: Fraction) -> Fraction:
    return sum((weight * args[0] for weight, args in _noisy(x, y, b, w)), Fraction(0))


def _counts(b: int, j: int) -> tuple[int, int]:
    """How many values have two others, and one other, at distance j."""
    near = [sum(abs(u - v) == j for v in range(b)) for u in range(b)]
    return near.count(2), near.count(1)


def _farthest(b: int, differ: int) -> int:
    pairs = product(range(b), repeat=2)
    return differ * max(abs(u - v) for u, v in pairs)


def _laplace_variance(scale: Fraction) -> Any:
    s = number(scale)
    return integral(lambda x: x * x * (-x / s).exp() / s, 0, 200 * s)


def _least_square(a: Fraction) -> Fraction:
    """Square of the least order of error over K: 1/√K of the buckets, s²/√K of the noise; ε is 1.

    s² is Ka or (Ka)², whichever is larger. K runs over powers of 2.
    """
    sizes = (2**n for n in range(200))
    return min(Fraction(max(Fraction(1), k * a, (k * a) ** 2) ** 2 / k) for k in sizes)


def _rate(formula: Any, n: int) -> tuple[Any, Any]:
    """The claimed exponent of a, against what the least error does from a = 4⁻ⁿ to 4⁻²ⁿ."""
    fall = _least_square(Fraction(1, 4**n)) / _least_square(Fraction(1, 4 ** (2 * n)))
    exponent = Fraction(fall.numerator.bit_length() - fall.denominator.bit_length(), 2 * 2 * n)
    return formula(), exponent


def _noise_exponent(n: int) -> Fraction:
    """Of a in L² at ε = 1, L = max(aK, √(aK)), K = a^(−3/5) and a = 2^(−5n), for even n."""
    a, k = Fraction(1, 2 ** (5 * n)), 2 ** (3 * n)
    differing = a * k
    level = max(differing, Fraction(1, isqrt(differing.denominator)))
    return Fraction((level**2).denominator.bit_length() - 1, a.denominator.bit_length() - 1)


def _quotient(of_epsilon: Fraction, of_ratio: Fraction, epsilon: int, a: Fraction) -> Any:
    """One term of the error over the other, √(a/K) over (aK/ε)², at K = ε^x·(1/a)^y."""
    k = number(Fraction(epsilon)) ** number(of_epsilon) * number(1 / a) ** number(of_ratio)
    return (number(a) / k).sqrt() / (number(a) * k / epsilon) ** 2


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="aumuller2020.section-5.sensitivity",
        where="section 5",
        text="Sketches that differ in L positions are at most L(B − 1) apart in ℓ1.",
        printed=lambda b, differ: differ * (b - 1),
        check=at_most(
            lambda formula, b, n: (_farthest(b, n), formula(b, n)),
            [(2, 3), (3, 1), (5, 4)],
            "enumeration",
        ),
        mechanisms=("noisy-min-hash",),
    ),
    Statement(
        id="aumuller2020.equation-5",
        where="section 5, equation 5 and lemma 6",
        text="((B² − 1)K − 6·D² + 24K(Δ/ε)²)/((B² − 1)K) is an unbiased estimator of J.",
        printed=estimate,
        check=equals(
            lambda x, y, b, w: jaccard(x, y),
            [case for case in _NOISY if jaccard(*case[:2])],
            "enumeration",
            of=averaged(_noisy),
        ),
        mechanisms=("noisy-min-hash",),
    ),
    Statement(
        id="aumuller2020.lemma-6.variance",
        where="section 5, proof of lemma 6",
        text="Laplace noise of scale s has variance 2s².",
        printed=lambda scale: number(2 * scale**2),
        check=equals(_laplace_variance, [(Fraction(1),), (Fraction(7, 2),)], "quadrature"),
    ),
    Statement(
        id="aumuller2020.lemma-6.law",
        where="section 5, proof of lemma 6, step (1)",
        text="Different buckets are j apart with probability 2(B − j)/B.",
        printed=lambda b, j: Fraction(2 * (b - j), b),
        corrections={
            "2(B − j)/(B(B − 1))": Correction(
                lambda b, j: Fraction(2 * (b - j), b * (b - 1)),
                place="equation 5, which follows from the corrected law alone",
                change="B(B − 1) for B below the line",
            )
        },
        check=equals(
            lambda b, j: Fraction(2 * _counts(b, j)[0] + _counts(b, j)[1], b * (b - 1)),
            [(b, j) for b in (2, 3, 5) for j in range(1, b)],
            "enumeration",
        ),
        reason="Printed without the factor 1/(B − 1) for the other bucket; the probabilities "
        "would add up to B − 1. Equation 5 has it right.",
        instead="Use equation 5 as it is printed.",
    ),
    Statement(
        id="aumuller2020.lemma-6.counts",
        where="section 5, proof of lemma 6, reason for (1)",
        text="B − 2j buckets have two others at distance j, and 2j have one.",
        printed=lambda b, j: (b - 2 * j, 2 * j),
        corrections={
            "that if j ≤ B/2, else 0 and 2(B − j)": Correction(
                lambda b, j: (b - 2 * j, 2 * j) if 2 * j <= b else (0, 2 * (b - j)),
                proof="B − j buckets have another j above them, and as many j below",
            )
        },
        check=equals(_counts, [(b, j) for b in (2, 3, 5) for j in range(1, b)], "enumeration"),
        reason="Beyond j = B/2 the printed numbers are negative or too large. The sum that "
        "follows counts pairs, and is right.",
        instead="Count pairs at distance j: 2(B − j) of them.",
    ),
    Statement(
        id="aumuller2020.lemma-6.sum",
        where="section 5, proof of lemma 6",
        text="Σ j²(B − j) = B²(B + 1)(B − 1)/12.",
        printed=lambda b: Fraction(b * b * (b * b - 1), 12),
        check=equals(
            lambda b: sum(j * j * (b - j) for j in range(b)),
            [(b,) for b in range(2, 9)],
            "points",
        ),
    ),
    Statement(
        id="aumuller2020.lemma-6.square",
        where="section 5, proof of lemma 6",
        text="Buckets have mean squared difference (B − 1)²(B + 1)(1 − J)/6.",
        printed=lambda x, y, b: (b - 1) ** 2 * (b + 1) * (1 - jaccard(x, y)) / 6,
        corrections={
            "(B² − 1)(1 − J)/6": Correction(
                lambda x, y, b: (b * b - 1) * (1 - jaccard(x, y)) / 6,
                place="equation 5, whose factor of J is (B² − 1)K",
                change="the square of B − 1",
            )
        },
        check=equals(_square, _CASES, "enumeration"),
        reason="A factor B − 1 too much, from the missing division by B − 1 in step (1). "
        "Equation 5 is the estimate by the right value.",
        instead="Use equation 5 as it is printed.",
    ),
    Statement(
        id="aumuller2020.lemma-6.total",
        where="section 5, end of the proof of lemma 6",
        text="A position of noisy sketches has mean squared difference "
        "(B − 1)²(B + 1)(1 − J)/6 + 4(Δ/ε)².",
        printed=lambda x, y, b, w: (
            (b - 1) ** 2 * (b + 1) * (1 - jaccard(x, y)) / 6 + 4 * (w * w / 2)
        ),
        corrections={
            "(B² − 1)(1 − J)/6 + 4(Δ/ε)²": Correction(
                lambda x, y, b, w: (b * b - 1) * (1 - jaccard(x, y)) / 6 + 4 * (w * w / 2),
                place="equation 5, whose factor of J is (B² − 1)K",
                change="the square of B − 1",
            )
        },
        check=equals(_noisy_square, _NOISY, "enumeration"),
        reason=(
            "The line has one factor B − 1 too many, from step (1) of the proof. Rearranged it "
            "would not give equation 5; the corrected one does."
        ),
        instead="Use equation 5 as it is printed.",
    ),
    Statement(
        id="aumuller2020.theorem-5.1.error",
        where="section 5, proof of theorem 5.1",
        text="An error t in D² is an error 6t/((B − 1)(B + 1)K) in the estimate.",
        printed=lambda t, k, b: 6 * t / ((b - 1) * (b + 1) * k),
        check=equals(
            lambda t, k, b: (
                estimate(Fraction(0), k, b, Fraction(1)) - estimate(t, k, b, Fraction(1))
            ),
            [letters("t k b")],
            "identity",
        ),
    ),
    Statement(
        id="aumuller2020.theorem-5.1.differences",
        where="section 5, proof of theorem 5.1, first condition",
        text="Two sketches to compare differ in a share (α/τ)(1 − 1/B) of positions on average.",
        printed=lambda x, y, b, a: a * (1 - Fraction(1, b)),
        corrections={
            "(1 − J)(1 − 1/B)": Correction(
                lambda x, y, b, a: (1 - jaccard(x, y)) * (1 - Fraction(1, b)),
                place="the proof of lemma 1, “Pr(Xᵢ = 1) = (1 − J(x, y))(1 − 1/B)”",
            )
        },
        check=equals(
            lambda x, y, b, a: sum(w for (u, v), w in bucket_law(x, y, b).items() if u != v),
            [(*case, Fraction(1, 10)) for case in _CASES],
            "enumeration",
        ),
        reason=(
            "That is the share for neighbours, and the records to compare are arbitrary. Their "
            "sampling error is of the order 1/√K, not √(α/(τK))."
        ),
        instead="Plan for a sampling error of √((1 − J²)/K) at B = 2, whatever α/τ is.",
    ),
    Statement(
        id="aumuller2020.theorem-5.1.middle",
        where="section 5, proof of theorem 5.1",
        text="With n differing positions and noise within D the mixed terms are at most 4Dn.",
        printed=lambda b, n, d: 4 * d * n,
        corrections={
            "4D(B − 1)n": Correction(
                lambda b, n, d: 4 * d * (b - 1) * n,
                place="the sentence before: each term “contributes at most (B − 1)²”",
                change="a factor B − 1",
            )
        },
        check=at_most(
            lambda formula, b, n, d: (
                n * max(2 * (u - v) * 2 * d for u, v in product(range(b), repeat=2)),
                formula(b, n, d),
            ),
            [(2, 3, Fraction(1)), (3, 1, Fraction(1))],
            "enumeration",
        ),
        reason="A difference of buckets is up to B − 1, not 1. At B = 2, which the proof takes "
        "later, both are the same.",
        instead="Take B = 2, where both are the same.",
    ),
    Statement(
        id="aumuller2020.theorem-5.1.noise",
        where="section 5, proof of theorem 5.1, second condition",
        text="Noise of both sketches is within ln(4K/δ)·Δ/ε but for δ/2.",
        printed=lambda k, delta: (number(4 * k / delta)).log(),
        check=at_most(
            lambda formula, k, delta: (
                1 - (1 - (-formula(k, delta)).exp()) ** (2 * k),
                delta / 2,
            ),
            [(1, Fraction(1, 10)), (100, Fraction(1, 10**4))],
            "enclosure",
        ),
    ),
    Statement(
        id="aumuller2020.theorem-5.1.k",
        where="section 5, proof of theorem 5.1",
        text="√(a/K) = (aK/ε)² where K = ε^(4/5)·a^(−3/5): exponents of ε.",
        printed=lambda: Fraction(4, 5),
        check=equals(
            lambda e, a: arb(1),
            _EQUATED,
            "enclosure",
            of=lambda f: lambda e, a: _quotient(f(), Fraction(3, 5), e, a),
        ),
    ),
    Statement(
        id="aumuller2020.theorem-5.1.k-ratio",
        where="section 5, proof of theorem 5.1",
        text="√(a/K) = (aK/ε)² where K = ε^(4/5)·a^(−3/5): exponent of 1/a = τ/α.",
        printed=lambda: Fraction(3, 5),
        check=equals(
            lambda e, a: arb(1),
            _EQUATED,
            "enclosure",
            of=lambda f: lambda e, a: _quotient(Fraction(4, 5), f(), e, a),
        ),
    ),
    Statement(
        id="aumuller2020.theorem-5.1.second-term",
        where="section 5, proof of theorem 5.1",
        text="At K = (α/τ)^(−3/5) and ε = 1 the noise term is of the order (αK/τ)² = (α/τ)^(4/5).",
        printed=lambda: Fraction(4, 5),
        corrections={
            "αK/τ = (α/τ)^(2/5)": Correction(lambda: Fraction(2, 5), proof="1 − 3/5 = 2/5")
        },
        check=equals(_noise_exponent, [(2,), (4,)], "points", of=lambda f: lambda n: f()),
        reason=(
            "L is of the order αK/τ + √(αK/τ), and the proof keeps the first summand. At the K "
            "chosen αK/τ is below 1, so that the root is the larger one, and the noise term is of "
            "the order (α/τ)^(2/5), not (α/τ)^(4/5)."
        ),
        instead="Balance the error by its exact terms; the noise is of the order (αK/τ)·1/ε² "
        "where αK/τ is below 1.",
    ),
    Statement(
        id="aumuller2020.theorem-5.1",
        where="section 5, theorem 5.1",
        text="Some B and K give an error Õ((α/τ)^(4/5)) at fixed ε.",
        conditions="B = 2, J = ½",
        printed=lambda: Fraction(4, 5),
        corrections={
            "Õ((α/τ)^(1/2))": Correction(
                lambda: Fraction(1, 2),
                proof="at ε = 1 the error is of the order (1 + s²)/√K, s² the larger of αK/τ and "
                "its square, and least at K of the order τ/α",
            )
        },
        check=at_most(_rate, [(5,), (20,)], "points"),
        reason=(
            "The proof takes neighbours' differences for those of any two records, and leaves the "
            "larger part of L out. With both mended, and the noise counted by its deviation, the "
            "least error over K is of the order (α/τ)^(1/2) at fixed ε, as for RRMinHash; for "
            "neighbours alone it is (α/τ)^(3/4), at K of the order √(τ/α). The exact deviation "
            "of equation 5, √((3/4 + 16s² + 224s⁴)/K) with s = L/ε, falls so too."
        ),
        instead="Compare the exact deviations for your sizes: NoisyMinHash has the smaller one "
        "for ε up to ½ and α/τ up to 1/500, where at the paper's τ both are above 1, and RRMinHash "
        "from ε = ¾ on.",
    ),
    Statement(
        id="aumuller2020.section-5.comparison",
        where="section 5, comparing RRMinHash and NoisyMinHash",
        text="(α/τ)^(4/5) ≤ (α/τ)^(1/2).",
        printed=lambda a: number(a) ** number(Fraction(1, 2)),
        check=at_most(
            lambda formula, a: (number(a) ** number(Fraction(4, 5)), formula(a)),
            [(Fraction(1, 2),), (Fraction(1, 2000),)],
            "enclosure",
        ),
        reason="True of the powers; theorem 5.1, which it compares, doesn't hold. What follows "
        "from it is section-5.comparison.small-epsilon.",
    ),
)
