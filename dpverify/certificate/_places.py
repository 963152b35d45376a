"""Where the files lie of the certificates that a composed one holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dpverify.certificate.archive import SKETCH
from dpverify.certificate.certify import CERTIFICATE
from dpverify.certificate.checks import read_certificate
from dpverify.certificate.manifest import MANIFEST
from dpverify.data.atomic_files import sha256_file
from dpverify.errors import CertificateError

__all__ = ["Place", "Places"]


class Place(NamedTuple):
    """A folder with a released file.

    Attributes
    ----------
    folder : None where there is no such file
    own : whether no other certificate lies there
    """

    folder: Path | None
    own: bool


class Places:
    """A folder and those directly below it, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, part: Mapping[str, Any]) -> Place:
        """Where the file that a part released lies.

        Preferred are the folders that hold the part's own certificate, of these one that holds its
        file as well: what lies beside a certificate is what is checked against it. A file that lies
        elsewhere is found by its hash.
        """
        release = part.get("release")
        name, sha256 = (
            str(release.get(key)) if isinstance(release, dict) else "" for key in ("file", "sha256")
        )
        best: Path | None = None
        rank: tuple[bool, ...] = (False,)
        for place in self._places:
            own, holding = place.certificate == part, place.files.get(name) == sha256
            here = own and holding, own, place.certificate is None
            if name in place.files and (own or holding) and here > rank:
                best, rank = place.path, here
        return Place(best, own=any(rank))

    @cached_property
    def _places(self) -> list[_Folder]:
        try:
            below = sorted(path for path in self._folder.iterdir() if path.is_dir())
        except OSError:  # a folder that may be entered and not listed
            below = []
        return [_Folder.read(path) for path in (self._folder, *below)]


class _Folder(NamedTuple):
    """What lies in a folder: a certificate, and hashes of released files by their names."""

    path: Path
    certificate: Mapping[str, Any] | None
    files: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> _Folder:
        certificate: dict[str, Any] | None = None
        files = {}
        try:
            if (path / CERTIFICATE).is_file():
                certificate = read_certificate(path / CERTIFICATE)
        except (CertificateError, OSError):
            certificate = {}
        for name in (SKETCH, MANIFEST):
            try:
                if (path / name).is_file():
                    files[name] = sha256_file(path / name)
            except OSError:  # a folder or a file that is not ours to read
                continue
        return cls(path, certificate, files)
