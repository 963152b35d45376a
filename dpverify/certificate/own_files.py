"""Reading what lies beside a certificate: regular files of limited size, and no links."""

from __future__ import annotations

import stat
from pathlib import Path

from dpverify.errors import CertificateError

__all__ = ["MAX_BYTES", "own_content", "read_own_file"]

MAX_BYTES = 64 << 20
"""A larger file is not read: certificates have tens of kilobytes."""


def read_own_file(path: Path) -> bytes:
    """A file of limited size that lies in its folder, and isn't a link to elsewhere.

    Raises
    ------
    CertificateError
        If there is another thing of that name, or it can't be read.
    """
    try:
        return own_content(path)
    except CertificateError as error:
        raise CertificateError(f"{path} {error}") from None


def own_content(path: Path) -> bytes:
    """`read_own_file`, whose errors leave it to the caller to name the file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CertificateError("is not a file of its own, but a link or a device")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CertificateError(f"can't be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise CertificateError(f"is larger than {MAX_BYTES} bytes")
    return content
