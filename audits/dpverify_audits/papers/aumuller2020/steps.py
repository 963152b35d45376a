"""Sections 3 to 5: steps of proofs and consequences that the statements' own checks leave out."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil
from typing import Any

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import integral, number
from dpverify.ledger.statements import Correction, Reading, Statement
from dpverify_audits.papers.public_draw import public_draw

from .laplace import estimate as from_squares
from .laws import PAIRS, binomial, bucket_law
from .laws import responses as law_of
from .responses import estimate as from_shares
from .setup import differing_bound

__all__ = ["CLAIMS"]

_TINY = Fraction(1, 10**4)


def _output(x: tuple[int, ...], seen: tuple[int, ...], b: int, keep: Fraction) -> Fraction:
    found = Fraction(1)
    for value, v in zip(x, seen, strict=True):
        found *= law_of(value, b, keep)[v]
    return found


def _worst_ratio(k: int, b: int, differ: int, r: Fraction) -> Fraction:
    """Over all sketches of k values that differ in some places, and all outputs; r is e^ε′."""
    keep = r / (r + b - 1)
    sketches = list(product(range(b), repeat=k))
    return max(
        _output(x, seen, b, keep) / _output(y, seen, b, keep)
        for x, y in product(sketches, repeat=2)
        if sum(u != v for u, v in zip(x, y, strict=True)) == differ
        for seen in sketches
    )


def _differ(most: Any, k: int, b: int, ratio: Fraction, delta: Fraction) -> tuple[Any, Fraction]:
    """P(more than `most` positions differ) over the draw of the functions, and δ."""
    law = binomial(k, number(ratio * (1 - Fraction(1, b))))
    return sum((w for n, w in enumerate(law) if n > most), number(0)), delta


def _differ_now(most: Any, k: int, b: int, ratio: Fraction, delta: Fraction) -> tuple[Any, Any]:
    """The same given functions each of which hashes the changed item first: 0 or 1.

    One function may do that and send it to another bucket than the next item, and so may all.
    """
    x, y = PAIRS[1]
    one = max(u != v for (u, v), weight in bucket_law(x, y, b).items() if weight)
    return Fraction(bool(k * one > most)), delta


def _lower_tail(formula: Any, n: int, q: Fraction, beta: Fraction) -> tuple[Any, Any]:
    law = binomial(n, q)
    return sum((w for i, w in enumerate(law) if i < (1 - beta) * n * q), Fraction(0)), formula(
        beta, n * q
    )


def _l_prime(k: int, b: int, ratio: Fraction, delta: Fraction) -> Any:
    mean = number(k * ratio * (1 - Fraction(1, b)))
    return (3 * mean * number(2 / delta).log()).sqrt()


def _many(k: int, b: int, ratio: Fraction, delta: Fraction) -> Any:
    enough = number(k * ratio * (1 - Fraction(1, b))) >= 3 * number(2 / delta).log()
    return _l_prime(k, b, ratio, delta) if enough and 10 * delta <= 1 else number(k)


def _off(formula: Any, k: int, b: int, ratio: Fraction, delta: Fraction) -> tuple[Any, Any]:
    q, most = ratio * (1 - Fraction(1, b)), formula(k, b, ratio, delta)
    law = binomial(k, number(q))
    return sum((w for n, w in enumerate(law) if abs(number(n - k * q)) > most), number(0)), (
        delta / 2
    )


def _square_off(b: int, expected: int, off: int) -> Fraction:
    """Largest |Σ(x* − y*)² − its mean| when the number of differences is off by at most that."""
    squares = sorted({(u - v) ** 2 for u, v in product(range(b), repeat=2)} - {0})
    pairs = [(u - v) ** 2 for u, v in product(range(b), repeat=2) if u != v]
    mean = Fraction(expected * sum(pairs), len(pairs))
    return max(
        abs(n * square - mean)
        for n in range(max(0, expected - off), expected + off + 1)
        for square in squares
    )


def _deviation(k: int, b: int, ratio: Fraction, epsilon: Fraction) -> Any:
    """Standard deviation of equation 1 at J = ½, δ = 10⁻⁴."""
    e = (number(epsilon) / differing_bound(k, b, ratio, _TINY).ceil()).exp()
    p = e / (e + b - 1)
    q = (number(Fraction(1, 2)) + b * p * (b * p - 2) / 2 + b - 1) / (b * (b - 1))
    return (q * (1 - q) / k).sqrt() * (b - 1) * b / (b * p - 1) ** 2


_SIZES = sorted({2 ** (n // 4) * (4 + n % 4) // 4 for n in range(90)})


@cache
def _least(ratio: Fraction, epsilon: Fraction) -> Any:
    """The least deviation over many K and B."""
    return min(_deviation(k, b, ratio, epsilon) for k in _SIZES for b in (2, 3, 5, 10))


def _of_the_proof(ratio: Fraction, epsilon: Fraction) -> Any:
    """The order of the error where B = 3 and K = ε/(100 ratio), rounded up, have ε ≥ L ln 4."""
    level = differing_bound(ceil(epsilon / (100 * ratio)), 3, ratio, _TINY).ceil()
    return number(ratio / epsilon).sqrt() if level * number(4).log() <= number(epsilon) else None


def _noisy_variance(k: int, ratio: Fraction, epsilon: Fraction) -> Any:
    """Variance of equation 5 at B = 2, J = ½, δ = 10⁻⁴; the noise is of scale L/ε.

    A squared difference is (g + n)², g a coin of ¼ and n of moments E n² = 4s², E n⁴ = 72s⁴.
    """
    s2 = (differing_bound(k, 2, ratio, _TINY) / number(epsilon)) ** 2
    return 4 * (number(Fraction(3, 16)) + 4 * s2 + 56 * s2**2) / k


def _better_noisy(ratio: Fraction, epsilon: Fraction) -> tuple[Any, Any]:
    """The least deviations of NoisyMinHash and of RRMinHash."""
    noisy = min(_noisy_variance(k, ratio, epsilon) for k in _SIZES)
    return noisy.sqrt(), _least(ratio, epsilon)


def _far_down(k: int, delta: Fraction, p: Fraction, epsilon: Fraction) -> tuple[Any, Any]:
    """(B − 1)(P + √P), B = 2, and D with the level of section 5."""
    level = number(p) + (-3 * number(p) * number(delta).log()).sqrt()
    d = number(4 * k / delta).log() * level / number(epsilon)
    return number(p) + number(p).sqrt(), d


def _share(b: Fraction) -> Fraction:
    """The factor of the first term of theorem 5.1's error."""
    return (b - 1) ** 2 / ((b - 1) * (b + 1))


def _laplace_difference(scale: Fraction) -> Any:
    """E(N − N′)² from the density (1 + t)e^(−t)/4s of |N − N′|/s = t, either side."""
    s = number(scale)
    return integral(lambda t: s * s * t * t * (1 + t) * (-t).exp() / 2, 0, 200)


_TAILS = [
    (100, 3, Fraction(1, 2000), _TINY),
    (1000, 2, Fraction(1, 10), _TINY),
    # Kp = 25, just under what the proof needs; without the 1 - 1/B it would be enough
    (500, 2, Fraction(1, 10), _TINY),
    (600, 2, Fraction(1, 10), _TINY),  # and Kp = 30, just above it
]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="aumuller2020.lemma-2.product",
        where="section 3.2, proof of lemma 2, displayed ratio",
        text="Over all sketches that differ in L positions the worst ratio is e^(ε′L).",
        printed=lambda k, b, n, r: r**n,
        check=equals(
            _worst_ratio,
            [(2, b, n, Fraction(r)) for b in (2, 3) for n in (1, 2) for r in (2, 5)],
            "enumeration",
        ),
        mechanisms=("rr-min-hash",),
    ),
    Statement(
        id="aumuller2020.lemma-2.composition",
        where="section 3.2, footnote 1",
        text="Composition over all K positions costs Kε′: reached where all differ.",
        printed=lambda k, b, r: r**k,
        check=equals(
            lambda k, b, r: _worst_ratio(k, b, k, r),
            [(k, b, Fraction(3)) for k, b in ((1, 2), (2, 3), (3, 2))],
            "enumeration",
        ),
    ),
    public_draw(
        id="aumuller2020.lemma-3.drawn",
        where="section 4, lemma 3; section 5",
        text="Sketches of neighbours differ in at most L positions, but for probability δ; "
        "all users share and know the functions.",
        place="its proof: “by Lemma 1, with probability at least 1 − δ”",
        printed=differing_bound,
        drawn=_differ,
        realised=_differ_now,
        cases=[(500, 2, Fraction(1, 50), _TINY)],
        oracle="enclosure",
        mechanisms=("rr-min-hash", "noisy-min-hash"),
        reason=(
            "With functions that all hash the changed item first all K positions can differ. "
            "Nobody draws such functions (10⁻¹⁰⁰⁰ here), but for functions that are known a "
            "record can be chosen so. Records mustn't be chosen after the functions are known."
        ),
        instead="Draw the functions after the records are fixed, or count all K positions as "
        "differing.",
        covers="the draw of the functions, at K = 500 and τ = 50 of section 6; where L "
        "itself is too "
        "small see lemma-3",
    ),
    Statement(
        id="aumuller2020.lemma-5.symmetry",
        where="section 4, before lemma 5: the other case follows by symmetry",
        text="P(X < (1 − β)E) ≤ exp(−β²E/3).",
        printed=lambda beta, mean: (-number(beta**2 * mean / 3)).exp(),
        check=at_most(
            _lower_tail,
            [(n, Fraction(1, 4), Fraction(b)) for n in (4, 40) for b in ("1/4", "1/2", "99/100")],
            "enclosure",
        ),
        reason="Both cases together have probability 2δ by this argument, not δ.",
    ),
    Statement(
        id="aumuller2020.lemma-5.middle-step",
        where="section 4, proof of lemma 5, second line of the display",
        text="t more collisions move the estimate by (B − 1)Bt/(K(Bp − 1)²).",
        printed=lambda b, p, t, k: (b - 1) * b * t / (k * (b * p - 1) ** 2),
        check=equals(
            lambda b, p, t, k: from_shares((t + 1) / k, b, p) - from_shares(1 / k, b, p),
            [letters("b p t k")],
            "identity",
        ),
    ),
    Statement(
        id="aumuller2020.theorem-4.1",
        where="section 4, theorem 4.1",
        text="Some B and K make the error O(√(α/(τε))): at most 90 times that, as a standard "
        "deviation at J = ½.",
        conditions="any ε > 0 in the theorem; δ = 10⁻⁴. The constant, 9/√c, is the one that the "
        "proof has for K = cτε/α and our c of 1/100: the deviation is at most 9/√K where Bp ≥ 2",
        printed=lambda ratio, e: number(ratio / e).sqrt(),
        readings={
            "ε ≥ L ln 4, at B = 3 and K = τε/(100α) rounded up": Reading(
                _of_the_proof,
                place="the proof's last words: “for all ε ≥ L ln 4”",
                covers="section 6: ε of 2 to 8, τ of 20 and more at α = 1, where that K has it",
            )
        },
        check=at_most(
            lambda f, ratio, e: (
                None if (said := f(ratio, e)) is None else (_least(ratio, e), 90 * said)
            ),
            [
                (Fraction(a), Fraction(e))
                for a in ("1/5", "1/20", "1/100", "1/10000")
                for e in (16, 8, 4, 2, "7/5", "1/10")
            ],
            "enclosure",
        ),
        mechanisms=("rr-min-hash",),
        reason=(
            "The proof supposes ε ≥ L ln 4, which no K has for ε below ln 4. For small ε and α/τ "
            "the least error is of the order √(α/τ)/ε², at L = 1: at ε = 1/10 it is more than 5 "
            "times the bound that is tried."
        ),
        instead="For ε below L ln 4 compute the error for each K; it is a binomial variance.",
    ),
    Statement(
        id="aumuller2020.theorem-4.1.b",
        where="section 4, proof of theorem 4.1",
        text="Of the B with a threshold 2(B − 1)/(B − 2), 3 makes (1 + (B − 1)/r)² least.",
        printed=lambda r: 3,
        check=at_most(
            lambda f, r, b: ((1 + (f(r) - 1) / r) ** 2, (1 + (b - 1) / r) ** 2),
            [(r, b) for r in (Fraction(4), Fraction(50)) for b in range(3, 20)],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.lemma-6.difference",
        where="section 5, proof of lemma 6, steps (1) and (2)",
        text="Two independent Laplace draws of scale s differ by 4s² in the mean square.",
        printed=lambda s: number(4 * s * s),
        check=equals(_laplace_difference, [(Fraction(1),), (Fraction(7, 2),)], "quadrature"),
    ),
    Statement(
        id="aumuller2020.lemma-6.mixed",
        where="section 5, proof of lemma 6, step (1)",
        text="The mixed term has mean 0: E(g + n)² = Eg² + En² for independent n of mean 0.",
        printed=lambda g, n: g * g + n * n,
        check=equals(
            lambda g, n: sum((g + s * n) ** 2 for s in (-1, 1)) / 2, [letters("g n")], "identity"
        ),
    ),
    Statement(
        id="aumuller2020.theorem-5.1.l-prime",
        where="section 5, proof of theorem 5.1, first condition",
        text="Differences are off their mean by more than √(3 ln(2/δ)Kp) with probability at "
        "most δ/2, p = (1 − 1/B)α/τ.",
        printed=_l_prime,
        corrections={
            "where Kp is at least 3 ln(2/δ), δ up to 1/10": Correction(
                _many,
                proof=(
                    "Chernoff's exponents are at least 0.386β² and β²/2 for β up to 1, so "
                    "that both tails are at most x^1.15 + x^1.5, x = δ/2, in sum, which is "
                    "below x"
                ),
            )
        },
        check=at_most(_off, [*_TAILS, (500, 2, Fraction(1, 5), Fraction(1, 10))], "enclosure"),
        reason=(
            "The Chernoff bound is used where its condition fails, as in lemma 1. Where few "
            "differences are expected they are off by more than L′ ten times as often as δ/2 "
            "allows."
        ),
        instead="Take the exact binomial quantile for both sides.",
    ),
    Statement(
        id="aumuller2020.theorem-5.1.first-summand",
        where="section 5, proof of theorem 5.1",
        text="If the number of differences is off by at most L′, the sum of squared "
        "differences is off by at most (B − 1)²L′.",
        printed=lambda b, expected, off: Fraction((b - 1) ** 2 * off),
        corrections={
            "(B − 1)²(P + L′), P their expected number": Correction(
                lambda b, expected, off: Fraction((b - 1) ** 2 * (expected + off)),
                proof="the sum and its mean are both between 0 and that",
            )
        },
        check=at_most(
            lambda f, b, n, off: (_square_off(b, n, off), f(b, n, off)),
            [(2, 4, 2), (3, 2, 0), (5, 4, 1)],
            "enumeration",
        ),
        reason=(
            "Differing buckets are 1 to B − 1 apart: the sum of squares varies at one number of "
            "differences. At B = 2 every difference is 1 and the step is right; from B = 3 on it "
            "fails: at B = 3 two differences alone can be off by 4."
        ),
        instead="Take B = 2, where squared differences are 0 or 1.",
    ),
    Statement(
        id="aumuller2020.theorem-5.1.last-summand",
        where="section 5, proof of theorem 5.1",
        text="Noise within D on both sides makes K squared differences at most 4KD².",
        printed=lambda k, d: 4 * k * d * d,
        check=at_most(
            lambda f, k, d: (
                k * max((u - v) ** 2 for u, v in product((-d, Fraction(0), d), repeat=2)),
                f(k, d),
            ),
            [(1, Fraction(1)), (10, Fraction(3, 2))],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.theorem-5.1.third-term",
        where="section 5, proof of theorem 5.1",
        text="D > (B − 1)(P + √P) for ε > 1.",
        conditions="D = ln(4K/δ)Δ/ε; B = 2, K = 1000, P = 10, δ = 10⁻⁴ for both failures",
        printed=lambda: [(Fraction(e),) for e in (2, 10, 100)],
        corrections={
            "for ε up to ln(4K/δ), either δ up to ½": Correction(
                lambda: [(Fraction(e),) for e in ("1/2", "2", "10", "35/2")],
                proof=(
                    "D is ln(4K/δ)/ε times (B − 1)(P + √(3P ln(1/δ))), and neither the "
                    "factor nor 3 ln(1/δ) is below 1"
                ),
            )
        },
        check=wherever(lambda e: _far_down(1000, _TINY, Fraction(10), e), "enclosure"),
        reason=(
            "D falls as ε grows, so that it is above a number for small ε, not for large ones. "
            "The terms that it compares are KD² and D(P + √(3P ln(2/δ))): the third is above the "
            "second from KD below P + √(3P ln(2/δ)) on, here from ε of about 17,000."
        ),
        instead="Keep the third term where KD is below (B − 1)(P + √(3P ln(2/δ))).",
    ),
    Statement(
        id="aumuller2020.theorem-5.1.b",
        where="section 5, proof of theorem 5.1",
        text="(B − 1)²/((B − 1)(B + 1)) grows with B: 2 is the best choice.",
        printed=lambda: 2,
        check=at_most(
            lambda f, b: (_share(Fraction(f())), _share(Fraction(b))),
            [(b,) for b in range(2, 20)],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.section-5.comparison.epsilon",
        where="section 5, comparing RRMinHash and NoisyMinHash",
        text="ε^(−1/2) ≤ ε^(−2/5) for ε ≥ 1.",
        printed=lambda e: number(e) ** number(Fraction(-2, 5)),
        check=at_most(
            lambda f, e: (number(e) ** number(Fraction(-1, 2)), f(e)),
            [(Fraction(1),), (Fraction(8),)],
            "enclosure",
        ),
        reason="True of the powers; theorem 5.1, whose power it is, doesn't hold.",
    ),
    Statement(
        id="aumuller2020.section-5.comparison.small-epsilon",
        where="section 5, comparing RRMinHash and NoisyMinHash, last sentence of the paragraph",
        text="NoisyMinHash might guarantee a smaller error for small ε: it has the smaller least "
        "standard deviation at B = 2 and J = ½, for ε up to ½ and α/τ up to 1/500.",
        conditions="δ = 10⁻⁴; the paper doesn't say which ε is small: the ranges are ours",
        printed=lambda: [
            (Fraction(1, n), Fraction(e)) for n in (500, 2000, 10**6) for e in ("1/10", "1/2")
        ],
        check=wherever(_better_noisy, "enclosure"),
        mechanisms=("noisy-min-hash",),
        reason="at α/τ = 1/100, and from ε = ¾ on, RRMinHash has the smaller one",
    ),
    Statement(
        id="aumuller2020.section-5.size",
        where="section 5, comparing RRMinHash and NoisyMinHash",
        text="A private vector of RRMinHash has K bits.",
        printed=lambda k, b: k,
        readings={
            "at B = 2": Reading(
                lambda k, b: k if b == 2 else None,
                place="section 6.1: “RRMinHash with B=2 is a good choice in all considered "
                "experiments”",
                covers="the B of the experiments",
            )
        },
        check=equals(
            lambda k, b: next(bits for bits in range(10**6) if 2**bits >= len(range(b)) ** k),
            [(4, 2), (4, 3), (10, 5)],
            "enumeration",
        ),
        mechanisms=("rr-min-hash",),
        reason="It is K bits at B = 2, the choice of the experiments. The comparison is of "
        "mechanisms for every B, and from B = 3 on a bucket needs more than a bit.",
        instead="Count ⌈K log₂ B⌉ bits a sketch; K of them at B = 2.",
    ),
    Statement(
        id="aumuller2020.section-5.hamming",
        where="section 5, comparing RRMinHash and NoisyMinHash",
        text="RRMinHash needs the Hamming distance H only: the estimate at share 1 − H/K.",
        printed=lambda k, h: 1 - Fraction(h, k),
        check=equals(
            lambda k, h: Fraction(
                sum(a == b for a, b in zip([1] * h + [0] * (k - h), [0] * k, strict=True)), k
            ),
            [(4, 0), (4, 3), (10, 5)],
            "enumeration",
        ),
    ),
    Statement(
        id="aumuller2020.section-5.euclidean",
        where="section 5, below equation 5",
        text="NoisyMinHash's estimate falls by 6/((B² − 1)K) with the squared distance.",
        printed=lambda k, b, d2: 6 / ((b * b - 1) * k),
        check=equals(
            lambda k, b, d2: (
                from_squares(d2, k, b, Fraction(2)) - from_squares(d2 + 1, k, b, Fraction(2))
            ),
            [letters("k b d2")],
            "identity",
        ),
    ),
)
