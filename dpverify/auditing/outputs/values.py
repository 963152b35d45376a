"""What an output says: any Python value, taken apart into numbers and words that have names.

An output is read as soon as it is released, into what nothing can change any more, so that a
mechanism that hands out one list again and again is audited by what it held each time. Numbers,
arrays of them and sets stay as they are; of everything else there is a `Value`, whose leaves are

- *numbers*: ``output[2]``, ``output['age']``, ``output.coef_``, ``len(output)``, and numbers that
  stand in a text. A whole number beyond 2⁵³ has its bits apart, 32 by 32, a fraction its numerator
  and denominator, a decimal its exponent;
- *words*: text (where a number stands it has ``#``, and the length is a number; the characters at
  both ends are a block), None, NaN, −0, a type that has no parts;
- *blocks*: arrays of more numbers than are named one by one.

They are collected by `dpverify.auditing.outputs.reader`, which knows what Python values are made
of, into `dpverify.auditing.outputs.leaves`. One word, the structure, tells the types of all parts,
and what pickle would write beside them is read too (`dpverify.auditing.outputs.beside`): what
`type`, `repr` or `==` tells apart, leaves do. An exception is a value too: its type, its message as
text, and what came with it.

Everything is a function of the output alone: not of others that were drawn with it, nor of where it
lies in memory. Hence to look at leaves is post-processing, whatever the outputs of other draws are.
"""

from __future__ import annotations

from collections.abc import (
    Collection,
    Hashable,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.outputs.beside import has_nothing_beside
from dpverify.auditing.outputs.frames import read_frame
from dpverify.auditing.outputs.leaves import MOST, PLACE, Leaf, cut, said
from dpverify.auditing.outputs.reader import DEPTH, Reader, alike, made_with, name_of
from dpverify.errors import PASSING, DrawError
from dpverify.visible import raised

__all__ = ["Value", "kept", "objects", "types_of", "value_of"]

_ALONE = frozenset((float, int, bool, np.float64))  # numbers that can have nothing beside them
_DOUBLES = frozenset((float, np.float64))
_NUMBERS = (float, int, np.number, np.bool_)
_FRAMES = frozenset({"DataFrame", "Series"})
_MEMBERS = (str, bytes, int, np.generic)  # of sets that are kept
_APART = frozenset((str, bytes, int))  # types of which no two have equal members


@dataclass(frozen=True, slots=True)
class Value:
    """One output, taken apart.

    Attributes
    ----------
    leaves : name and number, word or block of each part; a name may come more than once
    structure : the types of all parts; of an exception that was raised, its own
    raised : the exception and its message, as people read it; empty if none was raised
    raw : the output itself, where it is an array of numbers or a set; else None
    """

    leaves: tuple[tuple[str, Leaf], ...]
    structure: str
    raised: str = ""
    raw: Any = field(default=None, compare=False)

    @property
    def cut(self) -> bool:
        """Whether some parts have no leaves of their own."""
        return len(self.leaves) > MOST + 1

    def with_leaves(self, leaves: tuple[tuple[str, Leaf], ...]) -> Value:
        """Of the same structure."""
        return Value(leaves, self.structure)

    @classmethod
    def of_raised(cls, error: BaseException) -> Value:
        """An exception that came instead of an output."""
        told = PLACE.sub("", raised(error))
        reader = Reader()
        reader.word("structure", f"raises {type(error).__name__}")
        reader.text("message", said(error, str))
        made = made_with(type(error))
        held: dict[Any, Any] = {**dict(enumerate(error.args)), **made, **vars(error)}
        values = {key: each for key, each in held.items() if not isinstance(each, str)}
        with suppress(DrawError):  # of what can't be read: the message stays
            reader.word("types of attributes", reader.walk(values, "attributes", DEPTH))
        reader.beside("the exception", error)
        reader.causes("cause", error)
        return cls((*reader.leaves, *reader.by_place), f"raises {type(error).__name__}", told)


def kept(output: Any) -> Any:
    """An output as it is now: numbers, lists, tuples and arrays of them, a set, or a `Value`."""
    kind = type(output)
    if kind in _ALONE:
        return output
    if kind is np.ndarray:
        if output.dtype.kind in "biuf":
            return output.copy(order="K")
        if output.dtype == object and output.size == 1:  # of an adapter
            return kept(output.item())
    if _is_number(output):
        return output
    if kind in (set, frozenset) and all(isinstance(each, _MEMBERS) for each in output):
        return output.copy()
    if type(output).__name__ in _FRAMES and type(output).__module__.partition(".")[0] == "pandas":
        return read_frame(output, value_of)
    numbers = _numbers(output)
    return value_of(output) if numbers is None else numbers


def _is_number(output: Any) -> bool:
    """Whether it is one, and says nothing beside it."""
    return isinstance(output, _NUMBERS) and not getattr(output, "__dict__", None)


def _of_plain_numbers(parts: Collection[Any]) -> bool:
    """Whether all parts are numbers of types that can have nothing beside them."""
    return _ALONE.issuperset(map(type, parts))


def types_of(output: Any) -> Hashable:
    """The types of what `kept` gave and of its parts, with the shapes of its arrays."""
    kind: Any = type(output)
    if kind is np.ndarray:
        return kind, output.dtype, output.shape
    if kind in (list, tuple):
        return kind, tuple(map(type if _of_plain_numbers(output) else types_of, output))
    if kind in (set, frozenset):
        return kind, frozenset(map(type, output)) - _APART
    types: Hashable = kind
    return types


def value_of(output: Any, types: Any = None) -> Value:
    """Take apart what `kept` gave, or any output; the same for the same output, however it came.

    Parameters
    ----------
    output : one, or an entry of an array of several that are numbers
    types : those of the output, where it is such an entry
    """
    if isinstance(output, Value):
        return output
    reader = Reader()
    numbers = _array(output)
    raw: Any = numbers
    if numbers is not None:
        structure = _told(types or types_of(output))
        structure += ", NaN among them" if np.isnan(numbers).any() else ""
        reader.array("output", numbers)
    else:
        try:
            structure = reader.walk(output, "output", DEPTH)
        except (DrawError, *PASSING):
            raise
        except BaseException as error:  # whatever an object says to being read
            raise DrawError(f"What is released can't be read: {raised(error)}.") from error
        if not has_nothing_beside(output, DEPTH):
            reader.beside("output", output)
        raw = output if isinstance(output, set | frozenset) else None
    told = reader.leaves, reader.by_place, reader.rest
    leaves = (("structure", cut(structure)), *chain.from_iterable(told))
    return Value(leaves, structure, raw=raw)


@lru_cache(maxsize=1024)
def _told(types: Any) -> str:
    """Types in words."""
    match types:
        case (kind, dtype, shape):
            return f"{dtype} array of shape {shape}"
        case (kind, parts):
            return f"{kind.__name__}[{alike(map(_told, parts))}]"
    return name_of(types)


def objects(outputs: Sequence[Any]) -> NDArray[Any]:
    """An array of shape (draws,) that holds them as they are."""
    array = np.empty(len(outputs), dtype=object)
    array[:] = outputs
    return array


def _numbers(output: Any, depth: int = DEPTH) -> Any:
    """A copy of lists and tuples of nothing but numbers; None for anything else."""
    if _is_number(output):
        return output
    if type(output) is np.ndarray and output.dtype.kind in "biuf":
        return output.copy(order="K")
    if type(output) not in (list, tuple) or depth == 0:
        return None
    if _of_plain_numbers(output):
        return output[:]
    parts = []
    for part in output:
        number = _numbers(part, depth - 1)
        if number is None:
            return None
        parts.append(number)
    return type(output)(parts)


def _array(output: Any) -> NDArray[Any] | None:
    """What is nothing but numbers, and of one shape, as an array; of doubles where one is."""
    if _numbers(output) is None:
        return None
    with suppress(ValueError):  # ragged
        array = np.array(output)
        if array.dtype.kind in "biu" or (array.dtype.kind == "f" and _exactly(output, array)):
            return array
    return None


def _exactly(output: Any, array: NDArray[Any]) -> bool:
    """Whether doubles hold what the output says."""
    if type(output) in (list, tuple) and _DOUBLES.issuperset(map(type, output)):  # nearly all
        return True
    parts = objects(_flattened(output))
    with np.errstate(over="ignore"):  # of a longdouble
        doubles = array.astype(float).ravel().tolist()
    return all(
        part != part or part == number  # noqa: PLR0124 - NaN
        for part, number in zip(parts.tolist(), doubles, strict=True)
    )


def _flattened(output: Any) -> list[Any]:
    if isinstance(output, list | tuple):
        if _of_plain_numbers(output):
            return list(output)
        return [number for part in output for number in _flattened(part)]
    return output.ravel().tolist() if isinstance(output, np.ndarray) else [_plain(output)]


def _plain(number: Any) -> Any:
    """Python's own number, which it compares with others exactly."""
    return number.item() if isinstance(number, np.integer) else number
