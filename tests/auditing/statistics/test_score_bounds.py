"""Bounds from scores against enumeration: no p-value too small, no level spent twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import betaincc
from scipy.stats import binom

from dpverify.auditing.statistics import score_bounds
from dpverify.auditing.statistics.score_bounds import area_limits, one_run_bound, tail_bound

ALPHA = 0.3  # large, so that few scores can be wrong at all
TINY = 1e-7


@pytest.mark.parametrize(("n", "m", "k"), [(3, 5, 1), (6, 4, 2), (9, 9, 4), (40, 25, 8)])
def test_the_p_value_of_equal_sides_counts_arrangements(n: int, m: int, k: int) -> None:
    for hits in range(1, n + 1):
        exact = sum(
            math.comb(j + k - 1, j) * math.comb(n - j + m - k, n - j) for j in range(hits, n + 1)
        ) / math.comb(n + m, n)
        found = score_bounds._p_value(hits, n, k, m, delta=0.0, level=0.01)(0.0)
        assert exact <= found
        assert found <= 1.05 * exact + 5e-5  # the cells' price, where p-values near the level arise


def test_round_off_is_below_what_is_charged() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(10 ** rng.uniform(0.3, 6))
        count = int(np.clip(10 ** rng.uniform(0, math.log10(n)), 1, n))
        p = float(np.clip(count / n * rng.uniform(0.5, 2), 1e-9, 1 - 1e-9))
        with ctx.workprec(200):
            exact = float(arb(p).beta_lower(count, n - count + 1, regularized=1).mid())
            above = float((1 - arb(p).beta_lower(count, n - count + 1, regularized=1)).mid())
        if exact > 1e-15:
            assert score_bounds._tail(count, n, p) == pytest.approx(exact, rel=1e-10)
        if above > 1e-12:
            assert betaincc(count, n - count + 1, p) == pytest.approx(above, rel=1e-10)
    assert score_bounds._tail(0, 5, 0.5) == 1


def wrong(p: float, q: float, n: int, m: int, epsilon: float, delta: float) -> float:
    """Probability of a bound above ε, of scores of two values; by enumeration of the counts."""
    total = 0.0
    for x, y in product(range(n + 1), range(m + 1)):
        own, other = np.repeat([1.0, 0.0], [x, n - x]), np.repeat([1.0, 0.0], [y, m - y])
        bound = tail_bound(own, other, delta=delta, alpha=ALPHA).epsilon
        total += float(binom.pmf(x, n, p) * binom.pmf(y, m, q)) * (bound > epsilon + TINY)
    return total


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 3)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.0), (0.7, 0.1)])
def test_the_level_by_enumeration(n: int, m: int, epsilon: float, delta: float) -> None:
    worst = 0.0
    for q in (0.01, 0.1, 0.3):
        p = min(math.exp(epsilon) * q + delta, 1 - (1 - q - delta) * math.exp(-epsilon))
        worst = max(worst, wrong(p, q, n, m, epsilon, delta))
    assert worst <= ALPHA


def test_the_level_of_scores_without_ties_by_enumeration() -> None:
    """Of equal sides all orders are as likely: the level is a share of them."""
    n = m = 4
    orders = [order for order in product((0, 1), repeat=n + m) if sum(order) == n]
    above = 0
    for order in orders:
        places = np.array(order, dtype=bool)
        values = np.arange(n + m, dtype=float)
        above += tail_bound(values[places], values[~places], delta=0, alpha=ALPHA).epsilon > TINY
    assert 0 < above <= ALPHA * len(orders)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_the_level_of_one_run_by_enumeration(epsilon: float) -> None:
    """Coins and truthful answers of randomized response, by the counts that matter."""
    m, keep = 8, math.exp(epsilon) / (1 + math.exp(epsilon))
    total, some = 0.0, 0.0
    for inside in range(1, m):
        for x, y in product(range(inside + 1), range(m - inside + 1)):
            own = np.repeat([1.0, 0.0], [x, inside - x])
            other = np.repeat([0.0, 1.0], [y, m - inside - y])
            chance = binom.pmf(inside, m, 0.5) * binom.pmf(x, inside, keep)
            chance *= binom.pmf(y, m - inside, keep)
            bound = one_run_bound(own, other, delta=0.0, alpha=ALPHA).epsilon
            total += float(chance) * (bound > epsilon + TINY)
            some += bound > 0
    assert some
    assert total <= ALPHA


def test_one_run_pays_for_delta() -> None:
    own, other = np.ones(50), np.zeros(50)
    bounds = [one_run_bound(own, other, delta=d, alpha=0.05).epsilon for d in (0, 1e-5, 1e-3)]
    assert bounds[0] > bounds[1] > bounds[2] > 0


@pytest.mark.parametrize("values", [1, 2, 3, 100])
def test_one_run_makes_as_many_guesses_as_were_fixed_where_delta_counts(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ties there are: the theorem is of so many guesses and no others."""
    guesses: list[int] = []

    def noted(right: int, guessed: int, m: int, delta: float) -> Callable[[float], float]:
        guesses.append(guessed)
        return lambda epsilon: 1.0

    monkeypatch.setattr(score_bounds, "_one_run_p_value", noted)
    own, other = np.random.default_rng(values).integers(values, size=(2, 50)).astype(float)
    one_run_bound(own, other, delta=1e-5, alpha=ALPHA)
    assert guesses == [each for k in (50, 25, 12, 6, 3, 1) for each in (2 * k, k)]


def test_ties_are_broken_by_coins_whatever_side_they_are_of() -> None:
    """The first of equal scores are all of one side, by the order in which they are given."""
    bound = one_run_bound(np.ones(500), np.ones(500), delta=1e-5, alpha=ALPHA)
    assert bound.epsilon == 0


def test_the_area_and_its_limits() -> None:
    rng = np.random.default_rng(0)
    own, other = np.round(rng.normal(1, 1, 60)), np.round(rng.normal(0, 1, 45))
    area, low, high = area_limits(own, other, alpha=0.05)
    pairs = [(x > y) + (x == y) / 2 for x in own for y in other]
    assert area == pytest.approx(np.mean(pairs))
    for end in (low, high):
        divergence = area * math.log(area / end) + (1 - area) * math.log((1 - area) / (1 - end))
        assert divergence == pytest.approx(math.log(2 / 0.05) / 45)
    assert low < area < high
    assert area_limits(np.ones(9), np.zeros(9), alpha=0.05)[2] == 1


@pytest.mark.parametrize(("bound", "used"), [(tail_bound, 0.999), (one_run_bound, 0.66)])
@pytest.mark.parametrize("draws", [2, 7, 100])
def test_the_levels_of_all_tests_add_up_to_no_more_than_alpha(
    bound: Callable[..., object], used: float, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[float] = []
    monkeypatch.setattr(
        score_bounds, "_largest_rejected", lambda p_value, level, least: spent.append(level)
    )
    bound(np.ones(draws), np.zeros(draws), delta=0.0, alpha=ALPHA)
    assert len(set(spent)) > 1
    assert min(spent) > 0
    assert used * ALPHA < math.fsum(spent) <= ALPHA


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.03)])
@pytest.mark.parametrize(("n", "m", "k"), [(6, 9, 1), (30, 12, 4)])
def test_the_p_value_of_a_claim_by_quadrature(
    n: int, m: int, k: int, epsilon: float, delta: float
) -> None:
    """The chance of so many hits at the most that the claim allows, over the law of the rank."""
    hits = n * 2 // 3
    with mpmath.workdps(20):
        up = mpmath.exp(epsilon)
        corner = (1 - delta) / (1 + up)

        def inside(q: mpmath.mpf) -> mpmath.mpf:
            p = up * q + delta if q <= corner else 1 - (1 - delta - q) / up
            p = min(p, mpmath.mpf(1))
            tail = mpmath.betainc(hits, n - hits + 1, 0, p, regularized=True)
            return tail * q ** (k - 1) * (1 - q) ** (m - k) / mpmath.beta(k, m + 1 - k)

        exact = float(mpmath.quad(inside, [0, corner, 1 - delta, 1]))
    found = score_bounds._p_value(hits, n, k, m, delta=delta, level=exact)(epsilon)
    assert exact <= found <= 1.03 * exact
    assert score_bounds._p_value(n, n, k, m, delta=delta, level=exact)(800.0) >= 1


@pytest.mark.parametrize(("right", "guessed", "m"), [(1, 1, 2), (7, 9, 10), (20, 20, 64)])
@pytest.mark.parametrize("delta", [0, Fraction(1, 1024)])
def test_the_p_value_of_one_run_by_exact_sums(
    right: int, guessed: int, m: int, delta: Fraction
) -> None:
    """The theorem's right side at odds of 3, in fractions."""
    law = [math.comb(guessed, w) * Fraction(3**w, 4**guessed) for w in range(guessed + 1)]
    exact = sum(law[right:]) + 2 * m * delta * max(
        sum(law[right - i : right]) / i for i in range(1, right + 1)
    )
    p_value = score_bounds._one_run_p_value(right, guessed, m, float(delta))
    assert exact <= p_value(math.log(3)) <= exact * (1 + Fraction(1, 10**7))
    assert score_bounds._one_run_p_value(0, guessed, m, float(delta))(0.0) == 1


@pytest.mark.parametrize("least", [0.0, 2.0])
@pytest.mark.parametrize("beyond", [0.0, 1e-9, 0.3, 1.0, 7.25])
def test_what_is_rejected_is_next_to_the_largest(least: float, beyond: float) -> None:
    largest = least + beyond
    found = score_bounds._largest_rejected(lambda eps: 0.1 if eps <= largest else 0.2, 0.1, least)
    if found is None:
        assert beyond <= 1e-6
    else:
        assert least < found <= largest <= found + 1e-4 * max(found, 0.01)
    assert score_bounds._largest_rejected(lambda eps: 0.2, 0.1, least) is None


@pytest.mark.parametrize(
    ("scores", "count", "above"),
    [
        ([1, 4, 2, 3], 1, [False, True, False, False]),
        ([1, 4, 2, 3], 3, [False, True, True, True]),
        ([5, 3, 3, 1], 2, [True, True, True, False]),  # one too many, as near as one too few
        ([5, 3, 3, 3], 2, [True, False, False, False]),
        ([7, 7, 7, 7], 1, [False, False, False, False]),
        ([7, 7, 7, 7], 3, [True, True, True, True]),
    ],
)
def test_of_ties_all_or_none_are_among_the_largest(
    scores: list[float], count: int, above: list[bool]
) -> None:
    assert score_bounds._top(np.array(scores, dtype=float), count).tolist() == above
