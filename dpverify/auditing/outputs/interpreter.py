"""What an audit needs of the interpreter is as before, whatever foreign code did to it.

That is where modules are found and how deep calls may be, input and output, who answers Ctrl-C or a
child's end, which signals are blocked or are still to come, what watches each line, how many digits
a text may have, and where temporary files are. What else a mechanism sets (the environment, the
working folder, filters of warnings, seeds, hooks for what nobody caught) is its own, as wherever it
is called.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

__all__ = ["restored"]

_DESCRIPTORS = (0, 1, 2)
_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
_ANSWERED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGCHLD")
    if hasattr(signal, name)
]


class _Setting(NamedTuple):
    """How something is read and written."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


class _Stream(NamedTuple):
    """What stands in `sys` by a name, and the descriptor below it; None without one."""

    name: str
    stream: Any
    descriptor: int | None

    @classmethod
    def of(cls, name: str) -> _Stream:
        stream = getattr(sys, name, None)
        return cls(name, stream, _descriptor(stream))

    def give_back(self) -> None:
        """It, or what writes to the same place where it was closed."""
        stream = self.stream
        if self.descriptor is not None and _descriptor(stream) is None:
            stream = os.fdopen(
                self.descriptor,
                _STREAMS[self.name],
                buffering=1,
                encoding="utf-8",
                errors="backslashreplace",
                closefd=False,
            )
        setattr(sys, self.name, stream)


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except Exception:  # whatever it is, closed or detached
        return None


def _found(name: str) -> _Setting:
    """A list of where modules are found: what foreign code has added to it stays."""

    def add(before: list[Any]) -> None:
        now = getattr(sys, name, None)
        if not isinstance(now, list):
            now = []
            setattr(sys, name, now)
        now += [place for place in before if place not in now]

    return _Setting(lambda: list(getattr(sys, name, None) or ()), add)


def _deepen(depth: int) -> None:
    sys.setrecursionlimit(max(depth, sys.getrecursionlimit()))


def _answered(by: dict[int, Any]) -> None:
    for number, handler in by.items():
        if handler is not None:  # which no code of Python's made
            signal.signal(number, handler)


def _timer(which: int) -> _Setting:
    """Whether it is off; one that was on before goes on as it is."""
    return _Setting(
        lambda: signal.getitimer(which)[0] == 0,
        lambda off: signal.setitimer(which, 0) if off else None,
    )


def _unblock(before: set[int]) -> None:
    if signal.SIGALRM in signal.sigpending():  # of the clock of before
        signal.sigwait([signal.SIGALRM])
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


_ANYWHERE = [
    _Setting(sys.gettrace, sys.settrace),
    _Setting(sys.getprofile, sys.setprofile),
    _Setting(sys.getrecursionlimit, _deepen),
    _Setting(sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    _Setting(gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    *map(_found, ("path", "meta_path", "path_hooks")),
]
_MAIN = [_Setting(lambda: {each: signal.getsignal(each) for each in _ANSWERED}, _answered)]
"""What the main thread alone may set."""
if hasattr(signal, "setitimer"):  # none on Windows
    _MAIN += map(_timer, (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF))
    _ANYWHERE.append(_Setting(partial(signal.pthread_sigmask, signal.SIG_BLOCK, ()), _unblock))


@contextmanager
def restored() -> Iterator[None]:
    """Call foreign code in it."""
    main = threading.current_thread() is threading.main_thread()
    settings = [*(_MAIN if main else ()), *_ANYWHERE]
    before = [each.read() for each in settings]
    folder, streams = tempfile.tempdir, [_Stream.of(name) for name in _STREAMS]
    copies = {}
    for descriptor in _DESCRIPTORS:
        with suppress(OSError):  # closed before
            copies[descriptor] = os.dup(descriptor)
    try:
        yield
    finally:
        for descriptor, copy in copies.items():
            _reopen(descriptor, copy)
        for stream in streams:
            stream.give_back()
        tempfile.tempdir = folder
        for each, value in zip(settings, before, strict=True):
            if each.read() != value:
                each.write(value)


def _reopen(descriptor: int, copy: int) -> None:
    with suppress(OSError):  # the copies may be closed as well
        if not _is_open(descriptor):
            os.dup2(copy, descriptor)
        os.close(copy)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
