"""What the ledger of Kenthapadi et al. 2013 says in words, in doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

L = math.log(1e6)


def theorem_1(epsilon: float) -> float:
    """σ² at w₂ = 1 and δ = 10⁻⁶."""
    return 2 * (math.log(5e5) + epsilon) / epsilon**2


def variance(k: float, r2: float, s2: float) -> float:
    """Theorem 2's, part 2."""
    return 2 * r2**2 / k + 8 * s2 * r2 + 8 * s2**2 * k


def far_from_one(kind: str, d: int, k: int) -> float:
    """P(|w₂(P) − 1| > 1/4) of d rows of k entries of variance 1/k."""
    if kind == "normal":
        high, low = chi2.sf(25 * k / 16, k), chi2.cdf(9 * k / 16, k)
    else:  # entries of √(3/k) or 0, a third of them not 0
        high, low = binom.sf(25 * k / 48, k, 1 / 3), binom.cdf(9 * k / 48, k, 1 / 3)
    return float(-np.expm1(d * np.log1p(-high)) + low**d)


@pytest.mark.parametrize("kind", ["normal", "sparse"])
def test_from_where_on_sensitivities_are_near_one(kind: str) -> None:
    enough = [(d, math.ceil(50 * math.log(10 * d))) for d in (1, 2, 10, 1000, 10**6, 10**9)]
    assert all(far_from_one(kind, d, k) < 0.01 for d, k in enough)
    assert round(chi2.cdf(100, 64) ** 1000, 2) == 0.07


def test_from_how_many_numbers_on_gaussian_noise_is_the_smaller_one() -> None:
    assert theorem_1(1) < 2 * 15
    assert theorem_1(1) > 2 * 14


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 21_172), (1, 243), (5, 34)])
def test_how_many_users_projection_needs(epsilon: float, ratio: int) -> None:
    s2 = theorem_1(epsilon)
    users = [n for n in (ratio - 1, ratio) if variance(1000, 2000, s2) < n * 1000 * s2]
    assert users == [ratio]


def test_deviations_in_the_near_range() -> None:
    s2, kept = 4 * math.log(100), math.tanh(0.5)
    flipped = (1 - kept**2) / 2
    assert round(variance(64, 8, s2) ** 0.5) == 418
    assert round(variance(64, 101, s2) ** 0.5) == 435
    assert round((1e6 * flipped * (1 - flipped)) ** 0.5 / kept**2) == 2287


@pytest.mark.parametrize(("r", "x", "times"), [(1e6, L**0.5, 6.07), (1e6, 200, 1.633 * 200)])
def test_how_far_the_printed_optimum_is_from_the_best_one(r: float, x: float, times: float) -> None:
    """(4) without what k doesn't change, at σ = 1, where λ_JL is below ½."""
    k = np.geomspace(24 * x * x, 1e16, 400_000)
    error = 6**0.5 * x * r * (r + 4 * x) / k**0.5 + 4 * x * k**0.5
    assert x * r * r / k[np.argmin(error)] == pytest.approx(times, rel=0.03)
