"""The checklist: every hazard is answered, by the certificate or in the owner's name."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpverify.certificate.checklist import answers, check_answerable
from dpverify.certificate.configuration import load_configuration
from dpverify.certificate.hazards import HAZARDS, Case
from dpverify.certificate.schema import Certificate, HazardAnswer
from dpverify.errors import ConfigurationError


def changed(certificate: dict[str, Any], **parts: dict[str, Any]) -> list[HazardAnswer]:
    """Answers where some inputs or derived fields are others."""
    fields = certificate | {name: certificate[name] | part for name, part in parts.items()}
    altered = Certificate.model_validate(fields)
    return answers(altered.inputs, altered.derived)


def by_id(found: list[HazardAnswer]) -> dict[str, HazardAnswer]:
    return {answer.id: answer for answer in found}


def test_hazards_are_described() -> None:
    assert len({hazard.id for hazard in HAZARDS}) == len(HAZARDS)
    for hazard in HAZARDS:
        assert hazard.title
        assert hazard.section[0] in "234"
        assert hazard.requires in {"certificate", "owner", "both"}


def test_what_requires_says_is_so(certificate: dict[str, Any]) -> None:
    read = Certificate.model_validate(certificate)
    case = Case(inputs=read.inputs, derived=read.derived)
    for hazard in HAZARDS:
        reply = hazard.check(case)
        assert reply.evidence
        if hazard.requires == "owner":
            assert reply.answer == "needs_owner"
        if hazard.requires == "certificate":
            assert reply.answer in {"pass", "not_applicable"}


def test_owner_is_marked_and_asked(certificate: dict[str, Any]) -> None:
    assert not any(answer["owner"] for answer in certificate["checklist"])
    given = {"data-security": {"answer": "fail", "reason": "On an open share."}}
    found = by_id(changed(certificate, inputs={"owner": given}))["data-security"]
    assert (found.answer, found.evidence, found.owner) == ("fail", "On an open share.", True)


def test_owner_does_not_overrule_the_certificate(certificate: dict[str, Any]) -> None:
    """Small ε is answered by the number, whatever the owner says of it."""
    given = {"large-epsilon": {"answer": "not_applicable", "reason": "Never mind."}}
    large = by_id(changed(certificate, inputs={"owner": given}))["large-epsilon"]
    assert (large.answer, large.owner) == ("not_applicable", True)
    guarantee = certificate["derived"]["guarantee"] | {"epsilon": {"lower": "1", "upper": "1"}}
    small = by_id(changed(certificate, inputs={"owner": given}, derived={"guarantee": guarantee}))[
        "large-epsilon"
    ]
    assert (small.answer, small.owner) == ("pass", False)


@pytest.mark.parametrize(
    ("name", "said"),
    [("floating-point", "by the certificate itself"), ("karma", "is not a hazard")],
)
def test_what_is_not_the_owners_to_answer_is_refused(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check_answerable([name])


@pytest.mark.parametrize(
    ("inputs", "far", "answer"),
    [
        ({"delta": "0"}, "0", "pass"),
        ({"delta": "1/7"}, "0", "fail"),  # seven records: one might be published in clear
        ({}, "1E-9", "pass"),
        ({}, "1E-4", "needs_owner"),  # δ stays: a chance of losing everything
    ],
)
def test_a_large_delta_is_not_passed(
    certificate: dict[str, Any], inputs: Any, far: str, answer: str
) -> None:
    derived = {"far_delta": {"lower": "0", "upper": far}}
    found = by_id(changed(certificate, inputs=inputs, derived=derived))
    assert found["catastrophic-failure"].answer == answer


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [("violation", "fail"), ("no_violation_found", "pass"), ("inconclusive", "needs_owner")],
)
def test_the_verdict_of_the_attack_answers_its_hazard(
    certificate: dict[str, Any], verdict: str, answer: str
) -> None:
    attack = certificate["derived"]["white_box"] | {"verdict": verdict}
    found = by_id(changed(certificate, derived={"white_box": attack}))["custom-implementation"]
    assert found.answer == answer
    assert verdict in found.evidence


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [
        ("refuted", "fail"),
        ("confirmed_within_margin", "pass"),
        ("inconclusive", "needs_owner"),
    ],
)
def test_refuted_means_of_estimators_fail(
    certificate: dict[str, Any], verdict: str, answer: str
) -> None:
    estimators = [
        finding | {"mean_verdict": verdict} for finding in certificate["derived"]["estimators"]
    ]
    found = by_id(changed(certificate, derived={"estimators": estimators}))["statistical-bias"]
    assert found.answer == answer


def test_large_epsilon_quotes_the_attacker_rounded_up(certificate: dict[str, Any]) -> None:
    read = Certificate.model_validate(certificate)
    large = next(hazard for hazard in HAZARDS if hazard.id == "large-epsilon")
    evidence = large.check(Case(inputs=read.inputs, derived=read.derived)).evidence
    rates = re.findall(r"([\d.]+)\s% at ([\d.]+)\s%", evidence)
    assert len(rates) == len(read.derived.attacker) == 2
    for (shown, at), rate in zip(rates, read.derived.attacker, strict=True):
        assert Fraction(at) == 100 * Fraction(rate.false_positive_rate)
        over = Fraction(shown) - 100 * Fraction(rate.true_positive_rate.upper)
        assert 0 <= over <= Fraction(1, 100)


def test_owners_answers_are_read_and_misspelt_ones_refused(tmp_path: Path, workplace: Path) -> None:
    text = (workplace / "release.toml").read_text()
    path = tmp_path / "release.toml"
    path.write_text(text + '[owner]\ntrust-model = { answer = "pass", reason = "Ours." }\n')
    assert load_configuration(path).owner["trust-model"].reason == "Ours."
    path.write_text(text + '[owner]\ntrust-model = { answer = "passed", reason = "Ours." }\n')
    with pytest.raises(ConfigurationError, match=r"owner\.trust-model\.answer=passed"):
        load_configuration(path)
    path.write_text(text + '[owner]\ntrust-model = { answer = "pass", reson = "Ours." }\n')
    with pytest.raises(ConfigurationError, match="reason"):
        load_configuration(path)
