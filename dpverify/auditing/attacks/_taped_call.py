"""Taped calls for noise, the noise before its input is added, and digests of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping, ValuesView
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks._recording import placed
from dpverify.auditing.outputs.journal import fingerprint
from dpverify.auditing.targets.primitives import Declaration
from dpverify.errors import Interruption

__all__ = ["REUSED", "Diverged", "Noise", "TapedCall", "digest", "measured"]

REUSED = "noise that is used twice"
"""Of a call whose noise is added to something once more."""

Array = NDArray[np.float64]


class Diverged(Interruption):
    """A replay asks for something else than was recorded."""


@dataclass(slots=True)
class TapedCall:
    """One call for noise.

    Attributes
    ----------
    kind : "normal", "laplace", "choice", "marked", a library's name, or a method's
    settings : what must be the same in both runs, in words
    shape : of additive noise
    line : of the mechanism, file and number
    scales : of additive noise as it was asked for, flat
    factors, used : by which it was multiplied before something was added to it, and whether it was
    inputs : numbers that may differ between runs, whole ones exactly; None where they can't be
        measured
    output, raised : what is frozen
    sums : of `Noise`, by the places that were added to
    again : what its noise was added to once more
    raw : why what depends on it isn't measured, or ""
    declared : of a marked primitive
    loss : of a library's call: how private it is where its input moves so far
    number : its place among the calls of its run, from 1
    differences : of its run, why it can't be a replay
    """

    kind: str
    settings: str
    line: tuple[str, int]
    shape: tuple[int, ...] = ()
    scales: Array = field(default_factory=lambda: np.zeros(0))
    factors: Array = field(default_factory=lambda: np.zeros(0))
    used: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    inputs: NDArray[Any] | None = None
    output: Any = None
    raised: Exception | None = None
    sums: dict[tuple[int, ...], Any] = field(default_factory=dict)
    again: list[Any] = field(default_factory=list)
    raw: str = ""
    declared: Declaration | None = None
    loss: Any = None
    number: int = 0
    differences: list[str] = field(default_factory=list)

    def differs(self, said: str) -> Diverged:
        """What ends the replay; it is noted, since the mechanism may catch it."""
        self.differences.append(said)
        return Diverged(said)

    @property
    def place(self) -> str:
        """The line, for a person."""
        return placed(self.line)


class Noise:
    """Noise that was drawn, until something is added to it.

    Parameters
    ----------
    call, before : which it belongs to, and the recorded one that it replays
    places : of the call's numbers, in its own shape
    factor : by which it was multiplied since
    """

    __array_priority__ = 1000

    def __init__(
        self, call: TapedCall, before: TapedCall | None, places: NDArray[Any], factor: float
    ) -> None:
        self._call, self._before = call, before
        self._places, self._factor = places, factor

    def plain(self) -> Any:
        """The number itself, whose input is its location alone."""
        self._call.raw = self._call.raw or "noise that nothing was added to at once"
        return self._value()

    def _value(self) -> Any:
        drawn, _ = self._call.output
        value = drawn[self._places.ravel()].reshape(self._places.shape) * self._factor
        return value if np.ndim(value) else float(value)

    def _add(self, other: Any, sign: float = 1.0) -> Any:
        """Freeze the sum of a number and sign·noise; what doesn't fit its shape is plain."""
        key = tuple(self._places.ravel().tolist())
        call = self._call
        taken = bool(call.used[list(key)].any())
        values = measured(other)
        if isinstance(other, Noise) or taken or values is None or np.shape(other) != self.shape:
            if taken:
                call.again.append(values)
                call.raw = REUSED
            plain = other.plain() if isinstance(other, Noise) else other
            return plain + sign * self.plain()
        where = list(key)
        if call.inputs is not None:
            call.inputs[where] = call.inputs[where] * sign * self._factor + values
        call.factors[where] = abs(self._factor)
        call.used[where] = True
        old = self._before
        if old is None:
            total = other + sign * self._value()
        else:
            if key not in old.sums:
                raise call.differs(f"the noise at {call.place} is used in two ways")
            if not np.array_equal(old.factors[where], call.factors[where]):
                raise call.differs(
                    f"the noise at {call.place} has a scale that depends on the data"
                )
            total = old.sums[key]
        call.sums[key] = total
        return deepcopy(total)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if method == "__call__" and len(inputs) == 2 and set(named) <= {"out"}:
            left, right = inputs
            other = left if right is self else right
            signs = {np.add: 1.0, np.subtract: -1.0}
            if ufunc in signs and (ufunc is np.add or right is self):
                total = self._add(other, signs[ufunc])
                (out,) = named.get("out", (None,))
                if out is None:
                    return total
                out[...] = total
                return out
            if ufunc is np.multiply and not named:
                return self * other
        plain = [x.plain() if isinstance(x, Noise) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **named)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(self.plain(), dtype=dtype)

    def __add__(self, other: Any) -> Any:
        return self._add(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._add(-other)

    def __rsub__(self, other: Any) -> Any:
        return self._add(other, -1.0)

    def __mul__(self, factor: Any) -> Any:
        number = isinstance(factor, int | float | np.number)
        if not number or self._call.sums:
            return self.plain() * factor
        return Noise(self._call, self._before, self._places, self._factor * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        if isinstance(divisor, int | float | np.number):
            return Noise(self._call, self._before, self._places, self._factor / divisor)
        return self.plain() / divisor

    def __neg__(self) -> Any:
        return Noise(self._call, self._before, self._places, -self._factor)

    def __getitem__(self, place: Any) -> Any:
        if not self.shape:
            raise TypeError("a number has no items")
        return Noise(self._call, self._before, np.asarray(self._places[place]), self._factor)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers."""
        return self._places.shape

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):
            raise AttributeError(name)
        return getattr(np.float64(self.plain()) if not self.shape else self.plain(), name)


def _to_plain(name: str) -> Callable[..., Any]:
    def method(self: Noise, *arguments: Any) -> Any:
        plain = self.plain()
        others = (x.plain() if isinstance(x, Noise) else x for x in arguments)
        return getattr(plain, name)(*others)

    return method


for _name in (
    *("__float__", "__int__", "__round__", "__floor__", "__ceil__", "__trunc__", "__abs__"),
    *("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__bool__", "__format__"),
    *("__rtruediv__", "__pow__", "__floordiv__", "__mod__", "__str__"),
):
    setattr(Noise, _name, _to_plain(_name))


def digest(value: Any) -> str:
    """Of what a value holds: equal for equal numbers, containers and tables, whatever their type.

    Sets and mappings have no order.
    """
    return fingerprint(_canonical(value))


def _canonical(value: Any) -> Any:
    if isinstance(value, Noise):
        value = value.plain()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | bytes | type):
        return value
    if isinstance(value, int | float):
        return f"number {int(value) if value == value // 1 else value!r}"
    if isinstance(value, set | frozenset | KeysView):
        return ["set", *sorted(map(digest, value))]
    if isinstance(value, Mapping):
        return ["mapping", *sorted(digest([name, each]) for name, each in value.items())]
    if hasattr(value, "to_frame"):  # of one column
        value = value.to_frame()
    if hasattr(value, "column_names") and hasattr(value, "to_pydict"):  # pyarrow
        columns = value.to_pydict().values()
        return ["table", _canonical([value.column_names, value.schema.types, *columns])]
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        table = [list(value.columns), list(value.dtypes)]
        # Row by row, as an array of all would be of doubles.
        rows = value.itertuples(name=None) if hasattr(value, "itertuples") else value.rows()
        return ["table", _canonical(table), _canonical([*rows])]
    if isinstance(value, list | tuple | range | ValuesView):
        return [_canonical(each) for each in value]
    if hasattr(value, "__array__"):
        array = value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
        return ["array", list(array.shape), _canonical(array.ravel().tolist())]
    return value


def measured(value: Any) -> NDArray[Any] | None:
    """Numbers of an input, flat: doubles, or Python's whole numbers; None where it has none."""
    if isinstance(value, Noise):
        return None
    try:
        numbers = np.asarray(value)
        exact = np.asarray(value, dtype=object).ravel()
    except ValueError:
        return None
    if exact.size and all(isinstance(each, int | np.integer) for each in exact):
        return np.array([int(each) for each in exact], dtype=object)
    return numbers.astype(np.float64).ravel() if numbers.dtype.kind in "biuf" else None
