"""``python -m benchmarks.projections``: projections against scikit-learn, speed and memory.

Each ratio compares two works that took turns in one run.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.random_projection import SparseRandomProjection

from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.hadamard import FJLT, walsh_hadamard
from dpverify_mechanisms.projections.independent import OPORP, GaussianProjection, SparseProjection
from dpverify_mechanisms.projections.sjlt import SJLT

P, K, ENTRIES = 1_000_000, 256, 100
REPETITIONS = 9
Row = tuple[str, str, str, str, str]


def seconds(*works: Callable[[], object], repetitions: int = REPETITIONS) -> list[float]:
    """Median seconds of each, repeated in turns so that a slow moment meets all of them."""
    for work in works:
        work()
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(repetitions):
        for work, times in zip(works, taken, strict=True):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return [median(times) for times in taken]


def records(rows: int) -> sparse.csr_array:
    """Sparse records of P attributes with 100 non-zeros (a few fewer where places repeat)."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, P, (rows, ENTRIES), dtype=np.int32)
    sizes = rng.integers(1, 1025, rows * ENTRIES).astype(np.float64)
    starts = np.arange(rows + 1) * ENTRIES
    matrix = sparse.csr_array((sizes, places.ravel(), starts), shape=(rows, P))
    matrix.sum_duplicates()
    return matrix


def sparse_products() -> list[Row]:
    """10,000 sparse records of a million attributes to k = 256."""
    x = records(10_000)
    peer = SparseRandomProjection(n_components=K, random_state=0, dense_output=True).fit(x)
    kinds: list[tuple[str, Projection, int]] = [
        ("OPORP", OPORP(p=P, k=K, seed=0), 2),
        *((f"SJLT, s = {s}", SJLT(p=P, k=K, sparsity=s, seed=0), 2 * s) for s in (1, 4, 8)),
        ("very sparse, s = 1000", SparseProjection(p=P, k=K, sparsity=1000, seed=0), 2),
    ]
    rows = []
    for name, projection, aim in kinds:
        ours, theirs = seconds(partial(projection.apply, x), partial(peer.transform, x))
        rows.append(
            (
                f"10,000 x 1,000,000, 100 non-zeros a row: {name}",
                f"{ours * 1e3:.1f} ms",
                f"scikit-learn sparse: {theirs * 1e3:.1f} ms",
                f"{ours / theirs:.2f}",
                f"<= {aim}",
            )
        )
    return rows


def _peak(make: Callable[[], Projection], pipe: Any) -> None:
    x = records(100_000)
    projection = make()
    start = time.perf_counter()
    projection.apply(x)
    took = time.perf_counter() - start
    pipe.send((took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 2**30))


def memory() -> list[Row]:
    """Peak resident memory of a whole process: records, projection and sketch."""
    rows = []
    for name, make in (
        ("OPORP", partial(OPORP, p=P, k=K, seed=0)),
        ("SJLT, s = 8, 4-wise", partial(SJLT, p=P, k=K, sparsity=8, hashing=4, seed=0)),
    ):
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe()
        process = context.Process(target=_peak, args=(make, sender))
        process.start()
        took, peak = receiver.recv()
        process.join()
        rows.append(
            (
                f"100,000 x 1,000,000, 100 non-zeros a row: {name}",
                f"{took:.2f} s, peak {peak:.2f} GiB",
                "-",
                f"{peak / 4:.2f}",
                "< 1 (4 GiB)",
            )
        )
    return rows


def transforms() -> list[Row]:
    """The Walsh-Hadamard transform of 64 MiB; bytes are those of the records, read once."""
    rows = []
    for levels in (10, 14, 17, 20):
        order = 1 << levels
        width = max(16, min(64, 2**23 // order))
        rng, count = np.random.default_rng(0), max(1, 2**23 // (order * width))
        arrays = [rng.integers(-9, 10, (order, width)).astype(np.float64) for _ in range(count)]

        def work(arrays: Any = arrays) -> None:  # in place: what grows are the values alone
            for x in arrays:
                walsh_hadamard(x)

        (took,) = seconds(work, repetitions=5)
        rate = order * width * 8 * count / took / 1e9
        rows.append(
            (
                f"Walsh-Hadamard transform, m = 2**{levels}, {width} columns",
                f"{rate:.2f} GB/s",
                "aim: 0.5 GB/s",
                f"{0.5 / rate:.2f}",
                "<= 1",
            )
        )
    return rows


def fast_products() -> list[Row]:
    """Dense records by the fast transform against a dense Gaussian matrix product."""
    rows = []
    for p, count, density in ((1024, 2048, Fraction(1, 10)), (32_768, 128, Fraction(1, 500))):
        x = np.random.default_rng(0).integers(0, 1025, (count, p)).astype(np.float64)
        fast = FJLT(p=p, k=K, seed=0, density=density)
        dense = GaussianProjection(p=p, k=K, seed=0)
        ours, theirs = seconds(partial(fast.apply, x), partial(dense.apply, x), repetitions=5)
        rows.append(
            (
                f"{count} dense records of {p}: FJLT, q = {density}",
                f"{ours * 1e3:.1f} ms",
                f"Gaussian, BLAS: {theirs * 1e3:.1f} ms",
                f"{ours / theirs:.2f}",
                "-",
            )
        )
    return rows


def realisations() -> list[Row]:
    """Drawing and certifying; one update of a stream."""
    rows = []
    for name, work in (
        ("draw OPORP, p = 1,000,000", lambda: OPORP(p=P, k=K, seed=0)),
        ("draw SJLT, s = 8, p = 1,000,000", lambda: SJLT(p=P, k=K, sparsity=8, seed=0)),
        (
            "hash SJLT, s = 8, 4-wise, p = 1,000,000",
            lambda: SJLT(p=P, k=K, sparsity=8, hashing=4, seed=0).matrix,
        ),
        (
            "draw and certify the spectral norm of a Gaussian, 784 x 256",
            lambda: GaussianProjection(p=784, k=K, seed=0).spectral_norm(),
        ),
    ):
        (took,) = seconds(work, repetitions=3)
        rows.append((name, f"{took * 1e3:.0f} ms", "-", "-", "-"))
    sketch = np.zeros(K, dtype=np.int64)
    for name, projection in (
        ("drawn", SJLT(p=P, k=K, sparsity=8, seed=0)),
        ("4-wise hashed", SJLT(p=P, k=K, sparsity=8, hashing=4, seed=0)),
    ):

        def stream(projection: Projection = projection) -> None:
            for attribute in range(1000):
                projection.update(sketch, attribute, 1)

        (took,) = seconds(stream)
        work_name = f"one update of a stream, SJLT, s = 8, {name}"
        rows.append((work_name, f"{took * 1e3:.1f} us", "-", "-", "-"))
    return rows


def main() -> None:
    """Run all and print the table."""
    rows = sparse_products() + memory() + transforms() + fast_products() + realisations()
    lines = ["| work | ours | peer | ratio | aim |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
