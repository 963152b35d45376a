"""What a planted bug is: a mechanism that says one thing and does another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.attacks.exhaustive import exhaust
from dpverify.auditing.finding import AuditKind
from dpverify.auditing.outputs.samples import releaser
from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import Domain, is_sparse
from dpverify.enclosure import Enclosure
from dpverify.errors import require
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.privacy import Certifiable, Estimator, Exhaustive, Mechanism, Pair
from dpverify.sampling.words import Words

__all__ = [
    "Enumerable",
    "FoundBy",
    "Mislabelled",
    "PlantedBug",
    "by_enumeration",
    "by_its_accountant",
    "noise_times",
    "without_limit",
]

FoundBy = AuditKind | Literal["moments"]
"""An attack, or the check of the moments of estimators."""

Rates = tuple[float, float]

_M = TypeVar("_M", bound=Mechanism)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug(Generic[_M]):
    """A mistake that people make.

    Attributes
    ----------
    name : short
    mistake : what was done wrong
    twin : makes the correct mechanism, a small one
    plant : makes the broken one from it: the same claim, other behaviour
    found_by : the audits that are promised to find it; others may
    draws : on each side, with which they do; the white-box attack 99 times in 100
    rates : P[L ≥ t] of the broken release on its own side and on the other, at the worst pair in
        its worse order, with L the loss that is claimed: what that promise follows from. In
        doubles; None where the white-box attack isn't promised to find it
    epsilon : ε of the broken release, a mechanism, at the pairs that it names and at δ; None where
        no closed form and no enumeration gives it
    """

    name: str
    mistake: str
    twin: Callable[[], _M]
    plant: Callable[[_M], Mechanism]
    found_by: tuple[FoundBy, ...] = ("white-box",)
    draws: int = 1000
    rates: Callable[[_M, float], Rates] | None = None
    epsilon: Callable[[Any, Fraction], float] | None = None

    def broken(self) -> Mechanism:
        """The broken mechanism."""
        return self.plant(self.twin())

    __call__ = broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Mislabelled(Certifiable):
    """Says what one mechanism says, and releases what another one releases.

    The likelihood ratio and the pairs are those of the claim too: an audit is handed a mechanism by
    whoever believes in it.

    Parameters
    ----------
    claim : what it says it is
    actual : whose releases it gives out
    """

    claim: Certifiable
    actual: Certifiable

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[Any]:
        """Release of the other mechanism."""
        return self.actual.release(records, rng=rng)

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], NDArray[Any]]:
        """As the other mechanism prepares it, if it does."""
        return releaser(self.actual, records, count, rng)

    def redrawn(self, seed: int) -> Self:
        """Both with the same new public randomness."""
        return type(self)(claim=self.claim.redrawn(seed), actual=self.actual.redrawn(seed))

    @property
    def adjacency(self) -> Adjacency:
        """As claimed."""
        return self.claim.adjacency

    @property
    def domain(self) -> Domain:
        """As claimed."""
        return self.claim.domain

    @property
    def p(self) -> int:
        """As claimed."""
        return self.claim.p

    def privacy(self) -> PrivacyCurve:
        """As claimed."""
        return self.claim.privacy()

    def guarantee(self) -> Guarantee:
        """As claimed."""
        return self.claim.guarantee()

    def facts(self) -> Mapping[str, Any]:
        """As claimed."""
        return self.claim.facts()

    def step(self) -> Enclosure | None:
        """As claimed."""
        return self.claim.step()

    def shape(self, rows: int) -> tuple[int, ...]:
        """As claimed."""
        return self.claim.shape(rows)

    def dtype(self) -> np.dtype[Any]:
        """As claimed."""
        return self.claim.dtype()

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[Any]:
        """The loss as claimed."""
        return self.claim.log_likelihood_ratio(outputs, record, neighbour)

    def worst_pairs(self) -> Sequence[Pair]:
        """As claimed."""
        return self.claim.worst_pairs()

    def estimators(self) -> Sequence[Estimator]:
        """As claimed."""
        return self.claim.estimators()

    def probes(self, rng: Words) -> Sequence[Pair]:
        """As claimed."""
        return self.claim.probes(rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerable(Mislabelled, Exhaustive):
    """One whose releases have a finite law: that of what is really released."""

    actual: Any

    def distribution(self, record: Any) -> Mapping[Any, Fraction]:
        """Exact law of the other mechanism's release."""
        law: Mapping[Any, Fraction] = self.actual.distribution(record)
        return law


def by_its_accountant(broken: Mislabelled, delta: Fraction) -> float:
    """ε of a broken mechanism whose code is right and whose parameters are wrong: it knows."""
    return broken.actual.privacy().epsilon_at(delta).lower


def by_enumeration(broken: Any, delta: Fraction) -> float:
    """ε at δ = 0 of a finite law, over the broken mechanism's pairs."""
    require(delta == 0, "delta", delta, "0")
    pairs = [(pair.record, pair.neighbour) for pair in broken.worst_pairs()]
    # Sparse data stay as they are, of others one row is a record.
    rows = [[x if is_sparse(x) else np.atleast_2d(x)[0] for x in pair] for pair in pairs]
    return max(exhaust(broken, pair).epsilon().lower for pair in rows)


def without_limit(broken: Any, delta: Fraction) -> float:
    """ε of a release of which one neighbour has outputs that the other never has."""
    return math.inf


def noise_times(factor: float) -> Callable[[Certifiable, float], Rates]:
    """Rates of a bug that amounts to noise scaled by a factor (log-odds divided by it)."""
    return lambda twin, threshold: twin.privacy().rates(threshold, noise=factor)
