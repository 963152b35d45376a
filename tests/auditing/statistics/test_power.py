"""Events, levels and power: what an attack would find, before any draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.statistics import power as planning
from dpverify.auditing.statistics.claim_test import curve_lines, judge
from dpverify.auditing.statistics.power import (
    DETECTION,
    Event,
    ceiling,
    events,
    levels,
    power,
    roc_thresholds,
)
from dpverify.auditing.statistics.two_sample_binomial import Counts, claim_lines
from dpverify_audits.planted.linear_sketch import noise_scaled
from tests.helpers.claims import (
    LEVEL,
    LEVELS,
    MILLIONTH,
    TARGETS,
    THOUSANDTH,
    Sketch,
    claim,
    expected,
)
from tests.helpers.profiles import day_and_night, examples


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_three_events_in_both_orders(epsilon: Fraction, delta: Fraction) -> None:
    curve = claim(epsilon, delta)
    chosen = events(curve, delta, 10_000, LEVEL)
    names = ["tail", "reach", "middle"]
    assert [(e.name, e.swapped) for e in chosen] == [(n, s) for s in (False, True) for n in names]
    for plain, swapped in zip(chosen[:3], chosen[3:], strict=True):
        assert (plain.threshold, plain.ordering) == (swapped.threshold, swapped.ordering)
    tail, reach, middle = chosen[:3]
    assert tail.threshold >= 0
    assert reach.threshold >= 0
    assert middle.threshold == 0
    # Each is ordered for the point of the claim that it is to test.
    assert tail.ordering == pytest.approx(float(delta), rel=1e-12)
    for event in (reach, middle):
        assert event.ordering == curve.delta_at(event.threshold).upper


def test_levels_add_up_and_most_is_the_first_events() -> None:
    for pairs in (1, 2, 5):
        shared = levels(0.01, pairs)
        assert [len(row) for row in shared] == [6] * pairs
        flat = [level for row in shared for level in row]
        assert 0.01 * (1 - 1e-9) <= math.fsum(flat) <= 0.01
        assert flat[0] > 0.0097
        assert len(set(flat[1:])) == 1


def test_events_follow_from_the_claim_alone(small_sketch: Sketch) -> None:
    """A release with other noise than claimed is attacked at the same thresholds."""
    sketch = small_sketch()
    broken = noise_scaled(sketch, 0.5)
    assert events(broken.privacy(), THOUSANDTH, 1000, LEVEL) == events(
        sketch.privacy(), THOUSANDTH, 1000, LEVEL
    )
    assert roc_thresholds(broken.privacy()) == roc_thresholds(sketch.privacy())


@pytest.mark.parametrize(
    ("epsilon", "delta", "places"),
    day_and_night((*TARGETS[0], 11), *((*target, 81) for target in TARGETS[:3])),
)
def test_the_tail_event_is_where_the_claim_promises_most(
    epsilon: Fraction, delta: Fraction, places: int
) -> None:
    curve, draws = claim(epsilon, delta), 100_000
    tail = events(curve, delta, draws, LEVEL)[0].threshold
    at_tail = judge(expected(curve, tail, draws), curve, delta, LEVEL).epsilon_lower
    # Whole counts move the bound by up to about half a count of the rarer side.
    for threshold in np.linspace(0, 2 * float(epsilon), places).tolist():
        other = judge(expected(curve, threshold, draws), curve, delta, LEVEL).epsilon_lower
        assert other <= at_tail * 1.03
    assert ceiling(curve, delta, draws, LEVEL) == pytest.approx(at_tail, rel=1e-9)
    assert ceiling(curve, delta, draws, LEVEL) < curve.epsilon_at(delta).lower


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_ceiling_rises_with_draws_and_level(epsilon: Fraction, delta: Fraction) -> None:
    curve = claim(epsilon, delta)
    by_draws = [ceiling(curve, delta, draws, LEVEL) for draws in (10**2, 10**4, 10**6)]
    assert all(few <= many for few, many in pairwise(by_draws))
    assert by_draws[-1] < curve.epsilon_at(delta).lower
    assert ceiling(curve, delta, 10**6, LEVEL) < ceiling(curve, delta, 10**6, 0.5)


def test_roc_thresholds_are_symmetric() -> None:
    found = roc_thresholds(claim(Fraction(2), THOUSANDTH))
    assert len(found) == 17
    np.testing.assert_allclose(found, [-t for t in reversed(found)], atol=1e-12)
    assert found == sorted(found)
    assert all(math.isfinite(t) for t in found)


@pytest.mark.parametrize("mu", [Fraction(1, 50), Fraction(1), Fraction(7, 2)])
@pytest.mark.parametrize("noise", [0.1, 0.8, 1.0])
def test_rates_against_the_normal_distribution(mu: Fraction, noise: float) -> None:
    curve, scale = Gaussian.from_mu_squared(mu**2), float(mu)
    for threshold in np.linspace(-5 * scale, 5 * scale, 21).tolist():
        own, other = curve.rates(threshold, noise=noise)
        for rate, mean in ((own, scale**2 / 2), (other, -(scale**2) / 2)):
            assert rate == pytest.approx(norm.sf(threshold, mean, noise * scale), rel=1e-9)
            with mpmath.workdps(40):
                z = (mpmath.mpf(mean) - threshold) / (mpmath.mpf(noise) * scale)
                assert rate == pytest.approx(float(mpmath.ncdf(z)), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_rates_attain_the_curve(epsilon: float) -> None:
    """δ(ε) = P[L ≥ ε] − e^ε Q[L ≥ ε]: the event at t = ε is the claim's hardest there."""
    curve = Gaussian.from_mu_squared(Fraction(3, 2))
    own, other = curve.rates(epsilon)
    assert own - math.exp(epsilon) * other == pytest.approx(
        curve.delta_at(epsilon).upper, abs=1e-15
    )
    for threshold in (epsilon - 0.1, epsilon + 0.1):
        own, other = curve.rates(threshold)
        assert own - math.exp(epsilon) * other < curve.delta_at(epsilon).lower


def detections(
    curve: Gaussian,
    delta: Fraction,
    draws: int,
    rates: Sequence[tuple[Event, float, float, float]],
    runs: int,
) -> int:
    """Simulated audits in which an event, of this level and these rates on its sides, has a find.

    Distinct counts are judged once.
    """
    rng = np.random.default_rng(11)
    lines = curve_lines(curve, delta)

    @cache
    def refuted(event: Event, level: float, hits: int, false_hits: int) -> bool:
        counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
        return counts.refutes(lines, alpha=level, delta=event.ordering)

    found = 0
    for _ in range(runs):
        drawn = [
            (event, level, int(rng.binomial(draws, p)), int(rng.binomial(draws, q)))
            for event, level, p, q in rates
        ]
        found += any(refuted(*case) for case in drawn)
    return found


POWER_CASES = day_and_night(
    (Fraction(2), THOUSANDTH, 2000, 40),
    (Fraction(2), THOUSANDTH, 2000, 200),
    (Fraction(2), THOUSANDTH, 200, 200),
    (Fraction(5), MILLIONTH, 100_000, 200),
    (Fraction(1), Fraction(1, 10**5), 100_000, 200),
)


def planned(curve: Gaussian, delta: Fraction, draws: int) -> list[tuple[Event, float]]:
    return list(zip(events(curve, delta, draws, LEVELS[0])[:3], LEVELS, strict=True))


@pytest.mark.parametrize(("epsilon", "delta", "draws", "runs"), POWER_CASES)
def test_the_promised_noise_scale_is_found(
    epsilon: Fraction, delta: Fraction, draws: int, runs: int
) -> None:
    """In at least 99 % of audits; the test fails a true promise with probability 1e-6."""
    curve = claim(epsilon, delta)
    scale = power(curve, epsilon, delta, draws, LEVELS).noise_scale
    assert scale is not None
    assert 0.05 < scale < 1

    def at(noise: float) -> list[tuple[Event, float, float, float]]:
        return [
            (event, level, *curve.rates(event.threshold, noise=noise))
            for event, level in planned(curve, delta, draws)
        ]

    found = detections(curve, delta, draws, at(scale), runs)
    assert binom.cdf(found, runs, 0.99) > 1e-6, found
    # The controls: the claim itself is not found, and the promise isn't far too modest.
    false = detections(curve, delta, draws, at(1.0), runs // 2)
    assert binom.sf(false - 1, runs // 2, sum(LEVELS)) > 1e-6, false
    assert detections(curve, delta, draws, at((1 + scale) / 2), runs // 4) < 0.8 * (runs // 4)


EXCESS_CASES = day_and_night(
    (Fraction(2), THOUSANDTH, 2000, 60),
    (Fraction(2), THOUSANDTH, 2000, 300),
    (Fraction(1, 10), THOUSANDTH, 2000, 300),
    (Fraction(2), THOUSANDTH, 20_000, 300),
    (Fraction(5), MILLIONTH, 100_000, 300),
    (Fraction(1), Fraction(1, 10**5), 100_000, 300),
)


@pytest.mark.parametrize(("epsilon", "delta", "draws", "runs"), EXCESS_CASES)
def test_the_smallest_excess_is_found(
    epsilon: Fraction, delta: Fraction, draws: int, runs: int
) -> None:
    """In at least 99 % of audits; the test fails a true promise with probability 1e-6."""
    curve = claim(epsilon, delta)
    excess = power(curve, epsilon, delta, draws, LEVELS).smallest_excess
    assert 0 < excess < 1
    (tail, level), *_ = planned(curve, delta, draws)
    q = curve.rates(tail.threshold)[1]
    allowed = math.exp(float(epsilon)) * q + float(delta)
    found = detections(curve, delta, draws, [(tail, level, allowed + excess, q)], runs)
    assert binom.cdf(found, runs, 0.99) > 1e-6, found


@pytest.mark.parametrize("draws", [1, 5])
def test_too_few_draws_find_nothing(draws: int) -> None:
    """At this level so few draws refute nothing, whatever the counts, and power must say so."""
    curve = claim(Fraction(2), THOUSANDTH)
    best = Counts(hits=draws, false_hits=0, draws=draws)
    assert judge(best, curve, THOUSANDTH, LEVELS[0]).refuted_at is None
    stated = power(curve, Fraction(2), THOUSANDTH, draws, LEVELS)
    assert stated.noise_scale is None
    assert stated.smallest_excess == math.inf
    assert stated.reach is None


@given(
    st.one_of(
        st.floats(0, 1),
        st.floats(-12, 0).map(lambda x: 10.0**x),
        st.floats(-12, 0).map(lambda x: 1 - 10.0**x),
    ),
    st.integers(1, 10**7),
)
@example(0.0, 5)
@example(1.0, 5)
@examples(300)
def test_quantiles_of_the_binomial_law(p: float, draws: int) -> None:
    assert planning.few_hits(p, draws) == binom.ppf((1 - DETECTION) / 2, draws, p)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sizes"),
    day_and_night(
        (*TARGETS[0], (100, 2000)),
        *((*target, (100, 1000, 10**4, 10**5)) for target in TARGETS[:3]),
    ),
)
def test_power_grows_with_the_draws(
    epsilon: Fraction, delta: Fraction, sizes: tuple[int, ...]
) -> None:
    curve = claim(epsilon, delta)
    stated = [power(curve, epsilon, delta, draws, LEVELS) for draws in sizes]
    for few, many in pairwise(stated):
        assert many.noise_scale is not None
        assert (few.noise_scale or 0) <= many.noise_scale < 1
        assert few.smallest_excess >= many.smallest_excess > 0
        assert few.reach is None or (many.reach is not None and few.reach <= many.reach)
    assert stated[-1].reach is not None
    assert stated[-1].reach <= float(epsilon)


def test_the_reach_is_the_farthest_point_of_which_twice_the_delta_is_found() -> None:
    epsilon, draws = Fraction(2), 20_000
    curve = claim(epsilon, THOUSANDTH)

    def found(eps: float, event: Event, level: float) -> bool:
        delta, (_, q) = curve.delta_at(eps).upper, curve.rates(event.threshold)
        p = min(math.exp(eps) * q + 2 * delta, 1 - (1 - q - 2 * delta) * math.exp(-eps), 1.0)
        seen = planning.unlucky(p, q, draws)
        return seen.refutes(claim_lines(eps, delta), alpha=level, delta=event.ordering)

    reach = power(curve, epsilon, THOUSANDTH, draws, LEVELS).reach
    assert reach is not None
    cases = planned(curve, THOUSANDTH, draws)
    assert any(found(reach, *case) for case in cases)
    beyond = [eps for eps in np.linspace(0, 2, 51).tolist() if eps > reach]
    assert beyond
    assert not any(found(eps, *case) for eps in beyond for case in cases)


@pytest.mark.nightly
@pytest.mark.parametrize("draws", [20_000, 10**6])
def test_twice_the_claimed_delta_is_found_at_the_reach(draws: int) -> None:
    """On one of the events; the test fails a true promise with probability 1e-6."""
    epsilon, runs = Fraction(2), 100
    curve = claim(epsilon, THOUSANDTH)
    reach = power(curve, epsilon, THOUSANDTH, draws, LEVELS).reach
    assert reach is not None
    allowed = curve.delta_at(reach).upper
    best = 0
    for event, level in planned(curve, THOUSANDTH, draws):
        q = curve.rates(event.threshold)[1]
        p = min(slope * q + base for slope, base in claim_lines(reach, 2 * allowed))
        best = max(best, detections(curve, THOUSANDTH, draws, [(event, level, p, q)], runs))
    assert binom.cdf(best, runs, 0.99) > 1e-6, best
