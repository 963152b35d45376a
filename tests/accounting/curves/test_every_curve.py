"""What holds of every curve: its tests' rates are its slopes, its loss is its own, limits hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

import dpverify as dpv
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.randomized_response import MixedResponse
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.curves.shuffled import Shuffled
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve

F = Fraction
THIRD = F(1, 3)
COIN = dpv.RandomizedResponse(keep="0.75", positions=3)
SYMMETRIC: list[PrivacyCurve] = [  # of whose two laws either is the worse one
    dpv.Gaussian(sigma=2),
    dpv.DiscreteGaussian(sigma=3, sensitivity=2),
    dpv.Laplace(scale="1.25"),
    dpv.Laplace.of_row([1, 2], scale="2.5"),
    dpv.ApproxDP(epsilon=1, delta="0.125"),
    DiscretePair(p=[F(1, 2), THIRD, F(1, 6)], q=[F(1, 6), THIRD, F(1, 2)]),
    COIN,
    dpv.RandomizedResponse.of_values(4, keep="0.5", positions=2),
    MixedResponse(keep=F(3, 4), other=F(1, 4), positions=3, differ=THIRD),
    RankTwoNormal(rows=9, gamma=F(1, 3)),
    dpv.curves.DiscreteLaplace(scale=2, sensitivity=3),
    dpv.curves.Staircase(epsilon=1, gamma="0.25"),
    dpv.curves.TruncatedLaplace(scale=1, bound=2),
    dpv.Gaussian(sigma=1).poisson_sampled(rate="0.5", replaced=True),
    dpv.RandomizedResponse(keep="0.75").poisson_sampled(rate="0.5", replaced=True),
]
ONE_SIDED: list[PrivacyCurve] = [
    RankOneNormal(rows=9, gamma=F(1, 3)),
    dpv.curves.BoundedRange(epsilon=1),
    DiscretePair(p=[F(1, 5), F(2, 5), F(2, 5)], q=[F(1, 2), F(1, 2), 0]),
    dpv.curves.laplace_threshold(scale=1, threshold=3),
    Shuffled(answer=dpv.RandomizedResponse(keep="0.75"), users=20),
    dpv.Laplace(scale=1).poisson_sampled(rate="0.5"),
]
STEP = 1e-6


def slopes(curve: PrivacyCurve, epsilon: float) -> tuple[float, float]:
    """P[L ≥ ε] on both sides, of what δ falls by just below ε: by P[L ≥ ε] of the other side."""
    before, here = (curve.delta_at(eps).upper for eps in (epsilon - STEP, epsilon))
    other = (before - here) / (math.exp(epsilon) - math.exp(epsilon - STEP))
    return here + math.exp(epsilon) * other, other


@pytest.mark.parametrize("curve", [*SYMMETRIC, *ONE_SIDED], ids=str)
def test_rates_are_the_slopes_of_the_curve(curve: PrivacyCurve) -> None:
    """Where a loss has probability itself, as at 1/2 and 1, too."""
    for threshold in (0.1, 0.5, 0.75, 1.0, 1.6):
        assert curve.rates(threshold) == pytest.approx(slopes(curve, threshold), abs=1e-4)


@pytest.mark.parametrize("curve", SYMMETRIC, ids=str)
def test_rates_below_0_are_what_the_other_side_leaves(curve: PrivacyCurve) -> None:
    for threshold in (0.0, 0.25, 1.0, 1.6):
        own, other = curve.rates(math.nextafter(threshold, 2))
        assert curve.rates(-threshold) == pytest.approx((1 - other, 1 - own), abs=1e-4)


QUICK = [curve for curve in [*SYMMETRIC, *ONE_SIDED] if not isinstance(curve, RankTwoNormal)]


@pytest.mark.parametrize("curve", QUICK, ids=str)
def test_epsilon_inverts_delta_down_to_0(curve: PrivacyCurve) -> None:
    for epsilon in (1e-6, 0.05, 0.3, 0.9):
        delta = Fraction(curve.delta_at(epsilon).upper)
        if delta > curve.delta_at(epsilon * (1 + 1e-6)).upper:
            found = curve.epsilon_at(delta)
            assert (found.lower, found.upper) == pytest.approx((epsilon, epsilon), rel=1e-6)
    enough = Fraction(curve.delta_at(0).upper) + F(1, 10**9)
    assert curve.epsilon_at(enough) == Enclosure(0.0, 0.0)


@pytest.mark.parametrize(
    ("curve", "largest"),
    [
        (dpv.Laplace(scale="1.25"), F(4, 5)),
        (dpv.curves.DiscreteLaplace(scale=2, sensitivity=3), F(3, 2)),
        (dpv.curves.Staircase(epsilon=1, gamma="0.25"), F(1)),
        (dpv.curves.BoundedRange(epsilon=1), F(1)),
        (dpv.ApproxDP(epsilon=1), F(1)),
    ],
    ids=str,
)
def test_delta_is_0_from_the_largest_loss_on(curve: PrivacyCurve, largest: Fraction) -> None:
    assert curve.delta_at(largest) == curve.delta_at(largest + 1) == Enclosure(0.0, 0.0)
    assert curve.delta_at(largest - F(1, 10**9)).lower > 0
    assert curve.epsilon_at(0) == Enclosure.of_exact(largest)


def test_the_largest_loss_where_one_of_few_records_is_replaced() -> None:
    """(3/4 + 27/4)/(3/4 + 1/108), all three answers being the other ones or not in the sample."""
    step = COIN.poisson_sampled(rate="0.25", replaced=True)
    found = step.epsilon_at(0)
    assert found.lower <= math.log(F(30, 4) / (F(3, 4) + F(1, 108))) <= found.upper + 1e-15
    assert found.width < 1e-14


@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize(
    "made",
    [
        lambda scale: dpv.Laplace(scale=scale),
        lambda scale: dpv.ApproxDP(epsilon=1 / scale, delta="0.125"),
        lambda scale: dpv.curves.DiscreteLaplace(scale=2 * scale, sensitivity=3),
        lambda scale: dpv.curves.Staircase(epsilon=1 / scale, gamma="0.25"),
        lambda scale: dpv.curves.BoundedRange(epsilon=1 / scale),
    ],
)
def test_rates_under_other_noise_are_those_of_its_curve(
    made: Callable[[Fraction], PrivacyCurve], noise: float
) -> None:
    """Every loss is divided by the factor of the noise."""
    claimed, real = made(F(1)), made(F(noise))
    for threshold in (-1.25, -0.5, 0.3, 1.0, 1.25):
        assert claimed.rates(threshold, noise=noise) == pytest.approx(real.rates(threshold / noise))


@pytest.mark.parametrize(
    "curve",
    [
        *QUICK[:11],
        RankOneNormal(rows=9, gamma=THIRD),
        dpv.ApproxDP(epsilon=0, delta="0.125"),
        dpv.RandomizedResponse(keep="0.5"),
    ],
    ids=str,
)
def test_its_loss_composes_to_the_curve(curve: PrivacyCurve) -> None:
    alone = Composed(losses=curve.losses())
    for epsilon in (0, "0.3", "0.9"):
        one, other = curve.delta_at(epsilon), alone.delta_at(epsilon)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper) * (1 + 1e-9)


def test_a_range_composes_to_no_more_than_itself() -> None:
    alone = Composed(losses=dpv.curves.BoundedRange(epsilon=1).losses())
    assert alone.epsilon_at(0).upper == pytest.approx(1)


@pytest.mark.parametrize(
    ("made", "least", "most"),
    [
        (lambda x: dpv.curves.Staircase(epsilon=x, gamma=0), F(1, 2**60), F(2**60)),
        (lambda x: dpv.curves.Staircase(epsilon=1, gamma=x), F(0), F(1)),
        (lambda x: dpv.curves.BoundedRange(epsilon=x), F(1, 2**60), F(2**60)),
        (lambda x: dpv.curves.DiscreteLaplace(scale=x), F(1, 2**60), F(2**60)),
        (lambda x: dpv.curves.DiscreteLaplace(scale=x, sensitivity=3), F(3, 2**60), F(3 * 2**60)),
        (lambda x: dpv.curves.TruncatedLaplace(scale=x, bound=2), F(1, 2**19), F(2**61)),
        (lambda x: dpv.curves.TruncatedLaplace(scale=1 / x, bound=1), F(1, 2**60), F(2**20)),
    ],
)
def test_both_ends_of_a_range_belong_to_it(
    made: Callable[[Fraction], object], least: Fraction, most: Fraction
) -> None:
    tiny = F(1, 2**90)
    made(least)
    made(most)
    for beyond in (least - tiny, most * (1 + tiny)):
        with pytest.raises(ParameterError, match="must be"):
            made(beyond)
