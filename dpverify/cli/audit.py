"""``dpverify audit``: attacks what mechanisms claim."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from json import loads as parse
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from dpverify._json import each_once
from dpverify.auditing.audit import audit as run_audit
from dpverify.auditing.outputs.foreign import display_name
from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.report import Reported
from dpverify.auditing.reporters.json import json
from dpverify.auditing.reporters.junit import junit
from dpverify.auditing.reporters.text import text
from dpverify.auditing.settings import DEFAULTS, KINDS, OMITTABLE, PROFILES, Setting, Source, settle
from dpverify.auditing.targets.command import Command
from dpverify.cli.output import (
    Choice,
    Double,
    Whole,
    emit_json,
    emit_table,
    exact_number,
    say,
    talk,
    talk_options,
)
from dpverify.cli.where import where_options
from dpverify.data.adjacency import AddRemove, Replace
from dpverify.data.atomic_files import write_file
from dpverify.enclosure import rational
from dpverify.errors import PASSING, ConfigurationError, DPVerifyError, did_you_mean, require
from dpverify.execution.progress import duration
from dpverify.privacy import Pair
from dpverify.visible import raised, shown

__all__ = ["audit"]

_ADJACENCIES = {"add-remove": AddRemove, "replace": Replace}
_FORMATS = {"text": text, "json": json, "junit": junit}
_NUMERAL = 40  # characters of a numeral that a message repeats
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
@click.option("--seed", type=Whole(), metavar="NUMBER", help="Seed of the audit.  [default: 0]")
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
@click.option(
    "--epsilon",
    metavar="NUMBER",
    help="What a function or a command claims, with --adjacency and --pairs; --delta is its delta.",
)
@click.option(
    "--adjacency",
    type=Choice(list(_ADJACENCIES)),
    help="Whom it protects: a row that is added or removed, or one that is replaced.",
)
@click.option(
    "--pairs",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Neighbours for it: JSON lines with name, record and neighbour.",
)
@click.option("--seeded", is_flag=True, help="A command draws all its noise from a request's seed.")
@click.option("--many", is_flag=True, help="It makes as many draws as a request asks for.")
@click.option(
    "--library",
    "libraries",
    multiple=True,
    metavar="NAME",
    help="Only this library of the suite; may be repeated.",
)
@click.option("--search", is_flag=True, help="Search for a worse pair than those that are named.")
@click.option(
    "--workers",
    type=Whole(),
    metavar="NUMBER",
    help="Processes; the result is the same.  [default: -1, all]",
)
@click.option(
    "--time-limit",
    type=Double(),
    metavar="SECONDS",
    help="What one release may take; a whole audit, 1,000 times as much.  [default: 10]",
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
    time_limit: float | None,
    epsilon: str | None,
    adjacency: str | None,
    pairs: Path | None,
    seeded: bool,
    many: bool,
    libraries: tuple[str, ...],
    search: bool,
    style: str,
    as_json: bool,
    output: Path | None,
    journal: Path | None,
    allow_inconclusive: bool,
    show_config: bool,
) -> int:
    """Audit each TARGET: a suite's name, package.module:object, or a command.

    The object is a mechanism, or a sequence of mechanisms, of what makes them, or of what has a
    method `audited`, as an accountant or an auditor may. With --epsilon,
    --adjacency and --pairs it is a function of a data set, or a command in quotes, as in
    "node mean.js": a program that reads a line of JSON, {"data": ...}, and answers by one, its
    output. Without a target every installed suite is audited. The level is shared equally by all
    mechanisms.

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
        "time_limit": time_limit,
    }
    settings = settle(Source("command line", given), folder=Path.cwd())
    if show_config:
        _show(settings, as_json=as_json)
        return 0
    for name, setting in settings.items():
        talk(f"{name}: {_shown(name, setting.value)} ({setting.origin})", detail=True)
    at = None if delta is None else rational("delta", exact_number("delta", delta))
    words = _claimed(epsilon, adjacency, pairs, seeded=seeded, many=many)
    if libraries:
        talk(f"Making the mechanisms of {', '.join(libraries)}")
    subjects = (
        [(target, _called(target, seeded=seeded, many=many), None) for target in targets]
        if words
        else [
            subject for target in targets or _suites() for subject in _subjects(target, libraries)
        ]
    )
    require(bool(subjects), "targets", ", ".join(targets) or "none", "one that holds a mechanism")
    chosen = {name: setting.value for name, setting in settings.items() if name != "profile"}
    said = {"epsilon": epsilon, "adjacency": adjacency, "pairs": pairs}
    of_suite = [word for name in libraries for word in ("--library", name)]
    words_said = [*targets, *of_suite]
    flags = {"search": search, "seeded": seeded, "many": many}
    run = _replay(words_said, chosen | said | {"workers": None}, delta, **flags)
    told = dict(chosen)
    chosen["alpha"] *= (1 - 1e-12) / len(subjects)
    unsaid = settings["draws"].origin == "default"

    def audited(name: str, subject: Any, fitting: int | None) -> Reported:
        if hasattr(subject, "audited"):
            own: Reported = subject.audited(alpha=chosen["alpha"])
            return own
        drawn = {"draws": fitting} if fitting and unsaid else {}
        report = run_audit(
            subject,
            **chosen | drawn,
            **_of_subject(words, subject),
            delta=at,
            search=search or None,
            replay=_replay(words_said, told | said | drawn, delta, **flags),
            journal=AuditJournal(journal, run=run),
            progress=lambda kind: talk(f"  {kind}"),
        )
        return replace(report, mechanism=name)

    if len(subjects) > 1:
        fitting = {own if own and unsaid else chosen["draws"] for *_, own in subjects}
        counts = " to ".join(map(str, dict.fromkeys((min(fitting), max(fitting)))))
        sides = f"{counts} draws from each side of each pair"
        talk(f"{len(subjects)} mechanisms, {sides}; what is left is told after the first")
    form, reports = _FORMATS["json" if as_json else style], list[Reported]()
    try:
        reports.extend(_timed(subjects, audited))
    except DPVerifyError:
        if reports:  # of those before the one that can't be audited
            _write(form(reports), output)
        raise
    _write(form(reports), output)
    verdicts = {report.verdict for report in reports}
    if "violation" in verdicts:
        return 1
    return 3 if "inconclusive" in verdicts and not allow_inconclusive else 0


def _timed(
    subjects: Sequence[tuple[str, Any, int | None]],
    audited: Callable[[str, Any, int | None], Reported],
) -> Iterator[Reported]:
    """A report of each subject, and on stderr which one runs and how long the rest may take."""
    count, began = len(subjects), perf_counter()
    for number, (name, subject, fitting) in enumerate(subjects, start=1):
        start = perf_counter()
        left = (start - began) / (number - 1) * (count - number + 1) if number > 1 else 0
        talk(f"{number} of {count}: {name}" + (f", about {duration(left)} left" if left else ""))
        with _printing_aside():
            report = audited(name, subject, fitting)
        talk(f"  {report.verdict}, {perf_counter() - start:.1f} s", detail=True)
        yield report


@contextmanager
def _printing_aside() -> Iterator[None]:
    """What a mechanism prints goes to stderr, also from its workers: stdout holds the report."""
    sys.stdout.flush()
    with ExitStack() as restored:
        restored.enter_context(redirect_stdout(sys.stderr))
        with suppress(OSError):  # one of them is closed
            own = os.dup(1)
            restored.callback(os.close, own)
            os.dup2(2, 1)
            restored.callback(os.dup2, own, 1)
        yield


def _replay(
    targets: Sequence[str], chosen: Mapping[str, Any], delta: str | None, **flags: bool
) -> str:
    # All targets, as the level of one depends on how many there are; and every setting that has an
    # effect on the result, so that the line holds wherever it is typed.
    words = ["dpverify", "audit", *targets]
    for name in ("alpha", "draws", "seed"):
        words += [f"--{name}", str(chosen[name])]
    if chosen["time_limit"] != DEFAULTS["time_limit"]:
        words += ["--time-limit", str(chosen["time_limit"])]
    words += ["--workers", "1"] if chosen["workers"] == 1 else []  # compares no processes
    words += ["--delta", delta] if delta else []
    words += [word for kind in chosen["kinds"] or () for word in ("--kind", kind)]
    words += [word for kind in chosen["without"] for word in ("--without", kind)]
    for name in ("epsilon", "adjacency", "pairs"):
        words += [f"--{name}", str(chosen[name])] if chosen[name] is not None else []
    words += [f"--{name}" for name, flag in flags.items() if flag]
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


def _claimed(
    epsilon: str | None, adjacency: str | None, pairs: Path | None, *, seeded: bool, many: bool
) -> dict[str, Any]:
    """What a function or a command claims and is audited with; nothing for mechanisms."""
    given = {"--epsilon": epsilon, "--adjacency": adjacency, "--pairs": pairs}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given) and not (seeded or many):
        return {}
    if epsilon is None or adjacency is None or pairs is None:
        raise ConfigurationError(f"{' and '.join(missing)} are missing for what isn't a mechanism.")
    return {
        "epsilon": exact_number("epsilon", epsilon),
        "adjacency": _ADJACENCIES[adjacency](),
        "of": "dataset",
        "pairs": _read(pairs),
        "many": many,
    }


def _read(file: Path) -> list[Pair]:
    """Pairs, each from a line of JSON."""
    try:
        lines = file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} can't be read: {error}.") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        try:
            held = parse(
                line, object_pairs_hook=each_once, parse_float=_double, parse_constant=_refused
            )
            pairs.append(_pair(held, f"line {number}"))
        except (ValueError, RecursionError) as error:
            rule = '{"name": …, "record": …, "neighbour": …}'
            raise ConfigurationError(f"{file}, line {number}, isn't {rule}: {error}.") from None
    return pairs


def _pair(held: Any, name: str) -> Pair:
    """A pair of a JSON object; without a name of its own, of this one."""
    if not isinstance(held, dict):
        raise ValueError(f"it is {shown(held)}")
    for side in ("record", "neighbour"):
        if side not in held:
            raise ValueError(f"it has no {side!r}")
    if unknown := held.keys() - {"name", "record", "neighbour"}:
        raise ValueError(f"it has {min(unknown)!r}")
    return Pair(
        name=str(held.get("name", name)), record=held["record"], neighbour=held["neighbour"]
    )


def _double(text: str) -> float:
    """A number that a double can hold, but for its last digits."""
    number = float(text)
    zero = not text.lower().partition("e")[0].strip("-0.")
    if math.isinf(number) or (number == 0 and not zero):
        raise ValueError(f"{text[:_NUMERAL]} is beyond the range of doubles")
    return number


def _refused(text: str) -> float:
    raise ValueError(f"{text} isn't a number of JSON; write null for what is missing")


def _called(target: str, *, seeded: bool, many: bool) -> Any:
    """A function by its place, or else a command."""
    if " " not in target and ":" in target and not Path(target).exists():
        require(not seeded, "--seeded", target, "left out for a target that isn't a command")
        return _found(target)
    return Command(target, seeded=seeded, many=many)


def _of_subject(words: Mapping[str, Any], subject: Any) -> dict[str, Any]:
    """A command says itself whether it makes many."""
    return {k: v for k, v in words.items() if k != "many" or not isinstance(subject, Command)}


def _suites() -> list[str]:
    return sorted(entry.name for entry in entry_points(group="dpverify.audits"))


def _subjects(target: str, parts: Sequence[str] = ()) -> Iterator[tuple[str, Any, int | None]]:
    """Mechanisms of a target by name; of a suite of several parts, those of these.

    What a part has in it may take long to draw from, so that it says how many draws fit.
    """
    found = _loaded(target)
    several = hasattr(found, "part")
    if parts:
        if not several:
            raise ConfigurationError(f"TARGET {target} has no libraries. Leave out --library.")
        found = [item for part in parts for item in found.part(part)]
    for item in [found] if hasattr(found, "release") else found:
        mechanism = item() if _makes_one(item) else item
        if not hasattr(mechanism, "release") and not hasattr(mechanism, "audited"):
            raise ConfigurationError(
                f"{target} holds {item!r}, which is not a mechanism: adapt it."
            )
        fitting = getattr(item, "draws", None) if several else None
        yield getattr(item, "name", display_name(mechanism)), mechanism, fitting


def _makes_one(item: Any) -> bool:
    """Whether it isn't a mechanism, but may make one when it is called without arguments."""
    if hasattr(item, "release") or isinstance(item, type) or not callable(item):
        return False
    try:
        signature(item).bind()
    except (TypeError, ValueError):
        return False
    return True


def _found(target: str) -> Any:
    """The object of a module."""
    module, _, name = target.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109  # what `python -m` would find, this finds
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: Any = import_module(module)
    except PASSING:
        raise
    except BaseException as error:  # whatever a module does when it is imported
        raise ConfigurationError(f"TARGET {target} can't be loaded: {raised(error)}.") from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = [entry for entry in dir(found) if not entry.startswith("_")]
            hint = did_you_mean(part, known, otherwise="Name an object that it holds.")
            raise ConfigurationError(f"TARGET {target}: there is no {part} in it. {hint}")
        found = getattr(found, part)
    return found


def _loaded(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not colon:
        suites = entry_points(group="dpverify.audits", name=target)
        if not suites:
            raise ConfigurationError(
                f"TARGET {target} is not an installed suite. {did_you_mean(target, _suites())} "
                "Write package.module:object for a mechanism of your own."
            )
        return next(iter(suites)).load()
    found = _found(target)
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
