"""Signatures: a DSSE envelope beside a certificate, signed with Ed25519.

The envelope ``certificate.dsse.json`` holds an in-toto Statement v1 in canonical JSON (RFC 8785).
Its subjects are the released files and the report by name and SHA-256, its predicate is the
certificate itself, digest and all, and its predicate type the identity of the certificate's JSON
Schema. So one signature binds the certificate to the files, and the envelope alone says all that
was signed.

What is signed is the pre-authentication encoding of payload type and payload: DSSE v1.0.2
(secure-systems-lab/dsse, protocol.md), "Signature definition". Nothing of a payload is read before
a signature over it holds. Reading is stricter than DSSE asks: an envelope is in canonical JSON
with standard base64, as this module writes it, so that no byte of it can change unnoticed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpverify.certificate.certify import REPORT
from dpverify.certificate.checks import (
    Check,
    certificate_path,
    differences,
    read_certificate,
)
from dpverify.certificate.compose import check_document
from dpverify.certificate.fields import Document
from dpverify.certificate.keys import key_id, load_private_key, no_passphrase
from dpverify.certificate.own_files import read_own_file
from dpverify.data.atomic_files import writing
from dpverify.errors import CertificateError
from dpverify.paths import to_path

__all__ = [
    "PAYLOAD_TYPE",
    "STATEMENT",
    "Envelope",
    "Signature",
    "add_signature",
    "check_signatures",
    "envelope_beside",
    "pae",
    "require_agreement",
    "sign",
    "standing",
    "statement",
]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"


class Signature(Document):
    """A signature in base64, and whose it says it is: `key_id` of the public key."""

    keyid: str
    sig: str


class Envelope(Document):
    """A DSSE envelope."""

    payload: str
    payloadType: str  # noqa: N815  # the format's own name
    signatures: list[Signature]

    @classmethod
    def read(cls, path: Path) -> Envelope:
        """The envelope in a file.

        Raises
        ------
        CertificateError
            If there is none, or it isn't one byte for byte as `add_signature` writes it.
        """
        return cls.parse(read_own_file(path), str(path))

    @classmethod
    def parse(cls, content: bytes, where: str) -> Envelope:
        """The envelope that a text is; `where` it was read names it in the error.

        Raises
        ------
        CertificateError
            As `read`.
        """
        try:
            envelope = cls.model_validate(json.loads(content))
            standard = all(
                map(_is_base64, [envelope.payload, *(s.sig for s in envelope.signatures)])
            )
            if standard and envelope.as_bytes() == content:
                return envelope
        except (ValueError, RecursionError):  # not JSON, or not an envelope's
            pass
        raise CertificateError(
            f"{where}: is not a DSSE envelope in canonical JSON and standard base64, "
            "or was changed after it was written."
        )

    def as_bytes(self) -> bytes:
        """The envelope's file: canonical JSON and a line feed."""
        return rfc8785.dumps(self.model_dump()) + b"\n"

    def signed(self) -> bytes:
        """What its signatures are over."""
        return pae(self.payloadType, base64.b64decode(self.payload))


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: lengths are in bytes, in ASCII decimal."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def statement(fields: Mapping[str, Any], report: str | None = None) -> dict[str, Any]:
    """The in-toto Statement v1 about a certificate's or composed certificate's files.

    Parameters
    ----------
    fields : the certificate
    report : SHA-256 of its report, if there is one

    Raises
    ------
    CertificateError
        If nothing was released: then there is nothing to sign for.
    """
    releases = [part["release"] for part in fields.get("parts", [fields])]
    if None in releases:
        raise CertificateError(
            "nothing was released: there is no file that a signature could bind."
        )
    files = [(release["file"], release["sha256"]) for release in releases]
    files += [] if report is None else [(REPORT, report)]
    name, _, version = fields["schema"].removeprefix("dpverify-").partition("/")
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in files],
        "predicateType": f"urn:dpverify:{name}:{version}",
        "predicate": fields,
    }


def envelope_beside(certificate: Path) -> Path:
    """Where a certificate's envelope lies: ``certificate.dsse.json`` for ``certificate.json``."""
    return certificate.with_suffix(".dsse.json")


def standing(certificate: Path) -> str:
    """Whether anybody stands by a certificate, in a sentence; no signature is checked."""
    if os.path.lexists(envelope_beside(certificate)):
        return "Signatures lie beside the certificate: dpverify verify --key checks whose they are."
    return "The certificate is unsigned: nobody stands by it."


def sign(
    certificate: Path | str, key: Path | str, *, passphrase: Callable[[], str] = no_passphrase
) -> Path:
    """Sign a certificate together with its released files and its report.

    Everything but the replay of the audits is checked first.

    Parameters
    ----------
    certificate : its file, or the folder that `certify` wrote
    key : file of an Ed25519 private key in PEM, which its owner alone can read
    passphrase : called if the key is encrypted

    Returns
    -------
    the file of the envelope, next to the certificate, with this signature added

    Raises
    ------
    CertificateError
        If the certificate doesn't agree, or nothing was released.
    KeyFileError
        If the key can't be used.

    Examples
    --------
    >>> import dpverify as dpv
    >>> dpv.sign("out", "signer.pem").name  # doctest: +SKIP
    'certificate.dsse.json'
    """
    private = load_private_key(to_path("key", key), passphrase=passphrase)
    path = certificate_path(certificate)
    fields = read_certificate(path)
    require_agreement(fields, path, "signed")
    envelope = envelope_beside(path)
    add_signature(fields, envelope, private)
    return envelope


def require_agreement(fields: dict[str, Any], path: Path, done: str) -> None:
    """Check all but the replay of a certificate; `done` is what is done with it else.

    Raises
    ------
    CertificateError
        If something doesn't agree.
    """
    for check in check_document(fields, path.parent, replay=False):
        if check.status not in ("agrees", "not_checked"):
            raise CertificateError(
                f"{path}: {check.status}: {check.name}: {check.detail}. Nothing was {done}."
            )


def add_signature(fields: Mapping[str, Any], path: Path, key: Ed25519PrivateKey) -> Envelope:
    """Write the envelope of a certificate with one more signature.

    Parameters
    ----------
    fields : the certificate, as it was verified
    path : of the envelope; one that is there already keeps its signatures
    key : the signer's

    Raises
    ------
    CertificateError
        If nothing was released, or an envelope is there that is about anything else.
    """
    stated = statement(fields, _report_beside(fields, path))
    payload = base64.b64encode(rfc8785.dumps(stated)).decode()
    envelope = Envelope(payload=payload, payloadType=PAYLOAD_TYPE, signatures=[])
    with writing(path) as file:  # locked, so that of two signers at once neither is lost
        if os.path.lexists(path):
            envelope = Envelope.read(path)
            if (envelope.payload, envelope.payloadType) != (payload, PAYLOAD_TYPE):
                raise CertificateError(
                    f"{path}: is about another certificate. To sign this one, move that file away."
                )
        name = key_id(key.public_key())
        own = Signature(keyid=name, sig=base64.b64encode(key.sign(envelope.signed())).decode())
        if own not in envelope.signatures:  # Ed25519 has one signature for a key and a message
            others = [signature for signature in envelope.signatures if signature.keyid != name]
            envelope = envelope.model_copy(update={"signatures": [*others, own]})
        file.write(envelope.as_bytes())
    return envelope


def check_signatures(
    fields: Mapping[str, Any], path: Path, keys: Sequence[Ed25519PublicKey]
) -> Iterator[Check]:
    """Check the envelope at `path` against a certificate, a line for each key.

    A key's line agrees if its own signature holds, over a statement about exactly this certificate
    and these files. Signatures by other keys are not looked at.
    """
    try:
        envelope = Envelope.read(path)
        report = _report_beside(fields, path)
    except CertificateError as error:
        yield Check(name="signature", status="differs", detail=str(error), fields=("envelope",))
        return
    for key in keys:
        yield _check_signature(fields, envelope, key, report)
    if not keys:
        count = len(envelope.signatures)
        detail = f"{path.name} holds {count}: give --key with the signer's public key"
        yield Check(name="signature", status="not_checked", detail=detail)


def _report_beside(fields: Mapping[str, Any], path: Path) -> str | None:
    """SHA-256 of the report beside an envelope; a composed certificate has none of its own."""
    report = path.with_name(REPORT)
    if "parts" in fields or not os.path.lexists(report):
        return None
    return hashlib.sha256(read_own_file(report)).hexdigest()


def _check_signature(
    fields: Mapping[str, Any], envelope: Envelope, key: Ed25519PublicKey, report: str | None
) -> Check:
    name = key_id(key)
    label = f"signature {name[:16]}"
    own = [signature for signature in envelope.signatures if signature.keyid == name]
    if not own:
        detail = (
            "there is no signature by this key, and so it is the wrong key or the wrong envelope"
        )
        return Check(name=label, status="differs", detail=detail, fields=("signatures",))
    signed = envelope.signed()
    try:
        for sig in {signature.sig for signature in own}:  # of which at most one holds
            key.verify(base64.b64decode(sig), signed)
    except InvalidSignature:
        detail = "does not hold: the envelope was changed, or this key did not sign it"
        return Check(name=label, status="differs", detail=detail, fields=("signatures",))
    wrong = _misstated(fields, envelope, report)
    if wrong:
        detail = "holds, but what was signed is not this certificate"
        return Check(name=label, status="differs", detail=detail, fields=wrong)
    bound = "released files" if report is None else "released file and report"
    detail = f"Ed25519 over DSSE, binds this certificate to its {bound}"
    return Check(name=label, status="agrees", detail=detail)


def _misstated(
    fields: Mapping[str, Any], envelope: Envelope, report: str | None
) -> tuple[str, ...]:
    """Names of what an authentic envelope states otherwise than this certificate."""
    if envelope.payloadType != PAYLOAD_TYPE:
        return ("payloadType",)
    payload = base64.b64decode(envelope.payload)
    try:
        stated = json.loads(payload)
        if report is None:  # one that was signed need not be here
            signed = {subject["name"]: subject["digest"]["sha256"] for subject in stated["subject"]}
            report = signed.get(REPORT)
        due = statement(fields, report)
        if payload == rfc8785.dumps(due):
            return ()
    except (CertificateError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return ("statement",)  # the certificate, or what was signed, has no statement's form
    return tuple(differences("statement", stated, due)) or ("statement",)


def _is_base64(text: str) -> bool:
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except (binascii.Error, ValueError):
        return False
