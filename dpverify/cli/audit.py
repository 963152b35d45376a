"""``dpverify audit``: attacks what mechanisms claim."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from dpverify.auditing.audit import audit as run_audit
from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.outputs.samples import display_name
from dpverify.auditing.reporters.json import json
from dpverify.auditing.reporters.junit import junit
from dpverify.auditing.reporters.text import text
from dpverify.auditing.settings import KINDS, OMITTABLE, PROFILES, Setting, Source, settle
from dpverify.cli.output import (
    Choice,
    Double,
    Whole,
    decimal,
    emit_json,
    emit_table,
    say,
    talk,
    talk_options,
)
from dpverify.cli.where import where_options
from dpverify.data.atomic_files import write_file
from dpverify.enclosure import rational
from dpverify.errors import ConfigurationError, did_you_mean, require

__all__ = ["audit"]

_FORMATS = {"text": text, "json": json, "junit": junit}
_CLAIMED = """
    from fractions import Fraction
    from dpverify.accounting.curves.approximate_dp import ApproxDP
    from dpverify.data.adjacency import Attribute
    from dpverify.auditing.targets.functions import adapt

    unit = Attribute(beta=Fraction(1))
    claim = ApproxDP(epsilon=Fraction(1))
    audited = adapt({name}, of="record", attributes=1, adjacency=unit, claim=claim)
"""


@click.command(short_help="Attack what a mechanism claims.")
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
@click.option("--profile", type=Choice(list(PROFILES)), help="Draws, level and kinds by one name.")
@click.option(
    "--alpha",
    type=Double(),
    metavar="NUMBER",
    help="Level of the run: how likely a false alarm may be.  [default: 0.01]",
)
@click.option(
    "--draws",
    type=Whole(),
    metavar="NUMBER",
    help="Outputs drawn from each of two neighbours.  [default: 10000]",
)
@click.option(
    "--seed", type=Whole(), metavar="NUMBER", help="Of the audit's randomness.  [default: 0]"
)
@click.option(
    "--delta",
    metavar="NUMBER",
    help="The delta at which epsilon is bounded; by default 0, or what the claim needs.",
)
@click.option(
    "--kind",
    "kinds",
    type=Choice(KINDS),
    multiple=True,
    help="Only this kind of audit; may be repeated.",
)
@click.option(
    "--without", type=Choice(OMITTABLE), multiple=True, help="All kinds but this; may be repeated."
)
@click.option("--search", is_flag=True, help="Search for a worse pair than those that are named.")
@click.option(
    "--workers",
    type=Whole(),
    metavar="NUMBER",
    help="Processes; the result is the same.  [default: -1, all]",
)
@click.option(
    "--format",
    "style",
    type=Choice(list(_FORMATS)),
    default="text",
    show_default=True,
    help="Form of the report.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report to this file.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep what is found in this file; a run that was interrupted goes on from it.",
)
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 where nothing could be said.")
@click.option("--show-config", is_flag=True, help="Print the settings and where each comes from.")
@talk_options
@where_options
def audit(
    targets: tuple[str, ...],
    profile: str | None,
    alpha: float | None,
    draws: int | None,
    seed: int | None,
    delta: str | None,
    kinds: tuple[Any, ...],
    without: tuple[Any, ...],
    workers: int | None,
    search: bool,
    style: str,
    as_json: bool,
    output: Path | None,
    journal: Path | None,
    allow_inconclusive: bool,
    show_config: bool,
) -> int:
    """Audit each TARGET: a suite's name, or package.module:object.

    The object is a mechanism, or a sequence of mechanisms or of what makes them. Without a target
    every installed suite is audited. The level is shared equally by all mechanisms.

    What isn't given here comes from DPVERIFY_PROFILE, then from dpverify.toml or the table
    tool.dpverify of pyproject.toml, in this folder or the nearest above it.
    """
    given = {
        "profile": profile,
        "alpha": alpha,
        "draws": draws,
        "seed": seed,
        "kinds": kinds or None,
        "without": without or None,
        "workers": workers,
    }
    settings = settle(Source("command line", given), folder=Path.cwd())
    if show_config:
        _show(settings, as_json=as_json)
        return 0
    for name, setting in settings.items():
        talk(f"{name}: {_shown(name, setting.value)} ({setting.origin})", detail=True)
    at = None if delta is None else rational("delta", decimal("delta", delta))
    subjects = [subject for target in targets or _suites() for subject in _subjects(target)]
    require(bool(subjects), "targets", ", ".join(targets) or "none", "one that holds a mechanism")
    chosen = {name: setting.value for name, setting in settings.items() if name != "profile"}
    replay_line = _replay(targets, chosen, delta, search=search)
    chosen["alpha"] *= (1 - 1e-12) / len(subjects)
    reports = []
    for number, (name, mechanism) in enumerate(subjects, start=1):
        talk(f"{number} of {len(subjects)}: {name}")
        start = perf_counter()
        report = run_audit(
            mechanism,
            **chosen,
            delta=at,
            search=search or None,
            replay=replay_line,
            journal=AuditJournal(journal, run=replay_line),
            progress=lambda kind: talk(f"  {kind}"),
        )
        talk(f"  {report.verdict}, {perf_counter() - start:.1f} s", detail=True)
        reports.append(replace(report, mechanism=name))
    _write(_FORMATS["json" if as_json else style](reports), output)
    verdicts = {report.verdict for report in reports}
    if "violation" in verdicts:
        return 1
    return 3 if "inconclusive" in verdicts and not allow_inconclusive else 0


def _replay(
    targets: Sequence[str], chosen: Mapping[str, Any], delta: str | None, *, search: bool
) -> str:
    # All targets, as the level of one depends on how many there are; and every setting that has an
    # effect on the result, so that the line holds wherever it is typed.
    words = ["dpverify", "audit", *targets]
    for name in ("alpha", "draws", "seed"):
        words += [f"--{name}", str(chosen[name])]
    words += ["--delta", delta] if delta else []
    words += [word for kind in chosen["kinds"] or () for word in ("--kind", kind)]
    words += [word for kind in chosen["without"] for word in ("--without", kind)]
    words += ["--search"] if search else []
    return shlex.join(words)


def _show(settings: Mapping[str, Setting], *, as_json: bool) -> None:
    if as_json:
        result = {
            name: {"value": setting.value, "from": setting.origin}
            for name, setting in settings.items()
        }
        emit_json("audit", result)
        return
    rows = [[name, _shown(name, each.value), each.origin] for name, each in settings.items()]
    emit_table(rows, headings=["setting", "value", "from"])


def _shown(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if value is None:
        return "those that apply" if name == "kinds" else "none"
    return str(value)


def _suites() -> list[str]:
    return sorted(entry.name for entry in entry_points(group="dpverify.audits"))


def _subjects(target: str) -> Iterator[tuple[str, Any]]:
    """Mechanisms of a target by name."""
    found = _loaded(target)
    for item in [found] if hasattr(found, "release") else found:
        mechanism = item() if _makes_one(item) else item
        if not hasattr(mechanism, "release"):
            raise ConfigurationError(f"{target} holds {item!r}, which is no mechanism: adapt it.")
        yield getattr(item, "name", display_name(mechanism)), mechanism


def _makes_one(item: Any) -> bool:
    """Whether it is no mechanism, and called without arguments it may make one."""
    if hasattr(item, "release") or isinstance(item, type) or not callable(item):
        return False
    try:
        signature(item).bind()
    except (TypeError, ValueError):
        return False
    return True


def _loaded(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not colon:
        suites = entry_points(group="dpverify.audits", name=target)
        if not suites:
            raise ConfigurationError(
                f"TARGET {target} is no installed suite. {did_you_mean(target, _suites())} "
                "A mechanism of your own is package.module:object."
            )
        return next(iter(suites)).load()
    if os.getcwd() not in sys.path:  # noqa: PTH109  # what `python -m` would find, this finds
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Any = import_module(module)
    except (ImportError, ValueError) as error:
        raise ConfigurationError(f"TARGET {target} can't be loaded: {error}.") from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = [entry for entry in dir(found) if not entry.startswith("_")]
            hint = did_you_mean(part, known, otherwise="Name an object that it holds.")
            raise ConfigurationError(f"TARGET {target}: there is no {part} in it. {hint}")
        found = getattr(found, part)
    if not hasattr(found, "release") and not isinstance(found, list | tuple):
        rule = f"{target} is neither a mechanism nor a list of them"
        if not callable(found):
            raise ConfigurationError(f"{rule}. Name an object with `release`, or a list of such.")
        refusal = ConfigurationError(
            f"{rule}. A function doesn't say what it claims. Put that beside it (here: epsilon 1, "
            f"for one record of one attribute that moves by 1), and audit {module}:audited"
        )
        refusal.add_note(_CLAIMED.format(name=name))
        raise refusal
    return found


def _write(text: str, output: Path | None) -> None:
    if output is None:
        say(text, lines=True)
        return
    write_file(output, f"{text}\n".encode())
    talk(f"report: {output}")
