"""Answers to hazards after the release: every byte of them, whose they are, and what they leave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpverify.certificate.answer import (
    answer,
    answers_beside,
    check_answers,
    open_hazards,
    read_answers,
)
from dpverify.certificate.certify import CERTIFICATE, REPORT
from dpverify.certificate.keys import load_public_key, new_key
from dpverify.certificate.report.html import render
from dpverify.certificate.schema import Certificate
from dpverify.certificate.sign import check_signatures, envelope_beside
from dpverify.certificate.verify import verify
from dpverify.errors import CertificateError, ConfigurationError, KeyFileError
from tests.helpers.command_line import result, run
from tests.helpers.profiles import day_and_night

PATIENT = {"answer": "pass", "reason": "One row is one patient."}
TABLES = {"answer": "fail", "reason": "The yearly tables are exact."}


@pytest.fixture
def certified(workplace: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(workplace / "out", tmp_path / "out")) / CERTIFICATE


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "owner.pem")
    return tmp_path / "owner.pem"


@pytest.fixture
def fields(certified: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(certified.read_bytes())
    return document


def statuses(certified: Path, **words: Any) -> list[str]:
    checks = verify(certified, replay=False, **words).checks
    return [check.status for check in checks if check.name.startswith("answers")]


def test_answers_are_a_line_each_and_nothing_else_changes(
    certified: Path, key: Path, fields: dict[str, Any]
) -> None:
    before = {path.name: path.read_bytes() for path in certified.parent.iterdir()}
    written = answer(certified, key, {"unit-of-privacy": PATIENT}, by="A. Lovelace")
    answer(certified.parent, key, {"other-releases": TABLES}, by="A. Lovelace")
    assert written == answers_beside(certified)
    assert len(written.read_bytes().splitlines()) == 2
    after = {path.name: path.read_bytes() for path in certified.parent.iterdir()}
    assert {name: after[name] for name in before} == before
    # A key that must have signed the certificate did not by signing an answer.
    public = key.with_suffix(".pub.pem")
    assert statuses(certified, answer_keys=[public]) == ["agrees"] * 2
    (signature,) = check_signatures(fields, envelope_beside(certified), [_public(key)])
    assert signature.status == "differs"


@pytest.mark.parametrize("every", day_and_night(41, 1))
def test_every_byte_counts(certified: Path, key: Path, fields: dict[str, Any], every: int) -> None:
    path = answer(certified, key, {"unit-of-privacy": PATIENT}, by="A. Lovelace")
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    content = path.read_bytes()
    (own,) = read_answers(fields, path)
    assert own.holds is None
    for place in range(0, len(content), every):
        for changed in (content[:place] + content[place + 1 :], _flipped(content, place)):
            path.write_bytes(changed)
            checks = list(check_answers(fields, path, [_public(key)]))
            assert [check.status for check in checks] != ["agrees"], place
    path.write_bytes(content)
    assert [c.status for c in check_answers(fields, path, [private.public_key()])] == [
        "not_checked"
    ]
    assert [c.status for c in check_answers(fields, path, [_public(key)])] == ["agrees"]


def test_no_line_can_be_left_out_or_moved_before_a_later_one(
    certified: Path, key: Path, fields: dict[str, Any]
) -> None:
    withdrawn = {"answer": "fail", "reason": "Some patients have two rows."}
    for said in (PATIENT, withdrawn):
        path = answer(certified, key, {"unit-of-privacy": said}, by="A. Lovelace")
    first, second = path.read_bytes().splitlines(keepends=True)
    for lines in ([second, first], [second], [first, second, first], [first, first]):
        path.write_bytes(b"".join(lines))
        (check,) = check_answers(fields, path, [_public(key)])
        assert check.status == "differs"
        assert "left out or moved" in check.detail
        with pytest.raises(CertificateError, match="left out or moved"):
            answer(certified, key, {"other-releases": TABLES}, by="A. Lovelace")


def _flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def _public(key: Path) -> Any:
    return load_public_key(key.with_suffix(".pub.pem"))


def test_answers_to_another_certificate_differ(
    certified: Path, key: Path, fields: dict[str, Any]
) -> None:
    path = answer(certified, key, {"unit-of-privacy": PATIENT}, by="A. Lovelace")
    fields["environment"]["created"] = "2001-01-01T00:00:00+00:00"
    (check,) = check_answers(fields, path, [_public(key)])
    assert check.status == "differs"
    assert "line 1: is not an answer to hazards of this certificate" in check.detail


@pytest.mark.parametrize(
    ("answers", "by", "message"),
    [
        ({}, "A", "answers=none must be at least one"),
        ({"unit-of-privacy": {"answer": "maybe", "reason": "x"}}, "A", "unit-of-privacy.answer"),
        ({"unit-of-privacy": {"answer": "pass", "reason": ""}}, "A", "unit-of-privacy.reason"),
        ({"unit-of-privacy": PATIENT}, "", "by is empty"),
        ({"unit-of-privacy": PATIENT}, "A\u202eB", "hidden character"),
        ({"no-such": PATIENT}, "A", "is not a hazard"),
        ({"floating-point": PATIENT}, "A", "is (answered by the certificate|not a hazard)"),
    ],
)
def test_what_is_no_answer_is_refused(
    certified: Path, key: Path, answers: Any, by: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        answer(certified, key, answers, by=by)
    assert not answers_beside(certified).exists()


def test_what_the_certificate_answers_stays_its_own(
    certified: Path, key: Path, fields: dict[str, Any]
) -> None:
    open_ones = set(open_hazards(fields))
    closed = [entry["id"] for entry in fields["checklist"] if entry["id"] not in open_ones]
    for hazard in closed:
        with pytest.raises(ConfigurationError, match=r"by th(e|is) certificate itself"):
            answer(certified, key, {hazard: PATIENT}, by="A")


def test_a_certificate_that_differs_is_not_answered(
    certified: Path, key: Path, fields: dict[str, Any]
) -> None:
    fields["inputs"]["epsilon"] = "1"
    certified.write_text(json.dumps(fields))
    with pytest.raises(CertificateError, match="Nothing was answered"):
        answer(certified, key, {"unit-of-privacy": PATIENT}, by="A")
    with pytest.raises(KeyFileError):
        answer(certified, key.with_suffix(".pub.pem"), {"unit-of-privacy": PATIENT}, by="A")
    assert not answers_beside(certified).exists()


def test_the_page_shows_who_said_what_later(
    certified: Path, key: Path, fields: dict[str, Any], tmp_path: Path
) -> None:
    said = {"answer": "pass", "reason": "<b>Each</b> row is a patient."}
    answer(certified, key, {"unit-of-privacy": PATIENT}, by="Another")
    answer(certified, key, {"unit-of-privacy": said}, by="A. <i>Lovelace</i>")
    public, page = key.with_suffix(".pub.pem"), tmp_path / "page.html"
    assert run("report", certified, "--key", public) == 2  # in place of the bound one
    assert run("report", certified, "--key", public, "--out", page) == 0
    text = page.read_text(encoding="utf-8")
    assert "unit-of-privacy: pass (by A. &lt;i&gt;Lovelace&lt;/i&gt;" in text
    assert "&lt;b&gt;Each&lt;/b&gt; row is a patient." in text
    assert "Another" not in text  # the latest counts
    bound = (certified.parent / REPORT).read_text(encoding="utf-8")
    assert render(Certificate.model_validate(fields)) == bound


def test_on_the_command_line(
    certified: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--pass", "unit-of-privacy", "One row is one patient.")
    assert run("answer", certified, *given) == 2
    assert "an answer is signed: give --key, and --by" in capsys.readouterr().err
    both = (*given, "--fail", "unit-of-privacy", "It isn't.")
    assert run("answer", certified, *both, "--key", key, "--by", "A") == 2
    assert "answered twice" in capsys.readouterr().err
    assert run("answer", certified, *given, "--key", key, "--by", "A. Lovelace") == 0
    capsys.readouterr()
    assert run("answer", certified, "--json") == 0
    listed = {entry["id"]: entry for entry in result(capsys, "answer")}
    assert listed["unit-of-privacy"]["answer"] == "pass"
    assert listed["unit-of-privacy"]["by"].startswith("A. Lovelace, 2")
    assert listed["other-releases"]["answer"] == ""
    assert run("answer", certified) == 0
    assert "other-releases: " in capsys.readouterr().out
