"""What can't be hashed, compared, shown or encoded is refused or audited, wherever it is given."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpverify as dpv
from dpverify.auditing.auditors import audit_auditor
from dpverify.auditing.outputs.journal import AuditJournal
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
    "truth": True,
    "number": 3,
    "negative": -1.5,
    "text": "0.05",
    "no text": "",
    "numpy number": np.int8(100),
    "no list": np.array(1),
    "frame": pd.DataFrame({"c": [1]}),
    "complex": 1j,
    "huge": 10**400,
    "nothing": (),
    "mapping": {"c": 1},
    "iterator": iter([1]),
    "decimal": Decimal("NaN"),
    "curve": dpv.Laplace(scale=1),
    "type": dpv.Laplace,
}
odd = pytest.mark.parametrize("value", ODD.values(), ids=ODD)


PAIR = Pair(name="a pair", record=[1], neighbour=[])


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


def counted(data: Any, rng: Any) -> float:
    return float(9 * len(data) + rng.laplace())


def audited(**words: Any) -> dpv.Report:
    usual: dict[str, Any] = {"epsilon": 1, "adjacency": dpv.AddRemove(), "of": "dataset"}
    usual |= {"pairs": [PAIR], "draws": 20, "kinds": ["black-box"], "workers": 1, "time_limit": 1}
    return dpv.audit(**{"subject": counted} | usual | words)


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


def adapted(**words: Any) -> dpv.Report:
    usual: dict[str, Any] = {"adjacency": dpv.AddRemove(), "of": "dataset", "pairs": [PAIR]}
    usual |= {"claim": dpv.ApproxDP(epsilon=1, delta=0), "function": counted}
    mechanism = dpv.adapt(**usual | words)
    return dpv.audit(mechanism, draws=20, kinds=["black-box"], workers=1, time_limit=1)


def of_table(**words: Any) -> dpv.Report:
    usual: dict[str, Any] = {"columns": {"c": dpv.Integers(0, 3)}, "rows": (0, 3)}
    return audited(domain=dpv.Table(**usual | words), pairs=None)


def scored(**words: Any) -> dpv.ScoreAudit:
    usual: dict[str, Any] = {"with_": np.arange(30.0) + 20, "without": np.arange(30.0)}
    return dpv.audit_scores(**{"delta": 0.1} | usual | words)


def accounted(**words: Any) -> Any:
    usual: dict[str, Any] = {"accountant": lambda sigma, delta: 3.0, "solves": "epsilon"}
    usual |= {
        "grid": {"sigma": [1, 2], "delta": ["1e-5"]},
        "curve": lambda sigma: dpv.Gaussian(sigma=sigma),
    }
    return dpv.audit_accountant(**usual | words)


def tried(**words: Any) -> Any:
    usual: dict[str, Any] = {"bound": lambda *_, **__: 0, "runs": 5}
    return audit_auditor(**usual | words)


def marked(**words: Any) -> dpv.Report:
    usual: dict[str, Any] = {"sensitivity": 1, "noise": dpv.Laplace(scale=1)}

    @dpv.primitive(**usual | words)
    def noisy(total: float, rng: Any) -> float:
        return total + float(rng.laplace())

    def release(data: Any, rng: Any) -> Any:
        return noisy(len(data), rng)

    return audited(subject=release, kinds=["frozen-outputs"])


CALLS: list[tuple[Callable[..., Any], Callable[..., Any], set[str]]] = [
    (audited, dpv.audit, {"progress"}),  # what that raises is the caller's
    (adapted, dpv.adapt, set()),
    (of_table, dpv.Table, set()),
    (scored, dpv.audit_scores, set()),
    (accounted, dpv.audit_accountant, {"curve"}),  # so is that
    (tried, audit_auditor, set()),
    (marked, dpv.primitive, set()),
    (
        lambda name: dpv.ensure_equal(name, 3),
        dpv.ensure_equal,
        {"value"},
    ),
    (lambda **words: dpv.Command(**{"args": ["program"]} | words), dpv.Command, set()),
    (AuditJournal, AuditJournal, set()),
    (lambda **words: dpv.Integers(**{"low": 0, "high": 1} | words), dpv.Integers, set()),
    (lambda **words: dpv.Reals(**{"low": 0, "high": 1} | words), dpv.Reals, set()),
    (lambda **words: dpv.Categories("a", **words), dpv.Categories, {"values"}),
    (dpv.Booleans, dpv.Booleans, set()),
    (
        lambda **words: dpv.Dates(**{"first": "2020-01-01", "last": "2020-02-01"} | words),
        dpv.Dates,
        set(),
    ),
    (dpv.Text, dpv.Text, set()),
]
SWEPT = [
    pytest.param(call, word, id=f"{function.__name__}-{word}")
    for call, function, others in CALLS
    for word in inspect.signature(function).parameters
    if word not in others
]


@pytest.mark.parametrize(("call", "word"), SWEPT)
def test_words_of_public_functions(call: Any, word: str) -> None:
    for value in ODD.values():
        told(lambda value=value: call(**{word: value}))


@pytest.mark.parametrize("value", ["no", 1, None, np.array([True])], ids=str)
def test_what_is_no_truth_value_is_not_taken_for_one(value: Any) -> None:
    for call, word in ((dpv.Text, "missing"), (dpv.Command, "seeded"), (dpv.Command, "many")):
        words: dict[str, Any] = {"args": ["program"]} if call is dpv.Command else {}
        with pytest.raises(dpv.ParameterError, match=f"{word}=.* must be True or False"):
            call(**words | {word: value})


@pytest.mark.parametrize("make", [int, lambda rows: rows[0]["c"]], ids=["always", "if empty"])
def test_a_form_that_cannot_be_made_is_said(make: Any) -> None:
    with pytest.raises(dpv.DPVerifyError, match=r"make of the table raised .* rows"):
        of_table(make=make)


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
