"""Section 4.1 and appendix A.2: signs of Gaussian projections.

The integrals over the plane are written in the angle t of a standard Gaussian pair (a, b), with
X = σx·a and Y = σy(ρa + √(1 − ρ²)b): |X| > |Y| depends on the direction alone, so that
P(|X| > |Y|) is a share of the circle and the radius is independent of it. In one dimension,
P(|X| > |Y|, |X| > t) = ∫ over |x| > t of φ(x)·P(|Y| < σx|x| given X), which is what is integrated.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

from flint import acb, arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import ball, cdf, density, integral, number, rounded
from dpverify.ledger.statements import Correction, Reading, Statement

__all__ = [
    "CLAIMS",
    "largest_of_two",
    "maximum_bound",
    "n_plus",
    "rr_printed",
    "rr_variance",
    "union_bound",
]

_PAIRS = [
    (Fraction(1, 2), Fraction(1, 3)),
    (Fraction(1), Fraction(0)),
    (Fraction(2), Fraction(-3, 5)),
]


def _atan_sum(r: Any, rho: Any) -> arb:
    r, rho = number(r), number(rho)
    root = (1 - rho * rho).sqrt()
    return ((r - rho) / root).atan() + ((r + rho) / root).atan()


def _inside(x: acb, r: arb, rho: arb) -> acb:
    """P(|Y|/σy < r·x given X = σx·x), for x > 0."""
    root = (1 - rho * rho).sqrt()
    return cdf((r - rho) * x / root) - cdf((-r - rho) * x / root)


def _above(r: Fraction, rho: Fraction, start: Any = 0, power: int = 0) -> arb:
    """E[|X/σx|^power over |X| > |Y| and |X| > start·σx]; the rest from 30 on is below 10⁻¹⁹⁰."""
    a, b = number(r), number(rho)
    return integral(lambda x: 2 * x**power * density(x) * _inside(x, a, b), number(start), 30)


def _mean_printed(r: Fraction, rho: Fraction) -> arb:
    a, b = number(r), number(rho)
    top = (a - b) / (1 + a * a - 2 * a * b).sqrt() + (a + b) / (1 + a * a + 2 * a * b).sqrt()
    return (arb.pi() / 2).sqrt() * top / _atan_sum(r, rho)


def maximum_bound(r: Any, p: int) -> arb:
    """Equation 18: P(max |Xᵢ| > |Y|) for independent Xᵢ and Y."""
    a = number(r)
    return integral(
        lambda t: 2 * p * (2 * cdf(t) - 1) ** (p - 1) * (2 * cdf(a * t) - 1) * density(t), 0, 16
    )


def union_bound(r: Any, p: int) -> arb:
    """The sum of lemma 4.2's largest P(|Xᵢ| > |Y|) over i, for r of at most 1."""
    return min(arb(1), 2 * p * number(r).atan() / arb.pi())


def _one_of_two(r: Fraction, rho: Fraction) -> Any:
    """P(|X| > |Y|) of lemma 4.2."""
    root = number(1 - rho**2).sqrt()
    return sum(((number(r + sign * rho) / root).atan() for sign in (1, -1)), arb(0)) / arb.pi()


def largest_of_two() -> arb:
    """P(max(|X₁|, |X₂|) ≥ |Y|) for independent normal Xᵢ and Y = (X₁ + X₂)/√2, which is normal.

    |Y| is larger than both where X₁ and X₂ have one sign and X₂ is within X₁·(√2 ∓ 1)^±1.
    """
    root = arb(2).sqrt()
    beyond = integral(lambda x: density(x) * (cdf((root + 1) * x) - cdf((root - 1) * x)), 0, 30)
    return 1 - 2 * beyond


def _coupled(r: Fraction) -> arb:
    """The largest P(|X| > |Y|) over all joint laws of normal X and Y, r < 1.

    By Strassen's theorem 1 less the largest P(|X| ≤ t) − P(|Y| ≤ t), whose derivative is 0 where
    φ(t/r)/r is φ(t).
    """
    t = (2 * number(1 / r).log() / number(1 / r**2 - 1)).sqrt()
    return 1 - 2 * (cdf(t / number(r)) - cdf(t))


def _largest(formula: Any, law: str, r: Fraction, p: int) -> tuple[Any, Any] | None:
    """Probability of lemma 4.3, for X and Y normal together or each alone."""
    said = formula(law, r, p)
    return None if said is None else (largest_of_two() if p == 2 else _coupled(r), said)


def n_plus(share: arb, k: int, delta: Fraction) -> arb:
    """Equation 19 without the minimum with k."""
    rest = -number(delta).log()
    return share * k + (rest + (rest * rest + 8 * share * k * rest).sqrt()) / 2


def _binomial_tail(n: int, q: Fraction, least: int) -> Fraction:
    return sum((comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(least, n + 1)), Fraction(0))


def _chernoff_case(formula: Any, n: int, q: Fraction, least: int) -> tuple[Any, Any]:
    mean = n * q
    return _binomial_tail(n, q, least), formula(Fraction(least) / mean - 1, mean)


def _collision(agree: Any, odds: Any) -> Any:
    """P that two signs agree after both are kept with odds R : 1, by enumeration of the flips."""
    chances = ((True, odds / (odds + 1)), (False, 1 / (odds + 1)))
    return sum(
        a * b * (agree if one == other else 1 - agree)
        for (one, a), (other, b) in product(chances, repeat=2)
    )


def rr_variance(theta: Any, pi: Any, odds: Any) -> Any:
    """k·Var of π(1 − P̂): P̂'s slope is (R + 1)²/(R − 1)². An identity in π, so any π serves."""
    agree = _collision(1 - theta / pi, odds)
    return pi**2 * ((odds + 1) / (odds - 1)) ** 4 * agree * (1 - agree)


def rr_printed(theta: Fraction, pi: Fraction, odds: Fraction) -> Fraction:
    """V_RR of theorem 4.6."""
    extra = 2 * odds / (odds - 1) ** 2 + 4 * odds**2 / (odds - 1) ** 4
    return theta * (pi - theta) + pi**2 * extra


def _least_at(turn: Fraction, epsilon: int, share: Fraction) -> Fraction:
    """The k, of the multiples of a thousandth of ε/F, where V_RR/k is least at N₊ = Fk."""
    theta = number(turn) * arb.pi()
    found: dict[Fraction, Any] = {}
    for i in range(100, 501):
        k = Fraction(i, 1000) * epsilon / share
        odds = number(epsilon / (share * k)).exp()
        found[k] = rr_variance(theta, arb.pi(), odds) / number(k)
    return min(found, key=lambda k: float(found[k]))


def _best_k(turn: Fraction, epsilon: int, share: Fraction) -> Any:
    """ε/(Fx) where c⁴ − 1 + 4a = 2xc³(c² − 1), c = coth(x/2), a = (θ/π)(1 − θ/π).

    Flips add (c⁴ − 1)/4 to a in V_RR/π²; x times the sum is least where its derivative is 0. The
    left side is above the right one for large x; for small x, where c is about 2/x, it is below.
    """
    a, low, high = number(turn * (1 - turn)), arb(1) / 2, arb(32)
    for _ in range(60):
        x = ((low + high) / 2).mid()
        c = (x / 2).coth()
        low, high = (low, x) if c**4 - 1 + 4 * a > 2 * x * c**3 * (c * c - 1) else (x, high)
    return epsilon / (number(share) * high)


def _cubic_term(x: Fraction) -> arb:
    """x⁴·4e^(2x)/(e^x − 1)⁴, whose limit at 0 is the coefficient of π²F⁴k³/ε⁴."""
    value = number(x)
    return value**4 * 4 * (2 * value).exp() / value.expm1() ** 4


_ODDS = [(Fraction(t), Fraction(4), Fraction(r)) for t in (1, 2, 3) for r in (3, 5)]
_BEST = [
    (Fraction(turn), e, Fraction(f))
    for turn in ("1/2", "1/4")
    for e, f in ((10, "1/10"), (1, "1/2"))
]
_TAIL = [(n, q, m) for n in (1, 4, 12) for q in (Fraction(1, 4), Fraction(1, 2)) for m in (n,)]


def _in_thousandths(formula: Any) -> Any:
    """What a formula for the best k gives, to a thousandth of ε/F."""
    return lambda turn, epsilon, share: (
        rounded(formula(turn, epsilon, share) * number(share / epsilon), 3) * epsilon / share
    )


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="li2023.equation-3",
        where="section 1.2, equation 3; section 4.1.2, proof of theorem 4.6",
        text="Signs of a Gaussian projection of two records agree with probability 1 − θ/π.",
        printed=lambda rho: 1 - number(rho).acos() / arb.pi(),
        check=equals(
            lambda rho: integral(
                lambda x: 2 * density(x) * cdf(number(rho) / (1 - number(rho) ** 2).sqrt() * x),
                0,
                30,
            ),
            [(Fraction(0),), (Fraction(3, 5),), (Fraction(-9, 10),)],
            "quadrature",
        ),
        mechanisms=("dp-signrp-rr",),
    ),
    Statement(
        id="li2023.equation-5.variance",
        where="section 1.2, equation 5",
        text="Var of the angle estimated from k signs is θ(π − θ)/k; an identity in π.",
        printed=lambda theta, pi, k: theta * (pi - theta) / k,
        check=equals(
            lambda theta, pi, k: (
                pi**2
                * sum(
                    comb(k, i)
                    * (theta / pi) ** i
                    * (1 - theta / pi) ** (k - i)
                    * (Fraction(i, k) - theta / pi) ** 2
                    for i in range(k + 1)
                )
            ),
            [(*letters("theta pi"), k) for k in (1, 2, 5)],
            "identity",
        ),
    ),
    Statement(
        id="li2023.theorem-4.6.collision",
        where="section 4.1.2, proof of theorem 4.6",
        text="P(noisy signs agree) = P·(R − 1)²/(R + 1)² + 2R/(R + 1)², with R = e^ε′.",
        printed=lambda q, r: q * ((r - 1) / (r + 1)) ** 2 + 2 * r / (r + 1) ** 2,
        check=equals(
            _collision,
            [letters("q r")],
            "identity",
        ),
    ),
    Statement(
        id="li2023.theorem-4.6.mean",
        where="section 4.1.2, equation 21, theorem 4.6 and its proof",
        text="The estimate (21) of the collision probability is unbiased.",
        printed=lambda seen, r: ((r + 1) ** 2 * seen - 2 * r) / (r - 1) ** 2,
        check=equals(
            lambda q, r: q,
            [letters("q r")],
            "identity",
            of=lambda formula: lambda q, r: formula(_collision(q, r), r),
        ),
        mechanisms=("dp-signrp-rr",),
    ),
    Statement(
        id="li2023.theorem-4.6.variance",
        where="section 4.1.2, theorem 4.6",
        text="V_RR, k times the variance of the angle from noisy signs; an identity in π.",
        printed=rr_printed,
        check=equals(rr_variance, [letters("theta pi r")], "identity"),
        mechanisms=("dp-signrp-rr",),
    ),
    Statement(
        id="li2023.theorem-4.6.proof-third-line",
        where="section 4.1.2, proof of theorem 4.6, third line of V_RR",
        text="V_RR = πθ(1 − θ/π) + 2e^ε′/(e^ε′ − 1)² + 4e^(2ε′)/(e^ε′ − 1)⁴.",
        conditions="an identity for any number in place of π, here 4",
        printed=lambda t, pi, r: (
            pi * t * (1 - t / pi) + 2 * r / (r - 1) ** 2 + 4 * r**2 / (r - 1) ** 4
        ),
        check=equals(rr_variance, _ODDS, "enumeration"),
        corrections={
            "π² multiplies every term": Correction(
                rr_printed,
                place="the next line, where π² multiplies every term",
                change="a bracket after π²",
            )
        },
        reason="π² multiplies the first term alone, and all of them in the next line. A bracket "
        "is lost.",
        instead="Nothing: the theorem stands.",
    ),
    Statement(
        id="li2023.section-4.1.2.expansion",
        where="section 4.1.2, optimal projection dimension",
        text="For small ε/N₊ the term of π²F⁴k³/ε⁴ in V_RR/k has the coefficient 8, within 1 %.",
        printed=lambda: Fraction(8),
        check=at_most(
            lambda f: (abs(_cubic_term(Fraction(1, 10**4)) / number(f()) - 1), Fraction(1, 100)),
            [()],
            "enclosure",
        ),
        corrections={
            "4, as 4·e^(2x)/(e^x − 1)⁴ → 4/x⁴, x = ε/N₊": Correction(
                lambda: Fraction(4),
                place="theorem 4.6, whose V_RR has 4π²e^(2x)/(e^x − 1)⁴",
                change="4 for 8",
            )
        },
        reason="4e^(2x)/(e^x − 1)⁴ is about 4/x⁴ for small x, not 8/x⁴. The derivative and the "
        "optimal k* after it inherit the factor.",
        instead="Minimise theorem 4.6’s V_RR/k itself.",
    ),
    Statement(
        id="li2023.section-4.1.2.optimal-k",
        where="section 4.1.2, optimal projection dimension",
        text="V_RR/k is least at k* ≈ εθ(π − θ)/F, for N₊ = Fk.",
        conditions="“≈” is read as to a thousandth of ε/F",
        printed=lambda turn, epsilon, share: (
            epsilon * number(turn * (1 - turn)) * arb.pi() ** 2 / number(share)
        ),
        corrections={
            "ε/(Fx), where c⁴ − 1 + 4θ(π − θ)/π² = 2xc³(c² − 1) and c = coth(x/2)": Correction(
                _best_k, proof="the derivative of V_RR/k is 0 there, x = ε/(Fk)"
            )
        },
        check=equals(_least_at, _BEST, "enclosure", of=_in_thousandths),
        mechanisms=("dp-signrp-rr",),
        reason=(
            "At N₊ = Fk and θ = π/2 the printed k* is 8.1 times the best one, 0.306·ε/F. The "
            "equation above it, with its 8 or with the 4 that it should be, gives 0.262 or "
            "0.289. With the N₊ of equation 19 the best k is smaller still: 6 at ε = 20, F = 0.3 "
            "and δ = 10⁻⁶, where 164 is printed."
        ),
        instead="Minimise theorem 4.6’s V_RR/k over k with the N₊ of equation 19. At the k that "
        "N₊ = Fk leads to, F = 0.3 and δ = 10⁻⁶, it is 3.3 times Fk at ε = 20 and 1.5 times at "
        "ε = 400.",
    ),
    Statement(
        id="li2023.section-4.2.flip-number",
        where="section 4.2",
        text="At ε = 400 and N₊ = 200 a sign is flipped with probability 11.9 per cent.",
        printed=lambda: Fraction(119, 1000),
        check=equals(lambda: rounded(1 / (arb(2).exp() + 1), 3), [()], "enclosure"),
        reason="to the digits given",
    ),
    Statement(
        id="li2023.lemma-4.2.probability",
        where="section 4.1.1, lemma 4.2, part 1",
        text="P(|X| > |Y|) for jointly normal X, Y with r = σx/σy and correlation ρ.",
        printed=lambda r, rho: _atan_sum(r, rho) / arb.pi(),
        check=equals(_above, _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.lemma-4.2.maximum",
        where="section 4.1.1, lemma 4.2, part 1, second sentence",
        text='For r ≤ 1 the most that P(|X| "<" |Y|) can be over ρ is (2/π)·atan r.',
        printed=lambda inside: 1 - inside,
        check=at_most(
            lambda f, r, rho: (f(_above(r, rho)), 2 * number(r).atan() / arb.pi()),
            [(Fraction(1, 2), Fraction(i, 5)) for i in range(-4, 5)],
            "quadrature",
        ),
        corrections={
            "P(|X| > |Y|), as in the first sentence": Correction(
                lambda inside: inside,
                place="the first sentence, which is of Pr(|X| > |Y|)",
                change="> for <",
            )
        },
        reason="The sign is turned round: of P(|X| < |Y|) this is no upper bound. Lemma 4.3 uses "
        "the other event.",
        instead="Use it for Pr(|X| > |Y|).",
    ),
    Statement(
        id="li2023.lemma-4.2.mean",
        where="section 4.1.1, lemma 4.2, part 2, equation 16; appendix A.2",
        text="E(|X| given |X| > |Y|), in units of σx.",
        printed=_mean_printed,
        check=equals(lambda r, rho: _above(r, rho, power=1) / _above(r, rho), _PAIRS, "quadrature"),
    ),
    Statement(
        id="li2023.lemma-4.2.tail",
        where="section 4.1.1, lemma 4.2, part 3, equation 17; appendix A.2, last display",
        text="P(|X| > tσx given |X| > |Y|) is at most exp(−t²/2).",
        printed=lambda t: (-(number(t) ** 2) / 2).exp(),
        check=at_most(
            lambda f, r, rho, t: (_above(r, rho, t) / _above(r, rho), f(t)),
            [
                (r, rho, t)
                for r, rho in [*_PAIRS, (Fraction(1, 100), Fraction(9, 10))]
                for t in (Fraction(1, 2), Fraction(2), Fraction(4))
            ],
            "quadrature",
        ),
    ),
    Statement(
        id="li2023.lemma-4.3",
        where="section 4.1.1, lemma 4.3, equation 18",
        text="P(max |Xᵢ| > |Y|) is at most the integral P₊(r, p), whatever joins Y to Xᵢ.",
        printed=lambda law, r, p: maximum_bound(r, p),
        check=at_most(
            _largest,
            [("jointly normal", Fraction(1), 2), ("normal each", Fraction(1, 2), 1)],
            "quadrature",
        ),
        corrections={
            "min(1, p·(2/π)·atan r), for r of at most 1 and (Xᵢ, Y) jointly normal": Correction(
                lambda law, r, p: union_bound(r, p) if law == "jointly normal" else None,
                proof="lemma 4.2, of jointly normal X and Y, bounds each P(|Xᵢ| > |Y|), and the "
                "sum of them bounds that of any",
            )
        },
        mechanisms=("dp-signrp-rr",),
        reason=(
            "The proof multiplies P(|Xᵢ| < |Y|) over i, which share Y. The counterexample is "
            "what equation 20 uses it for: u = (1, 1)·c with β = ‖u‖. Where X and Y are normal, "
            "and not jointly, it fails at p = 1: at r = ½ the probability can be 0.68, with "
            "0.295 printed."
        ),
        instead="Bound the probability by the sum over i, or compute it for the records at hand.",
    ),
    Statement(
        id="li2023.lemma-4.3.independent",
        where="section 4.1.1, proof of lemma 4.3, last line",
        text="P₊(r, p) is the probability for Y independent of the Xᵢ; at r = 1, p/(p + 1).",
        printed=maximum_bound,
        check=equals(
            lambda r, p: Fraction(p, p + 1) if r == 1 else _above(r, Fraction(0)),
            [(Fraction(1), 1), (Fraction(1), 2), (Fraction(1), 9), (Fraction(1, 3), 1)],
            "quadrature",
        ),
    ),
    Statement(
        id="li2023.figure-4.red",
        where="section 4.1.1, figure 4",
        text="P₊(r, 1) equals P(|X| > |Y|) of lemma 4.2.",
        printed=_one_of_two,
        readings={
            "the largest over ρ": Reading(
                lambda r, rho: _one_of_two(r, rho) if rho == 0 else None,
                place="lemma 4.2, part 1: “the maximum is achieved at ρ = 0”",
                covers="r up to 1, the range of the figure",
            )
        },
        check=equals(
            lambda r, rho: maximum_bound(r, 1),
            [
                (Fraction(1, 3), Fraction(0)),
                (Fraction(1), Fraction(0)),
                (Fraction(1, 2), Fraction(1, 2)),
            ],
            "quadrature",
        ),
        reason="The caption leaves out ρ, on which the probability of lemma 4.2 depends. At r = ½ "
        "and ρ = ½ it is 0.273, and the curve 0.295.",
        instead="Read the curve as the largest probability, that at ρ = 0.",
    ),
    Statement(
        id="li2023.lemma-4.3.density",
        where="section 4.1.1, proof of lemma 4.3",
        text="The density of max |Xᵢ| is 2p(Φ(x) − 1)^(p − 1)φ(x), here by its mass.",
        printed=lambda p: integral(lambda x: 2 * p * (cdf(x) - 1) ** (p - 1) * density(x), 0, 30),
        check=equals(lambda p: Fraction(1), [(1,), (2,), (5,)], "enclosure"),
        corrections={
            "2Φ(x) − 1 in place of Φ(x) − 1": Correction(
                lambda p: integral(
                    lambda x: 2 * p * (2 * cdf(x) - 1) ** (p - 1) * density(x), 0, 30
                ),
                place="the last line of the proof, “[2Φ(t) − 1]”",
                change="a factor 2 before Φ",
            )
        },
        reason="P(|X| ≤ x) is 2Φ(x) − 1. As printed the density doesn't have mass 1; the "
        "integral P₊ is printed with the right factor.",
        instead="Use the last line.",
    ),
    Statement(
        id="li2023.lemma-4.4",
        where="section 4.1.1, lemma 4.4, and in the proof of proposition 4.5",
        text="P(Binomial ≥ (1 + η)μ) is at most exp(−η²μ/(η + 2)).",
        printed=lambda eta, mu: (-number(eta**2 * mu / (eta + 2))).exp(),
        check=at_most(_chernoff_case, _TAIL, "enclosure"),
    ),
    Statement(
        id="li2023.proposition-4.5.eta",
        where="section 4.1.1, proof of proposition 4.5",
        text="N₊ of equation 19 makes the bound of lemma 4.4 equal to δ.",
        printed=lambda share, k, delta: n_plus(number(share), k, delta),
        check=equals(
            lambda share, k, delta: -number(delta).log(),
            [(Fraction(1, 5), 512, Fraction(1, 10**6)), (Fraction(1, 2), 8, Fraction(1, 10))],
            "enclosure",
            of=lambda formula: (
                lambda share, k, delta: (
                    (formula(share, k, delta) - number(share * k)) ** 2
                    / (formula(share, k, delta) + number(share * k))
                )
            ),
        ),
    ),
    Statement(
        id="li2023.section-4.2.n-plus-number",
        where="section 4.2, with figure 5",
        text='For ‖u‖ = 10, β = 1, p = 1024, k = 512, δ = 10⁻⁶, N₊ is "as large as 200".',
        printed=lambda: Fraction(200),
        check=at_most(
            lambda f: (f(), n_plus(maximum_bound(ball("0.1"), 1024), 512, Fraction(1, 10**6))),
            [()],
            "quadrature",
        ),
        reason="it is 206.8",
    ),
)
