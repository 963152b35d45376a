"""Two-sided geometric (discrete Laplace) noise with exact rational probabilities, and its curve.

P[Z = z] = (1 − q)/(1 + q)·q^|z| on the integers, for a dyadic q in (0, 1): the noise of a count by
Ghosh, Roughgarden and Sundararajan 2009. Beside a shift s of the integer that it is added to, the
privacy loss is a whole number of steps ln(1/q): with o the noisy value, s at o ≤ 0, −s at o ≥ s,
and s − 2o between, with probabilities 1/(1 + q), q^s/(1 + q) and (1 − q)/(1 + q)·q^o. So losses of
many positions add up on one lattice, and the exact curve is a power of a polynomial.

**It rises with the shift.** The noise is log-concave, so the best tests of 0 against s are
randomized thresholds, whose power rises with s at every level. Hence a smaller shift is a
post-processing of a larger one (Blackwell), position by position, and also given public randomness.

**It falls with q.** For q′ > q the noise of q′ is that of q plus independent noise: the quotient of
their generating functions is a product of (1 − qz)/(1 − q′z) = q/q′ + (1 − q/q′)/(1 − q′z) and the
same in 1/z, up to a constant, and all coefficients of these are positive.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from attrs import field, frozen
from flint import arb, arb_poly, ctx
from numpy.typing import NDArray

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves._steps import step_delta, step_epsilon
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import FiniteLoss
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, enclose, floor_of, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_coin, to_count, to_rational
from dpverify.sampling.words import Words

__all__ = ["Geometric", "GeometricNoise"]

_HALF_BITS, _GUIDE_BITS = 63, 14
_HALF = 2**_HALF_BITS
_MOST_STEPS = 1 << 10
_BLOCK = 8192  # draws a block: they stay in the cache
_LEAST, _MOST = Fraction(1, 2**40), 1 - Fraction(1, 2**14)


@frozen(kw_only=True)
class GeometricNoise:
    """The noise of ratio q, sampled exactly.

    **Sampling.** The lowest bit of a word is the sign and its others, u in [0, 1) on 63 bits, the
    size: |Z| ≥ m where u < t_m = 2q^m/(1 + q). A table holds ⌊2⁶³·t_m⌋. A u in the cell that t_m
    divides is decided with 64 more bits in exact arithmetic. No t_m is dyadic, so that this ends:
    with q = n/2⁶⁴ the odd part of 2⁶⁴ + n would have to divide n^m, but is prime to n and not 1.

    Parameters
    ----------
    ratio : q, a multiple of 2⁻⁶⁴ from 2⁻⁴⁰ to 1 − 2⁻¹⁴
    """

    ratio: Fraction = field(converter=to_coin)

    def __attrs_post_init__(self) -> None:
        require(_LEAST <= self.ratio <= _MOST, "ratio", self.ratio, "in [2**-40, 1 - 2**-14]")

    def sample(self, shape: tuple[int, ...], *, rng: Words) -> NDArray[np.int64]:
        """Draw independent values: one word each, and then more for the words left open."""
        drawn = np.empty(math.prod(shape), dtype=np.int64)
        table, guide = _table(self.ratio)
        left_open: list[tuple[int, int]] = []
        for start in range(0, drawn.size, _BLOCK):
            passed = drawn[start : start + _BLOCK]
            words = rng.words(passed.size)
            size = words >> np.uint64(1)
            part = (size >> np.uint64(_HALF_BITS - _GUIDE_BITS)).view(np.int64)
            np.take(guide, part, out=passed, mode="clip")
            left = np.flatnonzero(passed < 0)
            below = np.searchsorted(table, size[left], side="right")
            # Larger thresholds are passed for certain; an equal one is open.
            passed[left] = table.size - below
            negative = -(words & np.uint64(1)).view(np.int64)
            passed ^= negative  # two's complement: (x ^ −1) − (−1) = −x
            passed -= negative
            equal = left[table.take(below - 1, mode="clip") == size[left]]
            left_open += zip((start + equal).tolist(), words[equal].tolist(), strict=True)
        for index, word in left_open:
            decided = self._decide(word >> 1, abs(int(drawn[index])), rng)
            drawn[index] = -decided if word & 1 else decided
        return drawn.reshape(shape)

    def _decide(self, digits: int, least: int, rng: Words) -> int:
        """Size of the draw whose first 63 bits are `digits`, known to be at least `least`."""
        scale, size = _HALF, least
        while True:
            threshold = 2 * self.ratio ** (size + 1) / (1 + self.ratio)
            if digits >= threshold * scale:
                return size
            if digits + 1 <= threshold * scale:
                size += 1
            else:
                digits, scale = (digits << 64) + int(rng.words(1)[0]), scale << 64

    def probability(self, value: int) -> Fraction:
        """P[Z = value]."""
        return (1 - self.ratio) / (1 + self.ratio) * self.ratio ** abs(value)

    def at_least(self, value: int) -> Fraction:
        """P[Z ≥ value]."""
        if value <= 0:
            return 1 - self.at_least(1 - value)
        return self.ratio**value / (1 + self.ratio)

    def within(self, size: int) -> Enclosure:
        """Encloses P[|Z| < size] = 1 − 2q^size/(1 + q), for a whole size ≥ 1."""
        q = self.ratio
        return enclose(lambda: 1 - 2 * to_arb(q) ** size / (1 + to_arb(q)))

    def variance(self) -> Fraction:
        """E[Z²] = 2q/(1 − q)²."""
        return 2 * self.ratio / (1 - self.ratio) ** 2

    def fourth_moment(self) -> Fraction:
        """E[Z⁴] = 2q(1 + 10q + q²)/(1 − q)⁴."""
        q = self.ratio
        return 2 * q * (1 + 10 * q + q * q) / (1 - q) ** 4


@lru_cache(maxsize=8)
def _table(ratio: Fraction) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """⌊2⁶³·t_m⌋ for m = 1, 2, … down to the first 0, in rising order, and a guide to them.

    The guide has the number of thresholds above each of 2¹⁴ equal parts of the range of u, and −1
    where a threshold lies in the part.
    """
    sizes: list[int] = []
    while not sizes or sizes[-1] > 0:
        sizes.append(_floor(ratio, len(sizes) + 1))
    table = np.array(sizes[::-1], dtype=np.uint64)
    first = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(_HALF_BITS - _GUIDE_BITS)
    last = first + np.uint64((1 << (_HALF_BITS - _GUIDE_BITS)) - 1)
    below, through = np.searchsorted(table, first), np.searchsorted(table, last, side="right")
    return table, np.where(below == through, table.size - below, -1)


def _floor(ratio: Fraction, size: int) -> int:
    return floor_of(lambda: 2 * to_arb(ratio) ** size / (1 + to_arb(ratio)) * _HALF)


@frozen(kw_only=True)
class Geometric(PrivacyCurve):
    """Exact curve of `positions` independent integers under this noise.

    Each is shifted by a random amount, which is public randomness that is revealed.

    Parameters
    ----------
    ratio : q of the noise
    positions : how many integers
    shifts : pairs of a shift ≥ 1 and its probability; with the remaining probability it is 0
    """

    ratio: Fraction = field(converter=to_rational)
    positions: int = field(converter=to_count)
    shifts: tuple[tuple[int, Fraction], ...]
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        require(0 < self.ratio < 1, "ratio", self.ratio, "in (0, 1)")
        good = all(shift >= 1 and share > 0 for shift, share in self.shifts)
        rule = "pairs of a shift of at least 1 and a probability, of sum at most 1"
        total = sum(share for _, share in self.shifts)
        require(good and 0 < total <= 1, "shifts", self.shifts, rule)

    @property
    def reach(self) -> int:
        """Largest loss, in steps: the curve is 0 from reach·ln(1/q) on."""
        return self.positions * max(shift for shift, _ in self.shifts)

    def loss(self) -> Enclosure:
        """Encloses ln(1/q), one step of the loss."""
        return enclose(lambda: -to_arb(self.ratio).log())

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), exactly 0 from the largest loss on.

        Of many steps the nodes of an inversion are fewer than the weights of the whole law.
        """
        if self.reach > _MOST_STEPS:
            return Composed(losses=self.losses()).delta_at(epsilon)
        return step_delta(epsilon, step=self.loss(), reach=self.reach, tails=self._tails)

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ); the largest loss where δ is 0."""
        if self.reach > _MOST_STEPS:
            return Composed(losses=self.losses()).epsilon_at(delta)
        return step_epsilon(delta, reach=self.reach, tails=self._tails)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; ln(1/q) is divided by `noise`.

        Loss j·s counts where the double j·s reaches the threshold, s the upper end of `loss`.
        """
        step, reach = self.loss().upper, self.reach
        q = math.exp(-step / noise)
        law = np.array([float(x) for x in _law(self.shifts, arb(q))])
        total = _float_power(law, self.positions)
        counted = np.arange(reach, -reach - 1, -1) * step >= threshold
        # Under the other neighbour the law is that of −L: the shift may go either way.
        own, other = float(total[counted].sum()), float(total[::-1][counted].sum())
        return min(own, 1.0), min(other, 1.0)

    def losses(self) -> Losses:
        """The privacy losses of the positions, for composition; for draws of their own."""
        q = self.ratio
        unmoved = 1 - sum((share for _, share in self.shifts), Fraction(0))
        pairs = [(unmoved, unmoved)] if unmoved else []
        for shift, share in self.shifts:
            # Outputs at or beyond either value, and between them: their likelihood ratios differ.
            own = [q**noisy * (1 if noisy in (0, shift) else 1 - q) for noisy in range(shift + 1)]
            pairs += [
                (share * p / (1 + q), share * other / (1 + q))
                for p, other in zip(own, own[::-1], strict=True)
            ]
        return ((FiniteLoss(pairs=tuple(pairs)), self.positions),)

    def _tails(self) -> tuple[list[arb], list[arb]]:
        return _tails(self.ratio, self.shifts, self.positions, ctx.prec)


def _law(shifts: tuple[tuple[int, Fraction], ...], q: arb) -> list[arb]:
    """Probabilities of one position's losses most, most − 1, …, −most."""
    most = max(shift for shift, _ in shifts)
    law = [arb(0)] * (2 * most + 1)
    law[most] = to_arb(1 - sum((share for _, share in shifts), Fraction(0)))
    powers = list(accumulate([q] * most, lambda x, y: x * y, initial=1 / (1 + q)))
    for shift, share in shifts:
        weight = to_arb(share)
        for noisy in range(shift + 1):
            inner = 1 - q if 0 < noisy < shift else arb(1)
            law[most - shift + 2 * noisy] += weight * inner * powers[noisy]
    return law


@lru_cache(maxsize=8)
def _tails(
    ratio: Fraction, shifts: tuple[tuple[int, Fraction], ...], positions: int, precision: int
) -> tuple[list[arb], list[arb]]:
    """P[L ≥ j] and Q[L ≥ j] for j = 0, …, reach, in balls of the precision (the one in force)."""
    q = to_arb(ratio)
    law = _law(shifts, q)
    reach = positions * (len(law) // 2)
    weights = (arb_poly(law) ** positions).coeffs()
    weights = (weights + [arb(0)] * (reach + 1))[: reach + 1]  # losses reach, reach − 1, …, 0
    factors = list(accumulate([q] * reach, lambda x, y: x * y, initial=arb(1)))[::-1]
    own = list(accumulate(weights))
    other = list(accumulate(w * f for w, f in zip(weights, factors, strict=True)))
    return own[::-1], other[::-1]


def _float_power(law: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    if exponent == 1:
        return law
    half = _float_power(law, exponent // 2)
    square = np.convolve(half, half)
    return np.convolve(square, law) if exponent % 2 else square
