"""Laplace noise: its curve, its scale, the theorems on the worst neighbour, and the comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.curves import laplace
from dpverify.accounting.curves.laplace import (
    Laplace,
    majorant,
    scale_laplace,
    scale_laplace_curve,
)
from dpverify.accounting.noise_variances import noise_variances
from dpverify.enclosure import Enclosure, SquareRoot
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import day_and_night, examples

SIZES = st.integers(-30, 30).map(lambda n: Fraction(n, 10))
VECTORS = st.lists(SIZES, min_size=3, max_size=3)
EPSILONS = st.integers(0, 40).map(lambda n: Fraction(n, 10))
CURVES = [
    Laplace.of_shifts(((Fraction(3, 2), 1),)),
    Laplace.of_shifts(((Fraction(1, 3), 6),)),
    Laplace.of_shifts(((Fraction(1, 3), 2), (Fraction(1, 2), 3))),
    Laplace.of_shifts(tuple((Fraction(9, 60 + i), 1) for i in range(30, 0, -1))),  # on the lattice
]
DAY = [*CURVES[:2], *day_and_night(*CURVES[2:])]  # the lattice takes a second


@pytest.fixture(autouse=True, scope="module")
def coarser_lattice() -> Iterator[None]:
    """Of a quarter of the points, which takes a quarter of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "_POINTS", laplace._POINTS >> 2)
        yield


def delta(vector: list[Fraction], epsilon: Fraction) -> Enclosure:
    if not any(vector):
        return Enclosure(0.0, 0.0)
    return Laplace.of_row(vector, scale=1).delta_at(epsilon)


def test_curves_are_privacy_curves_and_the_last_is_on_the_lattice() -> None:
    assert all(isinstance(curve, PrivacyCurve) for curve in CURVES)
    assert [curve.is_exact for curve in CURVES] == [True, True, True, False]


@given(st.integers(1, 500), st.integers(0, 500))
def test_one_coordinate(a: int, e: int) -> None:
    """δ(ε) = 1 − e^((ε−a)/2), and its inverse."""
    shift, epsilon = Fraction(a, 50), Fraction(e, 50)
    curve = Laplace.of_shifts(((shift, 1),))
    value = curve.delta_at(epsilon)
    assert value.lower <= -math.expm1(min(0.0, float(epsilon - shift) / 2)) * (1 + 1e-14)
    assert value.upper >= -math.expm1(min(0.0, float(epsilon - shift) / 2)) * (1 - 1e-14)
    assert value.width < 1e-13 or value.upper == 0
    root = curve.epsilon_at(Fraction(1, 1000))
    expected = max(0.0, float(shift) + 2 * math.log1p(-0.001))
    assert root.lower <= expected * (1 + 1e-12)
    assert root.upper >= expected * (1 - 1e-12)


@pytest.mark.parametrize("curve", day_and_night(*CURVES))
def test_pure_epsilon_is_the_sum_of_the_shifts(curve: Laplace) -> None:
    bound = curve.epsilon_bound
    assert curve.delta_at(bound).upper == 0
    assert curve.delta_at(bound + 1).upper == 0
    assert curve.delta_at(bound * Fraction(999, 1000)).upper > 0
    assert curve.epsilon_at(0) == Enclosure.of_exact(bound)


@pytest.mark.parametrize("curve", DAY)
@pytest.mark.parametrize(
    "target", day_and_night(Fraction(1, 1000), Fraction(1, 10**9), Fraction(1, 10))
)
def test_epsilon_inverts_delta(curve: Laplace, target: Fraction) -> None:
    root = curve.epsilon_at(target)
    assert curve.delta_at(root.upper).upper <= target
    assert curve.delta_at(root.lower).lower >= target
    assert root.width < (1e-12 if curve.is_exact else 1e-5)


@pytest.mark.parametrize("curve", CURVES)
def test_epsilon_approaches_its_bound_for_tiny_delta(curve: Laplace) -> None:
    for target in (Fraction(1, 10**300), Fraction(1, 10**400)):
        root = curve.epsilon_at(target)
        assert root.lower <= curve.epsilon_bound
        assert root.upper <= Enclosure.of_exact(curve.epsilon_bound).upper
        assert root.width < 1e-5


def test_epsilon_is_zero_where_delta_already_is_enough() -> None:
    for curve in CURVES:
        assert curve.epsilon_at(curve.delta_at(0).upper) == Enclosure(0.0, 0.0)
        assert curve.epsilon_at(Fraction(99, 100)) == Enclosure(0.0, 0.0)


def test_hundreds_of_equal_shifts_are_exact() -> None:
    """Against the lattice, and against the central limit that it must be near."""
    curve = Laplace.of_shifts(((Fraction(1, 40), 400),))
    value = curve.delta_at(Fraction(1, 2))
    assert curve.is_exact
    assert value.width < 1e-14
    mu = math.sqrt(400) / 40  # the loss has variance near ‖a‖², as for a Gaussian with μ = ‖a‖
    a, b = mu / 2 - 0.5 / mu, -mu / 2 - 0.5 / mu
    normal = (math.erfc(-a / 2**0.5) - math.exp(0.5) * math.erfc(-b / 2**0.5)) / 2
    assert abs(value.upper / normal - 1) < 0.05


@given(VECTORS, VECTORS, EPSILONS)
@examples(60)
def test_negative_log_of_one_minus_delta_is_convex(
    v: list[Fraction], w: list[Fraction], epsilon: Fraction
) -> None:
    """The theorem behind ℓ1 balls, at midpoints: (1 − δ(mid))² ≥ (1 − δ(v))(1 − δ(w))."""
    middle = [(x + y) / 2 for x, y in zip(v, w, strict=True)]
    least = (1 - delta(v, epsilon).upper) * (1 - delta(w, epsilon).upper)
    assert (1 - delta(middle, epsilon).lower) ** 2 >= least * (1 - 1e-12)


def test_delta_itself_is_not_convex() -> None:
    v, w = [Fraction(1)], [Fraction(5)]
    middle = delta([Fraction(3)], Fraction(1)).lower
    assert middle > (delta(v, Fraction(1)).upper + delta(w, Fraction(1)).upper) / 2


@given(VECTORS, st.integers(0, 2), st.integers(1, 20), EPSILONS, st.integers(0, 30))
@examples(60)
def test_delta_rises_in_every_shift_and_falls_in_epsilon(
    v: list[Fraction], index: int, more: int, epsilon: Fraction, step: int
) -> None:
    larger = list(v)
    larger[index] = abs(larger[index]) + Fraction(more, 10)
    assert delta(v, epsilon).lower <= delta(larger, epsilon).upper
    assert delta(v, epsilon + Fraction(step, 10)).lower <= delta(v, epsilon).upper


@given(st.lists(VECTORS, min_size=1, max_size=4), EPSILONS)
@examples(60)
def test_majorant_is_above_every_row(rows: list[list[Fraction]], epsilon: Fraction) -> None:
    above = majorant(np.array([[int(10 * x) for x in row] for row in rows], dtype=np.int64))
    assert all(x >= y >= 0 for x, y in pairwise(above))
    upper = delta([x / 10 for x in above], epsilon).upper
    assert all(delta(row, epsilon).lower <= upper for row in rows)


def test_majorant_is_exact_where_one_row_majorises_all() -> None:
    rows = np.array([[5, -1, 1], [-2, 3, 2], [0, 0, 4]], dtype=np.int64)
    assert list(majorant(rows)) == [5, 1, 1]
    # Neither of these majorises the other.
    assert list(majorant(np.array([[4, 0], [3, 3]]))) == [4, 2]
    # Without the concave majorant the result would be (4, 1, 1, 2), which is not falling.
    crossed = np.array([[4, 0, 0, 0], [3, 2, 1, 0], [2, 2, 2, 2]])
    assert list(majorant(crossed)) == [4, *[Fraction(4, 3)] * 3]


@pytest.mark.parametrize("noise", [1.0, 0.8])
@pytest.mark.parametrize("threshold", [-3.0, -1.2, 0.0, 0.7, 1.49, 1.6])
def test_rates_of_one_coordinate(threshold: float, noise: float) -> None:
    own, other = CURVES[0].rates(threshold, noise=noise)
    a = 1.5
    s, far = (a - threshold) / 2, (a + threshold) / 2
    exact_own = 0.0 if s < 0 else 1.0 if s >= a else 1 - math.exp(-s / noise) / 2
    exact_other = 0.0 if far > a else 1.0 if far <= 0 else math.exp(-far / noise) / 2
    assert abs(own - exact_own) < 2e-4
    assert abs(other - exact_other) < 2e-4


@pytest.mark.parametrize("curve", DAY)
def test_rates_integrate_to_the_curve(curve: Laplace) -> None:
    """δ(ε) = P[L > ε] − e^ε Q[L > ε] = ∫ e^(ε−t) P[L > t] dt over t > ε."""
    epsilon, bound = 0.25, float(curve.epsilon_bound)
    own, other = curve.rates(epsilon)
    assert abs(own - math.exp(epsilon) * other - curve.delta_at(epsilon).lower) < 1e-3
    grid = np.linspace(epsilon, bound, 4001)
    tails = np.array([curve.rates(t)[0] * math.exp(epsilon - t) for t in grid[::80]])
    assert abs(np.trapezoid(tails, grid[::80]) - curve.delta_at(epsilon).lower) < 0.02


def test_scale() -> None:
    assert scale_laplace(Fraction(1, 4), sensitivity=3) == Enclosure(12.0, 12.0)
    third = scale_laplace(3, sensitivity=1)
    assert third.lower < Fraction(1, 3) < third.upper
    assert third.width < 1e-15
    root = scale_laplace(2, sensitivity=SquareRoot(Fraction(8)))
    assert root.lower < 2**0.5 * (1 + 1e-15)
    assert Fraction(root.lower) ** 2 < 2 < Fraction(root.upper) ** 2


@pytest.mark.parametrize("row", [[3], [1, -2, 2], [1] * 64])
@pytest.mark.parametrize(("epsilon", "target"), [(1, "1e-6"), (0, "0.05"), (4, "0.01")])
def test_scale_on_the_curve(row: list[int], epsilon: int, target: str) -> None:
    scale = scale_laplace_curve(epsilon, Fraction(target), row=row)
    at = Laplace.of_row(row, scale=scale.upper).delta_at(epsilon).upper
    below = Laplace.of_row(row, scale=scale.lower).delta_at(epsilon).lower
    assert at <= Fraction(target) <= below
    assert scale.width < 1e-11
    if epsilon:
        assert scale.upper <= scale_laplace(epsilon, sensitivity=sum(map(abs, row))).upper
    assert scale_laplace_curve(1, 0, row=row) == scale_laplace(1, sensitivity=sum(map(abs, row)))


@pytest.mark.parametrize("entries", day_and_night(5, 20, 26))
def test_scale_of_unlike_sizes_is_certified(entries: int) -> None:
    row = [20 + i for i in range(entries)]
    scale = scale_laplace_curve(1, Fraction(1, 10**6), row=row)
    assert Laplace.of_row(row, scale=scale.upper).delta_at(1).upper <= Fraction(1, 10**6)
    assert Laplace.of_row(row, scale=scale.lower).delta_at(1).lower >= Fraction(1, 10**6)
    assert scale.width < 1e-5


def test_comparison_with_gaussian_noise() -> None:
    """One coordinate favours Laplace noise; many equal ones, with δ to spend, Gaussian noise."""
    one = noise_variances(1, Fraction(1, 10**6), row=[1])
    assert one.pure_laplace == Enclosure(2.0, 2.0)
    assert one.laplace.upper <= 2
    assert one.gaussian.lower > 8 * one.pure_laplace.upper
    many = noise_variances(1, Fraction(1, 10**6), row=[1] * 256)
    assert many.gaussian.upper < many.laplace.lower < many.pure_laplace.lower
    assert noise_variances(1, 0, row=[1, 1]).gaussian == Enclosure(math.inf, math.inf)


@pytest.mark.parametrize("bad", [float("nan"), -1])
def test_bad_values(bad: Any) -> None:
    for call in (
        lambda: scale_laplace(bad),
        lambda: scale_laplace(1, sensitivity=bad),
        lambda: scale_laplace_curve(bad, Fraction(1, 10), row=[1]),
        lambda: scale_laplace_curve(1, bad, row=[1]),
        lambda: Laplace.of_row([1], scale=bad),
        lambda: Laplace.of_shifts(()),
        lambda: Laplace.of_shifts(((Fraction(-1), 1),)),
        lambda: Laplace.of_shifts(((Fraction(1), 0),)),
        lambda: Laplace.of_row([0, 0], scale=1),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(ParameterError):
        scale_laplace_curve(0, 0, row=[1])
