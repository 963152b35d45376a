"""Rows in blocks of one size, however they came: no result depends on their blocking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dpverify.domain import is_sparse

__all__ = ["ROWS", "row_blocks"]

ROWS = 1024
"""Records a block: enough for a matrix product at full speed, few enough to stream data."""


def row_blocks(admitted: Iterable[Any]) -> Iterator[Any]:
    """The same rows in blocks of `ROWS`, so that the noise doesn't depend on their blocking."""
    kept: list[Any] = []
    count = 0
    for block in admitted:
        start = 0
        while start < block.shape[0]:
            part = block[start : start + ROWS - count]
            kept.append(part)
            count += part.shape[0]
            start += part.shape[0]
            if count == ROWS:
                yield _joined(kept)
                kept, count = [], 0
    if kept:
        yield _joined(kept)


def _joined(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if any(is_sparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)
