"""What the ledger of the slides builds on."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from scipy.stats import binom, chi2

from dpverify.ledger.oracles import integral
from dpverify_audits.papers.slides2025 import graphs, rows


@pytest.mark.parametrize("gamma", [0.5, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_the_exact_account_of_two_rows_is_the_integral_over_the_sum_of_squares(
    gamma: float, epsilon: float
) -> None:
    spread, e = 1 + arb(gamma), arb(epsilon)
    start = (2 * e + 2 * spread.log()) * spread / gamma
    least = integral(
        lambda s: (-s / (2 * spread)).exp() / (2 * spread) - e.exp() * (-s / 2).exp() / 2,
        start,
        start + 300 * spread,
    )
    assert float(rows._exact_delta(2, arb(gamma), e)) == pytest.approx(float(least), 1e-12)


@pytest.mark.parametrize("ratio", [2, 5])
@pytest.mark.parametrize("count", [2, 32])
def test_the_bound_for_two_columns_is_above_the_exact_account_of_one(
    ratio: int, count: int
) -> None:
    for tenths in (1, 20, 80):
        epsilon = arb(tenths) / 10
        exact = rows._exact_delta(count, arb(ratio - 1), epsilon)
        above = [
            rows._chernoff(count, pair, epsilon)
            for pair in ((arb(ratio), arb(1)), (1 / arb(ratio), arb(1)))
        ]
        assert exact <= above[0].max(above[1])


def test_where_flipped_bits_are_told_best_by_absolute_error() -> None:
    """Estimates of distances of 100 bits, each flipped with 1/4, cut to [0, 100]."""
    d, stays = 100, 10 / 16
    seen = np.arange(d + 1)
    estimate = np.clip((seen - 2 * d * 3 / 16) * 4, 0, d)

    def error(distance: int) -> float:
        apart = binom.pmf(seen, distance, stays)
        law = np.convolve(apart, binom.pmf(seen, d - distance, 1 - stays))[: d + 1]
        return float(law @ np.abs(estimate - distance))

    assert error(0) < error(25) < error(50) > error(75) > error(100)


@pytest.mark.parametrize(("attributes", "millions"), [(10, 0.67), (10**6, 1.8)])
def test_what_noise_for_more_attributes_costs(attributes: int, millions: float) -> None:
    longest = chi2.isf(-math.expm1(-math.log(2) / attributes), 64) / 64  # its median, squared
    s2 = 2 * (math.log(5e5) + 1) * longest
    assert round((2 * 10**2 / 64 + 8 * s2 * 10 + 8 * s2**2 * 64) / 1e6, 2) == millions


def test_the_smoothing_of_170_rows() -> None:
    assert round(float(graphs.published_floor(Fraction(1), Fraction(1, 10**6), 170))) == 5714
