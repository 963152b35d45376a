"""Sections 3.1 to 3.6 and appendix A.1: what the proofs and comparisons of projections say."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import cdf, density, gaussian_delta, integral, number
from dpverify.ledger.statements import Correction, Statement

from .inner_products import U, V, dot, mean_of, noise_variance, ratio, variance_of
from .sign_flips import sensitivity

__all__ = ["CLAIMS"]

_F = Fraction
_SMALL = _F(1, 10**6)
_FIGURE_3 = (10, 50, 100, 500)
_RANGE = [_F(e) for e in ("1/10", "1", "5", "20")]


def _largest_length(s: int, p: int, k: int) -> Fraction:
    """E Δ₂² for β = 1 and entries of equation 2: mean of the largest ‖row‖²/k of p rows."""
    # a row's squared norm is s times the number of its non-zero entries, binomial(k, 1/s)
    law: dict[int, Fraction] = {0: _F(1)}
    for _ in range(k):
        grown: dict[int, Fraction] = {}
        for count, mass in law.items():
            for more, share in ((1, _F(1, s)), (0, 1 - _F(1, s))):
                grown[count + more] = grown.get(count + more, _F(0)) + mass * share
        law = grown
    total = _F(0)
    for rows in product(law.items(), repeat=p):
        weight = _F(1)
        for _, mass in rows:
            weight *= mass
        total += weight * max(count for count, _ in rows) * _F(s, k)
    return total


def _second_moment(u: Fraction, v: Fraction, sigma: Fraction) -> Fraction:
    """E((u + a)(v + b))² over coins a, b = ±σ; of degree 2 in each, as for normal ones."""
    noise = (-sigma, sigma)
    return sum((((u + a) * (v + b)) ** 2 for a, b in product(noise, repeat=2)), _F(0)) / 4


def _half_normal_sum(n: int, x: arb) -> arb:
    """P(|X₁| + … + |Xₙ| ≥ x) for n = 1, 2."""
    if n == 1:
        return 2 * cdf(-x)
    return 1 - integral(lambda y: 2 * density(y) * (2 * cdf(x - y) - 1), 0, x)


def _chernoff(n: int, t: Fraction, zeta: Any) -> arb:
    """Log of the bound for one ζ: nζ²/2 − tζ + n log 2."""
    z = number(zeta)
    return n * z * z / 2 - number(t) * z + n * arb(2).log()


def _least_noise(epsilon: Fraction, delta: Fraction) -> arb:
    """σ of equation 9 for Δ₂ = 1, from above, within 10⁻⁹."""
    low, high = arb(0.001), arb(1000)
    for _ in range(60):
        middle = (low * high).sqrt().mid()
        if gaussian_delta(number(epsilon), 1 / middle) <= number(delta):
            high = middle
        else:
            low = middle
    return high


def _enough_noise(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """1, and the smaller of 10σ and the least R."""
    sigma = _F(float(_least_noise(epsilon, _SMALL)))
    return _F(1), min(10 * sigma, *(ratio(1000, k, sigma**2) for k in _FIGURE_3))


def _theorem_3_1(epsilon: Fraction) -> arb:
    return (2 * (-number(_SMALL).log() + number(epsilon))).sqrt() / number(epsilon)


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="li2023.lemma-3.3.union",
        where="section 3.1, proof of lemma 3.3, second display",
        text="If each of p rows is long with probability δ′, one is with at most pδ′.",
        printed=lambda p, share: p * share,
        check=at_most(
            lambda f, p, share: (1 - (1 - share) ** p, f(p, share)),
            [(p, s) for p in (1, 10, 1000) for s in (_SMALL, _F(1, 100))],
            "points",
        ),
    ),
    Statement(
        id="li2023.section-3.1.slightly",
        where="section 3.1, last sentence",
        text="In most cases theorem 3.4's noise is slightly larger than theorem 3.1's with the "
        "realised sensitivity.",
        reason=(
            "The paper says neither in which cases nor by how much. For normal entries, p = "
            "1000, ε = 1 and δ = 10⁻⁶ its variance is 1.8 times the other one, in the median, at "
            "k = 64, and 1.2 times at k = 1024."
        ),
    ),
    Statement(
        id="li2023.remark-3.1.reduces",
        where="section 3.2, remark 3.1, last sentence",
        text="Theorem 3.5's σ is less than theorem 3.1's; δ = 10⁻⁶, Δ₂ = 1.",
        printed=_theorem_3_1,
        check=at_most(
            lambda f, e: (_least_noise(e, _SMALL), f(e)), [(e,) for e in _RANGE], "quadrature"
        ),
        mechanisms=("dp-rp-g-opt", "dp-rp-g-opt-b", "dp-oporp"),
    ),
    Statement(
        id="li2023.section-3.3.order",
        where="section 3.3, comparison: λ = O(√k/ε)",
        text="Mean ℓ1 norm of a row over √k, β = 1, is √(2/π)·√k.",
        printed=lambda k: (2 / arb.pi()).sqrt() * arb(k).sqrt(),
        check=equals(
            lambda k: k * integral(lambda x: 2 * x * density(x), 0, 40) / arb(k).sqrt(),
            [(1,), (64,), (512,)],
            "quadrature",
        ),
        mechanisms=("dp-rp-l",),
    ),
    Statement(
        id="li2023.section-3.3.crossing",
        where="section 3.3, comparison: Laplace noise is smaller only for ε = Ω(k)",
        text="Up to ε = k Gaussian noise is smaller: Rademacher entries, δ = 10⁻⁶.",
        printed=lambda k: _F(k),
        check=at_most(
            # Δ₂ = 1, and Laplace noise of scale Δ₁/ε for Δ₁ = √k
            lambda f, k: (_least_noise(f(k), _SMALL) ** 2, 2 * k / f(k) ** 2),
            [(256,), (512,)],
            "quadrature",
        ),
        reason="there the crossing is near 3.3k",
    ),
    Statement(
        id="li2023.section-3.4.uniform",
        where="section 3.4, first item",
        text="√3 times a uniform number in [−1, 1] has variance 1.",
        printed=lambda: _F(1),
        check=equals(lambda: integral(lambda x: 3 * x * x / 2, -1, 1), [()], "quadrature"),
    ),
    Statement(
        id="li2023.section-3.4.least",
        where="section 3.4, below equation 10, with figure 2",
        text="Rademacher rows have the least Δ₂: E Δ₂² is at least their β², p = 3, k = 4.",
        printed=lambda s: _F(1),
        check=at_most(
            lambda f, s: (f(s), _largest_length(s, 3, 4)), [(1,), (3,), (10,)], "enumeration"
        ),
        mechanisms=("dp-rp-g-opt-b",),
        reason="reached by s = 1 alone",
    ),
    Statement(
        id="li2023.section-3.4.similar-size",
        where="section 3.4, below algorithm 3",
        text="E(wᵀu)² = ‖u‖² for signs, as for normal entries.",
        printed=lambda p: dot(U[:p], U[:p]),
        check=equals(lambda p: mean_of("dense", U[:p], U[:p], 1), [(1,), (4,)], "enumeration"),
    ),
    Statement(
        id="li2023.section-3.5.mean",
        where="section 3.5, below algorithm 4",
        text="E[xᵢyᵢ] = ⟨u, v⟩ for one bin of an OPORP.",
        printed=lambda p, k: dot(U[:p], V[:p]),
        corrections={
            "⟨u, v⟩/k; the sum over the bins is unbiased": Correction(
                lambda p, k: dot(U[:p], V[:p]) / k,
                place="theorem 3.10, whose estimate is the sum over the bins",
                change="divided by k",
            )
        },
        check=equals(
            lambda p, k: mean_of("first-bin", U[:p], V[:p], k),
            [(4, 2), (2, 2)],
            "enumeration",
        ),
        mechanisms=("dp-oporp",),
        reason=(
            "One bin has the inner product divided by k in the mean. The sum over the k bins has "
            "all of it, and that is what the paper estimates with."
        ),
        instead="Sum over the bins.",
    ),
    Statement(
        id="li2023.theorem-3.8.sensitivity",
        where="section 3.6, proof of theorem 3.8; section 3.5, last sentence",
        text="Δ₂ of the record itself is β; here squared.",
        printed=lambda beta: beta**2,
        check=equals(
            lambda beta: sensitivity(beta, ((1, 0), (0, 1)), "attribute", 2),
            [(_F(1, 2),), (_F(1),)],
            "enumeration",
        ),
        mechanisms=("raw-data-g-opt",),
    ),
    Statement(
        id="li2023.theorem-3.8.second-moment",
        where="section 3.6, proof of theorem 3.8, second display",
        text="E((u + a)(v + b))² = u²v² + σ²(u² + v²) + σ⁴.",
        printed=lambda u, v, s2: u * u * v * v + s2 * (u * u + v * v) + s2 * s2,
        check=equals(
            _second_moment,
            [letters("u v sigma")],
            "identity",
            of=lambda formula: lambda u, v, sigma: formula(u, v, sigma**2),
        ),
        reason="the squared product itself, over all noise",
    ),
    Statement(
        id="li2023.theorem-3.9.conditional",
        where="section 3.6, proof of theorem 3.9, equation 13, first line",
        text="E[σ²Σ(xⱼ² + yⱼ²) + kσ⁴] + Var Σ xⱼyⱼ is the variance; the part with noise.",
        printed=lambda p, k, s2: s2 * (dot(U[:p], U[:p]) + dot(V[:p], V[:p])) + k * s2**2,
        check=equals(
            lambda p, k, t: (
                variance_of("dense", U[:p], V[:p], k, t)
                - variance_of("dense", U[:p], V[:p], k, _F(0))
            ),
            [(3, 2, _F(1, 2)), (2, 1, _F(3))],
            "enumeration",
            of=lambda formula: lambda p, k, t: formula(p, k, noise_variance("dense", k, t)),
        ),
    ),
    Statement(
        id="li2023.section-3.6.large-p",
        where="section 3.6, comparison: “approximately 2σ² + kσ⁴ + 1/k” for large p",
        text="For large p the variances at norm 1 are roughly the same, approximately "
        "2σ² + kσ⁴ + 1/k.",
        reason="The paper doesn't say how near. What is left out, (ρ² − 2Σ uᵢ²vᵢ²)/k, no p makes "
        "small. For flat records and σ = 0.3 it is below 1 % at k = 100; at k = 10 and ρ = 0.9 it "
        "is 22 %, and −22 % for u = (1, 0, …), v = (ρ, √(1 − ρ²), 0, …). Use the variances above "
        "the sentence, with all their terms.",
    ),
    Statement(
        id="li2023.section-3.6.hundred",
        where="section 3.6, below equation 15",
        text="At p/k = 100 the ratio R can be about 100 (within 5 %); σ = 1, p = 10⁴.",
        printed=lambda: _F(100),
        check=at_most(
            lambda f: (abs(ratio(10**4, 100, _F(1)) / f() - 1), _F(1, 20)), [()], "points"
        ),
    ),
    Statement(
        id="li2023.section-3.6.literature",
        where="section 3.6, last paragraph; section 5: ε from 0.1 to 20",
        text="For these ε and δ = 10⁻⁶, σ at β = 1 is above 0.1 and R above 1; p = 1000.",
        printed=lambda: [(_F(1, 10),), (_F(20),)],
        check=wherever(_enough_noise, "quadrature"),
    ),
    Statement(
        id="li2023.lemma-3.6.chernoff",
        where="appendix A.1, last display but one",
        text="P(Σ|Xᵢ| ≥ t) ≤ exp(−t²/2n + n log 2).",
        printed=lambda n, t: (-(number(t) ** 2) / (2 * n)).exp() * arb(2) ** n,
        check=at_most(
            lambda f, n, t: (_half_normal_sum(n, number(t)), f(n, t)),
            [(n, _F(t)) for n in (1, 2) for t in ("5/2", "3", "6")],
            "quadrature",
        ),
    ),
    Statement(
        id="li2023.lemma-3.6.minimum",
        where="appendix A.1, “minimized at”",
        text="nζ²/2 − tζ + n log 2 is least at ζ = t/n, where it is −t²/2n + n log 2.",
        printed=lambda n, t: _F(t, n),
        # a parabola is least midway between two points where it is equal, here 0 and 2ζ
        check=equals(
            lambda n, t: _chernoff(n, t, 0),
            [(1, _F(2)), (5, _F(3))],
            "enclosure",
            of=lambda f: lambda n, t: _chernoff(n, t, 2 * f(n, t)),
        ),
    ),
)
