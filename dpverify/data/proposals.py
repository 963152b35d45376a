"""Types of a table's columns, proposed from names and types, for its owner to decide.

Of a file of texts the type of a column is what all of its values can be read as. No value, no
range and no category leaves this module: two tables whose columns have the same types, and are
missing values in the same columns by the same marks (of a public list), give the same proposals.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

from dpverify.data.encoding import day_of, kind_of, number_pattern
from dpverify.data.frame import Frame, Spelling, ending, is_index
from dpverify.data.frames import open_frame
from dpverify.data.text_files import TEXTS
from dpverify.errors import RecordsError, extra

__all__ = ["Proposal", "Proposals", "propose"]

Kind = Literal["real", "whole", "date", "boolean", "category", "drop"]

_ENCODINGS = ("utf-8", "cp1252", "latin-1")
_SEPARATORS = (",", ";", "\t", "|")
_NUMBERS = tuple(
    Spelling(decimal=decimal, thousands=thousands)
    for thousands, decimal in (*product([""], ".,"), (".", ","), (",", "."), ("'", "."), (" ", ","))
)
_DATES = ("", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", "?")
_TRUTHS = {"true", "false", "yes", "no", "t", "f", "y", "n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A column, what it may be declared as, and whether some of its values are missing."""

    name: str
    kind: Kind
    missing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """A table's columns, the number of its rows, and how it is written if it is texts."""

    rows: int
    columns: tuple[Proposal, ...]
    spelling: Spelling


def propose(path: Path, *, table: str = "") -> Proposals:
    """What the columns of a table may be declared as.

    Raises
    ------
    RecordsError
        As `open_frame`.
    """
    frame, spelling = _opened(path, table)
    if frame.kinds[0] is None:
        return _of_texts(frame, spelling)
    missing = dict.fromkeys(frame.names, False)
    for batch in frame.read(frame.names):
        for name, values in zip(frame.names, batch.columns, strict=True):
            missing[name] |= values.null_count > 0
    columns = [
        Proposal(
            name=name,
            kind="drop" if is_index(name) else kind_of(kind) or "drop",
            missing=missing[name],
        )
        for name, kind in zip(frame.names, frame.kinds, strict=True)
    ]
    return Proposals(rows=frame.rows, columns=tuple(columns), spelling=spelling)


def _opened(path: Path, table: str) -> tuple[Frame, Spelling]:
    """The table, by the first encoding that it can be read in."""
    if ending(path) not in TEXTS:
        return open_frame(path, table=table), Spelling()
    refused: RecordsError | None = None
    for encoding in ("utf-16",) if _begins_as_utf16(path) else _ENCODINGS:
        spelling = Spelling(encoding=encoding)
        try:
            with_it = replace(spelling, separator=_separator(path, spelling))
            return open_frame(path, spelling=with_it), with_it
        except RecordsError as error:
            refused = refused or error
            if "data.encoding" not in str(error):
                raise
    raise refused or RecordsError(f"{path}: can't be read.")


def _begins_as_utf16(path: Path) -> bool:
    """Whether the first two bytes are its byte order mark, as spreadsheets write it."""
    with extra("arrow", f"{path}: reading a table"):
        import pyarrow as pa
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    except OSError:  # for which there are words where the file is read
        return False


def _separator(path: Path, spelling: Spelling) -> str:
    """The one that stands in the line of names; none where that of the file's ending does."""
    try:
        open_frame(path, spelling=spelling)
    except RecordsError as error:
        if "data.separator" not in str(error):
            raise
    else:
        return ""
    for separator in _SEPARATORS:
        try:
            names = open_frame(path, spelling=replace(spelling, separator=separator)).names
        except RecordsError:
            continue
        if len(names) > 1:
            return separator
    return ""


@dataclass(slots=True)
class _Seen:
    """What all texts of a column so far can be read as; and texts that stand for missing ones."""

    numbers: set[Spelling] = field(default_factory=lambda: set(_NUMBERS))
    wholes: set[Spelling] = field(default_factory=lambda: set(_NUMBERS))
    dates: set[str] = field(default_factory=lambda: set(_DATES))
    truths: bool = True
    missing: set[str] = field(default_factory=set)
    present: bool = False

    def add(self, texts: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pc.unique(pc.utf8_trim_whitespace(texts))
        gone = pc.is_in(texts, value_set=pa.array(_MISSING))
        self.missing |= set(texts.filter(gone).to_pylist())
        texts = texts.filter(pc.invert(gone))
        if not len(texts):
            return
        self.present = True
        self.numbers = {s for s in self.numbers if _all_match(texts, number_pattern(s))}
        self.wholes = {
            s
            for s in self.wholes & self.numbers
            if not pc.any(pc.match_substring(texts, s.decimal)).as_py()
        }
        if self.dates:
            days = texts.to_pylist()
            self.dates = {
                form for form in self.dates if all(day_of(day, form) is not None for day in days)
            }
        if self.truths:
            self.truths = set(pc.utf8_lower(texts).to_pylist()) <= _TRUTHS


def _all_match(texts: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _of_texts(frame: Frame, spelling: Spelling) -> Proposals:
    seen = {name: _Seen() for name in frame.names}
    for batch in frame.read(frame.names):
        for name, texts in zip(frame.names, batch.columns, strict=True):
            seen[name].add(texts)
    columns = [column for column in seen.values() if column.present]
    separator = spelling.separator or TEXTS[ending(frame.label)]
    marks = [way for way in _NUMBERS if way.decimal != separator]
    numbers = _most_common(marks, (column.numbers for column in columns))
    day = _most_common(_DATES, (column.dates for column in columns if not column.numbers))
    missing = set().union(*(column.missing for column in columns))
    spelling = replace(
        spelling,
        decimal=numbers.decimal,
        thousands=numbers.thousands,
        date=day,
        missing=tuple(text for text in _MISSING if text in missing | {""}),
    )

    def kind(name: str, column: _Seen) -> Kind:
        if is_index(name) or not column.present:
            return "drop"
        if numbers in column.numbers:
            return "whole" if numbers in column.wholes else "real"
        if day in column.dates:
            return "date"
        return "boolean" if column.truths else "category"

    return Proposals(
        rows=frame.rows,
        columns=tuple(
            Proposal(name=name, kind=kind(name, column), missing=bool(column.missing))
            for name, column in seen.items()
        ),
        spelling=spelling,
    )


def _most_common(known: Sequence[Any], found: Iterable[set[Any]]) -> Any:
    """Of several ways to read columns the first one that reads the most of them."""
    read = list(found)
    return max(known, key=lambda way: sum(way in ways for ways in read))
