"""The matrix mechanism: noise on A·x for a known strategy matrix A, with its exact sensitivity.

x has one entry for each kind of record (a histogram), or for each step at which somebody may take
part. One record more moves A·x by a column of A, one record replaced by the difference of two
(Li, Miklau and others 2015, doi:10.1007/s00778-015-0398-x). What is computed from A·x + noise is
post-processing. Entries are read exactly, so that norms are too.

**Gaussian noise** depends on the largest ℓ2 norm alone, **Laplace noise** on the whole move: the
least vector that weakly majorises all columns has a curve above all of theirs (`laplace`). It is
attained where one column majorises all others.

**Several steps.** Where one person may take part in all steps of a set S, each time with a vector
of norm at most 1, A·x moves by Σ_S a_i ⊗ u_i, of squared norm Σ ⟨a_i, a_j⟩⟨u_i, u_j⟩ ≤ Σ |⟨a_i,
a_j⟩| over i, j in S; attained by equal u_i where no product is negative. That is the sensitivity
for a schema of participation (Choquette-Choo and others 2023, arXiv:2211.06530), and a bound on it
where products are negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from attrs import evolve

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace, majorant
from dpverify.data.adjacency import (
    AddRemove,
    Adjacency,
    Attribute,
    BitFlip,
    Group,
    L1Ball,
    Moves,
    Permutation,
    Record,
    Replace,
)
from dpverify.enclosure import Real, SquareRoot
from dpverify.errors import ParameterError, require
from dpverify.numbers import in_order, rationals, whole

__all__ = ["matrix_mechanism"]

_MOST_SUM = 2**62


def matrix_mechanism(
    strategy: Any,
    *,
    sigma: Real | None = None,
    scale: Real | None = None,
    replaced: bool = False,
    together: Iterable[Iterable[Real]] | None = None,
    adjacency: Adjacency | None = None,
) -> Gaussian | Laplace:
    """The curve of A·x with Gaussian or Laplace noise, by the exact norms of A's columns.

    Parameters
    ----------
    strategy : A, rows of numbers of any kind, or an array; a double stands for its exact value
    sigma : of Gaussian noise on every entry; or
    scale : of Laplace noise
    replaced : whether neighbours replace a record, by default they add or remove one
    together : of Gaussian noise, sets of columns of which one person may be in all, a vector
        of norm at most 1 in each; by default a person is in one
    adjacency : whom it protects; by default one row, added or removed, or `replaced`

    Examples
    --------
    >>> import dpverify as dpv
    >>> prefix = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> print(dpv.curves.matrix_mechanism(prefix, sigma=4).sensitivity)
    √(3)
    >>> print(dpv.curves.matrix_mechanism(prefix, scale=4).sensitivity)
    3
    """
    require((sigma is None) != (scale is None), "noise", "sigma and scale", "one of the two")
    if adjacency is None:
        adjacency = Replace() if replaced else AddRemove()
    if not _covers(adjacency, replaced=replaced):
        rule = f"one row or user, {'replaced' if replaced else 'added or removed'}"
        hint = f"That is what replaced={replaced} says."
        raise ParameterError("adjacency", adjacency.unit, rule, hint)
    columns, smaller = _columns(strategy), _move(adjacency) < 1
    if replaced:
        require(len(columns) > 1, "strategy", "of one column", "of several: records are replaced")
        require(together is None, "together", together, "left out where records are replaced")
        columns = [
            tuple(x - y for x, y in zip(one, other, strict=True))
            for one, other in combinations(columns, 2)
        ]
    if sigma is not None:
        require(
            isinstance(together, Iterable | None), "together", together, "sets of columns' numbers"
        )
        sets = [(index,) for index in range(len(columns))] if together is None else together
        square, made = max((_square(columns, each) for each in sets), default=(Fraction(0), False))
        require(square > 0, "strategy", "a matrix", "not 0 in all its columns")
        size, bound = SquareRoot(square), smaller or not made
        return Gaussian(sigma=sigma, sensitivity=size, adjacency=adjacency, is_bound=bound)
    require(together is None, "together", together, "left out for Laplace noise")
    row = _majorant(columns)
    made = _sizes(row) in map(_sizes, columns)
    curve = Laplace.of_row(row, scale=scale or 0, adjacency=adjacency)
    return evolve(curve, is_bound=smaller or not made)


def _covers(adjacency: Adjacency, *, replaced: bool) -> bool:
    """Whether neighbours move x by an entry of 1, or `replaced` by one against another."""
    match adjacency:
        case AddRemove(k=1) | BitFlip():
            return not replaced
        case Attribute() | L1Ball():  # convex combinations of entries
            return _move(adjacency) <= 1 and not replaced
        case Replace(k=1) | Record():
            return replaced
    return not isinstance(adjacency, AddRemove | Replace | Group | Permutation | Moves)


def _move(adjacency: Adjacency) -> Fraction:
    """By how much of an entry of 1 neighbours move x."""
    match adjacency:
        case Attribute(beta=size) | L1Ball(radius=size):
            return size
    return Fraction(1)


def _sizes(column: Iterable[Fraction]) -> list[Fraction]:
    """In descending order, but for zeros: what a curve of Laplace noise depends on."""
    return sorted((abs(entry) for entry in column if entry), reverse=True)


def _columns(strategy: Any) -> list[tuple[Fraction, ...]]:
    rule = "rows of numbers, all of one length"
    values = strategy.tolist() if isinstance(strategy, np.ndarray) else strategy
    try:
        rows = [rationals("strategy", row) for row in in_order("strategy", values)]
        columns = list(zip(*rows, strict=True))
    except (TypeError, ValueError):
        hint = "Of a table or a sparse matrix, give its values as an array."
        raise ParameterError("strategy", type(strategy).__name__, rule, hint) from None
    require(bool(columns), "strategy", "empty", rule)
    return columns


def _square(
    columns: Sequence[tuple[Fraction, ...]], chosen: Iterable[Real]
) -> tuple[Fraction, bool]:
    """Σ |⟨a_i, a_j⟩| over i, j among the chosen columns, and whether equal vectors make it."""
    one_by_one = chosen if isinstance(chosen, set | frozenset) else in_order("together", chosen)
    places = [whole("together", place) for place in one_by_one]
    good = len(set(places)) == len(places) and all(0 <= place < len(columns) for place in places)
    require(good, "together", places, "different numbers of columns, from 0 on")
    total, made = Fraction(0), True
    for one in places:
        for other in places:
            pairs = zip(columns[one], columns[other], strict=True)
            product = sum((x * y for x, y in pairs), Fraction(0))
            total, made = total + abs(product), made and product >= 0
    return total, made


def _majorant(columns: Sequence[tuple[Fraction, ...]]) -> tuple[Fraction, ...]:
    """The least vector that majorises all columns; their largest sum where it is too large."""
    largest = max(sum(map(abs, column), Fraction(0)) for column in columns)
    require(largest > 0, "strategy", "a matrix", "not 0 in all its columns")
    unit = math.lcm(*(entry.denominator for column in columns for entry in column))
    if largest * unit >= _MOST_SUM:
        return (largest,)
    entries = [[int(entry * unit) for entry in column] for column in columns]
    return tuple(size / unit for size in majorant(np.array(entries, dtype=np.int64)))
