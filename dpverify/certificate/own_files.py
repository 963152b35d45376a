"""Reading what lies beside a certificate: regular files of limited size, and no links."""

from __future__ import annotations

import stat
from pathlib import Path

from dpverify.errors import CertificateError

__all__ = ["MAX_BYTES", "read_own_file"]

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
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CertificateError(f"{path} is not a file of its own, but a link or a device")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CertificateError(f"{path} can't be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise CertificateError(f"{path} is larger than {MAX_BYTES} bytes")
    return content
