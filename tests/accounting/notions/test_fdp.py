"""Trade-off functions: duality with privacy curves, enumeration, Gaussian domination."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.notions.attacker_rates import trade_off
from dpverify.accounting.notions.fdp import FiniteTradeOff, GaussianTradeOff
from dpverify.errors import ParameterError

LEVELS = st.fractions(min_value=0, max_value=1, max_denominator=1000)
INNER = st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=200)
MUS = st.fractions(min_value=Fraction(1, 100), max_value=9, max_denominator=100)
EPSILONS = st.fractions(min_value=0, max_value=6, max_denominator=20)
WEIGHTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7).filter(
    lambda pairs: sum(p for p, _ in pairs) > 0 < sum(q for _, q in pairs)
)


def normalised(weights: list[tuple[int, int]]) -> list[tuple[Fraction, Fraction]]:
    p, q = (sum(pair[side] for pair in weights) for side in (0, 1))
    return [(Fraction(a, p), Fraction(b, q)) for a, b in weights]


@given(WEIGHTS, LEVELS)
def test_finite_trade_off_is_the_best_of_all_tests(
    weights: list[tuple[int, int]], alpha: Fraction
) -> None:
    pairs = normalised(weights)
    function = FiniteTradeOff.of_pair(pairs)
    sets = itertools.product([False, True], repeat=len(pairs))
    errors = [
        (
            sum((p for (p, _), reject in zip(pairs, chosen, strict=True) if reject), Fraction(0)),
            sum(
                (q for (_, q), reject in zip(pairs, chosen, strict=True) if not reject), Fraction(0)
            ),
        )
        for chosen in sets
    ]
    assert all(function.type_two(a) <= b for a, b in errors)  # no test is better
    assert all(vertex in errors for vertex in function.vertices if vertex[0] < 1)  # and these exist
    assert 0 <= function.type_two(alpha) <= 1 - alpha


@given(WEIGHTS, EPSILONS)
def test_finite_curve_is_the_hockey_stick_in_both_orders(
    weights: list[tuple[int, int]], epsilon: Fraction
) -> None:
    pairs = normalised(weights)
    found = FiniteTradeOff.of_pair(pairs).delta_at(epsilon)
    with mpmath.workdps(60):
        factor = mpmath.exp(mpf(epsilon.numerator) / epsilon.denominator)
        exact = [
            (mpf(p.numerator) / p.denominator, mpf(q.numerator) / q.denominator) for p, q in pairs
        ]
        sides = [
            mpmath.fsum(max(a - factor * b, mpf(0)) for a, b in side)
            for side in (exact, [(q, p) for p, q in exact])
        ]
        slack = mpf(10) ** -50  # the fractions were rounded to sixty digits
        assert found.lower - slack <= max(sides) <= found.upper + slack


@given(WEIGHTS)
def test_the_inverse_exchanges_the_laws(weights: list[tuple[int, int]]) -> None:
    pairs = normalised(weights)
    function = FiniteTradeOff.of_pair(pairs)
    swapped = FiniteTradeOff.of_pair([(q, p) for p, q in pairs])
    for alpha in (Fraction(n, 20) for n in range(21)):
        assert function.inverse().type_two(alpha) == swapped.type_two(alpha)
    assert function.delta_at(1) == swapped.delta_at(1)


@given(WEIGHTS, st.fractions(min_value=0, max_value=Fraction(99, 100), max_denominator=300))
def test_finite_delta_and_epsilon_are_inverse(
    weights: list[tuple[int, int]], delta: Fraction
) -> None:
    function = FiniteTradeOff.of_pair(normalised(weights))
    found = function.epsilon_at(delta)
    if found.upper == math.inf:
        assert function.delta_at(10**4).upper > delta
    else:
        assert function.delta_at(found.upper).lower <= delta
        if found.lower > 0:
            assert function.delta_at(found.lower * (1 - 1e-12)).upper >= delta


@given(INNER, EPSILONS)
def test_randomized_response_three_ways(keep: Fraction, epsilon: Fraction) -> None:
    keep = max(keep, 1 - keep, Fraction(51, 100))
    other = 1 - keep
    function = FiniteTradeOff.of_pair([(keep, other), (other, keep)])
    curve = RandomizedResponse(keep=keep, other=other, positions=1)
    one, two = function.delta_at(epsilon), curve.delta_at(epsilon)
    assert one.lower <= two.upper
    assert two.lower <= one.upper
    # The least μ: Φ(μ/2) = keep, from the one inner vertex (other, other).
    with mpmath.workdps(40):
        cdf = mpmath.ncdf(mpf(function.mu().upper) / 2)
        assert abs(cdf - mpf(keep.numerator) / keep.denominator) < 1e-15


@given(MUS, INNER)
def test_a_curve_gives_its_trade_off_back(mu_squared: Fraction, alpha: Fraction) -> None:
    exact = GaussianTradeOff(mu_squared=mu_squared).type_two(alpha)
    found = trade_off(Gaussian.from_mu_squared(mu_squared), alpha)
    assert 1 - found.upper <= exact.upper
    assert 1 - found.lower >= exact.lower
    assert found.width < 2e-12


@given(INNER, INNER)
def test_a_finite_curve_gives_its_trade_off_back(keep: Fraction, alpha: Fraction) -> None:
    keep = max(keep, 1 - keep, Fraction(51, 100))
    function = FiniteTradeOff.of_pair([(keep, 1 - keep), (1 - keep, keep)])
    found = trade_off(ApproxDP.from_odds(odds=keep / (1 - keep)), alpha)
    assert found.lower <= 1 - function.type_two(alpha) <= found.upper
    assert found.width < 2e-12


@given(WEIGHTS, LEVELS)
def test_the_least_mu_dominates_and_a_smaller_one_does_not(
    weights: list[tuple[int, int]], alpha: Fraction
) -> None:
    function = FiniteTradeOff.of_pair(normalised(weights))
    mu = function.mu()
    if not 0 < mu.upper < math.inf:
        bounded = all((p > 0) == (q > 0) for p, q in weights)
        assert bounded == (mu.upper == 0)
        return
    dominating = GaussianTradeOff(mu_squared=Fraction(mu.upper) ** 2)
    assert dominating.type_two(alpha).lower <= function.type_two(alpha)
    less = GaussianTradeOff(mu_squared=(Fraction(mu.lower) * (1 - Fraction(1, 10**9))) ** 2)
    assert any(less.type_two(a).lower > b for a, b in function.vertices if 0 < a < 1)


@given(MUS, INNER)
def test_gaussian_against_sixty_digits(mu_squared: Fraction, alpha: Fraction) -> None:
    found = GaussianTradeOff(mu_squared=mu_squared).type_two(alpha)
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpf(mu_squared.numerator) / mu_squared.denominator)
        level = mpf(alpha.numerator) / alpha.denominator
        truth = mpmath.ncdf(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * level) - mu)
        assert found.lower <= truth <= found.upper
    assert found.width <= 1e-13


def test_composition_groups_and_the_analytic_curve() -> None:
    parts = [GaussianTradeOff(mu_squared=Fraction(n, 7)) for n in (1, 2, 4)]
    total = GaussianTradeOff.composed(parts)
    assert total == GaussianTradeOff(mu_squared=Fraction(1))
    assert total.group(3) == GaussianTradeOff(mu_squared=Fraction(9))
    exact = Gaussian(sigma=1)
    assert total.delta_at(1) == exact.delta_at(1)
    assert total.epsilon_at(Fraction(1, 10**6)) == exact.epsilon_at(Fraction(1, 10**6))
    assert total.type_two(0).lower == 1.0
    assert total.type_two(1).upper == 0.0


def test_what_is_outside_its_domain_is_refused() -> None:
    with pytest.raises(ParameterError, match="mu_squared=0"):
        GaussianTradeOff(mu_squared=Fraction(0))
    gaussian = GaussianTradeOff(mu_squared=Fraction(1))
    for alpha in (math.nan, -0.1, 1.1):
        with pytest.raises(ParameterError, match="alpha="):
            gaussian.type_two(alpha)
    half, third, zero, one = Fraction(1, 2), Fraction(1, 3), Fraction(0), Fraction(1)
    with pytest.raises(ParameterError, match="convex"):
        FiniteTradeOff(vertices=((zero, one), (half, half + third / 2), (one, zero)))
    with pytest.raises(ParameterError, match="falling"):
        FiniteTradeOff(vertices=((zero, third), (half, half), (one, zero)))
    with pytest.raises(ParameterError, match="from type I error 0"):
        FiniteTradeOff(vertices=((zero, one), (half, zero)))
    with pytest.raises(ParameterError, match="of total 5/6"):
        FiniteTradeOff.of_pair([(half, half), (third, half)])
    with pytest.raises(ParameterError, match="non-negative"):
        FiniteTradeOff.of_pair([(-half, half), (one + half, half)])
