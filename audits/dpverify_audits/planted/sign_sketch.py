"""Sign sketches that flip too rarely."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from dpverify.accounting.curves.randomized_response import keep_probability
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Certifiable
from dpverify_audits.planted.bug import Enumerable, PlantedBug, Rates, by_enumeration, noise_times
from dpverify_mechanisms.projections.independent import OPORP, Projection, RademacherProjection
from dpverify_mechanisms.projections.repeated_oporp import RepeatedOPORP
from dpverify_mechanisms.sign.flip_rules import UNIT, CoinRule, FlipRule, Ladder, PrintedAlgorithm7
from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = [
    "BUGS",
    "as_printed",
    "bare_zero",
    "for_one_position",
    "next_level",
    "repeated",
    "response",
    "smooth",
    "ternary",
]

_EPSILON = Fraction(2)
_SMALL = Fraction(1, 2)
_UNIT = Attribute(beta=Fraction(1))
_K = 4
_REPETITIONS = 2


def _sketch(
    projection: Projection,
    ladder: Callable[[Fraction], Ladder],
    *,
    epsilon: Fraction = _EPSILON,
    grid_steps: int = 1024,
) -> SignSketch:
    return SignSketch.calibrated(
        projection,
        ladder=ladder,
        epsilon=epsilon,
        domain=Box(low=Fraction(-1), high=Fraction(1)),
        adjacency=_UNIT,
        grid_steps=grid_steps,
    )


def smooth() -> SignSketch:
    """Smooth flips on a dense projection."""
    return _sketch(RademacherProjection(p=12, k=_K, seed=1), Ladder.smooth)


def response() -> SignSketch:
    """Randomized response on a dense projection: all k signs can change."""
    return _sketch(RademacherProjection(p=12, k=_K, seed=1), Ladder.response)


def repeated() -> SignSketch:
    """Two OPORPs side by side: an attribute enters a bin of each."""
    projection = RepeatedOPORP(p=12, k=_K, repetitions=_REPETITIONS, seed=1)
    return _sketch(projection, Ladder.response)


def ternary() -> SignSketch:
    """Records of −1, 0 and 1, whose bins are often 0; attribute 0 enters its bin negatively.

    A bare sign of 0 turns e^ε into e^ε + 1, so that ε is small.
    """
    return _sketch(OPORP(p=12, k=_K, seed=5), Ladder.response, epsilon=_SMALL, grid_steps=1)


def _with_rule(sketch: SignSketch, rule: FlipRule) -> Certifiable:
    return Enumerable(claim=sketch, actual=evolve(sketch, rule=rule))


def _ladder(sketch: SignSketch) -> Ladder:
    assert isinstance(sketch.rule, Ladder)  # noqa: S101 - the twins here have no other rule
    return sketch.rule


def as_printed(sketch: SignSketch) -> Certifiable:
    """Algorithm 7 as printed; L = ⌈√k/β⌉ = 2 here."""
    rule = PrintedAlgorithm7.of(_ladder(sketch), sketch.projection, _UNIT.beta)
    return _with_rule(sketch, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfLadder(CoinRule, ABC):
    """A rule with a mistake, which says that it is the ladder."""

    theorem: ClassVar[str] = "none"

    ladder: Ladder

    def curve(self, positions: int, *, adjacent: bool) -> PrivacyCurve:
        """That of the ladder."""
        return self.ladder.curve(positions, adjacent=adjacent)

    def facts(self) -> Mapping[str, str]:
        """Those of the ladder."""
        return self.ladder.facts()


@dataclass(frozen=True, slots=True, kw_only=True)
class _BareZero(_OfLadder):
    """Releases the sign of 0 as it is."""

    def numerators(
        self, sums: NDArray[np.int64], divisors: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Flip probabilities times `UNIT`, 0 where a value is 0."""
        flips = self.ladder.numerators(sums, divisors)
        return np.where(sums == 0, np.uint64(0), flips)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NextLevel(_OfLadder):
    """Flips as if a value were one level further from 0."""

    def numerators(
        self, sums: NDArray[np.int64], divisors: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Flip probabilities times `UNIT` of the next level."""
        table = np.array(self.ladder.flips, dtype=np.uint64)
        return table[np.minimum(self.ladder.levels(sums, divisors) + 1, len(table) - 1)]


def next_level(sketch: SignSketch) -> Certifiable:
    """The sketch whose levels start at 1 in place of 0."""
    return _with_rule(sketch, _NextLevel(ladder=_ladder(sketch)))


def _first_two_levels(sketch: SignSketch, threshold: float) -> Rates:
    """Values half a bound from 0 on either side are at level 1 and flip as at level 2."""
    claimed, real = (np.log(UNIT / flip - 1) for flip in _ladder(sketch).flips[1:3])
    return noise_times(float(claimed / real))(sketch, threshold)


def bare_zero(sketch: SignSketch) -> Certifiable:
    """The sketch without the fair coin at 0."""
    return _with_rule(sketch, _BareZero(ladder=_ladder(sketch)))


def _zero_or_negative(sketch: SignSketch, threshold: float) -> Rates:
    """A bin moves from 0, always +, to −1, which comes out + with probability f: L = ln(1/2f)."""
    flip = _ladder(sketch).flips[1] / UNIT
    return (1.0, flip) if threshold <= np.log(0.5 / flip) else (0.0, 0.0)


def for_one_position(sketch: SignSketch) -> Certifiable:
    """The sketch with the flips that suffice for one sign that changes."""
    return _with_rule(sketch, Ladder.response(keep_probability(_EPSILON)))


BUGS: tuple[PlantedBug[SignSketch], ...] = (
    PlantedBug(
        name="algorithm 7 as printed",
        mistake="the level ⌈√k/(β·max|W_ij|)⌉ has lost its |x_j|, and no longer looks at the data",
        twin=smooth,
        plant=as_printed,
        rates=noise_times(1 / 2),
        epsilon=by_enumeration,
        found_by=("white-box", "exhaustive"),
    ),
    PlantedBug(
        name="bare sign of 0",
        mistake="sign(0) = +1 is released without a coin, as for an empty bin",
        twin=ternary,
        plant=bare_zero,
        rates=_zero_or_negative,
        epsilon=by_enumeration,
        found_by=("white-box", "exhaustive", "determinism", "precision", "black-box", "sequential"),
    ),
    PlantedBug(
        name="flips for one sign",
        mistake="flip probability 1/(e^ε + 1) where k signs can change at once",
        twin=response,
        plant=for_one_position,
        found_by=("white-box", "moments", "exhaustive", "black-box"),
        rates=noise_times(1 / _K),
        epsilon=by_enumeration,
    ),
    PlantedBug(
        name="ε not split over repetitions",
        mistake="each OPORP of a repeated one has the flips of one alone, and they add up",
        twin=repeated,
        plant=for_one_position,
        found_by=("white-box", "moments", "exhaustive"),
        rates=noise_times(1 / _REPETITIONS),
        epsilon=by_enumeration,
    ),
    PlantedBug(
        name="levels start at 1",
        mistake="⌈|x|/β⌉ + 1 in place of ⌈|x|/β⌉, an index into a table that starts at 0",
        twin=smooth,
        plant=next_level,
        rates=_first_two_levels,
        epsilon=by_enumeration,
        found_by=("white-box", "exhaustive", "black-box"),
    ),
)
