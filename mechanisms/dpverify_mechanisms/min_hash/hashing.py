"""Hash functions for MinHash: a random rank for every item, and a random bucket for every rank.

Function f maps a set x to h_f(x) = g_f(min over its items i of W_f(i)), where W_f(i) is the item's
64-bit rank and g_f maps ranks to buckets 0, …, B − 1.

**What ideal means.** All W_f(i) and all g_f(rank) are independent and uniform. Then, for two sets
with Jaccard similarity J whose union has u items,

    P[h_f(x) ≠ h_f(y)] ≤ (1 − J)(1 − 1/B),                                                      (1)

independently over f: name one of the union's items of least rank at random. By symmetry it is
uniform on the union, so it lies in both sets with probability J, and then both have the same
minimum; where the minima differ their buckets are equal with probability exactly 1/B. Ties can only
make minima equal. They do so with probability at most u/2⁶⁴, since a unique minimum has probability
(u/N^u)·Σ_{j<N} j^(u−1) ≥ (1 − 1/N)^u for N = 2⁶⁴; so the left side of (1) is at least the right
side less u/2⁶⁴, which the exact moments of the estimators leave open.

Aumüller et al. 2020, section 3.1, ask for a *universal* g_f only, whose collisions have probability
at most 1/B: that bounds (1) from the wrong side. Pairwise independence is what is needed.

**What is realised.** `KeyedHashes` reads all words off AES-128 under a key that is drawn from the
public seed. How many of the K functions differ on a pair that was fixed before the key was drawn is
computed from those words in polynomial time. So if AES is a pseudorandom function, the mean of any
bounded function of that number, and δ(ε) over the draw is one, is that of ideal functions up to the
advantage against AES: also where the key is published afterwards. For data that depends on the key
nothing like it holds, and no hash family could help.

No table has the size of the universe, and every item costs 8K bytes of AES output.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from attrs import evolve, field, frozen
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpverify.errors import require
from dpverify.execution.compiled import compiled
from dpverify.execution.loops import least_ranks
from dpverify.numbers import to_count, to_whole
from dpverify.sampling.words import ReplayableWords

__all__ = ["HashFamily", "KeyedHashes", "TabledHashes"]

Ranks = NDArray[np.uint64]

_WORD = np.dtype("<u8")  # the same words on every machine
_CHUNK = 1 << 15  # ranks a chunk: they stay in the cache, in memory that is taken once
_ROWS = 1 << 12
_BUCKET_TAG = 1 << 63  # keeps the cipher's blocks for buckets apart from those for ranks


@frozen(kw_only=True)
class HashFamily(ABC):
    """K realised range-B MinHash functions on a universe of items.

    Parameters
    ----------
    items : size of the universe, at most 2⁶³
    functions : K, from 1 to 2³¹
    buckets : B, from 2 to 2³²
    """

    name: ClassVar[str]
    assumptions: ClassVar[tuple[str, ...]]

    items: int = field(converter=to_count)
    functions: int = field(converter=to_count)
    buckets: int = field(converter=to_count)

    def __attrs_post_init__(self) -> None:
        require(self.items <= 2**63, "items", self.items, "in [1, 2**63]")
        require(self.functions <= 2**31, "functions", self.functions, "in [1, 2**31]")
        require(2 <= self.buckets <= 2**32, "buckets", self.buckets, "in [2, 2**32]")

    @abstractmethod
    def rank_chunks(self, items: NDArray[Any]) -> Iterator[Ranks]:
        """Ranks of consecutive items, in pieces of shape (some, K), each valid until the next."""

    @abstractmethod
    def bucket(self, ranks: Ranks) -> NDArray[np.int64]:
        """Buckets of ranks of shape (rows, K), column f under function f."""

    @abstractmethod
    def redrawn(self, seed: int) -> Self:
        """Other functions of the same family."""

    @property
    @abstractmethod
    def source(self) -> str:
        """What the functions are made from: families that have it in common may overlap."""

    @abstractmethod
    def _description(self) -> bytes:
        """Bytes that tell these functions from all others."""

    def values(self, sets: scipy.sparse.csr_array) -> NDArray[np.int64]:
        """h_f(x) of every set, of shape (rows, K).

        Parameters
        ----------
        sets : CSR rows of non-empty sets, of shape (rows, items)
        """
        values = np.empty((sets.shape[0], self.functions), dtype=np.int64)
        for start in range(0, sets.shape[0], _ROWS):
            stop = min(start + _ROWS, sets.shape[0])
            ends = np.asarray(sets.indptr[start : stop + 1], dtype=np.intp)
            values[start:stop] = self.bucket(self._minima(sets.indices, ends))
        return values

    def ranks(self, items: NDArray[Any]) -> Ranks:
        """Ranks of single items under every function, of shape (count, K)."""
        return np.concatenate([chunk.copy() for chunk in self.rank_chunks(items)])

    def sha256(self) -> str:
        """Fingerprint of the realised functions."""
        return hashlib.sha256(self._description()).hexdigest()

    def _minima(self, indices: NDArray[Any], ends: NDArray[Any]) -> Ranks:
        """Least ranks of the sets indices[ends[r]:ends[r + 1]], of shape (rows, K)."""
        least = np.full((ends.size - 1, self.functions), ~np.uint64(0))
        row, start = 0, int(ends[0])
        take = compiled(least_ranks, values=(int(ends[-1]) - start) * self.functions) or _by_rows
        for ranks in self.rank_chunks(indices[start : ends[-1]]):
            row = take(np.ascontiguousarray(ranks), ends, start, row, least)
            start += len(ranks)
        return least


def _by_rows(ranks: Ranks, ends: NDArray[np.intp], first: int, row: int, least: Ranks) -> int:
    """As `least_ranks`, set by set: several times as fast as np.minimum.reduceat along axis 0."""
    stop = first + len(ranks)
    while row < len(least) and ends[row] < stop:
        part = ranks[max(ends[row] - first, 0) : ends[row + 1] - first]
        np.minimum(least[row], part.min(axis=0), out=least[row])
        if ends[row + 1] > stop:
            break
        row += 1
    return row


@frozen(kw_only=True)
class KeyedHashes(HashFamily):
    """Ranks and buckets from AES-128 under a public random key.

    Rank f of item i is word f mod 2 of the cipher's block (i, ⌊f/2⌋); the bucket of a rank r under
    f is word 0 of block (r, 2⁶³ + 2³²·attempt + f) modulo B, with the words at or above the largest
    multiple of B passed over. No block occurs twice.

    Parameters
    ----------
    seed : public; the key's only source
    """

    name: ClassVar[str] = "AES-128 ranks and buckets"
    assumptions: ClassVar[tuple[str, ...]] = (
        "AES-128 under a random key is a pseudorandom function, numpy's SeedSequence and "
        "Philox-4x64 make such a key of a random seed, and the hash functions' seed was drawn at "
        "random, independently of the records.",
    )

    seed: int = field(converter=to_whole)
    _keys: list[bytes] = field(init=False, repr=False, eq=False, factory=list)

    def rank_chunks(self, items: NDArray[Any]) -> Iterator[Ranks]:
        """Ranks of consecutive items, in pieces."""
        half = -(-self.functions // 2)
        size = min(max(_CHUNK // (2 * half), 1), len(items))
        blocks = np.empty((size, half, 2), dtype=_WORD)
        blocks[:, :, 1] = np.arange(half)
        encrypt = self._cipher(blocks.nbytes)
        for start in range(0, len(items), size):
            chunk = np.asarray(items[start : start + size], dtype=_WORD)
            blocks[: chunk.size, :, 0] = chunk[:, None]
            words = encrypt(blocks[: chunk.size])
            yield words.reshape(chunk.size, 2 * half)[:, : self.functions]

    def bucket(self, ranks: Ranks) -> NDArray[np.int64]:
        """Buckets of ranks of shape (rows, K)."""
        flat = ranks.ravel()
        buckets = np.empty(flat.size, dtype=np.int64)
        last = np.uint64(2**64 - 2**64 % self.buckets - 1)
        waiting, attempt = np.arange(flat.size), 0
        while waiting.size:
            blocks = np.empty((waiting.size, 2), dtype=_WORD)
            blocks[:, 0] = flat[waiting]
            blocks[:, 1] = waiting % self.functions
            blocks[:, 1] += np.uint64(_BUCKET_TAG + (attempt << 32))
            words = self._cipher(blocks.nbytes)(blocks)[:, 0]
            taken = words <= last
            buckets[waiting[taken]] = words[taken] % np.uint64(self.buckets)
            waiting, attempt = waiting[~taken], attempt + 1
        return buckets.reshape(ranks.shape)

    def redrawn(self, seed: int) -> Self:
        """Functions under another key."""
        return evolve(self, seed=seed)

    @property
    def source(self) -> str:
        """The key's, for any universe, K and B."""
        return f"min-hash functions of seed {self.seed}"

    def _key(self) -> bytes:
        if not self._keys:
            words = ReplayableWords(self.seed, "min-hash").words(2)
            self._keys.append(words.astype(_WORD).tobytes())
        return self._keys[0]

    def _cipher(self, size: int) -> Callable[[Ranks], Ranks]:
        """Encryption of up to `size` bytes of blocks, whose result is valid until the next."""
        # Every block is met once and the key is public: ECB is the pseudorandom function itself.
        cipher = Cipher(algorithms.AES(self._key()), modes.ECB()).encryptor()  # noqa: S305
        encrypted = np.empty(size + 15, dtype=np.uint8)  # as update_into wants it

        def encrypt(blocks: Ranks) -> Ranks:
            cipher.update_into(blocks.reshape(-1).view(np.uint8).data, encrypted.data)
            return encrypted[: blocks.nbytes].view(_WORD).reshape(blocks.shape)

        return encrypt

    def _description(self) -> bytes:
        sizes = f"{self.name}, {self.items} items, {self.functions} x {self.buckets}: "
        return sizes.encode() + self._key()


@frozen(kw_only=True)
class TabledHashes(HashFamily):
    """Functions given by tables, for small universes and for enumeration.

    Parameters
    ----------
    orders : for each function the rank of every item, a permutation of 0, …, items − 1
    marks : for each function the bucket of every rank
    """

    name: ClassVar[str] = "tables of ranks and buckets"
    assumptions: ClassVar[tuple[str, ...]] = (
        "The tables were drawn uniformly at random and independently of the data.",
    )

    orders: tuple[tuple[int, ...], ...]
    marks: tuple[tuple[int, ...], ...]

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        places = list(range(self.items))
        good = len(self.orders) == self.functions and all(sorted(o) == places for o in self.orders)
        require(good, "orders", self.orders, f"{self.functions} permutations of the items")
        good = len(self.marks) == self.functions and all(
            len(m) == self.items and set(m) <= set(range(self.buckets)) for m in self.marks
        )
        require(good, "marks", self.marks, f"{self.functions} rows of buckets, one for each rank")

    def rank_chunks(self, items: NDArray[Any]) -> Iterator[Ranks]:
        """Ranks of the items, in one piece."""
        yield np.array(self.orders, dtype=np.uint64)[:, items].T

    def bucket(self, ranks: Ranks) -> NDArray[np.int64]:
        """Buckets of ranks of shape (rows, K)."""
        return np.array(self.marks)[np.arange(self.functions), ranks.astype(np.int64)]

    def redrawn(self, seed: int) -> Self:
        """Tables drawn anew; buckets modulo B of 64-bit words, so uniform up to B/2⁶⁴."""
        words = ReplayableWords(seed, "min-hash tables").words(2 * self.functions * self.items)
        ranks, marks = words.reshape(2, self.functions, self.items)
        return evolve(
            self,
            orders=tuple(map(tuple, np.argsort(ranks, axis=1, kind="stable").tolist())),
            marks=tuple(map(tuple, (marks % np.uint64(self.buckets)).tolist())),
        )

    @property
    def source(self) -> str:
        """One for all tables: nothing tells how they were drawn."""
        return self.name

    def _description(self) -> bytes:
        return f"{self.name}: {self.orders} {self.marks} {self.buckets}".encode()
