"""Rows of data sets of many forms: read, copied, told apart, and found again in a neighbour."""

from __future__ import annotations

import copy
import io
import math
import pickle
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import partial
from typing import Any

import numpy as np

from dpverify.data.domain import dense, is_sparse
from dpverify.errors import ParameterError, require
from dpverify.visible import raised, shown

__all__ = ["copied", "copies", "edits", "is_labelled", "pickled", "row_key", "rows_of", "slots"]


def rows_of(data: Any) -> list[Any]:
    """The rows of a data set, in order; of a data frame as dicts.

    Of pandas the index is part of a row, unless it is nothing but whole numbers without a name.

    A tuple of a matrix and a vector of as many labels, which a model learns from, has rows of both.

    Raises
    ------
    ParameterError
        If it has none that can be told.
    """
    if is_labelled(data):
        return list(zip(*map(rows_of, data), strict=True))
    if hasattr(data, "to_pylist"):  # pyarrow
        _require_different(getattr(data, "column_names", ()))
        return list(data.to_pylist())
    if hasattr(data, "to_dicts"):  # polars
        return list(data.to_dicts())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        return _of_pandas(data)
    if is_sparse(data):
        data = dense(data)
    listed = isinstance(data, Sequence) and not isinstance(data, str | bytes)
    array = isinstance(data, np.ndarray) and data.ndim >= 1
    rule = "a list of rows, a matrix or vector, or a data frame"
    way_out = "Give a Series as its to_frame() or to_numpy()." if hasattr(data, "to_frame") else ""
    require(listed or array, "data set", type(data).__name__, rule, way_out)
    return list(data)


def _of_pandas(frame: Any) -> list[Any]:
    index = frame.index
    numbered = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    if len(frame) and not numbered:
        frame = frame.reset_index(allow_duplicates=True)
    _require_different(frame.columns)
    return list(frame.to_dict("records"))


def _require_different(names: Iterable[Hashable]) -> None:
    """Refuse columns of one name, of which a row as a dict has one."""
    for name, times in Counter(names).most_common(1):
        seen = f"a frame with {times} columns {shown(name)}"
        require(times == 1, "data set", seen, "one whose columns have different names")


def is_labelled(data: Any) -> bool:
    """Whether it is (X, y): two arrays, or frames, of one length, the first of them a matrix."""
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    shapes: list[tuple[int, ...]] = [getattr(part, "shape", ()) for part in data]
    return len(shapes[0]) == 2 and len(shapes[1]) in (1, 2) and shapes[0][0] == shapes[1][0]


def row_key(value: Any) -> Hashable:
    """A row, or a value, by which equal ones are found: numbers by value, and −0 beside 0.

    Nothing that differs has the same key. What can't be told apart by value is by its pickle.

    Raises
    ------
    ParameterError
        If it can't be pickled, or holds itself.
    """
    try:
        return _key(value)
    except RecursionError:
        rule = "of values that can be told apart, and none that holds itself"
        raise ParameterError("row", shown(value), rule) from None


_TAGS = {str: "str", int: "number", bool: "number", float: "number"}
_ATOMS = frozenset((str, bytes, int, bool, float, type(None), date, datetime))
"""Types of values that nothing changes."""


def _key(value: Any) -> Hashable:
    kind = type(value)  # a search asks for the keys of ten thousand rows, mostly of these types
    tag = _TAGS.get(kind) if kind is not float or value < 0 or value > 0 else None
    if tag:
        return (tag, value)
    if kind is dict:
        return _row_key(value)
    match value:
        case np.ndarray() if value.dtype.kind in "biuf":
            # Zeros of both signs are equal numbers with other bytes, as are numbers of other types.
            return tuple(map(_key, value.tolist())) if value.ndim else _key(value.item())
        case np.generic() if value.dtype.kind not in "mM":  # whose items are of several types
            return _key(value.item())
        case float() if math.isnan(value) or (value == 0 and math.copysign(1, value) < 0):
            return ("float", str(value))
        case bool() | int() | float():
            return ("number", value)
        case None | str() | bytes():
            return (type(value).__name__, value)
        case list() | tuple():
            return tuple(map(_key, value))
        case dict() | Mapping():
            return frozenset((_key(name), _key(each)) for name, each in value.items())
    try:
        return (type(value).__qualname__, pickled(value))
    except Exception as error:  # whatever an object says to it
        rule = f"of values that can be told apart: {raised(error)}"
        raise ParameterError("row", shown(value), rule) from None


def pickled(value: Any, pickler: type[pickle.Pickler] = pickle.Pickler) -> bytes:
    """The same for equal values, whichever of their parts are one object; unless one holds itself.

    Raises
    ------
    Exception
        Whatever an object says to being pickled.
    """
    for fast in (True, False):  # which is without a memo of what was seen
        made = io.BytesIO()
        writer = pickler(made)
        writer.fast = fast
        try:
            writer.dump(value)
        except Exception:
            if not fast:
                raise
        else:
            break
    return made.getvalue()


def _row_key(row: dict[Any, Any]) -> Hashable:
    parts = []
    for name, each in row.items():  # most of them without a call
        kind = type(each)
        tag = _TAGS.get(kind) if kind is not float or each < 0 or each > 0 else None
        named = ("str", name) if type(name) is str else _key(name)
        parts.append((named, (tag, each) if tag else _key(each)))
    return frozenset(parts)


def copied(data: Any) -> Any:
    """A copy: who changes its argument must not change the next one's."""
    return copies(data)()


def copies(data: Any) -> Callable[[], Any]:
    """Make a copy at each call; how, is settled once."""
    if type(data) is np.ndarray and not data.dtype.hasobject:
        return data.copy if data.flags.c_contiguous else partial(data.copy, "K")
    if type(data) is list and all(type(row) is dict and _atomic(row) for row in data):
        return lambda: [row.copy() for row in data]
    return partial(copy.deepcopy, data)


def _atomic(row: dict[Any, Any]) -> bool:
    return _ATOMS.issuperset(map(type, row)) and _ATOMS.issuperset(map(type, row.values()))


def edits(first: Sequence[Hashable], second: Sequence[Hashable], *, most: int) -> int | None:
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


def slots(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int | None, int | None]]:
    """Which row of the one is which of the other, by number; None where one has no such row.

    Equal rows go together, in order if they can; then the others, as far as they go.
    """
    keys = [list(map(row_key, rows)) for rows in (first, second)]
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    blocks = matcher.get_matching_blocks()
    same = [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]
    taken = [{at[side] for at in same} for side in (0, 1)]
    left, right = ([i for i in range(len(keys[s])) if i not in taken[s]] for s in (0, 1))
    moved = []
    for i in list(left):
        j = next((j for j in right if keys[0][i] == keys[1][j]), None)
        if j is not None:
            moved.append((i, j))
            left.remove(i)
            right.remove(j)
    changed: list[tuple[int | None, int | None]] = list(zip(left, right, strict=False))
    alone = [(i, None) for i in left[len(right) :]] + [(None, j) for j in right[len(left) :]]
    return [*same, *moved, *changed, *alone]
