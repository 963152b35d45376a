"""The relation that a guarantee protects, in data and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpverify.adjacency import Adjacency, AttributeAdjacency, BitFlip, L1Ball
from dpverify.errors import ParameterError

SIZED: list[tuple[Callable[..., Adjacency], str]] = [
    (AttributeAdjacency, "beta"),
    (L1Ball, "radius"),
]


@pytest.mark.parametrize(("kind", "name"), SIZED)
@pytest.mark.parametrize("size", [Fraction(0), Fraction(-1, 10**400), Fraction(-3), math.nan])
def test_sizes_that_are_not_positive_are_refused(
    kind: Callable[..., Adjacency], name: str, size: Any
) -> None:
    with pytest.raises(ParameterError, match=f"^{name}=.* must be positive") as caught:
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
    with pytest.raises(TypeError):
        kind(Fraction(1))


def test_kinds_of_the_same_size_differ() -> None:
    kinds: set[Adjacency] = {
        AttributeAdjacency(beta=Fraction(1)),
        L1Ball(radius=Fraction(1)),
        BitFlip(),
    }
    assert len(kinds) == 3


@pytest.mark.parametrize(
    ("adjacency", "unit"),
    [
        (
            AttributeAdjacency(beta=Fraction(Decimal("0.1"))),
            "one attribute of one record, changed by at most 0.1",
        ),
        (
            AttributeAdjacency(beta=Fraction(1, 3)),
            "one attribute of one record, changed by at most 1/3",
        ),
        (L1Ball(radius=Fraction(5, 2)), "one record, changed by at most 2.5 in l1 distance"),
        (BitFlip(), "one bit of one record, flipped"),
    ],
)
def test_unit_of_privacy_in_words(adjacency: Adjacency, unit: str) -> None:
    assert adjacency.unit == unit
