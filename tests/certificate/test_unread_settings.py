"""Settings that nothing would read are refused, before anything is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpverify.certificate.certify import configured, requested
from dpverify.errors import ConfigurationError

NOISE = {"name": "noise-addition"}
SKETCH = {"name": "dp-oporp", "k": 2}


def tables(data: dict[str, Any], mechanism: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "data": {"path": "records.npy", "domain": {"low": 0, "high": 1}} | data,
        "mechanism": mechanism,
        "privacy": {"epsilon": 2, "delta": 1e-3, "adjacency": {"kind": "attribute", "beta": 1}},
        **others,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "records.npy", np.zeros((3, 4)))
    (tmp_path / "records.csv").write_text("a;b\n1;0\n0;1\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            tables({"table": "visits"}, NOISE),
            r"data\.table applies only to .*\.duckdb, .*\.npy",
        ),
        (tables({"path": "records.csv", "table": "a"}, NOISE), r"and not to records\.csv: leave"),
        (tables({"separator": ";"}, NOISE), r"data\.separator applies only to \.csv, \.tsv, \.txt"),
        (tables({"encoding": "cp1252"}, NOISE), r"data\.encoding applies only to \.csv"),
        (tables({}, NOISE, projection={"seed": 7}), r"projection\.seed=7 has no use"),
    ],
)
def test_what_nothing_reads_is_refused(folder: Path, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        configured(requested(None, settings, folder, {}))


@pytest.mark.parametrize(
    "settings",
    [
        tables({}, SKETCH, projection={"seed": 7}),
        tables({"path": "records.csv", "separator": ";", "encoding": "cp1252"}, NOISE),
        tables({}, NOISE, projection={"seed": 0}),
    ],
)
def test_what_is_read_is_taken(folder: Path, settings: dict[str, Any]) -> None:
    assert configured(requested(None, settings, folder, {}))[0].shape[1] in (2, 4)
