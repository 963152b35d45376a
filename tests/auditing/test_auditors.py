"""Auditors on scores of known ε: a bound that keeps its level isn't refuted, others are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpverify.auditing.attacks.scores import audit_scores
from dpverify.auditing.auditors import NULLS, AuditorReport, Null, audit_auditor
from dpverify.auditing.reporters.json import json
from dpverify.auditing.reporters.junit import junit
from dpverify.errors import ParameterError
from tests.helpers.profiles import day_and_night


def least(own: Any, other: Any, *, delta: float, alpha: float) -> float:
    """Of the library itself."""
    return audit_scores(own, other, delta=delta, alpha=alpha).epsilon_lower


def coin(own: Any, other: Any, *, delta: float, alpha: float) -> float:
    """Above any ε in so many runs."""
    return 99.0 * (np.random.default_rng(int(1e6 * abs(own[0]))).random() < alpha)


def always(own: Any, other: Any, *, delta: float, alpha: float) -> float:
    return 2.0


def tried(bound: Any, **options: Any) -> AuditorReport:
    given: dict[str, Any] = {"nulls": NULLS[:2], "scores": 50, "runs": 40}
    return audit_auditor(bound, **given | options)


@pytest.mark.parametrize("runs", day_and_night(3, 150))
def test_our_own_bound_keeps_its_level(runs: int) -> None:
    report = audit_auditor(least, scores=60, runs=runs)
    assert report.verdict == "no_violation_found"


def test_a_level_that_is_attained_is_kept_and_one_that_is_passed_is_refuted() -> None:
    assert tried(coin, runs=400).verdict == "no_violation_found"
    assert tried(coin, runs=400).parts[0].above > 0
    assert tried(lambda *sides, delta, alpha: coin(*sides, delta=delta, alpha=0.5)).verdict == (
        "violation"
    )


def test_the_truth_itself_is_no_violation() -> None:
    one = (Null(name="two", law=NULLS[1].law, epsilon=2.0),)
    assert tried(always, nulls=one).verdict == "no_violation_found"
    assert tried(always).parts[0].above == 40


@pytest.mark.parametrize("value", [math.nan, None, "0.5x"])
def test_what_is_no_bound_is_said(value: Any) -> None:
    report = tried(lambda *sides, delta, alpha: value)
    assert report.verdict == "inconclusive"
    assert "no bound" in str(report)
    assert len(report.failed) == 2


def test_what_is_printed_and_replayed() -> None:
    report = tried(always)
    assert str(report).startswith(
        "always: violation, at level 1e-06\n  claim: bounds above the true"
    )
    assert "above the true epsilon 0 in 40 of 40 runs, at most 2" in str(report)
    assert report.to_dict()["parts"][0]["above"] == 40
    assert "at level" in junit([report])
    assert '"claimed": 0.05' in json([report])
    assert "<pre>" in report._repr_html_()
    printed: list[Any] = []
    exec(report.replay, {"print": printed.append})  # noqa: S102
    assert [str(each) for each in printed] == [str(report)]


@pytest.mark.parametrize(
    "options",
    [{"claimed": 0}, {"alpha": 1.0}, {"nulls": ()}, {"scores": 0}, {"runs": 1.5}],
)
def test_what_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        tried(always, **options)
