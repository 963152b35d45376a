"""Sparse Johnson-Lindenstrauss transforms with several entries a row.

**Moments** (c, d, e as in `projections.base`). Write A = P Pᵀ; signs are fair and independent of
places.

 - SJLT, block construction: A_ij is 1/s times the sum over s blocks of a product of signs where
   attributes i and j share the block's bin, of which there are k/s. So c = s·(s/k)/s² = 1/k.
 - SJLT, graph construction: the places that i and j share are hypergeometric, s²/k in the mean, and
   each adds the square of a sign product: c = (s²/k)/s² = 1/k, the same.
   In both every row has s entries ±1/√s, so that d = 0.
 - DKS: r copies of each attribute, each with its own bin of k and its own sign, and copies of one
   attribute may meet. Off the diagonal c = r²·(1/k)/r² = 1/k. On it, A_ii is 1 + (2/r) times the
   sum over pairs of copies of sign products where they meet: d = (4/r²)·C(r, 2)/k = 2(r − 1)/(rk).

**Limited independence.** The second moments of A involve the signs of at most four attributes at
once, and where those don't cancel the places of at most two. So t-wise independent hashing has
exactly these moments for t ≥ 4, within a block; blocks are independent of each other.
Stausholm 2021, section 6.1, asks for O(log(1/β))-wise, for tail bounds.

**Exact hashing.** A polynomial of degree t − 1 with uniform coefficients over a finite field takes
t-wise independent, exactly uniform values at the field's elements. Over GF(2³²) a value is 32
independent fair bits: one of them is the sign and log2(k/s) are the bin, so that both are t-wise
independent, independent of each other, and exactly uniform. (Over a prime field no bin count but
1 and the prime itself would be.) That needs k/s to be a power of two.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from attrs import field, frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.enclosure import Exact, SquareRoot
from dpverify.errors import require, require_known
from dpverify.numbers import to_count, to_whole
from dpverify.sampling.coins import uniform_below
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.independent import signs

__all__ = ["SJLT", "BinaryField", "DKSProjection", "PolynomialHash"]


@frozen(kw_only=True)
class BinaryField:
    """GF(2^bits): polynomials over GF(2) as the bits of whole numbers, modulo an irreducible one.

    Parameters
    ----------
    bits : degree, at most 32
    modulus : the irreducible polynomial, its leading term included
    """

    bits: int
    modulus: int

    def multiply(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.uint64]:
        """Products of elements, of shapes that broadcast: b's bits from the top, Horner's rule."""
        a, b = np.asarray(a, dtype=np.uint64), np.asarray(b, dtype=np.uint64)
        product = np.zeros(np.broadcast_shapes(a.shape, b.shape), dtype=np.uint64)
        one, top = np.uint64(1), np.uint64(self.bits)
        for bit in reversed(range(self.bits)):
            product = product << one
            product ^= (product >> top) * np.uint64(self.modulus)
            product ^= a * ((b >> np.uint64(bit)) & one)
        return product


class PolynomialHash:
    """`count` independent t-wise independent functions from a field to itself.

    Multiplication by a fixed coefficient is linear over GF(2), so each is tabled by bytes, and a
    value takes (t − 1)·⌈bits/8⌉ look-ups.

    Parameters
    ----------
    field : whose elements are hashed
    coefficients : (count, t) elements, the constant first; uniform for the stated independence
    """

    def __init__(self, field: BinaryField, coefficients: NDArray[np.uint64]) -> None:
        self._field = field
        self._constants = coefficients[:, :1]
        self._shifts = [np.uint64(8 * place) for place in range(-(-field.bits // 8))]
        bytes_ = np.arange(256, dtype=np.uint64)
        inputs = np.stack([bytes_ << shift for shift in self._shifts])
        self._tables = field.multiply(inputs, coefficients[:, 1:, None, None])

    def __call__(self, elements: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values of shape (count, n) at n elements."""
        values = np.repeat(self._constants, len(elements), axis=1)
        power = elements
        for degree in range(self._tables.shape[1]):
            power = elements if degree == 0 else self._field.multiply(power, elements)
            for place, shift in enumerate(self._shifts):
                byte = ((power >> shift) & np.uint64(255)).astype(np.intp)
                values ^= self._tables[:, degree, place][:, byte]
        return values


@frozen(kw_only=True)
class SJLT(Projection):
    """The sparser Johnson-Lindenstrauss transform of Kane and Nelson: s entries ±1/√s in each row.

    Stausholm 2021, section 6.1. Row norms are 1 (ℓ2) and √s (ℓ1) whatever is drawn.

    Parameters
    ----------
    sparsity : int from 1 to k; s
    construction : "block" (one entry in each of s blocks of k/s columns, Kane and Nelson's c) or
        "graph" (s distinct columns out of all k, their b)
    hashing : "independent", or the degree t ≥ 4 of independence of polynomial hashing, for blocks
        whose size is a power of two. Then nothing but the coefficients is stored until `matrix` is
        asked for, and `row` and `update` take O(s t).
    """

    name: ClassVar[str] = "sjlt"
    base: ClassVar[BinaryField] = BinaryField(bits=32, modulus=(1 << 32) | 0b1000_1101)

    sparsity: int = field(converter=to_whole)
    construction: Literal["block", "graph"] = "block"
    hashing: Literal["independent"] | int = "independent"

    def __attrs_post_init__(self) -> None:
        s = self.sparsity
        require(1 <= s <= self.k, "sparsity", s, f"from 1 to k={self.k}")
        require_known("construction", self.construction, ("block", "graph"))
        if self.construction == "block":
            require(self.k % s == 0, "sparsity", s, f"a divisor of k={self.k} for blocks")
        if self.hashing != "independent":
            self._check_hashing(self.hashing)
        super().__attrs_post_init__()

    def _check_hashing(self, degree: Any) -> None:
        require(
            isinstance(degree, int) and degree >= 4,
            "hashing",
            degree,
            "independent or a whole number of at least 4",
            "With less independence the variances would not be the stated ones.",
        )
        blocks = self.construction == "block"
        require(blocks, "construction", self.construction, "block for polynomial hashing")
        size, bits = self.k // self.sparsity, self.base.bits
        require(
            size & (size - 1) == 0 and 2 * size <= 2**bits,
            "k",
            self.k,
            f"sparsity={self.sparsity} times a power of two below 2**{bits}",
            "Bins are then exactly uniform; independent hashing takes any number.",
        )
        require(self.p <= 2**bits, "p", self.p, f"at most 2**{bits} for polynomial hashing")

    def _realise(self, rng: ReplayableWords) -> Any:
        if self.hashing != "independent":
            count = self.sparsity * self.hashing
            drawn = rng.words(count) >> np.uint64(64 - self.base.bits)
            return PolynomialHash(self.base, drawn.reshape(self.sparsity, self.hashing))
        places = self._blocks(rng) if self.construction == "block" else self._subsets(rng)
        flips = signs(self.p * self.sparsity, rng).reshape(self.p, self.sparsity)
        return self._assemble(places, flips)

    def _blocks(self, rng: ReplayableWords) -> NDArray[np.int64]:
        size = self.k // self.sparsity
        bins = uniform_below(size, (self.p, self.sparsity), rng=rng)
        return bins + size * np.arange(self.sparsity)

    def _subsets(self, rng: ReplayableWords) -> NDArray[np.int64]:
        """Uniform s-subsets of the k columns, by Floyd's algorithm in all rows at once."""
        chosen = np.empty((self.p, self.sparsity), dtype=np.int64)
        for number, last in enumerate(range(self.k - self.sparsity, self.k)):
            drawn = uniform_below(last + 1, (self.p,), rng=rng)
            taken = (chosen[:, :number] == drawn[:, None]).any(axis=1)
            chosen[:, number] = np.where(taken, last, drawn)
        return np.sort(chosen, axis=1)

    def _hashed(self, attributes: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Columns and signs, of shape (n, s): the last bit is the sign, those above are the bin."""
        values = self._realised(attributes).T
        size, one = self.k // self.sparsity, np.uint64(1)
        bins = ((values >> one) & np.uint64(size - 1)).astype(np.int64)
        return bins + size * np.arange(self.sparsity), 1.0 - 2.0 * (values & one)

    def _assemble(self, places: NDArray[Any], flips: NDArray[Any]) -> scipy.sparse.csr_array:
        starts = np.arange(self.p + 1) * self.sparsity
        return scipy.sparse.csr_array(
            (flips.ravel(), places.ravel(), starts), shape=(self.p, self.k)
        )

    @property
    def matrix(self) -> Any:
        """(p, k) CSR array of ±1."""
        if self.hashing == "independent":
            return self._realised
        return self._remember(
            "matrix", lambda: self._assemble(*self._hashed(np.arange(self.p, dtype=np.uint64)))
        )

    def row(self, attribute: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Columns and signs of one attribute; hashed anew where hashing is polynomial."""
        self._check(attribute)
        if self.hashing == "independent":
            entries = slice(attribute * self.sparsity, (attribute + 1) * self.sparsity)
            places, flips = self.matrix.indices[entries], self.matrix.data[entries]
        else:
            places, flips = (x[0] for x in self._hashed(np.array([attribute], dtype=np.uint64)))
        return places.astype(np.intp), flips.astype(np.int64)

    @property
    def signs_a_row(self) -> int:
        """The sparsity s."""
        return self.sparsity

    @property
    def scale(self) -> Exact:
        """1/√s."""
        return SquareRoot(Fraction(1, self.sparsity))

    @property
    def pair_variance(self) -> Fraction:
        """1/k, for both constructions."""
        return Fraction(1, self.k)

    @property
    def diagonal_variance(self) -> Fraction:
        """0: every row has norm 1."""
        return Fraction(0)


@frozen(kw_only=True)
class DKSProjection(Projection):
    """Copies of each attribute, scaled by 1/√copies and hashed to k bins with signs.

    Dasgupta, Kumar and Sarlós, which Kenthapadi et al. 2013 name in section 3.1.3, item 4. Copies
    of one attribute may fall into one bin, where they add or cancel: row norms vary.

    Parameters
    ----------
    copies : int, ≥ 1
    """

    name: ClassVar[str] = "dks"

    copies: int = field(converter=to_count)

    def _realise(self, rng: ReplayableWords) -> scipy.sparse.csr_array:
        count = self.p * self.copies
        bins = uniform_below(self.k, (count,), rng=rng)
        starts = np.arange(self.p + 1) * self.copies
        matrix = scipy.sparse.csr_array((signs(count, rng), bins, starts), shape=(self.p, self.k))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix

    @property
    def scale(self) -> Exact:
        """1/√copies."""
        return SquareRoot(Fraction(1, self.copies))

    @property
    def pair_variance(self) -> Fraction:
        """1/k."""
        return Fraction(1, self.k)

    @property
    def diagonal_variance(self) -> Fraction:
        """2(r − 1)/(rk) for r copies."""
        return Fraction(2 * (self.copies - 1), self.copies * self.k)
