"""How costs grow as the work grows by 10, 100 and 1,000."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.speed.table import Row

__all__ = ["rows"]


def rows() -> Iterator[Row]:
    """Every comparison."""
    yield from ()
