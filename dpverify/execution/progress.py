"""What a call that takes long says while it runs, and a line in notebooks that shows it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from time import perf_counter
from typing import Any

__all__ = ["Announce", "duration", "notebook_line", "phases"]

Announce = Callable[[str, int], Callable[[int], None]]
"""Takes a phase, as "auditing", and the number of its steps, draws or rows; returns what is called
with the number of those done."""

_PAUSE = 0.25  # seconds in which a line changes once


def duration(seconds: float) -> str:
    """In whole numbers of a unit that a person would take."""
    units = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
    size, unit = next((each for each in units if seconds >= 2 * each[0]), units[-1])
    number = math.ceil(seconds / size)
    return f"{number} {unit.removesuffix('s') if number == 1 else unit}"


@contextmanager
def notebook_line(*, wanted: bool) -> Iterator[Callable[[str], None]]:
    """A line of text below the cell of a notebook; yields what is called with its next text.

    It ends with the time that was taken, or where an error left it. Nothing is shown elsewhere, as
    in a script, and where it isn't wanted, since somebody else is told.
    """
    display = _display() if wanted else None
    if display is None:
        yield lambda _: None
        return
    began = perf_counter()
    line = display({"text/plain": ""}, raw=True, display_id=True)

    def tell(text: str) -> None:
        line.update({"text/plain": text}, raw=True)

    yield tell
    tell(f"took {duration(perf_counter() - began)}")


def phases(tell: Callable[[str], None]) -> Announce:
    """An `Announce` that tells of each phase which share is done, and the time left."""

    def start(phase: str, total: int) -> Callable[[int], None]:
        began = told = perf_counter()
        done = 0
        tell(phase)

        def advance(steps: int) -> None:
            nonlocal done, told
            done += steps
            now = perf_counter()
            if done and now - told >= _PAUSE:
                told = now
                left = duration((now - began) * (total - done) / done)
                tell(f"{phase}: {done / total:.0%}, about {left} left")

        return advance

    return start


def _display() -> Callable[..., Any] | None:
    """IPython's `display`, where the kernel of a notebook runs this."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display
