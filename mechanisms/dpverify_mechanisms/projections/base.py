"""What every projection offers: integer entries times one public scale, rebuilt from a seed.

A projection P is p × k and acts as x @ P. What is realised is an integer matrix, rebuilt from a
public seed on any machine, so that its row norms are exact and its SHA-256 identifies it; `scale`
is the number that it is multiplied by, chosen so that E[P Pᵀ] is the identity.

**Moments over the draw.** Let A = P Pᵀ. In every projection here flipping the sign of one attribute
leaves the law of A as it was, and so does exchanging two attributes as far as moments of second
order go. So the entries off the diagonal have mean 0, one common variance c, and no correlation
with any other entry; those on the diagonal have mean 1, variance d, and with each other a
covariance e (0 where rows are independent or of constant norm). Hence, for fixed vectors,

    Cov(⟨aP, bP⟩, ⟨a′P, b′P⟩) = c·(⟨a,a′⟩⟨b,b′⟩ + ⟨a,b′⟩⟨b,a′⟩ − 2S) + d·S + e·(⟨a,b⟩⟨a′,b′⟩ − S)

with S = Σ a b a′ b′. Entries that are independent with kurtosis κ have c = 1/k, d = (κ − 1)/k and
e = 0; OPORP has d = e = 0 and for c the probability that two given coordinates share a bin.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from attrs import field, frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.accounting.curves.laplace import largest_sums, majorant_of_sums
from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.data.domain import dense, is_sparse
from dpverify.enclosure import Enclosure, Exact, SquareRoot
from dpverify.errors import NumericalError, require
from dpverify.numbers import to_count, to_whole
from dpverify.sampling.words import ReplayableWords, check_seed
from dpverify_mechanisms.projections._spectral import root, squared_spectral_norm

__all__ = [
    "LARGEST_STORED",
    "Measures",
    "Projection",
    "digest",
    "frozen_arrays",
    "measure",
    "off_diagonal",
    "single_is_exact",
]

LARGEST_STORED = 2**27
"""Entries of the largest dense matrix that is held in memory: 1 GiB of doubles."""
_MULTIPLIED = 2**22  # values of records that are multiplied at once: 32 MiB
_ROWS = 256  # sparse records a block: the sums they scatter to stay in the cache


@frozen(kw_only=True)
class Projection(ABC):
    """A projection realised from a public seed.

    Parameters
    ----------
    p, k : number of attributes and of projected values
    seed : int, ≥ 0; public
    """

    name: ClassVar[str]

    p: int = field(converter=to_count)
    k: int = field(converter=to_count)
    seed: int = field(converter=to_whole)
    _known: dict[Any, Any] = field(init=False, repr=False, eq=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        check_seed(self.seed)

    def _words(self) -> ReplayableWords:
        return ReplayableWords(self.seed, self.name)

    @property
    def source(self) -> str:
        """What `_words` depends on: projections that have it in common overlap."""
        return f"{self.name} projections of seed {self.seed}"

    @property
    def _realised(self) -> Any:
        return self._remember("realised", lambda: frozen_arrays(self._realise(self._words())))

    @abstractmethod
    def _realise(self, rng: ReplayableWords) -> Any:
        """Draw what the integer matrix is made from: the matrix itself unless overridden."""

    @property
    def matrix(self) -> Any:
        """(p, k) whole numbers as doubles: an ndarray, or a scipy CSR array where P is sparse."""
        return self._realised

    def blocks(self) -> Iterator[Any]:
        """The integer matrix in consecutive blocks of rows: one block where it is stored."""
        yield self.matrix

    @property
    def stored(self) -> bool:
        """Whether the matrix is held in memory, or generated anew each time it is needed."""
        return True

    @property
    @abstractmethod
    def scale(self) -> Exact:
        """What the integer matrix is multiplied by."""

    # Moments over the draw

    @property
    @abstractmethod
    def pair_variance(self) -> Fraction:
        """c: variance of an entry of P Pᵀ off the diagonal."""

    @property
    @abstractmethod
    def diagonal_variance(self) -> Fraction:
        """d: variance of an entry of P Pᵀ on the diagonal."""

    @property
    def diagonal_covariance(self) -> Fraction:
        """e: covariance of two entries of P Pᵀ on the diagonal."""
        return Fraction(0)

    def form_covariance(self, a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> float:
        """Cov(⟨aP, bP⟩, ⟨cP, dP⟩) over the draw of P, for vectors of p numbers, in doubles."""
        a, b, c, d = (np.asarray(vector, dtype=np.float64) for vector in (a, b, c, d))
        return (
            float(self.pair_variance) * (off_diagonal(a * c, b * d) + off_diagonal(a * d, b * c))
            + float(self.diagonal_variance) * float(np.sum(a * b * c * d))
            + float(self.diagonal_covariance) * off_diagonal(a * b, c * d)
        )

    # The realised matrix at work

    @property
    def height(self) -> int:
        """Rows of records that are best given to `apply` at once.

        Many where each call looks at the whole matrix, few where only the records count.
        """
        return max(1, _MULTIPLIED // self.p) if self.stored else sys.maxsize

    def apply(self, steps: Any) -> NDArray[Any]:
        """Product of records with the integer matrix, exact below 2⁵³ (see `largest_sum`).

        Parameters
        ----------
        steps : (rows, p) whole numbers, an ndarray or a scipy sparse array; a dense matrix in
            single precision is multiplied in single precision, which is exact below 2²⁴ and twice
            as fast

        Returns
        -------
        (rows, k) floating-point numbers that hold whole numbers
        """
        if not self.stored:
            return self._apply_blocks(steps)
        if is_sparse(steps) and self.signs_a_row is not None:
            return self._scatter(scipy.sparse.csr_array(steps))
        if steps.dtype == np.float32:
            return np.asarray(steps @ self._remember("single", self._single))
        return dense(steps @ self.matrix)

    def _apply_blocks(self, steps: Any) -> NDArray[np.float64]:
        in_columns = scipy.sparse.csc_array if is_sparse(steps) else np.asarray
        columns = in_columns(steps, dtype=np.float64)
        product = np.zeros((steps.shape[0], self.k))
        start = 0
        for block in self.blocks():
            product += dense(columns[:, start : start + block.shape[0]] @ block)
            start += block.shape[0]
        return product

    def _single(self) -> Any:
        return self.matrix.astype(np.float32)

    @property
    def signs_a_row(self) -> int | None:
        """How many entries ±1 a row of a sparse P has, where all have as many and no others."""
        return None

    def _scatter(self, steps: scipy.sparse.csr_array) -> NDArray[np.float64]:
        """The product with sparse records: every term is looked up and added once, in one pass.

        Columns from k on collect what is to be subtracted. A CSR array with repeated columns stands
        for their sum, which `toarray` forms.
        """
        entries = self.places.shape[1]
        product = np.empty((steps.shape[0], self.k))
        for start in range(0, steps.shape[0], _ROWS):
            ends = steps.indptr[start : start + _ROWS + 1]
            attributes, sizes = (x[ends[0] : ends[-1]] for x in (steps.indices, steps.data))
            terms = (
                np.repeat(sizes, entries),
                self.places.take(attributes, axis=0).ravel(),
                (ends - ends[0]) * entries,
            )
            sums = scipy.sparse.csr_array(terms, shape=(len(ends) - 1, 2 * self.k)).toarray()
            halves = sums[:, : self.k], sums[:, self.k :]
            np.subtract(*halves, out=product[start : start + _ROWS])
        return product

    @property
    def places(self) -> NDArray[Any]:
        """Columns of every row, of shape (p, `signs_a_row`), k more where the sign is negative."""
        known: NDArray[Any] = self._remember("places", self._places)
        return known

    def _places(self) -> NDArray[Any]:
        columns = self.matrix.indices + self.k * (self.matrix.data < 0).astype(np.int32)
        return np.asarray(columns.reshape(self.p, self.signs_a_row))

    def row(self, attribute: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Columns and values of the non-zeros in one row of the integer matrix."""
        self._check(attribute)
        entries = scipy.sparse.csr_array(self.matrix[[attribute]])
        return entries.indices.astype(np.intp), entries.data.astype(np.int64)

    def update(self, sketch: NDArray[np.int64], attribute: int, steps: int) -> None:
        """Add `steps` times a row to an integer sketch of k values in place: a turnstile update."""
        columns, values = self.row(attribute)
        sketch[columns] += steps * values

    def _check(self, attribute: int) -> None:
        require(0 <= attribute < self.p, "attribute", attribute, f"in [0, {self.p})")

    # Bounds

    def largest_sum(self, reach: int) -> int:
        """Bound on the absolute terms of every sum in `apply`, for records within ±`reach` steps.

        Below 2⁵³ every partial sum is a double, in whatever order it is formed.
        """
        return reach * int(self._remember("column", self._largest_column))

    def _largest_column(self) -> int:
        if not self.stored:
            return self._measured().column
        if self.signs_a_row is not None:
            return int(np.bincount(self.matrix.indices).max())
        return int(np.asarray(abs(self.matrix).sum(axis=0)).max())

    def _measured(self) -> Measures:
        known: Measures = self._remember("measured", lambda: measure(self.p, self.k, self.blocks()))
        return known

    def row_norm(self, norm: Literal[1, 2]) -> Exact:
        """Largest ℓ1 or ℓ2 norm of a row of the integer matrix, exactly."""
        known: Exact = self._remember(("row", norm), lambda: self._largest_row(norm))
        return known

    def _largest_row(self, norm: Literal[1, 2]) -> Exact:
        if self.signs_a_row is not None:
            size = Fraction(self.signs_a_row)
            return size if norm == 1 else SquareRoot(size)
        if not self.stored:
            return self._measured().l1 if norm == 1 else self._measured().l2
        sizes = abs(self.matrix)
        if not self.k * int(sizes.max()) ** norm < 2**53:
            return largest_row_norm(self.matrix, norm)
        largest = Fraction(int(np.asarray((sizes**norm).sum(axis=1)).max()))
        return largest if norm == 1 else SquareRoot(largest)

    def majorant(self) -> tuple[Fraction, ...]:
        """A row that no row of the integer matrix is worse than under Laplace noise, in steps.

        See `dpverify.accounting.curves.laplace`: it is the largest row where all have one ℓ1 norm
        and one shape, and never more than what their largest sums allow.
        """
        known: tuple[Fraction, ...] = self._remember("majorant", self._majorant)
        return known

    def _majorant(self) -> tuple[Fraction, ...]:
        sums = [largest_sums(_sizes(block)) for block in self.blocks()]
        return majorant_of_sums(np.max(sums, axis=0))

    def spectral_norm(self) -> Enclosure:
        """Encloses ‖P‖₂ of the integer matrix: a record that moves by R moves its row by R‖P‖₂."""
        known: Enclosure = self._remember("spectral", lambda: root(self._squared_spectral_norm()))
        return known

    def _squared_spectral_norm(self) -> tuple[Fraction, Fraction]:
        return squared_spectral_norm(self.matrix)

    def column_maxima(self) -> NDArray[np.int64]:
        """max|W_ij| of every column, at least 1 so that a column of zeros divides nothing by 0."""
        known: NDArray[np.int64] = self._remember("columns", self._column_maxima)
        return known

    def _column_maxima(self) -> NDArray[np.int64]:
        largest: Any = abs(self.matrix).max(axis=0)
        return np.maximum(dense(largest).astype(np.int64).ravel(), 1)

    def _remember(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def sha256(self) -> str:
        """Digest of the integer matrix, the same for dense and sparse storage.

        SHA-256 of the text ``p k`` followed by the digests of three little-endian int64 streams:
        non-zeros in each row, their columns, their values, row by row in rising column.
        """
        known: str = self._remember("sha256", self._digest)
        return known

    def _digest(self) -> str:
        return digest(f"{self.p} {self.k}", self.matrix) if self.stored else self._measured().sha256


def off_diagonal(u: NDArray[np.float64], t: NDArray[np.float64]) -> float:
    """Σ uᵢtⱼ over i ≠ j, of which no digits are lost where one attribute outweighs the others."""
    before = np.cumsum((u, t), axis=1)[:, :-1]
    return float(before[0] @ t[1:] + before[1] @ u[1:])


@cache
def single_is_exact(multiply: Callable[[Any, Any], Any] = np.matmul) -> bool:
    """Whether products in single precision are what IEEE 754 says: asked once in a process.

    A library may be set to round the factors to 8 or 11 bits first (bfloat16, TF32). Here the
    factors need 12 and 13 bits and their products all 24, in matrices that no small kernel takes.
    """
    size = 256
    one, other = 4095 * np.eye(size, dtype=np.float32), np.full((size, size), 4097, np.float32)
    return bool(np.all(multiply(one, other) == 2**24 - 1))


def digest(text: str, *matrices: Any) -> str:
    """SHA-256 of a text and of the three streams of each matrix; see `Projection.sha256`."""
    streams = [_Streams() for _ in matrices]
    for stream, matrix in zip(streams, matrices, strict=True):
        stream.add(matrix)
    return _together(text, streams)


class _Streams:
    """The three streams of a matrix, fed with its rows."""

    def __init__(self) -> None:
        self.parts = [hashlib.sha256() for _ in range(3)]

    def add(self, block: Any) -> None:
        """Take the next rows."""
        if not is_sparse(block) and np.all(block):  # as below, without the detour
            count, width = block.shape
            columns = np.broadcast_to(np.arange(width), block.shape)
            streams = np.full(count, width), columns, block
        else:
            rows = scipy.sparse.csr_array(block)
            rows.sort_indices()
            streams = np.diff(rows.indptr), rows.indices, rows.data
        for part, stream in zip(self.parts, streams, strict=True):
            part.update(np.ascontiguousarray(stream, dtype="<i8").data)


def _together(text: str, matrices: Iterable[_Streams]) -> str:
    total = hashlib.sha256(text.encode())
    for matrix in matrices:
        for part in matrix.parts:
            total.update(part.digest())
    return total.hexdigest()


@frozen(kw_only=True)
class Measures:
    """What is known of a matrix after one look at every entry.

    Attributes
    ----------
    column : largest sum of sizes in a column
    l1, l2 : largest norms of a row
    sha256 : as in `Projection.sha256`
    """

    column: int
    l1: Fraction
    l2: SquareRoot
    sha256: str


def measure(p: int, k: int, blocks: Iterable[Any]) -> Measures:
    """Measure a p × k matrix of whole numbers in one pass, exactly, whatever its blocks are.

    Parameters
    ----------
    p, k : its shape
    blocks : its rows, in consecutive dense blocks of which one at a time is held

    Raises
    ------
    NumericalError
        If entries are too large for sums of 64-bit integers.
    """
    streams = _Streams()
    columns = np.zeros(k, dtype=np.int64)
    l1 = squares = 0
    for block in blocks:
        sizes = np.abs(block).astype(np.int64)
        largest = int(sizes.max())
        if not max(p * largest, k * largest**2) < 2**63:
            raise NumericalError(f"entries up to {largest} don't fit into exact sums.")
        columns += sizes.sum(axis=0)
        l1 = max(l1, int(sizes.sum(axis=1).max()))
        squares = max(squares, int(np.einsum("ij,ij->i", sizes, sizes).max()))
        streams.add(block)
    return Measures(
        column=int(columns.max()),
        l1=Fraction(l1),
        l2=SquareRoot(Fraction(squares)),
        sha256=_together(f"{p} {k}", [streams]),
    )


def _sizes(block: Any) -> NDArray[np.int64]:
    """Sizes of the entries of every row, zeros left out where the block is sparse."""
    sizes = abs(block)
    if not is_sparse(sizes):
        return np.asarray(sizes, dtype=np.int64)
    counts = np.diff(sizes.indptr)
    rows = np.zeros((sizes.shape[0], int(counts.max())), dtype=np.int64)
    rows[np.arange(rows.shape[1]) < counts[:, None]] = sizes.data
    return np.unique(np.sort(rows, axis=1), axis=0)


def frozen_arrays(realised: Any) -> Any:
    """Make the arrays read-only: norms are known of this matrix, and of no other."""
    parts = (realised.data, realised.indices, realised.indptr) if is_sparse(realised) else realised
    for array in parts if isinstance(parts, tuple) else (parts,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return realised
