"""``dpverify report``: render a certificate's report again."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dpverify.certificate.answer import answers_beside, read_answers
from dpverify.certificate.certify import REPORT
from dpverify.certificate.checks import certificate_path, read_certificate
from dpverify.certificate.keys import load_public_key
from dpverify.certificate.schema import Certificate
from dpverify.certificate.sign import envelope_beside, standing
from dpverify.cli.output import emit_json, json_option, say, talk, talk_options
from dpverify.cli.verify import check_but_report
from dpverify.data.atomic_files import write_file
from dpverify.errors import CertificateError, ConfigurationError

__all__ = ["report"]


@click.command(short_help="Render a certificate's report again.")
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The page to write; report.html beside the certificate by default, in place of what is "
    "there.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Public key of one who answered hazards after the release: the page, which needs --out, "
    "shows those answers. May be repeated.",
)
@json_option
@talk_options
def report(certificate: Path, out: Path | None, keys: tuple[Path, ...], as_json: bool) -> int:
    """Render the page that belongs to CERTIFICATE, whatever page came with it.

    Everything but the replay of the audits is checked first, and a certificate that doesn't agree
    gets no page. The same certificate gives the same page.
    """
    from dpverify.certificate.report.html import render  # late: it needs the extra

    path = certificate_path(certificate)
    if keys and out is None:
        raise ConfigurationError(
            "--key writes a page with later answers, which isn't the report that belongs to "
            "the certificate: give another place with --out."
        )
    public = [load_public_key(key) for key in keys]
    fields = read_certificate(path)
    if "parts" in fields:
        raise CertificateError(
            f"{path}: is a composed certificate; each of its parts has a report."
        )
    # The report is what is mended here.
    if code := check_but_report(fields, path.parent, otherwise="No report was written."):
        return code
    out = path.with_name(REPORT) if out is None else out
    beside = answers_beside(path)
    later = list(read_answers(fields, beside, public)) if public and beside.exists() else []
    held = [answered for answered in later if answered.holds]
    write_file(out, render(Certificate.model_validate(fields), held).encode())
    if as_json:
        envelope = os.path.lexists(envelope_beside(path))
        emit_json("report", {"report": str(out), "envelope": envelope})
    else:
        say(f"report  {out}")
    talk(standing(path))
    return 0
