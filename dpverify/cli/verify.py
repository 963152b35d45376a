"""``dpverify verify``: check a certificate again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from dpverify.certificate.derive import total_draws
from dpverify.certificate.model import Inputs
from dpverify.certificate.verify import read_certificate
from dpverify.certificate.verify import verify as verify_certificate
from dpverify.cli.output import emit_json, emit_table, json_option, progress_bar
from dpverify.mechanism import Certifiable

__all__ = ["verify"]


@click.command(short_help="Check a certificate again.")
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 in place of 3.")
@json_option
def verify(certificate: Path, allow_inconclusive: bool, as_json: bool) -> int:
    """Rebuild, replay and recompute all that CERTIFICATE says, and compare.

    The released file is looked for beside it. This can't show that dpverify made the release:
    only that everything stated follows from the stated inputs.
    """
    fields = read_certificate(certificate)
    with progress_bar("replaying") as start:

        def announce(inputs: Inputs, mechanism: Certifiable) -> Callable[[int], None]:
            return start(total_draws(inputs, mechanism))

        checks = verify_certificate(fields, certificate.parent, announce=announce)
    if as_json:
        emit_json(
            "verify",
            [
                {"name": c.name, "status": c.status, "detail": c.detail, "fields": list(c.fields)}
                for c in checks
            ],
        )
    else:
        rows = [[c.status, c.name, c.detail] for c in checks]
        emit_table(rows, headings=["", "what", "how"])
        for check in checks:
            for field in check.fields:
                click.echo(f"no longer agrees: {field}")
    statuses = {check.status for check in checks}
    if statuses & {"differs", "violation"}:
        return 1
    return 3 if "inconclusive" in statuses and not allow_inconclusive else 0
