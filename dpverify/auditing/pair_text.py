"""A pair of neighbours as a person reads it: both data sets, and which row and column moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.data.rows import is_labelled, row_key, rows_of, slots
from dpverify.privacy import Pair
from dpverify.visible import escaped, shown, worded

__all__ = ["pair_lines"]

_WHOLE = 12  # values of a matrix that are shown as they stand
_LISTED = 24  # values, or kinds of rows, that are listed otherwise


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
    """How many rows, and which."""
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return f"{count}: {_kinds(rows, _row)}" if rows else "no rows"


def _kinds(rows: Iterable[Any], told: Callable[[Any], str]) -> str:
    """Which rows, with those that are equal counted."""
    kinds: dict[Any, list[Any]] = {}
    for row in rows:
        kinds.setdefault(row_key(row), []).append(row)
    return _listed(
        (f"{len(alike)} times " if len(alike) > 1 else "") + told(alike[0])
        for alike in kinds.values()
    )


def _moved(first: Sequence[Any], second: Sequence[Any], told: Callable[[Any], str]) -> list[str]:
    """Which rows came and went, a line each way."""
    at = slots(first, second)
    more = [second[j] for i, j in at if i is None and j is not None]
    less = [first[i] for i, j in at if j is None and i is not None]
    return [
        f"{'one row' if len(rows) == 1 else f'{len(rows)} rows'} {way}: {_kinds(rows, told)}"
        for rows, way in ((more, "more"), (less, "less"))
        if rows
    ]


def _moved_rows(first: Sequence[Any], second: Sequence[Any]) -> list[str]:
    order = _both(first, second)
    changes = [(i, _changes(first[i], second[j])) for i, j in order]
    lines = _first(f"row {i}: {change}" for i, change in changes if change)
    lines += _moved(first, second, _row)
    places = [i for i, _ in sorted(order, key=lambda at: at[1])]
    if places != sorted(places):
        lines.append(f"the rows in another order: {_listed(map(str, places), separator=', ')}")
    return lines


def _both(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int, int]]:
    """The rows that both have, by their numbers."""
    return [(i, j) for i, j in slots(first, second) if i is not None and j is not None]


def _changes(row: Mapping[Any, Any], other: Mapping[Any, Any]) -> str:
    names = list(dict.fromkeys([*row, *other]))
    return ", ".join(
        f"{escaped(worded(name))} {shown(row.get(name))} -> {shown(other.get(name))}"
        for name in names
        if row_key(row.get(name)) != row_key(other.get(name))
    )


def _listed(texts: Iterable[str], *, rest: str = "others", separator: str = "; ") -> str:
    """The first of them, and how many others there are."""
    listed = list(texts)
    more = f"; and {len(listed) - _LISTED} {rest}" if len(listed) > _LISTED else ""
    return separator.join(listed[:_LISTED]) + more


def _first(lines: Iterable[str]) -> list[str]:
    """The first of them, a line each, and how many others there are."""
    listed = list(lines)
    more = [f"and {len(listed) - _LISTED} other rows"] if len(listed) > _LISTED else []
    return listed[:_LISTED] + more


# --- matrices -------------------------------------------------------------------------------------


def _matrix(values: NDArray[Any]) -> str:
    """All values, or of many the most frequent one and the others."""
    if values.size <= _WHOLE:
        with np.printoptions(floatmode="unique"):
            return " ".join(str(values).split())
    kinds, counts = np.unique(values, return_counts=True)
    most = kinds[np.argmax(counts)]
    others = [_place(values, at) + f" {values[tuple(at)]}" for at in np.argwhere(values != most)]
    listed = f", but for {_listed(others)}" if others else ""
    return f"of shape {values.shape}: {most} in all places{listed}"


def _moved_values(first: NDArray[Any], second: NDArray[Any]) -> list[str]:
    if first.shape != second.shape:
        if first.ndim != second.ndim or first.shape[1:] != second.shape[1:]:
            return [f"of shapes {first.shape} and {second.shape}"]
        return _moved_vectors(list(first), list(second))
    if first.size <= _WHOLE:
        return []
    places = (
        f"{_place(first, at)} {first[tuple(at)]} -> {second[tuple(at)]}"
        for at in np.argwhere(first != second)
    )
    return [_listed(places, rest="more")]


def _moved_vectors(first: Sequence[Any], second: Sequence[Any]) -> list[str]:
    changed = (
        f"row {i}: {_vector(first[i])} -> {_vector(second[j])}"
        for i, j in _both(first, second)
        if row_key(first[i]) != row_key(second[j])
    )
    return _first(changed) + _moved(first, second, _vector)


def _vector(row: Any) -> str:
    return _matrix(np.asarray(row))


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
