"""Whether the time or memory that a release takes shows which of two neighbours was released.

``python -m benchmarks.timing [DRAWS]`` releases two neighbours in random order with fresh secure
noise and prints, for each mechanism, the two medians and the p-value of the Kolmogorov-Smirnov test
that the two distributions are one: of the times, and then of the largest memory that was allocated
at once (as tracemalloc counts it: what Python and numpy ask for, and not what the system gives). It
is a measurement on one machine: a large p-value shows that this many draws didn't tell the
neighbours apart here, and nothing more.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = ["Measure", "compare", "main", "microseconds", "peak"]

Measure = Callable[[Callable[[], object]], float]
_P = 784


def microseconds(work: Callable[[], object]) -> float:
    """Time that the work takes."""
    start = perf_counter_ns()
    work()
    return (perf_counter_ns() - start) / 1e3


def peak(work: Callable[[], object]) -> float:
    """Most KiB that the work holds at once, beyond what was held before; tracemalloc is on."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    work()
    return (tracemalloc.get_traced_memory()[1] - before) / 1024


def compare(
    mechanism: Any, first: Any, second: Any, draws: int, measure: Measure = microseconds
) -> tuple[float, float, float]:
    """Medians of a measure of both neighbours' releases, and the p-value that they are alike."""
    rng = np.random.default_rng()
    found: list[list[float]] = [[], []]
    for side in rng.permutation(np.repeat([0, 1], draws)):
        record = second if side else first
        words = SecureWords()
        found[side].append(measure(partial(mechanism.release, record, rng=words)))
    one, two = map(np.array, found)
    return (
        float(np.median(one)),
        float(np.median(two)),
        float(ks_2samp(one, two, method="asymp").pvalue),
    )


def main(draws: int) -> None:
    """Print a line for each mechanism and pair."""
    target: dict[str, Any] = {
        "epsilon": Fraction(2),
        "delta": Fraction(1, 10**6),
        "adjacency": Attribute(beta=Fraction(1)),
    }
    unit, both = (Box(low=Fraction(low), high=Fraction(1)) for low in (0, -1))
    cases: dict[str, Any] = {
        "dp-oporp": LinearSketch.dp_oporp(p=_P, k=256, seed=1, domain=unit, **target),
        "dp-rp-g-opt": LinearSketch.dp_rp_g_opt(p=_P, k=256, seed=1, domain=unit, **target),
        "dp-signoporp-rr": SignSketch.dp_signoporp_rr(p=_P, k=256, seed=1, domain=both, **target),
    }
    zeros = np.zeros((1, _P))
    for name, mechanism in cases.items():
        for what, size in (("one attribute", 1), ("every attribute, no neighbours", _P)):
            other = zeros.copy()
            other[0, :size] = 1
            mechanism.release(zeros, rng=SecureWords())  # tables are made once
            said = []
            for measure, named in ((microseconds, "us"), (peak, "KiB")):
                if measure is peak:  # it slows everything down
                    tracemalloc.start()
                first, second, p = compare(mechanism, zeros, other, draws, measure)
                tracemalloc.stop()
                said.append(f"{first:.1f} and {second:.1f} {named} (p-value {p:.3g})")
            print(
                f"{name}, zeros against {what} at 1, {draws} releases a side: medians "
                f"{', '.join(said)}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
