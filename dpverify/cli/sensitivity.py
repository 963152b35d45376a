"""``dpverify sensitivity``: the largest row norm of a projection in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import click

from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.cli.output import emit_json, emit_table, json_option, say
from dpverify.data.loading import open_matrix
from dpverify.enclosure import Enclosure, squared

__all__ = ["sensitivity"]


@click.command(short_help="Sensitivity of a projection in a file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--norm",
    type=click.Choice(["1", "2"]),
    required=True,
    help="1 for the l1 norm, 2 for the l2 norm.",
)
@json_option
def sensitivity(file: Path, norm: str, as_json: bool) -> None:
    """Largest l1 or l2 norm of a row of the p x k matrix in FILE (.npy, .npz, .csv, .parquet).

    That is the sensitivity of x @ P to a change of one attribute by 1. The file's doubles count as
    they are, and numbers of a text as the doubles next to them; multiply by beta for
    beta-adjacency.
    """
    matrix = open_matrix(file)
    which = cast("Literal[1, 2]", int(norm))
    value = max((largest_row_norm(block, which) for block in matrix.read()), key=squared)
    exact = {"squared": str(squared(value))} if norm == "2" else {"exact": str(value)}
    ends = Enclosure.of_exact(value).as_json()
    if as_json:
        emit_json(
            "sensitivity",
            {"norm": int(norm), "shape": list(matrix.shape), "sensitivity": ends, **exact},
        )
        return
    rows = [[f"l{norm}-sensitivity", ends["upper"], ends["lower"]]]
    emit_table(rows, headings=["", "at most (the safe end)", "at least"])
    kind, text = next(iter(exact.items()))
    say(f"{kind} = {text}" if len(text) <= 120 else f"{kind}: see --json")
