"""Estimators from the packed bits of two records, each flipped by a coin of its own.

Kenthapadi et al. 2013, algorithm 6 and theorem 3. Write γ = (1 − 2f)² and c = 2f(1 − f). For two
records of p bits that differ in w, released with independent coins, bits that differ still do with
probability 1 − c = c + γ, bits that agree come to differ with probability c. So their Hamming
distance after the flips is

    H ~ Bin(w, 1 − c) + Bin(p − w, c),     E[H] = γw + cp,     Var[H] = p·c(1 − c),

and (H − cp)/γ is unbiased for w = ‖x − y‖² with a variance p·c(1 − c)/γ² that doesn't depend on w:
theorem 3, part 1, to which the paper adds a tail bound by Hoeffding's inequality (part 2) but no
variance. The tail is the sum of two binomials, and is computed as that.

A flipped bit b̂ gives the unbiased (b̂ − f)/(1 − 2f) of variance v = f(1 − f)/γ. The product of two
independent ones is unbiased for the product of the bits, with variance (v + x)(v + y) − xy for bits
x, y. Summed: ⟨x, y⟩ is estimated with variance pv² + v(|x| + |y|), |x| being the number of ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from attrs import frozen
from flint import arb, arb_poly
from numpy.typing import ArrayLike, NDArray

from dpverify.data.domain import as_rows
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import require
from dpverify.privacy import Estimator

if TYPE_CHECKING:
    from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse

__all__ = ["HammingDistance", "InnerProductOfBits", "ones", "unused_are_zero"]


@frozen(kw_only=True)
class _BitEstimator(Estimator):
    """What both estimators share: the mechanism and the records' bits."""

    mechanism: RandomizedResponse

    def _bits(self, *records: ArrayLike) -> Iterator[NDArray[np.uint8]]:
        return (self.mechanism.packed(as_rows(x))[0] for x in records)

    @property
    def _contrast(self) -> Fraction:
        """γ = (1 − 2f)²."""
        return (1 - 2 * self.mechanism.flip) ** 2

    @property
    def _change(self) -> Fraction:
        """C = 2f(1 − f), the probability that two bits stop or start to differ."""
        return 2 * self.mechanism.flip * (1 - self.mechanism.flip)


@frozen(kw_only=True)
class HammingDistance(_BitEstimator):
    """‖x − y‖², the number of bits that differ: algorithm 6, (H − cp)/γ."""

    name: ClassVar[str] = "squared distance"

    def estimate(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Unbiased estimates of ‖x − y‖² from released rows of shapes (…, bytes) that broadcast."""
        shift = float(self.mechanism.p * self._change)
        return np.asarray((ones(first ^ second) - shift) / float(self._contrast))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """‖x − y‖²."""
        first, second = self._bits(record, other)
        return float(ones(first ^ second))

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """p·c(1 − c)/γ², whatever the records are."""
        return float(self.mechanism.p * self._change * (1 - self._change) / self._contrast**2)

    def tail(self, distance: int, deviation: Real) -> Enclosure:
        """Encloses P[|estimate − distance| ≥ deviation] for records that differ in `distance` bits.

        Relative width at most 1e-13 while it is a normal double; which values of H count is decided
        in rational arithmetic.
        """
        p, change = self.mechanism.p, self._change
        require(0 <= distance <= p, "distance", distance, f"in [0, {p}]")
        reach = self._deviation(deviation) * self._contrast
        mean = self._contrast * distance + change * p
        beyond = [h for h in range(p + 1) if abs(h - mean) >= reach]
        if len(beyond) == p + 1:
            return Enclosure(1.0, 1.0)

        def value() -> arb:
            c = to_arb(change)
            law = arb_poly([c, 1 - c]) ** distance * arb_poly([1 - c, c]) ** (p - distance)
            return sum((law[h] for h in beyond), arb(0))

        return enclose(value)

    def hoeffding(self, deviation: Real) -> Enclosure:
        """Encloses theorem 3's bound on `tail`, 2·exp(−2t²γ²/p), with t the deviation."""
        exponent = 2 * (self._deviation(deviation) * self._contrast) ** 2 / self.mechanism.p
        return enclose(lambda: 2 * (-to_arb(exponent)).exp())

    def _deviation(self, deviation: Real) -> Fraction:
        value = rational("deviation", deviation)
        require(value >= 0, "deviation", deviation, "at least 0")
        return value


@frozen(kw_only=True)
class InnerProductOfBits(_BitEstimator):
    """⟨x, y⟩, the number of ones in common, of two rows that aren't copies of one record's."""

    name: ClassVar[str] = "inner product"

    def estimate(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Unbiased estimates of ⟨x, y⟩: Σ(x̂ − f)(ŷ − f)/γ."""
        flip = float(self.mechanism.flip)
        weights = ones(first) + ones(second)
        shifted = ones(first & second) - flip * weights + flip * flip * self.mechanism.p
        return np.asarray(shifted / float(self._contrast))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """⟨x, y⟩."""
        first, second = self._bits(record, other)
        return float(ones(first & second))

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """pv² + v(|x| + |y|), with v = f(1 − f)/γ."""
        first, second = self._bits(record, other)
        v = self._change / 2 / self._contrast
        return float(self.mechanism.p * v * v + v * int(ones(first) + ones(second)))


def ones(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Number of ones in every row of bytes; the padding of the last byte is zeros."""
    return np.asarray(np.bitwise_count(packed).sum(axis=-1, dtype=np.int64))


def unused_are_zero(packed: NDArray[np.uint8], count: int) -> bool:
    """Whether rows of so many bits hold nothing but zeros in the last byte's others."""
    return not (packed[..., -1] & (0xFF >> (count - 1) % 8 + 1)).any()
