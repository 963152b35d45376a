"""What is tried with every change, and what waits for the nightly run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["crossed", "day_and_night", "examples", "sampled", "thinned"]


def examples(night: int, day: int | None = None) -> settings:
    """So many examples of a property by night; by day fewer, or a third and at least ten."""
    by_day = settings.get_current_profile_name() == "every change"
    return settings(max_examples=(day or max(10, night // 3)) if by_day else night)


def day_and_night(day: Any, *night: Any) -> list[Any]:
    """Values of a parameter, tuples of several: the first with every change, others by night."""
    rows = [value if isinstance(value, tuple) else (value,) for value in night]
    return [day, *(pytest.param(*row, marks=pytest.mark.nightly) for row in rows)]


def thinned(cases: Iterable[Any], every: int, *, rows: bool = False) -> list[Any]:
    """Every so many of the cases, of `rows` of values, with every change, the others by night."""
    return [
        pytest.param(
            *(case if rows else (case,)), marks=pytest.mark.nightly if place % every else ()
        )
        for place, case in enumerate(cases)
    ]


def crossed(*axes: Iterable[Any]) -> list[Any]:
    """Each value of each axis beside some other with every change, all combinations by night."""
    values = [list(axis) for axis in axes]
    turns = range(max(map(len, values)))
    day = {tuple(turn % len(axis) for axis in values) for turn in turns}
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(values, places, strict=True)),
            marks=() if places in day else pytest.mark.nightly,
        )
        for places in product(*(range(len(axis)) for axis in values))
    ]


def sampled(cases: Iterable[Any], day: Iterable[str]) -> list[Any]:
    """Cases, which their ``name`` names: those in `day` with every change, the others by night."""
    named = {str(getattr(case, "name", case)): case for case in cases}
    chosen = set(day)
    assert chosen <= set(named), f"unknown: {chosen - set(named)}"
    return [
        pytest.param(case, id=name, marks=() if name in chosen else pytest.mark.nightly)
        for name, case in named.items()
    ]
