"""Outputs that are all whole numbers have their precision audited, whatever the profile leaves out.

Doubles have it left out by the profiles for development, which a mechanism may not slip through by
a few whole doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.outputs.arrays import whole
from dpverify.auditing.report import Report
from dpverify.auditing.settings import PROFILES
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from tests.helpers.profiles import day_and_night

Function = Callable[[NDArray[np.float64], np.random.Generator], Any]
HUGE = 2**60


def noise(rng: np.random.Generator) -> int:
    """ε = 1 for a move of 1, by as good as nothing more."""
    keep = 1 - math.exp(-0.99)
    return int(rng.geometric(keep) - rng.geometric(keep))


def count(record: NDArray[np.float64], rng: np.random.Generator) -> int:
    return int(record[0]) + noise(rng)


def parity(record: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Noise enough for 1000 times its claim, and the count's parity in the last bit."""
    return 2 * int(rng.laplace(scale=1e4)) + int(record[0]) % 2


def huge_parity(record: NDArray[np.float64], rng: np.random.Generator) -> np.int64:
    """The same beyond 2**53, where doubles are even."""
    return np.int64(HUGE + parity(record, rng))


def last_digit(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Whole numbers as doubles; the last digit is 2 or 6, so that its lowest bit is one."""
    return 10.0 * round(rng.laplace(scale=1e4)) + (2 if record[0] % 2 else 6)


def seldom_fractions(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Noise in doubles that is released one time in twenty."""
    noisy = record[0] + rng.laplace()
    return float(noisy) if rng.random() < 0.05 else 0.0


def fractions(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    return float(record[0] + rng.laplace())


OTHERS = ("black-box", "trade-off", "grey-box", "determinism")
"""What by day isn't run beside the audits that these tests are about."""

Audited = Callable[..., Report]


def audit_of(function: Function, *, seed: int = 1, **options: Any) -> Report:
    """As by the profile for development."""
    mechanism = adapt(
        function,
        adjacency=Attribute(beta=Fraction(1)),
        claim=ApproxDP(epsilon=Fraction(1)),
        of="record",
        attributes=1,
        domain=Box(low=Fraction(0), high=Fraction(10)),
    )
    dev = PROFILES["dev"]
    given: dict[str, Any] = {"draws": dev.draws, "alpha": dev.alpha, "without": dev.without}
    return audit(mechanism, seed=seed, workers=1, **given | options)


@pytest.fixture(params=day_and_night(300, PROFILES["dev"].draws))
def audited(request: pytest.FixtureRequest) -> Audited:
    """The profile by night; by day fewer draws and, where no kinds are named, fewer kinds."""
    dev, draws = PROFILES["dev"], request.param

    def run(function: Function, *, without: Sequence[str] = dev.without, **options: Any) -> Report:
        if draws < dev.draws and "kinds" not in options:
            without = (*without, *OTHERS)
        return audit_of(function, draws=draws, without=without, **options)

    return run


def refuting(report: Report) -> set[str]:
    return {finding.audit for finding in report.violations}


def ran(report: Report) -> set[str]:
    return {finding.audit for finding in report.findings}


@pytest.mark.parametrize("function", day_and_night(parity, huge_parity, last_digit))
def test_what_whole_numbers_leak_beside_their_size_is_found(
    function: Function, audited: Audited
) -> None:
    assert "precision" in refuting(audited(function))


@pytest.mark.parametrize("seed", day_and_night(0, 1, 2, 3, 4))
def test_whole_numbers_that_keep_their_claim_are_not_accused(seed: int, audited: Audited) -> None:
    report = audited(count, seed=seed)
    assert "precision" in ran(report)
    assert report.verdict == "no_violation_found"


def test_doubles_are_left_out_and_asked_for(audited: Audited) -> None:
    assert "precision" not in ran(audited(fractions))
    assert "precision" in refuting(audited(fractions, without=()))
    assert "precision" in refuting(audited(fractions, kinds=["precision"]))


def test_a_few_whole_doubles_are_no_whole_numbers(audited: Audited) -> None:
    report = audited(seldom_fractions, seed=2, brief=False)  # trial draws are whole, at any pace
    (found,) = (finding for finding in report.findings if finding.audit == "precision")
    assert found.verdict == "inconclusive"
    assert "not all outputs are whole numbers" in found.statement
    assert report.verdict == "no_violation_found"


@pytest.mark.nightly
def test_who_leaves_precision_out_by_name_has_it_left_out(audited: Audited) -> None:
    assert "precision" not in ran(audited(parity, without=["precision"]))
    assert ran(audited(parity, kinds=["sequential"])) == {"sequential"}


def test_where_no_kind_is_left_it_is_said_that_nothing_was_audited() -> None:
    everything = [*OTHERS, "sequential", "precision-of-doubles"]
    report = audit_of(fractions, draws=20, without=everything)
    assert (report.verdict, report.findings) == ("inconclusive", ())
    assert "fractions was not audited at all" in report.failed[0]
    assert audit_of(count, draws=20, without=everything).verdict != "violation"


@pytest.mark.parametrize("function", day_and_night(count, fractions))
def test_the_levels_add_up_whatever_runs(function: Function) -> None:
    report = audit_of(function, draws=100)
    total = sum(finding.level for finding in report.findings)
    # Of determinism's 1/40, what belongs to processes is left, as one worker compares none.
    assert 0.98 * report.alpha < total <= report.alpha


@pytest.mark.nightly
def test_the_replay_line_leaves_out_the_same(audited: Audited) -> None:
    report = audited(count)
    assert "'precision-of-doubles'," in report.replay
    assert replace(report, replay="") == replace(audited(count), replay="")


def test_whole_by_type_or_by_value() -> None:
    assert all(whole(np.zeros(3, dtype=kind)) for kind in (bool, np.uint8, np.int64, np.float64))
    assert not whole(np.array([0.0, 0.5]))
    assert not whole(np.array([frozenset()]))
    assert not whole(np.random.default_rng(1).laplace(scale=1e30, size=50))  # as all doubles there
