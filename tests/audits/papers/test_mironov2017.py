"""What the ledger of Mironov 2017 says in words, in doubles."""

from __future__ import annotations

import math

import numpy as np
import pytest

RESTRICTED = np.array([1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 16, 32, 64])
ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 500), np.geomspace(2, 300, 3000)])


def mixed(order: np.ndarray) -> np.ndarray:
    """Figure 3's curve: responses of .52, Laplace noise of scale 20, Gaussian noise of 10."""
    kept, turned = 0.52, 0.48
    response = np.log(kept**order * turned ** (1 - order) + turned**order * kept ** (1 - order))
    laplace = np.log(
        order / (2 * order - 1) * np.exp((order - 1) / 20)
        + (order - 1) / (2 * order - 1) * np.exp(-order / 20)
    )
    return np.asarray((response + laplace) / (order - 1) + order / 200)


@pytest.mark.parametrize(("baseline", "cost"), [(0.1, 1.02), (1e-3, 1.06), (1e-6, 1.15)])
def test_what_the_restricted_orders_of_figure_3_cost(baseline: float, cost: float) -> None:
    def least(count: int, orders: np.ndarray) -> float:
        log = math.log(baseline)
        return float(np.min((count * mixed(orders) + log) * (1 - 1 / orders)))

    worst = max(least(n, RESTRICTED) - least(n, ORDERS) for n in range(1, 101))
    assert cost - 0.01 < math.exp(worst) <= cost


@pytest.mark.parametrize(("epsilon", "last"), [(math.log(51 / 49), 218), (1 / 20, 140)])
def test_up_to_where_proposition_4_is_the_better_one(epsilon: float, last: int) -> None:
    deltas = np.geomspace(1e-14, 1, 20_000)

    def better(n: int) -> bool:
        less = np.sqrt(2 * n * np.log(1 / deltas)) * epsilon + n * epsilon * math.expm1(epsilon)
        standard = float(np.log(np.exp(less) + deltas / 0.1).min())
        return 2 * epsilon * math.sqrt(n * math.log(10)) < standard

    assert [n for n in range(1, 251) if better(n)] == list(range(1, last + 1))


@pytest.mark.parametrize(("constant", "proven"), [(2.0, False), (0.5, True)])
def test_the_proof_of_proposition_4_needs_the_better_constant(
    constant: float, proven: bool
) -> None:
    """D_α ≤ cαnε² at α = √L/(ε√n) against the exponent 2ε√(nL), wherever L ≥ ε²n."""
    epsilons, logs = np.meshgrid(np.geomspace(1e-3, 1, 20), np.geomspace(1e-2, 40, 40))
    covered = logs >= epsilons**2
    order = np.sqrt(logs) / epsilons
    exponent = constant * (order - 1) * epsilons**2 + logs / order
    holds = exponent <= 2 * epsilons * np.sqrt(logs)
    assert bool(np.all(holds[covered])) is proven
