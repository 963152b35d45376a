"""The conformance vectors: what the second checker says of each, and that verify says the same."""

from __future__ import annotations

import ast
import contextlib
import copy
import decimal
import itertools
import json
import math
import re
import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from pydantic import ValidationError

from dpverify import __version__
from dpverify.certificate.build import build
from dpverify.certificate.checks import check_certificate
from dpverify.certificate.keys import new_key
from dpverify.certificate.schema import Certificate, Ends, Inputs
from dpverify.certificate.sign import sign
from dpverify.enclosure import Enclosure
from dpverify_check import dpverify_check as second
from dpverify_mechanisms.catalogue import CATALOGUE
from tests.fuzz.mutations import nodes
from tests.helpers.paths import ROOT
from tests.helpers.profiles import day_and_night, thinned

VECTORS = ROOT / "tests" / "conformance" / "vectors"
INDEX = json.loads((VECTORS / "index.json").read_text(encoding="utf-8"))
CHECKER = ROOT / "audits" / "dpverify_check" / "dpverify_check.py"
WITHOUT_CURVE = {  # what is left of a mechanism that the second checker can't check
    *("projection and sensitivity", "guarantee", "curve", "attacker", "attack", "estimators"),
    *("release", "released file"),
}


def certificate(case: str) -> dict[str, Any]:
    text = (VECTORS / case / "certificate.json").read_text(encoding="utf-8")
    fields: dict[str, Any] = json.loads(text)
    return fields


def edited(wrong: dict[str, Any]) -> dict[str, Any]:
    fields = copy.deepcopy(certificate(wrong["of"]))
    *path, last = wrong["path"]
    holder: Any = fields
    for key in path:
        holder = holder[key]
    holder[last] = wrong["value"]
    if wrong["renewed"]:
        fields["digest"] = second.digest_of(fields)
    return fields


def verified(fields: dict[str, Any], case: str) -> set[str]:
    checks = check_certificate(fields, VECTORS / case, replay=False)
    return {check.status for check in checks}


@pytest.mark.parametrize("case", thinned(INDEX["right"], 50))
def test_right_ones(case: str) -> None:
    lines = second.check_fields(certificate(case), VECTORS / case / "sketch.npz")
    left = {line.name for line in lines if line.status == "could not check"}
    assert left == (WITHOUT_CURVE if case == "covariance" else set())
    differs = [line.name for line in lines if line.status == "differs"]
    refuted = certificate(case)["release"] is None
    assert differs == (["verdict"] if refuted else [])
    due = "differs" if refuted else "could not check" if left else "agrees"
    assert second.status(lines) == due
    if case != "covariance":  # whose predictions for other sizes take verify a minute
        assert bool(verified(certificate(case), case) & {"differs", "violation"}) is refuted


@pytest.mark.parametrize("case", ["oporp", "identity", "sjlt-block", "sjlt-hashed", "rademacher"])
def test_a_theorem_that_ends_at_the_target(case: str) -> None:
    """At (1, 1e-6) one is for an ε below the claim's own, which is 1 but for its last digits."""
    stated = certificate(case)["inputs"] | {"epsilon": "1", "delta": "0.000001"}
    inputs = Inputs.model_validate(stated)
    facts = {
        section: {
            name: Ends.of(value).model_dump() if isinstance(value, Enclosure) else value
            for name, value in numbers.items()
        }
        for section, numbers in build(inputs).facts().items()
    }
    mechanism = second._made(inputs.mechanism, json.dumps([stated, facts]))
    second.same("facts", facts, mechanism.facts)


@pytest.mark.parametrize("number", thinned(range(len(INDEX["wrong"])), 20))
def test_wrong_ones(number: int) -> None:
    wrong = INDEX["wrong"][number]
    fields = edited(wrong)
    lines = second.check_fields(fields, VECTORS / wrong["of"] / "sketch.npz")
    assert wrong["line"] in {line.name for line in lines if line.status == "differs"}
    assert "differs" in verified(fields, wrong["of"])


def test_no_end_is_past_the_number_that_it_encloses() -> None:
    """Of what is proven from doubles around a number, as the probability that a sign differs."""
    fields = certificate("signs-drawn")
    facts = fields["derived"]["facts"]
    curve = second._made("dp-signrp-rr", json.dumps([fields["inputs"], facts])).curve
    coin = facts["noise"]["flip_at_level_1"].removesuffix("/2**64")
    differ, moved, caught = drawn_signs(), 0, 0
    for point in fields["derived"]["curve"]:
        with mpmath.workdps(50):
            epsilon = mpmath.mpf(point["epsilon"])
            true = delta_of_signs(epsilon, differ, mpmath.mpf(int(coin)) / 2**64)
        for end, inwards in (("lower", math.inf), ("upper", -math.inf)):
            double = math.nextafter(float(point["delta"][end]), inwards)
            rounding = decimal.ROUND_FLOOR if end == "lower" else decimal.ROUND_CEILING
            ends = point["delta"] | {end: second.decimal_string(double, rounding)}
            past = double > true if end == "lower" else double < true
            with pytest.raises(second.Differs) if past else contextlib.nullcontext():
                curve.delta_ends(Fraction(point["epsilon"]))("delta", ends)
            moved, caught = moved + 1, caught + past
    assert 0 < caught < moved


def drawn_signs() -> mpmath.mpf:
    """The bound on how probably a sign differs: of a move by 1/2 and a norm of at least 2."""
    with mpmath.workdps(50):
        lost = mpmath.sqrt(6) / 2 * mpmath.mpf("0.5") / 1024
        angle = 2 / mpmath.pi * mpmath.asin(mpmath.mpf("0.5") / (2 * (2 - lost)))
        return angle + 2 * mpmath.sqrt(12 / mpmath.pi) / 2**21


def delta_of_signs(epsilon: mpmath.mpf, differ: mpmath.mpf, flip: mpmath.mpf) -> mpmath.mpf:
    """Of four positions, adding over how many differ and are kept, or flipped."""
    keep, total = 1 - flip, mpmath.mpf(0)
    for kept, flipped in itertools.product(range(5), repeat=2):
        if kept + flipped <= 4:
            ways = mpmath.factorial(4) / mpmath.factorial(kept) / mpmath.factorial(flipped)
            ways /= mpmath.factorial(4 - kept - flipped)
            mass = (keep * differ) ** kept * (flip * differ) ** flipped
            mass *= ways * (1 - differ) ** (4 - kept - flipped)
            total += mass * max(0, 1 - mpmath.exp(epsilon) * (flip / keep) ** (kept - flipped))
    return total


def test_a_mechanism_of_somebody_else_cannot_be_checked(tmp_path: Path) -> None:
    """It is no fault of the certificate that its package isn't here."""
    fields = certificate("oporp")
    fields["inputs"]["mechanism"] = "survey-answers"
    fields["digest"] = second.digest_of(fields)
    lines = second.check_fields(fields, VECTORS / "oporp" / "sketch.npz")
    assert second.status(lines) == "could not check"
    assert verified(fields, "oporp") == {"agrees", "inconclusive"}
    other = tmp_path / "sketch.npz"
    other.write_bytes(b"another")
    assert second.status(second.check_fields(fields, other)) == "differs"
    fields["inputs"]["rows"] = 8  # without its digest
    assert second.status(second.check_fields(fields)) == "differs"
    assert "differs" in verified(fields, "oporp")


def test_the_page_of_certificates_names_every_field() -> None:
    page, fields = (
        (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8"),
        certificate("oporp"),
    )
    for section in ("inputs", "evidence", "derived"):
        assert [key for key in fields[section] if f"`{key}`" not in page] == []


def test_it_knows_the_version_that_encloses_as_specified() -> None:
    assert __version__ == second.VERSION


@pytest.mark.parametrize("every", day_and_night(7, 1))
def test_no_key_of_the_schema_may_be_left_out(every: int) -> None:
    """Of what a certificate says there is one form: what says nothing is there as well."""
    whole = certificate("oporp-columns")
    free = ("parameters", "numbers", "about", "owner", "facts")  # their keys depend on others
    tried = 0
    for *path, last in list(nodes(whole))[::every]:
        if isinstance(last, int) or any(key in path for key in free):
            continue
        if "columns" not in path and any(isinstance(key, int) and key for key in path):
            continue  # entries of a list are alike but for columns
        fields = copy.deepcopy(whole)
        holder: Any = fields
        for key in path:
            holder = holder[key]
        del holder[last]
        tried += 1
        with pytest.raises(ValidationError):
            Certificate.model_validate(fields)
        (line,) = second.check_fields(fields)
        assert (line.name, line.status) == ("schema", "differs"), (path, last)
    assert tried > 100 / every


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = VECTORS / "oporp"
    assert second.main([str(folder / "certificate.json")]) == 0
    printed = capsys.readouterr().out
    assert "agrees           released file" in printed
    assert printed.splitlines()[-1].startswith("agrees: ")
    assert second.main([str(VECTORS / "covariance" / "certificate.json")]) == 3
    assert "could not check: projection and sensitivity, " in capsys.readouterr().out
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(edited(INDEX["wrong"][0])), encoding="utf-8")
    assert second.main([str(path), str(folder / "sketch.npz")]) == 1
    path.write_text('{"a": 1, "a": 2}', encoding="utf-8")
    assert second.main([str(path)]) == 2
    assert "the same key twice" in capsys.readouterr().err


def test_it_shares_nothing() -> None:
    """Nothing but the standard library and mpmath; cryptography inside of functions alone."""
    tree = ast.parse(CHECKER.read_text(encoding="utf-8"))
    names = {
        (name.split(".")[0], node.col_offset == 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
        )
    }
    foreign = {name for name in names if name[0] not in sys.stdlib_module_names}
    assert foreign == {("mpmath", True), ("cryptography", False)}


def test_the_index_is_of_the_cases() -> None:
    from tests.conformance.cases import CASES, WRONG

    assert INDEX["right"] == list(CASES)
    assert [(w["of"], w["path"]) for w in INDEX["wrong"]] == [(of, list(p)) for of, p, *_ in WRONG]
    assert sum(path.stat().st_size for path in VECTORS.rglob("*.*")) < 2 << 20


def test_the_second_checker_and_the_specification_know_every_mechanism() -> None:
    """And a vector shows each; a package of somebody else's they can't know."""
    from tests.conformance.cases import CASES

    text = (ROOT / "docs" / "specification.md").read_text("utf-8")
    rows = "".join(re.findall(r"^\| (`[a-z`, -]+`) \|", text, flags=re.MULTILINE))
    for family in CATALOGUE:
        if family.build is not None:
            assert family.name in second.FAMILIES, f"teach the second checker {family.name}"
            assert f"`{family.name}`" in rows, f"docs/specification.md: a row for {family.name}"
            shown = {case.mechanism["name"] for case in CASES.values()}
            assert family.name in shown, f"give {family.name} a case in tests/conformance/cases.py"


def test_nothing_endless_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate, key or envelope has a size, and a released file is itself."""
    monkeypatch.setattr(second, "MAX_BYTES", 60_000)
    endless = tmp_path / "certificate.json"
    endless.symlink_to("/dev/zero")
    with pytest.raises(second.BadInputError, match="is larger than 60000 bytes"):
        second.check(endless)
    covariance = certificate("covariance")  # a mechanism that it can't check
    (tmp_path / "sketch.npz").symlink_to("/dev/zero")
    lines = second.check_fields(covariance, tmp_path / "sketch.npz")
    told = {(line.status, line.detail) for line in lines if line.name == "released file"}
    assert told == {("differs", "release.file: is a link or a device")}


def test_signatures(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(VECTORS / "oporp", tmp_path / "out"))
    public, _ = new_key(tmp_path / "signer.pem")
    other, _ = new_key(tmp_path / "other.pem")
    envelope = sign(folder, tmp_path / "signer.pem")

    def signature(key: Path) -> str:
        lines = second.check(folder / "certificate.json", keys=[key])
        return next(line.status for line in lines if line.name == "signature")

    assert signature(public) == "agrees"
    assert signature(other) == "differs"
    good = envelope.read_bytes()
    with envelope.open("ab") as file:
        file.truncate(second.MAX_BYTES + 1)
    assert signature(public) == "differs"
    envelope.write_bytes(good)
    (folder / "report.html").write_text("another page", encoding="utf-8")
    assert signature(public) == "differs"
    (folder / "report.html").unlink()
    envelope.write_bytes(envelope.read_bytes().replace(b'"sig":"', b'"sig":"A', 1))
    assert signature(public) == "differs"
