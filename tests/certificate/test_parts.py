"""Releases in parts: one certificate as of one file, one result of every part, and a manifest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import rfc8785
from numpy.typing import NDArray
from pyarrow import parquet

from dpverify.auditing.statistics.noise_floor import Sizes
from dpverify.certificate import _releasing, checks
from dpverify.certificate._releasing import check_records, write_release
from dpverify.certificate.archive import Contents
from dpverify.certificate.certify import certify
from dpverify.certificate.checks import check_certificate, read_certificate
from dpverify.certificate.configuration import Configuration, load_configuration
from dpverify.certificate.manifest import (
    MANIFEST,
    Manifest,
    part_name,
    read_array,
    release_files,
)
from dpverify.certificate.open_release import open_release
from dpverify.data import file_sets
from dpverify.data.atomic_files import sha256_file
from dpverify.data.loading import open_records
from dpverify.data.records import Table
from dpverify.errors import CertificateError, OutputError, RecordsError
from dpverify_mechanisms.linear.sketch import LinearSketch
from tests.helpers.fixtures import CONFIGURATION

SIZES = (5, 9, 6)
Values = NDArray[np.float64]


def records(width: int = 12) -> Values:
    return np.random.default_rng(2).random((sum(SIZES), width))


def in_parts(folder: Path, values: Values) -> Path:
    folder.mkdir()
    first = 0
    for number, size in enumerate(SIZES):
        columns = {str(place): part for place, part in enumerate(values[first : first + size].T)}
        parquet.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=4)
        first += size
    return folder


def contents(sketch: LinearSketch, rows: int = sum(SIZES)) -> Contents:
    return Contents(sketch.shape(rows), sketch.dtype(), sketch.possible)


@pytest.fixture
def sketch(small_sketch: Callable[..., LinearSketch]) -> LinearSketch:
    return small_sketch()


@pytest.fixture(scope="module")
def written(
    tmp_path_factory: pytest.TempPathFactory, small_sketch: Callable[..., LinearSketch]
) -> tuple[Path, str]:
    """A folder with a manifest and its parts, and the manifest's hash."""
    out = tmp_path_factory.mktemp("written") / "out"
    table = open_records(in_parts(out.with_name("data"), records()))
    out.mkdir()
    released = write_release(small_sketch(), table, out)
    assert released.file == MANIFEST
    return out, released.sha256


def configuration(path: str) -> Configuration:
    tables = CONFIGURATION.replace("records.npy", path)
    file = Path(path).with_suffix(".toml")
    file.write_text(tables)
    return load_configuration(file)


@pytest.mark.nightly
def test_the_certificate_is_the_one_of_one_file(tmp_path: Path) -> None:
    values = records(18)
    in_parts(tmp_path / "data", values)
    np.save(tmp_path / "records.npy", values)
    made = {}
    for name in ("data", "records.npy"):
        settings = configuration(str(tmp_path / name))
        made[name] = certify(settings, tmp_path / f"{name}-out", workers=1)
    one, several = (made[name].certificate for name in ("records.npy", "data"))
    assert one.release is not None
    assert several.release is not None
    files = {"file": MANIFEST, "sha256": sha256_file(tmp_path / "data-out" / MANIFEST)}
    assert several.release == one.release.model_copy(update=files)
    assert several.model_dump(exclude={"release", "digest", "environment"}) == one.model_dump(
        exclude={"release", "digest", "environment"}
    )
    found = check_certificate(several.to_dict(), tmp_path / "data-out", workers=1)
    assert {check.status for check in found} == {"agrees"}
    (seen,) = (check.detail for check in found if check.name == "released file")
    assert seen.startswith("3 parts and their manifest, of each: SHA-256")
    assert f"{MANIFEST}, of 3 parts" in str(made["data"])
    assert "parts" not in str(made["records.npy"])
    assert open_release(made["data"]).rows.shape == open_release(made["records.npy"]).rows.shape
    assert made["data"].files["manifest"] == tmp_path / "data-out" / MANIFEST
    # And it takes the place of itself, as any output does, with other noise in every part.
    before = [file.read_bytes() for file in sorted((tmp_path / "data-out").glob("sketch-*"))]
    again = certify(configuration(str(tmp_path / "data")), tmp_path / "data-out", workers=1)
    after = [file.read_bytes() for file in sorted(again.folder.glob("sketch-*"))]
    assert len(before) == len(after) == len(SIZES)
    assert not set(before) & set(after)
    (again.folder / "mine.txt").touch()
    with pytest.raises(OutputError, match=r"holds mine\.txt"):
        certify(configuration(str(tmp_path / "data")), again.folder, workers=1)


def test_parts_are_rows_in_order(
    tmp_path: Path, small_sketch: Callable[..., LinearSketch], monkeypatch: pytest.MonkeyPatch
) -> None:
    values, sketch = records(), small_sketch(epsilon=Fraction(10**5))
    table = open_records(in_parts(tmp_path / "data", values))
    assert [part.shape for part in table.parts] == [(size, 12) for size in SIZES]
    assert np.array_equal(np.concatenate([part.whole() for part in table.parts]), values)
    assert np.array_equal(table.whole(), values)
    told: list[int] = []
    check_records(sketch, table, progress=told.append)
    released = write_release(sketch, table, tmp_path, progress=told.append)
    assert told == [*SIZES, *SIZES]
    manifest = Manifest.read(tmp_path / MANIFEST, rows=20, sha256=released.sha256)
    assert [part.rows for part in manifest.parts] == list(SIZES)
    rows = read_array(tmp_path / MANIFEST, contents(sketch), sha256=released.sha256)
    # The noise is so little that each row is told from all others.
    off = np.abs(rows[:, None] - sketch.release(values)).max(axis=-1)
    assert (off.diagonal() < 50).all()
    assert (off[~np.eye(len(rows), dtype=bool)] > 50).all()
    first = 0
    for number, part in enumerate(manifest.parts):
        with np.load(tmp_path / part_name(number), allow_pickle=False) as archive:
            assert np.array_equal(archive["steps"], rows[first : first + part.rows])
        first += part.rows
    assert released.shape == rows.shape
    notes = released.owner_notes
    assert (notes["outside_the_domain"], notes["pairs_compared"]) == (0, 2 + 4 + 3)
    # Row groups of a large file are parts of their own.
    monkeypatch.setattr(file_sets, "_PART", 8)
    split = open_records(tmp_path / "data")
    assert [part.shape[0] for part in split.parts] == [5, 8, 1, 6]
    assert np.array_equal(np.concatenate([part.whole() for part in split.parts]), values)


def twice(function: Any, tasks: Sequence[Any], *, workers: int) -> Iterator[Any]:
    """Every task is done two times, by workers that don't know, and the second result comes."""
    assert workers == 1
    for task in tasks:
        DISCARDED.append(function(*task))
        yield function(*task)


DISCARDED: list[Any] = []


def test_of_a_task_that_is_done_twice_one_result_is_published(
    tmp_path: Path, sketch: LinearSketch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_releasing, "spread", twice)
    DISCARDED.clear()
    table = open_records(in_parts(tmp_path / "data", records()))
    out = tmp_path / "out"
    out.mkdir()
    write_release(sketch, table, out)
    names = {file.name for file in out.iterdir()}
    assert names == {MANIFEST, *(part_name(number) for number in range(len(SIZES)))}
    written = {file.read_bytes() for file in out.glob("sketch-*")}
    discarded = {content for content, _ in DISCARDED}
    assert len(written) == len(discarded) == len(SIZES)
    assert not written & discarded  # of other noise: the first results were whole, and are nowhere


def test_a_part_that_fails_leaves_no_release(tmp_path: Path, sketch: LinearSketch) -> None:
    values = records()
    values[6, 3], values[7, 4], values[19, 0] = 2, 3, -1
    table = open_records(in_parts(tmp_path / "data", values))
    with pytest.raises(RecordsError, match="record 6") as caught:
        check_records(sketch, table)
    assert any("record 19" in note for note in caught.value.__notes__)
    with pytest.raises(RecordsError):
        write_release(sketch, table, tmp_path)
    assert not (tmp_path / MANIFEST).exists()


PART_CHANGES: Sequence[tuple[Callable[[Path], object], str]] = [
    (lambda place: (place / part_name(1)).write_bytes(b"x"), "not the file"),
    (lambda place: (place / part_name(2)).unlink(), "can't be read: No such file"),
    (
        lambda place: shutil.copy(place / part_name(2), place / part_name(0)),
        "lists sketch-00000.npz, which is not the file",
    ),
]


def test_a_part_that_was_changed(
    tmp_path: Path, written: tuple[Path, str], sketch: LinearSketch
) -> None:
    folder, sha256 = written
    assert read_array(folder / MANIFEST, contents(sketch), sha256=sha256).shape == (20, 4)
    for number, (change, said) in enumerate(PART_CHANGES):
        copy = shutil.copytree(folder, tmp_path / str(number))
        change(copy)
        with pytest.raises(CertificateError, match=said):
            read_array(copy / MANIFEST, contents(sketch), sha256=sha256)


MANIFEST_CHANGES: Sequence[tuple[Callable[[Any], object], str]] = [
    (lambda fields: fields["parts"].reverse(), "isn't in the form"),
    (lambda fields: fields["parts"][0].update(file="../sketch-00000.npz"), "isn't in the form"),
    (lambda fields: fields["parts"][0].update(rows=6), "don't have 20 rows"),
    (lambda fields: fields["parts"][0].update(rows=0), "not the manifest"),
    (lambda fields: fields.update(comment="none"), "not the manifest"),
]


MANIFEST_TEXTS = [
    (b",", b", ", "isn't in the form"),
    (b'"rows":5', b'"rows":5.0', "not the manifest"),
    (b'"rows":5', b'"rows":5e0', "not the manifest"),
    (b'"rows":5', b'"rows":"5"', "not the manifest"),
    (b'"rows":5', b'"rows":%d' % 2**53, "not the manifest"),
    (b'"rows":5', b'"rows":' + b"5" * 400, "not the manifest"),
    (b'"rows":5', b'"rows":' + b"5" * 5000, "not the manifest"),
    (b'"rows":5', b'"rows":NaN', "not the manifest"),
    (b'"rows":5', b'"rows":' + b"[" * 10**5, "not the manifest"),
    (b"sketch-00000", b"\\ud800", "not the manifest"),
]


def test_a_manifest_that_was_changed(
    tmp_path: Path, written: tuple[Path, str], sketch: LinearSketch
) -> None:
    folder, sha256 = written
    path = shutil.copytree(folder, tmp_path / "out") / MANIFEST
    before = path.read_bytes()
    for change, said in MANIFEST_CHANGES:
        fields = json.loads(before)
        change(fields)
        path.write_bytes(rfc8785.dumps(fields) + b"\n")
        with pytest.raises(CertificateError, match="not the file that was certified"):
            read_array(path, contents(sketch), sha256=sha256)
        with pytest.raises(CertificateError, match=said):  # nor under a certificate of its own
            read_array(path, contents(sketch), sha256=sha256_file(path))
    for old, new, said in MANIFEST_TEXTS:
        path.write_bytes(before.replace(old, new))
        with pytest.raises(CertificateError, match=said):
            read_array(path, contents(sketch), sha256=sha256_file(path))


def test_what_is_wrong_with_a_manifest_names_it_once(
    tmp_path: Path, written: tuple[Path, str], sketch: LinearSketch
) -> None:
    folder, sha256 = written
    path = tmp_path / MANIFEST
    path.symlink_to(folder / MANIFEST)
    said = checks._file_problem(path, contents(sketch), sha256, Sizes())
    assert said == f"{path} is not a file of its own, but a link or a device"


def test_files_that_no_manifest_lists(
    tmp_path: Path, written: tuple[Path, str], sketch: LinearSketch
) -> None:
    folder, sha256 = written
    listed = {MANIFEST, *release_files(folder / MANIFEST, rows=20, sha256=sha256)}
    assert not [*checks._strangers(folder, listed)]
    copy = shutil.copytree(folder, tmp_path / "out")
    for name in ("sketch-00003.npz", "sketch.npz", "sketch-3.npz", "certificate.json"):
        shutil.copy(folder / "sketch-00002.npz", copy / name)
    (check,) = checks._strangers(copy, listed)
    assert check.detail.startswith("sketch-00003.npz, sketch-3.npz, sketch.npz: called as")
    assert check.status == "not_checked"
    (check,) = checks._strangers(copy, {"sketch.npz"})
    assert check.detail.startswith("manifest.json, sketch-00000.npz, sketch-00001.npz, ...: ")


def test_a_manifest_is_no_certificate(written: tuple[Path, str]) -> None:
    with pytest.raises(CertificateError, match=r"Name the certificate\.json beside it"):
        read_certificate(written[0] / MANIFEST)


def test_folders_named_by_values_are_refused(tmp_path: Path) -> None:
    for country in ("DE", "FR"):
        folder = tmp_path / "data" / f"country={country}"
        folder.mkdir(parents=True)
        parquet.write_table(pa.table({"x": [0.5]}), folder / "a.parquet")
    with pytest.raises(RecordsError, match="named by values of country, and which rows lie"):
        open_records(tmp_path / "data")
    assert open_records(tmp_path / "data" / "country=DE").shape == (1, 1)


def test_a_file_that_is_changed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sets, "_PART", 8)
    table = open_records(in_parts(tmp_path / "data", records()))
    longer = pa.table({str(place): np.full(13, 0.5) for place in range(12)})
    parquet.write_table(longer, tmp_path / "data" / "1.parquet", row_group_size=4)
    with pytest.raises(RecordsError, match="had 9 rows before: it was changed"):
        table.parts[1].whole()


def test_a_table_at_a_url(tmp_path: Path, sketch: LinearSketch) -> None:
    values = records()
    in_parts(tmp_path / "data", values)
    system = fsspec.filesystem("memory")
    system.put(str(tmp_path / "data"), "/visits", recursive=True)
    for url, parts in (("memory://visits", 3), ("memory://visits/*.parquet", 3)):
        table = open_records(url)
        assert np.array_equal(table.whole(), values)
        assert len(table.parts) == parts
    assert open_records("memory://visits/0.parquet").parts == ()  # one file is one release
    with pytest.raises(RecordsError, match="no file matches this pattern"):
        open_records("memory://nothing/*.parquet")
    system.pipe("/visits/a.csv", b"a\n1\n")
    with pytest.raises(RecordsError, match=r"must end with one of \.parquet, \.arrow"):
        open_records("memory://visits/a.csv")
    released = write_release(sketch, open_records("memory://visits/*.parquet"), tmp_path)
    assert read_array(tmp_path / MANIFEST, contents(sketch), sha256=released.sha256).shape[0] == 20


def test_a_table_without_parts_is_one_file(tmp_path: Path, sketch: LinearSketch) -> None:
    assert write_release(sketch, Table.of(records()), tmp_path).file == "sketch.npz"
    assert [file.name for file in tmp_path.iterdir()] == ["sketch.npz"]


@pytest.mark.nightly
def test_the_second_checker_reads_parts(tmp_path: Path) -> None:
    second = import_module("dpverify_check.dpverify_check")
    in_parts(tmp_path / "data", records(18))
    certify(configuration(str(tmp_path / "data")), tmp_path / "out", workers=1)

    def line() -> tuple[str, str]:
        lines = second.check(tmp_path / "out" / "certificate.json")
        (found,) = (line for line in lines if line.name == "released file")
        return found.status, found.detail

    assert line() == ("agrees", "SHA-256, container byte for byte, possible values")
    for change, _ in PART_CHANGES:
        before = shutil.copytree(tmp_path / "out", tmp_path / "before")
        change(tmp_path / "out")
        status, detail = line()
        assert (status, detail[:7]) == ("differs", "sketch-")
        shutil.rmtree(tmp_path / "out")
        before.rename(tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "certificate.json").read_bytes())
    path = tmp_path / "out" / MANIFEST
    content = path.read_bytes()
    mechanism = second._made(
        stated["inputs"]["mechanism"], json.dumps([stated["inputs"], stated["derived"]["facts"]])
    )
    for change, _ in MANIFEST_CHANGES:
        fields = json.loads(content)
        change(fields)
        path.write_bytes(rfc8785.dumps(fields) + b"\n")
        release = stated["release"] | {"sha256": sha256_file(path)}
        with pytest.raises((second.Differs, ValueError)):
            second.check_release_files(path, release, mechanism)
