"""What is tried with every change covers each value, and nothing is left out by night."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.helpers.profiles import crossed, day_and_night, sampled, thinned


def split(cases: list[Any]) -> tuple[list[Any], list[Any]]:
    """Values of the day, and those that wait for the night."""
    day: list[Any] = []
    night: list[Any] = []
    for case in cases:
        values = tuple(case.values) if hasattr(case, "values") else case
        waits = [mark.name for mark in getattr(case, "marks", ())] == ["nightly"]
        (night if waits else day).append(values)
    return day, night


def test_the_first_is_tried_by_day() -> None:
    assert split(day_and_night((1, "a"), (2, "b"), 3)) == ([(1, "a")], [(2, "b"), (3,)])


@pytest.mark.parametrize("every", [1, 2, 5])
def test_every_so_many_are_tried_by_day(every: int) -> None:
    day, night = split(thinned(range(7), every))
    assert day == [(value,) for value in range(0, 7, every)]
    assert sorted(day + night) == [(value,) for value in range(7)]
    assert split(thinned([(1, 2), (3, 4)], 2, rows=True)) == ([(1, 2)], [(3, 4)])


def test_each_value_of_each_axis_is_tried_by_day_and_all_combinations_by_night() -> None:
    axes = ("abcd", (1, 2, 3), (True, False))
    day, night = split(crossed(*axes))
    assert sorted(day + night) == sorted(product(*axes))
    assert [set(values) for values in zip(*day, strict=True)] == [set(axis) for axis in axes]
    assert len(day) == max(map(len, axes))


def test_a_case_that_is_not_there_is_not_left_out_in_silence() -> None:
    assert split(sampled(["a", "b"], ["b"])) == ([("b",)], [("a",)])
    with pytest.raises(AssertionError, match="unknown"):
        sampled(["a", "b"], ["c"])
