"""What an output says: any Python value, taken apart into numbers and words that have names.

An output is read as soon as it is released, into what nothing can change any more, so that a
mechanism that hands out one list again and again is audited by what it held each time. Numbers,
arrays of them and sets stay as they are; of everything else there is a `Value`, whose leaves are

- *numbers*: ``output[2]``, ``output['age']``, ``output.coef_``, ``len(output)``, and numbers that
  stand in a text. A whole number beyond 2⁵³ has its bits apart, 32 by 32, a fraction its numerator
  and denominator, a decimal its exponent;
- *words*: text (where a number stands it has ``#``, and the length is a number; the characters at
  both ends are a block), None, NaN, −0, a type that has no parts;
- *blocks*: arrays of more numbers than are named one by one.

Of what is long (a text, parts beyond the first 4,096) the end isn't cut off: it has a checksum, and
numbers their sum and both extremes.

A list is read by place, and by what is in it: ``'ann' in output`` says that a text is there, and
the numbers beside it (of a row of a table, say) are named by it, wherever in the list it stands.
One word, the structure, tells the types of all parts, and what pickle would write beside them is
read too (`dpverify.auditing.outputs.beside`): what `type`, `repr` or `==` tells apart, leaves do.
An exception is a value too: its type, its message as text, and what came with it.

Everything is a function of the output alone: not of others that were drawn with it, nor of where it
lies in memory. Hence to look at leaves is post-processing, whatever the outputs of other draws are.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from itertools import groupby
from numbers import Number
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.outputs.beside import beside, can_be_pickled
from dpverify.auditing.outputs.frames import read_frame
from dpverify.auditing.outputs.numerals import numerals, spelling
from dpverify.auditing.outputs.tables import parts_of
from dpverify.data.domain import is_sparse
from dpverify.errors import PASSING, DrawError
from dpverify.visible import raised, shown

__all__ = ["MOST", "Block", "Leaf", "Value", "kept", "objects", "types_of", "value_of"]

_NAMED = 64  # numbers of an array that have names of their own
MOST = 4096
"""Leaves of one output that have names."""
_PARTS = 1_000_000  # of one output; more can't be read
_BEYOND = f"beyond the first {MOST} parts"
_ALONE = frozenset((float, int, bool, np.float64))  # numbers that can have nothing beside them
_NUMBERS = (float, int, np.number, np.bool_)
_FRAMES = frozenset({"DataFrame", "Series"})
_MEMBERS = (str, bytes, int, np.generic)  # of sets that are kept
_PLAIN = (float, int, np.float64, np.int64)
_APART = frozenset((str, bytes, int))  # types of which no two have equal members
_DEPTH = 8  # of what lies within one another
_LONGEST = 300  # characters of a word that are told apart
_CODED = 8  # characters of a text from where on each has a number: it may be hexadecimal
_READ = 20_000  # characters of a text that are read; of the rest there is a checksum
_NAN = struct.pack(">d", math.nan).hex()
_NAN_BITS = int(_NAN, 16)
_BITS = 2048  # of one whole number; of a longer one there is a checksum
_EXACT = 2**53  # up to here doubles hold whole numbers
_FAR = 10_000  # digits, or places before or behind the point, above which a decimal is no ratio
_DOUBLE = 17  # digits that a double holds
_PLACE = re.compile(r" (?:at|@) 0x[0-9a-fA-F]+")
_UNREAD = (FunctionType, MethodType, CodeType, partial, Awaitable, AsyncIterator)
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

    @property
    def cut(self) -> bool:
        """Whether some parts have no leaves of their own."""
        return len(self.leaves) > MOST + 1

    def with_leaves(self, leaves: tuple[tuple[str, Leaf], ...]) -> Value:
        """Of the same structure."""
        return Value(leaves, self.structure)

    @classmethod
    def of_raised(cls, error: BaseException) -> Value:
        """An exception that came instead of an output."""
        told = _PLACE.sub("", raised(error))
        reader = _Reader()
        reader.word("structure", f"raises {type(error).__name__}")
        reader.text("message", _said(error, str))
        held: dict[Any, Any] = {**dict(enumerate(error.args)), **vars(error)}
        values = {key: each for key, each in held.items() if not isinstance(each, str)}
        with suppress(DrawError):  # of what can't be read: the message stays
            reader.word("types of attributes", reader.walk(values, "attributes", _DEPTH))
        reader.beside("the exception", error)
        for place, cause in enumerate(_causes(error)):
            reader.text(f"cause {place}", f"{type(cause).__name__}: {_said(cause, str)}")
            reader.beside(f"cause {place}", cause)
        return cls(tuple(reader.leaves), f"raises {type(error).__name__}", told)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What an exception was raised from, and that one in turn, as a traceback shows them."""
    told = {id(error)}
    while (
        cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    ) is not None and id(cause) not in told:
        told.add(id(cause))
        yield cause
        error = cause


def kept(output: Any) -> Any:
    """An output as it is now: numbers, lists, tuples and arrays of them, a set, or a `Value`."""
    kind = type(output)
    if kind in _ALONE:
        return output
    if kind is np.ndarray:
        if output.dtype.kind in "biuf":
            return output.copy(order="K")
        if output.dtype == object and output.size == 1:  # of an adapter
            return kept(output.item())
    if _is_number(output):
        return output
    if kind in (set, frozenset) and all(isinstance(each, _MEMBERS) for each in output):
        return output.copy()
    if type(output).__name__ in _FRAMES and type(output).__module__.partition(".")[0] == "pandas":
        return read_frame(output, value_of)
    numbers = _numbers(output)
    return value_of(output) if numbers is None else numbers


def _is_number(output: Any) -> bool:
    """Whether it is one, and says nothing beside it."""
    return isinstance(output, _NUMBERS) and not getattr(output, "__dict__", None)


def _of_plain_numbers(parts: Collection[Any]) -> bool:
    """Whether all parts are numbers of types that can have nothing beside them."""
    return _ALONE.issuperset(map(type, parts))


def types_of(output: Any) -> Hashable:
    """The types of what `kept` gave and of its parts, with the shapes and orders of its arrays."""
    kind: Any = type(output)
    if kind is np.ndarray:
        return kind, output.dtype, output.shape, np.isfortran(output)
    if kind in (list, tuple):
        return kind, tuple(map(type if _of_plain_numbers(output) else types_of, output))
    if kind in (set, frozenset):
        return kind, frozenset(map(type, output)) - _APART
    types: Hashable = kind
    return types


def value_of(output: Any, types: Any = None) -> Value:
    """Take apart what `kept` gave, or any output; the same for the same output, however it came.

    Parameters
    ----------
    output : one, or an entry of an array of several that are numbers
    types : those of the output, where it is such an entry
    """
    if isinstance(output, Value):
        return output
    reader = _Reader()
    numbers = _array(output)
    raw: Any = numbers
    if numbers is not None:
        structure = _told(types or types_of(output))
        structure += ", NaN among them" if np.isnan(numbers).any() else ""
        reader.array("output", numbers)
    else:
        try:
            structure = reader.walk(output, "output", _DEPTH)
        except (DrawError, *PASSING):
            raise
        except BaseException as error:  # whatever an object says to being read
            raise DrawError(f"What is released can't be read: {raised(error)}.") from error
        reader.beside("output", output)
        raw = output if isinstance(output, set | frozenset) else None
    leaves = (("structure", _cut(structure)), *reader.leaves, *reader.rest)
    return Value(leaves, structure, raw=raw)


def _told(types: Any) -> str:
    """Types in words."""
    match types:
        case (kind, dtype, shape, fortran):
            return f"{dtype} array of shape {shape}" + (", by columns" if fortran else "")
        case (kind, parts):
            return f"{kind.__name__}[{_alike(map(_told, parts))}]"
    return _name(types)


def _name(kind: type) -> str:
    return "np.bool" if kind is np.bool_ else kind.__name__  # both are called bool


def _alike(structures: Iterable[str]) -> str:
    """Structures in order, each with how often it comes in a row."""
    alike = [(structure, len(list(group))) for structure, group in groupby(structures)]
    return ", ".join(f"{each} × {n}" if n > 1 else each for each, n in alike)


def objects(outputs: Sequence[Any]) -> NDArray[Any]:
    """An array of shape (draws,) that holds them as they are."""
    array = np.empty(len(outputs), dtype=object)
    array[:] = outputs
    return array


def _numbers(output: Any, depth: int = _DEPTH) -> Any:
    """A copy of lists and tuples of nothing but numbers; None for anything else."""
    if _is_number(output):
        return output
    if type(output) is np.ndarray and output.dtype.kind in "biuf":
        return output.copy(order="K")
    if type(output) not in (list, tuple) or depth == 0:
        return None
    if _of_plain_numbers(output):
        return output[:]
    parts = []
    for part in output:
        number = _numbers(part, depth - 1)
        if number is None:
            return None
        parts.append(number)
    return type(output)(parts)


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
    with np.errstate(over="ignore"):  # of a longdouble
        doubles = array.astype(float).ravel().tolist()
    return all(
        part != part or part == number  # noqa: PLR0124 - NaN
        for part, number in zip(parts.tolist(), doubles, strict=True)
    )


def _flattened(output: Any) -> list[Any]:
    if isinstance(output, list | tuple):
        if _of_plain_numbers(output):
            return list(output)
        return [number for part in output for number in _flattened(part)]
    return output.ravel().tolist() if isinstance(output, np.ndarray) else [_plain(output)]


def _plain(number: Any) -> Any:
    """Python's own number, which it compares with others exactly."""
    return number.item() if isinstance(number, np.integer) else number


def _said(value: Any, way: Callable[[Any], str] = repr) -> str:
    """What a foreign object says of itself, without its place in memory."""
    try:
        return _PLACE.sub("", way(value))
    except PASSING:
        raise
    except BaseException:  # whatever it raises
        return _PLACE.sub("", shown(value))


def _cut(text: str) -> str:
    """A text that isn't long, with a checksum in place of an end that is left out."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {zlib.crc32(text.encode(errors='replace')):08x}"


@dataclass(slots=True)
class _Reader:
    """Collects the leaves of one output: the first by their names, then what they say together."""

    leaves: list[tuple[str, Leaf]] = field(default_factory=list)
    parts: int = 0
    beyond: int = 0
    numbers: list[float] = field(default_factory=list)
    checksum: int = 0
    texts: set[str] = field(default_factory=set)
    last: bool = False  # whether it reads a list's last part by that name
    read: Counter[float] = field(default_factory=Counter)

    @property
    def rest(self) -> Iterator[tuple[str, Leaf]]:
        """What leaves beyond the first 4,096 say together."""
        if not self.beyond:
            return
        yield f"parts {_BEYOND}", float(self.beyond)
        yield f"checksum of words {_BEYOND}", f"{self.checksum:08x}"
        if self.numbers:
            exact = np.array(self.numbers)
            yield f"checksum of numbers {_BEYOND}", f"{zlib.crc32(exact.tobytes()):08x}"
            with np.errstate(all="ignore"):
                numbers = np.nan_to_num(exact)
                yield f"sum of numbers {_BEYOND}", float(numbers.sum())
                yield f"least of numbers {_BEYOND}", float(numbers.min())
                yield f"largest of numbers {_BEYOND}", float(numbers.max())

    def add(self, name: str, leaf: Leaf) -> None:
        """A leaf."""
        if len(self.leaves) < MOST:
            self.leaves.append((name, leaf))
            return
        self.beyond += 1
        if isinstance(leaf, Block):
            self.numbers += leaf.numbers.tolist()
        elif isinstance(leaf, str):
            self.checksum = zlib.crc32(f"{name}: {leaf}".encode(errors="replace"), self.checksum)
        else:
            self.numbers.append(leaf)
            self.checksum = zlib.crc32(name.encode(errors="replace"), self.checksum)

    def word(self, name: str, word: str) -> None:
        """A leaf that is compared and nothing else."""
        self.add(name, _cut(word))

    def number(self, name: str, number: Any) -> None:
        """A leaf of a number, or several that hold it exactly."""
        if type(number) in _PLAIN and 0 < abs(number) < _EXACT:  # nearly all, and no NaN
            self.add(name, float(number))
            return
        if isinstance(number, complex | np.clongdouble):
            self.number(f"{name}.real", number.real)
            self.number(f"{name}.imag", number.imag)
            return
        if isinstance(number, Decimal):
            if not number.is_finite():  # NaN has digits of its own
                self.word(name, str(number))
                return
            sign, digits, exponent = number.as_tuple()
            self.add(f"{name}.exponent", float(exponent))
            if number == 0 and sign:
                self.word(name, "-0")
            if max(abs(number.adjusted()), len(digits)) > _FAR:  # a ratio takes minutes, or memory
                leading = digits[:_DOUBLE]
                self.add(f"{name}.mantissa", float(Decimal((sign, leading, 1 - len(leading)))))
                self.add(f"{name}.magnitude", float(number.adjusted()))
                self.word(f"{name}.digits", "".join(map(str, digits)))
                return
            number = Fraction(number)
        self._ratio(name, number)
        try:
            double = float(number)
        except OverflowError:
            double = math.inf if number > 0 else -math.inf
        except (TypeError, ValueError):
            self.word(name, _said(number))
            return
        if math.isnan(double):
            bits = struct.pack(">d", double).hex()
            self.word(name, "NaN" if bits == _NAN else f"NaN {bits}")
            return
        self.add(name, double)
        if double == 0 and math.copysign(1, double) < 0:
            self.word(name, "-0.0")
        if abs(double) > _EXACT and not isinstance(number, Fraction):
            self._bits(name, number, double)

    def _ratio(self, name: str, number: Any) -> None:
        """What a double may not hold of a ratio or a longdouble."""
        if isinstance(number, Fraction):
            self.number(f"{name}.numerator", number.numerator)
            self.number(f"{name}.denominator", number.denominator)
        elif isinstance(number, np.longdouble) and np.isfinite(number) and number != float(number):
            mantissa, exponent = np.frexp(number)
            self.add(f"{name}.exponent", float(exponent))
            self._ratio(f"{name}.mantissa", Fraction(*mantissa.as_integer_ratio()))

    def _bits(self, name: str, number: Any, double: float) -> None:
        """Of a number that a double may not hold, the last 32 bits; of a whole one all of them."""
        whole = int(number) if isinstance(number, int) or math.isfinite(double) else 0
        reach = min(whole.bit_length(), _BITS) if isinstance(number, int) else 32
        for shift in range(0, reach, 32):
            named = f"{name} // 2**{shift}" if shift else name
            self.add(f"{named} mod 2**32", float((whole >> shift) % 2**32))
        if whole.bit_length() > _BITS:
            self.word(f"checksum of {name}", str(zlib.crc32(f"{whole:x}".encode())))

    def array(self, name: str, array: NDArray[Any]) -> None:
        """An array of numbers."""
        flat = np.asarray(array).ravel()
        if array.ndim:
            self.add(f"len({name})", float(len(array)))
        if flat.size <= _NAMED:
            self.read.update(flat.tolist())
            for place, number in zip(_places(array.shape), flat.tolist(), strict=True):
                self.number(name + place, number)
            if array.ndim == 1 and flat.size:  # of a list of any length
                self.number(f"{name}[-1]", flat[-1].item())
            if flat.size > 1:
                with np.errstate(all="ignore"):
                    self.number(f"sum({name})", float(flat.astype(float).sum()))
            return
        with np.errstate(over="ignore"):
            double = flat.astype(np.float64)
        if flat.dtype == np.longdouble and not np.array_equal(double, flat, equal_nan=True):
            mantissas, exponents = np.frexp(flat)
            low = mantissas - mantissas.astype(np.float64)
            self.array(f"low digits of {name}", low.astype(np.float64))
            self.array(f"exponents of {name}", exponents)
        undefined = np.isnan(double)
        if np.any(double[undefined].view(np.uint64) != _NAN_BITS):
            bits = zlib.crc32(double[undefined].tobytes())
            self.word(f"checksum of NaN in {name}", str(bits))
        negative = (double == 0) & np.signbit(double)
        for told, places in (("NaN", undefined), ("-0.0", negative)):
            if places.any():
                self.add(f"number of {told} in {name}", float(places.sum()))
                self.add(f"{told} in {name}", Block(array.shape, places.astype(float).tobytes()))
        double = np.where(undefined | negative, 0.0, double)
        self.add(name, Block(array.shape, double.tobytes()))
        if flat.dtype.kind in "iu" and np.any(np.abs(double) > _EXACT):
            low = (flat & 0xFFFFFFFF).astype(np.float64)
            self.add(f"{name} mod 2**32", Block(array.shape, low.tobytes()))

    def text(self, name: str, text: str) -> None:
        """A text: as a word, without its numbers; the numbers; its words, if it has several."""
        self.texts.add(text)
        if len(text) > _READ:
            self.number(f"len({name})", len(text))
            self.word(f"checksum of {name}", str(zlib.crc32(text.encode(errors="replace"))))
            text = text[:_READ]
        if len(text) >= _CODED:
            ends = text if len(text) <= 2 * _NAMED else text[:_NAMED] + text[-_NAMED:]
            codes = np.array([ord(each) for each in ends], dtype=np.float64)
            self.add(f"characters of {name}", Block(codes.shape, codes.tobytes()))
        told, found = numerals(text)
        self.word(name, told)
        if told != text:  # 1.50 and 1.5 are one number
            self.add(f"len({name})", float(len(text)))
        for place, numeral in enumerate(found):
            spelled = spelling(numeral)
            self.number(f"number {place} in {name}", spelled.number)
            if spelled.form:
                self.word(f"form of number {place} in {name}", spelled.form)
            if spelled.beyond:
                self.number(f"digits of number {place} in {name}", spelled.beyond)
        words = text.split()
        for word in sorted(set(words)) if len(words) > 1 else ():
            self.add(f"{_cut(word)!r} in {name}", 1.0)

    def beside(self, name: str, value: Any) -> None:
        """What pickle would write of it, and nothing that was read tells."""
        noted = beside(value)
        unplaced = (_PLACE.sub("", word) for word in noted.words)
        words = [word for word in unplaced if word not in self.texts]
        if words:
            self.word(f"beside {name}", ", ".join(words))
        for place, checksum in enumerate(noted.checksums):
            self.word(f"bytes {place} beside {name}", str(checksum))
        numbers = []
        for number in noted.numbers:
            if self.read[number] > 0:
                self.read[number] -= 1
            elif not math.isnan(number):
                numbers.append(number)
        if numbers:
            self.array(f"numbers beside {name}", np.array(numbers))

    def walk(self, value: Any, name: str, depth: int) -> str:  # noqa: C901 - a type a line
        """Collect the leaves of a part; its structure."""
        kind = _name(type(value))
        self.parts += 1
        if self.parts > _PARTS:
            raise DrawError(f"What is released has more than {_PARTS:,} parts: release fewer.")
        if isinstance(value, int | float):
            with suppress(OverflowError):
                self.read[float(value)] += 1
        if type(value) in _PLAIN:
            self.number(name, value)
            return kind
        if depth == 0:  # read as its representation says it, which also ends what holds itself
            self.text(name, _said(value))
            return kind
        match value:
            case None | Enum() | np.ma.core.MaskedConstant():
                self.word(name, str(value))
            case np.generic() if value.dtype.kind in "Mm":
                self.number(name, int(value.astype(np.int64)))
                return str(value.dtype)
            case str():
                self.text(name, str(value))
            case bytes() | bytearray():
                self.array(name, np.frombuffer(bytes(value), dtype=np.uint8))
            case np.generic() if value.dtype.kind in "biufc":
                self.number(name, value.item())
            case Number():
                self.number(name, value)
            case datetime.datetime() | datetime.date() | datetime.timedelta():
                return self._time(value, name, kind)
            case AbstractSet():
                return self._members(value, name, kind)
            case Mapping():
                self.number(f"len({name})", len(value))
                if len(value) > 1:  # dicts keep the order in which they were filled
                    self.word(f"order of {name}", ", ".join(map(_label, value)))
                return f"{kind}{{{self._entries(value, name, depth)}}}"
            case tuple() if hasattr(value, "_fields"):
                fields = dict(zip(value._fields, value, strict=True))
                return f"{kind}({self._entries(fields, name, depth)})"
            case np.ma.MaskedArray():  # what lies under the mask is released with it
                mask = self.walk(np.ma.getmaskarray(value), f"mask of {name}", depth - 1)
                self.walk(np.asarray(value.fill_value).item(), f"fill of {name}", depth - 1)
                return f"{kind} of {self.walk(value.data, name, depth - 1)}, {mask}"
            case np.ndarray():
                return self._array(value, name, depth)
            case _ if (parts := parts_of(value, _PARTS)) is not None:
                if isinstance(value, Iterator):  # which pickle can't follow
                    self.beside(name, parts)
                for said in ("name", "dtypes", "dtype", "schema", "type"):  # polars, pyarrow
                    if hasattr(value, said) and not hasattr(value, "reset_index"):
                        self.word(f"{said} of {name}", str(getattr(value, said)))
                return f"{kind}[{self._list(parts, name, depth)}]"
            case _ if hasattr(value, "__array__") and not isinstance(value, type):
                return f"{kind} of {self.walk(np.asarray(value), name, depth - 1)}"
            case _:
                return self._object(value, name, depth)
        return kind

    def _time(self, value: datetime.date | datetime.timedelta, name: str, kind: str) -> str:
        match value:
            case datetime.datetime():
                aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
                self.number(name, (aware - _EPOCH).total_seconds())
                self.number(f"{name}.microsecond", value.microsecond)
                self.number(f"{name}.fold", value.fold)
                return f"{kind} of {value.tzinfo}"
            case datetime.date():
                self.number(name, value.toordinal())
            case _:
                self.number(name, value.total_seconds())
                self.number(f"{name}.microseconds", value.microseconds)
        return kind

    def _members(self, value: AbstractSet[Any], name: str, kind: str) -> str:
        self.number(f"len({name})", len(value))
        for member in sorted(value, key=_said):
            told = _cut(_said(member))
            self.add(f"{told} in {name}", 1.0)
            if getattr(member, "__dict__", None):
                self.beside(f"{told} in {name}", member)
        return kind

    def _entries(self, entries: Mapping[Any, Any], name: str, depth: int) -> str:
        structures = []
        self.texts.update(key for key in entries if isinstance(key, str))
        for key, part in entries.items():
            label = _label(key)
            structures.append(f"{label}: {self.walk(part, f'{name}[{label}]', depth - 1)}")
        return ", ".join(sorted(structures))

    def _array(self, value: NDArray[Any], name: str, depth: int) -> str:
        dtype = f"{value.dtype}"
        if type(value) is not np.ndarray:
            held = self._entries(getattr(value, "__dict__", {}), name, depth)
            dtype = f"{type(value).__name__}{f'({held})' if held else ''} of {dtype}"
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
            told = -1 if self.last and place == len(parts) - 1 else place
            structures.append(self.walk(part, f"{name}[{told}]", depth - 1))
            self._keyed(part, name)
        if parts and not self.last:  # within it again would be twice at every depth
            self.last = True
            self.walk(parts[-1], f"{name}[-1]", depth - 1)
            self.last = False
        if parts and all(isinstance(part, int | float | np.number) for part in parts):
            with suppress(OverflowError):  # of whole numbers beyond doubles
                self.number(f"sum({name})", float(np.sum(np.array(parts, dtype=float))))
        return _alike(structures)

    def _keyed(self, part: Any, name: str) -> None:
        """What stands in a list, whatever its place: a text, or the numbers in a row beside one."""
        if isinstance(part, str):
            self.add(f"{_cut(part)!r} in {name}", 1.0)
            return
        if not isinstance(part, Mapping | list | tuple):
            return
        row = list(part.items() if isinstance(part, Mapping) else enumerate(part))
        texts = ", ".join(repr(_cut(each)) for _, each in row if isinstance(each, str))
        if texts:
            self.add(f"{texts} in {name}", 1.0)
            for key, each in row:
                if isinstance(each, int | float | np.number):
                    self.number(f"{name}[{texts}][{key!r}]", each)

    def _object(self, value: Any, name: str, depth: int) -> str:
        kind = type(value).__name__
        if isinstance(value, _UNREAD) or callable(getattr(value, "collect", None)):  # polars
            raise self._unread(value)
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
            if state is None:  # which may be what pickle is told alone
                state = getattr(value, "__dict__", None)
        match state:
            case (None | Mapping() as own, Mapping() as slots):
                state = {**(own or {}), **slots}
        made = _made(value if isinstance(value, type) else type(value))
        if made:
            state = {**(state if isinstance(state, Mapping) else {}), **made}
        if isinstance(state, Mapping) and state:
            self.texts.update(state)
            structures = [
                f"{attribute}: {self.walk(part, f'{name}.{attribute}', depth - 1)}"
                for attribute, part in state.items()
                if not callable(part)
            ]
            return f"{kind}({', '.join(structures)})"
        told = _said(value)
        alone = type(value).__module__ == "_thread" or isinstance(value, BaseException)  # locks
        if state is None and not alone and not can_be_pickled(value):
            raise self._unread(value)
        self.text(name, told)
        return kind

    def _unread(self, value: Any) -> DrawError:
        return DrawError(
            f"What is released holds a {type(value).__name__}, {shown(value)}, and an audit reads "
            "values alone: release what it gives."
        )


def _made(kind: type) -> dict[str, Any]:
    """What a class holds that was made for the output: pickle doesn't find it by its name.

    That are its attributes, and what its methods and properties took along from where they stand.
    """
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is kind:
        return {}
    held: dict[str, Any] = {}
    for name, part in vars(kind).items():
        if name.startswith("__"):
            continue
        cells = getattr(getattr(part, "fget", part), "__closure__", None) or ()
        full = [cell.cell_contents for cell in cells if cell != CellType()]
        taken = [each for each in full if each is not kind]
        if not hasattr(type(part), "__get__"):
            held[name] = part
        elif taken:
            held[name] = taken
    return held


def _label(key: Any) -> str:
    """A key in words."""
    return _text_label(key) if type(key) is str else _cut(_said(key))


@lru_cache(maxsize=4096)
def _text_label(key: str) -> str:
    return _cut(_said(key))


@lru_cache(maxsize=1024)
def _places(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Of the entries of an array, as their names say them."""
    return tuple(str(list(place)) if place else "" for place in np.ndindex(shape))
