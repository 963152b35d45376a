"""What a Python value holds in addition to its parts, as pickling would write it.

A container says more than what lies in it: the levels of a category, the frequency of an index, the
most that a deque holds, the attribute that a subclass of float was given. Whoever gets the object
gets all of that, and pickle knows it of any type. So a pickler goes through the value, writes
nowhere, and notes the words and the numbers that it meets. Of arrays and tables these are the
values, and not how they lie in memory: by rows or by columns, in which blocks or chunks, whether
they are known to be sorted, or beside what was cut off.
"""

from __future__ import annotations

import datetime
import pickle
import zlib
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["Beside", "beside", "can_be_pickled", "has_nothing_beside"]

_EXACT = 2**53  # up to here doubles hold whole numbers
_MOST = 4096  # words and numbers
_READ_CUT = 10_000  # bytes of memory
_SMALL = 64  # numbers of an array that are noted
_READ = (Decimal, Fraction, complex, datetime.date, datetime.datetime, datetime.timedelta)
"""Types whose values are their parts, and nothing more."""
_NAMED = (type, FunctionType, MethodType, ModuleType)
"""What pickle would look up by its name."""
_HOLDERS = frozenset({tuple, list, dict, type(None), pickle.PickleBuffer})
"""Types that say nothing, but by what is in them: most of what a frame is pickled as."""
_NUMBERS = (np.number, np.bool_)
_WHOLE = frozenset({type(None), bool, int, float, str, bytes})
"""Types of values that are nothing but what is read of them."""


class _EnoughError(Exception):
    """More isn't noted."""


class _Nowhere:
    """Where it writes."""

    def write(self, data: bytes) -> int:
        return len(data)


class Beside(pickle.Pickler):
    """Notes what it meets.

    Attributes
    ----------
    words : texts, bytes that can be printed, and names of types, in their order, each once
    numbers : whole numbers, truth values and doubles, in their order; of an array once, however
        often it is met
    checksums : of other bytes and of buffers of pyarrow, in their order
    cut : the memory of sliced arrays of pyarrow, which pickle would write as a whole
    """

    _PROTOCOL = 5

    def __init__(self) -> None:
        super().__init__(_Nowhere(), protocol=self._PROTOCOL, buffer_callback=lambda _: None)
        self.words: dict[str, None] = {}
        self.numbers: list[float] = []
        self.checksums: list[int] = []
        self.cut = b""
        self._arrays: set[int] = set()  # by identity, as pickle's memo holds them until the end

    def persistent_id(self, obj: Any) -> str | None:
        """Note an object; the word is pickled in its place."""
        if type(obj) in _HOLDERS:
            return None
        if len(self.words) + len(self.numbers) + len(self.checksums) > _MOST:
            raise _EnoughError
        if isinstance(obj, str):
            self.words[obj] = None
            return None
        if isinstance(obj, bytes):
            self._note_bytes(obj)
            return None
        if type(obj).__name__ == "Buffer" and type(obj).__module__ == "pyarrow.lib":
            self.checksums.append(zlib.crc32(memoryview(obj)))
            return "buffer"
        if isinstance(obj, _NAMED):
            name = f"{getattr(obj, '__module__', '')} {getattr(obj, '__qualname__', obj.__name__)}"
            self.words[name] = None
            return name
        if type(obj) in _READ or isinstance(obj, _NUMBERS):
            return type(obj).__name__
        if isinstance(obj, set | frozenset) and not getattr(obj, "__dict__", None):
            return "set"  # of no order
        if isinstance(obj, int | float):
            self._note(obj)
        elif isinstance(obj, np.ndarray) and obj.dtype.kind in "biuf" and obj.size <= _SMALL:
            for number in () if id(obj) in self._arrays else obj.ravel().tolist():
                self._note(number)
            self._arrays.add(id(obj))
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Of what a table is made, and arrays in one order; of others what they say themselves."""
        if isinstance(obj, np.ndarray) and not obj.flags.c_contiguous:
            return obj.copy(order="C").__reduce_ex__(self._PROTOCOL)
        kind = type(obj)
        library, name = kind.__module__.partition(".")[0], kind.__name__
        if library == "pandas" and name in ("DataFrame", "Series"):
            frame = obj.to_frame(obj.name) if name == "Series" else obj
            columns = [column.array.copy() for _, column in frame.items()]
            labels = obj.flags.allows_duplicate_labels
            return kind, (obj.index, frame.columns, columns, obj.attrs, labels)
        if library == "polars" and name in ("DataFrame", "Series"):
            return obj[np.arange(len(obj))].__reduce_ex__(self._PROTOCOL)
        if library == "pyarrow" and name == "ChunkedArray" and obj.num_chunks != 1:
            for chunk in obj.chunks:
                self._whole(chunk)
            return obj.__reduce__()[0], ([obj.combine_chunks()], obj.type)
        if library == "pyarrow" and name.endswith("Array") and name != "ChunkedArray":
            return self._whole(obj).__reduce_ex__(self._PROTOCOL)
        return NotImplemented

    def _whole(self, array: Any) -> Any:
        """An array of pyarrow without what was cut off, which is noted."""
        try:
            values = array.take(np.arange(len(array)))
        except Exception:  # of a type that pyarrow can't take from
            return array
        if values.get_total_buffer_size() < array.get_total_buffer_size():
            self.cut += b"".join(memoryview(each)[:_READ_CUT] for each in array.buffers() if each)
        return values

    def _note_bytes(self, held: bytes) -> None:
        text = held.decode("ascii", errors="replace")
        if text.isascii() and text.isprintable():  # as pyarrow keeps names
            self.words[text] = None
        else:
            self.checksums.append(zlib.crc32(held))

    def _note(self, number: float) -> None:
        with suppress(OverflowError):  # read where it stands
            self.numbers.append(float(number))
        if isinstance(number, int) and abs(number) > _EXACT:
            self.numbers.append(float(number % 2**32))


def beside(value: Any) -> Beside:
    """What pickle would write of a value, as far as it can be pickled."""
    noted = Beside()
    with suppress(Exception):  # foreign objects refuse with whatever they like
        noted.dump(value)
    return noted


def can_be_pickled(value: Any) -> bool:
    """Whether pickle can go through a value."""
    try:
        Beside().dump(value)
    except _EnoughError:
        return True
    except Exception:  # as above
        return False
    return True


def has_nothing_beside(value: Any, depth: int) -> bool:
    """Whether parts say all of a value: built-in ones, and arrays of numbers, so deep at most."""
    kind = type(value)
    if kind in _WHOLE:
        return True
    if kind is np.ndarray:
        return value.dtype.kind in "biuf"
    if kind is dict:
        return (
            depth > 0
            and _WHOLE.issuperset(map(type, value))
            and all(has_nothing_beside(part, depth - 1) for part in value.values())
        )
    return (
        kind in (list, tuple)
        and depth > 0
        and all(has_nothing_beside(part, depth - 1) for part in value)
    )
