"""Atomic file writes: a new file or folder is there whole, or not at all."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from dpverify.errors import DPVerifyError, OutputError

__all__ = [
    "check_own",
    "check_writable",
    "make_own",
    "new_file",
    "replacing",
    "sha256_file",
    "write_file",
    "writing",
]


def check_writable(folder: Path, *, ours: Callable[[str], object]) -> None:
    """Refuse a folder that `replacing` could not replace, before any work is done.

    Parameters
    ----------
    folder : the output
    ours : whether a file of this name is an output, which may be replaced

    Raises
    ------
    OutputError
        If it is a file or a link, can't be written, holds files that are not ours to replace, or is
        being replaced by another process.
    """
    with _as_output_error(folder):
        if folder.is_symlink():
            raise OutputError(
                f"{folder}: is a link, and the output must be a folder, since it is replaced as "
                f"a whole. Name the folder itself: {os.path.realpath(folder)}"
            )
        if folder.exists():
            if not folder.is_dir():
                raise OutputError(f"{folder}: is a file, and the output must be a folder.")
            strangers = sorted(
                entry.name
                for entry in os.scandir(folder)  # which knows what they are, and they may go
                if not ours(entry.name) or entry.is_dir(follow_symlinks=False)
            )
            if strangers:
                raise OutputError(
                    f"{folder}: holds {strangers[0]}, which is not an output of certify. "
                    "Choose an empty folder or a new one."
                )
        folder.parent.mkdir(parents=True, exist_ok=True)
        probe = _beside(folder)
        _clear(probe, folder)
        _make(probe, folder)
        _clear(probe, folder)


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Fill a new folder, which then takes the place of the old one in one step.

    Yields an empty folder beside the old one, which only its owner can read. Where the block ends
    without an error both are exchanged, atomically where the system can (Linux, macOS). Elsewhere
    the old one is renamed away first, and a kill between the two renames leaves it whole under its
    temporary name. After an error the new folder is gone; what a kill leaves of it, the next
    `check_writable` removes. Both folders are locked meanwhile, so that of two processes that would
    replace one folder the second ends with an error, and neither publishes files of the other.
    """
    new = _beside(folder)
    with _as_output_error(folder), ExitStack() as locks:
        _clear(new, folder)
        _make(new, folder)
        held = [locks.enter_context(_locked(new, folder))]
        if folder.exists():
            held.append(locks.enter_context(_locked(folder, folder)))
        try:
            yield new
            _sync(new)
            if folder.exists():
                _exchange(new, folder)
            else:
                new.rename(folder)
            # Only now: a kill before this leaves nothing that others can read and isn't published.
            mask = os.umask(0)
            os.umask(mask)
            folder.chmod(0o777 & ~mask)
            _sync(folder.parent)
        except OutputError as error:  # of a file in the new folder, which has another name so far
            raise OutputError(str(error).replace(str(new), str(folder))) from None
        finally:
            if new.is_symlink():  # that someone put in the folder's place meanwhile
                new.unlink()
            elif any(_is_at(new, own) for own in held):  # the old folder, or what an error left
                shutil.rmtree(new, ignore_errors=True)


def check_own(folder: Path) -> None:
    """Refuse what is there, if anything is, unless it is a folder that is its owner's alone.

    Raises
    ------
    OutputError
        If it is a link or a file, belongs to someone else, or is open to others.
    """
    with _as_output_error(folder):
        try:
            there = folder.lstat()
        except FileNotFoundError:
            return
        own = stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid()
        if not own or stat.S_IMODE(there.st_mode) & 0o077:
            raise OutputError(
                f"{folder}: must be a folder of your own that is closed to all others (0700), and "
                "no link. Move it away."
            )


def make_own(folder: Path) -> None:
    """Make a folder that is its owner's alone, whatever the mask, unless it is there.

    Raises
    ------
    OutputError
        As `check_own`, or if it can't be made.
    """
    with _as_output_error(folder):
        try:
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # the mask may have taken bits of its owner's
        except FileExistsError:
            pass
    check_own(folder)


def write_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file as `writing` does."""
    with writing(path, private=private) as file:
        file.write(content)


@contextmanager
def writing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Write a file beside its place; where the block ends without an error, rename it there.

    A link to a file is replaced, and not followed, but for the system's own, such as /dev/stdout;
    what isn't a file stays. Meanwhile the file is
    locked: of two processes that would write one the second ends with an error.

    Parameters
    ----------
    path : of the file
    private : whether its owner alone may read it, whatever the mask

    Raises
    ------
    OutputError
        If it can't be written, a device or a folder is there, or another process is writing it.
    """
    with _as_output_error(path):
        other = path.exists() and not path.is_file()
        if other or _holds_devices(path.parent):  # the rename would put a file in its place
            raise OutputError(f"{path}: is not a file, and is not replaced: choose another.")
    partial = path.with_name(f".{path.name}.partial")

    def opener(name: str, flags: int) -> int:
        mode = 0o600 if private else 0o666
        descriptor = os.open(name, flags & ~os.O_TRUNC | os.O_NOFOLLOW, mode)
        try:
            _lock(descriptor, path)
            # Of another process that has put it in place since, it is no longer ours to write.
            if not _is_at(partial, descriptor):
                raise _busy(path)
            os.ftruncate(descriptor, 0)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    with (
        _as_output_error(path),
        open(partial, "wb", opener=opener) as file,  # a Path has no opener
    ):
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def new_file(path: Path, content: bytes) -> None:
    """Make a file that wasn't there, whole or not at all.

    Raises
    ------
    OutputError
        If something of this name is there, also where another process makes it meanwhile.
    """
    # Not named by the process alone: two machines, or containers, may share the folder.
    partial = path.with_name(f".{path.name}.{token_hex(8)}.partial")
    with _as_output_error(path):
        try:
            with partial.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(partial, path)  # which replaces nothing, as a rename would
        except FileExistsError:
            raise OutputError(
                f"{path}: exists, and is not replaced: choose another file."
            ) from None
        finally:
            partial.unlink(missing_ok=True)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _holds_devices(folder: Path) -> bool:
    """Whether even links to files are the system's there, such as /dev/stdout."""
    place = Path(os.path.realpath(folder))  # which takes a circle of links
    return place == Path("/dev") or place.is_relative_to("/proc")


def _beside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _clear(left: Path, folder: Path) -> None:
    """Remove what a killed process left beside a folder; of a link itself alone."""
    if left.is_symlink():
        left.unlink()
    elif left.exists():
        with _locked(left, folder):
            shutil.rmtree(left)


def _make(new: Path, folder: Path) -> None:
    """Make what is put in a folder's place; where it is there, another process does so too."""
    try:
        new.mkdir(mode=0o700)
    except FileExistsError:
        raise _busy(folder) from None


@contextmanager
def _locked(held: Path, folder: Path) -> Iterator[int]:
    """Keep other processes from replacing a folder, by what lies there or beside it.

    Whoever removes or renames what lies there holds this lock, so that it is at its place until the
    lock ends; the system ends it after a kill. Errors name the folder, which is what the user gave.
    """
    try:
        descriptor = os.open(held, os.O_RDONLY)
    except FileNotFoundError:  # another process removed it meanwhile
        raise _busy(folder) from None
    try:
        _lock(descriptor, folder)
        if not _is_at(held, descriptor):
            raise _busy(folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether what is open is still what lies at the path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _busy(path) from None


def _busy(path: Path) -> OutputError:
    return OutputError(f"{path}: another process is writing it. Wait for it, or choose another.")


def _exchange(new: Path, old: Path) -> None:
    if sys.platform == "linux" and _call("renameat2", new, old, (-100, -100)):
        return
    if sys.platform == "darwin" and _call("renamex_np", new, old, ()):
        return
    aside = old.with_name(f".{old.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    old.rename(aside)
    new.rename(old)
    shutil.rmtree(aside, ignore_errors=True)


def _call(name: str, new: Path, old: Path, folders: tuple[int, ...]) -> bool:
    """Exchange by a system call; False where the library or the file system lacks it."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return False
    exchange = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
    paths = [os.fsencode(new), os.fsencode(old)]
    arguments = [folders[0], paths[0], folders[1], paths[1]] if folders else paths
    if function(*arguments, exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(old))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _as_output_error(path: Path) -> Iterator[None]:
    try:
        yield
    except DPVerifyError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{path}: can't be written: {reason}.") from None
