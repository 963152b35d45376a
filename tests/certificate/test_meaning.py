"""Published bounds, what counts show of δ, and errors by size: never on the wrong side."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.published import published_delta, sigma_kenthapadi
from dpverify.certificate.build import build
from dpverify.certificate.meaning import FAR, curve_points, size_errors
from dpverify.certificate.schema import Certificate, EventCounts, Evidence, PairEvidence


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=10),
    st.fractions(min_value=Fraction(1, 100), max_value=40),
)
def test_published_delta_is_above_the_exact_one(mu_squared: Fraction, epsilon: Fraction) -> None:
    found = published_delta(epsilon, mu_squared=mu_squared)
    if found is None:
        assert epsilon <= 2 * mu_squared
        return
    assert found.upper < 0.5
    assert Gaussian.from_mu_squared(mu_squared).delta_at(epsilon).upper <= found.upper


def test_published_delta_solves_the_published_sigma() -> None:
    epsilon, delta = Fraction(3), Fraction(1, 10**5)
    sigma = sigma_kenthapadi(epsilon, delta, sensitivity=Fraction(1))
    mu_squared = 1 / Fraction(sigma.upper) ** 2
    found = published_delta(epsilon, mu_squared=mu_squared)
    assert found is not None
    assert math.isclose(found.upper, float(delta), rel_tol=1e-12)


def counted(hits: int, false_hits: int, draws: int) -> Evidence:
    counts = [EventCounts(hits=hits, false_hits=false_hits)]
    return Evidence(
        draws=draws,
        white_box=[PairEvidence(pair="pair", counts=counts)],
        roc=[],
        moments=[],
        probe_estimates=[],
    )


def test_shown_delta_is_below_what_was_counted(certificate: dict[str, Any]) -> None:
    inputs = Certificate.model_validate(certificate).inputs
    curve = Gaussian(sigma=1)
    points = curve_points(inputs, curve, counted(900, 100, 1000), 0.05)
    for point in points:
        seen = 0.9 - math.exp(float(Fraction(point.epsilon))) * 0.1
        assert float(point.shown) <= max(seen, 0)
    # Not merely safe: many draws show nearly all that there is.
    (first, *_) = curve_points(inputs, curve, counted(900_000, 100_000, 1_000_000), 0.05)
    assert float(first.shown) > 0.79
    # And a claim that the counts refute is seen to be below the band.
    assert float(first.shown) > float(first.delta.upper)


def test_far_delta_is_at_ten_times_the_asked_epsilon(certificate: dict[str, Any]) -> None:
    read = Certificate.model_validate(certificate)
    curve = build(read.inputs).privacy()
    far = curve.delta_at(FAR * Fraction(read.inputs.epsilon))
    assert Fraction(read.derived.far_delta.upper) >= Fraction(far.lower)


def test_errors_by_size_have_an_entry_for_the_chosen_one(certificate: dict[str, Any]) -> None:
    read = Certificate.model_validate(certificate)
    sizes = {point.size: float(point.error) for point in read.derived.sizes}
    assert read.inputs.parameters["k"] in sizes
    assert len(sizes) > 2
    assert all(error > 0 for error in sizes.values())
    assert max(sizes) <= read.inputs.attributes


def test_no_size_no_errors(certificate: dict[str, Any]) -> None:
    inputs = Certificate.model_validate(certificate).inputs
    mechanism = build(inputs)
    without = inputs.model_copy(update={"parameters": {}})
    pair = mechanism.worst_pairs()[0]
    assert size_errors(without, pair, build) == []


def test_a_size_that_the_mechanism_refuses_is_left_out(certificate: dict[str, Any]) -> None:
    inputs = Certificate.model_validate(certificate).inputs
    mechanism = build(inputs)
    pair = mechanism.worst_pairs()[0]

    def picky(asked: Any) -> Any:
        if asked.parameters["k"] == 2:
            return build(asked.model_copy(update={"mechanism": "none"}))
        return build(asked)

    sizes = [point.size for point in size_errors(inputs, pair, picky)]
    assert 2 not in sizes
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_no_counts_show_nothing(certificate: dict[str, Any], alpha: float) -> None:
    inputs = Certificate.model_validate(certificate).inputs
    nothing = counted(0, 0, 100).model_copy(update={"white_box": []})
    points = curve_points(inputs, Gaussian(sigma=1), nothing, alpha)
    assert {point.shown for point in points} == {"0"}
