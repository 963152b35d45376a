"""Section 4.3: randomized response, by enumeration of every output of every pair of records.

Two bits that are each flipped with probability f agree or disagree as before with probability
q = f² + (1 − f)². So the squared distance of the perturbed records is a sum of d independent coins,
w of probability q and d − w of probability 1 − q; its law is a convolution of fractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any

from flint import arb

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.letters import letters
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Statement

__all__ = ["CLAIMS"]

_FLIPS = (Fraction(1, 10), Fraction(1, 4), Fraction(9, 20))
_LETTERED = [(d, w, letters("f")[0]) for d in (1, 2, 3) for w in range(d + 1)]
_SIZES = [(d, w, f) for d in (1, 3, 4) for w in range(d + 1) for f in _FLIPS]
_LONG = [(d, w, f) for d, w in ((20, 3), (40, 40)) for f in _FLIPS]
Bits = tuple[int, ...]


def _output(x: Bits, seen: Bits, flip: Fraction) -> Fraction:
    """P(x is published as `seen`)."""
    return prod((1 - flip if a == b else flip for a, b in zip(x, seen, strict=True)), start=_ONE)


_ONE = Fraction(1)


def _worst_ratio(d: int, changed: int, flip: Fraction) -> Fraction:
    """Largest ratio of probabilities over all outputs and records that differ in some bits."""
    outputs = list(product((0, 1), repeat=d))
    return max(
        _output(x, seen, flip) / _output(y, seen, flip)
        for x, y in product(outputs, repeat=2)
        if sum(a != b for a, b in zip(x, y, strict=True)) == changed
        for seen in outputs
    )


@cache
def _enumerated(d: int, w: int, flip: Fraction) -> Mapping[int, Fraction]:
    """Law of the squared distance of two perturbed records that differ in their first w bits."""
    law = dict.fromkeys(range(d + 1), Fraction(0))
    x, y = (1,) * w + (0,) * (d - w), (0,) * d
    outputs = list(product((0, 1), repeat=d))
    for a, b in product(outputs, repeat=2):
        law[sum(s != t for s, t in zip(a, b, strict=True))] += _output(x, a, flip) * _output(
            y, b, flip
        )
    return law


@cache
def _law(d: int, w: int, flip: Fraction) -> Mapping[int, Fraction]:
    """The same law as a convolution, for long records."""
    stay = flip**2 + (1 - flip) ** 2
    law = [Fraction(1)]
    for position in range(d):
        one = stay if position < w else 1 - stay
        law = [
            a * (1 - one) + b * one
            for a, b in zip([*law, Fraction(0)], [Fraction(0), *law], strict=True)
        ]
    return dict(enumerate(law))


def _mean(law: Mapping[int, Fraction]) -> Fraction:
    return sum((p * value for value, p in law.items()), Fraction(0))


def _variance(law: Mapping[int, Fraction]) -> Fraction:
    return sum((p * value**2 for value, p in law.items()), Fraction(0)) - _mean(law) ** 2


def _estimate(value: Fraction | int, d: int, flip: Fraction) -> Fraction:
    """Algorithm 6."""
    return (value - 2 * d * flip * (1 - flip)) / (1 - 2 * flip) ** 2


def _beyond(d: int, w: int, flip: Fraction, gamma: Any) -> Fraction:
    """P(|squared distance of the perturbed records − its mean| ≥ γ)."""
    law = _law(d, w, flip)
    mean = _mean(law)
    return sum((p for v, p in law.items() if number(abs(v - mean)) >= gamma), Fraction(0))


def _hoeffding(d: int, gamma: Fraction) -> arb:
    return 2 * (-2 * number(gamma) ** 2 / d).exp()


def _deviation(d: int, flip: Fraction, delta: Fraction) -> arb:
    return (d * number(2 / delta).log() / 2).sqrt() / number((1 - 2 * flip) ** 2)


def _missed(formula: Any, d: int, w: int, flip: Fraction, delta: Fraction) -> tuple[Fraction, Any]:
    radius = formula(d, flip, delta)
    law = _law(d, w, flip)
    return sum(
        (p for v, p in law.items() if number(abs(_estimate(v, d, flip) - w)) > radius),
        Fraction(0),
    ), delta


def _least_flip(epsilon: Fraction) -> arb:
    return 1 / (1 + number(epsilon).exp())


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="kenthapadi2013.section-4.3.1.half",
        where="section 4.3.1, before algorithm 5",
        text="With flipping probability ½ every output is as likely from every record.",
        printed=lambda d: Fraction(1),
        check=equals(
            lambda d: _worst_ratio(d, d, Fraction(1, 2)), [(1,), (2,), (3,)], "enumeration"
        ),
    ),
    Statement(
        id="kenthapadi2013.lemma-3.ratio",
        where="section 4.3.1, proof of lemma 3",
        text="One changed bit changes a probability by at most the factor (1 − p)/p.",
        printed=lambda d, f: (1 - f) / f,
        check=equals(
            lambda d, f: _worst_ratio(d, 1, f),
            [(d, f) for d in (1, 2, 3) for f in _FLIPS],
            "enumeration",
        ),
        mechanisms=("randomized-response",),
    ),
    Statement(
        id="kenthapadi2013.lemma-3",
        where="section 4.3.1, lemma 3",
        text="Flipping probability 1/(1 + e^ε) gives (ε, 0)-DP, and is the least that does.",
        printed=_least_flip,
        check=equals(
            lambda e: number(e).exp(),
            [(Fraction(e),) for e in ("1/10", "1", "5")],
            "enclosure",
            of=lambda formula: lambda e: (1 - formula(e)) / formula(e),
        ),
        mechanisms=("randomized-response",),
    ),
    Statement(
        id="kenthapadi2013.section-2.3.collections",
        where="section 2.3, below definition 1, for algorithm 5",
        text="The guarantee extends to t changed bits, at tε: the worst ratio to the t.",
        printed=lambda t, f: ((1 - f) / f) ** t,
        check=equals(
            lambda t, f: _worst_ratio(3, t, f),
            [(t, f) for t in (1, 2, 3) for f in _FLIPS],
            "enumeration",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-3.mean",
        where="section 4.3.2, theorem 3, part 1; algorithm 6",
        text="The estimate (‖x̂ − ŷ‖² − 2dp(1 − p))/(1 − 2p)² is unbiased for ‖x − y‖².",
        printed=_estimate,
        check=equals(
            lambda d, w, f: Fraction(w),
            _LETTERED,
            "identity",
            of=lambda formula: (
                lambda d, w, f: sum(
                    (p * formula(v, d, f) for v, p in _enumerated(d, w, f).items()), Fraction(0)
                )
            ),
        ),
        mechanisms=("randomized-response",),
    ),
    Statement(
        id="kenthapadi2013.theorem-3.proof.mean",
        where="section 4.3.2, proof of theorem 3, claim 1",
        text="E‖x̂ − ŷ‖² = (1 − 2p)²w + 2p(1 − p)d.",
        printed=lambda d, w, f: (1 - 2 * f) ** 2 * w + 2 * f * (1 - f) * d,
        check=equals(lambda d, w, f: _mean(_enumerated(d, w, f)), _LETTERED, "identity"),
    ),
    Statement(
        id="kenthapadi2013.theorem-3.proof.mean-split",
        where="section 4.3.2, proof of theorem 3, claim 1",
        text="E‖x̂ − ŷ‖² = ((1 − p)² + p²)w + 2p(1 − p)(d − w).",
        printed=lambda d, w, f: ((1 - f) ** 2 + f**2) * w + 2 * f * (1 - f) * (d - w),
        check=equals(lambda d, w, f: _mean(_enumerated(d, w, f)), _LETTERED, "identity"),
    ),
    Statement(
        id="kenthapadi2013.theorem-3.proof.unchanged",
        where="section 4.3.2, proof of theorem 3, claim 2",
        text="The distance of two bits stays as it is with probability q = p² + (1 − p)².",
        printed=lambda w, f: f**2 + (1 - f) ** 2,
        check=equals(
            lambda w, f: _enumerated(1, w, f)[w],
            [(w, *letters("f")) for w in (0, 1)],
            "identity",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-3.proof.hoeffding",
        where="section 4.3.2, proof of theorem 3, claim 2, from the middle of the display on",
        text="P(|‖x̂ − ŷ‖² − its mean| ≥ γ) ≤ 2 exp(−2γ²/d).",
        printed=_hoeffding,
        check=at_most(
            lambda g, d, w, f, t: (_beyond(d, w, f, number(t)), g(d, t)),
            [(d, w, f, Fraction(t)) for d, w, f in _LONG for t in (5, 9)],
            "enclosure",
        ),
        reason="our text has no bars on the left of the display, and may have lost them",
    ),
    Statement(
        id="kenthapadi2013.theorem-3.proof.tail",
        where="section 4.3.2, proof of theorem 3, last display",
        text="P(|estimate − ‖x − y‖²| ≥ γ) ≤ 2 exp(−2γ²(1 − 2p)⁴/d).",
        printed=lambda d, f, t: _hoeffding(d, t * (1 - 2 * f) ** 2),
        check=at_most(
            lambda g, d, w, f, t: (_beyond(d, w, f, number(t * (1 - 2 * f) ** 2)), g(d, f, t)),
            [(d, w, f, t / (1 - 2 * f) ** 2) for d, w, f in _LONG for t in (5, 9)],
            "enclosure",
        ),
    ),
    Statement(
        id="kenthapadi2013.theorem-3.deviation",
        where="section 4.3.2, theorem 3, part 2",
        text="|estimate − ‖x − y‖²| ≤ √(d log(2/δ))/(√2(1 − 2p)²), but for probability δ.",
        printed=_deviation,
        check=at_most(
            _missed,
            [(d, w, f, x) for d, w, f in _LONG for x in (Fraction(1, 100), Fraction(1, 2))],
            "enumeration",
        ),
        mechanisms=("randomized-response",),
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.flip",
        where="section 4.3.3",
        text="The flipping probability is within 10 % of ½ − ε/4 for ε < 1.",
        reason="1/(1 + e^ε), lemma 3's, is; at ε = 1 it is 7.6 % above. Our text has 1/(1 + ε), "
        "and in print an e may well stand before the ε.",
    ),
    Statement(
        id="kenthapadi2013.section-4.3.3.far",
        where="section 4.3, of randomized response’s strength at large distances; section 4.3.3",
        text="The spread of randomized response doesn't grow with the distance: its variance "
        "at every w is that at w = 0.",
        printed=lambda d, w, f: _variance(_enumerated(d, 0, f)),
        check=equals(lambda d, w, f: _variance(_enumerated(d, w, f)), _SIZES, "enumeration"),
    ),
)
