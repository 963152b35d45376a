"""Randomized signs of x·P: what is computed, drawn and released, and its exact law.

**The exact path.** Records become whole numbers of grid steps, P is a whole-number matrix and their
product is exact (`LinearSketch` has the same), so that signs, levels ⌈|V|/d⌉ and zeros are decided
in integers and every coin has a dyadic probability. What is released are packed bits.

**For a realised projection** a neighbour changes only projected values of columns that touch the
attribute that moves, and among these only columns that are *live*: whose (sign, level) isn't the
same all over the domain. Both are read off the matrix, so the claim is the curve of N answers with

    N = max over attributes of the number of live columns with a non-zero entry in its row

(all live columns where whole records or several attributes move). N is k for a dense matrix on a
domain around 0, where u = 0 attains it; 1 for an OPORP; t for t OPORPs side by side. Note that 1 is
for β-adjacency alone: for ‖u − u′‖₁ ≤ β many bins can change at once, so the remark of Li and Li
2023, section 2.1, that β-adjacency covers the ℓ1 ball doesn't extend to theorem 4.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

import numpy as np
import scipy
from attrs import evolve, field, frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.data.adjacency import Adjacency, Attribute, BitFlip, L1Ball, Record
from dpverify.data.domain import Box, dense
from dpverify.data.grid import Grid
from dpverify.errors import ParameterError, require
from dpverify.privacy import Exhaustive, Redrawable
from dpverify.sampling.words import Words
from dpverify_mechanisms.linear.distance import check_bound, check_sums, grid_for
from dpverify_mechanisms.packed import unused_are_zero
from dpverify_mechanisms.projections.independent import Projection
from dpverify_mechanisms.sign.flip_rules import UNIT, CoinRule, FlipRule, Ladder
from dpverify_mechanisms.sign.law import (
    bit_losses,
    largest_ratio,
    packed_distribution,
    total_losses,
)

__all__ = ["RandomizedSigns", "grid_of_signs"]

_ROWS = 128  # records a product: their doubles stay in the cache between the steps


@frozen(kw_only=True)
class RandomizedSigns(Redrawable, Exhaustive):
    """Signs of records @ P, each randomized by a flip rule, packed into bytes.

    Parameters
    ----------
    projection : realised, public
    rule : how a sign is randomized
    grid : fixed-point grid of the records; the adjacency's bound is a whole number of its steps
    domain : declared range of every attribute
    adjacency : whom a claim protects

    Raises
    ------
    ParameterError
        If the parts don't fit one another, or the product could exceed exact doubles.
    """

    projection: Projection
    rule: FlipRule
    grid: Grid
    domain: Box
    adjacency: Adjacency
    _moves: int = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_moves", self._steps_moved())
        check_sums(self.largest_sum(), self.grid)
        require(
            self._adjacent or self.rule.notion == "differential privacy",
            "adjacency",
            self.adjacency.unit,
            "one with a bound, for an individual flip rule",
        )

    # What neighbours change

    def positions(self) -> int:
        """N: largest number of projected values that differ in sign or level between neighbours."""
        live = self.live()
        match self.adjacency:
            case Attribute() | BitFlip():
                entries = scipy.sparse.csr_array(self.projection.matrix != 0)
                touching = entries.astype(np.int64) @ live
                return max(int(touching.max()), 1)
            case _:
                return max(int(live.sum()), 1)

    def live(self) -> NDArray[np.int64]:
        """Columns whose sign or level differs somewhere in the domain, from its interval there."""
        low, high = (self.grid.steps(Fraction(end)) for end in self.domain.ends)
        matrix = self.projection.matrix
        above, below = (
            np.asarray(part.sum(axis=0)).ravel().astype(np.int64)
            for part in ((abs(matrix) + matrix) / 2, (abs(matrix) - matrix) / 2)
        )
        ends = np.stack([low * above - high * below, high * above - low * below])
        levels = np.sign(ends)
        if self.rule.graded:
            levels = levels * -(-np.abs(ends) // self.divisors())
        return np.asarray(levels[0] != levels[1], dtype=np.int64)

    @property
    def _adjacent(self) -> bool:
        """Whether neighbours move projected values by at most their divisors."""
        return not isinstance(self.adjacency, Record)

    def _steps_moved(self) -> int:
        if isinstance(self.adjacency, Record):
            return self.grid.width(self.domain)
        return self.grid.moves(self.adjacency, self.domain, attributes=self.projection.p)

    def divisors(self) -> NDArray[np.int64]:
        """d_j: how far a neighbour can move each projected value, in steps."""
        return self._moves * self.projection.column_maxima()

    def largest_sum(self) -> int:
        """Bound on every partial sum of the product, from public numbers."""
        return self.projection.largest_sum(self.grid.check_reach(self.domain))

    # The release

    @property
    def p(self) -> int:
        """Number of attributes of a record."""
        return self.projection.p

    def randomized(self, sums: NDArray[np.int64], rng: Words) -> NDArray[np.uint8]:
        """Signs of sums, each flipped by the rule."""
        flipped = self.rule.draw(sums, self.divisors(), rng=rng)
        return np.packbits((sums >= 0) ^ flipped, axis=-1)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, -(-self.projection.k // 8)

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)  # eight bits each

    def possible(self, released: NDArray[np.uint8]) -> bool:
        return unused_are_zero(released, self.projection.k)

    def noiseless(self, records: ArrayLike) -> NDArray[np.int64]:
        """Exact projected values in steps: for likelihoods and tests, never for release."""
        return self.before(self.domain.admit(records, attributes=self.projection.p))

    def before(self, admitted: Any) -> NDArray[np.int64]:
        """Projected values in steps, exactly."""
        sums = np.empty((admitted.shape[0], self.projection.k), dtype=np.int64)
        for start in range(0, len(sums), _ROWS):
            rows = slice(start, start + _ROWS)
            sums[rows] = self.projection.apply(self.grid.round(dense(admitted[rows])))
        return sums

    def gridded(self, records: ArrayLike) -> NDArray[np.float64]:
        """Records in whole steps."""
        x = self.domain.admit(np.atleast_2d(records), attributes=self.projection.p)
        return self.grid.round(x)

    def means(self, record: ArrayLike) -> NDArray[np.float64]:
        """Mean of every released sign, of shape (k,): s_j(1 − 2f_j)."""
        sums = self.noiseless(np.atleast_2d(record))
        kept = 1 - 2 * self.rule.probabilities(sums, self.divisors())
        return np.asarray((np.sign(sums) * kept)[0])

    def redrawn(self, seed: int) -> Self:
        """The same sketch with another projection of its kind and the same flips."""
        return evolve(self, projection=evolve(self.projection, seed=seed))

    def retained(self) -> float:
        """1 − 2f = c of randomized response: what a sign's mean keeps of it."""
        if not isinstance(self.rule, Ladder) or self.rule.graded:
            raise ParameterError("rule", type(self.rule).__name__, "randomized response")
        return 1 - 2 * self.rule.flips[1] / UNIT

    def held_at(self, record: ArrayLike) -> Self:
        """An individual mechanism with its noise set held at one record's.

        It is what theorems 6.1 and 6.2 speak of, between that record and its neighbours.
        """
        sums = self.noiseless(np.atleast_2d(record))[0]
        return evolve(self, rule=self.rule.held_at(sums, self.divisors()))

    # The law

    def ratios(
        self, outputs: NDArray[np.uint8], own: NDArray[np.int64], other: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Ln p(output | own) − ln p(output | other); infinite where one can't be."""
        rows = outputs.reshape(len(outputs), -1)
        bits = np.unpackbits(rows, axis=-1, count=self.projection.k)
        chances = (self.rule.positive(sums, self.divisors()) for sums in (own, other))
        return total_losses(bits, bit_losses(*chances))

    def positive(self, record: ArrayLike) -> list[Fraction]:
        """Probability that each released sign is positive.

        Exact for coins; for Gaussian noise it is that of the double next to the flip probability.
        """
        sums = self.noiseless(np.atleast_2d(record))
        return self.rule.positive(sums, self.divisors())

    def distribution(self, record: ArrayLike) -> Mapping[bytes, Fraction]:
        """Exact probability of every packed output.

        Raises
        ------
        ParameterError
            If there are more than 2**16 outputs, or the rule's noise isn't a coin.
        """
        if not isinstance(self.rule, CoinRule):
            raise ParameterError("rule", type(self.rule).__name__, "one that flips exact coins")
        return packed_distribution(self.positive(record))

    def largest_ratio(self, record: ArrayLike, neighbour: ArrayLike) -> Fraction:
        """Largest p(output | record)/p(output | neighbour); its logarithm is the total loss.

        Raises
        ------
        ZeroDivisionError
            If an output of the record can't come from the neighbour: the loss is infinite.
        """
        return largest_ratio(self.positive(record), self.positive(neighbour))


def grid_of_signs(adjacency: Adjacency, domain: Box, steps: int) -> Grid:
    """The grid of which the adjacency's bound (the domain's width for whole records) is `steps`.

    Raises
    ------
    ParameterError
        If the bound is more than the domain's width, or there is none.
    """
    rule = "one between records: attribute, l1-ball or record"
    good = isinstance(adjacency, Attribute | L1Ball | BitFlip | Record)
    require(good, "adjacency", adjacency.unit, rule)
    check_bound(domain, adjacency)
    return grid_for(domain, adjacency, 1, steps)
