"""Hypothesis strategies: records of a domain, neighbours of an adjacency, privacy parameters.

Everything shrinks to what a person reads at a glance: small whole numbers, few coordinates that
aren't zero, few that change. Neighbours always satisfy `relates`, exactly for their doubles, always
differ, and are both admitted by the domain.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.neighbours import fits, largest_move, require_known
from dpverify.data.adjacency import (
    Adjacency,
    BitFlip,
    Edge,
    Items,
    Record,
)
from dpverify.data.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.errors import extra, require
from dpverify.privacy import Pair

with extra("test", "a strategy"):
    from hypothesis import strategies as st

__all__ = ["deltas", "epsilons", "neighbours", "records"]

_Strategy = st.SearchStrategy[Any]


def epsilons(*, most: int = 20) -> st.SearchStrategy[Fraction]:
    """Exact ε in (0, most], in nats; shrinks to 1, then to fractions of small denominator."""
    require(most >= 1, "most", most, "at least 1")
    wholes = st.integers(1, most).map(Fraction)
    return wholes | st.fractions(Fraction(1, 100), most, max_denominator=100)


def deltas() -> st.SearchStrategy[Fraction]:
    """Exact δ in [0, 1); shrinks to 0, then to 1/10, 1/100, …."""
    powers = st.integers(1, 12).map(lambda power: Fraction(1, 10**power))
    return st.just(Fraction(0)) | powers | st.fractions(0, Fraction(99, 100), max_denominator=1000)


def records(
    domain: Domain, *, attributes: int, rows: int = 1
) -> st.SearchStrategy[NDArray[np.float64]]:
    """Data sets of shape (rows, attributes) that the domain admits; of a graph, (p, p).

    Parameters
    ----------
    domain : that holds them
    attributes : p; of a graph, its vertices
    rows : n; without effect on a graph
    """
    require(attributes >= 1, "attributes", attributes, "at least 1")
    require(rows >= 1, "rows", rows, "at least 1")
    match domain:
        case Graphs():
            require(attributes >= 2, "attributes", attributes, "at least 2, as vertices of a graph")
            return _graphs(attributes)
        case Sets():
            most = attributes if domain.max_size is None else min(domain.max_size, attributes)
            require(
                domain.min_size <= most, "attributes", attributes, f"at least {domain.min_size}"
            )
            items = st.sets(st.integers(0, attributes - 1), min_size=domain.min_size, max_size=most)
            row: _Strategy = items.map(lambda chosen: np.isin(np.arange(attributes), list(chosen)))
        case Ball():
            radius = largest_move(0.0, domain.radius)
            row = _vectors(-radius, radius, attributes).map(lambda x: _shortened(x, radius))
        case Box():
            row = _vectors(*domain.ends, attributes)
    return st.lists(row, min_size=rows, max_size=rows).map(lambda x: np.array(x, dtype=float))


def neighbours(
    adjacency: Adjacency, domain: Domain, *, attributes: int, rows: int = 1
) -> st.SearchStrategy[Pair]:
    """Pairs of data sets that are neighbours, differ and lie in the domain.

    Parameters
    ----------
    adjacency : by which they are
    domain, attributes, rows : as for `records`
    """

    @st.composite
    def pair(draw: st.DrawFn) -> Pair:
        record = draw(_records_for(adjacency, domain, attributes, rows))
        other = _moved(draw, record, adjacency, domain)
        return Pair(name="drawn by Hypothesis", record=record, neighbour=other)

    require_known(adjacency)
    return pair().filter(lambda candidate: fits(candidate, adjacency, domain))


def _records_for(adjacency: Adjacency, domain: Domain, attributes: int, rows: int) -> _Strategy:
    if isinstance(adjacency, BitFlip) and not isinstance(domain, Sets):  # its records are bits
        bit = st.sampled_from([0.0, 1.0])
        row = st.lists(bit, min_size=attributes, max_size=attributes)
        return st.lists(row, min_size=rows, max_size=rows).map(np.array)
    return records(domain, attributes=attributes, rows=rows)


def _moved(
    draw: st.DrawFn, record: NDArray[np.float64], adjacency: Adjacency, domain: Domain
) -> NDArray[np.float64]:
    other = record.copy()
    count, attributes = record.shape
    row = draw(st.integers(0, count - 1))
    column = draw(st.integers(0, attributes - 1))
    match adjacency:
        case Edge():
            column = draw(st.integers(0, attributes - 2))
            column += column >= row  # never on the diagonal
            value = _step(draw, other[row, column], adjacency.weight, 0.0, 1.0)
            other[row, column] = other[column, row] = value
        case Record():
            other[row] = draw(records(domain, attributes=attributes))[0]
        case BitFlip():
            other[row, column] = 1 - other[row, column]
        case Items():
            places = st.sets(st.integers(0, attributes - 1), min_size=1, max_size=adjacency.changes)
            for place in draw(places):
                other[row, place] = 1 - other[row, place]
        case _:
            size = getattr(adjacency, "beta", None) or adjacency.radius  # type: ignore[attr-defined]
            low, high = _reach(domain)
            other[row, column] = _step(draw, other[row, column], size, low, high)
    return other


def _step(draw: st.DrawFn, base: float, size: Fraction, low: float, high: float) -> float:
    """A value at most |size| away, most often at the very end: that is where bugs are."""
    size = draw(st.sampled_from([size, -size, size / 2, -size / 2]))
    value = min(max(largest_move(base, size), low), high)
    # At an end of the domain the only way is back.
    return value if value != base else min(max(largest_move(base, -size), low), high)


def _reach(domain: Domain) -> tuple[float, float]:
    match domain:
        case Box():
            return domain.ends
        case Ball():
            radius = largest_move(0.0, domain.radius)
            return -radius, radius
        case Sets() | Graphs():
            return 0.0, 1.0


def _vectors(low: float, high: float, attributes: int) -> _Strategy:
    start = min(max(0.0, low), high)
    values: _Strategy = st.just(start) | st.sampled_from([low, high])
    if math.ceil(low) <= math.floor(high):
        values = st.integers(math.ceil(low), math.floor(high)).map(float) | values
    values |= st.floats(low, high, allow_subnormal=False)
    # By places that are set: most of a record stays at its start.
    places = st.dictionaries(st.integers(0, attributes - 1), values, max_size=attributes)

    def filled(chosen: dict[int, float]) -> NDArray[np.float64]:
        x = np.full(attributes, start)
        for place, value in chosen.items():
            x[place] = value
        return x

    return places.map(filled)


def _shortened(x: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    norm = float(np.sqrt(x @ x))
    return x if norm <= radius else x * (radius / norm)


def _graphs(vertices: int) -> _Strategy:
    edge = st.tuples(st.integers(0, vertices - 1), st.integers(0, vertices - 1)).filter(
        lambda ends: ends[0] < ends[1]
    )
    weight = st.sampled_from([1.0, 0.5]) | st.floats(0, 1, allow_subnormal=False)

    def filled(weights: dict[tuple[int, int], float]) -> NDArray[np.float64]:
        graph = np.zeros((vertices, vertices))
        for (first, second), value in weights.items():
            graph[first, second] = graph[second, first] = value
        return graph

    return st.dictionaries(edge, weight, max_size=2 * vertices).map(filled)
