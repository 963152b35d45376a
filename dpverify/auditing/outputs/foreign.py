"""Calls of foreign code: all that a mechanism does ends in an output or in a `DrawError`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sized
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from dpverify.auditing.outputs.interpreter import restored
from dpverify.auditing.outputs.time_limit import Late, time_left, within
from dpverify.errors import PASSING, DrawError, require_text
from dpverify.execution.arithmetic import foreign_arithmetic
from dpverify.privacy import Pair
from dpverify.visible import escaped, raised, shown

__all__ = ["OVERDUE", "LateError", "alone", "display_name", "draw_error", "foreign_code", "several"]

_T = TypeVar("_T")

OVERDUE = "took all the time that an audit may take"


def display_name(mechanism: object, name: str | None = None) -> str:
    """What a person calls the mechanism: its name, else a function's own, else its class's.

    Raises
    ------
    ParameterError
        If a name is given in its place that isn't text.
    """
    if name is not None:
        require_text("name", name)
    own = getattr(mechanism, "__name__", type(mechanism).__name__)
    return escaped(name or str(getattr(mechanism, "name", own)))


class LateError(DrawError):
    """A mechanism of which a release took longer than its time limit."""


def foreign_code(
    work: Callable[[], _T],
    mechanism: object,
    pair: Pair,
    side: int | None,
    outputs: Sized,
    time_limit: float,
    *,
    passed: type[Exception] = DrawError,
) -> _T:
    """Call foreign code: whatever it raises, or a wait for its next output, is a `DrawError`.

    Where it leaves by `os._exit`, which would end the audit with the exit code of its choice, it
    raises `SystemExit` as by `sys.exit`. What an audit needs of the interpreter is as before.

    Parameters
    ----------
    work : that code, a function of Python's
    mechanism, pair, side : what to name; of either side, None
    outputs : what it has given so far, which grows with each
    time_limit : seconds for each; it is stopped before twice as many
    passed : errors that go on as they are
    """
    try:
        with foreign_arithmetic(), _staying(), restored():
            return within(time_limit, outputs, work)
    except Late:
        late = f"took longer than {time_limit:g} s for one release"
        reason = late if time_left() > 0 else OVERDUE
        raise LateError(str(draw_error(mechanism, pair, reason, side))) from None
    except (passed, *PASSING):
        raise
    except BaseException as error:
        reason = f"raised {raised(error)}"
        raise draw_error(mechanism, pair, reason, side) from error


@contextmanager
def _staying() -> Iterator[None]:
    process, leave = os.getpid(), os._exit

    def exit_here(status: int) -> None:
        if os.getpid() == process:
            raise SystemExit(status)
        leave(status)

    os._exit = exit_here  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


def alone(release: Callable[[], _T]) -> Callable[[], _T]:
    """The release, from which only this process returns.

    A mechanism may fork. If the child returned from the release too, there would be two audits; so
    it is ended where it would return.
    """
    this = os.getpid
    process = this()

    def called() -> _T:
        try:
            return release()
        finally:
            if this() != process:
                os._exit(0)

    return called


def several(answer: Any, count: int, name: str) -> list[Any]:
    """So many outputs that were made at once, in their order.

    What a frame, a mapping or a text holds is no output: its columns, keys or letters.

    Parameters
    ----------
    answer : of foreign code
    count : how many outputs were asked for
    name : what a person calls who gave it

    Raises
    ------
    DrawError
        If it isn't so many outputs, one after the other.
    """
    named = isinstance(answer, str | bytes | bytearray | Mapping | AbstractSet)
    sized = hasattr(answer, "__len__") and hasattr(answer, "__iter__")
    array = isinstance(answer, np.ndarray) and not answer.ndim  # of one number
    listed = sized and not named and not array and not hasattr(answer, "columns")
    outputs = list(islice(answer, count)) if listed and len(answer) == count else []
    if len(outputs) != count:
        said = f"{len(answer)} outputs" if listed else shown(answer)
        hint = "Return a list of outputs, or an array with a row for each."
        raise DrawError(f"{name} gave {said} where {count} were asked for. {hint}")
    return outputs


def draw_error(
    mechanism: object, pair: Pair, reason: str, side: int | None = None, way_out: str = ""
) -> DrawError:
    """An error that names the mechanism, the pair, and the side if it is of one.

    Parameters
    ----------
    mechanism, pair : what to name
    reason : what the mechanism did, in words that follow its name
    side : 0 for the record, 1 for the neighbour; of either side, None
    way_out : with the space before it
    """
    where = "" if side is None else (" (on its neighbour)" if side else " (on its record)")
    return DrawError(
        f"{display_name(mechanism)} {reason}, on the pair {pair.name!r}{where}.{way_out}"
    )
