"""Data, numbers and pairs as reports show them: to people, and to programs as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.privacy import Pair

__all__ = ["jsonable", "named_numbers", "number", "pair_lines"]

_LISTED = 6  # parts of a number of many that are listed
_SHOWN = 12  # places of a data set that are shown


def pair_lines(pair: Pair) -> list[str]:
    """Both data sets as lines of text, and where they differ if they are large."""
    return [
        f"    pair {pair.name!r}:",
        f"      record    {_data(pair.record)}",
        f"      neighbour {_data(pair.neighbour)}",
        *_difference(pair),
    ]


def _difference(pair: Pair) -> list[str]:
    """Where the sides differ, if they are too large to be shown whole."""
    record, other = _dense(pair.record), _dense(pair.neighbour)
    if max(record.size, other.size) <= _SHOWN:
        return []
    if record.shape != other.shape:
        return [f"      of shapes {record.shape} and {other.shape}"]
    axes = ("place",) if record.ndim == 1 else ("row", "column")
    places = [
        ", ".join(f"{axis} {at}" for axis, at in zip(axes, place, strict=False))
        + f": {record[tuple(place)]} and {other[tuple(place)]}"
        for place in np.argwhere(record != other)
    ]
    more = f"; and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return [f"      differ at {'; '.join(places[:_LISTED])}{more}"]


def _data(data: Any) -> str:
    values = _dense(data)
    with np.printoptions(threshold=_SHOWN, edgeitems=4, floatmode="unique"):
        return " ".join(str(values).split())


def _dense(data: Any) -> NDArray[Any]:
    try:
        return np.asarray(data.toarray() if is_sparse(data) else data)
    except ValueError:  # lists of different lengths
        return np.array(data, dtype=object)


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


def jsonable(value: Any) -> Any:
    """The value by JSON's own types; infinities, exact fractions and the rest as strings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: jsonable(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): jsonable(each) for name, each in value.items()}
    if is_sparse(value) or isinstance(value, np.ndarray | np.generic):
        return jsonable(_dense(value).tolist())
    if isinstance(value, list | tuple):
        return [jsonable(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
