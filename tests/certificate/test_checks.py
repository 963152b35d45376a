"""Verification: every field of a certificate is changed in turn, and each change is noticed."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.certificate import checks
from dpverify.certificate.archive import SKETCH
from dpverify.certificate.certify import CERTIFICATE, document_digest, environment
from dpverify.certificate.checklist import answers
from dpverify.certificate.checks import check_certificate, read_certificate, recomputed
from dpverify.certificate.derive import AuditPlan, collect
from dpverify.certificate.schema import Certificate, Evidence, Inputs
from dpverify.enclosure import Enclosure
from dpverify.errors import CertificateError, place
from dpverify_check.dpverify_check import check_fields
from tests.helpers.profiles import day_and_night

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?(/\d+)?")


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield path


def at(fields: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        fields = fields[key]
    return fields


def changed(fields: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """The certificate with one leaf changed as little as its kind allows."""
    altered = copy.deepcopy(fields)
    value = at(altered, path)
    if value is None:
        new: Any = "0.5"
    elif isinstance(value, int):
        new = value + 1
    elif NUMBER.fullmatch(value):
        digits = list(value)
        last = max(i for i, c in enumerate(value.split("E")[0].split("e")[0]) if c.isdigit())
        digits[last] = "1" if digits[last] == "0" else str(int(digits[last]) - 1)
        new = "".join(digits)
    else:
        new = value + "x"
    at(altered, path[:-1])[path[-1]] = new
    return altered


def is_number(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and bool(NUMBER.fullmatch(value)))


def test_an_untouched_certificate_agrees(certificate: dict[str, Any], workplace: Path) -> None:
    checks = check_certificate(certificate, workplace / "out")
    assert [check for check in checks if check.status != "agrees"] == []
    assert {check.name for check in checks} >= {"digest", "replay", "attack", "released file"}


@pytest.fixture
def kept_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws depend on the inputs alone: for the same inputs they are kept, which saves a minute."""
    replayed: dict[Inputs, Evidence] = {}

    def kept(plan: AuditPlan, **_: Any) -> Evidence:
        if plan.inputs not in replayed:
            replayed[plan.inputs] = collect(plan)
        return replayed[plan.inputs]

    monkeypatch.setattr("dpverify.certificate.checks.collect", kept)


@pytest.mark.usefixtures("kept_draws")
@pytest.mark.parametrize("every", day_and_night(97, 1))
def test_every_number_changed_alone_is_noticed_without_the_digest(
    certificate: dict[str, Any], workplace: Path, every: int
) -> None:
    """The digest is renewed after each change, so that it can't be what notices."""
    unnoticed, unnamed = [], []
    paths = [path for path in leaves(certificate) if path not in {("digest",), ("schema",)}]
    numbers = [
        path for path in paths if path[0] != "environment" and is_number(at(certificate, path))
    ]
    assert len(numbers) > 200
    for path in numbers[::every]:
        altered = changed(certificate, path)
        altered["digest"] = document_digest(altered)
        wrong = [c for c in check_certificate(altered, workplace / "out") if c.status == "differs"]
        if not wrong:
            unnoticed.append(place(path))
        elif not any(check.fields for check in wrong):
            unnamed.append(place(path))
        elif path[0] in {"evidence", "derived"}:
            # What isn't an input is named itself (or its list is, where the form is wrong).
            fields = [field for check in wrong for field in check.fields]
            assert any(place(path).startswith(field) for field in fields)
    assert not unnoticed
    assert not unnamed


EDITS: dict[str, Callable[[Any], Any]] = {
    "null": lambda value: None,
    "number": lambda value: 7,
    "empty": lambda value: type(value)(),
    "text": lambda value: "x",
    "longer": lambda value: value + value[-1:],
    "shorter": lambda value: value[:-1],
    "another digit": lambda value: re.sub(
        r"[0-9]", lambda d: str((int(d[0]) + 1) % 10), value, count=1
    ),
    "other digits": lambda value: value.translate({48 + n: 0x660 + n for n in range(10)}),
    "a point": lambda value: value + ".0",
    "a fraction": lambda value: f"{2 * int(value)}/2",
    "an exponent": lambda value: value + "e0",
    "a space": lambda value: value + " ",
    "reversed": lambda value: value[::-1],
    "a key more": lambda value: {**value, "x": "1"},
    # The last: what the owner calls a release is the first of the inputs, and may be left out.
    "a key less": lambda value: dict(list(value.items())[:-1]),
    "hidden": lambda value: value + "\u202e",
    "an escape": lambda value: value + "\x1b[2J",
}
"""Each edits a value, or fails where it isn't one of a kind that it edits."""

FREE = {
    ("environment", "created"),
    ("environment", "platform"),
    *(("environment", "versions", name) for name in environment().versions),
}
"""What the digest, the report and a signature alone hold."""


def everything(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of leaves, lists and objects."""
    if path:
        yield path
    lists: Any = enumerate(value) if isinstance(value, list) else ()
    for key, part in value.items() if isinstance(value, dict) else lists:
        yield from everything(part, (*path, key))


@pytest.mark.usefixtures("kept_draws")
@pytest.mark.parametrize(("every", "inputs"), day_and_night((3989, 61), (1, 1)))
def test_every_edit_of_every_value_is_noticed(
    certificate: dict[str, Any], workplace: Path, tmp_path: Path, every: int, inputs: int
) -> None:
    """With the digest renewed, the same draws, and no report and no signature that would tell."""
    (tmp_path / SKETCH).write_bytes((workplace / "out" / SKETCH).read_bytes())
    unnoticed = set()
    edits = [(path, edit) for path in everything(certificate) for edit in EDITS]
    kept = {("inputs",), ("release",), ("environment",)}
    for number, (path, edit) in enumerate(edits):
        if number % (inputs if path[:1] in kept else every) or path[0] in {"digest", "schema"}:
            continue
        altered = copy.deepcopy(certificate)
        try:
            new = EDITS[edit](at(altered, path))
            assert new != at(altered, path)
        except (TypeError, ValueError, AttributeError, AssertionError):
            continue
        at(altered, path[:-1])[path[-1]] = new
        altered["digest"] = document_digest(altered)
        checks = check_certificate(altered, tmp_path)
        differs = any(check.status == "differs" and check.fields for check in checks)
        # A mechanism of another name may be one that isn't installed.
        if not differs and ("inputs", "inconclusive") not in {(c.name, c.status) for c in checks}:
            unnoticed.add(path)
    assert unnoticed
    assert unnoticed <= FREE


@pytest.mark.parametrize("every", day_and_night(29, 1))
def test_every_field_changed_alone_breaks_the_digest(
    certificate: dict[str, Any], workplace: Path, every: int
) -> None:
    for path in list(leaves(certificate))[::every]:
        if path != ("digest",):
            assert document_digest(changed(certificate, path)) != certificate["digest"], path
    altered = copy.deepcopy(certificate)
    altered["environment"]["created"] = "2001-01-01T00:00:00+00:00"
    checks = {check.name: check for check in check_certificate(altered, workplace / "out")}
    assert checks["digest"].status == "differs"
    assert {check.status for name, check in checks.items() if name != "digest"} == {"agrees"}


def test_another_version_falls_back_to_the_recorded_counts(
    certificate: dict[str, Any], workplace: Path
) -> None:
    altered = copy.deepcopy(certificate)
    altered["environment"]["versions"]["numpy"] = "1.0"
    altered["digest"] = document_digest(altered)
    checks = {check.name: check for check in check_certificate(altered, workplace / "out")}
    assert checks["replay"].status == "inconclusive"
    assert "numpy 1.0" in checks["replay"].detail
    assert checks["attack"].status == "agrees"
    altered["evidence"]["white_box"][0]["counts"][0]["hits"] += 1
    altered["digest"] = document_digest(altered)
    checks = {check.name: check for check in check_certificate(altered, workplace / "out")}
    assert checks["attack"].status == "differs"


@pytest.mark.parametrize(
    ("versions", "above", "status"),
    [("0.0.9", 1e-9, "agrees"), ("0.0.9", -1e-10, "differs"), (None, 1e-9, "differs")],
)
def test_a_bound_of_another_version_may_be_wider_and_no_closer(
    certificate: dict[str, Any], workplace: Path, versions: str | None, above: float, status: str
) -> None:
    altered = copy.deepcopy(certificate)
    if versions:
        altered["environment"]["versions"]["dpverify"] = versions
    epsilon = altered["derived"]["guarantee"]["epsilon"]
    ends = Enclosure(float(epsilon["lower"]) * (1 - 1e-9), float(epsilon["upper"]) * (1 + above))
    altered["derived"]["guarantee"]["epsilon"] = ends.as_json()
    altered["digest"] = document_digest(altered)

    def checked() -> Any:
        checks = check_certificate(altered, workplace / "out", replay=False)
        return next(check for check in checks if check.name == "guarantee and curve")

    assert checked().status == status
    assert ("this version states it more closely" in checked().detail) == (versions is None)
    second = [line.status for line in check_fields(altered) if line.name == "guarantee"]
    assert second == [status]
    altered["derived"]["guarantee"]["epsilon"]["upper"] += "0"
    altered["digest"] = document_digest(altered)
    assert checked().status == "differs"


def test_a_certificate_of_another_version_answers_by_its_own_bounds(
    certificate: dict[str, Any],
) -> None:
    """It was answered by today's, so that hazards differed where its bounds were further out."""
    altered = copy.deepcopy(certificate)
    altered["environment"]["versions"]["dpverify"] = "0.0.9"
    for path in leaves(altered["derived"]):
        if path[-1] == "upper" and path[:-1] != ("guarantee", "delta"):
            ends = at(altered["derived"], path[:-1])
            ends |= Enclosure(float(ends["lower"]), 1.01 * float(ends["upper"])).as_json()
    read = Certificate.model_validate(altered)
    own = [answer.model_dump() for answer in answers(read.inputs, read.derived)]
    assert own != certificate["checklist"]
    for checklist, status in ((own, "agrees"), (certificate["checklist"], "differs")):
        altered["checklist"] = checklist
        altered["digest"] = document_digest(altered)
        checks = check_certificate(altered, None, replay=False)
        for lines in (checks, check_fields(altered)):
            differing = [line.name for line in lines if line.status == "differs"]
            assert differing == ([] if status == "agrees" else ["checklist"])


def test_no_version_has_infinite_bounds(certificate: dict[str, Any]) -> None:
    altered = copy.deepcopy(certificate)
    altered["environment"]["versions"]["dpverify"] = "0.0.9"
    altered["derived"]["curve"][0]["delta"]["upper"] = "Infinity"
    altered["digest"] = document_digest(altered)
    checks = check_certificate(altered, None, replay=False)
    (differs,) = [check for check in checks if check.status == "differs"]
    assert differs.name == "guarantee and curve"
    assert [line.name for line in check_fields(altered) if line.status == "differs"] == ["curve"]


def test_a_delta_above_the_target_differs_whatever_the_version(
    certificate: dict[str, Any], workplace: Path
) -> None:
    altered = copy.deepcopy(certificate)
    altered["environment"]["versions"]["dpverify"] = "0.0.9"
    delta = altered["derived"]["guarantee"]["delta"]
    altered["derived"]["guarantee"]["delta"] = Enclosure(float(delta["lower"]), 0.5).as_json()
    altered["digest"] = document_digest(altered)
    checks = check_certificate(altered, workplace / "out", replay=False)
    (differs,) = [check for check in checks if check.status == "differs"]
    assert differs.fields == ("derived.guarantee.delta.upper",)
    lines = check_fields(altered)
    assert [line.name for line in lines if line.status == "differs"] == ["guarantee"]


def test_a_delta_that_is_no_double_is_certified(tmp_path: Path) -> None:
    np.save(tmp_path / "records.npy", np.zeros((2, 4)))
    settings = {
        "data": {"path": "records.npy", "domain": {"low": 0, "high": 1}},
        "mechanism": {"name": "dp-oporp", "k": 2},
        "privacy": {
            "epsilon": "1.1515",
            "delta": "0.9726",
            "adjacency": {"kind": "attribute", "beta": 1},
        },
        "projection": {"seed": 2023},
        "audit": {"draws": 100, "moment_draws": 50},
    }
    dpv.certify(settings, tmp_path / "out", base=tmp_path, accept=lambda _: True, workers=1)
    document = json.loads((tmp_path / "out" / CERTIFICATE).read_text(encoding="utf-8"))
    statement = document["derived"]["guarantee"]
    assert Fraction(float(statement["delta"]["upper"])) > Fraction("0.9726")
    assert not [line for line in check_fields(document) if line.status == "differs"]
    assert not [
        check
        for check in check_certificate(document, None, replay=False)
        if check.status == "differs"
    ]
    delta = Enclosure(float(statement["delta"]["lower"]), math.nextafter(0.9726, 1)).as_json()
    document["derived"]["guarantee"]["delta"] = delta
    document["environment"]["versions"]["dpverify"] = "0.0.9"
    document["digest"] = document_digest(document)
    lines = check_fields(document)
    assert [line.name for line in lines if line.status == "differs"] == ["guarantee"]
    (differs,) = [
        check
        for check in check_certificate(document, None, replay=False)
        if check.status == "differs"
    ]
    assert differs.fields == ("derived.guarantee.delta.upper",)


def test_a_released_file_that_is_missing_or_changed_does_not_agree(
    certificate: dict[str, Any], workplace: Path, tmp_path: Path
) -> None:
    def statuses() -> dict[str, Any]:
        return {check.name: check for check in check_certificate(certificate, tmp_path)}

    assert statuses()["released file"].status == "inconclusive"
    content = bytearray((workplace / "out" / SKETCH).read_bytes())
    (tmp_path / SKETCH).write_bytes(content)
    assert statuses()["released file"].status == "agrees"
    content[len(content) // 2] ^= 1
    (tmp_path / SKETCH).write_bytes(content)
    assert "release.sha256" in statuses()["released file"].fields
    (tmp_path / SKETCH).write_bytes(b"not a zip archive")
    assert statuses()["released file"].status == "differs"


@pytest.mark.parametrize("content", ["", "{", "[1]", '"x"', "\x00\xff", "[" * 100_000])
def test_what_is_not_a_json_object_is_one_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / CERTIFICATE
    path.write_text(content, encoding="latin-1")
    with pytest.raises(CertificateError, match=re.escape(str(path))):
        read_certificate(path)


def test_certificate_model_round_trips(certificate: dict[str, Any]) -> None:
    again = Certificate.model_validate(certificate).model_dump(by_alias=True)
    assert json.dumps(again, sort_keys=True) == json.dumps(certificate, sort_keys=True)


def test_a_folder_stands_for_the_certificate_in_it(
    workplace: Path, certificate: dict[str, Any], tmp_path: Path
) -> None:
    assert read_certificate(workplace / "out") == certificate
    with pytest.raises(CertificateError, match=r"certificate\.json: there is no such file"):
        read_certificate(tmp_path)


@pytest.mark.parametrize(
    ("stored", "wider", "compared"), [(1, False, 1), (1, True, 1), (2, False, 2)]
)
def test_parts_are_compared_once(
    stored: int, wider: bool, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Again, more leniently, only where they differ: there the remark says how."""
    asked = []

    def counted(*part: Any, wider: bool) -> list[str]:
        asked.append(wider)
        return [] if part[1] == part[2] else [part[0]]

    monkeypatch.setattr(checks, "differences", counted)
    fields, _ = recomputed([("derived.facts", stored, 1)], wider=wider)
    assert fields == (() if stored == 1 else ("derived.facts",))
    assert len(asked) == compared
