"""With every change: each kind of audit finds a third of its planted bugs, and accuses no twin.

The draws are few. `test_planted_bugs` has the bugs that the white-box attack or the moments show
best. By night it and `test_planted_releases` try all that is promised, at full draws.
"""

from __future__ import annotations

from typing import Any

import pytest

from dpverify_audits.planted import SUITE, PlantedBug
from tests.audits.planted.test_planted_bugs import BY_DAY
from tests.audits.planted.test_planted_releases import verdict
from tests.helpers.profiles import sampled, thinned

CHEAPEST = ("grey-box", "sequential", "precision", "exhaustive", "determinism", "black-box")
DRAWS = 300
OTHERS = {
    "data-dependent N₊": ("precision", 2000),
    "difference of exponentials in doubles": ("precision", 1000),
}
"""For which the first of those kinds needs many draws."""
NIGHTLY = {
    "negative outputs drawn again",  # which shows in 10,000 draws
    # Seconds each, of mechanisms that another bug tries by day.
    "ε not split over repetitions",
    "keep probability for one hash function",
    "flips with 1/2 - ε/4",
    "mean number of differing functions",
    "one direction",
    "smoothing halved",
    "w for its square",
}
ELSEWHERE = {name for names in BY_DAY.values() for name in names}

Bug = PlantedBug[Any]


def kind_and_draws(bug: Bug) -> tuple[Any, int]:
    cheapest = next(kind for kind in CHEAPEST if kind in bug.found_by)
    return OTHERS.get(bug.name, (cheapest, min(bug.draws, DRAWS)))


CASES = {bug: kind_and_draws(bug) for bug in SUITE if bug.name not in ELSEWHERE | NIGHTLY}
OF_KIND = [[bug for bug, (kind, _) in CASES.items() if kind == each] for each in CHEAPEST]
FOUND = {bug.name for bugs in OF_KIND for bug in bugs[::3]}
TWINS = {(bug.twin, kind): bug for bug, (kind, _) in CASES.items()}


def named(bug: Bug) -> str:
    return f"{bug.name}-{CASES[bug][0]}"


@pytest.mark.parametrize("bug", sampled(CASES, FOUND))
def test_the_audit_finds_the_bug(bug: Bug) -> None:
    kind, draws = CASES[bug]
    assert verdict(bug, broken=True, kind=kind, seed=1, draws=draws) == "violation"


@pytest.mark.parametrize("bug", thinned(TWINS.values(), 4), ids=named)
def test_the_audit_does_not_accuse_the_twin(bug: Bug) -> None:
    kind, draws = CASES[bug]
    assert verdict(bug, broken=False, kind=kind, seed=1, draws=draws) != "violation"
