"""The common task: 95 % one-sided lower bounds on ε, by outputs alone.

Each subject is a textbook mechanism that is exactly ε-private on real numbers. The black-box audit
is run for many seeds; beside its median stands the reference: the event that the privacy loss makes
best, known beforehand, counted on the same counted draws and judged by the same exact test.
``--full`` takes 400 seeds and 1e5 draws besides; without it, 20 seeds at 1e4.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.point import PointCurve
from dpverify.adjacency import BitFlip, L1Ball
from dpverify.auditing.blackbox import COUNTED, black_box
from dpverify.auditing.draws import both_sides
from dpverify.auditing.two_binomials import Outcome
from dpverify.mechanism import Pair
from dpverify.sampling.words import Words

__all__ = ["SUBJECTS", "Bits", "Laplace", "Subject", "measured"]

ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """x + Laplace noise in doubles, claimed to be 1-private."""

    scale: float = 1.0
    adjacency = L1Ball(radius=Fraction(1))

    def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
        """One number for each row."""
        word = int(rng.words(1)[0])
        size = -self.scale * math.log(((word >> 12) + 0.5) * 2.0**-52)
        return np.asarray(records + (size if word & 1 else -size))

    def privacy(self) -> PointCurve:
        """ε = 1."""
        return PointCurve(bound=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """Randomized response on whole bytes of bits, ε = 1 for each bit."""

    adjacency = BitFlip()

    def release(self, records: Any, *, rng: Words) -> NDArray[np.uint8]:
        """Packed bits, of the records' shape."""
        coins = rng.words(2 * records.size).view(np.uint16)
        flips = coins < round(2**16 / (1 + math.e))
        return np.asarray(records ^ np.packbits(flips).reshape(records.shape))

    def privacy(self) -> PointCurve:
        """ε = 1, and the little that 16 bits of a coin add."""
        return PointCurve(bound=Fraction(1) + Fraction(1, 10**4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A mechanism with its worst pair, its true ε and the best event on the neighbour's side."""

    name: str
    mechanism: Laplace | Bits
    pair: Pair
    epsilon: float
    best: Callable[[NDArray[Any]], NDArray[np.bool_]]


def _bits(count: int) -> Pair:
    record = np.zeros((1, count // 8), dtype=np.uint8)
    neighbour = record.copy()
    neighbour[0, count // 16] = 16
    return Pair(name="one bit", record=record, neighbour=neighbour)


def _bit(count: int) -> Callable[[NDArray[Any]], NDArray[np.bool_]]:
    return lambda outputs: outputs[:, 0, count // 16] & 16 > 0


_NUMBERS = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))

SUBJECTS = (
    Subject(
        name="Laplace",
        mechanism=Laplace(),
        pair=_NUMBERS,
        epsilon=1.0,
        best=lambda outputs: outputs.ravel() >= 1,
    ),
    Subject(
        name="randomized response",
        mechanism=Bits(),
        pair=_bits(8),
        epsilon=1.0,
        best=_bit(8),
    ),
    Subject(
        name="Laplace, scale halved",
        mechanism=Laplace(scale=0.5),
        pair=_NUMBERS,
        epsilon=2.0,
        best=lambda outputs: outputs.ravel() >= 1,
    ),
    Subject(
        name="64 bits, one differs",
        mechanism=Bits(),
        pair=_bits(64),
        epsilon=1.0,
        best=_bit(64),
    ),
)


def measured(subject: Subject, draws: int, seed: int) -> tuple[float, float, float]:
    """Lower bound, the reference's, and the audit's seconds."""
    start = perf_counter()
    finding = black_box(subject.mechanism, subject.pair, alpha=ALPHA, draws=draws, seed=seed)
    seconds = perf_counter() - start
    record, neighbour = both_sides(
        subject.mechanism, subject.pair, draws=draws, seed=seed, kind=COUNTED
    )
    reference = Outcome(
        hits=int(np.count_nonzero(subject.best(neighbour))),
        draws=draws,
        false_hits=int(np.count_nonzero(subject.best(record))),
        false_draws=draws,
    )
    return finding.epsilon_lower or 0.0, reference.epsilon_lower(delta=0, alpha=ALPHA), seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="400 seeds, 1e4 and 1e5 draws")
    full = parser.parse_args().full
    print("| subject | true | draws | median bound | best event known | ratio | seconds |")
    print("|---|---|---|---|---|---|---|")
    for draws in (10_000, 100_000) if full else (10_000,):
        for subject in SUBJECTS:
            rows = [measured(subject, draws, seed) for seed in range(400 if full else 20)]
            bound, reference, seconds = (median(column) for column in zip(*rows, strict=True))
            print(
                f"| {subject.name} | {subject.epsilon:g} | {draws:,} | {bound:.4f} "
                f"| {reference:.4f} | {bound / reference:.4f} | {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
