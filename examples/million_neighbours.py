"""Nearest neighbours among a million released sketches, by faiss: recall, and what ε takes of it.

A record is a patch of 8 x 8 pixels of one colour in two photographs that scikit-learn ships; its
nearest neighbours are mostly patches beside it. Searched are sketches of 16 numbers, for queries
that were released themselves. Recall is the share of the 10 nearest patches that are among the
nearest 10, 100 and 1,000 sketches. The search is exact, so that what is lost is lost to sketch and
noise.

    pip install faiss-cpu
    python examples/million_neighbours.py --out out/million.svg
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.datasets import load_sample_images

import dpverify as dpv
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP

try:
    import faiss
except ModuleNotFoundError:
    raise SystemExit("faiss isn't installed: pip install faiss-cpu") from None

SIDE, K, QUERIES, GOLD = 8, 16, 200, 10
FOUND = (10, 100, 1000)

Rows = NDArray[np.float32]


def patches(count: int) -> Rows:
    """So many patches of the photographs, in random order, with pixels from 0 to 1."""
    images = load_sample_images().images
    windows = [
        sliding_window_view(image[:, :, colour], (SIDE, SIDE)).reshape(-1, SIDE**2)
        for image in images
        for colour in range(3)
    ]
    rows = np.concatenate(windows)
    chosen = np.random.default_rng(0).permutation(len(rows))[:count]
    return rows[chosen].astype(np.float32) / np.float32(255)


def nearest(rows: Rows, count: int) -> NDArray[np.int64]:
    """The so many nearest rows to each of the first `QUERIES`, of which none is its own."""
    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(rows)
    _, found = index.search(rows[:QUERIES], count + 1)
    own = found == np.arange(QUERIES)[:, None]
    own[~own.any(axis=1), -1] = True  # where it isn't found at all, or behind its equals
    others: NDArray[np.int64] = found[~own].reshape(QUERIES, count)
    return others


def released(rows: Rows, epsilon: Fraction, beta: Fraction) -> Rows:
    """Sketches of all rows, with one pixel of one patch protected as it changes by at most beta."""
    sketch = LinearSketch.calibrated(
        OPORP(p=SIDE**2, k=K, seed=1),
        epsilon=epsilon,
        delta=Fraction(1, 10**6),
        domain=dpv.Box(0, 1),
        adjacency=dpv.Attribute(beta),
    )
    blocks = np.array_split(rows, max(1, len(rows) // 50_000))
    steps = sketch.release_blocks(block.astype(np.float64) for block in blocks)
    return np.concatenate([block.astype(np.float32) for block in steps]) * np.float32(sketch.step())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--out", type=Path, default=Path("out/million.svg"))
    given = parser.parse_args()
    rows = patches(given.rows)
    gold = nearest(rows, GOLD)
    curves: dict[str, list[float]] = {}

    def off(found: NDArray[np.int64]) -> NDArray[np.float32]:
        distances: NDArray[np.float32] = ((rows[found] - rows[:QUERIES, None]) ** 2).sum(axis=2)
        return distances

    farthest = off(gold).max(axis=1, keepdims=True)  # what is as near is as good

    def line(name: str, searched: Rows) -> None:
        found = nearest(searched, FOUND[-1])
        right = off(found) <= farthest + 1e-6
        shares = [right[:, :count].sum(axis=1).clip(max=GOLD).mean() / GOLD for count in FOUND]
        print(f"{name:<44}" + "".join(f"{share:9.4f}" for share in shares), flush=True)
        curves[name] = [float(share) for share in shares]

    print(
        f"{f'{len(rows):,} patches: recall among the nearest':<44}"
        + "".join(f"{n:9}" for n in FOUND)
    )
    line("the patches themselves", rows)
    tenth = Fraction(1, 10)
    line("sketches with hardly any noise", released(rows, Fraction(10**4), tenth))
    for epsilon in (10, 5, 2):
        line(
            f"epsilon = {epsilon}, a pixel by up to a tenth",
            released(rows, Fraction(epsilon), tenth),
        )
    line("epsilon = 10, a pixel, whatever it becomes", released(rows, Fraction(10), Fraction(1)))
    curves["chance"] = [count / len(rows) for count in FOUND]
    print(f"{'chance':<44}" + "".join(f"{share:9.4f}" for share in curves["chance"]))
    _draw(given.out, curves)


def _draw(path: Path, curves: dict[str, list[float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    for marker, (name, shares) in zip("osD^v<x", curves.items(), strict=True):
        axes.plot(FOUND, shares, "--" if name == "chance" else "-", marker=marker, label=name)
    axes.set(xlabel="nearest of what is searched", ylabel="recall of the 10 nearest patches")
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1e-4)  # a recall may be 0
    axes.set_ylim(0, 1.5)
    axes.set_xticks(FOUND, [f"{count:,}" for count in FOUND])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
