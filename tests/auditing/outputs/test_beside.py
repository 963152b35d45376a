"""What a table holds beside its parts: what it says, and not how it lies in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpverify.auditing.outputs.values import value_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

EQUAL: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "pandas, blocks": (
        lambda: pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        lambda: pd.DataFrame({"a": [1.0, 2.0]}).assign(b=[3.0, 4.0]),
    ),
    "pandas, a cross table": (
        lambda: _table(["Bath", "York"]),
        lambda: _table(["Bath", "Hull", "York"]) * 1.0,
    ),
    "polars, chunks": (
        lambda: pl.DataFrame({"a": [2.0, 1.0], "b": ["x", "y"]}),
        lambda: pl.concat(
            [pl.DataFrame({"a": [2.0], "b": ["x"]}), pl.DataFrame({"a": [1.0], "b": ["y"]})],
            rechunk=False,
        ),
    ),
    "polars, sorted": (
        lambda: pl.Series("a", [1.0, 2.0]),
        lambda: pl.Series("a", [1.0, 2.0]).sort(),
    ),
    "pyarrow, chunks": (
        lambda: pa.table({"a": [1.0, 2.0]}),
        lambda: pa.concat_tables([pa.table({"a": [1.0]}), pa.table({"a": [2.0]})]),
    ),
    "pyarrow, a slice": (
        lambda: pa.array(["x", "y", None]),
        lambda: pa.array(["w", "x", "y", None, "z"])[1:4],
    ),
    "pyarrow, slices of chunks": (
        lambda: pa.chunked_array([[1.0, 2.0]]),
        lambda: pa.chunked_array([pa.array([0.0, 1.0])[1:], pa.array([2.0, 3.0])[:1]]),
    ),
    "pyarrow, a slice of a table": (
        lambda: pa.table({"a": [1.0, 2.0]}),
        lambda: pa.table({"a": [0.0, 1.0, 2.0]})[1:],
    ),
    "pyarrow, under a null": (
        lambda: pa.array([1.0, None]),
        lambda: pa.array(np.array([1.0, 7.0]), mask=np.array([False, True])),
    ),
    "pandas, a slice of Arrow": (
        lambda: pd.Series(["x", "y"], dtype="string[pyarrow]"),
        lambda: pd.Series(["w", "x", "y"], dtype="string[pyarrow]")[1:].reset_index(drop=True),
    ),
    "polars, a slice": (lambda: pl.Series(["x"]), lambda: pl.Series(["w", "x", "y"])[1:2]),
    "numpy, by columns": (lambda: np.eye(2), lambda: np.asfortranarray(np.eye(2))),
    "numpy, by columns within": (lambda: {0: np.eye(2)}, lambda: {0: np.eye(4)[::2, ::2].T}),
    "numpy, texts by columns": (
        lambda: np.array([["a", "b"]] * 2, dtype=object),
        lambda: np.asfortranarray(np.array([["a", "b"]] * 2, dtype=object)),
    ),
    "numpy, a mask by columns": (
        lambda: np.ma.array(np.eye(2), mask=[[True, False], [False, True]]),
        lambda: np.ma.array(np.asfortranarray(np.eye(2)), mask=[[True, False], [False, True]]),
    ),
}


def _table(cities: list[str]) -> Any:
    people = pd.DataFrame({"city": cities, "old": False})
    counts = pd.crosstab(people.city, people.old)
    return counts.reindex(index=["Bath", "Hull", "York"], columns=[False, True], fill_value=0) * 0.0


@pytest.mark.parametrize("name", EQUAL)
def test_where_a_table_lies_in_memory_is_no_part_of_it(name: str) -> None:
    one, other = (value_of(make()) for make in EQUAL[name])
    assert one.structure == other.structure
    assert one.leaves == other.leaves


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: _levels(["x", "y"]), lambda: _levels(["x", "y", "z"])),
        (
            lambda: pl.Series(["x"], dtype=pl.Enum("xy")),
            lambda: pl.Series(["x"], dtype=pl.Enum("xyz")),
        ),
        (lambda: _told(None), lambda: _told("secret")),
        (lambda: pd.DataFrame(index=["x"]), lambda: pd.DataFrame(index=pd.Index(["x"], name="n"))),
    ],
    ids=["levels", "Enum", "attrs", "name of the index"],
)
def test_what_a_table_holds_beside_its_parts_is_seen(
    one: Callable[[], Any], other: Callable[[], Any]
) -> None:
    assert value_of(one()) != value_of(other())


def _levels(categories: list[str]) -> Any:
    return pd.DataFrame({"a": pd.Categorical(["x"], categories=categories)})


def _told(what: str | None) -> Any:
    frame = pd.DataFrame({"a": [1.0]})
    frame.attrs = {"told": what}
    return frame
