"""A report as a picture."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from matplotlib.figure import Figure

from dpverify.auditing.finding import Finding
from dpverify.auditing.report import Report


def found(kind: str, bound: float | None, *, broken: bool = False) -> Finding:
    verdict = "violation" if broken else "no_violation_found"
    return Finding(audit=kind, verdict=verdict, statement="it", epsilon_lower=bound)  # type: ignore[arg-type]


FINDINGS = (
    found("white-box", 0.5),
    found("white-box", 0.75),
    found("precision", math.inf, broken=True),
    found("determinism", None),
)


@pytest.mark.parametrize("claimed", [1.0, 0.0, math.inf])
def test_the_largest_bound_of_each_kind_beside_the_claim(claimed: float) -> None:
    report = Report(
        mechanism="mine",
        claim=(claimed, Fraction(1, 10**6)),
        alpha=0.01,
        findings=FINDINGS,
        failed=(),
        replay="",
    )
    axes = report.plot(Figure().add_subplot())
    assert [label.get_text() for label in axes.texts] == ["0.75", "inf", "no bound"]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths[0] == 0.75
    assert widths[2] == 0
    assert max(claimed, 0.75) < widths[1] < math.inf or claimed == math.inf
    assert axes.patches[0].get_facecolor() != axes.patches[1].get_facecolor()
    assert axes.get_title() == "mine: violation"
    assert axes.get_xlabel().startswith("ε at δ = 1e-06")


def test_one_without_findings_is_drawn() -> None:
    report = Report(
        mechanism="mine",
        claim=(1.0, Fraction(0)),
        alpha=0.01,
        findings=(),
        failed=("x",),
        replay="",
    )
    assert report.plot(Figure().add_subplot()).get_title() == "mine: inconclusive"
