"""All realisations of a small projection, written down from the papers and not from the library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

__all__ = [
    "bin_sizes",
    "every_dks",
    "every_fjlt",
    "every_oporp",
    "every_product",
    "every_rademacher",
    "every_sjlt_block",
    "every_sjlt_graph",
    "every_sparse",
    "times",
]

Matrices = NDArray[np.int64]
"""Equally likely integer matrices, of shape (count, p, k)."""


def bin_sizes(p: int, k: int) -> list[int]:
    """The first p mod k bins hold one coordinate more."""
    return [p // k + (number < p % k) for number in range(k)]


@cache
def every_oporp(p: int, k: int) -> Matrices:
    """Every permutation of the coordinates with every vector of signs: p!·2^p matrices."""
    bins = [number for number, size in enumerate(bin_sizes(p, k)) for _ in range(size)]
    one_hot = np.eye(k, dtype=np.int64)
    placed = np.array([one_hot[list(order)] for order in itertools.permutations(bins)])
    signs = np.array(list(itertools.product((-1, 1), repeat=p)), dtype=np.int64)
    matrices = placed[:, None] * signs[None, :, :, None]
    assert len(matrices) * len(signs) == math.factorial(p) * 2**p
    return matrices.reshape(-1, p, k)


@cache
def every_rademacher(p: int, k: int) -> Matrices:
    """Every matrix of signs: 2^(pk) of them."""
    return every_product((-1, 1), p, k)


@cache
def every_sparse(p: int, k: int, sparsity: int) -> Matrices:
    """Every matrix whose entries are 1, −1 and 2s − 2 zeros, each equally likely."""
    return every_product((1, -1, *[0] * (2 * sparsity - 2)), p, k)


def every_product(values: Sequence[int], p: int, k: int) -> Matrices:
    """Every matrix with entries from `values`, where a value may be listed more than once."""
    entries = np.array(list(itertools.product(values, repeat=p * k)), dtype=np.int64)
    return entries.reshape(-1, p, k)


def of_rows(rows: list[NDArray[np.int64]], p: int) -> Matrices:
    """Every matrix whose p rows are independent, each one of `rows`."""
    return np.array([np.stack(chosen) for chosen in itertools.product(rows, repeat=p)])


@cache
def every_dks(p: int, k: int, copies: int) -> Matrices:
    """Every attribute's copies, each in any bin with any sign."""
    one_hot = np.eye(k, dtype=np.int64)
    entries = [sign * row for row in one_hot for sign in (-1, 1)]
    return of_rows([np.sum(c, axis=0) for c in itertools.product(entries, repeat=copies)], p)


@cache
def every_sjlt_block(p: int, k: int, sparsity: int) -> Matrices:
    """In each of s blocks of k/s columns, one entry of either sign."""
    one_hot = np.eye(k // sparsity, dtype=np.int64)
    entries = [sign * row for row in one_hot for sign in (-1, 1)]
    return of_rows([np.concatenate(c) for c in itertools.product(entries, repeat=sparsity)], p)


@cache
def every_sjlt_graph(p: int, k: int, sparsity: int) -> Matrices:
    """Every set of s columns with every s signs."""
    rows = []
    for places in itertools.combinations(range(k), sparsity):
        for signs in itertools.product((-1, 1), repeat=sparsity):
            row = np.zeros(k, dtype=np.int64)
            row[list(places)] = signs
            rows.append(row)
    return of_rows(rows, p)


@cache
def every_fjlt(p: int, k: int, values: tuple[int, ...]) -> Matrices:
    """Every D H Qᵀ with signs in D and entries from `values` in the k × m matrix Q."""
    order = 1 << max(0, math.ceil(math.log2(p)))
    mixings = every_product(values, k, order)
    spread = hadamard(order).astype(np.int64)[:p]
    signs = np.array(list(itertools.product((-1, 1), repeat=p)), dtype=np.int64)
    images = spread @ mixings.transpose(0, 2, 1)
    return (signs[:, None, :, None] * images[None]).reshape(-1, p, k)


def times(a: int, b: int, bits: int, modulus: int) -> int:
    """Product in GF(2^bits), by long multiplication and long division."""
    product = 0
    for bit in range(bits):
        if b >> bit & 1:
            product ^= a << bit
    for bit in reversed(range(bits, 2 * bits)):
        if product >> bit & 1:
            product ^= modulus << (bit - bits)
    return product


EVERY: dict[str, Callable[..., Matrices]] = {
    "oporp": every_oporp,
    "rademacher": every_rademacher,
    "sparse": every_sparse,
    "dks": every_dks,
    "sjlt-block": every_sjlt_block,
    "sjlt-graph": every_sjlt_graph,
}
"""Enumeration of a projection by its name."""
