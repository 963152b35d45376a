"""Rényi accounting: bounds above the exact curves, composition, inverses, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.notions.renyi import (
    RDP,
    Conversion,
    FiniteRenyi,
    GaussianRenyi,
    LaplaceRenyi,
    PureRenyi,
    RenyiDivergence,
    convex_minimum,
    minimum_near,
)
from dpverify.errors import NumericalError, ParameterError

CONVERSIONS = st.sampled_from(["mironov", "canonne-kamath-steinke"])
POSITIVE = st.fractions(min_value=Fraction(1, 100), max_value=5, max_denominator=200)
KEEPS = st.fractions(min_value=Fraction(51, 100), max_value=Fraction(99, 100), max_denominator=500)
PARTS = st.one_of(
    st.builds(GaussianRenyi, mu_squared=POSITIVE),
    st.builds(LaplaceRenyi, ratio=POSITIVE),
    st.builds(PureRenyi, epsilon=POSITIVE),
    st.builds(FiniteRenyi.response, keep=KEEPS, values=st.integers(2, 6)),
)
CURVES = st.builds(
    RDP,
    parts=st.lists(st.tuples(PARTS, st.integers(1, 50)), min_size=1, max_size=3).map(tuple),
    conversion=CONVERSIONS,
)
EPSILONS = st.fractions(min_value=0, max_value=20, max_denominator=50)
DELTAS = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(9, 10))


def single(part: RenyiDivergence, count: int = 1, conversion: Conversion = "mironov") -> RDP:
    return RDP(parts=((part, count),), conversion=conversion)


@given(POSITIVE, EPSILONS, CONVERSIONS)
def test_never_below_the_gaussian(mu_squared: Fraction, epsilon: Fraction, how: Any) -> None:
    bound = single(GaussianRenyi(mu_squared=mu_squared), conversion=how).delta_at(epsilon)
    exact = Gaussian.from_mu_squared(mu_squared).delta_at(epsilon)
    assert bound.lower >= exact.upper or exact.upper <= 1e-300
    assert bound.upper >= exact.upper


@given(KEEPS, st.integers(1, 40), EPSILONS, CONVERSIONS)
def test_never_below_randomized_response(
    keep: Fraction, count: int, epsilon: Fraction, how: Any
) -> None:
    exact = RandomizedResponse(keep=keep, other=1 - keep, positions=count).delta_at(epsilon)
    bound = single(FiniteRenyi.response(keep=keep), count, how).delta_at(epsilon)
    assert bound.upper >= exact.upper
    assert bound.lower >= exact.lower


@given(POSITIVE, EPSILONS, CONVERSIONS)
def test_never_below_laplace(ratio: Fraction, epsilon: Fraction, how: Any) -> None:
    exact = Laplace.of_row([ratio], scale=Fraction(1)).delta_at(epsilon)
    assert single(LaplaceRenyi(ratio=ratio), conversion=how).delta_at(epsilon).upper >= exact.lower


@given(CURVES, DELTAS)
def test_delta_and_epsilon_are_inverse(curve: RDP, delta: Fraction) -> None:
    found = curve.epsilon_at(delta)
    assert curve.delta_at(found.upper).lower <= delta
    # A little less is not enough, unless the largest loss, at which δ jumps to 0, is the answer.
    if found.lower > 0:
        assert curve.delta_at(found.lower * (1 - 1e-10)).upper >= delta * (1 - Fraction(1, 10**9))


@given(CURVES, EPSILONS, DELTAS)
@example(single(LaplaceRenyi(ratio=Fraction(1, 100)), 50), Fraction(1, 2), Fraction(1, 10))
def test_enclosures_are_narrow(curve: RDP, epsilon: Fraction, delta: Fraction) -> None:
    delta_found, epsilon_found = curve.delta_at(epsilon), curve.epsilon_at(delta)
    # At the largest loss no order is the best one: δ jumps to 0 there, and its lower end is 0.
    at_largest = curve.delta_at(epsilon * (1 + Fraction(1, 2**49))).upper == 0
    assert delta_found.width <= 1e-12 or delta_found.upper <= 1e-300 or at_largest
    assert epsilon_found.width <= 1e-12


@given(CURVES, CURVES, EPSILONS)
def test_composition_is_order_free_and_loses_more(
    first: RDP, second: RDP, epsilon: Fraction
) -> None:
    second = RDP(parts=second.parts, conversion=first.conversion)
    one, other = (RDP.composed(c).delta_at(epsilon) for c in ((first, second), (second, first)))
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert first.delta_at(epsilon).lower <= one.upper


@given(CURVES, EPSILONS)
def test_the_newer_conversion_is_never_worse(curve: RDP, epsilon: Fraction) -> None:
    older = RDP(parts=curve.parts, conversion="mironov")
    newer = RDP(parts=curve.parts, conversion="canonne-kamath-steinke")
    assert newer.delta_at(epsilon).lower <= older.delta_at(epsilon).upper
    assert newer.epsilon_at(Fraction(1, 10**6)).lower <= older.epsilon_at(Fraction(1, 10**6)).upper
    assert older.theorem != newer.theorem


@given(CURVES, POSITIVE)
def test_every_order_proves_no_more_than_the_best(curve: RDP, shift: Fraction) -> None:
    order, delta = 1 + shift, 1e-5
    mironov = curve.divergence(order).upper - math.log(delta) / float(shift)
    older = RDP(parts=curve.parts, conversion="mironov")
    assert older.epsilon_at(delta).lower <= mironov * (1 + 1e-12)


def test_pure_losses_end_the_curve() -> None:
    for how in ("mironov", "canonne-kamath-steinke"):
        curve = single(LaplaceRenyi(ratio=Fraction(1, 2)), 6, how)
        assert curve.delta_at(3).upper == 0.0
        assert curve.delta_at(Fraction(299, 100)).lower > 0
        assert curve.epsilon_at(0).lower == curve.epsilon_at(0).upper == 3.0
        assert 3 in curve.epsilon_at(Fraction(1, 10**300))
    assert single(GaussianRenyi(mu_squared=Fraction(1))).delta_at(0).lower >= 1 - 1e-15


def test_divergence_in_closed_form() -> None:
    order_two = single(
        FiniteRenyi(pairs=((Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 2), Fraction(3, 4))))
    )
    forward = math.log(1 / 1 + 1 / 3)  # Σ P²/Q = 1 + 1/3, Σ Q²/P = 1/8 + 9/8
    assert order_two.divergence(2).upper == pytest.approx(forward, rel=1e-15)
    assert 3 in single(GaussianRenyi(mu_squared=Fraction(2))).divergence(3)


def test_minimum_of_convex_functions() -> None:
    lower, upper = convex_minimum(lambda x: (x - 3) * (x - 3) + 5)
    assert lower is not None
    with ctx.workprec(200):
        assert 5 - arb(10) ** -20 < lower <= 5
        assert 5 <= upper < 5 + arb(10) ** -20
    assert convex_minimum(lambda x: 1 / x)[0] is None
    lower, upper = convex_minimum(lambda x: x)
    assert lower is not None
    assert lower <= 0 < upper < arb(10) ** -18
    with pytest.raises(NumericalError, match="not proven"):
        minimum_near(lambda x: (x - 3) * (x - 3), 1.0)


def test_what_is_outside_its_domain_is_refused() -> None:
    curve = single(GaussianRenyi(mu_squared=Fraction(1)))
    with pytest.raises(ParameterError, match="Laplace noise or randomized response"):
        curve.epsilon_at(0)
    with pytest.raises(ParameterError, match="order=1 must be greater than 1"):
        curve.divergence(1)
    with pytest.raises(ParameterError, match="parts=none"):
        RDP(parts=())
    with pytest.raises(ParameterError, match="conversion=best"):
        RDP(parts=curve.parts, conversion="best")  # type: ignore[arg-type]
    half = Fraction(1, 2)
    with pytest.raises(ParameterError, match="of total 3/4 must be of total 1"):
        FiniteRenyi(pairs=((half, half), (half / 2, half)))
    with pytest.raises(ParameterError, match="both positive"):
        FiniteRenyi(pairs=((half, Fraction(1)), (half, Fraction(0))))
    with pytest.raises(ParameterError, match="two distributions"):
        FiniteRenyi(pairs=((half, half), (half, half)))
    with pytest.raises(ParameterError, match="keep="):
        FiniteRenyi.response(keep=Fraction(1, 4), values=4)
    with pytest.raises(ParameterError, match="conversions"):
        RDP.composed([])
