"""What is audited of a library: a mechanism, and what we read that it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Adjacency, Moves
from dpverify.guarantee import PrivacyBound, PrivacyCurve
from dpverify.privacy import Mechanism, Pair

__all__ = ["DataSets", "Entry", "claimed"]

DataSets = tuple[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A mechanism of a library.

    Attributes
    ----------
    name : by which the library's users know it, and with what
    reading : where the library says what it claims, or how we read it
    function : one release: of a data set, or of one record where the adjacency is of records
    claim, adjacency : how well it protects, and whom
    pairs : neighbours at which it is audited: two lists of rows, or two records
    draws : on each side: fewer where a release takes long, more where what leaks is rare
    known : where it is written that this reading doesn't hold: a public report, or the library's
        own documentation; empty where we know of none
    example : up to ten lines that show it, for the library's maintainers
    """

    name: str
    reading: str
    function: Callable[[Any], Any]
    claim: PrivacyBound
    adjacency: Adjacency
    pairs: tuple[DataSets, ...]
    draws: int = 1_000
    known: str = ""
    example: str = ""

    def __call__(self) -> Mechanism:
        """What an audit draws from."""
        record = isinstance(self.adjacency, Moves)
        sides = [[np.array([x], float) for x in pair] if record else pair for pair in self.pairs]
        pairs = [
            Pair(name=f"pair {number}", record=first, neighbour=second)
            for number, (first, second) in enumerate(sides, start=1)
        ]
        return adapt(
            self.function,
            of="record" if record else "dataset",
            adjacency=self.adjacency,
            claim=cast("PrivacyCurve", self.claim),  # a bound (zCDP) is enough for an audit
            name=self.name,
            pairs=pairs,
        )


def claimed(epsilon: float, delta: float = 0.0) -> ApproxDP:
    """The claim (ε, δ) of a library that computes in doubles, with room for their last digits."""
    room = 1 + Fraction(1, 10**9)
    return ApproxDP(epsilon=Fraction(epsilon) * room, delta=Fraction(delta) * room)
