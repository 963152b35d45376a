"""What a table holds beside its parts: what it says, and not how it lies in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
        (lambda: pa.array(["x", "y"]), lambda: pa.array(["w", "x", "y"])[1:]),
        (lambda: _told(None), lambda: _told("secret")),
        (lambda: pd.DataFrame(index=["x"]), lambda: pd.DataFrame(index=pd.Index(["x"], name="n"))),
    ],
    ids=["levels", "Enum", "what was cut off", "attrs", "name of the index"],
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
