"""Data sets of rows that come and go: tables as lists of dicts, and matrices."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from typing import Any

import numpy as np

from dpverify.auditing.spaces.base import Space
from dpverify.data.adjacency import Choose, shuffled
from dpverify.data.columns import TYPE_ENDS, Column, Number
from dpverify.data.rows import row_key, rows_of, slots
from dpverify.errors import did_you_mean, require
from dpverify.privacy import Pair

__all__ = ["Rows"]

_SIZES = (1, 2, 3, 5, 8, 20)  # of drawn data sets
_SMALL = 3  # rows of the first data sets
_NEAR = (0, 1, -1)  # a number of the code may stand on either side of a comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Space):
    """Data sets of these columns and so many rows.

    Attributes
    ----------
    columns : by name, or of a matrix by number
    rows : the fewest and the most
    matrix : whether a data set is a matrix, of shape (n, columns), or else a list of dicts
    """

    columns: Mapping[Any, Column]
    rows: tuple[int, int]
    matrix: bool = False

    @property
    def described(self) -> str:
        least, most = self.rows
        kinds = [f"{name}: {column.rule}" for name, column in self.columns.items()]
        if self.matrix:
            kinds = list(dict.fromkeys(f"each value {c.rule}" for c in self.columns.values()))
        return f"of {least} to {most} rows ({'; '.join(kinds)})"

    # --- rows -------------------------------------------------------------------------------------

    def _simplest(self) -> Any:
        return self._row({name: column.values[0] for name, column in self.columns.items()})

    def _row(self, values: Mapping[Any, Any]) -> Any:
        return np.array(list(values.values()), dtype=float) if self.matrix else dict(values)

    def _telling(self, column: Column) -> Sequence[Any]:
        """Values that are tried alone: of the code, then those at which code goes wrong."""
        known = [column.read(constant) for constant in self._known(column)]
        return [*known, *column.telling[1:], column.values[0]]

    def _known(self, column: Column) -> Sequence[Any]:
        """Constants of the code that the column holds, and the numbers beside them."""
        near = [
            constant + step if step else constant
            for step in _NEAR
            for constant in self.constants
            if not step or (isinstance(constant, int | float) and not isinstance(constant, bool))
        ]
        return [value for value in near if column.holds(value)]

    def row(self, choose: Choose) -> Any:
        """A row: the simplest, or with some other values, or with any in all columns."""
        values = {name: column.values[0] for name, column in self.columns.items()}
        names, style = list(values), choose(4)
        for name in names if style == 1 else [names[choose(len(names))] for _ in range(style)]:
            column = self.columns[name]
            values[name] = column.value(choose, self._known(column))
        return self._row(values)

    def new_rows(self, choose: Choose) -> Iterator[Any]:
        """Any row; rows with all values at an end; and rows with one telling value."""
        if choose(2):
            yield self.row(choose)
        telling = {name: self._telling(column) for name, column in self.columns.items()}
        count = max(map(len, telling.values()))
        for number in shuffled(count, choose):
            if len(telling) > 1:
                yield self._row({n: values[number % len(values)] for n, values in telling.items()})
            for name, values in telling.items():
                if number < len(values):
                    row = self._simplest()
                    row[name] = values[number]
                    yield row

    def spread(self, number: int) -> Any:
        """The row of this number; values of each column fill its range evenly, at its own pace."""
        row = {}
        for pace, (name, column) in enumerate(self.columns.items(), start=1):
            part = (number + 1) * math.sqrt(pace * pace + 1) % 1  # of an irrational number
            row[name] = column.drawn(partial(_share, part))
        return self._row(row)

    def room(self, rows: Sequence[Any]) -> int:
        """How many rows may be added."""
        return self.rows[1] - len(rows)

    def of_user(self, row: Any, user: str, value: Any) -> Any:
        """The row as one of this user."""
        changed = row.copy()
        changed[user] = value
        return changed

    def another_user(self, rows: Sequence[Any], user: str, choose: Choose) -> Any:
        """A value of the user's column that no row has; None if there is none."""
        hint = did_you_mean(user, map(str, self.columns))
        require(user in self.columns, "user", user, "a column of the table", hint)
        taken = {row_key(row[user]) for row in rows}
        column = self.columns[user]
        values = [*column.values, *(column.drawn(choose) for _ in range(3))]
        return next((value for value in values if row_key(value) not in taken), None)

    def of_rows(self, rows: Sequence[Any]) -> Any:
        """The data set of these rows."""
        if self.matrix:
            return np.array(rows, dtype=float).reshape(len(rows), len(self.columns))
        return [dict(row) for row in rows]

    # --- data sets --------------------------------------------------------------------------------

    def bases(self) -> Iterable[tuple[str, Any]]:
        least, most = self.rows
        columns = self.columns.values()
        ends = [
            self._row({n: c.values[min(place, len(c.values) - 1)] for n, c in self.columns.items()})
            for place in range(min(3, max(len(column.values) for column in columns)))
        ]
        names = ("simple rows", "rows at one end", "rows at the other end")
        sizes = dict.fromkeys([min(max(_SMALL, least), most), least, most])
        for size in sizes:
            for name, end in zip(names, ends, strict=False):
                yield f"{size} {name}", self.of_rows([end] * size)
            if len(ends) > 2 and size > 1:
                mixed = [ends[1], ends[2]] * size
                yield f"{size} rows at both ends", self.of_rows(mixed[:size])
                yield f"{size} telling rows", self.of_rows([*self._few(size)])
        if any(column.missing for column in columns):
            blank = {n: None if c.missing else c.values[0] for n, c in self.columns.items()}
            for size in sizes:
                missing = [self._row(blank)] * size
                yield f"{size} rows of missing values", self.of_rows(missing)
                if size > 1:  # which may be filled by the row before them
                    after = [ends[min(1, len(ends) - 1)], *missing[1:]]
                    yield f"{size} rows, of missing values after the first", self.of_rows(after)
        yield from self._full()
        yield from self._paired()

    def _full(self) -> Iterator[tuple[str, Any]]:
        """Rows whose sum is just below the end of a type of numbers, and one more of the same.

        They have the column's end, or a constant of the code, to which it may clip.
        """
        least, most = self.rows
        for name, column in self.columns.items():
            if not isinstance(column, Number):
                continue
            known = filter(column.holds, self.constants)
            for value in dict.fromkeys([max(column.ends, key=abs), *known]):
                for size in TYPE_ENDS if value else ():
                    quotient = (size - 1) // abs(value)  # infinite for subnormal ones
                    if 1 <= quotient < most:
                        count = int(quotient)
                        rows = [self._simplest() for _ in range(max(least, count + 1))]
                        for row in rows[-count:]:
                            row[name] = column.read(value)
                        yield f"{len(rows)} rows that sum to almost {size}", self.of_rows(rows)

    def _paired(self) -> Iterator[tuple[str, Any]]:
        """Each two values of two columns that are alike: the edges of a graph in which all meet."""
        most = self.rows[1]
        for first, second in combinations(self.columns, 2):
            if self.columns[first] == self.columns[second]:
                rows = []
                values = self.columns[first].values
                size = next((n for n in range(len(values)) if math.comb(n, 2) > most), len(values))
                for one, other in islice(combinations(values[:size], 2), most):
                    row = self._simplest()
                    row[first], row[second] = one, other
                    rows.append(row)
                yield f"{len(rows)} rows of each two values", self.of_rows(rows)
                return

    def _few(self, size: int) -> Iterator[Any]:
        rows = [row for row, _ in zip(self.new_rows(lambda _: 0), range(size), strict=False)]
        return (rows[number % len(rows)] for number in range(size))

    def data(self, choose: Choose) -> Any:
        """Rows of up to three kinds, or all different."""
        least, most = self.rows
        told = [n + step for n in self._whole_constants() for step in _NEAR]
        sizes = [n for n in (least, least + 1, *_SIZES, most, *told) if least <= n <= most]
        size = sizes[choose(len(sizes))]
        if choose(3) == 2:
            return self.of_rows([self.row(choose) for _ in range(size)])
        kinds = [self.row(choose) for _ in range(1 + choose(3))]
        return self.of_rows([kinds[choose(len(kinds))] for _ in range(size)])

    def _whole_constants(self) -> Iterator[int]:
        """Those of the code, and their halves, where rounding to a multiple changes."""
        for constant in self.constants:
            if isinstance(constant, int):
                yield constant
                if constant > 3:
                    yield constant // 2

    def admits(self, data: Any) -> bool:
        rows = list(data)
        inside = self.rows[0] <= len(rows) <= self.rows[1]
        return inside and all(
            column.admits(row[name]) for row in rows for name, column in self.columns.items()
        )

    def key(self, data: Any) -> Hashable:
        return tuple(map(row_key, rows_of(data)))

    def move(self, pair: Pair) -> str:
        more = len(pair.neighbour) - len(pair.record)
        if not more:
            return "other than"
        rows = "one row" if abs(more) == 1 else f"{abs(more)} rows"
        return f"{rows} {'more' if more > 0 else 'less'} than"

    # --- simpler ones -----------------------------------------------------------------------------

    def complexity(self, pair: Pair) -> tuple[float, ...]:
        """Values that change, rows, values that aren't the simplest, and how far they are."""
        sides = (list(pair.record), list(pair.neighbour))
        changed = sum(
            row_key(sides[0][i][name]) != row_key(sides[1][j][name])
            for i, j in slots(*sides)
            if i is not None and j is not None
            for name in self.columns
        )
        sizes = [self._size(row, name) for rows in sides for row in rows for name in self.columns]
        return (changed, sum(map(len, sides)), sum(size > 0 for size in sizes), sum(sizes))

    def _size(self, row: Any, name: Any) -> float:
        column = self.columns[name]
        return len(column.values) + 1.0 if row[name] is None else column.size(row[name])

    def simpler(self, pair: Pair) -> Iterator[Pair]:
        first, second = list(pair.record), list(pair.neighbour)
        pairs = slots(first, second)
        still = [at for at in pairs if self._equal(first, second, at)]
        yield from self._fewer(first, second, still)
        yield from self._fewer(first, second, [at for at in pairs if at not in still])
        simplest = {name: column.values[0] for name, column in self.columns.items()}
        for rows in (pairs, still):
            for names in (list(self.columns), *([name] for name in self.columns)):
                values = [(at, name, simplest[name]) for at in rows for name in names]
                yield self._changed(first, second, values)
        for at in pairs:
            for name in self.columns:
                yield from self._nearer(first, second, at, name)

    def _fewer(
        self, first: Sequence[Any], second: Sequence[Any], rows: Sequence[Any]
    ) -> Iterator[Pair]:
        """Without some of these rows: all of them, then halves, quarters, …."""
        size = len(rows)
        while size:
            for begin in range(0, len(rows), size):
                gone = rows[begin : begin + size]
                left, right = ({at[side] for at in gone} for side in (0, 1))
                yield _pair(
                    self.of_rows([row for i, row in enumerate(first) if i not in left]),
                    self.of_rows([row for j, row in enumerate(second) if j not in right]),
                )
            size //= 2

    def _changed(
        self,
        first: Sequence[Any],
        second: Sequence[Any],
        values: Sequence[tuple[Any, Any, Any]],
        sides: Sequence[int] = (0, 1),
    ) -> Pair:
        """With other values: (rows of both sides, column, value)."""
        both = [[row.copy() for row in rows] for rows in (first, second)]
        for at, name, value in values:
            for side in sides:
                if at[side] is not None:
                    both[side][at[side]][name] = value
        return _pair(self.of_rows(both[0]), self.of_rows(both[1]))

    def _nearer(
        self, first: Sequence[Any], second: Sequence[Any], at: tuple[Any, Any], name: Any
    ) -> Iterator[Pair]:
        """With a simpler value of one column, in both rows or in one of two that differ."""
        equal = self._equal(first, second, at)
        for side, rows in enumerate((first, second)):
            if at[side] is None or rows[at[side]][name] is None:
                continue
            for value in self.columns[name].simpler(rows[at[side]][name]):
                yield self._changed(first, second, [(at, name, value)])
                if not equal:
                    yield self._changed(first, second, [(at, name, value)], [side])

    def _equal(self, first: Sequence[Any], second: Sequence[Any], at: tuple[Any, Any]) -> bool:
        i, j = at
        return i is not None and j is not None and row_key(first[i]) == row_key(second[j])


def _share(part: float, ways: int) -> int:
    return int(ways * part)


def _pair(record: Any, neighbour: Any) -> Pair:
    return Pair(name="found by search", record=record, neighbour=neighbour)
