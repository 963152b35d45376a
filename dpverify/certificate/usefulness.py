"""Whether the estimates of a release tell anything: one rule, for the plan and the certificate.

The rule sets the error s of one estimate (root mean square over the noise, bias included) against
the range of what is estimated: the owner's, where one is declared; else the limits of the quantity
itself, as 0 and 1 of a Jaccard similarity; else that of the synthetic records of the declared
domain, and where these are all alike, as sets of one item are, from 0 to it: a record is at
distance 0 from its equal. Nothing here looks at real records.

- *Useless*: s is larger than the range. Whoever guesses the middle of the range, without any
  release, is off by half of the range at most.
- *Useful*: s is at most 0.1379 of the range. Two estimates with independent normal errors then put
  two values that lie a quarter of the range apart in the right order with probability at least
  0.9: their difference has a standard deviation of s√2, and Φ(1 / (4·√2·0.1379)) = 0.9.
- *Coarse*: in between. One estimate says little, the mean over many may say something: the errors
  of n independent estimates leave s/√n to their mean, unless they are biased.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from dpverify.accounting.solve import brentq
from dpverify.certificate.schema import Inputs, Prediction, Usefulness
from dpverify.privacy import Estimator

__all__ = ["USEFUL", "judge", "recall"]

USEFUL = 1 / (4 * math.sqrt(2) * NormalDist().inv_cdf(0.9))
"""Largest share of the range that the error of a useful estimate is."""


def judge(
    inputs: Inputs, estimator: Estimator, predictions: Sequence[Prediction]
) -> Usefulness | None:
    """The verdict on one estimate, or None where there is no range to hold it to.

    Parameters
    ----------
    inputs : the owner's purpose is one of them
    estimator : what is estimated, and its limits
    predictions : for synthetic records; those count whose truth lies in the declared range, or else
        the one nearest to it
    """
    truths = [float(prediction.truth) for prediction in predictions]
    if inputs.purpose is not None:
        low, high = float(inputs.purpose.low), float(inputs.purpose.high)
    elif estimator.limits is not None:
        low, high = estimator.limits
    elif truths:
        low, high = min(truths), max(truths)
        if low == high:
            low, high = min(low, 0.0), max(high, 0.0)
    if not truths or not low < high:
        return None
    away = [max(low - truth, truth - high, 0.0) for truth in truths]
    errors = sorted(
        _error(prediction)
        for prediction, distance in zip(predictions, away, strict=True)
        if distance == min(away)
    )
    error = errors[len(errors) // 2]
    share = error / (high - low)
    return Usefulness(
        quantity=estimator.name,
        low=f"{low:.9g}",
        high=f"{high:.9g}",
        declared=inputs.purpose is not None,
        error=f"{error:.9g}",
        verdict="useless" if not share <= 1 else "useful" if share <= USEFUL else "coarse",
    )


def _error(prediction: Prediction) -> float:
    bias = float(prediction.expectation) - float(prediction.truth)
    error = math.hypot(bias, float(prediction.deviation))
    return math.inf if math.isnan(error) else error


def recall(usefulness: Usefulness, rows: int, nearest: int = 10) -> float:
    """Expected share of the nearest records that are among as many with the best estimates.

    The values of `rows` records are taken to be spread evenly over the range, and the errors to be
    independent and normal. With G(z) = zΦ(z) + φ(z), whose derivative is Φ, the expected number of
    estimates under a threshold t is rows·(s/range)·(G((t − low)/s) − G((t − high)/s)); at the
    threshold where it is `nearest` the same integral over the nearest values gives the recall.
    Chance alone gives nearest/rows.
    """
    if rows <= nearest:
        return 1.0
    low, high, error = (float(n) for n in (usefulness.low, usefulness.high, usefulness.error))
    if not math.isfinite(error):
        return nearest / rows
    if error == 0:
        return 1.0
    width = (high - low) / error  # in standard deviations, as all that follows

    def under(threshold: float, share: float) -> float:
        """Expected number of estimates under a threshold among the nearest share of all."""
        return rows / width * (_integral(threshold) - _integral(threshold - share * width))

    threshold = brentq(lambda t: under(t, 1.0) - nearest, -40.0, width + 40.0, xtol=2e-12)
    found = under(threshold, nearest / rows) / nearest
    return min(1.0, max(nearest / rows, found))  # beyond these ends it is by round-off alone


def _integral(z: float) -> float:
    normal = NormalDist()
    return z * normal.cdf(z) + normal.pdf(z)
