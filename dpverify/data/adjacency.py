"""Who is a neighbour of whom: the relation that a guarantee protects.

Each adjacency is frozen data. Records are rows; neighbouring data sets have the same number of rows
(adjacency replaces, it doesn't add), so that number is public. `unit` says in words whose privacy
it is, and stands in the first line of a certificate; `relates` decides for two data sets, exactly
for the doubles that they hold. `of` says what a function is a function of, where the adjacency
leaves no choice: a graph and a data matrix are data sets; one record may change alone or among
others, and then whoever audits a function declares it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.data.domain import LARGEST, dense
from dpverify.enclosure import exact_string, short_string
from dpverify.errors import ParameterError, require
from dpverify.numbers import to_count, to_positive_rational

__all__ = [
    "Adjacency",
    "Attribute",
    "BitFlip",
    "Edge",
    "Items",
    "L1Ball",
    "Of",
    "Record",
    "Row",
]

Of = Literal["record", "dataset"]
"""What a function is a function of: one record, or a whole data set."""


def _at_most_largest(_: Any, field: attrs.Attribute[Any], value: Fraction) -> None:
    require(value <= LARGEST, field.name, short_string(value), "at most 2**100")


@frozen
class Attribute:
    """β-adjacency: one attribute of one record moves by at most `beta`.

    Li and Li 2023, definition 2.3 (there on [-1, 1]^p; here on the declared domain).
    """

    of: ClassVar[Of | None] = None

    beta: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one attribute of one record, changed by at most {exact_string(self.beta)}"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two data sets of shape (n, p) are neighbours, or equal."""
        moved = _moves(records, neighbour)
        return len(moved) <= 1 and all(abs(move) <= self.beta for move in moved.values())


@frozen
class BitFlip:
    """One bit of one record flips (records are bit vectors)."""

    of: ClassVar[Of | None] = None

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "one bit of one record, flipped"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two data sets of bits, of shape (n, p), are neighbours, or equal."""
        moved = _moves(records, neighbour)
        return len(moved) <= 1 and all(abs(move) == 1 for move in moved.values())


@frozen
class L1Ball:
    """One record moves by at most `radius` in ℓ1 distance.

    For a linear query the extreme points of the ball are the β-adjacent pairs with β = radius, so
    its sensitivity is the same in every norm (Li and Li 2023, section 2.1). That needs the bound to
    hold for the records that are really projected: rounding p attributes to a grid of step h adds
    up to (p − 1)·h to the distance (`Grid.moves`).
    """

    of: ClassVar[Of | None] = None

    radius: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one record, changed by at most {exact_string(self.radius)} in l1 distance"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two data sets of shape (n, p) are neighbours, or equal."""
        moved = _moves(records, neighbour)
        total = sum((abs(move) for move in moved.values()), Fraction(0))
        return _rows(moved) <= 1 and total <= self.radius


@frozen
class Record:
    """One whole record is replaced by any other of the declared domain."""

    of: ClassVar[Of | None] = None

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "one whole record, replaced by any other of the declared domain"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two data sets of shape (n, p) are neighbours, or equal."""
        return _rows(_moves(records, neighbour)) <= 1


@frozen
class Items:
    """At most `changes` items of one set are added, removed or replaced one for one.

    Aumüller et al. 2020, section 2: ‖x − y‖₁ ≤ α for the indicator vectors of two sets, so a
    replaced item counts twice. The lower bound τ on the sets' sizes belongs to the domain.
    """

    of: ClassVar[Of | None] = None

    changes: int = field(converter=to_count)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        items = "item" if self.changes == 1 else "items"
        return f"at most {self.changes} {items} of one record's set, added or removed"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two data sets of shape (n, items) are neighbours, or equal."""
        moved = _moves(records, neighbour)
        return _rows(moved) <= 1 and len(moved) <= self.changes


@frozen
class Edge:
    """The weight of one edge of the graph changes by at most `weight`.

    Blocki et al. 2012, for weights in [0, 1] and `weight` 1.
    """

    of: ClassVar[Of | None] = "dataset"

    weight: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one edge of the graph, its weight changed by at most {exact_string(self.weight)}"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two symmetric weight matrices are neighbours, or equal."""
        moved = _moves(records, neighbour)
        edges = {tuple(sorted(place)) for place in moved}
        return len(edges) <= 1 and all(abs(move) <= self.weight for move in moved.values())


@frozen
class Row:
    """One row of the data matrix moves by at most `radius` in ℓ2 distance.

    Blocki et al. 2012, section 4, for `radius` 1.
    """

    of: ClassVar[Of | None] = "dataset"

    radius: Fraction = field(converter=to_positive_rational, validator=_at_most_largest)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one row of the matrix, moved by at most {exact_string(self.radius)} in l2 distance"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether two matrices are neighbours, or equal."""
        moved = _moves(records, neighbour)
        total = sum((move**2 for move in moved.values()), Fraction(0))
        return _rows(moved) <= 1 and total <= self.radius**2


Adjacency = Attribute | BitFlip | L1Ball | Record | Items | Edge | Row


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


_OWN = "An adjacency of your own (an object with `unit` and `relates`) may relate other data."


def _exact(value: Any, row: int, column: int) -> Fraction:
    """The value itself; NaN, which differs from itself, infinity and words have no distance."""
    try:
        return Fraction(float(value))
    except (TypeError, ValueError, OverflowError):
        place = f"value in row {row}, column {column}"
        raise ParameterError(place, value, "a finite number, where it changes", _OWN) from None


def _dense(records: Any) -> NDArray[Any]:
    return np.atleast_2d(dense(records))


def _rows(moved: dict[tuple[int, int], Fraction]) -> int:
    return len({row for row, _ in moved})
