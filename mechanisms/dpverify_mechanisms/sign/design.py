"""Choosing the parameters of a sign sketch.

**What is estimated** is c = 1 − θ/π, the probability that the signs of two records of angle θ
agree (the angle itself is π(1 − c), so its error is π² times as large and the optimum the same), by

    ĉ = ½ + (A − ½)/γ,      A the fraction of released bits that agree, γ the contrast.

**Randomized response** has γ = (1 − 2f)², equation 21 of Li and Li 2023. With a Gaussian projection
ĉ is unbiased and its variance over draw and flips exact, a function of k, f and θ alone. The more
columns, the less each says of the angle that it may say: the optimal k lies between.

**Other projections** have a collision probability that isn't quite c, and with **graded ladders**
that of the bits depends on the records' norms too, so that no γ makes ĉ unbiased for all records.
There, the records of interest are a part of the question. Their moments are those over the flips
and a uniformly chosen one of `draws` projections of the same kind: by the laws of total expectation
and variance, with m and v the mean and the variance of A for a realised projection, exact sums,

    E ĉ = ½ + (mean m − ½)/γ,      Var ĉ = (mean v + mean (m − mean m)²)/γ².

A graded ladder's γ is the least-squares slope, through the origin, of mean m − ½ on c − ½ over the
records of interest. (For a Gaussian projection that line is right at θ = π/2: P and a reflection of
P in one record's direction are alike.) What is minimised is the mean squared error Var + bias²,
the mean over the pairs of interest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.errors import ParameterError, require
from dpverify_mechanisms.linear.design import Design, DesignPoint
from dpverify_mechanisms.projections.independent import GaussianProjection, Projection
from dpverify_mechanisms.sign.estimators import BitAgreement, SignCollision
from dpverify_mechanisms.sign.flip_rules import Ladder
from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = ["LADDERS", "RecordPair", "design_sign_sketch", "overlapping_pairs"]

LADDERS: Mapping[str, Callable[[Fraction], Ladder]] = {
    "response": Ladder.response,
    "smooth": Ladder.smooth,
    "steepest": Ladder.steepest,
}
"""The flip ladders, by name."""

RecordPair = tuple[ArrayLike, ArrayLike]
"""Two records, each of shape (p,)."""


def design_sign_sketch(
    projections: Sequence[Projection],
    *,
    pairs: Sequence[RecordPair],
    ladders: Sequence[str] = ("response",),
    draws: int = 16,
    **target: Any,
) -> Design[SignSketch]:
    """The projection, its k and the ladder with the least mean squared error of 1 − θ/π.

    Parameters
    ----------
    projections : candidates, of whatever kinds and sizes
    pairs : pairs of records whose angles are of interest, public or synthetic, for what is chosen
        here is published: `overlapping_pairs` has them for given cosines. None is 0 on the grid.
    ladders : names in `LADDERS`
    draws : projections that moments are taken over where the law of the draw isn't known; not used
        for randomized response on a Gaussian projection
    target : epsilon, delta, domain, adjacency, least_norm as in `SignSketch.calibrated`

    Returns
    -------
    Design whose points name the projection and its parameters, the ladder, and the contrast γ that
    the estimate divides by. `squared_bias` is 0 where the estimate is unbiased.

    Raises
    ------
    ParameterError
        If there is no candidate or pair, a record is 0, a ladder is unknown or doesn't suit the
        target, or the pairs are all orthogonal and leave a graded ladder's contrast open.
    """
    require(len(projections) > 0, "projections", projections, "non-empty")
    require(len(ladders) > 0, "ladders", ladders, "non-empty")
    require(len(pairs) > 0, "pairs", pairs, "non-empty")
    require(draws >= 1, "draws", draws, "at least 1")
    for name in ladders:
        require(name in LADDERS, "ladders", name, f"one of {', '.join(LADDERS)}")
    return Design(
        curve=tuple(
            _point(projection, name, pairs, draws, target)
            for name, projection in product(ladders, projections)
        )
    )


def overlapping_pairs(
    cosines: Sequence[float], *, p: int, nonzero: int, value: float = 1.0
) -> list[RecordPair]:
    """Pairs of records that equal `value` at `nonzero` attributes each, and 0 elsewhere.

    Parameters
    ----------
    cosines : in [0, 1]; each is rounded to a whole number of common attributes
    p : number of attributes, at least 2·nonzero for a cosine of 0
    nonzero : number of attributes that aren't 0; of digits, about one in five
    value : inside the domain
    """
    require(0 < nonzero <= p, "nonzero", nonzero, f"from 1 to p={p}")
    pairs: list[RecordPair] = []
    for cosine in cosines:
        require(0 <= cosine <= 1, "cosines", cosine, "in [0, 1]")
        apart = nonzero - round(cosine * nonzero)
        require(nonzero + apart <= p, "cosines", cosine, f"larger for {nonzero} of {p} attributes")
        first, second = np.zeros(p), np.zeros(p)
        first[:nonzero] = second[apart : apart + nonzero] = value
        pairs.append((first, second))
    return pairs


def _point(
    projection: Projection,
    ladder: str,
    pairs: Sequence[RecordPair],
    draws: int,
    target: Mapping[str, Any],
) -> DesignPoint[SignSketch]:
    sketch = SignSketch.calibrated(projection, ladder=LADDERS[ladder], **target)
    collision = SignCollision(sketch=sketch, realised=False)
    truths = np.array([collision.truth(*pair) for pair in pairs])
    require(bool((truths >= 0).all()), "pairs", truths, "of records that aren't 0 on the grid")
    if sketch.rule.graded or not isinstance(projection, GaussianProjection):
        means, spreads = _agreement(sketch, pairs, draws)
        mean = means.mean(axis=0)
        contrast = _slope(mean, truths) if sketch.rule.graded else sketch.retained() ** 2
        variances = (spreads.mean(axis=0) + means.var(axis=0)) / contrast**2
        biases = (mean - 0.5) / contrast + 0.5 - truths
    else:
        contrast = sketch.retained() ** 2
        variances = np.array([collision.variance(*pair) for pair in pairs])
        biases = np.zeros(len(pairs))
    return DesignPoint(
        parameters={
            "projection": projection.name,
            **{
                field.name: getattr(projection, field.name)
                for field in fields(projection)
                if field.init and field.name not in ("p", "seed")
            },
            "ladder": ladder,
            "contrast": contrast,
        },
        variance=float(variances.mean()),
        squared_bias=float((biases**2).mean()),
        mechanism=sketch,
    )


def _agreement(
    sketch: SignSketch, pairs: Sequence[RecordPair], draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of the fraction of agreeing bits, of shapes (draws, pairs)."""
    redrawn = [sketch.redrawn(seed) for seed in range(draws)]
    estimators = [BitAgreement(sketch=one, realised=True) for one in redrawn]
    moments = np.array(
        [[(e.expectation(*pair), e.variance(*pair)) for pair in pairs] for e in estimators]
    )
    return moments[..., 0], moments[..., 1]


def _slope(means: NDArray[np.float64], truths: NDArray[np.float64]) -> float:
    """Of the line through (½, ½) with the least squared error in `means`."""
    shifted = truths - 0.5
    if not np.abs(shifted).max() > 1e-9:
        raise ParameterError("pairs", "all orthogonal", "at other angles too for a graded ladder")
    slope = float(((means - 0.5) * shifted).sum() / (shifted**2).sum())
    require(slope > 0, "draws", slope, "enough for bits to agree more often at smaller angles")
    return slope
