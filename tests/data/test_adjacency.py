"""The relation that a guarantee protects, in data and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError
from scipy import sparse

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
from dpverify.errors import ParameterError

SIZED: list[tuple[Callable[..., Adjacency], str]] = [
    (Attribute, "beta"),
    (L1Ball, "radius"),
]


@pytest.mark.parametrize(("kind", "name"), SIZED)
@pytest.mark.parametrize(
    ("size", "rule"),
    [
        (Fraction(0), "positive"),
        (Fraction(-1, 10**400), "positive"),
        (Fraction(-3), "positive"),
        (math.nan, "a finite real number"),
    ],
)
def test_sizes_that_are_not_positive_are_refused(
    kind: Callable[..., Adjacency], name: str, size: Any, rule: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{name}=.* must be {rule}") as caught:
        kind(**{name: size})
    assert caught.value.name == name
    assert caught.value.value is size


@pytest.mark.parametrize(("kind", "name"), SIZED)
def test_adjacencies_are_named_frozen_data(kind: Callable[..., Adjacency], name: str) -> None:
    one = kind(**{name: Fraction(1)})
    assert one == kind(**{name: Fraction(1)})
    assert one != kind(**{name: Fraction(2)})
    assert hash(one) == hash(kind(**{name: Fraction(1)}))
    with pytest.raises(FrozenInstanceError):
        setattr(one, name, Fraction(0))
    assert one == kind(1) == kind(**{name: "1.0"})


def test_kinds_of_the_same_size_differ() -> None:
    kinds: set[Adjacency] = {
        Attribute(beta=Fraction(1)),
        L1Ball(radius=Fraction(1)),
        BitFlip(),
    }
    assert len(kinds) == 3


@pytest.mark.parametrize(
    ("adjacency", "unit"),
    [
        (
            Attribute(beta=Fraction(Decimal("0.1"))),
            "one attribute of one record, changed by at most 0.1",
        ),
        (
            Attribute(beta=Fraction(1, 3)),
            "one attribute of one record, changed by at most 1/3",
        ),
        (L1Ball(radius=Fraction(5, 2)), "one record, changed by at most 2.5 in l1 distance"),
        (BitFlip(), "one bit of one record, flipped"),
    ],
)
def test_unit_of_privacy_in_words(adjacency: Adjacency, unit: str) -> None:
    assert adjacency.unit == unit


ROW = [[0.0, 1.0, 0.5]]


@pytest.mark.parametrize(
    ("adjacency", "neighbour", "related"),
    [
        (Attribute(beta=Fraction(1, 2)), [[0.0, 1.0, 1.0]], True),
        (Attribute(beta=Fraction(1, 2)), [[0.0, 1.0, math.nextafter(1.0, 2.0)]], False),
        (Attribute(beta=Fraction(1)), [[0.5, 0.5, 0.5]], False),
        (L1Ball(radius=Fraction(1)), [[0.5, 0.5, 0.5]], True),
        (L1Ball(radius=Fraction(99, 100)), [[0.5, 0.5, 0.5]], False),
        (Record(), [[7.0, -3.0, 0.0]], True),
        (Row(radius=Fraction(1)), [[0.6, 1.8, 0.5]], False),  # 0.6² + 0.8² > 1 in doubles
        (Row(radius=Fraction(1)), [[0.5, 1.75, 0.5]], True),
        (Items(changes=2), [[1.0, 0.0, 0.5]], True),
        (Items(changes=1), [[1.0, 0.0, 0.5]], False),
        (BitFlip(), [[1.0, 1.0, 0.5]], True),
        (BitFlip(), [[0.5, 1.0, 0.5]], False),
    ],
)
def test_who_is_related(adjacency: Adjacency, neighbour: list[list[float]], related: bool) -> None:
    assert adjacency.relates(ROW, neighbour) is related
    assert adjacency.relates(neighbour, ROW) is related
    assert adjacency.relates(ROW, ROW)
    # Elsewhere in a larger data set the same holds, and two rows never move.
    others = [[9.0, 9.0, 9.0]]
    assert adjacency.relates(others + ROW, others + neighbour) is related
    assert not adjacency.relates([*ROW, *ROW], [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


def test_one_edge_is_two_entries() -> None:
    graph = np.zeros((3, 3))
    moved = graph.copy()
    moved[0, 2] = moved[2, 0] = 0.5
    assert Edge(weight=Fraction(1, 2)).relates(graph, moved)
    assert Edge(weight=Fraction(1, 2)).relates(sparse.csr_array(graph), moved)
    assert not Edge(weight=Fraction(1, 4)).relates(graph, moved)
    moved[0, 1] = moved[1, 0] = 0.25
    assert not Edge(weight=Fraction(1, 2)).relates(graph, moved)


def test_data_sets_of_different_shapes_are_not_compared() -> None:
    with pytest.raises(ParameterError, match="neighbour=of shape"):
        Record().relates(ROW, [[0.0]])
