"""``dpverify compose``: the total of several certified releases about the same people."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import rfc8785

from dpverify.certificate.checks import Check, certificate_path, read_certificate
from dpverify.certificate.compose import SCHEMA, OwnersWord
from dpverify.certificate.compose import compose as compose_certificates
from dpverify.cli.output import emit_json, emit_table, exact_number, json_option, say, talk_options
from dpverify.cli.verify import exit_code, replay_option, tell, verify_aloud
from dpverify.cli.where import where_options, workers_option
from dpverify.data.atomic_files import write_file
from dpverify.errors import CertificateError
from dpverify.visible import hidden

__all__ = ["compose"]


@click.command(short_help="What several releases reveal together.")
@click.argument(
    "certificates", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="CERTIFICATE…"
)
@click.option("--delta", help="State the total's epsilon at this delta; the sum of all by default.")
@click.option(
    "--unit",
    metavar="TEXT",
    help="Owner's word: one change of this is at most one change in every release.",
)
@click.option(
    "--same-records",
    is_flag=True,
    help="Owner's word: releases on one public draw are of the very same records.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the composed certificate to this file.",
)
@replay_option
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 in place of 3.")
@json_option
@talk_options
@workers_option
@where_options
def compose(
    certificates: tuple[Path, ...],
    delta: str | None,
    unit: str | None,
    same_records: bool,
    out: Path | None,
    replay: bool,
    allow_inconclusive: bool,
    as_json: bool,
    workers: int,
) -> int:
    """Verify every CERTIFICATE, and certify what all their releases guarantee together.

    The total is for the same people, also where later releases were chosen by earlier ones. It is
    computed from the mechanisms' exact privacy losses, and covers no release that isn't named.
    Nothing is written if a certificate doesn't agree.
    """
    if unit == "":
        raise click.UsageError("--unit is empty: name what is protected.")
    if unit is not None and (character := hidden(unit)):
        raise click.UsageError(f"--unit holds the hidden character {character}: leave it out.")
    certificates = tuple(map(certificate_path, certificates))
    parts = [read_certificate(path) for path in certificates]
    if out is not None and os.path.lexists(out) and not _is_composed(out):
        raise click.UsageError(
            f"--out {out} exists and is not a composed certificate: choose another file."
        )
    fields = compose_certificates(
        parts,
        delta=None if delta is None else exact_number("delta", delta),
        owners_word=OwnersWord(unit=unit, same_records=same_records),
    )
    found = [
        verify_aloud(part, path.parent, replay=replay, workers=workers)
        for path, part in zip(certificates, parts, strict=True)
    ]
    checks = [check for part in found for check in part]
    code = exit_code(checks, allow_inconclusive=allow_inconclusive)
    _tell(certificates, found)
    if code == 1:
        say("Nothing was composed: a certificate doesn't agree.", err=True)
        return code
    if out is not None:
        write_file(out, rfc8785.dumps(fields) + b"\n")
    if as_json:
        emit_json("compose", _result(certificates, found, fields, out))
    else:
        _report(certificates, found, fields, out)
    return code


def _is_composed(path: Path) -> bool:
    """Whether a file may be replaced: a released one, say, can't be made again."""
    try:
        return path.is_file() and read_certificate(path).get("schema") == SCHEMA
    except CertificateError:
        return False


def _tell(certificates: Sequence[Path], found: Sequence[Sequence[Check]]) -> None:
    for path, checks in zip(certificates, found, strict=True):
        for check in checks:
            if tell(check, where=f"{path}: "):
                for field in check.fields:
                    say(f"{path}: no longer agrees: {field}", err=True)


def _result(
    certificates: Sequence[Path],
    found: Sequence[Sequence[Check]],
    fields: dict[str, Any],
    out: Path | None,
) -> dict[str, Any]:
    return {
        "releases": [
            {
                "certificate": str(path),
                "mechanism": part["inputs"]["mechanism"],
                "epsilon": part["inputs"]["epsilon"],
                "delta": part["inputs"]["delta"],
                "protects": part["derived"]["protects"],
                "checks": Counter(check.status for check in checks),
            }
            for path, part, checks in zip(certificates, fields["parts"], found, strict=True)
        ],
        "delta": fields["delta"],
        "owners_word": fields["owners_word"],
        **fields["total"],
        "file": None if out is None else str(out),
    }


def _report(
    certificates: Sequence[Path],
    found: Sequence[Sequence[Check]],
    fields: dict[str, Any],
    out: Path | None,
) -> None:
    total = fields["total"]
    rows = [
        [
            str(path),
            part["inputs"]["mechanism"],
            part["inputs"]["epsilon"],
            part["inputs"]["delta"],
            ", ".join(f"{n} {status}" for status, n in Counter(c.status for c in checks).items()),
        ]
        for path, part, checks in zip(certificates, fields["parts"], found, strict=True)
    ]
    rows.append(["added up", "", total["added_epsilon"], total["added_delta"], ""])
    rows.append(["together, at most", "", total["epsilon"]["upper"], fields["delta"], ""])
    emit_table(rows, headings=["release", "mechanism", "epsilon", "delta", "checks"])
    say(f"protects: {total['protects']}")
    say(f"by {total['theorem']}")
    say(f"randomness: {total['randomness']}")
    say(f"data choice: {total['data_choice']}")
    for assumption in total["assumptions"]:
        say(f"assumes: {assumption}")
    if out is not None:
        say(f"certificate: {out}")
