"""Where a command's work runs: the options of those that spread it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dpverify.auditing.settings import checked
from dpverify.cli.output import Choice, Whole
from dpverify.execution.parallel import BACKENDS, Backend, workplace

__all__ = ["where_options", "workers_option"]

workers_option = click.option(
    "--workers",
    type=Whole(),
    default=-1,
    show_default=True,
    callback=lambda context, parameter, value: checked("command line", "workers", value),
    help="Processes, -1 for one on each core; the result is the same.",
)


def where_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--backend`` and ``--scheduler``: the whole command spreads its work there."""

    @wraps(command)
    def placed(*arguments: Any, backend: Backend, scheduler: str | None, **named: Any) -> Any:
        with workplace(backend=backend, scheduler=scheduler):
            return command(*arguments, **named)

    for option in (
        click.option("--scheduler", metavar="ADDRESS", help="Scheduler of --backend dask."),
        click.option(
            "--backend",
            type=Choice(BACKENDS),
            default=BACKENDS[0],
            show_default=True,
            help="Where work runs: processes here, or a dask cluster. The result is the same.",
        ),
    ):
        placed = option(placed)
    return placed
