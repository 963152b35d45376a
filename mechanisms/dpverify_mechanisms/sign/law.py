"""The law of independent signs: losses, their sum over outputs, and the whole distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpverify.enclosure import enclose, to_arb
from dpverify.errors import require

__all__ = ["bit_losses", "largest_ratio", "packed_distribution", "total_losses"]

_LARGEST = 16


def packed_distribution(positive: Sequence[Fraction]) -> dict[bytes, Fraction]:
    """Probability of every packed output, from those that each sign is positive."""
    k = len(positive)
    require(k <= _LARGEST, "k", k, f"at most {_LARGEST} to enumerate")
    result = {}
    for bits in product((0, 1), repeat=k):
        chances = (q if bit else 1 - q for bit, q in zip(bits, positive, strict=True))
        result[np.packbits(bits).tobytes()] = math.prod(chances, start=Fraction(1))
    return result


def largest_ratio(own: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Largest ratio of the probabilities of an output; ZeroDivisionError where it is infinite."""
    total = Fraction(1)
    for q, r in zip(own, other, strict=True):
        total *= max(a / b for a, b in ((q, r), (1 - q, 1 - r)) if a)
    return total


def bit_losses(own: Sequence[Fraction], other: Sequence[Fraction]) -> NDArray[np.float64]:
    """Loss of every bit where it is 0 and where it is 1, of shape (2, k)."""
    pairs = zip(own, other, strict=True)
    return np.array([(0.0, 0.0) if q is r else _losses(q, r) for q, r in pairs]).T


def total_losses(bits: NDArray[np.uint8], losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Total loss of every row of bits, of shape (rows,), from the losses of `bit_losses`.

    Equal losses are counted before they are added: the total of j equal ones is the double j·s,
    which is what the claim's curve compares thresholds with.
    """
    told = np.flatnonzero(losses.any(axis=0))
    if not told.size:
        return np.zeros(len(bits))
    bits, losses = bits[:, told], losses[:, told]
    infinite = np.where(np.isinf(losses), losses, 0.0)
    sizes, where = np.unique(np.abs(np.where(np.isinf(losses), 0.0, losses)), return_inverse=True)
    counts = np.zeros((bits.shape[0], sizes.size))
    for value in (0, 1):
        chosen = (bits == value).astype(np.float64)
        signed = np.zeros((bits.shape[1], sizes.size))
        signed[np.arange(bits.shape[1]), where.reshape(losses.shape)[value]] = np.sign(
            losses[value]
        )
        counts += chosen @ signed
    totals = np.array([math.fsum(row) for row in (counts * sizes).tolist()])
    never = np.where(bits == 1, infinite[1], infinite[0]).sum(axis=1)
    return np.where(never == 0, totals, never)


@lru_cache(maxsize=4096)
def _losses(own: Fraction, other: Fraction) -> tuple[float, float]:
    return _loss(1 - own, 1 - other), _loss(own, other)


def _loss(own: Fraction, other: Fraction) -> float:
    """Ln(own/other), rounded away from 0."""
    if own == other:
        return 0.0
    if own < other:
        return -_loss(other, own)
    return enclose(lambda: to_arb(own / other).log()).upper if other else math.inf
