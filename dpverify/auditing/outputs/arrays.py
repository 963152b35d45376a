"""Outputs of many draws as one array, and what can be said of all of them.

An array of numbers where all outputs are numbers of one type and shape; of sets; or of `Value`
objects for anything else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.outputs.foreign import draw_error
from dpverify.auditing.outputs.values import Value, objects, types_of, value_of
from dpverify.privacy import Mechanism, Pair

__all__ = [
    "Drawn",
    "always_raises",
    "as_numbers",
    "joined",
    "raised_in",
    "require_numbers",
    "stacked",
    "valued",
    "whole",
]

_STRUCTURES = 5  # most frequent in a chunk, of which each may show that state is kept
_SUSPECT = 1e-8  # probability with which one of them shows it by chance


class Drawn(NamedTuple):
    """Outputs of one side.

    Attributes
    ----------
    outputs : of shape (draws, …), as `sample_pair` gives them
    types : of each, where outputs are numbers
    words : random words that each asked for, where they were made one at a time
    """

    outputs: NDArray[Any]
    types: Hashable
    words: list[int]

    @classmethod
    def of(
        cls, outputs: list[Any], mechanism: Mechanism, pair: Pair, side: int, words: list[int]
    ) -> Drawn:
        """One array of them; of values where they are of several types."""
        types = set(map(types_of, outputs))
        if len(types) > 1:
            outputs = [value_of(output) for output in outputs]
        return cls(stacked(outputs, mechanism, pair, side), types.pop(), words)

    def values(self) -> list[Value]:
        """Each output by itself."""
        return [value_of(output, self.types) for output in self.outputs]


def joined(
    chunks: Sequence[Drawn], like: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Chunks of both sides in turn: an array for each side, of values if they are of two kinds.

    Parameters
    ----------
    chunks : of record and neighbour in turn
    like : as for `sample_pair`
    """
    sides = chunks[0::2], chunks[1::2]
    kinds = {(chunk.types, chunk.outputs.dtype, chunk.outputs.shape[1:]) for chunk in chunks}
    if len(kinds) == 1 and (like is None or not valued(like)):
        own, other = (np.concatenate([chunk.outputs for chunk in side]) for side in sides)
    else:
        own, other = (objects([v for chunk in side for v in chunk.values()]) for side in sides)
    return own, other


def stacked(outputs: list[Any], mechanism: Mechanism, pair: Pair, side: int) -> NDArray[Any]:
    """One array of all outputs of a side: of numbers, of sets, or of values.

    Raises
    ------
    DrawError
        If they change their structure once and for all.
    """
    types = set(map(type, outputs))  # as `kept` gave them
    if types <= {set, frozenset}:
        return objects(outputs)
    if types.isdisjoint({set, frozenset, Value}):
        with suppress(ValueError):  # ragged
            numbers = as_numbers(outputs)
            if numbers.dtype.kind in "biuf" and numbers.size and not np.isnan(numbers).any():
                return numbers
    values = [value_of(output) for output in outputs]
    turned = _turned([value.structure for value in values])
    if turned:
        way = " Give the audit a function that makes it anew, with nothing kept, and releases once."
        reason = f"keeps state: from some release on it gave {turned}"
        first = next((value.raised for value in values if value.raised), "")
        raise draw_error(
            mechanism, pair, reason + (f" ({first})" if first else ""), side, "." + way
        )
    return objects(values)


def _turned(structures: Sequence[str]) -> str:
    """How outputs changed once and for all, in words; empty where draws may well come so.

    Independent draws come in any order with the same probability. Said with probability at most
    1e-8 for each of the most frequent structures: where all that have it come first, or all come
    last.
    """
    draws = len(structures)
    for structure, count in Counter(structures).most_common(_STRUCTURES):
        has = [each == structure for each in structures]
        changes = sum(a != b for a, b in pairwise(has))
        if changes == 1 and math.comb(draws, count) > 2 / _SUSPECT:
            after = structures[-1]
            return f"{after} where it had given {structures[0]}"
    return ""


def as_numbers(outputs: Sequence[Any]) -> NDArray[Any]:
    """One array of all; of objects where doubles or 64 bits would hold other numbers."""
    numbers = np.array(outputs)
    if numbers.dtype == np.uint64 and numbers.size:  # beside which signed ones become doubles
        return numbers.astype(np.int64 if numbers.max() < 2**63 else object)
    if numbers.dtype.kind == "f":
        mixed = set(map(type, outputs)) != {float}
        rounded = mixed and any(float(n) != n for output in outputs for n in _whole(output))
        with np.errstate(over="ignore"):  # of a longdouble
            doubles = numbers.astype(np.float64) if numbers.dtype.itemsize > 8 else numbers
        if rounded or not np.array_equal(doubles, numbers, equal_nan=True):
            return np.array(outputs, dtype=object)
    return numbers


def _whole(output: Any) -> Iterator[int]:
    """Whole numbers in an output, which doubles beside them make doubles."""
    if type(output) is float or (type(output) is np.ndarray and output.dtype.kind == "f"):
        return  # nearly all outputs, sooner than by the patterns
    match output:
        case list() | tuple() if set(map(type, output)) != {float}:
            for part in output:
                yield from _whole(part)
        case np.ndarray() if output.dtype.kind in "iu":
            yield from output.ravel().tolist()
        case int() | np.integer():
            yield int(output)


def whole(outputs: NDArray[Any]) -> bool:
    """Whether all of them are whole numbers, by type or by value.

    Doubles beyond 2⁵³ are all whole: of those alone, nothing says that they were meant to be.
    """
    if valued(outputs):  # also of several types
        raws = (output.raw for output in outputs)
        return all(isinstance(raw, np.ndarray) and whole(raw) for raw in raws)
    if outputs.dtype.kind != "f":
        return outputs.dtype.kind in "biu"
    with np.errstate(over="ignore"):  # of a longdouble
        doubles = outputs.astype(np.float64)
    return bool(np.all(outputs == np.floor(outputs)) and np.any(np.abs(doubles) < 2**53))


def valued(outputs: NDArray[Any]) -> bool:
    """Whether they are of several types, or of such as have parts."""
    return outputs.dtype == object and isinstance(outputs[0], Value)


def always_raises(outputs: NDArray[Any]) -> bool:
    """Whether all of them are exceptions."""
    return outputs.dtype == object and all(getattr(each, "raised", "") for each in outputs)


def raised_in(record: NDArray[Any], neighbour: NDArray[Any]) -> str:
    """What was raised, and how often, in a sentence; empty if nothing was."""
    counts = [
        Counter(output.raised for output in outputs if isinstance(output, Value) and output.raised)
        if outputs.dtype == object
        else Counter[str]()
        for outputs in (record, neighbour)
    ]
    both = (counts[0] + counts[1]).most_common()
    if not both:
        return ""
    often = f"{counts[0].total()} of {len(record)} times on the record"
    often += f" and {counts[1].total()} of {len(neighbour)} on the neighbour"
    others = f", and {len(both) - 1} other messages" if len(both) > 1 else ""
    return f"It raised {often}: {both[0][0]}{others}."


def require_numbers(
    outputs: NDArray[Any], mechanism: Mechanism, pair: Pair, side: int
) -> NDArray[Any]:
    """Outputs as a score for arrays of one shape takes them, or sets.

    Raises
    ------
    DrawError
        If they are others.
    """
    if not valued(outputs):
        return outputs
    with suppress(ValueError):  # of several shapes, or none
        numbers = np.array([output.raw for output in outputs])
        if numbers.dtype.kind in "biuf" and not np.isnan(numbers).any():
            return numbers
    raising = next((value.raised for value in outputs if value.raised), "")
    structures = dict.fromkeys(value.structure for value in outputs)
    said = f"raised {raising}" if raising else f"released {' and '.join(structures)}"
    way = " Its likelihood ratio takes arrays of numbers, all of one shape, without NaN."
    raise draw_error(mechanism, pair, said, side, way)
