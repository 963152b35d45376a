"""Tables: what they admit, what they make, and the values that are tried."""

from __future__ import annotations

import csv
import functools
import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpverify as dpv
from dpverify.data.columns import Column
from dpverify.data.rows import rows_of
from dpverify.errors import ParameterError, RecordsError

COLUMNS: dict[str, Column] = {
    "age": dpv.Integers(0, 120),
    "income": dpv.Reals(0, "1e5", missing=True),
    "sex": dpv.Categories("f", "m"),
    "when": dpv.Dates("2020-01-01", "2025-12-31"),
    "note": dpv.Text(missing=True),
    "smokes": dpv.Booleans(),
}
ANN = {
    "age": 41,
    "income": 0.5,
    "sex": "f",
    "when": date(2024, 2, 29),
    "note": None,
    "smokes": True,
}
BOB = {**ANN, "age": 7, "income": None, "note": "x"}


def table(**options: Any) -> dpv.Table:
    return dpv.Table(COLUMNS, rows=(0, 3), **options)


def test_rows_of_the_columns_are_admitted() -> None:
    assert table().admit([ANN, BOB]) == [ANN, BOB]
    assert table().admit([]) == []
    numbers = dpv.Table({"age": dpv.Integers(0, 120), "x": dpv.Reals(0, 1)})
    assert numbers.admit(np.array([[41.0, 0.5]])) == [{"age": 41.0, "x": 0.5}]


@pytest.mark.parametrize("make", ["dicts", "numpy", "pandas", "polars", "pyarrow", "csv"])
def test_columns_have_their_order_and_values_their_type_however_rows_are_written(make: Any) -> None:
    numbers = dpv.Table({"age": dpv.Integers(0, 120), "x": dpv.Reals(0, 1)}, make=make)
    rows = numbers.admit([{"x": Fraction(1, 2), "age": np.float32(41)}])
    assert str(rows) == "[{'age': 41, 'x': 0.5}]"
    assert str(numbers.admit(rows)) == str(rows)
    if make == "numpy":
        assert numbers.made(rows).tolist() == [[41.0, 0.5]]
    elif make != "csv":
        assert str(rows_of(numbers.made(rows))) == str(rows)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: dpv.Dates(datetime(2020, 1, 1), "2021-01-01"), "must be a date.* without a time"),
        (lambda: dpv.Categories(["f", "m"]), "values that equal themselves"),
        (lambda: dpv.Categories("f", math.nan), "values that equal themselves"),
        (lambda: dpv.Categories(Decimal("sNaN")), "values that equal themselves"),
        (lambda: dpv.Categories((1, [2])), "values that equal themselves"),
        (lambda: dpv.Categories(pd.NA), "values that equal themselves"),
        (lambda: dpv.Categories("\ud800"), "Unicode texts"),
        (lambda: dpv.Table({"\ud800": dpv.Booleans()}), "must be named by a string"),
    ],
)
def test_columns_of_what_is_no_value_are_refused(made: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        made()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ANN, {**ANN, "age": 121}], "record 1: age=121 must be a whole number from 0 to 120."),
        ([{**ANN, "age": 1.5}], "age=1.5 must be a whole number"),
        ([{**ANN, "age": True}], "age=True must be a whole number"),
        ([{**ANN, "age": None}], "age=None must be a whole number"),
        ([{**ANN, "income": float("nan")}], "income=nan must be .* 100000, or missing"),
        ([{**ANN, "sex": "x"}], "sex='x' must be one of 'f', 'm'"),
        ([{**ANN, "when": date(2019, 12, 31)}], "must be a date from 2020-01-01 to 2025-12-31"),
        ([{**ANN, "note": "x" * 21}], "text of at most 20 characters, or missing"),
        ([{**ANN, "note": "x\ud800"}], "Unicode text"),
        ([{**ANN, "smokes": 1}], "smokes=1 must be True or False"),
        ([{"age": 41}], "must be a dict of age, income, sex, when, note, smokes"),
        ([ANN] * 4, "a data set of 4 rows must have 0 to 3"),
    ],
)
def test_what_is_not_of_the_table_is_refused(rows: Any, says: str) -> None:
    with pytest.raises(RecordsError, match=says):
        table().admit(rows)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dpv.Table({}), "columns={} must be a dictionary of columns by name"),
        (
            lambda: dpv.Table({"a": int}),  # type: ignore[dict-item]
            "a=<class 'int'> must be a column",
        ),
        (lambda: dpv.Table(COLUMNS, rows=(3, 1)), "rows=.* must be the fewest and the most rows"),
        (lambda: table(make="panda"), "make=panda must be .* Did you mean pandas"),
        (lambda: table(make="numpy"), "sex=.* must be of numbers or truth values"),
        (lambda: dpv.Integers(3, 3), "high=3 must be greater than low=3"),
        (lambda: dpv.Integers(0, "1.5"), "high=1.5 must be a whole number"),
        (lambda: dpv.Dates("2020-13-01", "2021-01-01"), "date=2020-13-01 must be a date"),
        (lambda: dpv.Categories("a", "a"), "values=.* must be all different"),
        (lambda: dpv.Categories(), "values=none must be at least one"),
        (lambda: dpv.Text(0), "length=0 must be at least 1"),
    ],
)
def test_mistakes_are_refused_when_it_is_made(make: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        make()


EXTREME = {
    "all days": dpv.Dates("0001-01-01", "9999-12-31"),
    "last day": dpv.Dates("9999-12-31", "9999-12-31", missing=True),
    "subnormal": dpv.Reals(0, Fraction(1, 2**1074)),
}


@pytest.mark.parametrize("column", (COLUMNS | EXTREME).values(), ids=(COLUMNS | EXTREME).keys())
def test_values_that_are_tried_are_of_the_column(column: Column) -> None:
    rng = np.random.default_rng(1)
    drawn = [column.value(lambda n: int(rng.integers(n)), (41, "x", 0.25)) for _ in range(200)]
    assert all(map(column.admits, [*drawn, *column.telling]))
    assert (None in drawn) is (None in column.telling) is column.missing
    assert column.size(column.values[0]) == 0
    for value in column.values:
        simpler = [each for each in column.simpler(value) if column.size(each) < column.size(value)]
        assert simpler or value == column.values[0] or column.size(value) <= 1
        assert all(map(column.holds, column.simpler(value)))


def test_the_edges_of_number_types_are_tried() -> None:
    values = dpv.Integers(-(2**40), 2**54).values
    assert {2**7 - 1, 2**24 + 1, 2**31 - 1, 2**31, 2**53 + 1, -(2**31) - 1} <= set(values)
    reals = dpv.Reals(-1, 1).values
    assert "-0.0" in map(repr, reals)
    assert 5e-324 in reals
    assert max(dpv.Integers(0, 5).values) == 5


def test_each_form_holds_the_same_rows(tmp_path: Any) -> None:
    assert table().made([ANN])[0] == ANN
    assert table().made([ANN])[0] is not ANN
    pandas, polars = table(make="pandas"), table(make="polars")
    assert pandas.made([ANN, BOB]).age.tolist() == [41, 7]
    assert polars.made([ANN, BOB]).to_dicts() == [ANN, BOB]
    assert table(make="pyarrow").made([ANN, BOB]).to_pylist() == [ANN, BOB]
    for made in (pandas, polars):  # the types never depend on the rows
        kinds = [list(map(str, made.made(rows).dtypes)) for rows in ([], [ANN], [BOB, BOB])]
        assert kinds[0] == kinds[1] == kinds[2]
    with table(make="csv").made([ANN, BOB]).open(newline="") as file:
        assert [row["note"] for row in csv.DictReader(file)] == ["", "x"]
    assert table(make=len).made([ANN, BOB]) == 2


def aged(frame: Any) -> None:
    frame["age"] += 1


def aged_in_place(frame: Any) -> None:
    frame[0, "age"] = 42
    frame.extend(frame)
    frame.drop_in_place("note")


@pytest.mark.parametrize(("make", "change"), [("pandas", aged), ("polars", aged_in_place)])
def test_a_form_can_be_changed_without_changing_the_next(make: Any, change: Any) -> None:
    maker = table(make=make).maker([ANN])
    change(maker())
    assert maker().equals(table(make=make).made([ANN]))


def test_a_function_that_keeps_what_it_loads_by_its_path_gets_each_data_set() -> None:
    load = functools.cache(Path.read_text)
    makers = [table(make="csv").maker(rows) for rows in ([ANN], [BOB])]
    paths, texts = zip(*((path := maker(), load(path)) for maker in makers * 2), strict=True)
    assert [texts.index(text) for text in texts] == [0, 1, 0, 1]
    assert [path.exists() for path in paths] == [False, False, False, True]


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda rows, columns: pa.table(rows, columns)])
def test_frames_with_two_columns_of_one_name_are_refused(frame: Any) -> None:
    with pytest.raises(ParameterError, match=r"a frame with 2 columns 'x' must be one whose"):
        rows_of(frame([[1, 2], [3, 4]], columns=["x", "x"]))


def test_matrices() -> None:
    ages = dpv.Table({"age": dpv.Integers(0, 120)}, make="numpy")
    assert ages.made([{"age": 41}]).tolist() == [41]
    assert ages.made([]).shape == (0,)
    assert ages.made([]).dtype == np.int64
    mixed = {"x": dpv.Reals(0, 1), "n": dpv.Integers(0, 5, missing=True), "b": dpv.Booleans()}
    made = dpv.Table(mixed, make="numpy").made([{"x": 0.5, "n": None, "b": True}])
    assert made.shape == (1, 3)
    np.testing.assert_array_equal(made, [[0.5, np.nan, 1.0]])


def test_texts_that_are_tried_have_as_many_words_items_and_digits_as_fit() -> None:
    texts = dpv.Text(7).values
    assert max(int(text) for text in texts if text.isdecimal()) == 10**7 - 1
    assert max(len(text.split()) for text in texts) == 4
    assert max(len(text.split(",")) for text in texts) == 4
    assert all(
        dpv.Text(length).holds(text) for length in (1, 2, 60) for text in dpv.Text(length).values
    )


@pytest.mark.parametrize("make", ["numpy", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_categories_beyond_64_bits_are_of_no_type(value: int, make: Any) -> None:
    with pytest.raises(ParameterError, match='Take make="dicts"'):
        dpv.Table({"c": dpv.Categories(0, value)}, make=make)
    ends = dpv.Table({"c": dpv.Categories(-(2**63), 2**63 - 1)}, make=make)
    ends.made([{"c": 2**63 - 1}])
