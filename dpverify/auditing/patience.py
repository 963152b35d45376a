"""A limit of time for foreign code that gives one output after another."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator, Sized
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from types import FrameType

__all__ = ["Late", "watched"]


class Late(BaseException):
    """An output passed its time limit; no `except Exception` of a mechanism swallows it."""


def watched(outputs: Sized, time_limit: float) -> AbstractContextManager[None]:
    """Raise `Late` inside, where two ticks of a clock find equally many outputs.

    A tick each time limit costs nothing an output; a late one is stopped before twice its limit.
    In the main thread of a POSIX system the clock is the alarm signal, which also ends a wait in
    the system. In other threads, as on a cluster's worker, it is a thread, which stops between two
    instructions of Python alone. Neither ends a computation outside the interpreter.

    Parameters
    ----------
    outputs : what there is so far, which grows with each
    time_limit : seconds for each
    """
    main = threading.current_thread() is threading.main_thread()
    by_alarm = main and hasattr(signal, "SIGALRM")
    return _by_alarm(outputs, time_limit) if by_alarm else _by_thread(outputs, time_limit)


@contextmanager
def _by_alarm(outputs: Sized, time_limit: float) -> Iterator[None]:
    """A process has one alarm: whoever else set it, gets it back with the seconds it had left."""
    seen = -1

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        if len(outputs) == seen:
            raise Late
        seen = len(outputs)

    handler = signal.signal(signal.SIGALRM, tick)
    left, again = signal.setitimer(signal.ITIMER_REAL, time_limit, time_limit)
    start = perf_counter()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            rest = max(left - (perf_counter() - start), 1e-3)
            signal.setitimer(signal.ITIMER_REAL, rest, again)


@contextmanager
def _by_thread(outputs: Sized, time_limit: float) -> Iterator[None]:
    watched_thread = ctypes.c_ulong(threading.get_ident())
    lock, done = threading.Lock(), threading.Event()

    def watch() -> None:
        seen = -1
        while not done.wait(time_limit):
            with lock:
                if done.is_set():
                    return
                if len(outputs) == seen:
                    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                    raise_in(watched_thread, ctypes.py_object(Late))
                    return
                seen = len(outputs)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        # Either the clock finds this done and does nothing, or what it raised is raised at the
        # latest when `set` is called, and so inside.
        with lock:
            done.set()
