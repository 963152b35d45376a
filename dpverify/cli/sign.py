"""``dpverify sign``: bind a certificate and its released file to a key."""

from __future__ import annotations

from pathlib import Path

import click

from dpverify.certificate.checks import certificate_path, read_certificate
from dpverify.certificate.keys import key_id, load_private_key
from dpverify.certificate.sign import add_signature, envelope_beside
from dpverify.cli.output import emit_json, emit_table, json_option, say, talk_options
from dpverify.cli.verify import exit_code, tell, verify_aloud

__all__ = ["sign"]


@click.command(short_help="Sign a certificate and its released file.")
@click.argument("certificate", type=click.Path(path_type=Path))
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    required=True,
    help="Ed25519 private key in PEM; only its owner may read the file.",
)
@json_option
@talk_options
def sign(certificate: Path, key: Path, as_json: bool) -> int:
    """Sign CERTIFICATE together with its released file.

    Writes certificate.dsse.json beside it, or adds a signature to the one that is there. Checks
    everything but the replay of the audits first, and signs nothing that doesn't agree.

    \b
    dpverify key new signer.pem                   a key, and signer.pub.pem for others
    dpverify sign out --key signer.pem            sign what certify wrote there
    """  # noqa: D301  # click wants the character
    private = load_private_key(
        key, passphrase=lambda: click.prompt(f"Passphrase of {key}", hide_input=True, err=True)
    )
    certificate = certificate_path(certificate)
    fields = read_certificate(certificate)
    checks = verify_aloud(fields, certificate.parent, replay=False)
    code = exit_code(checks, allow_inconclusive=False)
    for check in checks:
        tell(check)
    if code:
        say("Nothing was signed.", err=True)
        return code
    path = envelope_beside(certificate)
    envelope = add_signature(fields, path, private)
    signer = key_id(private.public_key())
    signers = [signature.keyid for signature in envelope.signatures]
    if as_json:
        emit_json("sign", {"envelope": str(path), "signed_by": signer, "signatures": signers})
    else:
        rows = [["signed", str(path)], ["by", f"{signer} (SHA-256 of the public key)"]]
        others = [name for name in signers if name != signer]
        emit_table([*rows, *(["beside", name] for name in others)])
    return 0
