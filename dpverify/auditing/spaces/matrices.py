"""Matrices of numbers, in which values move and the rows stay; and graphs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.spaces.base import Space
from dpverify.data.adjacency import BitFlip, Choose, Edge, Items, Record, largest_move
from dpverify.data.columns import Integers, Number
from dpverify.data.domain import Ball, Box, Sets, is_sparse
from dpverify.data.table import Table
from dpverify.errors import require
from dpverify.privacy import Pair

__all__ = ["Matrices"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrices(Space):
    """Data sets of shape (n, p), of one domain.

    Attributes
    ----------
    domain : that holds them; None where that is all numbers
    attributes : p, the length of a record; of a graph, the vertices
    rows : n of the data sets, one or several sizes; without effect on a graph
    """

    domain: Any
    attributes: int
    rows: Sequence[int] = (1,)

    def __post_init__(self) -> None:
        require(self.attributes >= 1, "attributes", self.attributes, "at least 1")
        least = "at least 2, as vertices of a graph"
        require(not self._graph or self.attributes >= 2, "attributes", self.attributes, least)
        bounded = self.domain is not None or not isinstance(self.adjacency, Record)
        require(bounded, "domain", self.domain, "bounded, if records are replaced")

    @property
    def described(self) -> str:
        values = "any numbers" if self.domain is None else f"in {self.domain}"
        if isinstance(self.domain, Box):
            values = "in [{:g}, {:g}]".format(*self.domain.ends)
        elif isinstance(self.domain, Number):
            values = f"each {self.domain.rule}"
        sizes = [self.attributes] if self._graph else self.rows
        return f"of shape ({' or '.join(map(str, sizes))}, {self.attributes}), {values}"

    # --- values -----------------------------------------------------------------------------------

    @property
    def _graph(self) -> bool:
        return isinstance(self.adjacency, Edge)

    @property
    def _bits(self) -> bool:
        return isinstance(self.domain, Sets) or isinstance(self.adjacency, Items | BitFlip)

    def ends(self, column: int = 0) -> tuple[float, float]:
        """Least and largest value of a column."""
        match self.domain:
            case None:
                return (0.0, 1.0) if isinstance(self.adjacency, BitFlip) else (-math.inf, math.inf)
            case Box() | Number():
                return self.domain.ends
            case Table():
                return self._column(column).ends
            case Ball():
                radius = largest_move(0.0, self.domain.radius)
                return -radius, radius
            case _:
                return 0.0, 1.0

    def _column(self, column: int) -> Number:
        name, kind = list(self.domain.columns.items())[column]
        require(isinstance(kind, Number), name, kind, "a column of numbers, in a matrix")
        number: Number = kind
        return number

    def _whole(self, column: int) -> bool:
        kind = self._column(column) if isinstance(self.domain, Table) else self.domain
        return isinstance(kind, Integers)

    def start(self, column: int = 0) -> float:
        """The value nearest to zero that a column may have."""
        low, high = self.ends(column)
        return min(max(0.0, low), high)

    def value(self, column: int, choose: Choose) -> float:
        """A value of a column: mostly a small whole number, an end, an eighth, or a constant."""
        low, high = self.ends(column)
        start = self.start(column)
        small = start + (1, 1, 2, 3, 5, 8)[choose(6)] * (1, -1)[choose(2)]
        ends = [end if math.isfinite(end) else small for end in (low, high)]
        inside = [ends[0] + (ends[1] - ends[0]) * eighths / 8 for eighths in range(1, 8)]
        values = [small, small, *ends, inside[choose(7)]]
        known = [
            float(x) for x in self.constants if isinstance(x, int | float) and low <= x <= high
        ]
        values += [known[choose(len(known))] + (0, 0, 1, -1)[choose(4)]] * 2 if known else []
        value = min(max(values[choose(len(values))], low), high)
        return float(math.floor(value)) if self._whole(column) else value

    def moves(self, base: float, size: Fraction, column: int, choose: Choose) -> Iterator[float]:
        """Values at most `size` away from the base: as far as that goes, or half as far."""
        sign, part = (1, -1, 1)[(way := choose(3))], (1, 1, Fraction(1, 2))[way]
        for step in (sign * part * size, -sign * part * size):
            value = self.moved(base, step, column)
            if value != base:
                yield value

    def moved(self, base: float, step: Fraction, column: int) -> float:
        """The value nearest to base + step that is between them and in the column."""
        low, high = self.ends(column)
        value = min(max(largest_move(base, step), low), high)
        if self._whole(column):
            value = float(math.floor(value) if value > base else math.ceil(value))
        return value

    # --- data sets --------------------------------------------------------------------------------

    def _filled(self, values: Sequence[float]) -> Matrix:
        return np.array([values], dtype=float)

    def record(self, choose: Choose) -> Matrix:
        """One record of shape (1, p), near the start in most places or different in all."""
        p, style = self.attributes, choose(4)
        if self._bits:
            odds = (1, 4, 7)[choose(3)]
            return np.array([[float(choose(8) < odds) for _ in range(p)]])
        x = self._filled([self.start(column) for column in range(p)])
        if style == 0:
            value = self.value(0, choose)
            x[:] = [min(max(value, self.ends(c)[0]), self.ends(c)[1]) for c in range(p)]
        for place in range(p) if style == 1 else [choose(p) for _ in range(style - 1)]:
            x[0, place] = self.value(place, choose)
        if isinstance(self.domain, Ball):
            norm, radius = float(np.sqrt((x**2).sum())), float(self.domain.radius)
            x *= min(1.0, radius / norm) if norm else 1.0
        return x

    def new_rows(self, choose: Choose) -> Iterator[Matrix]:
        """Records of shape (p,) that replace another: any, and those at the ends of the domain."""
        if choose(2):
            yield self.record(choose)[0]
        bases = [base[0] for _, base in self._records()]
        yield from bases[1:] + bases[:1]
        for column in range(self.attributes):
            for end in self.ends(column)[::-1]:
                row = bases[0].copy()
                row[column] = end
                yield row
        yield self.record(choose)[0]

    def _records(self) -> list[tuple[str, Matrix]]:
        """Records at the ends, of shape (1, p), the one nearest to zero first."""
        p = self.attributes
        if isinstance(self.domain, Sets):
            least = self.domain.min_size
            return [("the smallest set", (np.arange(p) < least).astype(float)[None])]
        starts = [self.start(column) for column in range(p)]
        records = [("zero", self._filled(starts))]
        for name, end in (("the end", 1), ("the low end", 0)):
            values = [self.ends(column)[end] for column in range(p)]
            if isinstance(self.domain, Ball):
                values[1:] = starts[1:]
            if np.all(np.isfinite(values)) and values != starts:
                records.append((name, self._filled(values)))
        ones = [self.moved(start, Fraction(1), column) for column, start in enumerate(starts)]
        if p > 1 and not (self._bits or isinstance(self.domain, Ball)):
            records.append(("ones", self._filled(ones)))
            records.append(("a step", self._filled([*ones[: p // 2], *starts[p // 2 :]])))
        return records

    def bases(self) -> Iterable[tuple[str, Matrix]]:
        if self._graph:
            p = self.attributes
            return [("none", np.zeros((p, p))), ("all", 1 - np.eye(p))]
        records = self._records()
        least = records[0][1]
        return [
            (
                name if size == 1 else f"{name}, {size} rows",
                np.concatenate([record, np.repeat(least, size - 1, axis=0)]),
            )
            for size in self.rows
            for name, record in records
        ]

    def data(self, choose: Choose) -> Matrix:
        """One record, among others that are alike or of up to three kinds; or a graph."""
        if self._graph:
            return self._drawn_graph(choose)
        record = self.record(choose)
        size = self.rows[choose(len(self.rows)) if len(self.rows) > 1 else 0]
        if size == 1:
            return record
        kinds = np.concatenate([self.record(choose) for _ in range(1 + choose(3))])
        others = [choose(len(kinds)) for _ in range(size - 1)]
        return np.concatenate([record, kinds[others]])

    def _drawn_graph(self, choose: Choose) -> Matrix:
        p = self.attributes
        graph = np.zeros((p, p))
        for _ in range(0 if choose(4) == 0 else choose(2 * p)):
            first, second = choose(p), choose(p)
            if first != second:
                graph[first, second] = graph[second, first] = 1.0
        return graph

    def admits(self, data: Any) -> bool:
        if self.domain is None:
            return True
        try:
            self.domain.admit(data)
        except ValueError:
            return False
        return True

    def key(self, data: Any) -> Hashable:
        x = _dense(data)
        return (x.shape, x.astype(float).tobytes())

    def move(self, pair: Pair) -> str:
        change = pair.neighbour - pair.record
        places = np.argwhere(change)
        where = f"in column {places[0, 1]} " if len(places) == 1 and places[0, 1] else ""
        return f"{'up' if change.sum() >= 0 else 'down'} {where}from"

    # --- simpler ones -----------------------------------------------------------------------------

    def complexity(self, pair: Pair) -> tuple[float, ...]:
        """Places that change, that aren't at rest, that aren't whole; size of the values."""
        both = np.stack([_dense(pair.record), _dense(pair.neighbour)])
        starts = self._starts()
        with np.errstate(invalid="ignore"):  # ∞ − ∞ is as complicated as can be
            size = float(np.abs(both - starts).sum())
        return (
            int(np.count_nonzero(both[0] != both[1])),
            int(np.count_nonzero(both != starts)),
            int(np.count_nonzero(both != np.floor(both))),
            size if math.isfinite(size) else math.inf,
        )

    def _starts(self) -> Matrix:
        return np.array([self.start(column) for column in range(self.attributes)])

    def simpler(self, pair: Pair) -> Iterator[Pair]:  # noqa: C901  # a way a branch
        record, other = _dense(pair.record), _dense(pair.neighbour)
        starts = self._starts()
        places = self._places(record)
        changed = [place for place in places if record[place][0] != other[place][0]]
        still = [
            place
            for place in places
            if record[place][0] == other[place][0] and record[place][0] != starts[place[1][0]]
        ]

        def at(values: Sequence[tuple[Any, float, float]]) -> Pair:
            first, second = record.copy(), other.copy()
            for place, a, b in values:
                first[place], second[place] = a, b
            return Pair(name="found by search", record=first, neighbour=second)

        def rest(place: Any) -> float:
            return float(starts[place[1][0]])

        size = len(still)
        while size:  # all at once, then halves, quarters, …
            for begin in range(0, len(still), size):
                block = still[begin : begin + size]
                yield at([(place, rest(place), rest(place)) for place in block])
            size //= 2
        for place in changed if len(changed) > 1 else []:
            yield at([(place, record[place][0], record[place][0])])
            yield at([(place, rest(place), rest(place))])
        for place in changed:
            a, b, start = float(record[place][0]), float(other[place][0]), rest(place)
            for move in (1.0 if b > a else -1.0, b - a):
                for first, second in ((start, start + move), (start - move, start)):
                    yield at([(place, first, second)])
            nearest = min(a, b, key=lambda value: abs(value - start))
            for towards in ((start - nearest) / 2, math.copysign(1.0, start - nearest)):
                yield at([(place, a + _rounded(towards), b + _rounded(towards))])
            yield from (at([(place, f(a), f(b))]) for f in (_rounded, math.floor, math.ceil))
            yield at([(place, a, _rounded(b))])
        for place in still:
            a, start = float(record[place][0]), rest(place)
            nearer = a - 1 if a > start else a + 1
            for value in (start + 1, _rounded(a), start + (a - start) / 2, nearer):
                yield at([(place, value, value)])

    def _places(self, record: Matrix) -> list[Any]:
        """What may be changed apart: single values, or both cells of an edge."""
        if self._graph:
            edges = zip(*np.triu_indices(len(record), 1), strict=True)
            return [(np.array([a, b]), np.array([b, a])) for a, b in edges]
        return [(np.array([row]), np.array([column])) for row, column in np.ndindex(record.shape)]


def _rounded(value: float) -> float:
    return float(round(value))


def _dense(data: Any) -> Matrix:
    return np.atleast_2d(np.array(data.toarray() if is_sparse(data) else data, dtype=float))
