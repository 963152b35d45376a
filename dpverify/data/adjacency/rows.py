"""Neighbours by rows that come, go, are replaced or change places, in data sets of any length.

A data set is a list of rows (dicts, numbers, anything), a matrix or vector of numpy's with a row
each, or a data frame of pandas, polars or pyarrow. Its rows have an order, and what stays keeps it:
a function that sums doubles sees the order too. `Permutation` is the relation that moves it.
"""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from dpverify.data.adjacency.base import Of
from dpverify.data.domain import dense, is_sparse
from dpverify.errors import ParameterError, require
from dpverify.numbers import to_count

__all__ = ["AddRemove", "Permutation", "Replace", "row_key", "rows_of"]


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
            return _edits(*keys, most=self.k) is not None
        more, less = _differing(first, second, self.user)
        if more & less or len(more | less) > self.k:
            return False
        return _without(first, more, self.user) == _without(second, less, self.user)


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


def rows_of(data: Any) -> list[Any]:
    """The rows of a data set, in order; of a data frame as dicts.

    Raises
    ------
    ParameterError
        If it has none that can be told.
    """
    if hasattr(data, "to_pylist"):  # pyarrow
        return list(data.to_pylist())
    if hasattr(data, "to_dicts"):  # polars
        return list(data.to_dicts())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        return list(data.to_dict("records"))
    if is_sparse(data):
        data = dense(data)
    listed = isinstance(data, Sequence) and not isinstance(data, str | bytes)
    array = isinstance(data, np.ndarray) and data.ndim >= 1
    rule = "a list of rows, a matrix or vector, or a data frame"
    require(listed or array, "data set", type(data).__name__, rule)
    return list(data)


def row_key(value: Any) -> Hashable:
    """A row, or a value, by which equal ones are found: numbers by value, and −0 beside 0.

    Nothing that differs has the same key. What can't be told apart by value is by its pickle.
    """
    match value:
        case np.ndarray() if value.dtype.kind in "biuf":
            # Zeros of both signs are equal numbers with other bytes, as are numbers of other types.
            return tuple(map(row_key, value.tolist())) if value.ndim else row_key(value.item())
        case np.generic():
            return row_key(value.item())
        case float() if math.isnan(value) or (value == 0 and math.copysign(1, value) < 0):
            return ("float", str(value))
        case bool() | int() | float():
            return ("number", value)
        case None | str() | bytes():
            return (type(value).__name__, value)
        case Mapping():
            return frozenset((row_key(name), row_key(each)) for name, each in value.items())
        case list() | tuple():
            return tuple(map(row_key, value))
    try:
        return (type(value).__qualname__, pickle.dumps(value))
    except Exception as error:  # whatever an object says to it
        raise ParameterError("row", value, f"of values that can be told apart: {error!r}") from None


def _edits(first: Sequence[Hashable], second: Sequence[Hashable], *, most: int) -> int | None:
    """Rows to be removed and added to make one of the other; None if more than `most`.

    The greedy algorithm of Myers 1986: of each diagonal the farthest place that is reached.
    """
    reached = {1: 0}
    for edits in range(most + 1):
        for diagonal in range(-edits, edits + 1, 2):
            below = reached.get(diagonal - 1, -1)
            above = reached.get(diagonal + 1, -1)
            place = (
                above if diagonal == -edits or (diagonal != edits and below < above) else below + 1
            )
            other = place - diagonal
            while place < len(first) and other < len(second) and first[place] == second[other]:
                place, other = place + 1, other + 1
            reached[diagonal] = place
            if place >= len(first) and other >= len(second):
                return edits
    return None


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
        rule = f"a column of every row, as it is to say whose it is; a row is {row!r}"
        raise ParameterError("user", user, rule) from None


def _whose(k: int, user: str | None) -> str:
    if user is None:
        return "one row" if k == 1 else f"at most {k} rows"
    return f"all rows of {'one user' if k == 1 else f'at most {k} users'} (column {user!r})"
