"""Error of RRMinHash on sets of 50, 500 and 2,000 items (Aumüller et al. 2020, figure 1).

Pairs of sets of Jaccard similarity ½ at ε = 4, δ = 10⁻⁴, one item protected, B = 2. "Published" are
coins chosen for the number of differing positions that the paper's lemma 1 gives, "exact" those of
the exact curve. The lemma uses a Chernoff bound outside its range for the small sets: its coins are
shown for comparison and are not always private.

    python examples/jaccard_error.py --repetitions 200 --out out/jaccard.svg
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
from attrs import evolve

from dpverify.accounting.curves.randomized_response import keep_probability
from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets, indicator
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.min_hash.hashing import KeyedHashes
from dpverify_mechanisms.min_hash.levels import published_differing
from dpverify_mechanisms.min_hash.rules import BucketResponse
from dpverify_mechanisms.min_hash.sketch import MinHash

EPSILON, DELTA = Fraction(4), Fraction(1, 10**4)
FUNCTIONS = (10, 20, 40, 80, 160, 320)
SIZES = (50, 500, 2000)


def published(sketch: MinHash, size: int) -> MinHash:
    """The same sketch with the coins of theorem 4.1."""
    k = sketch.hashes.functions
    differ = Fraction(1, size) * Fraction(1, 2)
    steps = min(k, math.ceil(published_differing(k, differ, DELTA).upper))
    keep = keep_probability(EPSILON, positions=max(steps, 1))
    return evolve(sketch, rule=BucketResponse(keep=keep))


def errors(sketch: MinHash, size: int, repetitions: int) -> list[float]:
    """Absolute errors of the estimates for a pair of similarity ½, each with fresh functions."""
    overlap = round(2 * size / 3)
    items = sketch.hashes.items
    first, second = np.arange(size), np.arange(size - overlap, 2 * size - overlap)
    truth = overlap / (2 * size - overlap)
    found = []
    for seed in range(repetitions):
        fresh = sketch.redrawn(seed)
        rows = [
            fresh.release(indicator(chosen, items), rng=SecureWords()) for chosen in (first, second)
        ]
        estimate = float(fresh.estimators()[0].estimate(rows[0][0], rows[1][0]))
        found.append(abs(estimate - truth))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/jaccard.svg"))
    given = parser.parse_args()
    curves: dict[tuple[int, str], list[float]] = {}
    print("| items | coins | " + " | ".join(f"K = {k}" for k in FUNCTIONS) + " | ε, exact |")
    print("|---" * (len(FUNCTIONS) + 3) + "|")
    for size in SIZES:
        for coins in ("published", "exact"):
            means, worst = [], 0.0
            for k in FUNCTIONS:
                sketch = MinHash.calibrated(
                    KeyedHashes(items=2 * size, functions=k, buckets=2, seed=0),
                    epsilon=EPSILON,
                    delta=DELTA,
                    domain=Sets(min_size=size),
                    adjacency=Items(changes=1),
                )
                if coins == "published":
                    sketch = published(sketch, size)
                worst = max(worst, sketch.privacy().epsilon_at(DELTA).upper)
                means.append(float(np.mean(errors(sketch, size, given.repetitions))))
            curves[size, coins] = means
            row = " | ".join(f"{mean:.3f}" for mean in means)
            print(f"| {size} | {coins} | {row} | at most {worst:.3f} |")
    _draw(given.out, curves)


def _draw(path: Path, curves: dict[tuple[int, str], list[float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.add_subplot()
    colours = dict(zip(SIZES, ("#C24A00", "#0072B2", "#007A59"), strict=True))
    for (size, coins), means in curves.items():
        style = "--" if coins == "published" else "-"
        axes.plot(
            FUNCTIONS, means, style, marker="o", color=colours[size], label=f"{size} items, {coins}"
        )
    axes.set(xlabel="K", ylabel="mean absolute error", xscale="log", yscale="log")
    axes.set_xticks(FUNCTIONS, [str(k) for k in FUNCTIONS])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
