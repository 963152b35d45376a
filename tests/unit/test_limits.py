"""Inputs that would cost all memory, or days, are refused from their numbers alone."""

from __future__ import annotations

import copy
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dpverify.certificate.composing import compose
from dpverify.certificate.derive import build
from dpverify.certificate.limits import check_size
from dpverify.certificate.model import Inputs
from dpverify.certificate.named import named_mechanism
from dpverify.certificate.verify import read_certificate, verify
from dpverify.errors import CertificateError, ConfigurationError, ParameterError, RecordsError
from dpverify.records import open_records
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
        (
            {
                "mechanism": "randomized-response",
                "parameters": {},
                "attributes": 2**24,
                "adjacency": {"kind": "record", "numbers": {}},
            },
            "positions",
        ),
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


@pytest.mark.parametrize(
    "facts", [{"a": {"b": "\ud800"}}, {"a": {"\ud800": 1}}, {"a": {"b": 2**53}}]
)
def test_what_has_no_canonical_form_has_no_digest(
    certificate: dict[str, Any], facts: dict[str, Any]
) -> None:
    fields = copy.deepcopy(certificate)
    fields["derived"]["facts"] = facts
    fields["release"]["sha256"] = "0" * 64
    digest = next(c for c in verify(fields, None, replay=False) if c.name == "digest")
    assert digest.status == "differs"
    assert "no canonical JSON" in digest.detail
    with pytest.raises(CertificateError, match="no canonical JSON"):
        compose([fields, certificate])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a = " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("a = " + "9" * 5_000, "is not TOML"),
        ("#" * (MAX_BYTES + 1), "larger than"),
        ("a = 1e-" + "3" * 40, "too large or too small"),
    ],
)
def test_toml(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "c.toml").write_text(content)
    with pytest.raises(ConfigurationError, match=problem):
        read_toml(tmp_path / "c.toml", parse_float=Decimal)


def test_a_number_whose_exponent_has_too_many_digits() -> None:
    given = {"attributes": "10", "k": "4", "epsilon": "1", "delta": "1e-" + "3" * 40}
    with pytest.raises(ConfigurationError, match=r"delta=1e-3.* must be a number"):
        named_mechanism("dp-oporp", given)


def test_a_parser_that_quotes_the_file_is_cut_short(tmp_path: Path) -> None:
    (tmp_path / "r.npy").write_bytes(b"\x93NUMPY\x03\x00\xd6\x13\x00\x00" + b"(" * 0x13D6)
    with pytest.raises(RecordsError, match="may be damaged") as caught:
        open_records(tmp_path / "r.npy")
    assert len(str(caught.value)) < 500
