"""Columns of a table: what a value may be, and which values an audit tries first.

A column is frozen data. It admits values or says why it doesn't, and names the values at which code
goes wrong: ends of the range, ends of number types, zeros of both signs, the empty text, the leap
day. The first of its `values` is the simplest, to which a data set is shrunk.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import cycle, islice
from numbers import Integral, Real
from string import ascii_lowercase
from typing import Any

import numpy as np
from attrs import field, frozen

from dpverify.data.adjacency.base import Choose
from dpverify.data.domain import LARGEST, as_matrix, first_where, is_sparse
from dpverify.enclosure import short_string
from dpverify.errors import ParameterError, RecordsError, require
from dpverify.numbers import to_count, to_rational, to_truth, to_whole, truth
from dpverify.visible import shown

__all__ = [
    "TYPE_ENDS",
    "Booleans",
    "Categories",
    "Column",
    "Dates",
    "Integers",
    "Number",
    "Reals",
    "Text",
    "is_unicode",
]

TYPE_ENDS = (2**7, 2**8, 2**15, 2**16, 2**24, 2**31, 2**32, 2**53)
"""Where types of numbers end, or stop to hold all whole ones."""
_LONGEST = 1_000_000  # characters: an audit makes texts of that length
_KINDS = {int: "whole", float: "real", bool: "truth", date: "date", str: "text"}


class Column(ABC):
    """A column of a table.

    Attributes
    ----------
    missing : whether a value may be None
    """

    __slots__ = ()

    missing: bool

    @property
    @abstractmethod
    def kind(self) -> str:
        """Of the type that its values have in a data frame: whole, real, truth, date, text, any."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """What a value must be, in words."""

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether it is a value of the column, other than a missing one."""

    @property
    @abstractmethod
    def values(self) -> Sequence[Any]:
        """Some values, the simplest first, then the ends and whatever is special; never None."""

    @abstractmethod
    def drawn(self, choose: Choose) -> Any:
        """Any value, other than a missing one."""

    def read(self, value: Any) -> Any:
        """A value that it holds, in the type that it has."""
        return value

    def simpler(self, value: Any) -> Iterator[Any]:
        """Values that may be simpler, the boldest first."""
        values = self.values
        yield from values[: values.index(value) if value in values else len(values)]

    def size(self, value: Any) -> float:
        """How complicated a value is; 0 for the simplest."""
        values = self.values
        return float(values.index(value) if value in values else len(values))

    def admits(self, value: Any) -> bool:
        """Whether a row may have it."""
        return self.missing if value is None else self.holds(value)

    @property
    def telling(self) -> Sequence[Any]:
        """All values that are tried at every place: `values`, and None where one may be missing."""
        return [*self.values, *([None] if self.missing else [])]

    def value(self, choose: Choose, constants: Sequence[Any] = ()) -> Any:
        """A value by choices: the simplest, a telling one, a constant of the code, or any."""
        known = [constant for constant in constants if self.holds(constant)]
        match choose(4):
            case 0:
                return self.values[0]
            case 1 if known:
                return self.read(known[choose(len(known))])
            case 1 | 2:
                telling = self.telling
                return telling[choose(len(telling))]
            case _:
                return self.drawn(choose)


class Number(Column):
    """A column of numbers in a range, which is also a domain: of matrices of such numbers."""

    __slots__ = ()

    low: Any
    high: Any

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest double."""
        return float(self.low), float(self.high)

    def admit(self, records: Any, *, attributes: int | None = None) -> Any:
        """Records as a matrix of doubles that are values of the column; see `Box.admit`."""
        x = as_matrix(records, attributes=attributes)
        values = x.data if is_sparse(x) else x
        if not all(map(self.holds, values.ravel().tolist())):
            row, column, value = first_where(x, np.vectorize(lambda v: not self.holds(v)))
            raise RecordsError(f", attribute {column} is {value}, and must be {self.rule}.", row)
        return x

    def simpler(self, value: Any) -> Iterator[Any]:
        start = self.values[0]
        yield start
        for near in (round(value), math.floor(value), math.ceil(value)):
            yield self._as(near)
        for step in (start + 1, start - 1, start + (value - start) / 2):
            yield self._as(step)
        yield self._as(value - 1 if value > start else value + 1)

    def size(self, value: Any) -> float:
        away = abs(value - self.values[0])
        return float(away) + (0 if value == math.floor(value) else 1)

    def _as(self, value: Any) -> Any:
        """The value as the column has it, moved into the range."""
        return min(max(self.read(value), self.read(self.low)), self.read(self.high))


@frozen
class Integers(Number):
    """Whole numbers from `low` to `high`, both included.

    Examples
    --------
    >>> Integers(0, 120).admits(41), Integers(0, 120).admits(41.5), Integers(0, 120).admits(None)
    (True, False, False)
    """

    low: int = field(converter=to_whole)
    high: int = field(converter=to_whole)
    missing: bool = field(default=False, converter=to_truth, kw_only=True)

    def __attrs_post_init__(self) -> None:
        _ordered(self.low, self.high)

    @property
    def rule(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    @property
    def kind(self) -> str:
        return _whole_kind(self.low, self.high)

    def holds(self, value: Any) -> bool:
        number = isinstance(value, Real) and not isinstance(value, bool | np.bool)
        whole = number and (isinstance(value, Integral) or value == math.floor(_finite(value)))
        return bool(whole and self.low <= value <= self.high)

    @property
    def values(self) -> Sequence[int]:
        return _whole_values(self)

    def drawn(self, choose: Choose) -> int:
        return int(self.low + choose(self.high - self.low + 1))

    def read(self, value: Any) -> int:
        floor: int = math.floor(value)
        return floor


@frozen
class Reals(Number):
    """Doubles from `low` to `high`, both included; the ends that count are the nearest doubles."""

    low: Fraction = field(converter=to_rational)
    high: Fraction = field(converter=to_rational)
    missing: bool = field(default=False, converter=to_truth, kw_only=True)

    def __attrs_post_init__(self) -> None:
        _ordered(self.low, self.high)

    kind = "real"

    @property
    def rule(self) -> str:
        return "a number from {:g} to {:g}".format(*self.ends)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest double, which a search asks for ten thousands of times."""
        return float(self.low), float(self.high)

    def holds(self, value: Any) -> bool:
        low, high = self.ends
        if type(value) is float:
            return low <= value <= high
        number = isinstance(value, Real) and not isinstance(value, bool | np.bool)
        return number and bool(low <= value <= high)

    @property
    def values(self) -> Sequence[float]:
        return _real_values(self)

    def drawn(self, choose: Choose) -> float:
        low, high = self.ends
        value = low + (high - low) * (choose(2**20 + 1) / 2**20)
        return min(max(value, low), high)

    def read(self, value: Any) -> float:
        return float(value)


@frozen(init=False)
class Categories(Column):
    """One of these values; which there are is public.

    Examples
    --------
    >>> Categories("f", "m").admits("x")
    False
    """

    values: tuple[Any, ...]
    missing: bool = False

    def __init__(self, *values: Any, missing: bool = False) -> None:
        require(bool(values), "values", "none", "at least one")
        rule = "numbers, Unicode texts or other values that equal themselves"
        require(all(map(_is_value, values)), "values", values, rule)
        require(len(set(values)) == len(values), "values", values, "all different")
        require(None not in values, "values", values, "without None", "Write missing=True.")
        self.__attrs_init__(values, truth("missing", missing))

    @property
    def kind(self) -> str:
        kinds = {_KINDS.get(type(value), "any") for value in self.values}
        if kinds == {"whole"}:
            return _whole_kind(*self.values)
        return kinds.pop() if len(kinds) == 1 else "any"

    @property
    def rule(self) -> str:
        return f"one of {', '.join(map(shown, self.values))}"

    def holds(self, value: Any) -> bool:
        return any(type(value) is type(each) and value == each for each in self.values)

    def drawn(self, choose: Choose) -> Any:
        return self.values[choose(len(self.values))]


@frozen
class Booleans(Column):
    """True or False."""

    missing: bool = field(default=False, converter=to_truth, kw_only=True)

    kind = "truth"
    rule = "True or False"
    values = (False, True)

    def holds(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool)

    def drawn(self, choose: Choose) -> bool:
        return bool(choose(2))


def _whole_kind(*numbers: int) -> str:
    return "whole" if all(-(2**63) <= number < 2**63 for number in numbers) else "any"


def _to_date(value: date | str) -> date:
    try:
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        return date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        way_out = 'Write it as in "2020-01-31", without a time.'
        raise ParameterError("date", value, "a date, or one in ISO form", way_out) from None


@frozen
class Dates(Column):
    """Days from `first` to `last`, both included, as `datetime.date`."""

    first: date = field(converter=_to_date)
    last: date = field(converter=_to_date)
    missing: bool = field(default=False, converter=to_truth, kw_only=True)

    def __attrs_post_init__(self) -> None:
        require(self.first <= self.last, "last", self.last, f"not before first={self.first}")

    kind = "date"

    @property
    def rule(self) -> str:
        return f"a date from {self.first} to {self.last}"

    def holds(self, value: Any) -> bool:
        return type(value) is date and self.first <= value <= self.last

    @property
    def values(self) -> Sequence[date]:
        return _date_values(self)

    def drawn(self, choose: Choose) -> date:
        return self.first + timedelta(days=choose((self.last - self.first).days + 1))

    def simpler(self, value: date) -> Iterator[date]:
        if value > self.first:
            yield self.first
            yield self.first + (value - self.first) // 2
            yield value - timedelta(days=1)

    def size(self, value: date) -> float:
        return float((value - self.first).days)


@frozen
class Text(Column):
    """Text of at most `length` characters: any, so that new categories appear.

    Attributes
    ----------
    length : of the longest
    """

    length: int = field(default=20, converter=to_count)
    missing: bool = field(default=False, converter=to_truth, kw_only=True)

    def __attrs_post_init__(self) -> None:
        require(self.length <= _LONGEST, "length", self.length, f"at most {_LONGEST:,}")

    kind = "text"

    @property
    def rule(self) -> str:
        return f"Unicode text of at most {self.length} characters"

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) <= self.length and is_unicode(value)

    @property
    def values(self) -> Sequence[str]:
        return _text_values(self)

    def drawn(self, choose: Choose) -> str:
        letters = "abcxyzABC019 _-.é"
        size = 1 + choose(min(self.length, 6))
        return "".join(letters[choose(len(letters))] for _ in range(size))

    def simpler(self, value: str) -> Iterator[str]:
        yield from super().simpler(value)
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]

    def size(self, value: str) -> float:
        return super().size(value) + len(value) - 1


def is_unicode(text: str) -> bool:
    """Whether files and data frames can hold the text: none of it is half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_value(value: Any) -> bool:
    """Whether it is found by its hash and equals itself, whatever it says to being asked."""
    try:
        hash(value)
        return bool(value == value) and not (  # noqa: PLR0124 - NaN
            isinstance(value, str) and not is_unicode(value)
        )
    except Exception:
        return False


def _ordered(low: Any, high: Any) -> None:
    for name, end in (("low", low), ("high", high)):
        require(abs(end) <= LARGEST, name, short_string(end), "between -2**100 and 2**100")
    require(low < high, "high", high, f"greater than low={low}")


def _finite(value: Any) -> Any:
    return value if math.isfinite(value) else 0.5


# Asked for with every row that a search draws, so each column's are made once.


@lru_cache
def _whole_values(column: Integers) -> Sequence[int]:
    low, high = column.low, column.high
    start = min(max(0, low), high)
    ends = [side for size in TYPE_ENDS for side in (size - 1, size, size + 1, -size, -size - 1)]
    near = [high, low, *(start + step for step in (1, -1, 2, 10))]
    near += [high - 1, low + 1, (low + high) // 2]
    return _distinct([start, *near, *ends], column)


@lru_cache
def _real_values(column: Reals) -> Sequence[float]:
    low, high = column.ends
    start = min(max(0.0, low), high)
    near = [high, low, start + 1, start - 1, (low + high) / 2, math.nextafter(high, low)]
    types = [side for size in TYPE_ENDS for side in (size - 1.0, size + 1.0, -float(size))]
    small = [-0.0, 0.1, 1 / 3, 5e-324, 2.0**-1022, 2.0**-53]
    return _distinct([start, *near, *small, *types], column)


@lru_cache
def _date_values(column: Dates) -> Sequence[date]:
    years = range(column.first.year, min(column.first.year + 4, column.last.year) + 1)
    leap = [date(year, 2, 28) + timedelta(days=1) for year in years]
    turns = [date(year, month, day) for year in years for month, day in ((12, 31), (1, 1))]
    known = [date(1970, 1, 1), date(2000, 1, 1)]
    return _distinct([column.first, column.last, *leap, *turns, *known], column)


@lru_cache
def _text_values(column: Text) -> Sequence[str]:
    odd = ["", "0", " ", "A", "é", "nan", "None", '"', ",", "日本", "42"]
    letters = list(islice(cycle(ascii_lowercase), (column.length + 1) // 2))
    full = ["z" * column.length, "9" * column.length, " ".join(letters), ",".join(letters)]
    return _distinct(["a", "b", *odd, *full], column)


def _distinct(values: Iterable[Any], column: Column) -> tuple[Any, ...]:
    """Those that the column holds, each once; −0 beside 0."""
    seen = {repr(value): value for value in values if column.holds(value)}
    return tuple(seen.values())
