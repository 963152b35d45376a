"""Constants of a mechanism's code, and bugs that only a constant shows."""

from __future__ import annotations

import functools
import math
from datetime import date
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.constants import constants_of
from dpverify.auditing.targets.pairs import space_of

LIMIT = 77
DAYS = {"first": date(2024, 2, 29)}
PEOPLE = dpv.Table({"age": dpv.Integers(0, 120), "name": dpv.Text()}, rows=(0, 20))


def helper(x: Any) -> bool:
    return bool(x == 1234)


class Object:
    """It has text that documents it."""

    def release(self, records: Any, *, rng: Any) -> Any:
        return records + 31 if helper(records) else LIMIT


def test_constants_are_found_wherever_the_code_holds_them() -> None:
    inside = 8.5

    def function(x: Any, cap: int = 99, *, name: str = "given") -> Any:
        """This text says what it does."""

        def inner(y: Any) -> bool:
            return y in (3, "three") or y == inside

        return inner(x) or helper(x) or x > LIMIT or DAYS["first"] or math.tau

    found = constants_of(function)
    assert {3, "three", 8.5, 99, "given", 1234, 77, date(2024, 2, 29)} <= set(found)
    assert not any(isinstance(value, str) and "says" in value for value in found)
    assert math.tau not in found  # of another module
    assert {7, 1234} <= set(constants_of(functools.partial(lambda a, b: helper(a), 7)))
    assert {31, 1234, 77} <= set(constants_of(Object()))
    assert constants_of(len) == ()


def test_what_refers_to_itself_ends() -> None:
    def function(n: int) -> int:
        return 1 if n < 5 else function(n - 1)

    known: Any = [5]
    known.append(known)
    assert set(constants_of(functools.partial(function, known))) >= {1, 5}


def not_for_forty_two(rows: Any, rng: np.random.Generator) -> float:
    return float(sum(10 if row["age"] == 42 else 1 for row in rows)) + rng.laplace()


def not_for_a_name(rows: Any, rng: np.random.Generator) -> float:
    return len(rows) + rng.laplace(scale=0.1 if any(r["name"] == "Ann" for r in rows) else 1)


def count(rows: Any, rng: np.random.Generator) -> float:
    wanted = [row for row in rows if row["age"] in (42, 43) or row["name"] == "Ann"]
    return len(wanted) + rng.laplace()


def test_constants_are_candidates() -> None:
    for bug, name, value in (
        (not_for_forty_two, "age", 42),
        (not_for_a_name, "name", "Ann"),
    ):
        mechanism = dpv.adapt(
            bug, adjacency=dpv.AddRemove(), claim=dpv.ApproxDP(epsilon=1), domain=PEOPLE
        )
        pairs = space_of(mechanism, ()).extremes()
        assert any(row[name] == value for pair in pairs for row in pair.neighbour)


@pytest.mark.nightly
def test_bugs_that_only_a_constant_shows() -> None:
    words: dict[str, Any] = {
        "epsilon": 1,
        "adjacency": dpv.AddRemove(),
        "domain": PEOPLE,
        "kinds": ["black-box"],
        "draws": 300,
        "workers": 1,
    }
    for bug, shown in ((not_for_forty_two, '"age": 42'), (not_for_a_name, "'Ann'")):
        report = dpv.audit(bug, **words)
        assert report.verdict == "violation"
        assert shown in str(report)
    assert dpv.audit(count, **words).verdict == "no_violation_found"
