r"""Whether whole numbers can be any data plus a given noise: they can't lie too close to 0.

Let Yᵢ = aᵢ + Zᵢ for i = 1, …, n, with whole numbers aᵢ of which nothing is known, and independent
Zᵢ of one law that is symmetric about 0 and doesn't rise away from it. Let F(t) = P[|Z| < t].

**No data bring a number closer to 0.** The numbers of size below t are 2t − 1 in a row. Of all such
rows the middle one has the largest probability: any other has elements farther from 0 in place of
nearer ones. So P[|a + Z| < t] ≤ F(t) for every a and t, which is Anderson's inequality in one
dimension. Hence there are independent Zᵢ′ of that law with |Yᵢ| ≥ |Zᵢ′| for all i (the quantiles of
both at one uniform variable each), and the share S(t) of the Yᵢ of size below t is at most that of
the Zᵢ′, at all t at once. Where the aᵢ are random, independently of the noise, this holds given
them.

**The level.** By Massart 1990 (doi:10.1214/aop/1176990746), which has the one-sided inequality of
Dvoretzky, Kiefer and Wolfowitz with its best constant, the share of the Zᵢ′ exceeds F(t) + λ at
some t with probability at most e^(−2nλ²), if that is at most ½. It holds for laws with atoms too,
which are rising functions of a uniform variable. So with

    λ = √(ln(1/α)/2n)

data plus this noise have S(t) > F(t) + λ for some t with probability at most α, whatever the data,
whichever and however many t are looked at.

**What it finds.** Let t₁ < t₂ < … be the sizes that are looked at, and t₀ = 0. Where nothing is
found, 1 − S(tⱼ) ≥ 1 − F(tⱼ) − λ. As y² ≥ Σ (tⱼ² − tⱼ₋₁²)·[|y| ≥ tⱼ] for every y, the mean square of
the numbers is then at least

    ρ² = Σ (tⱼ² − tⱼ₋₁²)·max(0, 1 − F(tⱼ) − λ).

Whatever has a smaller mean square is found for certain: much less noise than was promised, or none
at all, on data that are small beside it. Data that are large everywhere hide that noise is missing,
from this test and from any other that holds for all data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpverify.enclosure import enclose, to_arb
from dpverify.privacy import SymmetricNoise

__all__ = ["LEVEL", "Excess", "Sizes", "least_root_mean_square", "too_small"]

LEVEL = Fraction(1, 10**9)
"""Probability at most with which data plus the noise, whatever the data, are called too small."""

_DIGITS = 6


def _bounds() -> list[int]:
    """Whole numbers from 1 to 2⁶³ with at most six significant bits."""
    half = 1 << (_DIGITS - 1)
    later = [digits << shift for shift in range(64 - _DIGITS) for digits in range(half, 2 * half)]
    return [*range(1, half), *later, 1 << 63]


_BOUNDS = _bounds()
_AS_ARRAY = np.array(_BOUNDS, dtype=np.uint64)


@dataclass(slots=True)
class Sizes:
    """How many numbers are of which size: counted block by block, in bounded memory."""

    _counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(len(_BOUNDS) + 1, dtype=np.int64)
    )

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Count more numbers, of any shape."""
        sizes = np.abs(numbers.ravel()).view(np.uint64)  # of −2⁶³ as well
        places = np.searchsorted(_AS_ARRAY, sizes, side="right")
        self._counts += np.bincount(places, minlength=len(self._counts))

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self._counts.sum())

    def below(self) -> Iterator[tuple[int, int]]:
        """Every size that is looked at, and how many numbers are smaller."""
        yield from zip(_BOUNDS, np.cumsum(self._counts).tolist(), strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """More numbers below a size than any data leave there.

    Attributes
    ----------
    size : t
    share : of the numbers that are smaller
    at_most : upper end of F(t) + λ
    """

    size: int
    share: Fraction
    at_most: float


def too_small(sizes: Sizes, noise: SymmetricNoise) -> Excess | None:
    """Where numbers lie closer to 0 than any data plus this noise do; None if nowhere.

    Of several places the one with the largest excess. Data plus the noise have one with probability
    at most `LEVEL`: see above.
    """
    total = sizes.total
    if not total:
        return None
    found = [
        Excess(size=size, share=Fraction(count, total), at_most=highest)
        for (size, count), highest in zip(sizes.below(), _highest(noise, total), strict=False)
        if Fraction(count, total) > Fraction(highest)
    ]
    return max(found, key=lambda excess: float(excess.share) - excess.at_most, default=None)


def least_root_mean_square(noise: SymmetricNoise, total: int) -> float:
    """ρ, in doubles: so many numbers of a smaller root mean square are found to be too small."""
    square = before = 0.0
    for size, highest in zip(_BOUNDS, _highest(noise, total), strict=False):
        square += (float(size) ** 2 - before) * (1 - highest)
        before = float(size) ** 2
    return math.sqrt(square)


def _highest(noise: SymmetricNoise, total: int) -> Iterator[float]:
    """Upper ends of F(t) + λ for the sizes in order, as long as they are below 1."""
    slack = enclose(lambda: (to_arb(1 / LEVEL).log() / (2 * total)).sqrt()).upper
    for size in _BOUNDS:
        highest = math.nextafter(noise.within(size).upper + slack, math.inf)
        if highest >= 1:
            return
        yield highest
