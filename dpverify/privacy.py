"""What a mechanism offers, as base classes.

A mechanism is frozen data. What it can do decides what can be done with it: a `Mechanism` can be
audited; a `WhiteBox`, by the strongest attack; a `Certifiable`, certified.

**Data sets.** A mechanism releases a whole data set: most treat its rows alike and independently,
one record a row; some (graphs, covariances) take it as one. A `Pair` therefore holds two
neighbouring *data sets*, which are single rows of shape (1, p) for the former.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import Adjacency
from dpverify.data.blocks import admitted_blocks, joined, row_blocks
from dpverify.data.domain import Domain, as_rows
from dpverify.enclosure import Enclosure
from dpverify.errors import ParameterError
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.sampling.words import Words, release_words

__all__ = [
    "Certifiable",
    "Errors",
    "Estimator",
    "Exhaustive",
    "Mechanism",
    "Pair",
    "Prepared",
    "Redrawable",
    "Streaming",
    "SymmetricNoise",
    "WhiteBox",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two data sets that `release` accepts, and why they were chosen."""

    name: str
    record: Any
    neighbour: Any


def _offers(kind: type, *names: str) -> bool:
    """Whether a class has these methods, whatever it inherits from; else Python looks itself."""
    return True if all(callable(getattr(kind, name, None)) for name in names) else NotImplemented


class Mechanism(ABC):
    """Anything that releases and claims: an adjacency and two methods are enough for an audit.

    Attributes
    ----------
    adjacency : whom the claim protects
    """

    __slots__ = ()

    if TYPE_CHECKING:  # a field or a property: a dataclass takes what stands here for its default

        @property
        def adjacency(self) -> Adjacency: ...

    @abstractmethod
    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        """Release of shape (rows, …), by the code path that users run."""

    @abstractmethod
    def privacy(self) -> PrivacyCurve:
        """The accountant's claim."""

    @property
    def replayable(self) -> bool:
        """Whether the words that `release` is given decide all that it draws."""
        return True

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbouring data sets at which the privacy loss is largest: none that are known."""
        return ()

    def redrawn(self, seed: int) -> Self:
        """The same mechanism with its public randomness drawn anew and its noise unchanged.

        The mechanism itself, unless it has public randomness.
        """
        del seed
        return self


class Streaming(Mechanism):
    """A mechanism that releases row after row, so that data needn't fit in memory."""

    __slots__ = ()

    @abstractmethod
    def release_blocks(self, records: Any, *, rng: Words | None = None) -> Iterator[NDArray[Any]]:
        """`release` in consecutive blocks of rows, each drawn when it is asked for."""

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[Any]:
        """Release of every record, a row each.

        Parameters
        ----------
        records : (n, p) array inside the domain, dense or scipy sparse, or an iterable of such
            arrays: blocks of rows, for data that doesn't fit in memory. How the rows are blocked
            has no influence on the result.
        rng : secure words by default; replayable ones for audits alone

        Raises
        ------
        RecordsError
            If the records don't fit the mechanism or its domain.
        """
        released: NDArray[Any] = joined(self.release_blocks(records, rng=rng))
        return released


class Prepared(Streaming):
    """A streaming mechanism that has all its randomness in a last step, block by block."""

    __slots__ = ()

    @abstractmethod
    def prepared_blocks(self, records: Any) -> Iterator[NDArray[Any]]:
        """Blocks of rows as they are before the last step: secret."""

    @abstractmethod
    def randomized(self, block: NDArray[Any], rng: Words) -> NDArray[Any]:
        """Release of a prepared block, which may be changed in place."""

    def release_blocks(self, records: Any, *, rng: Words | None = None) -> Iterator[NDArray[Any]]:
        rng = release_words(rng)
        for block in self.prepared_blocks(records):
            yield self.randomized(block, rng)

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], NDArray[Any]]:
        """Release the records at each call; what comes before the last step is computed once."""
        del count
        blocks: list[NDArray[Any]] = []

        def release() -> NDArray[Any]:
            if not blocks:
                blocks.extend(self.prepared_blocks(records))
            if len(blocks) == 1:
                return self.randomized(blocks[0].copy(), rng)
            released: NDArray[Any] = joined(self.randomized(each.copy(), rng) for each in blocks)
            return released

        return release


class WhiteBox(Mechanism):
    """A mechanism whose output distribution is known well enough for a likelihood ratio.

    A class that has the two methods is one without saying so.
    """

    __slots__ = ()

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return (
            _offers(other, "log_likelihood_ratio", "worst_pairs")
            if cls is WhiteBox
            else NotImplemented
        )

    @abstractmethod
    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[Any]:
        """Ln p(output | record) − ln p(output | neighbour), of shape (draws,).

        `outputs` are releases of one data set each, stacked: shape (draws, rows, …).
        """


class Exhaustive(ABC):
    """A mechanism whose output distribution is finite and known exactly.

    A class that has the method is one without saying so.
    """

    __slots__ = ()

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return _offers(other, "distribution") if cls is Exhaustive else NotImplemented

    @abstractmethod
    def distribution(self, record: Any) -> Mapping[Any, Fraction]:
        """Exact probability of every output (as a tuple or bytes) for one record."""


class Estimator(ABC):
    """An estimate from what was released, with its moments in closed form.

    It compares two released rows, or one release with a public query (a set of vertices, a
    direction); `compares` says which. By default it is unbiased, with exact moments over the noise.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What is estimated."""

    @property
    def order(self) -> Literal["exact", "delta method"]:
        """Whether expectation and variance are exact or the delta method's."""
        return "exact"

    @property
    def compares(self) -> Literal["records", "release and query"]:
        """Whether the second argument is another released row or a public query."""
        return "records"

    @property
    def over(self) -> Literal["draw and noise", "noise"]:
        """Whether the moments are over the public randomness too, or for what was realised."""
        return "noise"

    @property
    def limits(self) -> tuple[float, float] | None:
        """Least and largest truth where no declared domain changes them, as a similarity's."""
        return None

    @abstractmethod
    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Estimates from released rows of shapes (…, k) that broadcast, or releases and a query."""

    @abstractmethod
    def truth(self, record: Any, other: Any) -> float:
        """What is estimated, for the records as the mechanism reads them."""

    def expectation(self, record: Any, other: Any) -> float:
        """Mean over what `over` says: the truth, unless the estimate is biased."""
        return self.truth(record, other)

    @abstractmethod
    def variance(self, record: Any, other: Any) -> float:
        """Variance over what `over` says."""


class SymmetricNoise(Protocol):
    """A law on the whole numbers, symmetric about 0, that doesn't rise away from it."""

    def within(self, size: int) -> Enclosure:
        """Encloses P[|Z| < size], for a whole size ≥ 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """What an estimate is off by, averaged over what is of interest.

    Attributes
    ----------
    variance : exact
    squared_bias : 0 where the estimate is unbiased
    notes : numbers that the estimate takes, by name
    """

    variance: float
    squared_bias: float = 0.0
    notes: Mapping[str, float] = field(default_factory=dict)


class Certifiable(WhiteBox):
    """All that a certificate needs.

    Attributes
    ----------
    domain : declared domain of the records
    p : number of attributes of a record
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def domain(self) -> Domain: ...

        @property
        def p(self) -> int: ...

    @abstractmethod
    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[Any]:
        """Release of a data set, with secure words unless an audit gives its own."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The claim with its conditions."""

    def privacy(self) -> PrivacyCurve:
        """The accountant's claim, the guarantee's curve."""
        return self.guarantee().curve

    def facts(self) -> Mapping[str, Any]:
        """Public numbers that the claim rests on, each derived from the parameters alone.

        Strings hold exact numbers; an `Enclosure` is allowed as a value. None by default.
        """
        return {}

    def step(self) -> Enclosure | None:
        """Size of one step of the released integers in the records' unit, where they have one."""
        return None

    @abstractmethod
    def shape(self, rows: int) -> tuple[int, ...]:
        """Shape of the release of this number of records."""

    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the released numbers, whatever the records are."""

    def possible(self, released: NDArray[Any]) -> bool:
        """Whether these rows, of its shape and type, hold nothing that it never releases.

        Some bits of a byte, some buckets: whatever the type can hold, unless overridden.
        """
        del released
        return True

    def added_noise(self) -> SymmetricNoise | None:
        """Noise that every released number has of its own, added to a whole number of the data.

        None where a release isn't of that kind: then `noise_floor` can test nothing.
        """
        return None

    @abstractmethod
    def estimators(self) -> Sequence[Estimator]:
        """Estimators of what was released, the most important first."""

    def estimate(self, name: str, first: Any, second: Any) -> NDArray[np.float64]:
        """Estimate from released rows, or from a release and a query, by the estimator's name.

        Parameters
        ----------
        name : of one of `estimators`: "squared distance", "cut", …
        first, second : released rows of shapes (…, k) that broadcast; `compares` of the estimator
            says where the second is a public query
        """
        known = {estimator.name: estimator for estimator in self.estimators()}
        if name not in known:
            what = type(self).__name__
            raise ParameterError("name", name, f"what {what} estimates: {', '.join(known)}")
        return known[name].estimate(np.asarray(first), np.asarray(second))

    def errors_at(self, at: Sequence[Any], *, draws: int = 16) -> Errors:
        """Error of the first estimator, the mean over all that is of interest: for `design`.

        Parameters
        ----------
        at : what is of interest, public or synthetic: pairs of arguments of the estimator, unless
            the mechanism says otherwise
        draws : of the public randomness, to average over where no closed form does
        """
        del draws
        first = self.estimators()[0]
        biases = [first.expectation(*pair) - first.truth(*pair) for pair in at]
        return Errors(
            variance=fmean(first.variance(*pair) for pair in at),
            squared_bias=fmean(bias**2 for bias in biases),
        )

    def squared_distance(self, first: Any, second: Any) -> NDArray[np.float64]:
        """Squared distance of two records, from their released rows; see `estimate`."""
        return self.estimate("squared distance", first, second)

    def inner_product(self, first: Any, second: Any) -> NDArray[np.float64]:
        """Inner product of two records, from their released rows; see `estimate`."""
        return self.estimate("inner product", first, second)

    def cosine(self, first: Any, second: Any) -> NDArray[np.float64]:
        """Cosine of two records, from their released rows; see `estimate`."""
        return self.estimate("cosine", first, second)

    def similarity(self, first: Any, second: Any) -> NDArray[np.float64]:
        """Jaccard similarity of two sets, from their released rows; see `estimate`."""
        return self.estimate("Jaccard similarity", first, second)

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic arguments for the estimators; the formulas are tested at the last.

        Pairs of records of the domain by default, from almost equal to independent.
        """
        pairs = self.domain.probes(self.p, rng)
        return [
            Pair(name=f"synthetic {number}", record=record, neighbour=other)
            for number, (record, other) in enumerate(pairs, start=1)
        ]


class Redrawable(Prepared, Certifiable):
    """A mechanism whose public randomness does all that comes between admission and last step.

    Where each draw of an audit draws it anew, the data are admitted once.
    """

    __slots__ = ()

    @abstractmethod
    def before(self, admitted: Any) -> NDArray[Any]:
        """What the last step gets of admitted records, a row each: secret."""

    @abstractmethod
    def ratios(
        self, outputs: NDArray[Any], own: NDArray[Any], other: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Likelihood ratios from the rows of record and neighbour that the last step gets."""

    def admitted(self, records: Any) -> Any:
        """Records of the domain; one record may be a single row."""
        return self.domain.admit(as_rows(records), attributes=self.p)

    def prepared_blocks(self, records: Any) -> Iterator[NDArray[Any]]:
        return map(
            self.before, row_blocks(admitted_blocks(records, self.domain, attributes=self.p))
        )

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour), given the public randomness."""
        own, other = (self.before(self.admitted(data)) for data in (record, neighbour))
        return self.ratios(outputs, own, other)

    def redrawer(self, pair: Pair, side: int) -> Callable[[int, Words], NDArray[np.float64]]:
        """Draw public randomness from a seed, release one side and score it, at each call.

        Parameters
        ----------
        pair : of single records
        side : 0 for the record, 1 for the neighbour
        """
        both = joined([self.admitted(data) for data in (pair.record, pair.neighbour)])

        def score(seed: int, rng: Words) -> NDArray[np.float64]:
            fresh = self.redrawn(seed)
            own, other = fresh.before(both)[:, None]
            output = fresh.randomized((other if side else own).copy(), rng)
            return fresh.ratios(output[None], own, other)

        return score
