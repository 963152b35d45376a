"""Sample moments, the verdicts that they lead to, and the draws behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binom
from statsmodels.stats.weightstats import DescrStatsW

from dpverify.errors import ParameterError
from dpverify.estimation.moments import (
    MARGIN_MEAN,
    MARGIN_VARIANCE,
    Margin,
    MomentFinding,
    Moments,
    MomentVerdict,
    check_draws,
    check_moments,
    draw_estimates,
    enough_draws,
    interval_of_mean,
    judge,
)
from dpverify.privacy import Estimator, Pair
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from tests.helpers.profiles import day_and_night

CONFIRMED: Literal["confirmed_within_margin"] = "confirmed_within_margin"
TWO_SIGMA = float(2 * ndtr(-2.0))
"""The level at which an interval reaches two standard deviations to each side."""

Sketch = Callable[..., LinearSketch]


def sample(
    mean: float = 0.0, variance: float = 1.0, kurtosis: float = 3.0, draws: int = 400
) -> Moments:
    return Moments(mean=mean, variance=variance, kurtosis=kurtosis, draws=draws, undefined=0)


def records(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.random.default_rng(seed).random((2, 12))
    return first, second


# --- how many draws


@pytest.mark.parametrize("kurtosis", [1.5, 3.0, 6.03, 51.5])
@pytest.mark.parametrize("level", [6e-5, 0.01])
def test_enough_draws_decide(kurtosis: float, level: float) -> None:
    """Whatever the draws are off, by less than the margins or more, they say so."""
    draws = enough_draws([sample(), sample(kurtosis=kurtosis)], level)
    means, variances = set(), set()
    for off in np.linspace(-1.2, 1.2, 49):
        moved = sample(off * MARGIN_MEAN, kurtosis=kurtosis, draws=draws)
        means.add(judge(moved, 0.0, 1.0, level)[0])
        wider = sample(variance=1 + off * MARGIN_VARIANCE, kurtosis=kurtosis, draws=draws)
        variances.add(judge(wider, 0.0, 1.0, level)[1])
    assert means == variances == {CONFIRMED, "refuted"}


def test_a_normal_estimate_needs_so_many_draws() -> None:
    """By the quantile of the normal law at level 6e-5, from tables: 4.0128."""
    z = 4.0128
    assert enough_draws([sample()], 6e-5) == pytest.approx(3 * (8 * z) ** 2, rel=1e-3)
    assert enough_draws([], 6e-5) == pytest.approx((z / 0.075) ** 2, rel=1e-3)
    heavy = enough_draws([sample(kurtosis=51.5), sample()], 6e-5)
    assert heavy == pytest.approx(1.5 * 50.5 * (8 * z) ** 2, rel=1e-3)


# --- moments


@pytest.mark.parametrize("size", [2, 3, 10, 1001])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_against_numpy(size: int, offset: float) -> None:
    values = np.random.default_rng(size).exponential(size=size) + offset
    found = Moments.of(values)
    centred = values - values.mean()
    assert found.mean == pytest.approx(values.mean(), rel=1e-14)
    assert found.variance == pytest.approx(values.var(ddof=1), rel=1e-8)
    assert found.kurtosis == pytest.approx((centred**4).mean() / values.var(ddof=1) ** 2, rel=1e-8)
    assert (found.draws, found.undefined) == (size, 0)


def test_moments_in_closed_form() -> None:
    found = Moments.of(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (found.mean, found.variance, found.draws, found.undefined) == (2.5, 5 / 3, 4, 0)
    # 2.5625/(5/3)² is 0.9225 exactly; scaling before the fourth power costs a last digit, and keeps
    # estimates of 1e200 from overflowing.
    assert abs(found.kurtosis - 0.9225) <= 2 * np.spacing(0.9225)
    huge = Moments.of(1e200 * np.array([1.0, 2.0, 3.0, np.inf]))
    assert (huge.draws, huge.undefined) == (3, 1)


def test_moments_do_not_depend_on_the_order() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_cauchy(501)
    assert Moments.of(values) == Moments.of(rng.permutation(values))


def test_draws_without_an_estimate_are_counted_and_left_out() -> None:
    values = np.random.default_rng(2).normal(size=100)
    holes = np.insert(values, [0, 50, 100], np.nan)
    with_holes, without = Moments.of(holes), Moments.of(values)
    assert (with_holes.undefined, with_holes.draws) == (3, 100)
    assert (with_holes.mean, with_holes.variance, with_holes.kurtosis) == (
        without.mean,
        without.variance,
        without.kurtosis,
    )


@pytest.mark.parametrize("values", [[], [math.nan, math.nan], [3.0], [3.0, 3.0, 3.0]])
def test_moments_of_too_little(values: list[float]) -> None:
    found = Moments.of(np.array(values, dtype=np.float64))
    assert found.draws + found.undefined == len(values)
    assert (found.variance, found.kurtosis) == (0.0, 0.0)


# --- verdicts


@pytest.mark.parametrize("undefined", [1, 399])
def test_one_draw_without_an_estimate_leaves_both_formulas_open(undefined: int) -> None:
    """Dropping such draws would condition on the others, whose moments no formula gives."""
    moments = Moments(mean=9.0, variance=9.0, kurtosis=3.0, draws=400, undefined=undefined)
    assert judge(moments, 0.0, 1.0, 0.01) == ("inconclusive", "inconclusive")


@pytest.mark.parametrize("draws", [0, 1])
def test_too_few_draws_leave_both_formulas_open(draws: int) -> None:
    assert judge(sample(mean=9.0, draws=draws), 0.0, 1.0, 0.01) == ("inconclusive", "inconclusive")


def test_draws_that_are_all_equal_leave_both_formulas_open() -> None:
    moments = sample(mean=9.0, variance=0.0, kurtosis=0.0)
    assert judge(moments, 0.0, 1.0, 0.01) == ("inconclusive", "inconclusive")


def test_right_formulas_of_what_is_seldom_are_not_refuted() -> None:
    """Once in a thousand draws: the first 500 mostly show nothing."""
    rng = np.random.default_rng(1)
    findings = [
        check_draws(
            lambda start, count: (rng.random(count) < 1e-3).astype(float),
            truth=1e-3,
            expectation=1e-3,
            variance=1e-3 * (1 - 1e-3),
            draws=2000,
            alpha=0.05,
        )
        for _ in range(60)
    ]
    refuted = sum("refuted" in (each.mean, each.variance) for each in findings)
    assert refuted <= 8  # of 3 that are expected at most; it was 38 of 60


@pytest.mark.parametrize("predicted", [0.0, -1.0, math.nan])
def test_a_predicted_variance_that_is_none_leaves_both_formulas_open(predicted: float) -> None:
    assert judge(sample(), 0.0, predicted, 0.01) == ("inconclusive", "inconclusive")


@pytest.mark.parametrize("expectation", [math.nan, math.inf])
def test_a_predicted_mean_that_is_no_number_is_refuted(expectation: float) -> None:
    assert judge(sample(), expectation, 1.0, 0.01)[0] == "refuted"


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("draws", "deviation", "verdict"),
    [
        # 400 draws: the interval reaches 0.1 standard deviations to each side.
        (400, 0.0, CONFIRMED),
        (400, (MARGIN_MEAN - 0.1) * (1 - 1e-9), CONFIRMED),
        (400, (MARGIN_MEAN - 0.1) * (1 + 1e-9), "inconclusive"),
        (400, 0.1 * (1 - 1e-9), "inconclusive"),
        (400, 0.1 * (1 + 1e-9), "refuted"),
        # 100 draws: it is wider than the margin, and nothing is ever confirmed.
        (100, 0.0, "inconclusive"),
        (100, 0.2 * (1 + 1e-9), "refuted"),
        # So many that the deviation is sure: refuted, though within the margin.
        (4 * 10**6, 0.01, "refuted"),
    ],
)
def test_verdict_on_the_mean(
    draws: int, deviation: float, sign: int, verdict: MomentVerdict
) -> None:
    # The predicted variance is 9: deviations count in its square root, 3.
    moments = sample(mean=7 + 3 * sign * deviation, variance=9.0, draws=draws)
    assert judge(moments, 7.0, 9.0, TWO_SIGMA)[0] == verdict


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (1.0, CONFIRMED),
        # With kurtosis 2 and 400 draws the interval reaches 0.1 of the ratio to each side.
        ((1 + MARGIN_VARIANCE) / 1.1 * (1 - 1e-9), "refuted"),
        (1 / 0.9 * (1 - 1e-9), CONFIRMED),
        (1 / 0.9 * (1 + 1e-9), "refuted"),
        (1 / 1.1 * (1 + 1e-9), CONFIRMED),
        (1 / 1.1 * (1 - 1e-9), "refuted"),
    ],
)
def test_verdict_on_the_variance(ratio: float, verdict: MomentVerdict) -> None:
    moments = sample(variance=5 * ratio, kurtosis=2.0)
    assert judge(moments, 0.0, 5.0, TWO_SIGMA)[1] == verdict


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        # With kurtosis 5 and 400 draws the interval reaches 0.2 of the ratio to each side.
        (1.0, CONFIRMED),
        ((1 + MARGIN_VARIANCE) / 1.2 * (1 - 1e-9), CONFIRMED),
        ((1 + MARGIN_VARIANCE) / 1.2 * (1 + 1e-9), "inconclusive"),
        (1 / 0.8 * (1 - 1e-9), "inconclusive"),
        (1 / 0.8 * (1 + 1e-9), "refuted"),
    ],
)
def test_verdict_on_the_variance_with_heavier_tails(ratio: float, verdict: MomentVerdict) -> None:
    moments = sample(variance=5 * ratio, kurtosis=5.0)
    assert judge(moments, 0.0, 5.0, TWO_SIGMA)[1] == verdict


def test_heavy_tails_widen_the_interval_of_the_variance() -> None:
    light, heavy = (judge(sample(variance=1.3, kurtosis=k), 0.0, 1.0, 0.01)[1] for k in (3, 90))
    assert (light, heavy) == ("refuted", "inconclusive")


@pytest.mark.parametrize("law", day_and_night("laplace", "normal"))
def test_correct_formulas_are_refuted_as_seldom_as_the_level_says(law: str) -> None:
    """At 500 draws, with half the level again for the normal limit; false alarm rate 1e-6."""
    rng, level, runs = np.random.default_rng(5), 0.05, 1000
    drawn = rng.normal(size=(runs, 500)) if law == "normal" else rng.laplace(size=(runs, 500))
    variance = 1.0 if law == "normal" else 2.0
    verdicts = [judge(Moments.of(row), 0.0, variance, level) for row in drawn]
    for index in (0, 1):
        refuted = sum(verdict[index] == "refuted" for verdict in verdicts)
        assert binom.sf(refuted - 1, runs, 1.5 * level) > 1e-6, refuted
    # The control: a variance that is off by a half is refuted nearly always.
    wrong = sum(judge(Moments.of(row), 0.0, 1.5 * variance, level)[1] == "refuted" for row in drawn)
    assert wrong > 0.95 * runs


# --- draws


def probe(x: NDArray[np.float64], y: NDArray[np.float64]) -> Pair:
    return Pair(name="", record=x[None], neighbour=y[None])


def test_the_seed_decides_the_draws(small_sketch: Sketch) -> None:
    sketch, (x, y) = small_sketch(), records()
    first, again, other = (
        draw_estimates(sketch, sketch.estimators(), probe(x, y), draws=20, seed=seed)
        for seed in (3, 3, 4)
    )
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c, equal_nan=True)


def test_a_draw_does_not_depend_on_how_many_there_are(small_sketch: Sketch) -> None:
    sketch, (x, y) = small_sketch(), records()
    few, many = (
        draw_estimates(sketch, sketch.estimators(), probe(x, y), draws=draws, seed=3)
        for draws in (7, 20)
    )
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a, b[:7])


def test_every_draw_has_its_own_noise_and_its_own_projection(small_sketch: Sketch) -> None:
    sketch, (x, y) = small_sketch(), records()
    estimates = draw_estimates(sketch, sketch.estimators()[:1], probe(x, y), draws=50, seed=3)
    assert len(set(estimates[0].tolist())) == 50
    # With next to no noise, what still varies is the projection.
    quiet = evolve(sketch, noise=RoundedGaussian(scale=1.0))
    estimator = quiet.estimators()[0]
    (distances,) = draw_estimates(quiet, [estimator], probe(x, y), draws=50, seed=3)
    noise_alone = SquaredDistance(sketch=quiet, realised=True).variance(x, y)
    assert distances.var() > 100 * noise_alone


def test_an_estimator_does_not_see_the_others(small_sketch: Sketch) -> None:
    sketch, (x, y) = small_sketch(), records()
    together = draw_estimates(sketch, sketch.estimators(), probe(x, y), draws=10, seed=3)
    alone = draw_estimates(sketch, sketch.estimators()[1:2], probe(x, y), draws=10, seed=3)
    np.testing.assert_array_equal(together[1], alone[0])


# --- until it is known


class Wrong:
    """An estimator with one formula replaced."""

    def __init__(self, estimator: Estimator, **replaced: float) -> None:
        self._estimator, self._replaced = estimator, replaced

    def __getattr__(self, name: str) -> Any:
        if name in self._replaced:
            return lambda *_: self._replaced[name]
        return getattr(self._estimator, name)


def checked(sketch: LinearSketch, estimator: Any, **options: Any) -> MomentFinding:
    x, y = records()
    options = {"draws": 4000, "first": 250, "seed": 3} | options
    (finding,) = check_moments(sketch, estimator, [probe(x, y)], **options)
    return finding


def test_formulas_that_hold_are_confirmed_and_the_drawing_stops(small_sketch: Sketch) -> None:
    sketch = small_sketch()
    margin = Margin(mean=0.5, variance=1.0)
    finding = checked(sketch, sketch.estimators()[0], margin=margin)
    assert (finding.unbiased, finding.mean, finding.variance) == (CONFIRMED,) * 3
    assert finding.draws < 4000
    low, high = finding.mean_between
    x, y = records()
    assert low <= sketch.estimators()[0].expectation(x[None], y[None]) <= high


@pytest.mark.parametrize("draws", day_and_night(500, 4000))
def test_formulas_that_don_t_are_refuted_each_on_its_own(small_sketch: Sketch, draws: int) -> None:
    sketch, (x, y) = small_sketch(), records()
    good = sketch.estimators()[0]
    expectation, variance = good.expectation(x[None], y[None]), good.variance(x[None], y[None])
    biased = checked(sketch, Wrong(good, truth=expectation + variance**0.5), draws=draws)
    assert biased.unbiased == "refuted"
    assert biased.mean != "refuted"
    shifted = checked(sketch, Wrong(good, expectation=expectation - variance**0.5), draws=draws)
    assert (shifted.unbiased != "refuted", shifted.mean) == (True, "refuted")
    wrong = checked(sketch, Wrong(good, variance=variance / 3), draws=draws)
    assert wrong.variance == "refuted"


def test_too_few_draws_end_inconclusive(small_sketch: Sketch) -> None:
    sketch = small_sketch()
    finding = checked(sketch, sketch.estimators()[0], draws=60, first=20)
    assert (finding.variance, finding.draws) == ("inconclusive", 60)
    with pytest.raises(ParameterError, match="first=9 must be between 2 and draws=8"):
        checked(sketch, sketch.estimators()[0], draws=8, first=9)
    with pytest.raises(ParameterError, match="at least one"):
        check_moments(sketch, sketch.estimators()[0], [])


def test_an_estimate_that_is_no_number_leaves_all_open() -> None:
    finding = check_draws(
        lambda start, count: np.where(np.arange(start, start + count) == 7, np.nan, 0.0),
        truth=9.0,
        expectation=9.0,
        variance=1.0,
        draws=20,
        first=10,
    )
    assert (finding.unbiased, finding.mean, finding.variance) == ("inconclusive",) * 3


def test_looks_see_the_same_draws_as_one_look(small_sketch: Sketch) -> None:
    sketch, (x, y) = small_sketch(), records()
    estimators = sketch.estimators()[:1]
    (whole,) = draw_estimates(sketch, estimators, probe(x, y), draws=12, seed=3)
    (later,) = draw_estimates(sketch, estimators, probe(x, y), draws=7, start=5, seed=3)
    np.testing.assert_array_equal(whole[5:], later)


def test_without_skewness_the_interval_is_the_normal_one() -> None:
    half = np.random.default_rng(4).normal(size=200)
    values = 3 + np.concatenate([half, -half])
    oracle = DescrStatsW(values)
    for level in (0.2, 1e-3, 1e-6):
        assert interval_of_mean(values, level) == pytest.approx(
            oracle.zconfint_mean(alpha=level), rel=1e-10
        )


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.15, 0.3])
def test_confirmed_is_the_equivalence_test(margin: float) -> None:
    """Two one-sided tests at half the level each, for values without skewness."""
    half = np.random.default_rng(4).normal(size=200)
    values = 0.01 + np.concatenate([half, -half])
    level = 0.05
    finding = check_draws(
        lambda start, count: values[start : start + count],
        truth=0.0,
        expectation=0.0,
        variance=1.0,
        margin=Margin(mean=margin),
        alpha=2 * level,
        draws=400,
        first=400,
    )
    p_value = DescrStatsW(values).ztost_mean(-margin, margin)[0]
    assert (finding.mean == CONFIRMED) == (p_value <= level / 2)


def test_the_interval_undoes_hall_s_transformation() -> None:
    values = np.random.default_rng(5).chisquare(1, size=300)
    level, n = 0.01, 300
    spread = values.std(ddof=1)
    skew = (((values - values.mean()) / spread) ** 3).mean()
    z = float(-ndtri(level / 2))
    for end, side in zip(interval_of_mean(values, level), (z, -z), strict=True):
        t = math.sqrt(n) * (values.mean() - end) / spread
        cubic = t + skew * t**2 / (3 * math.sqrt(n)) + skew**2 * t**3 / (27 * n)
        assert cubic + skew / (6 * math.sqrt(n)) == pytest.approx(side, rel=1e-9)
    assert interval_of_mean(np.full(5, 2.5), level) == (-math.inf, math.inf)
