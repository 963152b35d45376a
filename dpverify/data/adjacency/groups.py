"""Neighbours that are several changes apart."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from dpverify.data.adjacency.base import Adjacency
from dpverify.errors import require
from dpverify.numbers import to_count

__all__ = ["Group"]


@frozen
class Group:
    """Data sets that are at most so many changes apart, one after another.

    It says whom a curve for groups protects. Which data sets lie that far apart isn't decided.

    Parameters
    ----------
    one : the adjacency of one change; None where it wasn't said
    size : how many changes
    """

    one: Adjacency | None
    size: int = field(converter=to_count)

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"{self.one.unit if self.one else 'one change'}: up to {self.size} such changes"

    def relates(self, records: Any, neighbour: Any, /) -> bool:
        """Whether they are one change apart or equal; refused for any others."""
        near = self.one is not None and self.one.relates(records, neighbour)
        require(near, "adjacency", self.unit, "one that is decided from all changes at once")
        return True
