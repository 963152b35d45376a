"""How far products and transforms are from what memory and arithmetic allow on this machine.

The roofline: no work takes less time than its bytes at the speed of memory, nor than its operations
at the speed of arithmetic. Bytes are counted once, as if caches were perfect: what is read of the
records, and what is written of the result. Operations are those of the textbook, additions and
multiplications in doubles; checks, gridding and carrying round-off come on top, and are what an
exact product pays. Speed of memory is that of the quickest sum over 256 MiB, speed of arithmetic
that of the quickest square product of BLAS, both on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import matmul
from time import thread_time

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.speed.elsewhere import loops_by_each
from benchmarks.speed.sketching import TARGET, UNIT
from benchmarks.speed.table import Row, timed
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.hadamard import walsh_hadamard
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)

__all__ = ["rows"]

_REPETITIONS = 7
_WORD = 8  # bytes of a double


def rows() -> Iterator[Row]:
    """Every product and transform, by each kind of loop."""
    with threadpool_limits(limits=1):
        memory, arithmetic = _bytes_a_second(), _operations_a_second()

        def row(work: str, run: Callable[[], object], *, values: float, operations: float) -> Row:
            by_memory, by_arithmetic = _WORD * values / memory, operations / arithmetic
            (ours,) = timed(run, repetitions=_REPETITIONS, clock=thread_time)
            return Row(
                area="roofline",
                work=work,
                unit="CPU ms",
                ours=ours * 1e3,
                peer="memory" if by_memory > by_arithmetic else "arithmetic",
                theirs=max(by_memory, by_arithmetic) * 1e3,
                note=f"{_WORD * values / 1e6:.3g} MB at {memory / 1e9:.3g} GB/s, "
                f"{operations / 1e6:.3g} million operations at {arithmetic / 1e9:.3g} a ns",
            )

        yield from _products(row)
        yield from _transforms(row)


def _products(row: Callable[..., Row]) -> Iterator[Row]:
    n, p, k = 5_000, 4_096, 256
    records = np.random.default_rng(0).random((n, p))
    for kind, operations in (
        (OPORP, n * p),
        (RademacherProjection, 2 * n * p * k),
        (GaussianProjection, 2 * n * p * k),
    ):
        sketch = LinearSketch.calibrated(kind(p=p, k=k, seed=2023), domain=UNIT, **TARGET)
        product = partial(sketch.noiseless, records)
        work = f"{n:,} × {p:,} dense to k = {k}, no noise, {kind.name}"
        for by in _loops(work, kind is OPORP):
            yield row(by, product, values=n * (p + k), operations=operations)


def _transforms(row: Callable[..., Row]) -> Iterator[Row]:
    for levels in (10, 17):
        columns = np.random.default_rng(0).integers(-9, 10, (1 << levels, 64)).astype(np.float64)
        transform = partial(walsh_hadamard, columns)
        for by in _loops(f"Walsh–Hadamard transform of 2^{levels} × 64", True):
            yield row(by, transform, values=2 * columns.size, operations=levels * columns.size)


def _loops(work: str, several: bool) -> Iterator[str]:
    if not several:
        yield work
        return
    for runner in loops_by_each():
        yield f"{work}, by {runner}"


def _bytes_a_second() -> float:
    held = np.ones(1 << 25)
    return held.nbytes / _quickest(held.sum)


def _operations_a_second() -> float:
    order = 2_048
    square = np.random.default_rng(0).random((order, order))
    return 2 * order**3 / _quickest(partial(matmul, square, square))


def _quickest(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(_REPETITIONS):
        start = thread_time()
        work()
        seconds.append(thread_time() - start)
    return min(seconds)
