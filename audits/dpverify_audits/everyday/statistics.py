"""Sums, means, variances and histograms of numpy arrays, with their sensitivities mistaken."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.data.adjacency import Replace
from dpverify.data.columns import Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, Release, exhibit
from dpverify_audits.museum.training import clipped

__all__ = ["EXHIBITS"]

_UNIT = Table({"x": Reals(0, 1)}, rows=(0, 10), make="numpy")
_SIZED = Table({"x": Reals(0, 1)}, rows=6, make="numpy")
_SIGNED = Table({"x": Reals(-1, 1)}, rows=(0, 10), make="numpy")
_WIDE = Table({"x": Reals(-100, 100)}, rows=(0, 10), make="numpy")
_POINTS = Table({"x": Reals(0, 1), "y": Reals(0, 1)}, rows=(0, 10), make="numpy")
_SIZED_POINTS = Table(_POINTS.columns, rows=6, make="numpy")
_MIXED = Table({"age": Reals(0, 100), "paid": Reals(0, 1000)}, rows=(0, 10), make="numpy")
_DIGITS = Table({"x": Integers(0, 9)}, rows=(0, 12), make="numpy")
_FIVE = Table(dict.fromkeys("abcde", Reals(-3, 3)), rows=(0, 8), make="numpy")
_EDGES = Table({"one": Integers(1, 5), "other": Integers(1, 5)}, rows=(0, 9), make="numpy")


def _plus(scale: float, statistic: Any) -> Release:
    """A statistic with Laplace noise, in each of its places."""

    def released(x: Any, rng: Any) -> Any:
        exact = np.asarray(statistic(x), dtype=float)
        return exact + rng.laplace(scale=scale, size=exact.shape) if scale else exact

    return released


def _family(
    name: str, mistake: str, statistic: Any, small: float, large: float, **words: Any
) -> Exhibit:
    """Noise of a scale that is too small for the statistic, and of the right one."""
    return exhibit(
        name, mistake, broken=_plus(small, statistic), correct=_plus(large, statistic), **words
    )


def _swap(name: str, mistake: str, wrong: Any, right: Any, scale: float, **words: Any) -> Exhibit:
    """Another statistic than the one that the noise is for."""
    return exhibit(name, mistake, broken=_plus(scale, wrong), correct=_plus(scale, right), **words)


def _triangles(edges: Any) -> int:
    """Of a graph, by its list of edges."""
    known = {frozenset(edge) for edge in edges.astype(int).tolist() if edge[0] != edge[1]}
    nodes = range(1, 6)
    return sum(
        {frozenset((a, b)), frozenset((b, c)), frozenset((a, c))} <= known
        for a in nodes
        for b in nodes
        for c in nodes
        if a < b < c
    )


def _distinct_edges(edges: Any) -> int:
    return len({tuple(edge) for edge in edges.tolist()})


def _ratio(x: Any, rng: Any, *, both: bool) -> float:
    total, count = x.sum(), len(x)
    if both:
        return float((total + rng.laplace(scale=2)) / max(count + rng.laplace(scale=2), 1))
    return float((total + rng.laplace()) / max(count, 1))


def _counts(x: Any) -> Any:
    return np.bincount(x.astype(int), minlength=10)


def _gaussian(x: Any, rng: Any, *, rows: Any) -> Any:
    return rows(x).sum(axis=0) + rng.normal(scale=2, size=5)


def _totalled(x: Any, rng: Any, *, true: bool) -> Any:
    """A noisy histogram, scaled to the number of rows or to a public one."""
    noisy = np.maximum(_counts(x) + rng.laplace(size=10), 0.01)
    return noisy * ((len(x) if true else 10) / noisy.sum())


EXHIBITS: tuple[Exhibit, ...] = (
    _swap(
        "clip after the sum",
        "The sum is clipped, not the rows.",
        lambda x: np.clip(x.sum(), -50, 50),
        lambda x: np.clip(x, -10, 10).sum(),
        10,
        domain=_WIDE,
    ),
    _swap(
        "clip from above only",
        "A minimum without a maximum.",
        lambda x: np.minimum(x, 10).sum(),
        lambda x: np.clip(x, -10, 10).sum(),
        10,
        domain=_WIDE,
    ),
    _swap(
        "no clip at all",
        "The range is believed and not enforced.",
        lambda x: x.sum(),
        lambda x: np.clip(x, -10, 10).sum(),
        10,
        domain=_WIDE,
    ),
    _swap(
        "clip of the wrong column",
        "Ages are clipped to 100, and payments are summed.",
        lambda x: np.clip(x[:, 0], 0, 10).sum() + x[:, 1].sum(),
        lambda x: np.clip(x[:, 1], 0, 10).sum(),
        10,
        domain=_MIXED,
    ),
    _family(
        "mean of a public n that isn't",
        "The noise is for a mean of ten rows.",
        lambda x: x.sum() / max(len(x), 1),
        0.1,
        1,
        domain=_UNIT,
    ),
    _family(
        "sensitivity for adding, used for replacing",
        "A replaced row moves by the width.",
        lambda x: x.sum(),
        1,
        2,
        domain=Table(_SIGNED.columns, rows=4, make="numpy"),
        adjacency=Replace(),
    ),
    _family(
        "variance by the noise of a mean",
        "A third of 1/n, as if deviations were spread evenly.",
        lambda x: x.var(),
        1 / 18,
        1 / 6,
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _family(
        "standard deviation by the noise of a variance",
        "A root is steep at 0.",
        lambda x: x.std(),
        1 / 6,
        0.5,
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _family(
        "median by the noise of a mean",
        "1/n of the range is the mean's.",
        np.median,
        1 / 6,
        1,
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _family(
        "maximum by the noise of a mean",
        "An extreme value is one row.",
        np.max,
        1 / 6,
        1,
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _family(
        "range by the noise of a maximum",
        "Both ends move, in small data.",
        lambda x: [x.min(), x.max()],
        1,
        2,
        domain=Table(_SIZED.columns, rows=1, make="numpy"),
        adjacency=Replace(),
    ),
    _swap(
        "normalised by the maximum",
        "One outlier shrinks all others.",
        lambda x: (x / x.max() if x.max(initial=0) > 0 else x).sum(),
        lambda x: x.sum(),
        1,
        domain=_UNIT,
    ),
    _swap(
        "normalised by the norm",
        "Rows share a norm of 1.",
        lambda x: 3 * x.sum() / max(float(np.linalg.norm(x)), 1e-9),
        lambda x: x.sum(),
        1,
        domain=_UNIT,
    ),
    _swap(
        "centred by the data",
        "Deviations from the data's own mean, in absolute value.",
        lambda x: 2 * np.abs(x - x.mean()).sum() if len(x) else 0.0,
        lambda x: np.abs(x - 0.5).sum(),
        0.5,
        domain=_UNIT,
    ),
    _swap(
        "winsorised at its quantiles",
        "The ends to which rows are clipped are the data's.",
        lambda x: 1.5 * np.clip(x, *np.quantile(x, [0.2, 0.8])).sum() if len(x) else 0.0,
        lambda x: np.clip(x, 0.2, 0.8).sum(),
        0.8,
        domain=_UNIT,
    ),
    _swap(
        "cumulative counts",
        "All counts behind a row's own move too.",
        lambda x: np.cumsum(_counts(x)),
        _counts,
        1,
        domain=_DIGITS,
    ),
    _swap(
        "two histograms for one",
        "Digits and their parities, each with the whole budget.",
        lambda x: [*_counts(x), *np.bincount(x.astype(int) % 2, minlength=2)],
        _counts,
        1,
        domain=_DIGITS,
    ),
    _swap(
        "pairs counted as rows",
        "A row more makes as many pairs as there are rows.",
        lambda x: math.comb(len(x), 2),
        len,
        1,
        domain=_UNIT,
    ),
    _swap(
        "triangles counted as edges",
        "An edge closes several triangles.",
        _triangles,
        _distinct_edges,
        1,
        domain=_EDGES,
    ),
    _swap(
        "density for counts",
        "Shares of n with noise for shares of a public n.",
        lambda x: 10 * _counts(x) / max(len(x), 1),
        _counts,
        1,
        domain=_DIGITS,
    ),
    _swap(
        "scaled up before the noise",
        "Counts in thousands, noise for ones.",
        lambda x: 3 * x.sum(),
        lambda x: x.sum(),
        1,
        domain=_UNIT,
    ),
    _swap(
        "logarithms of what may be zero",
        "Clipped at 10⁻⁶, and scaled for e⁻¹.",
        lambda x: -np.log(np.maximum(x, 1e-6)).sum(),
        lambda x: -np.log(np.clip(x, 1 / math.e, 1)).sum(),
        1,
        domain=_UNIT,
    ),
    _swap(
        "geometric mean",
        "One zero makes it zero.",
        lambda x: x.prod() ** (1 / 6),
        lambda x: x.mean(),
        1 / 6,
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _swap(
        "a row that counts thrice",
        "Resampled once for all: the first row came three times.",
        lambda x: 6 * x[np.array([0, 0, 0, 1, 2, 3])].mean(),
        lambda x: x.sum(),
        1,
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _swap(
        "missing filled by the mean of the others",
        "What is unknown is what the others are.",
        lambda x: np.nan_to_num(x, nan=float(np.nanmean(x)) if np.isfinite(x).any() else 0.0).sum(),
        lambda x: np.nan_to_num(x, nan=0.5).sum(),
        1,
        domain=Table({"x": Reals(0, 1, missing=True)}, rows=(0, 10), make="numpy"),
    ),
    _swap(
        "covariance for a product",
        "A covariance about data means with noise for bounded centres.",
        lambda x: 6 * np.cov(x.T)[0, 1],
        lambda x: ((x[:, 0] - 0.5) * (x[:, 1] - 0.5)).sum(),
        0.5,
        domain=_SIZED_POINTS,
        adjacency=Replace(),
    ),
    _swap(
        "a slope",
        "Least squares divide by a variance that may vanish.",
        lambda x: np.clip((x[:, 0] * x[:, 1]).sum() / max((x[:, 0] ** 2).sum(), 1e-9), -20, 20),
        lambda x: (x[:, 0] * x[:, 1]).sum(),
        1,
        domain=_POINTS,
    ),
    _swap(
        "l1 noise, l2 clip",
        "A row of ℓ2 norm 1 has an ℓ1 norm of up to √5.",
        lambda x: clipped(x).sum(axis=0),
        lambda x: clipped(x, 1 / math.sqrt(5)).sum(axis=0),
        1,
        domain=_FIVE,
    ),
    exhibit(
        "l2 noise, clip of each coordinate",
        "A row clipped in each coordinate has norm √5.",
        broken=partial(_gaussian, rows=lambda x: np.clip(x, -1, 1)),
        correct=partial(_gaussian, rows=clipped),
        domain=_FIVE,
        curve=Gaussian(sigma=2),
    ),
    exhibit(
        "noise on the numerator alone",
        "A ratio whose denominator is exact.",
        broken=partial(_ratio, both=False),
        correct=partial(_ratio, both=True),
        domain=_UNIT,
    ),
    exhibit(
        "consistent with the true total",
        "A noisy histogram, scaled to the true number of rows.",
        broken=partial(_totalled, true=True),
        correct=partial(_totalled, true=False),
        domain=_DIGITS,
    ),
)
