"""Symmetric noise of a scale, rounded exactly to the integers: what Gaussian and Laplace share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from attrs import frozen
from flint import arb
from numpy.typing import NDArray

from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import require
from dpverify.sampling._quantile_table import Law, Table, build_table, decide_word, draw
from dpverify.sampling.words import Words

__all__ = ["RoundedNoise"]


@frozen(kw_only=True)
class RoundedNoise(ABC):
    """Distribution of round(scale·X) on the integers for a symmetric X, sampled exactly."""

    law: ClassVar[Law]
    min_scale: ClassVar[float]
    max_scale: ClassVar[float] = 2.0**44  # beyond it scale·z could exceed doubles' whole numbers

    scale: float

    def __attrs_post_init__(self) -> None:
        rule = f"in [{1 if self.min_scale == 1 else f'1/{1 / self.min_scale:g}'}, 2**44]"
        require(self.min_scale <= self.scale <= self.max_scale, "scale", self.scale, rule)

    def sample(self, shape: tuple[int, ...], *, rng: Words) -> NDArray[np.int64]:
        """Draw independent values; see `_quantile_table.draw`."""
        return draw(self.law, self._table(), self.scale, shape, rng=rng)

    def _table(self) -> Table:
        return build_table(self.law)

    def decide(self, word: int, *, rng: Words) -> int:
        """Draw that belongs to one word, by ball arithmetic alone."""
        return decide_word(self.law, self.scale, word, rng=rng)

    @abstractmethod
    def probability(self, value: int) -> Enclosure:
        """Encloses P[Z = value]."""

    def within(self, size: int) -> Enclosure:
        """Encloses P[|Z| < size] = 1 − 2·P[X > (size − ½)/scale], for a whole size ≥ 1."""
        least = Fraction(2 * size - 1, 2) / Fraction(self.scale)
        return enclose(lambda: 1 - 2 * self.law.tail(to_arb(least)))

    def variance(self) -> Enclosure:
        """Encloses E[Z²]."""
        return enclose(lambda: self._moment(2))

    def fourth_moment(self) -> Enclosure:
        """Encloses E[Z⁴]."""
        return enclose(lambda: self._moment(4))

    @abstractmethod
    def _moment(self, order: int) -> arb:
        """The second or the fourth moment, as a ball of the current precision."""
