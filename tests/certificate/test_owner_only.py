"""What describes the real records goes to a folder that is its owner's alone, and nowhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpverify.cli import _run
from dpverify.data.atomic_files import check_own, check_writable, make_own, write_file
from dpverify.errors import OutputError


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277])
def _mask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.usefixtures("_mask")
def test_folder_and_file_are_closed_whatever_the_mask(tmp_path: Path) -> None:
    make_own(tmp_path / "own")
    make_own(tmp_path / "own")  # it may be there, as it was made
    write_file(tmp_path / "own" / "note", b"secret", private=True)
    assert mode(tmp_path / "own") == 0o700
    assert mode(tmp_path / "own" / "note") & 0o077 == 0


def _open_to_others(place: Path) -> None:
    place.mkdir(mode=0o700)
    place.chmod(0o750)


def _a_link(place: Path) -> None:
    (place.parent / "pub").mkdir(mode=0o700)
    place.symlink_to("pub")


def _dangling(place: Path) -> None:
    place.symlink_to("nowhere")


def _a_file(place: Path) -> None:
    place.write_text("")


@pytest.mark.parametrize("prepare", [_open_to_others, _a_link, _dangling, _a_file])
def test_what_is_not_its_owners_alone_is_refused(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path / "own")
    for asked in (check_own, make_own):
        with pytest.raises(OutputError, match="must be a folder of your own that is closed to all"):
            asked(tmp_path / "own")


def test_a_folder_of_someone_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_own(tmp_path / "own")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(OutputError, match="must be a folder of your own"):
        check_own(tmp_path / "own")


def test_certify_refuses_it_before_any_work_and_shows_no_fact(
    workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["certify", str(workplace / "release.toml"), "--out", str(out)]
    private = tmp_path / "out-OWNER-ONLY-do-not-release"
    _open_to_others(private)
    assert _run(command) == 2
    assert not out.exists()
    assert "closed to all others" in capsys.readouterr().err
    private.rmdir()
    assert _run([*command, "--allow-inconclusive", "--verbose"]) == 0
    shown = "".join(capsys.readouterr())
    (note,) = private.iterdir()
    facts = note.read_text().splitlines()[3:]
    assert any(fact.startswith("mean true") for fact in facts)
    assert str(note) in shown
    assert not any(fact.partition(":")[0] in shown for fact in facts)
    assert mode(note) == 0o600


@pytest.mark.parametrize("target", ["folder", "nowhere"])
def test_an_output_folder_that_is_a_link_is_refused(tmp_path: Path, target: str) -> None:
    """It worked once: the exchange put a folder in place of the link, and left the link."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(OutputError, match=f"link: is a link.*Name the folder itself: .*{target}"):
        check_writable(tmp_path / "link", ours=bool)
    assert (tmp_path / "link").is_symlink()


def test_a_file_takes_the_place_of_a_link_and_never_follows_one(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to("target")
    for content in (b"one", b"two"):
        write_file(tmp_path / "link", content)
        assert (tmp_path / "link").read_bytes() == content
    (tmp_path / ".file.partial").symlink_to("target")
    with pytest.raises(OutputError, match="can't be written"):
        write_file(tmp_path / "file", b"new")
    assert (tmp_path / "target").read_text() == "kept"


@pytest.mark.parametrize(
    "command", [["compose", "a.json", "b.json", "--out"], ["init", "data.csv", "--out"]]
)
def test_an_output_file_that_is_a_folder_is_refused_at_once(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run([*command, str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
