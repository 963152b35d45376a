"""Values of declared columns as attributes, each column by itself and each value by itself.

The rules are in `declared`; here they are carried out. **A column moves a record by at most 1 in l1
distance**, between doubles, as an adjacency counts them, because

- a number becomes (x − low)/(high − low) in doubles, which is monotone as rounded and 0 and 1 at
  the ends, so that two of one attribute are at most 1 apart; a date is a number of days;
- where the attribute's missing values are shown, a value is (v, 0) with v in [0, 1] and a missing
  one (½, ½): |v − ½| + ½ ≤ 1, and two values are at most 1 apart as before;
- a category is one ½ among zeros: two of them are ½ + ½ apart. One that isn't declared is all
  zeros where outside = "clip", and ½ apart from the others;
- a text is, in each place, the number of its tokens there over 2·most, rounded down to a whole
  number of 2⁻²⁰. The numbers add up to at most `most`, and so the attributes to at most ½, exactly;
  two such vectors of numbers that aren't negative are at most ½ + ½ apart, and a missing one, all
  zeros and ½, as much.

Nothing that is read depends on another row, so that a row of the table that differs in one column
becomes a record that differs in the attributes of that column alone.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpverify.data.declared import (
    TEXT_STEPS,
    CategoryColumn,
    Stand,
    TextColumn,
)
from dpverify.data.frame import Frame, Spelling, refuse_index
from dpverify.data.records import Table
from dpverify.errors import ConfigurationError, RecordsError, did_you_mean

__all__ = ["day_of", "encoded", "kind_of", "number_pattern", "numbers"]

_SHOWN = 3  # rows that are named of each problem
_MISSING, _OUTSIDE = "missing", "outside"
_UNREAD = "Make numbers, texts, dates or truth values of them, or drop them."
_MATRIX = "Write a matrix of numbers that doubles hold."
_DECLARE = "Declare the columns by name: dpverify init begins the table data.columns."
_WAYS_OUT = {
    _MISSING: 'Missing values: declare missing = "indicator" or missing = { value = ... }.',
    _OUTSIDE: 'Outside: widen what was declared too narrow, or set outside = "clip".',
    "not numbers": "Not numbers: data.decimal and data.thousands say how they are written, "
    "data.missing what stands for none.",
    "not whole numbers": 'Not whole numbers: declare type = "real", if fractions may be.',
    "not text": 'Not text: declare a type of numbers, dates or truth values, or type = "category".',
    "not dates": 'Not dates: they are as 2020-01-31, or all as data.dates says, "%d.%m.%Y" for '
    "instance. Drop a column that differs.",
    "not true or false": "Not true or false: the words are true, t, yes, y, 1 and false, f, no, n, "
    '0. Others are declared by type = "category".',
}


def encoded(
    frame: Frame,
    columns: Sequence[Any],
    *,
    dropped: Sequence[str] = (),
    spelling: Spelling,
    clip: bool,
) -> Table:
    """The declared columns of a frame as records.

    Parameters
    ----------
    frame : has the columns by name, and no others
    columns : as `declared` returns them
    dropped : names of columns that are left out
    spelling : how texts write numbers, dates and missing values
    clip : whether a number outside its range is moved to its nearer end, and a category that isn't
        declared becomes none of them; if not, both are errors

    Raises
    ------
    RecordsError
        Here, if a column isn't there or isn't declared. While reading, at the end, if a value isn't
        what its column declares: all that is wrong, by column, with the numbers of rows and no
        value.
    """
    wanted = [column.name for column in columns]
    absent = [name for name in (*wanted, *dropped) if name not in frame.names]
    open_ = [name or '""' for name in frame.names if name not in (*wanted, *dropped)]
    unread = _unread(frame, wanted)
    said, ways_out = [], []
    if absent:
        said.append(f"has no column {', '.join(absent)}")
        ways_out.append(did_you_mean(absent[0], frame.names))
    if open_:
        said.append(f"columns that aren't declared: {', '.join(open_)}")
        ways_out.append(
            f"Declare each in data.columns, or leave it out: {open_[0]} = {{ drop = true }}."
        )
    if unread:
        said.append(f"columns of types that aren't read: {', '.join(unread)}")
        ways_out.append(_UNREAD)
    if said:
        raise RecordsError(f"{frame.label}: {'; '.join(said)}. {' '.join(ways_out)}")
    for column in columns:
        if isinstance(column.missing, Stand):
            _stand(column)  # refuses one that isn't of its column
    width = sum(len(column.attributes) for column in columns)

    def blocks() -> Iterator[NDArray[np.float64]]:
        problems = _Problems()
        first = 0
        for batch in frame.read(wanted):
            parts = [
                _encoded(column, batch.column(number), spelling, clip, problems, first)
                for number, column in enumerate(columns)
            ]
            first += batch.num_rows
            if not problems.found and batch.num_rows:
                yield np.hstack(parts)
        problems.refuse(frame.label)
        _check_rows(frame, first)

    parts = tuple(
        encoded(part, columns, dropped=dropped, spelling=spelling, clip=clip)
        for part in frame.parts
    )
    return Table(shape=(frame.rows, width), read=blocks, parts=parts)


def numbers(frame: Frame, spelling: Spelling, *, exact: bool = False) -> Table:
    """A frame of numbers alone as records, each as it is.

    Parameters
    ----------
    exact : whether whole numbers from 2**53 on are refused; else they count as the nearest doubles

    Raises
    ------
    RecordsError
        Here, if a column has no name; while reading, if a value is missing or no finite number.
    """
    refuse_index(frame.label, frame.names)
    if unread := _unread(frame, frame.names):
        raise RecordsError(
            f"{frame.label}: columns of types that aren't read: {', '.join(unread)}. {_UNREAD}"
        )

    def blocks() -> Iterator[NDArray[np.float64]]:
        problems = _Problems(way_out=_MATRIX if exact else _DECLARE)
        first = 0
        for batch in frame.read(frame.names):
            columns = []
            for number, name in enumerate(frame.names):
                values = _plain(batch.column(number))
                missing = _missing(values, spelling)
                column, wrong = _reals(values, spelling)
                problems.note(name, _MISSING, missing, first)
                problems.note(name, "not numbers", wrong & ~missing, first)
                if exact and kind_of(values.type) == "whole":
                    problems.note(name, "from 2**53 on", np.abs(column) >= 2.0**53, first)
                columns.append(column)
            first += batch.num_rows
            if not problems.found and batch.num_rows:
                yield np.column_stack(columns)
        problems.refuse(frame.label)
        _check_rows(frame, first)

    parts = tuple(numbers(part, spelling, exact=exact) for part in frame.parts)
    return Table(shape=(frame.rows, len(frame.names)), read=blocks, parts=parts)


def kind_of(kind: Any) -> Literal["boolean", "whole", "real", "date", "category"] | None:
    """What a column of an Arrow type may be declared as; None for a type that isn't read."""
    from pyarrow import types

    tests: Mapping[Any, Sequence[Any]] = {
        "boolean": (types.is_boolean,),
        "whole": (types.is_integer,),
        "real": (types.is_floating, types.is_decimal),
        "date": (types.is_date, types.is_timestamp),
        "category": (
            *(types.is_string, types.is_large_string, types.is_string_view),
            types.is_dictionary,
        ),
    }
    return next((name for name, known in tests.items() if any(test(kind) for test in known)), None)


def _unread(frame: Frame, names: Sequence[str]) -> list[str]:
    """Columns of these names, with their types, that aren't read: missing as a whole is."""
    from pyarrow import types

    return [
        f"{name} ({kind})"
        for name, kind in zip(frame.names, frame.kinds, strict=True)
        if name in names and kind is not None and not types.is_null(kind) and kind_of(kind) is None
    ]


def _check_rows(frame: Frame, rows: int) -> None:
    if rows != frame.rows:
        raise RecordsError(
            f"{frame.label}: had {frame.rows} rows, and then {rows}: it was changed."
        )


@dataclass(slots=True)
class _Problems:
    """What is wrong, by column and kind: how often, and in which rows first."""

    way_out: str = ""
    found: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def note(self, column: str, kind: str, wrong: NDArray[np.bool_], first: int) -> None:
        rows = np.flatnonzero(wrong)
        if rows.size:
            self._counts[column, kind] += rows.size
            named = self.found.setdefault(column, {}).setdefault(kind, [])
            named += (first + 1 + rows[: _SHOWN - len(named)]).tolist()

    def refuse(self, label: str) -> None:
        """Raise an error that has all of them, if there are any."""
        if not self.found:
            return
        what = "as declared" if not self.way_out else "of numbers"
        several = "column is" if len(self.found) == 1 else "columns are"
        error = RecordsError(
            f"{label}: {len(self.found)} {several} not {what}: {', '.join(self.found)}."
        )
        for column, kinds in self.found.items():
            texts = (self._text(column, kind, rows) for kind, rows in kinds.items())
            error.add_note(f"  {column}: {'; '.join(texts)}")
        if self.way_out:
            error.add_note(self.way_out)
            raise error
        noted = {kind for kinds in self.found.values() for kind in kinds}
        for start, way_out in _WAYS_OUT.items():
            if any(kind.startswith(start) for kind in noted):
                error.add_note(way_out)
        raise error

    def _text(self, column: str, kind: str, rows: Sequence[int]) -> str:
        count = self._counts[column, kind]
        named = ", ".join(map(str, rows)) + (", ..." if count > len(rows) else "")
        return f"{count:,} {kind} ({'row' if count == 1 else 'rows'} {named})"


def _encoded(
    column: Any,
    values: Any,
    spelling: Spelling,
    clip: bool,
    problems: _Problems,
    first: int,
) -> NDArray[np.float64]:
    """Attributes of a column's values, of shape (rows, attributes)."""
    values = _plain(values)
    if isinstance(column, TextColumn) and column.missing == "refuse":
        spelling = replace(spelling, missing=())  # no text is a text
    missing = _missing(values, spelling)
    codes, wrong = _codes(column, values, ~missing, spelling)
    for kind, rows in wrong.items():
        if not (clip and kind.startswith(_OUTSIDE)):
            problems.note(column.name, kind, rows & ~missing, first)
    match column.missing:
        case "refuse":
            problems.note(column.name, _MISSING, missing, first)
        case "indicator":
            codes[missing, :-1] = 0.0 if isinstance(column, CategoryColumn | TextColumn) else 0.5
            codes[missing, -1] = 0.5
        case Stand():
            codes[missing] = _stand(column)
    return codes


def _stand(column: Any) -> NDArray[np.float64]:
    """Attributes of the value that stands for a missing one."""
    import pyarrow as pa

    values = pa.array([column.missing.value])
    codes, wrong = _codes(column, values, np.ones(1, dtype=bool), Spelling())
    if any(rows.any() for rows in wrong.values()):
        raise ConfigurationError(
            f"data.columns.{column.name}.missing: {column.missing.value!r} is none of "
            f"{column.allowed}."
        )
    row: NDArray[np.float64] = codes[0]
    return row


def _codes(
    column: Any, values: Any, present: NDArray[np.bool_], spelling: Spelling
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.bool_]]]:
    """Attributes of values, and which of them are wrong, by what they are.

    A value that is outside gets the attributes to which it is moved. Rows that aren't `present` get
    some attributes, which the caller overwrites.
    """
    codes = np.zeros((len(values), len(column.attributes)))
    if isinstance(column, TextColumn):
        texts, wrong = _texts(values)
        for row in np.flatnonzero(present & ~wrong).tolist():
            _count_tokens(column, texts[row], codes[row])
        return codes, {"not text": wrong}
    if isinstance(column, CategoryColumn):
        places = _places(column, values)
        known = np.flatnonzero(places >= 0)
        codes[known, places[known]] = 0.5
        return codes, {f"{_OUTSIDE} the categories": places < 0}
    numbers, wrong = _NUMBERS[column.type](values, spelling)
    low, high = column.ends
    numbers = np.where(wrong, low, numbers)
    outside = (numbers < low) | (numbers > high)
    codes[:, 0] = (np.clip(numbers, low, high) - low) / (high - low)
    return codes, {f"not {_KINDS[column.type]}": wrong, f"{_OUTSIDE} the range": outside}


# Values, as Arrow has them


def _plain(values: Any) -> Any:
    """Of a dictionary its values; of texts, without spaces around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary).take(values.indices)
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.utf8_trim_whitespace(values.cast(pa.string()))
    return values


def _missing(values: Any, spelling: Spelling) -> NDArray[np.bool_]:
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_null(values, nan_is_null=True)
    if pa.types.is_string(values.type):
        known = pa.array([text.strip() for text in spelling.missing], pa.string())
        missing = pc.or_(missing, pc.is_in(values, value_set=known))
    return _array(missing).astype(bool)


def _array(values: Any) -> NDArray[Any]:
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _reals(values: Any, spelling: Spelling) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Values as doubles, and which of them are no finite numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_string(kind):
        good = pc.match_substring_regex(values, number_pattern(spelling))
        texts = pc.if_else(good, values, "0")
        for mark in filter(None, [spelling.thousands, "+"]):
            texts = pc.replace_substring(texts, mark, "")
        texts = pc.replace_substring(texts, spelling.decimal, ".")
        numbers, wrong = pc.cast(texts, pa.float64()), ~_array(pc.fill_null(good, True))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if pa.types.is_decimal(kind):  # else it is rounded by its type, which others decide
            values = pc.cast(values, pa.string())
        numbers, wrong = pc.cast(values, pa.float64(), safe=False), np.zeros(len(values), bool)
    elif pa.types.is_boolean(kind):
        numbers, wrong = pc.cast(values, pa.float64()), np.zeros(len(values), bool)
    else:
        return np.zeros(len(values)), np.ones(len(values), dtype=bool)
    doubles = _array(pc.fill_null(numbers, 0.0)).astype(np.float64)
    return doubles, wrong.astype(bool) | ~np.isfinite(doubles)


def _wholes(values: Any, spelling: Spelling) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    numbers, wrong = _reals(values, spelling)
    return numbers, wrong | (numbers != np.floor(numbers))


def _truths(values: Any, spelling: Spelling) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(values.type):
        numbers, wrong = _reals(values, spelling)
        return numbers, wrong | ~np.isin(numbers, (0.0, 1.0))
    lower = pc.utf8_lower(values)
    truth, known = (
        _array(pc.is_in(lower, value_set=pa.array(words))) for words in (_TRUE, (*_TRUE, *_FALSE))
    )
    return truth.astype(np.float64), ~known.astype(bool)


def _days(values: Any, spelling: Spelling) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Days since 1970; every different text is read once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(values.type):
        codes = pc.dictionary_encode(values)
        read = [day_of(text, spelling.date) for text in codes.dictionary.to_pylist()]
        epoch = date(1970, 1, 1)
        days = np.array([np.nan if day is None else (day - epoch).days for day in read] + [0.0])
        numbers = days[_array(pc.fill_null(codes.indices, len(read)))]
        return numbers, np.isnan(numbers)
    if not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        return np.zeros(len(values)), np.ones(len(values), dtype=bool)
    whole = pc.cast(pc.cast(values, pa.date32(), safe=False), pa.int32())
    return _array(pc.fill_null(whole, 0)).astype(np.float64), np.zeros(len(values), dtype=bool)


def day_of(text: str, form: str) -> date | None:
    """The date in a text, by its form or in ISO form; None where there is none."""
    with suppress(ValueError):
        return datetime.strptime(text, form).date() if form else datetime.fromisoformat(text).date()
    return None


_NUMBERS: Mapping[str, Callable[..., tuple[NDArray[np.float64], NDArray[np.bool_]]]] = {
    "real": _reals,
    "whole": _wholes,
    "boolean": _truths,
    "date": _days,
}
_KINDS = {"real": "numbers", "whole": "whole numbers", "boolean": "true or false", "date": "dates"}
_TRUE, _FALSE = ("1", "t", "true", "y", "yes"), ("0", "f", "false", "n", "no")


@lru_cache
def number_pattern(spelling: Spelling) -> str:
    """Regular expression of the numbers that a spelling has."""
    point = re.escape(spelling.decimal)
    digits = r"\d+"
    if spelling.thousands:
        digits = rf"(\d{{1,3}}({re.escape(spelling.thousands)}\d{{3}})+|\d+)"
    return rf"^[+-]?({digits}({point}\d*)?|{point}\d+)([eE][+-]?\d{{1,4}})?$"


def _places(column: CategoryColumn, values: Any) -> NDArray[np.intp]:
    """Which category each value is; −1 for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
            coded = pc.dictionary_encode(values)
            different = coded.dictionary
            written = map(
                _written, different.to_pylist(), pc.cast(different, pa.string()).to_pylist()
            )
            texts = pa.array(written, pa.string()).take(coded.indices)
        else:
            texts = pc.cast(values, pa.string())
    except pa.ArrowException:
        return np.full(len(values), -1)
    found = pc.index_in(texts, value_set=pa.array(column.categories, pa.string()))
    return _array(pc.fill_null(found, -1)).astype(np.intp)


def _written(number: float | Decimal, text: str) -> str:
    """A number as a category has it: by itself, however many digits others have."""
    if isinstance(number, Decimal):
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    whole = number.is_integer()  # where some are missing, pandas has whole ones as doubles
    return str(int(number)) if whole else text


def _texts(values: Any) -> tuple[list[str], NDArray[np.bool_]]:
    import pyarrow as pa

    if not pa.types.is_string(values.type):
        return [""] * len(values), np.ones(len(values), dtype=bool)
    return values.to_pylist(), np.zeros(len(values), dtype=bool)


def _count_tokens(column: TextColumn, text: str, codes: NDArray[np.float64]) -> None:
    """Shares of the first tokens of a text, by word or bucket, halved, into `codes`."""
    words = re.findall(r"\w+", text.lower())
    if column.ngrams is None:
        tokens = words
    else:
        joined, size = " ".join(words), column.ngrams
        tokens = [joined[start : start + size] for start in range(len(joined) - size + 1)]
    if column.words is not None:
        places = {word: place for place, word in enumerate(column.words)}
        found = [places[token] for token in tokens[: column.most] if token in places]
    else:
        found = [_bucket(token, column.buckets or 1) for token in tokens[: column.most]]
    for place, times in Counter(found).items():
        codes[place] = times * (TEXT_STEPS // 2) // column.most / TEXT_STEPS


@lru_cache(maxsize=2**16)
def _bucket(token: str, buckets: int) -> int:
    """A public hash: anyone can say which tokens share a bucket."""
    digest = hashlib.sha256(token.encode()).digest()
    return int.from_bytes(digest[:8], "big") % buckets
