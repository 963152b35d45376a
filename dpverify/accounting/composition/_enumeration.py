"""δ(ε) of losses with few atoms: every sum of atoms, sorted.

f(ε) = Σ_{l > ε} w(1 − e^{ε−l}) over the atoms l of weight w of the composition, so two sums over
the atoms above ε answer every ε. Equal losses are taken as multisets: n of m atoms make
C(n + m − 1, m − 1) sums with multinomial weights.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

from flint import arb

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import AtomicLoss

__all__ = ["Atoms", "Enumeration", "has_few_atoms", "sums_of_atoms"]

_MOST_ATOMS = 1 << 14

Atoms = list[tuple[arb, arb]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Enumeration:
    """All atoms of a composition, in rising order.

    Attributes
    ----------
    weights, places : of each atom; places are the exact midpoints of the losses' balls
    radius : of the widest of these balls
    own, other : Σ w and Σ w·e^{−l} over the atoms from each index on
    """

    weights: Sequence[arb]
    places: Sequence[arb]
    radius: arb
    own: Sequence[arb]
    other: Sequence[arb]

    @classmethod
    def of(cls, losses: Losses) -> Enumeration:
        """At the current precision, for losses that `has_few_atoms` admits."""
        found = sums_of_atoms(losses)
        found.sort(key=lambda atom: atom[1].mid())
        return cls(
            weights=[w for w, _ in found],
            places=[place.mid() for _, place in found],
            radius=reduce(arb.max, (place.rad() for _, place in found)),
            own=_above([w for w, _ in found]),
            other=_above([w * (-place).exp() for w, place in found]),
        )

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        # An atom that may be on either side of ε counts with a ball that holds both answers.
        first = bisect_left(self.places, (epsilon - self.radius).lower())
        last = bisect_right(self.places, (epsilon + self.radius).upper())
        total = self.own[last] - epsilon.exp() * self.other[last]
        for weight, place in zip(self.weights[first:last], self.places[first:last], strict=True):
            part = 1 - (epsilon - place - arb(0, self.radius)).exp()
            total += weight * part.max(arb(0))
        return total


def has_few_atoms(losses: Losses, *, most: int = _MOST_ATOMS) -> bool:
    """Whether all losses are discrete and their sums not too many."""
    size = 1
    for loss, count in losses:
        if not isinstance(loss, AtomicLoss):
            return False
        size *= math.comb(count + len(loss.atoms()) - 1, count)
        if size > most:
            return False
    return True


def sums_of_atoms(losses: Losses) -> Atoms:
    """Weight and place of every sum of atoms, at the current precision."""
    found: Atoms = [(arb(1), arb(0))]
    for loss, count in losses:
        assert isinstance(loss, AtomicLoss)  # noqa: S101
        many = _copies(loss.atoms(), count)
        found = [(w * v, place + more) for w, place in found for v, more in many]
    return found


def _copies(atoms: Atoms, count: int) -> Atoms:
    """Sums of `count` equal losses."""
    (weight, loss), *rest = atoms
    if not rest:
        return [(weight**count, count * loss)]
    return [
        (math.comb(count, taken) * weight**taken * other, taken * loss + place)
        for taken in range(count + 1)
        for other, place in _copies(rest, count - taken)
    ]


def _above(terms: Sequence[arb]) -> list[arb]:
    return [*list(accumulate(reversed(terms)))[::-1], arb(0)]
