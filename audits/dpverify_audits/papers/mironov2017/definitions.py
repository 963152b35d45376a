"""Sections 2 and 3: what the notions of privacy say, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import gaussian_delta, number, worst_event
from dpverify.ledger.statements import Correction, Reading, Statement

from .laws import (
    ALIKE,
    CERTAIN,
    PAIRS,
    Event,
    Law,
    apart_most,
    at_one,
    clamped,
    composed,
    divergence,
    events,
    greatest,
    law,
    mass,
    response,
)

__all__ = ["CLAIMS"]

_EVENTS = [
    (p, q, order, event)
    for p, q in PAIRS
    for order in (Fraction(3, 2), Fraction(2), Fraction(10))
    for event in events(len(p))
]
_TELLING = [
    (p, q, order, event)
    for p, q, order, event in _EVENTS
    if max(greatest(p, q), greatest(q, p)) * mass(q, event) < 1
]
"""Events of which the upper bound says that they aren't certain."""
_ORDERED = [(p, q, Fraction(order)) for p, q in PAIRS for order in (2, 5)]
_PRIORS = [(p, q, order, Fraction(1, 5)) for p, q in PAIRS for order in (2, 3)]
_DISJOINT = (law(1, 1), law(1, 0))


def _laplace_loss(scale: Fraction, shift: Sequence[int]) -> Fraction:
    """Largest loss of Laplace noise, Σ (|x − s| − |x|)/scale over the bends of each attribute."""
    return sum(
        (max(abs(x - s) - abs(x) for x in (0, s, -s)) / scale for s in shift),
        Fraction(0),
    )


def _adaptive(first: Fraction, second: Fraction) -> tuple[Law, Law]:
    """Joint laws of a response and of another one, which is turned over if the first says so."""
    (p, q), (kept, turned) = response(first), response(second)
    one = tuple(a * b for a, then in zip(p, (kept, turned), strict=True) for b in then)
    other = tuple(a * b for a, then in zip(q, (turned, kept), strict=True) for b in then)
    return one, other


def _power(p: Law, q: Law, alpha: int) -> Fraction:
    """Σ P^α Q^(1 − α), the number of which a divergence is the logarithm."""
    return sum((a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True)), Fraction(0))


def _after(
    formula: Any, first: Fraction, then: Sequence[Fraction], alpha: int
) -> tuple[Fraction, Fraction]:
    """Of a response and of another one, whose odds the first one chooses, and its bound."""
    p, q = response(first)
    laws = [response(odds) for odds in then]
    one = tuple(a * b for a, (kept, _) in zip(p, laws, strict=True) for b in kept)
    other = tuple(a * b for a, (_, turned) in zip(q, laws, strict=True) for b in turned)
    inner = [_power(*pair, alpha) for pair in laws]
    return _power(one, other, alpha), formula(_power(p, q, alpha), inner)


def _posterior(p: Law, q: Law, prior: Fraction, outcome: int) -> tuple[Fraction, Fraction]:
    """Posterior probabilities of D and D′, from the joint law, if D has this prior."""
    joint = (prior * p[outcome], (1 - prior) * q[outcome])
    return joint[0] / sum(joint), joint[1] / sum(joint)


def _changes(p: Law, q: Law, prior: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Of each outcome that D can have the probability, and how the odds of D′ to D change."""
    found = ((a, _posterior(p, q, prior, outcome)) for outcome, a in enumerate(p) if a)
    return [(a, two / one / ((1 - prior) / prior)) for a, (one, two) in found]


def _merged(p: Law, onto: Sequence[int]) -> Law:
    return tuple(
        sum((a for a, to in zip(p, onto, strict=True) if to == place), Fraction(0))
        for place in sorted(set(onto))
    )


def _processed(p: Law, q: Law, order: Fraction) -> Any:
    """The largest divergence of g(P) and g(Q) over all maps g."""
    found = [
        divergence(_merged(p, onto), _merged(q, onto), order)
        for onto in product(range(len(p)), repeat=len(p))
    ]
    return max(found, key=float)


def _least_delta(count: int, odds: Fraction, epsilon: Any) -> Any:
    """Least δ of so many responses at an ε."""
    p, q = composed(count, odds)
    factor = epsilon.exp()
    rest = (number(a) - factor * number(b) for a, b in zip(p, q, strict=True))
    return sum((part for part in rest if part > 0), number(0))


def _chain(alpha: Fraction, exponent: int, odds: Fraction) -> tuple[list[Law], Any]:
    """Laws at 2^c + 1 inputs in a row, and the ε of their neighbours at order α."""
    laws = [clamped(start, odds, 2**exponent) for start in range(2**exponent + 1)]
    return laws, max((apart_most(p, q, alpha) for p, q in pairwise(laws)), key=float)


def _group(formula: Any, alpha: Fraction, exponent: int, odds: Fraction) -> tuple[Any, Any]:
    laws, epsilon = _chain(alpha, exponent, odds)
    order, bound = formula(alpha, exponent, epsilon)
    return apart_most(laws[0], laws[-1], order), bound


def _halved(formula: Any, p: Law, r: Law, q: Law, alpha: Fraction) -> tuple[Any, Any]:
    parts = divergence(p, r, alpha), divergence(r, q, alpha - 1)
    return divergence(p, q, alpha / 2), formula(alpha, *parts)


def _joined(formula: Any, table: tuple[int, ...], odds: Fraction) -> tuple[Any, Any] | None:
    """The largest ratio of laws at inputs whose images a map sends apart, and its bound."""
    stable = formula(table)
    if stable is None:
        return None
    last = max(table)
    pairs = [(clamped(a, odds, last), clamped(b, odds, last)) for a, b in pairwise(table)]
    return max(max(greatest(p, q), greatest(q, p)) for p, q in pairs), odds**stable


def _stable_as_printed(table: tuple[int, ...]) -> int:
    """Least c such that inputs are within c of each other where their images are neighbours."""
    inputs = range(len(table))
    near = [abs(a - b) for a, b in product(inputs, repeat=2) if abs(table[a] - table[b]) == 1]
    return max(near, default=0)


def _beyond(formula: Any) -> Any:
    """Largest P(S) − e^ε Q(S) at the e^ε that the formula gives."""

    def largest(p: Law, q: Law) -> Fraction | None:
        factor = formula(p, q)
        return None if factor is None else worst_event(p, q, factor)

    return largest


def _renyi(p: Law, q: Law, alpha: Fraction) -> Any:
    """Definition 3."""
    possible = ((a, b) for a, b in zip(p, q, strict=True) if a)
    mean = sum(number(b) * number(a / b) ** number(alpha) for a, b in possible)
    return mean.log() / number(alpha - 1)


def _upper(epsilon: Any, other: Any, alpha: Any) -> Any:
    return (epsilon.exp() * number(other)) ** number((alpha - 1) / alpha)


def _lower(epsilon: Any, other: Any, alpha: Any) -> Any:
    return (-epsilon).exp() * number(other) ** number(alpha / (alpha - 1))


def _above(formula: Any, p: Law, q: Law, alpha: Fraction, event: Event) -> tuple[Any, Any]:
    epsilon = apart_most(p, q, alpha)
    return number(mass(p, event)), formula(epsilon, mass(q, event), alpha)


def _below(formula: Any, p: Law, q: Law, alpha: Fraction, event: Event) -> tuple[Any, Any]:
    bound, value = _above(formula, p, q, alpha, event)
    return value, bound


def _leaking(delta: Fraction) -> tuple[Fraction, Fraction]:
    """Of a mechanism that tells its input with probability δ: its δ at 0, and P where Q is 0."""
    p, q = (1 - delta, delta, Fraction(0)), (1 - delta, Fraction(0), delta)
    outside = sum((a for a, b in zip(p, q, strict=True) if not b), Fraction(0))
    return worst_event(p, q, Fraction(1)), outside


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="mironov2017.section-1.stronger",
        where="section 1, before the organization of the paper",
        text="Rényi differential privacy is strictly stronger than (ε, δ): for every δ there is a "
        "(0, δ)-private mechanism that has an infinite D_α at every order.",
        conditions="that it is as strong is proposition 3",
        printed=lambda delta: (delta, delta),
        check=equals(_leaking, [(Fraction(1, 10),), (Fraction(1, 10**6),)], "enumeration"),
    ),
    Statement(
        id="mironov2017.section-2.laplace",
        where="section 2, after definition 1",
        text="Laplace noise of scale Δ₁f/ε gives ε-differential privacy.",
        printed=lambda sensitivity, epsilon: sensitivity / epsilon,
        check=at_most(
            lambda formula, shift, epsilon: (
                _laplace_loss(formula(Fraction(sum(map(abs, shift))), epsilon), shift),
                epsilon,
            ),
            [((1,), Fraction(2)), ((2, -1), Fraction(1, 2)), ((1, 1, 3), Fraction(4))],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-2.composition",
        where="section 2, after definition 1",
        text="What is ε₁- and then, chosen after seeing that, ε₂-private is ε₁ + ε₂-private.",
        printed=lambda first, second: first * second,
        conditions="in factors e^ε, which are multiplied",
        check=at_most(
            lambda formula, first, second: (
                greatest(*_adaptive(first, second)),
                formula(first, second),
            ),
            [(Fraction(2), Fraction(3)), (Fraction(11, 10), Fraction(3, 2))],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-2.not-pure",
        where="section 2, after definition 2",
        text="The Gaussian mechanism is ε-private for no ε: the sign of its δ at ε is 1.",
        printed=lambda epsilon: 1,
        check=equals(
            lambda epsilon: int(gaussian_delta(number(epsilon), number(1)) > 0),
            [(Fraction(1),), (Fraction(10),)],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.section-2.gaussian",
        where="section 2, after definition 2",
        text="A Gaussian of deviation above √(2 ln(1.25/δ))Δ/ε gives (ε, δ) for every ε < 1.",
        conditions="judged at that deviation",
        printed=lambda epsilon, delta: (
            (2 * number(Fraction(5, 4) / delta).log()).sqrt() / number(epsilon)
        ),
        check=at_most(
            lambda formula, epsilon, delta: (
                gaussian_delta(number(epsilon), 1 / formula(epsilon, delta)),
                number(delta),
            ),
            [
                (Fraction(99, 100), Fraction(1, 100)),
                (Fraction(1, 2), Fraction(1, 10**5)),
                (Fraction(1, 10), Fraction(1, 10**9)),
            ],
            "quadrature",
        ),
    ),
    Statement(
        id="mironov2017.section-2.advanced",
        where="section 2, last paragraph on (ε, δ)-differential privacy",
        text="k mechanisms of ε are (√(2k ln(1/δ′))ε + kε(e^ε − 1), δ′)-private together.",
        conditions="the case of δ = 0",
        printed=lambda k, epsilon, delta: (
            (2 * k * number(1 / delta).log()).sqrt() * epsilon + k * epsilon * (epsilon.exp() - 1)
        ),
        check=at_most(
            lambda formula, k, odds, delta: (
                _least_delta(k, odds, formula(k, number(odds).log(), delta)),
                number(delta),
            ),
            [(50, Fraction(11, 10), Fraction(1, 100)), (200, Fraction(21, 20), Fraction(1, 10))],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.section-3.one",
        where="section 3, after definition 3",
        text="The limit of D_α at α = 1 is Σ P ln(P/Q).",
        printed=lambda p, q: sum(
            number(a) * number(a / b).log() for a, b in zip(p, q, strict=True)
        ),
        check=equals(at_one, PAIRS, "enclosure"),
    ),
    Statement(
        id="mironov2017.section-3.infinity",
        where="section 3, D_∞ after definition 3; remark 1",
        text="D_∞ is the supremum of ln(P/Q) over the support of Q, and at most ε exactly where "
        "the mechanism is ε-private.",
        printed=lambda p, q: max(a / b for a, b in zip(p, q, strict=True) if b),
        readings={
            "the outcomes are those that both inputs can have": Reading(
                lambda p, q: (
                    max(a / b for a, b in zip(p, q, strict=True))
                    if [bool(a) for a in p] == [bool(b) for b in q]
                    else None
                ),
                place="remark 1: “we let the event space be the support of the distribution”",
                covers="each mechanism of section 6 can have every output on every input",
            )
        },
        check=equals(
            lambda p, q: Fraction(0),
            [*PAIRS, _DISJOINT],
            "enumeration",
            of=_beyond,
        ),
        reason="An outcome that Q never has isn't in the supremum. P may have it half of the time, "
        "as in the last case, and no ε holds.",
        instead="Take the supremum over the support of P, where P/0 is ∞.",
    ),
    Statement(
        id="mironov2017.section-3.pure",
        where="section 3, before definition 4; definitions 1 and 4",
        text="The ε of every event is that of the worst outcome: ε-privacy is D_∞ ≤ ε.",
        printed=lambda p, q: max(a / b for a, b in zip(p, q, strict=True)),
        check=equals(
            lambda p, q: max(mass(p, event) / mass(q, event) for event in events(len(p))),
            [*PAIRS, ALIKE],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-3.outcomes.upper",
        where="section 3, “bad outcomes” guarantee; table 1, first row",
        text="P(S) ≤ (e^ε Q(S))^((α − 1)/α) for (α, ε)-RDP.",
        printed=_upper,
        check=at_most(_above, _TELLING, "enclosure"),
    ),
    Statement(
        id="mironov2017.section-3.outcomes.lower",
        where="section 3, “bad outcomes” guarantee; table 1, first row",
        text="P(S) ≥ e^(−ε) Q(S)^(α/(α − 1)) for (α, ε)-RDP.",
        printed=_lower,
        check=at_most(_below, _EVENTS, "enclosure"),
    ),
    Statement(
        id="mironov2017.section-3.odds",
        where="section 3, robustness to auxiliary information; table 1, second row",
        text="Posterior odds of neighbours are at most e^ε times the prior ones.",
        printed=lambda factor, odds: factor * odds,
        check=at_most(
            lambda formula, factor, prior: (
                max(
                    one / two
                    for x in (0, 1)
                    for one, two in [_posterior(*response(factor), prior, x)]
                ),
                formula(factor, prior / (1 - prior)),
            ),
            [(Fraction(3), Fraction(1, 2)), (Fraction(5, 4), Fraction(1, 10))],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-3.moment",
        where="section 3, the moment of the change in R; table 1, second row",
        text="The α-th moment of the change in the odds of D′ to D is e^((α − 1)D_α(f(D′)‖f(D))).",
        printed=lambda p, q, alpha, prior: sum(
            b**alpha * a ** (1 - alpha) for a, b in zip(p, q, strict=True)
        ),
        check=equals(
            lambda p, q, alpha, prior: sum(
                a * change**alpha for a, change in _changes(p, q, prior)
            ),
            _PRIORS,
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.equation-1",
        where="section 3, equation 1; table 1, third row",
        text="The logarithm of the odds of two neighbours rises on average by at most "
        "D_α(f(D)‖f(D′)).",
        conditions="judged for the odds of D′ to D, section 3's, and of D to D′, section 7's",
        printed=_renyi,
        check=at_most(
            lambda formula, p, q, alpha, sign: (
                sign
                * sum(
                    number(a) * number(change).log() for a, change in _changes(p, q, Fraction(1, 5))
                ),
                formula(p, q, alpha),
            ),
            [(*case, sign) for case in [*_ORDERED, (*CERTAIN, Fraction(2))] for sign in (1, -1)],
            "enclosure",
        ),
        reason="Section 3's odds even fall on average.",
    ),
    Statement(
        id="mironov2017.equation-1.one",
        where="section 3, after equation 1",
        text="The logarithm of the odds of D′ to D changes by D₁(f(D)‖f(D′)) on average.",
        printed=lambda p, q: sum(
            number(a) * number(a / b).log() for a, b in zip(p, q, strict=True)
        ),
        corrections={
            "−D₁(f(D)‖f(D′))": Correction(
                lambda p, q: (
                    -sum(number(a) * number(a / b).log() for a, b in zip(p, q, strict=True))
                ),
                place="section 7, where the odds are those of D to D′: “R(D, D′) ∼ p(D)/p(D′)”",
                change="the sign",
            )
        },
        check=equals(
            lambda p, q: sum(
                number(a) * number(change).log() for a, change in _changes(p, q, Fraction(1, 5))
            ),
            PAIRS,
            "enclosure",
        ),
        reason="Outputs of D make D likelier, so that the odds of D′ to D, as section 3 defines "
        "them, fall. The sign is right for section 7's odds, which are the other way up.",
        instead="Define R as the odds of D to D′, as section 7 does.",
    ),
    Statement(
        id="mironov2017.section-3.post-processing",
        where="section 3, post-processing; table 1, fourth row",
        text="What is made of the output has no larger divergence.",
        printed=lambda epsilon: epsilon,
        check=at_most(
            lambda formula, p, q, alpha: (
                _processed(p, q, alpha),
                formula(divergence(p, q, alpha)),
            ),
            _ORDERED,
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-1",
        where="section 3, proposition 1; table 1, fifth row",
        text="(α, ε₁)-RDP and then, chosen after seeing that, (α, ε₂)-RDP is (α, ε₁ + ε₂)-RDP.",
        printed=lambda first, second: first + second,
        check=at_most(
            lambda formula, first, second, alpha: (
                apart_most(*_adaptive(first, second), alpha),
                formula(*(divergence(*response(odds), alpha) for odds in (first, second))),
            ),
            [
                (Fraction(2), Fraction(3), Fraction(2)),
                (Fraction(11, 10), Fraction(5), Fraction(7, 2)),
                (Fraction(3, 2), Fraction(3, 2), Fraction(40)),
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-1.chain",
        where="section 3, proof of proposition 1, the displayed chain",
        text="∫Z^α Z′^(1 − α) ≤ ∫X^α X′^(1 − α) times the largest ∫Y^α Y′^(1 − α) given X.",
        printed=lambda outer, inner: outer * max(inner),
        check=at_most(
            _after,
            [
                (Fraction(2), (Fraction(3), Fraction(3)), 2),
                (Fraction(2), (Fraction(1, 3), Fraction(3, 2)), 2),
                (Fraction(11, 10), (Fraction(5), Fraction(4)), 5),
            ],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-3.group",
        where="section 3, group privacy",
        text="An ε-private mechanism after a c-stable map is cε-private.",
        conditions="in factors e^ε; c-stable as in the proof of proposition 2",
        printed=lambda c, factor: factor**c,
        check=at_most(
            lambda formula, c, factor: (
                greatest(clamped(0, factor, 8), clamped(c, factor, 8)),
                formula(c, factor),
            ),
            [(1, Fraction(2)), (3, Fraction(2)), (5, Fraction(11, 10))],
            "enumeration",
        ),
    ),
    Statement(
        id="mironov2017.section-3.stable",
        where="section 3, group privacy",
        text="g is c-stable if A and B are at most c steps apart wherever g(A) and g(B) are "
        "neighbours; an ε-private mechanism after it is cε-private.",
        printed=_stable_as_printed,
        readings={
            "g(A) and g(B) are at most c steps apart wherever A and B are neighbours": Reading(
                lambda table: max(abs(a - b) for a, b in pairwise(table)),
                place="section 3, proof of proposition 2: “for any adjacent D, D′ ∈ D′ there exist "
                "A ∈ D, so that g(D) and A, A and g(D′) are adjacent in D”",
                covers="that proof is the only use of the definition",
            )
        },
        check=at_most(
            _joined,
            [(table, Fraction(2)) for table in ((0, 1, 2, 3), (1, 3, 2), (30, 20, 10))],
            "enumeration",
        ),
        reason="The two sides of the condition stand the wrong way round. A map to multiples of 10 "
        "never makes neighbours, so that it is stable for every c, and costs 10ε.",
        instead="Ask how far neighbouring inputs are sent apart.",
    ),
    Statement(
        id="mironov2017.proposition-2",
        where="section 3, proposition 2; table 1, last row",
        text="(α, ε)-RDP after a 2^c-stable map is (α/2^c, 3^c ε)-RDP, for α ≥ 2^(c + 1).",
        printed=lambda alpha, c, epsilon: (alpha / 2**c, 3**c * epsilon),
        check=at_most(
            _group,
            [
                (Fraction(4), 1, Fraction(2)),
                (Fraction(5), 1, Fraction(11, 10)),
                (Fraction(8), 2, Fraction(3, 2)),
            ],
            "enclosure",
            ends=[(Fraction(4), 1, Fraction(1))],
        ),
    ),
    Statement(
        id="mironov2017.proposition-2.step",
        where="section 3, proof of proposition 2",
        text="D_(α/2)(P‖Q) ≤ (α − 1)/(α − 2)·D_α(P‖R) + D_(α − 1)(R‖Q).",
        printed=lambda alpha, first, second: number((alpha - 1) / (alpha - 2)) * first + second,
        check=at_most(
            _halved,
            [
                (*_chain(Fraction(4), 1, Fraction(2))[0], Fraction(4)),
                # where Hölder's inequality is an equality
                (law(16, 1), law(4, 1), law(1, 16), Fraction(3)),
            ],
            "enclosure",
        ),
    ),
)
