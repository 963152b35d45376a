"""Answers of the owner to hazards, given after the release: signed statements beside a certificate.

``certificate.answers.jsonl`` holds a line for each time that somebody answered: a DSSE envelope, as
`sign` writes one, around an in-toto Statement v1 whose subject is the certificate by the SHA-256 of
its canonical JSON, and whose predicate says who answered what, when, and why, and after which
lines, by their SHA-256. The latest answer counts, and so no earlier line can be changed, left out
or moved; that the last ones are missing shows in nothing. Neither the certificate nor its report
changes, so their signatures stay as they are.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import TypeAdapter, ValidationError

from dpverify._refusals import refusals
from dpverify.certificate.answered import Answered
from dpverify.certificate.checklist import check_answerable
from dpverify.certificate.checks import Check, certificate_path, read_certificate
from dpverify.certificate.configuration import OwnerSettings
from dpverify.certificate.keys import key_id, load_private_key, no_passphrase
from dpverify.certificate.own_files import read_own_file
from dpverify.certificate.sign import (
    PAYLOAD_TYPE,
    STATEMENT,
    Envelope,
    Signature,
    require_agreement,
)
from dpverify.data.atomic_files import writing
from dpverify.errors import CertificateError, ConfigurationError, require
from dpverify.paths import to_path

__all__ = ["answer", "answers_beside", "check_answers", "open_hazards", "read_answers"]

_PREDICATE = "urn:dpverify:answers:1"
_SUBJECT = "certificate.json"
_ANSWERS: TypeAdapter[dict[str, OwnerSettings]] = TypeAdapter(dict[str, OwnerSettings])


def answers_beside(certificate: Path) -> Path:
    """Where the answers lie: ``certificate.answers.jsonl`` for ``certificate.json``."""
    return certificate.with_suffix(".answers.jsonl")


def open_hazards(fields: Mapping[str, Any]) -> list[str]:
    """Hazards of a certificate that wait for the owner's answer, or have one of the owner's."""
    return [
        str(entry["id"])
        for entry in fields.get("checklist", ())
        if entry["answer"] == "needs_owner" or entry["owner"]
    ]


def answer(
    certificate: Path | str,
    key: Path | str,
    answers: Mapping[str, Mapping[str, str]],
    *,
    by: str,
    passphrase: Callable[[], str] = no_passphrase,
) -> Path:
    """Answer hazards of a certificate after its release.

    Everything but the replay of the audits is checked first.

    Parameters
    ----------
    certificate : its file, or the folder that `certify` wrote
    key : file of an Ed25519 private key in PEM, which its owner alone can read
    answers : by hazard, each of ``answer`` (pass, fail or not_applicable) and ``reason``
    by : who answers, one line
    passphrase : called if the key is encrypted

    Returns
    -------
    the file of the answers, next to the certificate, with a line added

    Raises
    ------
    ConfigurationError
        If an answer isn't one, or a hazard isn't the owner's to answer.
    CertificateError
        If the certificate doesn't agree, or is a composed one.
    KeyFileError
        If the key can't be used.

    Examples
    --------
    >>> import dpverify as dpv
    >>> patients = {"answer": "pass", "reason": "One row is one patient."}
    >>> answer("out", "signer.pem", {"unit-of-privacy": patients}, by="A. Lovelace").name
    ... # doctest: +SKIP
    'certificate.answers.jsonl'
    """
    private = load_private_key(to_path("key", key), passphrase=passphrase)
    path = certificate_path(certificate)
    fields = read_certificate(path)
    if "parts" in fields:
        raise CertificateError(
            f"{path}: is a composed certificate; each of its parts has hazards of its own."
        )
    given = _admitted(fields, answers, by)
    require_agreement(fields, path, "answered")
    file_of_answers = answers_beside(path)
    with writing(file_of_answers) as file:  # locked, so that of two people at once neither is lost
        before = b""
        if os.path.lexists(file_of_answers):
            list(read_answers(fields, file_of_answers))  # damaged ones aren't added to
            before = read_own_file(file_of_answers)
        after = hashlib.sha256(before).hexdigest()
        file.write(before + _line(fields, given.model_copy(update={"after": after}), private))
    return file_of_answers


def read_answers(
    fields: Mapping[str, Any], path: Path, keys: Sequence[Ed25519PublicKey] = ()
) -> Iterator[Answered]:
    """The answers in a file, oldest first.

    Parameters
    ----------
    fields : the certificate that they are about
    path : of the file
    keys : whose signatures are tried

    Raises
    ------
    CertificateError
        If a line isn't an envelope as `answer` writes it, is about another certificate, answers
        what isn't the owner's to answer, or doesn't follow the lines that it was signed after.
    """
    names = {key_id(key): key for key in keys}
    before = hashlib.sha256()
    for number, line in enumerate(read_own_file(path).splitlines(keepends=True), start=1):
        where = f"{path}, line {number}"
        envelope = Envelope.parse(line, where)
        answered = _authentic(fields, envelope, where)
        if answered.after != before.hexdigest():
            raise CertificateError(
                f"{where}: was signed when other lines stood before it: one of them was "
                "changed, left out or moved."
            )
        before.update(line)
        name = answered.keyid
        holds = _holds(envelope, names[name]) if name in names else None
        yield answered.model_copy(update={"holds": holds})


def check_answers(
    fields: Mapping[str, Any], path: Path, keys: Sequence[Ed25519PublicKey]
) -> Iterator[Check]:
    """Check the answers at `path` against a certificate, a line for each time somebody answered."""
    try:
        found = list(read_answers(fields, path, keys))
    except CertificateError as error:
        yield Check(name="answers", status="differs", detail=str(error), fields=("answers",))
        return
    for answered in found:
        label = f"answers {answered.keyid[:16]}"
        said = f"by {answered.by}, {answered.at}: " + ", ".join(
            f"{hazard} {given.answer}" for hazard, given in answered.answers.items()
        )
        if answered.holds is None:
            detail = f"{said}; give --answer-key with their public key"
            yield Check(name=label, status="not_checked", detail=detail)
        elif answered.holds:
            yield Check(name=label, status="agrees", detail=said)
        else:
            detail = f"the signature does not hold; {said}"
            yield Check(name=label, status="differs", detail=detail, fields=("answers",))


def _admitted(
    fields: Mapping[str, Any], answers: Mapping[str, Mapping[str, str]], by: str
) -> Answered:
    require(bool(answers), "answers", "none", "at least one")
    check_answerable(answers)
    theirs = open_hazards(fields)
    for hazard in answers:
        if hazard not in theirs:
            raise ConfigurationError(
                f"{hazard} is answered by this certificate itself. "
                f"What waits for the owner: {', '.join(theirs) or 'nothing'}."
            )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        return Answered(by=by, at=now, answers=_ANSWERS.validate_python(dict(answers)))
    except ValidationError as error:
        raise ConfigurationError(f"{refusals(error)[0]}.") from None


def _line(fields: Mapping[str, Any], given: Answered, key: Ed25519PrivateKey) -> bytes:
    payload = base64.b64encode(rfc8785.dumps(_statement(fields, given))).decode()
    envelope = Envelope(payload=payload, payloadType=PAYLOAD_TYPE, signatures=[])
    signature = base64.b64encode(key.sign(envelope.signed())).decode()
    own = Signature(keyid=key_id(key.public_key()), sig=signature)
    return envelope.model_copy(update={"signatures": [own]}).as_bytes()


def _statement(fields: Mapping[str, Any], answered: Answered) -> dict[str, Any]:
    digest = hashlib.sha256(rfc8785.dumps(dict(fields))).hexdigest()
    return {
        "_type": STATEMENT,
        "subject": [{"name": _SUBJECT, "digest": {"sha256": digest}}],
        "predicateType": _PREDICATE,
        "predicate": answered.model_dump(),
    }


def _authentic(fields: Mapping[str, Any], envelope: Envelope, where: str) -> Answered:
    """What an envelope states, if it states it byte for byte as `answer` would."""
    payload = base64.b64decode(envelope.payload)
    try:
        answered = Answered.model_validate(json.loads(payload)["predicate"])
        check_answerable(answered.answers)
        canonical = payload == rfc8785.dumps(_statement(fields, answered))
    except (ValueError, KeyError, TypeError, RecursionError, ConfigurationError):
        canonical = False
    if not canonical or envelope.payloadType != PAYLOAD_TYPE or len(envelope.signatures) != 1:
        raise CertificateError(f"{where}: is not an answer to hazards of this certificate.")
    return answered.model_copy(update={"keyid": envelope.signatures[0].keyid})


def _holds(envelope: Envelope, key: Ed25519PublicKey) -> bool:
    try:
        key.verify(base64.b64decode(envelope.signatures[0].sig), envelope.signed())
    except InvalidSignature:
        return False
    return True
