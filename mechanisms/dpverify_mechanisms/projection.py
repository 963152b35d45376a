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
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dpverify.accounting.laplace import majorant
from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.domain import is_sparse
from dpverify.enclosure import Enclosure, Exact, SquareRoot
from dpverify.errors import require
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.spectral import dense, root, squared_spectral_norm

__all__ = ["Projection", "digest"]

_ROWS = 256  # sparse records a block: the sums they scatter to stay in the cache


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
    _realised: Any = field(init=False, repr=False, compare=False)
    _known: dict[Any, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        require(self.p >= 1, "p", self.p, "at least 1")
        require(self.k >= 1, "k", self.k, "at least 1")
        realised = self._realise(ReplayableWords(self.seed, self.name))
        _freeze(realised)
        object.__setattr__(self, "_realised", realised)

    @abstractmethod
    def _realise(self, rng: ReplayableWords) -> Any:
        """Draw what the integer matrix is made from: the matrix itself unless overridden."""

    @property
    def matrix(self) -> Any:
        """(p, k) whole numbers as doubles: an ndarray, or a scipy CSR array where P is sparse."""
        return self._realised

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
        same = float(np.sum(a * b * c * d))
        crossed = float((a @ c) * (b @ d) + (a @ d) * (b @ c)) - 2 * same
        return (
            float(self.pair_variance) * crossed
            + float(self.diagonal_variance) * same
            + float(self.diagonal_covariance) * (float((a @ b) * (c @ d)) - same)
        )

    # The realised matrix at work

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
        is_sparse: bool = sparse.issparse(steps)  # in a variable, or the stubs narrow Any away
        if is_sparse and self.signs_a_row is not None:
            return self._scatter(sparse.csr_array(steps), self.signs_a_row)
        if steps.dtype == np.float32:
            return np.asarray(steps @ self._remember("single", self._single))
        return dense(steps @ self.matrix)

    def _single(self) -> Any:
        return self.matrix.astype(np.float32)

    @property
    def signs_a_row(self) -> int | None:
        """How many entries ±1 a row of a sparse P has, where all have as many and no others."""
        return None

    def _scatter(self, steps: sparse.csr_array, entries: int) -> NDArray[np.float64]:
        """The product with sparse records: every term is looked up and added once, in one pass.

        Columns from k on collect what is to be subtracted. A CSR array with repeated columns stands
        for their sum, which `toarray` forms.
        """
        places = self._remember("places", lambda: self._places(entries))
        product = np.empty((steps.shape[0], self.k))
        for start in range(0, steps.shape[0], _ROWS):
            ends = steps.indptr[start : start + _ROWS + 1]
            attributes, sizes = (x[ends[0] : ends[-1]] for x in (steps.indices, steps.data))
            terms = (
                np.repeat(sizes, entries),
                places.take(attributes, axis=0).ravel(),
                (ends - ends[0]) * entries,
            )
            sums = sparse.csr_array(terms, shape=(len(ends) - 1, 2 * self.k)).toarray()
            halves = sums[:, : self.k], sums[:, self.k :]
            np.subtract(*halves, out=product[start : start + _ROWS])
        return product

    def _places(self, entries: int) -> NDArray[Any]:
        """Columns of every row, of shape (p, entries), k more where the sign is negative."""
        columns = self.matrix.indices + self.k * (self.matrix.data < 0).astype(np.int32)
        return np.asarray(columns.reshape(self.p, entries))

    def row(self, attribute: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Columns and values of the non-zeros in one row of the integer matrix."""
        self._check(attribute)
        entries = sparse.csr_array(self.matrix[[attribute]])
        return entries.indices.astype(np.intp), entries.data.astype(np.int64)

    def update(self, sketch: NDArray[np.int64], attribute: int, steps: int) -> None:
        """Add `steps` times one row to an integer sketch of k values, in place: a stream's turn."""
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
        return int(np.asarray(abs(self.matrix).sum(axis=0)).max())

    def row_norm(self, norm: Literal[1, 2]) -> Exact:
        """Largest ℓ1 or ℓ2 norm of a row of the integer matrix, exactly."""
        known: Exact = self._remember(("row", norm), lambda: self._largest_row(norm))
        return known

    def _largest_row(self, norm: Literal[1, 2]) -> Exact:
        sizes = abs(self.matrix)
        if not self.k * int(sizes.max()) ** norm < 2**53:
            return largest_row_norm(self.matrix, norm)
        largest = Fraction(int(np.asarray((sizes**norm).sum(axis=1)).max()))
        return largest if norm == 1 else SquareRoot(largest)

    def majorant(self) -> tuple[Fraction, ...]:
        """A row that no row of the integer matrix is worse than under Laplace noise, in steps.

        See `dpverify.accounting.laplace`: it is the largest row where all have one ℓ1 norm and one
        shape, and never more than what their largest sums allow.
        """
        known: tuple[Fraction, ...] = self._remember("majorant", self._majorant)
        return known

    def _majorant(self) -> tuple[Fraction, ...]:
        sizes = abs(self.matrix)
        if not is_sparse(sizes):
            return majorant(sizes.astype(np.int64))
        counts = np.diff(sizes.indptr)
        rows = np.zeros((self.p, int(counts.max())), dtype=np.int64)
        rows[np.arange(rows.shape[1]) < counts[:, None]] = sizes.data
        return majorant(np.unique(np.sort(rows, axis=1), axis=0))

    def spectral_norm(self) -> Enclosure:
        """Encloses ‖P‖₂ of the integer matrix: a record that moves by R moves its row by R‖P‖₂."""
        known: Enclosure = self._remember("spectral", lambda: root(self._squared_spectral_norm()))
        return known

    def _squared_spectral_norm(self) -> tuple[Fraction, Fraction]:
        return squared_spectral_norm(self.matrix)

    def _remember(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def sha256(self) -> str:
        """Digest of the integer matrix, the same for dense and sparse storage.

        SHA-256 of the text ``p k`` followed by the digests of three little-endian int64 streams:
        non-zeros in each row, their columns, their values, row by row in rising column.
        """
        return digest(f"{self.p} {self.k}", self.matrix)


def digest(text: str, *matrices: Any) -> str:
    """SHA-256 of a text and of the three streams of each matrix; see `Projection.sha256`."""
    total = hashlib.sha256(text.encode())
    for matrix in matrices:
        rows = sparse.csr_array(matrix)
        rows.sort_indices()
        for part in (np.diff(rows.indptr), rows.indices, rows.data):
            total.update(hashlib.sha256(part.astype("<i8").tobytes()).digest())
    return total.hexdigest()


def _freeze(realised: Any) -> None:
    """Make the arrays read-only: norms are known of this matrix, and of no other."""
    parts = (realised.data, realised.indices, realised.indptr) if is_sparse(realised) else realised
    for array in parts if isinstance(parts, tuple) else (parts,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
