"""The fast Johnson-Lindenstrauss transform of Ailon and Chazelle, x @ D @ H @ Qᵀ.

D holds p random signs, H is the Walsh-Hadamard matrix of order m, the power of two that p is padded
to, and Q is k × m with independent entries that are normal with probability q and else 0 (Stausholm
2021, section 5.1, where Q is P). Here H has entries ±1, q is a multiple of 2⁻⁶³, and the entries of
Q are exactly rounded: round(2¹⁰·N(0, 1)). All of it is whole numbers times one scale.

**Moments.** Let κ be the kurtosis of an entry of Q and ŷ = yDH/√m. Given D, Cov(⟨aΦ,bΦ⟩, ⟨cΦ,dΦ⟩)
is 1/k of ⟨a,c⟩⟨b,d⟩ + ⟨a,d⟩⟨b,c⟩ + (κ − 3)·Σ_f â_f b̂_f ĉ_f d̂_f (rotations keep inner products), and
⟨a, b⟩ is the mean, whatever D is. A mean of four signs is 1 where they pair up and else 0, so that
the mean of the last sum over D is (⟨a,b⟩⟨c,d⟩ + ⟨a,c⟩⟨b,d⟩ + ⟨a,d⟩⟨b,c⟩ − 2Σabcd)/m. Hence, with
t = (κ − 3)/m, and c, d, e as in `projections.base`:

    c = (1 + t)/k        d = (2 + t)/k        e = t/k

So Var‖zΦ‖² = (2‖z‖⁴ + t(3‖z‖⁴ − 2‖z‖₄⁴))/k, which is at most (3/k)‖z‖⁴, as Stausholm's lemma 7
says of every q, only where t is at most about ⅓, for q ≥ 9/(m + 9).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.data.domain import dense, is_sparse
from dpverify.enclosure import Exact, SquareRoot
from dpverify.errors import require
from dpverify.execution.compiled import compiled
from dpverify.execution.loops import butterflies
from dpverify.numbers import to_rational
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.projections._spectral import squared_spectral_norm
from dpverify_mechanisms.projections.base import Projection, digest
from dpverify_mechanisms.projections.independent import rounded_moments, signs

__all__ = ["FJLT", "walsh_hadamard"]

_CACHED = 2**16  # doubles that are transformed at a stretch, twice over in a second-level cache
_HELD = 2**24  # doubles of records that `apply` holds at once
_COIN = 63  # bits of a coin
_BLAS = 24  # products that BLAS makes and adds in the time of a butterfly, or of four of Q's
_STORED = 2**22  # doubles of a matrix that `apply` makes by itself


def walsh_hadamard(columns: NDArray[np.float64]) -> None:
    """Transform every column in place: H @ columns with H_ij = (−1)^popcount(i & j).

    Exact for whole numbers while the absolute sum of a column is below 2⁵³.

    Parameters
    ----------
    columns : (m, n) C-contiguous doubles, m a power of two. The columns lie side by side so that
        even the smallest butterfly runs along memory; 16 or more of them are fast.

    Notes
    -----
    H of order m₁m₂ is H₁ ⊗ H₂. What doesn't fit the cache is transformed by H₁ in strips that do,
    and by H₂ block by block: two passes over memory instead of one for each level. Machine code
    goes over all of it for every two levels, and is faster.
    """
    if (loop := compiled(butterflies, values=columns.size)) is not None:
        loop(columns)
        return
    _transform(columns, np.empty((2, min(columns.size, max(_CACHED, len(columns))))))


def _transform(columns: NDArray[np.float64], buffers: NDArray[np.float64]) -> None:
    m, n = columns.shape
    if m == 1:
        return
    if m * n <= _CACHED:
        _butterflies(columns, columns, buffers[0])
        return
    outer = 1 << (m.bit_length() // 2)
    strips = columns.reshape(outer, -1)
    width = max(1, _CACHED // outer)
    for start in range(0, strips.shape[1], width):
        strip = strips[:, start : start + width]
        held = buffers[1, : strip.size].reshape(strip.shape)
        held[...] = strip
        _butterflies(held, strip, buffers[0])
    for block in columns.reshape(outer, m // outer, n):
        _transform(block, buffers)


def _butterflies(
    columns: NDArray[np.float64], result: NDArray[np.float64], buffer: NDArray[np.float64]
) -> None:
    """The transform, level by level, to and fro between the columns and the buffer."""
    m, n = columns.shape
    source, target = columns, buffer[: columns.size].reshape(m, n)
    half = m // 2
    while half:
        a, b = source.reshape(-1, 2, half * n), target.reshape(-1, 2, half * n)
        np.add(a[:, 0], a[:, 1], out=b[:, 0])
        np.subtract(a[:, 0], a[:, 1], out=b[:, 1])
        source, target = target, source
        half //= 2
    if source is not result:
        result[...] = source


@frozen(kw_only=True)
class FJLT(Projection):
    """The fast Johnson-Lindenstrauss transform: signs, Walsh-Hadamard, sparse normal entries.

    Stausholm 2021, section 5.1. A product takes O(m log m + q m k) for m = 2^⌈log2 p⌉, and nothing
    of the size of p × k is stored unless `matrix` is asked for, or so small that the product with
    it takes less time.

    Parameters
    ----------
    density : in (0, 1]; q, the probability of a non-zero entry, rounded up to a multiple of 2⁻⁶³
    """

    name: ClassVar[str] = "fjlt"
    entry: ClassVar[RoundedGaussian] = RoundedGaussian(scale=2.0**10)

    density: Fraction = field(converter=to_rational)

    def __attrs_post_init__(self) -> None:
        require(0 < self.density <= 1, "density", self.density, "in (0, 1]")
        super().__attrs_post_init__()

    def _realise(self, rng: ReplayableWords) -> Any:
        """Signs (p,) and Q (k, m), the latter dense or CSR."""
        flips = signs(self.p, rng)
        threshold = np.uint64(self._coin)
        rows = []
        for _ in range(self.k):
            hits = np.flatnonzero((rng.words(self._order) >> np.uint64(1)) < threshold)
            values = self.entry.sample((hits.size,), rng=rng).astype(np.float64)
            bounds = np.array([0, hits.size])
            rows.append(scipy.sparse.csr_array((values, hits, bounds), shape=(1, self._order)))
        mixing = scipy.sparse.vstack(rows, format="csr")
        mixing.eliminate_zeros()
        return flips, mixing.toarray() if self.density > Fraction(1, 8) else mixing

    @property
    def _order(self) -> int:
        """Order m of the transform."""
        return 1 << (self.p - 1).bit_length()

    @property
    def _coin(self) -> int:
        return math.ceil(self.density * (1 << _COIN))

    # Moments

    @property
    def scale(self) -> Exact:
        """One over the root of k·m times the second moment of an entry of Q."""
        return SquareRoot(1 / (self.k * self._order * self._moments()[0]))

    @property
    def pair_variance(self) -> Fraction:
        """(1 + t)/k."""
        return (1 + self._excess()) / self.k

    @property
    def diagonal_variance(self) -> Fraction:
        """(2 + t)/k."""
        return (2 + self._excess()) / self.k

    @property
    def diagonal_covariance(self) -> Fraction:
        """t/k."""
        return self._excess() / self.k

    def _moments(self) -> tuple[Fraction, Fraction]:
        """Second and fourth moment of an entry of Q."""
        hit = Fraction(self._coin, 2**_COIN)
        second, fourth = rounded_moments(self.entry)
        return hit * second, hit * fourth

    def _excess(self) -> Fraction:
        """t: excess kurtosis of an entry of Q, over m."""
        second, fourth = self._moments()
        return (fourth / second**2 - 3) / self._order

    # The realised matrix at work

    def apply(self, steps: Any) -> NDArray[np.float64]:
        """The product by signs, transform and sparse product; see `Projection.apply`.

        Or by the dense matrix where that is faster, with the same result: the absolute terms of a
        product with column j are at most √p·‖P_j‖₂ ≤ √(pm)·‖Q_j‖₂ by Cauchy and Schwarz, for
        records within one step, which is what `largest_sum` keeps below 2⁵³ for both.
        """
        if not is_sparse(steps) and self._dense_is_faster:
            return np.asarray(steps @ self.matrix)
        flips, mixing = self._realised
        product = np.empty((steps.shape[0], self.k))
        height = max(1, min(64, _HELD // self._order))
        records = scipy.sparse.csr_array(steps) if is_sparse(steps) else steps
        for start in range(0, len(product), height):
            block = dense(records[start : start + height])
            columns = np.zeros((self._order, len(block)))
            np.multiply(block.T, flips[:, None], out=columns[: self.p])
            walsh_hadamard(columns)
            product[start : start + height] = (mixing @ columns).T
        return product

    @property
    def _dense_is_faster(self) -> bool:
        butterflies = self._order * (self._order.bit_length() - 1)
        mixed = float(self.density) * self._order * self.k / 4
        return self.p * self.k <= min(float(_STORED), _BLAS * (butterflies + mixed))

    @property
    def matrix(self) -> NDArray[np.float64]:
        """(p, k) dense integer matrix, computed when it is first asked for."""
        known: NDArray[np.float64] = self._remember("matrix", lambda: self._columns(0, self.k))
        return known

    def _columns(self, start: int, stop: int) -> NDArray[np.float64]:
        flips, mixing = self._realised
        columns = np.array(dense(mixing[start:stop].T), order="C")
        walsh_hadamard(columns)
        return np.asarray(columns[: self.p] * flips[:, None])

    def row(self, attribute: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Columns and values of the non-zeros in one row, without the matrix."""
        self._check(attribute)
        flips, mixing = self._realised
        places = np.arange(self._order, dtype=np.uint64)
        odd = np.bitwise_count(places & np.uint64(attribute)) & 1
        values = (mixing @ (1.0 - 2.0 * odd) * flips[attribute]).astype(np.int64)
        columns = np.flatnonzero(values)
        return columns, values[columns]

    # Bounds

    def _largest_column(self) -> int:
        """Bound for records within one step.

        A butterfly sums at most p of them. With y = xDH, ‖y‖₂ ≤ √(mp), the absolute terms of a
        product with a row of Q are at most ‖row‖₂‖y‖₂ by Cauchy and Schwarz.
        """
        mixing = self._realised[1]
        squares = np.asarray((mixing * mixing).sum(axis=1)).ravel()
        largest = self._order * self.p * int(squares.max())
        return max(self.p, math.isqrt(largest) + 1)

    def _largest_row(self, norm: Literal[1, 2]) -> Exact:
        """By groups of columns, so that the matrix need not exist."""
        totals, largest = np.zeros(self.p), 0.0
        for start in range(0, self.k, 16):
            sizes = np.abs(self._columns(start, min(start + 16, self.k)))
            largest = max(largest, float(sizes.max()))
            totals += (sizes**norm).sum(axis=1)
        if not self.k * int(largest) ** norm < 2**53:
            return largest_row_norm(self.matrix, norm)
        total = Fraction(int(totals.max()))
        return total if norm == 1 else SquareRoot(total)

    def _squared_spectral_norm(self) -> tuple[Fraction, Fraction]:
        """m‖Q‖² where nothing is padded, for then DH/√m is a rotation."""
        if self.p < self._order:
            return squared_spectral_norm(self.matrix)
        lower, upper = squared_spectral_norm(self._realised[1])
        return self._order * lower, self._order * upper

    def sha256(self) -> str:
        """Digest of the factors: the text ``fjlt p k``, then D's signs as one row, then Q."""
        flips, mixing = self._realised
        return digest(f"fjlt {self.p} {self.k}", flips[None], mixing)
