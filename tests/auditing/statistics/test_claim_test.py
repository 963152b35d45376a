"""What counts of an event prove of a claimed curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.statistics.claim_test import curve_lines, judge, refuted_part
from dpverify.auditing.statistics.clopper_pearson import lower_limit, upper_limit
from dpverify.auditing.statistics.power import (
    Event,
    events,
)
from dpverify.auditing.statistics.two_sample_binomial import Counts, claim_lines
from dpverify.errors import ParameterError
from tests.helpers.claims import BY_DAY, LEVEL, MILLIONTH, TARGETS, THOUSANDTH, claim, expected
from tests.helpers.profiles import crossed, day_and_night


@pytest.mark.parametrize(("hits", "false_hits"), [(0, 0), (50, 50), (0, 1000), (1000, 1000)])
def test_counts_that_are_alike_prove_nothing(hits: int, false_hits: int) -> None:
    curve = claim(Fraction(1), THOUSANDTH)
    counts = Counts(hits=hits, false_hits=false_hits, draws=1000)
    finding = judge(counts, curve, THOUSANDTH, LEVEL)
    assert (finding.epsilon_lower, finding.refuted_at) == (0.0, None)


@pytest.mark.parametrize(("draws", "shown"), day_and_night((1000, 4), (10_000, 7)))
def test_an_event_that_tells_the_sides_apart_refutes_every_small_claim(
    draws: int, shown: int
) -> None:
    counts = Counts(hits=draws, false_hits=0, draws=draws)
    finding = judge(counts, claim(Fraction(1), MILLIONTH), MILLIONTH, LEVEL)
    assert finding.epsilon_lower > shown
    assert finding.refuted_at is not None
    # A claim of ε = 100 leaves room for such counts.
    generous = judge(counts, claim(Fraction(100), MILLIONTH), MILLIONTH, LEVEL)
    assert generous.refuted_at is None
    assert generous.epsilon_lower == finding.epsilon_lower


@pytest.mark.parametrize(
    ("counted", "delta", "ordering"),
    crossed([(900, 20), (5000, 800), (9999, 9000)], [MILLIONTH, Fraction(1, 30)], [None, 0.05]),
)
def test_the_bound_is_within_what_two_limits_and_the_ratio_give(
    counted: tuple[int, int], delta: Fraction, ordering: float | None
) -> None:
    """Better than Clopper and Pearson's limits at half the level, and below the counted ratio."""
    hits, false_hits = counted
    counts = Counts(hits=hits, false_hits=false_hits, draws=10_000)
    curve = claim(Fraction(1, 2), Fraction(1, 10**5))
    found = judge(counts, curve, delta, LEVEL, ordering=ordering).epsilon_lower
    p, q = lower_limit(hits, 10_000, LEVEL / 2), upper_limit(false_hits, 10_000, LEVEL / 2)
    split = max(math.log(max(p - delta, 1e-9) / q), 0.0)
    other = (10_001 - false_hits) / (10_001 - hits)
    assert found < math.log(max(hits / false_hits, other))
    if ordering is None:
        assert found > split
    # The other ordering is worse here, and no other test: its bound is rejected as well.
    elif found > 0:
        lines = claim_lines(found, float(delta))
        assert counts.refutes(lines, alpha=LEVEL, delta=ordering)
        lines = claim_lines(found * 1.01 + 0.01, float(delta))
        assert not counts.refutes(lines, alpha=LEVEL, delta=ordering)


@pytest.mark.parametrize(("step", "number"), day_and_night((1.0, 1), (0.5, 3)))
def test_a_refutation_needs_more_than_the_claim_allows(step: float, number: int) -> None:
    """More hits never save a claim; the first find is between 2 and 5 standard errors off."""
    curve, draws = claim(Fraction(1), THOUSANDTH), 20_000
    for event in events(curve, THOUSANDTH, draws, LEVEL)[:number]:
        p, q = curve.rates(event.threshold)
        spread = math.sqrt((p * (1 - p) + math.exp(2 * event.threshold) * q * (1 - q)) / draws)

        def refuted(errors: float, event: Event = event, spread: float = spread) -> bool:
            p, q = curve.rates(event.threshold)
            counts = Counts(
                hits=round(draws * (p + errors * spread)), false_hits=round(draws * q), draws=draws
            )
            found = judge(counts, curve, THOUSANDTH, LEVEL, ordering=event.ordering)
            return found.refuted_at is not None

        found = [refuted(errors) for errors in np.arange(0, 9, step).tolist()]
        first = found.index(True)
        assert found == [False] * first + [True] * (len(found) - first)
        assert 2 <= first * step <= 5


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_lines_are_points_of_the_curve(epsilon: Fraction, delta: Fraction) -> None:
    """No line is below the curve's own events, and together they are hardly above."""
    curve = claim(epsilon, delta)
    lines = curve_lines(curve, delta)
    for threshold in np.linspace(0, float(epsilon), 40).tolist():
        p, q = curve.rates(threshold)
        allowed = min(slope * q + base for slope, base in lines)
        assert p <= allowed * (1 + 1e-12)
        assert allowed <= p * 1.01


def test_a_curve_is_refuted_where_its_claimed_point_is_not() -> None:
    """Far too many hits at t = 0, which (ε, δ) allows and δ(0) forbids."""
    curve = claim(Fraction(5), MILLIONTH)
    counts = Counts(hits=8000, false_hits=2000, draws=10_000)
    found = judge(counts, curve, MILLIONTH, LEVEL)
    assert found.refuted_at is not None
    assert found.refuted_at < 1
    assert found.epsilon_lower < 5
    assert not counts.refutes(claim_lines(5.0, 1e-6), alpha=LEVEL, delta=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "draws", "others"),
    day_and_night(
        (*TARGETS[0], 500, (5,)), *((*target, 10_000, (0, 5, 800)) for target in TARGETS)
    ),
)
def test_a_bound_above_the_claim_is_always_a_refutation(
    epsilon: Fraction, delta: Fraction, draws: int, others: Sequence[int]
) -> None:
    """With the least number of hits for which it is one."""
    curve = claim(epsilon, delta)
    for false_hits in others:

        def bound(hits: int, false_hits: int = false_hits) -> float:
            counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
            return judge(counts, curve, delta, LEVEL).epsilon_lower

        low, high, claimed = false_hits, draws, curve.epsilon_at(delta).upper
        if bound(high) <= claimed:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if bound(middle) > claimed else (middle, high)
        counts = Counts(hits=high, false_hits=false_hits, draws=draws)
        assert judge(counts, curve, delta, LEVEL).refuted_at is not None


@pytest.mark.parametrize(("epsilon", "delta"), BY_DAY)
@pytest.mark.parametrize("draws", [100, *day_and_night(5000, 10**6)])
def test_expected_counts_never_accuse_the_claim(
    epsilon: Fraction, delta: Fraction, draws: int
) -> None:
    curve = claim(epsilon, delta)
    truth = curve.epsilon_at(delta).lower
    for threshold in np.linspace(-float(epsilon), 2 * float(epsilon), 13).tolist():
        finding = judge(expected(curve, threshold, draws), curve, delta, LEVEL)
        assert finding.epsilon_lower <= truth
        assert finding.refuted_at is None


@pytest.mark.parametrize(
    ("hits", "false_hits"),
    [(-1, 5), (5, -1), (101, 5), (5, 101)],
)
def test_counts_that_are_none_are_refused(hits: int, false_hits: int) -> None:
    with pytest.raises(ParameterError):
        Counts(hits=hits, false_hits=false_hits, draws=100)


def test_a_curve_that_is_refuted_elsewhere_is_not_said_to_be_at_its_own_epsilon() -> None:
    curve, delta = Gaussian(sigma=Fraction(3, 2)), Fraction(1, 10**6)
    judged = judge(Counts(hits=225, draws=1500, false_hits=20), curve, delta, 0.05)
    assert judged.epsilon_lower < curve.epsilon_at(delta).lower
    assert refuted_part(judged, curve, delta).startswith("the claimed curve near ε = 1.")
    point = ApproxDP(epsilon=Fraction(1))
    for hits in (100, 225):
        judged = judge(Counts(hits=hits, draws=1500, false_hits=20), point, Fraction(0), 0.05)
        assert refuted_part(judged, point, Fraction(0)) == "the claim of ε = 1 at δ = 0"
