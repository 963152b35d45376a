"""Exact laws of projections and noise, that the ledger of Stausholm 2021 shares.

Means and variances of squared distances are polynomials of degree at most 4 in every entry of the
projection and of the noise. So a law with finitely many values and the same moments up to order 5
gives the same means and variances, and those are sums of fractions:

- N(0, σ²): ±√3·σ with probability 1/6 each, else 0, for the moments 1, σ², 3σ⁴;
- Laplace of scale b: ±√12·b with probability 1/12 each, else 0, for 1, 2b², 24b⁴.

Irrational scales are common to a whole squared norm and are kept as its rational factor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import lcm, prod
from operator import mul
from typing import Any

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "Law",
    "Matrix",
    "difference",
    "fjlt",
    "image",
    "moments",
    "normal_matrix",
    "power",
    "sjlt",
    "whole",
]

Matrix = tuple[tuple[int, ...], ...]
Law = Mapping[Any, Fraction]
"""Probability of every value."""

GAUSSIAN: Law = {-1: Fraction(1, 6), 0: Fraction(2, 3), 1: Fraction(1, 6)}
LAPLACE: Law = {-1: Fraction(1, 12), 0: Fraction(5, 6), 1: Fraction(1, 12)}


def power(z: Sequence[int], exponent: int) -> int:
    """Σ zⱼ^exponent."""
    return sum(x**exponent for x in z)


def difference(law: Law, step: int = 1) -> Law:
    """Law of step·(η − μ) for independent η and μ of one law."""
    found: Counter[int] = Counter()
    for (x, p), (y, r) in product(law.items(), law.items()):
        found[step * (x - y)] += p * r  # type: ignore[assignment]  # counts may be fractions
    return found  # type: ignore[return-value]


@cache
def sjlt(k: int, s: int, d: int, blocks: bool = True) -> Law:
    """Law of √s·S, by all hash functions and signs: construction c of section 6.1, or else b.

    Construction c has s blocks of k/s rows with one entry each, construction b any s of k rows.
    """
    columns: list[tuple[int, ...]] = []
    if blocks:
        places = [
            tuple(r * (k // s) + h for r, h in enumerate(hashes))
            for hashes in product(range(k // s), repeat=s)
        ]
    else:
        places = list(combinations(range(k), s))
    for rows, signs in product(places, product((-1, 1), repeat=s)):
        entry = dict(zip(rows, signs, strict=True))
        columns.append(tuple(entry.get(i, 0) for i in range(k)))
    weight = Fraction(1, len(columns) ** d)
    return {tuple(zip(*chosen, strict=True)): weight for chosen in product(columns, repeat=d)}


@cache
def normal_matrix(k: int, d: int) -> Law:
    """Law of P/√3 for k × d independent standard normal entries, to moments of order 5."""
    return fjlt(k, d, Fraction(1), False)


@cache
def fjlt(k: int, d: int, q: Fraction, mixed: bool = True) -> Law:
    """Law of √(qd/3)·PHD for d a power of 2, to moments of order 5; of √(q/3)·P if not mixed."""
    entries, size = whole({-1: q / 6, 0: 1 - q / 3, 1: q / 6})
    signs = list(product((-1, 1), repeat=d)) if mixed else [(1,) * d]
    found: Counter[Matrix] = Counter()
    for drawn in product(entries, repeat=k * d):
        weight = prod(p for _, p in drawn)
        flat = [value for value, _ in drawn]
        rows = [tuple(flat[i * d : (i + 1) * d]) for i in range(k)]
        if mixed:
            rows = [
                tuple(sum((-1) ** (f & j).bit_count() * row[f] for f in range(d)) for j in range(d))
                for row in rows
            ]
        for flips in signs:
            matrix = tuple(tuple(a * b for a, b in zip(row, flips, strict=True)) for row in rows)
            found[matrix] += weight
    total = len(signs) * size ** (k * d)
    return {matrix: Fraction(weight, total) for matrix, weight in found.items()}


def whole(law: Law) -> tuple[list[tuple[Any, int]], int]:
    """A law by whole weights and their sum, with which sums are quicker than with fractions."""
    total = lcm(*(p.denominator for p in law.values()))
    return [(value, int(p * total)) for value, p in law.items() if p], total


def image(law: Law, z: Sequence[int], noise: Law | None = None) -> dict[tuple[int, ...], Fraction]:
    """Law of Az, or of A(z + w) for w of independent entries from `noise`."""
    inputs, size = [(tuple(z), 1)], 1
    if noise is not None:
        entries, total = whole(noise)
        size = total ** len(z)
        summed: Counter[tuple[int, ...]] = Counter()
        for added in product(entries, repeat=len(z)):
            weight = prod(p for _, p in added)
            summed[tuple(a + w for a, (w, _) in zip(z, added, strict=True))] += weight
        inputs = list(summed.items())
    matrices, total = whole(law)
    found: Counter[tuple[int, ...]] = Counter()
    for (matrix, p), (v, r) in product(matrices, inputs):
        found[tuple(sum(map(mul, row, v)) for row in matrix)] += p * r
    return {key: Fraction(n, total * size) for key, n in found.items()}


def moments(images: Law, scale: Fraction, noise: Law | None = None) -> tuple[Fraction, Fraction]:
    """Mean and variance of scale·‖v + n‖², n of independent entries from `noise`."""
    added, size = [(0, 1)], 1
    if noise is not None:
        added, size = whole(noise)
    vectors, total = whole(images)
    unordered: Counter[tuple[int, ...]] = Counter()  # the norm doesn't see the order of entries
    for v, p in vectors:
        unordered[tuple(sorted(v))] += p
    first = second = Fraction(0)
    for v, p in unordered.items():
        squares: Counter[int] = Counter({0: p})
        for entry in v:
            grown: Counter[int] = Counter()
            for (square, a), (n, b) in product(squares.items(), added):
                grown[square + (entry + n) ** 2] += a * b
            squares = grown
        weight = total * size ** len(v)
        first += Fraction(sum(square * a for square, a in squares.items()), weight)
        second += Fraction(sum(square * square * a for square, a in squares.items()), weight)
    return scale * first, scale**2 * (second - first**2)
