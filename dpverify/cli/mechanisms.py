"""``dpverify mechanisms``: what installed packages announce."""

from __future__ import annotations

import click

from dpverify.certificate.derive import families
from dpverify.cli.output import emit_json, emit_table, json_option
from dpverify.mechanism import Parameter

__all__ = ["mechanisms"]


@click.command(short_help="List the known mechanisms.")
@json_option
def mechanisms(as_json: bool) -> None:
    """List the mechanisms that installed packages announce, with their parameters.

    What a row says can't be certified is kept for comparison or as a warning.
    """
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
                    "domain": list(family.domain),
                    "estimates": list(family.estimates),
                    "certifiable": family.build is not None,
                    "refusal": family.refusal,
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
            ", ".join(family.estimates),
            ", ".join(map(_parameter, family.parameters)) or family.refusal,
        ]
        for family in known.values()
    ]
    emit_table(
        rows, headings=["name", "paper", "guarantee", "adjacency", "estimates", "parameters"]
    )


def _parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" (default {parameter.default})"
    return f"{parameter.name}: {parameter.domain}{default}"
