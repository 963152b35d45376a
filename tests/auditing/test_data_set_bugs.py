"""Bugs of functions of data sets, each beside its correct twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.report import Report

AGES = dpv.Table({"age": dpv.Integers(0, 100)}, rows=(0, 20))
INCOMES = dpv.Table({"income": dpv.Reals(-1000, 1000)}, rows=(0, 20), make="numpy")
CITIES = dpv.Table({"city": dpv.Categories("a", "b", "c")}, rows=(0, 20))
WORDS = dpv.Table({"word": dpv.Text()}, rows=(0, 20))
NOTES = dpv.Table({"note": dpv.Text(12)}, rows=(0, 20))
VISITS = dpv.Table({"id": dpv.Integers(1, 5), "cost": dpv.Reals(0, 1)}, rows=(0, 20))
ONE, SWAP, USER = dpv.AddRemove(), dpv.Replace(), dpv.AddRemove(user="id")
RNG = np.random.Generator
Function = Callable[[Any, RNG], Any]


def total(rows: Any) -> float:
    return float(sum(row["age"] for row in rows))


def mean_of_public_n(rows: Any, rng: RNG) -> float:
    return total(rows) / max(len(rows), 1) + rng.laplace(scale=100 / 20)  # n isn't public


def mean_of_noisy_parts(rows: Any, rng: RNG) -> float:
    return (total(rows) + rng.laplace(scale=200)) / max(len(rows) + rng.laplace(scale=2), 1)


def unclipped_sum(x: Any, rng: RNG) -> float:
    return float(x.sum()) + rng.laplace(scale=10)  # of values up to 10


def clipped_sum(x: Any, rng: RNG) -> float:
    return float(np.clip(x, -10, 10).sum()) + rng.laplace(scale=10)


def histogram_of_what_is_there(rows: Any, rng: RNG) -> Any:
    return {name: n + rng.laplace() for name, n in Counter(r["city"] for r in rows).items()}


def histogram_of_all(rows: Any, rng: RNG) -> Any:
    counts = Counter(row["city"] for row in rows)
    return {name: counts[name] + rng.laplace() for name in ("a", "b", "c")}


def median_of_a_mean(rows: Any, rng: RNG) -> float:
    return float(np.median([row["age"] for row in rows])) + rng.laplace(scale=100 / 20)


def median_by_its_range(rows: Any, rng: RNG) -> float:
    return float(np.median([row["age"] for row in rows])) + rng.laplace(scale=100)


def keys_in_the_clear(rows: Any, rng: RNG) -> Any:
    counts = Counter(row["word"] for row in rows)
    return sorted((word, round(n + rng.laplace())) for word, n in counts.items())


def count_of_words(rows: Any, rng: RNG) -> float:
    return len({row["word"] for row in rows}) + rng.laplace()


def words_of_notes(rows: Any, rng: RNG) -> float:
    return sum(len(row["note"].split()) for row in rows) + rng.laplace(scale=3)


def first_words_of_notes(rows: Any, rng: RNG) -> float:
    return sum(len(row["note"].split()[:3]) for row in rows) + rng.laplace(scale=3)


def rows_for_a_user(rows: Any, rng: RNG) -> float:
    return float(sum(row["cost"] for row in rows)) + rng.laplace()


def one_row_for_a_user(rows: Any, rng: RNG) -> float:
    most: dict[int, float] = {}
    for row in rows:
        most[row["id"]] = max(most.get(row["id"], 0.0), row["cost"])
    return sum(most.values()) + rng.laplace()


def first_row(rows: Any, rng: RNG) -> float:
    return float(rows[0]["age"] if rows else 0) + rng.laplace(scale=25)  # replaced, it moves by 100


def first_row_by_its_range(rows: Any, rng: RNG) -> float:
    return float(rows[0]["age"] if rows else 0) + rng.laplace(scale=100)


def missing_is_raised(rows: Any, rng: RNG) -> float:
    oldest = max(row["age"] for row in rows)  # of no rows it raises
    return len(rows) + rng.laplace(scale=1 if oldest >= 0 else 0)


def count(rows: Any, rng: RNG) -> float:
    return len(rows) + rng.laplace()


BUGS: list[tuple[Function, Function, Any, Any]] = [
    (mean_of_public_n, mean_of_noisy_parts, AGES, ONE),
    (unclipped_sum, clipped_sum, INCOMES, ONE),
    (histogram_of_what_is_there, histogram_of_all, CITIES, ONE),
    (median_of_a_mean, median_by_its_range, dpv.Table(AGES.columns, rows=(1, 20)), SWAP),
    (keys_in_the_clear, count_of_words, WORDS, ONE),
    (words_of_notes, first_words_of_notes, NOTES, ONE),
    (rows_for_a_user, one_row_for_a_user, VISITS, USER),
    (first_row, first_row_by_its_range, AGES, SWAP),
    (missing_is_raised, count, AGES, ONE),
]
names = [bug.__name__ for bug, *_ in BUGS]


def audited(function: Function, table: Any, adjacency: Any) -> Report:
    profile = {"draws": 2000, "alpha": 1e-3, "without": ["precision-of-doubles"], "workers": 1}
    claim: dict[str, Any] = {"epsilon": 1, "adjacency": adjacency, "domain": table}
    return dpv.audit(function, seed=1, **claim | profile)


@pytest.mark.nightly
@pytest.mark.parametrize(("bug", "twin", "table", "adjacency"), BUGS, ids=names)
def test_a_bug_is_found_and_its_twin_is_not_accused(
    bug: Function, twin: Function, table: Any, adjacency: Any
) -> None:
    assert audited(bug, table, adjacency).verdict == "violation"
    assert audited(twin, table, adjacency).verdict == "no_violation_found"
