"""Projections of independent entries, the identity, and OPORP.

The moments that their names stand for are derived in `projections.base`; sparse transforms with
several entries a row are in `sjlt`, the fast Johnson-Lindenstrauss transform in `hadamard`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import scipy
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.enclosure import Exact, SquareRoot
from dpverify.errors import require
from dpverify.numbers import to_count, to_whole
from dpverify.sampling.coins import uniform_below
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords, Words
from dpverify_mechanisms.projections.base import LARGEST_STORED, Projection, frozen_arrays

__all__ = [
    "OPORP",
    "GaussianProjection",
    "IdentityProjection",
    "Projection",
    "RademacherProjection",
    "SparseProjection",
    "UniformProjection",
    "rounded_moments",
    "signs",
]


_DRAWN = 2**20  # entries that are drawn at once
_CACHED = 2**17  # values of records that stay in a second-level cache


@frozen(kw_only=True)
class _IndependentEntries(Projection):
    """What projections of independent, symmetric entries share: c = 1/k and d = (κ − 1)/k.

    They are drawn by blocks of rows, so that a matrix too large to store can be generated each time
    that it is looked at. The blocks are part of what the seed stands for: words that are left over
    at the end of one aren't used in the next.
    """

    @abstractmethod
    def _draw(self, shape: tuple[int, int], rng: ReplayableWords) -> Any:
        """The next rows of the integer matrix."""

    @property
    def stored(self) -> bool:
        """Whether it has at most `LARGEST_STORED` entries."""
        return self.p * self.k <= LARGEST_STORED

    @property
    def matrix(self) -> Any:
        """(p, k) whole numbers as doubles.

        Raises
        ------
        ParameterError
            If it is too large to be stored; `blocks` generates it.
        """
        rule = f"at most {LARGEST_STORED}, to be stored"
        require(self.stored, "p * k", self.p * self.k, rule, "Look at it by blocks.")
        return super().matrix

    def blocks(self) -> Iterator[Any]:
        """The integer matrix in consecutive blocks of rows, generated where it isn't stored."""
        if self.stored:
            yield self.matrix
        else:
            yield from self._generated(self._words())

    def _generated(self, rng: ReplayableWords) -> Iterator[Any]:
        height = max(1, _DRAWN // self.k)
        for start in range(0, self.p, height):
            yield self._draw((min(height, self.p - start), self.k), rng)

    def _realise(self, rng: ReplayableWords) -> Any:
        if self.p * self.k <= _DRAWN:
            return next(self._generated(rng))
        realised = np.empty((self.p, self.k))
        start = 0
        for block in self._generated(rng):
            realised[start : start + len(block)] = block
            start += len(block)
        return realised

    @property
    @abstractmethod
    def _moments(self) -> tuple[Fraction, Fraction]:
        """Second and fourth moment of an entry of the integer matrix."""

    @property
    def scale(self) -> Exact:
        """One over the root of k times an entry's variance."""
        return SquareRoot(1 / (self.k * self._moments[0]))

    @property
    def pair_variance(self) -> Fraction:
        """1/k."""
        return Fraction(1, self.k)

    @property
    def diagonal_variance(self) -> Fraction:
        """(κ − 1)/k with the entries' kurtosis κ."""
        second, fourth = self._moments
        return (fourth / second**2 - 1) / self.k


class _OneSignARow(Projection):
    """What projections of one entry ±1 a row share: every row has norm 1."""

    __slots__ = ()

    @property
    def signs_a_row(self) -> int:
        return 1

    @property
    def scale(self) -> Exact:
        return Fraction(1)

    @property
    def diagonal_variance(self) -> Fraction:
        return Fraction(0)


@frozen(kw_only=True)
class IdentityProjection(_OneSignARow):
    """The records themselves: k = p, scale 1, and nothing is drawn.

    Li and Li 2023, "Raw-data-G-OPT".
    """

    name: ClassVar[str] = "identity"

    seed: int = field(default=0, converter=to_whole)

    def __attrs_post_init__(self) -> None:
        require(self.k == self.p, "k", self.k, f"p={self.p} for the identity")
        super().__attrs_post_init__()

    def _realise(self, rng: ReplayableWords) -> scipy.sparse.csr_array:
        return scipy.sparse.eye_array(self.p, format="csr")

    @property
    def pair_variance(self) -> Fraction:
        return Fraction(0)

    def _squared_spectral_norm(self) -> tuple[Fraction, Fraction]:
        return Fraction(1), Fraction(1)


@frozen(kw_only=True)
class GaussianProjection(_IndependentEntries):
    """Independent normal entries of variance 1/k, on a grid.

    Kenthapadi et al. 2013, section 3.1.3, item 1; Li and Li 2023, algorithm 1. The integer entries
    are round(N(0, 2⁴⁰)), whose variance 2⁴⁰ + 1/12 (up to e^(−10¹³)) the scale divides out.
    """

    name: ClassVar[str] = "gaussian"
    entry: ClassVar[RoundedGaussian] = RoundedGaussian(scale=2.0**20)

    def _draw(self, shape: tuple[int, int], rng: ReplayableWords) -> NDArray[np.float64]:
        return self.entry.sample(shape, rng=rng).astype(np.float64)

    @property
    def _moments(self) -> tuple[Fraction, Fraction]:
        return rounded_moments(self.entry)


@frozen(kw_only=True)
class RademacherProjection(_IndependentEntries):
    """Independent entries ±1/√k.

    Kenthapadi et al. 2013, section 3.1.3, item 2; Li and Li 2023, algorithm 3.
    """

    name: ClassVar[str] = "rademacher"

    def _draw(self, shape: tuple[int, int], rng: ReplayableWords) -> NDArray[np.float64]:
        return signs(math.prod(shape), rng).reshape(shape)

    @property
    def _moments(self) -> tuple[Fraction, Fraction]:
        return Fraction(1), Fraction(1)


@frozen(kw_only=True)
class UniformProjection(_IndependentEntries):
    """Independent entries, uniform on the odd integers from 1 − N to N − 1 for N = 2¹⁶.

    Li and Li 2023, section 3, have the continuous uniform distribution. The N values are equally
    spaced and equally likely, with second moment (N² − 1)/3 and fourth (N² − 1)(3N² − 7)/15.
    """

    name: ClassVar[str] = "uniform"

    def _draw(self, shape: tuple[int, int], rng: ReplayableWords) -> NDArray[np.float64]:
        count = math.prod(shape)
        places = rng.words(-(-count // 4)).astype("<u8").view("<u2")[:count]
        return (2.0 * places - (2**16 - 1)).reshape(shape)

    @property
    def _moments(self) -> tuple[Fraction, Fraction]:
        return Fraction(2**32 - 1, 3), Fraction((2**32 - 1) * (3 * 2**32 - 7), 15)


@frozen(kw_only=True)
class SparseProjection(_IndependentEntries):
    """Independent entries ±√(s/k) with probability 1/(2s) each, else 0.

    Achlioptas's for s = 3 (Kenthapadi et al. 2013, section 3.1.3, item 3), very sparse for larger s
    (Li and Li 2023, equation 10). The integer entries are ±1 and 0.

    Parameters
    ----------
    sparsity : int, ≥ 1; s, the odds against a non-zero entry
    """

    name: ClassVar[str] = "sparse"

    sparsity: int = field(default=3, converter=to_count)

    def _draw(self, shape: tuple[int, int], rng: ReplayableWords) -> NDArray[np.float64]:
        drawn = uniform_below(2 * self.sparsity, shape, rng=rng)
        entries: NDArray[np.float64] = (drawn == 0).astype(np.float64) - (drawn == 1)
        return entries

    @property
    def stored(self) -> bool:
        """Whether it has few enough entries, or few enough that aren't 0 where those are kept."""
        kept = 1 if self._dense else self.sparsity
        return self.p * self.k <= kept * LARGEST_STORED

    @property
    def _dense(self) -> bool:
        return self.sparsity <= 8

    def _realise(self, rng: ReplayableWords) -> Any:
        if self._dense:
            return super()._realise(rng)
        blocks = [scipy.sparse.csr_array(block) for block in self._generated(rng)]
        return scipy.sparse.vstack(blocks, format="csr")

    @property
    def _moments(self) -> tuple[Fraction, Fraction]:
        return Fraction(1, self.sparsity), Fraction(1, self.sparsity)


@frozen(kw_only=True)
class OPORP(_OneSignARow):
    """One permutation and one random projection: signed sums over k bins of permuted coordinates.

    Li and Li 2023, algorithm 4, which supposes that k divides p. Where it doesn't, the first
    p mod k bins hold one coordinate more than the others: two coordinates then share a bin with
    probability Σ b(b − 1)/(p(p − 1)), which is at most what padding with zeros gives, and (p − k)/
    (k(p − 1)) as in theorem 3.10 where k divides p.
    """

    name: ClassVar[str] = "oporp"

    def __attrs_post_init__(self) -> None:
        require(
            self.k <= self.p,
            "k",
            self.k,
            f"at most p={self.p} for OPORP",
            "More bins than attributes would stay empty.",
        )
        super().__attrs_post_init__()

    def _realise(self, rng: ReplayableWords) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Coordinates, bin after bin, and the sign of each coordinate."""
        return _permutation(self.p, rng), signs(self.p, rng)

    @property
    def matrix(self) -> Any:
        """(p, k) CSR array of ±1."""
        return self._remember("matrix", lambda: frozen_arrays(self._assembled()))

    def _assembled(self) -> scipy.sparse.csr_array:
        order, flips = self._realised
        columns = np.empty(self.p, dtype=np.int64)
        columns[order] = np.repeat(np.arange(self.k), self._bin_sizes())
        return scipy.sparse.csr_array(
            (flips, columns, np.arange(self.p + 1)), shape=(self.p, self.k)
        )

    def _largest_column(self) -> int:
        return int(self._bin_sizes().max())

    @property
    def height(self) -> int:
        """Few rows: `apply` spends its time on records, not on the matrix."""
        return max(1, _CACHED // self.p)

    def apply(self, steps: Any) -> NDArray[Any]:
        """The product, layer by layer where records are dense; see `Projection.apply`.

        A layer is one coordinate of every bin, in the bins' order, so that a sketch is a sum of
        layers with their signs; the last one may lack the last bins. Each bin's sum is one of
        `largest_sum`'s, and exact in the precision that the records come in.
        """
        if is_sparse(steps):
            return super().apply(steps)
        order, flips = self._remember("layers", self._layers)
        complete = self.p - self.p % self.k
        terms = np.take(steps, order, axis=1)
        terms *= flips.astype(steps.dtype)
        layers = terms[:, :complete].reshape(len(terms), self.p // self.k, self.k)
        product: NDArray[Any] = np.add.reduce(layers, axis=1)
        product[:, : self.p - complete] += terms[:, complete:]
        return product

    def _layers(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Coordinates, layer after layer, and their signs."""
        by_bin, flips = self._realised
        size, more = divmod(self.p, self.k)
        longer = by_bin[: more * (size + 1)].reshape(more, size + 1)
        complete = np.concatenate([longer[:, :size], by_bin[longer.size :].reshape(-1, size)])
        order = np.concatenate([complete.T.ravel(), longer[:, size]])
        return order, flips[order]

    def _bin_sizes(self) -> NDArray[np.int64]:
        size, more = divmod(self.p, self.k)
        return np.where(np.arange(self.k) < more, size + 1, size)

    @property
    def pair_variance(self) -> Fraction:
        """Probability that two given coordinates share a bin."""
        if self.p == 1:
            return Fraction(0)
        shared = sum(size * (size - 1) for size in self._bin_sizes().tolist())
        return Fraction(shared, self.p * (self.p - 1))

    def _squared_spectral_norm(self) -> tuple[Fraction, Fraction]:
        """The columns are orthogonal: the largest bin."""
        largest = Fraction(self._largest_column())
        return largest, largest


def signs(count: int, rng: Words) -> NDArray[np.float64]:
    """Independent fair signs, one bit each."""
    bits = np.unpackbits(rng.words(-(-count // 64)).astype("<u8").view(np.uint8), count=count)
    return 1.0 - 2.0 * bits.astype(np.float64)


def rounded_moments(entry: RoundedGaussian) -> tuple[Fraction, Fraction]:
    """Second and fourth moment of round(N(0, s²)), up to about s⁴·e^(−2π²s²)."""
    variance = Fraction(entry.scale) ** 2
    return variance + Fraction(1, 12), 3 * variance**2 + variance / 2 + Fraction(1, 80)


def _permutation(size: int, rng: ReplayableWords) -> NDArray[np.intp]:
    """Uniform permutation: the order of distinct random words, drawn again while two are equal."""
    while True:
        keys = rng.words(size)
        order = np.argsort(keys)
        if (np.diff(keys[order]) != 0).all():
            return order
