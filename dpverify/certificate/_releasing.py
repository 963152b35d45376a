"""Release a table into files, block by block, and note what the owner may want to know of it.

A table in parts is released part by part, by this process or on a cluster by whichever worker is
free, which reads the part where it lies and draws noise of its own. What it drew comes back as the
content of a file, and only here is it written. **No row is published under two noises**, whatever
becomes of workers: `docs/scaling.md` has the proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from dpverify.certificate.archive import SKETCH, Contents, write_array
from dpverify.certificate.manifest import MANIFEST, Manifest, Part, part_name
from dpverify.data.atomic_files import sha256_file, write_file, writing
from dpverify.data.blocks import admitted_blocks, joined
from dpverify.data.records import Table
from dpverify.errors import ClusterError, RecordsError
from dpverify.execution.parallel import remote, spread
from dpverify.privacy import Certifiable, Streaming
from dpverify.sampling.words import SecureWords

__all__ = ["Released", "check_records", "write_release"]

_COMPARED = 200  # pairs of records that the owner's notes compare, of each part
_SHOWN = 3  # parts of which a message says what is wrong in them


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What is in the files, and notes for the owner's eyes that are no part of them.

    Attributes
    ----------
    file : the one, or the manifest of the parts
    sha256 : of that file
    shape, dtype : of all rows
    """

    file: Literal["sketch.npz", "manifest.json"]
    sha256: str
    shape: tuple[int, ...]
    dtype: str
    owner_notes: dict[str, Any]


def check_records(
    mechanism: Certifiable,
    table: Table,
    *,
    progress: Callable[[int], None] = lambda _: None,
    workers: int = 1,
) -> None:
    """Read all records once, so that what isn't admitted is refused before any long work.

    Parameters
    ----------
    progress, workers : as for `write_release`

    Raises
    ------
    RecordsError
        Naming the first record that isn't in the mechanism's domain; of a table in parts all that
        is wrong in the first of the parts at fault, and how many there are.
    ClusterError
        If a part ends the workers that read it.
    """
    parts = _parts(mechanism, table)
    if not parts:
        _check(mechanism, table.watched(progress))
        return
    first, wrong = 0, []
    problems = _each(_problem, mechanism, parts, workers)
    for part, problem in zip(parts, problems, strict=True):
        if problem is not None:
            wrong.append(problem if problem.record is None else problem.in_block(0, first))
        first += part.shape[0]
        progress(part.shape[0])
    for other in wrong[1:_SHOWN]:
        for line in (str(other), *getattr(other, "__notes__", ())):
            wrong[0].add_note(line)
    if len(wrong) > _SHOWN:
        wrong[0].add_note(f"And {len(wrong) - _SHOWN} more parts.")
    if wrong:
        raise wrong[0]


def write_release(
    mechanism: Certifiable,
    table: Table,
    folder: Path,
    *,
    progress: Callable[[int], None] = lambda _: None,
    workers: int = 1,
) -> Released:
    """Release all records with fresh secure noise into files of a folder.

    A table in parts becomes a file of each, and their manifest; any other one file. Where the
    mechanism releases row after row, no more than a block of the records and what is released of
    one part is in memory.

    Parameters
    ----------
    progress : told of every block, or part, how many rows it had
    workers : 1 for this process alone; else a cluster's, where there is one (`workplace`)

    Raises
    ------
    RecordsError
        If the records can't be read or aren't admitted.
    OutputError
        If a file can't be written.
    ClusterError
        If the cluster is lost, or a part ends the workers that release it.
    """
    parts = _parts(mechanism, table)
    whole = Contents(mechanism.shape(table.shape[0]), mechanism.dtype())
    file: Literal["sketch.npz", "manifest.json"] = MANIFEST if parts else SKETCH
    if parts:
        notes = _write_parts(mechanism, parts, folder, progress, workers)
    else:
        with writing(folder / file) as opened:
            notes = [_release(mechanism, table.watched(progress), opened)]
    return Released(
        file=file,
        sha256=sha256_file(folder / file),
        shape=whole.shape,
        dtype=whole.dtype.name,
        owner_notes=_summary(mechanism, notes),
    )


def _parts(mechanism: Certifiable, table: Table) -> tuple[Table, ...]:
    """Tables that are released each by itself: none where a data set is released as a whole."""
    return table.parts if isinstance(mechanism, Streaming) else ()


def _each(
    function: Callable[[Certifiable, Table], Any],
    mechanism: Certifiable,
    parts: Sequence[Table],
    workers: int,
) -> Iterator[Any]:
    """Results of a function of every part, in order, one for each whatever becomes of workers."""
    tasks = [(mechanism, part) for part in parts]
    try:
        yield from spread(function, tasks, workers=workers if remote() else 1)
    except BrokenExecutor as error:
        raise ClusterError(
            f"a part of the data ended the workers that read it ({error}). Where memory is short, "
            "write files of smaller row groups. Nothing was published."
        ) from error


def _check(mechanism: Certifiable, table: Table) -> None:
    for _ in admitted_blocks(
        _readable(mechanism, table), mechanism.domain, attributes=table.shape[1]
    ):
        pass


def _problem(mechanism: Certifiable, part: Table) -> RecordsError | None:
    try:
        _check(mechanism, part)
    except RecordsError as error:
        return error
    return None


def _write_parts(
    mechanism: Certifiable,
    parts: Sequence[Table],
    folder: Path,
    progress: Callable[[int], None],
    workers: int,
) -> list[_Notes]:
    """Write the one result of every part, and the manifest of what was written."""
    listed, notes = [], []
    results = _each(_packed, mechanism, parts, workers)
    for number, (part, (content, noted)) in enumerate(zip(parts, results, strict=True)):
        name = part_name(number)
        write_file(folder / name, content)
        sha256 = hashlib.sha256(content).hexdigest()
        listed.append(Part(file=name, rows=part.shape[0], sha256=sha256))
        notes.append(noted)
        progress(part.shape[0])
    write_file(folder / MANIFEST, Manifest(parts=listed).as_bytes())
    return notes


def _packed(mechanism: Certifiable, part: Table) -> tuple[bytes, _Notes]:
    """The content of a part's file, drawn by this process, and what was noted."""
    file = BytesIO()
    notes = _release(mechanism, part, file)
    return file.getvalue(), notes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """What was seen of some records: how many are outside, and sums over pairs of them."""

    outside: int
    pairs: int = 0
    truths: float = 0.0
    errors: float = 0.0


def _release(mechanism: Certifiable, table: Table, file: BinaryIO) -> _Notes:
    """Release a table with fresh secure noise into an open file."""
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
    write_array(file, kept.through(blocks), Contents(mechanism.shape(rows), mechanism.dtype()))
    estimator = mechanism.estimators()[0]
    if not half or estimator.compares != "records":
        return _Notes(outside=outside)
    one, released = watched.rows(), kept.rows()
    truths = [estimator.truth(one[[i]], one[[half + i]]) for i in range(half)]
    errors = np.abs(estimator.estimate(released[:half], released[half:]) - truths)
    sums = float(np.sum(truths)), float(errors.sum())
    return _Notes(outside=outside, pairs=half, truths=sums[0], errors=sums[1])


def _summary(mechanism: Certifiable, notes: Sequence[_Notes]) -> dict[str, Any]:
    """The notes of all parts, as the owner reads them."""
    summary: dict[str, Any] = {"outside_the_domain": sum(note.outside for note in notes)}
    pairs = sum(note.pairs for note in notes)
    if not pairs:
        return summary
    name = mechanism.estimators()[0].name.replace(" ", "_")
    return summary | {
        "pairs_compared": pairs,
        f"mean_true_{name}": sum(note.truths for note in notes) / pairs,
        f"mean_absolute_error_of_{name}": sum(note.errors for note in notes) / pairs,
    }


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
