"""Sections 4 and 5: (ε, δ) from Rényi's divergence, and many mechanisms together.

By lemma 1 n mechanisms of ε have D_α ≤ 2αnε². Write L = ln(1/Q) and s = ε√(nL). Probability
preservation with proposition 4's α = √L/(ε√n) gives the exponent 2(α − 1)nε² + L/α = 3s − 2nε²,
which is above the 2s that is claimed wherever L > 4nε². With .5 in place of lemma 1's 2, as the
paper says one can have, it is 3s/2 − nε²/2, and below 2s: the proposition is true, and its proof
needs the better constant.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpverify.ledger.checks import at_most, equals
from dpverify.ledger.oracles import number
from dpverify.ledger.statements import Correction, Statement

from .laws import (
    ALIKE,
    PAIRS,
    Event,
    Law,
    apart_most,
    composed,
    divergence,
    events,
    greatest,
    mass,
    response,
)

__all__ = ["CLAIMS"]

_CONVERTED = [
    (p, q, Fraction(order), delta)
    for p, q in PAIRS
    for order in (2, 5)
    for delta in (Fraction(1, 4), Fraction(1, 1000))
]
_ODDS = [Fraction(101, 100), Fraction(3, 2), Fraction(10)]
_ORDERS = [Fraction(5, 4), Fraction(2), Fraction(7)]
_COMPOSED = [(4, Fraction(11, 10)), (40, Fraction(5, 4)), (100, Fraction(21, 20))]
_RARE = [
    (p, q, order, delta, event)
    for p, q in PAIRS
    for order in (Fraction(20), Fraction(100))
    for delta in (Fraction(1, 4), Fraction(1, 1000))
    for event in events(len(p))
    if max(greatest(p, q), greatest(q, p)) * mass(q, event) <= Fraction(3, 4)  # else it may be 1
]
_HIGH = [(20, Fraction(11, 10), Fraction(1, 100)), (100, Fraction(21, 20), Fraction(1, 10**4))]


def _log(value: Any) -> Any:
    return number(value).log()


def _positive(p: Law, q: Law, factor: Any) -> Any:
    """Σ (P − factor·Q) over the outcomes where it is positive."""
    rest = (number(a) - factor * number(b) for a, b in zip(p, q, strict=True))
    return sum((part for part in rest if part > 0), number(0))


def _stronger(
    formula: Any, p: Law, q: Law, alpha: Fraction, delta: Fraction, event: Event
) -> tuple[Any, Any]:
    raised = formula(alpha, apart_most(p, q, alpha), delta).exp() * number(mass(q, event))
    return number(mass(p, event)), raised.max(number(delta))


def _distance(p: Law, q: Law) -> Fraction:
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0))


def _moment(p: Law, q: Law, alpha: Fraction) -> Any:
    return (number(alpha - 1) * divergence(p, q, alpha)).exp()


def _tails(count: int, odds: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Probabilities of at least so many ones, more than half of them, for either answer."""
    p, q = composed(count, odds)
    leasts = range(count // 2 + 1, count + 1)
    return [(Fraction(sum(p[least:])), Fraction(sum(q[least:]))) for least in leasts]


def _gained(formula: Any, count: int, odds: Fraction) -> tuple[Any, Any]:
    """Of all these events the one that comes nearest to its bound, where that is below 1."""
    epsilon = _log(odds)
    found = [
        (number(p), formula(count, epsilon, number(q)) * number(q)) for p, q in _tails(count, odds)
    ]
    telling = [ends for ends in found if ends[1] < 1]
    return max(telling, key=lambda ends: float(ends[0] / ends[1]))


def _or_delta(formula: Any, count: int, odds: Fraction, delta: Fraction) -> tuple[Any, Any]:
    """Of these events the one whose probability comes nearest to max(e^ε′·Q(S), δ), below 1."""
    factor = formula(count, _log(odds), delta).exp()
    bounds = [(number(p), (factor * number(q)).max(number(delta))) for p, q in _tails(count, odds)]
    return max((ends for ends in bounds if ends[1] < 1), key=lambda ends: float(ends[0] / ends[1]))


def _raised(count: int, epsilon: Fraction, q: Fraction) -> Any:
    """Probability preservation's factor of Q at proposition 4's α, for D_α = 2αnε²."""
    alpha = _log(1 / q).sqrt() / (number(epsilon) * number(Fraction(count)).sqrt())
    divergent = 2 * alpha * count * number(epsilon**2)
    return (divergent.exp() * number(q)) ** (1 - 1 / alpha) / number(q)


def _least_epsilon(count: int, odds: Fraction, delta: Fraction) -> Any:
    """Least ε of so many responses at δ: where Σ (P − e^ε Q) over the outcomes above it is δ."""
    p, q = composed(count, odds)
    for least in range(count, -1, -1):  # the largest loss first
        factor = (sum(p[least:]) - delta) / sum(q[least:])
        if least == 0 or factor >= p[least - 1] / q[least - 1]:
            break
    return _log(max(factor, Fraction(1)))


CLAIMS: tuple[Statement, ...] = (
    Statement(
        id="mironov2017.section-4.monotone",
        where="section 4, first paragraph",
        text="(∞, ε)-RDP implies (α, ε)-RDP for every finite α.",
        printed=lambda epsilon: epsilon,
        check=at_most(
            lambda formula, p, q, alpha: (
                apart_most(p, q, alpha),
                formula(_log(max(greatest(p, q), greatest(q, p)))),
            ),
            [(p, q, alpha) for p, q in PAIRS for alpha in _ORDERS],
            "enclosure",
            ends=[(*ALIKE, Fraction(2))],
        ),
    ),
    Statement(
        id="mironov2017.proposition-3",
        where="section 4, proposition 3",
        text="(α, ε)-RDP gives (ε + ln(1/δ)/(α − 1), δ) for every 0 < δ < 1.",
        printed=lambda alpha, epsilon, delta: epsilon + number(1 / delta).log() / number(alpha - 1),
        check=at_most(
            lambda formula, p, q, alpha, delta: (
                _positive(p, q, formula(alpha, apart_most(p, q, alpha), delta).exp()),
                number(delta),
            ),
            _CONVERTED,
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-3.stronger",
        where="section 4, proof of proposition 3",
        text="P(S) ≤ max(e^ε′ Q(S), δ) with ε′ = ε + ln(1/δ)/(α − 1).",
        printed=lambda alpha, epsilon, delta: epsilon + number(1 / delta).log() / number(alpha - 1),
        check=at_most(
            _stronger,
            _RARE,
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-3.large",
        where="section 4, proof of proposition 3, case I",
        text="(e^ε Q)^(−1/α) ≤ δ^(−1/(α − 1)) where e^ε Q > δ^(α/(α − 1)).",
        conditions="judged where both sides of the condition are equal, too",
        printed=lambda alpha, delta: number(delta) ** number(-1 / (alpha - 1)),
        check=at_most(
            lambda formula, alpha, delta, times: (
                (times * number(delta) ** number(alpha / (alpha - 1))) ** number(-1 / alpha),
                formula(alpha, delta),
            ),
            [
                (Fraction(2), Fraction(1, 10), 1),
                (Fraction(7, 2), Fraction(1, 1000), 3),
                (Fraction(11, 10), Fraction(1, 2), 2),
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.proposition-3.small",
        where="section 4, proof of proposition 3, case II",
        text="(e^ε Q)^(1 − 1/α) ≤ δ where e^ε Q ≤ δ^(α/(α − 1)).",
        printed=lambda delta: delta,
        check=at_most(
            lambda formula, alpha, delta, times: (
                (number(times) * number(delta) ** number(alpha / (alpha - 1)))
                ** number(1 - 1 / alpha),
                number(formula(delta)),
            ),
            [
                (Fraction(2), Fraction(1, 10), Fraction(1)),
                (Fraction(7, 2), Fraction(1, 1000), Fraction(1, 3)),
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.lemma-1",
        where="section 5, lemma 1",
        text="Where D_∞ is at most ε both ways, D_α ≤ 2αε².",
        printed=lambda alpha, epsilon: 2 * alpha * epsilon**2,
        check=at_most(
            lambda formula, odds, alpha: (
                divergence(*response(odds), alpha),
                formula(number(alpha), _log(odds)),
            ),
            [(odds, alpha) for odds in _ODDS for alpha in _ORDERS],
            "enclosure",
            ends=[(Fraction(1), Fraction(2))],
        ),
    ),
    Statement(
        id="mironov2017.lemma-1.constant",
        where="section 5, after lemma 1",
        text="The constant 2 of lemma 1 can be improved to .5.",
        printed=lambda: Fraction(1, 2),
        check=at_most(
            lambda formula, odds, alpha: (
                divergence(*response(odds), alpha),
                number(formula() * alpha) * _log(odds) ** 2,
            ),
            [(odds, alpha) for odds in _ODDS for alpha in _ORDERS],
            "enclosure",
            ends=[(Fraction(1), Fraction(2))],
        ),
        reason="With .5 the proof of proposition 4 goes through; with 2 it doesn't.",
    ),
    Statement(
        id="mironov2017.lemma-1.large-orders",
        where="section 5, proof of lemma 1, first line",
        text="ε ≤ (α − 1)ε² for α ≥ 1 + 1/ε.",
        printed=lambda alpha, epsilon: (alpha - 1) * epsilon**2,
        check=at_most(
            lambda formula, epsilon, more: (epsilon, formula(1 + 1 / epsilon + more, epsilon)),
            [(Fraction(1, 10), Fraction(0)), (Fraction(2), Fraction(3))],
            "points",
        ),
    ),
    Statement(
        id="mironov2017.equation-2.equality",
        where="section 5, proof of lemma 1, equation 2, its first line",
        text="x^(β + 1)y^(−β) + x^(−β)y^(β + 1) = xe^(βλ) + ye^(−βλ), λ = ln(x/y).",
        printed=lambda x, y, beta: (
            number(x) * (number(beta) * number(x / y).log()).exp()
            + number(y) * (-number(beta) * number(x / y).log()).exp()
        ),
        check=equals(
            lambda x, y, beta: x * (x / y) ** int(beta) + y * (y / x) ** int(beta),
            [
                (Fraction(3, 4), Fraction(1, 4), Fraction(2)),
                (Fraction(2), Fraction(1), Fraction(5)),
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.equation-2",
        where="section 5, proof of lemma 1, equation 2",
        text="xe^(βλ) + ye^(−βλ) ≤ (1 + (βλ)²)(x + y) + βλ(x − y) for 0 ≤ β ≤ 1/λ.",
        printed=lambda x, y, product: (1 + product**2) * (x + y) + product * (x - y),
        check=at_most(
            lambda formula, x, y, product: (
                number(x) * number(product).exp() + number(y) * number(-product).exp(),
                number(formula(x, y, product)),
            ),
            [
                (Fraction(3, 4), Fraction(1, 4), Fraction(1)),
                (Fraction(100), Fraction(1), Fraction(1, 2)),
            ],
            "enclosure",
            ends=[(Fraction(100), Fraction(1), Fraction(0))],
        ),
    ),
    Statement(
        id="mironov2017.lemma-1.both",
        where="section 5, proof of lemma 1, second line of the chain",
        text="∫P^α Q^(1 − α) ≤ ∫(P^α Q^(1 − α) + Q^α P^(1 − α)) − 1.",
        printed=lambda one, other: one + other - 1,
        check=at_most(
            lambda formula, p, q, alpha: (
                _moment(p, q, alpha),
                formula(_moment(p, q, alpha), _moment(q, p, alpha)),
            ),
            [(p, q, alpha) for p, q in [*PAIRS, ALIKE] for alpha in _ORDERS[:2]],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.lemma-1.expanded",
        where="section 5, proof of lemma 1, last line of the chain",
        text="e^((α − 1)D_α) ≤ 1 + 2(α − 1)²ε² + (α − 1)ε‖P − Q‖₁ for α < 1 + 1/ε.",
        printed=lambda less, epsilon, distance: (
            1 + 2 * less**2 * epsilon**2 + less * epsilon * distance
        ),
        check=at_most(
            lambda formula, odds, less: (
                _moment(*response(odds), 1 + less),
                formula(number(less), _log(odds), number(_distance(*response(odds)))),
            ),
            [
                (Fraction(101, 100), Fraction(50)),
                (Fraction(3, 2), Fraction(2)),
                (Fraction(10), Fraction(2, 5)),
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.equation-3",
        where="section 5, proof of lemma 1, equation 3",
        text="D_α ≤ 2(α − 1)ε² + ε‖P − Q‖₁ for α < 1 + 1/ε.",
        printed=lambda less, epsilon, distance: 2 * less * epsilon**2 + epsilon * distance,
        check=at_most(
            lambda formula, odds, less: (
                divergence(*response(odds), 1 + less),
                formula(number(less), _log(odds), number(_distance(*response(odds)))),
            ),
            [
                (Fraction(101, 100), Fraction(50)),
                (Fraction(3, 2), Fraction(2)),
                (Fraction(10), Fraction(2, 5)),
            ],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.lemma-1.distance",
        where="section 5, proof of lemma 1, after equation 3",
        text="‖P − Q‖₁ ≤ min(2, e^ε − 1) ≤ 2ε².",
        printed=lambda epsilon: 2 * epsilon**2,
        corrections={
            "‖P − Q‖₁ ≤ min(2, e^ε − 1) ≤ 2ε": Correction(
                lambda epsilon: 2 * epsilon,
                place="lemma 1 itself: equation 3 gives its 2αε² with 2ε, for ε times that is 2ε²",
                change="ε for ε²",
            )
        },
        check=at_most(
            lambda formula, odds: (
                number(_distance(*response(odds))),
                formula(_log(odds)),
            ),
            [(odds,) for odds in _ODDS],
            "enclosure",
        ),
        reason="For a small ε the distance is about ε, as randomized response shows, and 2ε² is "
        "far below it. The lemma follows with 2ε.",
        instead="Bound the distance by min(2, e^ε − 1), or exactly by 2(e^ε − 1)/(e^ε + 1).",
    ),
    Statement(
        id="mironov2017.proposition-4.curve",
        where="section 5, proof of proposition 4",
        text="n mechanisms of ε have D_α ≤ 2αnε² together.",
        printed=lambda alpha, n, epsilon: 2 * alpha * n * epsilon**2,
        check=at_most(
            lambda formula, n, odds, alpha: (
                divergence(*composed(n, odds), alpha),
                formula(number(alpha), n, _log(odds)),
            ),
            [(*case, alpha) for case in _COMPOSED[:2] for alpha in _ORDERS],
            "enclosure",
            ends=[(4, Fraction(1), Fraction(2))],
        ),
    ),
    Statement(
        id="mironov2017.proposition-4",
        where="section 5, proposition 4; section 7, the first of two statements",
        text="Of n mechanisms of ε, chosen adaptively, P(S) ≤ e^(2ε√(n ln(1/Q(S))))·Q(S).",
        printed=lambda n, epsilon, q: (2 * epsilon * (n * (1 / q).log()).sqrt()).exp(),
        check=at_most(_gained, _COMPOSED, "enclosure", ends=[(4, Fraction(1))]),
        reason="True, with a step of its proof that isn't.",
    ),
    Statement(
        id="mironov2017.proposition-4.large",
        where="section 5, proof of proposition 4, case I",
        text="exp(2(α − 1)nε²)·Q^(1 − 1/α) < exp(ε√(n ln(1/Q)) − ln(Q)/α)·Q at "
        "α = √(ln(1/Q))/(ε√n) ≥ 1.",
        printed=lambda n, epsilon, log: (
            epsilon * (n * log).sqrt() + log * epsilon * number(Fraction(n)).sqrt() / log.sqrt()
        ),
        corrections={
            "exp(3ε√(n ln(1/Q)) − 2nε²)·Q": Correction(
                lambda n, epsilon, log: 3 * epsilon * (n * log).sqrt() - 2 * n * epsilon**2,
                proof="at that α, 2αnε² is 2ε√(n ln(1/Q)) and −ln(Q)/α is ε√(n ln(1/Q))",
            )
        },
        check=at_most(
            lambda formula, n, epsilon, q: (
                _raised(n, epsilon, q),
                formula(n, number(epsilon), _log(1 / q)).exp(),
            ),
            [
                (4, Fraction(1, 2), Fraction(1, 10)),
                (4, Fraction(1, 10), Fraction(1, 10)),
                (100, Fraction(1, 20), Fraction(1, 10**6)),
            ],
            "enclosure",
        ),
        reason=(
            "2(α − 1)nε² is 2ε√(n ln(1/Q)) − 2nε², which isn't below ε√(n ln(1/Q)) for rare "
            "events. It isn't where ln(1/Q) > 4nε². With .5 in place of lemma 1's constant 2 the "
            "step and the proposition are true."
        ),
        instead="Prove proposition 4 by lemma 1 with the constant .5 of the remark after it.",
    ),
    Statement(
        id="mironov2017.proposition-4.small",
        where="section 5, proof of proposition 4, case II",
        text="exp(2ε√(n ln(1/Q)))·Q ≥ 1/Q where ln(1/Q) < ε²n.",
        conditions="judged where both sides of the condition are equal, too; ε√n is so many times "
        "√(ln(1/Q))",
        printed=lambda q: 1 / q,
        check=at_most(
            lambda formula, log, times: (
                formula((-number(log)).exp()),
                number(2 * times * log).exp() * (-number(log)).exp(),
            ),
            [(Fraction(1), Fraction(1)), (Fraction(1, 2), Fraction(3, 2))],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.corollary-1",
        where="section 5, corollary 1; section 7, the second of two statements",
        text="n mechanisms of ε are (4ε√(2n ln(1/δ)), δ)-private where ln(1/δ) ≥ ε²n.",
        printed=lambda n, epsilon, delta: 4 * epsilon * (2 * n * number(1 / delta).log()).sqrt(),
        check=at_most(
            lambda formula, n, odds, delta: (
                _least_epsilon(n, odds, delta),
                formula(n, _log(odds), delta),
            ),
            _HIGH,
            "enclosure",
            ends=[(20, Fraction(1), Fraction(1, 100))],
        ),
    ),
    Statement(
        id="mironov2017.corollary-1.stronger",
        where="section 5, proof of corollary 1: “a somewhat stronger statement”",
        text="P(S) ≤ max(e^ε′ Q(S), δ) with that ε′.",
        printed=lambda n, epsilon, delta: 4 * epsilon * (2 * n * number(1 / delta).log()).sqrt(),
        check=at_most(_or_delta, [*_HIGH, (20, Fraction(101, 100), Fraction(1, 100))], "enclosure"),
    ),
    Statement(
        id="mironov2017.corollary-1.likely",
        where="section 5, proof of corollary 1, case I",
        text="2ε√(8n ln(1/δ)) = 4ε√(2n ln(1/δ)).",
        printed=lambda n, epsilon, log: 2 * number(epsilon) * number(8 * n * log).sqrt(),
        check=equals(
            lambda n, epsilon, log: number(32 * epsilon**2 * n * log).sqrt(),
            [(5, Fraction(1, 10), Fraction(3)), (8, Fraction(1, 2), Fraction(4))],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.corollary-1.rare",
        where="section 5, proof of corollary 1, case II",
        text="exp(2√(ln(1/δ)·ln(1/Q)))·Q ≤ exp(√(1/2)·ln(1/Q))·Q = Q^(1 − 1/√2) where "
        "8 ln(1/δ) ≤ ln(1/Q).",
        printed=lambda log: (-number(log) * (1 - 1 / number(2).sqrt())).exp(),
        check=at_most(
            lambda formula, delta_log, log: (
                (2 * number(delta_log * log).sqrt() - number(log)).exp(),
                formula(log),
            ),
            [(Fraction(1), Fraction(8)), (Fraction(3), Fraction(30))],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.corollary-1.last",
        where="section 5, proof of corollary 1, case II, last line",
        text="Q^(1 − 1/√2) ≤ Q^(1/8).",
        printed=lambda: Fraction(1, 8),
        check=at_most(
            lambda formula, log: (
                (-number(log) * (1 - 1 / number(2).sqrt())).exp(),
                (-number(log * formula())).exp(),
            ),
            [(Fraction(8),), (Fraction(1, 10),)],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.remark-3",
        where="section 5, remark 3",
        text="Where ln(1/δ) ≥ ε²n, ε of all together is below (1 + √2)·ln(1/δ).",
        conditions="judged by the least ε that n responses have at δ",
        printed=lambda log: (1 + number(2).sqrt()) * log,
        check=at_most(
            lambda formula, n, odds, delta: (
                _least_epsilon(n, odds, delta),
                formula(_log(1 / delta)),
            ),
            [*_HIGH, (100, Fraction(6, 5), Fraction(1, 50))],
            "enclosure",
        ),
    ),
    Statement(
        id="mironov2017.remark-3.eleven",
        where="section 5, remark 3",
        text="At δ of 1 % that covers an ε of all together up to 11.",
        printed=lambda: 11,
        check=at_most(
            lambda formula: (number(formula()), (1 + number(2).sqrt()) * number(100).log()),
            [()],
            "enclosure",
        ),
    ),
)
