"""Releases of data larger than memory: read and written block by block, published whole."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.certificate import _releasing
from dpverify.certificate._releasing import check_records, write_release
from dpverify.certificate.archive import ARRAY
from dpverify.data.loading import load_records, open_records
from dpverify.data.records import Table
from dpverify.errors import OutputError, RecordsError
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.linear.sketch import LinearSketch

ROWS, P = 5_000, 12


def saved(folder: Path, suffix: str, values: NDArray[Any]) -> Path:
    path = folder / f"records{suffix}"
    if suffix == ".npy":
        np.save(path, values)
    elif suffix == ".npz":
        np.savez(path, values)
    elif suffix == ".csv":
        np.savetxt(path, values, delimiter=",", fmt="%.17g")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {str(number): column for number, column in enumerate(values.T)}
        parquet.write_table(pyarrow.table(columns), path, row_group_size=1_500)
    return path


@pytest.fixture
def records() -> NDArray[np.float64]:
    return np.random.default_rng(4).random((ROWS, P))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_a_table_reads_what_is_in_the_file(
    tmp_path: Path, suffix: str, records: NDArray[np.float64]
) -> None:
    path = saved(tmp_path, suffix, records)
    table = open_records(path)
    assert table.shape == (ROWS, P)
    for _ in range(2):  # it can be read again
        assert np.array_equal(np.concatenate(list(table.read())), records)
    assert np.array_equal(table.whole(), records)
    assert np.array_equal(load_records(path), records)
    if suffix in (".npy", ".parquet"):
        assert max(len(block) for block in table.read()) <= 1024


def test_fortran_order_and_small_integers(tmp_path: Path) -> None:
    values = np.asfortranarray(np.arange(6, dtype=np.int8).reshape(3, 2))
    np.save(tmp_path / "records.npy", values)
    assert np.array_equal(open_records(tmp_path / "records.npy").whole(), values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.array([["a"]]), "records must be numbers"),
        (np.ones((2, 2), dtype=complex), "records must be numbers"),
        (np.array([[None]], dtype=object), "object"),
        (np.ones(3), r"records of shape \(3,\) must form a matrix"),
        (np.ones((0, 3)), r"records of shape \(0, 3\)"),
    ],
)
def test_a_file_that_holds_no_table_of_numbers_is_refused(
    tmp_path: Path, values: NDArray[Any], problem: str
) -> None:
    np.save(tmp_path / "records.npy", values, allow_pickle=True)
    with pytest.raises(RecordsError, match=problem):
        open_records(tmp_path / "records.npy")


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_file_that_changes(tmp_path: Path, suffix: str, records: NDArray[np.float64]) -> None:
    path = saved(tmp_path, suffix, records)
    table = open_records(path)
    saved(tmp_path, suffix, records[:-1])
    with pytest.raises(RecordsError, match="changed"):
        list(table.read())


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_the_file_holds_the_release(
    tmp_path: Path,
    suffix: str,
    records: NDArray[np.float64],
    small_sketch: Callable[..., LinearSketch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the same words, the file holds what `release` gives for all records at once."""
    sketch = small_sketch()
    monkeypatch.setattr(_releasing, "SecureWords", lambda: ReplayableWords(5))
    table = open_records(saved(tmp_path, suffix, records))
    check_records(sketch, table)
    released = write_release(sketch, table, tmp_path)
    whole = sketch.release(records, rng=ReplayableWords(5))
    with np.load(tmp_path / "sketch.npz", allow_pickle=False) as archive:
        assert archive.files == [ARRAY]
        assert np.array_equal(archive[ARRAY], whole)
        assert (archive[ARRAY].shape, archive[ARRAY].dtype.name) == (released.shape, released.dtype)
    distance = sketch.estimators()[0]
    errors = np.abs(
        distance.estimate(whole[:200], whole[2500:2700])
        - [distance.truth(records[[i]], records[[2500 + i]]) for i in range(200)]
    )
    assert released.owner_notes["pairs_compared"] == 200
    assert released.owner_notes["outside_the_domain"] == 0
    noted = released.owner_notes["mean_absolute_error_of_squared_distance"]
    assert noted == pytest.approx(errors.mean(), rel=1e-12)


def test_a_record_outside_is_named_by_its_number(
    tmp_path: Path, records: NDArray[np.float64], small_sketch: Callable[..., LinearSketch]
) -> None:
    records[4_321, 7] = 1.5
    table = open_records(saved(tmp_path, ".npy", records))
    with pytest.raises(RecordsError, match=r"^record 4321, attribute 7 is 1\.5"):
        check_records(small_sketch(), table)


def test_an_error_in_the_middle_leaves_nothing(
    tmp_path: Path, records: NDArray[np.float64], small_sketch: Callable[..., LinearSketch]
) -> None:
    def failing() -> Iterator[Any]:
        yield records[:2_000]
        raise RecordsError("the disk is gone.")

    with pytest.raises(RecordsError, match="gone"):
        write_release(small_sketch(), Table(shape=records.shape, read=failing), tmp_path)
    short = Table(shape=(ROWS + 1, P), read=lambda: iter([records]))
    with pytest.raises(RecordsError, match="5000 rows were read, and 5001 were announced"):
        write_release(small_sketch(), short, tmp_path)
    table = Table.of(records)
    with pytest.raises(OutputError, match="can't be written"):
        write_release(small_sketch(), table, tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, small_sketch: Callable[..., LinearSketch]
) -> None:
    """Ten times the rows, and the peak stays within a block or two; a whole copy wouldn't."""
    peaks = []
    sketch = small_sketch()
    for rows in (10_000, 100_000):
        path = saved(tmp_path, ".npy", np.random.default_rng(1).random((rows, P)))
        table = open_records(path)
        write_release(sketch, table, tmp_path)  # tables of the sampler are made once
        tracemalloc.start()
        check_records(sketch, table)
        write_release(sketch, table, tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2**20 < 100_000 * P * 8
