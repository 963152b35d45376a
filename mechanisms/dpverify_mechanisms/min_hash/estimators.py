"""Estimators of the Jaccard similarity from two randomized MinHash sketches, with exact moments.

Under ideal hash functions (`hashing`) the K positions are independent and alike: with probability J
the two sets have the same bucket, and else two independent uniform ones. What that leaves open is
the probability of a tie of ranks, at most u/2⁶⁴ for a union of u items.

**Collisions.** Randomized response that keeps with probability k is a uniform bucket mixed with the
true one, of weight r = (Bk − 1)/(B − 1). So the released values collide with probability

    c = 1/B + (1 − 1/B)·r²·J,

and Ĵ = (p_col − 1/B)/((1 − 1/B)r²) is unbiased with variance c(1 − c)/K/((1 − 1/B)r²)². These are
equations 1 and 2 of Aumüller et al. 2020. The example in its appendix C counts 2 collisions where
there are 3: equation 1 gives 1.6, not 0.64.

**Squared distances.** For independent uniform buckets E(U − V)² = (B² − 1)/6 and E(U − V)⁴ =
(B² − 1)(2B² − 3)/30. With noise of variance v and fourth moment w on both, D = U − V + N − M has

    E D² = (1 − J)(B² − 1)/6 + 2v,
    E D⁴ = (1 − J)(B² − 1)(2B² − 3)/30 + 12v·(1 − J)(B² − 1)/6 + 2w + 6v²,

so Ĵ = 1 − 6(mean D² − 2v)/(B² − 1) is unbiased with variance 36·Var(D²)/(K(B² − 1)²). That is the
paper's equation 5 with the variance of the noise that is really drawn in the place of 2(Δ/ε)². Its
proof (lemma 6) has E D² = (B − 1)²(B + 1)(1 − J)/6 + 2v, too large by a factor B − 1 in the first
term: P[|U − V| = j | U ≠ V] is 2(B − j)/(B(B − 1)), not 2(B − j)/B. Equation 5 is right all the
same.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from attrs import frozen
from numpy.typing import NDArray

from dpverify.data.domain import Sets, as_rows
from dpverify.errors import require
from dpverify.privacy import Estimator
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise
from dpverify_mechanisms.min_hash.hashing import HashFamily

__all__ = ["CollisionSimilarity", "DistanceSimilarity", "jaccard"]


def jaccard(first: scipy.sparse.csr_array, second: scipy.sparse.csr_array) -> Fraction:
    """Jaccard similarity of two sets, each a row of ones of shape (1, items)."""
    common = len(np.intersect1d(first.indices, second.indices, assume_unique=True))
    return Fraction(common, first.nnz + second.nnz - common)


@frozen(kw_only=True)
class _SimilarityEstimator(Estimator):
    """A linear function of a mean over the K positions."""

    name: ClassVar[str] = "Jaccard similarity"
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    over: ClassVar[Literal["draw and noise", "noise"]] = "draw and noise"

    hashes: HashFamily
    domain: Sets

    @abstractmethod
    def variance_at(self, similarity: Fraction) -> Fraction:
        """Exact variance for sets of this similarity."""

    def truth(self, record: Any, other: Any) -> float:
        """Jaccard similarity of the two sets."""
        return float(self._similarity(record, other))

    def variance(self, record: Any, other: Any) -> float:
        """Exact variance over hash functions and randomization."""
        return float(self.variance_at(self._similarity(record, other)))

    def _similarity(self, record: Any, other: Any) -> Fraction:
        sets = (
            self.domain.admit(as_rows(x), attributes=self.hashes.items) for x in (record, other)
        )
        return jaccard(*sets)


@frozen(kw_only=True)
class CollisionSimilarity(_SimilarityEstimator):
    """From the fraction of equal values: Aumüller et al. 2020, equation 1.

    Parameters
    ----------
    keep : probability that a bucket is released as it is
    """

    keep: Fraction

    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """(p_col − 1/B)/((1 − 1/B)r²)."""
        return self._from_collisions(np.mean(first == second, axis=-1))

    def estimate_packed(
        self, first: NDArray[np.uint8], second: NDArray[np.uint8]
    ) -> NDArray[np.float64]:
        """The same for B = 2 from ``numpy.packbits(released, axis=-1)``, by counting bits."""
        k, b = self.hashes.functions, self.hashes.buckets
        require(b == 2, "buckets", b, "2 for packed bits")
        differing = np.bitwise_count(first ^ second).sum(axis=-1, dtype=np.int64)
        return self._from_collisions((k - differing) / k)

    def _from_collisions(self, fraction: Any) -> NDArray[np.float64]:
        return np.asarray((fraction - 1 / self.hashes.buckets) / float(self._slope()))

    def variance_at(self, similarity: Fraction) -> Fraction:
        """c(1 − c)/K over the squared slope."""
        slope, hashes = self._slope(), self.hashes
        collision = Fraction(1, hashes.buckets) + slope * similarity
        return collision * (1 - collision) / hashes.functions / slope**2

    def _slope(self) -> Fraction:
        b = self.hashes.buckets
        return Fraction(b - 1, b) * ((b * self.keep - 1) / (b - 1)) ** 2


@frozen(kw_only=True)
class DistanceSimilarity(_SimilarityEstimator):
    """From the squared distance: Aumüller et al. 2020, equation 5.

    Parameters
    ----------
    noise : on every bucket
    """

    noise: GeometricNoise

    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """1 − 6(mean D² − 2v)/(B² − 1)."""
        squares = np.mean(np.square(first - second), axis=-1)
        return np.asarray(1 - (squares - float(2 * self.noise.variance())) / float(self._spread()))

    def variance_at(self, similarity: Fraction) -> Fraction:
        """Var(D²)/K over the squared slope."""
        b, v, spread = self.hashes.buckets, self.noise.variance(), self._spread()
        differ = 1 - similarity
        mean = differ * spread + 2 * v
        fourth = differ * spread * (Fraction(2 * b * b - 3, 5) + 12 * v)
        fourth += 2 * self.noise.fourth_moment() + 6 * v * v
        return (fourth - mean**2) / self.hashes.functions / spread**2

    def _spread(self) -> Fraction:
        """E(U − V)² of independent uniform buckets."""
        return Fraction(self.hashes.buckets**2 - 1, 6)
