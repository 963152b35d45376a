"""What a terminal would obey, or a reader not see, is refused in documents and printed as text."""

from __future__ import annotations

import copy
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.certificate.certify import CERTIFICATE, document_digest
from dpverify.certificate.compose import check_document, compose
from dpverify.certificate.configuration import load_configuration
from dpverify.cli import _run
from dpverify.cli.output import emit_json, emit_table, say
from dpverify.errors import ConfigurationError
from dpverify.visible import escaped, hidden, raised
from dpverify_check import dpverify_check as second
from tests.helpers.fixtures import CONFIGURATION

HIDDEN = ["\x1b", "\x00", "\r", "\b", "\x7f", "\x9b", "\u202e", "\u2066", "\u200b", "\u2028"]
HIDDEN += ["\ufeff", "\u00ad", "\ud800", "\U000e0041"]
HIDDEN += ["\u034f", "\u115f", "\u3164", "\ufe0f", "\U000e0100"]
PAINTED = "\x1b[2J\x1b[Hagrees\u202e"


@given(st.text())
def test_escaped_text_is_visible_and_tells_all(text: str) -> None:
    shown = escaped(text)
    assert hidden(shown) is None
    assert all(c.isprintable() or unicodedata.category(c) == "Zs" for c in shown)
    assert escaped(shown) == shown
    if hidden(text) is None and text.isprintable():
        assert shown == text
    if "\\" not in text and all(c.isprintable() or ord(c) > 255 for c in text):
        assert len(shown) >= len(text)


@given(st.text() | st.sampled_from(HIDDEN))
def test_both_checkers_hide_the_same(text: str) -> None:
    assert second.hidden(text) == (hidden(text) is not None)
    assert hidden(text) or text not in HIDDEN


@pytest.mark.parametrize("character", HIDDEN)
def test_nothing_hidden_is_printed(character: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"a{character}b")
    emit_table([[f"a{character}b", "c"]])
    emit_json("verify", {f"k{character}": [f"a{character}b\n"]})
    out = capsys.readouterr().out
    assert {hidden(line) for line in out.split("\n")} == {None}
    document = json.loads(out[out.index("{") :])
    assert document["result"] == {f"k{character}": [f"a{character}b\n"]}


def test_ordinary_text_stays(capsys: pytest.CaptureFixture[str]) -> None:
    say("ε ≤ 5 für José, 漢字\u00a0%\n", lines=True)
    emit_json("account", {"ε": "é ≤\u00a0%"})
    out = capsys.readouterr().out
    assert out.startswith("ε ≤ 5 für José, 漢字\u00a0%\n")
    assert '"ε": "é ≤\u00a0%"' in out


@pytest.mark.parametrize("place", ["mechanism", "key", "file", "schema"])
@pytest.mark.parametrize("command", ["verify", "compose", "sign"])
def test_a_certificate_paints_nothing(
    place: str,
    command: str,
    certificate: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fields = copy.deepcopy(certificate)
    match place:
        case "mechanism":
            fields["inputs"]["mechanism"] += PAINTED
        case "key":
            fields["inputs"][f"x{PAINTED}\nagrees  digest"] = 1
        case "file":
            fields["release"]["file"] = PAINTED
        case _:
            fields["schema"] = PAINTED
    fields["digest"] = document_digest(fields)
    path = tmp_path / CERTIFICATE
    path.write_bytes(rfc8785.dumps(fields))
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\n")
    key.chmod(0o600)
    more = {"verify": [], "compose": [str(path)], "sign": ["--key", str(key)]}[command]
    assert _run([command, str(path), *more]) in (1, 2)
    captured = capsys.readouterr()
    for line in (captured.out + captured.err).split("\n"):
        assert hidden(line) is None
        assert not line.startswith("agrees  digest" if place == "key" else "agrees\u202e")


def test_an_audit_s_report_paints_nothing() -> None:
    key = f"{PAINTED}\n  black-box: no violation found"

    def leaks(rows: Any, rng: Any) -> dict[str, float]:
        return {key: len(rows) + rng.laplace(scale=0.1)}

    leaks.__name__ = key
    pair = dpv.Pair(name="a row", record=[{key: key}], neighbour=[])
    report = dpv.audit(
        leaks,
        epsilon=1,
        adjacency=dpv.AddRemove(),
        pairs=[pair],
        kinds=["black-box"],
        draws=50,
        workers=1,
    )
    assert report.verdict == "violation"
    for line in f"{report}\n{report.violations[0]}".split("\n"):
        assert hidden(line) is None
        assert not line.startswith("  black-box: no violation")


def test_a_file_s_name_paints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["verify", f"{tmp_path}/{PAINTED}"], [f"x{PAINTED}"], ["audit", PAINTED]):
        assert _run(arguments) == 2
        captured = capsys.readouterr()
        assert {hidden(line) for line in (captured.out + captured.err).split("\n")} == {None}


@pytest.mark.parametrize("character", ["\x1b", "\u202e", "\ufe0f", "\u2028"])
def test_documents_hold_nothing_hidden(
    character: str, certificate: dict[str, Any], tmp_path: Path
) -> None:
    other = copy.deepcopy(certificate)
    other["release"]["sha256"] = "0" * 64
    other["inputs"]["epsilon"] = "1"
    composed = compose([certificate, other], delta=None)
    for document in (certificate, composed):
        in_text, in_name = copy.deepcopy(document), copy.deepcopy(document)
        in_text["environment"]["platform"] += character
        in_name["environment"][f"platform{character}"] = "linux"
        for fields in (in_text, in_name):
            fields["digest"] = document_digest(fields)
            (check,) = check_document(fields, tmp_path)
            assert (check.name, check.status) == ("schema", "differs")
            assert "hidden character" in check.detail
    if character.isspace():  # read as a space
        return
    text = json.dumps(f"The owner{character} says so.")
    path = tmp_path / "release.toml"
    answer = f"[owner]\ntrust-model = {{ answer = 'pass', reason = {text} }}\n"
    path.write_text(CONFIGURATION + answer)
    with pytest.raises(ConfigurationError, match="hidden character"):
        load_configuration(path)


def test_a_reason_over_two_lines_is_one(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    answer = "[owner.trust-model]\nanswer = 'pass'\nreason = '''The owner\n  says so.'''\n"
    path.write_text(CONFIGURATION + answer)
    assert load_configuration(path).owner["trust-model"].reason == "The owner says so."


def test_an_exception_without_words_is_its_type() -> None:
    assert raised(MemoryError()) == "MemoryError"
    assert raised(ValueError("x: ")) == "ValueError: x: "
