"""Finite laws that the ledger of Mironov 2017 compares, and their divergences, outcome by outcome.

An event of a mechanism is one of two outcomes of a coarser one, so that laws of two or three
outcomes show what any event does. Randomized response that keeps r/(1 + r) of the answers is the
worst of all mechanisms with e^ε = r, and n of them together the worst of all n-fold compositions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

from flint import arb

from dpverify.ledger.oracles import number

__all__ = [
    "ALIKE",
    "CERTAIN",
    "PAIRS",
    "Event",
    "Law",
    "apart_most",
    "at_one",
    "clamped",
    "composed",
    "divergence",
    "events",
    "greatest",
    "law",
    "mass",
    "response",
]

Law = tuple[Fraction, ...]
Event = tuple[int, ...]
_STEP = Fraction(1, 10**20)


def law(*weights: int) -> Law:
    """The law with these weights over their sum."""
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


PAIRS: list[tuple[Law, Law]] = [
    (law(1, 1), law(1, 2)),
    (law(3, 1), law(1, 3)),
    (law(1, 9), law(1, 999)),
    (law(3, 2, 1), law(1, 2, 3)),
    (law(1, 5, 14), law(8, 8, 4)),
]
ALIKE = (law(1, 2, 1), law(1, 2, 1))
CERTAIN = (law(1, 0), law(1, 1))
"""P/Q is one number wherever P is: all divergences of P from Q are ln 2."""


def events(outcomes: int) -> list[Event]:
    """Every event but none and all of the outcomes."""
    return [event for event in product((0, 1), repeat=outcomes) if 0 < sum(event) < outcomes]


def mass(p: Law, event: Event) -> Fraction:
    """Probability of an event."""
    return sum((a for a, chosen in zip(p, event, strict=True) if chosen), Fraction(0))


def divergence(p: Sequence[Fraction], q: Sequence[Fraction], order: Any) -> Any:
    """Rényi's divergence of an order other than 1, ln Σ p·e^((α − 1)·ln(p/q)) over α − 1."""
    less = number(order) - 1
    possible = ((a, b) for a, b in zip(p, q, strict=True) if a)
    terms = (number(a) * (less * number(a / b).log()).exp() for a, b in possible)
    return sum(terms, arb(0)).log() / less


def at_one(p: Law, q: Law) -> Any:
    """The divergence of order 1, between those of the orders 1 ∓ 10⁻²⁰, as it rises with them."""
    return divergence(p, q, 1 - _STEP).union(divergence(p, q, 1 + _STEP))


def greatest(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """Largest ratio of probabilities of one outcome."""
    return max(a / b for a, b in zip(p, q, strict=True))


def apart_most(p: Law, q: Law, order: Any) -> Any:
    """The ε that a mechanism with these laws on neighbours has, the larger of both directions."""
    return divergence(p, q, order).max(divergence(q, p, order))


def response(odds: Fraction) -> tuple[Law, Law]:
    """Laws of randomized response that keeps its answer with these odds."""
    keep = odds / (1 + odds)
    return (keep, 1 - keep), (1 - keep, keep)


def composed(count: int, odds: Fraction) -> tuple[Law, Law]:
    """Laws of the number of ones among so many of these responses, for either answer."""
    total = (1 + odds) ** count
    p = tuple(comb(count, ones) * odds**ones / total for ones in range(count + 1))
    return p, p[::-1]


def clamped(start: int, odds: Fraction, last: int) -> Law:
    """Law of start + two-sided geometric noise with e^ε = odds, clamped to 0 … last."""
    step = 1 / odds
    inner = [step ** abs(x - start) * (1 - step) / (1 + step) for x in range(last + 1)]
    inner[0] = step**start / (1 + step)
    inner[-1] = 1 - sum(inner[:-1], Fraction(0))  # what is beyond it too
    return tuple(inner)
