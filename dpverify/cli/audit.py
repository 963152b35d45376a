"""``dpverify audit``: attacks what mechanisms claim."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click

from dpverify import __version__
from dpverify.auditing.draws import named
from dpverify.auditing.findings import Finding
from dpverify.auditing.journal import AuditJournal
from dpverify.auditing.run import KINDS, Report
from dpverify.auditing.run import audit as run_audit
from dpverify.auditing.text import lines, plain
from dpverify.cli.output import decimal, talk
from dpverify.enclosure import rational
from dpverify.errors import ConfigurationError, OutputError, ParameterError, require

__all__ = ["audit"]


@click.command(short_help="Attack what a mechanism claims.")
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Level of the run.")
@click.option("--draws", type=int, default=10_000, show_default=True, help="On each side.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the audit's randomness.")
@click.option("--delta", help="Where epsilon is bounded; by default 0, or what the claim needs.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only this kind.")
@click.option("--search", is_flag=True, help="Search for a worse pair than those that are named.")
@click.option("--workers", type=int, default=-1, help="Processes; the result is the same.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="Of the report.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it there.")
@click.option(
    "--journal",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep what is found there, and go on from it.",
)
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 where nothing could be said.")
def audit(
    targets: tuple[str, ...],
    alpha: float,
    draws: int,
    seed: int,
    delta: str | None,
    kinds: tuple[Any, ...],
    search: bool,
    workers: int,
    style: str,
    as_json: bool,
    output: Path | None,
    journal: Path | None,
    allow_inconclusive: bool,
) -> int:
    """Audit each TARGET: a suite's name, or package.module:object.

    The object is a mechanism, or a sequence of mechanisms. Without a target every installed suite
    is audited. The level is shared equally by all mechanisms.
    """
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")
    require(seed >= 0, "seed", seed, "at least 0")
    at = None if delta is None else rational("delta", decimal("delta", delta))
    subjects = [subject for target in targets or _suites() for subject in _subjects(target)]
    require(bool(subjects), "targets", ", ".join(targets) or "none", "one that holds a mechanism")
    share = alpha / len(subjects) * (1 - 1e-12)
    # All targets: the level of one depends on how many there are.
    words = ["dpverify", "audit", *targets, "--alpha", str(alpha), "--draws", str(draws)]
    words += ["--seed", str(seed)] + (["--delta", delta] if delta else [])
    words += ["--search"] if search else []
    replay_line = shlex.join([*words, *(word for kind in kinds for word in ("--kind", kind))])
    reports = []
    for number, (name, mechanism) in enumerate(subjects, start=1):
        talk(f"{number} of {len(subjects)}: {name}")
        report = run_audit(
            mechanism,
            alpha=share,
            delta=at,
            draws=draws,
            seed=seed,
            kinds=kinds or None,
            search=search or None,
            workers=workers,
            replay=replay_line,
            journal=AuditJournal(journal, run=replay_line),
            progress=lambda kind: talk(f"  {kind}"),
        )
        reports.append(replace(report, mechanism=name))
    _write(_rendered(reports, "json" if as_json else style), output)
    verdicts = {report.verdict for report in reports}
    if "violation" in verdicts:
        return 1
    return 3 if "inconclusive" in verdicts and not allow_inconclusive else 0


def _suites() -> list[str]:
    return sorted(entry.name for entry in entry_points(group="dpverify.audits"))


def _subjects(target: str) -> Iterator[tuple[str, Any]]:
    """Mechanisms of a target by name."""
    found = _loaded(target)
    for item in [found] if hasattr(found, "release") else found:
        # A planted bug makes its broken mechanism, which the audit is to find.
        mechanism = item.broken() if hasattr(item, "broken") else item
        if not hasattr(mechanism, "release"):
            raise ConfigurationError(f"{target} holds {item!r}, which is no mechanism: adapt it.")
        yield getattr(item, "name", named(mechanism)), mechanism


def _loaded(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not colon:
        suites = entry_points(group="dpverify.audits", name=target)
        if not suites:
            known = ", ".join(_suites()) or "none is installed"
            raise ParameterError("TARGET", target, f"a suite ({known}) or package.module:object")
        return next(iter(suites)).load()
    if os.getcwd() not in sys.path:  # noqa: PTH109  # what `python -m` would find, this finds
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"TARGET {target} can't be loaded: {error}.") from error
    if not hasattr(found, "release") and not isinstance(found, list | tuple):
        raise ConfigurationError(
            f"{target} is neither a mechanism nor a list of them: make one of a function with "
            "dpverify.testing.adapters.adapt."
        )
    return found


def _rendered(reports: Sequence[Report], style: str) -> str:
    if style == "json":
        result = [_described(report) for report in reports]
        document = {"dpverify": __version__, "command": "audit", "result": result}
        return json.dumps(document, indent=2, ensure_ascii=False)
    if style == "junit":
        return _junit(reports)
    return "\n\n".join("\n".join(lines(report)) for report in reports)


def _described(report: Report) -> dict[str, Any]:
    epsilon, delta = report.claim
    return {
        "mechanism": report.mechanism,
        "verdict": report.verdict,
        "claim": {"epsilon": str(epsilon), "delta": str(delta)},
        "alpha": report.alpha,
        "failed": list(report.failed),
        "findings": [_described_finding(finding) for finding in report.findings],
        "replay": report.replay,
    }


def _described_finding(finding: Finding) -> dict[str, Any]:
    pair, lower = finding.pair, finding.epsilon_lower
    return {
        "audit": finding.audit,
        "verdict": finding.verdict,
        "statement": finding.statement,
        "level": finding.level,
        "pair": pair
        and {
            "name": pair.name,
            "record": plain(pair.record),
            "neighbour": plain(pair.neighbour),
        },
        "epsilon_lower": None if lower is None else str(lower),
        "evidence": {name: str(value) for name, value in finding.evidence.items()},
        "power": {name: str(value) for name, value in finding.power.items()},
        "replay": finding.replay,
    }


def _junit(reports: Sequence[Report]) -> str:
    verdicts = [report.verdict for report in reports]
    suite = ElementTree.Element(
        "testsuite",
        name="dpverify audit",
        tests=str(len(reports)),
        failures=str(verdicts.count("violation")),
        errors="0",
        skipped=str(verdicts.count("inconclusive")),
    )
    outcomes = {"violation": "failure", "inconclusive": "skipped"}
    for report in reports:
        case = ElementTree.SubElement(
            suite, "testcase", classname="dpverify", name=report.mechanism
        )
        text = "\n".join(lines(report))
        if report.verdict in outcomes:
            outcome = ElementTree.SubElement(case, outcomes[report.verdict], message=report.verdict)
            outcome.text = text
        else:
            ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode")


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text)
        return
    beside = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(output)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OutputError(f"the report can't be written to {output}: {error}.") from error
