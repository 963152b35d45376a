"""How the buckets of a MinHash sketch are randomized: not at all, by response, or by noise.

Each rule randomizes the K buckets independently given their values, and its privacy loss is a whole
number of steps. Its curve is asked for the worst number of differing buckets, all K of them
(`differ` None: whatever the realised hash functions are), or for each differing with probability
`differ` by public randomness.

Two buckets that differ are two different uniform values of 0, …, B − 1, so they are s apart with
probability 2(B − s)/(B(B − 1)): the law of the shifts of NoisyMinHash.

**Noise on one bit.** For B = 2 the released value enters the likelihood only by being at most 0 or
at least 1. So NoisyMinHash with two-sided geometric noise and RRMinHash with keep = 1/(1 + q) are
post-processings of each other: the same privacy, and the noise beyond one bit is of no use to
anyone. That is why the first never beats the second in the paper's experiments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.accounting.curves.randomized_response import (
    MAX_KEEP,
    MixedResponse,
    RandomizedResponse,
    keep_probability,
    keep_probability_curve,
)
from dpverify.accounting.solve import bisected
from dpverify.enclosure import Enclosure, floor_of, to_arb
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import COIN, to_coin
from dpverify.sampling.coins import flips, uniform_below
from dpverify.sampling.words import Words
from dpverify_mechanisms.baselines.geometric_noise import Geometric, GeometricNoise

__all__ = ["BucketNoise", "BucketResponse", "BucketRule", "Plain"]

Buckets = NDArray[np.int64]

_LEAST_RATIO = 2**24  # 2⁻⁴⁰
_HALVINGS = 40


class BucketRule(ABC):
    """How buckets are randomized, independently given their values."""

    __slots__ = ()

    theorem: ClassVar[str]
    statements: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def draw(self, values: Buckets, buckets: int, *, rng: Words) -> NDArray[Any]:
        """Released values, of the shape of `values` and of `dtype`."""

    def dtype(self, buckets: int) -> np.dtype[Any]:
        """The smallest unsigned type that holds a bucket; noise needs more."""
        return np.min_scalar_type(buckets - 1)

    @abstractmethod
    def curve(self, positions: int, buckets: int, differ: Fraction | None) -> PrivacyCurve:
        """Exact curve for `positions` buckets of which all or each with `differ` differ."""

    @abstractmethod
    def apart(self, values: Buckets, others: Buckets) -> Buckets:
        """Largest loss of every position, in steps."""

    @abstractmethod
    def scores(self, outputs: NDArray[Any], values: Buckets, others: Buckets) -> Buckets:
        """Losses of outputs of shape (draws, K), in steps, of shape (draws,)."""

    @abstractmethod
    def loss(self, buckets: int) -> Enclosure:
        """Encloses one step of the loss."""

    @abstractmethod
    def law(self, value: int, buckets: int) -> list[Fraction]:
        """Probabilities of 0, …, B − 1 for one position; noisy values are clamped to these.

        Outside this range the likelihood ratio of any two buckets is constant, so that clamping
        loses nothing about them.
        """

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Public numbers of the rule."""


@frozen(kw_only=True)
class Plain(BucketRule):
    """No randomness: range-B MinHash (Li and König 2010), which isn't private.

    Under the realised functions one neighbour's sketch is certain and the other's impossible.
    """

    theorem: ClassVar[str] = "none"

    def draw(self, values: Buckets, buckets: int, *, rng: Words) -> NDArray[Any]:
        """The buckets themselves."""
        return values.astype(self.dtype(buckets))

    def curve(self, positions: int, buckets: int, differ: Fraction | None) -> PrivacyCurve:
        """Refuses."""
        raise _not_private()

    def apart(self, values: Buckets, others: Buckets) -> Buckets:
        """1 where buckets differ."""
        return np.asarray(values != others, dtype=np.int64)

    def scores(self, outputs: NDArray[Any], values: Buckets, others: Buckets) -> Buckets:
        """Refuses."""
        raise _not_private()

    def loss(self, buckets: int) -> Enclosure:
        """Refuses."""
        raise _not_private()

    def law(self, value: int, buckets: int) -> list[Fraction]:
        """One certain bucket."""
        return [Fraction(int(other == value)) for other in range(buckets)]

    def facts(self) -> Mapping[str, Any]:
        """That there is none."""
        return {"distribution": "none: range-B MinHash isn't private"}


@frozen(kw_only=True)
class BucketResponse(BucketRule):
    """B-ary randomized response on every bucket: Aumüller et al. 2020, section 4.

    Parameters
    ----------
    keep : probability of the true bucket, a multiple of 2⁻⁶⁴; each other one has (1 − keep)/(B − 1)
    """

    theorem: ClassVar[str] = (
        "Aumüller et al. 2020, lemma 2, for each number of differing values; its exact curve"
    )
    statements: ClassVar[tuple[str, ...]] = ("aumuller2020.lemma-2",)

    keep: Fraction = field(converter=to_coin)

    def __attrs_post_init__(self) -> None:
        require(0 < self.keep <= MAX_KEEP, "keep", self.keep, "in (0, 1 - 2**-40]")

    @classmethod
    def calibrated(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        positions: int,
        buckets: int,
        differ: Fraction | None,
    ) -> Self:
        """The rule that keeps most, proven (ε, δ)-private."""
        pure = keep_probability(epsilon, positions=positions, values=buckets)
        if delta == 0:
            return cls(keep=pure)
        if differ is None:
            return cls(
                keep=keep_probability_curve(epsilon, delta, positions=positions, values=buckets)
            )

        def holds(parts: int) -> bool:
            curve = cls(keep=Fraction(parts, COIN)).curve(positions, buckets, differ)
            return Fraction(curve.delta_at(epsilon).upper) <= delta

        ends = int(pure * COIN), int(MAX_KEEP * COIN)
        return cls(keep=Fraction(bisected(*ends, holds, halvings=_HALVINGS), COIN))

    def other(self, buckets: int) -> Fraction:
        """Probability of one particular other bucket."""
        return (1 - self.keep) / (buckets - 1)

    def draw(self, values: Buckets, buckets: int, *, rng: Words) -> NDArray[Any]:
        """Every bucket kept, or moved round by 1, …, B − 1 places, evenly."""
        kept = flips(int(self.keep * COIN), values.shape, rng=rng)
        moves = 1 + uniform_below(buckets - 1, values.shape, rng=rng)
        released = np.where(kept, values, (values + moves) % buckets)
        return released.astype(self.dtype(buckets))

    def curve(self, positions: int, buckets: int, differ: Fraction | None) -> PrivacyCurve:
        """Exact curve, of all or of each with a probability."""
        keep, other = self.keep, self.other(buckets)
        if differ is None:
            return RandomizedResponse(keep=keep, other=other, positions=positions)
        return MixedResponse(keep=keep, other=other, positions=positions, differ=differ)

    def apart(self, values: Buckets, others: Buckets) -> Buckets:
        """1 where buckets differ."""
        return np.asarray(values != others, dtype=np.int64)

    def scores(self, outputs: NDArray[Any], values: Buckets, others: Buckets) -> Buckets:
        """Number of answers that are one's true bucket less that of the other's."""
        hits = (outputs == values).astype(np.int64) - (outputs == others)
        return np.asarray(hits.sum(axis=-1))

    def loss(self, buckets: int) -> Enclosure:
        """Encloses ln(keep/other)."""
        return RandomizedResponse(keep=self.keep, other=self.other(buckets), positions=1).loss()

    def law(self, value: int, buckets: int) -> list[Fraction]:
        """Probabilities of all buckets."""
        return [self.keep if o == value else self.other(buckets) for o in range(buckets)]

    def facts(self) -> Mapping[str, Any]:
        """The coins."""
        return {
            "distribution": "randomized response by coins of 64 bits, the other buckets evenly",
            "keep": f"{int(self.keep * COIN)}/2**64",
        }


@frozen(kw_only=True)
class BucketNoise(BucketRule):
    """Integer noise on every bucket: Aumüller et al. 2020, section 5, with discrete Laplace noise.

    On integers the two-sided geometric law does what Laplace noise of scale 1/ln(1/q) does on the
    line, with less variance and rational probabilities.
    """

    theorem: ClassVar[str] = (
        "Ghosh, Roughgarden and Sundararajan 2009, definition 2.2, for each position; its exact "
        "curve for Aumüller et al. 2020, section 5"
    )
    statements: ClassVar[tuple[str, ...]] = ("aumuller2020.section-5.sensitivity",)

    noise: GeometricNoise

    @classmethod
    def calibrated(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        positions: int,
        buckets: int,
        differ: Fraction | None,
    ) -> Self:
        """The rule with the least noise that is proven (ε, δ)-private."""

        def at(parts: int) -> BucketNoise:
            return cls(noise=GeometricNoise(ratio=Fraction(parts, COIN)))

        def holds(parts: int) -> bool:
            curve = at(parts).curve(positions, buckets, differ)
            return Fraction(curve.delta_at(epsilon).upper) <= delta

        parts = _ratio(epsilon, positions * (buckets - 1))
        if delta > 0:
            parts = bisected(parts, _LEAST_RATIO, holds, halvings=_HALVINGS)
        return cls(noise=at(parts).noise)

    def draw(self, values: Buckets, buckets: int, *, rng: Words) -> NDArray[Any]:
        """Buckets plus noise."""
        return values + self.noise.sample(values.shape, rng=rng)

    def dtype(self, buckets: int) -> np.dtype[Any]:
        """Whole numbers of either sign."""
        del buckets
        return np.dtype(np.int64)

    def curve(self, positions: int, buckets: int, differ: Fraction | None) -> PrivacyCurve:
        """Exact curve; without a probability to differ all buckets are B − 1 apart."""
        shifts: tuple[tuple[int, Fraction], ...] = ((buckets - 1, Fraction(1)),)
        if differ is not None:
            pairs = buckets * (buckets - 1)
            shifts = tuple(
                (shift, differ * Fraction(2 * (buckets - shift), pairs))
                for shift in range(1, buckets)
            )
        return Geometric(ratio=self.noise.ratio, positions=positions, shifts=shifts)

    def apart(self, values: Buckets, others: Buckets) -> Buckets:
        """How far buckets are apart."""
        return np.asarray(np.abs(values - others), dtype=np.int64)

    def scores(self, outputs: NDArray[Any], values: Buckets, others: Buckets) -> Buckets:
        """Distance from the other's buckets less that from one's own."""
        return np.asarray((np.abs(outputs - others) - np.abs(outputs - values)).sum(axis=-1))

    def loss(self, buckets: int) -> Enclosure:
        """Encloses ln(1/q)."""
        return Geometric(ratio=self.noise.ratio, positions=1, shifts=((1, Fraction(1)),)).loss()

    def law(self, value: int, buckets: int) -> list[Fraction]:
        """Probabilities of the noisy value clamped to 0, …, B − 1."""
        inner = [self.noise.probability(o - value) for o in range(1, buckets - 1)]
        return [
            self.noise.at_least(value),
            *inner,
            self.noise.at_least(buckets - 1 - value),
        ]

    def facts(self) -> Mapping[str, Any]:
        """The noise."""
        ratio = self.noise.ratio
        return {
            "distribution": "two-sided geometric on the integers, sampled exactly",
            "ratio": f"{int(ratio * COIN)}/2**64",
            "variance": Enclosure.of_exact(self.noise.variance()),
        }


def _ratio(epsilon: Fraction, steps: int) -> int:
    """Smallest n ≥ 2²⁴ with steps·ln(2⁶⁴/n) ≤ ε: the logarithm is irrational unless ε is 0."""
    require(epsilon > 0, "epsilon", epsilon, "positive for noise")
    below = floor_of(lambda: (-to_arb(epsilon) / steps).exp() * COIN)
    return max(below + 1, _LEAST_RATIO)


def _not_private() -> ParameterError:
    return ParameterError(
        "rule",
        "range-B MinHash",
        "one that randomizes",
        "The sketch is a function of the set: rr_min_hash and noisy_min_hash are private.",
    )
