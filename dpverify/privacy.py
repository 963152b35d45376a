"""What a mechanism offers, as protocols, and how a package announces its mechanisms.

A mechanism is frozen data. What it can do decides what can be done with it: anything with
`release` and a guarantee can be audited; with a likelihood ratio, by the strongest attack; with all
of `Certifiable`, certified.

**Data sets.** A mechanism releases a whole data set: most treat its rows alike and independently,
one record a row; some (graphs, covariances) take it as one. A `Pair` therefore holds two
neighbouring *data sets*, which are single rows of shape (1, p) for the former.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import Domain
from dpverify.enclosure import Enclosure
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.sampling.words import Words

__all__ = [
    "Certifiable",
    "Estimator",
    "Exhaustive",
    "Mechanism",
    "MechanismFamily",
    "Pair",
    "Parameter",
    "Request",
    "Streaming",
    "WhiteBox",
    "Within",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two data sets that `release` accepts, and why they were chosen."""

    name: str
    record: Any
    neighbour: Any


class Mechanism(Protocol):
    """Anything that releases and claims."""

    @property
    def adjacency(self) -> Adjacency:
        """Whom the claim protects."""
        ...

    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        """Release of shape (rows, …), by the code path that users run."""
        ...

    def privacy(self) -> PrivacyCurve:
        """The accountant's claim."""
        ...


@runtime_checkable
class Streaming(Mechanism, Protocol):
    """A mechanism that releases row after row, so that data needn't fit in memory."""

    def release_blocks(self, records: Any, *, rng: Words) -> Iterator[NDArray[Any]]:
        """`release` in consecutive blocks of rows, each drawn when it is asked for."""
        ...


@runtime_checkable
class WhiteBox(Mechanism, Protocol):
    """A mechanism whose output distribution is known well enough for a likelihood ratio."""

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[Any]:
        """Ln p(output | record) − ln p(output | neighbour), of shape (draws,).

        `outputs` are releases of one data set each, stacked: shape (draws, rows, …).
        """
        ...

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbouring data sets at which the privacy loss is largest."""
        ...


@runtime_checkable
class Exhaustive(Protocol):
    """A mechanism whose output distribution is finite and known exactly."""

    def distribution(self, record: Any) -> Mapping[Any, Fraction]:
        """Exact probability of every output (as a tuple or bytes) for one record."""
        ...


class Estimator(Protocol):
    """An estimate from what was released, with its moments in closed form.

    It compares two released rows, or one release with a public query (a set of vertices, a
    direction); `compares` says which.
    """

    @property
    def name(self) -> str:
        """What is estimated."""
        ...

    @property
    def order(self) -> Literal["exact", "delta method"]:
        """Whether expectation and variance are exact or the delta method's."""
        ...

    @property
    def compares(self) -> Literal["records", "release and query"]:
        """Whether the second argument is another released row or a public query."""
        ...

    @property
    def over(self) -> Literal["draw and noise", "noise"]:
        """Whether the moments are over the public randomness too, or for what was realised."""
        ...

    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        """Estimates from released rows of equal shape (…, k), or from releases and a query."""
        ...

    def truth(self, record: Any, other: Any) -> float:
        """What is estimated, for the records as the mechanism reads them."""
        ...

    def expectation(self, record: Any, other: Any) -> float:
        """Mean over what `over` says."""
        ...

    def variance(self, record: Any, other: Any) -> float:
        """Variance over what `over` says."""
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

    def step(self) -> Enclosure | None:
        """Size of one step of the released integers in the records' unit, where they have one."""
        ...

    def shape(self, rows: int) -> tuple[int, ...]:
        """Shape of the release of so many records."""
        ...

    def dtype(self) -> np.dtype[Any]:
        """Type of the released numbers, whatever the records are."""
        ...

    def redrawn(self, seed: int) -> Certifiable:
        """The same mechanism with its public randomness drawn anew and its noise unchanged."""
        ...

    def estimators(self) -> Sequence[Estimator]:
        """Estimators of what was released, the most important first."""
        ...

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic arguments for the estimators; the formulas are tested at the last."""
        ...


@runtime_checkable
class Within(Protocol):
    """A mechanism that releases less than its type can hold: some bits of a byte, some buckets."""

    def possible(self, released: NDArray[Any]) -> bool:
        """Whether nothing in these released rows, of its type, is what it never releases."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a mechanism, as a configuration or the command line gives it.

    Attributes
    ----------
    name, meaning : what it is called and what it is
    domain : what it may be, in words
    kind : a whole number (int), an exact number (Fraction), or one of `choices` (str)
    default : taken where none is given; None means that one must be
    """

    name: str
    domain: str
    meaning: str
    kind: Literal["whole", "number", "choice"] = "whole"
    default: int | Fraction | str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a certificate's configuration asks of a mechanism.

    Rows and attributes are those of the records: their numbers are public.
    """

    rows: int
    attributes: int
    domain: Domain
    adjacency: Adjacency
    epsilon: Fraction
    delta: Fraction
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismFamily:
    """What a package announces in the entry-point group ``dpverify.mechanisms``.

    Attributes
    ----------
    name : as in the paper, lower case.
    paper : where it is described, with the algorithm's number.
    guarantee : its kind, "(epsilon, delta)", "epsilon" or the name of a weaker notion.
    adjacency : kinds of adjacency that it supports, as configurations name them.
    domain : kinds of domain that it supports, as configurations name them.
    estimates : what its estimators estimate.
    parameters : what it takes beside the privacy target.
    build : makes the mechanism that meets a request; None where it can't be certified.
    refusal : why it can't be certified, where it can't.
    seeded : whether it makes anything public from the request's seed.
    """

    name: str
    paper: str
    guarantee: str
    adjacency: tuple[str, ...]
    domain: tuple[str, ...]
    estimates: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    build: Callable[[Request], Certifiable] | None
    refusal: str = ""
    seeded: bool = True
