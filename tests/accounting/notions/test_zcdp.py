"""Zero-concentrated privacy: bounds above the exact curves, sums, groups, inverses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.notions.renyi import RDP, GaussianRenyi
from dpverify.accounting.notions.zcdp import ZCDP, rho_of_pure
from dpverify.errors import ParameterError

CONVERSIONS = st.sampled_from(["bun-steinke", "canonne-kamath-steinke"])
RHOS = st.fractions(min_value=Fraction(1, 10**6), max_value=30, max_denominator=10**6)
EPSILONS = st.fractions(min_value=0, max_value=100, max_denominator=50)
DELTAS = st.fractions(min_value=Fraction(1, 10**15), max_value=Fraction(99, 100))


@given(RHOS, EPSILONS, CONVERSIONS)
def test_never_below_the_gaussian(rho: Fraction, epsilon: Fraction, how: Any) -> None:
    exact = Gaussian.from_mu_squared(2 * rho)
    bound = ZCDP.gaussian(2 * rho, conversion=how)
    assert bound.rho == rho
    assert bound.delta_at(epsilon).upper >= exact.delta_at(epsilon).upper
    assert bound.epsilon_at(Fraction(1, 10**5)).lower >= exact.epsilon_at(Fraction(1, 10**5)).upper


@given(
    st.fractions(min_value=Fraction(3, 5), max_value=Fraction(19, 20), max_denominator=100),
    st.integers(1, 30),
    EPSILONS,
    CONVERSIONS,
)
def test_never_below_randomized_response(
    keep: Fraction, count: int, epsilon: Fraction, how: Any
) -> None:
    response = RandomizedResponse(keep=keep, other=1 - keep, positions=count)
    pure = ZCDP.pure(response.loss().upper, conversion=how)
    total = ZCDP.composed([pure] * count)
    assert total.delta_at(epsilon).upper >= response.delta_at(epsilon).lower


@given(RHOS, DELTAS, CONVERSIONS)
def test_delta_and_epsilon_are_inverse(rho: Fraction, delta: Fraction, how: Any) -> None:
    curve = ZCDP(rho=rho, conversion=how)
    found = curve.epsilon_at(delta)
    assert curve.delta_at(found.upper).lower <= delta
    if found.lower > 0:
        assert curve.delta_at(found.lower * (1 - 1e-12)).upper >= delta


@given(RHOS, DELTAS)
def test_the_older_conversion_is_markovs_at_the_best_order(rho: Fraction, delta: Fraction) -> None:
    closed = ZCDP(rho=rho, conversion="bun-steinke")
    searched = RDP(parts=((GaussianRenyi(mu_squared=2 * rho), 1),), conversion="mironov")
    assert closed.epsilon_at(delta).lower == pytest.approx(
        searched.epsilon_at(delta).lower, rel=1e-14
    )
    newer = ZCDP(rho=rho)
    assert newer.epsilon_at(delta).upper <= closed.epsilon_at(delta).lower
    assert newer.theorem != closed.theorem


@given(st.lists(RHOS, min_size=1, max_size=4), EPSILONS)
def test_sums_compose_in_any_order(rhos: list[Fraction], epsilon: Fraction) -> None:
    curves = [ZCDP(rho=rho) for rho in rhos]
    total = ZCDP.composed(curves)
    assert total == ZCDP.composed(reversed(curves))
    assert total.rho == sum(rhos)
    assert total.delta_at(epsilon).upper >= curves[0].delta_at(epsilon).lower


@given(RHOS, st.integers(1, 5), EPSILONS)
def test_groups_are_gaussians_of_that_distance(rho: Fraction, size: int, eps: Fraction) -> None:
    group = ZCDP(rho=rho).group(size)
    assert group == ZCDP.gaussian(2 * rho * size**2)
    assert (
        group.delta_at(eps).upper >= Gaussian.from_mu_squared(2 * rho * size**2).delta_at(eps).lower
    )


def test_pure_privacy_costs_less_than_its_square() -> None:
    for epsilon in (Fraction(1, 1000), Fraction(1), Fraction(10)):
        found = rho_of_pure(epsilon)
        assert found.upper < float(epsilon) ** 2 / 2
        assert found.width <= 1e-14
        assert ZCDP.pure(epsilon).rho >= Fraction(found.lower)
    assert rho_of_pure(1).upper == pytest.approx(math.tanh(0.5), rel=1e-15)


def test_what_is_outside_its_domain_is_refused() -> None:
    for rho in (Fraction(0), Fraction(-1)):
        with pytest.raises(ParameterError, match="rho="):
            ZCDP(rho=rho)
    curve = ZCDP(rho=Fraction(1), conversion="bun-steinke")
    assert curve.delta_at(0).lower == 1.0
    with pytest.raises(ParameterError, match="of 2 conversions"):
        ZCDP.composed([curve, ZCDP(rho=Fraction(1))])
    with pytest.raises(ParameterError, match="conversion=tight"):
        ZCDP(rho=Fraction(1), conversion="tight")  # type: ignore[arg-type]
