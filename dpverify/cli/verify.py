"""``dpverify verify``: check a certificate again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from dpverify.certificate.compose import verify_document
from dpverify.certificate.derive import total_draws
from dpverify.certificate.keys import load_public_key
from dpverify.certificate.schema import Inputs
from dpverify.certificate.sign import check_signatures, envelope_beside
from dpverify.certificate.verify import Check, read_certificate
from dpverify.cli.output import emit_json, emit_table, json_option, progress_bar, say, talk
from dpverify.cli.where import where_options, workers_option
from dpverify.privacy import Certifiable

__all__ = ["exit_code", "replay_option", "tell", "verify", "verify_aloud"]

replay_option = click.option(
    "--no-replay",
    "replay",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Take the recorded counts as they are, and recompute the bounds alone.",
)


@click.command(short_help="Check a certificate again.")
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Public key whose signature must hold; may be repeated.",
)
@replay_option
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 in place of 3.")
@json_option
@workers_option
@where_options
def verify(
    certificate: Path,
    keys: tuple[Path, ...],
    replay: bool,
    allow_inconclusive: bool,
    as_json: bool,
    workers: int,
) -> int:
    """Rebuild, replay and recompute all that CERTIFICATE says, and compare.

    The released file is looked for beside it; those of a composed certificate also one folder
    below. With --key, the signature beside it must hold too, over this certificate and this file.
    This can't show that dpverify made the release: only that everything stated follows from the
    stated inputs.
    """
    signers = [load_public_key(key) for key in keys]
    fields = read_certificate(certificate)
    checks = verify_aloud(fields, certificate.parent, replay=replay, workers=workers)
    envelope = envelope_beside(certificate)
    if signers or os.path.lexists(envelope):
        checks += check_signatures(fields, envelope, signers)
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
                say(f"no longer agrees: {field}")
    return exit_code(checks, allow_inconclusive=allow_inconclusive)


def verify_aloud(
    fields: dict[str, Any], folder: Path, *, replay: bool, workers: int = -1
) -> list[Check]:
    """Verify with a progress bar."""
    with progress_bar("replaying") as start:

        def announce(inputs: Inputs, mechanism: Certifiable) -> Callable[[int], None]:
            return start(total_draws(inputs, mechanism))

        return verify_document(fields, folder, replay=replay, announce=announce, workers=workers)


def tell(check: Check, *, where: str = "") -> bool:
    """Say on stderr what a check found, where all is well only if asked for more; True if not."""
    line = f"{where}{check.status}: {check.name}: {check.detail}"
    if check.status in ("agrees", "not_checked"):
        talk(line, detail=True)
        return False
    say(line, err=True)
    return True


def exit_code(checks: Iterable[Check], *, allow_inconclusive: bool) -> int:
    """What a verification says to the shell."""
    statuses = {check.status for check in checks}
    if statuses & {"differs", "violation"}:
        return 1
    return 3 if "inconclusive" in statuses and not allow_inconclusive else 0
