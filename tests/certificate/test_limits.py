"""Inputs that would cost all memory, or days, are refused from their numbers alone."""

from __future__ import annotations

import copy
import os
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.certificate.build import build
from dpverify.certificate.checks import check_certificate, read_certificate
from dpverify.certificate.compose import compose
from dpverify.certificate.limits import check_size
from dpverify.certificate.named import named_mechanism
from dpverify.certificate.schema import Inputs
from dpverify.data.loading import open_records
from dpverify.enclosure import Enclosure, exact_string
from dpverify.errors import CertificateError, ConfigurationError, ParameterError, RecordsError
from dpverify.toml import MAX_BYTES, read_toml
from tests.helpers.profiles import day_and_night


def inputs(certificate: dict[str, Any], **changes: Any) -> Inputs:
    return Inputs.model_validate(certificate["inputs"] | changes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"attributes": 10**9}, "attributes"),
        ({"parameters": {"k": 2**53 - 1}}, "k"),
        ({"attributes": 2**24, "parameters": {"k": 2**20}}, r"attributes \* k"),
        ({"draws": 10**9}, "draws"),
        ({"moment_draws": 2**24 + 1}, "moment_draws=16777217 must be at most 16777216"),
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
        ({"epsilon": f"0.{'0' * 398}1"}, "epsilon"),
        ({"epsilon": "1" + "0" * 399}, "epsilon"),
        ({"delta": f"0.{'0' * 398}1"}, "delta"),
    ],
)
def test_inputs_beyond_the_limits_are_refused_at_once(
    certificate: dict[str, Any], changes: dict[str, Any], named: str
) -> None:
    start = time.process_time()
    with pytest.raises(ParameterError, match=f"^{named}"):
        build(inputs(certificate, **changes))
    fields = copy.deepcopy(certificate)
    fields["inputs"] |= changes
    wrong = next(check for check in check_certificate(fields, None) if check.name == "inputs")
    assert wrong.status == "differs"
    assert time.process_time() - start < 5


def digits(text: str) -> str:
    """As a certificate writes it."""
    return exact_string(Fraction(text))


BOX = {"kind": "box", "numbers": {"low": digits("-1e400"), "high": digits("1e400")}}
UNIT = {"kind": "box", "numbers": {"low": "0", "high": "1"}}
ONE = {"kind": "attribute", "numbers": {"beta": "1"}}
DISTANCES = {"mechanism": "noise-addition", "parameters": {}, "domain": UNIT, "adjacency": ONE}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"domain": BOX}, "low=-1.000e.400 must be between"),
        (
            {
                "domain": {"kind": "box", "numbers": {"low": "0", "high": digits("1e308")}},
                "adjacency": {"kind": "attribute", "numbers": {"beta": digits("1e308")}},
            },
            r"high=1.000e.308 must be between",
        ),
        (
            {"domain": {"kind": "box", "numbers": {"low": "0", "high": digits("1e-300")}}},
            "high - low",
        ),
        (DISTANCES | {"rows": 10**12}, "rows . p"),
        (DISTANCES | {"rows": 3 * 10**7}, "rows . p"),
        (DISTANCES | {"rows": 10**5}, "numbers drawn at once"),
    ],
)
def test_what_ended_in_an_internal_error_or_took_all_memory(
    certificate: dict[str, Any], changes: dict[str, Any], named: str
) -> None:
    with pytest.raises(ParameterError, match=named):
        build(inputs(certificate, **changes))
    fields = copy.deepcopy(certificate)
    fields["inputs"] |= changes
    wrong = check_certificate(fields, None)[-1]
    assert (wrong.name, wrong.status) == ("inputs", "differs")


@pytest.mark.parametrize("low", day_and_night("0", "-1e30"))
@pytest.mark.parametrize("high", day_and_night("1e-29", "1e30"))
@pytest.mark.parametrize(
    ("kind", "number"), [("attribute", "beta"), ("l1-ball", "radius"), ("record", None)]
)
@pytest.mark.parametrize("noise", day_and_night("gaussian", "laplace"))
def test_extreme_numbers_are_refused_or_verified(
    certificate: dict[str, Any], low: str, high: str, kind: str, number: str | None, noise: str
) -> None:
    """Never an internal error: what can be built can be verified, to the end."""
    for bound in ("1e-300", "1e-35", high, "1e400") if number else ("",):
        fields = copy.deepcopy(certificate)
        fields["inputs"] |= {
            "domain": {"kind": "box", "numbers": {"low": digits(low), "high": digits(high)}},
            "adjacency": {"kind": kind, "numbers": {number: digits(bound)} if number else {}},
            "parameters": fields["inputs"]["parameters"] | {"noise": noise},
        }
        assert any(
            check.status == "differs" for check in check_certificate(fields, None, replay=False)
        )


def test_delta_is_compared_at_its_safe_end(
    certificate: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A noise level whose δ and ε are above the target is refused, if only their upper ends are."""

    def astride(name: str) -> Enclosure:
        target = float(certificate["inputs"][name])
        return Enclosure(target * (1 - 1e-10), target * (1 + 1e-10))

    monkeypatch.setattr(Gaussian, "delta_at", lambda *_: astride("delta"))
    monkeypatch.setattr(Gaussian, "epsilon_at", lambda *_: astride("epsilon"))
    with pytest.raises(ConfigurationError, match=f"of up to {astride('delta').upper}"):
        build(inputs(certificate))


def test_large_releases_are_allowed(certificate: dict[str, Any]) -> None:
    check_size(inputs(certificate, attributes=10**7, parameters={"k": 1024}, draws=10**5))
    check_size(inputs(certificate, rows=10**12, draws=10**8))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"schema": "a", "schema": "b"}', "the same key twice"),
        ('{"a": {"b": 1, "b": 1}}', "the same key twice"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "Infinity is not a JSON number"),
    ],
)
def test_json_that_two_readers_may_read_differently(
    tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(CertificateError, match=problem):
        read_certificate(tmp_path / "c.json")


def test_what_has_no_canonical_form_has_no_digest(certificate: dict[str, Any]) -> None:
    fields = copy.deepcopy(certificate)
    fields["derived"]["facts"] = {"a": {"b": 2**53}}
    fields["release"]["sha256"] = "0" * 64
    digest = next(c for c in check_certificate(fields, None, replay=False) if c.name == "digest")
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
def test_toml_that_would_take_too_much_is_refused(
    tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "c.toml").write_text(content)
    with pytest.raises(ConfigurationError, match=problem):
        read_toml(tmp_path / "c.toml", parse_float=Decimal)


def test_toml_that_begins_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("a = 1", encoding="utf-8-sig")
    assert read_toml(tmp_path / "c.toml") == {"a": 1}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "certificate.json")
    with pytest.raises(CertificateError, match="is not a file, but a pipe"):
        read_certificate(tmp_path)


def test_a_number_whose_exponent_has_too_many_digits() -> None:
    given = {"attributes": "10", "k": "4", "epsilon": "1", "delta": "1e-" + "3" * 40}
    with pytest.raises(ParameterError, match=r"delta=1e-3.* must be a finite real number"):
        named_mechanism("dp-oporp", given)


def test_a_parser_that_quotes_the_file_is_cut_short(tmp_path: Path) -> None:
    (tmp_path / "r.npy").write_bytes(b"\x93NUMPY\x03\x00\xd6\x13\x00\x00" + b"(" * 0x13D6)
    with pytest.raises(RecordsError, match="may be damaged") as caught:
        open_records(tmp_path / "r.npy")
    assert len(str(caught.value)) < 500
