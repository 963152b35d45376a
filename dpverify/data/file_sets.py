"""Tables in Parquet, Arrow or Feather files: one, a folder of them, a pattern, or a URL.

What lies in several files has parts, which can be read wherever the files can be reached, and
released each by itself. A part is a file, or of a large Parquet file some of its row groups, so
that what is released of it fits in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dpverify.data.frame import Frame, ending, readable
from dpverify.errors import RecordsError, extra

__all__ = ["FILE_SETS", "open_files"]

FILE_SETS = {".parquet": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "feather"}
"""Formats by the ending of a file."""

_ROWS = 1024  # rows that are read at once
_WILD = set("*?[")
_PART = 1 << 18  # rows of a part; a row group isn't taken apart


def open_files(path: Path | str, *, others: Sequence[str]) -> Frame:
    """The table in files that follow one another by name; a URL is a string.

    Parameters
    ----------
    path : of a file, a folder with all that is below it, or a pattern
    others : endings of files that are read elsewhere, for the message

    Raises
    ------
    RecordsError
        If they aren't of one kind, have other columns or types than the first, or lie in folders
        that are named by values.
    FileNotFoundError
        If there is none.
    """
    from pyarrow import dataset

    system, files, several = _listed(path)
    kinds = {ending(file) for file in files}
    if several and (len(kinds) != 1 or not kinds <= FILE_SETS.keys()):
        found_ = f"files of {', '.join(sorted(kinds))}" if kinds else "no file"
        raise RecordsError(
            f"{path}: has {found_}, and several files of a table must all be of one of "
            f"{', '.join(FILE_SETS)}. Write them as .parquet, in a folder of their own."
        )
    if not kinds <= FILE_SETS.keys():
        raise RecordsError(f"{path}: must end with one of {', '.join([*others, *FILE_SETS])}.")
    kind = FILE_SETS[kinds.pop()]
    found = dataset.dataset(files, format=kind, filesystem=system)
    types = _types(found.schema)
    fragments = list(found.get_fragments())
    for fragment in fragments:
        own = _types(fragment.physical_schema)
        if own != types:  # one would be read as the other, or left out
            other = ", ".join(
                f"{name} ({own.get(name, 'none')}, not {types.get(name, 'none')})"
                for name in sorted({name for name, _ in own.items() ^ types.items()})
            )
            raise RecordsError(
                f"{path}: {Path(fragment.path).name} has other columns than {Path(files[0]).name}, "
                f"or other types: {other}. Write all files with the same."
            )

    def frame(label: str, pieces: Sequence[_Piece], parts: Sequence[Frame] = ()) -> Frame:
        return Frame(
            label=label,
            names=tuple(found.schema.names),
            kinds=tuple(found.schema.types),
            rows=sum(piece.rows for piece in pieces),
            read=partial(_batches, label, system, kind, pieces),
            parts=tuple(parts),
        )

    whole = [_Piece(fragment.path, rows := fragment.count_rows(), rows) for fragment in fragments]
    if not several:
        return frame(str(path), whole)
    parts = [piece for fragment in fragments for piece in _pieces(fragment) if piece.rows]
    return frame(str(path), whole, [frame(piece.file, [piece]) for piece in parts])


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of a file of so many: all, or those of some row groups."""

    file: str
    of: int
    rows: int
    groups: list[int] = field(default_factory=list)


def _pieces(fragment: Any) -> Iterator[_Piece]:
    """A file as one piece, or as several if it is a large Parquet file."""
    whole = fragment.count_rows()
    if whole <= _PART or not hasattr(fragment, "row_groups"):  # the other formats have none
        yield _Piece(fragment.path, whole, whole)
        return
    rows, groups = 0, list[int]()
    for group in fragment.row_groups:
        if groups and rows + group.num_rows > _PART:
            yield _Piece(fragment.path, whole, rows, groups)
            rows, groups = 0, []
        rows, groups = rows + group.num_rows, [*groups, group.id]
    yield _Piece(fragment.path, whole, rows, groups)


def _batches(
    label: str, system: Any, kind: str, pieces: Sequence[_Piece], chosen: Sequence[str]
) -> Iterator[Any]:
    """Rows of pieces: each file is opened anew, and one that was changed is read as it is then."""
    from pyarrow import dataset

    # Buffered ahead, all row groups would stay in memory.
    late = dataset.ParquetFragmentScanOptions(pre_buffer=False)
    with readable(label):
        for piece in pieces:
            found = dataset.dataset([piece.file], format=kind, filesystem=system)
            (fragment,) = found.get_fragments()
            if fragment.count_rows() != piece.of:
                raise RecordsError(f"{label}: had {piece.of} rows before: it was changed.")
            if piece.groups:
                fragment = fragment.subset(row_group_ids=piece.groups)
            yield from fragment.to_batches(
                columns=list(chosen),
                batch_size=_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
                use_threads=False,
                fragment_scan_options=late if kind == "parquet" else None,
            )


def _listed(path: Path | str) -> tuple[Any, list[str], bool]:
    """What opens files, None on this system; which, in order; whether there may be several."""
    if isinstance(path, Path):
        system, folder, several = None, path.is_dir(), not path.is_file()
        fixed = next((n for n, part in enumerate(path.parts[:-1]) if set(part) & _WILD), -1)
        base, pattern = Path(*path.parts[:fixed]), "/".join(path.parts[fixed:])
        found = path.rglob("*") if folder else base.glob(pattern)
        named = [str(file.absolute()) for file in found if file.is_file()]
    else:
        with extra("dask", f"{path}: reading it"):
            from fsspec.core import url_to_fs
        system, place = url_to_fs(path)
        folder = system.isdir(place)
        named = system.find(place) if folder else system.glob(place)
        several = named != [place]
    files = sorted(file for file in named if not (several and _aside(Path(file))))
    if not (files or folder):
        if set(str(path)) & _WILD:
            raise RecordsError(f"{path}: no file matches this pattern.")
        raise FileNotFoundError
    valued = {tuple(part for part in Path(file).parent.parts if "=" in part) for file in files}
    if len(valued) > 1:
        columns = sorted({part.partition("=")[0] for parts in valued for part in parts})
        raise RecordsError(
            f"{path}: folders are named by values of {', '.join(columns)}, and which rows lie "
            "together is public. Write the files without such folders."
        )
    return system, files, several


def _aside(file: Path) -> bool:
    """Whether a file in a folder of tables is none of them by its name, as _SUCCESS."""
    return file.name.startswith(("_", ".")) and ending(file) not in FILE_SETS


def _types(schema: Any) -> dict[str, Any]:
    return dict(zip(schema.names, schema.types, strict=True))
