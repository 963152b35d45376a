"""Reports as JUnit XML, which GitHub's and GitLab's viewers of test results read.

There is no standard of it; what their readers share is kept: ``testsuites`` of ``testsuite`` of
``testcase``, with the counts on both, and in a case at most one of ``failure`` and ``skipped``. A
suite is a mechanism, a case a finding: a violation is its failure, and where nothing could be said
the case is skipped, since these viewers have no third colour. Verdicts keep their own words in the
messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from dpverify.auditing.finding import Finding
from dpverify.auditing.report import Reported
from dpverify.visible import escaped

__all__ = ["junit"]

_OUTCOMES = {"violation": "failure", "inconclusive": "skipped"}


def junit(reports: Sequence[Reported]) -> str:
    """The reports as one XML document, a test suite each."""
    root = ElementTree.Element("testsuites", name="dpverify audit")
    for report in reports:
        suite = ElementTree.SubElement(root, "testsuite", name=_plain(report.mechanism))
        for name, verdict, message, text in _cases(report):
            case = ElementTree.SubElement(
                suite, "testcase", classname=_plain(report.mechanism), name=_plain(name)
            )
            if verdict in _OUTCOMES:
                outcome = ElementTree.SubElement(case, _OUTCOMES[verdict], message=_plain(message))
                outcome.text = _plain(text)
            else:
                ElementTree.SubElement(case, "system-out").text = _plain(text)
        _count(suite)
    _count(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(
        root, encoding="unicode"
    )


def _cases(report: Reported) -> Iterator[tuple[str, str, str, str]]:
    """Name, verdict, message and text of each finding, and of each pair that gave none."""
    seen: Counter[str] = Counter()
    for finding in report.findings:
        name = _name(finding)
        seen[name] += 1
        if seen[name] > 1:  # viewers tell cases apart by their names
            name = f"{name}, {seen[name]}"
        text = f"{report.head}\n{finding}\n  replay: {report.replay}"
        yield name, finding.verdict, f"{finding.verdict}: {finding.statement}", text
    for number, reason in enumerate(report.failed, start=1):
        message = f"inconclusive: {reason}"
        yield f"pair that could not be audited, {number}", "inconclusive", message, reason


def _name(finding: Finding) -> str:
    return finding.audit if finding.pair is None else f"{finding.audit}, {finding.pair.name}"


def _count(element: ElementTree.Element) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for outcome, key in (("failure", "failures"), ("skipped", "skipped")):
        element.set(key, str(len(list(element.iter(outcome)))))
    element.set("errors", "0")


def _plain(text: str) -> str:
    # Whatever XML 1.0 can't hold (section 2.2) is among what isn't visible.
    return escaped(text, lines=True)
