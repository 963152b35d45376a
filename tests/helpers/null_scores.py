"""Scores whose ε is known, and how often a bound on it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks.scores import Design, independent_bound
from dpverify.auditing.auditors import Scores, laplace, normal, response
from dpverify.auditing.statistics.score_bounds import Shown, one_run_bound
from dpverify.enclosure import Enclosure

__all__ = [
    "ALPHA",
    "DELTA",
    "FALSE_ALARM",
    "NULLS",
    "TENTH",
    "Law",
    "Null",
    "Scores",
    "above",
    "bound_above",
    "laplace",
    "most",
    "normal",
    "response",
]


ALPHA = 0.05


DELTA = Fraction(1, 10**5)


FALSE_ALARM = 1e-4
"""Probability with which a bound that keeps its level is called one that doesn't."""


Law = Callable[[int, np.random.Generator], Scores]


def _canaries(count: int, rng: np.random.Generator) -> Scores:
    """One run with ε = 1: as many canaries, each in by a fair coin; scores share one normal."""
    own, other = response(count, rng)
    inside = rng.random(count) < 0.5
    shared = rng.normal()
    return own[inside] + shared, other[~inside] + shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """Scores of a known ε.

    Attributes
    ----------
    name : in words
    law : draws so many of each side
    delta, epsilon : what they attain exactly
    design : how they come about
    """

    name: str
    law: Law
    delta: Fraction = Fraction(0)
    epsilon: float = 0.0
    design: Design = "independent"


TENTH = Fraction(1, 10)


NULLS = (
    Null(name="equal sides", law=partial(normal, 0.0), delta=DELTA),
    Null(name="Laplace, ε = 1", law=laplace, epsilon=1.0),
    Null(name="randomized response, ε = 1", law=response, epsilon=1.0),
    Null(
        name="Gaussian, Δ = σ, δ = 0.1",
        law=partial(normal, 1.0),
        delta=TENTH,
        epsilon=Gaussian(sigma=1).epsilon_at(TENTH).upper,
    ),
    Null(name="one run, ε = 1", law=_canaries, epsilon=1.0, design="one-run"),
)


def above(null: Null, count: int, first: int, runs: int) -> int:
    """How many bounds of runs from `first` on are above the true ε."""
    wrong = 0
    for seed in range(first, first + runs):
        own, other = null.law(count, np.random.default_rng((seed, count)))
        if min(own.size, other.size) >= 2:
            wrong += bound_above(null, own, other) > null.epsilon
    return wrong


def bound_above(null: Null, own: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The bound of `audit_scores` if it is above the true ε, which is all that is searched for."""
    delta, true = Enclosure.of_exact(null.delta).upper, Shown(epsilon=null.epsilon)
    bound = one_run_bound if null.design == "one-run" else independent_bound
    return bound(own, other, delta=delta, alpha=ALPHA, best=true).epsilon


def most(runs: int) -> int:
    """How many bounds above the true ε are compatible with the level."""
    return int(binom.ppf(1 - FALSE_ALARM, runs, ALPHA))
