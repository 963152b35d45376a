"""Tables of named columns are the same wherever they lie, and what is no table says why."""

from __future__ import annotations

import datetime as dt
import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from dpverify.data.declared import declared
from dpverify.data.domain import dense
from dpverify.data.encoding import encoded, numbers
from dpverify.data.frame import Spelling
from dpverify.data.frames import frame_of, open_frame
from dpverify.data.loading import load_records, open_records
from dpverify.errors import RecordsError

PEOPLE = pa.table(
    {"name": ["Zoë", "Max", "Ann"], "age": [31, 60, 90], "smokes": [True, False, True]}
)
TEXT = "name,age,smokes\nZoë,31,true\nMax,60,false\nAnn,90,true\n"
COLUMNS = declared(
    {
        "age": {"type": "whole", "low": 0, "high": 120},
        "smokes": {"type": "boolean"},
        "name": {"type": "category", "categories": ["Ann", "Max", "Zoë"]},
    }
)
ROWS = [[31 / 120, 1, 0, 0, 0.5], [0.5, 0, 0, 0.5, 0], [0.75, 1, 0.5, 0, 0]]


def database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (name TEXT, age INTEGER, smokes INTEGER)")
        rows = [(row["name"], row["age"], row["smokes"]) for row in PEOPLE.to_pylist()]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        connection.commit()


def duck(path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(path))) as connection:
        connection.register("given", PEOPLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")


def folder(path: Path) -> None:
    path.mkdir()
    for number in range(2):
        part = PEOPLE.slice(2 * number, 2)
        parquet.write_table(part, path / f"part-{number}.parquet")


WRITERS: dict[str, Callable[[Path], Any]] = {
    "people.csv": lambda path: path.write_text(TEXT, encoding="utf-8"),
    "bom.csv": lambda path: path.write_text(TEXT, encoding="utf-8-sig"),
    "people.tsv": lambda path: path.write_text(TEXT.replace(",", "\t"), encoding="utf-8"),
    "people.csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode())),
    "people.parquet": lambda path: parquet.write_table(PEOPLE, path),
    "people.feather": lambda path: feather.write_feather(PEOPLE, str(path)),
    "people.arrow": lambda path: pl.DataFrame(PEOPLE).write_ipc(path),
    "people.sqlite": database,
    "people.duckdb": duck,
    "people": folder,
}


def rows_of(frame: Any) -> Any:
    return encoded(frame, COLUMNS, spelling=Spelling(), clip=False).whole()


@pytest.mark.parametrize("name", WRITERS)
def test_every_file_has_the_same_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    frame = open_frame(path)
    assert (frame.names, frame.rows) == (("name", "age", "smokes"), 3)
    for _ in range(2):
        assert rows_of(frame) == pytest.approx(np.array(ROWS))


def test_a_pattern_of_files(tmp_path: Path) -> None:
    folder(tmp_path / "people")
    assert rows_of(open_frame(tmp_path / "people" / "part-*.parquet")) == pytest.approx(
        np.array(ROWS)
    )
    assert open_frame(tmp_path / "people" / "part-1*").rows == 1


@pytest.mark.parametrize(
    "frame",
    [
        PEOPLE,
        pl.DataFrame(PEOPLE),
        pl.DataFrame(PEOPLE).with_columns(pl.col("name").cast(pl.Categorical)),
        PEOPLE.to_pandas().set_index(pd.Index([7, 8, 9])),
        PEOPLE.to_pandas().astype({"name": "category", "age": "Int64"}),
        PEOPLE.to_pandas().astype({"name": object}),
    ],
    ids=["arrow", "polars", "categorical", "pandas", "nullable", "object"],
)
def test_every_data_frame_has_the_same_rows(frame: Any) -> None:
    assert rows_of(frame_of(frame)) == pytest.approx(np.array(ROWS))


def test_categories_that_are_numbers() -> None:
    """Where some are missing, pandas has whole numbers as doubles."""
    frame = pd.DataFrame({"grade": [1, None, 3]})
    columns = declared(
        {"grade": {"type": "category", "categories": [1, 2, 3], "missing": "indicator"}}
    )
    rows = encoded(frame_of(frame), columns, spelling=Spelling(), clip=False).whole()
    assert (2 * rows).tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]


def test_a_matrix_has_the_declared_names() -> None:
    matrix = np.array([[30.0, 1.0], [60.0, 0.0]])
    frame = frame_of(matrix, ["age", "smokes"])
    assert encoded(frame, COLUMNS[:2], spelling=Spelling(), clip=False).whole().tolist() == [
        [0.25, 1],
        [0.5, 0],
    ]
    with pytest.raises(RecordsError, match=r"a column for each of the 1 declared"):
        frame_of(matrix, ["age"])


def test_sparse_matrices(tmp_path: Path) -> None:
    records = scipy.sparse.csr_array(np.eye(4))
    scipy.sparse.save_npz(tmp_path / "sets.npz", records)
    loaded = load_records(tmp_path / "sets.npz")
    assert scipy.sparse.issparse(loaded)
    assert np.array_equal(dense(loaded), dense(records))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", b"", "is empty"),
        ("a.tsv", b"a\tb\n", "no rows below its header"),
        ("a.tsv", b"a\tb", "no rows below its header"),
        ("a.tsv", b"a,b\n1,2\n", 'separated by commas. Declare data.separator = ","'),
        ("a.tsv", b"a\ta\n1\t2\n", "columns share a name: 'a'"),
        ("a.tsv", b"a\tb\n1\n1\t2\n1\t2\t3\n", r"2 rows (1, 3) don't have 2 values"),
        ("a.tsv", "a\n\u00e4\n".encode("latin-1"), 'data.encoding = "cp1252"'),
        ("a.tsv", "\u00e4\n1\n".encode("latin-1"), 'data.encoding = "cp1252"'),
        ("a.xlsx", b"PK", "must end with one of .csv, .tsv"),
        ("a.parquet", b"PAR1", "can't be read"),
        ("a.sqlite", b"nothing at all", "can't be read"),
        ("a.tsv", b"sep=;\na;b\n1;2\n", "begins with the line sep="),
        ("a.tsv", b"PAR1\x15\x04\n1\n", "is not a text file"),
        ("a.tsv", b"Report\n\na\tb\n1\t2\n", "remove lines above the header"),
    ],
)
def test_what_is_no_table(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordsError) as caught:
        open_frame(tmp_path / name)
    assert said in str(caught.value)


def test_no_file_and_no_table(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="no such file"):
        open_frame(tmp_path / "nothing.parquet")
    with pytest.raises(RecordsError, match="no file matches this pattern"):
        open_frame(tmp_path / "*.parquet")
    with pytest.raises(RecordsError, match=r"has no file, and several .* Write them as .parquet"):
        open_frame(tmp_path)
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(RecordsError, match=r"has files of .csv, and several"):
        open_frame(tmp_path)
    database(tmp_path / "x.sqlite")
    with pytest.raises(RecordsError, match="Did you mean people"):
        open_frame(tmp_path / "x.sqlite", table="peolpe")


def test_columns_of_several_types_are_named_and_not_shown() -> None:
    frame = pd.DataFrame({"a": [1, "SECRET"], "b": [1, 2]})
    with pytest.raises(RecordsError, match=r"isn't read: a \(object\)") as caught:
        frame_of(frame)
    assert "SECRET" not in str(caught.value)


def test_types_that_are_not_read_are_named(tmp_path: Path) -> None:
    """Lists, durations and the like may be dropped; what is missing as a whole has no type."""
    columns = {"name": [[1, 2]], "smokes": pa.array([None]), "age": [3]}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    frame = open_frame(tmp_path / "x.parquet")
    said = r"types that aren't read: name \(list<element: int64>\)\. Make numbers"
    with pytest.raises(RecordsError, match=said):
        encoded(frame, COLUMNS, spelling=Spelling(), clip=False)
    with pytest.raises(RecordsError, match=said):
        numbers(frame, Spelling())
    assert encoded(frame, COLUMNS[:2], dropped=["name"], spelling=Spelling(), clip=False).shape == (
        1,
        2,
    )


@pytest.mark.parametrize(
    "data",
    [pd.Series([1.0]), pl.Series([1.0]), pl.LazyFrame({"a": [1.0]}), [1]],
    ids=["pandas", "polars", "lazy", "list"],
)
def test_what_is_no_frame_is_told_how_to_be_one(data: Any) -> None:
    with pytest.raises(
        RecordsError, match=r"is not a table.*: give a path, .* to_frame\(\) a series"
    ):
        frame_of(data)


def test_patterns_may_name_folders(tmp_path: Path) -> None:
    for folder in ("2023-01", "2023-02", "other"):
        (tmp_path / folder).mkdir()
        parquet.write_table(pa.table({"c": [1]}), tmp_path / folder / "a.parquet")
    assert open_frame(tmp_path / "2023-*" / "*.parquet").rows == 2


def test_columns_must_be_declared_or_dropped() -> None:
    frame = frame_of(PEOPLE)
    with pytest.raises(RecordsError, match="that aren't declared: name, smokes"):
        encoded(frame, COLUMNS[:1], spelling=Spelling(), clip=False)
    with pytest.raises(RecordsError, match="has no column nane; columns that aren't declared: na"):
        encoded(frame, COLUMNS[:1], dropped=["nane"], spelling=Spelling(), clip=False)
    with pytest.raises(RecordsError, match=r"has no column nane\. Did you mean name"):
        encoded(frame, COLUMNS, dropped=["nane"], spelling=Spelling(), clip=False)
    table = encoded(frame, COLUMNS[:1], dropped=["name", "smokes"], spelling=Spelling(), clip=False)
    assert table.shape == (3, 1)


@pytest.mark.parametrize("name", ["people.csv", "people.tsv"])
def test_the_numbers_of_rows_are_no_attribute(tmp_path: Path, name: str) -> None:
    separator = "," if name.endswith(".csv") else "\t"
    pd.DataFrame({"age": [1, 2]}).to_csv(tmp_path / name, sep=separator)
    with pytest.raises(RecordsError, match="looks like the numbers of the rows"):
        open_records(tmp_path / name)


def test_tables_of_numbers_need_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": [1, 2], "b": [0.5, 0.25]}), path)
    assert open_records(path).whole().tolist() == [[1, 0.5], [2, 0.25]]
    parquet.write_table(pa.table({"a": ["SECRET", "2"], "b": [0.5, None]}), path)
    with pytest.raises(RecordsError, match="2 columns are not of numbers: a, b") as caught:
        open_records(path).whole()
    notes = "\n".join(caught.value.__notes__)
    assert "a: 1 not numbers (row 1)" in notes
    assert "dpverify init" in notes
    assert "SECRET" not in notes


NUMBERS = ["20000000000", 1.5, Decimal("2.00")]


def coded(frame: Any, categories: list[Any]) -> Any:
    column = {"type": "category", "categories": categories, "missing": "indicator"}
    rows = encoded(frame, declared({"c": column}), spelling=Spelling(), clip=True).whole()
    return rows[:, :-1]


@pytest.mark.parametrize("other", [1.5, 7.25, 1e20, np.inf, Decimal("0.125"), Decimal(10) ** 30])
def test_a_number_is_a_category_by_itself(other: Any) -> None:
    """Whole doubles were read as such only where all of a block were; decimals by the longest."""
    kind = type(other)
    frame = frame_of(pd.DataFrame({"c": [kind(20_000_000_000), kind("2.0"), other]}))
    assert coded(frame, NUMBERS)[:2].tolist() == [[0.5, 0, 0], [0, 0, 0.5]]


EAST = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    "values",
    [
        ["f ", b"m"],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC)],
        [dt.datetime(2020, 1, 1, 23, tzinfo=EAST), dt.datetime(2020, 1, 1, 23, tzinfo=dt.UTC)],
        [2**64, 1],
        [np.datetime64("2020-01-01"), np.datetime64("2020-01-01")],
        [np.uint64(2**64 - 1), 1.5],
        [np.float32(0.1), 0.5],
    ],
    ids=["bytes", "times", "zones", "beyond", "numpy", "unsigned", "single"],
)
def test_no_row_decides_how_another_is_read(tmp_path: Path, values: list[Any]) -> None:
    with pytest.raises(RecordsError, match=r"several types, .*: c \(object\)"):
        frame_of(pd.DataFrame({"c": pd.Series(values, dtype=object)}))


@given(st.lists(st.decimals(0, 1, places=12), min_size=1, max_size=5), st.integers(1, 34))
def test_a_decimal_is_the_double_nearest_to_it(values: list[Decimal], digits: int) -> None:
    """It was that of its column's type, which the digits of any row decide."""
    values = [value.normalize() for value in values]
    column = pd.Series([*values, Decimal(10) ** -digits], dtype=object)
    rows = numbers(frame_of(pd.DataFrame({"c": column})), Spelling()).whole()
    assert rows[:-1, 0].tolist() == [float(value) for value in values]


def test_values_of_a_database_are_of_one_type(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE a (c)")
        connection.executemany("INSERT INTO a VALUES (?)", [(20_000_000_000,), (7.5,), (None,)])
        connection.commit()
        assert coded(open_frame(path), NUMBERS)[0].tolist() == [0.5, 0, 0]
        connection.executemany("INSERT INTO a VALUES (?)", [("f",), (b"m",)])
        connection.commit()
    with pytest.raises(RecordsError, match="values of several types: c"):
        open_frame(path)


def test_a_missing_value_of_one_column_is_a_row(tmp_path: Path) -> None:
    """It is an empty line, and the number of rows is public."""
    (tmp_path / "a.tsv").write_text("c\nf\n\nm\n")
    assert coded(open_frame(tmp_path / "a.tsv"), ["f", ""]).shape == (3, 2)
    (tmp_path / "a.csv").write_text("5\n\n7\n")
    with pytest.raises(RecordsError, match=r"line 2, column 1: the value is missing"):
        load_records(tmp_path / "a.csv")


def test_the_line_of_names_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("\n\nc\td\nf\tm\n")
    assert open_frame(tmp_path / "a.tsv").rows == 1
    (tmp_path / "a.tsv").write_text("\nc\nf\n")
    with pytest.raises(RecordsError, match="header must be the first"):
        open_frame(tmp_path / "a.tsv")


@pytest.mark.parametrize("second", [{"c": [2.5]}, {"d": [2]}, {"c": [2], "d": [2]}, {"c": ["q"]}])
def test_files_of_a_folder_have_the_same_columns(tmp_path: Path, second: Any) -> None:
    parquet.write_table(pa.table({"c": [1]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"c": [2]}), tmp_path / "_2.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    assert open_frame(tmp_path).rows == 2
    parquet.write_table(pa.table(second), tmp_path / "3.parquet")
    with pytest.raises(RecordsError, match=r"3\.parquet has other columns than 1\.parquet"):
        open_frame(tmp_path)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame({1: [1], "1": [2]}), pa.table([pa.array([1]), pa.array([2])], names=["1", "1"])],
    ids=["pandas", "arrow"],
)
def test_columns_of_a_data_frame_have_names_of_their_own(frame: Any) -> None:
    with pytest.raises(RecordsError, match="columns share a name: '1'"):
        frame_of(frame)


LINES = ['1,"x",a', "2,y,b", '3,"z",c', "4,w,d"]


@pytest.mark.parametrize("spelling", [Spelling(), Spelling(encoding="cp1252")])
@pytest.mark.parametrize("line", [0, 1, 2, 3])
@pytest.mark.parametrize("more", [0, 200_000])
def test_a_quote_that_is_not_closed_takes_no_rows(
    tmp_path: Path, line: int, spelling: Spelling, more: int
) -> None:
    rows = [*LINES[:line], f'9,"Ann,{line}', *LINES[line:], *["5,v,e"] * more]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["n,name,kind", *rows, ""]))
    with pytest.raises(RecordsError, match=f"opened in line {line + 2} isn't closed") as refused:
        open_frame(path, spelling=spelling)
    assert "Ann" not in str(refused.value)


def test_a_value_of_several_lines_is_a_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b'n,said\n1,"one\ntwo, ""three"""\n2,5" pipe\n3,""\n'))
    frame = open_frame(path)
    said = [text for batch in frame.read(["said"]) for text in batch.columns[0].to_pylist()]
    assert (frame.rows, said) == (3, ['one\ntwo, "three"', '5" pipe', ""])
