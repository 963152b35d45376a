"""Budgets spent twice, and noise that comes again.

ε adds up. Whoever answers again pays again, with new noise; whoever doesn't draw new noise has paid
for nothing.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

import numpy as np

from dpverify.data.adjacency import Replace
from dpverify.data.columns import Booleans, Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit

__all__ = ["EXHIBITS", "NAME"]

NAME = "Budgets"
_PEOPLE = Table({"age": Reals(0, 1), "income": Reals(0, 1)}, rows=(0, 10), make="numpy")
_SIZED = Table(_PEOPLE.columns, rows=4, make="numpy")
_ONE = Table({"bit": Booleans()}, rows=1)
_AGES = Table({"age": Integers(0, 100)}, rows=(0, 10), make="numpy")


def _sums(x: Any, rng: Any, *, scale: float) -> Any:
    """Sums of both columns."""
    return [float(column.sum() + rng.laplace(scale=scale)) for column in x.T]


def _regression(x: Any, rng: Any, *, share: float) -> Any:
    """Means that centre both columns, and their product, with parts of one budget."""
    centre = x.mean(axis=0) + rng.laplace(scale=1 / 4 / share, size=2)
    product = (x[:, 0] * x[:, 1]).mean() + rng.laplace(scale=1 / 4 / share)
    return [*centre.tolist(), float(product)]


def _reports(rows: Any, rng: Any, *, days: int, epsilon: float) -> Any:
    """One person's bit, by randomized response with new coins every day."""
    keep = np.exp(epsilon) / (1 + np.exp(epsilon))
    return [bool(rows[0]["bit"] ^ (rng.random() > keep)) for _ in range(days)]


def _sticky(x: Any, rng: Any, *, sticky: bool) -> float:
    """A count whose noise is drawn by a seed that the rows make."""
    ages = np.sort(x[x > 18])
    if sticky:
        rng = np.random.default_rng(zlib.crc32(ages.tobytes()))
    return float(len(ages) + rng.laplace())


def _stateful(x: Any, rng: Any, *, charges: bool) -> Any:
    """A query that is charged less where the data allow, and the odometer, which is published."""
    spent = 0.5 if charges and np.any(x > 90) else 1.0
    return float(np.sum(x > 18) + rng.laplace()), 10.0 - spent


def _seeded(x: Any, rng: Any, *, seed: int | None) -> float:
    if seed is not None:
        rng = np.random.default_rng(seed)
    return float(np.sum(x > 18) + rng.laplace())


def _asked_again(x: Any, rng: Any, *, times: int, scale: float) -> Any:
    """One question, asked several times and answered with new noise."""
    return [float(np.sum(x > 18) + rng.laplace(scale=scale)) for _ in range(times)]


EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "Spent twice",
        "Two parts of one model each spend the whole budget.",
        "ε is 2 where 1 is on the label.",
        broken=partial(_sums, scale=1),
        correct=partial(_sums, scale=2),
        source="MOSTLY AI; dp-recorder, PETS 2026 (arXiv:2602.17454), test_double_spending",
        domain=_PEOPLE,
    ),
    exhibit(
        "A slice of the budget, shared by nobody's knowledge",
        "Centring and the regression take the same slice.",
        "What was paid once is used three times.",
        broken=partial(_regression, share=1),
        correct=partial(_regression, share=1 / 3),
        source="diffprivlib, LinearRegression and others; issue 104",
        domain=_SIZED,
        adjacency=Replace(),
    ),
    exhibit(
        "A budget that is new every day",
        "ε is said for one report, and reports come daily.",
        "A week of reports outvotes the coins.",
        broken=partial(_reports, days=7, epsilon=1),
        correct=partial(_reports, days=7, epsilon=1 / 7),
        source="Tang, Korolova, Bai, Wang and Wang, 2017 (arXiv:1709.02753)",
        domain=_ONE,
        adjacency=Replace(),
    ),
    exhibit(
        "Sticky noise",
        "Noise is seeded by the rows that a query selects, so that to ask again is of no use.",
        "Equal data get equal noise: one more person gives another number, for certain.",
        broken=partial(_sticky, sticky=True),
        correct=partial(_sticky, sticky=False),
        source="Gadotti and others, USENIX Security 2019 (arXiv:1804.06752), on Diffix",
        domain=_AGES,
        found_by=("determinism",),
    ),
    exhibit(
        "What is left of the budget",
        "The charge for a query depends on the data, and the balance is shown.",
        "The balance answers a question that nobody paid for.",
        broken=partial(_stateful, charges=True),
        correct=partial(_stateful, charges=False),
        source="Haeberlen, Pierce and Narayan, USENIX Security 2011: budget attacks",
        domain=_AGES,
    ),
    exhibit(
        "The same seed every time",
        "The generator starts at a constant, left over from a test.",
        "Whoever has the program subtracts the noise.",
        broken=partial(_seeded, seed=42),
        correct=partial(_seeded, seed=None),
        source="Garfinkel and Leclerc, WPES 2020 (arXiv:2009.03777), on randomness in deployment",
        domain=_AGES,
        found_by=("determinism",),
    ),
    exhibit(
        "Asked ten times",
        "Each answer is ε-private, and the average of ten is nearly the truth.",
        "Noise cancels out.",
        broken=partial(_asked_again, times=10, scale=1),
        correct=partial(_asked_again, times=10, scale=10),
        source="after Dinur and Nissim, PODS 2003",
        domain=_AGES,
    ),
)
