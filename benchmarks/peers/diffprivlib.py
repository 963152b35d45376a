"""IBM's diffprivlib: its `BudgetAccountant`, which composes by theorem 3.5 of Kairouz et al.

It composes spends (ε, δ) and has no curve of a mechanism, so pure mechanisms spend (ε₀, 0) and all
of δ is given as the slack; for the Gaussian there is nothing that it says without a choice of spend
that its user has to make, and no question for δ. Spends are rounded up.
"""

from __future__ import annotations

import math

from diffprivlib.accountant import BudgetAccountant

from benchmarks.peers.protocol import Case, Method, serve


def budget(case: Case) -> float | None:
    if case.mechanism == "gaussian" or case.solve == "delta":
        return None
    if case.mechanism == "laplace":
        spends = [1 / b for b in case.parameters]
    else:
        # Both differences are exact, so that only a few last digits are open.
        spends = [math.log1p((2 * p - 1) / (1 - p)) for p in case.parameters]
    spent = [(spend * (1 + 2**-50), 0) for spend in spends] * case.count
    return float(BudgetAccountant().total(spent_budget=spent, slack=case.given)[0])


if __name__ == "__main__":
    serve("diffprivlib", {"budget": Method(claim="upper", answer=budget)})
