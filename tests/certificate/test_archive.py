"""The released file: what isn't byte for byte as certify writes it is refused, whoever reads it."""

from __future__ import annotations

import copy
import hashlib
import io
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpverify.certificate.archive import SKETCH, Contents, read_blocks, write_array
from dpverify.certificate.certify import CERTIFICATE, certify, document_digest
from dpverify.certificate.checks import check_certificate, read_certificate
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.manifest import read_array
from dpverify.certificate.open_release import open_release
from dpverify.data.atomic_files import sha256_file
from dpverify.errors import CertificateError, RecordsError
from tests.helpers.fixtures import CONFIGURATION
from tests.helpers.profiles import day_and_night, thinned

HIDDEN = b"record 17 = John"
Steps = NDArray[np.int64]
Forge = Callable[[Steps], bytes]


def npy(array: NDArray[Any], **changes: Any) -> bytes:
    """An array in numpy's format, with other words in its header."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape, **changes}
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def zipped(*members: tuple[str, bytes], comment: bytes = b"", method: int = 8) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one name twice
        for name, content in members:
            archive.writestr(name, content)
        archive.comment = comment
    return file.getvalue()


def saved(array: NDArray[Any], *, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=pickled)
    return zipped(("steps.npy", file.getvalue()))


def deflated(raw: bytes) -> bytes:
    deflate = zlib.compressobj(2, wbits=-zlib.MAX_WBITS)
    return deflate.compress(raw) + deflate.flush()


def contained(
    raw: bytes,
    stream: bytes | None = None,
    *,
    name: bytes = b"steps.npy",
    local: Iterable[tuple[int, bytes]] = (),
    central: Iterable[tuple[int, bytes]] = (),
    end: Iterable[tuple[int, bytes]] = (),
    between: bytes = b"",
) -> bytes:
    """The container that certify writes, made independently, with bytes replaced at offsets."""
    stream = deflated(raw) if stream is None else stream
    extra = struct.pack("<HHQQ", 1, 16, len(raw), len(stream))
    entry = struct.pack("<HHHHH", 45, 0, 8, 0, 33) + struct.pack("<I", zlib.crc32(raw))
    entry += b"\xff" * 8 + struct.pack("<HH", len(name), 20)
    opening = b"PK\x03\x04" + entry + name + extra
    start = len(opening) + len(stream) + len(between)
    directory = b"PK\x01\x02" + struct.pack("<H", 45 | 3 << 8) + entry
    directory += struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, 0) + name + extra
    tail = b"PK\x06\x06" + struct.pack("<QHHII", 44, 45 | 3 << 8, 45, 0, 0)
    tail += struct.pack("<QQQQ", 1, 1, len(directory), start)
    tail += b"PK\x06\x07" + struct.pack("<IQI", 0, start + len(directory), 1)
    tail += b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(directory), start, 0)
    parts = []
    for part, patches in ((opening, local), (directory, central), (tail, end)):
        patched = bytearray(part)
        for place, new in patches:
            patched[place : place + len(new)] = new
        parts.append(bytes(patched))
    return parts[0] + stream + between + parts[1] + parts[2]


def headed(array: Steps, text: str, *, version: int = 1) -> bytes:
    """The array under a header of any text and version."""
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + array.tobytes()


def honest(array: Steps) -> bytes:
    return headed(array, header(array))


def header(array: Steps, *, descr: str = "<i8", more: str = "", padding: str = " ") -> str:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {array.shape}, {more}}}"
    return text + padding * (-(10 + len(text) + 1) % 64) + "\n"


def stored_blocks(raw: bytes, empty: int) -> bytes:
    """A deflate stream of stored blocks, empty ones before the last."""
    stream = b"".join(
        b"\0" + struct.pack("<HH", len(part), len(part) ^ 0xFFFF) + part
        for part in (raw[i : i + 65535] for i in range(0, len(raw), 65535))
    )
    return stream + b"\0\0\0\xff\xff" * empty + b"\1\0\0\xff\xff"


class Bomb:
    """What a reader that unpickles would run."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (os.system, ("touch executed",))


FORGED: dict[str, Forge] = {
    # Those that a review found to be accepted.
    "a second member": lambda x: zipped(("steps.npy", npy(x)), ("raw_records.npy", npy(x))),
    "prepended": lambda x: HIDDEN + saved(x),
    "a comment": lambda x: zipped(("steps.npy", npy(x)), comment=HIDDEN),
    "objects": lambda x: saved(np.array([[Bomb()] * 4] * 7, dtype=object), pickled=True),
    "float64": lambda x: saved(x.astype(np.float64)),
    "header only": lambda x: zipped(("steps.npy", npy(x)[: -x.nbytes])),
    "a bomb": lambda x: zipped(("steps.npy", npy(x) + bytes(20_000_000))),
    "one name twice": lambda x: zipped(("steps.npy", npy(x)), ("steps.npy", npy(x + 1))),
    "fortran order": lambda x: saved(np.asfortranarray(x)),
    # The container.
    "stored": lambda x: zipped(("steps.npy", npy(x)), method=0),
    "member in a folder": lambda x: contained(honest(x), name=b"a/steps.npy"),
    "member above": lambda x: contained(honest(x), name=b"../steps.npy"),
    "capital member": lambda x: contained(honest(x), name=b"Steps.npy"),
    "no member": lambda x: zipped(),
    "appended": lambda x: contained(honest(x)) + HIDDEN,
    "between": lambda x: contained(honest(x), between=HIDDEN),
    "after the stream": lambda x: contained(honest(x), deflated(honest(x)) + HIDDEN),
    "two streams": lambda x: contained(honest(x), deflated(honest(x)) * 2),
    "a stream without end": lambda x: contained(honest(x), deflated(honest(x))[:-2]),
    "no stream": lambda x: contained(honest(x), b""),
    "empty blocks": lambda x: contained(honest(x), stored_blocks(honest(x), 100)),
    "the local name": lambda x: contained(honest(x), local=[(30, b"notes.txt")]),
    "the local time": lambda x: contained(honest(x), local=[(10, b"\1")]),
    "a local checksum": lambda x: contained(honest(x), local=[(14, b"\0\0\0\0")]),
    "local sizes": lambda x: contained(honest(x), local=[(18, b"\0\0\0\0")]),
    "a local extra field": lambda x: contained(honest(x), local=[(43, b"JOHN")]),
    "encrypted": lambda x: contained(honest(x), local=[(6, b"\1")], central=[(8, b"\1")]),
    "a data descriptor": lambda x: contained(honest(x), local=[(6, b"\x08")]),
    "the central name": lambda x: contained(honest(x), central=[(46, b"notes.txt")]),
    "a central checksum": lambda x: contained(honest(x), central=[(16, b"\0\0\0\0")]),
    "central attributes": lambda x: contained(honest(x), central=[(38, b"JOHN")]),
    "two disks": lambda x: contained(honest(x), end=[(20, b"\1")]),
    "two entries": lambda x: contained(honest(x), end=[(32, b"\2")]),
    "another zip64 start": lambda x: contained(honest(x), end=[(48, b"\0")]),
    "another start": lambda x: contained(honest(x), end=[(92, b"\0")]),
    # The array.
    "version 2": lambda x: contained(headed(x, header(x), version=2)),
    "version 3": lambda x: contained(headed(x, header(x), version=3)),
    "text in the padding": lambda x: contained(headed(x, header(x, padding="#"))),
    "a wider header": lambda x: contained(headed(x, header(x)[:-1] + " " * 64 + "\n")),
    "another key": lambda x: contained(headed(x, header(x, more="'note': 'John', "))),
    "big-endian": lambda x: contained(headed(x.byteswap(), header(x, descr=">i8"))),
    "structured": lambda x: contained(headed(x, header(x).replace("'<i8'", "[('John', '<i8')]"))),
    "unsigned": lambda x: contained(headed(x, header(x, descr="<u8"))),
    "narrower": lambda x: contained(npy(x.astype(np.int32))),
    "fewer rows": lambda x: contained(honest(x[:-1])),
    "more rows": lambda x: contained(honest(np.vstack([x, x[:1]]))),
    "transposed": lambda x: contained(honest(x.T)),
    "flat": lambda x: contained(honest(x.ravel())),
    "a negative shape": lambda x: contained(headed(x, header(x).replace("(7, 4)", "(-7, 4)"))),
    "a huge shape": lambda x: contained(headed(x, header(x).replace("(7, 4)", "(7, 10**9)"))),
    "short numbers": lambda x: contained(honest(x)[:-1]),
    "long numbers": lambda x: contained(honest(x) + b"\0"),
    "another magic": lambda x: contained(b"\x92" + honest(x)[1:]),
    # Nothing of the kind.
    "empty": lambda x: b"",
    "text": lambda x: HIDDEN,
    "npy": npy,
}


@pytest.fixture
def place(workplace: Path, certificate: dict[str, Any], tmp_path: Path) -> Callable[..., Path]:
    """Puts a file beside a certificate that names it by its hash, with the digest renewed."""

    def put(content: bytes, **release: Any) -> Path:
        fields = copy.deepcopy(certificate)
        fields["release"] |= {"sha256": hashlib.sha256(content).hexdigest(), **release}
        fields["digest"] = document_digest(fields)
        (tmp_path / SKETCH).write_bytes(content)
        (tmp_path / CERTIFICATE).write_bytes(rfc8785.dumps(fields))
        return tmp_path / CERTIFICATE

    return put


@pytest.fixture(scope="module")
def steps(workplace: Path) -> Steps:
    array: Steps = np.load(workplace / "out" / SKETCH)["steps"]
    return array


def differing(path: Path) -> list[str]:
    """Names of the lines of a verification that differ."""
    checks = check_certificate(read_certificate(path), path.parent, replay=False)
    return [check.name for check in checks if check.status == "differs"]


def test_the_file_that_certify_writes_is_accepted(
    place: Callable[..., Path], steps: Steps, workplace: Path
) -> None:
    """As certify writes it, so that what is refused below is refused for what was changed."""
    content = contained(honest(steps))
    assert content == (workplace / "out" / SKETCH).read_bytes()
    path = place(content)
    assert differing(path) == []
    assert np.array_equal(open_release(path).rows, steps)
    # Another zlib, or another level, deflates otherwise.
    path = place(contained(honest(steps), stored_blocks(honest(steps), 2)))
    assert differing(path) == []
    assert np.array_equal(open_release(path).rows, steps)


@pytest.mark.parametrize("name", thinned(FORGED, 6))
def test_a_forged_file_is_refused(name: str, place: Callable[..., Path], steps: Steps) -> None:
    path = place(FORGED[name](steps))
    assert differing(path) == ["released file"]
    with pytest.raises(CertificateError, match=re.escape(SKETCH)):
        open_release(path)


@pytest.mark.parametrize("dtype", ["float64", "object", "int32", "uint64", "x"])
def test_a_type_that_the_mechanism_does_not_release_is_refused(
    dtype: str, place: Callable[..., Path], steps: Steps, workplace: Path
) -> None:
    path = place((workplace / "out" / SKETCH).read_bytes(), dtype=dtype)
    assert differing(path) == ["shape and type"]
    with pytest.raises(CertificateError, match=r"release\.dtype"):
        open_release(path)
    if dtype == "float64":
        assert "shape and type" in differing(place(saved(steps.astype(dtype)), dtype=dtype))


def test_a_link_out_of_the_folder(place: Callable[..., Path], workplace: Path) -> None:
    source = workplace / "out" / SKETCH
    path = place(source.read_bytes())
    (path.parent / SKETCH).unlink()
    (path.parent / SKETCH).symlink_to(source)
    assert differing(path) == ["released file"]
    with pytest.raises(CertificateError, match="a link or a device"):
        open_release(path)
    (path.parent / SKETCH).unlink()
    os.mkfifo(path.parent / SKETCH)  # which would block its reader
    assert differing(path) == ["released file"]


def test_every_bit_outside_the_numbers(
    place: Callable[..., Path], steps: Steps, workplace: Path
) -> None:
    """The container has no bit that is free."""
    content = (workplace / "out" / SKETCH).read_bytes()
    path = workplace.parent / "changed.npz"
    stream = deflated(honest(steps))
    start = content.index(stream)
    for at in [*range(start), *range(start + len(stream), len(content))]:
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        sha256 = hashlib.sha256(changed).hexdigest()
        with pytest.raises(CertificateError):
            list(read_blocks(path, Contents(steps.shape, steps.dtype), sha256=sha256))


@pytest.mark.nightly
@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("mechanism", "seeded", "domain", "adjacency", "value"),
    day_and_night(
        (
            'name = "dp-signrp-rr"\nk = 12',
            True,
            "{ low = 0, high = 1 }",
            '"attribute", beta = 1',
            0x01,
        ),
        ('name = "randomized-response"', False, "{ low = 0, high = 1 }", '"bit-flip"', 0x20),
        (
            'name = "rr-min-hash"\nk = 8\nbuckets = 5',
            True,
            '{ kind = "sets" }',
            '"items", changes = 1',
            5,
        ),
    ),
)
def test_values_that_are_never_released(
    tmp_path: Path, mechanism: str, seeded: bool, domain: str, adjacency: str, value: int
) -> None:
    """Numbers of the right type can still hide something: in bits that no sign or bucket uses."""
    text = CONFIGURATION.replace('name = "dp-oporp"\nk = 4', mechanism)
    text = text.replace("{ low = 0, high = 1 }", domain)
    text = text.replace('"attribute", beta = 0.5', adjacency)
    text = text.replace("seed = 11", f"seed = {11 * seeded}")
    (tmp_path / "release.toml").write_text(text)
    np.save(tmp_path / "records.npy", np.eye(7, 18))
    configuration = load_configuration(tmp_path / "release.toml")
    made = certify(configuration, tmp_path / "out", base=tmp_path, workers=1, accept=lambda _: True)
    path = tmp_path / "out" / CERTIFICATE
    assert differing(path) == []
    rows = open_release(path).rows
    forged = rows.copy()
    forged[-1, -1] |= value
    with path.with_name(SKETCH).open("wb") as file:
        write_array(file, [forged], Contents(rows.shape, rows.dtype))
    fields = read_certificate(path)
    fields["release"]["sha256"] = sha256_file(path.with_name(SKETCH))
    fields["digest"] = document_digest(fields)
    path.write_bytes(rfc8785.dumps(fields))
    assert made.certificate.release is not None
    assert differing(path) == ["released file"]
    with pytest.raises(CertificateError, match="values that this mechanism can't release"):
        open_release(path)


SHAPES = st.lists(st.integers(0, 40), min_size=1, max_size=3).map(tuple)


@given(shape=SHAPES, kind=st.sampled_from(["i8", "u1", "u2", ">i4", "f8"]), cut=st.integers(0, 40))
def test_numpy_reads_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], kind: str, cut: int
) -> None:
    array = np.arange(np.prod(shape)).astype(kind).reshape(shape)
    path = tmp_path_factory.mktemp("written") / SKETCH
    contents = Contents(shape, array.dtype)
    with path.open("wb") as file:
        write_array(file, [array[:cut], array[cut:]], contents)
    assert zipfile.ZipFile(path).testzip() is None
    with np.load(path, allow_pickle=False) as archive:
        assert archive.files == ["steps"]
        assert np.array_equal(archive["steps"], array)
    again = read_array(path, contents, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    assert again.shape == shape
    assert np.array_equal(again, array)


def test_other_blocks_than_announced() -> None:
    contents = Contents((7, 4), np.dtype(np.int64))
    with pytest.raises(RecordsError, match="6 rows were read, and 7 were announced"):
        write_array(io.BytesIO(), [np.zeros((6, 4), dtype=np.int64)], contents)
    with pytest.raises(TypeError, match="equiv"):
        write_array(io.BytesIO(), [np.zeros((7, 4))], contents)
