"""A pair of neighbours as a person reads it: both data sets, and which row and column moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.data.rows import is_labelled, row_key, rows_of, slots
from dpverify.privacy import Pair
from dpverify.visible import escaped, shown, worded

__all__ = ["pair_lines"]

_WHOLE = 12  # values of a matrix that are shown as they stand
_LISTED = 24  # values or kinds of rows that are listed otherwise


def pair_lines(pair: Pair) -> list[str]:
    """Both data sets as lines of text, and what moves between them."""
    data = (pair.record, pair.neighbour)
    try:
        sides = [_as_rows(side) for side in data]
        if all(map(_is_rows, sides)):
            told, moved = list(map(_rows, sides)), _moved_rows(*sides)
        else:
            matrices = [_dense(side) for side in sides]
            told, moved = list(map(_matrix, matrices)), _moved_values(*matrices)
    except Exception:  # values that can't be compared, told apart or shown
        told, moved = [escaped(shown(side)) for side in data], []
    return [
        f"    pair {pair.name!r}:",
        f"      record    {told[0]}",
        f"      neighbour {told[1]}",
        *(f"      {line}" for line in moved),
    ]


# --- rows -----------------------------------------------------------------------------------------


def _as_rows(data: Any) -> Any:
    """Of a tuple (X, y) rows of both, and anything else as it is."""
    if not is_labelled(data):
        return data
    return [{"X": np.asarray(x).tolist(), "y": np.asarray(y).tolist()} for x, y in rows_of(data)]


def _is_rows(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(row, Mapping) for row in data)


def _row(row: Mapping[Any, Any]) -> str:
    return (
        "{" + ", ".join(f'"{escaped(worded(n))}": {shown(value)}' for n, value in row.items()) + "}"
    )


def _rows(rows: Sequence[Mapping[Any, Any]]) -> str:
    """How many rows, and which, with those that are equal counted."""
    kinds: dict[Any, list[Mapping[Any, Any]]] = {}
    for row in rows:
        kinds.setdefault(row_key(row), []).append(row)
    told = [
        (f"{len(alike)} times " if len(alike) > 1 else "") + _row(alike[0])
        for alike in kinds.values()
    ]
    more = f"; and {len(told) - _LISTED} others" if len(told) > _LISTED else ""
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return f"{count}: {'; '.join(told[:_LISTED])}{more}" if told else "no rows"


def _moved_rows(first: Sequence[Any], second: Sequence[Any]) -> list[str]:
    lines = []
    order = []
    for i, j in slots(first, second):
        if i is None and j is not None:
            lines.append(f"one row more: {_row(second[j])}")
        elif j is None and i is not None:
            lines.append(f"one row less: {_row(first[i])}")
        elif i is not None and j is not None:
            order.append((i, j))
            moved = _changes(first[i], second[j])
            if moved:
                lines.append(f"row {i}: {moved}")
    places = [i for i, _ in sorted(order, key=lambda at: at[1])]
    if places != sorted(places):
        lines.append(f"the rows in another order: {', '.join(map(str, places))}")
    return _counted(lines)


def _changes(row: Mapping[Any, Any], other: Mapping[Any, Any]) -> str:
    names = list(dict.fromkeys([*row, *other]))
    return ", ".join(
        f"{escaped(worded(name))} {shown(row.get(name))} -> {shown(other.get(name))}"
        for name in names
        if row_key(row.get(name)) != row_key(other.get(name))
    )


def _counted(lines: Sequence[str]) -> list[str]:
    """Equal lines once."""
    counts = {line: lines.count(line) for line in lines}
    return [line + (f" ({count} times)" if count > 1 else "") for line, count in counts.items()]


# --- matrices -------------------------------------------------------------------------------------


def _matrix(values: NDArray[Any]) -> str:
    """All values, or of many the most frequent one and the others."""
    if values.size <= _WHOLE:
        with np.printoptions(floatmode="unique"):
            return " ".join(str(values).split())
    kinds, counts = np.unique(values, return_counts=True)
    most = kinds[np.argmax(counts)]
    others = [_place(values, at) + f" {values[tuple(at)]}" for at in np.argwhere(values != most)]
    listed = f", but for {'; '.join(others[:_LISTED])}" if others else ""
    more = f"; and {len(others) - _LISTED} others" if len(others) > _LISTED else ""
    return f"of shape {values.shape}: {most} in all places{listed}{more}"


def _moved_values(first: NDArray[Any], second: NDArray[Any]) -> list[str]:
    if first.shape != second.shape:
        if first.ndim != second.ndim or first.shape[1:] != second.shape[1:]:
            return [f"of shapes {first.shape} and {second.shape}"]
        return _counted(_moved_vectors(first, second))
    if first.size <= _WHOLE:
        return []
    places = [
        f"{_place(first, at)} {first[tuple(at)]} -> {second[tuple(at)]}"
        for at in np.argwhere(first != second)
    ]
    more = f"; and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return [f"{'; '.join(places[:_LISTED])}{more}"]


def _moved_vectors(first: NDArray[Any], second: NDArray[Any]) -> list[str]:
    lines = []
    for i, j in slots(list(first), list(second)):
        old, new = (None if at is None else x[at] for x, at in ((first, i), (second, j)))
        if old is None or new is None:
            sign, row = ("more", new) if old is None else ("less", old)
            lines.append(f"one row {sign}: {_matrix(np.asarray(row))}")
        elif row_key(old) != row_key(new):
            lines.append(f"row {i}: {_matrix(np.asarray(old))} -> {_matrix(np.asarray(new))}")
    return lines


def _place(values: NDArray[Any], at: Any) -> str:
    match at.tolist():
        case [column]:
            return f"place {column}:"
        case [_, column] if len(values) == 1:
            return f"column {column}:"
        case [row, column]:
            return f"row {row}, column {column}:"
        case place:
            return f"place {place}:"


def _dense(data: Any) -> NDArray[Any]:
    try:
        return np.asarray(data.toarray() if is_sparse(data) else data)
    except ValueError:  # lists of different lengths
        return np.array(data, dtype=object)
