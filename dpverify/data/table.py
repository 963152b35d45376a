"""Tables: data sets of typed columns, declared before anyone looks at the data.

The data set itself is a list of dicts, a row each; that is what neighbours are made of and what a
report shows. `make` says how a function gets it.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from attrs import field, frozen

from dpverify.data.columns import Column, is_unicode
from dpverify.data.rows import copied, rows_of
from dpverify.errors import PASSING, DrawError, RecordsError, did_you_mean, extra, require
from dpverify.numbers import whole
from dpverify.visible import raised, shown

__all__ = ["Made", "Row", "Table"]

Row = dict[str, Any]
Made = Literal["dicts", "numpy", "pandas", "polars", "pyarrow", "csv"]
"""Forms in which a function may get a table."""


def _to_columns(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    good = isinstance(columns, Mapping) and bool(columns)
    require(
        good,
        "columns",
        columns,
        "a dictionary of columns by name",
        'As in {"age": Integers(0, 120)}.',
    )
    for name, column in columns.items():
        good = isinstance(name, str) and bool(name) and is_unicode(name)
        require(good, "column", shown(name), "named by a string")
        require(isinstance(column, Column), name, column, "a column", "As Integers(0, 120) is.")
    return dict(columns)


def _to_rows(rows: Any) -> tuple[int, int]:
    several = isinstance(rows, Sequence | range) and not isinstance(rows, str)
    sizes = tuple(rows) if several else (rows, rows)
    rule = "the fewest and the most rows, as (0, 50), or a number of rows"
    require(len(sizes) == 2, "rows", rows, rule)
    least, most = (whole("rows", size) for size in sizes)
    require(0 <= least <= most and most >= 1, "rows", rows, rule)
    return least, most


def _to_make(make: Any) -> Any:
    forms = get_args(Made)
    known = isinstance(make, str) and make in forms
    way_out = did_you_mean(make, forms, otherwise=" ").strip() if isinstance(make, str) else ""
    rule = f"{', '.join(forms)}, or a function of a list of dicts"
    require(known or callable(make), "make", make, rule, way_out)
    return make


@frozen
class Table:
    """Data sets of rows with these columns.

    Attributes
    ----------
    columns : by name
    rows : the fewest and the most rows, or their number, if that is public
    make : the form in which a function gets it: "dicts", a list of dicts; "numpy", a matrix of
        shape (n, columns), of a single column a vector of shape (n,), of whole numbers where all
        columns are, with NaN where a value is missing; "pandas", "polars" or "pyarrow", a data
        frame whose types follow from the columns alone; "csv", the path of a temporary file with a
        header, with empty fields where values are missing; or a function of the list of dicts that
        makes what yours takes

    Examples
    --------
    >>> from dpverify.data.columns import Categories, Integers
    >>> people = Table({"age": Integers(0, 120), "sex": Categories("f", "m")}, rows=(0, 50))
    >>> people.admit([{"age": 41, "sex": "f"}])
    [{'age': 41, 'sex': 'f'}]
    >>> people.made([{"age": 41, "sex": "f"}])
    [{'age': 41, 'sex': 'f'}]
    """

    columns: Mapping[str, Column] = field(converter=_to_columns)
    rows: tuple[int, int] = field(default=(0, 50), converter=_to_rows)
    make: Made | Callable[[list[Row]], Any] = field(
        default="dicts", converter=_to_make, kw_only=True
    )

    def __attrs_post_init__(self) -> None:
        if callable(self.make) or self.make in ("dicts", "csv"):
            return
        for name, column in self.columns.items():
            numeric = column.kind in ("whole", "real", "truth")
            good = numeric if self.make == "numpy" else column.kind in _KINDS
            rule = f"of {'numbers or truth values' if self.make == 'numpy' else 'one type'}"
            way_out = 'Take make="dicts", or a function of your own.'
            require(good, name, column, f'{rule}, for make="{self.make}"', way_out)

    def __hash__(self) -> int:
        return hash((tuple(self.columns.items()), self.rows, self.make))

    def admit(self, data: Any) -> list[Row]:
        """The data set as a list of dicts, columns in their order, each value of its column's type.

        Raises
        ------
        RecordsError
            If the rows are too few or too many, or one of them isn't of these columns. The message
            is for the owner: it names a value of the data.
        """
        rows = [self._row(number, row) for number, row in enumerate(rows_of(data))]
        least, most = self.rows
        if not least <= len(rows) <= most:
            raise RecordsError(f"a data set of {len(rows)} rows must have {least} to {most}.")
        return rows

    def _row(self, number: int, row: Any) -> Row:
        if isinstance(row, np.ndarray) and row.shape == (len(self.columns),):  # of a matrix
            row = dict(zip(self.columns, row.tolist(), strict=True))
        if not isinstance(row, Mapping) or row.keys() != self.columns.keys():
            names = ", ".join(self.columns)
            raise RecordsError(f" is {shown(row)}, and must be a dict of {names}.", number)
        for name, column in self.columns.items():
            if not column.admits(row[name]):
                missing = ", or missing" if column.missing else ""
                rule = f"{column.rule}{missing}"
                raise RecordsError(f": {name}={shown(row[name])} must be {rule}.", number)
        return {
            name: None if row[name] is None else column.read(row[name])
            for name, column in self.columns.items()
        }

    def made(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """What a function gets, new at each call.

        Raises
        ------
        MissingExtraError
            If the library of the form isn't installed.
        """
        return self.maker(rows)()

    def maker(self, rows: Sequence[Mapping[str, Any]]) -> Callable[[], Any]:
        """Make that at each call; what is dear to make and cheap to copy, once for all."""
        make = self.make
        if callable(make):
            return partial(_by_function, make, rows)
        match make:
            case "dicts":
                return lambda: [dict(row) for row in rows]
            case "csv":
                return lambda: _csv(self, rows)
            case "pyarrow":  # which can't be changed
                return cache(partial(_FRAMES[make], self, rows))
        frame = cache(partial(_FRAMES[make], self, rows))
        return lambda: copied(frame())


def _by_function(make: Callable[[list[Row]], Any], rows: Sequence[Mapping[str, Any]]) -> Any:
    """What a function of the caller's makes: it has to make it of every data set."""
    try:
        return make([dict(row) for row in rows])
    except (DrawError, *PASSING):
        raise
    except BaseException as error:  # whatever foreign code does
        raise DrawError(
            f"make of the table raised {raised(error)} for a data set of {len(rows)} rows. It "
            "makes what your function takes of every data set of the table, the smallest too."
        ) from error


def _numpy(table: Table, rows: Sequence[Mapping[str, Any]]) -> Any:
    columns = table.columns.values()
    dtype = np.result_type(*(_KINDS[column.kind].numpy(column.missing) for column in columns))
    values = [list(row.values()) for row in rows]
    matrix = np.array(values, dtype=dtype).reshape(len(rows), len(columns))
    return matrix[:, 0] if len(columns) == 1 else matrix


def _pandas(table: Table, rows: Sequence[Mapping[str, Any]]) -> Any:
    with extra("tables", 'make="pandas"'):
        import pandas as pd
    return pd.DataFrame(
        {
            name: pd.Series(
                [row[name] for row in rows],
                dtype=_KINDS[column.kind].nullable
                if column.missing
                else _KINDS[column.kind].pandas,
            )
            for name, column in table.columns.items()
        }
    )


def _polars(table: Table, rows: Sequence[Mapping[str, Any]]) -> Any:
    with extra("tables", 'make="polars"'):
        import polars as pl
    schema = {name: getattr(pl, _KINDS[c.kind].polars) for name, c in table.columns.items()}
    return pl.DataFrame(rows, schema=schema)


def _pyarrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> Any:
    with extra("tables", 'make="pyarrow"'):
        import pyarrow as pa
    schema = [(name, getattr(pa, _KINDS[c.kind].pyarrow)()) for name, c in table.columns.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema(schema))


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of this process and those that it forks, which leave it in place; it goes when this ends."""
    return tempfile.TemporaryDirectory(prefix="dpverify-")


_NUMBERS = count()
_LAST: list[Path] = []


def _csv(table: Table, rows: Sequence[Mapping[str, Any]]) -> Path:
    # Of another name each time: by one of its own a data set would be told, and of one for all a
    # function that keeps what it loads would get the first data set again and again.
    path = Path(_folder().name, f"{os.getpid()}-{next(_NUMBERS)}.csv")
    while _LAST:
        _LAST.pop().unlink(missing_ok=True)
    _LAST.append(path)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table.columns))
        writer.writeheader()
        writer.writerows(rows)
    return path


class _Kind(NamedTuple):
    """What each library calls it; the types never depend on the values, nor on what is missing."""

    pandas: str
    nullable: str
    polars: str
    pyarrow: str

    def numpy(self, missing: bool) -> Any:
        return np.float64 if missing else np.dtype(self.pandas)


_KINDS: Mapping[str, _Kind] = {
    "whole": _Kind("int64", "Int64", "Int64", "int64"),
    "real": _Kind("float64", "float64", "Float64", "float64"),
    "truth": _Kind("bool", "boolean", "Boolean", "bool_"),
    "date": _Kind("datetime64[s]", "datetime64[s]", "Date", "date32"),
    "text": _Kind("str", "str", "String", "string"),
}
_FRAMES: Mapping[str, Callable[[Table, Sequence[Mapping[str, Any]]], Any]] = {
    "numpy": _numpy,
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
}
