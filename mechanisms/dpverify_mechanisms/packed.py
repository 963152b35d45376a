"""Rows of bits, eight in a byte: what the mechanisms that release bits share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ones", "unused_are_zero"]


def ones(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Number of ones in every row of bytes; the padding of the last byte is zeros."""
    return np.asarray(np.bitwise_count(packed).sum(axis=-1, dtype=np.int64))


def unused_are_zero(packed: NDArray[np.uint8], count: int) -> bool:
    """Whether rows of `count` bits hold nothing but zeros in the last byte's others."""
    return not (packed[..., -1] & (0xFF >> (count - 1) % 8 + 1)).any()
