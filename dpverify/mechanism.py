"""What a mechanism offers, as protocols, and how a package announces its mechanisms.

A mechanism is frozen data. What it can do decides what can be done with it: anything with
`release` and a guarantee can be audited; with a likelihood ratio, by the strongest attack; with all
of `Certifiable`, certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.adjacency import Adjacency
from dpverify.enclosure import Enclosure
from dpverify.grid import Domain
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.sampling.words import Words

__all__ = [
    "Certifiable",
    "Estimator",
    "Mechanism",
    "MechanismFamily",
    "Pair",
    "Parameter",
    "Request",
    "WhiteBox",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two neighbouring records, each of shape (p,), and why they were chosen."""

    name: str
    record: NDArray[np.float64]
    neighbour: NDArray[np.float64]


class Mechanism(Protocol):
    """Anything that releases and claims."""

    @property
    def adjacency(self) -> Adjacency:
        """Whom the claim protects."""
        ...

    def release(self, records: ArrayLike, *, rng: Words) -> NDArray[Any]:
        """Release of shape (rows, …), by the code path that users run."""
        ...

    def privacy(self) -> PrivacyCurve:
        """The accountant's claim."""
        ...


@runtime_checkable
class WhiteBox(Mechanism, Protocol):
    """A mechanism whose output distribution is known well enough for a likelihood ratio."""

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: ArrayLike, neighbour: ArrayLike
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour), of shape (rows,)."""
        ...

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbouring records at which the privacy loss is largest."""
        ...


class Estimator(Protocol):
    """An estimate from two released rows, with its moments in closed form."""

    @property
    def name(self) -> str:
        """What is estimated."""
        ...

    @property
    def order(self) -> Literal["exact", "delta method"]:
        """Whether expectation and variance are exact or the delta method's."""
        ...

    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Estimates from rows of equal shape (…, k)."""
        ...

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """What is estimated, for the gridded records."""
        ...

    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        """Mean over the draws of the public projection and of the noise."""
        ...

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Variance over the draws of the public projection and of the noise."""
        ...


class Certifiable(WhiteBox, Protocol):
    """All that a certificate needs."""

    @property
    def domain(self) -> Domain:
        """Declared domain of the records."""
        ...

    def guarantee(self) -> Guarantee:
        """The claim with its conditions."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Public numbers that the claim rests on, each derived from the parameters alone.

        Strings hold exact numbers; an `Enclosure` is allowed as a value.
        """
        ...

    def step(self) -> Enclosure:
        """Size of one step of the released integers, in the records' unit."""
        ...

    def redrawn(self, seed: int) -> Certifiable:
        """The same mechanism with its public randomness drawn anew and its noise unchanged."""
        ...

    def estimators(self) -> Sequence[Estimator]:
        """Estimators for two released rows; the first is of the squared distance."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter's name, its domain in words, and what it is."""

    name: str
    domain: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a certificate's configuration asks of a mechanism."""

    attributes: int
    domain: Domain
    adjacency: Adjacency
    epsilon: Fraction
    delta: Fraction
    seed: int
    parameters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismFamily:
    """What a package announces in the entry-point group ``dpverify.mechanisms``.

    Attributes
    ----------
    name : as in the paper, lower case.
    paper : where it is described, with the algorithm's number.
    guarantee : its kind, "(epsilon, delta)" or "epsilon".
    adjacency : the adjacencies that it supports.
    parameters : what it takes beside the privacy target.
    build : makes the mechanism that meets a request.
    """

    name: str
    paper: str
    guarantee: str
    adjacency: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    build: Callable[[Request], Certifiable]
