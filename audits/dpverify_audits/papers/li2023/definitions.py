"""Sections 1 to 2.3: projections, privacy, sensitivities, smooth sensitivity and composition.

Laws of outputs are finite and their least δ is Σ (p − e^ε·q)₊ in fractions. Records lie on the
lattice of quarters in [−1, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import comb
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals, wherever
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import hockey_stick
from dpverify.ledger.statements import Reading, Statement

from .inner_products import U, V, dot, variance_of
from .sign_flips import BINS, DENSE, LATTICE, neighbours, plus, sensitivity, smooth, worst_ratio

__all__ = ["CLAIMS"]

_F = Fraction
Law = tuple[Fraction, ...]
_HALF = _F(1, 2)
_COIN: Law = (_F(1, 2), _F(1, 2))
_LAWS: list[tuple[Law, Law, Fraction]] = [
    ((_F(2, 3), _F(1, 3)), (_F(1, 3), _F(2, 3)), _F(3, 2)),
    ((_F(1, 2), _F(3, 10), _F(1, 5)), (_F(1, 5), _F(3, 10), _F(1, 2)), _F(2)),
    ((_F(9, 10), _F(1, 20), _F(1, 20)), (_F(1, 2), _F(1, 2), _F(0)), _F(6, 5)),
]
# Laws at data sets of which each is a neighbour of the next one.
_PATH = [_LAWS[1][0], _LAWS[1][1], _LAWS[2][0]]


def _sparse(s: Fraction, p: int) -> dict[tuple[int, ...], Fraction]:
    """Law of w/√s for p independent entries of (2)."""
    entry = {-1: 1 / (2 * s), 0: 1 - 1 / s, 1: 1 / (2 * s)}
    found = {}
    for w in product(entry, repeat=p):
        weight = _F(1)
        for value in w:
            weight *= entry[value]
        found[w] = weight
    return found


def _power_mean(s: Fraction, power: int) -> Fraction:
    """E w^power for even powers."""
    total: Fraction = sum((p * w[0] ** power for w, p in _sparse(s, 1).items()), _F(0))
    return total * s ** (power // 2)


def _projected(s: Fraction, u: tuple[int, ...], v: tuple[int, ...]) -> Fraction:
    """E⟨x, y⟩ of one projection by (2)."""
    return sum(
        (p * s * dot(w, u) * dot(w, v) for w, p in _sparse(s, len(u)).items()),
        _F(0),
    )


def _variable_bins(u: Any, v: Any, k: int) -> Fraction:
    """Variance of the inner product where each attribute's bin is drawn on its own."""
    values = []
    for bins in product(range(k), repeat=len(u)):
        for w in product((-1, 1), repeat=len(u)):
            x, y = (
                [sum((s * a for s, a, b in zip(w, z, bins, strict=True) if b == j), _F(0))
                 for j in range(k)]
                for z in (u, v)
            )  # fmt: skip
            values.append(dot(x, y))
    mean = sum(values, _F(0)) / len(values)
    return sum((value * value for value in values), _F(0)) / len(values) - mean**2


def _angle(theta: Fraction, pi: Fraction, k: int) -> Fraction:
    """Mean of π·(share of disagreeing signs) by the binomial law; an identity in π."""
    q = theta / pi
    return sum(
        (pi * _F(i, k) * comb(k, i) * q**i * (1 - q) ** (k - i) for i in range(k + 1)), _F(0)
    )


def _local(u: tuple[Fraction, ...], beta: Fraction, power: int) -> Fraction:
    """LS(u)^power·k^(power/2) of the dense projection: one attribute moves, within [−1, 1]."""
    return max(
        sum((abs(row[i] * (moved - u[i])) ** power for row in DENSE), _F(0))
        for i in range(len(u))
        for moved in LATTICE
        if abs(moved - u[i]) <= beta
    )


def _global(beta: Fraction, power: int) -> Fraction:
    """√k·β times the largest row norm, to the power: equations 7 and 8."""
    return max(sum((abs(w) ** power for w in row), _F(0)) for row in DENSE) * beta**power


def _no_worse(output: str) -> tuple[Fraction, Fraction]:
    """How far ℓ1 neighbours are apart, and how far those that differ in one attribute; β = ½."""
    if output == "sensitivity":
        return sensitivity(_HALF, DENSE, "l1", 2), sensitivity(_HALF, DENSE, "attribute", 2)
    return worst_ratio(smooth, BINS, _HALF, "l1"), worst_ratio(smooth, BINS, _HALF, "attribute")


def _smooth(levels: Sequence[int], r: Fraction, at: int) -> Fraction:
    """Definition 2.5 on a path, e^ε = r."""
    return max(level / r ** abs(at - i) for i, level in enumerate(map(_F, levels)))


def _least_smooth(levels: Sequence[int], r: Fraction, at: int) -> Fraction:
    """The least bound B ≥ LS with B(u) ≤ e^ε·B(u′) for neighbours, by raising LS where needed."""
    bound = [_F(level) for level in levels]
    for _ in levels:
        for i, j in permutations(range(len(bound)), 2):
            if abs(i - j) == 1:
                bound[i] = max(bound[i], bound[j] / r)
    return bound[at]


def _both_ways(p: Law, q: Law, factor: Fraction) -> Fraction:
    return max(hockey_stick(p, q, factor), hockey_stick(q, p, factor))


def _individual(laws: Sequence[Law], factor: Fraction, at: int) -> Fraction:
    """Least δ of (ε, δ)-iDP for one data set of a path."""
    near = [laws[i] for i in (at - 1, at + 1) if 0 <= i < len(laws)]
    return max(_both_ways(laws[at], other, factor) for other in near)


def _least_delta(laws: Sequence[Law], factor: Fraction) -> Fraction:
    return max(_both_ways(p, q, factor) for p, q in pairwise(laws))


def _together(case: Any, factor: Fraction) -> Fraction:
    """Least δ of two outputs at the factor e^(ε₁ + ε₂)."""
    p, q = case
    return hockey_stick(p, q, factor)


def _independent(first: Any, second: Any) -> tuple[Law, Law]:
    p, q = (
        tuple(a * b for a, b in product(one, two)) for one, two in zip(first, second, strict=True)
    )
    return p, q


# A bit masked by a coin, and the coin: (masked, coin) for the bits 0 and 1.
_PAD = (
    tuple(_F(1, 2) if m == c else _F(0) for m, c in product((0, 1), repeat=2)),
    tuple(_F(1, 2) if m != c else _F(0) for m, c in product((0, 1), repeat=2)),
)
_COMPOSED = [
    (kind, joint, factors, deltas)
    for kind, joint, factors, deltas in [
        *(
            (
                "independent",
                _independent(a[:2], b[:2]),
                a[2] * b[2],
                hockey_stick(*a) + hockey_stick(*b),
            )
            for a, b in product(_LAWS, repeat=2)
        ),
        ("one coin for both", _PAD, _F(1), hockey_stick(_COIN, _COIN, _F(1)) + _F(1, 10**9)),
    ]
]


def _signed(u: tuple[Fraction, ...]) -> Law:
    """Law of two output signs, each kept with odds 3 : 1."""
    sure = [plus(dot(row, u), 1) for row in DENSE]
    return tuple(
        (a if s else 1 - a) * (b if t else 1 - b)
        for a, b in [sure]
        for s, t in product((0, 1), repeat=2)
    )


def _first_sign(law: Law) -> Law:
    return law[0] + law[1], law[2] + law[3]


_POSTED = [(_signed(u), _signed(v), _F(3)) for u, v in neighbours(2, _HALF)]

CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="li2023.equation-1",
        where="section 1.1, equation 1",
        text="E⟨x, y⟩ = ⟨u, v⟩ for x = Wᵀu/√k, y = Wᵀv/√k; one column, W of (2).",
        printed=lambda s, u, v: _F(dot(u, v)),
        check=equals(
            _projected,
            [(*letters("s"), u, v) for u, v in (((1, 2), (3, -1)), ((1, 0), (1, 1)))],
            "identity",
        ),
        mechanisms=("dp-rp-g-opt-b",),
    ),
    Statement(
        id="li2023.equation-2",
        where="section 1.1, equation 2; section 3.4, equation 10",
        text="Entries ±√s with probability 1/(2s) each, else 0, have variance 1.",
        printed=lambda s: _F(1),
        check=equals(lambda s: _power_mean(s, 2), [letters("s")], "identity"),
    ),
    Statement(
        id="li2023.equation-2.rademacher",
        where="section 1.1, below equation 2; section 3.4",
        text="At s = 1 entries are ±1, each with probability ½.",
        printed=lambda w: _HALF,
        check=equals(lambda w: _sparse(_F(1), 1)[w,], [(-1,), (1,)], "enumeration"),
    ),
    Statement(
        id="li2023.equation-5.mean",
        where="section 1.2, equations 4 and 5",
        text="The angle estimated from k signs is unbiased; an identity in π.",
        printed=lambda theta, pi, k: theta,
        check=equals(_angle, [(*letters("theta pi"), k) for k in (1, 2, 5)], "identity"),
        mechanisms=("dp-signrp-rr",),
    ),
    Statement(
        id="li2023.section-1.3.factor",
        where="section 1.3 (i); section 3.5",
        text="Bins of fixed length have (p − k)/(p − 1) of the variance of drawn bins.",
        conditions="Rademacher signs",
        printed=lambda p, k: _F(p - k, p - 1),
        check=equals(
            lambda p, k: (
                variance_of("oporp", U[:p], V[:p], k, _F(0)) / _variable_bins(U[:p], V[:p], k)
            ),
            [(2, 2), (4, 2), (4, 1)],
            "enumeration",
        ),
        mechanisms=("dp-oporp",),
    ),
    Statement(
        id="li2023.section-1.3.normalised",
        where="section 1.3 (ii), normalised",
        text="k·Var of the normalised cosine is essentially (1 − ρ²)².",
        reason="The paper doesn't say what “essentially” leaves out. For large k and normal "
        "entries it is so; with signs, as everywhere in the paper's OPORP, 2Σ(uᵢvᵢ − "
        "ρ(uᵢ² + vᵢ²)/2)² comes off for records of norm 1: next to nothing for flat ones, and at "
        "u = (1, 0, …), v = (ρ, √(1 − ρ²), 0, …) (1 − ρ²)³ is left.",
    ),
    Statement(
        id="li2023.section-1.3.unnormalised",
        where="section 1.3 (ii), un-normalised",
        text="k·Var of the cosine without normalising is essentially 1 + ρ², records of norm 1.",
        reason=(
            "The paper doesn't say what “essentially” leaves out. With signs, as everywhere in "
            "the paper's OPORP, 2Σ uᵢ²vᵢ² comes off, by equation 14: 2/p for flat records, and "
            "at u = (1, 0, …) 1 − ρ² is left. Take it off when records are sparse."
        ),
    ),
    Statement(
        id="li2023.definition-2.1",
        where="section 2.1, definition 2.1, equation 6",
        text="(ε, δ)-DP: P(O) ≤ e^ε·P′(O) + δ for neighbours and every event O.",
        reason="a definition, and the usual one; the ledger takes it at its word",
    ),
    Statement(
        id="li2023.definition-2.2",
        where="section 2.1, definition 2.2; section 2.2, definition 2.4",
        text="The largest local sensitivity is the sensitivity of equations 7 and 8.",
        printed=_global,
        check=equals(
            lambda beta, power: max(_local(u, beta, power) for u in product(LATTICE, repeat=2)),
            [(b, power) for b in (_HALF, _F(1)) for power in (1, 2)],
            "enumeration",
        ),
    ),
    Statement(
        id="li2023.definition-2.3",
        where="section 2.1, definition 2.3, first remark, and end of section 2.1",
        text="One attribute that moves by β is the worst of all changes of ℓ1 norm β.",
        conditions="not stated: for what output",
        printed=lambda: [("sensitivity",), ("signs of an OPORP",)],
        readings={
            "sensitivities": Reading(
                lambda: [("sensitivity",)],
                place="the end of section 2.1: “for the sensitivity analysis”",
                covers="noise by sensitivity, sections 3 and 6.1",
            )
        },
        check=wherever(_no_worse, "enumeration"),
        mechanisms=("dp-signoporp-rr", "dp-signoporp-rr-smooth"),
        reason="ℓ1 neighbours may change a sign in every bin of an OPORP, attribute neighbours "
        "in one. For sensitivities both are the same.",
        instead="For signs state the adjacency, and prove the guarantee for it.",
    ),
    Statement(
        id="li2023.section-2.2.local",
        where="section 2.2, last paragraph; section 6, second paragraph",
        text="For DP-RP the local sensitivity at every record is the global one.",
        conditions="not stated: β ≤ 1, half the width of [−1, 1]",
        printed=lambda u, beta: _global(beta, 2),
        readings={
            "β ≤ 1": Reading(
                lambda u, beta: _global(beta, 2) if beta <= 1 else None,
                place="the remarks on definition 2.3: “β = 1 is typically used”",
                covers="β up to 1, with which every experiment is made",
            )
        },
        check=equals(
            lambda u, beta: _local(u, beta, 2),
            [
                (u, b)
                for b in (_HALF, _F(1), _F(3, 2))
                for u in ((_F(1), _F(-1)), (_F(1, 4), _F(0)))
            ],
            "enumeration",
        ),
        reason=(
            "At u = (¼, 0) no attribute can move by more than 1¼, whatever β is. Up to β = 1 "
            "both are the same at every record."
        ),
        instead="Use the global sensitivity.",
    ),
    Statement(
        id="li2023.section-2.2.local-noise",
        where="section 2.2, (A) and (B)",
        text="Laplace noise by the local sensitivity isn't ε-DP: LS 1 or 3 and 10, ε = 1.",
        printed=lambda: [(1, 10), (3, 10)],
        # the densities at a common mean are ε/(2·LS): their ratio is that of the sensitivities
        check=wherever(lambda low, high: (arb(1).exp(), arb(high) / low), "enclosure"),
    ),
    Statement(
        id="li2023.definition-2.5",
        where="section 2.2, definition 2.5, and (i), (ii), “the smallest” below it",
        text="max e^(−εd)·LS is the least bound on LS that changes by at most e^ε a step.",
        printed=_smooth,
        check=equals(
            _least_smooth,
            [
                (levels, _F(r), i)
                for levels in ((1, 10, 2, 1), (0, 0, 8, 0))
                for r in (2, 3)
                for i in range(4)
            ],
            "enumeration",
        ),
        mechanisms=("dp-signrp-rr-smooth",),
    ),
    Statement(
        id="li2023.footnote-3",
        where="section 2.2, footnote 3",
        text="The global sensitivity is an ε-smooth bound on the local one: at least the smallest.",
        printed=lambda levels, r, at: _F(max(levels)),
        check=at_most(
            lambda f, *case: (_least_smooth(*case), f(*case)),
            [((1, 10, 2, 1), _F(r), i) for r in (2, 3) for i in range(4)],
            "enumeration",
        ),
    ),
    Statement(
        id="li2023.footnote-4",
        where="section 3.2, footnote 4",
        text="The privacy loss of Gaussian noise is normal: μ²/2 + μz at noise z of variance 1.",
        printed=lambda mu, z: mu * mu / 2 + mu * z,
        check=equals(
            lambda mu, z: ((z + mu) * (z + mu) - z * z) / 2, [letters("mu z")], "identity"
        ),
    ),
    Statement(
        id="li2023.definition-2.6",
        where="section 2.3, definition 2.6 and below",
        text="(ε, δ)-iDP for U: definition 2.1 for U and its neighbours, in both directions.",
        reason="a definition, and the usual one; DP is iDP for every data set by the words alone",
    ),
    Statement(
        id="li2023.definition-2.6.weaker",
        where="section 2.3, below definition 2.6",
        text="iDP for one data set says less than DP: its δ can be less than half of that of DP.",
        conditions="on a path of neighbours, by one of its data sets; for the worst they are equal",
        printed=lambda: [(0, _F(2))],
        check=wherever(
            lambda at, factor: (_individual(_PATH, factor, at), _least_delta(_PATH, factor) / 2),
            "enumeration",
        ),
    ),
    Statement(
        id="li2023.theorem-2.1",
        where="section 2.1, theorem 2.1; algorithm 2",
        text="Laplace noise of scale Δ₁/ε is ε-DP.",
        printed=lambda width, e: width / e,
        # |x − m| − |x| is largest at x = 0, where it is |m|; entries add up to Δ₁
        check=at_most(
            lambda f, width, e: (
                sum(max(abs(x - m) - abs(x) for x in range(-8, 9)) for m in (width, 0))
                / f(_F(width), e),
                e,
            ),
            [(width, e) for width in (1, 5) for e in (_HALF, _F(20))],
            "enumeration",
        ),
        mechanisms=("dp-rp-l",),
    ),
    Statement(
        id="li2023.theorem-2.3",
        where="section 2.1, theorem 2.3",
        text="Outputs that are (εⱼ, δⱼ)-DP are (Σεⱼ, Σδⱼ)-DP together.",
        conditions="not stated: the randomness of each output is its own",
        printed=lambda kind, joint, factor, delta: delta,
        readings={
            "independent randomness": Reading(
                lambda kind, joint, factor, delta: delta if kind == "independent" else None,
                place="the end of theorem 4.7’s proof: “Since the k projections are independent, "
                "by Theorem 2.3”",
                covers="every use in the paper, whose mechanisms draw their own noise",
            )
        },
        check=at_most(
            lambda f, *c: None if f(*c) is None else (_together(c[1], c[2]), f(*c)),
            _COMPOSED,
            "enumeration",
        ),
        mechanisms=("dp-signrp-rr-smooth",),
        reason=(
            "A bit masked by a coin and the coin itself are each 0-DP, and together they give "
            "the bit. The theorem needs outputs with randomness of their own; in the check 10⁻⁹ "
            "stands for δ = 0."
        ),
        instead="Never share the randomness of two releases.",
    ),
    Statement(
        id="li2023.section-4.post-processing",
        where="section 4, first paragraph; proof of theorem 6.1",
        text="Keeping one of two private signs doesn't make δ larger.",
        printed=hockey_stick,
        check=at_most(
            lambda f, p, q, factor: (
                hockey_stick(_first_sign(p), _first_sign(q), factor / 2),
                f(p, q, factor / 2),
            ),
            [case for case in _POSTED if hockey_stick(case[0], case[1], case[2] / 2)],
            "enumeration",
        ),
    ),
)
