"""Sections 2.3, 3.1 and 3.2.1: what is promised, and what post-processing keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import cdf, gaussian_delta, number
from dpverify.ledger.statements import Reading, Statement

__all__ = ["CLAIMS"]

_TINY = Fraction(1, 10**6)
_MATRICES = [((1, -2), (0, 3)), ((2, 2), (-1, 1)), ((1, 0), (0, 0))]
_HALF, _THIRD, _SIXTH = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
_LAWS = [
    ((_HALF, _HALF), (_THIRD, 2 * _THIRD), Fraction(1)),
    ((_HALF, _THIRD, _SIXTH), (_SIXTH, _SIXTH, 2 * _THIRD), Fraction(3, 2)),
]


def _worst_event(p: Sequence[Fraction], q: Sequence[Fraction], ratio: Fraction) -> Fraction:
    """Largest P(S) − e^ε·Q(S) over all sets S of outputs."""
    return max(
        sum((s * (a - ratio * b) for s, a, b in zip(event, p, q, strict=True)), Fraction(0))
        for event in product((0, 1), repeat=len(p))
    )


def _excess(p: Mapping[Any, Fraction], q: Mapping[Any, Fraction], ratio: Fraction) -> Fraction:
    return sum(
        (max(p.get(v, Fraction(0)) - ratio * q.get(v, Fraction(0)), Fraction(0)) for v in {*p, *q}),
        Fraction(0),
    )


def _theorem_1_delta(e: Fraction, mu: Fraction) -> arb:
    """The δ at which theorem 1 asks for just that noise, of sensitivity over σ equal to μ."""
    return number(e - e * e / (2 * mu * mu)).exp() / 2


def _loss_above(formula: Any, e: Fraction, mu: Fraction) -> tuple[arb, Any]:
    """P(privacy loss > ε) of Gaussian noise, and the δ."""
    return cdf(number(mu / 2 - e / mu)), formula(e, mu)


def _laplace_loss(formula: Any, matrix: Any, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Largest log ratio of densities of xP + Laplace noise, over records, changes and corners."""
    scale = formula(max(sum(abs(v) for v in row) for row in matrix), epsilon)
    worst = Fraction(0)
    for row in matrix:
        corners = product(*[(0, v) for v in row])
        worst = max(
            worst,
            *(sum(abs(c - v) - abs(c) for c, v in zip(at, row, strict=True)) for at in corners),
        )
    return worst / scale, epsilon


def _bits(d: int) -> list[tuple[int, ...]]:
    return list(product((0, 1), repeat=d))


def _response(x: tuple[int, ...], flip: Fraction) -> dict[tuple[int, ...], Fraction]:
    return {
        seen: prod(
            (flip if a != b else 1 - flip for a, b in zip(x, seen, strict=True)), start=Fraction(1)
        )
        for seen in _bits(len(x))
    }


def _recovered(x: tuple[int, ...], flip: Fraction) -> dict[int, Fraction]:
    """Law of the distance of two perturbed records that make up x."""
    law: dict[int, Fraction] = {}
    half = len(x) // 2
    for seen, p in _response(x, flip).items():
        distance = sum(a != b for a, b in zip(seen[:half], seen[half:], strict=True))
        law[distance] = law.get(distance, Fraction(0)) + p
    return law


def _both_losses(
    formula: Any, d: int, flip: Fraction, ratio: Fraction
) -> tuple[Fraction, Fraction]:
    """Least δ of what is recovered, and of what was published, over neighbouring data."""
    pairs = [(x, (*x[:i], 1 - x[i], *x[i + 1 :])) for x in _bits(2 * d) for i in range(2 * d)]
    after = max(_excess(_recovered(x, flip), _recovered(y, flip), ratio) for x, y in pairs)
    return after, formula(d, flip, ratio)


def _published_loss(d: int, flip: Fraction, ratio: Fraction) -> Fraction:
    """That of one flipped bit: the others' ratios cancel."""
    return max(Fraction(0), 1 - flip - ratio * flip)


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.definition-1",
        where="section 2.3, definition 1",
        text="(ε, δ): P(S) ≤ e^ε·Q(S) + δ for inputs that differ in one attribute of one user, "
        "every S.",
        reason="a definition, and the usual one, of neighbours that differ in one attribute",
    ),
    Statement(
        id="kenthapadi2013.section-2.3.failure",
        where="section 2.3, below definition 1",
        text="δ is the probability that the guarantee of ε fails: the privacy loss of "
        "Gaussian noise is above ε with probability at most δ.",
        conditions="not stated: which of the δ that a mechanism has at ε",
        printed=lambda e, mu: gaussian_delta(number(e), number(mu)),
        readings={
            "δ as theorem 1 relates it to the noise": Reading(
                _theorem_1_delta,
                place="(2) of lemma 1’s proof, of where the ratio of densities may be above e^ε: "
                "“Pr[Y′ + Δ ∈ D̂_out] ≤ δ”",
                covers="every (ε, δ) of algorithms 1 and 3, whose noise is theorem 1’s",
            )
        },
        check=at_most(
            _loss_above,
            [(Fraction(1), Fraction(1, 2)), (Fraction(5), Fraction(1, 2))],
            "enclosure",
        ),
        reason=(
            "Definition 1 bounds what events may gain, not the chance of a loss above ε. With "
            "the least δ that a mechanism has, the privacy loss exceeds ε six times as often at "
            "ε = 1 and μ = ½."
        ),
        instead="Read δ as what events may gain, not as the chance of a failure.",
    ),
    Statement(
        id="kenthapadi2013.section-2.3.delta",
        where="section 2.3, below definition 1: δ is typically O(1/n)",
        text="δ is typically thought of as O(1/n).",
        reason="What is typical can't be tried, and O names no constant. Publishing each of n "
        "records with probability 1/n is (0, 1/n)-DP, so take δ well below 1/n.",
    ),
    Statement(
        id="kenthapadi2013.section-2.3.laplace",
        where="section 2.3, last paragraph, for algorithm 1, with definition 2 at ρ = 1",
        text="Laplace noise of scale w₁(P)/ε makes algorithm 1 (ε, 0)-DP.",
        printed=lambda w, e: w / e,
        check=at_most(
            _laplace_loss, [(m, Fraction(e)) for m in _MATRICES for e in (1, 4)], "enumeration"
        ),
    ),
    Statement(
        id="kenthapadi2013.section-2.3.concentrated",
        where="section 2.3, last sentence",
        text="Noise for (ε, δ) may be normal, which is more tightly concentrated than Laplace "
        "noise for (ε, 0).",
        reason="Neither a measure nor how many numbers get noise is said. By variance, with "
        "theorem 1's σ and P of ±1/√k, it is from k = ln(1/2δ) + ε numbers on, 15 at ε = 1 and "
        "δ = 10⁻⁶; for fewer Laplace noise is smaller, and δ is 0.",
    ),
    Statement(
        id="kenthapadi2013.section-3.2.1.post-processing",
        where="section 3.1, and section 3.2.1, first sentence",
        text="Recovering distances costs no privacy: a distance's δ at ε is at most that of "
        "the bits it comes from.",
        printed=_published_loss,
        check=at_most(
            _both_losses,
            [(d, Fraction(1, 4), Fraction(r)) for d in (1, 2) for r in (1, 2)],
            "enumeration",
            ends=[(1, Fraction(1, 4), Fraction(3))],
        ),
        reason="Tried on algorithms 5 and 6, where everything can be enumerated.",
    ),
    Statement(
        id="kenthapadi2013.definition-2.basis",
        where="section 3.1.2, below definition 2",
        text="w_ρ(P) is the largest ‖eᵢP‖_ρ over basis vectors; to the power ρ.",
        printed=lambda m, order: max(
            sum(
                abs(sum((i == j) * v for j, v in enumerate(column))) ** order
                for column in zip(*m, strict=True)
            )
            for i in range(len(m))
        ),
        check=equals(
            lambda m, order: max(sum(abs(v) ** order for v in row) for row in m),
            [(m, order) for m in _MATRICES for order in (1, 2, 3)],
            "enumeration",
        ),
    ),
)
