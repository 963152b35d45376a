"""Textbook mechanisms with their worst pairs, and a black-box audit beside the best event."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks.base import COUNTED, Target
from dpverify.auditing.attacks.black_box import BlackBoxAttack
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.samples import sample_pair
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.data.adjacency import BitFlip, L1Ball
from dpverify.privacy import Mechanism, Pair, WhiteBox
from dpverify.sampling.words import Words

__all__ = ["ALPHA", "NUMBERS", "SUBJECTS", "Bits", "Laplace", "Normal", "Subject", "measured"]


ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism):
    """x + Laplace noise in doubles, claimed to be 1-private."""

    scale: float = 1.0
    adjacency = L1Ball(radius=Fraction(1))

    def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
        """One number for each row."""
        word = int(rng.words(1)[0])
        size = -self.scale * math.log(((word >> 12) + 0.5) * 2.0**-52)
        return np.asarray(records + (size if word & 1 else -size))

    def privacy(self) -> ApproxDP:
        """ε = 1."""
        return ApproxDP(epsilon=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits(Mechanism):
    """Randomized response on whole bytes of bits, ε = 1 for each bit."""

    adjacency = BitFlip()

    def release(self, records: Any, *, rng: Words) -> NDArray[np.uint8]:
        """Packed bits, of the records' shape."""
        coins = rng.words(2 * records.size).view(np.uint16)
        flips = coins < round(2**16 / (1 + math.e))
        return np.asarray(records ^ np.packbits(flips).reshape(records.shape))

    def privacy(self) -> ApproxDP:
        """ε = 1, and the little that 16 bits of a coin add."""
        return ApproxDP(epsilon=Fraction(1) + Fraction(1, 10**4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal(WhiteBox):
    """x + standard normal noise in doubles, and its likelihood ratio."""

    adjacency = L1Ball(radius=Fraction(1))

    def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
        """One number for each row."""
        word = int(rng.words(1)[0])
        return np.asarray(records + ndtri(((word >> 12) + 0.5) * 2.0**-52))

    def privacy(self) -> Gaussian:
        """σ = 1 and Δ = 1."""
        return Gaussian(sigma=1)

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[Any]:
        """Of both normal densities."""
        values = outputs.reshape(len(outputs))
        own, other = float(record.item()), float(neighbour.item())
        return np.asarray(((values - other) ** 2 - (values - own) ** 2) / 2)

    def worst_pairs(self) -> tuple[Pair, ...]:
        """One apart."""
        return (NUMBERS,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A mechanism with its worst pair, its true ε and the best event on the neighbour's side."""

    name: str
    mechanism: Laplace | Bits
    pair: Pair
    epsilon: float
    best: Callable[[NDArray[Any]], NDArray[np.bool_]]


def _bits(count: int) -> Pair:
    record = np.zeros((1, count // 8), dtype=np.uint8)
    neighbour = record.copy()
    neighbour[0, count // 16] = 16
    return Pair(name="one bit", record=record, neighbour=neighbour)


def _bit(count: int) -> Callable[[NDArray[Any]], NDArray[np.bool_]]:
    return lambda outputs: outputs[:, 0, count // 16] & 16 > 0


NUMBERS = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


SUBJECTS = (
    Subject(
        name="Laplace",
        mechanism=Laplace(),
        pair=NUMBERS,
        epsilon=1.0,
        best=lambda outputs: outputs.ravel() >= 1,
    ),
    Subject(
        name="randomized response",
        mechanism=Bits(),
        pair=_bits(8),
        epsilon=1.0,
        best=_bit(8),
    ),
    Subject(
        name="Laplace, scale halved",
        mechanism=Laplace(scale=0.5),
        pair=NUMBERS,
        epsilon=2.0,
        best=lambda outputs: outputs.ravel() >= 1,
    ),
    Subject(
        name="64 bits, one differs",
        mechanism=Bits(),
        pair=_bits(64),
        epsilon=1.0,
        best=_bit(64),
    ),
)


def measured(subject: Subject, draws: int, seed: int) -> tuple[float, float, float]:
    """Lower bound, the reference's, and the audit's seconds of processor time."""
    start = process_time()
    config = AuditConfig(alpha=ALPHA, draws=draws, seed=seed, workers=1)
    (finding,) = BlackBoxAttack().run(Target(subject.mechanism, [subject.pair]), config)
    seconds = process_time() - start
    record, neighbour = sample_pair(subject.mechanism, subject.pair, config, COUNTED)
    reference = Counts(
        hits=int(np.count_nonzero(subject.best(neighbour))),
        draws=draws,
        false_hits=int(np.count_nonzero(subject.best(record))),
    )
    return finding.epsilon_lower or 0.0, reference.epsilon_lower(delta=0, alpha=ALPHA), seconds
