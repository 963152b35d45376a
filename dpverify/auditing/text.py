"""A report for a person: the verdict, what shows it, what would have been found, its replay."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.findings import Finding
from dpverify.auditing.run import Report
from dpverify.domain import is_sparse
from dpverify.mechanism import Pair

__all__ = ["lines", "plain"]

_LISTED = 6  # parts of a number of many that are listed
_SHOWN = 12  # places of a data set that are shown


def lines(report: Report) -> list[str]:
    """The report as lines of text, violations first."""
    epsilon, delta = report.claim
    verdict = report.verdict.replace("_", " ")
    out = [
        f"{report.mechanism}: {verdict}, at level {report.alpha:g}",
        f"  claim: epsilon {epsilon:.6g} at delta {_number(delta)}",
    ]
    out += [f"  could not be audited: {reason}" for reason in report.failed]
    for finding in sorted(report.findings, key=lambda finding: finding.verdict != "violation"):
        out += _finding(finding)
    return [*out, f"  replay: {report.replay}"]


def _finding(finding: Finding) -> list[str]:
    out = [f"  {finding.audit}: {finding.verdict.replace('_', ' ')}", f"    {finding.statement}"]
    if finding.pair is not None and finding.verdict == "violation":
        out += _pair(finding.pair)
    if finding.epsilon_lower is not None:
        out.append(f"    epsilon is at least {finding.epsilon_lower:.6g}")
    if finding.verdict == "violation" and finding.evidence:
        out.append(f"    evidence: {_named(finding.evidence)}")
    out.append(f"    level: {finding.level:.3g}" if finding.level else "    level: certain")
    if finding.power:
        out.append(f"    power: {_named(finding.power)}")
    return out


def _pair(pair: Pair) -> list[str]:
    return [
        f"    pair {pair.name!r}:",
        f"      record    {_data(pair.record)}",
        f"      neighbour {_data(pair.neighbour)}",
    ]


def _data(data: Any) -> str:
    values = _dense(data)
    with np.printoptions(threshold=_SHOWN, edgeitems=4, floatmode="unique"):
        return " ".join(str(values).split())


def plain(data: Any) -> Any:
    """A data set as lists of numbers."""
    return _dense(data).tolist()


def _dense(data: Any) -> NDArray[Any]:
    return np.asarray(data.toarray() if is_sparse(data) else data)


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in values.items())


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    if isinstance(value, tuple) and len(value) > _LISTED:
        ends = [", ".join(str(each) for each in part) for part in (value[:2], value[-2:])]
        return f"({ends[0]}, …, {ends[1]})"
    return str(value)
