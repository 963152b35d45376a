"""What can't be hashed, compared, shown or encoded is refused or audited, wherever it is given."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpverify as dpv
from dpverify.data.rows import row_key
from dpverify.privacy import Pair
from tests.helpers.profiles import day_and_night


class Unhashable:
    """Equal to anything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


class Incomparable:
    """Raises when it is compared."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


class Unshowable:
    """Raises when it is shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


def endless() -> list[Any]:
    """A list that holds itself."""
    held: list[Any] = []
    held.append(held)
    return held


ODD = {
    "half a character": "\ud800",
    "5,000 digits": 10**5000,
    "unhashable": Unhashable(),
    "incomparable": Incomparable(),
    "unshowable": Unshowable(),
    "endless": endless(),
    "missing": pd.NA,
    "no time": np.datetime64("NaT"),
    "function": lambda: 1,
    "class": Unhashable,
    "array": np.arange(3),
    "bytes": b"\xff",
    "NaN": float("nan"),
}
WORDS = ["epsilon", "delta", "alpha", "draws", "seed", "workers", "time_limit", "adjacency"]
WORDS += ["domain", "of", "attributes", "rows", "many", "features", "pairs", "kinds", "without"]
WORDS += ["search"]
odd = pytest.mark.parametrize("value", ODD.values(), ids=ODD)


class Anything:
    """Relates anything."""

    unit = "anything"

    def relates(self, first: Any, second: Any) -> bool:
        return True


def told(call: Any) -> None:
    """Call it: it gives something that can be printed, or refuses in words that can."""
    try:
        given = call()
    except dpv.DPVerifyError as error:
        given = error
    str(given).encode()
    if isinstance(given, dpv.Report):
        json.dumps(given.to_dict())


def audited(**words: Any) -> dpv.Report:
    pair = Pair(name="a pair", record=[1], neighbour=[])
    usual: dict[str, Any] = {"epsilon": 1, "adjacency": dpv.AddRemove(), "of": "dataset"}
    usual |= {"pairs": [pair], "draws": 20, "kinds": ["black-box"], "workers": 1, "time_limit": 1}
    return dpv.audit(lambda data, rng: 9 * len(data) + rng.laplace(), **usual | words)


@odd
@pytest.mark.parametrize("design", ["independent", "one-run"])
def test_names_of_runs(value: Any, design: Any) -> None:
    scores = np.arange(20.0)
    runs = [value] * 20
    told(lambda: dpv.audit_scores(scores, scores, delta=0.1, design=design, runs=(runs, runs)))


@odd
def test_columns(value: Any) -> None:
    told(lambda: dpv.Categories("a", value).rule)
    told(lambda: dpv.Integers(0, value))
    for column in (dpv.Categories("a"), dpv.Integers(0, 1), dpv.Reals(0, 1), dpv.Text()):
        told(lambda column=column: dpv.Table({"c": column}).admit([{"c": value}]))
    for words in ({"rows": value}, {"make": value}):
        told(lambda words=words: dpv.Table({"c": dpv.Integers(0, 1)}, **words).rows)


@pytest.mark.parametrize("word", WORDS)
def test_words_of_an_audit(word: str) -> None:
    for value in ODD.values():
        told(lambda value=value: audited(**{word: value}))


@odd
@pytest.mark.parametrize("adjacency", day_and_night(Anything(), dpv.AddRemove()))
def test_data_and_names_of_a_pair(value: Any, adjacency: Any) -> None:
    sides = [([1, value], [1]), ([{"a": value}, {"a": 1}], [{"a": 1}])]
    for record, neighbour in sides:
        pair = Pair(name="a pair", record=record, neighbour=neighbour)
        told(lambda pair=pair: audited(adjacency=adjacency, pairs=[pair]))
    named = Pair(name=value, record=[1], neighbour=[])
    told(lambda: audited(adjacency=adjacency, pairs=[named]))


def test_times_of_several_units_are_different_rows() -> None:
    units = [row_key(np.datetime64(5, unit)) for unit in ("ns", "us", "s")]
    assert len({*units, row_key(5)}) == 4
    assert row_key(np.datetime64("NaT")) != row_key(None)


@pytest.mark.parametrize("delta", ["0." + "9" * 40, "1e-9000", "0." + "9" * 9000])
def test_a_delta_that_no_double_or_no_person_reads(delta: str) -> None:
    with pytest.raises(dpv.ParameterError, match=r"below 1 as a double|at most 4,000 digits"):
        audited(delta=delta)
