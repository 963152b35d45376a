"""Two lattice laws for a loss of very many atoms, whose weights are known in doubles.

As in `_cells`: one pair of laws dominates another one if its R = e^L is larger in convex order, or
if a mass of p is moved up. The first of two lattice laws dominates the loss, which dominates the
second. What all weights may err by, as a factor, is in the lattice laws' weights.

**Above.** An atom of mass w at jh ≤ x < (j + 1)h is put at both ends, so that p and q stay:
w·(1 − e^{jh − x})/(1 − e^{−h}) at the upper one. More there is more above.

**Below.** The atoms of each half of a window merge, at m₁ and m₂, and all of them would at m. With
a mass w from o on, and D = w − q·e^o,

    m = o − ln(1 − D/w),

which rises with D. If m₁ ≤ jh ≤ m < (j + 1)h ≤ m₂, both ends of m's cell get the window's p and q:
that spreads R less than the halves do. Less at the upper end is below. Cells alone are moved down
to their left end. Windows of 2ⁿ cells are halved again and again; whether one merges, or its halves
do what is best for them, is decided by which has the larger tilted moment, and proves nothing.

**Round-off**, u = 2⁻⁵³. Places may be off by s, and are moved by that first, and the m of windows
no wider than 1 by s again, as 32u(1 + |m|) ≤ s is more than these err by. Numbers that are added up
aren't negative, so that a sum of k of them errs by less than ku, relative; D is made less by that,
which moves both halves down, and with them what they spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.composition._cells import Law
from dpverify.accounting.losses.base import Doubles
from dpverify.accounting.losses.shuffled import Atoms, ShuffledLoss

__all__ = ["ManyAtoms"]

_WIDEST = 1.0  # window, of which doubles know the place
_ROUGH = 2.0**-10  # unit for planning, of the largest loss
_LARGEST = 700.0  # exponent
_U, _SLACK = 2.0**-53, 2.0**-48


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManyAtoms:
    """Atoms of one loss; with the interface of `_cells.Cells`."""

    atoms: Atoms
    rough: tuple[Law, float]  # for planning, and its unit

    @classmethod
    def of(cls, loss: ShuffledLoss, log_tail: float) -> ManyAtoms:
        """All but for a mass of at most e^log_tail."""
        atoms = loss.atoms_in_doubles(log_tail)
        unit = 2.0 ** math.floor(math.log2(float(atoms.places.max()) * _ROUGH))
        return cls(atoms=atoms, rough=(_above(atoms, unit), unit))

    @property
    def reach(self) -> float:
        """The largest loss."""
        return float(self.atoms.places.max())

    def refine(self, c: float, most: int, unit: float) -> None:
        """Atoms are as fine as can be."""

    def above(self, unit: float) -> Law:
        """The law that dominates."""
        return _above(self.atoms, unit)

    def below(self, unit: float, c: float = 1.0) -> Law:
        """The law that is dominated, which is close where it is tilted by c."""
        return _below(self.atoms, unit, c)

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln of the moments, for planning."""
        law, unit = self.rough
        return law.log_moment(c, unit)

    def mean_and_variance(self) -> tuple[float, float]:
        """In doubles."""
        mean = float(np.average(self.atoms.places, weights=self.atoms.weights))
        spread = (self.atoms.places - mean) ** 2
        return mean, float(np.average(spread, weights=self.atoms.weights))


def _above(atoms: Atoms, unit: float) -> Law:
    places = atoms.places + atoms.shift
    cells = np.floor(places / unit)
    share = np.expm1(cells * unit - places) / math.expm1(-unit)
    share = np.minimum(share * (1 + _SLACK), 1.0)
    lower, upper = _sums(cells, atoms.weights * (1 - share), atoms.weights * share)
    where = np.unique(np.concatenate([cells, cells + 1]))
    masses = np.zeros(len(where))
    firsts = np.unique(cells)
    masses[np.searchsorted(where, firsts)] += lower
    masses[np.searchsorted(where, firsts + 1)] += upper
    return _law(where, masses * (1 + atoms.relative + _round_off(atoms)), atoms.outside)


def _below(atoms: Atoms, unit: float, c: float) -> Law:
    """From cells up, each level of windows by the ones that are half as wide."""
    places, off = atoms.places - atoms.shift, _round_off(atoms)
    windows = np.floor(places / unit)
    drops = atoms.weights * -np.expm1(windows * unit - places) * (1 - off)
    mass, drop = _sums(windows, atoms.weights, drops)
    windows = np.unique(windows)
    scale = float(np.max(np.log(mass) + c * unit * windows))
    levels = [_Level.of(windows, mass, np.zeros_like(mass), c * unit, scale)]
    while len(windows) > 1 and 2 ** len(levels) * unit <= _WIDEST:
        half = unit * 2.0 ** (len(levels) - 1)
        children, windows = windows, np.unique(np.floor(windows / 2))
        parent, upper = np.searchsorted(windows, np.floor(children / 2)), children % 2 == 1
        halves = np.zeros((2, 2, len(windows)))
        for side, part in enumerate((~upper, upper)):
            halves[side][:, parent[part]] = mass[part], drop[part]
        (w, d), (more, fallen) = halves
        with np.errstate(invalid="ignore"):
            first, last = (-np.log1p(-fall / all_) for all_, fall in ((w, d), (more, fallen)))
        fallen = fallen * math.exp(-half) - more * math.expm1(-half)
        mass, drop = w + more, d + fallen
        start = windows * (2 * half)
        middle = start - np.log1p(-drop / mass) - atoms.shift
        cells = np.floor(middle / unit)
        inside = (start + first + atoms.shift <= cells * unit) & (
            cells * unit + unit <= start + half + last - atoms.shift
        )
        share = np.expm1(cells * unit - middle) / math.expm1(-unit) * (1 - _SLACK)
        level = _Level.of(cells, mass, mass * share, c * unit, scale)
        apart: Doubles = np.bincount(parent, levels[-1].moments).astype(np.float64)
        level.take(inside & (level.moments > apart), apart, parent)
        levels.append(level)
    covered, found = np.zeros(len(windows), dtype=np.bool_), []
    for level in reversed(levels):
        here = level.merged & ~covered
        found += [
            (level.cells[here], level.lower[here]),
            (level.cells[here] + 1, level.upper[here]),
        ]
        if level.parent is not None:
            covered = (covered | level.merged)[level.parent]
    where, masses = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(where)
    (masses,) = _sums(where[order], masses[order])
    return _law(np.unique(where), masses * (1 - atoms.relative - off), 0.0)


@dataclass(slots=True, kw_only=True, eq=False)
class _Level:
    """Windows of one width, each merged or left to its halves.

    Attributes
    ----------
    cells, lower, upper : where a window's mass is put, and the weights at its ends
    moments : of the better one, tilted
    merged : whether that is the window
    parent : the window that each of those half as wide is in
    """

    cells: Doubles
    lower: Doubles
    upper: Doubles
    moments: Doubles
    merged: NDArray[np.bool_]
    parent: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, cells: Doubles, mass: Doubles, upper: Doubles, tilt: float, scale: float) -> Self:
        """All merged."""
        lower = mass - upper
        logs = tilt * cells - scale
        moments = lower * np.exp(np.minimum(logs, _LARGEST))
        moments += upper * np.exp(np.minimum(logs + tilt, _LARGEST))
        return cls(
            cells=cells,
            lower=lower,
            upper=upper,
            moments=moments,
            merged=np.ones(len(cells), dtype=np.bool_),
        )

    def take(self, merged: NDArray[np.bool_], apart: Doubles, parent: NDArray[np.int64]) -> None:
        """Where halves are better, their moments."""
        self.moments = np.where(merged, self.moments, apart)
        self.merged, self.parent = merged, parent


def _round_off(atoms: Atoms) -> float:
    """More than sums err by."""
    return 8 * _U * (len(atoms.places) + 128)


def _sums(groups: Doubles, *columns: Doubles) -> list[Doubles]:
    """Of each column, over equal numbers in a row."""
    firsts = np.flatnonzero(np.diff(groups, prepend=-np.inf))
    return [np.add.reduceat(column, firsts) for column in columns]


def _law(where: Doubles, masses: Doubles, outside: float) -> Law:
    known = masses > 0
    return Law(places=where[known].astype(np.int64), weights=masses[known], infinite=outside)
