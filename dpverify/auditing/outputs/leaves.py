"""Leaves of an output: named numbers, words and blocks, of which the first 4,096 stand apart.

Of what is long (a text, parts beyond the first 4,096) the end isn't cut off: it has a checksum, and
numbers their sum and both extremes. What numbers and texts say is taken apart here; what lies
within one another, in `dpverify.auditing.outputs.reader`.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import (
    Callable,
    Iterator,
)
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.outputs.numerals import numerals, spelling
from dpverify.errors import PASSING
from dpverify.visible import shown

__all__ = [
    "FARTHEST",
    "MOST",
    "PLACE",
    "PLAIN",
    "Block",
    "Leaf",
    "Leaves",
    "brought_near",
    "cut",
    "far",
    "inexact",
    "low_bits",
    "said",
]

_NAMED = 64  # numbers of an array that have names of their own
FARTHEST = 1e300
"""Stands for infinities, so that differences stay numbers; larger numbers are brought near it."""
MOST = 4096
"""Leaves of one output that have names."""
_BEYOND = f"beyond the first {MOST} parts"
PLAIN = (float, int, np.float64, np.int64)
"""Types of numbers, exactly, that nearly all parts have."""
_LONGEST = 300  # characters of a word that are told apart
_CODED = 8  # characters of a text from where on each has a number: it may be hexadecimal
_READ = 20_000  # characters of a text that are read; of the rest there is a checksum
_NAN = struct.pack(">d", math.nan).hex()
_NAN_BITS = int(_NAN, 16)
_BITS = 2048  # of one whole number; of a longer one there is a checksum
_EXACT = 2**53  # below it doubles hold whole numbers; the next one is rounded to it
_FAR = 10_000  # digits, or places before or behind the point, above which a decimal is no ratio
_DOUBLE = 17  # digits that a double holds
PLACE = re.compile(r" (?:at|@) 0x[0-9a-fA-F]+")
"""Where an object lies in memory, as its `repr` tells it."""


class Block(NamedTuple):
    """An array of doubles."""

    shape: tuple[int, ...]
    data: bytes

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Flattened."""
        return np.frombuffer(self.data)


Leaf = float | str | Block


@dataclass(slots=True)
class Leaves:
    """Collects the leaves of one output: the first by their names, then what they say together."""

    leaves: list[tuple[str, Leaf]] = field(default_factory=list)
    beyond: int = 0
    numbers: list[float] = field(default_factory=list)
    checksum: int = 0
    texts: set[str] = field(default_factory=set)
    read: Counter[float] = field(default_factory=Counter)
    places: dict[int, str] = field(default_factory=dict)
    keys: list[tuple[str, Leaf]] = field(default_factory=list)

    @property
    def by_place(self) -> Iterator[tuple[str, Leaf]]:
        """Leaves of mappings and objects, by place, and what keys say, which may be new each time.

        No more than there is room for beside the others.
        """
        placed = ((name, self.leaves[leaf][1]) for leaf, name in self.places.items())
        return islice(chain(placed, self.keys), max(MOST - len(self.leaves), 0))

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

    def place(self, leaves: int, keys: int, name: str, placed: str) -> None:
        """Say of all that was added after so many leaves and keys by which place it is named."""
        for leaf in range(leaves, len(self.leaves)):
            told = self.places.get(leaf) or self.leaves[leaf][0]
            self.places[leaf] = told.replace(name, placed, 1)
        for key in range(keys, len(self.keys)):
            told, said_by_key = self.keys[key]
            self.keys[key] = told.replace(name, placed, 1), said_by_key

    def word(self, name: str, word: str) -> None:
        """A leaf that is compared and nothing else."""
        self.add(name, cut(word))

    def number(self, name: str, number: Any) -> None:
        """A leaf of a number, or several that hold it exactly."""
        nearly_all = type(number) in PLAIN and abs(number) < _EXACT  # and no NaN
        if nearly_all and (number or math.copysign(1, number) > 0):
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
            self.word(name, said(number))
            return
        if math.isnan(double):
            bits = struct.pack(">d", double).hex()
            self.word(name, "NaN" if bits == _NAN else f"NaN {bits}")
            return
        self.add(name, double)
        if double == 0 and math.copysign(1, double) < 0:
            self.word(name, "-0.0")
        if abs(double) >= _EXACT and not isinstance(number, Fraction):
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
        if far(double):
            self.add(f"{name} / 2**64", float(brought_near(double)))
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
            numbers = flat.tolist()
            self.read.update(numbers)
            for named, number in zip(_places(name, array.shape), numbers, strict=True):
                self.number(named, number)
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
        if np.any(far(double)):
            self.add(f"{name} / 2**64", Block(array.shape, brought_near(double).tobytes()))
        if flat.dtype.kind in "iu" and np.any(inexact(flat)):
            low = low_bits(flat).astype(np.float64)
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
            self.add(f"{cut(word)!r} in {name}", 1.0)


def inexact(whole: NDArray[Any]) -> NDArray[np.bool_]:
    """Which whole numbers a double may not hold."""
    return np.asarray(np.abs(whole.astype(np.float64)) >= _EXACT)


def low_bits(whole: NDArray[Any]) -> NDArray[Any]:
    """The last 32 bits of whole numbers."""
    return np.asarray(whole & 0xFFFFFFFF)


def far(doubles: Any) -> NDArray[np.bool_]:
    """Which numbers are larger than 1e300, and not infinite."""
    with np.errstate(over="ignore"):  # of a longdouble
        sizes = np.abs(np.asarray(doubles, dtype=np.float64))
    return np.asarray(np.isfinite(sizes) & (sizes > FARTHEST))


def brought_near(doubles: Any) -> NDArray[np.float64]:
    """Numbers divided by 2⁶⁴."""
    with np.errstate(over="ignore"):
        return np.ldexp(np.asarray(doubles, dtype=np.float64), -64)


def said(value: Any, way: Callable[[Any], str] = repr) -> str:
    """What a foreign object says of itself, without its place in memory."""
    try:
        return PLACE.sub("", way(value))
    except PASSING:
        raise
    except BaseException:  # whatever it raises
        return PLACE.sub("", shown(value))


def cut(text: str) -> str:
    """A text that isn't long, with a checksum in place of an end that is left out."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {zlib.crc32(text.encode(errors='replace')):08x}"


@lru_cache(maxsize=1024)
def _places(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the entries of an array."""
    return tuple(name + (str(list(place)) if place else "") for place in np.ndindex(shape))
