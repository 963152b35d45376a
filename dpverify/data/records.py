"""Records that can be read more than once, as a whole or block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpverify.data.domain import as_matrix, is_sparse, require_finite
from dpverify.errors import RecordsError

__all__ = ["Table", "scaled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Records, and how to read them.

    Attributes
    ----------
    shape : rows and attributes
    read : starts reading blocks of rows, dense doubles or scipy sparse
    parts : tables that follow one another in it, where it lies in several files
    """

    shape: tuple[int, int]
    read: Callable[[], Iterator[Any]]
    parts: tuple[Table, ...] = ()

    @classmethod
    def of(cls, matrix: Any) -> Table:
        """A matrix in memory, as one block."""
        records = as_matrix(matrix)
        return cls(shape=records.shape, read=lambda: iter([records]))

    def watched(self, advance: Callable[[int], None]) -> Table:
        """The same records; `advance` is told how many rows were read, block by block."""

        def read() -> Iterator[Any]:
            for block in self.read():
                yield block
                advance(block.shape[0])

        return Table(shape=self.shape, read=read)

    def whole(self) -> Any:
        """All records as one matrix."""
        blocks = list(self.read())
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def scaled(table: Table, ranges: Sequence[tuple[float, float]], *, refuse: bool) -> Table:
    """The table with every column brought from its own range to [0, 1].

    Each value is mapped by itself, (x − low)/(high − low) in doubles, so that what differs in one
    attribute of one record still does, and in nothing else. The subtraction and the division are
    monotone as rounded, and give 0 and 1 at the ends exactly: what was inside is inside.

    Parameters
    ----------
    ranges : least and largest value of every column, low < high
    refuse : whether a value outside its column's range is an error here, in the column's own unit;
        if not it is left to the domain, as a number outside [0, 1]

    Raises
    ------
    RecordsError
        If there are more or fewer ranges than columns; while reading, if records are sparse, not
        finite, or outside.
    """
    columns = table.shape[1]
    if len(ranges) != columns:
        raise RecordsError(
            f"data.ranges has {len(ranges)} ranges, and the records have {columns} columns. Give "
            "one for each, in order."
        )
    low, high = np.array(ranges, dtype=np.float64).T
    if not np.all(low < high):  # decimals that differ may be one double
        raise RecordsError(
            f"data.ranges: the range of column {int(np.argmin(low < high)) + 1} is empty in "
            "doubles. Widen it."
        )
    with np.errstate(over="ignore"):
        width = high - low
    if not np.all(np.isfinite(width)):
        raise RecordsError("data.ranges: a range is wider than the largest double. Narrow it.")

    def blocks() -> Iterator[Any]:
        first = 0
        for block in table.read():
            if is_sparse(block):
                raise RecordsError("data.ranges are for dense records, and these are sparse.")
            require_finite(block)
            outside = (block < low) | (block > high)
            if refuse and outside.any():
                row, column = np.argwhere(outside)[0].tolist()
                raise RecordsError(
                    f", column {column + 1} is {block[row, column]}, outside its range "
                    f"[{low[column]:g}, {high[column]:g}]. Widen the range if it was declared too "
                    'narrow, or set outside = "clip".',
                    record=first + row,
                )
            first += len(block)
            with np.errstate(over="ignore"):
                unit = (block - low) / width
            yield np.clip(unit, -1, 2)  # finite, and outside [0, 1] all the same

    parts = tuple(scaled(part, ranges, refuse=refuse) for part in table.parts)
    return Table(shape=table.shape, read=blocks, parts=parts)
