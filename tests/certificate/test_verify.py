"""The verification of a certificate as one call: what it says, prints and refuses."""

from __future__ import annotations

import json
import shutil
import tomllib
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import dpverify as dpv
from dpverify.certificate.certify import CERTIFICATE
from dpverify.certificate.checks import Check
from dpverify.certificate.verify import Verification, overall
from dpverify.errors import CertificateError, ConfigurationError, KeyFileError, ParameterError
from tests.helpers.command_line import run


@pytest.fixture
def out(workplace: Path, tmp_path: Path) -> Path:
    """A copy of the certified folder."""
    return Path(shutil.copytree(workplace / "out", tmp_path / "out"))


def check(status: str, *fields: str) -> Check:
    return Check(name="bounds", status=status, detail="a <b>", fields=fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ([], "agrees"),
        (["agrees", "not_checked"], "agrees"),
        (["agrees", "inconclusive"], "inconclusive"),
        (["differs", "inconclusive"], "differs"),
        (["violation"], "differs"),
    ],
)
def test_the_worst_check_decides(statuses: list[str], said: str) -> None:
    assert overall(map(check, statuses)) == said


def test_a_verification_prints_its_checks_as_text_html_and_json() -> None:
    found = Verification(
        path=Path("c.json"), checks=(check("agrees"), check("differs", "inputs.k"))
    )
    assert str(found).splitlines() == [
        "         what    how",
        "agrees   bounds  a <b>",
        "differs  bounds  a <b>",
        "no longer agrees: inputs.k",
    ]
    assert "<td>a &lt;b&gt;</td>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["checks"][1]["fields"] == ["inputs.k"]
    assert not found.ok


@pytest.mark.parametrize("name", ["", CERTIFICATE])
def test_a_folder_or_its_file(out: Path, name: str) -> None:
    assert dpv.verify(str(out / name), replay=False).ok
    assert str(dpv.open_release(str(out / name))).startswith("rows ")


def test_a_change_is_found(out: Path) -> None:
    path = out / CERTIFICATE
    path.write_text(path.read_text().replace('"draws":200', '"draws":201'))
    found = dpv.verify(out, replay=False)
    assert (found.status, found.ok) == ("differs", False)
    assert "no longer agrees: digest" in str(found)


def test_files_that_the_certificate_does_not_know_are_named(out: Path) -> None:
    assert "other files" not in str(dpv.verify(out, replay=False))
    shutil.copy(out / "sketch.npz", out / "sketch-00000.npz")
    found = dpv.verify(out, replay=False)
    assert found.ok
    assert "sketch-00000.npz: called as released files are" in str(found)


def test_a_folder_without_a_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="there is no such file"):
        dpv.verify(str(tmp_path))


def test_tables_in_place_of_a_file(workplace: Path, tmp_path: Path) -> None:
    """A float is read as the double that it is."""
    text = (workplace / "release.toml").read_text()
    tables = tomllib.loads(text, parse_float=Decimal)
    tables["privacy"]["adjacency"]["beta"] = 0.5
    made = dpv.certify(tables, str(tmp_path / "again"), base=str(workplace), workers=1)
    there = json.loads((workplace / "out" / CERTIFICATE).read_text())
    assert made.certificate.to_dict()["inputs"] == there["inputs"]
    with pytest.raises(ConfigurationError, match=r"unknown key privacy\.epsilonn"):
        dpv.certify({**tables, "privacy": {**tables["privacy"], "epsilonn": 1}}, tmp_path / "no")


def test_there_is_no_such_estimator(workplace: Path) -> None:
    release = dpv.open_release(workplace / "out")
    with pytest.raises(ParameterError, match="squared distance, inner product or cosine"):
        release.estimate("angle", release.rows[:1], release.rows[1:2])
    assert np.isfinite(release.estimate("inner product", release.rows[:1], release.rows[1:2]))


def test_sign_and_verify(out: Path, tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "signer.pem", tmp_path / "signer.pub.pem"
    private.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open"))
    )
    private.chmod(0o600)
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(KeyFileError, match="give passphrase"):
        dpv.sign(out, private)
    assert dpv.sign(str(out), str(private), passphrase=lambda: "open").parent == out
    assert dpv.verify(out, keys=[str(public)], replay=False).ok


def test_what_disagrees_is_not_signed(out: Path, tmp_path: Path) -> None:
    private = tmp_path / "signer.pem"
    key = Ed25519PrivateKey.generate()
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    (out / "sketch.npz").write_bytes(b"")
    with pytest.raises(CertificateError, match=r"differs: released file: .*Nothing was signed\."):
        dpv.sign(out, private)
    assert not (out / "certificate.dsse.json").exists()


def test_the_report_is_rendered_again(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = out / "report.html"
    there = page.read_bytes()
    page.write_bytes(there.replace("ε = 2".encode(), "ε = 0.1".encode()))
    assert not dpv.verify(out, replay=False).ok
    assert run("report", out) == 0
    assert "unsigned" in capsys.readouterr().err
    assert page.read_bytes() == there
    assert run("report", out, "--out", out / "other.html", "--json") == 0
    shown = json.loads(capsys.readouterr().out)["result"]
    assert shown == {"report": str(out / "other.html"), "envelope": False}
    assert (out / "other.html").read_bytes() == there


def test_a_certificate_that_disagrees_has_no_report(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "sketch.npz").write_bytes(b"")
    (out / "report.html").unlink()
    assert run("report", out) == 1
    assert "No report was written" in capsys.readouterr().err
    assert not (out / "report.html").exists()
