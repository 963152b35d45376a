"""Frames of pandas, read by what they have in common with others.

Two draws of a frame differ, nearly always, in the numbers of its columns alone, and to take a frame
apart costs ten times as much as to pickle it. So a frame is pickled, with its arrays beside the
pickle. Of all whose pickles agree, and whose arrays do but for numbers of columns, marks in place
of these are taken apart, once: where a mark comes out, there goes the number of each such frame.

That is so of numbers that are one leaf, which NaN, −0, infinities and those beyond 2⁵³ are not.
Doubles of these kinds must agree too, and a frame with such whole numbers isn't read in this way.
Marks are read twice, with all different; if anything else than a mark differs, the frame isn't
read in this way either.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Parts", "read_frame"]

_MOST = 4096  # frames that differ in more than numbers of columns
_EXACT = 2**53
_KNOWN = frozenset({"builtins", "copyreg", "datetime", "functools", "numpy", "pandas", "pyarrow"})
"""What a pickle may name so that what it makes is the same again."""
_MARKS = (1_000_003, 7), (2_000_029, 11)  # the first, and steps between them
_NUMBERS = {"d": np.dtype(np.float64), "l": np.dtype(np.int64), "q": np.dtype(np.int64)}


class _Pickled(NamedTuple):
    """A frame as pickle has it."""

    stream: bytes
    arrays: list[pickle.PickleBuffer]


class Parts(Protocol):
    """What a frame says (`dpverify.auditing.outputs.values.Value`)."""

    @property
    def leaves(self) -> tuple[tuple[str, Any], ...]:
        """Name, and number or word, of each part."""
        ...

    @property
    def structure(self) -> str:
        """The types of all parts."""
        ...

    @property
    def cut(self) -> bool:
        """Whether some parts have no leaves of their own."""
        ...

    def with_leaves(self, leaves: tuple[tuple[str, Any], ...]) -> Self:
        """The same with other leaves."""
        ...


_Parts = TypeVar("_Parts", bound=Parts)


class _Alike(NamedTuple, Generic[_Parts]):
    """Frames that differ in numbers alone.

    Attributes
    ----------
    value : one of them, taken apart
    places : of each leaf that is a number of a column: which leaf, and which number
    """

    value: _Parts
    places: list[tuple[int, int]]

    def with_numbers(self, numbers: NDArray[np.float64]) -> _Parts:
        """The frame of these numbers."""
        leaves, told = list(self.value.leaves), numbers.tolist()
        for leaf, number in self.places:
            leaves[leaf] = leaves[leaf][0], told[number]
        return self.value.with_leaves(tuple(leaves))


_columns: dict[bytes, tuple[int, ...]] = {}
_alike: dict[tuple[bytes, ...], _Alike[Any] | None] = {}


def read_frame(frame: Any, take_apart: Callable[[Any], _Parts]) -> _Parts:
    """Take a frame or a series of pandas apart.

    Parameters
    ----------
    frame : a `DataFrame` or `Series`, of no subclass
    take_apart : any output, which gives the same for what is pickled the same

    Returns
    -------
    What `take_apart` gives; but for the order of numbers that only pickle knows, where some of them
    are also in columns.
    """
    arrays: list[pickle.PickleBuffer] = []
    try:
        stream = pickle.dumps(frame, protocol=5, buffer_callback=arrays.append)
    except Exception:  # foreign objects refuse with whatever they like
        return take_apart(frame)
    pickled = _Pickled(stream, arrays)
    columns = _remembered(_columns, stream, lambda: _of_columns(frame, arrays))
    numbers = _numbers(pickled, columns, summed=frame.ndim == 1)
    if numbers is None:
        return take_apart(frame)
    plain = (np.abs(numbers) < _EXACT) & ~((numbers == 0) & np.signbit(numbers))
    beside = [array.raw().tobytes() for n, array in enumerate(arrays) if n not in columns]
    odd = b"" if plain.all() else plain.tobytes() + numbers[~plain].tobytes()
    alike = _remembered(
        _alike,
        (stream, *beside, odd),
        lambda: _marked(pickled, columns, numbers, plain, take_apart),
    )
    return take_apart(frame) if alike is None else alike.with_numbers(numbers)


def _remembered(known: dict[Any, Any], key: Any, made: Callable[[], Any]) -> Any:
    if key not in known:
        if len(known) == _MOST:
            known.clear()
        known[key] = made()
    return known[key]


def _of_columns(frame: Any, arrays: list[pickle.PickleBuffer]) -> tuple[int, ...]:
    """Which arrays hold numbers of columns."""
    held = [frame] if frame.ndim == 1 else [column for _, column in frame.items()]
    columns = [column.to_numpy() for column in held if str(column.dtype) in ("float64", "int64")]
    found = []
    for place, array in enumerate(arrays):
        if memoryview(array).format in _NUMBERS:
            memory = np.frombuffer(array.raw(), np.uint8)
            found += [place] * any(np.may_share_memory(memory, column) for column in columns)
    return tuple(found)


def _numbers(
    pickled: _Pickled, columns: tuple[int, ...], *, summed: bool
) -> NDArray[np.float64] | None:
    """Of columns, in the order of their arrays, and their sum if asked for; None of others."""
    parts = []
    for place in columns:
        array = pickled.arrays[place]
        part = np.frombuffer(array.raw(), _NUMBERS[memoryview(array).format])
        if part.dtype == np.int64 and not np.all(np.abs(part) < _EXACT):
            return None
        parts.append(part.astype(np.float64))
    if not parts:
        return None
    return _with_sum(np.concatenate(parts)) if summed else np.concatenate(parts)


def _with_sum(numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    with np.errstate(all="ignore"):
        total = numbers.sum()
    return None if _EXACT <= abs(total) < math.inf else np.append(numbers, total)


def _marked(
    pickled: _Pickled,
    columns: tuple[int, ...],
    numbers: NDArray[np.float64],
    plain: NDArray[np.bool_],
    take_apart: Callable[[Any], _Parts],
) -> _Alike[_Parts] | None:
    """Where the plain ones of these numbers are in what the frame says; None if it can't be told.

    A series' sum, the last of its numbers, is that of the marks.
    """
    marked, values = [], []
    for first, step in _MARKS:
        marks = np.where(plain, first + step * np.arange(numbers.size), numbers)
        arrays, start = [bytearray(array.raw()) for array in pickled.arrays], 0
        for place in columns:
            dtype = _NUMBERS[memoryview(pickled.arrays[place]).format]
            end = start + len(arrays[place]) // 8
            arrays[place] = bytearray(marks[start:end].astype(dtype).tobytes())
            start = end
        marks[start:] = marks[:start].sum()
        marked.append({mark: place for place, mark in reversed([*enumerate(marks.tolist())])})
        try:
            made = _Unpickler(io.BytesIO(pickled.stream), buffers=arrays).load()
        except Exception:  # what foreign objects say to marks
            return None
        values.append(take_apart(made))
    return _alike_but_for(marked, values)


def _alike_but_for(marked: list[dict[float, int]], values: list[_Parts]) -> _Alike[_Parts] | None:
    """Compare what two frames say that differ in marks."""
    one, other = values
    if one.cut or other.cut or len(one.leaves) != len(other.leaves):
        return None
    places = []
    for leaf, ((name, part), (named, counterpart)) in enumerate(
        zip(one.leaves, other.leaves, strict=True)
    ):
        if name != named:
            return None
        if part == counterpart:
            continue
        if not (isinstance(part, float) and isinstance(counterpart, float)):
            return None
        place = marked[0].get(part)
        if place is None or marked[1].get(counterpart) != place:
            return None
        places.append((leaf, place))
    return _Alike(one, places) if one.structure == other.structure else None


class _Unpickler(pickle.Unpickler):
    """Makes nothing but what is made the same again."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in _KNOWN:
            raise pickle.UnpicklingError(module)
        return super().find_class(module, name)
