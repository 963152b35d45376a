"""Who is a neighbour of whom: the relation that a guarantee protects.

Each adjacency is frozen data. Records are rows; neighbouring data sets have the same number of rows
(adjacency replaces, it doesn't add), so that number is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpverify.enclosure import exact_string
from dpverify.errors import require

__all__ = ["Adjacency", "AttributeAdjacency", "BitFlip", "L1Ball"]


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


Adjacency = AttributeAdjacency | BitFlip | L1Ball
