"""Auditors.

Who guards the guards? An auditor that says "ε is at least 3.5, with confidence 95 %" makes a claim
as well, and it can be refuted: by scores that carry no information, or just as much as is known. It
may be above the truth in one run of twenty. These are above it more often, some of them always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri

from dpverify.auditing.auditors import (
    NULLS,
    AuditorReport,
    Bound,
    Null,
    Scores,
    audit_auditor,
    laplace,
    response,
)

__all__ = ["EXHIBITS", "NAME", "AuditorExhibit"]

NAME = "Auditors"
_CANARIES = 25  # of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditorExhibit:
    """A lower bound on ε whose level isn't kept.

    Attributes
    ----------
    name, mistake, source : as of other exhibits
    leak : what follows from it, in one sentence
    broken, correct : the bound, and the corrected one
    nulls : scores of known ε, of the design that both are for
    scores, runs : of each side, and how many runs of 500 scores on each law
    """

    name: str
    mistake: str
    leak: str
    source: str
    broken: Bound
    correct: Bound
    nulls: Sequence[Null] = NULLS
    scores: int = 500
    runs: int = 200

    def tried(self, *, broken: bool, alpha: float, seed: int = 0) -> AuditorReport:
        """The bound, or the corrected one, tried on scores whose ε is known."""
        return audit_auditor(
            self.broken if broken else self.correct,
            nulls=self.nulls,
            scores=self.scores,
            runs=self.runs,
            alpha=alpha,
            seed=seed,
            name=self.name if broken else f"{self.name}, corrected",
        )

    def audited(self, *, alpha: float) -> AuditorReport:
        """For the command line."""
        return self.tried(broken=True, alpha=alpha)


Rows = NDArray[np.float64]


def _least(hits: Any, draws: Any, alpha: float) -> Any:
    """Lower limits of Clopper and Pearson."""
    limits = betaincinv(np.maximum(hits, 1), draws - np.maximum(hits, 1) + 1, alpha)
    return np.where(np.asarray(hits) == 0, 0.0, limits)


def _most(hits: Any, draws: int, alpha: float) -> Any:
    return 1 - _least(draws - np.asarray(hits), draws, alpha)


def _above(scores: Rows, thresholds: Rows) -> Any:
    """How many scores are at least as large as each threshold."""
    return scores.size - np.searchsorted(np.sort(scores), thresholds, side="left")


def _epsilon(true: Any, false: Any, delta: float) -> float:
    """Largest ε that rates of true and false positives show."""
    true, false = np.maximum(np.asarray(true) - delta, 0.0), np.asarray(false)
    with np.errstate(divide="ignore"):
        values = np.log(true[true > 0] / false[true > 0])
    return float(np.max(values, initial=0.0))


def _at(own: Rows, other: Rows, thresholds: Rows, delta: float, alpha: float) -> float:
    """By the events {score ≥ t}, with half of the level for each rate."""
    true = _least(_above(own, thresholds), own.size, alpha / 2)
    false = _most(_above(other, thresholds), other.size, alpha / 2)
    return _epsilon(true, false, delta)


def _chosen(own: Rows, other: Rows, delta: float) -> Rows:
    """The threshold that shows most of these scores, as an array of one."""
    thresholds = np.unique(np.concatenate([own, other]))
    true = _least(_above(own, thresholds), own.size, 0.05)
    false = _most(_above(other, thresholds), other.size, 0.05)
    return thresholds[[np.argmax((true - delta) / false)]]


def _every_threshold(own: Rows, other: Rows, /, *, delta: float, alpha: float) -> float:
    """In both tails, and for both sides."""
    sides = ((own, other), (other, own), (-own, -other), (-other, -own))
    return max(_at(*pair, np.unique(np.concatenate(pair)), delta, alpha) for pair in sides)


def _halves(own: Rows, other: Rows, /, *, delta: float, alpha: float) -> float:
    """One half chooses the threshold, and the other is counted."""
    threshold = _chosen(own[::2], other[::2], delta)
    return _at(own[1::2], other[1::2], threshold, delta, alpha)


def _ratio(own: Rows, other: Rows, /, *, delta: float, alpha: float) -> float:
    """The largest ratio of two rates, as they were counted."""
    thresholds = np.unique(np.concatenate([own, other]))
    true, false = _above(own, thresholds) / own.size, _above(other, thresholds) / other.size
    return _epsilon(true[false > 0], false[false > 0], delta)


def _rare(own: Rows, other: Rows, /, *, delta: float, alpha: float, exact: bool) -> float:
    """Above the largest score of one half of the other side, in the other halves."""
    threshold = other[::2].max(keepdims=True)
    if exact:
        return _at(own[1::2], other[1::2], threshold, delta, alpha)
    true, false = (
        rate + sign * ndtri(1 - alpha / 2) * math.sqrt(rate * (1 - rate) / (side.size // 2))
        for side, sign in ((own, -1), (other, 1))
        for rate in [np.mean(side[1::2] >= threshold)]
    )
    return _epsilon(true, false, delta)


def _gaussian_model(own: Rows, other: Rows, /, *, delta: float, alpha: float, both: bool) -> float:
    """μ of Gaussian differential privacy by limits of both rates at every threshold."""
    thresholds = np.unique(np.concatenate([own, other]))
    each = alpha / (2 * thresholds.size)
    false = _most(_above(other, thresholds), other.size, each)
    missed = _most(own.size - _above(own, thresholds), own.size, each)
    possible = (false < 1) & (missed < 1)
    distances = -ndtri(false[possible]) - ndtri(missed[possible])
    mu = float(np.max(np.abs(distances) if both else distances, initial=0.0))
    if mu <= 0:
        return 0.0
    grid = np.linspace(0, 50, 5001)
    deltas = ndtr(mu / 2 - grid / mu) - np.exp(grid) * ndtr(-mu / 2 - grid / mu)
    return float(grid[np.searchsorted(-deltas, -delta, side="left") - 1]) if delta else math.inf


def _same_draws(own: Rows, other: Rows, /, *, delta: float, alpha: float, fresh: bool) -> float:
    """An event of many cells, learned from draws: those where one side has more."""
    edges = np.linspace(-8, 8, 321)
    cells = [np.searchsorted(edges, side) for side in (own, other)]
    learning = [side[::2] if fresh else side for side in cells]
    counted = [side[1::2] if fresh else side for side in cells]
    first, second = (np.bincount(side, minlength=edges.size + 1) for side in learning)
    hits = [int(np.sum((first > second)[side])) for side in counted]
    true = _least(hits[0], counted[0].size, alpha / 2)
    false = _most(hits[1], counted[1].size, alpha / 2)
    return _epsilon(true, false, delta)


def _right(own: Rows, other: Rows, /, *, delta: float, alpha: float, looks: int) -> float:
    """By how many canaries are guessed right, after every so many; the largest bound is told.

    Of n guesses more than v are right with the probability of a binomial with e^ε/(1 + e^ε) at most
    (Steinke, Nasr and Jagielski, NeurIPS 2023, δ = 0).
    """
    right = np.concatenate([own > 0.5, other < 0.5])
    np.random.default_rng(0).shuffle(right)
    sizes = np.arange(right.size, 19, -max(right.size // looks, 1))
    rate = [_least(right[:n].sum(), n, alpha) for n in sizes]
    return max(0.0, *(math.log(p / (1 - p)) for p in rate))


def _runs_reduced(own: Rows, other: Rows, /, *, delta: float, alpha: float) -> float:
    """One number of each run."""
    reduced = [side.reshape(-1, _CANARIES).mean(axis=1) for side in (own, other)]
    return _halves(*reduced, delta=delta, alpha=alpha)


def _far(number: int, rng: np.random.Generator) -> Scores:
    """A number with Laplace noise, ε = 4."""
    return rng.laplace(4, 1, number), rng.laplace(0, 1, number)


def _shared(number: int, rng: np.random.Generator) -> Scores:
    """So many scores of runs of `_CANARIES` canaries each: a run's noise is theirs together."""
    runs = number // _CANARIES
    own, other = rng.laplace(1, 1, runs), rng.laplace(0, 1, runs)
    return np.repeat(own, _CANARIES), np.repeat(other, _CANARIES)


def _coins(number: int, rng: np.random.Generator) -> Scores:
    """Canaries of one run, each in by a fair coin, with Laplace noise of its own."""
    inside = rng.random(number) < 0.5
    own, other = laplace(number, rng)
    return own[inside], other[~inside]


def _reported(number: int, rng: np.random.Generator) -> Scores:
    """Canaries of one run, each in by a fair coin, and said to be so by randomized response."""
    inside = rng.random(number) < 0.5
    own, other = response(number, rng)
    return own[inside], other[~inside]


def _guesses(own: Rows, other: Rows, /, *, delta: float, alpha: float, best: bool) -> float:
    """One run: so many of the largest scores are guessed to be in, and of the smallest out."""
    scores = np.concatenate([own, other])
    inside = np.arange(scores.size) < own.size
    order = inside[np.argsort(scores)]
    most = scores.size // 2
    halves = np.arange(5, most) if best else np.array([most // 5])
    right = np.cumsum(order[::-1])[halves - 1] + np.cumsum(~order)[halves - 1]
    rate = _least(right, 2 * halves, alpha)
    return max(0.0, float(np.max(np.log(rate / (1 - rate)))))


_GAUSSIAN = (NULLS[0], NULLS[3])
_DEPENDENT = (Null(name="runs of 25 canaries, ε = 1", law=_shared, epsilon=1.0),)
_ONE_RUN = (Null(name="one run, ε = 1", law=_coins, epsilon=1.0),)

EXHIBITS: tuple[AuditorExhibit, ...] = (
    AuditorExhibit(
        name="A distance without its sign",
        mistake="μ is |Φ⁻¹(1 − FPR) − Φ⁻¹(FNR)| at upper limits of both rates, whatever its sign.",
        leak="Where a limit is near 1 the distance is large, for nothing is known: ε = 3.5 "
        "for scores that are the same on both sides.",
        source="jax_privacy, CanaryScoreAuditor.epsilon_from_gdp; pull request 270",
        broken=partial(_gaussian_model, both=True),
        correct=partial(_gaussian_model, both=False),
        nulls=_GAUSSIAN,
    ),
    AuditorExhibit(
        name="The best threshold",
        mistake="Each threshold has limits of 95 %, and the best of all, in both tails, is told.",
        leak="A thousand thresholds are a thousand chances to be wrong.",
        source="warned of in jax_privacy's guide of pitfalls, pull request 362",
        broken=_every_threshold,
        correct=_halves,
        nulls=NULLS[:1],
        runs=500,
    ),
    AuditorExhibit(
        name="A ratio without limits",
        mistake="ε is the logarithm of the largest ratio of true to false positives, as counted.",
        leak="Three of 500 against one of 500 is ε = 1.1, by luck.",
        source="after Jagielski, Ullman and Oprea, NeurIPS 2020 (arXiv:2006.07709), who take "
        "limits for that reason",
        broken=_ratio,
        correct=_halves,
    ),
    AuditorExhibit(
        name="A normal limit for a rare event",
        mistake="Limits of p ± 1.96 √(p(1 − p)/n), with few or no false positives.",
        leak="Of none in 250 it says that there is none at all, and ε is infinite.",
        source="Brown, Cai and DasGupta, Statistical Science 2001, on this interval",
        broken=partial(_rare, exact=False),
        correct=partial(_rare, exact=True),
        nulls=(Null(name="Laplace, ε = 4", law=_far, epsilon=4.0),),
    ),
    AuditorExhibit(
        name="Learned and counted on the same draws",
        mistake="The event is what one side had more of, and is counted on the same outputs.",
        leak="Any sample of noise has more here than there, somewhere.",
        source="after Bichsel, Steffen, Bogunovic and Vechev, S&P 2021 (DP-Sniper), who draw anew "
        "for that reason",
        broken=partial(_same_draws, fresh=False),
        correct=partial(_same_draws, fresh=True),
    ),
    AuditorExhibit(
        name="Looking until it is found",
        mistake="The bound is computed after every tenth guess, and the largest is told.",
        leak="A level is for one look, and there were fifty.",
        source="Armitage, McPherson and Rowe, JRSS A 1969, on repeated tests",
        broken=partial(_right, looks=50),
        correct=partial(_right, looks=1),
        nulls=(Null(name="one run of coins, ε = 1", law=_reported, epsilon=1.0),),
    ),
    AuditorExhibit(
        name="Canaries of one run, taken for independent",
        mistake="25 canaries of each of 20 runs are counted as 500 runs.",
        leak="They share the noise of their run: what is seen once is counted 25 times.",
        source="Steinke, Nasr and Jagielski, NeurIPS 2023 (arXiv:2305.08846), on why one run needs "
        "a bound of its own",
        broken=_halves,
        correct=_runs_reduced,
        nulls=_DEPENDENT,
    ),
    AuditorExhibit(
        name="The best number of guesses",
        mistake="A one-run bound is for a number of guesses that was fixed, and the best is told.",
        leak="Somewhere between ten guesses and all of them luck was good.",
        source="warned of in jax_privacy's guide of pitfalls, pull request 362",
        broken=partial(_guesses, best=True),
        correct=partial(_guesses, best=False),
        nulls=_ONE_RUN,
        scores=1000,
    ),
)
