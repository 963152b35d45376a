"""Certified answers of the accountant: time, and distance from the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from statistics import median

from benchmarks.speed.table import Row, timed
from dpverify.accounting import delta_gaussian, epsilon_gaussian, sigma_gaussian

__all__ = ["rows"]

EPSILONS = ["1e-8", "1e-6", "1e-4", "1e-2", "0.1", "1", "10", "20", "100", "1e3", "1e4"]
DELTAS = ["0.4", "0.1", "1e-3", "1e-6", "1e-10", "1e-30", "1e-100", "1e-300"]


def rows() -> Iterator[Row]:
    """Every comparison."""
    yield from _gaussian()


def _gaussian() -> Iterator[Row]:
    """Certified calls of the analytic Gaussian over a grid that reaches into the extremes."""
    cells = [(Decimal(e), Decimal(d)) for e in EPSILONS for d in DELTAS]
    sigmas = [sigma_gaussian(e, d).upper for e, d in cells]
    calls: dict[str, list[Callable[[], object]]] = {
        "σ": [partial(sigma_gaussian, e, d) for e, d in cells],
        "δ": [partial(delta_gaussian, e, s) for (e, _), s in zip(cells, sigmas, strict=True)],
        "ε": [partial(epsilon_gaussian, d, s) for (_, d), s in zip(cells, sigmas, strict=True)],
    }
    for name, works in calls.items():
        seconds = timed(*works)
        yield Row(
            area="accounting",
            work=f"certified {name} of one Gaussian, median of {len(works)} cells",
            unit="µs",
            ours=median(seconds) * 1e6,
            peer="aim",
            theirs=100,
            aim=1,
            note=f"slowest cell {max(seconds) * 1e6:.0f} µs",
        )
