"""What the experiments share: the methods at one guarantee, a table, and a figure beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.accounting.published import sigma_li
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    RademacherProjection,
)
from dpverify_mechanisms.sign.sketch import SignSketch

DELTA = Fraction(1, 10**6)
UNIT = Box(low=Fraction(0), high=Fraction(1))
BETA = Attribute(beta=Fraction(1))

Method = Callable[[Fraction, int], NDArray[np.float64]]
"""Released rows as numbers, for an epsilon and a seed of the public randomness."""


def linear_methods(records: NDArray[np.float64], k: int) -> Mapping[str, Method]:
    """The noisy linear sketches of Li and Li 2023, section 5, all at (ε, 10⁻⁶) for one pixel."""
    p = records.shape[1]

    def method(draw: Callable[[int], Any], **options: Any) -> Method:
        def release(epsilon: Fraction, seed: int) -> NDArray[np.float64]:
            sketch = LinearSketch.calibrated(
                draw(seed), epsilon=epsilon, delta=DELTA, domain=UNIT, adjacency=BETA, **options
            )
            return sketch.release(records, rng=SecureWords()).astype(np.float64)

        return release

    return {
        "Raw-data-G-OPT": method(lambda _: IdentityProjection(p=p, k=p)),
        "DP-RP-G": method(lambda seed: GaussianProjection(p=p, k=k, seed=seed), level=sigma_li),
        "DP-RP-G-OPT": method(lambda seed: GaussianProjection(p=p, k=k, seed=seed)),
        "DP-RP-G-OPT-B": method(lambda seed: RademacherProjection(p=p, k=k, seed=seed)),
        "DP-OPORP": method(lambda seed: OPORP(p=p, k=k, seed=seed)),
    }


def sign_methods(records: NDArray[np.float64], k: int) -> Mapping[str, Method]:
    """The sign sketches of section 5.3, whose guarantee is pure: (ε, 0)."""
    p = records.shape[1]

    def method(make: Callable[..., SignSketch]) -> Method:
        def release(epsilon: Fraction, seed: int) -> NDArray[np.float64]:
            sketch = make(p=p, k=k, seed=seed, epsilon=epsilon, domain=UNIT, adjacency=BETA)
            packed = sketch.release(records, rng=SecureWords())
            bits = np.unpackbits(packed, axis=1, count=k)
            return np.asarray(2.0 * bits - 1)

        return release

    return {
        "DP-SignOPORP-RR": method(SignSketch.dp_signoporp_rr),
        "DP-SignOPORP-RR-smooth": method(SignSketch.dp_signoporp_rr_smooth),
    }


def averaged(
    methods: Mapping[str, Method],
    epsilons: Sequence[Fraction],
    repetitions: int,
    score: Callable[[NDArray[np.float64]], float],
) -> dict[str, list[tuple[float, float]]]:
    """Mean and standard error of the score for every method and ε, over fresh releases."""
    results: dict[str, list[tuple[float, float]]] = {}
    for name, method in methods.items():
        results[name] = []
        for epsilon in epsilons:
            scores = [score(method(epsilon, seed)) for seed in range(repetitions)]
            error = float(np.std(scores, ddof=1) / repetitions**0.5) if repetitions > 1 else 0.0
            results[name].append((float(np.mean(scores)), error))
    return results


def print_table(
    title: str, epsilons: Sequence[Fraction], results: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    """A Markdown table of means, with the largest standard error below."""
    print(f"{title}\n")
    print("| method | " + " | ".join(f"ε = {float(e):g}" for e in epsilons) + " |")
    print("|---" * (len(epsilons) + 1) + "|")
    for name, row in results.items():
        print(f"| {name} | " + " | ".join(f"{mean:.3f}" for mean, _ in row) + " |")
    print(f"\nstandard errors up to {max(e for row in results.values() for _, e in row):.3f}")


def draw_figure(
    path: Path,
    label: str,
    epsilons: Sequence[Fraction],
    results: Mapping[str, Sequence[tuple[float, float]]],
    baseline: tuple[str, float] | None = None,
) -> None:
    """Every method's score against ε, told apart by marker as well as by colour."""
    from matplotlib.figure import Figure

    colours = ("#5A5A5A", "#C24A00", "#E69F00", "#0072B2", "#007A59", "#56B4E9", "#CC79A7")
    places = [float(e) for e in epsilons]
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.add_subplot()
    if baseline is not None:
        axes.axhline(baseline[1], color="#999999", linestyle="--", label=baseline[0])
    for (name, row), colour, marker in zip(results.items(), colours, "osv^DPX", strict=False):
        means, errors = zip(*row, strict=True)
        axes.errorbar(
            [float(e) for e in epsilons],
            means,
            yerr=errors,
            label=name,
            color=colour,
            marker=marker,
        )
    axes.set(xlabel="ε", ylabel=label, xscale="log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"figure: {path}")
