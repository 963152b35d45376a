"""What every privacy curve must satisfy, whatever proves it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.randomized_response import (
    MixedResponse,
    RandomizedResponse,
)
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import FiniteLoss
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve

small = st.fractions(Fraction(1, 50), Fraction(2), max_denominator=50)
epsilons = st.fractions(0, 6, max_denominator=40)


@st.composite
def curves(draw: st.DrawFn) -> PrivacyCurve:
    keep = draw(st.fractions(Fraction(51, 100), Fraction(95, 100), max_denominator=100))
    positions = draw(st.integers(1, 5))
    made: list[PrivacyCurve] = [
        Gaussian.from_mu_squared(draw(small)),
        Laplace.of_shifts(((draw(small), positions),)),
        ApproxDP(epsilon=draw(small), delta=Fraction(1, 10**5)),
        RandomizedResponse(keep=keep, other=1 - keep, positions=positions),
        MixedResponse(keep=keep, other=1 - keep, positions=positions, differ=Fraction(1, 3)),
        RankOneNormal(rows=positions + 3, gamma=draw(small)),
    ]
    return draw(st.sampled_from(made))


@settings(max_examples=100, deadline=None)
@given(curves(), epsilons, epsilons)
def test_delta_falls(curve: PrivacyCurve, first: Fraction, second: Fraction) -> None:
    low, high = sorted((first, second))
    assert curve.delta_at(high).lower <= curve.delta_at(low).upper
    assert 0 <= curve.delta_at(high).lower <= curve.delta_at(high).upper <= 1


@settings(max_examples=100, deadline=None)
@given(curves(), epsilons, epsilons)
def test_delta_is_convex_in_the_exponential(
    curve: PrivacyCurve, first: Fraction, second: Fraction
) -> None:
    """δ at the middle of e^ε₁ and e^ε₂ is at most the middle of both δ."""
    middle = math.log((math.exp(first) + math.exp(second)) / 2)
    between = Fraction(middle * (1 + 1e-15))  # δ falls, so a little further is no more
    chord = (curve.delta_at(first).upper + curve.delta_at(second).upper) / 2
    assert curve.delta_at(between).lower <= chord * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(curves(), st.fractions(Fraction(1, 10**4), Fraction(9, 10), max_denominator=10**4))
def test_epsilon_inverts_delta(curve: PrivacyCurve, delta: Fraction) -> None:
    found = curve.epsilon_at(delta)
    if math.isinf(found.upper):
        return
    assert curve.delta_at(Fraction(found.upper)).lower <= delta
    if found.lower > 0:
        assert curve.delta_at(Fraction(found.lower)).upper >= delta


@settings(max_examples=10, deadline=None)
@given(curves(), curves(), epsilons)
def test_another_release_never_protects(
    curve: PrivacyCurve, other: PrivacyCurve, epsilon: Fraction
) -> None:
    alone, more = losses(curve), losses(curve) + losses(other)
    assert (
        Composed(losses=alone).delta_at(epsilon).lower
        <= Composed(losses=more).delta_at(epsilon).upper
    )


def losses(curve: PrivacyCurve) -> Losses:
    found: Losses = curve.losses()
    return found


laws = st.lists(st.integers(1, 30), min_size=4, max_size=4).map(
    lambda parts: [Fraction(part, sum(parts)) for part in parts]
)


@settings(max_examples=60, deadline=None)
@given(laws, laws, epsilons)
def test_post_processing_never_increases(
    p: list[Fraction], q: list[Fraction], epsilon: Fraction
) -> None:
    """Outputs that are no longer told apart."""
    fine = Composed(losses=((FiniteLoss(pairs=tuple(zip(p, q, strict=True))), 2),))
    merged = ((p[0] + p[1], q[0] + q[1]), (p[2], q[2]), (p[3], q[3]))
    coarse = Composed(losses=((FiniteLoss(pairs=merged), 2),))
    assert coarse.delta_at(epsilon).lower <= fine.delta_at(epsilon).upper * (1 + 1e-12)


@pytest.mark.parametrize("size", [2, 3, 5])
@settings(max_examples=30, deadline=None)
@given(mu_squared=small, epsilon=st.fractions(Fraction(1, 20), 2, max_denominator=20))
def test_group_privacy(size: int, mu_squared: Fraction, epsilon: Fraction) -> None:
    """k neighbours in a row: (kε, δ(e^{kε} − 1)/(e^ε − 1)), and Gaussian noise attains less."""
    one = Gaussian.from_mu_squared(mu_squared).delta_at(epsilon).upper
    group = Gaussian.from_mu_squared(size**2 * mu_squared).delta_at(size * epsilon).lower
    eps = float(epsilon)
    assert group <= one * math.expm1(size * eps) / math.expm1(eps) * (1 + 1e-12)


@pytest.mark.parametrize("size", [2, 4])
@settings(max_examples=30, deadline=None)
@given(bound=small)
def test_group_privacy_of_laplace_noise_is_exact(size: int, bound: Fraction) -> None:
    group = Laplace.of_shifts(((size * bound, 1),))
    assert group.epsilon_at(0).upper >= size * bound
    assert group.delta_at(size * bound).upper == 0
    assert group.delta_at(size * bound * Fraction(99, 100)).lower > 0


def test_nothing_is_negative_next_to_the_bound() -> None:
    """ln 3 lies between two doubles; from the upper one on the curve is δ₀, and not the line."""
    for leak in (Fraction(0), Fraction(1, 1000)):
        curve = ApproxDP.from_odds(odds=Fraction(3), delta=leak)
        for epsilon in (
            math.log(3),
            math.nextafter(math.log(3), 2),
            math.nextafter(math.log(3), 0),
        ):
            found = curve.delta_at(epsilon)
            assert found.upper >= leak
            assert found.lower >= Enclosure.of_exact(leak).lower
