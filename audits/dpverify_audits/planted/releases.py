"""Mistakes in code of which only the releases are known: noise on counts, and reports by coins.

Two kinds of twin, both exact. *Counts* are whole numbers with rounded Laplace noise, which on whole
numbers is rounding after continuous noise, so that ε = (ℓ1 move)/(scale). *Reports* draw from
integer weights, and the same weights are their law, so that they can be enumerated.

A bug is its twin with another release, and claims what its twin claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.finding import AuditKind
from dpverify.data.adjacency import Adjacency, BitFlip, L1Ball
from dpverify.privacy import Exhaustive, Mechanism, Pair
from dpverify.sampling.coins import uniform_below
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import ReplayableWords, Words
from dpverify_audits.planted.bug import PlantedBug, by_enumeration

__all__ = ["Counts", "Reports", "apart", "counts_bug", "odds", "reports_bug"]

Draw = Callable[[NDArray[Any], RoundedLaplace, Words], NDArray[Any]]
Weights = Callable[[tuple[int, ...]], tuple[int, ...]]

_UNIT = L1Ball(radius=Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Mechanism):
    """Noise on counts.

    Attributes
    ----------
    draw : makes the release of shape (n, …) from records of shape (n, p), the noise and the words
    noise : calibrated to the claim
    record, neighbour : counts that show the bug
    adjacency : moves of the counts
    claim : pure ε
    """

    draw: Draw
    record: tuple[float, ...]
    neighbour: tuple[float, ...]
    noise: RoundedLaplace = field(default_factory=lambda: RoundedLaplace(scale=1.0))
    adjacency: Adjacency = _UNIT
    claim: Fraction = Fraction(1)

    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        """Release of all rows."""
        return self.draw(np.asarray(records), self.noise, rng)

    def privacy(self) -> ApproxDP:
        """As claimed."""
        return ApproxDP(epsilon=self.claim)

    def worst_pairs(self) -> Sequence[Pair]:
        """The pair that shows the bug."""
        return (_pair(self.record, self.neighbour),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports(Mechanism, Exhaustive):
    """One value of a few for each row, drawn by integer weights.

    Attributes
    ----------
    weights : of the values 0, 1, …, for a row
    record, neighbour : rows that show the bug
    claim : pure ε
    adjacency : one bit of the row
    """

    weights: Weights
    record: tuple[int, ...]
    neighbour: tuple[int, ...]
    claim: Fraction
    adjacency: Adjacency = field(default_factory=BitFlip)

    def release(self, records: Any, *, rng: Words) -> NDArray[np.int64]:
        """Values of shape (n, 1)."""
        reported = []
        for row in np.asarray(records):
            ends = np.cumsum(self.weights(tuple(int(value) for value in row)))
            place = uniform_below(int(ends[-1]), (1,), rng=rng)
            reported.append(np.searchsorted(ends, place, side="right"))
        return np.array(reported, dtype=np.int64)

    def distribution(self, record: Any) -> Mapping[Any, Fraction]:
        """Exact law of the value."""
        weights = self.weights(tuple(int(value) for value in np.ravel(record)))
        return {(value,): Fraction(w, sum(weights)) for value, w in enumerate(weights) if w}

    def privacy(self) -> ApproxDP:
        """As claimed."""
        return ApproxDP(epsilon=self.claim)

    def worst_pairs(self) -> Sequence[Pair]:
        """The pair that shows the bug."""
        return (_pair(self.record, self.neighbour),)


def counts_bug(
    name: str,
    mistake: str,
    *,
    record: tuple[float, ...],
    neighbour: tuple[float, ...],
    correct: Draw,
    wrong: Draw,
    found_by: tuple[AuditKind, ...],
    draws: int = 1000,
    epsilon: Callable[[Counts, Fraction], float] | None = None,
    **settings: Any,
) -> PlantedBug[Counts]:
    """A bug of noisy counts."""
    twin = Counts(draw=correct, record=record, neighbour=neighbour, **settings)
    return PlantedBug(
        name=name,
        mistake=mistake,
        twin=lambda: twin,
        plant=lambda correct: replace(correct, draw=wrong),
        found_by=found_by,
        draws=draws,
        epsilon=epsilon,
    )


def reports_bug(
    name: str,
    mistake: str,
    *,
    record: tuple[int, ...],
    neighbour: tuple[int, ...],
    claim: Fraction,
    correct: Weights,
    wrong: Weights,
    draws: int = 1000,
    found_by: tuple[AuditKind, ...] = ("exhaustive", "black-box", "sequential"),
) -> PlantedBug[Reports]:
    """A bug of a report by coins."""
    twin = Reports(weights=correct, record=record, neighbour=neighbour, claim=claim)
    return PlantedBug(
        name=name,
        mistake=mistake,
        twin=lambda: twin,
        plant=lambda correct: replace(correct, weights=wrong),
        found_by=found_by,
        draws=draws,
        epsilon=by_enumeration,
    )


@frozen(kw_only=True)
class _Silent(RoundedLaplace):
    """No noise, of the scale that it has."""

    def sample(self, shape: tuple[int, ...], *, rng: Words) -> NDArray[np.int64]:
        """Zeros."""
        del rng
        return np.zeros(shape, dtype=np.int64)


def apart(broken: Counts, delta: Fraction) -> float:
    """ε at δ = 0 of whole numbers with noise each: how far they move in ℓ1, over its scale."""
    silent, rng = _Silent(scale=broken.noise.scale), ReplayableWords(0, "silent")
    first, second = (
        broken.draw(np.array([counts]), silent, rng) for counts in (broken.record, broken.neighbour)
    )
    return float(np.abs(first - second).sum() / broken.noise.scale) if delta == 0 else math.nan


def odds(epsilon: float) -> int:
    """Weight of a truth beside a lie of weight 2³²: rounded down, on the private side."""
    return math.floor(math.exp(epsilon) * 2**32)


def _pair(record: tuple[float, ...], neighbour: tuple[float, ...]) -> Pair:
    return Pair(name="shows the bug", record=np.array([record]), neighbour=np.array([neighbour]))
