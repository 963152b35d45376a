"""Neighbouring sets that a linear sketch is attacked with: inside the domain, and far apart."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.data.adjacency import Adjacency, Attribute, BitFlip, Items, L1Ball, Record
from dpverify.data.domain import Sets
from dpverify.data.grid import Grid
from dpverify.errors import ParameterError
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.linear.worst_pairs import pairs_apart
from dpverify_mechanisms.projections.independent import OPORP
from tests.helpers.profiles import examples

STEP = Grid(step=Fraction(1))


def farthest(items: int, domain: Sets, changes: int) -> int:
    """Largest number of items in which two sets of the domain differ, by trying all sizes."""
    most = min(domain.max_size or items, items)
    best = 0
    for shared in range(items + 1):
        for a in range(items - shared + 1):
            for b in range(min(a, items - shared - a) + 1):
                fits = domain.min_size <= shared + b and shared + a <= most
                if fits and a + b <= changes:
                    best = max(best, a + b)
    return best


@examples(150)
@given(st.integers(2, 8), st.integers(1, 8), st.integers(0, 8), st.integers(1, 9))
def test_sets_that_differ_in_items_are_as_far_apart_as_any(
    items: int, least: int, room: int, changes: int
) -> None:
    least = min(least, items)
    domain = Sets(min_size=least, max_size=min(least + room, items) if room else None)
    adjacency = Items(changes=changes)
    (pair,) = pairs_apart(OPORP(p=items, k=1, seed=1), STEP, domain, adjacency, 2)
    for record in (pair.record, pair.neighbour):
        domain.admit(record, attributes=items)
    assert adjacency.relates(pair.record, pair.neighbour)
    apart = abs(pair.record - pair.neighbour).sum()
    assert apart == farthest(items, domain, changes)


@pytest.mark.parametrize(
    ("items", "domain"),
    [
        (16, Sets(min_size=9, max_size=10)),
        (16, Sets(min_size=1, max_size=3)),
        (4, Sets(min_size=4, max_size=4)),
    ],
)
def test_sets_that_are_replaced_are_as_far_apart_as_any(items: int, domain: Sets) -> None:
    adjacency: Adjacency = Record()
    (pair,) = pairs_apart(OPORP(p=items, k=2, seed=1), STEP, domain, adjacency, 2)
    for record in (pair.record, pair.neighbour):
        domain.admit(record, attributes=items)


@pytest.mark.parametrize("adjacency", [Items(changes=2), Attribute(beta=1), Record()])
def test_sets_larger_than_all_items_are_refused(adjacency: Adjacency) -> None:
    target: Any = {"epsilon": 1, "delta": "1e-6", "adjacency": adjacency}
    with pytest.raises(ParameterError, match=r"min_size=5 must be at most p=4"):
        LinearSketch.calibrated(
            OPORP(p=4, k=1, seed=1), domain=Sets(min_size=5, max_size=6), **target
        )


@pytest.mark.parametrize("adjacency", [Attribute(beta=3), L1Ball(radius=3), BitFlip()])
def test_sets_apart_are_neighbours_in_every_adjacency(adjacency: Adjacency) -> None:
    domain = Sets(min_size=2)
    (pair,) = pairs_apart(OPORP(p=6, k=2, seed=1), STEP, domain, adjacency, 2)
    assert adjacency.relates(pair.record, pair.neighbour)


def test_one_item_moves_by_at_most_1() -> None:
    target: Any = {"epsilon": 1, "delta": "1e-6", "domain": Sets(), "adjacency": Attribute(beta=3)}
    with pytest.raises(ParameterError, match=r"beta=3 must be at most 1"):
        LinearSketch.calibrated(OPORP(p=6, k=2, seed=1), **target)
