"""What the commands share: the JSON envelope, tables on stdout, talk and progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, TextIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dpverify._version import __version__
from dpverify.enclosure import Real, rational
from dpverify.errors import ConfigurationError, ParameterError, did_you_mean
from dpverify.execution.progress import Announce
from dpverify.visible import escaped

__all__ = [
    "Choice",
    "Double",
    "NamedCommand",
    "Whole",
    "emit_json",
    "emit_table",
    "exact_number",
    "json_option",
    "key_values",
    "parse_parameters",
    "progress_bar",
    "say",
    "talk",
    "talk_options",
]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

_QUIET, _NORMAL, _VERBOSE = -1, 0, 1
_KEY = "dpverify.talk"


def talk_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--quiet`` and ``--verbose``, which decide what `talk` says and change no result."""

    def set_level(level: int) -> Callable[[click.Context, click.Parameter, bool], None]:
        def callback(context: click.Context, parameter: click.Parameter, given: bool) -> None:
            if given and context.meta.setdefault(_KEY, level) != level:
                raise click.UsageError("give either --quiet or --verbose, and not both.")

        return callback

    for names, level, text in (
        (("-v", "--verbose"), _VERBOSE, "Say more on stderr: settings, checks, times."),
        (("-q", "--quiet"), _QUIET, "Say nothing on stderr but errors."),
    ):
        option = click.option(
            *names, is_flag=True, expose_value=False, callback=set_level(level), help=text
        )
        command = option(command)
    return command


class Choice(click.Choice[str]):
    """One of a few words, which says what a mistyped one was probably meant to be."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Text of the refusal."""
        return f"{value} is unknown. {did_you_mean(str(value), self.choices)}"


class _Written:
    """A number as other numbers are written: `int` and `float` also take other scripts' digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that a text says."""
        if isinstance(value, str) and (not value.isascii() or "_" in value):
            raise click.BadParameter(f"{value!r} is not a number.", ctx, param)
        return super().convert(value, param, ctx)  # type: ignore[misc]


class Whole(_Written, click.types.IntParamType):
    """A whole number of the command line."""


class Double(_Written, click.types.FloatParamType):
    """A number of the command line that counts as the double next to it."""


def emit_json(command: str, result: Any, *, of: str = "result") -> None:
    """Print the envelope that every command shares; `of` is "error" where there is no result."""
    document = {"dpverify": __version__, "command": command, of: result}
    text = json.dumps(document, indent=2, ensure_ascii=not _is_unicode(sys.stdout))
    # Beyond spaces and line feeds these stand in strings alone, where JSON has its own escapes.
    click.echo("".join(c if c == "\n" or escaped(c) == c else json.dumps(c)[1:-1] for c in text))


def _is_unicode(stream: TextIO) -> bool:
    """Whether it writes every character; one that isn't said to be otherwise does."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def say(text: str, *, err: bool = False, lines: bool = False) -> None:
    """Print text that may quote what comes from elsewhere: `escaped`, so that it stays text."""
    click.echo(escaped(text, lines=lines), err=err)


def emit_table(rows: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> None:
    """Print rows of text in columns."""
    table = Table(box=None, show_header=bool(headings), pad_edge=False, padding=(0, 2, 0, 0))
    columns = headings or [""] * len(rows[0])
    for number, heading in enumerate(columns):
        last = number == len(columns) - 1
        table.add_column(heading, overflow="fold", no_wrap=not last)
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    # Piped output is never cut to a width that nobody sees.
    console = Console(
        highlight=False,
        width=None if sys.stdout.isatty() else 200,
        color_system=_colours(),
    )
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _colours() -> Literal["auto"] | None:
    # Where NO_COLOR is set, rich would leave out colours alone, and keep bold headings.
    return None if os.environ.get("NO_COLOR") else "auto"


def talk(message: str, *, detail: bool = False) -> None:
    """Say something that isn't the result; a detail only if ``--verbose`` asks for it."""
    if _level() >= (_VERBOSE if detail else _NORMAL):
        say(message, err=True)


def _level() -> int:
    context = click.get_current_context(silent=True)
    return _NORMAL if context is None else int(context.meta.get(_KEY, _NORMAL))


@contextmanager
def progress_bar() -> Iterator[Announce]:
    """Bars on stderr if that is a terminal; yields what phases are announced to."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, color_system=_colours())
    shown = console.is_terminal and _level() > _QUIET
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:

        def start(phase: str, total: int) -> Callable[[int], None]:
            task = bar.add_task(phase, total=total)
            return lambda steps: bar.advance(task, steps)

        yield start


def exact_number(name: str, text: str) -> Decimal | Fraction:
    """A number of the command line: an exact decimal, or a fraction of whole numbers."""
    try:
        value = Decimal(text if text.isascii() and "_" not in text else "")
    except InvalidOperation:
        with suppress(ParameterError):
            return rational(name, text)
        raise ParameterError(name, repr(text), "a number") from None
    if not value.is_finite():
        raise ParameterError(name, text, "a finite number")
    rational(name, value)
    return value


class NamedCommand(click.Command):
    """A command of a NAME and its ``-p KEY=VALUE``, which says where a ``-p`` is forgotten."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        flags = {name for each in self.params for name in each.opts if getattr(each, "is_flag", 0)}
        for before, word in pairwise(["", *args]):
            is_value = before.startswith("-") and before not in flags
            if "=" in word and not word.startswith("-") and not is_value:
                raise click.UsageError(f"{word} is a parameter: write -p {word}", ctx)
            if before == "-p" and "=" not in word:
                raise click.UsageError(f"-p {word} has no value: write -p {word}=…", ctx)
        return super().parse_args(ctx, args)


def key_values(given: Sequence[str]) -> dict[str, str]:
    """Read ``key=value`` options."""
    values: dict[str, str] = {}
    for item in given:
        name, sign, text = item.removeprefix("=").partition("=")  # also written -p=key=value
        if not sign:
            raise ConfigurationError(f"{item} has no value: write {item}=…")
        if name in values:
            raise ConfigurationError(f"{name} is given twice, as {values[name]} and {text}.")
        values[name] = text
    return values


def parse_parameters(
    texts: Mapping[str, str], known: Mapping[str, str], *, defaults: Mapping[str, Real]
) -> dict[str, Real]:
    """Numbers from texts by key; `known` maps the keys to what they are."""
    for name in texts:
        if name not in known:
            raise ConfigurationError(f"there is no parameter {name}. {did_you_mean(name, known)}")
    values = {**defaults, **{name: exact_number(name, text) for name, text in texts.items()}}
    for name, meaning in known.items():
        if name not in values:
            raise ConfigurationError(
                f"{name} is missing, {meaning}: give -p {name}=…, in a list of releases {name}=…"
            )
    return values
