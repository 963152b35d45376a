"""Columns in different units: each is brought from its own declared range to [0, 1]."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpverify.certificate.checks import check_certificate
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Certificate
from dpverify.cli import _run
from dpverify.data.records import Table, scaled
from dpverify.errors import ConfigurationError, RecordsError

SURVEY = "age,income,answer\n18,250000,5\n100,0,1\n59,125000,3\n40,9000,2\n"
RELEASE = """
[data]
path = "survey.csv"
domain = { low = 0, high = 1 }
ranges = [[18, 100], [0, 250000], [1, 5]]
[mechanism]
name = "raw-data-g-opt"
[privacy]
epsilon = 2
delta = 1e-4
adjacency = { kind = "attribute", beta = 0.5 }
[audit]
draws = 200
moment_draws = 50
"""
FINITE = st.floats(-1e300, 1e300)


def read(values: Any, ranges: list[tuple[float, float]], *, refuse: bool = True) -> Any:
    return scaled(Table.of(np.array(values, dtype=np.float64)), ranges, refuse=refuse).whole()


@given(st.lists(FINITE, min_size=3, max_size=3, unique=True).map(sorted))
def test_what_is_inside_stays_inside_and_ends_are_ends(values: list[float]) -> None:
    low, inside, high = values
    unit = read([[low], [inside], [high]], [(low, high)])[:, 0]
    assert (unit[0], unit[2]) == (0, 1)
    assert 0 <= unit[1] <= 1


@given(st.lists(FINITE, min_size=3, max_size=3, unique=True).map(sorted), st.booleans())
def test_what_is_outside_is_refused_or_clipped_to_its_end(values: list[float], above: bool) -> None:
    low, high = values[:2] if above else values[1:]
    value = values[2] if above else values[0]
    with pytest.raises(RecordsError, match=r"record 0, column 1 is .*, outside its range"):
        read([[value]], [(low, high)])
    kept = read([[value]], [(low, high)], refuse=False)
    assert np.isfinite(kept).all()
    assert np.clip(kept, 0, 1)[0, 0] == above


def test_no_other_value_depends_on_one() -> None:
    """Neighbours stay neighbours: what changes in one place changes there alone."""
    records = np.arange(12.0).reshape(4, 3)
    changed = records.copy()
    changed[2, 1] = 11
    differs = read(records, [(0, 11)] * 3) != read(changed, [(0, 11)] * 3)
    assert np.argwhere(differs).tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("ranges", "says"),
    [
        ([(0.0, 1.0)], "has 1 ranges, and the records have 2 columns"),
        ([(0.0, 1.0), (1.0, 1.0)], "the range of column 2 is empty"),
        ([(0.0, 1.0), (-1.7e308, 1.7e308)], "wider than the largest double"),
    ],
)
def test_ranges_that_fit_no_columns(ranges: list[tuple[float, float]], says: str) -> None:
    with pytest.raises(RecordsError, match=says):
        read([[0, 1]], ranges)


def test_values_that_are_none() -> None:
    with pytest.raises(RecordsError, match="attribute 1 is nan"):
        read([[0, np.nan]], [(0, 1)] * 2)
    table = Table.of(sparse.csr_array(np.eye(2)))
    with pytest.raises(RecordsError, match="these are sparse"):
        scaled(table, [(0, 1)] * 2, refuse=True).whole()


def write(folder: Path, text: str = RELEASE, name: str = "release") -> Path:
    (folder / "survey.csv").write_text(SURVEY, encoding="utf-8")
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[1, 5]", "[5, 5]", "ranges: of column 3, 5 must be below 5"),
        ("high = 1 ", "high = 10 ", r"need domain = \{ low = 0, high = 1 \}"),
        ("[1, 5]", '[1, "five"]', "must be a finite real number"),
        ("[1, 5]", "[1, 5, 6]", "data.ranges"),
    ],
)
def test_a_configuration_that_cannot_be(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_configuration(write(tmp_path, RELEASE.replace(old, new)))


def certified(folder: Path, name: str, text: str = RELEASE) -> Path:
    out = folder / name
    arguments = [str(write(folder, text, name)), "--out", str(out), "--allow-inconclusive"]
    assert _run(["certify", *arguments, "--yes", "--quiet"]) == 0
    return out / "certificate.json"


@pytest.mark.usefixtures("no_figures")
def test_from_a_survey_to_a_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = certified(tmp_path, "one")
    fields = json.loads(path.read_text())
    assert fields["inputs"]["ranges"][1] == {"low": "0", "high": "250000"}
    page = render(Certificate.model_validate(fields))
    assert "every attribute brought from its own range to [0, 1]" in page
    assert "(after every attribute was brought from its own range to [0, 1])" in page
    assert "[18, 100], [0, 250000], [1, 5]" in page
    assert {check.status for check in check_certificate(fields, path.parent)} == {"agrees"}
    fields["inputs"]["ranges"].pop()
    (wrong,) = (check for check in check_certificate(fields, path.parent) if check.name == "inputs")
    assert "2 ranges are given for 3 attributes" in wrong.detail
    # A change by half a range is another change where the range is another.
    wider = certified(tmp_path, "two", RELEASE.replace("[18, 100]", "[0, 120]"))
    capsys.readouterr()
    arguments = ["compose", str(path), str(wider), "--no-replay", "--allow-inconclusive"]
    assert _run(arguments) == 2
    assert "from different ranges" in capsys.readouterr().err
    assert _run([*arguments, "--unit", "one answer"]) == 0


def test_a_value_outside_is_named_in_its_own_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, RELEASE.replace("[18, 100]", "[18, 90]"))
    assert _run(["certify", str(path), "--out", str(tmp_path / "out"), "--yes"]) == 2
    assert "record 1, column 1 is 100.0, outside its range [18, 90]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
