"""What every mechanism that a package announces must keep to."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpverify.auditing.outputs.samples import releaser
from dpverify.catalogue import families
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from dpverify.estimation import moments
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Certifiable, WhiteBox
from dpverify.sampling.words import ReplayableWords
from tests.helpers.cases import CASES, DELTA, made
from tests.helpers.profiles import day_and_night, sampled

FAMILIES = families()
QUICK = sampled(CASES, CASES.keys() - {"jl-covariance"})
"""By day those whose noise is calibrated in no time."""
FIRST = {case for case in CASES if case in FAMILIES}  # of each family


@pytest.fixture(params=CASES)
def mechanism(request: pytest.FixtureRequest) -> Certifiable:
    return made(request.param)


def test_every_mechanism_that_can_be_certified_has_a_case() -> None:
    named = {case.partition(" ")[0] for case in CASES}
    certifiable = {name for name, family in FAMILIES.items() if family.build is not None}
    missing, unknown = certifiable - named, named - certifiable
    assert not missing, f"give {missing} a small request in CASES of tests/helpers/cases.py"
    assert not unknown


@pytest.mark.parametrize("name", FAMILIES)
def test_family_describes_itself(name: str) -> None:
    family = FAMILIES[name]
    assert family.name == name
    assert family.paper
    assert family.adjacency
    assert (family.build is None) == bool(family.refusal)
    for parameter in family.parameters:
        assert parameter.domain
        assert parameter.meaning
        assert (parameter.kind == "choice") == bool(parameter.choices)


def test_claim(mechanism: Certifiable) -> None:
    assert isinstance(mechanism, WhiteBox)
    guarantee = mechanism.guarantee()
    assert guarantee.curve == mechanism.privacy()
    assert isinstance(guarantee.curve, PrivacyCurve)
    assert guarantee.adjacency == mechanism.adjacency
    assert guarantee.randomness
    assert guarantee.data_choice
    assert guarantee.theorem
    assert guarantee.curve.delta_at(2).upper <= DELTA
    deltas = [guarantee.curve.delta_at(Fraction(n, 4)) for n in range(12)]
    for one, two in pairwise(deltas):
        assert two.lower <= one.upper


def test_rates_are_the_curve(mechanism: Certifiable) -> None:
    """δ(t) = P[L ≥ t] − e^t Q[L ≥ t] for the worst pair's loss; an event, so at most the claim."""
    curve = mechanism.privacy()
    for threshold in (0.0, 0.5, 1.5):
        own, other = curve.rates(threshold)
        assert own - np.exp(threshold) * other == pytest.approx(
            curve.delta_at(Fraction(threshold)).upper, abs=2e-3
        )


def test_release_and_pairs(mechanism: Certifiable) -> None:
    for pair in mechanism.worst_pairs():
        released = mechanism.release(pair.record, rng=ReplayableWords(1))
        assert (released == mechanism.release(pair.record, rng=ReplayableWords(1))).all()
        assert released.dtype == mechanism.dtype()
        outputs = np.stack([released, mechanism.release(pair.neighbour, rng=ReplayableWords(1))])
        losses = mechanism.log_likelihood_ratio(outputs, pair.record, pair.neighbour)
        assert losses.shape == (2,)
        swapped = mechanism.log_likelihood_ratio(outputs, pair.neighbour, pair.record)
        assert swapped == pytest.approx(-losses)


def test_what_an_audit_prepares_is_released_by_separate_calls(mechanism: Certifiable) -> None:
    for pair in mechanism.worst_pairs()[:1]:
        together, apart = ReplayableWords(1, "key"), ReplayableWords(1, "key")
        release = releaser(mechanism, pair.record, 3, together)
        for _ in range(3):
            assert np.array_equal(release(), mechanism.release(pair.record, rng=apart))


def test_what_can_be_released(mechanism: Certifiable) -> None:
    """Of an unsigned type some values may be impossible; whole numbers with noise go anywhere."""
    released = mechanism.release(mechanism.worst_pairs()[0].record, rng=ReplayableWords(1))
    narrow = released.dtype.kind == "u"
    assert mechanism.possible(released)
    assert mechanism.possible(np.repeat(released, 3, axis=0))
    beyond = np.full_like(released, np.iinfo(released.dtype).max)
    assert mechanism.possible(np.concatenate([released, beyond])) != narrow


def test_facts_are_public_numbers(mechanism: Certifiable) -> None:
    def plain(value: Any) -> Any:
        return value.as_json() if isinstance(value, Enclosure) else value

    facts = {
        section: {name: plain(value) for name, value in numbers.items()}
        for section, numbers in mechanism.facts().items()
    }
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize("case", QUICK)
def test_a_seed_that_changes_nothing_is_said_to(case: str) -> None:
    """So that a certificate has one form of it: else it could be edited unnoticed."""
    family = FAMILIES[case.partition(" ")[0]]
    assert family.build is not None
    one, other = (family.build(replace(CASES[case], seed=seed)) for seed in (4, 5))
    assert (one.facts() != other.facts()) == family.seeded


@pytest.mark.parametrize("case", QUICK)
def test_redrawn_keeps_the_noise(case: str) -> None:
    mechanism = made(case)
    other = mechanism.redrawn(77)
    noise = mechanism.facts().get("noise") or mechanism.facts().get("flips")
    assert (other.facts().get("noise") or other.facts().get("flips")) == noise
    assert other.redrawn(4).facts() == mechanism.facts()


def test_estimators(mechanism: Certifiable) -> None:
    probe = mechanism.probes(ReplayableWords(3))[-1]
    estimators = mechanism.estimators()
    assert len({estimator.compares for estimator in estimators}) == 1
    for estimator in estimators:
        read = moments.read(estimator, mechanism, probe, rng=ReplayableWords(1))
        assert np.isfinite(read) or estimator.order != "exact"
        assert estimator.variance(probe.record, probe.neighbour) > 0
        # A cosine of signs is biased, with exact moments; one noise alone doesn't average out P.
        if estimator.name != "cosine" and estimator.over == "draw and noise":
            assert estimator.expectation(probe.record, probe.neighbour) == pytest.approx(
                estimator.truth(probe.record, probe.neighbour), rel=1e-6
            )


@pytest.mark.parametrize("draws", day_and_night(250, 600))
@pytest.mark.parametrize("mechanism", sampled(CASES, FIRST), indirect=True)
def test_the_formulas_hold(mechanism: Certifiable, draws: int) -> None:
    """At level 1e-4 each; wrong by as much as the margin, a formula would be refuted."""
    probe = mechanism.probes(ReplayableWords(3))[-1]
    estimators = mechanism.estimators()
    drawn = moments.draw_estimates(mechanism, estimators, probe, draws=draws, seed=5)
    for estimator, values in zip(estimators, drawn, strict=True):
        if estimator.order != "exact":
            continue
        sample = moments.Moments.of(values)
        expected = estimator.expectation(probe.record, probe.neighbour)
        variance = estimator.variance(probe.record, probe.neighbour)
        assert "refuted" not in moments.judge(sample, expected, variance, 1e-4), estimator.name
        wrong = moments.judge(sample, expected + variance**0.5, variance / 10, 1e-4)
        assert wrong == ("refuted", "refuted")


def test_a_release_is_secure_unless_an_audit_gives_words(mechanism: Certifiable) -> None:
    data = mechanism.worst_pairs()[0].record
    first, second = (mechanism.release(data, rng=ReplayableWords(1)) for _ in range(2))
    assert (first == second).all()
    assert mechanism.release(data).shape == first.shape
    for replayable in (1, np.random.default_rng(1)):
        with pytest.raises(ParameterError, match="A release that can be replayed isn't private"):
            mechanism.release(data, rng=replayable)  # type: ignore[arg-type]


def test_estimates_by_name(mechanism: Certifiable) -> None:
    probe = mechanism.probes(ReplayableWords(3))[-1]
    released = mechanism.release(probe.record, rng=ReplayableWords(1))
    for estimator in mechanism.estimators():
        other = probe.neighbour
        if estimator.compares == "records":
            other = mechanism.release(probe.neighbour, rng=ReplayableWords(2))
        found = mechanism.estimate(estimator.name, released, other)
        assert np.array_equal(found, estimator.estimate(released, other), equal_nan=True)
    with pytest.raises(ParameterError, match=r"name=weight must be what .* estimates: "):
        mechanism.estimate("weight", released, released)
