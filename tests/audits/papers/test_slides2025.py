"""What the ledger of the slides builds on."""

import pytest
from flint import arb

from dpverify_audits.papers.slides2025 import rows


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
