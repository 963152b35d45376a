"""Audit a function of your own: a mean of clipped values, right and wrong.

    python examples/audit_your_own.py

The same in pytest:

    @pytest.mark.dp_audit(epsilon=1, adjacency=AttributeAdjacency(beta=1), attributes=10)
    def test_clipped_mean(dp_audit):
        dp_audit(clipped_mean, domain=UNIT)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.point import PointCurve
from dpverify.adjacency import AttributeAdjacency
from dpverify.auditing.run import audit
from dpverify.auditing.text import lines
from dpverify.domain import Box
from dpverify.testing.adapters import adapt

VALUES = 10
UNIT = Box(low=Fraction(0), high=Fraction(1))


def clipped_mean(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Mean of VALUES values in [0, 1]: one of them moves it by 1/VALUES at most; ε is 1."""
    return float(np.clip(record, 0, 1).mean() + rng.laplace(scale=1 / VALUES))


def clipped_mean_forgets_n(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    """The same with the noise of a mean of twice as many values."""
    return float(np.clip(record, 0, 1).mean() + rng.laplace(scale=1 / (2 * VALUES)))


def main() -> None:
    for function in (clipped_mean, clipped_mean_forgets_n):
        mechanism: Any = adapt(
            function,
            adjacency=AttributeAdjacency(beta=Fraction(1)),
            claim=PointCurve(bound=Fraction(1)),
            domain=UNIT,
            attributes=VALUES,
        )
        # Both add doubles, which the precision audit refutes; here it is about the scale.
        kinds: Any = ("grey-box", "determinism", "black-box", "sequential")
        report = audit(mechanism, draws=2000, seed=1, kinds=kinds, workers=1)
        print("\n".join(lines(report)))


if __name__ == "__main__":
    main()
