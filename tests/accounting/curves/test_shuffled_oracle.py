"""The curve of shuffled answers against sums over all numbers of tokens, with mpmath."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from mpmath import mpf

import dpverify as dpv
from tests.helpers.profiles import day_and_night


def delta(epsilon_0: Any, users: int, rho: Any, epsilon: Any) -> Any:
    """Of the pair's definition: both laws' masses at each (c, a), without their ratio or tails."""
    e, y = mpmath.exp(-epsilon_0), mpmath.exp(epsilon)
    total = mpf(0)
    for c in range(users):
        weight = mpmath.binomial(users - 1, c) * rho**c * (1 - rho) ** (users - 1 - c)
        coins = [mpmath.binomial(c, heads) / mpf(2) ** c for heads in range(c + 1)]
        for first, second in zip([0, *coins], [*coins, 0], strict=True):
            p, q = (first + e * second) / (1 + e), (e * first + second) / (1 + e)
            total += weight * max(p - y * q, mpf(0))
    return total


@pytest.mark.parametrize(
    ("epsilon_0", "users", "epsilon"),
    day_and_night(
        ("1", 40, "0.25"),
        ("0.25", 60, "0"),
        ("1", 150, "0.75"),
        ("4", 150, "1"),
        ("0.001", 100, "0.0001"),
        ("8", 120, "7.5"),
    ),
)
@pytest.mark.parametrize("response", [False, True])
def test_delta_of_shuffled_reports_by_summation(
    epsilon_0: str, users: int, epsilon: str, *, response: bool
) -> None:
    with mpmath.workdps(60):
        known = mpf(epsilon_0)
        e = mpmath.exp(-known)
        if response:
            keep = Fraction(str(1 / (1 + e)))
            curve, rho = dpv.RandomizedResponse(keep=keep).shuffled(users=users), 2 * e / (1 + e)
        else:
            curve, rho = dpv.ApproxDP(epsilon=epsilon_0).shuffled(users=users), e
        found, exact = curve.delta_at(epsilon), delta(known, users, rho, mpf(epsilon))
        assert found.width < 1e-13
        assert abs(mpf(found.upper) / exact - 1) < 1e-12
