"""Our reading of DP-Sniper's method, which is in no package index.

Bichsel, Steffen, Bogunovic and Vechev 2021, "DP-Sniper: Black-Box Discovery of Differential Privacy
Violations using Classifiers", with the settings of its published code:

1. a logistic regression learns from which side an output is: batches of 100,000 draws on each side,
   standardised as the first batch asks, ten steps of gradient descent on each (rate 0.3, a tenth of
   it from each 500th step on; momentum 0.3; ridge 0.001);
2. fresh draws of the second side choose the threshold that a share c = 0.01 of them exceeds, with
   ties broken at random; probabilities are rounded to three decimals;
3. fresh draws of both sides are counted, and Clopper-Pearson limits, each with half the level, give
   the bound ln(p/q).

Its own defaults are 10,700,000 draws a phase (and 200,000,000 for a last count) at level 0.1; here
the number and the level are arguments. It runs in one process, on numpy, where the published code
has PyTorch and several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit

__all__ = ["Draw", "snipe"]

Draw = Callable[[int, int], NDArray[Any]]
"""Outputs as numbers of shape (count, columns), of a side 0 or 1."""

BATCH = 100_000
STEPS = 10
RATE, DROP, MOMENTUM, RIDGE = 0.3, 500, 0.3, 0.001
SHARE = 0.01
DECIMALS = 3


def snipe(draw: Draw, *, phase: int, alpha: float) -> float:
    """Lower bound on ε, of side 1 against side 0.

    Parameters
    ----------
    draw : fresh outputs of a side
    phase : draws a side for learning, as many of side 0 for the threshold, and as many a side that
        are counted
    alpha : level of the bound
    """
    score = _learned(draw, phase)
    found = np.concatenate([score(draw(0, size)) for size in _sizes(phase)])
    threshold, share = _threshold(found)
    inside = [
        sum(_weight(score(draw(side, size)), threshold, share) for size in _sizes(phase))
        for side in (1, 0)
    ]
    hits, false_hits = (math.floor(count) for count in inside)
    p = betaincinv(hits, phase - hits + 1, alpha / 2) if hits else 0.0
    q = betaincinv(false_hits + 1, phase - false_hits, 1 - alpha / 2)
    return math.log(p / q) if p > 0 else 0.0


def _sizes(phase: int) -> Iterator[int]:
    yield from (min(BATCH, phase - start) for start in range(0, phase, BATCH))


def _learned(draw: Draw, phase: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Probability that an output is of side 1, as a function."""
    centre, spread = np.zeros(0), np.zeros(0)
    weights, velocity = np.zeros(0), np.zeros(0)
    step = 0
    for size in _sizes(phase):
        outputs = np.concatenate([draw(0, size), draw(1, size)])
        labels = np.repeat([0.0, 1.0], size)
        if not len(weights):
            centre, spread = outputs.mean(axis=0), outputs.std(axis=0)
            spread[spread == 0] = 1
            weights, velocity = np.zeros((2, outputs.shape[1] + 1))
        inputs = np.hstack([(outputs - centre) / spread, np.ones((2 * size, 1))])
        for _ in range(STEPS):
            wrong = expit(inputs @ weights) - labels
            velocity = MOMENTUM * velocity + wrong @ inputs / (2 * size) + 2 * RIDGE * weights
            weights = weights - RATE * 0.1 ** (step // DROP) * velocity
            step += 1

    def score(outputs: NDArray[Any]) -> NDArray[Any]:
        values = ((outputs - centre) / spread) @ weights[:-1] + weights[-1]
        return np.asarray(expit(values).round(DECIMALS))

    return score


def _threshold(found: NDArray[Any]) -> tuple[float, float]:
    """Threshold, and the share of the scores equal to it that count as above."""
    aim = SHARE * len(found)
    threshold = float(np.partition(found, -1 - math.floor(aim))[-1 - math.floor(aim)])
    above, equal = np.count_nonzero(found > threshold), np.count_nonzero(found == threshold)
    return threshold, (aim - above) / equal


def _weight(found: NDArray[Any], threshold: float, share: float) -> float:
    above, equal = np.count_nonzero(found > threshold), np.count_nonzero(found == threshold)
    return float(above + share * equal)
