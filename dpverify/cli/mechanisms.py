"""``dpverify mechanisms``: what installed packages announce."""

from __future__ import annotations

import click

from dpverify.catalogue import HEADINGS, Catalogue, families
from dpverify.cli.output import emit_json, emit_table, json_option
from dpverify.errors import did_you_mean
from dpverify.family import MechanismFamily
from dpverify.ledger.statements import known_statements

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
    chosen = Catalogue(known.values() if name is None else [known[name]])
    if as_json:
        emit_json("mechanisms", chosen.to_dict())
    elif name is None:
        emit_table(chosen.rows(), headings=HEADINGS)
    else:
        emit_table(_details(known[name]))


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
        ["parameters" if number == 0 else "", f"{name}: {text}"]
        for number, (name, text) in enumerate(family.to_dict()["parameters"].items())
    ]
    if not family.build:
        rows.append(["refused", family.refusal])
    stated = [one for one in known_statements() if family.name in one.mechanisms]
    if used := [one.id for one in stated if not one.instead]:
        rows.append(["as printed", ", ".join(used)])
    faulty = [one for one in stated if one.instead]
    rows += [
        ["not as printed" if number == 0 else "", f"{one.id}: {one.instead}"]
        for number, one in enumerate(faulty)
    ]
    return rows
