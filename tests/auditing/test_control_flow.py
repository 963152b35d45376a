"""Correct mechanisms of many kinds of control flow are accused by nothing beyond its level."""

from __future__ import annotations

from typing import Any

import pytest

from dpverify.auditing.audit import audit
from dpverify.auditing.finding import Finding
from dpverify.auditing.report import Report
from dpverify_audits.control_flow import CASES, Case
from tests.helpers.profiles import thinned

ALPHA = 1e-4
"""Of one audit: of all those below a correct mechanism is accused once in a hundred seeds."""
QUICK = ("grey-box", "black-box")


def audited(mechanism: Any, draws: int, *, workers: int = 1, **options: Any) -> Report:
    return audit(mechanism, alpha=ALPHA, draws=draws, seed=3, workers=workers, **options)


def by_grey_box(report: Report) -> Finding:
    (found,) = (finding for finding in report.findings if finding.audit == "grey-box")
    return found


def test_every_case_has_a_name_and_neighbours() -> None:
    assert len(CASES) >= 80
    assert len({case.flow for case in CASES}) >= 10
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        for pair in case.mechanism.worst_pairs():
            assert case.mechanism.adjacency.relates(pair.record, pair.neighbour), case.name


@pytest.mark.parametrize("case", thinned(CASES, 10), ids=lambda case: str(case.name))
def test_the_grey_box_accuses_no_correct_mechanism(case: Case) -> None:
    found = by_grey_box(audited(case.mechanism, 200, kinds=["grey-box"]))
    assert found.verdict != "violation", found.statement
    assert found.level > 0


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_no_kind_accuses_a_correct_mechanism_and_the_report_has_a_verdict(case: Case) -> None:
    """With several workers, as by default, processes are started and forked, too."""
    report = audited(case.mechanism, 5000, workers=2, without=["precision"])
    assert report.verdict == "no_violation_found", [f.statement for f in report.findings]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.broken is not None], ids=lambda case: str(case.name)
)
def test_broken_twins_are_found(case: Case) -> None:
    assert audited(case.broken, 5000, without=["precision"]).verdict == "violation"


NAMES = ("numpy's global generator", "the same noise by two routes")
SOME = [case for case in CASES if case.name in NAMES]


@pytest.mark.parametrize("case", SOME, ids=lambda case: str(case.name))
def test_the_report_is_green_and_its_twin_is_found_with_a_few_draws(case: Case) -> None:
    assert audited(case.mechanism, 150, kinds=QUICK).verdict == "no_violation_found"
    assert audited(case.broken, 300, kinds=QUICK).verdict == "violation"
