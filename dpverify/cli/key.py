"""``dpverify key``: keys to sign with."""

from __future__ import annotations

from pathlib import Path

import click

from dpverify.certificate.keys import new_key
from dpverify.cli.output import emit_json, emit_table, json_option, talk, talk_options

__all__ = ["key"]


@click.group(short_help="Make a key to sign with.")
def key() -> None:
    """Keys to sign certificates with: Ed25519, in PEM files, as openssl has them."""


@key.command(short_help="Make a key.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--encrypt", is_flag=True, help="Ask for a passphrase, which signing then needs.")
@json_option
@talk_options
def new(path: Path, encrypt: bool, as_json: bool) -> None:
    """Make a private key in FILE, for its owner alone, and the public key beside it.

    dpverify key new signer.pem writes signer.pem (mode 0600) and signer.pub.pem, and replaces
    neither. Sign with the first; give the second to those who verify, by a way that they trust.
    """
    passphrase = (
        click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
        if encrypt
        else None
    )
    public, name = new_key(path, passphrase=passphrase)
    if as_json:
        emit_json("key new", {"private": str(path), "public": str(public), "key_id": name})
        return
    emit_table(
        [
            ["private", f"{path} (yours alone)"],
            ["public", str(public)],
            ["name", f"{name} (SHA-256 of the public key)"],
        ]
    )
    talk(f"Sign with it: dpverify sign CERTIFICATE --key {path}")
