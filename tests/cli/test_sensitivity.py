"""``dpverify sensitivity``: no number is rounded before its norm is called exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from tests.helpers.command_line import result, run


def columns(path: Path, matrix: Any) -> None:
    parquet.write_table(pa.table({f"c{n}": column for n, column in enumerate(matrix.T)}), path)


WRITERS: dict[str, Callable[[Path, Any], Any]] = {
    "p.npy": np.save,
    "dense.npz": np.savez,
    "sparse.npz": lambda path, matrix: sparse.save_npz(path, sparse.csr_array(matrix)),
    "p.parquet": columns,
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_doubles_do_not_hold_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 2**53 + 1 it was said that its size is exactly 2**53."""
    WRITERS[name](tmp_path / name, np.array([[1, 2**53 + 1], [3, 4]]))
    assert run("sensitivity", tmp_path / name, "--norm", "1") == 2
    assert "2**53" in capsys.readouterr().err
    WRITERS[name](tmp_path / name, np.array([[1, 2], [3, 4]]))
    assert run("sensitivity", tmp_path / name, "--norm", "1", "--json") == 0
    assert result(capsys, "sensitivity")["exact"] == "7"


def test_more_digits_than_doubles_have_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = np.array([[1]], dtype=np.longdouble) + np.finfo(np.longdouble).eps
    if wide[0, 0] == np.float64(wide[0, 0]):
        pytest.skip("a long double is a double on this machine")
    np.save(tmp_path / "p.npy", wide)
    assert run("sensitivity", tmp_path / "p.npy", "--norm", "2") == 2
    assert "must hold doubles" in capsys.readouterr().err
