"""Composition theorems against enumeration, against each other, and against exact curves."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from dpverify.accounting.composition.theorems import (
    AdvancedBound,
    ApproximateOptimalBound,
    BasicBound,
    OptimalBound,
    Points,
    SimplifiedOptimalBound,
    applicable_bounds,
)
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.losses.base import Log
from dpverify.enclosure import Enclosure
from dpverify.errors import NumericalError, ParameterError

ONE = Fraction(1)
PROBABILITIES = st.fractions(min_value=0, max_value=Fraction(1, 10), max_denominator=1000)
NATS = st.fractions(min_value=0, max_value=3, max_denominator=100)
POINTS = st.lists(
    st.builds(ApproxDP, epsilon=NATS, delta=PROBABILITIES), min_size=1, max_size=5
).map(tuple)


def nats(*bounds: str, leak: str = "0") -> Points:
    return tuple(ApproxDP(epsilon=Fraction(b), delta=Fraction(leak)) for b in bounds)


def ratio(value: str, leak: str = "0") -> ApproxDP:
    return ApproxDP.from_odds(odds=Fraction(value), delta=Fraction(leak))


def real(value: Fraction) -> Any:
    return mpf(value.numerator) / value.denominator


def holds(found: Enclosure, value: Any) -> bool:
    return bool(mpf(found.lower) <= value <= mpf(found.upper))


def laws(points: Points) -> list[tuple[Fraction, Fraction]]:
    """Exact (P, Q) of every outcome of the worst mechanisms of points with rational ratios."""
    single = []
    for point in points:
        odds = point.epsilon.argument if isinstance(point.epsilon, Log) else Fraction(1)
        p = (1 - point.delta) * odds / (1 + odds)
        q = (1 - point.delta) / (1 + odds)
        single.append([(point.delta, Fraction(0)), (p, q), (q, p), (Fraction(0), point.delta)])
    return [
        (
            math.prod((p for p, _ in outcome), start=ONE),
            math.prod((q for _, q in outcome), start=ONE),
        )
        for outcome in itertools.product(*single)
    ]


RATIONAL = [
    (ratio("3"),) * 4,
    (ratio("3", "1/50"),) * 3,
    (ratio("3/2"), ratio("5"), ratio("7/4"), ratio("5")),
    (ratio("3/2", "1/100"), ratio("5", "1/7"), ratio("7/4"), ratio("1", "1/20")),
    (ratio("4"), ratio("2"), ratio("2"), ratio("8")),  # losses on one lattice: ties
]


@pytest.mark.parametrize("points", RATIONAL)
def test_optimal_is_the_enumerated_composition(points: Points) -> None:
    bound, outcomes = OptimalBound(points=points), laws(points)
    assert sum(p for p, _ in outcomes) == 1
    with mpmath.workdps(60):
        for eps in ["0", "1/10", "1/2", "1", "2", "7/2", "20"]:
            factor = mpmath.exp(real(Fraction(eps)))
            gains = (real(p) - factor * real(q) for p, q in outcomes)
            truth = mpmath.fsum(max(gain, mpf(0)) for gain in gains)
            found = bound.delta_at(Fraction(eps))
            assert holds(found, truth)
            assert found.width <= 1e-13


@pytest.mark.parametrize("points", RATIONAL)
def test_optimal_inverse_is_the_enumerated_one(points: Points) -> None:
    bound = OptimalBound(points=points)
    outcomes = sorted(laws(points), key=lambda o: o[0] / o[1] if o[1] else math.inf, reverse=True)
    leak = 1 - math.prod(1 - point.delta for point in points)
    with mpmath.workdps(60):
        for share in ["0", "1/10000", "1/30", "1/5", "1/2"]:
            delta = leak + Fraction(share) * (1 - leak)
            best, p, q = Fraction(1), Fraction(0), Fraction(0)
            for own, other in outcomes:
                p, q = p + own, q + other
                if q:
                    best = max(best, (p - delta) / q)
            found = bound.epsilon_at(delta)
            assert holds(found, mpmath.log(real(best)))
            assert found.width <= 1e-13
    if leak:
        below = bound.epsilon_at(leak * Fraction(99, 100))
        assert below.lower == math.inf


@pytest.mark.parametrize(("eps", "leak", "count"), [("0.1", "1e-6", 30), ("1/3", "0", 7)])
def test_kairouz_theorem_as_printed(eps: str, leak: str, count: int) -> None:
    bound = OptimalBound(points=nats(*[eps] * count, leak=leak))
    assert "homogeneous" in bound.theorem
    with mpmath.workdps(60):
        e, d = real(Fraction(eps)), real(Fraction(leak))
        for i in range(count // 2 + 1):
            delta_i = (
                mpmath.fsum(
                    mpmath.binomial(count, j)
                    * (mpmath.exp((count - j) * e) - mpmath.exp((count - 2 * i + j) * e))
                    for j in range(i)
                )
                / (1 + mpmath.exp(e)) ** count
            )
            found = bound.delta_at((count - 2 * i) * Fraction(eps))
            assert holds(found, 1 - (1 - d) ** count * (1 - delta_i))


def test_murtagh_theorem_as_printed() -> None:
    bounds, leaks = ["0.3", "0.45", "0.2", "0.7", "0.3"], ["0.01", "0", "0.02", "0.03", "0"]
    pairs = zip(bounds, leaks, strict=True)
    points = tuple(ApproxDP(epsilon=Fraction(b), delta=Fraction(d)) for b, d in pairs)
    bound = OptimalBound(points=points)
    assert "heterogeneous" in bound.theorem
    with mpmath.workdps(60):
        values = [real(Fraction(b)) for b in bounds]
        for eps in ["0", "0.4", "1.1", "1.9"]:
            total = mpf(0)
            for inside in itertools.product([True, False], repeat=len(values)):
                chosen = mpmath.fsum(v for v, take in zip(values, inside, strict=True) if take)
                left = mpmath.fsum(values) - chosen
                gain = mpmath.exp(chosen) - mpmath.exp(real(Fraction(eps))) * mpmath.exp(left)
                total += max(gain, mpf(0))
            total /= mpmath.fprod(1 + mpmath.exp(v) for v in values)
            rest = mpmath.fprod(1 - real(Fraction(d)) for d in leaks)
            assert holds(bound.delta_at(Fraction(eps)), 1 - (1 - total) * rest)


def test_closed_forms_as_printed() -> None:
    points = nats(*["0.1"] * 50, leak="1e-8")
    with mpmath.workdps(60):
        e, t, slack = mpf(1) / 10, 50, mpf("1e-5") - 50 * mpf("1e-8")
        drv = mpmath.sqrt(2 * t * mpmath.log(1 / slack)) * e + t * e * mpmath.expm1(e)
        assert holds(AdvancedBound(points=points).epsilon_at(Fraction("1e-5")), drv)
        slack = 1 - (1 - mpf("1e-5")) / (1 - mpf("1e-8")) ** t
        mean = t * e * mpmath.expm1(e) / (mpmath.exp(e) + 1)
        kov = mean + mpmath.sqrt(2 * t * e * e * mpmath.log(1 / slack))
        assert holds(SimplifiedOptimalBound(points=points).epsilon_at(Fraction("1e-5")), kov)
    assert 5 in BasicBound(points=points).epsilon_at(Fraction(50, 10**8))


def test_a_thousand_equal_points_are_exact_randomized_response() -> None:
    points = (ratio("3"),) * 1000
    exact = RandomizedResponse(keep=Fraction(3, 4), other=Fraction(1, 4), positions=1000)
    for delta in (Fraction(1, 10**6), Fraction(1, 10**250)):
        ours, theirs = OptimalBound(points=points).epsilon_at(delta), exact.epsilon_at(delta)
        assert ours.lower <= theirs.upper
        assert theirs.lower <= ours.upper
        assert ours.width <= 1e-13


@given(POINTS, st.fractions(min_value=0, max_value=8, max_denominator=50))
def test_no_bound_is_below_the_optimum(points: Points, epsilon: Fraction) -> None:
    optimum = OptimalBound(points=points).delta_at(epsilon)
    for bound in applicable_bounds(points):
        assert bound.delta_at(epsilon).upper >= optimum.lower


@given(POINTS, st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(99, 100)))
def test_delta_and_epsilon_are_inverse(points: Points, delta: Fraction) -> None:
    for bound in applicable_bounds(points):
        found = bound.epsilon_at(delta)
        if found.upper == math.inf:
            assert bound.delta_at(10**6).upper >= delta
            continue
        assert bound.delta_at(found.upper).lower <= delta
        if found.lower > 0:  # it is the smallest ε: a little less is not enough
            assert bound.delta_at(found.lower * (1 - 1e-12)).upper >= delta


@given(POINTS, st.randoms(use_true_random=False), NATS)
def test_order_is_free_and_more_releases_lose_more(
    points: Points, random: Any, epsilon: Fraction
) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)
    for first, second in zip(
        applicable_bounds(points), applicable_bounds(tuple(shuffled)), strict=True
    ):
        one, other = first.delta_at(epsilon), second.delta_at(epsilon)
        assert one.lower <= other.upper
        assert other.lower <= one.upper
    total = OptimalBound(points=points).delta_at(epsilon)
    assert OptimalBound(points=points[:-1] or points).delta_at(epsilon).lower <= total.upper


@given(POINTS, NATS, st.integers(min_value=5, max_value=2000))
def test_approximation_holds_the_optimum(points: Points, epsilon: Fraction, cells: int) -> None:
    if all(point.epsilon == 0 for point in points):
        return
    around, optimum = (
        ApproximateOptimalBound(points=points, cells=cells),
        OptimalBound(points=points),
    )
    outer, inner = around.delta_at(epsilon), optimum.delta_at(epsilon)
    assert outer.lower <= inner.lower
    assert inner.upper <= outer.upper
    delta = optimum.delta_at(Fraction(1, 4)).upper
    if delta < 1:
        wide, narrow = around.epsilon_at(delta), optimum.epsilon_at(delta)
        assert wide.lower <= narrow.upper
        assert narrow.lower <= wide.upper


def test_many_distinct_points_with_and_without_a_common_step() -> None:
    points = tuple(ApproxDP(epsilon=Fraction(100 + i, 1000)) for i in range(300))
    delta = Fraction(1, 10**6)
    exact = ApproximateOptimalBound(points=points).epsilon_at(delta)  # 74,850 steps of 1/1000
    rough = ApproximateOptimalBound(points=points, cells=1 << 14).epsilon_at(delta)
    assert exact.width <= 1e-11
    assert rough.lower < exact.lower
    assert exact.upper < rough.upper
    assert rough.width <= 0.03
    assert rough.upper < SimplifiedOptimalBound(points=points).epsilon_at(delta).lower


def test_the_common_step_loses_nothing() -> None:
    points = nats(*["0.1"] * 200, *["0.25"] * 100, leak="1e-9")
    delta = Fraction(1, 10**6)
    found = ApproximateOptimalBound(points=points).epsilon_at(delta)
    optimum = OptimalBound(points=points).epsilon_at(delta)
    assert found.width <= 1e-11
    assert found.lower <= optimum.lower <= optimum.upper <= found.upper


def test_points_without_any_loss_leave_only_their_leaks() -> None:
    for points in (nats("0", "0", leak="1/10"), (ratio("1", "1/10"),) * 2):
        assert Fraction(19, 100) in OptimalBound(points=points).delta_at(0)
        assert OptimalBound(points=points).epsilon_at(Fraction(1, 5)).upper == 0.0


@given(NATS, PROBABILITIES, NATS)
def test_one_release_is_its_points_own_curve(
    bound: Fraction, leak: Fraction, eps: Fraction
) -> None:
    point = ApproxDP(epsilon=bound, delta=leak)
    one, other = OptimalBound(points=(point,)).delta_at(eps), point.delta_at(eps)
    assert one.lower <= other.upper
    assert other.lower <= one.upper


def test_applicable_bounds_are_those_whose_conditions_hold() -> None:
    def kinds(points: Points) -> list[str]:
        return [type(bound).__name__ for bound in applicable_bounds(points)]

    advanced = ["BasicBound", "AdvancedBound", "SimplifiedOptimalBound", "OptimalBound"]
    assert kinds(nats("1", "1")) == advanced
    assert kinds(nats("1", "2")) == [advanced[0], *advanced[2:]]
    assert kinds(nats("0", "0")) == ["BasicBound", "OptimalBound"]
    many = nats(*(f"{i}/7" for i in range(1, 20)))
    assert kinds(many) == ["BasicBound", "SimplifiedOptimalBound", "ApproximateOptimalBound"]
    assert len({bound.theorem for bound in applicable_bounds(nats("1", "1"))}) == 4


def test_logarithms_beside_nats() -> None:
    points = (ratio("3"), *nats("0.5"))
    assert math.log(3) + 0.5 == pytest.approx(
        BasicBound(points=points).epsilon_at(0).upper, rel=1e-15
    )
    for bound in (OptimalBound(points=points), ApproximateOptimalBound(points=points)):
        found = bound.epsilon_at(Fraction(1, 100))
        assert found.lower <= OptimalBound(points=points).epsilon_at(Fraction(1, 100)).upper
        assert found.width < 1e-4
    # ln 3 is not a multiple of a double next to it: the lattice must not be of its own size.
    ten = (ratio("3"),) * 10
    around, optimum = ApproximateOptimalBound(points=ten), OptimalBound(points=ten)
    wide, narrow = around.epsilon_at(Fraction(1, 100)), optimum.epsilon_at(Fraction(1, 100))
    assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper
    assert wide.width < 1e-3


def test_leaks_that_add_up_to_one_prove_nothing() -> None:
    points = nats(*["0.1"] * 4, leak="0.3")
    assert BasicBound(points=points).delta_at(1) == Enclosure(1.0, 1.0)
    assert BasicBound(points=points).epsilon_at(Fraction(99, 100)).lower == math.inf
    assert OptimalBound(points=points).epsilon_at(Fraction(99, 100)).upper < 0.4


def test_bad_input() -> None:
    with pytest.raises(ParameterError, match="points=none must be at least one release"):
        OptimalBound(points=())
    with pytest.raises(ParameterError, match="of 2 kinds must be equal"):
        AdvancedBound(points=nats("1", "2"))
    with pytest.raises(ParameterError, match="of at most 200000"):
        OptimalBound(points=nats(*(f"{i}/7" for i in range(1, 20))))
    with pytest.raises(ParameterError, match="all of epsilon 0"):
        SimplifiedOptimalBound(points=nats("0", "0"))
    with pytest.raises(NumericalError):
        ApproximateOptimalBound(points=nats(*["2"] * 1000)).epsilon_at(Fraction(1, 10**250))
