"""What every mechanism that a package announces must keep to."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpverify.adjacency import AttributeAdjacency
from dpverify.certificate.derive import families
from dpverify.domain import Box
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve
from dpverify.mechanism import Certifiable, MechanismFamily, Request, WhiteBox
from dpverify.sampling.words import ReplayableWords

FAMILIES = families()
DELTA = Fraction(1, 1000)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> MechanismFamily:
    return FAMILIES[request.param]


@pytest.fixture
def mechanism(family: MechanismFamily) -> Certifiable:
    return family.build(
        Request(
            attributes=9,
            domain=Box(low=Fraction(-1), high=Fraction(2)),
            adjacency=AttributeAdjacency(beta=Fraction(3, 2)),
            epsilon=Fraction(2),
            delta=DELTA,
            seed=4,
            parameters={"k": 4},
        )
    )


def test_family_describes_itself(family: MechanismFamily) -> None:
    assert FAMILIES[family.name] is family
    assert family.paper
    assert family.adjacency
    for parameter in family.parameters:
        assert parameter.domain
        assert parameter.meaning


def test_claim(mechanism: Certifiable) -> None:
    assert isinstance(mechanism, WhiteBox)
    guarantee = mechanism.guarantee()
    assert guarantee.curve == mechanism.privacy()
    assert isinstance(guarantee.curve, PrivacyCurve)
    assert guarantee.adjacency == mechanism.adjacency
    assert guarantee.randomness
    assert guarantee.data_choice
    assert guarantee.theorem
    assert guarantee.curve.delta(2).upper <= DELTA
    deltas = [guarantee.curve.delta(Fraction(n, 4)) for n in range(12)]
    for one, two in pairwise(deltas):
        assert two.lower <= one.upper


def test_rates_are_the_curve(mechanism: Certifiable) -> None:
    """δ(t) = P[L ≥ t] − e^t Q[L ≥ t] for the worst pair's loss."""
    curve = mechanism.privacy()
    for threshold in (0.0, 0.5, 2.0):
        own, other = curve.rates(threshold)
        assert own - np.exp(threshold) * other == pytest.approx(
            curve.delta(Fraction(threshold)).upper, abs=1e-12
        )


def test_release_and_pairs(mechanism: Certifiable) -> None:
    low, high = mechanism.domain.ends
    for pair in mechanism.worst_pairs():
        both = np.concatenate([pair.record, pair.neighbour])
        assert low <= both.min()
        assert both.max() <= high
        assert np.abs(pair.record - pair.neighbour).sum() <= 1.5
        released = mechanism.release(both, rng=ReplayableWords(1))
        assert released.shape[0] == 2
        assert (released == mechanism.release(both, rng=ReplayableWords(1))).all()
        losses = mechanism.log_likelihood_ratio(released, pair.record, pair.neighbour)
        assert losses.shape == (2,)
        swapped = mechanism.log_likelihood_ratio(released, pair.neighbour, pair.record)
        assert swapped == pytest.approx(-losses)


def test_facts_are_public_numbers(mechanism: Certifiable) -> None:
    def plain(value: Any) -> Any:
        return value.as_json() if isinstance(value, Enclosure) else value

    facts = {
        section: {name: plain(value) for name, value in numbers.items()}
        for section, numbers in mechanism.facts().items()
    }
    assert json.loads(json.dumps(facts)) == facts
    assert len(facts["projection"]["sha256"]) == 64


def test_redrawn_keeps_everything_but_the_public_draw(mechanism: Certifiable) -> None:
    other = mechanism.redrawn(77)
    assert other.facts()["noise"] == mechanism.facts()["noise"]
    assert other.facts()["projection"]["sha256"] != mechanism.facts()["projection"]["sha256"]
    assert other.redrawn(4).facts() == mechanism.facts()


def test_estimators(mechanism: Certifiable) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 2, (2, 9))
    estimators = mechanism.estimators()
    assert estimators[0].name == "squared distance"
    released = mechanism.release(np.stack([x, y]), rng=ReplayableWords(1))
    for estimator in estimators:
        assert np.shape(estimator.estimate(released[0], released[1])) == ()
        assert estimator.variance(x, y) > 0
        if estimator.order == "exact":
            assert estimator.expectation(x, y) == pytest.approx(estimator.truth(x, y))
