"""Dense records checked, put on the grid and added up in one pass over memory, by machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.blocks import ROWS
from dpverify.data.domain import Box, Vectors, as_matrix, is_sparse
from dpverify.data.grid import Grid
from dpverify.execution.compiled import compiled
from dpverify.execution.loops import add_up
from dpverify_mechanisms.projections.base import Projection

__all__ = ["one_pass"]

_DOUBLE = 53  # bits of the whole numbers that doubles add without error


def one_pass(
    records: Any, *, domain: Vectors, grid: Grid, projection: Projection, largest_sum: int
) -> NDArray[np.int64] | None:
    """Exact product in steps of records that the domain admits, or None.

    None where numpy has to do it: for sparse records, another domain than a box, a step that isn't
    a power of two, a projection that doesn't have as many entries ±1 in every row, too little to
    pay for loading numba, or where that isn't installed; and where a value is outside the domain,
    which is for the domain to refuse or to clip.

    Parameters
    ----------
    records : (rows, p), of any numbers
    domain, grid, projection : of the sketch
    largest_sum : bound on the absolute terms of every sum; see `Projection.largest_sum`
    """
    inverse = grid.whole_inverse
    if not isinstance(domain, Box) or inverse is None or projection.signs_a_row is None:
        return None
    x = as_matrix(records, attributes=projection.p)
    if is_sparse(x) or (loop := compiled(add_up, values=x.size)) is None:
        return None
    bits = (2 * largest_sum).bit_length()
    digits = min(3, max(1, _DOUBLE // bits))
    places = np.ascontiguousarray(projection.places.T, dtype=np.intp)
    product = np.empty((len(x), projection.k), dtype=np.int64)
    for start in range(0, len(x), ROWS):
        rows = np.require(x[start : start + ROWS], requirements=["C", "A"])
        out = product[start : start + ROWS]
        if not loop(rows, *domain.ends, inverse, places, digits, 2.0**bits, out):
            return None
    return product
