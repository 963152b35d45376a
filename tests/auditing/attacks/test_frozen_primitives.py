"""Declarations of primitives: whole numbers of any size, tables, and calls in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

import dpverify as dpv
from dpverify.privacy import Pair


@dpv.primitive(sensitivity=1, noise=dpv.ApproxDP(epsilon=1))
def noisy(count: Any, rng: np.random.Generator) -> Any:
    keep = 1 - np.exp(-1)
    noise = [int(rng.geometric(keep)) - int(rng.geometric(keep)) for _ in range(np.size(count))]
    return count + noise[0] if np.ndim(count) == 0 else [*map(sum, zip(count, noise, strict=True))]


def found(function: Callable[..., Any], record: Any = (), neighbour: Any = (1,)) -> Any:
    pair = Pair(name="one row more", record=list(record), neighbour=list(neighbour))
    words: dict[str, Any] = {"epsilon": 1, "adjacency": dpv.AddRemove(), "pairs": [pair]}
    report = dpv.audit(function, kinds=["frozen-outputs"], draws=200, workers=1, **words)
    return report.findings[0]


@pytest.mark.parametrize("base", [0, 10**12, 2**53, 2**62, -(2**62), 2**63, 10**400])
def test_whole_numbers_are_measured_exactly(base: int) -> None:
    for step, verdict in ((1, "no_violation_found"), (2, "violation")):
        numbers: list[Callable[[int], Any]] = [int, lambda number: [number, 3]]
        if abs(base) < 2**63:
            numbers += [np.int64, lambda number: np.array([number, 3])]
        for made in numbers:
            finding = found(lambda rows, rng: noisy(made(base + step * len(rows)), rng))  # noqa: B023
            assert finding.verdict == verdict


SAID: list[Callable[[int], Any]] = [
    lambda size: pandas.DataFrame({"name": [2**60 + size], "share": [0.5]}),
    lambda size: pandas.DataFrame({"share": [0.5]}, index=[size]),
    lambda size: np.array([2**60 + size]),
    lambda size: np.ma.array([1, 2], mask=[False, size > 0]),
    lambda size: pandas.Series([1], name=f"{size} rows"),
    lambda size: pandas.Series([1], index=[size]),
    lambda size: pandas.DataFrame({"a": pandas.Categorical(["x"], ["x", f"{size} rows"])}),
    lambda size: pyarrow.table({f"{size} rows": [1]}),
]


@pytest.mark.parametrize("said", SAID)
def test_tables_that_must_be_equal_are_read_exactly(said: Callable[[int], Any]) -> None:
    def function(rows: Any, rng: Any, kept: bool) -> Any:
        dpv.ensure_equal("table", said(0 if kept else len(rows)))
        return noisy(len(rows), rng)

    assert found(lambda rows, rng: function(rows, rng, False)).verdict == "violation"
    assert found(lambda rows, rng: function(rows, rng, True)).verdict == "no_violation_found"


def by_appearance(rows: Any, rng: Any) -> Any:
    """Every group's count by itself, in the order of the rows; told in the groups' order."""
    groups = dict.fromkeys([*rows, *"abc"])
    return sorted((group, noisy(rows.count(group), rng)) for group in groups)


def weighed(rows: Any, rng: Any) -> Any:
    """The same, but a row counts three times in the second group."""
    return [(group, noisy(rows.count(group) * (1 + 2 * (group == "b")), rng)) for group in "abc"]


def test_an_order_that_depends_on_the_data_disproves_no_declaration() -> None:
    finding = found(by_appearance, "abbbbb", "abbbbbc")
    assert finding.verdict == "no_violation_found"
    finding = found(by_appearance, "abbbbb", "babbbbb")
    assert finding.verdict == "inconclusive"
    assert "calls of one primitive in an order that may depend on the data" in finding.statement
    assert found(weighed, "ab", "abb").verdict == "violation"


def test_whoever_shows_the_order_is_still_found() -> None:
    def turned(rows: Any, rng: Any) -> Any:
        return [noisy(count, rng) for count in ((99, 1) if len(rows) else (1, 99))]

    finding = found(turned)
    assert finding.verdict == "violation"
    assert finding.epsilon_lower > 1
