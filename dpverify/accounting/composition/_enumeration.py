"""δ(ε) of losses with few atoms: every sum of atoms, in two halves.

f(ε) = Σ_{l > ε} w(1 − e^{ε−l}) over the atoms l of weight w of the composition. With the losses in
two halves it is the sum over one half's atoms a, of weight w, of w·(Σ v − e^{ε−a}·Σ ve^{−b}) over
the other's atoms b > ε − a, of weight v: these are sorted, so that both sums are known beforehand.
Equal losses are taken as multisets: n of m atoms make C(n + m − 1, m − 1) sums with multinomial
weights. Where atoms are even multiples of one step apart, a power of their polynomial says what all
sums of one size weigh, and these are no more than n times the largest multiple and one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

from flint import arb, arb_poly

from dpverify.accounting.losses.base import Losses, PrivacyLoss, step_ball
from dpverify.accounting.losses.discrete import AtomicLoss

__all__ = ["Atoms", "Enumeration", "has_few_atoms", "has_few_sums", "sums_of_atoms"]

_MOST_FEW, _MOST_ATOMS = 1 << 12, 1 << 14

Atoms = list[tuple[arb, arb]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Enumeration:
    """All atoms of a composition.

    Attributes
    ----------
    few : weight, place, and weight times e^{−place} of the atoms of the half that has fewer
    weights, places : of the other half's atoms in rising order; places are the exact midpoints of
        the losses' balls
    radius : of the widest of these balls
    own, other : Σ v and Σ v·e^{−b} over the atoms from each index on
    """

    few: Sequence[tuple[arb, arb, arb]]
    weights: Sequence[arb]
    places: Sequence[arb]
    radius: arb
    own: Sequence[arb]
    other: Sequence[arb]

    @classmethod
    def of(cls, losses: Losses) -> Enumeration:
        """At the current precision, for losses that `has_few_sums` admits."""
        few, found = (sums_of_atoms(half) for half in _halves(losses))
        found.sort(key=lambda atom: atom[1].mid())
        return cls(
            few=[(w, place, w * (-place).exp()) for w, place in few],
            weights=[w for w, _ in found],
            places=[place.mid() for _, place in found],
            radius=reduce(arb.max, (place.rad() for _, place in found)),
            own=_above([w for w, _ in found]),
            other=_above([w * (-place).exp() for w, place in found]),
        )

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        own, other, open_ = arb(0), arb(0), arb(0)
        for weight, place, shrunk in self.few:
            left = epsilon - place
            # An atom that may be on either side counts with a ball that holds both answers.
            first = bisect_left(self.places, (left - self.radius).lower())
            last = bisect_right(self.places, (left + self.radius).upper(), lo=first)
            own += weight * self.own[last]
            other += shrunk * self.other[last]
            for v, b in zip(self.weights[first:last], self.places[first:last], strict=True):
                part = 1 - (left - b - arb(0, self.radius)).exp()
                open_ += weight * v * part.max(arb(0))
        return own - epsilon.exp() * other + open_


def has_few_atoms(losses: Losses, *, most: int = _MOST_ATOMS) -> bool:
    """Whether all losses are discrete and their sums not too many."""
    return all(isinstance(loss, AtomicLoss) for loss, _ in losses) and (
        math.prod(map(_size, losses)) <= most
    )


def has_few_sums(losses: Losses) -> bool:
    """Whether all losses are discrete and their sums not too many in either half."""
    if not all(isinstance(loss, AtomicLoss) for loss, _ in losses):
        return False
    few, many = (math.prod(map(_size, half)) for half in _halves(losses))
    return few <= _MOST_FEW and many <= _MOST_ATOMS


def _halves(losses: Losses) -> tuple[Losses, Losses]:
    """In two parts of about as many sums, the one with fewer first."""
    halves: tuple[list[tuple[PrivacyLoss, int]], list[tuple[PrivacyLoss, int]]] = ([], [])
    sizes = [1, 1]
    for pair in sorted(losses, key=_size, reverse=True):
        smaller = int(sizes[1] < sizes[0])
        halves[smaller].append(pair)
        sizes[smaller] *= _size(pair)
    first, second = (tuple(half) for half in halves)
    return (first, second) if sizes[0] <= sizes[1] else (second, first)


def _size(pair: tuple[PrivacyLoss, int]) -> int:
    """How many sums so many equal losses have."""
    loss, count = pair
    assert isinstance(loss, AtomicLoss)  # noqa: S101
    many, steps = _multisets(loss, count), _steps(loss)
    return many if steps is None else min(many, count * max(steps[1]) + 1)


def _multisets(loss: AtomicLoss, count: int) -> int:
    return math.comb(count + len(loss.atoms()) - 1, count)


def _steps(loss: AtomicLoss) -> tuple[arb, list[int]] | None:
    """A step, and how many the atoms are above the least one, where all are on one lattice."""
    support = loss.support
    if support is None or len(support.spacings) != 1:
        return None
    step, places = step_ball(support.spacings[0]), [place for _, place in loss.atoms()]
    least = reduce(arb.min, places)
    found = [((place - least) / step + 0.5).floor().unique_fmpz() for place in places]
    return None if None in found else (step, [int(k) for k in found if k is not None])


def sums_of_atoms(losses: Losses) -> Atoms:
    """Weight and place of every sum of atoms, at the current precision."""
    found: Atoms = [(arb(1), arb(0))]
    for loss, count in losses:
        assert isinstance(loss, AtomicLoss)  # noqa: S101
        many = _power(loss, count)
        found = [(w * v, place + more) for w, place in found for v, more in many]
    return found


def _power(loss: AtomicLoss, count: int) -> Atoms:
    """Sums of `count` equal losses."""
    atoms, steps = loss.atoms(), _steps(loss)
    if steps is None or _multisets(loss, count) <= count * max(steps[1]) + 1:
        return _copies(atoms, count)
    step, multiples = steps
    weights = [arb(0)] * (max(multiples) + 1)
    for (weight, _), k in zip(atoms, multiples, strict=True):
        weights[k] = weight
    start = count * reduce(arb.min, (place for _, place in atoms))
    sums = arb_poly(weights) ** count
    return [(w, start + step * k) for k, w in enumerate(sums) if not w.is_zero()]


def _copies(atoms: Atoms, count: int) -> Atoms:
    """The same of multisets."""
    if count <= 1:
        return atoms if count else [(arb(1), arb(0))]
    (weight, loss), *rest = atoms
    if not rest:
        return [(weight**count, count * loss)]
    ways = list(accumulate(range(count), lambda n, k: n * (count - k) // (k + 1), initial=1))
    return [
        (ways[taken] * weight**taken * other, taken * loss + place)
        for taken in range(count + 1)
        for other, place in _copies(rest, count - taken)
    ]


def _above(terms: Sequence[arb]) -> list[arb]:
    return [*list(accumulate(reversed(terms)))[::-1], arb(0)]
