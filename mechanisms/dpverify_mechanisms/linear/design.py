"""Choosing parameters by exact variances: what a `design` helper returns, and the linear sketches'.

A design answers "which k, and how much noise, for the distances I care about?" It builds every
candidate at the same guarantee, so that privacy is never what is traded, and keeps the whole curve
around the optimum. Linear sketches are designed here, sign sketches in `sign_design`, MinHash in
`min_hash_design`, graph cuts in `secret_design`.

Nothing is left to choose for randomized response (records of p bits and ε give the flips, and the
variance is the same at all distances) or for noise on pairwise distances (ε and δ give σ). The
covariance sketch has its number of rows to choose, and no helper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Generic, TypeVar

from dpverify.errors import ParameterError, require
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.base import Projection

__all__ = ["Design", "DesignPoint", "design_linear_sketch"]

_M = TypeVar("_M")


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPoint(Generic[_M]):
    """A candidate.

    Attributes
    ----------
    parameters : by name
    variance : exact variance of the estimator, averaged over what the user named
    squared_bias : of the estimator, averaged likewise; 0 where it is unbiased
    mechanism : calibrated, ready for release
    """

    parameters: Mapping[str, Any]
    variance: float
    squared_bias: float = 0.0
    mechanism: _M

    @property
    def mean_squared_error(self) -> float:
        """Variance and squared bias: what a design minimises."""
        return self.variance + self.squared_bias


@dataclass(frozen=True, slots=True, kw_only=True)
class Design(Generic[_M]):
    """All candidates in the order tried, and the best of them."""

    curve: tuple[DesignPoint[_M], ...]

    @property
    def best(self) -> DesignPoint[_M]:
        """The candidate of least mean squared error; the first one of equals."""
        return min(self.curve, key=lambda point: point.mean_squared_error)


def design_linear_sketch(
    draw: Callable[[int], Projection],
    sizes: Sequence[int],
    *,
    squared_distances: Sequence[float],
    differing: int | None = None,
    noises: Sequence[str] = ("gaussian", "laplace"),
    **target: Any,
) -> Design[LinearSketch]:
    """The k and the noise with the least exact variance of the squared-distance estimate.

    Parameters
    ----------
    draw : projection for a number of columns, such as ``lambda k: OPORP(p=784, k=k, seed=1)``
    sizes : candidates for k
    squared_distances : of interest, in the records' unit; the mean of the variances is minimised
    differing : number of attributes that two records differ in, evenly; all of them by default.
        The fewer, the less the projection itself adds.
    noises : "gaussian" needs delta > 0
    target : epsilon, delta, domain, adjacency, at as in `LinearSketch.calibrated`

    Raises
    ------
    ParameterError
        If there is no candidate or distance, a distance is negative, or no attribute differs.
    """
    require(len(squared_distances) > 0, "squared_distances", squared_distances, "non-empty")
    for squared in squared_distances:
        require(squared >= 0, "squared_distances", squared, "at least 0")
    require(differing is None or differing >= 1, "differing", differing, "at least 1")
    points = []
    for k in sizes:
        projection = draw(k)
        for noise in noises:
            if noise == "gaussian" and not target["delta"] > 0:
                continue
            sketch = LinearSketch.calibrated(projection, noise=noise, **target)  # type: ignore[arg-type]
            estimator = SquaredDistance(sketch=sketch)
            spread = differing or projection.p
            variances = [estimator.spread_variance(r, spread) for r in squared_distances]
            points.append(
                DesignPoint(
                    parameters={"k": k, "noise": noise},
                    variance=fmean(variances),
                    mechanism=sketch,
                )
            )
    if not points:
        raise ParameterError("sizes", list(sizes), "non-empty, with a noise that delta allows")
    return Design(curve=tuple(points))
