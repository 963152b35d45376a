"""Neighbours at the ends of an adjacency: where an audit looks if the mechanism names no pairs.

The move is as large as the adjacency and the domain let it be, from the data set nearest to zero,
where floating point shows most, and from the other end of the domain. Doubles are used that lie on
the safe side of the declared ends, so that every pair is certainly one of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpverify.adjacency import (
    Adjacency,
    BitFlip,
    EdgeAdjacency,
    ItemAdjacency,
    RecordAdjacency,
)
from dpverify.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.errors import ParameterError, require
from dpverify.mechanism import Pair

__all__ = ["extreme_pairs", "largest_move"]


def extreme_pairs(adjacency: Adjacency, domain: Domain | None, attributes: int) -> Sequence[Pair]:
    """One or two neighbouring pairs of one record each (of one graph) that are far apart.

    Parameters
    ----------
    adjacency : by whose bound they differ
    domain : that holds them; None where that is all numbers
    attributes : p, the length of a record; of a graph, the vertices

    Raises
    ------
    ParameterError
        If the adjacency has no pair there that this function knows: name the pairs yourself.
    """
    require(attributes >= 1, "attributes", attributes, "at least 1")
    low, high = _ends(adjacency, domain)
    start = min(max(0.0, low), high)
    match adjacency:
        case EdgeAdjacency():
            require(attributes >= 2, "attributes", attributes, "at least 2, as vertices of a graph")
            graph = np.zeros((attributes, attributes))
            other = graph.copy()
            other[0, 1] = other[1, 0] = largest_move(0.0, min(adjacency.weight, Fraction(1)))
            return [Pair(name="an edge appears", record=graph, neighbour=other)]
        case ItemAdjacency():
            least = domain.least if isinstance(domain, Sets) else 0
            changes = min(adjacency.changes, attributes - least)
            record = (np.arange(attributes) < least).astype(float)[None]
            other = (np.arange(attributes) < least + changes).astype(float)[None]
            pairs = [Pair(name="items appear", record=record, neighbour=other)]
        case RecordAdjacency():
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
                size = getattr(adjacency, "beta", None) or adjacency.radius  # type: ignore[union-attr]
            pairs = []
            for name, base, sign in (("up from zero", start, 1), ("down from the end", high, -1)):
                if not math.isfinite(base):
                    base, name = start, "down from zero"
                record = np.full((1, attributes), start)
                record[0, 0] = base
                other = record.copy()
                other[0, 0] = min(max(largest_move(base, sign * size), low), high)
                pairs.append(Pair(name=name, record=record, neighbour=other))
    fit = [pair for pair in pairs if _fits(pair, adjacency, domain)]
    if not fit:
        raise ParameterError(
            "domain", domain, f"one that holds neighbours of {adjacency}", "Or name the pairs."
        )
    return fit


def largest_move(base: float, size: Fraction) -> float:
    """The double farthest from `base` towards base + size that is at most |size| away from it."""
    end = float(Fraction(base) + size)
    while abs(Fraction(end) - Fraction(base)) > abs(size):
        end = math.nextafter(end, base)
    return end


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


def _fits(pair: Pair, adjacency: Adjacency, domain: Domain | None) -> bool:
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
