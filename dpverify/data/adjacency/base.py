"""What an adjacency has to offer: a unit in words, and a relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["Adjacency", "Choose", "Of", "shuffled"]

Of = Literal["record", "dataset"]
"""What a function is a function of: one record, or a whole data set."""

Choose = Callable[[int], int]
"""Gives a whole number below its argument; the simplest choice is 0."""


@runtime_checkable
class Adjacency(Protocol):
    """Relates data sets. Any object with these two is one; more is optional.

    `of` is "record" or "dataset" where the adjacency leaves no choice of what a function is of.
    `candidates(data, space, choose)` gives neighbours of the data, in an order that `choose`
    decides, and each as telling as any; with it, pairs are searched for, and without it they are
    named. What it gives needn't be in the domain, nor a neighbour: the search leaves out what
    isn't. `space` makes values and rows of the domain (`dpverify.auditing.spaces`).

    Examples
    --------
    >>> class OneName:
    ...     unit = "one name of the list, replaced by any other"
    ...     of = "dataset"
    ...     def relates(self, names, others):
    ...         same = len(names) == len(others)
    ...         return same and sum(a != b for a, b in zip(names, others)) <= 1
    >>> isinstance(OneName(), Adjacency)
    True
    """

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""

    def relates(self, records: Any, neighbour: Any, /) -> bool:
        """Whether two data sets are neighbours, or equal; the same in both orders."""


def shuffled(count: int, choose: Choose) -> Iterator[int]:
    """Whole numbers below `count` in an order that is chosen; their own, if all choices are 0."""
    moved: dict[int, int] = {}
    for place in range(count):
        other = place + choose(count - place)
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place)
