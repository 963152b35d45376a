"""``dpverify mechanisms``: what installed packages announce."""

from __future__ import annotations

from typing import Any

import click

from dpverify.certificate.derive import families
from dpverify.cli.output import emit_json, emit_table, json_option
from dpverify.errors import did_you_mean
from dpverify.privacy import MechanismFamily, Parameter

__all__ = ["mechanisms"]


@click.command(short_help="List the known mechanisms, or describe one.")
@click.argument("name", required=False)
@json_option
def mechanisms(name: str | None, as_json: bool) -> None:
    """List the mechanisms that installed packages announce, or describe the one called NAME.

    Those marked with * can't be certified: they are kept for comparison or as a warning.
    """
    known = families()
    if name is not None and name not in known:
        raise click.UsageError(f"there is no mechanism {name}. {did_you_mean(name, known)}")
    chosen = known.values() if name is None else [known[name]]
    if as_json:
        emit_json("mechanisms", [_described(family) for family in chosen])
    elif name is None:
        rows = [
            [
                family.name + ("" if family.build else " *"),
                family.paper,
                family.guarantee,
                ", ".join(family.adjacency),
            ]
            for family in chosen
        ]
        emit_table(rows, headings=["name", "paper", "guarantee", "adjacency"])
    else:
        emit_table(_details(known[name]))


def _described(family: MechanismFamily) -> dict[str, Any]:
    return {
        "name": family.name,
        "paper": family.paper,
        "guarantee": family.guarantee,
        "adjacency": list(family.adjacency),
        "domain": list(family.domain),
        "estimates": list(family.estimates),
        "certifiable": family.build is not None,
        "refusal": family.refusal,
        "parameters": {p.name: f"{p.meaning}; {_range(p)}" for p in family.parameters},
    }


def _details(family: MechanismFamily) -> list[list[str]]:
    rows = [
        ["name", family.name],
        ["paper", family.paper],
        ["guarantee", family.guarantee],
        ["adjacency", ", ".join(family.adjacency)],
        ["domain", ", ".join(family.domain)],
        ["estimates", ", ".join(family.estimates)],
    ]
    rows += [
        ["parameters" if number == 0 else "", f"{p.name}: {p.meaning}; {_range(p)}"]
        for number, p in enumerate(family.parameters)
    ]
    return rows if family.build else [*rows, ["refused", family.refusal]]


def _range(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" (default {parameter.default})"
    return f"{parameter.domain}{default}"
