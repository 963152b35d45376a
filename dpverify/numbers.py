"""Numbers and truth values as users write them: read exactly, and checked when an object is made.

A float stands for its exact binary value, a string or a Decimal for its decimal, and a string as
"1/3" for that fraction. The converters of
`attrs` fields below name the field in the message of what they refuse, and type checkers read off
them what a constructor takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import Converter

from dpverify.enclosure import Exact, Real, SquareRoot, exact, rational
from dpverify.errors import require

__all__ = [
    "COIN",
    "count",
    "in_order",
    "level",
    "optional_delta",
    "positive",
    "positive_rational",
    "rationals",
    "to_coin",
    "to_count",
    "to_level",
    "to_positive",
    "to_positive_rational",
    "to_rational",
    "to_seconds",
    "to_truth",
    "to_whole",
    "truth",
    "whole",
]


COIN = 2**64
"""One random word decides a coin: its probability is a whole number of these parts."""
_LONGEST = 10**9  # seconds
_MAX_COUNT = 2**4096  # far beyond any size, and few enough digits for Python to print


def positive(name: str, value: Real | SquareRoot) -> Exact:
    """Read an exact number above 0, keeping a square root as it is."""
    number = exact(name, value)
    size = number.radicand if isinstance(number, SquareRoot) else number
    require(size > 0, name, value, "positive")
    return number


def positive_rational(name: str, value: Real) -> Fraction:
    """Read a number above 0 exactly."""
    number = rational(name, value)
    require(number > 0, name, value, "positive")
    return number


def in_order(name: str, values: Iterable[Any]) -> Iterable[Any]:
    """What is a list, an array or an iterator.

    Of a text, a set, a dictionary or a table another program's reader may mean something else:
    keys or columns, or what has the same label.
    """
    ordered = isinstance(values, Sequence | np.ndarray | Iterator)
    several = getattr(values, "ndim", 1) > 0
    good = ordered and several and not isinstance(values, str | bytes | bytearray | memoryview)
    hint = "Of what has names or labels, give the values alone, as an array."
    require(good, name, type(values).__name__, "a list or an array of numbers", hint)
    return values


def rationals(name: str, values: Iterable[Real]) -> tuple[Fraction, ...]:
    """Read numbers exactly, in their order."""
    return tuple(rational(name, value) for value in in_order(name, values))


def whole(name: str, value: Real) -> int:
    """Read a whole number, as 3, 3.0 or "3"."""
    number = rational(name, value)
    require(number.denominator == 1, name, value, "a whole number")
    return number.numerator


def count(name: str, value: Real) -> int:
    """Read a whole number of at least 1."""
    number = whole(name, value)
    require(number >= 1, name, value, "at least 1")
    require(number <= _MAX_COUNT, name, "larger", "at most 2**4096")
    return number


def level(name: str, value: Real) -> float:
    """Read a probability of error in (0, 1), as the largest double that isn't above it."""
    number = rational(name, value)
    require(0 < number < 1, name, value, "in (0, 1)")
    double = float(number)
    double = math.nextafter(double, 0) if Fraction(double) > number else double
    require(double > 0, name, value, "at least 5e-324")
    return double


def truth(name: str, value: bool) -> bool:
    """Read True or False, also numpy's; what is merely true in Python, as "no", is refused."""
    require(isinstance(value, bool | np.bool), name, value, "True or False")
    return bool(value)


def optional_delta(value: Real | None) -> Fraction | None:
    """Read a delta in [0, 1) exactly; None stays None."""
    if value is None:
        return None
    delta = rational("delta", value)
    require(0 <= delta < 1, "delta", value, "in [0, 1)")
    return delta


def _seconds(name: str, value: Real) -> float:
    number = positive_rational(name, value)
    require(number <= _LONGEST, name, value, f"at most {_LONGEST:,} seconds")
    return float(number)


def _coin(name: str, value: Real) -> Fraction:
    number = rational(name, value)
    require(COIN % number.denominator == 0, name, value, "a multiple of 2**-64")
    return number


def _named(read: Callable[[str, Any], Any]) -> Any:
    return Converter(lambda value, field: read(field.name, value), takes_field=True)


if TYPE_CHECKING:  # of a converter, mypy reads nothing but a function's types

    def to_rational(value: Real) -> Fraction:
        """`rational` of a field."""
        raise NotImplementedError

    def to_positive(value: Real | SquareRoot) -> Exact:
        """`positive` of a field."""
        raise NotImplementedError

    def to_positive_rational(value: Real) -> Fraction:
        """`positive_rational` of a field."""
        raise NotImplementedError

    def to_whole(value: Real) -> int:
        """`whole` of a field."""
        raise NotImplementedError

    def to_count(value: Real) -> int:
        """`count` of a field."""
        raise NotImplementedError

    def to_level(value: Real) -> float:
        """`level` of a field."""
        raise NotImplementedError

    def to_seconds(value: Real) -> float:
        """A time above 0, as a double."""
        raise NotImplementedError

    def to_truth(value: bool) -> bool:
        """`truth` of a field."""
        raise NotImplementedError

    def to_coin(value: Real) -> Fraction:
        """A coin's probability, a multiple of 1/`COIN`; its range is the caller's."""
        raise NotImplementedError

else:
    to_rational = _named(rational)
    to_positive, to_positive_rational = _named(positive), _named(positive_rational)
    to_whole, to_count, to_coin = _named(whole), _named(count), _named(_coin)
    to_level, to_seconds, to_truth = _named(level), _named(_seconds), _named(truth)
