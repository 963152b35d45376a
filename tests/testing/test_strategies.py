"""Strategies: in their domain, neighbours, and shrunk to what a person can read."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.data.adjacency import (
    Attribute,
    BitFlip,
    Edge,
    Items,
    L1Ball,
    Record,
    Row,
)
from dpverify.data.domain import Ball, Box, Graphs, Sets
from dpverify.errors import ParameterError
from dpverify.testing import strategies
from tests.helpers.profiles import day_and_night, examples

TENTH = Fraction(1, 10)
BOX = Box(low=Fraction(-3), high=Fraction(3))
CASES: list[tuple[Any, Any]] = [
    (Attribute(beta=TENTH), BOX),
    (Attribute(beta=Fraction(5)), Box(low=TENTH, high=Fraction(2))),
    (Attribute(beta=Fraction(1)), Ball(radius=Fraction(2))),
    (L1Ball(radius=TENTH), BOX),
    (Row(radius=Fraction(1, 3)), Ball(radius=Fraction(7))),
    (Record(), BOX),
    (Record(), Ball(radius=Fraction(1, 3))),
    (Record(), Box(low=Fraction(0), high=Fraction(1))),
    (BitFlip(), Box(low=Fraction(0), high=Fraction(1))),
    (Items(changes=2), Sets(min_size=1)),
    (Edge(weight=TENTH), Graphs()),
]
cases = pytest.mark.parametrize(("adjacency", "domain"), CASES, ids=str)


def check(pair: Any, adjacency: Any, domain: Any) -> None:
    assert adjacency.relates(pair.record, pair.neighbour)
    assert not np.array_equal(pair.record, pair.neighbour)
    for data in (pair.record, pair.neighbour):
        domain.admit(data)


@cases
@given(data=st.data())
def test_pairs_are_neighbours_in_the_domain(
    data: st.DataObject, adjacency: Any, domain: Any
) -> None:
    check(data.draw(strategies.neighbours(adjacency, domain, attributes=3)), adjacency, domain)


@cases
def test_extreme_pairs_are_neighbours_in_the_domain(adjacency: Any, domain: Any) -> None:
    for pair in Matrices(adjacency=adjacency, domain=domain, attributes=3).extremes():
        check(pair, adjacency, domain)


@examples(20)
@given(pair=strategies.neighbours(BitFlip(), Box(low=Fraction(0), high=Fraction(1)), attributes=3))
def test_bits_are_bits(pair: Any) -> None:
    assert set(pair.record.ravel()) | set(pair.neighbour.ravel()) <= {0.0, 1.0}
    assert np.abs(pair.record - pair.neighbour).sum() == 1


@pytest.mark.parametrize("domain", [BOX, Ball(radius=TENTH), Sets(min_size=2), Graphs()], ids=str)
@examples(20)
@given(data=st.data())
def test_records_are_in_their_domain(data: st.DataObject, domain: Any) -> None:
    drawn = data.draw(strategies.records(domain, attributes=4, rows=2))
    assert drawn.shape == ((4, 4) if isinstance(domain, Graphs) else (2, 4))
    domain.admit(drawn)


@given(epsilon=strategies.epsilons(), delta=strategies.deltas())
def test_parameters(epsilon: Fraction, delta: Fraction) -> None:
    assert 0 < epsilon <= 20
    assert 0 <= delta < 1


@pytest.mark.parametrize(("attributes", "rows"), day_and_night((2, 1), (3, 1), (4, 2)))
def test_shrinks_to_small_integers_and_few_coordinates(attributes: int, rows: int) -> None:
    one = Attribute(beta=Fraction(1))
    strategy = strategies.neighbours(one, BOX, attributes=attributes, rows=rows)
    zeros = [0.0] * (attributes * rows - 1)
    quiet = settings(max_examples=500, database=None, derandomize=True)
    pair = find(strategy, lambda pair: True, settings=quiet)
    assert np.count_nonzero(pair.record) == 0
    assert sorted(pair.neighbour.ravel().tolist()) == [*zeros, 1.0]
    pair = find(strategy, lambda pair: pair.record.max() > 1.5, settings=quiet)
    assert sorted(pair.record.ravel().tolist()) == [*zeros, 2.0]
    assert find(strategies.deltas(), lambda delta: delta > 0, settings=quiet) == TENTH
    assert find(strategies.epsilons(), lambda epsilon: epsilon > 2, settings=quiet) == 3


def test_both_sides_are_in_the_domain() -> None:
    small = Ball(radius=Fraction(1))
    pairs = strategies.neighbours(BitFlip(), small, attributes=3)

    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    @given(pair=pairs)
    def holds(pair: Any) -> None:
        small.admit(pair.record)
        small.admit(pair.neighbour)

    holds()


def test_an_adjacency_of_ones_own_is_refused() -> None:
    class Mine:
        unit = "mine"

        def relates(self, data: Any, neighbour: Any) -> bool:
            return True

    adjacency: Any = Mine()
    with pytest.raises(ParameterError, match="Name the pairs"):
        strategies.neighbours(adjacency, Box(low=Fraction(0), high=Fraction(1)), attributes=1)


TABLE = dpv.Table(
    {
        "age": dpv.Integers(0, 120, missing=True),
        "income": dpv.Reals(-1, 1),
        "sex": dpv.Categories("f", "m"),
        "when": dpv.Dates("2020-01-01", "2025-12-31"),
        "note": dpv.Text(3),
        "smokes": dpv.Booleans(),
    },
    rows=(0, 4),
)


@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_data_sets_and_neighbours_of_a_table(data: st.DataObject) -> None:
    rows = data.draw(strategies.data_sets(TABLE))
    assert TABLE.admit(rows) == rows
    by_id = dpv.AddRemove(user="note")
    for adjacency in (dpv.AddRemove(), dpv.Replace(), dpv.Permutation(), by_id):
        pair = data.draw(strategies.neighbours(adjacency, TABLE))
        assert TABLE.admit(pair.record) == pair.record
        assert TABLE.admit(pair.neighbour) == pair.neighbour
        assert adjacency.relates(pair.record, pair.neighbour)
        assert pair.record != pair.neighbour


@pytest.mark.nightly
def test_tables_shrink_to_few_simple_rows() -> None:
    quiet = settings(max_examples=2000, database=None, derandomize=True)
    ages = dpv.Table({"age": dpv.Integers(0, 120)}, rows=(0, 9))
    pair = find(strategies.neighbours(dpv.AddRemove(), ages), lambda _: True, settings=quiet)
    assert len(pair.record) + len(pair.neighbour) == 1
    rows = find(
        strategies.data_sets(ages), lambda rows: any(r["age"] > 30 for r in rows), settings=quiet
    )
    assert rows == [{"age": 31}]
