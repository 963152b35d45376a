"""Where the files of a composed certificate's parts are found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dpverify.certificate._places import Place, Places
from dpverify.certificate.certify import CERTIFICATE


def part(content: bytes, title: str = "a") -> dict[str, Any]:
    sha256 = hashlib.sha256(content).hexdigest()
    return {"release": {"file": "sketch.npz", "sha256": sha256}, "title": title}


def put(folder: Path, certificate: Mapping[str, Any] | str | None, content: bytes | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if certificate is not None:
        text = certificate if isinstance(certificate, str) else json.dumps(certificate)
        (folder / CERTIFICATE).write_text(text)
    if content is not None:
        (folder / "sketch.npz").write_bytes(content)


def test_swapped_files_are_checked_where_their_certificates_lie(tmp_path: Path) -> None:
    first, second = part(b"first"), part(b"second")
    put(tmp_path / "a", first, b"second")
    put(tmp_path / "b", second, b"first")
    places = Places(tmp_path)
    assert places.of(first) == Place(tmp_path / "a", own=True)
    assert places.of(second) == Place(tmp_path / "b", own=True)


@pytest.mark.parametrize(
    ("others", "own"),
    [
        ((part(b"first", "b"), b"first"), False),  # a file under another certificate
        (("{", b"first"), False),  # or under one that can't be read
        ((None, b"first"), True),
    ],
)
def test_a_file_elsewhere_is_found_by_its_hash(
    tmp_path: Path, others: tuple[Any, bytes], own: bool
) -> None:
    put(tmp_path / "b", *others)
    assert Places(tmp_path).of(part(b"first")) == Place(tmp_path / "b", own=own)
    put(tmp_path / "a", part(b"first"), None)  # without the file
    assert Places(tmp_path).of(part(b"first")) == Place(tmp_path / "b", own=own)
    put(tmp_path / "a", None, b"changed")
    assert Places(tmp_path).of(part(b"first")) == Place(tmp_path / "a", own=True)
    put(tmp_path / "c", part(b"first"), b"first")
    assert Places(tmp_path).of(part(b"first")) == Place(tmp_path / "c", own=True)


@pytest.mark.parametrize(
    "release", [None, [], {}, {"file": []}, {"file": "sketch.npz", "sha256": None}]
)
def test_what_names_no_file_is_nowhere(tmp_path: Path, release: Any) -> None:
    put(tmp_path, None, b"first")
    assert Places(tmp_path).of({"release": release}) == Place(None, own=False)
