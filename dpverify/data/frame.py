"""A table of named columns, wherever it lies, as batches of Arrow columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpverify.errors import DPVerifyError, RecordsError

__all__ = [
    "COMPRESSED",
    "REASON",
    "Frame",
    "Spelling",
    "check_names",
    "ending",
    "is_index",
    "located",
    "readable",
    "refuse_index",
]

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
REASON = 200  # characters of what a parser says: it may quote the whole file


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How a file of texts writes what it holds.

    Attributes
    ----------
    encoding : of the file
    separator : between values; by the file's ending where it is empty
    decimal, thousands : marks in numbers
    date : as `datetime.strptime` has it; ISO where it is empty
    missing : texts that stand for a missing value
    """

    encoding: str = "utf-8"
    separator: str = ""
    decimal: str = "."
    thousands: str = ""
    date: str = ""
    missing: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A table of named columns that can be read more than once.

    Attributes
    ----------
    label : what messages call it
    names : of the columns; "" where one has none
    kinds : Arrow types of the columns; None in a file of texts
    rows : their number
    read : batches with the columns of these names, in this order
    parts : what follows one another in it, where it lies in several files
    """

    label: str
    names: tuple[str, ...]
    kinds: tuple[Any, ...]
    rows: int
    read: Callable[[Sequence[str]], Iterator[Any]]
    parts: tuple[Frame, ...] = ()


def located(path: str, base: Path = Path()) -> Path | str:
    """A path as it is written: on this system, from a folder on; or a URL, which stays a string."""
    return path if "://" in path else base / path


def ending(path: str | Path) -> str:
    """The ending that says what a file is, without that of its compression."""
    name = Path(path).name.lower()
    for compressed in COMPRESSED:
        name = name.removesuffix(compressed)
    return Path(name).suffix


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Whatever a reader raises, as a RecordsError that quotes no value."""
    try:
        yield
    except DPVerifyError:
        raise
    except FileNotFoundError:
        raise RecordsError(f"{path}: there is no such file.") from None
    except Exception as error:
        text = str(error)
        if isinstance(error, UnicodeError) or "UTF8" in text:
            raise RecordsError(
                f"{path}: isn't in the encoding that was declared, or in UTF-8 where none was. "
                'Declare its own: data.encoding = "cp1252" or "latin-1" are common.'
            ) from None
        reason = text.splitlines()[0] if text else type(error).__name__
        if type(error).__module__.startswith("pyarrow"):  # it may go on with a row
            reason = ":".join(reason.split(":")[:2])
        raise RecordsError(f"{path}: can't be read: {reason[:REASON]}") from None


def check_names(label: str, names: Sequence[str]) -> None:
    """Refuse columns that share a name.

    Raises
    ------
    RecordsError
        With the names.
    """
    twice = sorted(repr(name) for name, times in Counter(names).items() if times > 1)
    if twice:
        raise RecordsError(f"{label}: columns share a name: {', '.join(twice)}. Give each its own.")


def is_index(name: str) -> bool:
    """Whether pandas writes the numbers of the rows into a column of this name."""
    return name in ("", "Unnamed: 0") or name.startswith("__index_level_")


def refuse_index(label: str, names: Sequence[str]) -> None:
    """Refuse a column without a name, which would become an attribute unseen.

    Raises
    ------
    RecordsError
        With the way out.
    """
    unnamed = [name for name in names if is_index(name)]
    if unnamed:
        raise RecordsError(
            f"{label}: the column called {unnamed[0]!r} looks like the numbers of the rows, as "
            "pandas writes them. Write the file with index=False, or declare data.columns with "
            f'"{unnamed[0]}" = {{ drop = true }}.'
        )
