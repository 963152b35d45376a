"""Files of texts, as CSV: a line of names, and the texts of a row in every other line."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import category

from dpverify.data.frame import Frame, Spelling, ending, readable
from dpverify.errors import RecordsError

__all__ = ["TEXTS", "open_texts"]

TEXTS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
"""Separators by the ending of a file."""
_SHOWN = 3  # rows that are named
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def open_texts(path: Path, spelling: Spelling) -> Frame:
    """The table in a file of texts, of which a part at a time is in memory.

    Raises
    ------
    RecordsError
        If it can't be read, has no rows or no separator that was declared, or some rows have more
        or fewer values than there are names.
    """
    with readable(path):
        if path.stat().st_size == 0:
            raise RecordsError(f"{path}: is empty.")
        file = _Texts(path=path, spelling=spelling)
        names = file.names()
        rows = file.rows(names)

    def read(chosen: Sequence[str]) -> Iterator[Any]:
        with readable(path):
            for batch in file.batches(names):
                yield batch.select([str(names.index(name)) for name in chosen])

    return Frame(
        label=str(path), names=tuple(names), kinds=(None,) * len(names), rows=rows, read=read
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    path: Path
    spelling: Spelling

    def names(self) -> list[str]:
        """Of the columns, where the separator is the right one."""
        import pyarrow as pa

        try:
            names: list[str] = self._opened([], []).schema.names
        except pa.ArrowInvalid as error:
            if "Empty" in str(error):
                raise RecordsError(f"{self.path}: has no rows below its header.") from None
            raise
        if names[0].lower().startswith("sep="):
            raise RecordsError(
                f"{self.path}: begins with the line sep=, which is for spreadsheets. Remove it."
            )
        if any(category(letter) == "Cc" and letter not in "\t\r\n" for letter in "".join(names)):
            raise RecordsError(
                f"{self.path}: is not a text file: its column names hold control characters. If "
                "it is of another kind, give it the extension of that kind."
            )
        for separator, name in _SEPARATORS.items():
            if len(names) == 1 and separator in names[0]:
                written = "\\t" if separator == "\t" else separator
                raise RecordsError(
                    f"{self.path}: the values look separated by {name}. Declare "
                    f'data.separator = "{written}".'
                )
        return names

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """All rows as texts, in columns that are called by their place: names may stand twice."""
        ragged: list[int] = []
        columns = len(names)
        opened = self._opened(names, ragged)
        if opened.schema.names != names:
            raise RecordsError(f"{self.path}: the header must be the first line.")
        for batch in opened:
            yield batch.rename_columns([str(place) for place in range(columns)])
        if ragged:
            named = ", ".join(map(str, ragged[:_SHOWN])) + (", ..." if len(ragged) > _SHOWN else "")
            raise RecordsError(
                f"{self.path}: {len(ragged):,} rows ({named}) don't have {columns} values as "
                "the header does. Quote values that hold the separator, and remove lines above "
                "the header."
            )

    def rows(self, names: Sequence[str]) -> int:
        """Their number, where every quote that is opened is closed before a separator."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, several_lines = 0, False
        try:
            for batch in self.batches(names):
                rows += batch.num_rows
                several_lines = several_lines or any(
                    pc.any(pc.match_substring(column, "\n")).as_py() for column in batch.columns
                )
        except (RecordsError, pa.ArrowInvalid):
            self._check_quotes()  # where one is the cause, it says more
            raise
        if several_lines:
            self._check_quotes()
        return rows

    def _check_quotes(self) -> None:
        """Refuse a quote that takes other rows into its value, up to the quote of another value."""
        import pyarrow as pa

        first, size = 0, csv.field_size_limit(2**31 - 1)
        stream = pa.input_stream(str(self.path), compression="detect")
        with io.TextIOWrapper(stream, encoding=self._codec(), newline="") as text:
            rows = csv.reader(text, delimiter=self._separator(), strict=True)
            try:
                for _ in rows:
                    first = rows.line_num
            except csv.Error:
                raise RecordsError(
                    f"{self.path}: a quote that is opened in line {first + 1} isn't closed before "
                    "the next separator or the end of a line. Close it, or write a quote within a "
                    "value twice."
                ) from None
            finally:
                csv.field_size_limit(size)

    def _separator(self) -> str:
        return self.spelling.separator or TEXTS[ending(self.path)]

    def _codec(self) -> str:
        """UTF-8 by a codec of Python, which refuses what isn't: a row of it can't be counted."""
        name = codecs.lookup(self.spelling.encoding).name
        return "utf-8-sig" if name == "utf-8" else name

    def _opened(self, columns: Sequence[str], ragged: list[int]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        def skip(row: Any) -> str:
            ragged.append((row.number or 1) - 1)
            return "skip"

        return arrow_csv.open_csv(
            pa.input_stream(str(self.path), compression="detect"),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                encoding=self._codec(),
                block_size=1 << 22,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._separator(),
                newlines_in_values=True,
                ignore_empty_lines=len(columns) != 1,  # of one column it is a value, a missing one
                invalid_row_handler=skip,
            ),
            convert_options=arrow_csv.ConvertOptions(
                strings_can_be_null=False, column_types=dict.fromkeys(columns, pa.string())
            ),
        )
