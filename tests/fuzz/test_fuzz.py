"""Damaged and hostile inputs, at every way in. ``make fuzz`` tries a hundred thousand."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.settings import Source, settings_file, settle
from dpverify.certificate import certify as make
from dpverify.certificate.build import build
from dpverify.certificate.checks import Check, read_certificate
from dpverify.certificate.compose import check_document, compose
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.keys import load_private_key, load_public_key
from dpverify.certificate.open_release import open_release
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Certificate
from dpverify.certificate.sign import add_signature, check_signatures, envelope_beside
from dpverify.data.loading import load_records, open_records, shape_of
from dpverify.data.records import Table
from dpverify.errors import DPVerifyError
from tests.fuzz.mutations import HTML, bytes_of, json_of, npy, npz, toml_of
from tests.fuzz.surfaces import Surface, probe
from tests.helpers.fixtures import CONFIGURATION

Make = Callable[[Path, Path], Surface]
RECORDS = np.random.default_rng(3).random((7, 18))
SETTINGS = """
profile = "ci"
draws = 20000
alpha = 0.01
seed = 1
workers = 1
kinds = ["black-box", "sequential"]
"""


def standing(checks: list[Check]) -> str:
    """The worst that a verification found."""
    found = {check.status for check in checks}
    order = ("violation", "differs", "inconclusive", "not_checked", "agrees")
    return next(status for status in order if status in found)


def certificates(out: Path, _: Path) -> Surface:
    original = json.loads((out / make.CERTIFICATE).read_bytes())
    another = json.loads((out / make.CERTIFICATE).read_bytes())
    another["release"]["sha256"] = "0" * 64  # two releases of one hash don't compose

    def read(path: Path) -> str:
        fields = read_certificate(path)
        found = standing(check_document(fields, out, replay=False))
        # Only the certificate itself stands, whatever else was changed about the file.
        assert fields == original or found in ("violation", "differs"), found
        with contextlib.suppress(DPVerifyError):
            open_release(path)
        with contextlib.suppress(DPVerifyError):
            compose([fields, another])
        return found

    return Surface(
        name="certificate",
        suffix=".json",
        inputs=json_of(original),
        read=read,
        nightly=12_000,
        quick=10,
    )


def compositions(out: Path, _: Path) -> Surface:
    part = json.loads((out / make.CERTIFICATE).read_bytes())
    other = json.loads(json.dumps(part))
    other["release"]["sha256"] = "0" * 64
    whole = compose([part, other])

    def read(path: Path) -> str:
        fields = read_certificate(path)
        found = standing(check_document(fields, out, replay=False))
        assert fields == whole or found in ("violation", "differs"), found
        return found

    # Its own part, with the parts left out of the mutations: those are the other surface's.
    return Surface(
        name="composition", suffix=".json", inputs=json_of(whole), read=read, nightly=4_000, quick=8
    )


def envelopes(out: Path, folder: Path) -> Surface:
    fields = json.loads((out / make.CERTIFICATE).read_bytes())
    key = Ed25519PrivateKey.generate()
    path = envelope_beside(folder / "signed.json")
    add_signature(fields, path, key)
    content = path.read_bytes()

    def read(path: Path) -> str:
        checks = list(check_signatures(fields, path, [key.public_key()]))
        found = standing(checks)
        assert found == "differs" or path.read_bytes() == content
        return found

    inputs = st.one_of(json_of(json.loads(content)), bytes_of(content))
    return Surface(name="envelope", suffix=".dsse.json", inputs=inputs, read=read, nightly=14_000)


def configurations(_: Path, __: Path) -> Surface:
    table = Table.of(RECORDS)

    def read(path: Path) -> str:
        configuration = load_configuration(path)
        build(make._inputs(configuration, table))
        return "built"

    names = ['"dp-rp-l"', '"sjlt"', '"rr-min-hash"', '"jl-covariance"', '"noise-addition"']
    inputs = toml_of(CONFIGURATION, names)
    return Surface(
        name="configuration", suffix=".toml", inputs=inputs, read=read, nightly=20_000, quick=100
    )


def settings_tables(_: Path, folder: Path) -> Surface:
    def read(path: Path) -> str:
        place = folder / "project" / "dpverify.toml"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(path.read_bytes())
        try:
            settings_file(place.parent)
            settle(Source("command line", {}), folder=place.parent)
        finally:
            place.unlink()
            place.parent.rmdir()
        return "settled"

    return Surface(
        name="settings", suffix=".toml", inputs=toml_of(SETTINGS), read=read, nightly=8_000
    )


def _records(path: Path) -> str:
    """By blocks and as a whole: the same numbers, or a refusal."""
    try:
        table = open_records(path)
        with contextlib.suppress(DPVerifyError):  # it refuses numbers that aren't finite, too
            shape_of(path)
        whole = np.concatenate(list(table.read()))
    except DPVerifyError:
        with contextlib.suppress(DPVerifyError):
            load_records(path)
        raise
    assert whole.shape == table.shape
    assert np.array_equal(load_records(path), whole, equal_nan=True)
    return "read"


def npy_files(_: Path, __: Path) -> Surface:
    return Surface(name="npy", suffix=".npy", inputs=npy(), read=_records, nightly=16_000, quick=80)


def npz_files(_: Path, __: Path) -> Surface:
    return Surface(name="npz", suffix=".npz", inputs=npz(), read=_records, nightly=8_000)


def csv_files(_: Path, __: Path) -> Surface:
    rows = "\n".join(",".join(map(str, row[:4])) for row in RECORDS.tolist())
    plain = ("\ufeffone,two,three,four\n" + rows).encode()
    odd = [plain.decode("utf-8").encode("utf-16"), b"\xff\xfe\x00", b'"' * 70_000, b"1," * 10_000]
    odd += [b"1e999,2\n", b"nan,1\n", b"\x00\n", b"1_0,2\n", "１,２\n".encode(), b"0x10\n", b"\n\n"]
    inputs = st.one_of(bytes_of(plain), bytes_of(rows.encode()), st.sampled_from(odd))
    return Surface(name="csv", suffix=".csv", inputs=inputs, read=_records, nightly=10_000)


def parquet_files(_: Path, folder: Path) -> Surface:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = folder / "table"
    inputs = []
    for columns in (
        {str(number): column for number, column in enumerate(RECORDS.T)},
        {"a": [1, 2], "b": ["x", "y"]},
        {"a": [1.0, None], "b": [[1], [2, 3]]},
        {"a": [True, False]},
    ):
        parquet.write_table(pyarrow.table(columns), path)
        inputs.append(bytes_of(path.read_bytes()))
    path.unlink()
    return Surface(
        name="parquet", suffix=".parquet", inputs=st.one_of(inputs), read=_records, nightly=10_000
    )


def journals(_: Path, folder: Path) -> Surface:
    place = folder / "kept"
    identity = {"mechanism": "one", "alpha": "0.01"}
    gives = {"verdict": "inconclusive", "numbers": [1, 2.5]}
    for step in ("search", "trials", "sequential"):
        AuditJournal(place).kept(identity, step, lambda: gives)
    content = place.read_bytes()
    place.unlink()
    lines = [json.loads(line) for line in content.splitlines()]

    def read(path: Path) -> str:
        # It mends a torn line, and so works on a copy.
        place.write_bytes(path.read_bytes())
        try:
            gave = AuditJournal(place).kept(identity, "search", lambda: "made anew")
            assert gave in (gives, "made anew")  # and nothing that was never found
            again = AuditJournal(place).kept(identity, "search", lambda: "twice")
            assert again == gave
        finally:
            place.unlink()
        return "made anew" if gave == "made anew" else "went on"

    as_lines = json_of(lines).map(_by_lines)
    torn = st.integers(0, len(content)).map(lambda length: content[:length])
    inputs = st.one_of(torn, bytes_of(content), as_lines)
    return Surface(name="journal", suffix=".journal", inputs=inputs, read=read, nightly=10_000)


def _by_lines(content: bytes) -> bytes:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    parts = document if isinstance(document, list) else [document]
    return b"".join(json.dumps(part).encode() + b"\n" for part in parts)


def keys(_: Path, __: Path) -> Surface:
    key = Ed25519PrivateKey.generate()
    pem, public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    plain = serialization.NoEncryption()
    contents = [
        key.public_key().public_bytes(pem, public),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
    ]

    def read(path: Path) -> str:
        path.chmod(0o600)
        with contextlib.suppress(DPVerifyError):
            load_private_key(path, passphrase=lambda: "x")
        load_public_key(path)
        return "read"

    inputs = st.one_of([bytes_of(content) for content in contents])
    return Surface(name="key", suffix=".pem", inputs=inputs, read=read, nightly=6_000)


SURFACES: dict[str, Make] = {
    made.__name__: made
    for made in (
        certificates,
        compositions,
        envelopes,
        configurations,
        settings_tables,
        npy_files,
        npz_files,
        csv_files,
        parquet_files,
        journals,
        keys,
    )
}


def run(name: str, out: Path, *, nightly: bool) -> Surface:
    with tempfile.TemporaryDirectory() as folder:
        surface = SURFACES[name](out, Path(folder))

        @settings(
            max_examples=surface.nightly if nightly else surface.quick,
            derandomize=not nightly,  # what runs with every change gives the same answer every time
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(surface.inputs)
        def tried(content: bytes) -> None:
            probe(surface, content, Path(folder))

        tried()
    return surface


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.filterwarnings("ignore")
def test_only_documented_errors(name: str, workplace: Path) -> None:
    surface = run(name, workplace / "out", nightly=False)
    assert len(surface.outcomes) > 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.filterwarnings("ignore")
def test_only_documented_errors_among_very_many(
    name: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    surface = run(name, workplace / "out", nightly=True)
    said = ", ".join(f"{count} {outcome}" for outcome, count in surface.outcomes.most_common())
    with capsys.disabled():
        print(f"\n{surface.name}: {surface.outcomes.total()} inputs: {said}")


def test_a_hundred_thousand_every_night(workplace: Path, tmp_path: Path) -> None:
    made = [make(workplace / "out", tmp_path) for make in SURFACES.values()]
    assert sum(surface.nightly for surface in made) >= 100_000


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))


def _is_number(text: str) -> bool:
    try:
        Fraction(text)
    except ValueError:
        return text in ("inf", "-inf", "nan")
    return True


def _words(document: Any, kind: str = "") -> dict[str, tuple[Any, str | int]]:
    """For each kind of place (items of a list are alike) one that holds a text, and no number."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    found: dict[str, tuple[Any, str | int]] = {}
    for key, value in items:
        place = f"{kind}.{key}" if isinstance(document, dict) else f"{kind}[]"
        if isinstance(value, dict | list):
            found = _words(value, place) | found
        elif isinstance(value, str) and not _is_number(value):
            found.setdefault(place, (document, key))
    return found


def test_html_escapes_whatever_is_in_a_certificate(certificate: dict[str, Any]) -> None:
    """All texts but a few fixed words are markup: no element is there that wasn't."""

    def page(fields: dict[str, Any]) -> str:
        return render(Certificate.model_validate(fields))

    def elements(html: str) -> set[Any]:
        parser = _Elements()
        parser.feed(html)
        return parser.found

    markups = [text for text in HTML if "<" in text]
    original, fields, replaced = page(certificate), json.loads(json.dumps(certificate)), 0
    for place, (holder, key) in _words(fields).items():
        kept, holder[key] = holder[key], " ".join(markups)
        try:
            Certificate.model_validate(fields)
            replaced += 1
        except ValueError:
            assert place not in (".inputs.mechanism", ".derived.protects")
            holder[key] = kept
    found = page(fields)
    assert replaced > 15
    assert found.count("&lt;script&gt;") > 5
    assert elements(found) <= elements(original)
    assert all(found.count(markup) == original.count(markup) for markup in markups)
