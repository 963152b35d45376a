"""Sections 7 and 8: what a Rényi bound means, and what is left open."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import number, rounded
from dpverify.ledger.statements import Correction, Reading, Statement

from .laws import PAIRS, Law, apart_most, divergence, law

__all__ = ["CLAIMS"]

_RARE = (law(1, 99), law(1, 999_999))  # 10⁴ times as likely, once in 100
_LIMITS = [(*pair, order, beta) for pair in PAIRS for order in (2, 3) for beta in (1, 2)]
_ORDER, _EPSILON = Fraction(10), Fraction(1, 10)  # section 7's example


def _change(p: Law, q: Law, prior: Fraction, outcome: int) -> Fraction:
    """How the odds of D to D′ change, by Bayes' rule from the joint law."""
    joint = (prior * p[outcome], (1 - prior) * q[outcome])
    return joint[0] / joint[1] / (prior / (1 - prior))


def _moment(p: Law, q: Law, order: int) -> Fraction:
    return sum(
        (a * _change(p, q, Fraction(1, 5), x) ** (order - 1) for x, a in enumerate(p)), Fraction(0)
    )


def _above(p: Law, q: Law, beta: int) -> Fraction:
    """Probability that the odds rise by more than β."""
    return sum((a for x, a in enumerate(p) if _change(p, q, Fraction(1, 5), x) > beta), Fraction(0))


def _exceeds(formula: Any, p: Law, q: Law, order: int | Fraction, beta: int) -> tuple[Any, Any]:
    bound = formula(number(order), apart_most(p, q, Fraction(order)), beta)
    return number(_above(p, q, beta)), bound


def _range(baseline: Fraction) -> tuple[Any, Any]:
    """Ends of probability preservation, either way, at the example's order."""
    root = (_ORDER - 1) / _ORDER
    factor = number(_EPSILON).exp()
    return number(baseline) ** number(1 / root) / factor, (factor * number(baseline)) ** number(
        root
    )


def _bound(mass: Fraction, other: Fraction, order: Fraction) -> Any:
    """Proposition 10's bound on P(A), which is `mass`, where Q(A) is another one."""
    d = divergence((mass, 1 - mass), (other, 1 - other), order)
    return (d.exp() * number(other)) ** number((order - 1) / order)


def _reached(baseline: Fraction) -> tuple[Any, Any]:
    """Ends of what an event of this probability can have on a neighbour, by halving.

    Two outcomes reach all that any mechanism does, by post-processing.
    """
    ends = []
    for bound in _range(baseline):
        inside, outside = baseline, Fraction(float(bound))
        for _ in range(40):
            middle = (inside + outside) / 2
            laws = (baseline, 1 - baseline), (middle, 1 - middle)
            within = apart_most(*laws, _ORDER) <= number(_EPSILON)
            inside, outside = (middle, outside) if within else (inside, middle)
        ends.append(number(inside))
    return ends[0], ends[1]


_DIGITS = {Fraction(1, 2): (3, 3), Fraction(1, 1000): (5, 5), Fraction(1, 10**6): (9, 8)}
_PRINTED = {
    Fraction(1, 2): (Fraction(419, 1000), Fraction(586, 1000)),
    Fraction(1, 1000): (Fraction(42, 10**5), Fraction(218, 10**5)),
    Fraction(1, 10**6): (Fraction(195, 10**9), Fraction(436, 10**8)),
}


def _rounded_ends(use: str, baseline: Fraction) -> tuple[Fraction, ...]:
    ends = {"bound": _range, "reached": _reached}[use](baseline)
    return tuple(map(rounded, ends, _DIGITS[baseline]))


def _ranges(name: str, text: str, *baselines: Fraction, reason: str) -> Statement:
    """Of these probabilities the ranges of section 7's example, one sentence and the next."""
    return Statement(
        id=f"mironov2017.{name}",
        where="section 7, baseline-dependent guarantees",
        text=text,
        printed=lambda use, baseline: _PRINTED[baseline],
        readings={
            "these are proposition 10's bounds": Reading(
                lambda use, baseline: _PRINTED[baseline] if use == "bound" else None,
                place="the sentence before: “The Rényi differential privacy bound gets weaker for "
                "less likely outcomes. For instance, …”",
                covers="the bound is computed at the example's own order, ε and probability",
            )
        },
        check=equals(
            _rounded_ends,
            [(use, baseline) for use in ("bound", "reached") for baseline in baselines],
            "enclosure",
        ),
        reason=reason,
        instead="Read the two numbers as bounds that aren't reached.",
    )


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="mironov2017.section-7.moment",
        where="section 7, probabilistic privacy guarantee",
        text="The mean of the (α − 1)-th power of the change in the odds of D to D′ is at most "
        "e^((α − 1)ε).",
        printed=lambda less, epsilon: (less * epsilon).exp(),
        check=at_most(
            lambda formula, p, q, order: (
                number(_moment(p, q, order)),
                formula(order - 1, apart_most(p, q, Fraction(order))),
            ),
            [(*pair, order) for pair in PAIRS for order in (2, 3)],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.section-7.markov",
        where="section 7, probabilistic privacy guarantee",
        text="The odds of D to D′ rise by more than β with probability below e^ε/β^(1/(α − 1)).",
        printed=lambda order, epsilon, beta: epsilon.exp() / number(beta) ** (1 / (order - 1)),
        corrections={
            "(e^ε/β)^(α − 1)": Correction(
                lambda order, epsilon, beta: (epsilon.exp() / number(beta)) ** (order - 1),
                proof="Markov’s inequality for the power α − 1",
            )
        },
        check=at_most(_exceeds, [*_LIMITS, (*_RARE, Fraction(3, 2), 9000)], "enclosure"),
        reason="Markov's inequality for the (α − 1)-th power gives (e^ε/β)^(α − 1). Where β is "
        "above e^ε, what is printed is larger than that for α above 2, and false below: at α = 3/2 "
        "it has β² in place of √β.",
        instead="Use (e^ε/β)^(α − 1). At α = 2 both are the same.",
    ),
    Statement(
        id="mironov2017.section-7.markov.two",
        where="section 7, probabilistic privacy guarantee",
        text="At α = 2 that probability drops off as O(1/β).",
        conditions="judged with the constant e^ε",
        printed=lambda order, epsilon, beta: epsilon.exp() / beta,
        check=at_most(
            _exceeds,
            [(*_RARE, 2, beta) for beta in (10, 1000, 9000)],
            "enclosure",
        ),
    ),
    _ranges(
        "section-7.example",
        "Under (10, .1)-RDP an event of probability .5 can be as large as .586 and as small as "
        ".419 on a neighbour.",
        Fraction(1, 2),
        reason="The numbers are what the bound gives, and the definition bounds the divergence "
        "both ways. No mechanism comes so far: to three digits from .422 to .578 is what can be.",
    ),
    _ranges(
        "section-7.example.rare",
        "Of .001 the range is [.00042, .00218], and of 10⁻⁶ [.195·10⁻⁶, 4.36·10⁻⁶].",
        Fraction(1, 1000),
        Fraction(1, 10**6),
        reason="The numbers are what the bound gives, as for .5. What can be, to the digits given, "
        "is [.00044, .00207] and [.207·10⁻⁶, 4.13·10⁻⁶].",
    ),
    Statement(
        id="mironov2017.figure-3",
        where="section 7, figure 3 and the paragraph about it",
        text="With 13 orders in place of all of them the bounds are nearly identical.",
        reason=(
            "The paper doesn't say which difference would be too large. By table 2's curves the "
            "restricted orders cost at most 2, 6 and 15 % of the ratio, for events of .1, 10⁻³ "
            "and 10⁻⁶."
        ),
    ),
    Statement(
        id="mironov2017.section-8.limit",
        where="section 8, second open question",
        text="Where D_α goes to 0 the bound of proposition 10 doesn't improve beyond "
        "P(A)^((α − 1)/α).",
        conditions="the quotient of the two is within twice the step of 1 where Q(A) is 1 − step "
        "times P(A)",
        printed=lambda baseline, order: number(baseline) ** number((order - 1) / order),
        check=at_most(
            lambda formula, baseline, order, step: (
                abs(_bound(baseline, baseline * (1 - step), order) / formula(baseline, order) - 1),
                number(2 * step),
            ),
            [
                (baseline, order, step)
                for baseline, order in [
                    (Fraction(1, 10), Fraction(3)),
                    (Fraction(1, 1000), Fraction(10)),
                    (Fraction(1, 10**6), Fraction(2)),
                ]
                for step in (Fraction(1, 100), Fraction(1, 10**9))
            ],
            "enclosure",
        ),
    ),
)
