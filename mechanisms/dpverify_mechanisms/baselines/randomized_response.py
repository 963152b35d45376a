"""Randomized response on bit vectors: Kenthapadi et al. 2013, algorithm 5.

Every bit is flipped with probability f < ½, a whole number of 2⁻⁶⁴, by a coin of its own. Bits that
agree in two records have the same law in both releases, and each bit that differs contributes a
loss of ± ln((1 − f)/f), so the curve of as many differing bits as the adjacency allows is exact.
For one bit it is lemma 3 at δ = 0, and that lemma is tight.

**Estimators**, from the packed bits of two records. Kenthapadi et al. 2013, algorithm 6 and
theorem 3. Write γ = (1 − 2f)² and c = 2f(1 − f). For two
records of p bits that differ in w, released with independent coins, bits that differ still do with
probability 1 − c = c + γ, bits that agree come to differ with probability c. So their Hamming
distance after the flips is

    H ~ Bin(w, 1 − c) + Bin(p − w, c),     E[H] = γw + cp,     Var[H] = p·c(1 − c),

and (H − cp)/γ is unbiased for w = ‖x − y‖² with a variance p·c(1 − c)/γ² that doesn't depend on w:
theorem 3, part 1, to which the paper adds a tail bound by Hoeffding's inequality (part 2) but no
variance. The tail is the sum of two binomials, and is computed as that.

A flipped bit b̂ gives the unbiased (b̂ − f)/(1 − 2f) of variance v = f(1 − f)/γ. The product of two
independent ones is unbiased for the product of the bits, with variance (v + x)(v + y) − xy for bits
x, y. Summed: ⟨x, y⟩ is estimated with variance pv² + v(|x| + |y|), |x| being the number of ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from attrs import field, frozen
from flint import arb, arb_poly
from numpy.typing import ArrayLike, NDArray

from dpverify.accounting.curves.randomized_response import (
    MAX_KEEP,
    keep_probability_curve,
)
from dpverify.accounting.curves.randomized_response import RandomizedResponse as ResponseCurve
from dpverify.data.adjacency import BitFlip, Record
from dpverify.data.blocks import admitted_blocks
from dpverify.data.domain import Box, as_matrix, as_rows, dense, first_where
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import RecordsError, require
from dpverify.guarantee import Guarantee
from dpverify.numbers import COIN, to_coin, to_count, whole
from dpverify.privacy import Certifiable, Estimator, Exhaustive, Pair, Prepared
from dpverify.sampling.coins import packed_flips
from dpverify.sampling.words import Words
from dpverify_mechanisms.packed import ones, unused_are_zero

__all__ = ["HammingDistance", "InnerProductOfBits", "RandomizedResponse"]

_BLOCK = 2**16  # bits at a time: their coins stay in a second-level cache
_SMALL = 16  # bits whose outputs `distribution` enumerates


@frozen(kw_only=True)
class RandomizedResponse(Prepared, Certifiable, Exhaustive):
    """Release of bit vectors with every bit flipped by a coin of its own.

    Parameters
    ----------
    p : bits of a record
    flip : f, a whole number of 2⁻⁶⁴ in [2⁻⁴⁰, ½)
    domain : [0, 1]; records hold nothing but its ends
    adjacency : one bit flips, or a whole record is replaced
    """

    p: int = field(converter=to_count)
    flip: Fraction = field(converter=to_coin)
    domain: Box
    adjacency: BitFlip | Record

    def __attrs_post_init__(self) -> None:
        require(
            1 - MAX_KEEP <= self.flip < Fraction(1, 2),
            "flip",
            self.flip,
            "in [2**-40, 1/2)",
            "At 1/2 the release would say nothing of the records.",
        )
        require(
            self.domain.low == 0 and self.domain.high == 1,
            "domain",
            f"[{self.domain.low}, {self.domain.high}]",
            "[0, 1]: randomized response flips bits",
        )

    @classmethod
    def calibrated(
        cls,
        *,
        p: int,
        epsilon: Real,
        delta: Real,
        domain: Box,
        adjacency: BitFlip | Record,
    ) -> Self:
        """The mechanism with the rarest flips that is (ε, δ)-differentially private; δ may be 0."""
        epsilon, delta = rational("epsilon", epsilon), rational("delta", delta)
        p = whole("p", p)
        keep = keep_probability_curve(epsilon, delta, positions=_differing(adjacency, p))
        return cls(p=p, flip=1 - keep, domain=domain, adjacency=adjacency)

    # The claim

    def privacy(self) -> ResponseCurve:
        """Exact curve."""
        return ResponseCurve(
            keep=1 - self.flip, other=self.flip, positions=_differing(self.adjacency, self.p)
        )

    def guarantee(self) -> Guarantee:
        return Guarantee(
            curve=self.privacy(),
            adjacency=self.adjacency,
            randomness="the coins of the bits, all of them secret",
            data_choice="at any time: nothing is drawn before the data",
            theorem="Kenthapadi et al. 2013, lemma 3, as the exact curve of independent coins",
            statements=ResponseCurve.statements,
        )

    def facts(self) -> Mapping[str, Any]:
        curve = self.privacy()
        return {
            "coins": {
                "flip_numerator": str(self._numerator),
                "flip_denominator": str(COIN),
                "flip": Enclosure.of_exact(self.flip),
            },
            "loss": {
                "bits_that_may_differ": curve.positions,
                "loss_of_one_bit": curve.loss(),
                "pure_epsilon": curve.epsilon_at(0),
            },
        }

    # The release

    def prepared_blocks(self, records: Any) -> Iterator[NDArray[np.uint8]]:
        """The records' bits, packed."""
        yield from admitted_blocks(records, _Bits(domain=self.domain), attributes=self.p)

    def randomized(self, packed: NDArray[np.uint8], rng: Words) -> NDArray[np.uint8]:
        """Flipped bits, one word each in the order of the rows: any blocking gives the same."""
        size = _rows_at_a_time(self.p)
        for start in range(0, len(packed), size):
            part = packed[start : start + size]
            part ^= packed_flips(self._numerator, (len(part), self.p), rng=rng)
        return packed

    @cached_property
    def _numerator(self) -> int:
        """The flip in units of 2⁻⁶⁴."""
        return int(self.flip * COIN)

    def packed(self, records: Any) -> NDArray[np.uint8]:
        """The records' own bits, packed as in `release`, for likelihoods and tests alone."""
        return _Bits(domain=self.domain).admit(records, attributes=self.p)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, -(-self.p // 8)

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)  # eight bits each

    def possible(self, released: NDArray[np.uint8]) -> bool:
        return unused_are_zero(released, self.p)

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.uint8], record: ArrayLike, neighbour: ArrayLike
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour): a whole number times one bit's loss.

        It is the number of differing bits that came out as the record's less those that came out
        as the neighbour's, times the double that the curve's `rates` multiplies as well.
        """
        first, second = (self.packed(as_rows(x)).ravel() for x in (record, neighbour))
        differing = first ^ second
        rows = outputs.reshape(len(outputs), -1)
        lost = ones((rows ^ first) & differing)
        return np.asarray((ones(differing) - 2 * lost) * self.privacy().loss().upper)

    def worst_pairs(self) -> Sequence[Pair]:
        """Pairs that differ in as many bits as the adjacency allows, on two backgrounds.

        The loss depends on the number of differing bits alone, so all such pairs are worst; the
        first and the last bit test the packing, the backgrounds that the code path keeps to that.
        """
        match self.adjacency:
            case BitFlip():
                first, last = (np.arange(self.p) == place for place in (0, self.p - 1))
                return [
                    _pair("the first bit flips, all others 0", np.zeros(self.p), first),
                    _pair("the last bit flips, all others 1", np.ones(self.p), last),
                ]
            case Record():
                every = np.ones(self.p, dtype=bool)
                alternating = (np.arange(self.p) % 2).astype(np.float64)
                return [
                    _pair("all zeros or all ones", np.zeros(self.p), every),
                    _pair("alternating bits or their complement", alternating, every),
                ]

    def distribution(self, record: ArrayLike) -> Mapping[bytes, Fraction]:
        """Exact probability of every released row of bytes, for one record of at most 16 bits."""
        require(self.p <= _SMALL, "p", self.p, f"at most {_SMALL} to enumerate all outputs")
        own = self.packed(as_rows(record))[0]
        law = {}
        for flipped in product((0, 1), repeat=self.p):
            count = sum(flipped)
            output = own ^ np.packbits(np.array(flipped, dtype=np.uint8))
            law[output.tobytes()] = self.flip**count * (1 - self.flip) ** (self.p - count)
        return law

    # Utility

    def estimators(self) -> Sequence[Estimator]:
        """Squared distance and inner product from two released rows."""
        return (HammingDistance(mechanism=self), InnerProductOfBits(mechanism=self))

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic bit vectors, from almost equal to independent."""
        pairs = self.domain.probes(self.p, rng)
        return [
            Pair(
                name=f"synthetic {number}",
                record=np.rint(record),
                neighbour=np.rint(other),
            )
            for number, (record, other) in enumerate(pairs, start=1)
        ]


@frozen(kw_only=True)
class _BitEstimator(Estimator):
    """What both estimators share: the mechanism and the records' bits."""

    mechanism: RandomizedResponse

    def _bits(self, *records: ArrayLike) -> Iterator[NDArray[np.uint8]]:
        return (self.mechanism.packed(as_rows(x))[0] for x in records)

    @property
    def _contrast(self) -> Fraction:
        """γ = (1 − 2f)²."""
        return (1 - 2 * self.mechanism.flip) ** 2

    @property
    def _change(self) -> Fraction:
        """The probability c = 2f(1 − f) that two bits stop or start to differ."""
        return 2 * self.mechanism.flip * (1 - self.mechanism.flip)


@frozen(kw_only=True)
class HammingDistance(_BitEstimator):
    """‖x − y‖², the number of bits that differ: algorithm 6, (H − cp)/γ."""

    name: ClassVar[str] = "squared distance"

    def estimate(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Unbiased estimates of ‖x − y‖² from released rows of shapes (…, bytes) that broadcast."""
        shift = float(self.mechanism.p * self._change)
        return np.asarray((ones(first ^ second) - shift) / float(self._contrast))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """‖x − y‖²."""
        first, second = self._bits(record, other)
        return float(ones(first ^ second))

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """p·c(1 − c)/γ², whatever the records are."""
        return float(self.mechanism.p * self._change * (1 - self._change) / self._contrast**2)

    def tail(self, distance: int, deviation: Real) -> Enclosure:
        """Encloses P[|estimate − distance| ≥ deviation] for records that differ in `distance` bits.

        Relative width at most 1e-13 while it is a normal double; which values of H count is decided
        in rational arithmetic.
        """
        p, change = self.mechanism.p, self._change
        require(0 <= distance <= p, "distance", distance, f"in [0, {p}]")
        reach = self._deviation(deviation) * self._contrast
        mean = self._contrast * distance + change * p
        beyond = [h for h in range(p + 1) if abs(h - mean) >= reach]
        if len(beyond) == p + 1:
            return Enclosure(1.0, 1.0)

        def value() -> arb:
            c = to_arb(change)
            law = arb_poly([c, 1 - c]) ** distance * arb_poly([1 - c, c]) ** (p - distance)
            return sum((law[h] for h in beyond), arb(0))

        return enclose(value)

    def hoeffding(self, deviation: Real) -> Enclosure:
        """Encloses theorem 3's bound on `tail`, 2·exp(−2t²γ²/p), with t the deviation."""
        exponent = 2 * (self._deviation(deviation) * self._contrast) ** 2 / self.mechanism.p
        return enclose(lambda: 2 * (-to_arb(exponent)).exp())

    def _deviation(self, deviation: Real) -> Fraction:
        value = rational("deviation", deviation)
        require(value >= 0, "deviation", deviation, "at least 0")
        return value


@frozen(kw_only=True)
class InnerProductOfBits(_BitEstimator):
    """⟨x, y⟩, the number of ones in common, of two rows that aren't copies of one record's."""

    name: ClassVar[str] = "inner product"

    def estimate(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Unbiased estimates of ⟨x, y⟩: Σ(x̂ − f)(ŷ − f)/γ."""
        flip = float(self.mechanism.flip)
        weights = ones(first) + ones(second)
        shifted = ones(first & second) - flip * weights + flip * flip * self.mechanism.p
        return np.asarray(shifted / float(self._contrast))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """⟨x, y⟩."""
        first, second = self._bits(record, other)
        return float(ones(first & second))

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """pv² + v(|x| + |y|), with v = f(1 − f)/γ."""
        first, second = self._bits(record, other)
        v = self._change / 2 / self._contrast
        return float(self.mechanism.p * v * v + v * int(ones(first) + ones(second)))


@frozen(kw_only=True)
class _Bits:
    """The ends of the domain, and nothing between them."""

    domain: Box

    def admit(self, records: Any, *, attributes: int | None = None) -> NDArray[np.uint8]:
        """Records of bits, dense or CSR, as rows of bytes."""
        x = as_matrix(records, attributes=attributes)
        if (packed := _packed(x)) is not None:
            return packed
        x = self.domain.admit(x, attributes=attributes)
        if (packed := _packed(x)) is not None:
            return packed
        row, column, value = first_where(x, lambda v: (v != 0) & (v != 1))
        raise RecordsError(
            f", bit {column} is {value}: randomized response takes zeros and ones. "
            "Turn the attributes into bits by a rule that doesn't look at the data.",
            record=row,
        )


def _packed(x: Any) -> NDArray[np.uint8] | None:
    """Rows of bits, eight in a byte; None where there is something else."""
    count, p = x.shape
    packed = np.empty((count, -(-p // 8)), dtype=np.uint8)
    for start in range(0, count, _rows_at_a_time(p)):
        rows = slice(start, start + _rows_at_a_time(p))
        values = dense(x[rows])
        bits = values != 0
        if not np.array_equal(bits, values == 1):
            return None
        packed[rows] = np.packbits(bits, axis=1)
    return packed


def _differing(adjacency: BitFlip | Record, p: int) -> int:
    match adjacency:
        case BitFlip():
            return 1
        case Record():
            return p


def _pair(name: str, record: NDArray[np.float64], flipped: NDArray[np.bool_]) -> Pair:
    return Pair(
        name=name, record=record[None], neighbour=np.where(flipped, 1 - record, record)[None]
    )


def _rows_at_a_time(p: int) -> int:
    """As many rows of p bits as a block has."""
    return max(_BLOCK // p, 1)
