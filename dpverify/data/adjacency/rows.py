"""Neighbours by rows that come, go, are replaced or change places, in data sets of any length.

A data set is a list of rows (dicts, numbers, anything), a matrix or vector of numpy's with a row
each, or a data frame of pandas, polars or pyarrow. Its rows have an order, and what stays keeps it:
a function that sums doubles sees the order too. `Permutation` is the relation that moves it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import count, cycle, islice, repeat
from typing import Any, ClassVar, Protocol

from attrs import field, frozen

from dpverify.data.adjacency.base import Choose, Of, shuffled
from dpverify.data.rows import edits, row_key, rows_of
from dpverify.errors import ParameterError
from dpverify.numbers import to_count
from dpverify.visible import shown

__all__ = ["AddRemove", "Permutation", "Replace"]


class _DataSets(Protocol):
    """What a space of rows offers to whoever makes neighbours in it."""

    def new_rows(self, choose: Choose) -> Iterator[Any]:
        """Rows that may be added or replace another."""

    def spread(self, number: int) -> Any:
        """One of endlessly many rows, whose values are spread evenly."""

    def room(self, rows: Sequence[Any]) -> int:
        """How many rows may be added."""

    def of_user(self, row: Any, user: str, value: Any) -> Any:
        """The row as one of this user."""

    def another_user(self, rows: Sequence[Any], user: str, choose: Choose) -> Any:
        """A value of the user's column that no row has; None if there is none."""

    def of_rows(self, rows: Sequence[Any]) -> Any:
        """The data set of these rows."""


@frozen
class AddRemove:
    """One row more or less; or `k` of them, or all rows of a user.

    Attributes
    ----------
    k : rows (users) that are added or removed, at most
    user : the column that says whose a row is; None where each row is somebody's own

    Examples
    --------
    >>> AddRemove().relates([{"age": 41}], [])
    True
    >>> AddRemove(user="name").relates([{"name": "Ann"}, {"name": "Ann"}], [])
    True
    """

    of: ClassVar[Of | None] = "dataset"

    k: int = field(default=1, converter=to_count)
    user: str | None = None

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"{_whose(self.k, self.user)}, added or removed"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether the one is the other but for so many rows (users) that one of them lacks."""
        first, second = rows_of(records), rows_of(neighbour)
        if self.user is None:
            keys = [list(map(row_key, rows)) for rows in (first, second)]
            return edits(*keys, most=self.k) is not None
        more, less = _differing(first, second, self.user)
        if more & less or len(more | less) > self.k:
            return False
        return _without(first, more, self.user) == _without(second, less, self.user)

    def candidates(self, data: Any, space: _DataSets, choose: Choose) -> Iterator[Any]:
        """Neighbours with more rows and with less, in turn; some may lie outside the space."""
        rows = list(data)
        ways = [self._more(rows, space, choose), self._less(rows, choose)]
        for other in _in_turn(*(ways[::-1] if choose(3) == 2 else ways)):
            yield space.of_rows(other)

    def _more(self, rows: list[Any], space: _DataSets, choose: Choose) -> Iterator[list[Any]]:
        if self.user is None:
            for new in space.new_rows(choose):
                place = len(rows) - choose(len(rows) + 1)
                yield [*rows[:place], *[new] * self.k, *rows[place:]]
            return
        for several in _of_one_user(space, choose):
            place = len(rows) - choose(len(rows) + 1)
            each = _many(max(space.room(rows) // self.k, 1), choose)
            added: list[Any] = []
            for _ in range(self.k):
                other = space.another_user([*rows, *added], self.user, choose)
                if other is None:
                    return
                added += [space.of_user(row, self.user, other) for row in islice(several, each)]
            yield [*rows[:place], *added, *rows[place:]]

    def _less(self, rows: list[Any], choose: Choose) -> Iterator[list[Any]]:
        if self.user is None:
            for place in shuffled(len(rows), choose):
                yield rows[:place] + rows[place + self.k :]
            return
        users = list(dict.fromkeys(row_key(_user(row, self.user)) for row in rows))
        for place in shuffled(len(users), choose):
            gone = users[place : place + self.k]
            yield [row for row in rows if row_key(_user(row, self.user)) not in gone]


@frozen
class Replace:
    """One row is replaced by any other; or `k` of them, or all rows of a user.

    Attributes
    ----------
    k : rows (users) that are replaced, at most
    user : the column that says whose a row is: a user's rows are replaced by any number of rows
        of one user, so that the number of users stays; None where each row is somebody's own

    Examples
    --------
    >>> Replace().relates([{"age": 41}, {"age": 7}], [{"age": 42}, {"age": 7}])
    True
    >>> Replace().relates([{"age": 41}], [])
    False
    """

    of: ClassVar[Of | None] = "dataset"

    k: int = field(default=1, converter=to_count)
    user: str | None = None

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return f"{_whose(self.k, self.user)}, replaced by any other"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether the one is the other but for so many rows (users)."""
        first, second = rows_of(records), rows_of(neighbour)
        if self.user is None:
            pairs = zip(map(row_key, first), map(row_key, second), strict=False)
            return len(first) == len(second) and sum(a != b for a, b in pairs) <= self.k
        users = [{row_key(_user(row, self.user)) for row in rows} for rows in (first, second)]
        own, other = _differing(first, second, self.user)
        if len(users[0]) != len(users[1]) or max(len(own), len(other)) > self.k:
            return False
        moved = own | other
        return _without(first, moved, self.user) == _without(second, moved, self.user)

    def candidates(self, data: Any, space: _DataSets, choose: Choose) -> Iterator[Any]:
        """Neighbours with other rows in places that are chosen; some may lie outside the space."""
        rows = list(data)
        users = {} if self.user is None else {row_key(_user(r, self.user)): r for r in rows}
        if self.user is None:
            for place in shuffled(len(rows), choose):
                for new in space.new_rows(choose):
                    changed = [new] * len(rows[place : place + self.k])
                    yield space.of_rows([*rows[:place], *changed, *rows[place + self.k :]])
            return
        for place in shuffled(len(users), choose):
            gone = list(users.items())[place : place + self.k]
            for several in _of_one_user(space, choose):
                yield space.of_rows(self._replaced(rows, gone, several, space, choose))

    def _replaced(
        self,
        rows: list[Any],
        gone: Sequence[tuple[Hashable, Any]],
        several: Iterator[Any],
        space: _DataSets,
        choose: Choose,
    ) -> list[Any]:
        """Rows of users replaced by other rows of theirs, more of them or less."""
        user = str(self.user)
        keys = {key for key, _ in gone}
        rest = [row for row in rows if row_key(_user(row, user)) not in keys]
        each = _many(max((len(rows) - len(rest) + space.room(rows)) // len(gone), 1), choose)
        theirs = [
            space.of_user(new, user, _user(row, user))
            for _, row in gone
            for new in islice(several, each)
        ]
        return theirs + rest


@frozen
class Permutation:
    """The same rows in another order: equal data sets, for whoever takes them for sets.

    A sum of doubles depends on the order, and so may whatever reads the first rows.
    """

    of: ClassVar[Of | None] = "dataset"

    @property
    def unit(self) -> str:
        """The unit of privacy in words."""
        return "the order of the rows"

    def relates(self, records: Any, neighbour: Any) -> bool:
        """Whether both hold the same rows."""
        first, second = (Counter(map(row_key, rows_of(x))) for x in (records, neighbour))
        return first == second

    def candidates(self, data: Any, space: _DataSets, choose: Choose) -> Iterator[Any]:
        """The rows backwards, turned by one, and with two of them in each other's place."""
        rows = list(data)
        turn = choose(max(len(rows), 1)) + 1
        orders = [rows[::-1], rows[turn:] + rows[:turn]]
        yield from (space.of_rows(orders[way]) for way in shuffled(2, choose))
        for place in shuffled(max(len(rows) - 1, 0), choose):
            first, second = rows[place : place + 2]
            yield space.of_rows([*rows[:place], second, first, *rows[place + 2 :]])


def _of_one_user(space: _DataSets, choose: Choose) -> Iterator[Iterator[Any]]:
    """Rows that a user may have, without end: always the same one, one after the other, or any."""
    rows = list(space.new_rows(choose))
    for place, row in enumerate(rows):
        yield repeat(row)
        yield map(space.spread, count(place))
        yield cycle(rows[place:] + rows[:place])


def _differing(
    first: Sequence[Any], second: Sequence[Any], user: str
) -> tuple[set[Hashable], set[Hashable]]:
    """Users who have rows in the first alone, and in the second alone."""
    owners = {row_key(row): row_key(_user(row, user)) for row in (*first, *second)}
    rows = [Counter(map(row_key, part)) for part in (first, second)]
    return ({owners[key] for key in rows[0] - rows[1]}, {owners[key] for key in rows[1] - rows[0]})


def _without(rows: Sequence[Any], users: set[Hashable], user: str) -> list[Hashable]:
    return [row_key(row) for row in rows if row_key(_user(row, user)) not in users]


def _user(row: Any, user: str) -> Any:
    try:
        return row[user]
    except (KeyError, IndexError, TypeError):
        rule = f"a column of every row, as it is to say whose it is; a row is {shown(row)}"
        raise ParameterError("user", user, rule) from None


def _many(most: int, choose: Choose) -> int:
    """How many rows of one user: as many as there may be, or few."""
    return (most, 1, 2, most)[choose(4)] if most > 1 else 1


def _in_turn(*streams: Iterator[Any]) -> Iterator[Any]:
    """One of each, as long as there are any."""
    left = list(streams)
    while left:
        for stream in list(left):
            try:
                yield next(stream)
            except StopIteration:
                left.remove(stream)


def _whose(k: int, user: str | None) -> str:
    if user is None:
        return "one row" if k == 1 else f"at most {k} rows"
    return f"all rows of {'one user' if k == 1 else f'at most {k} users'} (column {shown(user)})"
