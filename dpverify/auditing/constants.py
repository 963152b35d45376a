"""Constants that a mechanism's code holds: where it branches, neighbours may differ.

`if age == 42` is found by no drawn pair in a hundred, and by each that begins with 42. So the
constants of the function's bytecode are candidate values, with those of functions inside it, of
what it closes over, of its defaults, and of what it names in its own module. They are proposals
alone: a constant that means something else costs a candidate.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from types import CodeType, FunctionType
from typing import Any

__all__ = ["constants_of", "names_of"]

_MOST = 64  # constants
_LONGEST = 100  # characters of a text that is one


def constants_of(mechanism: Any) -> tuple[Any, ...]:
    """Numbers, text and dates of the code of a function or a mechanism, each once, in order.

    Parameters
    ----------
    mechanism : a callable, or an object with `release`; one that has no bytecode has none

    Examples
    --------
    >>> def suspicious(data):
    ...     return len(data) > 42 or "key" in data
    >>> constants_of(suspicious)
    (42, 'key')
    """
    found: dict[str, Any] = {}
    for value in _walked(mechanism, set()):
        if _plain(value) and len(found) < _MOST:
            found.setdefault(repr(value), value)
    return tuple(found.values())


def _walked(value: Any, seen: set[int]) -> Iterator[Any]:
    """Whatever plain values are to be found from here."""
    if _plain(value):
        yield value
        return
    if id(value) in seen or len(seen) > _MOST:
        return
    seen.add(id(value))
    for part in _parts(value):
        yield from _walked(part, seen)


def _parts(value: Any) -> Iterator[Any]:
    match value:
        case FunctionType():
            yield from _of_function(value)
        case CodeType(co_consts=(str() as text, *rest)) if " " in text:  # it documents
            yield from rest
        case CodeType():
            yield from value.co_consts
        case functools.partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case Mapping():
            yield from (*value.keys(), *value.values())
        case list() | tuple() | set() | frozenset():
            yield from value
        case _:
            yield getattr(value, "__func__", None) or _code_of(value)


def _of_function(function: FunctionType) -> Iterator[Any]:
    yield function.__code__
    yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    for name in names_of(function.__code__):
        held = function.__globals__.get(name)
        own = getattr(held, "__module__", None) == function.__module__
        if own or _plain(held) or isinstance(held, list | tuple | set | frozenset | dict):
            yield held


def names_of(code: CodeType) -> Iterator[str]:
    """Names of globals and of attributes, in code and in what is defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)


def _code_of(value: Any) -> Any:
    """The function that is run of an object: its own, of a wrapper, or a class's method."""
    for name in ("function", "__wrapped__", "release", "__call__", "randomise", "fit"):
        held = inspect.getattr_static(value, name, None)
        if held is not None and not isinstance(held, property):
            held = getattr(value, name, None)
        if isinstance(held, FunctionType | functools.partial) or hasattr(held, "__func__"):
            return held
    return None


def _plain(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return len(value) <= _LONGEST
    return isinstance(value, date) or (isinstance(value, int | float) and math.isfinite(value))
