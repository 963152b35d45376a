"""Hypothesis strategies: records of a domain, neighbours of an adjacency, privacy parameters.

Everything shrinks to what a person reads at a glance: small whole numbers, few coordinates that
aren't zero, few that change. Neighbours always satisfy `relates`, exactly for their doubles, always
differ, and are both admitted by the domain.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.spaces.base import Space, require_candidates
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.spaces.rows import Rows
from dpverify.data.adjacency import Adjacency, BitFlip, Record, largest_move
from dpverify.data.columns import Column, Dates, Integers, Reals, Text
from dpverify.data.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.data.table import Row, Table
from dpverify.errors import extra, require
from dpverify.privacy import Pair

with extra("test", "a strategy"):
    from hypothesis import reject
    from hypothesis import strategies as st

__all__ = ["data_sets", "deltas", "epsilons", "neighbours", "records"]

_Strategy = st.SearchStrategy[Any]
_TRIES = 20  # neighbours of one data set that are tried


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


def data_sets(table: Table) -> st.SearchStrategy[list[Row]]:
    """Data sets of the table as lists of dicts; `table.made` makes of them what functions take."""
    least, most = table.rows
    row = st.fixed_dictionaries({name: _values(column) for name, column in table.columns.items()})
    return st.lists(row, min_size=least, max_size=most)


def _values(column: Column) -> _Strategy:
    """Values of a column: those that shrink well, then those at which code goes wrong."""
    match column:
        case Integers(low=low, high=high):
            values: _Strategy = st.integers(low, high)
        case Reals():
            values = _floats(*column.ends)
        case Dates(first=first, last=last):
            values = st.dates(first, last)
        case Text(length=length):
            values = st.text(max_size=length)
        case _:
            values = st.sampled_from(column.values)
    values |= st.sampled_from(column.values)
    return values | st.none() if column.missing else values


def neighbours(
    adjacency: Adjacency,
    domain: Domain | Table,
    *,
    attributes: int | None = None,
    rows: int = 1,
) -> st.SearchStrategy[Pair]:
    """Pairs of data sets that are neighbours, differ and lie in the domain.

    Parameters
    ----------
    adjacency : by which they are
    domain : that holds them; of a Table lists of dicts
    attributes, rows : as for `records`; of a table they are its own
    """
    require_candidates(adjacency)
    if isinstance(domain, Table):
        require(attributes is None and rows == 1, "attributes, rows", "given", "the table's own")
        space: Space = Rows(adjacency=adjacency, columns=domain.columns, rows=domain.rows)
        base: _Strategy = data_sets(domain)
    else:
        require(attributes is not None, "attributes", attributes, "given, for records")
        p = attributes or 0
        space = Matrices(adjacency=adjacency, domain=domain, attributes=p, rows=(rows,))
        base = _records_for(adjacency, domain, p, rows)

    @st.composite
    def pair(draw: st.DrawFn) -> Pair:
        record = draw(base)
        if isinstance(adjacency, Record) and not isinstance(domain, Table):
            other = record.copy()
            other[draw(st.integers(0, rows - 1))] = draw(records(domain, attributes=p))[0]
            others = [other]
        else:
            others = adjacency.candidates(  # type: ignore[attr-defined]
                record, space, lambda count: draw(st.integers(0, count - 1))
            )
        name = "drawn by Hypothesis"
        made = (Pair(name=name, record=record, neighbour=x) for x in islice(others, _TRIES))
        found = next((each for each in made if space.fits(each)), None)
        if found is None:
            reject()
        return found

    return pair()


def _records_for(adjacency: Adjacency, domain: Domain, attributes: int, rows: int) -> _Strategy:
    if isinstance(adjacency, BitFlip) and not isinstance(domain, Sets):  # its records are bits
        bit = st.sampled_from([0.0, 1.0])
        row = st.lists(bit, min_size=attributes, max_size=attributes)
        return st.lists(row, min_size=rows, max_size=rows).map(np.array)
    return records(domain, attributes=attributes, rows=rows)


def _floats(low: float, high: float) -> _Strategy:
    start = min(max(0.0, low), high)
    values: _Strategy = st.just(start) | st.sampled_from([low, high])
    if math.ceil(low) <= math.floor(high):
        values = st.integers(math.ceil(low), math.floor(high)).map(float) | values
    return values | st.floats(low, high, allow_subnormal=False)


def _vectors(low: float, high: float, attributes: int) -> _Strategy:
    start = min(max(0.0, low), high)
    values = _floats(low, high)
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
