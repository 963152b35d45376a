"""Estimators from the packed, randomized signs of two records.

Notation: s_j in {−1, 0, 1} is the sign of the j-th projected value of the first record and f_j its
flip probability, t_j and g_j those of the second. The released bits are independent given the
projection, with means a_j = s_j(1 − 2f_j) and b_j = t_j(1 − 2g_j), so they agree with probability

    p_j = (1 + a_j·b_j)/2,

and the number of agreeing bits has mean Σp_j, variance Σp_j(1 − p_j) and characteristic function
Π(1 − p_j + p_j·e^{iα}): every moment below is exact.

**Over the draw** of a Gaussian projection the columns are independent and alike. With c = 1 − 2f
for randomized response, p_j is ½ + c²(½ − θ/π) for all of them, θ being the records' angle (Li and
Li 2023, equation 3 and theorem 4.6). That law is the real Gaussian matrix's;
rounding the matrix moves the collision probability by at most 2η (`_angle_law`; 1.1e-5 for
p = 784), which is what "exact" leaves open there.

For other projections, and for smooth rules, the collision probability over the draw
depends on more than the angle; moments are then over the flips alone, for the realised projection.

**Choosing parameters** (`agreement_errors`). What is estimated is c = 1 − θ/π, the probability that
the signs of two records of angle θ agree (the angle itself is π(1 − c), so its error is π² times as
large and the optimum the same), by

    ĉ = ½ + (A − ½)/γ,      A the fraction of released bits that agree, γ the contrast.

*Randomized response* has γ = (1 − 2f)², equation 21 of Li and Li 2023. With a Gaussian projection
ĉ is unbiased and its variance over draw and flips exact, a function of k, f and θ alone. The more
columns, the less each says of the angle that it may say: the optimal k lies between.

*Other projections* have a collision probability that isn't quite c, and with *graded ladders*
that of the bits depends on the records' norms too, so that no γ makes ĉ unbiased for all records.
There, the records of interest are a part of the question. Their moments are those over the flips
and a uniformly chosen one of `draws` projections of the same kind: by the laws of total expectation
and variance, with m and v the mean and the variance of A for a realised projection, exact sums,

    E ĉ = ½ + (mean m − ½)/γ,      Var ĉ = (mean v + mean (m − mean m)²)/γ².

A graded ladder's γ is the least-squares slope, through the origin, of mean m − ½ on c − ½ over the
records of interest. (For a Gaussian projection that line is right at θ = π/2: P and a reflection of
P in one record's direction are alike.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.errors import ParameterError, require
from dpverify.privacy import Errors, Estimator
from dpverify_mechanisms.projections.independent import GaussianProjection
from dpverify_mechanisms.sign.randomized_signs import RandomizedSigns

__all__ = [
    "Angle",
    "BitAgreement",
    "RecordPair",
    "SignCollision",
    "SignCosine",
    "agreement_errors",
    "overlapping_pairs",
]

Packed = NDArray[np.uint8]
RecordPair = tuple[ArrayLike, ArrayLike]
"""Two records, each of shape (p,)."""


@frozen(kw_only=True)
class _SignEstimator(Estimator):
    """A function of the number of agreeing bits.

    Parameters
    ----------
    sketch : the mechanism that released the rows
    realised : if true, moments are over the flips alone, for the realised projection
    """

    sketch: RandomizedSigns
    realised: bool

    @property
    def over(self) -> Literal["draw and noise", "noise"]:
        return "noise" if self.realised else "draw and noise"

    @property
    def _k(self) -> int:
        return self.sketch.projection.k

    def _agreeing(self, first: Packed, second: Packed) -> NDArray[np.float64]:
        """Fraction of agreeing bits; the padding bits of both rows are 0."""
        differing = np.bitwise_count(first ^ second).sum(axis=-1, dtype=np.int64)
        return np.asarray((self._k - differing) / self._k)

    def _probabilities(self, record: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
        """p_j, of shape (k,)."""
        if self.realised:
            means = self.sketch.means(record) * self.sketch.means(other)
            return np.asarray((1 + means) / 2)
        retained = self.sketch.retained() ** 2
        return np.full(self._k, 0.5 + retained * (0.5 - self._theta(record, other) / math.pi))

    def _theta(self, record: ArrayLike, other: ArrayLike) -> float:
        """Angle of the gridded records, by the formula that keeps its digits near 0 and π.

        A record of zeros is at right angles to all: its signs are 0, which agree half.
        """
        x, y = (self.sketch.gridded(each)[0] for each in (record, other))
        if not (x.any() and y.any()):
            return math.pi / 2
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        return float(2 * np.arctan2(np.linalg.norm(x - y), np.linalg.norm(x + y)))


@frozen(kw_only=True)
class BitAgreement(_SignEstimator):
    """Probability that two released bits agree: what a search by Hamming distance ranks by."""

    name: ClassVar[str] = "bit agreement"

    def estimate(self, first: Packed, second: Packed) -> NDArray[np.float64]:
        """Fraction of agreeing bits."""
        return self._agreeing(first, second)

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """Mean of p_j."""
        return float(self._probabilities(record, other).mean())

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Σp_j(1 − p_j)/k²."""
        p = self._probabilities(record, other)
        return float((p * (1 - p)).sum()) / self._k**2


@frozen(kw_only=True)
class SignCollision(_SignEstimator):
    """Probability that two signs agree, from randomized response: the flips are divided out.

    Li and Li 2023, equation 21: ½ + (agreeing − ½)/c² with c = 1 − 2f. A sign of 0 agrees half.
    Unbiased for a real Gaussian matrix, from which `_angle_law` bounds the distance.
    """

    name: ClassVar[str] = "sign collision"

    def estimate(self, first: Packed, second: Packed) -> NDArray[np.float64]:
        """Unbiased estimates, not confined to [0, 1]."""
        return 0.5 + (self._agreeing(first, second) - 0.5) / self.sketch.retained() ** 2

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """1 − θ/π, or the fraction of the realised projection's signs that agree."""
        if self.realised:
            signs = (np.sign(self.sketch.noiseless(np.atleast_2d(r))[0]) for r in (record, other))
            return float(0.5 + 0.5 * np.mean(math.prod(signs)))
        return 1 - self._theta(record, other) / math.pi

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Σp_j(1 − p_j)/(k²c⁴)."""
        p = self._probabilities(record, other)
        return float((p * (1 - p)).sum()) / (self._k**2 * self.sketch.retained() ** 4)


@frozen(kw_only=True)
class Angle(SignCollision):
    """Angle of two records in radians, π(1 − sign collision): Li and Li 2023, theorem 4.6.

    Its V_RR/k is exact for every k, not only in the limit.
    """

    name: ClassVar[str] = "angle"

    def estimate(self, first: Packed, second: Packed) -> NDArray[np.float64]:
        """Unbiased estimates, not confined to [0, π]."""
        return math.pi * (1 - SignCollision.estimate(self, first, second))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """θ."""
        return math.pi * (1 - SignCollision.truth(self, record, other))

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """π² times that of the collision probability."""
        return math.pi**2 * SignCollision.variance(self, record, other)


@frozen(kw_only=True)
class SignCosine(SignCollision):
    """Cosine of two records: the cosine of the estimated angle, which is biased.

    No delta method is needed: the angle is α·(number of agreeing bits) + a constant, so the mean of
    its cosine is a value of the characteristic function. The variance is a sum over that number,
    in which no terms cancel: that of 1 − cos or, where the angle is obtuse, of 1 + cos.
    """

    name: ClassVar[str] = "cosine"

    def estimate(self, first: Packed, second: Packed) -> NDArray[np.float64]:
        """Estimates in [−1, 1]."""
        return np.cos(math.pi * (1 - SignCollision.estimate(self, first, second)))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """Cosine of the angle."""
        return math.cos(math.pi * (1 - SignCollision.truth(self, record, other)))

    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        """E cos, exactly."""
        p = self._probabilities(record, other)
        unit = math.pi / (self._k * self.sketch.retained() ** 2)
        turned: Any = np.prod(1 - p + p * np.exp(-1j * unit))
        return float((np.exp(1j * (math.pi / 2 + self._k * unit / 2)) * turned).real)

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Var cos, exactly."""
        p, counts = np.unique(self._probabilities(record, other), return_counts=True)
        law = reduce(np.convolve, map(_binomial, counts.tolist(), p.tolist()))
        kept = self.sketch.retained() ** 2
        flips = math.pi / (self._k * kept) * np.arange(self._k, -1, -1)
        halves = (flips + math.pi / 2 * (1 - 1 / kept)) / 2
        obtuse = self.expectation(record, other) < 0
        squares = 2 * (np.cos(halves) if obtuse else np.sin(halves)) ** 2
        return float(law @ (squares - law @ squares) ** 2)


def _binomial(count: int, p: float) -> NDArray[np.float64]:
    """Probabilities of 0 to `count`, for p in (0, 1), by their ratios from the likeliest on."""
    number = np.arange(1, count + 1)
    ratios = (count + 1 - number) / number * (p / (1 - p))
    mode = min(int((count + 1) * p), count)
    law = np.concatenate(
        [np.cumprod(1 / ratios[:mode][::-1])[::-1], [1.0], np.cumprod(ratios[mode:])]
    )
    return np.asarray(law / law.sum())


def agreement_errors(sketch: RandomizedSigns, pairs: Sequence[RecordPair], draws: int) -> Errors:
    """Error of ĉ, and the contrast γ that it divides by, averaged over pairs of records.

    Parameters
    ----------
    sketch : calibrated
    pairs : of records whose angles are of interest
    draws : projections that moments are taken over where the law of the draw isn't known
    """
    require(draws >= 1, "draws", draws, "at least 1")
    collision = SignCollision(sketch=sketch, realised=False)
    truths = np.array([collision.truth(*pair) for pair in pairs])
    if sketch.rule.graded or not isinstance(sketch.projection, GaussianProjection):
        means, spreads = _agreement(sketch, pairs, draws)
        mean = means.mean(axis=0)
        contrast = _slope(mean, truths) if sketch.rule.graded else sketch.retained() ** 2
        variances = (spreads.mean(axis=0) + means.var(axis=0)) / contrast**2
        biases = (mean - 0.5) / contrast + 0.5 - truths
    else:
        contrast = sketch.retained() ** 2
        variances = np.array([collision.variance(*pair) for pair in pairs])
        biases = np.zeros(len(pairs))
    return Errors(
        variance=float(variances.mean()),
        squared_bias=float((biases**2).mean()),
        notes={"contrast": contrast},
    )


def _agreement(
    sketch: RandomizedSigns, pairs: Sequence[RecordPair], draws: int
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
        raise ParameterError(
            "at", "pairs that are all orthogonal", "pairs of other angles too, for a graded ladder"
        )
    slope = float(((means - 0.5) * shifted).sum() / (shifted**2).sum())
    require(slope > 0, "draws", slope, "more, so that bits agree more often at smaller angles")
    return slope


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
