"""The released file: a .npz of one array, of which every byte but the compressed numbers is fixed.

`numpy.load` and any unzip read it. Zip and numpy's format leave much open: more members, comments,
text before, between and behind them, padding, order and type of the numbers, sizes that two headers
state differently. So this module writes the container itself, in one way (PKWARE's APPNOTE 6.3.10
with the ZIP64 records always there, and version 1.0 of numpy's format), and reading compares all of
it byte for byte. The numbers are deflated, and versions of zlib deflate differently: of that stream
the end, the content's length and a largest size are checked. Of the numbers it is checked that the
mechanism can release them, where that is less than their type holds.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpverify.errors import CertificateError, RecordsError

__all__ = ["ARRAY", "SKETCH", "Contents", "read_blocks", "write_array"]

SKETCH: Final = "sketch.npz"
"""Name of the released file."""
ARRAY: Final = "steps"
"""Name of the array in it."""

_MEMBER = f"{ARRAY}.npy".encode()
_BLOCK = 1 << 20
_LEVEL = 2  # at 6 noise is 6 % smaller, in six times as long; at 1 zlib-ng stores nothing as it is
_IN_ZIP64 = 0xFFFFFFFF
_MIDNIGHT, _1980 = 0, 33  # January 1 in MS-DOS's format: the file tells nothing of when it was made
_PLAIN_FILE = 0o100644 << 16
_CLOSING = 46 + len(_MEMBER) + 20 + 56 + 20 + 22


class Contents(NamedTuple):
    """What a released file holds, by the mechanism and the number of records."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    possible: Callable[[NDArray[Any]], bool] = lambda _: True
    """Whether rows are ones that the mechanism can release."""

    def header(self) -> bytes:
        """Version 1.0 of numpy's header, least padded."""
        text = (
            f"{{'descr': {self.stored().str!r}, 'fortran_order': False, 'shape': {self.shape}, }}"
        )
        padded = text + " " * (-(10 + len(text) + 1) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode()

    def stored(self) -> np.dtype[Any]:
        """The type with the byte order of files."""
        return self.dtype.newbyteorder("<")

    def size(self) -> int:
        """Bytes of header and numbers."""
        return len(self.header()) + self.dtype.itemsize * math.prod(self.shape)


def write_array(file: BinaryIO, blocks: Iterable[NDArray[Any]], contents: Contents) -> None:
    """Write blocks of rows as one array, into a file that can go back to its beginning.

    Raises
    ------
    RecordsError
        If the blocks are together of another size.
    """
    deflate = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)
    crc = size = packed = rows = 0
    file.write(_opening(0, 0, 0))
    for count, raw in _raw(blocks, contents):
        crc, size, rows = zlib.crc32(raw, crc), size + len(raw), rows + count
        packed += file.write(deflate.compress(raw))
    packed += file.write(deflate.flush())
    if size != contents.size():
        raise RecordsError(f"{rows} rows were read, and {contents.shape[0]} were announced.")
    file.write(_closing(crc, size, packed))
    file.seek(0)
    file.write(_opening(crc, size, packed))


def read_blocks(path: Path, contents: Contents, *, sha256: str) -> Iterator[bytes]:
    """Bytes of the numbers of a released file, whole rows in order.

    At most a mebibyte and a row are in memory. They count only once the last has been read.

    Raises
    ------
    CertificateError
        If the file has another hash, isn't byte for byte as `write_array` writes these contents, or
        holds rows that aren't possible.
    OSError
        If it can't be read.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise CertificateError("is not a file of its own, but a link or a device")
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise CertificateError("is not the file that was certified: SHA-256")
        size, opening = contents.size(), len(_opening(0, 0, 0))
        packed = file.seek(0, os.SEEK_END) - opening - _CLOSING
        # Deflate costs at most 5 bytes in 16 KiB where nothing compresses.
        if not 0 < packed <= size + size // 1000 + 100:
            raise CertificateError(f"holds more than the array of {_named(contents)}, or less")
        file.seek(0)
        first = file.read(opening)
        crc, place, header = 0, 0, contents.header()
        row, rest = contents.dtype.itemsize * math.prod(contents.shape[1:]), b""
        for raw in _inflated(file, packed):
            crc, start, place = zlib.crc32(raw, crc), place, place + len(raw)
            due = header[start:place]
            if place > size or raw[: len(due)] != due:
                raise CertificateError(
                    f"holds something other than the array of {_named(contents)}"
                )
            rest += raw[len(due) :]
            whole = len(rest) // row * row if row else 0
            rows, rest = rest[:whole], rest[whole:]
            if rows:
                values = np.frombuffer(rows, dtype=contents.stored())
                if not contents.possible(values.reshape(-1, *contents.shape[1:])):
                    raise CertificateError("holds values that this mechanism can't release")
            yield rows
        if place != size:
            raise CertificateError(f"holds less than the array of {_named(contents)}")
        if (first, file.read()) != (_opening(crc, size, packed), _closing(crc, size, packed)):
            raise CertificateError(
                f"holds more than the one array {ARRAY}: its container is not as certify writes it"
            )


def _named(contents: Contents) -> str:
    return f"{' x '.join(map(str, contents.shape))} {contents.dtype.name}"


def _raw(blocks: Iterable[NDArray[Any]], contents: Contents) -> Iterator[tuple[int, bytes]]:
    """The header, then numbers of rows and their bytes."""
    yield 0, contents.header()
    for block in blocks:
        # Another byte order is the same type; a wider or narrower one is an error.
        stored = block.astype(contents.stored(), casting="equiv", copy=False)
        yield len(block), stored.tobytes()


def _inflated(file: BinaryIO, packed: int) -> Iterator[bytes]:
    """What the next `packed` bytes deflate, of which one stream takes up all."""
    inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    pending = b""
    try:
        while not inflate.eof:
            if not pending:
                pending = file.read(min(packed, _BLOCK))
                packed -= len(pending)
            raw = inflate.decompress(pending, _BLOCK)
            if not (raw or pending or inflate.eof):
                raise CertificateError("is cut short")
            pending = inflate.unconsumed_tail
            yield raw
    except zlib.error as error:
        raise CertificateError(f"can't be unpacked: {error}") from None
    if packed or inflate.unused_data:
        raise CertificateError("holds more than its compressed numbers")


def _opening(crc: int, size: int, packed: int) -> bytes:
    """The local file header."""
    fixed = struct.pack("<4s", b"PK\3\4") + _entry(crc)
    return fixed + _MEMBER + _sizes(size, packed)


def _closing(crc: int, size: int, packed: int) -> bytes:
    """The central directory of one entry, and its ends."""
    start = len(_opening(crc, size, packed)) + packed
    made_by = 3 << 8 | 45  # Unix, version 4.5
    directory = struct.pack("<4sH", b"PK\1\2", made_by) + _entry(crc)
    directory += struct.pack("<3H2I", 0, 0, 0, _PLAIN_FILE, 0) + _MEMBER + _sizes(size, packed)
    length = len(directory)
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, made_by, 45, 0, 0, 1, 1, length, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + length, 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, length, min(start, _IN_ZIP64), 0)
    return directory + end64 + locator + end


def _entry(crc: int) -> bytes:
    """What both headers say: deflated, not encrypted, sizes in the extra field."""
    lengths = (len(_MEMBER), len(_sizes(0, 0)))
    return struct.pack(
        "<5H3I2H", 45, 0, zlib.DEFLATED, _MIDNIGHT, _1980, crc, _IN_ZIP64, _IN_ZIP64, *lengths
    )


def _sizes(size: int, packed: int) -> bytes:
    """The extra field of ZIP64."""
    return struct.pack("<2H2Q", 1, 16, size, packed)
