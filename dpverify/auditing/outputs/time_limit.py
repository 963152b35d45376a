"""A limit of time for foreign code that gives one output after another, and one for all of it.

The clock is made, and ends, within one call of `within`: when that returns or raises, its timer is
off, its thread has ended, the handler of before is back, and `Late` can no longer be raised.

**The alarm.** Its handler raises `Late` in frames that ``work`` leads to and never in that of
`_by_alarm`, which therefore runs to its end once ``work`` is left: it notes that nothing runs any
more, after which the handler raises nothing, stops the timer, and gives the signal back. A tick
that another thread took and hasn't told the interpreter yet finds no handler then: the interpreter
calls nothing, and prints that it ignores a signal (of 10⁵ contexts under load, with a tick each
30 µs, less than once).

Who swallows `Late` (`except BaseException` in a loop, say) gets it again with the next tick, and
from then on wherever the interpreter looks for signals: also between what swallows it and the next
attempt. Where ``work`` returns nevertheless, `Late` is raised after it. What blocks or replaces the
signal isn't stopped.

**The thread.** It raises at most once, and then ends. `_Clock.stop` waits for that end, and since
the interpreter looks for what is to be raised whenever such a wait is over, `Late` has arrived when
`stop` is left. It is called twice: where `Late` arrives within the first call, no more can come in
the second. (Taking back what was raised and hasn't arrived would be shorter, but leaves CPython
3.11 looking for it at every step.) Who swallows it goes on, and is told to be late when it returns.
"""

from __future__ import annotations

import _thread
import ctypes
import math
import signal
import threading
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType
from typing import TypeVar

from dpverify.errors import Interruption

__all__ = ["Late", "ending", "time_left", "within"]

_T = TypeVar("_T")

_FINEST = 1e-3
"""Seconds between two ticks at the least: a handler must end before it is called again."""
_ORDERLY = (__name__.partition(".")[0], "contextlib")
"""Packages whose code may be restoring what it changed: there nothing is raised a second time."""


_end: ContextVar[float] = ContextVar("_end", default=math.inf)
"""When all that is called in this context must have ended, by `perf_counter`."""


@contextmanager
def ending(seconds: float) -> Iterator[None]:
    """Let all calls of `within` in this context end in so many seconds, or the next tick after."""
    token = _end.set(min(_end.get(), perf_counter() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def time_left() -> float:
    """Seconds until the end that `ending` set; infinite without one."""
    return _end.get() - perf_counter()


class Late(Interruption):
    """A time limit was passed."""


def within(time_limit: float, outputs: Sized, work: Callable[[], _T]) -> _T:
    """Call ``work``, and raise `Late` in it where two ticks of a clock find equally many outputs.

    So does a tick after the end that `ending` set; and after it ``work`` isn't called at all.

    The clock ticks once each time limit, which costs nothing per output. A late output is stopped
    before twice its limit, one that swallows `Late` before three times. In the main thread of a
    POSIX system the clock is the alarm signal, which also ends a wait in the system. In other
    threads, as on a cluster's worker, it is a thread, which stops between two instructions of
    Python alone. Neither ends a computation outside the interpreter.

    Parameters
    ----------
    time_limit : seconds for each output
    outputs : what there is so far, which grows with each
    work : makes the outputs; a function of Python's

    Returns
    -------
    What ``work`` returns.

    Raises
    ------
    Late
        If an output takes longer, or there is no time left. Whatever else ``work`` raises goes
        on as it is.
    """
    if time_left() <= 0:
        raise Late
    time_limit = max(time_limit, _FINEST)
    main = threading.current_thread() is threading.main_thread()
    # A handler that isn't Python's can't be given back.
    if main and hasattr(signal, "SIGALRM") and signal.getsignal(signal.SIGALRM) is not None:
        return _by_alarm(time_limit, outputs, work)
    return _by_thread(time_limit, outputs, work)


def _by_alarm(time_limit: float, outputs: Sized, work: Callable[[], _T]) -> _T:
    """A process has one alarm: whoever else set it, gets it back with the seconds it had left."""
    seen, running, late = -1, False, False

    def tick(number: int, frame: FrameType | None) -> None:
        nonlocal seen, late
        if not running or frame is None or frame.f_code is _by_alarm.__code__:
            return
        if late:
            restoring = frame.f_globals.get("__name__", "").partition(".")[0] in _ORDERLY
            # A call would look for signals itself, and find the one that it makes.
            for _ in map(_thread.interrupt_main, [signal.SIGALRM]):
                if restoring:
                    return
                raise Late
        if len(outputs) == seen or time_left() <= 0:
            late = True
            raise Late
        seen = len(outputs)

    left, again = signal.setitimer(signal.ITIMER_REAL, 0)
    start = perf_counter()
    before = signal.signal(signal.SIGALRM, tick)
    try:
        signal.setitimer(signal.ITIMER_REAL, time_limit, time_limit)
        running = True
        result = work()
        if late:
            raise Late
        return result
    finally:
        running = False
        # Each step is made even where another signal's handler (Ctrl-C) raises in the one before.
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            try:
                signal.signal(signal.SIGALRM, before)
            except BaseException:
                signal.signal(signal.SIGALRM, before)
                raise
            finally:
                if left:
                    rest = max(left - (perf_counter() - start), 1e-3)
                    signal.setitimer(signal.ITIMER_REAL, rest, again)


def _by_thread(time_limit: float, outputs: Sized, work: Callable[[], _T]) -> _T:
    clock = _Clock(time_limit, outputs, _end.get())
    try:
        try:
            clock.thread.start()
            clock.running = True
            result = work()
            if clock.late:
                raise Late
            return result
        finally:
            clock.stop()
    finally:
        clock.stop()


@dataclass(slots=True)
class _Clock:
    """A thread that raises `Late` in the one that made it, once at most, and then ends.

    It raises nothing before work is `running`: what starts it must not be interrupted.

    The gate is held while the time runs. (An `Event` could be left locked, where what the clock
    raises arrives as it is set.)
    """

    time_limit: float
    outputs: Sized
    end: float
    watched: int = field(default_factory=threading.get_ident)
    gate: threading.Lock = field(default_factory=threading.Lock)
    thread: threading.Thread = field(init=False)
    running: bool = False
    late: bool = False

    def __post_init__(self) -> None:
        self.gate.acquire()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Tick until the gate opens."""
        seen = -1
        while not self.gate.acquire(timeout=self.time_limit):
            late = len(self.outputs) == seen or perf_counter() >= self.end
            if self.running and late:
                self.raise_late()
                return
            seen = len(self.outputs)

    def raise_late(self) -> None:
        """Have it raised where the watched thread is, or will be next."""
        self.late = True
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        raise_in(ctypes.c_ulong(self.watched), ctypes.py_object(Late))

    def stop(self) -> None:
        """Wait for the thread's end, if it began."""
        if self.gate.locked():
            self.gate.release()
        if self.thread.ident is not None:
            self.thread.join()
