"""Two processes that write one file or folder, and links that lie where they write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpverify.data.atomic_files import check_writable, new_file, replacing, write_file, writing
from dpverify.errors import OutputError


def test_of_two_that_write_one_file_the_second_ends(tmp_path: Path) -> None:
    """A lock is of an open file, so that one process may stand for two."""
    path = tmp_path / "out.json"
    with writing(path) as file:
        file.write(b"first, ")
        for _ in range(2):
            with pytest.raises(OutputError, match="another process is writing it"):
                write_file(path, b"second")
        file.write(b"whole")
    assert path.read_bytes() == b"first, whole"
    write_file(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_not_replaced(
    tmp_path: Path, make: Callable[[Path], object], linked: bool
) -> None:
    """Where the user is root a rename would take the place of a device."""
    path = there = tmp_path / "there"
    make(there)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(there)
    before = path.lstat()
    with pytest.raises(OutputError, match="is not a file, and is not replaced"):
        write_file(path, b"new")
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert set(tmp_path.iterdir()) == {path, there}


def test_what_the_system_calls_an_open_file_is_not_replaced(tmp_path: Path) -> None:
    mine = Path("/dev/dpverify-test")  # as root /dev/stdout itself would be gone
    (tmp_path / "devices").symlink_to("/dev")
    with (tmp_path / "open").open("wb") as file:
        link = Path(f"/proc/self/fd/{file.fileno()}")
        if not link.exists():
            pytest.skip("no such links here")
        try:
            for path in (link, mine, tmp_path / "devices" / mine.name):
                with pytest.raises(OutputError, match="is not a file, and is not replaced"):
                    write_file(path, b"new")
        finally:
            mine.unlink(missing_ok=True)


def test_a_folder_that_is_named_as_an_output_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"holds report\.html"):
        check_writable(tmp_path / "out", ours="report.html".__eq__)


_WRITER = """
import sys
from pathlib import Path
from dpverify.data.atomic_files import write_file
from dpverify.errors import OutputError
path, letter = Path(sys.argv[1]), sys.argv[2].encode()
for number in range(400):
    try:
        write_file(path, letter * (100_000 + number))
    except OutputError:
        pass
    content = path.read_bytes() if path.exists() else b""
    assert len(set(content)) <= 1 and not 0 < len(content) < 100_000, len(content)
"""


@pytest.mark.nightly
def test_processes_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path / "out")]
    writers = [subprocess.Popen([*command, letter]) for letter in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_where_a_folder_is_prepared_is_removed_alone(tmp_path: Path, there: bool) -> None:
    target, out = tmp_path / "target", tmp_path / "out"
    if there:
        target.mkdir()
        (target / "kept").write_text("kept")
    (tmp_path / ".out.partial").symlink_to(target)
    check_writable(out, ours="".__eq__)
    with replacing(out) as new:
        (new / "file").write_text("new")
    assert (out / "file").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"] + ["target"] * there
    assert not there or (target / "kept").read_text() == "kept"


def test_a_link_put_in_place_meanwhile_is_replaced(tmp_path: Path) -> None:
    """What it leads to is left alone, and the next run finds nothing in its way."""
    target, out = tmp_path / "target", tmp_path / "out"
    target.mkdir()
    (target / "kept").write_text("kept")
    with replacing(out) as new:
        (new / "file").write_text("new")
        out.symlink_to(target)
    assert not out.is_symlink()
    assert (out / "file").read_text() == "new"
    assert (target / "kept").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "target"]
    check_writable(out, ours="file".__eq__)


def test_a_link_to_itself_is_no_output(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OutputError, match="is a link, and the output must be a folder"):
        check_writable(loop, ours=lambda _: True)
    with pytest.raises(OutputError, match="can't be written"):
        write_file(loop / "out.json", b"new")
    write_file(loop, b"new")
    assert loop.read_bytes() == b"new"


def test_of_two_that_make_one_file_the_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where both processes have one number, as in two containers that share a folder."""
    path, link = tmp_path / "budget", os.link

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        new_file(path, b"the other's")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(OutputError, match="exists, and is not replaced"):
        new_file(path, b"mine")
    assert path.read_bytes() == b"the other's"
    assert [*tmp_path.iterdir()] == [path]
