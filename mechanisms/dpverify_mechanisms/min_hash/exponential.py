"""Yan et al. 2018, as Aumüller et al. 2020, appendix A, review it: a control that isn't private.

For each of K public MinHash functions the N items of a set are put in order, and one is chosen by
the exponential mechanism with utility N − 1 for the first, falling to 0 for the last: P[place j] is
proportional to q^j, with q = e^(−ε′/2Δ) for a claimed ε′ a function and a sensitivity Δ = 1 of the
utility. What is released are K items of the set.

**Why it isn't private.** The exponential mechanism needs a range that doesn't depend on the data.
Here an item that only one of two neighbours has is chosen with positive probability there and with
probability 0 at the other, so that there is no ε: δ(ε) is at least that probability for all ε.

**Why its estimate is biased.** Two sets choose the same item with probability
Σ P_x[place of i]·P_y[place of i] over their common items. Even for two equal sets that is
Σ P[place j]² < 1, where the Jaccard similarity is 1.

**Self-adaptation** restricts the choice to the first items of the order. With one it is MinHash.

The chance is exact: coins that go on with probability q, a multiple of 2⁻⁶⁴, and begin again behind
the last place. The number of heads is geometric, and modulo N it has the law above.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from attrs import field, frozen
from attrs.converters import optional
from numpy.typing import NDArray

from dpverify.data.domain import Sets, is_sparse
from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import require
from dpverify.numbers import COIN, to_coin, to_count
from dpverify.sampling.coins import flips
from dpverify.sampling.words import Words
from dpverify_mechanisms.min_hash.hashing import HashFamily

__all__ = ["REFUSAL", "ExponentialMinHash"]

REFUSAL = (
    "It isn't differentially private at any epsilon: it releases items of the set itself, so an "
    "item that only one of two neighbours has is released with positive probability by one and "
    "never by the other (Aumüller et al. 2020, appendix A). Use rr-min-hash."
)


@frozen(kw_only=True)
class ExponentialMinHash:
    """Release of K items of every set, chosen in favour of low ranks. It offers no guarantee.

    Parameters
    ----------
    hashes : public; only their ranks are used
    ratio : q, a multiple of 2⁻⁶⁴ in (0, 1)
    domain : declared sizes of the sets
    choices : how many of the first items are chosen from (self-adaptation); None for all
    """

    hashes: HashFamily
    ratio: Fraction = field(converter=to_coin)
    domain: Sets
    choices: int | None = field(default=None, converter=optional(to_count))

    def __attrs_post_init__(self) -> None:
        require(0 < self.ratio < 1, "ratio", self.ratio, "in (0, 1)")

    def claimed_epsilon(self) -> Enclosure:
        """Encloses K·2·ln(1/q), what its authors' argument gives: false."""
        return enclose(lambda: -2 * self.hashes.functions * to_arb(self.ratio).log())

    def release(self, records: Any, *, rng: Words) -> NDArray[np.int64]:
        """Chosen items, of shape (n, K)."""
        sets = self._admitted(records)
        sizes = np.array([self._choices(size) for size in np.diff(sets.indptr).tolist()])
        places = self._heads((sets.shape[0], self.hashes.functions), rng) % sizes[:, None]
        chosen = np.empty_like(places)
        for row in range(sets.shape[0]):
            chosen[row] = np.take_along_axis(self._order(sets, row), places[row][None], axis=0)[0]
        return np.asarray(chosen, dtype=np.int64)

    def distribution(self, record: Any) -> Mapping[tuple[int, ...], Fraction]:
        """Exact probability of every output for one set, given the hash functions."""
        outputs: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for law in self.laws(record):
            outputs = {
                (*output, item): share * chance
                for output, share in outputs.items()
                for item, chance in law.items()
            }
        return outputs

    def laws(self, record: Any) -> list[dict[int, Fraction]]:
        """Probability of every item for each of the K functions."""
        sets = self._admitted(record)
        order, q = self._order(sets, 0), self.ratio
        choices = self._choices(order.shape[0])
        chances = [q**place * (1 - q) / (1 - q**choices) for place in range(choices)]
        return [dict(zip(column, chances, strict=False)) for column in order.T.tolist()]

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Fraction of equal items, its authors' estimate of the Jaccard similarity: biased."""
        return np.asarray(np.mean(first == second, axis=-1))

    def expectation(self, record: Any, other: Any) -> Fraction:
        """Mean of the estimate for these hash functions."""
        pairs = zip(self.laws(record), self.laws(other), strict=True)
        common = (own[i] * their.get(i, 0) for own, their in pairs for i in own)
        return sum(common, Fraction(0)) / self.hashes.functions

    def _choices(self, size: int) -> int:
        return size if self.choices is None else min(size, self.choices)

    def _order(self, sets: scipy.sparse.csr_array, row: int) -> NDArray[np.int64]:
        """Items of a set from lowest to highest rank, of shape (size, K)."""
        items = sets.indices[sets.indptr[row] : sets.indptr[row + 1]].astype(np.int64)
        return np.asarray(items[np.argsort(self.hashes.ranks(items), axis=0, kind="stable")])

    def _heads(self, shape: tuple[int, int], rng: Words) -> NDArray[np.int64]:
        """Heads before the first tail: P[G ≥ m] = q^m exactly."""
        heads = np.zeros(shape, dtype=np.int64)
        going = np.flatnonzero(np.ones(shape, dtype=np.bool_))
        while going.size:
            going = going[flips(int(self.ratio * COIN), going.shape, rng=rng)]
            heads.flat[going] += 1
        return heads

    def _admitted(self, records: Any) -> scipy.sparse.csr_array:
        rows = records if is_sparse(records) else np.atleast_2d(records)
        return self.domain.admit(rows, attributes=self.hashes.items)
