"""Release a table into a file, block by block, and note what the owner may want to know of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpverify.certificate.archive import Contents, write_array
from dpverify.data.blocks import admitted_blocks, joined
from dpverify.data.records import Table
from dpverify.privacy import Certifiable, Streaming
from dpverify.sampling.words import SecureWords

__all__ = ["Released", "check_records", "write_release"]

_COMPARED = 200  # pairs of records that the owner's notes compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What is in the file, and notes for the owner's eyes that are no part of it."""

    shape: tuple[int, ...]
    dtype: str
    owner_notes: dict[str, Any]


def check_records(mechanism: Certifiable, table: Table) -> None:
    """Read all records once, so that what isn't admitted is refused before any long work.

    Raises
    ------
    RecordsError
        Naming the first record that isn't in the mechanism's domain.
    """
    for _ in admitted_blocks(
        _readable(mechanism, table), mechanism.domain, attributes=table.shape[1]
    ):
        pass


def write_release(mechanism: Certifiable, table: Table, path: Path) -> Released:
    """Release all records with fresh secure noise into a file, as `write_array` does.

    Where the mechanism releases row after row, no more than a block is in memory. The file gets
    its name when it is complete.

    Raises
    ------
    RecordsError
        If the records can't be read or aren't admitted.
    OutputError
        If the file can't be written.
    """
    rows = table.shape[0]
    half = min(rows // 2, _COMPARED)
    chosen = (range(half), range(rows // 2, rows // 2 + half))
    watched = _Watched(ranges=chosen)
    outside = 0

    def seen(blocks: Iterable[Any]) -> Iterator[Any]:
        nonlocal outside
        for block in watched.through(blocks):
            outside += mechanism.domain.count_outside(block)
            yield block

    rng = SecureWords()
    records = seen(_as_blocks(_readable(mechanism, table)))
    if isinstance(mechanism, Streaming):
        blocks = mechanism.release_blocks(records, rng=rng)
    else:
        blocks = iter([mechanism.release(next(records), rng=rng)])
    kept = _Watched(ranges=chosen)
    contents = Contents(mechanism.shape(rows), mechanism.dtype())
    write_array(path, kept.through(blocks), contents)
    notes: dict[str, Any] = {"outside_the_domain": outside}
    estimator = mechanism.estimators()[0]
    if half and estimator.compares == "records":
        one, released = watched.rows(), kept.rows()
        truths = [estimator.truth(one[[i]], one[[half + i]]) for i in range(half)]
        errors = np.abs(estimator.estimate(released[:half], released[half:]) - truths)
        name = estimator.name.replace(" ", "_")
        notes |= {
            "pairs_compared": half,
            f"mean_true_{name}": float(np.mean(truths)),
            f"mean_absolute_error_of_{name}": float(errors.mean()),
        }
    return Released(shape=contents.shape, dtype=contents.dtype.name, owner_notes=notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """Keeps some rows of the blocks that pass; the ranges follow one another."""

    ranges: tuple[range, ...]
    _kept: list[Any] = field(default_factory=list)

    def through(self, blocks: Iterable[Any]) -> Iterator[Any]:
        first = 0
        for block in blocks:
            for part in self.ranges:
                rows = block[max(part.start - first, 0) : max(part.stop - first, 0)]
                if rows.shape[0]:
                    self._kept.append(rows.copy())
            first += block.shape[0]
            yield block

    def rows(self) -> Any:
        return joined(self._kept)


def _readable(mechanism: Certifiable, table: Table) -> Any:
    return table.read() if isinstance(mechanism, Streaming) else table.whole()


def _as_blocks(records: Any) -> Iterator[Any]:
    return records if isinstance(records, Iterator) else iter([records])
