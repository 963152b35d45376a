"""Neighbours by values that move: matrices of one shape, in which a place or a row changes.

Records are rows; neighbouring data sets have the same number of rows (adjacency replaces, it
doesn't add), so that number is public.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import attrs
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.data.adjacency.base import Choose, Of, shuffled
from dpverify.data.domain import LARGEST, dense
from dpverify.enclosure import exact_string, short_string
from dpverify.errors import ParameterError, require
from dpverify.numbers import to_count, to_positive_rational

__all__ = [
    "L2",
    "Attribute",
    "BitFlip",
    "Edge",
    "Items",
    "L1Ball",
    "LInf",
    "Moves",
    "Record",
    "Row",
    "largest_move",
]

_Places = Mapping[tuple[int, int], Fraction]


def _at_most_largest(_: Any, field: attrs.Attribute[Any], value: Fraction) -> None:
    require(value <= LARGEST, field.name, short_string(value), "at most 2**100")


class _Numbers(Protocol):
    """What a space of matrices offers to whoever makes neighbours in it."""

    def moves(self, base: float, size: Fraction, column: int, choose: Choose) -> Iterator[float]:
        """Values of a column at most so far away."""

    def moved(self, base: float, step: Fraction, column: int) -> float:
        """The value of a column that is nearest to base + step, and between them."""

    def new_rows(self, choose: Choose) -> Iterator[NDArray[Any]]:
        """Records that may replace another."""


class Moves:
    """An adjacency of matrices of one shape, by what changes between them."""

    __slots__ = ()

    of: ClassVar[Of | None] = None

    @property
    @abstractmethod
    def unit(self) -> str:
        """The unit of privacy in words."""

    @abstractmethod
    def allows(self, moved: _Places) -> bool:
        """Whether values may change by so much at these places, (row, column)."""

    @abstractmethod
    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        """Neighbours of a matrix; some may lie outside the space."""

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two data sets of shape (n, p) are neighbours, or equal."""
        return self.allows(_moves(records, neighbour))


@frozen
class Attribute(Moves):
    """β-adjacency: one attribute of one record moves by at most `beta`.

    Li and Li 2023, definition 2.3 (there on [-1, 1]^p; here on the declared domain).
    """

    beta: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one attribute of one record, changed by at most {exact_string(self.beta)}"

    def allows(self, moved: _Places) -> bool:
        return len(moved) <= 1 and all(abs(move) <= self.beta for move in moved.values())

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        for place in _places(data, choose):
            for value in space.moves(data[place], self.beta, place[1], choose):
                yield _changed(data, {place: value})


@frozen
class BitFlip(Moves):
    """One bit of one record flips (records are bit vectors)."""

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "one bit of one record, flipped"

    def allows(self, moved: _Places) -> bool:
        return len(moved) <= 1 and all(abs(move) == 1 for move in moved.values())

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        for place in _places(data, choose):
            yield _changed(data, {place: 1 - data[place]})


@frozen
class L1Ball(Moves):
    """One record moves by at most `radius` in ℓ1 distance.

    For a linear query the extreme points of the ball are the β-adjacent pairs with β = radius, so
    its sensitivity is the same in every norm (Li and Li 2023, section 2.1). That needs the bound to
    hold for the records that are really projected: rounding p attributes to a grid of step h adds
    up to (p − 1)·h to the distance (`Grid.moves`).
    """

    radius: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one record, changed by at most {exact_string(self.radius)} in l1 distance"

    def allows(self, moved: _Places) -> bool:
        total = sum((abs(move) for move in moved.values()), Fraction(0))
        return _rows(moved) <= 1 and total <= self.radius

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        yield from _near(data, self.radius, space, choose)


@frozen
class Record(Moves):
    """One whole record is replaced by any other of the declared domain."""

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "one whole record, replaced by any other of the declared domain"

    def allows(self, moved: _Places) -> bool:
        return _rows(moved) <= 1

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        for row in shuffled(len(data), choose):
            for new in space.new_rows(choose):
                yield _changed(data, {(row, column): new[column] for column in range(new.size)})


@frozen
class Items(Moves):
    """At most `changes` items of one set are added, removed or replaced one for one.

    Aumüller et al. 2020, section 2: ‖x − y‖₁ ≤ α for the indicator vectors of two sets, so a
    replaced item counts twice. The lower bound τ on the sets' sizes belongs to the domain.
    """

    changes: int = field(converter=to_count)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        items = "item" if self.changes == 1 else "items"
        return f"at most {self.changes} {items} of one record's set, added or removed"

    def allows(self, moved: _Places) -> bool:
        return _rows(moved) <= 1 and len(moved) <= self.changes

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        items = data.shape[1]
        for many in (self.changes - choose(self.changes), 1):
            for row, column in _places(data, choose):
                places = {(row, (column + further) % items) for further in range(min(many, items))}
                yield _changed(data, {place: 1 - data[place] for place in places})


@frozen
class Edge(Moves):
    """The weight of one edge of the graph changes by at most `weight`.

    Blocki et al. 2012, for weights in [0, 1] and `weight` 1.
    """

    of: ClassVar[Of | None] = "dataset"

    weight: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one edge of the graph, its weight changed by at most {exact_string(self.weight)}"

    def allows(self, moved: _Places) -> bool:
        edges = {tuple(sorted(place)) for place in moved}
        return len(edges) <= 1 and all(abs(move) <= self.weight for move in moved.values())

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        for row, column in _places(data, choose):
            if row < column:
                for value in space.moves(data[row, column], self.weight, column, choose):
                    yield _changed(data, {(row, column): value, (column, row): value})


@frozen
class Row(Moves):
    """One row of the data matrix moves by at most `radius` in ℓ2 distance.

    Blocki et al. 2012, section 4, for `radius` 1.
    """

    of: ClassVar[Of | None] = "dataset"

    radius: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one row of the matrix, moved by at most {exact_string(self.radius)} in l2 distance"

    def allows(self, moved: _Places) -> bool:
        return _within_l2(moved, self.radius)

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        yield from _near(data, self.radius, space, choose)


@frozen
class LInf(Moves):
    """Every answer of a vector of queries moves by at most `radius`.

    One person who comes or goes changes each of many counts by at most 1; what selects among them
    (noisy max, sparse vector) is a function of the vector.
    """

    of: ClassVar[Of | None] = "record"

    radius: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"the answers of all queries, each changed by at most {exact_string(self.radius)}"

    def allows(self, moved: _Places) -> bool:
        return _rows(moved) <= 1 and all(abs(move) <= self.radius for move in moved.values())

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        for row, signs in _patterns(data, choose):
            yield _stepped(data, row, signs, self.radius, space)


@frozen
class L2(Moves):
    """A vector of query answers moves by at most `radius` in ℓ2 distance."""

    of: ClassVar[Of | None] = "record"

    radius: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"the answers of all queries, moved by at most {exact_string(self.radius)} in l2"

    def allows(self, moved: _Places) -> bool:
        return _within_l2(moved, self.radius)

    def candidates(
        self, data: NDArray[Any], space: _Numbers, choose: Choose
    ) -> Iterator[NDArray[Any]]:
        for row, signs in _patterns(data, choose):
            terms = len(signs) - signs.count(0)
            root = Fraction(math.isqrt(2**60 // terms), 2**30)  # at most 1/√terms
            yield _stepped(data, row, signs, self.radius * root, space)


def largest_move(base: float, size: Fraction) -> float:
    """The double farthest from `base` towards base + size that is at most |size| away from it."""
    end = float(Fraction(base) + size)
    while abs(Fraction(end) - Fraction(base)) > abs(size):
        end = math.nextafter(end, base)
    return end


def _places(data: NDArray[Any], choose: Choose) -> Iterator[tuple[int, int]]:
    for place in shuffled(data.size, choose):
        yield divmod(place, data.shape[1])


def _changed(data: NDArray[Any], values: Mapping[tuple[int, int], float]) -> NDArray[Any]:
    other = data.copy()
    for place, value in values.items():
        other[place] = value
    return other


def _near(
    data: NDArray[Any], radius: Fraction, space: _Numbers, choose: Choose
) -> Iterator[NDArray[Any]]:
    """One value moved all the way, or two half the way, which is within either norm's reach."""
    columns = data.shape[1]
    for row, column in _places(data, choose):
        second = (column + choose(columns)) % columns
        parts = {column, second}
        for value in space.moves(data[row, column], radius / len(parts), column, choose):
            sign = 1 if value > data[row, column] else -1
            step = sign * radius / len(parts)
            values = {(row, place): space.moved(data[row, place], step, place) for place in parts}
            yield _changed(data, values | {(row, column): value})


def _patterns(data: NDArray[Any], choose: Choose) -> Iterator[tuple[int, list[int]]]:
    """Signs of the moves of a row: StatDP's patterns, around each place.

    Ding et al. 2018 (arXiv:1805.10277): all above, all below, half and half (from the record that
    is a step, their X), and one above or below, with the rest unmoved or against it.
    """
    columns = data.shape[1]
    half = columns // 2
    whole = [
        [1] * columns,
        [-1] * columns,
        [-1] * half + [1] * (columns - half),
        [1] * half + [-1] * (columns - half),
        [1] * half + [0] * half if half else [1],
    ]
    count = len(whole) + 4 * columns
    for number in shuffled(len(data) * count, choose):
        row, kind = divmod(number, count)
        if kind < len(whole):
            signs = whole[kind][:columns]
        else:
            place, way = divmod(kind - len(whole), 4)
            one, rest = ((1, 0), (-1, 0), (1, -1), (-1, 1))[way]
            signs = [one if column == place else rest for column in range(columns)]
        yield row, signs + [0] * (columns - len(signs))


def _stepped(
    data: NDArray[Any], row: int, signs: Sequence[int], size: Fraction, space: _Numbers
) -> NDArray[Any]:
    steps = [(column, sign * size) for column, sign in enumerate(signs) if sign]
    return _changed(data, {(row, c): space.moved(data[row, c], step, c) for c, step in steps})


def _moves(records: Any, neighbour: Any) -> dict[tuple[int, int], Fraction]:
    """What changes between two data sets of one shape, by (row, column), exactly."""
    first, second = _dense(records), _dense(neighbour)
    require(
        first.shape == second.shape,
        "neighbour",
        f"of shape {second.shape}",
        f"of the records' shape {first.shape}",
        _OWN,
    )
    return {
        (row, column): _exact(second[row, column], row, column)
        - _exact(first[row, column], row, column)
        for row, column in np.argwhere(first != second).tolist()
    }


_OWN = "AddRemove and Replace relate other data, or an adjacency of your own (`unit`, `relates`)."


def _exact(value: Any, row: int, column: int) -> Fraction:
    """The value itself; NaN, which differs from itself, infinity and words have no distance."""
    try:
        number = value.item() if isinstance(value, np.generic) else value
        return Fraction(*number.as_integer_ratio())
    except (AttributeError, TypeError, ValueError, OverflowError):
        place = f"value in row {row}, column {column}"
        raise ParameterError(place, value, "a finite number, if it changes", _OWN) from None


def _dense(records: Any) -> NDArray[Any]:
    return np.atleast_2d(dense(records))


def _within_l2(moved: _Places, radius: Fraction) -> bool:
    """Whether one row alone moves, by at most the radius in ℓ2 distance."""
    return _rows(moved) <= 1 and sum(move**2 for move in moved.values()) <= radius**2


def _rows(moved: _Places) -> int:
    return len({row for row, _ in moved})
