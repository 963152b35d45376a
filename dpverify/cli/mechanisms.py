"""``dpverify mechanisms``: what installed packages announce."""

from __future__ import annotations

import click

from dpverify.certificate.derive import families
from dpverify.cli.output import emit_json, emit_table, json_option

__all__ = ["mechanisms"]


@click.command(short_help="List the mechanisms that can be certified.")
@json_option
def mechanisms(as_json: bool) -> None:
    """List the mechanisms that can be certified, with their parameters."""
    known = families()
    if as_json:
        emit_json(
            "mechanisms",
            [
                {
                    "name": family.name,
                    "paper": family.paper,
                    "guarantee": family.guarantee,
                    "adjacency": list(family.adjacency),
                    "parameters": {
                        parameter.name: f"{parameter.meaning}, {parameter.domain}"
                        for parameter in family.parameters
                    },
                }
                for family in known.values()
            ],
        )
        return
    rows = [
        [
            family.name,
            family.paper,
            family.guarantee,
            ", ".join(family.adjacency),
            ", ".join(f"{p.name}: {p.domain}" for p in family.parameters),
        ]
        for family in known.values()
    ]
    emit_table(rows, headings=["name", "paper", "guarantee", "adjacency", "parameters"])
