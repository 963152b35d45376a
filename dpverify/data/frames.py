"""Tables of named columns: files, databases and data frames, as batches of Arrow columns.

pyarrow reads nearly all of them, and is what pandas and polars hand their columns over by. One
batch at a time is in memory, but of a database and of a data frame, which is there already.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from dpverify.data.file_sets import FILE_SETS, open_files
from dpverify.data.frame import REASON, Frame, Spelling, check_names, ending, readable
from dpverify.data.text_files import TEXTS, open_texts
from dpverify.errors import RecordsError, did_you_mean, extra

__all__ = ["DATABASES", "frame_of", "is_frame", "open_frame"]

DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
_ROWS = 1024  # rows that are read at once

_PLAIN = Spelling()


def is_frame(path: str | Path) -> bool:
    """Whether a path is of a table that `open_frame` reads."""
    kind = ending(path)
    return kind in TEXTS or kind in FILE_SETS or kind in DATABASES or not kind


def open_frame(path: Path | str, *, spelling: Spelling = _PLAIN, table: str = "") -> Frame:
    """The table in a file, a folder, files that match a pattern, or a database.

    Parameters
    ----------
    path : of texts, .csv, .tsv or .txt with a line of names, which may be compressed (.gz, .bz2,
        .zst, .lz4); .parquet, .arrow or .feather, one, a folder of them, or a pattern as
        ``part-*.parquet``, also a URL that fsspec reads; a database, .sqlite or .duckdb
    spelling : of a file of texts
    table : of a database; may be left out where it has one

    Raises
    ------
    RecordsError
        If there is no such file, it can't be read, or names stand twice.
    MissingExtraError
        If pyarrow isn't installed, or duckdb for its databases.
    """
    with extra("arrow", f"{path}: reading a table"):
        import pyarrow as pa  # noqa: F401
    kind = ending(path)
    with readable(path):
        if isinstance(path, str):
            frame = open_files(path, others=())
        elif kind in TEXTS:
            frame = open_texts(path, spelling)
        elif kind in DATABASES:
            frame = _of_database(path, table)
        else:
            frame = open_files(path, others=(*TEXTS, *DATABASES, ".npy", ".npz"))
    check_names(frame.label, frame.names)
    if frame.rows == 0:
        under = " below its header" if kind in TEXTS else ""
        raise RecordsError(f"{path}: has no rows{under}.")
    return frame


def frame_of(data: Any, names: Sequence[str] = ()) -> Frame:
    """The table in a data frame of pandas, polars or another library, or in a matrix.

    Parameters
    ----------
    data : anything with the Arrow interface, a pandas data frame, whose index is left out, or a
        matrix, whose columns have no names
    names : of the columns of a matrix, in order

    Raises
    ------
    RecordsError
        If it is none of these, or columns hold values of several types.
    """
    with extra("arrow", "a data frame"):
        import pyarrow as pa  # noqa: F401
    if isinstance(data, np.ndarray):
        table = _of_matrix(data, names)
    elif "pandas" in sys.modules and isinstance(data, sys.modules["pandas"].DataFrame):
        table = _of_pandas(data)
    else:
        table = _of_arrow(data)
    check_names("the data frame", table.schema.names)
    if table.num_rows == 0 or table.num_columns == 0:
        raise RecordsError("the data frame has no rows or no columns.")

    def read(chosen: Sequence[str]) -> Iterator[Any]:
        yield from table.select(list(chosen)).to_batches(max_chunksize=_ROWS)

    return Frame(
        label="the data frame",
        names=tuple(table.schema.names),
        kinds=tuple(table.schema.types),
        rows=table.num_rows,
        read=read,
    )


def _of_matrix(data: Any, names: Sequence[str]) -> Any:
    import pyarrow as pa

    if data.ndim != 2 or data.shape[1] != len(names):
        raise RecordsError(
            f"a matrix of shape {data.shape} must have a column for each of the {len(names)} "
            "declared ones."
        )
    if data.dtype.kind not in "biuf":
        raise RecordsError(f"a matrix of {data.dtype} must be one of numbers. Give a data frame.")
    return pa.table({name: data[:, place] for place, name in enumerate(names)})


def _of_arrow(data: Any) -> Any:
    import pyarrow as pa

    reason = ""
    if hasattr(data, "__arrow_c_stream__"):  # a series may have it too
        try:
            return pa.table(data)
        except pa.ArrowException as error:
            reason = f" ({str(error)[:REASON]})"
    raise RecordsError(
        f"{type(data).__name__} is not a table{reason}: give a path, a matrix, or a data frame of "
        "numbers, texts, dates and truth values (collect() a lazy one, to_frame() a series)."
    )


def _of_pandas(data: Any) -> Any:
    import pyarrow as pa

    check_names("the data frame", [str(name) for name in data.columns])
    made, mixed = {}, []
    for name in data.columns:
        try:
            if data[name].dtype == object:
                _one_kind(data[name].dropna())
            made[str(name)] = pa.array(data[name], from_pandas=True)
        except (pa.ArrowException, OverflowError, TypeError):  # what it says quotes a value
            mixed.append(f"{name} ({data[name].dtype})")
    if mixed:
        raise RecordsError(
            "the data frame has columns of values of several types, or of one that isn't read: "
            f"{', '.join(mixed)}. Give each column one type (numbers, texts, dates or truth "
            "values), for example by astype(str)."
        )
    return pa.table(made)


# Databases


def _one_kind(values: Iterable[Any]) -> None:
    """Refuse Python values of several types: Arrow would read one row by what is in another.

    Of bytes and text it makes bytes, of days and times days, of several time zones the first one,
    of numpy's numbers the widest, which has other digits, or another value.
    Numbers of Python may be of several types, since each stays what it is.
    """
    import pyarrow as pa

    kinds = {
        "number"
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        else (type(value), str(getattr(value, "tzinfo", None)))
        for value in values
    }
    if len(kinds) > 1:
        raise pa.ArrowInvalid


def _of_database(path: Path, table: str) -> Frame:
    import pyarrow as pa

    if not path.is_file():
        raise RecordsError(f"{path}: there is no such file.")
    query = _duckdb if ending(path) == ".duckdb" else _sqlite
    known = [row[0] for row in query(path, _TABLES)[1]]
    if not table and len(known) == 1:
        table = known[0]
    if table not in known:
        hint = did_you_mean(table, known) if table else f"It has {', '.join(known) or 'none'}."
        raise RecordsError(
            f"{path}: data.table, or init --table, must be a table of this database. {hint}"
        )
    quoted = table.replace('"', '""')
    names, rows = query(path, f'SELECT * FROM "{quoted}"')  # noqa: S608 - a table that it has
    made, mixed = [], []
    for place, name in enumerate(names):
        try:
            values = [row[place] for row in rows]
            _one_kind(value for value in values if value is not None)
            made.append(pa.array(values))
        except (pa.ArrowException, OverflowError, TypeError):
            mixed.append(name)
    if mixed:
        raise RecordsError(
            f"{path}: columns hold values of several types: {', '.join(mixed)}. Give each one "
            "type, in a view for example."
        )
    whole = pa.table(made, names=names)

    def read(chosen: Sequence[str]) -> Iterator[Any]:
        yield from whole.select(list(chosen)).to_batches(max_chunksize=_ROWS)

    return Frame(
        label=str(path),
        names=tuple(names),
        kinds=tuple(whole.schema.types),
        rows=whole.num_rows,
        read=read,
    )


_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


def _sqlite(path: Path, statement: str) -> tuple[list[str], list[Any]]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        cursor = connection.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()


def _duckdb(path: Path, statement: str) -> tuple[list[str], list[Any]]:
    with extra("duckdb", f"{path}: reading .duckdb"):
        import duckdb
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        cursor = connection.execute(statement)
        return [column[0] for column in cursor.description], cursor.fetchall()
