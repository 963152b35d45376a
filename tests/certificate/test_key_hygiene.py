"""Releases: entropy from the operating system alone, and none of it in anything that is written."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest

from dpverify.certificate.certify import certify
from dpverify.certificate.configuration import load_configuration
from dpverify.cli import _run
from dpverify.errors import EntropyError

KEY = bytes(range(101, 133))


@pytest.fixture
def place(workplace: Path, tmp_path: Path) -> Path:
    for name in ("release.toml", "records.npy"):
        shutil.copy(workplace / name, tmp_path)
    return tmp_path


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), NotImplementedError()])
def test_without_entropy_nothing_is_published(
    place: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real = os.urandom

    def failing(count: int) -> bytes:
        if count == 32:  # a key; joblib names its work by 16 bytes
            raise error
        return real(count)

    configuration = load_configuration(place / "release.toml")
    monkeypatch.setattr(os, "urandom", failing)
    with pytest.raises(EntropyError, match="gives no random bytes"):
        certify(configuration, place / "out", base=place)
    assert {path.name for path in place.iterdir()} == {"release.toml", "records.npy"}


def forms(key: bytes) -> list[bytes]:
    """The key as it could stand in a file: any eight bytes of it in a row would be too much."""
    parts = [key[start : start + 8] for start in range(len(key) - 7)]
    numbers = [int.from_bytes(key[:8], order) for order in ("little", "big")]
    whole = [int.from_bytes(key, order) for order in ("little", "big")]
    # Base64 of any part, at each of its three alignments, without its open ends.
    coded = [base64.b64encode(key[start : start + 24]) for start in range(3)]
    texts = [part.hex().encode() for part in parts] + [str(n).encode() for n in numbers + whole]
    return [*parts, *texts, *coded, repr(key).encode(), b", ".join(str(b).encode() for b in key)]


def test_no_key_of_a_release_is_written(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    asked: list[int] = []

    def known(count: int) -> bytes:
        asked.append(count)
        return KEY[:count]

    out = place / "out"
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", known)
        arguments = ["certify", str(place / "release.toml"), "--out", str(out), "--verbose"]
        assert _run([*arguments, "--allow-inconclusive"]) == 0
    assert 32 in asked  # the release did draw its key there
    said = capfdbinary.readouterr()
    written = {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert len(written) == 6
    written |= {"stdout": said.out, "stderr": said.err}
    for name, content in written.items():
        for form in forms(KEY):
            assert form not in content, name


def test_the_search_would_find_a_key() -> None:
    for leak in (KEY, KEY.hex().encode(), base64.b64encode(KEY), base64.b64encode(b"x" + KEY)):
        assert any(form in leak for form in forms(KEY))


@pytest.mark.usefixtures("no_figures")
def test_two_releases_share_no_noise(place: Path) -> None:
    configuration = load_configuration(place / "release.toml")
    released = set()
    for _ in range(2):
        certify(configuration, place / "out", base=place)
        released.add((place / "out" / "sketch.npz").read_bytes())
    assert len(released) == 2
