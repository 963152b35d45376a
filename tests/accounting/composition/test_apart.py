"""Where no method resolves a sum: bounds by its parts, against sums that are known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dpverify as dpv
from dpverify.accounting.composition._apart import delta_apart, epsilon_apart, unsampled
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.poisson_sampled import PoissonSampled
from dpverify.errors import NumericalError


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


def test_losses_whose_line_is_beyond_doubles_are_refused() -> None:
    noise = dpv.DiscreteGaussian(sigma="0.01") + dpv.curves.Staircase(epsilon="0.01", gamma="0.3")
    with np.errstate(all="ignore"), pytest.raises(NumericalError, match="beyond doubles"):
        noise.delta_at(1)
