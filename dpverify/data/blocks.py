"""Rows in blocks of one size, however they came: no result depends on their blocking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import scipy

from dpverify.data.domain import is_sparse
from dpverify.errors import RecordsError
from dpverify.visible import shown

__all__ = ["ROWS", "Admission", "admitted_blocks", "joined", "row_blocks"]

ROWS = 1024
"""Records a block: enough for a matrix product at full speed, few enough to stream data."""


class Admission(Protocol):
    """What decides whether records are let in: a domain, or a stricter rule on top of one."""

    def admit(self, records: Any, *, attributes: int | None = None) -> Any:
        """Records as a matrix with a row for each; RecordsError if they aren't let in."""
        ...


def admitted_blocks(records: Any, domain: Admission, *, attributes: int) -> Iterator[Any]:
    """Records inside the domain: an array as one block, blocks of rows each for itself.

    A sequence is one array, which may be nested; blocks come from any other iterable.

    Parameters
    ----------
    records : (n, p) array, dense or scipy sparse, or an iterable of such arrays, whose rows follow
        one another
    domain : admits every block
    attributes : p

    Yields
    ------
    Matrices with `attributes` columns and at least one row, dense or CSR; each is read when it is
    asked for, so that one block at a time is in memory.

    Raises
    ------
    RecordsError
        If a block isn't admitted, naming the record by its number among all of them; if there is
        no block; or if `records` is neither.
    """
    if isinstance(records, Sequence) or hasattr(records, "__array__") or is_sparse(records):
        yield domain.admit(records, attributes=attributes)
        return
    if not isinstance(records, Iterable):
        raise RecordsError(f"records must be an array or blocks of rows, and not {shown(records)}.")
    number = first = 0
    for number, block in enumerate(records, start=1):
        try:
            admitted = domain.admit(block, attributes=attributes)
        except RecordsError as error:
            raise error.in_block(number - 1, first) from None
        first += admitted.shape[0]
        yield admitted
    if number == 0:
        raise RecordsError("there are no records: at least one is needed.")


def row_blocks(admitted: Iterable[Any], *, at_once: int = ROWS) -> Iterator[Any]:
    """The same rows in blocks of `ROWS`, so that the noise doesn't depend on their blocking.

    Parameters
    ----------
    admitted : matrices whose rows follow one another
    at_once : rows that may be yielded together, as a multiple of `ROWS`, where one matrix holds
        them; the last block of all has what is left over
    """
    most = max(1, at_once // ROWS) * ROWS
    kept: list[Any] = []
    count = 0
    for block in admitted:
        start = 0
        while start < block.shape[0]:
            whole = min(most, (block.shape[0] - start) // ROWS * ROWS)
            if count == 0 and whole:
                yield block[start : start + whole]
                start += whole
                continue
            part = block[start : start + ROWS - count]
            kept.append(part)
            count += part.shape[0]
            start += part.shape[0]
            if count == ROWS:
                yield joined(kept)
                kept, count = [], 0
    if kept:
        yield joined(kept)


def joined(blocks: Iterable[Any]) -> Any:
    """All rows as one matrix, CSR where a block is sparse: for what can't be done by blocks."""
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    if any(is_sparse(part) for part in parts):
        return scipy.sparse.vstack([scipy.sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)
