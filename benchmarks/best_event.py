"""The limit that the best event gives who knows both laws, of the mechanisms of two papers.

An audit by one event counts how often it happens in n draws of each side, and gives the exact lower
limit of ε. Nobody can do better on average than by an event {P/Q ≥ t}, or by {P/Q ≤ t} for the
neighbour, with the t of the largest limit: so much is there to be found at all. Its t is searched
by the delta method, and the limit is that of the expected counts.

Laws with few outputs, or of one number, are computed. Of others the ratio P/Q is, on outputs that
were drawn, half of them on each side: of an output with the ratio r, r/(1 + r) and 1/(1 + r) of its
share are P's and Q's, so that both probabilities of an event err alike, and hardly their ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from scipy.special import expit, logsumexp, ndtri
from scipy.stats import binom, expon, laplace

from benchmarks.best_bettor import log_law, log_ratios
from benchmarks.published import EPSILON, Array, Row, Sparse, geometric_ends
from dpverify.auditing.statistics.two_sample_binomial import Counts

__all__ = ["best", "laws"]

_OUTPUTS = 25_000  # that are drawn on each side
_BLOCKS = 200  # of outputs, whose ratios are computed together
_GRID = 2_000  # quantiles of noise


def best(row: Row, draws: int, alpha: float) -> float:
    """The limit of the best event.

    Parameters
    ----------
    row : the mechanism
    draws : counted on each side
    alpha : level
    """
    p, q = laws(row)
    p, q = p[p + q > 0], q[p + q > 0]
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(q) - np.log(p))
    found = []
    for own, other in ((p[order], q[order]), (q[order[::-1]], p[order[::-1]])):
        hits, false_hits = (draws * np.cumsum(side) for side in (own, other))
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt((1 - hits / draws) / hits + 1 / (false_hits + 1))
            limits = np.log(hits / (false_hits + 1)) + ndtri(alpha) * error
        place = int(np.nanargmax(np.where(hits > 0, limits, -np.inf)))
        counts = Counts(
            hits=min(round(hits[place]), draws), draws=draws, false_hits=round(false_hits[place])
        )
        caution = None if counts.false_hits else 2.0  # as in the audit
        found.append(counts.epsilon_lower(delta=0.0, alpha=alpha, caution=caution))
    return max(found)


def laws(row: Row, seed: int = 0) -> tuple[Array, Array]:
    """Both laws on parts of the outputs, each of one ratio, of shape (parts,)."""
    if row.name in _FINITE:
        p, q = _FINITE[row.name](row)
        return p / p.sum(), q / q.sum()
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([row.many(side, _OUTPUTS, rng) for side in row.sides])
    blocks = np.array_split(drawn, _BLOCKS)
    ratios = np.concatenate([_RATIOS[row.name](row, part) for part in blocks])
    p, q = (1 / (1 + np.exp(-sign * ratios)) for sign in (1, -1))
    return p / len(ratios) * 2, q / len(ratios) * 2


def _geometric(row: Row) -> tuple[Array, Array]:
    p, q = (np.diff(geometric_ends(int(side[0])), prepend=0).astype(float) for side in row.sides)
    return p, q


def _shifted(row: Row, outputs: Array, *, scale: float) -> Array:
    """Laplace noise on some answers."""
    values = outputs.reshape(len(outputs), -1)
    first, second = (np.abs(values - side).sum(axis=1) for side in row.sides)
    return np.asarray((second - first) / scale)


def _sums(row: Row, outputs: Array) -> Array:
    return _shifted(row, np.diff(outputs, axis=1, prepend=0.0), scale=1 / EPSILON)


def _maximum(row: Row, *, noise: str) -> tuple[Array, Array]:
    """Of the largest of five equal noisy answers, between quantiles of either side."""
    law = {"laplace": laplace, "exponential": expon}[noise]
    answers = [side[0] for side in row.sides]
    at = law.ppf(expit(np.linspace(-20, 20, _GRID)) ** (1 / 5), scale=2 / EPSILON)
    edges = np.unique([-np.inf, *np.add.outer(answers, at).flat, np.inf])
    p, q = (np.diff(law.cdf(edges, loc=answer, scale=2 / EPSILON) ** 5) for answer in answers)
    return p, q


def _places(row: Row, *, noise: str) -> tuple[Array, Array]:
    """Of the largest noisy answer, by a sum over quantiles of its noise."""
    law = {"laplace": laplace, "exponential": expon}[noise]
    at = law.ppf((np.arange(20 * _GRID) + 0.5) / (20 * _GRID), scale=2 / EPSILON)

    def one(side: Array) -> Array:
        others = [
            [law.cdf(at + mine - answer, scale=2 / EPSILON) for answer in np.delete(side, place)]
            for place, mine in enumerate(side)
        ]
        return np.array([np.prod(each, axis=0).mean() for each in others])

    return one(row.sides[0]), one(row.sides[1])


def _sparse(row: Row) -> tuple[Array, Array]:
    """Of a technique that gives no numbers, all of whose outputs are listed."""
    technique = row.many
    assert isinstance(technique, Sparse)
    if technique.most is None:
        outputs = np.array(list(product((0.0, 1.0), repeat=10)))
    else:
        outputs = np.triu(np.full((11, 10), -1.0), 1) + np.eye(11, 10)
    with np.errstate(divide="ignore"):
        p, q = (np.exp(log_law(technique, side, outputs)) for side in row.sides)
    return p, q


def _numbers(row: Row, outputs: Array) -> Array:
    """Of sparse vector techniques side by side."""
    parts = row.many.keywords["parts"] if isinstance(row.many, partial) else (row.many,)
    split = np.split(outputs, len(parts), axis=1)
    summed: Array = np.sum(
        [log_ratios(part, row.sides, each) for part, each in zip(parts, split, strict=True)], axis=0
    )
    return summed


def _fresh_numbers(row: Row, outputs: Array) -> Array:
    """Of numerical sparse vector, whose numbers have noise of their own."""
    bars = 1 + laplace.ppf((np.arange(_GRID) + 0.5) / _GRID, scale=3 / EPSILON)
    logs = []
    for side in row.sides:
        log = np.zeros((len(outputs), _GRID))
        for place, answer in enumerate(side):
            told = outputs[:, place, None]
            below = laplace.logcdf(bars - answer, scale=12 / EPSILON)
            above = laplace.logsf(bars - answer, scale=12 / EPSILON)
            passed = above + laplace.logpdf(told, loc=answer, scale=6 / EPSILON)
            log += np.select([told == -1000, told == 0], [np.zeros_like(log), below], passed)
        logs.append(logsumexp(log, axis=1))
    return np.asarray(logs[0] - logs[1])


def _bits(row: Row, *, agreeing: float) -> tuple[Array, Array]:
    """Of how many of six bits, which differ, are as one side has them."""
    number = np.arange(7)
    return binom.pmf(number, 6, agreeing), binom.pmf(number, 6, 1 - agreeing)


_FINITE: dict[str, Callable[[Row], tuple[Array, Array]]] = {
    "TruncatedGeometric": _geometric,
    "ReportNoisyMax1": partial(_places, noise="laplace"),
    "ReportNoisyMax2": partial(_places, noise="exponential"),
    "ReportNoisyMax3": partial(_maximum, noise="laplace"),
    "ReportNoisyMax4": partial(_maximum, noise="exponential"),
    **dict.fromkeys(("SVT1", "SVT2", "SVT4", "SVT5", "SVT6"), _sparse),
    "Rappor": partial(_bits, agreeing=0.5125),
    "OneTimeRappor": partial(_bits, agreeing=0.525),
}
_RATIOS: dict[str, Callable[[Row, Array], Array]] = {
    "LaplaceMechanism": partial(_shifted, scale=1 / EPSILON),
    "NoisyHist1": partial(_shifted, scale=10),
    "NoisyHist2": partial(_shifted, scale=0.1),
    **dict.fromkeys(("SVT3", "SVT34Parallel"), _numbers),
    "LaplaceParallel": partial(_shifted, scale=200),
    "PrefixSum": _sums,
    "NumericalSVT": _fresh_numbers,
}
