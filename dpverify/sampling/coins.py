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
from dpverify.sampling.words import Words

__all__ = ["flips", "uniform_below"]

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
