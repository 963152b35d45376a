"""Who is a neighbour of whom: the relation that a guarantee protects.

Each adjacency is frozen data. Records are rows; neighbouring data sets have the same number of rows
(adjacency replaces, it doesn't add), so that number is public. `unit` says in words whose privacy
it is, and stands in the first line of a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpverify.enclosure import exact_string
from dpverify.errors import require

__all__ = [
    "Adjacency",
    "AttributeAdjacency",
    "BitFlip",
    "EdgeAdjacency",
    "ItemAdjacency",
    "L1Ball",
    "RecordAdjacency",
    "RowAdjacency",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeAdjacency:
    """β-adjacency: one attribute of one record moves by at most `beta`.

    Li and Li 2023, definition 2.3 (there on [-1, 1]^p; here on the declared domain).
    """

    beta: Fraction

    def __post_init__(self) -> None:
        require(self.beta > 0, "beta", self.beta, "positive")

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one attribute of one record, changed by at most {exact_string(self.beta)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlip:
    """One bit of one record flips (records are bit vectors)."""

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "one bit of one record, flipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Ball:
    """One record moves by at most `radius` in ℓ1 distance.

    For a linear query the extreme points of the ball are the β-adjacent pairs with β = radius, so
    its sensitivity is the same in every norm (Li and Li 2023, section 2.1). That needs the bound to
    hold for the records that are really projected: rounding p attributes to a grid of step h adds
    up to (p − 1)·h to the distance (`Grid.moves`).
    """

    radius: Fraction

    def __post_init__(self) -> None:
        require(self.radius > 0, "radius", self.radius, "positive")

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one record, changed by at most {exact_string(self.radius)} in l1 distance"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAdjacency:
    """One whole record is replaced by any other of the declared domain."""

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "one whole record, replaced by any other of the declared domain"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAdjacency:
    """At most `changes` items of one set are added, removed or replaced one for one.

    Aumüller et al. 2020, section 2: ‖x − y‖₁ ≤ α for the indicator vectors of two sets, so a
    replaced item counts twice. The lower bound τ on the sets' sizes belongs to the domain.
    """

    changes: int

    def __post_init__(self) -> None:
        require(self.changes >= 1, "changes", self.changes, "at least 1")

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        items = "item" if self.changes == 1 else "items"
        return f"at most {self.changes} {items} of one record's set, added or removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeAdjacency:
    """The weight of one edge of the graph changes by at most `weight`.

    Blocki et al. 2012, for weights in [0, 1] and `weight` 1.
    """

    weight: Fraction

    def __post_init__(self) -> None:
        require(self.weight > 0, "weight", self.weight, "positive")

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one edge of the graph, its weight changed by at most {exact_string(self.weight)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAdjacency:
    """One row of the data matrix moves by at most `radius` in ℓ2 distance.

    Blocki et al. 2012, section 4, for `radius` 1.
    """

    radius: Fraction

    def __post_init__(self) -> None:
        require(self.radius > 0, "radius", self.radius, "positive")

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"one row of the matrix, moved by at most {exact_string(self.radius)} in l2 distance"


Adjacency = (
    AttributeAdjacency
    | BitFlip
    | L1Ball
    | RecordAdjacency
    | ItemAdjacency
    | EdgeAdjacency
    | RowAdjacency
)
