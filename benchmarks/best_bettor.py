"""How soon the best bet against a claim of ε would refute it, of who knows both laws.

Let P and Q be the laws of an output on the two sides. Of all pairs (P₀, Q₀) that keep the claim
take the nearest one, that of the least KL(P‖P₀) + KL(Q‖Q₀). Whoever tests the claim at level α by
pairs of outputs, in whatever way and for as long as they like, needs ln(1/α) over that sum of them
in the mean; and the bet that multiplies the stake by P(x)Q(y)/(P₀(x)Q₀(y)) reaches it but for what
it wins beyond 1/α. It is a valid bet: the sum has its least value at (P₀, Q₀) and the pairs that
keep the claim are a convex set, so that at each of them the means of P/P₀ and Q/Q₀ add up to at
most 2, and those of a product of independent numbers to at most the square of half of that.

*The nearest pair.* With multipliers l and m of the two laws' sums, P₀ is P/l and Q₀ is Q/m where
these keep the claim; and where P/l is above e^ε Q/m, Q₀ is (P + Q)/(e^ε l + m) and P₀ is e^ε times
that, as the derivative of P ln P₀ + Q ln Q₀ − l P₀ − m Q₀ is 0 there; in the other order likewise.
The sums of both are 1 where l + m = 2 and the sum of P₀ is.

*No test does better for long.* n pairs of outputs have n times that sum, and the two answers of a
test of level α, which finds the bug in half of its runs, a divergence of at least −ln(4α(1 − α))/2.
It can't be larger than that of the outputs, so the median of any test is at least the one over the
other.

Laws of sparse vector techniques are those of outputs that were drawn, half of them on each side: of
one with the ratio r = P/Q, P is 2r/(1 + r) and Q is 2/(1 + r) in units of an even share. Those of
a mean with noise of a noisy count are on intervals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import laplace, norm

from benchmarks.published import EPSILON, Sparse

__all__ = ["best", "best_of", "log_law", "log_ratios", "mean_law", "nearest"]

Array = NDArray[Any]
_GRID = 2_000  # quantiles of the threshold's noise
_OUTPUTS = 50_000  # that are drawn on each side
_BLOCKS = 100  # of outputs, whose ratios are computed together
_BETTORS = 2_001
_COUNTS = 4_000  # quantiles of a noisy count
_ENDS = np.sinh(np.linspace(-9, 9, 1_201)) + 0.25  # of intervals, closer next to the means


def nearest(p: Array, q: Array, epsilon: float) -> tuple[Array, Array]:
    """The pair of laws that keeps the claim and is nearest to these.

    Parameters
    ----------
    p, q : two laws, of shape (outputs,), each with the sum 1
    epsilon : claimed, with δ = 0
    """
    most = math.exp(epsilon)

    def laws(one: float) -> tuple[Array, Array]:
        other = 2 - one
        above, below = p / one > most * q / other, q / other > most * p / one
        shared = (p + q) / (most * one + other), (p + q) / (one + most * other)
        first = np.select([above, below], [most * shared[0], shared[1]], p / one)
        second = np.select([above, below], [shared[0], most * shared[1]], q / other)
        return first, second

    return laws(brentq(lambda one: float(laws(one)[0].sum()) - 1, 0.01, 1.99, xtol=1e-14))


def log_ratios(technique: Sparse, sides: tuple[Array, Array], outputs: Array) -> Array:
    """Ln P/Q of outputs of a sparse vector technique.

    Parameters
    ----------
    technique : whose threshold isn't drawn anew
    sides : the answers of both sides, of shape (k,)
    outputs : of shape (n, k), of a number for each answer
    """
    first, second = (log_law(technique, side, outputs) for side in sides)
    return np.asarray(first - second)


def log_law(technique: Sparse, answers: Array, outputs: Array) -> Array:
    """Logarithms of probabilities of the outputs; of densities but for a factor of both sides.

    The noise of the threshold is integrated out over its quantiles.
    """
    scale = technique.scales[0] / technique.part / EPSILON
    bars = technique.threshold + laplace.ppf((np.arange(_GRID) + 0.5) / _GRID, scale=scale)
    scale = technique.scales[1] / (1 - technique.part) / EPSILON
    passed = outputs > -1000 if technique.numeric else outputs == 1
    stopped = outputs == (-2000 if technique.numeric else -1)
    logs = np.zeros((len(outputs), _GRID))
    for answer in np.unique(answers):
        at = answers == answer
        if scale:
            below = laplace.logcdf(bars - answer, scale=scale)
            above = laplace.logsf(bars - answer, scale=scale)
        else:
            below, above = (
                np.where(each, 0.0, -np.inf) for each in (answer < bars, answer >= bars)
            )
        logs += _together(~passed & ~stopped & at, below)
        if not technique.numeric:
            logs += _together(passed & at, above)
    if technique.numeric:
        told = np.where(passed, outputs, np.inf).min(axis=1)
        noise = np.where(passed, np.abs(outputs - answers), 0.0).sum(axis=1)
        logs = np.where(bars <= told[:, None], logs - noise[:, None] / scale, -np.inf)
    return np.asarray(logsumexp(logs, axis=1)) - math.log(_GRID)


def _together(chosen: Array, log: Array) -> Array:
    """The sum of so many times this logarithm, which may be −∞, as answers are chosen."""
    often = chosen.sum(axis=1)[:, None]
    return np.asarray(often * np.where(often > 0, log, 0.0))


def mean_law(rows: Array, epsilon: float, *, noise: str) -> Array:
    """The law of a mean with noise of a noisy count, on intervals.

    Parameters
    ----------
    rows : whose mean it is
    epsilon : both scales are 2/ε, of the count's noise and over the noisy count
    noise : "laplace" or "normal"
    """
    law = {"laplace": laplace, "normal": norm}[noise]
    none = law.cdf(0, loc=len(rows), scale=2 / epsilon)  # noise without an end: no information
    shares = none + (1 - none) * (np.arange(_COUNTS) + 0.5) / _COUNTS
    counts = law.ppf(shares, loc=len(rows), scale=2 / epsilon)
    below = law.cdf((_ENDS[:, None] - np.mean(rows)) * counts * epsilon / 2).mean(axis=1)
    inside = (1 - none) * np.diff(np.concatenate([[0], below, [1]]))
    return np.append(inside, none)


def best(
    technique: Sparse, sides: tuple[Array, Array], *, epsilon: float, alpha: float, seed: int = 0
) -> tuple[float, float]:
    """`best_of` for a sparse vector technique, whose outputs are drawn by this seed.

    Parameters
    ----------
    technique, sides : as for `log_ratios`
    """
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([technique(side, _OUTPUTS, rng) for side in sides])
    blocks = [log_ratios(technique, sides, part) for part in np.array_split(drawn, _BLOCKS)]
    ratios = np.concatenate(blocks)
    p, q = (1 / (1 + np.exp(-sign * ratios)) for sign in (1, -1))
    return best_of(p / p.sum(), q / q.sum(), epsilon=epsilon, alpha=alpha, rng=rng)


def best_of(
    p: Array, q: Array, *, epsilon: float, alpha: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Pairs of outputs that half of the best bettors need, and what half of any test's runs need.

    Parameters
    ----------
    p, q : two laws, of shape (outputs,), each with the sum 1
    epsilon : claimed, with δ = 0
    alpha : level
    """
    one, other = nearest(p, q, epsilon)
    steps = np.log(np.maximum(p, 1e-300) / one), np.log(np.maximum(q, 1e-300) / other)
    least = -math.log(4 * alpha * (1 - alpha)) / 2 / float(p @ steps[0] + q @ steps[1])
    pairs, wealth, needed = 0, np.zeros(_BETTORS), np.full(_BETTORS, math.inf)
    while np.isinf(needed).sum() > _BETTORS // 2:
        pairs += 1
        for law, step in zip((p, q), steps, strict=True):
            wealth += rng.choice(step, _BETTORS, p=law)
        needed[(wealth >= math.log(1 / alpha)) & np.isinf(needed)] = pairs
    return float(np.median(needed)), least
