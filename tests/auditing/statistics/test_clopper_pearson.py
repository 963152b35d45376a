"""Binomial limits against exact tails: the level holds to the last digit, and nothing is lost."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy.special import betaincinv
from statsmodels.stats.proportion import proportion_confint

from dpverify.auditing.statistics.clopper_pearson import (
    _tail,
    judge_at_least,
    judge_at_most,
    lower_limit,
    upper_limit,
)
from dpverify.errors import ParameterError
from tests.helpers.profiles import crossed

DRAWS = (1, 2, 3, 8, 13, 30)
LEVELS = (0.999, 0.5, 0.05, 0.01, 1e-6, 1e-12)
# What a limit may give away: far more than the last digits, far less than anyone would notice.
SLACK = Fraction(1, 10**9)


def tail(p: Fraction, successes: int, draws: int) -> Fraction:
    """P[Bin(draws, p) ≥ successes], exactly."""
    hit, whole = p.numerator, p.denominator
    ways = (
        comb(draws, i) * hit**i * (whole - hit) ** (draws - i) for i in range(successes, draws + 1)
    )
    return Fraction(sum(ways), whole**draws)


def decimal_tail(p: Fraction, successes: int, draws: int) -> Any:
    """The same to about 40 digits, summed term by term from the first, where p·draws is below."""
    with mpmath.workdps(60):
        hit = mpmath.mpf(p.numerator) / p.denominator
        term = mpmath.exp(
            mpmath.loggamma(draws + 1)
            - mpmath.loggamma(successes + 1)
            - mpmath.loggamma(draws - successes + 1)
            + successes * mpmath.log(hit)
            + (draws - successes) * mpmath.log(1 - hit)
        )
        total, odds = mpmath.mpf(0), hit / (1 - hit)
        for i in range(successes, draws + 1):
            total += term
            term *= odds * (draws - i) / (i + 1)
            if term < total * mpmath.mpf(10) ** -45:
                break
        return total


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("p", [0.0, 5e-324, 1e-9, 0.1, 0.5, 1 - 2**-53, 1.0])
def test_a_tail_holds_the_exact_one_closely(p: float, draws: int) -> None:
    for successes in range(1, draws + 1):
        ball, exact = _tail(p, successes, draws), tail(Fraction(p), successes, draws)
        with ctx.workprec(400):
            assert ball.contains(fmpq(exact.numerator, exact.denominator))
        assert not exact or ball.rel_accuracy_bits() > 90


@pytest.mark.parametrize("alpha", [0.3, 0.01, 1e-9])
@pytest.mark.parametrize("successes", [1, 40, 5000, 9999, 10_000])
def test_a_tail_of_many_draws_is_that_of_another_method(successes: int, alpha: float) -> None:
    p = float(betaincinv(successes, 10_001 - successes, alpha))
    with ctx.workprec(200):
        other = arb(p).beta_lower(successes, 10_001 - successes, regularized=1)
    assert _tail(p, successes, 10_000).contains(other)


@pytest.mark.parametrize("alpha", LEVELS)
@pytest.mark.parametrize("draws", DRAWS)
def test_the_lower_limit_keeps_its_level_and_is_the_largest(draws: int, alpha: float) -> None:
    for successes in range(1, draws + 1):
        limit = Fraction(lower_limit(successes, draws, alpha))
        case = (successes, draws, alpha)
        assert tail(limit, successes, draws) <= Fraction(alpha), case
        assert tail(limit * (1 + SLACK), successes, draws) > Fraction(alpha), case


@pytest.mark.parametrize("alpha", LEVELS)
@pytest.mark.parametrize("draws", DRAWS)
def test_the_upper_limit_keeps_its_level_and_is_the_smallest(draws: int, alpha: float) -> None:
    for successes in range(draws):
        limit = Fraction(upper_limit(successes, draws, alpha))
        case = (successes, draws, alpha)
        failures = draws - successes  # at most `successes` hits are at least these failures
        assert tail(1 - limit, failures, draws) <= Fraction(alpha), case
        assert tail(1 - limit * (1 - SLACK), failures, draws) > Fraction(alpha), case


@pytest.mark.parametrize(
    ("counted", "alpha"),
    crossed(
        [
            *((1, 1000), (500, 1000), (1000, 1000)),
            *((3, 10**5), (170, 10**5), (64_000, 10**5), (7, 10**7)),
        ],
        [0.05, 0.01 / 16, 1e-9],
    ),
)
def test_limits_at_the_sizes_of_an_audit(counted: tuple[int, int], alpha: float) -> None:
    successes, draws = counted
    low, high = lower_limit(successes, draws, alpha), upper_limit(successes, draws, alpha)
    assert 0 <= low <= successes / draws <= high <= 1
    assert decimal_tail(Fraction(low), successes, draws) <= alpha
    assert decimal_tail(Fraction(low) * (1 + SLACK), successes, draws) > alpha
    if successes < draws:
        failures = draws - successes
        # A tail of failures starts above its mean as well, so the same sum serves.
        assert decimal_tail(1 - Fraction(high), failures, draws) <= alpha
        assert decimal_tail(1 - Fraction(high) * (1 - SLACK), failures, draws) > alpha


@pytest.mark.parametrize(("successes", "draws"), [(1, 20), (10, 20), (15, 200), (199, 200)])
def test_the_tail_at_the_limit_by_the_incomplete_beta_function(successes: int, draws: int) -> None:
    limit = lower_limit(successes, draws, 0.01)
    with mpmath.workdps(40):
        value = mpmath.betainc(successes, draws - successes + 1, 0, limit, regularized=True)
        assert 0.01 * (1 - 1e-9) < value <= 0.01


@pytest.mark.parametrize("draws", [1, 17, 10**6])
@pytest.mark.parametrize("alpha", [0.5, 1e-3, 1e-15])
def test_nothing_is_excluded_beyond_the_last_count(draws: int, alpha: float) -> None:
    assert lower_limit(0, draws, alpha) == 0.0
    assert upper_limit(draws, draws, alpha) == 1.0
    # All or nothing has its limit in closed form: p^n = α.
    assert lower_limit(draws, draws, alpha) == pytest.approx(alpha ** (1 / draws), rel=1e-9)
    assert 1 - upper_limit(0, draws, alpha) == pytest.approx(alpha ** (1 / draws), rel=1e-9)


@pytest.mark.parametrize(("draws", "alpha"), crossed([1, 2, 5, 13, 30], [0.3, 0.05, 1e-3]))
def test_coverage_by_enumeration(draws: int, alpha: float) -> None:
    lowers = [Fraction(lower_limit(x, draws, alpha)) for x in range(draws + 1)]
    uppers = [Fraction(upper_limit(x, draws, alpha)) for x in range(draws + 1)]
    worst = Fraction(0)
    # Next to the limits the miss is largest, so they join the grid.
    grid = [Fraction(i, 50) for i in range(51)]
    for p in (*grid, *(x * (1 - SLACK) for x in lowers), *uppers):
        chance = [comb(draws, x) * p**x * (1 - p) ** (draws - x) for x in range(draws + 1)]
        below = sum((c for c, limit in zip(chance, lowers, strict=True) if p < limit), Fraction(0))
        above = sum((c for c, limit in zip(chance, uppers, strict=True) if p > limit), Fraction(0))
        assert below <= Fraction(alpha), p
        assert above <= Fraction(alpha), p
        worst = max(worst, below, above)
    # Limits that exclude nothing would cover too: somewhere the level is used up.
    assert worst > Fraction(alpha) * (1 - Fraction(1, 10**6))


def test_limits_move_with_the_counts_and_the_level() -> None:
    lowers = [lower_limit(x, 200, 0.01) for x in range(201)]
    uppers = [upper_limit(x, 200, 0.01) for x in range(201)]
    assert (np.diff(lowers) > 0).all()
    assert (np.diff(uppers) > 0).all()
    assert lower_limit(50, 200, 1e-4) < lower_limit(50, 200, 0.01)
    assert upper_limit(50, 200, 1e-4) > upper_limit(50, 200, 0.01)


@pytest.mark.parametrize("limit", [lower_limit, upper_limit])
@pytest.mark.parametrize(
    ("successes", "draws", "alpha", "named"),
    [
        (0, 0, 0.05, "draws"),
        (0, -3, 0.05, "draws"),
        (-1, 10, 0.05, "successes"),
        (11, 10, 0.05, "successes"),
        (5, 10, 0.0, "alpha"),
        (5, 10, 1.0, "alpha"),
        (5, 10, -0.1, "alpha"),
        (0, 10, 1.5, "alpha"),
        (5, 10, float("nan"), "alpha"),
    ],
)
def test_bad_input_is_refused(
    limit: Any, successes: int, draws: int, alpha: float, named: str
) -> None:
    with pytest.raises(ParameterError) as raised:
        limit(successes, draws, alpha)
    assert raised.value.name == named


@pytest.mark.parametrize("successes", [-1, 11])
def test_the_upper_limit_names_the_successes_that_were_given(successes: int) -> None:
    with pytest.raises(ParameterError) as raised:
        upper_limit(successes, 10, 0.05)
    assert raised.value.value == successes


def test_planted_bug_the_unverified_quantile_misses_its_level() -> None:
    missed = 0
    for draws in DRAWS:
        for successes in range(1, draws + 1):
            for alpha in LEVELS:
                raw = Fraction(float(betaincinv(successes, draws - successes + 1, alpha)))
                missed += tail(raw, successes, draws) > Fraction(alpha)
    assert missed > 0


@pytest.mark.parametrize(("successes", "draws"), [(0, 5), (3, 8), (12, 30), (995, 1000)])
@pytest.mark.parametrize("alpha", [0.2, 0.01, 1e-5])
def test_limits_are_those_of_statsmodels(successes: int, draws: int, alpha: float) -> None:
    low, high = proportion_confint(successes, draws, alpha=2 * alpha, method="beta")
    assert lower_limit(successes, draws, alpha) == pytest.approx(np.nan_to_num(low), rel=1e-9)
    assert upper_limit(successes, draws, alpha) == pytest.approx(high, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.001])
@pytest.mark.parametrize("claimed", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
def test_a_false_verdict_on_a_bound_is_as_rare_as_the_level(
    claimed: Fraction, alpha: float
) -> None:
    """Exactly, over all counts: true at its edge it is refuted, false just below it confirmed."""
    draws = 40
    verdicts = [judge_at_least(count, draws, claimed, alpha) for count in range(draws + 1)]
    chances = [tail(claimed, n, draws) - tail(claimed, n + 1, draws) for n in range(draws + 1)]
    for false in ("refuted", "confirmed"):
        rate = sum(p for p, verdict in zip(chances, verdicts, strict=True) if verdict == false)
        assert rate <= Fraction(alpha)
    order = {"refuted": 0, "inconclusive": 1, "confirmed": 2}
    assert [order[v] for v in verdicts] == sorted(order[v] for v in verdicts)
    for count in range(draws + 1):
        mirrored = judge_at_most(draws - count, draws, 1 - claimed, alpha)
        assert mirrored == verdicts[count]


def test_enough_draws_decide_a_bound() -> None:
    assert judge_at_least(9_990, 10_000, Fraction(99, 100), 0.01) == "confirmed"
    assert judge_at_least(9_700, 10_000, Fraction(99, 100), 0.01) == "refuted"
    assert judge_at_most(5, 10, Fraction(1, 2), 0.01) == "inconclusive"
    assert judge_at_least(0, 1, Fraction(0), 0.01) == "confirmed"
    with pytest.raises(ParameterError, match="probability"):
        judge_at_least(1, 2, Fraction(3, 2), 0.01)
