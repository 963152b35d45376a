"""Public random projections with integer entries times one public scale.

A projection P is p × k and acts as x @ P. What is realised is an integer matrix, rebuilt from a
public seed on any machine, so that its row norms are exact and its SHA-256 identifies it; `scale`
is the number that it is multiplied by, chosen so that E[P Pᵀ] is the identity.

**Moments over the draw.** The entries of A = P Pᵀ off the diagonal are uncorrelated with mean 0 and
one common variance c, those on the diagonal are uncorrelated with mean 1 and variance d (rows are
independent and symmetric, or bins and signs are). Hence, for fixed vectors,

    Cov(⟨aP, bP⟩, ⟨a′P, b′P⟩) = c·(⟨a,a′⟩⟨b,b′⟩ + ⟨a,b′⟩⟨b,a′⟩ − 2Σ a b a′ b′) + d·Σ a b a′ b′.

Entries that are independent with kurtosis κ have c = 1/k and d = (κ − 1)/k; OPORP has d = 0 and for
c the probability that two given coordinates share a bin.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpverify.enclosure import Exact, SquareRoot
from dpverify.errors import require
from dpverify.sampling.gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords

__all__ = ["OPORP", "GaussianProjection", "Projection", "RademacherProjection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection(ABC):
    """A projection realised from a public seed.

    Parameters
    ----------
    p, k : number of attributes and of projected values
    seed : int, ≥ 0; public
    """

    name: ClassVar[str]

    p: int
    k: int
    seed: int
    matrix: Any = field(init=False, repr=False, compare=False)
    """(p, k) whole numbers as doubles: an ndarray, or a scipy CSR array where P is sparse."""

    def __post_init__(self) -> None:
        require(self.p >= 1, "p", self.p, "at least 1")
        require(self.k >= 1, "k", self.k, "at least 1")
        object.__setattr__(self, "matrix", self._realise(ReplayableWords(self.seed, self.name)))

    @abstractmethod
    def _realise(self, rng: ReplayableWords) -> Any:
        """Draw the integer matrix."""

    @property
    @abstractmethod
    def scale(self) -> Exact:
        """What the integer matrix is multiplied by."""

    @property
    @abstractmethod
    def pair_variance(self) -> Fraction:
        """c: variance of an entry of P Pᵀ off the diagonal."""

    @property
    @abstractmethod
    def diagonal_variance(self) -> Fraction:
        """d: variance of an entry of P Pᵀ on the diagonal."""

    def sha256(self) -> str:
        """Digest of the integer matrix, the same for dense and sparse storage.

        SHA-256 of the text ``p k`` followed by the digests of three little-endian int64 streams:
        non-zeros in each row, their columns, their values, row by row in rising column.
        """
        rows = sparse.csr_array(self.matrix)
        rows.sort_indices()
        parts = (np.diff(rows.indptr), rows.indices, rows.data)
        digest = hashlib.sha256(f"{self.p} {self.k}".encode())
        for part in parts:
            digest.update(hashlib.sha256(part.astype("<i8").tobytes()).digest())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianProjection(Projection):
    """Independent normal entries of variance 1/k, on a grid.

    Kenthapadi et al. 2013, section 3.1.3, item 1; Li and Li 2023, algorithm 1. The integer entries
    are round(N(0, 2⁴⁰)), whose variance 2⁴⁰ + 1/12 (up to e^(−10¹³)) the scale divides out.
    """

    name: ClassVar[str] = "gaussian"
    entry: ClassVar[RoundedGaussian] = RoundedGaussian(scale=2.0**20)

    def _realise(self, rng: ReplayableWords) -> NDArray[np.float64]:
        return self.entry.sample((self.p, self.k), rng=rng).astype(np.float64)

    @property
    def scale(self) -> Exact:
        """One over the root of k times an entry's variance."""
        return SquareRoot(1 / (self.k * self._second))

    @property
    def pair_variance(self) -> Fraction:
        """1/k."""
        return Fraction(1, self.k)

    @property
    def diagonal_variance(self) -> Fraction:
        """(κ − 1)/k with the rounded entries' kurtosis κ, close to 3."""
        fourth = 3 * self._variance**2 + self._variance / 2 + Fraction(1, 80)
        return (fourth / self._second**2 - 1) / self.k

    @property
    def _variance(self) -> Fraction:
        return Fraction(self.entry.scale) ** 2

    @property
    def _second(self) -> Fraction:
        return self._variance + Fraction(1, 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class RademacherProjection(Projection):
    """Independent entries ±1/√k.

    Kenthapadi et al. 2013, section 3.1.3, item 2; Li and Li 2023, algorithm 3.
    """

    name: ClassVar[str] = "rademacher"

    def _realise(self, rng: ReplayableWords) -> NDArray[np.float64]:
        return _signs(self.p * self.k, rng).reshape(self.p, self.k)

    @property
    def scale(self) -> Exact:
        """1/√k."""
        return SquareRoot(Fraction(1, self.k))

    @property
    def pair_variance(self) -> Fraction:
        """1/k."""
        return Fraction(1, self.k)

    @property
    def diagonal_variance(self) -> Fraction:
        """0: every row has norm 1."""
        return Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OPORP(Projection):
    """One permutation and one random projection: signed sums over k bins of permuted coordinates.

    Li and Li 2023, algorithm 4, which supposes that k divides p. Where it doesn't, the first
    p mod k bins hold one coordinate more than the others: two coordinates then share a bin with
    probability Σ b(b − 1)/(p(p − 1)), which is at most what padding with zeros gives, and (p − k)/
    (k(p − 1)) as in theorem 3.10 where k divides p.
    """

    name: ClassVar[str] = "oporp"

    def __post_init__(self) -> None:
        require(
            self.k <= self.p,
            "k",
            self.k,
            f"at most p={self.p} for OPORP",
            "More bins than attributes would stay empty.",
        )
        # dataclass(slots=True) makes a new class, which the bare super() doesn't know.
        Projection.__post_init__(self)

    def _realise(self, rng: ReplayableWords) -> sparse.csr_array:
        order = _permutation(self.p, rng)
        bins = np.repeat(np.arange(self.k), self._bin_sizes())
        columns = np.empty(self.p, dtype=np.int64)
        columns[order] = bins
        return sparse.csr_array(
            (_signs(self.p, rng), columns, np.arange(self.p + 1)), shape=(self.p, self.k)
        )

    def _bin_sizes(self) -> NDArray[np.int64]:
        size, more = divmod(self.p, self.k)
        return np.where(np.arange(self.k) < more, size + 1, size)

    @property
    def scale(self) -> Exact:
        """1."""
        return Fraction(1)

    @property
    def pair_variance(self) -> Fraction:
        """Probability that two given coordinates share a bin."""
        if self.p == 1:
            return Fraction(0)
        shared = sum(size * (size - 1) for size in self._bin_sizes().tolist())
        return Fraction(shared, self.p * (self.p - 1))

    @property
    def diagonal_variance(self) -> Fraction:
        """0: every row has norm 1."""
        return Fraction(0)


def _signs(count: int, rng: ReplayableWords) -> NDArray[np.float64]:
    bits = np.unpackbits(rng.words(-(-count // 64)).astype("<u8").view(np.uint8), count=count)
    return 1.0 - 2.0 * bits.astype(np.float64)


def _permutation(size: int, rng: ReplayableWords) -> NDArray[np.intp]:
    """Uniform permutation: the order of distinct random words, drawn again while two are equal."""
    while True:
        keys = rng.words(size)
        order = np.argsort(keys)
        if (np.diff(keys[order]) != 0).all():
            return order
