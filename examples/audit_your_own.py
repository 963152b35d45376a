"""Audit a function of your own: a mean of clipped values, right and wrong.

    python examples/audit_your_own.py

The same in pytest:

    @pytest.mark.dp_audit(epsilon=1, adjacency=Record(), of="dataset")
    def test_clipped_mean(dp_audit):
        dp_audit(clipped_mean, domain=UNIT, rows=(1, 10), attributes=1)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Record
from dpverify.data.domain import Box

UNIT = Box(low=Fraction(0), high=Fraction(1))


def clipped_mean(data: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Mean of n values in [0, 1]: one record that is replaced moves it by 1/n at most; ε is 1."""
    return float(np.clip(data, 0, 1).mean() + rng.laplace(scale=1 / len(data)))


def clipped_mean_of_too_little_noise(data: NDArray[np.float64], rng: np.random.Generator) -> float:
    """The same with noise that falls with n²: ε is n, which one record alone doesn't show."""
    return float(np.clip(data, 0, 1).mean() + rng.laplace(scale=1 / len(data) ** 2))


def main() -> None:
    for function in (clipped_mean, clipped_mean_of_too_little_noise):
        mechanism: Any = adapt(
            function,
            of="dataset",
            adjacency=Record(),
            claim=ApproxDP(epsilon=Fraction(1)),
            domain=UNIT,
            rows=(1, 10),
            attributes=1,
        )
        # Both add doubles, which the precision audit refutes; here it is about the scale.
        kinds: Any = ("grey-box", "determinism", "black-box", "sequential")
        report = audit(mechanism, draws=2000, seed=1, kinds=kinds, workers=1)
        print(report)


if __name__ == "__main__":
    main()
