"""Composed certificates: the total, what is refused without the owner's word, and verification."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import mpmath
import numpy as np
import pytest
import referencing
import rfc8785
from attrs import evolve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpverify import __version__
from dpverify.accounting.composition import compose as composition
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.certificate import compose as composing
from dpverify.certificate import rebuilt
from dpverify.certificate.build import build
from dpverify.certificate.certify import CERTIFICATE, REPORT, document_digest
from dpverify.certificate.compose import OwnersWord, check_document, compose
from dpverify.certificate.schema import Certificate, Inputs
from dpverify.certificate.sign import add_signature, check_signatures, envelope_beside, statement
from dpverify.enclosure import Enclosure, Real
from dpverify.errors import CertificateError, ParameterError, place
from dpverify.guarantee import PrivacyCurve
from tests.certificate.test_checks import changed, leaves
from tests.helpers.command_line import run
from tests.helpers.fixtures import CONFIGURATION

SIGNS: dict[str, Any] = {
    "mechanism": "dp-signrp-rr",
    "parameters": {"k": 8, "least_norm": "2"},
    "domain": {"kind": "box", "numbers": {"low": "-1", "high": "1"}},
}


@pytest.fixture(scope="module")
def releases(workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two certified releases in one folder."""
    folder = tmp_path_factory.mktemp("releases")
    shutil.copytree(workplace / "out", folder / "a")
    (folder / "b.toml").write_text(CONFIGURATION.replace("epsilon = 2", "epsilon = 1"))
    shutil.copy(workplace / "records.npy", folder)
    certify = ("certify", folder / "b.toml", "--out", folder / "b", "--yes")
    assert run(*certify, "--allow-inconclusive") == 0
    return folder


@pytest.fixture(scope="module")
def both(releases: Path) -> list[dict[str, Any]]:
    paths = [releases / name / CERTIFICATE for name in ("a", "b")]
    return [json.loads(path.read_bytes()) for path in paths]


@pytest.fixture(scope="module")
def composed(both: list[dict[str, Any]]) -> dict[str, Any]:
    return compose(both)


def variant(certificate: Mapping[str, Any], number: int, **inputs: Any) -> dict[str, Any]:
    """Another release, with other inputs; `compose` reads nothing else."""
    other = copy.deepcopy(dict(certificate))
    other["inputs"] |= inputs
    other["release"]["sha256"] = f"{number:064x}"
    return other


def upper(document: Mapping[str, Any]) -> Fraction:
    return Fraction(document["total"]["epsilon"]["upper"])


def test_domains_that_differ_are_named(both: list[dict[str, Any]]) -> None:
    """One β in [0, 1] and in [0, 255] is not one change of the same thing."""
    measured = "one change is measured in each release's own domain"

    def assumed(parts: list[dict[str, Any]]) -> list[str]:
        total = compose(parts)["total"]
        return [text for text in total["assumptions"] if text.startswith(measured)]

    wide = {"kind": "box", "numbers": {"low": "0", "high": "255"}}
    (text,) = assumed([both[0], variant(both[1], 9, domain=wide)])
    assert text.endswith("release 1: box high = 1 low = 0; release 2: box high = 255 low = 0")
    assert assumed(both) == []


def test_the_total_is_that_of_one_gaussian(
    both: list[dict[str, Any]], composed: dict[str, Any]
) -> None:
    """Noises of scales 1/μ₁ and 1/μ₂ are together one of scale 1/√(μ₁² + μ₂²): an mpmath oracle."""
    with mpmath.workdps(40):
        facts = [part["derived"]["facts"] for part in both]
        squared = mpmath.mpf(0)
        for fact in facts:
            squared += (mpmath.mpf("0.5") / mpmath.mpf(fact["noise"]["sigma"]["upper"])) ** 2
        mu = mpmath.sqrt(squared)
        for end in ("lower", "upper"):
            epsilon = mpmath.mpf(composed["total"]["epsilon"][end])
            delta = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mu / 2 - epsilon / mu
            )
            assert abs(delta / mpmath.mpf("0.002") - 1) < mpmath.mpf("1e-12")
    assert composed["delta"] == "0.002"
    assert composed["total"]["added_epsilon"] == "3"
    assert composed["total"]["added_delta"] == "0.002"
    assert upper(composed) < 3


def test_a_smaller_delta_has_a_larger_epsilon(
    both: list[dict[str, Any]], composed: dict[str, Any]
) -> None:
    strict = compose(both, delta=Fraction(1, 10**6))
    assert strict["delta"] == "0.000001"
    assert upper(strict) > upper(composed)
    with pytest.raises(ParameterError, match="delta"):
        compose(both, delta=Fraction(1))
    with pytest.raises(ParameterError, match="delta=0 must be larger"):  # Gaussian noise
        compose(both, delta=Fraction(0))


def test_the_order_does_not_matter(both: list[dict[str, Any]], composed: dict[str, Any]) -> None:
    assert compose(both[::-1])["total"]["epsilon"] == composed["total"]["epsilon"]


def test_one_release_is_not_two(both: list[dict[str, Any]]) -> None:
    relabelled = variant(both[0], 1, epsilon="3")
    relabelled["release"]["sha256"] = both[0]["release"]["sha256"]
    for parts in ([both[0], both[0]], [both[0], both[1], relabelled]):
        with pytest.raises(
            CertificateError, match="are the same release: both certificates name the file"
        ):
            compose(parts)
    with pytest.raises(ParameterError, match="at least two"):
        compose(both[:1])


def test_what_was_not_released_does_not_compose(both: list[dict[str, Any]]) -> None:
    with pytest.raises(CertificateError, match="release 2: nothing was released"):
        compose([both[0], both[1] | {"release": None}])
    with pytest.raises(CertificateError, match=r"release 2: .*composed certificate"):
        compose([both[0], compose(both)])
    with pytest.raises(CertificateError, match="release 1: inputs"):
        compose([{name: both[0][name] for name in both[0] if name != "inputs"}, both[1]])


def test_different_units_need_the_owners_word(both: list[dict[str, Any]]) -> None:
    wider = {"kind": "attribute", "numbers": {"beta": "1"}}
    parts = [both[0], variant(both[1], 1, adjacency=wider)]
    with pytest.raises(CertificateError, match=r"different units.*0\.5.*by at most 1\..*--unit"):
        compose(parts)
    stated = compose(parts, owners_word=OwnersWord(unit="one visit of one patient"))
    assert stated["owners_word"]["unit"] == "one visit of one patient"
    assert stated["total"]["protects"] == "one visit of one patient"
    (word,) = [text for text in stated["total"]["assumptions"] if "owner's word" in text]
    for meaning in ("one visit of one patient", "release 1: one attribute", "at most 1"):
        assert meaning in word
    # Each noise is calibrated to its own adjacency, so that the total is that of equal ones.
    assert stated["total"]["epsilon"] == compose(both)["total"]["epsilon"]


def test_a_shared_public_draw_is_never_independent(both: list[dict[str, Any]]) -> None:
    """Both halves of the rule: the same draw, and draws that overlap because the seed is one."""
    first, again = variant(both[0], 1, **SIGNS), variant(both[0], 2, **SIGNS)
    fresh = variant(both[0], 2, **SIGNS, projection_seed=12)
    with pytest.raises(ParameterError, match=r"share the public draw.*--same-records"):
        compose([first, again])
    shared = compose([first, again], owners_word=OwnersWord(same_records=True))
    independent = compose([first, fresh])
    assert upper(shared) > upper(independent)
    assert len(shared["total"]["draws"]) == 1
    assert len(independent["total"]["draws"]) == 2
    assert any("very same records" in text for text in shared["total"]["assumptions"])
    longer = variant(both[0], 2, **SIGNS | {"parameters": {"k": 9, "least_norm": "2"}})
    one, two = (build(Inputs.model_validate(part["inputs"])) for part in (first, longer))
    assert one.guarantee().draws != two.guarantee().draws  # and yet they overlap
    for word in (OwnersWord(), OwnersWord(same_records=True)):
        with pytest.raises(ParameterError, match="which overlap"):
            compose([first, longer], owners_word=word)
        with pytest.raises(CertificateError, match="differ in rows"):
            compose([first, again | {"inputs": again["inputs"] | {"rows": 8}}], owners_word=word)


def test_ranges_that_differ_are_other_records(both: list[dict[str, Any]]) -> None:
    """On the owner's word the units are one, but the scaled records aren't: signs differ apart."""

    def scaled(number: int, high: str) -> dict[str, Any]:
        ranges = [{"low": "0", "high": high}] * both[0]["inputs"]["attributes"]
        unit = {"kind": "box", "numbers": {"low": "0", "high": "1"}}
        return variant(both[0], number, **SIGNS | {"domain": unit, "ranges": ranges})

    word = OwnersWord(unit="one answer", same_records=True)
    compose([scaled(1, "1"), scaled(2, "1")], owners_word=word)
    with pytest.raises(CertificateError, match="differ in ranges"):
        compose([scaled(1, "1"), scaled(2, "100")], owners_word=word)


def test_a_realised_projection_composes_with_its_own_seed(both: list[dict[str, Any]]) -> None:
    """A guarantee for every realised projection says nothing about the draw, and multiplies."""
    drawn, realised = variant(both[0], 1, **SIGNS), variant(both[0], 2, domain=SIGNS["domain"])
    assert drawn["inputs"]["projection_seed"] == realised["inputs"]["projection_seed"]
    total = compose([drawn, realised])["total"]
    assert total["data_choice"] == "before the projection was drawn, without knowledge of its seed"


def test_a_curve_without_a_loss_composes_by_its_point(
    both: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bare(PrivacyCurve):
        def _delta(self, epsilon: Fraction) -> Enclosure:
            return Enclosure.of_exact(Fraction(1, 1000))

        def _epsilon(self, delta: Fraction) -> Enclosure:
            raise NotImplementedError

        def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
            raise NotImplementedError

    class Stranger:
        def __init__(self, inputs: Inputs) -> None:
            self.known = build(inputs).guarantee()

        def guarantee(self) -> Any:
            return replace(self.known, curve=Bare())

    monkeypatch.setattr(rebuilt, "build", Stranger)
    guarantee = build(Inputs.model_validate(both[0]["inputs"])).guarantee()
    points = [
        replace(guarantee, curve=ApproxDP(epsilon=Fraction(e), delta=Fraction(1, 1000)))
        for e in (2, 1)
    ]
    due = composition.compose(*points).curve.epsilon_at(Fraction(1, 500))
    assert compose(both)["total"]["epsilon"] == due.as_json()


def test_a_composed_certificate_agrees(composed: dict[str, Any], releases: Path) -> None:
    checks = check_document(composed, releases)
    assert {check.status for check in checks} == {"agrees"}
    names = {check.name for check in checks}
    assert names >= {"digest", "total", "release 1: replay", "release 2: released file"}


def test_swapped_files_are_named_and_no_report(
    composed: dict[str, Any], releases: Path, tmp_path: Path
) -> None:
    for own, other in (("a", "b"), ("b", "a")):
        shutil.copytree(releases / own, tmp_path / own)
        shutil.copy(releases / other / "sketch.npz", tmp_path / own)
    checks = check_document(composed, tmp_path, replay=False)
    wrong = [check.name for check in checks if check.status == "differs"]
    assert wrong == ["release 1: released file", "release 2: released file"]


def test_every_field_of_the_total_changed_alone_is_noticed(
    composed: dict[str, Any], releases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is renewed after each change. The parts' own fields are test_checks's matter."""
    monkeypatch.setattr(composing, "check_certificate", lambda *_, **__: [])
    total = dict(composed["total"], curve=composed["total"]["curve"][:3])
    small = compose(composed["parts"])
    monkeypatch.setattr(composing, "_POINTS", 3)
    small["total"] = total
    small["digest"] = document_digest(small)
    assert {check.status for check in check_document(small, releases)} == {"agrees"}
    paths = [("total", *path) for path in leaves(total)]
    assert len(paths) > 15
    for path in [*paths, ("delta",), ("owners_word", "unit")]:
        altered = changed(small, path)
        altered["digest"] = document_digest(altered)
        checks = {check.name: check for check in check_document(altered, releases)}
        assert checks["total"].status == "differs", path
        if path[0] == "total":
            assert place(path) in checks["total"].fields


@pytest.mark.parametrize("width", [1e-9, 1e-3])
def test_a_total_of_another_version_may_be_wider(
    width: float, both: list[dict[str, Any]], releases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composing, "check_certificate", lambda *_, **__: [])
    closely = Composed.epsilon_at

    def coarsely(curve: Composed, delta: Real) -> Enclosure:
        found = closely(curve, delta)
        return Enclosure(found.lower * (1 - width), found.upper * (1 + width))

    with monkeypatch.context() as older:
        older.setattr(Composed, "epsilon_at", coarsely)
        altered = compose(both)
    for version, status in (("0.0.9", "agrees"), (__version__, "differs")):
        altered["environment"]["versions"]["dpverify"] = version
        altered["digest"] = document_digest(altered)
        assert check_document(altered, releases)[-1].status == status


def test_a_page_beside_it_is_not_its_own(composed: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / REPORT).write_text("<p>ε = 0.01</p>", encoding="utf-8")
    assert check_document(composed, tmp_path, replay=False)[-1].status == "not_checked"
    (tmp_path / REPORT).unlink()
    assert check_document(composed, tmp_path, replay=False)[-1].name == "total"


def test_a_changed_part_is_named(composed: dict[str, Any], releases: Path) -> None:
    altered = copy.deepcopy(composed)
    altered["parts"][1]["inputs"]["epsilon"] = "0.9"
    part = altered["parts"][1]
    part["digest"], altered["digest"] = document_digest(part), None
    altered["digest"] = document_digest(altered)
    wrong = {c.name: c for c in check_document(altered, releases) if c.status == "differs"}
    assert "total.epsilon.upper" in wrong["total"].fields
    assert all(name == "total" or name.startswith("release 2: ") for name in wrong)
    fields = [field for check in wrong.values() for field in check.fields]
    assert "parts[1].derived.facts.noise.sigma.upper" in fields


@pytest.mark.parametrize("delta", ["1e-99999999", "nan", "-1", "1/0", "2", ""])
def test_a_hostile_delta_is_a_finding(composed: dict[str, Any], tmp_path: Path, delta: str) -> None:
    altered = composed | {"delta": delta}
    altered["digest"] = document_digest(altered)
    statuses = {check.status for check in check_document(altered, tmp_path, replay=False)}
    assert "differs" in statuses


def test_published_schema_accepts_it(composed: dict[str, Any]) -> None:
    def published(name: str) -> Any:
        text = resources.files("dpverify.certificate").joinpath(f"schemas/{name}-1.json")
        return json.loads(text.read_text(encoding="utf-8"))

    registry: Any = referencing.Registry().with_contents(
        [(f"urn:dpverify:{name}:1", published(name)) for name in ("certificate", "composition")]
    )
    validator = jsonschema.Draft202012Validator(published("composition"), registry=registry)
    validator.validate(composed)
    assert not validator.is_valid(composed | {"surprise": 1})
    parts = [composed["parts"][0], composed["parts"][1] | {"surprise": 1}]
    assert not validator.is_valid(composed | {"parts": parts})


def test_a_signature_binds_every_released_file(composed: dict[str, Any], tmp_path: Path) -> None:
    stated = statement(composed)
    assert stated["predicateType"] == "urn:dpverify:composition:1"
    hashes = [part["release"]["sha256"] for part in composed["parts"]]
    assert [subject["digest"]["sha256"] for subject in stated["subject"]] == hashes
    key = Ed25519PrivateKey.generate()
    path = envelope_beside(tmp_path / "total.json")
    add_signature(composed, path, key)
    (check,) = check_signatures(composed, path, [key.public_key()])
    assert check.status == "agrees"


def test_compose_and_verify(
    releases: Path, composed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [releases / name / CERTIFICATE for name in ("a", "b")]
    out = releases / "total.json"
    assert run("compose", *parts, "--out", out) == 0
    text = capsys.readouterr().out
    assert "added up" in text
    assert composed["total"]["epsilon"]["upper"] in text
    assert out.read_bytes() == rfc8785.dumps(json.loads(out.read_bytes())) + b"\n"
    assert json.loads(out.read_bytes())["total"] == composed["total"]
    assert run("verify", out) == 0
    assert run("compose", *parts, "--no-replay", "--json", "--delta", "1e-6") == 0
    capsys.readouterr()
    assert run("compose", *parts, "--json", "--verbose") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)["result"]
    assert f"{parts[1]}: agrees: released file" in captured.err
    assert found["epsilon"] == composed["total"]["epsilon"]
    assert set(found["releases"][0]["checks"]) == {"agrees"}
    out.unlink()


def test_nothing_is_composed_of_what_does_not_agree(
    releases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(releases, tmp_path / "copy"))
    parts = [folder / name / CERTIFICATE for name in ("a", "b")]
    sketch = folder / "b" / "sketch.npz"
    out = folder / "total.json"
    np.savez_compressed(sketch, steps=np.zeros((7, 4), dtype=np.int64))
    assert run("compose", *parts, "--out", out, "--no-replay") == 1
    assert "no longer agrees: release.sha256" in capsys.readouterr().err
    assert not out.exists()
    sketch.unlink()
    assert run("compose", *parts, "--out", out, "--no-replay") == 3
    assert run("verify", out, "--no-replay") == 3
    assert "no sketch.npz with its SHA-256 was found" in capsys.readouterr().out


def test_out_replaces_nothing_but_a_total(
    releases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release can't be made again: its noise is gone."""
    folder = Path(shutil.copytree(releases, tmp_path / "copy"))
    parts = [folder / name / CERTIFICATE for name in ("a", "b")]
    (folder / "link.json").symlink_to(folder / "a" / "sketch.npz")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for out in before:
        assert run("compose", *parts, "--no-replay", "--out", out) == 2
        assert "not a composed certificate" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before
    assert (folder / "link.json").is_symlink()
    for _ in range(2):
        assert run("compose", *parts, "--no-replay", "--out", folder / "total.json") == 0


def test_wrong_arguments_are_refused_and_overwrite_nothing(
    releases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [releases / name / CERTIFICATE for name in ("a", "b")]
    before = parts[0].read_bytes()
    cases: tuple[tuple[tuple[str | Path, ...], str], ...] = (
        ((*parts, "--out", parts[0]), "not a composed certificate"),
        ((*parts, "--unit", ""), "--unit is empty"),
        ((*parts, "--delta", "x"), "delta='x' must be a number"),
        ((parts[0],), "certificates=1 must be at least two"),
        ((parts[0], parts[0]), "A release counts once"),
        ((parts[0], releases / "none.json"), "there is no such file"),
    )
    for arguments, message in cases:
        assert run("compose", *arguments) == 2
        assert message in capsys.readouterr().err
    assert parts[0].read_bytes() == before


def test_a_certificate_composes_with_anything(both: list[dict[str, Any]]) -> None:
    certificate = Certificate.model_validate(both[0])
    mechanism = build(certificate.inputs)
    unit = mechanism.adjacency
    point = ApproxDP(epsilon=1, delta="1e-7", adjacency=unit)
    total = composition.compose(certificate, mechanism, mechanism.guarantee(), point)
    expected = 3 * mechanism.privacy() + evolve(point, adjacency=mechanism.privacy().adjacency)
    assert total.curve.epsilon_at("1e-6") == expected.epsilon_at("1e-6")
    assert total.adjacency == unit
    assert "stated, not derived: ApproxDP(epsilon=1, delta=0.0000001" in total.theorem
    refused = certificate.model_copy(update={"release": None})
    with pytest.raises(CertificateError, match="nothing was released"):
        composition.compose(refused)
