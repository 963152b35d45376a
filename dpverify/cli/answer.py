"""``dpverify answer``: answer hazards of a certificate after its release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from dpverify.certificate.answer import answer as add_answers
from dpverify.certificate.answer import answers_beside, open_hazards, read_answers
from dpverify.certificate.checks import certificate_path, read_certificate
from dpverify.certificate.hazards import HAZARDS
from dpverify.cli.output import emit_json, emit_table, json_option, say, talk, talk_options
from dpverify.errors import ConfigurationError

__all__ = ["answer"]

_ANSWERS = {"pass": "isn't there", "fail": "is there", "not_applicable": "can't be there"}


def _options(command: Any) -> Any:
    for name, meaning in reversed(_ANSWERS.items()):
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            type=(str, str),
            multiple=True,
            metavar="HAZARD REASON",
            help=f"The hazard {meaning}; may be repeated.",
        )(command)
    return command


@click.command(short_help="Answer hazards of a certificate after its release.")
@click.argument("certificate", type=click.Path(path_type=Path))
@_options
@click.option("--by", help="Who answers: a name, and what for.")
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="Ed25519 private key in PEM; only its owner may read the file.",
)
@json_option
@talk_options
def answer(
    certificate: Path,
    by: str | None,
    key: Path | None,
    as_json: bool,
    **given: tuple[tuple[str, str], ...],
) -> int:
    """Say of hazards what no computation can know, in a signed statement beside CERTIFICATE.

    Without an answer, lists what waits for one, and what was answered. Neither the certificate nor
    its report changes; certificate.answers.jsonl gets a line, and verify reads it.

    \b
    dpverify answer out                           what waits for an answer
    dpverify answer out --key signer.pem --by "A. Lovelace, data protection" \\
      --pass unit-of-privacy "One row is one patient."
    """  # noqa: D301  # click wants the character
    path = certificate_path(certificate)
    answers = {
        hazard: {"answer": word, "reason": reason}
        for word, pairs in given.items()
        for hazard, reason in pairs
    }
    if len(answers) < sum(map(len, given.values())):
        raise ConfigurationError("a hazard is answered twice: give it one answer.")
    if not answers:
        return _list(path, as_json=as_json)
    if key is None or by is None:
        raise ConfigurationError("an answer is signed: give --key, and --by with who answers.")
    written = add_answers(
        path,
        key,
        answers,
        by=by,
        passphrase=lambda: click.prompt(f"Passphrase of {key}", hide_input=True, err=True),
    )
    if as_json:
        emit_json("answer", {"answers": str(written), "answered": sorted(answers)})
    else:
        emit_table([["answered", ", ".join(answers)], ["in", str(written)]])
    talk("dpverify report --key PUBLIC --out PAGE writes the page with these answers.")
    return 0


def _list(path: Path, *, as_json: bool) -> int:
    fields = read_certificate(path)
    stated = {entry["id"]: entry for entry in fields.get("checklist", ())}
    latest: dict[str, list[str]] = {}
    if os.path.lexists(answers_beside(path)):
        for answered in read_answers(fields, answers_beside(path)):
            for hazard, reply in answered.answers.items():
                latest[hazard] = [reply.answer, reply.reason, f"{answered.by}, {answered.at}"]
    titles = {hazard.id: hazard.title for hazard in HAZARDS}
    rows = []
    for name in open_hazards(fields):
        own = [stated[name]["answer"], stated[name]["evidence"], "the certificate"]
        rows.append([name, *latest.get(name, own if stated[name]["owner"] else ["", "", ""])])
    if as_json:
        keys = ("id", "answer", "reason", "by")
        emit_json("answer", [dict(zip(keys, row, strict=True)) for row in rows])
        return 0
    for name, reply, reason, by in rows:
        say(f"{name}: {titles.get(name, '')}")
        said = f"{reply}: {reason} ({by}; verify --answer-key tells whether the signature holds)"
        say(f"  {said if reply else 'waits for an answer. ' + str(stated[name]['evidence'])}")
    return 0
