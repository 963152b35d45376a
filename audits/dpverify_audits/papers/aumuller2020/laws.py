"""Laws by enumeration that the ledger of Aumüller et al. 2020 shares, in fractions.

A pair of sets is given by its items; ranks run over all permutations of the union, which is all
that MinHash looks at.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import comb, factorial
from typing import Any

from dpverify.ledger.checks import Formula

__all__ = ["PAIRS", "averaged", "binomial", "bucket_law", "jaccard", "min_hash_law", "responses"]

Items = frozenset[int]
Law = dict[tuple[int, int], Fraction]
PAIRS: list[tuple[Items, Items]] = [
    (frozenset({1, 2, 4}), frozenset({2, 4, 5})),
    (frozenset({0, 1}), frozenset({1})),
    (frozenset({0, 1}), frozenset({2, 3})),
    (frozenset({0, 1, 2, 3}), frozenset({1, 2, 3})),
]


def jaccard(x: Items, y: Items) -> Fraction:
    """Items in common over items in either."""
    return Fraction(len(x & y), len(x | y))


def min_hash_law(x: Items, y: Items) -> Law:
    """Law of the pair of first items over all permutations of the union."""
    union = sorted(x | y)
    law: Law = {}
    for order in permutations(union):
        pair = (
            next(item for item in order if item in x),
            next(item for item in order if item in y),
        )
        law[pair] = law.get(pair, Fraction(0)) + Fraction(1, factorial(len(union)))
    return law


def bucket_law(x: Items, y: Items, buckets: int) -> Law:
    """Law of the pair of buckets, over permutations and all functions from items to buckets."""
    law: Law = {}
    for (a, b), weight in min_hash_law(x, y).items():
        for u, v in product(range(buckets), repeat=2):
            if a != b or u == v:
                share = weight / (buckets if a == b else buckets**2)
                law[u, v] = law.get((u, v), Fraction(0)) + share
    return law


def responses(value: int, buckets: int, keep: Fraction) -> list[Fraction]:
    """Law of one generalized randomized response."""
    return [keep if v == value else (1 - keep) / (buckets - 1) for v in range(buckets)]


def binomial(n: int, q: Any) -> list[Any]:
    """Probabilities of 0 to n successes, each of the kind that q is."""
    return [comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(n + 1)]


def averaged(
    law: Callable[..., list[tuple[Fraction, tuple[Any, ...]]]],
) -> Callable[[Formula], Formula]:
    """What a check compares of an estimator: its mean over an enumerated law."""
    return lambda estimator: (
        lambda *case: sum(
            (weight * estimator(*outcome) for weight, outcome in law(*case)), Fraction(0)
        )
    )
