"""Check an estimator's mean and variance formulas against draws.

Each draw releases synthetic records through the real code path, with the public randomness realised
anew (`redrawn`) where the formulas are over it. The mean is compared in units of the predicted
standard deviation, the variance as a ratio to the predicted one; its spread is estimated with the
fourth moment, so that heavy tails don't break the level. Both use the normal limit of means: the
level is asymptotic in the draws.

`judge` reads two verdicts off moments that are stored. `check_moments` draws until it knows:

**Level.** Estimates are drawn in looks of doubling size. At each look there is one interval for the
mean and one for the variance, each of level α/(2·pairs·looks). By the union bound all of them cover
the true moments with probability at least 1 − α, up to the error of the normal limit. Where they
do, no verdict is false: a formula that an interval leaves out is wrong, and one with the whole
interval inside its margin is within the margin. So it doesn't matter when the drawing stops, nor
that it stops because of what was seen.

**Intervals.** The variance is the mean of the squared deviations, so one interval serves both. That
of the normal limit fails where tails are heavy, because a sample without its rare large deviations
shows a small mean and a small spread together: at a level of 7e-4 and 500 draws of a Laplace
variable times a normal one it missed the variance 28 times as often as it should. The interval
here removes the skewness by Hall's cubic transformation (Hall 1992, Journal of the Royal
Statistical Society B 54, section 2), which leaves a coverage error of order 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.errors import require
from dpverify.privacy import Certifiable, Estimator, Pair
from dpverify.sampling.words import ReplayableWords, Words

__all__ = [
    "MARGIN_MEAN",
    "MARGIN_VARIANCE",
    "Margin",
    "MomentFinding",
    "MomentVerdict",
    "Moments",
    "check_draws",
    "check_moments",
    "draw_estimates",
    "enough_draws",
    "interval_of_mean",
    "judge",
    "read",
]

MARGIN_MEAN = 0.15
"""Agreement of the mean, in predicted standard deviations, that counts as confirmed."""
MARGIN_VARIANCE = 0.25
"""Relative agreement of the variance that counts as confirmed."""
_UNSEEN_TAILS = 1.5  # the kurtosis of a sample is mostly below that of its law

MomentVerdict = Literal["refuted", "confirmed_within_margin", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """Agreement that counts as confirmed.

    Attributes
    ----------
    mean : in predicted standard deviations
    variance : relative to the predicted variance
    """

    mean: float = MARGIN_MEAN
    variance: float = MARGIN_VARIANCE

    def __post_init__(self) -> None:
        require(0 < self.mean < math.inf, "mean", self.mean, "positive and finite")
        require(0 < self.variance < math.inf, "variance", self.variance, "positive and finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentFinding:
    """What draws say of an estimator's formulas at one pair.

    Attributes
    ----------
    pair : its name
    unbiased : the mean against what is estimated
    mean, variance : against their formulas
    mean_between, variance_between : the last intervals, for the estimate's mean and its variance
    draws : how many it took
    """

    pair: str
    unbiased: MomentVerdict
    mean: MomentVerdict
    variance: MomentVerdict
    mean_between: tuple[float, float]
    variance_between: tuple[float, float]
    draws: int


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
    start: int = 0,
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
    start : number of the first draw, so that more can be drawn later
    """
    kinds = {estimator.over for estimator in estimators}
    outputs: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {over: [] for over in kinds}
    for number in range(start, start + draws):
        for over, drawn in outputs.items():
            key = ReplayableWords(seed, "moments", number)
            public = int(key.words(1)[0] >> np.uint64(11))
            source = mechanism if over == "noise" else mechanism.redrawn(public)
            drawn.append(_released(estimators[0], source, probe, key))
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
    the whole interval lies within the margin around it. Draws that are all equal decide neither.
    """
    told = moments.draws >= 2 and moments.variance > 0 and not moments.undefined
    if not told or not variance > 0:
        return "inconclusive", "inconclusive"
    z = float(-scipy.special.ndtri(level / 2))
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
    return "confirmed_within_margin" if abs(difference) + spread <= margin else "inconclusive"


def enough_draws(samples: Sequence[Moments], level: float) -> int:
    """Draws after which `judge` can be expected to confirm formulas that are right.

    Its intervals have half-widths z√(1/n) for the mean and z√((κ − 1)/n) for the variance, κ the
    kurtosis of an estimate. Here each is to be half of its margin, so that as much is left to what
    the draws themselves are off, with κ − 1 half as large again as the samples have it. At level
    6e-5, where z = 4.01, that takes 2,900 draws for the mean, and 1,540·(κ − 1) for the variance.

    Parameters
    ----------
    samples : moments of some draws of each estimator
    level : of one interval
    """
    z = float(-scipy.special.ndtri(level / 2))
    heaviest = max((sample.kurtosis for sample in samples), default=0.0)
    mean = (2 * z / MARGIN_MEAN) ** 2
    variance = _UNSEEN_TAILS * (heaviest - 1) * (2 * z / MARGIN_VARIANCE) ** 2
    return math.ceil(max(mean, variance))


def check_moments(
    mechanism: Certifiable,
    estimator: Estimator,
    pairs: Sequence[Pair],
    *,
    margin: Margin | None = None,
    alpha: float = 0.01,
    draws: int = 32_000,
    first: int = 500,
    seed: int = 0,
) -> list[MomentFinding]:
    """Test an estimator's mean against the truth and its formulas, until each pair is decided.

    Parameters
    ----------
    mechanism : released through its own path
    estimator : its `truth`, `expectation` and `variance` are under test
    pairs : what it is read off
    margin : agreement that counts as confirmed
    alpha : a false verdict, of whichever kind and at whichever pair, has probability at most this,
        up to the error of the normal limit
    draws : most draws for one pair
    first : draws at the first look; each later look doubles them
    seed : of the replayable randomness

    Returns
    -------
    list of `MomentFinding`, one a pair. A pair whose estimates aren't all finite is inconclusive.
    """
    require(bool(pairs), "pairs", "none", "at least one")
    require(0 < alpha < 1, "alpha", alpha, "in (0, 1)")

    def drawn(pair: Pair) -> Callable[[int, int], NDArray[np.float64]]:
        return lambda start, count: draw_estimates(
            mechanism, [estimator], pair, draws=count, seed=seed, start=start
        )[0]

    return [
        check_draws(
            drawn(pair),
            name=pair.name,
            truth=estimator.truth(pair.record, pair.neighbour),
            expectation=estimator.expectation(pair.record, pair.neighbour),
            variance=estimator.variance(pair.record, pair.neighbour),
            margin=margin,
            alpha=alpha / len(pairs),
            draws=draws,
            first=first,
        )
        for pair in pairs
    ]


def check_draws(
    draw: Callable[[int, int], NDArray[np.float64]],
    *,
    truth: float,
    expectation: float,
    variance: float,
    name: str = "",
    margin: Margin | None = None,
    alpha: float = 0.01,
    draws: int = 32_000,
    first: int = 500,
) -> MomentFinding:
    """Test the mean and the variance of independent draws; see `check_moments`.

    Parameters
    ----------
    draw : ``draw(start, count)`` gives the draws numbered from `start`, of shape (count,)
    truth, expectation, variance : what the mean and the variance should be
    name, margin, alpha, draws, first : as for `check_moments`, for one pair
    """
    require(2 <= first <= draws, "first", first, f"between 2 and draws={draws}")
    require(0 < variance < math.inf, "variance", variance, "positive and finite")
    allowed, deviation = margin or Margin(), math.sqrt(variance)
    sizes = [first]
    while sizes[-1] < draws:
        sizes.append(min(2 * sizes[-1], draws))
    level = alpha / (2 * len(sizes))
    values = np.empty(0)
    for size in sizes:
        values = np.concatenate([values, draw(values.size, size - values.size)])
        if not np.isfinite(values).all():
            mean_between = variance_between = (-math.inf, math.inf)
        else:
            mean_between = interval_of_mean(values, level)
            squares = (values - values.mean()) ** 2 * (size / (size - 1))
            variance_between = interval_of_mean(squares, level)
        finding = MomentFinding(
            pair=name,
            unbiased=_placed(mean_between, truth, allowed.mean * deviation),
            mean=_placed(mean_between, expectation, allowed.mean * deviation),
            variance=_placed(variance_between, variance, allowed.variance * variance),
            mean_between=mean_between,
            variance_between=variance_between,
            draws=size,
        )
        if "inconclusive" not in (finding.unbiased, finding.mean, finding.variance):
            break
    return finding


def interval_of_mean(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Confidence interval for the mean of independent values, skewness removed.

    Studentised as t = √n(mean − μ)/s, g(t) = t + γt²/3√n + γ²t³/27n + γ/6√n is normal up to
    O(1/n), where γ is the skewness; g = (√n/γ)((1 + γt/3√n)³ − 1) + γ/6√n is inverted in closed
    form. Hall 1992, section 2.

    Parameters
    ----------
    values : of shape (n,), n ≥ 2, finite
    level : probability, up to O(1/n), that the interval misses the mean; half on each side

    Returns
    -------
    Its ends; infinite where all values are equal, which tells nothing of rare ones.
    """
    root = math.sqrt(values.size)
    mean = math.fsum(values.tolist()) / values.size
    spread = float(values.std(ddof=1))
    if not spread > 0:  # what is rare and wasn't seen may be any size
        return -math.inf, math.inf
    skew = float((((values - mean) / spread) ** 3).mean()) / root
    z = float(-scipy.special.ndtri(level / 2))

    def studentised(u: float) -> float:
        """The t with g(t) = u; `skew` is γ/√n."""
        if abs(skew) < 1e-9:
            return u
        return 3 / skew * (float(np.cbrt(1 + skew * (u - skew / 6))) - 1)

    step = spread / root
    return mean - step * studentised(z), mean - step * studentised(-z)


def _placed(between: tuple[float, float], formula: float, margin: float) -> MomentVerdict:
    low, high = between
    if not low <= formula <= high:
        return "refuted"
    inside = formula - margin <= low and high <= formula + margin
    return "confirmed_within_margin" if inside else "inconclusive"
