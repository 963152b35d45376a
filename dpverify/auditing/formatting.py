"""Data and numbers as reports show them: to people, and to programs as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpverify.data.domain import is_sparse
from dpverify.enclosure import Enclosure, number_string
from dpverify.visible import shown, worded

__all__ = ["at_least", "at_most", "bound", "exactly", "jsonable", "named_numbers", "number"]

_LISTED = 6  # parts of a number of many that are listed
_WHOLE = 2.0**53  # below which all digits of whole doubles are theirs
_LONG = 14_000  # bits of a whole number that Python doesn't print


def named_numbers(values: Mapping[str, Any]) -> str:
    """Numbers with their names, in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {number(value)}" for name, value in values.items())


def number(value: Any) -> str:
    """A number, or another value, in few digits."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    if isinstance(value, tuple) and len(value) > _LISTED:
        ends = [", ".join(str(each) for each in part) for part in (value[:2], value[-2:])]
        return f"({ends[0]}, …, {ends[1]})"
    return str(value)


def at_least(value: float, spec: str = ".6g") -> str:
    """A lower bound in few digits, rounded down."""
    return _short(format(Enclosure(value, value, "lower"), spec), spec)


def at_most(value: float, spec: str = ".6g") -> str:
    """An upper bound in few digits, rounded up."""
    return _short(format(Enclosure(value, value), spec), spec)


def exactly(value: float | Fraction) -> str:
    """Where a bound holds, with all its digits: a δ rounded up would have another bound."""
    short = f"{float(value):g}"
    return short if float(short) == float(value) else number_string(Fraction(value))


def _short(text: str, spec: str) -> str:
    """Without zeros at its end, as a double has none in such a format."""
    plain = spec.endswith("g") and "." in text and "e" not in text.lower()
    return text.rstrip("0").rstrip(".") if plain else text


def bound(value: float) -> str:
    """The end of an event: whole numbers with all digits, as six make another event of them."""
    whole = abs(value) < _WHOLE and value == math.floor(value)
    return str(int(value)) if whole else f"{value:.6g}"


def jsonable(value: Any) -> Any:
    """The value by JSON's own types; infinities, exact fractions and the rest as strings."""
    try:
        return _plain(value)
    except RecursionError:  # it holds itself
        return shown(value)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {worded(name): _plain(each) for name, each in value.items()}
    if is_sparse(value) or isinstance(value, np.ndarray | np.generic):
        return _plain(np.asarray(value.toarray() if is_sparse(value) else value).tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, int) and value.bit_length() < _LONG:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | str) else worded(value)
