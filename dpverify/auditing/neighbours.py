"""Neighbours of an adjacency: where an audit looks if the mechanism names no pairs.

*Drawn* pairs are anywhere. *Extreme* pairs are at its ends: the move is as large as the adjacency
and the domain let it be, from the data set nearest to zero, where floating point shows most, and
from the other end of the domain. Doubles are used that lie on the safe side of the declared ends,
so that every pair is certainly one of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    BitFlip,
    Edge,
    Items,
    L1Ball,
    Record,
    Row,
)
from dpverify.data.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.errors import ParameterError, require
from dpverify.privacy import Pair
from dpverify.sampling.words import Words

__all__ = [
    "Space",
    "drawn_pairs",
    "extreme_pairs",
    "fits",
    "largest_move",
    "require_known",
    "start_of",
]


class Space(NamedTuple):
    """What data sets are made of, for a search: their domain, p, and the possible n."""

    domain: Domain | None
    attributes: int
    rows: Sequence[int] = (1,)


_MADE = Attribute | BitFlip | Edge | Items | L1Ball | Record | Row
_TRIES = 20  # for each pair that is asked for


def extreme_pairs(
    adjacency: Adjacency,
    domain: Domain | None,
    attributes: int,
    *,
    rows: Sequence[int] = (1,),
) -> Sequence[Pair]:
    """One or two neighbouring pairs of each size (of one graph) that are far apart.

    Parameters
    ----------
    adjacency : by whose bound they differ
    domain : that holds them; None where that is all numbers
    attributes : p, the length of a record; of a graph, the vertices
    rows : n of the data sets, one or several sizes: the first record moves, and the others are the
        one nearest to zero; without effect on a graph

    Raises
    ------
    ParameterError
        If the adjacency has no pair there that this function knows: name the pairs yourself.
    """
    pairs = _extreme_records(adjacency, domain, attributes)
    if isinstance(adjacency, Edge):
        return pairs

    def among_others(record: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        return np.concatenate([record, np.repeat(pairs[0].record, size - 1, axis=0)])

    return [
        Pair(
            name=pair.name if size == 1 else f"{pair.name}, {size} rows",
            record=among_others(pair.record, size),
            neighbour=among_others(pair.neighbour, size),
        )
        for size in rows
        for pair in pairs
    ]


def _extreme_records(
    adjacency: Adjacency, domain: Domain | None, attributes: int
) -> Sequence[Pair]:
    require_known(adjacency)
    require(attributes >= 1, "attributes", attributes, "at least 1")
    low, high = _ends(adjacency, domain)
    start = start_of(adjacency, domain)
    match adjacency:
        case Edge():
            require(attributes >= 2, "attributes", attributes, "at least 2, as vertices of a graph")
            graph = np.zeros((attributes, attributes))
            other = graph.copy()
            other[0, 1] = other[1, 0] = largest_move(0.0, min(adjacency.weight, Fraction(1)))
            return [Pair(name="an edge appears", record=graph, neighbour=other)]
        case Items():
            least = domain.min_size if isinstance(domain, Sets) else 0
            changes = min(adjacency.changes, attributes - least)
            record = (np.arange(attributes) < least).astype(float)[None]
            other = (np.arange(attributes) < least + changes).astype(float)[None]
            pairs = [Pair(name="items appear", record=record, neighbour=other)]
        case Record():
            if not (math.isfinite(low) and math.isfinite(high)):
                raise ParameterError("domain", domain, "bounded, where records are replaced")
            places = 1 if isinstance(domain, Ball) else attributes
            ends = [np.full((1, attributes), start) for _ in range(3)]
            ends[1][0, :places], ends[2][0, :places] = high, low
            pairs = [
                Pair(name="from zero to the end", record=ends[0], neighbour=ends[1]),
                Pair(name="from end to end", record=ends[2], neighbour=ends[1]),
            ]
        case _:
            size = Fraction(1)
            if not isinstance(adjacency, BitFlip):
                size = getattr(adjacency, "beta", None) or adjacency.radius  # type: ignore[attr-defined]
            pairs = []
            for name, base, sign in (("up from zero", start, 1), ("down from the end", high, -1)):
                if not math.isfinite(base):
                    base, name = start, "down from zero"  # noqa: PLW2901
                record = np.full((1, attributes), start)
                record[0, 0] = base
                other = record.copy()
                other[0, 0] = min(max(largest_move(base, sign * size), low), high)
                pairs.append(Pair(name=name, record=record, neighbour=other))
    fit = [pair for pair in pairs if fits(pair, adjacency, domain)]
    if not fit:
        raise ParameterError(
            "domain", domain, f"one that holds neighbours of {adjacency}", "Or name the pairs."
        )
    return fit


def require_known(adjacency: Any) -> None:
    """Refuse an adjacency of somebody else's, whose neighbours can be related but not made."""
    require(
        isinstance(adjacency, _MADE),
        "adjacency",
        adjacency,
        "one of dpverify.data.adjacency, where neighbours are made",
        "Name the pairs, and leave out the search.",
    )


def largest_move(base: float, size: Fraction) -> float:
    """The double farthest from `base` towards base + size that is at most |size| away from it."""
    end = float(Fraction(base) + size)
    while abs(Fraction(end) - Fraction(base)) > abs(size):
        end = math.nextafter(end, base)
    return end


def start_of(adjacency: Adjacency, domain: Domain | None) -> float:
    """The value nearest to zero that an attribute may have."""
    low, high = _ends(adjacency, domain)
    return min(max(0.0, low), high)


def _ends(adjacency: Adjacency, domain: Domain | None) -> tuple[float, float]:
    match domain:
        case None:
            return (0.0, 1.0) if isinstance(adjacency, BitFlip) else (-math.inf, math.inf)
        case Box():
            return domain.ends
        case Ball():
            radius = largest_move(0.0, domain.radius)
            return -radius, radius
        case Sets() | Graphs():
            return 0.0, 1.0


def fits(pair: Pair, adjacency: Adjacency, domain: Domain | None) -> bool:
    """Whether these are two different data sets, neighbours, and both in the domain."""
    if np.array_equal(pair.record, pair.neighbour):
        return False
    data: tuple[Any, Any] = (pair.record, pair.neighbour)
    if domain is not None:
        try:
            for records in data:
                domain.admit(records)
        except ValueError:
            return False
    return adjacency.relates(*data)


def drawn_pairs(
    adjacency: Adjacency,
    domain: Domain | None,
    attributes: int,
    *,
    count: int,
    rng: Words,
    rows: Sequence[int] = (1,),
) -> list[Pair]:
    """Different neighbouring pairs of data sets of these sizes (of graphs), of many kinds.

    Records are near zero in most places, or the same in all, or different in all; most moves are as
    large as the adjacency and the domain let them be. Whole numbers and ends of the domain come
    more often than others: that is where bugs are, and what a person reads.

    Parameters
    ----------
    adjacency, domain, attributes, rows : as for `extreme_pairs`; any record moves
    count : at most so many; fewer where different ones are hard to find
    rng : decides which
    """
    require(attributes >= 1, "attributes", attributes, "at least 1")
    made = _Maker(
        adjacency=adjacency, domain=domain, attributes=attributes, rows=tuple(rows), rng=rng
    )
    found: dict[bytes, Pair] = {}
    for _ in range(_TRIES * count):
        if len(found) == count:
            break
        record = made.data()
        pair = Pair(name=f"drawn {len(found) + 1}", record=record, neighbour=made.moved(record))
        if fits(pair, adjacency, domain):
            found.setdefault(record.tobytes() + pair.neighbour.tobytes(), pair)
    return list(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    """Makes records and moves them, without regard to whether that leaves the domain."""

    adjacency: Adjacency
    domain: Domain | None
    attributes: int
    rows: tuple[int, ...]
    rng: Words

    def data(self) -> NDArray[np.float64]:
        """One record, among others that are alike or of up to three kinds; or a graph."""
        record = self.record()
        size = self.rows[self._below(len(self.rows)) if len(self.rows) > 1 else 0]
        if size == 1 or isinstance(self.adjacency, Edge):
            return record
        kinds = np.concatenate([self.record() for _ in range(1 + self._below(3))])
        return np.concatenate([record, kinds[self.rng.words(size - 1) % np.uint64(len(kinds))]])

    def record(self) -> NDArray[np.float64]:
        p, style = self.attributes, self._below(4)
        if isinstance(self.adjacency, Edge):
            graph = np.zeros((p, p))
            for _ in range(0 if style == 0 else self._below(2 * p)):
                first, second = self._below(p), self._below(p)
                if first != second:
                    graph[first, second] = graph[second, first] = 1.0
            return graph
        if isinstance(self.domain, Sets) or isinstance(self.adjacency, Items | BitFlip):
            odds = (1, 4, 7)[self._below(3)]
            return np.array([[float(self._below(8) < odds) for _ in range(p)]])
        x = np.full((1, p), start_of(self.adjacency, self.domain))
        if style == 0:
            x[:] = self._value()
        for place in range(p) if style == 1 else [self._below(p) for _ in range(style - 1)]:
            x[0, place] = self._value()
        if isinstance(self.domain, Ball):
            norm, radius = float(np.sqrt((x**2).sum())), float(self.domain.radius)
            x *= min(1.0, radius / norm) if norm else 1.0
        return x

    def moved(self, record: NDArray[np.float64]) -> NDArray[np.float64]:
        other = record.copy()
        row, column = self._below(len(record)), self._below(record.shape[1])
        match self.adjacency:
            case Record():
                other[row] = self.record()[0]
            case Edge(weight=weight):
                value = self._step(other[row, column], weight)
                other[row, column] = other[column, row] = value
            case BitFlip():
                other[row, column] = 1 - other[row, column]
            case Items(changes=changes):
                for _ in range(1 + self._below(changes)):
                    column = self._below(record.shape[1])
                    other[row, column] = 1 - other[row, column]
            case Attribute(beta=beta):
                other[row, column] = self._step(other[row, column], beta)
            case L1Ball(radius=radius) | Row(radius=radius):
                # Half the distance in each of two places is within either norm's.
                parts = 1 + self._below(2)
                for place in {column, self._below(record.shape[1])} if parts == 2 else {column}:
                    other[row, place] = self._step(other[row, place], radius / parts)
        return other

    def _value(self) -> float:
        low, high = _ends(self.adjacency, self.domain)
        start = start_of(self.adjacency, self.domain)
        small = start + (1, 1, 2, 3, 5, 8)[self._below(6)] * (1, -1)[self._below(2)]
        ends = [end if math.isfinite(end) else small for end in (low, high)]
        inside = [ends[0] + (ends[1] - ends[0]) * eighths / 8 for eighths in range(1, 8)]
        value = (small, small, *ends, inside[self._below(7)])[self._below(5)]
        return min(max(value, low), high)

    def _step(self, base: float, size: Fraction) -> float:
        low, high = _ends(self.adjacency, self.domain)
        size *= (1, 1, -1, -1, Fraction(1, 2), -Fraction(1, 2))[self._below(6)]
        value = min(max(largest_move(base, size), low), high)
        # At an end of the domain the only way is back.
        return value if value != base else min(max(largest_move(base, -size), low), high)

    def _below(self, count: int) -> int:
        return int(self.rng.words(1)[0] % np.uint64(count))
