"""What the commands share: the JSON envelope, tables on stdout, talk and progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dpverify import __version__
from dpverify.enclosure import Real
from dpverify.errors import ParameterError

__all__ = [
    "decimal",
    "emit_json",
    "emit_table",
    "json_option",
    "key_values",
    "parse_parameters",
    "progress_bar",
    "talk",
]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def emit_json(command: str, result: Any) -> None:
    """Print the envelope that every command shares."""
    document = {"dpverify": __version__, "command": command, "result": result}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def emit_table(rows: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> None:
    """Print rows of text in columns."""
    table = Table(box=None, show_header=bool(headings), pad_edge=False, padding=(0, 2, 0, 0))
    columns = headings or [""] * len(rows[0])
    for number, heading in enumerate(columns):
        last = number == len(columns) - 1
        table.add_column(heading, overflow="fold", no_wrap=not last)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    # Piped output is never cut to a width that nobody sees.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def talk(message: str) -> None:
    """Say something that isn't the result."""
    click.echo(message, err=True)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int], Callable[[int], None]]]:
    """A bar on stderr if that is a terminal; yields ``start(total) -> advance(steps)``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:

        def start(total: int) -> Callable[[int], None]:
            task = bar.add_task(description, total=total)
            return lambda steps: bar.advance(task, steps)

        yield start


def decimal(name: str, text: str) -> Decimal:
    """A number of the command line, which is an exact decimal."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ParameterError(name, repr(text), "a number") from None
    if not value.is_finite():
        raise ParameterError(name, text, "a finite number")
    if abs(value.adjusted()) > 10_000:
        raise ParameterError(name, text, "between 1e-10000 and 1e10000 in size")
    return value


def key_values(given: Sequence[str]) -> dict[str, str]:
    """Read ``key=value`` options."""
    values: dict[str, str] = {}
    for item in given:
        name, sign, text = item.partition("=")
        if not sign:
            raise ParameterError("-p", item, "of the form key=value")
        if name in values:
            raise ParameterError("-p", item, f"given once ({name} is given twice)")
        values[name] = text
    return values


def parse_parameters(
    given: Sequence[str], known: Mapping[str, str], *, defaults: Mapping[str, Real]
) -> dict[str, Real]:
    """Numbers from ``key=value`` options; `known` maps the keys to what they are."""
    texts = key_values(given)
    for name, text in texts.items():
        if name not in known:
            raise ParameterError("-p", f"{name}={text}", f"one of {', '.join(known)}")
    values = {**defaults, **{name: decimal(name, text) for name, text in texts.items()}}
    for name, meaning in known.items():
        if name not in values:
            raise ParameterError(name, "missing", f"given with -p {name}=…, {meaning}")
    return values
