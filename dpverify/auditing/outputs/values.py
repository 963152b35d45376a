"""What an output says: any Python value, taken apart into numbers and words that have names.

An output is read as soon as it is released, into what nothing can change any more, so that a
mechanism that hands out one list again and again is audited by what it held each time. Numbers,
arrays of them and sets stay as they are; of everything else there is a `Value`, whose leaves are

- *numbers*: ``output[2]``, ``output['age']``, ``output.coef_``, ``len(output)``, and numbers that
  stand in a text. A whole number beyond 2⁵³ has its last 32 bits apart, a fraction its numerator
  and denominator;
- *words*: text (where a number stands it has ``#``, and the length is a number), None, NaN, −0, a
  type that has no parts;
- *blocks*: arrays of more numbers than are named one by one.

A list is read by place, and by what is in it: ``'ann' in output`` says that a text is there, and
the numbers beside it (of a row of a table, say) are named by it, wherever in the list it stands.
One word, the structure, tells the types of all parts. An exception is a value too: its type, and
its message as text.

Everything is a function of the output alone: not of others that were drawn with it, nor of where it
lies in memory. Hence to look at leaves is post-processing, whatever the outputs of other draws are.
"""

from __future__ import annotations

import datetime
import math
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from itertools import groupby, islice
from numbers import Number
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.errors import DrawError
from dpverify.visible import raised, shown

__all__ = ["Block", "Leaf", "Value", "kept", "objects", "value_of"]

_NAMED = 64  # numbers of an array that have names of their own
_MOST = 4096  # leaves of one output
_NUMBERS = (float, int, np.number, np.bool_)
_DEPTH = 8  # of what lies within one another
_WORDS = 50  # of one text
_LONGEST = 300  # characters of a word that are told apart
_READ = 2000  # characters of a text that are read; of the rest there is a checksum
_EXACT = 2**53  # up to here doubles hold whole numbers
_PLACE = re.compile(r" at 0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_UNREAD = (FunctionType, MethodType, partial, Awaitable, AsyncIterator)
"""What gives values when it is called or awaited, and may hold any."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Block(NamedTuple):
    """An array of doubles."""

    shape: tuple[int, ...]
    data: bytes

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Flattened."""
        return np.frombuffer(self.data)


Leaf = float | str | Block


@dataclass(frozen=True, slots=True)
class Value:
    """One output, taken apart.

    Attributes
    ----------
    leaves : name and number, word or block of each part; a name may come more than once
    structure : the types of all parts; of an exception that was raised, its own
    raised : the exception and its message, as people read it; empty if none was raised
    raw : the output itself, where it is an array of numbers or a set; else None
    """

    leaves: tuple[tuple[str, Leaf], ...]
    structure: str
    raised: str = ""
    raw: Any = field(default=None, compare=False)

    @classmethod
    def of_raised(cls, error: BaseException) -> Value:
        """An exception that came instead of an output."""
        told = _unplaced(raised(error))
        reader = _Reader()
        reader.word("structure", f"raises {type(error).__name__}")
        reader.text("message", told.partition(": ")[2])
        return cls(tuple(reader.leaves), f"raises {type(error).__name__}", told)


def kept(output: Any) -> Any:
    """An output as it is now: numbers and tuples and arrays of them, a frozenset, or a `Value`."""
    if type(output) is np.ndarray:
        if output.dtype.kind in "biuf":
            return output.copy()
        if output.dtype == object and output.size == 1:  # of an adapter
            return kept(output.item())
    if isinstance(output, _NUMBERS):
        return output
    if isinstance(output, set | frozenset):
        return frozenset(output)
    numbers = _numbers(output)
    return value_of(output) if numbers is None else numbers


def value_of(output: Any) -> Value:
    """Take apart what `kept` gave, or any output; the same for the same output, however it came."""
    if isinstance(output, Value):
        return output
    reader = _Reader()
    numbers = _array(output)
    raw: Any = numbers
    if numbers is not None:
        structure = f"numbers of shape {numbers.shape}"
        structure += ", NaN among them" if np.isnan(numbers).any() else ""
        reader.array("output", numbers)
    else:
        structure = reader.walk(output, "output", _DEPTH)
        raw = output if isinstance(output, frozenset) else None
    leaves = (("structure", structure[:_LONGEST]), *reader.leaves)
    return Value(leaves, structure, raw=raw)


def objects(outputs: Sequence[Any]) -> NDArray[Any]:
    """An array of shape (draws,) that holds them as they are."""
    array = np.empty(len(outputs), dtype=object)
    array[:] = outputs
    return array


def _numbers(output: Any, depth: int = _DEPTH) -> Any:
    """Lists and tuples of nothing but numbers, as tuples; None for anything else."""
    if isinstance(output, _NUMBERS):
        return output
    if type(output) is np.ndarray and output.dtype.kind in "biuf":
        return output.copy()
    if not isinstance(output, list | tuple) or depth == 0:
        return None
    parts = []
    for part in output:
        number = _numbers(part, depth - 1)
        if number is None:
            return None
        parts.append(number)
    return tuple(parts)


def _array(output: Any) -> NDArray[Any] | None:
    """What is nothing but numbers, and of one shape, as an array; of doubles where one is."""
    if _numbers(output) is None:
        return None
    with suppress(ValueError):  # ragged
        array = np.array(output)
        if array.dtype.kind in "biu" or (array.dtype.kind == "f" and _exactly(output, array)):
            return array
    return None


def _exactly(output: Any, array: NDArray[Any]) -> bool:
    """Whether doubles hold what the output says."""
    parts = objects(_flattened(output))
    return all(
        part != part or part == number  # noqa: PLR0124 - NaN
        for part, number in zip(parts.tolist(), array.astype(float).ravel().tolist(), strict=True)
    )


def _flattened(output: Any) -> list[Any]:
    if isinstance(output, list | tuple):
        return [number for part in output for number in _flattened(part)]
    return output.ravel().tolist() if isinstance(output, np.ndarray) else [output]


def _unplaced(text: str) -> str:
    """Without the places in memory that a representation names."""
    return _PLACE.sub("", text)


@dataclass(slots=True)
class _Reader:
    """Collects the leaves of one output."""

    leaves: list[tuple[str, Leaf]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.leaves) >= _MOST

    def word(self, name: str, word: str) -> None:
        """A leaf that is compared and nothing else."""
        self.leaves.append((name, word[:_LONGEST]))

    def number(self, name: str, number: Any) -> None:
        """A leaf of a number, or several that hold it exactly."""
        if isinstance(number, complex):
            self.number(f"{name}.real", number.real)
            self.number(f"{name}.imag", number.imag)
            return
        if isinstance(number, Decimal) and number.is_finite():
            number = Fraction(number)
        if isinstance(number, Fraction):
            self.number(f"{name}.numerator", number.numerator)
            self.number(f"{name}.denominator", number.denominator)
        try:
            double = float(number)
        except OverflowError:
            double = math.inf if number > 0 else -math.inf
        except (TypeError, ValueError):
            self.word(name, _unplaced(shown(number)))
            return
        if math.isnan(double):
            self.word(name, "NaN")
            return
        self.leaves.append((name, double))
        if double == 0 and math.copysign(1, double) < 0:
            self.word(name, "-0.0")
        if abs(double) > _EXACT and not isinstance(number, Fraction):
            whole = int(number) if isinstance(number, int) or math.isfinite(double) else 0
            self.leaves.append((f"{name} mod 2**32", float(whole % 2**32)))

    def array(self, name: str, array: NDArray[Any]) -> None:
        """An array of numbers."""
        flat = array.ravel()
        if array.ndim:
            self.leaves.append((f"len({name})", float(len(array))))
        if flat.size <= _NAMED:
            for place, number in zip(_places(array.shape), flat.tolist(), strict=True):
                self.number(name + place, number)
            if array.ndim == 1 and flat.size:  # of a list of any length
                self.number(f"{name}[-1]", flat[-1].item())
            if flat.size > 1:
                with np.errstate(all="ignore"):
                    self.number(f"sum({name})", float(flat.astype(float).sum()))
            return
        double = flat.astype(np.float64)
        undefined = np.isnan(double)
        if undefined.any():
            self.leaves.append((f"NaN in {name}", float(undefined.sum())))
            double = np.where(undefined, 0.0, double)
        self.leaves.append((name, Block(array.shape, double.tobytes())))
        if flat.dtype.kind in "iu" and np.any(np.abs(double) > _EXACT):
            low = (flat & 0xFFFFFFFF).astype(np.float64)
            self.leaves.append((f"{name} mod 2**32", Block(array.shape, low.tobytes())))

    def text(self, name: str, text: str) -> None:
        """A text: as a word, without its numbers; the numbers; its words, if it has several."""
        if len(text) > _READ:
            self.number(f"len({name})", len(text))
            self.word(f"checksum of {name}", str(zlib.crc32(text.encode(errors="replace"))))
            text = text[:_READ]
        told = _NUMBER.sub("#", text)
        self.word(name, told)
        if told != text:  # 1.50 and 1.5 are one number
            self.leaves.append((f"len({name})", float(len(text))))
        for place, match in enumerate(islice(_NUMBER.finditer(text), _WORDS)):
            self.number(f"number {place} in {name}", float(match[0]))
        words = text.split()
        for word in sorted(set(words[:_WORDS])) if len(words) > 1 else ():
            self.leaves.append((f"{word[:_LONGEST]!r} in {name}", 1.0))

    def walk(self, value: Any, name: str, depth: int) -> str:  # noqa: C901 - a type a line
        """Collect the leaves of a part; its structure."""
        kind = type(value).__name__
        if self.full:
            return "…"
        if depth == 0:  # read as its representation says it, which also ends what holds itself
            self.text(name, _unplaced(shown(value)))
            return kind
        match value:
            case None | Enum():
                self.word(name, str(value))
            case np.generic() if value.dtype.kind in "Mm":
                self.number(name, int(value.astype(np.int64)))
            case str():
                self.text(name, str(value))
            case bytes() | bytearray():
                self.array(name, np.frombuffer(bytes(value), dtype=np.uint8))
            case np.generic() if value.dtype.kind in "biufc":
                self.number(name, value.item())
            case Number():
                self.number(name, value)
            case datetime.datetime():
                aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
                self.number(name, (aware - _EPOCH).total_seconds())
            case datetime.date():
                self.number(name, value.toordinal())
            case datetime.timedelta():
                self.number(name, value.total_seconds())
            case AbstractSet():
                return self._members(value, name, kind)
            case Mapping():
                self.number(f"len({name})", len(value))
                if 1 < len(value) <= _WORDS:  # dicts keep the order in which they were filled
                    keys = (_unplaced(shown(key)) for key in value)
                    self.word(f"order of {name}", ", ".join(keys))
                return f"{kind}{{{self._entries(value, name, depth)}}}"
            case tuple() if hasattr(value, "_fields"):
                fields = dict(zip(value._fields, value, strict=True))
                return f"{kind}({self._entries(fields, name, depth)})"
            case np.ndarray() if not np.ma.isMaskedArray(value):
                return self._array(value, name, depth)
            case _ if (parts := _parts(value)) is not None:
                if hasattr(value, "columns") and hasattr(value, "dtypes"):  # also of no rows
                    types = ((each, getattr(each, "categories", ())) for each in value.dtypes)
                    told = ", ".join(f"{each} {[*among]}" for each, among in types)
                    self.word(f"types of {name}", told)
                return f"{kind}[{self._list(parts, name, depth)}]"
            case _ if hasattr(value, "__array__") and not isinstance(value, type):
                return f"{kind} of {self.walk(np.asarray(value), name, depth - 1)}"
            case _:
                return self._object(value, name, depth)
        return kind

    def _members(self, value: AbstractSet[Any], name: str, kind: str) -> str:
        self.number(f"len({name})", len(value))
        for member in sorted(_unplaced(shown(member)) for member in islice(value, _MOST)):
            self.leaves.append((f"{member[:_LONGEST]} in {name}", 1.0))
        return kind

    def _entries(self, entries: Mapping[Any, Any], name: str, depth: int) -> str:
        structures = []
        for key, part in entries.items():
            label = _unplaced(shown(key))[:_LONGEST]
            structures.append(f"{label}: {self.walk(part, f'{name}[{label}]', depth - 1)}")
        return ", ".join(sorted(structures))

    def _array(self, value: NDArray[Any], name: str, depth: int) -> str:
        dtype = f"{value.dtype}"
        if value.dtype.kind in "Mm":
            value = value.astype(np.int64)
        if value.dtype.kind == "c":
            self.array(f"{name}.real", value.real)
            self.array(f"{name}.imag", value.imag)
        elif value.dtype.kind in "biuf":
            self.array(name, value)
        else:
            return f"array of {self.walk(value.tolist(), name, depth)}"
        return f"{dtype} array of shape {value.shape}"

    def _list(self, parts: list[Any], name: str, depth: int) -> str:
        self.number(f"len({name})", len(parts))
        structures = []
        for place, part in enumerate(parts):
            if self.full:
                break
            structures.append(self.walk(part, f"{name}[{place}]", depth - 1))
            self._keyed(part, name)
        if parts and not self.full:
            self.walk(parts[-1], f"{name}[-1]", depth - 1)
        if parts and all(isinstance(part, int | float | np.number) for part in parts):
            self.number(f"sum({name})", float(np.sum(np.array(parts, dtype=float))))
        alike = [(structure, len(list(group))) for structure, group in groupby(structures)]
        return ", ".join(f"{s} × {n}" if n > 1 else s for s, n in alike)

    def _keyed(self, part: Any, name: str) -> None:
        """What stands in a list, whatever its place: a text, or the numbers in a row beside one."""
        if isinstance(part, str):
            self.leaves.append((f"{part[:_LONGEST]!r} in {name}", 1.0))
            return
        if not isinstance(part, Mapping | list | tuple):
            return
        row = list(part.items() if isinstance(part, Mapping) else enumerate(part))
        texts = ", ".join(repr(each[:_LONGEST]) for _, each in row if isinstance(each, str))
        if texts:
            self.leaves.append((f"{texts} in {name}", 1.0))
            for key, each in row:
                if isinstance(each, int | float | np.number):
                    self.number(f"{name}[{texts}][{key!r}]", float(each))

    def _object(self, value: Any, name: str, depth: int) -> str:
        kind = type(value).__name__
        if isinstance(value, _UNREAD):
            raise DrawError(
                f"What is released holds a {kind}, {shown(value)}, and an audit reads values "
                "alone: release what it gives."
            )
        if is_sparse(value):
            held = value.tocoo()
            entries = zip(*(part.tolist() for part in (*held.coords, held.data)), strict=True)
            told = self._entries({tuple(place): n for *place, n in entries}, name, depth)
            self.number(f"stored in {name}", held.nnz)
            return f"{kind} of shape {value.shape}: {told}"
        state: Any = None
        if not isinstance(value, type):
            with suppress(Exception):  # whatever an object says to being asked
                state = value.__getstate__()
        if isinstance(state, tuple) and len(state) == 2:  # also of slots
            state = {**(state[0] or {}), **(state[1] or {})}
        if isinstance(state, Mapping) and state:
            for attribute, part in state.items():
                if not callable(part):
                    self.walk(part, f"{name}.{attribute}", depth - 1)
        else:
            self.text(name, _unplaced(shown(value)))
        return kind


@lru_cache(maxsize=1024)
def _places(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Of the entries of an array, as their names say them."""
    return tuple(str(list(place)) if place else "" for place in np.ndindex(shape))


def _parts(value: Any) -> list[Any] | None:
    """A list of what lies in a list, a table (row by row), or a series; None if it is none."""
    if isinstance(value, type):
        return None
    if isinstance(value, list | tuple):
        return list(value)
    if np.ma.isMaskedArray(value):
        return list(value.tolist()) if value.ndim else [value.tolist()]
    if hasattr(value, "reset_index"):  # pandas: what an index names is an output too
        numbered = type(value.index).__name__ == "RangeIndex"
        table = value if numbered else value.reset_index()
        if not hasattr(table, "columns"):
            return list(table.tolist())
        columns = [table.iloc[:, place].tolist() for place in range(len(table.columns))]
        return [dict(zip(table.columns, row, strict=True)) for row in zip(*columns, strict=True)]
    for way in ("to_dicts", "to_pylist", "to_list"):  # polars, pyarrow
        if callable(getattr(value, way, None)):
            return list(getattr(value, way)())
    if isinstance(value, Iterator):
        return list(islice(value, _MOST))
    return list(islice(value, _MOST)) if isinstance(value, Collection) else None
