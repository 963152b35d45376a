"""Signatures: the formats' own test vectors, every byte of an envelope, and openssl's opinion."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from dpverify.certificate.certify import CERTIFICATE, document_digest
from dpverify.certificate.keys import key_id, load_private_key, load_public_key, new_key
from dpverify.certificate.sign import (
    Envelope,
    add_signature,
    check_signatures,
    envelope_beside,
    pae,
    statement,
)
from dpverify.cli import _run
from dpverify.data.atomic_files import writing
from dpverify.errors import CertificateError, KeyFileError, OutputError
from tests.helpers.command_line import run
from tests.helpers.profiles import day_and_night

# RFC 8032, section 7.1: secret key, public key, message, signature.
RFC_8032 = {
    "TEST 1": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b4"
        "6bd25bf5f0595bbe24655141438e7a100b",
    ),
    "TEST 2": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d"
        "8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    "TEST 3": (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6"
        "594a7c15e9716ed28dc027beceea1ec40a",
    ),
}


@pytest.fixture(scope="module")
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture
def signed(workplace: Path, tmp_path: Path) -> Path:
    """A copy of the certified folder, ready to be signed; the certificate's path."""
    return Path(shutil.copytree(workplace / "out", tmp_path / "out")) / CERTIFICATE


def write_private(path: Path, key: Any, *, passphrase: str = "", mode: int = 0o600) -> Path:
    hidden = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    path.chmod(mode)
    return path


def write_public(path: Path, key: Any) -> Path:
    public = key.public_key()
    path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def statuses(fields: dict[str, Any], path: Path, *keys: Ed25519PrivateKey) -> list[str]:
    public = [one.public_key() for one in keys]
    return [check.status for check in check_signatures(fields, path, public)]


def _of_small_order() -> Iterator[int]:
    """Every encoding in 256 bits of the eight points: y or y + p, with either sign of x."""
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p  # RFC 8032, section 5.1
    root = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
    assert (d * root**4 + 2 * root**2 - 1) % p == 0
    for y in (0, 1, p - 1, root, p - root):
        for encoded in (y, y + p):
            if encoded < 2**255:
                yield from (encoded, encoded + 2**255)


@pytest.mark.parametrize("encoded", list(_of_small_order()))
def test_nobodys_key_is_refused(
    encoded: int, tmp_path: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a point of small order "signatures" by nobody hold."""
    key = Ed25519PublicKey.from_public_bytes(encoded.to_bytes(32, "little"))
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(pem)
    certificate = workplace / "out" / CERTIFICATE
    assert _run(["verify", str(certificate), "--key", str(tmp_path / "key.pem")]) == 2
    assert "point of small order" in capsys.readouterr().err


def test_the_encoding_of_the_specification() -> None:
    """DSSE v1.0.2, protocol.md, test vectors; lengths are of bytes, not of characters."""
    due = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == due
    assert pae("é", b"\0\n") == b"DSSEv1 2 \xc3\xa9 2 \0\n"
    assert pae("", b"") == b"DSSEv1 0  0 "


@pytest.mark.parametrize("name", RFC_8032)
def test_vectors_of_rfc_8032(name: str) -> None:
    secret, public, message, signature = map(bytes.fromhex, RFC_8032[name])
    private = Ed25519PrivateKey.from_private_bytes(secret)
    assert private.public_key().public_bytes_raw() == public
    assert private.sign(message) == signature
    key = Ed25519PublicKey.from_public_bytes(public)
    key.verify(signature, message)
    # The other root of unity's multiple: s + the group's order fits the equation and is no
    # signature (section 5.1.7). Were it accepted, an envelope could change unnoticed.
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    with pytest.raises(InvalidSignature):
        key.verify(signature[:32] + s.to_bytes(32, "little"), message)


def test_the_statement_binds_the_file_and_the_certificate(certificate: dict[str, Any]) -> None:
    """In-toto Statement v1 (spec/v1/statement.md): four fields, every subject with a digest."""
    stated = statement(certificate)
    assert set(stated) == {"_type", "subject", "predicateType", "predicate"}
    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    (subject,) = stated["subject"]
    released = certificate["release"]
    assert subject == {"name": "sketch.npz", "digest": {"sha256": released["sha256"]}}
    assert stated["predicateType"] == "urn:dpverify:certificate:1"
    assert stated["predicate"] == certificate


@pytest.mark.parametrize("every", day_and_night(7, 1))
def test_every_byte_changed_alone_is_noticed(
    certificate: dict[str, Any], tmp_path: Path, key: Ed25519PrivateKey, every: int
) -> None:
    path = tmp_path / "certificate.dsse.json"
    # Quicker without what a signature doesn't look at.
    certificate = {name: certificate[name] for name in ("schema", "release", "digest")}
    add_signature(certificate, path, key)
    content = path.read_bytes()
    assert statuses(certificate, path, key) == ["agrees"]
    unnoticed = []
    changed = bytearray(content)
    for place in range(0, len(content), every):
        changed[place] ^= 1
        path.write_bytes(changed)
        if statuses(certificate, path, key) != ["differs"]:
            unnoticed.append(place)
        changed[place] = content[place]
    assert not unnoticed
    for altered in (content[:-1], content + b" ", b"", b"[" * 100_000, b"\xff"):
        path.write_bytes(altered)
        assert statuses(certificate, path, key) == ["differs"]


def test_another_spelling_of_the_same_envelope_is_refused(
    certificate: dict[str, Any], tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    """Spare bits of base64, its other alphabet, white space: what would decode to the same."""
    path = tmp_path / "certificate.dsse.json"
    add_signature(certificate, path, key)
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document))
    assert statuses(certificate, path, key) == ["differs"]
    (signature,) = document["signatures"]
    assert signature["sig"].endswith("==")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    spare = letters[letters.index(signature["sig"][-3]) + 1] + "=="
    twin = signature["sig"][:-3] + spare
    assert base64.b64decode(twin) == base64.b64decode(signature["sig"])
    altered = Envelope.model_validate(document | {"signatures": [signature | {"sig": twin}]})
    path.write_bytes(altered.as_bytes())
    assert statuses(certificate, path, key) == ["differs"]


def test_what_was_signed_is_named_where_it_differs(
    certificate: dict[str, Any], tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    path = tmp_path / "certificate.dsse.json"
    add_signature(certificate, path, key)
    other = json.loads(json.dumps(certificate))
    other["inputs"]["epsilon"] = "1"
    other["digest"] = document_digest(other)
    (check,) = check_signatures(other, path, [key.public_key()])
    assert check.status == "differs"
    assert set(check.fields) == {"statement.predicate.inputs.epsilon", "statement.predicate.digest"}
    other = json.loads(json.dumps(certificate))
    other["release"]["sha256"] = "0" * 64
    (check,) = check_signatures(other, path, [key.public_key()])
    assert "statement.subject[0].digest.sha256" in check.fields


def test_a_signature_for_another_purpose_is_none(
    certificate: dict[str, Any], tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    """The same payload under another type, properly signed, and the bare payload, signed."""
    path = tmp_path / "certificate.dsse.json"
    envelope = add_signature(certificate, path, key)
    payload = base64.b64decode(envelope.payload)
    elsewhere = envelope.model_copy(update={"payloadType": "application/json"})
    for made, message in ((elsewhere, elsewhere.signed()), (envelope, payload)):
        sig = base64.b64encode(key.sign(message)).decode()
        signatures = [envelope.signatures[0].model_copy(update={"sig": sig})]
        path.write_bytes(made.model_copy(update={"signatures": signatures}).as_bytes())
        assert statuses(certificate, path, key) == ["differs"]


@pytest.mark.parametrize(
    "payload",
    [
        b"[" * 10**5,
        b'{"a":' * 10**5,
        b'{"subject":' + b"[" * 10**5,
        b"null",
        b"{}",
        b"NaN",
        b"9" * 5000,
        b"",
    ],
    ids=["deep list", "deep object", "deep subject", "null", "empty", "nan", "digits", "nothing"],
)
def test_a_signer_may_have_signed_anything(
    payload: bytes, certificate: dict[str, Any], tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    path = tmp_path / "certificate.dsse.json"
    envelope = add_signature(certificate, path, key)
    other = envelope.model_copy(update={"payload": base64.b64encode(payload).decode()})
    sig = base64.b64encode(key.sign(other.signed())).decode()
    signatures = [envelope.signatures[0].model_copy(update={"sig": sig})]
    path.write_bytes(other.model_copy(update={"signatures": signatures}).as_bytes())
    (check,) = check_signatures(certificate, path, [key.public_key()])
    assert (check.status, check.fields) == ("differs", ("statement",))


def test_a_signature_that_is_there_many_times_is_checked_once(
    certificate: dict[str, Any],
    tmp_path: Path,
    key: Ed25519PrivateKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "certificate.dsse.json"
    envelope = add_signature(certificate, path, key)
    path.write_bytes(
        envelope.model_copy(update={"signatures": envelope.signatures * 1000}).as_bytes()
    )
    encoded: list[bytes] = []
    signed = envelope.signed()

    def once(_: Envelope) -> bytes:
        encoded.append(signed)
        return signed

    monkeypatch.setattr(Envelope, "signed", once)
    assert statuses(certificate, path, key) == ["agrees"]
    assert len(encoded) == 1


def test_signatures_are_added_and_each_has_its_key(
    certificate: dict[str, Any], tmp_path: Path, key: Ed25519PrivateKey
) -> None:
    path = tmp_path / "certificate.dsse.json"
    second, stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    add_signature(certificate, path, key)
    alone = path.read_bytes()
    add_signature(certificate, path, key)
    assert path.read_bytes() == alone
    add_signature(certificate, path, second)
    assert statuses(certificate, path, key, second) == ["agrees", "agrees"]
    assert statuses(certificate, path, second, stranger) == ["agrees", "differs"]
    assert statuses(certificate, path) == ["not_checked"]
    # A signature under another's name is not that other's.
    envelope = Envelope.read(path)
    first, other = envelope.signatures
    swapped = [first.model_copy(update={"sig": other.sig}), other]
    path.write_bytes(envelope.model_copy(update={"signatures": swapped}).as_bytes())
    assert statuses(certificate, path, key, second) == ["differs", "agrees"]


def test_sign_and_verify(
    signed: Path, tmp_path: Path, key: Ed25519PrivateKey, capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = write_private(tmp_path / "k", key), write_public(tmp_path / "k.pub", key)
    assert run("verify", signed, "--no-replay", "--key", public) == 1
    assert "No such file" in capsys.readouterr().out
    assert run("sign", signed, "--key", private, "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert run("sign", signed, "--key", private, "--json", "--verbose") == 0
    captured = capsys.readouterr()
    assert "agrees: released file" in captured.err
    result = json.loads(captured.out)["result"]
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert result["signed_by"] == hashlib.sha256(der).hexdigest()
    assert result["envelope"] == str(envelope_beside(signed))
    assert run("verify", signed, "--no-replay", "--key", public) == 0
    assert run("verify", signed, "--no-replay") == 0
    assert "not_checked  signature" in capsys.readouterr().out
    wrong = write_public(tmp_path / "other.pub", Ed25519PrivateKey.generate())
    assert run("verify", signed, "--no-replay", "--key", public, "--key", wrong) == 1
    assert "wrong key or the wrong envelope" in capsys.readouterr().out
    secret = base64.b64encode(key.private_bytes_raw()).decode()[:40]
    written = b"".join(path.read_bytes() for path in signed.parent.iterdir())
    assert key.private_bytes_raw() not in written
    assert secret.encode() not in written


def test_of_two_signers_at_once_neither_is_lost(signed: Path, key: Ed25519PrivateKey) -> None:
    """The second reads the envelope under the first one's lock, or ends with an error."""
    fields, path = json.loads(signed.read_bytes()), envelope_beside(signed)
    other = Ed25519PrivateKey.generate()
    with writing(path) as file:
        with pytest.raises(OutputError, match="another process is writing it"):
            add_signature(fields, path, other)
        file.write(add_signature(fields, path.with_name("alone"), key).as_bytes())
    add_signature(fields, path, other)
    assert statuses(fields, path, key, other) == ["agrees", "agrees"]


def test_what_does_not_agree_is_not_signed(
    signed: Path, tmp_path: Path, key: Ed25519PrivateKey, capsys: pytest.CaptureFixture[str]
) -> None:
    private = write_private(tmp_path / "k", key)
    text = signed.read_text()
    signed.write_text(text.replace('"draws":200', '"draws":201'))
    assert run("sign", signed, "--key", private) == 1
    signed.write_text(text)
    (signed.parent / "sketch.npz").unlink()
    assert run("sign", signed, "--key", private, "--quiet") == 3  # errors are said all the same
    assert capsys.readouterr().err.count("Nothing was signed.") == 2
    assert not envelope_beside(signed).exists()


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_an_envelope_is_a_file_of_its_own(
    signed: Path, key: Ed25519PrivateKey, tmp_path: Path, kind: str
) -> None:
    """A link leads elsewhere, and a pipe would block its reader for ever."""
    path, private = envelope_beside(signed), write_private(tmp_path / "key.pem", key)
    if kind == "link":
        path.symlink_to("nowhere")
    else:
        os.mkfifo(path)
    assert run("verify", signed, "--no-replay") == 1
    assert run("sign", signed, "--key", private) == 2
    with pytest.raises(CertificateError, match="not a file of its own"):
        Envelope.read(path)


def test_an_envelope_about_another_certificate_is_left_alone(
    signed: Path,
    certificate: dict[str, Any],
    tmp_path: Path,
    key: Ed25519PrivateKey,
    capsys: pytest.CaptureFixture[str],
) -> None:
    private = write_private(tmp_path / "k", key)
    add_signature(certificate | {"digest": "0"}, envelope_beside(signed), key)
    before = envelope_beside(signed).read_bytes()
    assert run("sign", signed, "--key", private) == 2
    assert "is about another certificate" in capsys.readouterr().err
    assert envelope_beside(signed).read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="file modes mean nothing here")
@pytest.mark.parametrize(
    "mode", day_and_night(0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666)
)
def test_a_key_that_others_may_open_is_refused(
    signed: Path,
    tmp_path: Path,
    key: Ed25519PrivateKey,
    mode: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    private = write_private(tmp_path / "signer.pem", key, mode=mode)
    assert run("sign", signed, "--key", private) == 2
    error = capsys.readouterr().err
    assert f"its mode is {mode:04o}" in error
    assert f"chmod 600 {private}" in error
    private.chmod(0o400)
    assert run("sign", signed, "--key", private) == 0


def test_a_passphrase_is_asked_for_and_never_repeated(
    signed: Path,
    tmp_path: Path,
    key: Ed25519PrivateKey,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    private = write_private(tmp_path / "k", key, passphrase="correct horse")  # noqa: S106
    answers = iter(["battery staple", "correct horse"])
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _: next(answers))
    assert run("sign", signed, "--key", private) == 2
    captured = capsys.readouterr()
    assert "the passphrase is wrong" in captured.err
    assert "battery" not in captured.err + captured.out
    assert run("sign", signed, "--key", private) == 0
    captured = capsys.readouterr()
    assert "horse" not in captured.err + captured.out


def test_other_files_than_keys_are_one_line(
    signed: Path, tmp_path: Path, key: Ed25519PrivateKey, capsys: pytest.CaptureFixture[str]
) -> None:
    curve = generate_private_key(SECP256R1())
    private = write_private(tmp_path / "k", key)
    public = write_public(tmp_path / "k.pub", key)
    nonsense = tmp_path / "n"
    nonsense.write_text("-----BEGIN PRIVATE KEY-----\nTm90IGEga2V5\n-----END PRIVATE KEY-----\n")
    nonsense.chmod(0o600)
    public.chmod(0o644)
    cases = [
        ("sign", public.rename(tmp_path / "p"), "is a public key"),
        ("sign", nonsense, "is not a private key in PEM"),
        ("sign", write_private(tmp_path / "ec", curve), "must be Ed25519"),
        ("sign", tmp_path / "none", "can't be read: No such file"),
        ("verify", private, "is a private key, and verification takes the public one"),
        ("verify", write_public(tmp_path / "ec.pub", curve), "must be Ed25519"),
        ("verify", signed, "is not a public key in PEM"),
    ]
    for command, path, message in cases:
        assert run(command, signed, "--key", path) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "Tm90" not in error
        assert error.count("\n") == 1
    assert not envelope_beside(signed).exists()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")
def test_openssl_agrees(
    signed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Openssl makes the keys, and alone verifies the signature."""
    monkeypatch.chdir(tmp_path)

    def openssl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["openssl", *arguments], check=False, capture_output=True)  # noqa: S607

    if openssl("genpkey", "-algorithm", "ed25519", "-out", "signer.pem").returncode:
        pytest.skip("this openssl knows no Ed25519")
    openssl("pkey", "-in", "signer.pem", "-pubout", "-out", "signer.pub.pem")
    assert run("sign", signed, "--key", "signer.pem") == 0
    assert run("verify", signed, "--no-replay", "--key", "signer.pub.pem") == 0
    envelope = json.loads(envelope_beside(signed).read_bytes())
    payload = base64.b64decode(envelope["payload"])
    (signature,) = envelope["signatures"]
    der = openssl("pkey", "-pubin", "-in", "signer.pub.pem", "-outform", "DER").stdout
    assert signature["keyid"] == hashlib.sha256(der).hexdigest()
    Path("sig").write_bytes(base64.b64decode(signature["sig"]))
    verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "signer.pub.pem", "-rawin"]
    for message, code in ((payload, 0), (payload + b" ", 1)):
        Path("message").write_bytes(
            b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(message), message)
        )
        assert openssl(*verify, "-in", "message", "-sigfile", "sig").returncode == code


def test_a_new_key_signs(signed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, public = tmp_path / "me.pem", tmp_path / "me.pub.pem"
    assert run("key", "new", private, "--json") == 0
    made = json.loads(capsys.readouterr().out)["result"]
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert made["key_id"] == key_id(load_public_key(public))
    assert run("sign", signed, "--key", private) == 0
    assert run("verify", signed, "--no-replay", "--key", public) == 0
    before = private.read_bytes(), public.read_bytes()
    assert run("key", "new", private) == 2
    assert "exists" in capsys.readouterr().err
    private.unlink()
    assert run("key", "new", private) == 2  # the public one alone is kept too
    assert not private.exists()
    assert public.read_bytes() == before[1]


def test_a_new_key_can_be_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "me.pem"
    word = "correct horse"
    new_key(path, passphrase=word)
    assert load_private_key(path, passphrase=lambda: word)
    with pytest.raises(KeyFileError, match="passphrase is wrong"):
        load_private_key(path, passphrase=lambda: "battery")
    with pytest.raises(KeyFileError, match="empty"):
        new_key(tmp_path / "other.pem", passphrase="")
    with pytest.raises(KeyFileError, match="is a folder"):
        new_key(Path())


def test_the_help_shows_two_commands(capsys: pytest.CaptureFixture[str]) -> None:
    _run(["sign", "--help"])
    shown = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  dpverify ") for line in shown) == 2
    assert not any("\\b" in line for line in shown)
