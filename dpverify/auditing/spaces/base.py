"""A space of data sets and an adjacency of them: where an audit looks if nobody names pairs.

*Extreme* pairs are at the ends: the move is as large as the adjacency and the domain let it be, at
every place, from the simplest data set and from the ends of the domain. *Drawn* pairs are anywhere.
The adjacency makes neighbours (`candidates`), and the space says of what. Whatever they make, only
pairs of two different neighbours inside the domain are used.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

from dpverify.data.adjacency import Choose
from dpverify.data.rows import copied
from dpverify.errors import PASSING, DPVerifyError, ParameterError, require
from dpverify.privacy import Pair
from dpverify.sampling.words import Words
from dpverify.visible import raised, shown

__all__ = [
    "EXTREMES",
    "Space",
    "both_copied",
    "chooser",
    "makes_candidates",
    "related",
    "require_candidates",
]

EXTREMES = 96
"""Extreme pairs, at most."""
_SWEPT = 4096  # places of a sweep, at most
_TRIES = 20  # candidates of a drawn data set
_AHEAD = 256  # words
_IN_VAIN = 512  # data sets without a new pair, after which no more are drawn
_WASTED = 64  # candidates of one data set that don't fit or came before, until another is taken


def chooser(rng: Words) -> Choose:
    """Choices by random words, which are drawn ahead."""
    words = (word for block in repeat(_AHEAD) for word in rng.words(block).tolist())
    return lambda ways: next(words) % ways


def makes_candidates(adjacency: Any) -> bool:
    """Whether neighbours can be made, and not only related."""
    return callable(getattr(adjacency, "candidates", None))


def require_candidates(adjacency: Any) -> None:
    """Refuse an adjacency of somebody else's, whose neighbours can be related but not made."""
    require(
        makes_candidates(adjacency),
        "adjacency",
        adjacency,
        "one that makes neighbours: an adjacency of dpverify, or an object with `candidates`",
        "Name the pairs, and leave out the search.",
    )


def related(adjacency: Any, *sides: Any) -> bool:
    """What an adjacency says of two data sets; somebody else's may change what it is given."""
    own = type(adjacency).__module__.partition(".")[0] == __name__.partition(".")[0]
    return bool(adjacency.relates(*(sides if own else both_copied(sides))))


def both_copied(sides: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies of two data sets, made at once: what both hold is one object in the copies, too.

    Raises
    ------
    ParameterError
        If they hold what can't be copied.
    """
    try:
        return copy.deepcopy(sides)
    except PASSING:
        raise
    except BaseException as error:  # whatever an object says to being copied
        kinds = " and ".join(dict.fromkeys(type(side).__name__ for side in sides))
        rule = f"of data that can be copied, since each release gets a copy: {raised(error)}"
        way_out = "Give rows, or a file's path, and let the function open or make what it needs."
        raise ParameterError("pair", kinds, rule, way_out) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Space(ABC):
    """Data sets of one kind.

    Attributes
    ----------
    adjacency : with `candidates`
    constants : values that the code under audit compares with, tried wherever they fit
    """

    adjacency: Any
    constants: tuple[Any, ...] = ()

    @property
    @abstractmethod
    def described(self) -> str:
        """The data sets in words, after “256 pairs ”."""

    @abstractmethod
    def bases(self) -> Iterable[tuple[str, Any]]:
        """Data sets from which extreme pairs start, each with a name, the simplest first."""

    @abstractmethod
    def data(self, choose: Choose) -> Any:
        """Any data set, by choices; it may lie outside."""

    @abstractmethod
    def admits(self, data: Any) -> bool:
        """Whether the data set lies inside."""

    @abstractmethod
    def key(self, data: Any) -> Hashable:
        """The same for equal data sets alone."""

    @abstractmethod
    def move(self, pair: Pair) -> str:
        """What moves, in a few words that go on with “from zero”."""

    @abstractmethod
    def simpler(self, pair: Pair) -> Iterator[Pair]:
        """Pairs that may be simpler, the boldest first; they may lie outside."""

    @abstractmethod
    def complexity(self, pair: Pair) -> tuple[float, ...]:
        """By which pairs are compared; there is no endless way down."""

    def fits(self, pair: Pair) -> bool:
        """Whether these are two different data sets, neighbours, and both inside."""
        sides = (pair.record, pair.neighbour)
        different = self.key(sides[0]) != self.key(sides[1])
        inside = different and all(map(self.admits, sides))
        return inside and all(map(self._relates, sides, sides[::-1]))

    def _relates(self, data: Any, other: Any) -> bool:
        """What the adjacency says, which may be anybody's."""
        try:
            return related(self.adjacency, data, other)
        except (DPVerifyError, *PASSING):
            raise
        except BaseException as error:
            raise self._raised("`relates` says whether two data sets are", error) from error

    def _neighbours(self, data: Any, choose: Choose) -> Iterator[Any]:
        """What the adjacency makes of a copy of a data set; it may change that for each of them."""
        try:
            yield from self.adjacency.candidates(copied(data), self, choose)
        except (DPVerifyError, GeneratorExit, *PASSING):
            raise
        except BaseException as error:
            raise self._raised("`candidates` gives", error) from error

    def _raised(self, says: str, error: BaseException) -> ParameterError:
        rule = f"one whose {says} neighbours, and it raised {raised(error)}"
        return ParameterError("adjacency", shown(self.adjacency), rule, "Or name the pairs.")

    def extremes(self, most: int = EXTREMES) -> Sequence[Pair]:
        """Neighbours that are far apart, of different names.

        Raises
        ------
        ParameterError
            If the adjacency makes none in this space: name the pairs yourself.
        """
        streams = [self._from(name, base) for name, base in self.bases()]
        pairs: dict[Hashable, Pair] = {}
        names: set[str] = set()
        while streams and len(pairs) < most:
            for stream in list(streams):
                pair = next(stream, None)
                if pair is None:
                    streams.remove(stream)
                elif len(pairs) < most:
                    name = pair.name if pair.name not in names else f"{pair.name}, {len(pairs) + 1}"
                    pair = Pair(name=name, record=pair.record, neighbour=pair.neighbour)
                    if pairs.setdefault(self.pair_key(pair), pair) is pair:
                        names.add(name)
        if not pairs:
            rule = f"another, as there {self.adjacency} has no neighbours"
            raise ParameterError("domain", self.described, rule, "Widen it, or name the pairs.")
        return list(pairs.values())

    def swept(self) -> Sequence[Pair]:
        """Neighbours of the simplest data set at one place after another, as far as that goes."""
        first = next(iter(self.bases()), None)
        return [] if first is None else list(islice(self._from(*first), _SWEPT))

    def _from(self, name: str, base: Any) -> Iterator[Pair]:
        wasted, seen = 0, set[Hashable]()
        for other in self._neighbours(base, lambda _: 0):
            pair = Pair(name=name, record=base, neighbour=other)
            key = self.key(other)
            if key not in seen and self.fits(pair):
                wasted = 0
                seen.add(key)
                named = f"{self.move(pair)} {name}"
                yield Pair(name=named, record=base, neighbour=copied(other))
            elif (wasted := wasted + 1) > _WASTED:
                return

    def drawn(self, count: int, rng: Words) -> list[Pair]:
        """Different pairs of neighbours, of many kinds; fewer where such are hard to find."""
        choose = chooser(rng)
        found: dict[Hashable, Pair] = {}
        unfit: set[Hashable] = set()
        wasted = 0
        while len(found) < count and wasted < _IN_VAIN:
            wasted += 1
            base = self.data(choose)
            name = f"drawn {len(found) + 1}"
            for other in islice(self._neighbours(base, choose), _TRIES):
                pair = Pair(name=name, record=base, neighbour=other)
                key = self.pair_key(pair)
                if key in found:
                    break
                if key not in unfit and self.fits(pair):
                    found[key] = Pair(name=name, record=base, neighbour=copied(other))
                    wasted = 0
                    break
                unfit.add(key)
        return list(found.values())

    def pair_key(self, pair: Pair) -> Hashable:
        """The same for equal pairs alone."""
        return (self.key(pair.record), self.key(pair.neighbour))
