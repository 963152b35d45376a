"""Exact coins and dice from uniform words.

A coin compares one word w with a whole number n: P[w < n] = n/2⁶⁴, exactly. A die of b sides keeps
the words below the largest multiple of b, whose remainders are exactly uniform, and draws the
others again.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.errors import require
from dpverify.sampling.words import SHARED, ReplayableWords, Words

__all__ = ["flips", "packed_flips", "uniform_below"]

_WORDS = 2**64


def flips(numerators: ArrayLike, shape: tuple[int, ...], *, rng: Words) -> NDArray[np.bool_]:
    """Independent coins, each True with probability numerator/2⁶⁴ exactly.

    Parameters
    ----------
    numerators : whole numbers in [0, 2⁶⁴), one or an array that broadcasts to `shape`
    shape : of the result; one word a coin is drawn, in C order
    rng : source of words

    Raises
    ------
    ParameterError
        If a numerator is outside its range or not a whole number; a float never is one.
    """
    given = np.asarray(numerators)
    # Integers beyond 64 bits become objects, and mixed lists may become floats: both are refused.
    whole = given.dtype.kind == "u" or (given.dtype.kind == "i" and bool((given >= 0).all()))
    require(whole, "numerators", numerators, "whole numbers in [0, 2**64)")
    return rng.words(math.prod(shape)).reshape(shape) < given.astype(np.uint64, copy=False)


def packed_flips(numerator: int, shape: tuple[int, int], *, rng: Words) -> NDArray[np.uint8]:
    """Rows of `flips` that all have one numerator, eight coins in a byte.

    Parameters
    ----------
    numerator : whole number in [0, 2⁶⁴)
    shape : number of rows, and of coins in each
    rng : source of words, of which each coin takes one in C order

    Returns
    -------
    (rows, ⌈coins/8⌉) array, for reading alone, with zeros behind the last coin of a row.
    """
    rows, bits = shape
    if not (isinstance(rng, ReplayableWords) and rows * bits <= SHARED):
        return np.packbits(flips(np.uint64(numerator), shape, rng=rng), axis=1)

    def make(words: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
        coins = words < np.uint64(numerator)
        whole = len(coins) - len(coins) % bits
        return coins, np.packbits(coins[:whole].reshape(-1, bits), axis=1)

    (coins, packed), start = rng.made(rows * bits, ("coins", numerator, bits), make)
    first, rest = divmod(start, bits)
    if rest:  # other words were taken between
        return np.packbits(coins[start : start + rows * bits].reshape(shape), axis=1)
    return packed[first : first + rows]


def uniform_below(bound: int, shape: tuple[int, ...], *, rng: Words) -> NDArray[np.int64]:
    """Independent draws, each uniform on {0, …, bound − 1} exactly.

    Words at or above the largest multiple of `bound` are drawn again after all others, in order, so
    that the result depends on the stream alone; the expected number of words is below two a draw.

    Parameters
    ----------
    bound : from 1 to 2⁶³
    shape : of the result
    rng : source of words
    """
    require(1 <= bound <= 2**63, "bound", bound, "in [1, 2**63]")
    words = rng.words(math.prod(shape))
    last = np.uint64(_WORDS - _WORDS % bound - 1)
    rejected = np.flatnonzero(words > last)
    if rejected.size:
        words = words.copy()  # a source may hand out a read-only view
    while rejected.size:
        words[rejected] = rng.words(rejected.size)
        rejected = rejected[words[rejected] > last]
    return (words % np.uint64(bound)).astype(np.int64).reshape(shape)
