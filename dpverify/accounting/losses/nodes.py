"""Points at even distances on a vertical line, and sums of exponentials at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from flint import acb, acb_mat, arb

__all__ = ["Nodes"]

_EXPONENTIAL = 16  # takes as long as so many products


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nodes:
    """Points c + iky for some k = column + columns·row ≥ 0, in rising order, as a table.

    A turn e^{ikyx} is a product of two, one for its row and one for its column, so that sums over
    many turns are products of matrices. The turns of a table are made by doubling: repeated
    products, as Horner's rule has them, would widen a ball with every turn.

    Attributes
    ----------
    c, step : c and y
    kept : k of each
    columns : of the table
    rows : those in which there are any
    """

    c: arb
    step: arb
    kept: Sequence[int]
    columns: int
    rows: Sequence[int]

    @classmethod
    def of(cls, c: arb, step: arb, kept: Iterable[int]) -> Nodes:
        """In a table that takes little work."""
        nodes = np.fromiter(kept, dtype=np.int64)
        tables = []
        for power in range(int(nodes[-1]).bit_length() // 2 + 2):
            places = nodes >> power
            rows = places[np.append(True, places[1:] != places[:-1])]
            work = _EXPONENTIAL * (len(rows) + (1 << power)) + (len(rows) << power)
            tables.append((work, 1 << power, rows.tolist()))
        _, columns, rows = min(tables)
        return cls(c=c, step=step, kept=nodes.tolist(), columns=columns, rows=rows)

    @property
    def points(self) -> list[acb]:
        """All of them."""
        return [acb(self.c, self.step * k) for k in self.kept]

    def sums(self, weights: Sequence[acb], places: Sequence[acb]) -> list[acb]:
        """Σ w·e^{ikyx} over places x, at each."""
        near, far = self._turns(places)
        far = [[w * turn for w, turn in zip(weights, row, strict=True)] for row in far]
        values = _matrix(far) * _matrix(near).transpose()
        entries = values.entries()
        return [entries[place] for place in self._places()]

    def table(self, values: Iterable[acb]) -> acb_mat:
        """One value at each, and zeros elsewhere."""
        entries = [acb(0)] * (len(self.rows) * self.columns)
        for place, value in zip(self._places(), values, strict=True):
            entries[place] = value
        return acb_mat(len(self.rows), self.columns, entries)

    def total(self, table: acb_mat, x: arb) -> acb:
        """Σ value·e^{ikyx} over all of them, of values in a table."""
        near, far = self._turns([acb(x)])
        return (_matrix(far).transpose() * (table * _matrix(near)))[0, 0]

    def _places(self) -> list[int]:
        """In the table's entries."""
        nodes = np.array(self.kept)
        rows = np.searchsorted(np.array(self.rows), nodes // self.columns)
        found: list[int] = (rows * self.columns + nodes % self.columns).tolist()
        return found

    def _turns(self, places: Sequence[acb]) -> tuple[list[list[acb]], list[list[acb]]]:
        """E^{ikyx} at each x, for all k in a row, and for the first one of each row."""
        near, stride = _doubled(self.step, places, self.columns), self.step * self.columns
        if len(self.rows) > self.rows[-1] // 2:
            far = _doubled(stride, places, self.rows[-1] + 1)
            return near, [far[row] for row in self.rows]
        return near, [_row(stride * row, places) for row in self.rows]


def _row(y: arb, places: Sequence[acb]) -> list[acb]:
    return [(acb(0, y) * x).exp() for x in places]


def _doubled(step: arb, places: Sequence[acb], count: int) -> list[list[acb]]:
    """E^{ikyx} at each x, for the first k, by products of no more than log₂(count) factors."""
    rows = [[acb(1)] * len(places)]
    while len(rows) < count:
        jump = _row(step * len(rows), places)
        rows += [
            [turn * by for turn, by in zip(row, jump, strict=True)]
            for row in rows[: count - len(rows)]
        ]
    return rows


def _matrix(rows: Sequence[Sequence[acb]]) -> acb_mat:
    return acb_mat(len(rows), len(rows[0]), [value for row in rows for value in row])
