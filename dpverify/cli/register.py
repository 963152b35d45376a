"""``dpverify register``: an entry for the registry of deployments."""

from __future__ import annotations

from pathlib import Path

import click

from dpverify.certificate.checks import certificate_path, read_certificate
from dpverify.certificate.configuration import UNDECIDED
from dpverify.certificate.register import SECTORS, entry, file_name, yaml
from dpverify.certificate.schema import Certificate
from dpverify.certificate.sign import standing
from dpverify.cli.output import Choice, emit_json, json_option, say, talk, talk_options
from dpverify.cli.verify import check_but_report
from dpverify.data.atomic_files import new_file
from dpverify.errors import CertificateError

__all__ = ["register"]


@click.command(short_help="Write an entry for the registry of deployments.")
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the data product.")
@click.option("--curator", "curators", multiple=True, help="Who publishes it; may be repeated.")
@click.option("--description", default="", help="What the data are, in a sentence.")
@click.option("--use", default="", help="What it is for.")
@click.option("--region", default=UNDECIDED, help="Which region it describes.")
@click.option("--sector", type=Choice(SECTORS), help="Its sector.")
@click.option("--author", "authors", multiple=True, help="Author of the entry; may be repeated.")
@click.option("--link", default="", help="Where the certificate can be read.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="A new file; printed without."
)
@json_option
@talk_options
def register(
    certificate: Path, out: Path | None, as_json: bool, **words: str | tuple[str, ...]
) -> int:
    """Write an entry for the Differential Privacy Deployments Registry, from CERTIFICATE.

    What the certificate says is filled in, its owner's words too. What only you know stands as
    DECIDE until you say it here or in the file. Everything but the replay of the audits is checked
    first. Nothing is sent.

    \b
    dpverify register out --name "Births 2026" --curator "Office of Births" \\
      --sector Healthcare --author "A. Lovelace" --out births.yaml
    """  # noqa: D301  # click wants the character
    path = certificate_path(certificate)
    fields = read_certificate(path)
    if "parts" in fields:
        raise CertificateError(
            f"{path}: is a composed certificate; each of its parts is a deployment of its own."
        )
    if code := check_but_report(fields, path.parent, otherwise="No entry was written."):
        return code
    given = {name: value for name, value in words.items() if value}
    known = Certificate.model_validate(fields)
    made = entry(known, notes=standing(path), **given)  # type: ignore[arg-type]
    text = yaml(made)
    if out is not None:
        new_file(out, text.encode())
    if as_json:
        emit_json("register", made)
    else:
        say(text if out is None else f"entry  {out}", lines=True)
    talk(standing(path))
    left = text.count(UNDECIDED)
    if left:
        talk(f"{left} times {UNDECIDED} stands for what only you know.")
    place = f"deployments/{file_name(made)} of opendp/deployments-registry-data"
    talk(f"The registry takes it as {place}.")
    return 0
