"""Where no method resolves a sum: bounds by its parts, against sums that are known."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.composition._apart import (
    delta_apart,
    epsilon_apart,
    still_delta,
    still_epsilon,
    unsampled,
)
from dpverify.accounting.composition._direction import Direction
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.poisson_sampled import PoissonSampled
from dpverify.accounting.losses.base import transforms
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.errors import NumericalError
from tests.helpers.profiles import day_and_night


@pytest.mark.parametrize("other", ["1", "30"])
def test_parts_bound_a_sum_that_is_known(other: str) -> None:
    parts = [dpv.Gaussian(sigma="0.5"), dpv.Gaussian(sigma=other)]
    whole, bounds = parts[0] + parts[1], [(part, part) for part in parts]
    epsilon, delta = whole.epsilon_at("1e-6"), whole.delta_at(8)
    for found, truth in (
        (epsilon_apart(bounds, Fraction("1e-6")), epsilon),
        (delta_apart(bounds, Fraction(8)), delta),
    ):
        assert found.lower < truth.lower
        assert truth.upper < found.upper
    if other == "30":
        assert epsilon_apart(bounds, Fraction("1e-6")).upper < 1.1 * epsilon.upper


def test_a_part_that_may_lose_all_leaves_no_bound() -> None:
    parts = [dpv.ApproxDP(epsilon=1, delta="0.4"), dpv.Gaussian(sigma=1)]
    found = epsilon_apart([(part, part) for part in parts], Fraction(1, 2))
    assert found.upper == math.inf
    assert found.lower == parts[0].epsilon_at("0.5").lower


@pytest.mark.parametrize(
    "step",
    [
        dpv.Gaussian(sigma=1).poisson_sampled(rate="0.5"),
        dpv.Gaussian(sigma=1).poisson_sampled(rate="0.5", replaced=True),
        dpv.Laplace(scale=1).poisson_sampled(rate="0.5", replaced=True),
        dpv.Laplace(scale=1).sampled_without_replacement(size=1, out_of=2),
    ],
    ids=str,
)
def test_a_record_that_is_surely_read_costs_no_less(step: dpv.PrivacyCurve) -> None:
    ((loss, _),) = step.losses()
    whole = unsampled(loss)
    assert whole is not None
    assert unsampled(whole) is None
    for epsilon in ("0.1", "1", "1.9"):
        most = Composed(losses=((whole, 1),)).delta_at(epsilon).upper
        assert step.delta_at(epsilon).lower <= most * (1 + 1e-9)


def test_noise_that_is_far_too_small_for_a_sample_to_matter() -> None:
    noise = dpv.Gaussian(sigma="0.001")
    step = noise.poisson_sampled(rate="0.01")
    found = (2 * step).epsilon_at("1e-6")
    assert step.epsilon_at("1e-6").lower <= found.lower
    assert found.upper <= (2 * noise).epsilon_at("1e-6").upper * (1 + 1e-12)
    beside = step + dpv.Gaussian(sigma=1000).poisson_sampled(rate="0.1")
    assert beside.epsilon_at("1e-6").width < 1e-3
    assert beside.delta_at(500_000).width < 1e-3


def test_where_not_even_one_release_is_resolved_the_error_stays() -> None:
    step = dpv.Gaussian(sigma="1e-30").sampled_without_replacement(size=1, out_of=2)
    with pytest.raises(NumericalError):
        (2 * step).epsilon_at("1e-6")


@pytest.mark.parametrize("sigma", ["1e-8", "1e-30"])
def test_noise_that_hides_nothing_on_a_sample(sigma: str) -> None:
    """Its shift is beyond what moments are planned for, which ended in a RecursionError."""
    step = dpv.Gaussian(sigma=sigma).poisson_sampled(rate="1/2")
    one, found = step.epsilon_at("1e-6"), (2 * step).epsilon_at("1e-6")
    assert one.lower <= found.lower <= found.upper <= 2.001 * one.upper
    with pytest.raises(NumericalError):
        (2 * dpv.Gaussian(sigma=sigma).poisson_sampled(rate="1/2", replaced=True)).epsilon_at(1e-6)


@pytest.mark.parametrize("epsilon", [1e308, 10**400], ids=["double", "none"])
def test_an_epsilon_beyond_all_doubles(epsilon: int) -> None:
    """What has no end but the probability to show everything."""
    points = 2 * dpv.ApproxDP(epsilon=1, delta="1e-4") + dpv.Gaussian(sigma=1)
    shown = 1 - (1 - Fraction("1e-4")) ** 2
    found = points.delta_at(epsilon)
    assert found.lower <= shown <= found.upper
    assert found.width < 1e-9
    step = PoissonSampled(curve=dpv.Gaussian(sigma=1), rate="0.1")
    noise = dpv.Gaussian(sigma=9, adjacency=dpv.AddRemove())
    assert (10 * step + noise).delta_at(epsilon).upper < 1e-300
    for single in (step, PoissonSampled(curve=dpv.Laplace.of_row([1, 2], scale=1), rate="0.1")):
        assert single.delta_at(epsilon).upper < 1e-300
        replaced = single.curve.poisson_sampled(rate="0.1", replaced=True)
        assert replaced.delta_at(epsilon).upper < 1e-300


@pytest.mark.nightly
def test_more_answers_than_any_lattice_holds_lie_between_two_sums() -> None:
    """Beside the normal law, whose quantile the lattice's step and the skewness hardly move."""
    found = (10**12 * dpv.RandomizedResponse(keep="0.75")).epsilon_at("1e-6")
    mean, deviation = 0.5e12 * math.log(3), 1e6 * math.log(3) * math.sqrt(0.75)
    assert found.lower < mean + 4.753424 * deviation < found.upper
    assert found.width < 1e-7


def test_losses_whose_line_is_beyond_doubles_are_bounded_apart() -> None:
    noise = dpv.DiscreteGaussian(sigma="1e-30") + dpv.curves.Staircase(epsilon="0.01", gamma="0.3")
    losses = transforms(noise.losses())
    assert losses is not None
    with np.errstate(all="ignore"):
        with pytest.raises(NumericalError, match=r"is only known to be|beyond doubles"):
            Direction(losses=losses).delta_at(Fraction(1))
        assert noise.delta_at(1).lower > 1 - 1e-15
        found = noise.epsilon_at("1e-6")
    assert 5e59 * (1 - 1e-15) < found.lower < found.upper < 5e59 * (1 + 1e-15)


def test_shares_of_the_least_target_bound_nothing() -> None:
    one = dpv.Gaussian(sigma=1)
    found = epsilon_apart([(one, one)] * 2, Fraction(1, 10**300))
    assert found.lower == one.epsilon_at("1e-300").lower
    assert found.upper == math.inf


def two_discrete(sigma: str, epsilon: mpmath.mpf) -> mpmath.mpf:
    """δ(ε) of two releases at sensitivity 1, over all pairs of outputs that aren't tiny."""
    square = 2 * mpmath.mpf(sigma) ** 2
    weights = {x: mpmath.exp(-x * x / square) for x in range(-4, 6)}
    total = mpmath.fsum(weights.values())
    losses = {x: (1 - 2 * x) / square for x in weights}
    return mpmath.fsum(
        weights[x] * weights[y] / total**2 * -mpmath.expm1(epsilon - losses[x] - losses[y])
        for x in weights
        for y in weights
        if losses[x] + losses[y] > epsilon
    )


@pytest.mark.parametrize("sigma", ["0.1", "0.07"])
def test_noise_that_hardly_ever_moves(sigma: str) -> None:
    """Below, at and above what is lost where it doesn't, and where ε falls short of it."""
    losses = ((DiscreteGaussianLoss(sigma_squared=Fraction(sigma) ** 2, sensitivity=1), 2),)
    still = 1 / Fraction(sigma) ** 2
    with mpmath.workdps(60):
        for epsilon in (still - 9, still - Fraction(1, 10**6), still, still + 1):
            found = still_delta(losses, epsilon)
            exact = two_discrete(sigma, mpmath.mpf(epsilon.numerator) / epsilon.denominator)
            assert found is not None
            assert found.lower <= exact <= found.upper
            assert found.width < 1e-14 or exact < 1e-18
        for delta in ("0.999", "0.01", *(["1e-9"] if sigma == "0.07" else [])):
            found = still_epsilon(losses, Fraction(delta))
            assert found is not None
            assert two_discrete(sigma, mpmath.mpf(found.lower)) >= mpmath.mpf(delta)
            assert two_discrete(sigma, mpmath.mpf(found.upper)) <= mpmath.mpf(delta)
            assert found.width < 1e-15
    assert still_epsilon(losses, Fraction(1, 10**40)) is None  # less than what moves
    assert still_epsilon(losses, Fraction(1)) is None


def test_noise_that_moves_is_not_taken_for_still() -> None:
    for loss in (
        GaussianLoss(mu_squared=Fraction(10**6)),
        DiscreteGaussianLoss(sigma_squared=Fraction(1, 16), sensitivity=1),
    ):
        assert still_delta(((loss, 1),), Fraction(1)) is None
        assert still_epsilon(((loss, 1),), Fraction(1, 2)) is None


@pytest.mark.parametrize("sigma", ["1e-2", "1e-3", "1e-30"])
@pytest.mark.parametrize("times", day_and_night(1, 1000))
def test_tiny_discrete_noise_has_an_answer(sigma: str, times: int) -> None:
    """s + ln(1 − δ), where s is lost if the noise is 0; where it isn't, is of no account."""
    curve = times * dpv.DiscreteGaussian(sigma=sigma)
    still = times / (2 * Fraction(sigma) ** 2)
    for delta in ("1e-6", "1e-300", "0.999"):
        found = curve.epsilon_at(delta)
        exact = float(still + Fraction(math.log1p(-float(delta))))
        assert found.lower <= exact * (1 + 1e-15)
        assert found.upper >= exact * (1 - 1e-15)
        assert found.width < 1e-11
    assert curve.delta_at(1).upper == 1.0


@pytest.mark.parametrize("delta", day_and_night("1e-45", "1e-21"))
def test_huge_discrete_noise_is_normal(delta: str) -> None:
    """At σ = 1e20 it differs from it by no more than 1/σ, relative."""
    discrete, normal = (
        10 * noise(sigma="1e20") + noise(sigma="2e20")
        for noise in (dpv.DiscreteGaussian, dpv.Gaussian)
    )
    found, exact = discrete.epsilon_at(delta), normal.epsilon_at(delta)
    assert found.lower <= exact.upper
    assert found.upper >= exact.lower
    assert found.lower > 0
    assert found.width < 1e-6


def test_far_below_the_losses_delta_is_one() -> None:
    """Half their mean, where a sum's numbers are beyond doubles and Hoeffding says 1 − e^−10¹¹."""
    found = (10**12 * dpv.RandomizedResponse(keep="0.75")).delta_at("2.7e11")
    assert 1 - 1e-12 < found.lower <= found.upper <= 1


@pytest.mark.parametrize("sigma", ["1e-9", "1e-3"])
def test_noise_that_hides_nothing_is_seen_no_more_often_than_sampled(sigma: str) -> None:
    """Of ten samples at a rate of 1 %: δ was 1, and ε at what it is was not 0."""
    once = dpv.Gaussian(sigma=sigma).poisson_sampled(rate="0.01")
    sampled = 1 - Fraction(99, 100) ** 10
    assert (10 * once).delta_at(1).upper <= float(sampled) * (1 + 1e-15)
    assert (10 * once).epsilon_at(sampled + Fraction(1, 10**12)).upper == 0
