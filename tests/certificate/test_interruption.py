"""Ending certify at any moment leaves the old outputs or the new ones, whole."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import stat
from pathlib import Path

import pytest

from dpverify.data import atomic_files
from dpverify.data.atomic_files import replacing, write_file
from dpverify.errors import OutputError
from tests.helpers.processes import assert_whole, lasted


@pytest.mark.nightly
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])  # SIGKILL: test_sigkill.py
def test_ended_at_random_moments(workplace: Path, tmp_path: Path, how: signal.Signals) -> None:
    for name in ("release.toml", "records.npy"):
        shutil.copy(workplace / name, tmp_path)
    out = tmp_path / "out"
    words = ["certify", str(tmp_path / "release.toml"), "--out", str(out)]
    duration = lasted(words) or 1
    seen = {assert_whole(out)}
    moments = random.Random(7)
    for _ in range(4):
        # Towards the end, where the files are written.
        lasted(words, duration * moments.uniform(0.7, 1.05), how=how)
        seen.add(assert_whole(out))
    assert lasted(words)
    assert assert_whole(out) not in seen
    assert {path.name for path in tmp_path.iterdir()} == {
        "release.toml",
        "records.npy",
        "out",
        "out-OWNER-ONLY-do-not-release",
    }


def fill(folder: Path, contents: dict[str, bytes]) -> None:
    with replacing(folder) as new:
        for name, content in contents.items():
            write_file(new / name, content)


@pytest.mark.parametrize("exchange", [True, False])
def test_replacing_fails_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    """An error in any call that touches the disk leaves the old folder as it was."""
    if not exchange:
        monkeypatch.setattr(atomic_files, "_call", lambda *_: False)
    old, new = {"a": b"old", "b": b"old"}, {"a": b"new", "b": b"new"}
    folder = tmp_path / "out"
    for failing in range(8):
        fill(folder, old)
        calls = iter(range(100))

        def sync(_: int, calls: object = calls, failing: int = failing) -> None:
            if next(calls) == failing:  # type: ignore[call-overload]
                raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", sync)
            with contextlib.suppress(OutputError):
                fill(folder, new)
        contents = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert contents in (old, new)
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("exchange", [True, False])
def test_nobody_else_reads_what_is_not_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    """A kill before the exchange leaves a whole release, which must not be a second one to read."""
    folder, seen = tmp_path / "out", []
    place = atomic_files._exchange

    def watched(new: Path, old: Path) -> None:
        seen.append(stat.S_IMODE(new.stat().st_mode))
        place(new, old)

    if not exchange:
        monkeypatch.setattr(atomic_files, "_call", lambda *_: False)
    monkeypatch.setattr(atomic_files, "_exchange", watched)
    for content in (b"old", b"new"):
        fill(folder, {"a": content})
    assert seen == [0o700]
    assert (folder / "a").read_bytes() == b"new"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~mask
