"""Inputs that would cost all memory, or days, are refused from their numbers alone."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest

from dpverify.certificate.derive import build
from dpverify.certificate.limits import check_size
from dpverify.certificate.model import Inputs
from dpverify.certificate.verify import read_certificate, verify
from dpverify.errors import CertificateError, ConfigurationError, ParameterError
from dpverify.toml import MAX_BYTES, read_toml


def inputs(certificate: dict[str, Any], **changes: Any) -> Inputs:
    return Inputs.model_validate(certificate["inputs"] | changes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"attributes": 10**9}, "attributes"),
        ({"parameters": {"k": 2**53 - 1}}, "k"),
        ({"attributes": 2**24, "parameters": {"k": 2**20}}, r"attributes \* k"),
        ({"draws": 10**9}, "draws"),
        ({"moment_draws": 10**9}, "moment_draws"),
        ({"draws": 10**8, "attributes": 2**24}, "draws"),
        ({"domain": {"kind": "graph", "numbers": {}}, "attributes": 10**5}, "attributes"),
        ({"epsilon": "1e-999"}, "epsilon"),
        ({"epsilon": "1e999"}, "epsilon"),
        ({"delta": "1e-999"}, "delta"),
    ],
)
def test_too_much(certificate: dict[str, Any], changes: dict[str, Any], named: str) -> None:
    start = time.process_time()
    with pytest.raises(ParameterError, match=f"^{named}"):
        build(inputs(certificate, **changes))
    fields = copy.deepcopy(certificate)
    fields["inputs"] |= changes
    wrong = next(check for check in verify(fields, None) if check.name == "inputs")
    assert wrong.status == "differs"
    assert time.process_time() - start < 5


def test_large_releases_are_allowed(certificate: dict[str, Any]) -> None:
    check_size(inputs(certificate, attributes=10**7, parameters={"k": 1024}, draws=10**5))
    check_size(inputs(certificate, rows=10**12, draws=10**8))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"schema": "a", "schema": "b"}', "one key twice"),
        ('{"a": {"b": 1, "b": 1}}', "one key twice"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": -Infinity}', "Infinity is no number"),
    ],
)
def test_json_that_two_readers_may_read_differently(
    tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(CertificateError, match=problem):
        read_certificate(tmp_path / "c.json")


def test_a_text_without_canonical_form_has_no_digest(certificate: dict[str, Any]) -> None:
    fields = json.loads(json.dumps(certificate))
    fields["environment"]["platform"] = "\ud800"
    assert {check.status for check in verify(fields, None, replay=False)} & {"differs"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a = " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("a = " + "9" * 5_000, "is not TOML"),
        ("#" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_toml(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "c.toml").write_text(content)
    with pytest.raises(ConfigurationError, match=problem):
        read_toml(tmp_path / "c.toml")
