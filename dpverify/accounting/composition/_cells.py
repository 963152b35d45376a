"""Two lattice laws for a loss of known tails: one that dominates it, one that it dominates.

A pair of laws with the loss L is described by the law of R = e^L under q: H_α = E[(R − α)₊], plus
what q can't give. One pair dominates another one if and only if its R is larger in convex order,
and then in every product, also of measures whose total isn't 1: replacing one factor, given the
others', replaces H at one α by the larger one.

The real line is cut into cells, of which both laws' masses p and q are known by their tails.

**Above.** Within a cell [l, r) put all mass at the ends so that p and q stay: b at r and a at l,

    b = (p − q·e^l)/(1 − e^{l − r}),      a = p − b,

weights of p. That spreads R without moving its mean, and rounding a and b upwards adds a measure.
What lies below all cells is put at their left end, and what lies above them at infinity; so are
weights next to the least double, which a tilt would make as large as what they are rounded by.

**Below.** To merge cells, at ln(p/q), is to forget where in them the output was. Some neighbours
merge at m, or in two parts at m₁ < m < m₂. The two points j·h ≤ m < (j + 1)·h of the lattice get
the masses p and q of all in the only way there is. If m₁ ≤ jh and (j + 1)h ≤ m₂ that spreads R less
than m₁ and m₂ do, hence less than L does. Where no neighbours are so, as at atoms, a cell's mass is
moved from its m down to the lattice: by h/2 or so, which costs less than merging cells of variance
v does, about cv/2, where cv > h. What lies left of all cells is left out, at −∞, and what lies on
the right, if it is finite, is put at their right end.

**Cells.** Halves of halves of an interval, always the cell next whose mass, tilted by c, adds most
to the variance of what is spread: p·e^{cr}·(r − l)². Nothing depends on which ones these are.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpverify.accounting.losses.base import Doubles, TailedLoss
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError

__all__ = ["Cells", "Law"]

_MOST_DOUBLINGS = 1000
_LOW_TAIL = -45.0  # logarithm of what may lie below all cells
_GROUPS = (2, 3, 4, *(1 << n for n in range(3, 12)))  # neighbours that are merged together
_NARROWEST = 2.0**-36  # cell, of the largest loss
_WHOLE = 2**53  # up to which doubles hold all whole numbers
_LEAST = 2.0**-1060  # weight at a place: doubles hold fourteen binary digits of it
_FEW = 6  # ends of cells, up to which every way to part them is tried


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """Weights of the first law at whole multiples of a unit.

    Attributes
    ----------
    places : of each weight, in units
    weights : positive
    infinite : what is at infinity, where the loss isn't infinite
    """

    places: NDArray[np.int64]
    weights: Doubles
    infinite: float

    def log_moment(self, c: Doubles, unit: float) -> Doubles:
        """Ln Σ w·e^{cx} in doubles, to nine digits or better."""
        exponents = np.log(self.weights)[:, None] + self.places[:, None] * unit * c
        most = exponents.max(axis=0)
        found: Doubles = most + np.log(np.exp(exponents - most).sum(axis=0))
        return found


@dataclass(slots=True, kw_only=True, eq=False)
class Cells:
    """Cells of one loss, which may be refined; at the precision that is in force.

    Attributes
    ----------
    loss : whose law it is
    tails : at the ends of cells, so far
    logs : of each cell's mass, with its right end, by its left end
    """

    loss: TailedLoss
    tails: dict[float, tuple[arb, arb]] = field(default_factory=dict)
    logs: dict[float, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, loss: TailedLoss, log_tail: float) -> Cells:
        """Two cells, up to where no more than e^log_tail lies above, but for what is infinite."""
        cells = cls(loss=loss)
        most = arb(log_tail).exp()
        low = arb(min(log_tail, _LOW_TAIL)).exp().max(arb(2) ** -100)
        reach = 2.0**-40
        for _ in range(_MOST_DOUBLINGS):
            above, below = loss.tails(arb(reach))[0], loss.tails(arb(-reach))[0]
            if above - cells.infinite < most and 1 - below < low:
                for place in (-reach, 0.0, reach):
                    cells.add(place)
                return cells
            reach *= 2
        raise NumericalError(f"no end was found for the range of the loss {loss}")

    @property
    def infinite(self) -> arb:
        """P[L = ∞]."""
        return to_arb(self.loss.infinity_mass)

    @property
    def reach(self) -> float:
        """The end of all cells."""
        return max(self.tails)

    def add(self, place: float) -> None:
        """Cut there."""
        self.tails[place] = self.loss.tails(arb(place))

    def refine(self, c: float, most: int, unit: float) -> None:
        """Halve cells until there are `most`, or none wider than the unit."""
        places = sorted(self.tails)
        narrowest = max(2 * unit, places[-1] * _NARROWEST)
        heap = [self._cost(c, *ends, narrowest) for ends in pairwise(places)]
        heapq.heapify(heap)
        while len(self.tails) < most and heap[0][0] < math.inf:
            _, left, right = heapq.heappop(heap)
            middle = (left + right) / 2
            self.add(middle)
            halves = ((left, middle), (middle, right))
            for half in halves:
                heapq.heappush(heap, self._cost(c, *half, narrowest))

    def above(self, unit: float) -> Law:
        """The law that dominates."""
        places = self._places(unit)
        weights = dict.fromkeys(places, arb(0))
        weights[places[0]] = 1 - self.tails[places[0]][0]
        for left, right in pairwise(places):
            own, other = self._masses(left, right)
            end = _at_end(own, other, left, right)
            weights[right] += end
            weights[left] += (own - end).max(arb(0))
        return _law(weights, unit, self.tails[places[-1]][0] - self.infinite, up=True)

    def below(self, unit: float, c: float = 1.0) -> Law:
        """The law that is dominated, which is close where it is tilted by c."""
        places = self._places(unit)
        weights: dict[float, arb] = {}

        def put(place: float, weight: arb) -> None:
            weights[place] = weights.get(place, arb(0)) + weight.lower().max(arb(0))

        put(places[-1], self.tails[places[-1]][0] - self.infinite)
        middle = bisect_left(places, arb(0.5), key=lambda place: 1 - self.tails[place][0].mid())
        for side in (places[: middle + 1], places[middle:][::-1]):
            first, known = 0, [self._sketch(*sorted(ends)) for ends in pairwise(side)]
            while first < len(side) - 1:
                size, found = 1, None
                for several in _GROUPS:
                    if c * _variance(known[first : first + several]) > unit:
                        break
                    found = self._between(side[first : first + several + 1], unit)
                    if found is not None:
                        size = several
                        break
                if found is None:
                    own, other = self._masses(*sorted(side[first : first + 2]))
                    resolved = own > 0 and own / other > 0
                    found = [(_floor((own / other).log(), unit), own)] if resolved else []
                for place, weight in found:
                    put(place, weight)
                first += size
        return _law(weights, unit, arb(0), up=False)

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln of the moments where each cell's mass is at its middle, for planning."""
        table = np.array([(left, *rest) for left, rest in self.logs.items()])
        resolved = table[table[:, 2] > -math.inf]
        exponents = resolved[:, 2:] + (resolved[:, :1] + resolved[:, 1:2]) / 2 * c
        most = exponents.max(axis=0)
        found: Doubles = most + np.log(np.exp(exponents - most).sum(axis=0))
        return found

    def mean_and_variance(self) -> tuple[float, float]:
        """As if each cell's mass were at its middle, in doubles."""
        table = np.array([(left, *rest) for left, rest in self.logs.items()])
        weights, middles = np.exp(table[:, 2]), (table[:, 0] + table[:, 1]) / 2
        mean = float(np.average(middles, weights=weights))
        return mean, float(np.average((middles - mean) ** 2, weights=weights))

    def _places(self, unit: float) -> list[float]:
        return [place for place in sorted(self.tails) if place % unit == 0]

    def _masses(self, left: float, right: float) -> tuple[arb, arb]:
        first, second = self.tails[left], self.tails[right]
        return first[0] - second[0], first[1] - second[1]

    def _sketch(self, left: float, right: float) -> tuple[float, float]:
        """A cell's mass and its place, in doubles."""
        own, other = self._masses(left, right)
        resolved = own > 0 and own / other > 0
        place = float((own / other).log().mid()) if resolved else (left + right) / 2
        return max(float(own.mid()), 0.0), place

    def _between(self, ends: list[float], unit: float) -> list[tuple[float, arb]] | None:
        """The lattice points on either side of where cells merge, with their weights.

        None unless the cells part into those that merge below the one and above the other.
        """
        low, high = min(ends), max(ends)
        own, other = self._masses(low, high)
        if not (own > 0 and own / other > 0):  # both may be known too badly for a ratio
            return None
        left = _floor((own / other).log(), unit)
        right = left + unit
        at_left, at_right = arb(left).exp(), arb(right).exp()
        for cut in ends[1:-1] if len(ends) < _FEW else ends[1:2]:
            first, second = self._masses(low, cut), self._masses(cut, high)
            if first[0] <= first[1] * at_left and second[0] >= second[1] * at_right:
                end = _at_end(own, other, left, right)
                return [(left, own - end), (right, end)]
        return None

    def _cost(
        self, c: float, left: float, right: float, narrowest: float
    ) -> tuple[float, float, float]:
        """What the cell adds, with a minus; infinite where it isn't to be cut."""
        known = self.logs.get(left)
        if known is None or known[0] != right:
            mass = self._masses(left, right)[0].mid()
            known = right, float(mass.log()) if mass > 0 else -math.inf
            self.logs[left] = known
        if known[1] == -math.inf or right - left < narrowest:
            return math.inf, left, right
        return -(known[1] + c * right + 2 * math.log(right - left)), left, right


def _variance(cells: Sequence[tuple[float, float]]) -> float:
    """Of cells with masses and places."""
    total = sum(mass for mass, _ in cells)
    if not total > 0:
        return 0.0
    mean = sum(mass * place for mass, place in cells) / total
    return sum(mass * (place - mean) ** 2 for mass, place in cells) / total


def _at_end(own: arb, other: arb, left: float, right: float) -> arb:
    """The first law's weight at the right end, in [0, own], where both masses are at the ends."""
    share = (own - other * arb(left).exp()) / -arb(left - right).expm1()
    return share.max(arb(0)).min(own.max(arb(0)))


def _floor(place: arb, unit: float) -> float:
    """The largest whole multiple of the unit below, which a double has to hold."""
    whole = (place / unit).lower().floor().unique_fmpz()
    if whole is None or abs(int(whole)) >= _WHOLE:
        raise NumericalError(f"the place {place} is not resolved in units of {unit!r}")
    return float(int(whole) * unit)


def _law(weights: dict[float, arb], unit: float, infinite: arb, *, up: bool) -> Law:
    rounded = {}
    for place, weight in weights.items():
        ends = Enclosure.of_ball(weight)
        size = ends.upper if up else ends.lower
        if size >= _LEAST:
            rounded[place] = size
        elif up:
            infinite += weight.max(arb(0))
    places = sorted(rounded)
    return Law(
        places=np.array([round(place / unit) for place in places], dtype=np.int64),
        weights=np.array([rounded[place] for place in places]),
        infinite=max(Enclosure.of_ball(infinite).upper, 0.0),
    )
