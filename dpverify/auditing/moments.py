"""Check an estimator's mean and variance formulas against draws.

Each draw releases synthetic records through the real code path, with the public randomness realised
anew (`redrawn`) where the formulas are over it. The mean is compared in units of the predicted
standard deviation, the variance as a ratio to the predicted one; its spread is estimated with the
fourth moment, so that heavy tails don't break the level. Both use the normal limit of means: the
level is asymptotic in the draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpverify.mechanism import Certifiable, Estimator, Pair
from dpverify.sampling.words import ReplayableWords, Words

__all__ = [
    "MARGIN_MEAN",
    "MARGIN_VARIANCE",
    "MomentVerdict",
    "Moments",
    "draw_estimates",
    "judge",
    "read",
]

MARGIN_MEAN = 0.15
"""Agreement of the mean, in predicted standard deviations, that counts as confirmed."""
MARGIN_VARIANCE = 0.25
"""Relative agreement of the variance that counts as confirmed."""

MomentVerdict = Literal["refuted", "confirmed within the margin", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Sample moments of estimates, each sum correctly rounded and so the same everywhere.

    Attributes
    ----------
    mean, variance : of the draws
    kurtosis : fourth central moment over the squared variance
    draws : how many; `undefined` counts those without an estimate
    """

    mean: float
    variance: float
    kurtosis: float
    draws: int
    undefined: int

    @classmethod
    def of(cls, estimates: NDArray[np.float64]) -> Moments:
        """Moments of the draws that are finite numbers."""
        values = estimates[np.isfinite(estimates)].tolist()
        count = len(values)
        mean = math.fsum(values) / max(count, 1)
        centred = [value - mean for value in values]
        variance = math.fsum(c * c for c in centred) / max(count - 1, 1)
        deviation = math.sqrt(variance) or 1.0
        kurtosis = math.fsum((c / deviation) ** 4 for c in centred) / max(count, 1)
        return cls(
            mean=mean,
            variance=variance,
            kurtosis=kurtosis,
            draws=count,
            undefined=estimates.size - count,
        )


def read(estimator: Estimator, mechanism: Certifiable, probe: Pair, *, rng: Words) -> float:
    """One estimate from a fresh release of a synthetic probe."""
    return float(estimator.estimate(*_released(estimator, mechanism, probe, rng)).item())


def draw_estimates(
    mechanism: Certifiable,
    estimators: Sequence[Estimator],
    probe: Pair,
    *,
    draws: int,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> list[NDArray[np.float64]]:
    """Estimates of every estimator, over fresh noise in every draw and fresh public randomness.

    The latter for estimators whose moments are over it; the others see the realised one.

    Parameters
    ----------
    mechanism : released through its own path
    estimators : those with moments over the same randomness are read off the same releases, so
        that all must compare the same things
    probe : two synthetic records, or a synthetic data set and a query
    draws, seed : how many, and of which replayable randomness
    progress : called with the number of draws done since the last call
    """
    kinds = {estimator.over for estimator in estimators}
    outputs: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {over: [] for over in kinds}
    for number in range(draws):
        for over, drawn in outputs.items():
            key = ReplayableWords(seed, "moments", number)
            public = int(key.words(1)[0] >> np.uint64(11))
            source = mechanism if over == "noise" else mechanism.redrawn(public)
            drawn.append(_released(estimators[0], source, probe, key))
        progress(1)
    stacked = {
        over: tuple(np.stack(side) for side in zip(*drawn, strict=True))
        for over, drawn in outputs.items()
    }
    return [estimator.estimate(*stacked[estimator.over]) for estimator in estimators]


def _released(
    estimator: Estimator, mechanism: Certifiable, probe: Pair, rng: Words
) -> tuple[NDArray[Any], NDArray[Any]]:
    """What the estimator compares: two released rows, or a release and the query."""
    first = mechanism.release(probe.record, rng=rng)
    match estimator.compares:
        case "records":
            return first[0], mechanism.release(probe.neighbour, rng=rng)[0]
        case "release and query":
            return first, np.asarray(probe.neighbour)[0]


def judge(
    moments: Moments, expectation: float, variance: float, level: float
) -> tuple[MomentVerdict, MomentVerdict]:
    """Verdicts on the formulas for the mean and for the variance, each at the given level.

    A formula is refuted where it lies outside the two-sided confidence interval, confirmed where
    the whole interval lies within the margin around it.
    """
    if moments.undefined or moments.draws < 2 or not variance > 0:
        return "inconclusive", "inconclusive"
    z = float(-ndtri(level / 2))
    deviation = (moments.mean - expectation) / math.sqrt(variance)
    spread = z * math.sqrt(moments.variance / variance / moments.draws)
    ratio = moments.variance / variance
    ratio_spread = z * ratio * math.sqrt(max(moments.kurtosis - 1, 0.0) / moments.draws)
    return (
        _verdict(deviation, spread, MARGIN_MEAN),
        _verdict(ratio - 1, ratio_spread, MARGIN_VARIANCE),
    )


def _verdict(difference: float, spread: float, margin: float) -> MomentVerdict:
    if not abs(difference) <= spread:
        return "refuted"
    return "confirmed within the margin" if abs(difference) + spread <= margin else "inconclusive"
