"""Inner products of integer rows that come out the same on every machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["dot"]


def dot(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """Row-wise inner products of integer arrays of shapes (…, k) that broadcast.

    In int64 where no sum can overflow, hence exact before the one rounding to a double; else the
    correctly rounded sum of the products as doubles. Neither depends on the order of summation,
    so that an audit replays to the last bit.
    """
    reach = int(np.abs(first).max(initial=0)) * int(np.abs(second).max(initial=0))
    if reach * first.shape[-1] < 2**63:
        return np.asarray(np.vecdot(first, second), dtype=np.float64)
    products: NDArray[Any] = first.astype(np.float64) * second
    rows = products.reshape(-1, products.shape[-1])
    sums = [math.fsum(row) for row in rows.tolist()]
    return np.array(sums).reshape(products.shape[:-1])
