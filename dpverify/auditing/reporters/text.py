"""A report for a person: the verdict, what shows it, what would have been found, its replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.engine import Report
from dpverify.auditing.finding import Finding
from dpverify.auditing.kinds import AuditKind
from dpverify.data.domain import is_sparse
from dpverify.privacy import Pair

__all__ = ["finding_lines", "lines", "plain"]

_LISTED = 6  # parts of a number of many that are listed
_SHOWN = 12  # places of a data set that are shown
_MEANINGS: Mapping[AuditKind, str] = {
    "exhaustive": "exact probabilities of all outputs are further apart than the claim allows",
    "grey-box": "the noise asked for doesn't cover what changes without it, as fresh draws confirm",
    "determinism": "the noise isn't fresh, or the behaviour shows which neighbour it was",
    "precision": "low bits of the floats show which neighbour it was, whatever the scale",
    "white-box": "outputs of large likelihood ratio are too frequent for the claim",
    "black-box": "some outputs are too frequent at one neighbour for the claim",
    "trade-off": "an attacker tells the neighbours apart better than the claim allows",
    "sequential": "bets against the claim, output by output, have won too much",
    "moments": "the formula for a mean or variance is wrong",
}


def lines(report: Report) -> list[str]:
    """The report as lines of text.

    Where the claim is refuted, only what refutes it is told, pair by pair, so that a screen holds
    it; the other kinds have a line each. Where it isn't, every finding comes with its power, which
    is then what a reader wants to know.
    """
    epsilon, delta = report.claim
    verdict = report.verdict.replace("_", " ")
    out = [
        f"{report.mechanism}: {verdict}, at level {report.alpha:g}",
        f"  claim: epsilon {epsilon:.6g} at delta {_number(delta)}",
    ]
    out += _violations(report) if report.violations else []
    out += [f"  could not be audited: {reason}" for reason in report.failed[:1]]
    if len(report.failed) > 1:
        out.append(f"  could not be audited {len(report.failed) - 1} times more, on other draws")
    for finding in () if report.violations else report.findings:
        out += finding_lines(finding)
    out += [f"  searched: {report.searched}"] if report.searched else []
    return [*out, f"  replay: {report.replay}"]


def _violations(report: Report) -> list[str]:
    violations = report.violations
    kinds = list(dict.fromkeys(found.audit for found in violations))
    width = max(map(len, kinds))
    out = ["  refuted by", *(f"    {kind:{width}}  {_MEANINGS[kind]}" for kind in kinds)]
    bounds = {found.audit: found.epsilon_lower or 0.0 for found in violations}
    for found in violations:
        bounds[found.audit] = max(bounds[found.audit], found.epsilon_lower or 0.0)
    largest = max(bounds, key=lambda kind: bounds[kind])
    if bounds[largest]:
        out.append(f"  epsilon is at least {bounds[largest]:.6g}, by {largest}")
    by_pair: dict[str, list[Finding]] = {}
    for found in violations:
        by_pair.setdefault("" if found.pair is None else found.pair.name, []).append(found)
    for findings in by_pair.values():
        pair = findings[0].pair
        out += ["  at any pair:"] if pair is None else [line[2:] for line in _pair(pair)]
        for found in findings:
            where = f"{report.mechanism}, at the pair “{pair.name}”: " if pair else ""
            out += [
                f"    {found.audit}, {_level(found)}:",
                f"      {found.statement.removeprefix(where)}",
            ]
    others = Counter(
        f"{found.audit}: {found.verdict.replace('_', ' ')}"
        for found in report.findings
        if found.verdict != "violation"
    )
    return out + [f"  {kind}" + (f", {n} times" if n > 1 else "") for kind, n in others.items()]


def _level(finding: Finding) -> str:
    return f"at level {finding.level:.3g}" if finding.level else "certain"


def finding_lines(finding: Finding) -> list[str]:
    """One finding as lines of text, indented as in a report."""
    out = [f"  {finding.audit}: {finding.verdict.replace('_', ' ')}", f"    {finding.statement}"]
    if finding.pair is not None and finding.verdict == "violation":
        out += _pair(finding.pair)
    if finding.epsilon_lower is not None:
        out.append(f"    epsilon is at least {finding.epsilon_lower:.6g}")
    if finding.verdict == "violation" and finding.evidence:
        out.append(f"    evidence: {_named(finding.evidence)}")
    if finding.verdict != "inconclusive":
        out.append(f"    {_level(finding)}")
    if finding.power:
        out.append(f"    power: {_named(finding.power)}")
    return out


def _pair(pair: Pair) -> list[str]:
    return [
        f"    pair {pair.name!r}:",
        f"      record    {_data(pair.record)}",
        f"      neighbour {_data(pair.neighbour)}",
        *_difference(pair),
    ]


def _difference(pair: Pair) -> list[str]:
    """Where the sides differ, if they are too large to be shown whole."""
    record, other = _dense(pair.record), _dense(pair.neighbour)
    if max(record.size, other.size) <= _SHOWN:
        return []
    if record.shape != other.shape:
        return [f"      of shapes {record.shape} and {other.shape}"]
    axes = ("place",) if record.ndim == 1 else ("row", "column")
    places = [
        ", ".join(f"{axis} {at}" for axis, at in zip(axes, place, strict=False))
        + f": {record[tuple(place)]} and {other[tuple(place)]}"
        for place in np.argwhere(record != other)
    ]
    more = f"; and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return [f"      differ at {'; '.join(places[:_LISTED])}{more}"]


def _data(data: Any) -> str:
    values = _dense(data)
    with np.printoptions(threshold=_SHOWN, edgeitems=4, floatmode="unique"):
        return " ".join(str(values).split())


def plain(data: Any) -> Any:
    """A data set as lists of numbers."""
    return _dense(data).tolist()


def _dense(data: Any) -> NDArray[Any]:
    try:
        return np.asarray(data.toarray() if is_sparse(data) else data)
    except ValueError:  # lists of different lengths
        return np.array(data, dtype=object)


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
