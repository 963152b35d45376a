"""What library-nightly.yml audits: a library's mechanisms, each with its claim, and its accountant.

dpverify audit audited:SUITE --profile nightly
"""

from __future__ import annotations

import math
from typing import Any

import dpverify as dpv

PEOPLE = dpv.Table({"age": dpv.Integers(0, 120)}, rows=(0, 20))


def count(rows: list[dict[str, Any]], rng: Any) -> int:
    """How many are of age, with noise of the two-sided geometric law, ε = 1."""
    stop = 1 - math.exp(-1)
    noise = rng.geometric(stop) - rng.geometric(stop)
    return int(sum(row["age"] >= 18 for row in rows) + noise)


def spent(queries: int, delta: float) -> float:
    """The library's accountant: ε of so many counts, by advanced composition or by adding up."""
    advanced = math.sqrt(2 * queries * math.log(1 / delta)) + queries * math.expm1(1)
    return min(float(queries), advanced)


class Accountant:
    """A target with a method `audited` brings its own report."""

    name = "spent"

    def audited(self, *, alpha: float) -> Any:
        """A level isn't needed: both sides are numbers."""
        return dpv.audit_accountant(
            spent,
            {"queries": [1, 10, 100], "delta": [1e-6]},
            curve=lambda queries: queries * dpv.ApproxDP(epsilon=1),
            solves="epsilon",
        )


SUITE = [
    dpv.adapt(
        count,
        claim=dpv.ApproxDP(epsilon=1),
        adjacency=dpv.AddRemove(),
        domain=PEOPLE,
        of="dataset",
        name="count",
    ),
    Accountant(),
]
