"""What untrusted or damaged files meet: each way in, its inputs, and how it answers.

An input is answered by a result or by one `DPVerifyError`. Everything else is a failure: another
exception, a hang, a file left or changed beside the input, code that ran, memory beyond a limit.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dpverify.errors import DPVerifyError

__all__ = ["Surface", "probe"]

SECONDS = 60
"""After which an input counts as a hang."""
MEMORY = 3 << 30
"""Bytes of address space that one input may take beyond what the process had."""
MESSAGE = 4_000
"""Characters of the longest error message: a person is to read it."""
_FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "subprocess.Popen", "os.posix_spawn")
_forbidden: list[str] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """One way in.

    Attributes
    ----------
    name : of the way in
    suffix : of the file
    inputs : strategy of its contents
    read : reads the file as a user's command would, and says in a word what came of it
    nightly : inputs that the nightly run tries
    quick : inputs that every run tries
    outcomes : how often each answer was given
    """

    name: str
    suffix: str
    inputs: st.SearchStrategy[bytes]
    read: Callable[[Path], str]
    nightly: int
    quick: int = 25
    outcomes: Counter[str] = field(default_factory=Counter)


def probe(surface: Surface, content: bytes, folder: Path) -> None:
    """Read one input and note the answer."""
    path = folder / f"input{surface.suffix}"
    path.write_bytes(content)
    before = _listing(folder)
    with _watched():
        try:
            outcome = surface.read(path)
        except DPVerifyError as error:
            outcome = type(error).__name__
            message = str(error)
            assert 0 < len(message) < MESSAGE, message[:200]
    assert not _forbidden, _forbidden
    assert path.read_bytes() == content
    assert _listing(folder) == before
    surface.outcomes[outcome] += 1


def _listing(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """A clock, a limit on memory, and a watch on what is executed."""
    _hook()
    _forbidden.clear()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    previous = signal.signal(signal.SIGALRM, _hung)
    signal.alarm(SECONDS)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _hung(*_: Any) -> None:
    raise AssertionError(f"no answer after {SECONDS} s")


_hooked: list[bool] = []


def _hook() -> None:
    """Audit hooks can't be taken away: one for the process, which notes what must not happen."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(lambda event, _: _forbidden.append(event) if event in _FORBIDDEN else None)
