"""What the ledger of the slides builds on."""

import pytest
from flint import arb

from dpverify.ledger.oracles import integral
from dpverify_audits.papers.slides2025 import rows


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
