"""Marks in a mechanism's own code, which the frozen-outputs audit reads.

Outside of such an audit they do nothing: a marked function is called as it stands.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args

from dpverify.data.domain import LARGEST
from dpverify.enclosure import Real, rational
from dpverify.errors import require, require_known, require_text
from dpverify.guarantee import PrivacyCurve, is_curve

__all__ = ["Declaration", "ensure_equal", "primitive", "taped"]

Norm = Literal["l1", "l2", "linf"]
_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a primitive's author says of it: see `primitive`."""

    name: str
    sensitivity: Real
    norm: Norm
    noise: PrivacyCurve


class _Tape(Protocol):
    """What records or replays the calls of a run."""

    def marked(
        self,
        declared: Declaration,
        call: Callable[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """Call a marked primitive, or give what it gave."""

    def fact(self, name: str, value: Any) -> None:
        """Note what must not depend on the data."""


_running: list[_Tape] = []


@contextmanager
def taped(tape: _Tape) -> Iterator[None]:
    """Run with this tape; only one runs at a time."""
    _running.append(tape)
    try:
        yield
    finally:
        _running.pop()


def primitive(*, sensitivity: Real, noise: PrivacyCurve, norm: Norm = "l1") -> Callable[[_F], _F]:
    """Mark a function as one primitive, for the frozen-outputs audit.

    It adds noise to its first argument (of a method, the first after `self` or `cls`), a number or
    an array, or is otherwise private in it. The mark declares that, between neighbours and given
    the same outputs of all primitives so far, this argument moves by no more than its sensitivity,
    and that its output is then as private as `noise` says. What it calls inside isn't looked at, so
    that a routine whose analysis isn't call by call (sparse vector, noisy maximum) is one primitive
    with its own claim.

    Parameters
    ----------
    sensitivity : real
        The most by which the first argument moves.
    noise : PrivacyCurve
        What one call guarantees at that sensitivity.
    norm : "l1", "l2" or "linf"
        By which the move is measured.

    Examples
    --------
    >>> import dpverify as dpv
    >>> @primitive(sensitivity=1, noise=dpv.Laplace(scale=2))
    ... def noisy(total, rng):
    ...     return total + rng.laplace(scale=2)
    """
    most = rational("sensitivity", sensitivity)
    require(0 <= most <= LARGEST, "sensitivity", sensitivity, "at least 0, and at most 2**100")
    require_known("norm", norm, get_args(Norm))
    require(is_curve(noise), "noise", noise, "a privacy curve, as dpv.Laplace(scale=2)")

    def mark(function: _F) -> _F:
        declared = Declaration(
            name=function.__qualname__, sensitivity=sensitivity, norm=norm, noise=noise
        )

        names = [*inspect.signature(function).parameters, ""]
        skipped = int(names[0] in ("self", "cls"))
        first = names[skipped]

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            if not _running:
                return function(*arguments, **named)
            owner, arguments = arguments[:skipped], arguments[skipped:]
            if not arguments and first in named:
                arguments = (named.pop(first),)
            call = functools.partial(function, *owner)
            return _running[-1].marked(declared, call, arguments, named)

        return called  # type: ignore[return-value]

    return mark


def ensure_equal(name: str, value: _T) -> _T:
    """Say, inside a mechanism, that a value must not depend on the data; returns the value.

    The frozen-outputs audit compares it between neighbours, given the same outputs so far: columns,
    categories, keys, shapes, row counts that are public, names of files.

    Parameters
    ----------
    name : str
        For the report.
    value : anything
        Arrays, containers, text and numbers are compared by what they hold.

    Examples
    --------
    >>> ensure_equal("columns", ["age", "income"])
    ['age', 'income']
    """
    require_text("name", name)
    if _running:
        _running[-1].fact(name, value)
    return value
