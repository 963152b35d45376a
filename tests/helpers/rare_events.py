"""Mechanisms whose δ is mostly in rare outputs, and audits of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.attacks.black_box import choose
from dpverify.auditing.audit import audit
from dpverify.auditing.report import Report
from dpverify.auditing.settings import PROFILES
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.two_sample_binomial import claim_lines
from dpverify.data.adjacency import L1Ball
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import Words

__all__ = [
    "ALPHA",
    "FACTOR",
    "SUBJECTS",
    "Law",
    "Leak",
    "Rare",
    "claim_of",
    "finds",
    "share",
    "whole",
]


ALPHA = 0.01


FACTOR = 2.8
"""The broken mechanism's δ over the claimed one."""


_PAIR = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


Law = Callable[[float, int, float, np.random.Generator], NDArray[Any]]
"""Outputs of the record 0 or 1, so many, of the mechanism whose δ is that."""


def _threshold(delta: float) -> float:
    """At which a count of 1 with Laplace noise is above with probability δ."""
    return 1 - math.log(2 * delta)


def _histogram(x: float, size: int, delta: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Three noisy counts, those of x, 5 and 9 people; 0 below the threshold or without people."""
    noisy = np.array([x, 5.0, 9.0]) + rng.laplace(size=(size, 3))
    shown = (noisy > _threshold(delta)) & np.array([x > 0, True, True])
    return np.where(shown, noisy, 0.0)


def _partitions(x: float, size: int, delta: float, rng: np.random.Generator) -> NDArray[Any]:
    """The names of those that are above it, as sets."""
    shown = _histogram(x, size, delta, rng) > 0
    sets = np.empty(size, dtype=object)
    sets[:] = [frozenset(np.array(["Ada", "Bern", "Chur"])[row].tolist()) for row in shown]
    return sets


def _raw(x: float, size: int, delta: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Laplace noise, but for a share of δ that is released as it is."""
    noisy = x + rng.laplace(size=(size, 1))
    return np.where(rng.random((size, 1)) < delta, x, noisy)


def _clipped(x: float, size: int, delta: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Laplace noise that is clipped where more of it has probability δ for a move of 1."""
    reach = _threshold(delta)
    return x + np.clip(rng.laplace(size=(size, 1)), -reach, reach)


def _loss_rates(sigma: float, t: float) -> tuple[float, float]:
    """P[L ≥ t] of Gaussian noise on a move of 1, on both sides."""
    centre, spread = 1 / (2 * sigma**2), 1 / sigma
    return float(ndtr((centre - t) / spread)), float(ndtr((-centre - t) / spread))


@cache
def _sigma(delta: float) -> float:
    """Of the Gaussian noise that is (1, δ)-private for a move of 1."""

    def excess(sigma: float) -> float:
        p, q = _loss_rates(sigma, 1.0)
        return p - math.e * q - delta

    return float(brentq(excess, 0.1, 100))


def _gaussian(x: float, size: int, delta: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Gaussian noise whose δ at ε = 1 is that."""
    return x + _sigma(delta) * rng.normal(size=(size, 1))


def _alone(delta: float, claimed: float) -> tuple[float, float]:
    """An event of probability δ that the other side never gives."""
    return delta, 0.0


def _by_loss(delta: float, claimed: float) -> tuple[float, float]:
    """The event {L ≥ t} that exceeds the claim by most standard errors."""

    def errors(rates: tuple[float, float]) -> float:
        p, q = rates
        variance = p * (1 - p) + math.e**2 * q * (1 - q)
        return (p - math.e * q - claimed) / math.sqrt(variance)

    return max(
        (_loss_rates(_sigma(delta), t) for t in np.linspace(0.5, 3, 26).tolist()), key=errors
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rare:
    """A mechanism whose δ is mostly in rare outputs.

    Attributes
    ----------
    name : in words
    law : its outputs
    best : probabilities of the best event on both sides, by the mechanism's δ and the claimed one
    """

    name: str
    law: Law
    best: Callable[[float, float], tuple[float, float]]


SUBJECTS = (
    Rare(name="thresholded histogram, counts", law=_histogram, best=_alone),
    Rare(name="thresholded histogram, sets of keys", law=_partitions, best=_alone),
    Rare(name="a raw record now and then", law=_raw, best=_alone),
    Rare(name="clipped noise", law=_clipped, best=_alone),
    Rare(name="Gaussian noise", law=_gaussian, best=_by_loss),
)


@dataclass(frozen=True, slots=True)
class Leak(Mechanism):
    """A subject with its δ and its claim."""

    subject: Rare
    delta: float
    claim: ApproxDP
    adjacency = L1Ball(radius=Fraction(1))

    def release(self, records: NDArray[np.float64], *, rng: Words) -> Any:
        """One output."""
        seed = np.random.SeedSequence(rng.words(4).tolist())
        drawn = self.subject.law(float(records[0, 0]), 1, self.delta, np.random.default_rng(seed))
        return drawn[0]

    def privacy(self) -> ApproxDP:
        """ε = 1 at the claimed δ."""
        return self.claim


def claim_of(delta: Fraction) -> ApproxDP:
    return ApproxDP(epsilon=Fraction(1), delta=delta)


def whole(subject: Rare, delta: Fraction, draws: int, seed: int, *, factor: float) -> Report:
    """The audit of all kinds, as it is by default where one develops."""
    mechanism = Leak(subject, factor * float(delta), claim_of(delta))
    without = PROFILES["dev"].without
    return audit(
        mechanism,
        alpha=ALPHA,
        draws=draws,
        seed=seed,
        pairs=[_PAIR],
        without=without,
        workers=1,
    )


@cache
def share() -> float:
    """Level of the black-box attack in such an audit."""
    report = whole(SUBJECTS[0], Fraction(1, 100), 40, 0, factor=1.0)
    return next(found.level for found in report.findings if found.audit == "black-box")


def finds(subject: Rare, delta: Fraction, draws: int, seed: int, *, factor: float) -> bool:
    """Whether the black-box attack accuses, at its level in an audit of all kinds."""
    rng, at = np.random.default_rng((seed, round(10 * factor))), factor * float(delta)
    lines = claim_lines(1.0, float(delta))[:1]
    training = [subject.law(x, 2 * draws, at, rng) for x in (0.0, 1.0)]
    choice = choose(*training, delta=float(delta), lines=lines)
    counts = choice.count(*(subject.law(x, draws, at, rng) for x in (0.0, 1.0)))
    judged = judge(counts, claim_of(delta), delta, share(), caution=choice.caution)
    return judged.refuted_at is not None
