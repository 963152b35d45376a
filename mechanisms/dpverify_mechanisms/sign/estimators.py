"""Estimators from the packed, randomised signs of two records.

Notation: s_j in {−1, 0, 1} is the sign of the j-th projected value of the first record and f_j its
flip probability, t_j and g_j those of the second. The released bits are independent given the
projection, with means a_j = s_j(1 − 2f_j) and b_j = t_j(1 − 2g_j), so they agree with probability

    p_j = (1 + a_j·b_j)/2,

and the number of agreeing bits has mean Σp_j, variance Σp_j(1 − p_j) and characteristic function
Π(1 − p_j + p_j·e^{iα}): every moment below is exact.

**Over the draw** of a Gaussian projection the columns are independent and alike. With c = 1 − 2f
for randomized response, p_j is ½ + c²(½ − θ/π) for all of them, θ being the records' angle (Li and
Li 2023, equation 3 and theorem 4.6). That law is the real Gaussian
matrix's; rounding the matrix moves the collision probability by at most 2η (`angle_law`; 1.1e-5 for
p = 784), which is what "exact" leaves open there.

For other projections, and for smooth rules, the collision probability over the draw
depends on more than the angle; moments are then over the flips alone, for the realised projection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.privacy import Estimator

if TYPE_CHECKING:
    from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = ["Angle", "BitAgreement", "SignCollision", "SignCosine"]

Packed = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SignEstimator(Estimator):
    """A function of the number of agreeing bits.

    Parameters
    ----------
    sketch : the mechanism that released the rows
    realised : if true, moments are over the flips alone, for the realised projection
    """

    sketch: SignSketch
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
        """Angle of the gridded records, by the formula that keeps its digits near 0 and π."""
        x, y = (v / np.linalg.norm(v) for v in (self.sketch.gridded(r)[0] for r in (record, other)))
        return float(2 * np.arctan2(np.linalg.norm(x - y), np.linalg.norm(x + y)))


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SignCosine(SignCollision):
    """Cosine of two records: the cosine of the estimated angle, which is biased.

    No delta method is needed: the angle is α·(number of agreeing bits) + a constant, so the mean of
    its cosine and of its cosine squared are values of the characteristic function.
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
        return self._wave(record, other, 1)

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """½(1 + E cos 2·) − (E cos)², exactly."""
        mean = self._wave(record, other, 1)
        return max((1 + self._wave(record, other, 2)) / 2 - mean**2, 0.0)

    def _wave(self, record: ArrayLike, other: ArrayLike, frequency: int) -> float:
        """E cos(frequency × estimated angle)."""
        p = self._probabilities(record, other)
        unit = frequency * math.pi / (self._k * self.sketch.retained() ** 2)
        turned: Any = np.prod(1 - p + p * np.exp(-1j * unit))
        start = frequency * math.pi / 2 + self._k * unit / 2
        return float((np.exp(1j * start) * turned).real)
