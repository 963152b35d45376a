"""Exactly rounded Laplace noise on the integers: Z = round(b·X), X with density e^(−|x|)/2.

**Why rounded.** As for Gaussian noise (see `gaussian`): where the noiseless output y is a whole
number of grid steps, ``y + round(N)`` is ``round(y + N)``, a post-processing of the ideal
mechanism. The law is

    P[Z = 0] = 1 − e^(−1/2b),        P[Z = n] = sinh(1/2b)·e^(−|n|/b)   for n ≠ 0,

by integrating the density over [n − ½, n + ½]. Between n and n − a on one side of 0 the log ratio
of these is exactly a/b, and P[Z = 0]/P[Z = 1] = 2e^(1/2b)/(1 + e^(−1/2b)) lies between 1 and
e^(1/b): so |ln P[Z = n] − ln P[Z = n − a]| ≤ |a|/b with equality almost everywhere. Rounding keeps
the pure ε of the ideal mechanism and does not lower it.

**How it is exact.** See `quantile_table`. Here the tail probability is e^(−x)/2, the quantile
−ln(2p), and the score is 1: z″ = z′², from z′ = −1/f(z). A boundary (n + ½)/b belongs to a
transcendental p, which no finite number of bits equals (Lindemann), so a draw ends almost surely.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import require
from dpverify.sampling._quantile_table import Law, Table, build_table, decide_word, draw
from dpverify.sampling.words import Words

__all__ = ["RoundedLaplace"]

MIN_SCALE = 2.0**-6
"""Below it P[Z ≠ 0] < e^(−32): no noise worth the name, and ε = 64 or more for a single step."""
MAX_SCALE = 2.0**44
"""Beyond it b·z could exceed the integers that doubles hold exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedLaplace:
    """Distribution of round(Laplace(0, scale)) on the integers, sampled exactly.

    Parameters
    ----------
    scale : b, so that the density before rounding is e^(−|x|/b)/2b, in grid steps; the double's
        exact value counts. From 1/64 to 2⁴⁴.
    """

    scale: float

    def __post_init__(self) -> None:
        require(MIN_SCALE <= self.scale <= MAX_SCALE, "scale", self.scale, "in [1/64, 2**44]")

    def sample(self, shape: tuple[int, ...], *, rng: Words) -> NDArray[np.int64]:
        """Draw independent values; see `quantile_table.draw`."""
        return draw(_LAW, _table(), self.scale, shape, rng=rng)

    def decide(self, word: int, *, rng: Words) -> int:
        """Draw that belongs to one word, by ball arithmetic alone."""
        return decide_word(_LAW, self.scale, word, rng=rng)

    def probability(self, value: int) -> Enclosure:
        """Encloses P[Z = value]."""
        return enclose(lambda: self._probability(value))

    def variance(self) -> Enclosure:
        """Encloses E[Z²] = cosh r/(2 sinh² r) with r = 1/2b, which is near 2b² + 1/12.

        The sum 2 sinh r·Σ n²qⁿ over n ≥ 1 is 2 sinh r·q(1 + q)/(1 − q)³ with q = e^(−2r), where
        1 − q = 2e^(−r) sinh r and 1 + q = 2e^(−r) cosh r.
        """
        return enclose(lambda: self._moment(2))

    def fourth_moment(self) -> Enclosure:
        """Encloses E[Z⁴] = E[Z²]·(1 + 3/sinh² r), from Σ n⁴qⁿ = q(1 + q)(1 + 10q + q²)/(1 − q)⁵."""
        return enclose(lambda: self._moment(4))

    def _probability(self, value: int) -> arb:
        rate = 1 / to_arb(Fraction(self.scale))
        if value == 0:
            return -(-rate / 2).expm1()
        return (rate / 2).sinh() * (-abs(value) * rate).exp()

    def _moment(self, order: int) -> arb:
        rate = 1 / (2 * to_arb(Fraction(self.scale)))
        square = rate.sinh() ** 2
        variance = rate.cosh() / (2 * square)
        return variance if order == 2 else variance * (1 + 3 / square)


_LAW = Law(
    tail=lambda x: (-x).exp() / 2,
    quantile=lambda p: -(2 * p).log(),
    density=lambda x: (-x).exp() / 2,
    score=lambda z: [arb(1)] + [arb(0)] * (len(z) - 1),
)


@cache
def _table() -> Table:
    return build_table(_LAW)
