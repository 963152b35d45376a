"""JUnit XML: what its viewers rely on, whatever the reports hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_args
from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpverify.auditing.finding import AuditKind, Finding, Verdict
from dpverify.auditing.report import Report
from dpverify.auditing.reporters.junit import junit
from dpverify.privacy import Pair

TEXTS = st.text(max_size=12)
PAIRS = st.none() | st.builds(
    Pair, name=TEXTS, record=st.just(np.zeros((1, 1))), neighbour=st.just(np.ones((1, 1)))
)
FINDINGS = st.builds(
    Finding,
    audit=st.sampled_from(get_args(AuditKind)),
    verdict=st.sampled_from(get_args(Verdict)),
    statement=TEXTS,
    pair=PAIRS,
)
REPORTS = st.builds(
    Report,
    mechanism=TEXTS,
    claim=st.just((1.0, Fraction(0))),
    alpha=st.just(0.01),
    findings=st.lists(FINDINGS, max_size=4).map(tuple),
    failed=st.lists(TEXTS, max_size=2).map(tuple),
    replay=TEXTS,
)
OUTCOMES = {"violation": "failure", "inconclusive": "skipped", "no_violation_found": "system-out"}


def parsed(reports: list[Report]) -> Any:
    return ElementTree.fromstring(junit(reports).encode())  # noqa: S314  # our own text


@settings(max_examples=5)
@given(st.lists(REPORTS, max_size=3))
def test_it_is_xml_and_its_counts_are_right(reports: list[Report]) -> None:
    root = parsed(reports)
    assert root.tag == "testsuites"
    assert len(root) == len(reports)
    for element in (root, *root):
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            assert element.get(key) == str(len(list(element.iter(tag))))
    for suite, report in zip(root, reports, strict=True):
        cases = list(suite)
        assert len(cases) == len(report.findings) + len(report.failed)
        for case, finding in zip(cases, report.findings, strict=False):
            assert [child.tag for child in case] == [OUTCOMES[finding.verdict]]
            if finding.verdict != "no_violation_found":
                assert case[0].get("message", "").startswith(finding.verdict)
        for case in cases[len(report.findings) :]:
            assert [child.tag for child in case] == ["skipped"]


def test_findings_of_one_name_are_told_apart() -> None:
    same = Finding(audit="determinism", verdict="no_violation_found", statement="fresh")
    report = Report(
        mechanism="mine",
        claim=(1.0, Fraction(0)),
        alpha=0.01,
        findings=(same, same, same),
        failed=(),
        replay="again",
    )
    names = [case.get("name") for case in parsed([report]).iter("testcase")]
    assert names == ["determinism", "determinism, 2", "determinism, 3"]


HIDDEN = "a\x00b\x1bc\ud800\u202e\uffff <&>"


def test_what_xml_can_not_hold_or_a_reader_not_see_is_escaped() -> None:
    finding = Finding(audit="black-box", verdict="violation", statement=HIDDEN)
    report = Report(
        mechanism="mine",
        claim=(1.0, Fraction(0)),
        alpha=0.01,
        findings=(finding,),
        failed=(),
        replay="again",
    )
    (failure,) = parsed([report]).iter("failure")
    assert failure.get("message") == r"violation: a\x00b\x1bc\ud800\u202e\uffff <&>"
