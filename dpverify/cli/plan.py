"""``dpverify plan``: what a release would guarantee and be worth, before it is made."""

from __future__ import annotations

from pathlib import Path

import click

from dpverify.certificate import plan as planning
from dpverify.cli.output import emit_json, emit_table, json_option, talk_options

__all__ = ["plan"]


@click.command(short_help="What a release would protect, and be worth.")
@click.argument("config", type=click.Path(path_type=Path))
@json_option
@talk_options
def plan(config: Path, as_json: bool) -> None:
    """Plan the release that CONFIG describes: its guarantee, its errors, and a verdict.

    Nothing is drawn or written, and of the records only the numbers of rows and columns are read.
    The verdict is useful, coarse or useless; docs/choosing.md has the rule. What would help stands
    below it.
    """
    planned = planning.plan(config)
    if as_json:
        emit_json("plan", planned.to_dict())
    else:
        emit_table(planned.rows())
