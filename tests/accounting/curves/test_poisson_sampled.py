"""Poisson sampling: against quadrature, exact enumeration, other accountants and itself."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from operator import mul
from typing import Any

import mpmath as mp
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.accounting.composition._sampled import SampledSum, _powers, sampled_value
from dpverify.accounting.composition._sums import Sums
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.errors import ParameterError
from tests.helpers.profiles import day_and_night
from tests.helpers.sampling_oracle import beside_noise, one_release, two_releases

CELLS = list(
    product(("0.5", "1", "3", "20"), ("0.01", "0.1", "0.5", "0.95"), ("0.01", "0.3", "2", "5"))
)


def sampled(sigma: str | float | Fraction, rate: str | float, times: int = 1) -> dpv.PrivacyCurve:
    return times * dpv.Gaussian(sigma=sigma).poisson_sampled(rate=rate)


@pytest.mark.parametrize(("sigma", "rate", "epsilon"), day_and_night(*CELLS))
def test_one_release_is_the_closed_form(sigma: str, rate: str, epsilon: str) -> None:
    curve = dpv.Gaussian(sigma=sigma).poisson_sampled(rate=rate)
    with mp.workdps(40):
        mu, q, alpha = 1 / mp.mpf(sigma), mp.mpf(rate), mp.exp(mp.mpf(epsilon))
        truth = max(one_release(alpha, q, mu, added=added) for added in (False, True))
        found = curve.delta_at(epsilon)
        assert found.lower <= truth <= found.upper
    assert found.width <= 1e-12 or found.upper < 1e-300
    delta = max(found.upper, 1e-300)  # the smallest that a Gaussian's ε is enclosed for
    back = curve.epsilon_at(delta)
    assert back.lower <= Fraction(epsilon) * (1 + Fraction(1, 10**12))
    assert curve.delta_at(back.upper).upper <= delta * (1 + 1e-12)


@pytest.mark.nightly
def test_a_sum_whose_terms_outweigh_it_is_as_narrow_as_it_was_planned() -> None:
    """Nodes are near 1e-7, and δ is 2e-37."""
    loss = PoissonSampledLoss(base=GaussianLoss(mu_squared=Fraction(1, 207)), rate="0.000236")
    with ctx.workprec(128):
        sums = SampledSum.near(loss, 24, 0.00103, 26.0, math.log(1.64e-37))
        found = sums.value(arb(0.00103))
    assert found.rad() <= 1e-10 * found.lower()


def test_a_window_that_holds_all_that_digits_tell() -> None:
    """What is outside is a ball around 0 itself."""
    (found,) = _powers([[acb(arb(0, "0.1"))], [acb(arb(4, "0.1"))]], 2)
    assert found.is_finite()
    assert found.contains(acb(16))


@pytest.mark.nightly
@pytest.mark.parametrize(("sigma", "rate", "epsilon"), CELLS)
def test_two_releases_agree_with_quadrature(sigma: str, rate: str, epsilon: str) -> None:
    found = sampled(sigma, rate, 2).delta_at(epsilon)
    if found.upper < 1e-200:
        pytest.skip("below what the quadrature resolves")
    with mp.workdps(20):
        truth = max(two_releases(epsilon, rate, sigma, added=added) for added in (False, True))
        assert found.lower * (1 - mp.mpf("1e-9")) <= truth <= found.upper * (1 + mp.mpf("1e-9"))
        # The quadrature's own error is what the slack is for; the enclosure is as narrow.
        assert found.width <= 1e-8 or found.lower <= truth <= found.upper


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sigma", "rate", "delta"), [("0.924", "0.000989", 2.7e-6), ("0.537", "1.38e-5", 3.25e-50)]
)
def test_the_epsilon_of_few_records_is_found(sigma: str, rate: str, delta: float) -> None:
    """One large loss makes δ, far from where the saddle point alone would look."""
    found = sampled(sigma, rate, 2).epsilon_at(delta)
    assert found.width <= 1e-9
    with mp.workdps(30):
        low, high = (
            max(two_releases(repr(end), rate, sigma, added=added) for added in (False, True))
            for end in (found.lower, found.upper)
        )
    assert low >= delta * (1 - 1e-9)
    assert high <= delta * (1 + 1e-9)


@pytest.mark.nightly
def test_both_orders_are_right_and_one_alone_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: with the addition alone the curve is below the truth."""
    loss = PoissonSampledLoss(base=GaussianLoss(mu_squared=1), rate="0.1")
    with mp.workdps(20):
        truths = [two_releases("0.1", "0.1", "1", added=added) for added in (False, True)]
    for one, truth in zip((loss, loss.reverse()), truths, strict=True):
        assert abs(float(sampled_value(one, 2, Fraction(1, 10)).mid()) / float(truth) - 1) < 1e-8
    curve = sampled(1, "0.1", 2)
    assert abs(curve.delta_at("0.1").upper / float(max(truths)) - 1) < 1e-8
    directions = Composed._directions
    monkeypatch.setattr(Composed, "_directions", lambda self: directions(self)[1:])
    assert curve.delta_at("0.1").upper < max(truths) / 2


def _mixed(keep: Fraction, rate: Fraction) -> list[tuple[Fraction, Fraction]]:
    sides = [(keep, 1 - keep), (1 - keep, keep)]
    return [((1 - rate) * q + rate * p, q) for p, q in sides]


@pytest.mark.parametrize("times", day_and_night(3, 1, 2, 6))
@pytest.mark.parametrize("ratio", day_and_night(Fraction(6, 5), Fraction(2), Fraction(101, 100)))
def test_randomized_response_is_enumerated(times: int, ratio: Fraction) -> None:
    keep, rate = Fraction(3, 4), Fraction(1, 10)
    truths = []
    for order in (1, -1):
        total = Fraction(0)
        for outcome in product(_mixed(keep, rate), repeat=times):
            own, other = (math.prod(pair[i] for pair in outcome) for i in (0, 1)[::order])
            total += max(own - ratio * other, Fraction(0))
        truths.append(total)
    curve = times * dpv.RandomizedResponse(keep=keep).poisson_sampled(rate=rate)
    # The logarithm lies between these, and δ falls.
    low = curve.delta_at(math.log(ratio) * (1 + 1e-14)).lower
    high = curve.delta_at(math.log(ratio) * (1 - 1e-14)).upper
    assert low <= max(truths) <= high
    assert high - low <= 1e-14


# δ(ε) by dp-accounting 0.6.0 with discretisation 1e-4: pessimistic, so above the truth.
PESSIMISTIC = [
    ("1", "0.01", 1000, "1", 2.612496806e-3, 1e-4),
    ("1", "0.01", 1000, "2", 2.6657220e-6, 1e-4),
    ("0.8", "0.001", 10_000, "1", 5.3269e-7, 2e-3),
    ("1", "0.00390625", 100_000, "5", 4.2415e-3, 1e-3),
    ("4", "0.5", 100, "1", 0.2234186022, 1e-6),
]


@pytest.mark.parametrize(
    ("sigma", "rate", "times", "epsilon", "above", "slack"), day_and_night(*PESSIMISTIC)
)
def test_pessimistic_bounds_are_above_and_near(
    sigma: str, rate: str, times: int, epsilon: str, above: float, slack: float
) -> None:
    found = sampled(sigma, rate, times).delta_at(epsilon)
    assert above * (1 - slack) <= found.lower <= found.upper <= above
    assert found.width <= 1e-9


@settings(max_examples=3)
@given(
    sigma=st.fractions(Fraction(1, 2), 8, max_denominator=8),
    rate=st.fractions(Fraction(1, 50), Fraction(9, 10), max_denominator=50),
    times=st.integers(2, 2000),
)
@pytest.mark.nightly
def test_more_noise_and_fewer_releases_cost_less(
    sigma: Fraction, rate: Fraction, times: int
) -> None:
    curve = dpv.Gaussian(sigma=sigma).poisson_sampled(rate=rate)
    quieter = dpv.Gaussian(sigma=sigma * Fraction(11, 10)).poisson_sampled(rate=rate)
    rarer = dpv.Gaussian(sigma=sigma).poisson_sampled(rate=rate * Fraction(9, 10))
    most = (times * curve).epsilon_at("1e-6")
    for less in (times * quieter, times * rarer, (times - 1) * curve):
        assert less.epsilon_at("1e-6").lower <= most.upper
    assert (times * curve).delta_at(most.upper).lower <= 1e-6 * (1 + 1e-8)
    assert most.width <= 1e-8


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sigma", "rate", "other", "epsilon"),
    [("1", "0.1", "2", "1"), ("0.5", "0.01", "1", "3"), ("3", "0.5", "5", "0.2")],
)
def test_a_sample_beside_other_noise(sigma: str, rate: str, other: str, epsilon: str) -> None:
    people = dpv.AddRemove()
    sample = dpv.Gaussian(sigma=sigma, adjacency=people).poisson_sampled(rate=rate)
    found = (sample + dpv.Gaussian(sigma=other, adjacency=people)).delta_at(epsilon)
    with mp.workdps(20):
        truths = [beside_noise(epsilon, rate, sigma, other, added=one) for one in (False, True)]
        assert found.lower * (1 - mp.mpf("1e-13")) <= max(truths)
        assert max(truths) <= found.upper * (1 + mp.mpf("1e-13"))
    assert found.width <= 1e-12


# Where the generating function falls fast it is integrated as it is; else it is split. Here both.
TWO_WAYS = [
    ("1", "0.01", 10_000, "1e-6"),
    ("0.8", "0.01", 1000, "1e-10"),
    ("2", "0.1", 100, "1e-50"),
    ("10", "0.5", 1000, "1e-100"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("sigma", "rate", "times", "delta"), TWO_WAYS)
def test_two_ways_agree(
    sigma: str, rate: str, times: int, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve = sampled(sigma, rate, times)
    narrow = curve.epsilon_at(delta)
    monkeypatch.setattr(Sums, "of_few_nodes", lambda *_: None)
    wide = curve.epsilon_at(delta)
    assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper
    assert narrow.width <= 1e-13
    assert 0 < wide.width <= 1e-9


def test_as_it_is_printed_and_what_it_protects() -> None:
    curve = 10_000 * dpv.Gaussian(sigma=1).poisson_sampled(rate="0.01")
    shown = "10000 * Gaussian(sigma=1).poisson_sampled(rate=0.01)"
    assert str(curve) == f"{shown}, one row, added or removed"
    assert curve.adjacency == dpv.AddRemove()
    users = dpv.Gaussian(sigma=1, adjacency=dpv.AddRemove(user="name"))
    assert users.poisson_sampled(rate="0.01").adjacency == dpv.AddRemove(user="name")


@pytest.mark.parametrize("sigma", ["1", "0.05"])
def test_a_delta_just_below_the_rate_is_a_target(sigma: str) -> None:
    """As the double 1e-6 is below the decimal: the noise's own δ is next to 1 there."""
    found = sampled(sigma, "1e-6").epsilon_at(1e-6)
    assert found.lower == 0
    assert found.upper <= sampled(sigma, "1e-6").epsilon_at("0.99999999999999e-6").upper


@pytest.mark.parametrize("times", [1, 100])
def test_the_least_delta_is_a_target_on_samples(times: int) -> None:
    found = sampled("1", "0.5", times).epsilon_at("1e-300")
    assert 30 < found.lower <= found.upper < math.inf


def test_all_records_are_no_sample() -> None:
    curve = dpv.Gaussian(sigma=2)
    whole = curve.poisson_sampled(rate=1)
    assert whole.epsilon_at("1e-6") == curve.epsilon_at("1e-6")
    assert (3 * whole).epsilon_at("1e-6") == (3 * curve).epsilon_at("1e-6")


REFUSED: list[tuple[Any, Any, str]] = [
    (dpv.Gaussian(sigma=1), 0, r"rate=0 must be in \(0, 1\]"),
    (dpv.Gaussian(sigma=1), 1.5, r"rate=1.5 must be in \(0, 1\]"),
    (dpv.Gaussian(sigma=1), math.nan, "rate=nan must be a finite real number"),
    (dpv.Gaussian(sigma=1, adjacency=dpv.Replace()), "0.1", "two coins"),
    (dpv.Gaussian(sigma=1, adjacency=dpv.AddRemove(k=2)), "0.1", "one row or user"),
]


@pytest.mark.parametrize(("curve", "rate", "message"), REFUSED)
def test_what_is_not_proven_is_refused(curve: Any, rate: Any, message: str) -> None:
    with pytest.raises(dpv.ParameterError, match=message):
        curve.poisson_sampled(rate=rate)


def test_losses_that_are_not_known_do_not_compose() -> None:
    step = dpv.Laplace.of_row([1, 2], scale=3).poisson_sampled(rate="0.1")
    assert step.epsilon_at(0).upper <= math.log1p(0.1 * math.expm1(1)) * (1 + 1e-12)
    with pytest.raises(dpv.ParameterError, match="compose an ApproxDP of one of its points"):
        _ = 10 * step


CALIBRATED = day_and_night((1, "0.1"), (10, "1"), (1000, "0.01"), (10_000, "0.001"))


@pytest.mark.parametrize(("times", "rate"), CALIBRATED)
def test_calibrated_noise_is_enough_and_little_less_is_not(times: int, rate: str) -> None:
    noise = dpv.calibrate(dpv.Gaussian, epsilon=1, delta="1e-6", times=times, rate=rate)
    assert (times * noise.poisson_sampled(rate=rate)).delta_at(1).upper <= 1e-6
    assert isinstance(noise.sigma, Fraction)
    less = sampled(noise.sigma * (1 - Fraction(1, 10**7)), rate, times)
    assert less.delta_at(1).lower > 1e-6


def test_noise_for_samples_at_tiny_deltas_is_searched_far_away() -> None:
    goal = Fraction(1, 10**40)
    noise = dpv.calibrate(dpv.Gaussian, epsilon=0, delta=goal, rate="0.1")
    assert isinstance(noise.sigma, Fraction)
    assert float(noise.sigma) == pytest.approx(0.1 / math.sqrt(2 * math.pi) / 1e-40, rel=1e-8)
    assert noise.poisson_sampled(rate="0.1").delta_at(0).upper <= goal


@pytest.mark.parametrize(
    ("target", "refused"),
    [
        ({"epsilon": 3, "delta": "0.001"}, "delta=0.001 must be below 0.001, "),
        ({"advantage": "0.002", "times": 2}, "advantage=0.002 must be below 0.001999, "),
        ({"success": "0.6"}, "success=0.6 must be below 0.5005, "),
        ({"success": "0.95", "prior": "0.1"}, "success=0.95 must be below 0.9001, "),
        ({"tpr": "0.2", "fpr": "0.1"}, "tpr=0.2 must be below 0.101, "),
    ],
)
def test_a_target_that_a_sample_alone_keeps_to_needs_no_noise(
    target: dict[str, Any], refused: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{refused}which is never exceeded, however little"):
        dpv.calibrate(dpv.Gaussian, rate="0.001", **target)


def test_noise_for_samples_is_refused_where_it_is_not_calibrated() -> None:
    with pytest.raises(dpv.ParameterError, match=r"rate=0\.1 must be 1 for Laplace"):
        dpv.calibrate(dpv.Laplace, epsilon=1, rate=0.1)
    with pytest.raises(dpv.ParameterError, match="rate=2 must be in"):
        dpv.calibrate(dpv.Gaussian, epsilon=1, delta="1e-6", rate=2)
    with pytest.raises(dpv.ParameterError, match="times=0 must be at least 1"):
        dpv.calibrate(dpv.Gaussian, epsilon=1, delta="1e-6", times=0)


@pytest.mark.parametrize("rate", ["1e-400", "5e-324"])
def test_a_rate_that_is_no_normal_double_is_refused(rate: str) -> None:
    with pytest.raises(dpv.ParameterError, match=r"rate=.* must be at least 1e-300"):
        dpv.Gaussian(sigma=2).poisson_sampled(rate=rate)


@pytest.mark.nightly
def test_the_least_rate_loses_nothing_that_a_double_shows() -> None:
    assert (5 * dpv.Gaussian(sigma=2).poisson_sampled(rate="1e-300")).epsilon_at("1e-6").upper == 0


@pytest.mark.parametrize("replaced", [False, True])
def test_a_group_on_a_sample_is_refused_with_the_way_out(replaced: bool) -> None:
    for base in (dpv.Gaussian(sigma=1), dpv.Laplace(scale=1), 2 * dpv.Gaussian(sigma=2)):
        several: Any = base.group(2)
        with pytest.raises(ParameterError, match=r"^adjacency=.*Sample first"):
            several.poisson_sampled(rate="0.1", replaced=replaced)
        with pytest.raises(ParameterError, match=r"^adjacency=.*sample first"):
            several.sampled_without_replacement(size=1, out_of=10)


@pytest.mark.parametrize(
    ("times", "rate"),
    day_and_night(
        (1, Fraction(1, 2)),
        *product([2], [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]),
        *product([1], [Fraction(1, 10), Fraction(9, 10)]),
    ),
)
def test_the_group_of_a_sample_is_a_bound_where_each_record_has_a_coin(
    rate: Fraction, times: int
) -> None:
    """A count of up to two records with geometric noise, cut off to three values: all outputs.

    One coin for both, as a sample of the group's curve would have it, costs one release less.
    """
    ratio = Fraction(1, 2)
    laws = []
    for count in range(3):
        least, most = ratio**count / (1 + ratio), ratio ** (2 - count) / (1 + ratio)
        laws.append((least, 1 - least - most, most))

    def excess(shares: tuple[Fraction, ...], alpha: Fraction) -> Fraction:
        """The larger δ of both orders: shares of samples with 0, 1 and 2 of the group's records."""
        mixed = [sum(map(mul, shares, outputs), Fraction(0)) for outputs in zip(*laws, strict=True)]
        both = [list(map(math.prod, product(law, repeat=times))) for law in (mixed, laws[0])]
        pairs = list(zip(*both, strict=True))
        return max(
            sum((max(p - alpha * q, Fraction(0)) for p, q in order), Fraction(0))
            for order in (pairs, [(q, p) for p, q in pairs])
        )

    apart = (1 - rate) ** 2, 2 * rate * (1 - rate), rate**2
    group = (times * dpv.ApproxDP.from_odds(1 / ratio).poisson_sampled(rate=rate)).group(2)
    for alpha in (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(3)):
        assert group.delta_at(math.log(alpha) * (1 - 1e-15)).upper >= excess(apart, alpha)
    if times == 1:
        assert excess((1 - rate, Fraction(0), rate), Fraction(1)) < excess(apart, Fraction(1))
