"""The parts of lists and tables, of whatever library.

What raises while it is read is read as far as it goes: the exception is its last part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from dpverify.errors import PASSING

__all__ = ["parts_of"]


def parts_of(value: Any, most: int) -> list[Any] | None:
    """A list of what lies in a list, a table (row by row), or a series; None if it is none."""
    if isinstance(value, type):
        return None
    if isinstance(value, list | tuple):
        return _listed(lambda: value)
    if callable(getattr(value, "reset_index", None)):  # pandas
        return _rows(value)
    for way in ("to_dicts", "to_pylist", "to_list"):  # polars, pyarrow
        if callable(getattr(value, way, None)):
            return _listed(getattr(value, way))
    if isinstance(value, Iterator):
        return _listed(lambda: islice(value, most))
    return _listed(lambda: islice(value, most + 1)) if isinstance(value, Collection) else None


def _listed(give: Callable[[], Iterable[Any]]) -> list[Any]:
    parts: list[Any] = []
    try:
        parts.extend(give())
    except PASSING:
        raise
    except BaseException as error:  # whatever an object says to being read
        parts.append(error)
    return parts


def _rows(value: Any) -> list[Any]:
    """Rows of a frame of pandas, or values of a series; what an index names is a column too.

    As ``reset_index`` has it, which makes another frame and takes ten times as long.
    """
    index, series = value.index, not hasattr(value, "columns")
    if series:
        columns = [(0 if value.name is None else value.name, value.tolist())]
    else:
        columns = [(label, column.tolist()) for label, column in value.items()]
    ranged = type(index).__name__ == "RangeIndex"  # to name another one takes long
    if not (ranged and str(index) == f"RangeIndex(start=0, stop={len(value)}, step=1)"):
        name = "index" if index.name is None else index.name
        if index.nlevels > 1 or any(label == name for label, _ in columns):
            try:
                return _rows(value.reset_index())
            except ValueError:  # a column has the name of a level
                levels = [f"level {number} of the index" for number in range(index.nlevels)]
                return _rows(value.rename_axis(index=levels).reset_index())
        columns.insert(0, (name, index.tolist()))
    elif series:
        return list(columns[0][1])
    names = [label for label, _ in columns]
    rows = zip(*(values for _, values in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
