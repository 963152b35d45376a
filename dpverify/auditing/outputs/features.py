"""Numbers made of outputs, of whatever kind these are.

Features are learned from training outputs, of both sides together, and then a fixed function of one
output. What is counted are other draws, so to look at their features is post-processing, which
can't make a private release less private. So whatever was learned (which texts, keys and lengths
there are, and how many of them have a column), an audit's level holds, and a bad choice costs power
alone. What only a counted output says, a key that no training draw had, is left out.

- *numbers*, arrays of one shape: flattened into columns;
- *bits*: packed bytes, eight columns each;
- *sets*: an indicator for each of the most frequent items, and the size;
- *values*, whatever else there is (`dpverify.auditing.outputs.values`), or outputs of several of
  these kinds: for each frequent leaf its number; whether it is there at all, if it isn't always;
  whether it is one of the words, or of the numbers that come again and again, that were seen most.
  Of more leaves than have columns, and of longer arrays, those that differ most between the sides.

Numbers whose low digits were made have remainders too (`dpverify.auditing.outputs.digits`). An
output that isn't of the kind that all training outputs were has zeros, or no items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.formatting import bound
from dpverify.auditing.outputs.digits import Digits, digits
from dpverify.auditing.outputs.leaves import FARTHEST, Block, brought_near, far, inexact, low_bits
from dpverify.auditing.outputs.reader import PLACED
from dpverify.auditing.outputs.values import Value, value_of

__all__ = ["Features", "Matrix", "Truth", "features"]

Matrix = NDArray[Any]
"""Features of shape (draws, columns)."""

_ITEMS = 1000  # of sets, the most frequent
_LEAVES = 500  # of values, the most frequent
_LEAST = 2  # training outputs in which something came that has a column
_WORDS = 40  # of one leaf
_REPEATED = 4  # numbers of one leaf
_OFTEN = 5  # training outputs in which such a number came
_BESIDE = 64  # places that have columns for what doubles below 1e300 don't hold, of each kind
_COLUMNS = 400  # of values; fewer where there are many draws
_CELLS = 40_000_000  # of a matrix of values
_DISTINCT = 4_000_000  # numbers that are counted, of all leaves
_LARGE = 1e100  # whose square is a number


class Truth(str):
    """The name of a column of 0 and 1: what holds where it is 1."""

    __slots__ = ()


class Features(Protocol):
    """How outputs become a matrix."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        ...

    def matrix(self, outputs: NDArray[Any]) -> Matrix:
        """Features of shape (draws, columns) from outputs of shape (draws, …), all finite."""
        ...


def features(outputs: NDArray[Any], *, unpack: bool = True) -> Features:
    """The features of such outputs.

    Parameters
    ----------
    outputs : training outputs of shape (draws, …), or sets or `Value` objects of shape
        (draws,); the first half of one side, the second of the other
    unpack : whether bytes are eight bits each, the first the highest; else they are numbers
    """
    plain = _plain(outputs, unpack=unpack)
    if isinstance(plain, _Sets) or outputs.dtype.kind in "biu":
        return plain
    made = digits(plain.matrix(outputs))
    return _WithDigits(plain=plain, digits=made) if made.columns else plain


def _plain(outputs: NDArray[Any], *, unpack: bool) -> Features:
    """Without remainders."""
    if outputs.dtype == object:
        if all(isinstance(output, set | frozenset) for output in outputs):
            counts = Counter(chain.from_iterable(outputs.tolist()))
            if 2 * sum(count > 1 for count in counts.values()) >= len(counts):
                return _Sets(items=_items(counts))
            # Nearly all items are new each time, as noisy numbers are.
        return _Values.of([value_of(output) for output in outputs])
    shape = outputs.shape[1:]
    if unpack and outputs.dtype == np.uint8:
        return _Numbers(kind="bits", shape=shape)
    flat = outputs.reshape(len(outputs), -1)
    beside = {name: places for name, part in _PARTS.items() if (places := part.places(flat))}
    return _Numbers(kind="numbers", shape=shape, beside=beside)


class _Part(NamedTuple):
    """What a double of at most 1e300 doesn't hold of a number.

    Attributes
    ----------
    there : of numbers, which have it
    of : the part of each
    kinds : of the arrays that may have it
    most : columns; None for as many as there are places, of what is half of the number
    """

    there: Callable[[NDArray[Any]], NDArray[np.bool_]]
    of: Callable[[NDArray[Any]], NDArray[Any]]
    kinds: str
    most: int | None = None

    def places(self, flat: NDArray[Any]) -> tuple[int, ...]:
        """Columns that have it, in order; of many, those in which the two halves differ most."""
        if flat.dtype.kind not in self.kinds:
            return ()
        places = np.flatnonzero(self.there(flat).any(axis=0))
        if self.most and places.size > self.most:
            parts = np.clip(self.of(flat[:, places]).astype(np.float64), -FARTHEST, FARTHEST)
            parts /= max(np.abs(parts).max(), 1.0)  # so that squares are numbers
            apart = _apart(*map(_Moments.of, np.array_split(parts, 2)))
            places = np.sort(places[np.argsort(-apart, kind="stable")[: self.most]])
        return tuple(places.tolist())

    def columns(self, flat: NDArray[Any], places: tuple[int, ...]) -> NDArray[Any]:
        """The parts of these columns; zeros where they can't have it."""
        chosen = flat[:, places]
        return self.of(chosen) if flat.dtype.kind in self.kinds else np.zeros(chosen.shape)


def _negative_zeros(numbers: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((numbers == 0) & np.signbit(numbers))


_PARTS: Mapping[str, _Part] = {
    "is -0.0": _Part(_negative_zeros, _negative_zeros, "f", _BESIDE),
    "mod 2**32": _Part(inexact, low_bits, "iu"),
    "/ 2**64": _Part(far, brought_near, "f", _BESIDE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """Arrays of one shape; with columns for what doubles don't hold, in places where that came."""

    kind: Literal["numbers", "bits"]
    shape: tuple[int, ...]
    beside: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        shape = self.shape
        if self.kind == "bits":
            shape = (*shape[:-1], 8 * (shape[-1] if shape else 1))
        if shape[:1] == (1,):
            shape = shape[1:]  # a data set of one row
        word = "bit" if self.kind == "bits" else "output"
        names = [word + (str(list(place)) if place else "") for place in np.ndindex(*shape)]
        beside = [f"{names[place]} {part}" for part, at in self.beside.items() for place in at]
        return (*names, *(Truth(each) if each.endswith("-0.0") else each for each in beside))

    def matrix(self, outputs: NDArray[Any]) -> Matrix:
        if outputs.dtype == object or outputs.shape[1:] != self.shape:
            outputs = np.stack([self._fitting(output) for output in outputs])
        flat = outputs.reshape(len(outputs), -1)
        if self.kind == "bits":
            return np.unpackbits(flat.astype(np.uint8), axis=1)
        beside = [_PARTS[part].columns(flat, places) for part, places in self.beside.items()]
        numbers = np.column_stack([flat, *beside]) if beside else flat
        return np.clip(numbers.astype(np.float64), -FARTHEST, FARTHEST)

    def _fitting(self, output: Any) -> NDArray[Any]:
        """The output, or zeros if it isn't of this kind; of this output alone."""
        raw = value_of(output).raw
        fits = isinstance(raw, np.ndarray) and raw.shape == self.shape
        if self.kind == "bits":
            fits = fits and raw.dtype == np.uint8
        return np.nan_to_num(raw, posinf=np.inf) if fits else np.zeros(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithDigits:
    """Features, and remainders of some."""

    plain: Features
    digits: Digits

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.plain.names, *self.digits.names(self.plain.names))

    def matrix(self, outputs: NDArray[Any]) -> Matrix:
        plain = self.plain.matrix(outputs)
        return np.column_stack([plain, self.digits(plain)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sets:
    """Sets, by their items."""

    items: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (*(Truth(f"contains {item!r}") for item in self.items), "size of the set")

    def matrix(self, outputs: NDArray[Any]) -> Matrix:
        place = {item: column for column, item in enumerate(self.items)}
        counted = np.zeros((len(outputs), len(self.items) + 1))
        for row, output in enumerate(outputs):
            held = output.raw if isinstance(output, Value) else output
            if isinstance(held, set | frozenset):
                counted[row, [place[item] for item in held if item in place]] = 1
                counted[row, -1] = len(held)
        return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Where a leaf goes, None for what has no column; of an array these places of this shape."""

    present: int | None
    number: int | None
    words: Mapping[str, int]
    repeated: Mapping[float, int]
    shape: tuple[int, ...] | None
    places: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Any values, by their leaves."""

    names: tuple[str, ...]
    leaves: Mapping[str, _Columns]

    @classmethod
    def of(cls, values: list[Value]) -> _Values:
        """Learn which leaves there are, and what is frequent in them."""
        seen: dict[str, _Seen] = {}
        distinct = max(_DISTINCT // len(values[0].leaves), _WORDS)
        named = [name for name, _ in values[0].leaves]
        alike = all([name for name, _ in value.leaves] == named for value in values)
        by_place = {name for name in named if PLACED.search(name)} if alike else set()
        for row, value in enumerate(values):
            for name, leaf in value.leaves:
                if name in by_place:  # of keys that always come, which say as much
                    continue
                if name not in seen:
                    seen[name] = _Seen(distinct)
                seen[name].note(row, leaf, 2 * row >= len(values))
        most = min(_COLUMNS, max(_CELLS // len(values), _WORDS))
        crowded = len(seen) > most // 2

        def place(name: str) -> tuple[bool, float, int, str]:
            # The structure first: of events that show as much, scores prefer the first column's.
            told = seen[name].apart(len(values)) if crowded else 0.0
            return name != "structure", -told, -seen[name].rows, name

        # What stands in a place of a mapping is often what stands by its key.
        keyed = {each.said for name, each in seen.items() if not PLACED.search(name)}
        kept = (n for n, each in seen.items() if not PLACED.search(n) or each.said not in keyed)
        order = sorted(kept, key=place)
        names: list[str] = []
        leaves = {}
        for name in order[:_LEAVES]:
            if len(names) < most and seen[name].rows >= _LEAST:
                leaves[name] = seen[name].columns(name, len(values), names)
        return cls(names=tuple(names) or ("nothing",), leaves=leaves)

    def matrix(self, outputs: NDArray[Any]) -> Matrix:
        filled = np.zeros((len(outputs), len(self.names)))
        for row, output in zip(filled, outputs, strict=True):
            for name, leaf in value_of(output).leaves:
                columns = self.leaves.get(name)
                if columns is not None:
                    for column, number in _filled(columns, leaf):
                        row[column] = number
        return np.clip(filled, -FARTHEST, FARTHEST)


def _filled(columns: _Columns, leaf: Any) -> Iterator[tuple[Any, Any]]:
    if columns.present is not None:
        yield columns.present, 1.0
    if isinstance(leaf, Block):
        if columns.number is not None and leaf.shape == columns.shape:
            numbers = leaf.numbers[columns.places]
            yield slice(columns.number, columns.number + numbers.size), numbers
    elif isinstance(leaf, str):
        if leaf in columns.words:
            yield columns.words[leaf], 1.0
    else:
        if columns.number is not None and columns.shape is None:
            yield columns.number, leaf
        if leaf in columns.repeated:
            yield columns.repeated[leaf], 1.0


class _Seen:
    """What training outputs had in one leaf."""

    def __init__(self, distinct: int) -> None:
        self.rows, self.last = 0, -1
        self.distinct = distinct
        self.words: Counter[str] = Counter()
        self.numbers: Counter[float] = Counter()
        self.sides = _Moments(), _Moments()
        self.word_sides: Counter[tuple[bool, str]] = Counter()
        self.blocks: dict[tuple[int, ...], tuple[_Moments, _Moments]] = {}

    def note(self, row: int, leaf: Any, second: bool) -> None:
        self.rows += row != self.last
        self.last = row
        if isinstance(leaf, Block):
            shape = self.blocks.setdefault(leaf.shape, (_Moments(), _Moments()))
            shape[second].add(np.clip(leaf.numbers, -_LARGE, _LARGE))
        elif isinstance(leaf, str):
            self.words[leaf] += 1
            self.word_sides[second, leaf] += 1
        else:
            self.sides[second].add(min(max(leaf, -_LARGE), _LARGE))
            if len(self.numbers) < self.distinct or leaf in self.numbers:
                self.numbers[leaf] += 1

    @property
    def said(self) -> Hashable:
        """The same for leaves that said the same."""
        parts = [("", self.sides), *self.blocks.items()]
        sums = tuple(
            (shape, side.count, np.asarray(side.sum).tobytes(), np.asarray(side.squares).tobytes())
            for shape, sides in parts
            for side in sides
        )
        return self.rows, sums, frozenset(self.words.items())

    def apart(self, draws: int) -> float:
        """By how many standard errors the sides differ, about."""
        shares = [self.word_sides[False, word] - self.word_sides[True, word] for word in self.words]
        shares.append(self.sides[0].count - self.sides[1].count)
        parts = [self.sides, *self.blocks.values()]
        told = [float(np.max(_apart(*part), initial=0.0)) for part in parts]
        return max(*told, *(abs(share) / math.sqrt(draws) for share in shares))

    def columns(self, name: str, draws: int, names: list[str]) -> _Columns:
        """Columns of the leaf, whose names are added; what was always the same has none."""

        def added(column: str) -> int:
            names.append(column)
            return len(names) - 1

        always = self.rows == draws
        present = None if always else added(Truth(f"there is {name}"))
        number, shape = None, None
        places = np.zeros(0, dtype=np.int64)
        if len(self.numbers) > 1 or (self.numbers and self.words):
            number = added(name)
        elif self.blocks and not self.numbers:
            counts = {each: own.count + other.count for each, (own, other) in self.blocks.items()}
            shape = max(counts, key=lambda each: (counts[each], each))
            number = len(names)
            told = _apart(*self.blocks[shape])
            places = np.sort(np.argsort(-told, kind="stable")[:_COLUMNS])
            at = np.unravel_index(places, shape)
            names += [f"{name}{[*map(int, place)]}" for place in zip(*at, strict=True)]
        often = [n for n, count in self.numbers.items() if count >= _OFTEN]
        often.sort(key=lambda n: (-self.numbers[n], n))
        return _Columns(
            present=present,
            number=number,
            words={
                word: added(Truth(f"{name} is {word!r}"))
                for word in self._frequent()
                if self._varies()
            },
            repeated={
                n: added(Truth(f"{name} is {bound(n)}")) for n in often[:_REPEATED] if self._many()
            },
            shape=shape,
            places=places,
        )

    def _frequent(self) -> list[str]:
        words = [word for word, count in self.words.items() if count >= _LEAST]
        return sorted(words, key=lambda word: (-self.words[word], word))[:_WORDS]

    def _varies(self) -> bool:
        return len(self.words) > 1 or bool(self.numbers)

    def _many(self) -> bool:
        """Whether the number itself doesn't say as much."""
        return len(self.numbers) > 2


class _Moments:
    """Count, sum and sum of squares."""

    def __init__(self) -> None:
        self.count = 0
        self.sum: Any = 0.0
        self.squares: Any = 0.0

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> _Moments:
        made = cls()
        made.count, made.sum, made.squares = len(numbers), numbers.sum(0), (numbers**2).sum(0)
        return made

    def add(self, number: Any) -> None:
        self.count += 1
        self.sum = self.sum + number
        self.squares = self.squares + number * number


def _apart(own: _Moments, other: _Moments) -> NDArray[np.float64]:
    """By how many standard errors means differ, about."""
    if not (own.count and other.count):
        return np.zeros_like(np.asarray(own.sum + other.sum))
    means = [side.sum / side.count for side in (own, other)]
    errors = [
        np.maximum(side.squares / side.count - mean**2, 0) / side.count
        for side, mean in zip((own, other), means, strict=True)
    ]
    gap = np.abs(means[0] - means[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(gap > 0, gap / np.sqrt(errors[0] + errors[1]), 0.0))


def _items(counts: Counter[Any]) -> tuple[Any, ...]:
    """The most frequent items of sets, in an order that doesn't depend on hashes."""
    return tuple(sorted(counts, key=lambda item: (-counts[item], repr(item)))[:_ITEMS])
