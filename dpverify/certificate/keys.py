"""Ed25519 keys of signers, in PEM files: as ``openssl genpkey -algorithm ed25519`` writes them.

A private key is read from a file that its owner alone can read, is written by `new_key` alone, and
stands in no message: errors name the file and the rule, and drop what the parser said.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from dpverify.data.atomic_files import write_file
from dpverify.errors import KeyFileError

__all__ = ["key_id", "load_private_key", "load_public_key", "new_key", "no_passphrase"]

_MAX_BYTES = 1 << 16
_PUBLIC = b"-----BEGIN PUBLIC KEY-----"
_PRIME = 2**255 - 19
_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""The least y of a point of order 8: d·y⁴ + 2y² − 1 = 0 modulo the prime, with d of RFC 8032."""
_HOW_TO_MAKE = "dpverify key new"


def new_key(path: Path, *, passphrase: str | None = None) -> tuple[Path, str]:
    """Make a key: the private one at `path`, for its owner alone, the public one beside it.

    Parameters
    ----------
    path : of the private key, in PEM (PKCS #8); ``signer.pub.pem`` lies beside ``signer.pem``
    passphrase : that the file is encrypted with; not at all by default

    Returns
    -------
    path of the public key, and its `key_id`

    Raises
    ------
    KeyFileError
        If one of both files is there already, or the passphrase is empty.
    OutputError
        If they can't be written.
    """
    if not path.name:
        raise KeyFileError(f"{path}: is a folder, and a key needs a file: name one.")
    public = path.with_suffix(f".pub{path.suffix or '.pem'}")
    for file in (path, public):
        if os.path.lexists(file):
            raise KeyFileError(f"{file}: exists, and a key is never replaced: choose another file.")
    if passphrase == "":
        raise KeyFileError("the passphrase is empty: choose one, or leave the key unencrypted.")
    key = Ed25519PrivateKey.generate()
    encryption: KeySerializationEncryption = (
        NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase.encode())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    write_file(path, secret, private=True)
    write_file(
        public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return public, key_id(key.public_key())


def no_passphrase() -> str:
    """Where nobody can be asked for one."""
    raise KeyFileError("the key is encrypted: give passphrase, a function that returns it.")


def load_private_key(path: Path, *, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """Private key of a PEM file that nobody but its owner may read.

    Parameters
    ----------
    path : of the file
    passphrase : called once, and only if the key is encrypted

    Raises
    ------
    KeyFileError
        If the file can't be read, its mode lets others in, or it holds no such key.
    """
    content = _read(path, private=True)
    if _PUBLIC in content:
        raise KeyFileError(f"{path}: is a public key, and signing takes the private one.")
    try:
        key = load_pem_private_key(content, password=_secret(content, passphrase))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        wrong = "the passphrase is wrong, or it is" if _encrypted(content) else "is"
        raise KeyFileError(
            f"{path}: {wrong} not a private key in PEM. Make one: {_HOW_TO_MAKE} FILE"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(
            f"{path}: is a key of another kind, and must be Ed25519. Make one: {_HOW_TO_MAKE} FILE"
        )
    return key


def load_public_key(path: Path) -> Ed25519PublicKey:
    """Public key of a PEM file.

    Raises
    ------
    KeyFileError
        If the file can't be read or holds no such key.
    """
    content = _read(path, private=False)
    extract = f"openssl pkey -in {path} -pubout -out PUBLIC"
    if b"PRIVATE KEY-----" in content:
        raise KeyFileError(
            f"{path}: is a private key, and verification takes the public one. Make it: {extract}"
        )
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyFileError(
            f"{path}: is not a public key in PEM. "
            "Its owner makes it: openssl pkey -in PRIVATE -pubout -out PUBLIC"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError(f"{path}: is a key of another kind, and must be Ed25519.")
    if _of_small_order(key):
        raise KeyFileError(
            f"{path}: is a point of small order, for which anyone can forge signatures. Ask "
            "its owner for another one."
        )
    return key


def key_id(key: Ed25519PublicKey) -> str:
    """SHA-256 of the key's SubjectPublicKeyInfo in DER, in hexadecimal.

    ``openssl pkey -pubin -in PUBLIC -outform DER | sha256sum`` prints the same.
    """
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _of_small_order(key: Ed25519PublicKey) -> bool:
    """Whether 8 times the point is the neutral one, however it is encoded (RFC 8032, 5.1.3).

    Points of small order have one of the y below: 1, −1, 0, and ± the y of a point of order 8; the
    encoding may have either sign of x, and y + p in place of y where that fits 255 bits.
    """
    encoded = int.from_bytes(key.public_bytes(Encoding.Raw, PublicFormat.Raw), "little")
    y = encoded % 2**255 % _PRIME
    return y in (0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8)


def _read(path: Path, *, private: bool) -> bytes:
    try:
        with path.open("rb") as file:
            # Asked of the open file: what is checked is what is read.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(_MAX_BYTES)
            # A public key is open by right, and refused for what it is.
            closed = private and _PUBLIC not in content
            if closed and os.name == "posix" and mode & 0o077:
                raise KeyFileError(
                    f"{path}: its mode is {mode:04o}, and a private key must be closed to all but "
                    f"its owner (0600). Mend it: chmod 600 {path}"
                )
            return content
    except OSError as error:
        raise KeyFileError(f"{path}: can't be read: {error.strerror}.") from None


def _encrypted(content: bytes) -> bool:
    return b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in content


def _secret(content: bytes, passphrase: Callable[[], str]) -> bytes | None:
    return passphrase().encode() if _encrypted(content) else None
