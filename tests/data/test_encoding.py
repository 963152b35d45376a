"""Columns as attributes: a cell that changes moves its record by at most 1."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.data.adjacency import Attribute, L1Ball
from dpverify.data.declared import cell, declared, synthetic_rows
from dpverify.data.encoding import encoded
from dpverify.data.frame import Spelling
from dpverify.data.frames import frame_of
from dpverify.errors import ConfigurationError, RecordsError
from dpverify.sampling.words import ReplayableWords
from tests.helpers.profiles import thinned

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "whole", "low": 0, "high": 120, "unit": "years"},
    "weight": {"type": "real", "low": 0.1, "high": 249.3},
    "sex": {"type": "category", "categories": ["f", "m", "x"]},
    "born": {"type": "date", "first": "1900-01-01", "last": "2024-12-31"},
    "smokes": {"type": "boolean"},
    "note": {"type": "text", "buckets": 5, "ngrams": 2, "most": 7},
    "words": {"type": "text", "words": ["cough", "fever"], "most": 3},
}
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "age": st.integers(0, 120),
    "weight": st.floats(0.1, 249.3),
    "sex": st.sampled_from(["f", "m", "x"]),
    "born": st.dates(),
    "smokes": st.booleans(),
    "note": st.text(max_size=30),
    "words": st.text("cough fever", max_size=40),
}


KINDS = {
    "age": pa.int64(),
    "weight": pa.float64(),
    "born": pa.date32(),
    "smokes": pa.bool_(),
    **dict.fromkeys(("sex", "note", "words"), pa.string()),
}


def encode(columns: Mapping[str, Any], rows: Mapping[str, Any], *, clip: bool = False) -> Any:
    frame = frame_of(pa.table(dict(rows)))
    return encoded(frame, declared(columns), spelling=Spelling(), clip=clip).whole()


def distance(first: Any, second: Any) -> Fraction:
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return sum((abs(Fraction(x) - Fraction(y)) for x, y in pairs), Fraction(0))


CASES = [(name, missing) for missing in ("indicator", "refuse") for name in COLUMNS]


@pytest.mark.parametrize("case", thinned(CASES, 5), ids=str)
@given(data=st.data())
def test_a_cell_moves_its_record_by_at_most_one(case: tuple[str, str], data: st.DataObject) -> None:
    """In exact arithmetic, between the doubles that are stored; also of what is clipped."""
    name, missing = case
    values = VALUES[name] if missing == "refuse" else st.none() | VALUES[name]
    pair = [data.draw(values), data.draw(values)]
    column = COLUMNS[name] | {"missing": missing}
    rows = encode({name: column}, {name: pa.array(pair, KINDS[name])}, clip=True)
    assert np.all((rows >= 0) & (rows <= 1))
    assert distance(*rows) <= 1
    unit = cell(declared({name: column}))
    assert unit.relates(rows[:1], rows[1:])


def test_the_bound_is_reached_by_every_kind() -> None:
    """So that it is no larger than it has to be."""
    worst = {
        "age": [0, 120],
        "weight": [0.1, 249.3],
        "sex": ["f", "m"],
        "smokes": [False, True],
        "words": ["cough cough cough", "fever fever fever"],
    }
    for name, pair in worst.items():
        rows = encode({name: COLUMNS[name]}, {name: pair})
        assert distance(*rows) == pytest.approx(1, abs=1e-5), name
    rows = encode({"age": COLUMNS["age"] | {"missing": "indicator"}}, {"age": [0, None]})
    assert distance(*rows) == 1


def test_one_attribute_a_column_protects_an_attribute_and_else_a_ball() -> None:
    single = {name: COLUMNS[name] for name in ("age", "born", "smokes")}
    assert cell(declared(single)) == Attribute(1)
    assert cell(declared(COLUMNS)) == L1Ball(1)


def test_full_heights_would_break_the_unit() -> None:
    """The planted bug: a category as ones and zeros moves by 2, which the unit doesn't relate."""
    rows = 2 * encode({"sex": COLUMNS["sex"]}, {"sex": ["f", "m"]})
    assert not L1Ball(1).relates(rows[:1], rows[1:])


def test_values_by_type() -> None:
    rows = {
        "age": ["30", " 60 ", "+90", "", "1e1"],
        "sex": ["f", "m", "x", "f", "f"],
        "smokes": ["yes", "NO", "1", "false", "t"],
        "born": ["1900-01-01", "2024-12-31", "1962-07-02 08:00", "1900-01-01", "1900-01-01"],
    }
    columns: dict[str, Any] = {name: dict(COLUMNS[name]) for name in rows}
    columns["age"]["missing"] = {"value": 12}
    found = encode(columns, rows)
    assert found[:, 0].tolist() == [0.25, 0.5, 0.75, 0.1, 10 / 120]
    assert found[:, 1:4].tolist() == np.eye(3)[[0, 1, 2, 0, 0]].__mul__(0.5).tolist()
    assert found[:, 4].tolist() == [1, 0, 1, 0, 1]
    assert found[[0, 1], 5].tolist() == [0, 1]


def test_texts_count_their_first_tokens() -> None:
    (row,) = encode({"words": COLUMNS["words"]}, {"words": ["Fever, cough; fever! fever"]})
    assert row == pytest.approx([1 / 6, 2 / 6], abs=1e-5)  # the fourth is beyond `most`


def test_spellings() -> None:
    frame = frame_of(pa.table({"bill": ["1.234,5", "12,0", "7"], "day": ["1.2.2020"] * 3}))
    columns = declared(
        {
            "bill": {"type": "real", "low": 0, "high": 2469},
            "day": {"type": "date", "first": "2020-01-01", "last": "2020-03-03"},
        }
    )
    spelling = Spelling(decimal=",", thousands=".", date="%d.%m.%Y")
    rows = encoded(frame, columns, spelling=spelling, clip=False).whole()
    assert rows[:, 0] == pytest.approx([0.5, 12 / 2469, 7 / 2469])
    assert rows[0, 1] == 0.5
    english = encoded(frame, columns, spelling=Spelling(), clip=False)
    with pytest.raises(RecordsError, match="bill: 2 not numbers") as caught:
        english.whole()
    said = "\n".join(caught.value.__notes__)
    assert "day: 3 not dates (rows 1, 2, 3)" in said
    assert "data.dates" in said
    assert "data.decimal" in said
    assert "true" not in said


def test_words_that_are_no_truth_values_are_told_which_are() -> None:
    with pytest.raises(RecordsError) as caught:
        encode({"smokes": {"type": "boolean"}}, {"smokes": ["ja", "nein", "yes", "0"]})
    said = "\n".join(caught.value.__notes__)
    assert "smokes: 2 not true or false (rows 1, 2)" in said
    assert "true, t, yes, y, 1" in said
    assert 'type = "category"' in said


def test_all_that_is_wrong_is_in_one_error_without_a_value() -> None:
    rows = {
        "age": ["41", "", "4711", "x17", "30.5"],
        "sex": ["f", "m", "SECRET", "f", "f"],
        "born": ["1990-02-30", "1990-02-28", "0815", "", "1990-01-01"],
    }
    with pytest.raises(RecordsError) as caught:
        encode({name: COLUMNS[name] for name in rows}, rows)
    said = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "3 columns are not as declared: age, sex, born" in said
    assert (
        "age: 2 not whole numbers (rows 4, 5); 1 outside the range (row 3); 1 missing (row 2)"
        in said
    )
    assert "sex: 1 outside the categories (row 3)" in said
    assert "born: 2 not dates (rows 1, 3); 1 missing (row 4)" in said
    assert 'missing = "indicator"' in said
    assert not any(secret in said for secret in ("4711", "x17", "SECRET", "0815", "02-30"))


def test_clipping_moves_to_the_end_and_an_unknown_category_to_none() -> None:
    rows = encode(
        {"age": COLUMNS["age"], "sex": COLUMNS["sex"]},
        {"age": [-5, 500, 60], "sex": ["f", "?", "m"]},
        clip=True,
    )
    assert rows[:, 0].tolist() == [0, 1, 0.5]
    assert rows[1, 1:].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"age": {"type": "wohle"}}, "data.columns.age.type=wohle is unknown. Did you mean whole?"),
        ({"age": {"type": "whole", "low": 3}}, "data.columns.age.high is missing"),
        ({"age": {"type": "real", "low": 3, "high": 1}}, "low = 3 must be below high = 1"),
        ({"age": {"type": "whole", "low": 0.5, "high": 1}}, "must be whole"),
        ({"a": {"type": "boolean", "lo": 1}}, "data.columns.a.lo isn't for a column of type bool"),
        ({"a": {"type": "category", "categories": ["f", "f"]}}, "all different"),
        ({"a": {"type": "text"}}, "needs either words or buckets"),
        ({"a": {"type": "date", "first": "2.1.2020", "last": "2021-01-01"}}, "2020-01-31"),
        ({"a": {"type": "boolean", "missing": "drop"}}, 'must be "refuse", "indicator" or'),
        ({"a": {"drop": True}}, "leaves no column"),
        ({"a": 3}, "must be the settings of a column"),
        ({"a": dpv.Text()}, "doesn't say how it becomes attributes"),
    ],
)
def test_what_is_no_declaration(columns: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        declared(columns)
    assert said in str(caught.value)


def test_a_declared_stand_in_must_be_a_value() -> None:
    columns = {"sex": COLUMNS["sex"] | {"missing": {"value": "?"}}}
    with pytest.raises(ConfigurationError, match="is none of one of f, m, x"):
        encode(columns, {"sex": ["f"]})


def test_columns_of_python_and_of_toml_are_the_same() -> None:
    python = declared(
        {
            "age": dpv.Integers(0, 120),
            "sex": dpv.Categories("f", "m", missing=True),
            "born": dpv.Dates("1900-01-01", "2000-01-01"),
            "smokes": dpv.Booleans(),
            "weight": dpv.Reals("0.5", 250),
        }
    )
    toml = declared(
        {
            "age": {"type": "whole", "low": 0, "high": 120},
            "sex": {"type": "category", "categories": ["f", "m"], "missing": "indicator"},
            "born": {"type": "date", "first": "1900-01-01", "last": "2000-01-01"},
            "smokes": {"type": "boolean"},
            "weight": {"type": "real", "low": Fraction(1, 2), "high": 250},
        }
    )
    assert python == toml


def test_synthetic_rows_are_records_of_the_columns() -> None:
    columns = declared(COLUMNS)
    widths = np.cumsum([0, *(len(column.attributes) for column in columns)])
    for record, other in synthetic_rows(columns, ReplayableWords(1)):
        for row in (record[0], other[0]):
            assert np.all((row >= 0) & (row <= 1))
            for column, start, stop in zip(columns, widths, widths[1:], strict=False):
                assert stop - start == 1 or row[start:stop].sum() <= 0.5, column.name
