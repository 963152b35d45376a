"""Machine code for the innermost loops, where numba is installed: the extra ``fast``.

numpy does the same in more passes over memory, and with the same result to the last bit: what is
compiled decides speed alone. Loading numba takes half a second, which numpy takes for some hundred
MiB of records; so it is loaded in a process that has as much to do. The environment's
``DPVERIFY_LOOPS`` says otherwise: ``numba`` loads it at once, and ``numpy`` never.

The machine code is kept beside the loops or, where nothing can be written there, in the user's
cache; where nothing can be written at all, each process makes its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from dpverify.execution.loops import SIGNATURES

__all__ = ["compiled", "loops_by"]

_VARIABLE = "DPVERIFY_LOOPS"
_MUCH = 2**24  # values: 128 MiB of doubles
_met = [0]  # values in this process
_in_use: list[str] = []


def compiled(loop: Callable[..., Any], *, values: int) -> Callable[..., Any] | None:
    """A loop as machine code; None where there is none, or it wouldn't pay.

    Parameters
    ----------
    loop : of `loops`
    values : that are to be worked on
    """
    choice = os.environ.get(_VARIABLE)
    if choice == "numpy":
        return None
    _met[0] += values
    if choice == "numba" or "numba" in sys.modules or _met[0] >= _MUCH:
        return _machine_code(loop)
    return None


def loops_by() -> str:
    """What the innermost loops of this process ran on so far."""
    return _in_use[0] if _in_use else "numpy"


@cache
def _machine_code(loop: Callable[..., Any]) -> Callable[..., Any] | None:
    try:
        import numba
    except ImportError:  # not there, or not for this numpy
        return None
    if numba.config.DISABLE_JIT:
        return None
    made: Callable[..., Any]
    for kept in (True, False):
        try:
            made = numba.njit(SIGNATURES[loop.__name__], cache=kept, nogil=True)(loop)
        except (RuntimeError, OSError):  # no folder for it, or a full one
            continue
        _in_use[:] = [f"numba {numba.__version__}"]
        return made
    return None
