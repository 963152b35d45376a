"""``dpverify verify``: check a certificate again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from dpverify.certificate import verify as verifying
from dpverify.certificate.checks import Check
from dpverify.certificate.compose import check_document
from dpverify.cli.output import emit_json, json_option, progress_bar, say, talk
from dpverify.cli.where import where_options, workers_option

__all__ = ["check_but_report", "exit_code", "replay_option", "tell", "verify", "verify_aloud"]

_EXIT_CODES = {"agrees": 0, "differs": 1, "inconclusive": 3}

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
@click.option(
    "--answer-key",
    "answer_keys",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Public key of one who signed answers alone; may be repeated.",
)
@replay_option
@click.option("--allow-inconclusive", is_flag=True, help="Exit with 0 in place of 3.")
@json_option
@workers_option
@where_options
def verify(
    certificate: Path,
    keys: tuple[Path, ...],
    answer_keys: tuple[Path, ...],
    replay: bool,
    allow_inconclusive: bool,
    as_json: bool,
    workers: int,
) -> int:
    """Rebuild, replay and recompute all that CERTIFICATE says, and compare.

    CERTIFICATE is the file, or the folder that certify wrote. The released file is looked for next
    to it; those of a composed certificate also one folder below. With --key, the signature next to
    it must hold too, over this certificate and this file. This can't show that dpverify made the
    release: only that everything stated follows from the stated inputs.
    """
    with progress_bar() as start:
        result = verifying.verify(
            certificate,
            keys=keys,
            answer_keys=answer_keys,
            replay=replay,
            announce=start,
            workers=workers,
        )
    if as_json:
        emit_json("verify", [check.to_dict() for check in result.checks])
    else:
        say(str(result), lines=True)
    return exit_code(result.checks, allow_inconclusive=allow_inconclusive)


def verify_aloud(
    fields: dict[str, Any], folder: Path, *, replay: bool, workers: int = -1
) -> list[Check]:
    """Check a document, without signatures, with a progress bar."""
    with progress_bar() as start:
        return check_document(fields, folder, replay=replay, announce=start, workers=workers)


def tell(check: Check, *, where: str = "") -> bool:
    """Report a check on stderr; one that is well only if asked for more. True if it isn't well."""
    line = f"{where}{check.status}: {check.name}: {check.detail}"
    if check.status in ("agrees", "not_checked"):
        talk(line, detail=True)
        return False
    say(line, err=True)
    return True


def check_but_report(fields: dict[str, Any], folder: Path, *, otherwise: str) -> int:
    """Check all but the replay and the report, aloud; where it isn't well, say `otherwise`."""
    checks = [
        check for check in verify_aloud(fields, folder, replay=False) if check.name != "report"
    ]
    for check in checks:
        tell(check)
    code = exit_code(checks, allow_inconclusive=True)
    if code:
        say(otherwise, err=True)
    return code


def exit_code(checks: Iterable[Check], *, allow_inconclusive: bool) -> int:
    """What a verification says to the shell."""
    status = verifying.overall(checks)
    return 0 if allow_inconclusive and status == "inconclusive" else _EXIT_CODES[status]
