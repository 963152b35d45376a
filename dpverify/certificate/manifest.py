"""The manifest of a release in parts, and the rows of a release, in one file or in parts.

What lies in several files is released in parts, each a file as `archive` writes it. The manifest
lists how many rows each has, and its hash; a certificate holds the manifest's own hash, which binds
them all. It is canonical JSON and a line feed: of the same parts there is one. A part's name is its
place, and nothing of the files that were read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import rfc8785
from numpy.typing import NDArray
from pydantic import Field

from dpverify.certificate.archive import Contents, read_blocks
from dpverify.certificate.fields import Document, Sha256
from dpverify.certificate.own_files import own_content
from dpverify.errors import CertificateError

__all__ = [
    "MANIFEST",
    "Manifest",
    "Part",
    "part_name",
    "read_array",
    "release_files",
    "released_blocks",
]

MANIFEST: Final = "manifest.json"
"""Name of the manifest's file."""


def part_name(number: int) -> str:
    """Name of the file of a part, by its place from 0."""
    return f"sketch-{number:05}.npz"


class Part(Document):
    """One file of a release, in which its next rows are."""

    file: str
    rows: Annotated[int, Field(ge=1)]
    sha256: Sha256


class Manifest(Document):
    """The parts of a release, in the order of their rows."""

    schema_version: Literal["dpverify-manifest/1"] = Field(
        default="dpverify-manifest/1", alias="schema"
    )
    parts: Sequence[Part]

    def as_bytes(self) -> bytes:
        """The one form of these parts."""
        return rfc8785.dumps(self.model_dump(by_alias=True)) + b"\n"

    @classmethod
    def read(cls, path: Path, *, rows: int, sha256: str) -> Manifest:
        """The manifest of so many rows in a file.

        Raises
        ------
        CertificateError
            If the file has another hash, isn't a manifest in its one form, or lists other rows.
        """
        content = own_content(path)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise CertificateError("is not the file that was certified: SHA-256")
        try:
            read = cls.model_validate_json(content)
            canonical = read.as_bytes() == content
        except ValueError:  # not JSON, not a manifest's, or of whole numbers beyond RFC 8785
            raise CertificateError("is not the manifest of a release") from None
        names = [part_name(number) for number in range(len(read.parts))]
        if not canonical or [part.file for part in read.parts] != names:
            raise CertificateError("isn't in the form in which certify writes it")
        if sum(part.rows for part in read.parts) != rows:
            raise CertificateError(f"lists parts that don't have {rows} rows together")
        return read


def release_files(path: Path, *, rows: int, sha256: str) -> list[str]:
    """Names of the files that hold a release: its one file, or those that its manifest lists.

    Raises
    ------
    CertificateError
        As `Manifest.read`.
    """
    if path.name != MANIFEST:
        return [path.name]
    return [part.file for part in Manifest.read(path, rows=rows, sha256=sha256).parts]


def released_blocks(path: Path, contents: Contents, *, sha256: str) -> Iterator[bytes]:
    """Bytes of all released numbers, whole rows in order, as `read_blocks` has them of one file.

    Parameters
    ----------
    path : of the one file, or of the manifest, beside which its parts are
    contents : of all parts together
    sha256 : of that file

    Raises
    ------
    CertificateError
        As `read_blocks`, of the file or of any part.
    OSError
        If the file can't be read.
    """
    if path.name != MANIFEST:
        yield from read_blocks(path, contents, sha256=sha256)
        return
    rows, *others = contents.shape
    for part in Manifest.read(path, rows=rows, sha256=sha256).parts:
        own = contents._replace(shape=(part.rows, *others))
        try:
            yield from read_blocks(path.with_name(part.file), own, sha256=part.sha256)
        except CertificateError as error:
            raise CertificateError(f"lists {part.file}, which {error}") from None
        except OSError as error:
            raise CertificateError(
                f"lists {part.file}, which can't be read: {error.strerror}"
            ) from None


def read_array(path: Path, contents: Contents, *, sha256: str) -> NDArray[Any]:
    """The whole array of a release, checked as `released_blocks` does."""
    numbers = bytearray()
    for block in released_blocks(path, contents, sha256=sha256):
        numbers += block
    return np.frombuffer(numbers, dtype=contents.stored()).reshape(contents.shape)
