"""How a sign is randomized: randomized response and smooth flipping.

**Levels.** A projected value V is a whole number of grid steps, and neighbours move it by at most
a whole number d of steps (d = moves·max|W_ij| for its column j). Its level is ⌈|V|/d⌉, by integer
division. A neighbour's V′ lies within d of V, so the only changes of (sign, level) are

    n ↔ n + 1 with the same sign (n ≥ 1),    0 ↔ ±1,    +1 ↔ −1,

for V > d leaves V′ > 0, and V in (nd, (n+1)d] leaves V′ in ((n−1)d, (n+2)d]. Where only the sign
was looked at (randomized response), n ↔ n + 1 changes nothing.

**Ladders.** A flip probability f_n for each level: f_0 = ½ (a fair coin in place of the sign of 0:
without bias, and symmetric), f_1 ≥ f_2 ≥ …, whole multiples of 2⁻⁶⁴. With R = (1 − f_1)/f_1, the
ratio at +1 ↔ −1, a sign's two probabilities change by at most a factor R between neighbours if
f_n ≤ R·f_{n+1} for all n ≥ 1. Proof: f_n/f_{n+1} ≤ R is the flipped sign; for the kept one,

    1 − f_{n+1} ≤ 1 − f_n/R ≤ R(1 − f_n)  ⟺  f_n ≤ R/(R + 1) = 1 − f_1,

which holds as f_n ≤ ½; and at 0 ↔ ±1 the ratios 2(1 − f_1) and 1/(2f_1) are at most R because
f_1 ≤ ½. A constant tail has ratio 1. So f_{n+1} = max(⌈f_n/R⌉, what the rule wants), in units of
2⁻⁶⁴, is private whatever the rounding: rounding each probability by itself is not. The tail is
constant from 2⁻⁴⁰ on, long before a probability could underflow. `Ladder.ratio` computes the worst
ratio again from the table, and equals R for every ladder made here.

**The paper's rule isn't the best.** Li and Li 2023 take f_n = 1/(e^{nε′} + 1), whose flip ratio
f_n/f_{n+1} = R − (R − 1)/(R^n + 1) is near e^{ε′/2} while nε′ is small: half the budget lies unused
at these levels. The steepest private ladder is f_n = f_1·R^{1−n}: any symmetric rule that depends
on the level alone and keeps to R has f_1 ≥ 1/(R + 1) from +1 ↔ −1 and then f_{n+1} ≥ f_n/R, so this
one is least at every level, and 1 − 2f_n is nearly (2n − 1)/n times the paper's while nε′ is small.

**Domination.** A binary answer whose two probabilities change by at most R each way is a
post-processing of randomized response with odds R (Kairouz, Oh and Viswanath 2015, theorem 3.1 with
δ = 0), so N independent ones have at most the curve of N-fold randomized response.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.enclosure import squared
from dpverify.errors import ParameterError, require
from dpverify.guarantee import Notion, PrivacyCurve
from dpverify.sampling.coins import flips
from dpverify.sampling.words import Words
from dpverify_mechanisms.projections.independent import Projection

__all__ = [
    "LADDERS",
    "UNIT",
    "CoinRule",
    "FlipRule",
    "Ladder",
    "PrintedAlgorithm7",
    "first_flip",
]

UNIT = 2**64
"""Flip probabilities are whole multiples of 1/UNIT: one random word decides a coin."""
LEAST = 2**24
"""Smallest flip probability of a ladder, 2⁻⁴⁰, in units of 1/UNIT."""
LEVELS = 2**14
"""Most levels of a ladder; the last one holds beyond, so this bounds its size alone."""

_ONE = 2**192

Sums = NDArray[np.int64]


class FlipRule(ABC):
    """How the signs of projected values are randomized, independently given the values.

    `sums` are projected values in grid steps, shape (rows, k); `divisors`, of shape (k,), say how
    far a neighbour can move each.
    """

    __slots__ = ()

    notion: ClassVar[Notion] = "differential privacy"
    theorem: ClassVar[str]
    statements: ClassVar[tuple[str, ...]] = ()
    assumptions: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def draw(self, sums: Sums, divisors: Sums, *, rng: Words) -> NDArray[np.bool_]:
        """Whether each sign is flipped; the sign of 0 counts as +1 and is flipped evenly."""

    @abstractmethod
    def probabilities(self, sums: Sums, divisors: Sums) -> NDArray[np.float64]:
        """Flip probabilities, as doubles: for likelihoods and moments."""

    def positive(self, sums: Sums, divisors: Sums) -> list[Fraction]:
        """Probability that each released sign of one record (shape (1, k)) is positive."""
        flips = map(Fraction, self.probabilities(sums, divisors)[0].tolist())
        positive = (sums[0] >= 0).tolist()
        return [1 - flip if sign else flip for flip, sign in zip(flips, positive, strict=True)]

    @abstractmethod
    def curve(self, positions: int, *, adjacent: bool) -> PrivacyCurve:
        """Curve for records that differ in `positions` projected values.

        Each moves by at most its divisor if `adjacent`, else by any amount.
        """

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Public numbers of the rule."""

    @property
    def graded(self) -> bool:
        """Whether the level matters, and not the sign alone."""
        return True

    def held_at(self, sums: Sums, divisors: Sums) -> Self:
        """The rule whose noise set is held at that of one record (shape (k,)).

        Raises
        ------
        ParameterError
            If the rule reads no noise set off the data.
        """
        raise ParameterError("rule", type(self).__name__, "an individual one")


class CoinRule(FlipRule):
    """A rule whose flip probabilities are dyadic, so that its distribution is known exactly."""

    __slots__ = ()

    @abstractmethod
    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        """Flip probabilities times `UNIT`."""

    def draw(self, sums: Sums, divisors: Sums, *, rng: Words) -> NDArray[np.bool_]:
        """Whether each sign is flipped."""
        return flips(self.numerators(sums, divisors), sums.shape, rng=rng)

    def probabilities(self, sums: Sums, divisors: Sums) -> NDArray[np.float64]:
        """Flip probabilities as doubles."""
        return np.asarray(self.numerators(sums, divisors) * 2.0**-64)

    def positive(self, sums: Sums, divisors: Sums) -> list[Fraction]:
        """As every rule's, exactly: of equal probabilities there is one object."""
        flips = self.numerators(sums, divisors)[0].tolist()
        positive = (sums[0] >= 0).tolist()
        return [
            _of_unit(UNIT - flip if sign else flip)
            for flip, sign in zip(flips, positive, strict=True)
        ]


@frozen(kw_only=True)
class Ladder(CoinRule):
    """A flip probability for each level, with a fair coin at level 0.

    Parameters
    ----------
    flips : numerators over 2⁶⁴ for the levels 0, 1, 2, …; the last one holds for all beyond. Two
        are randomized response (Li and Li 2023, algorithm 6), more a smooth rule (algorithm 7, as
        the text before theorem 4.7 defines L_j).

    Raises
    ------
    ParameterError
        If level 0 isn't a fair coin, or the numerators aren't positive, falling and at most ½.
    """

    theorem: ClassVar[str] = (
        "Kairouz, Oh and Viswanath 2015 (arXiv:1311.0776v4), theorem 3.1, for each sign; "
        "Li and Li 2023, theorems 4.1, 4.7 and 4.8 for sums in whole grid steps"
    )
    statements: ClassVar[tuple[str, ...]] = (
        "li2023.theorem-4.1.ratio",
        "li2023.theorem-4.7",
        "li2023.theorem-4.8.rr",
        "li2023.theorem-4.8.smooth",
    )

    flips: tuple[int, ...]
    _table: NDArray[np.uint64] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        table = self.flips
        falling = all(a >= b >= 1 for a, b in pairwise(table))
        require(
            len(table) >= 2 and table[0] == UNIT // 2 and falling,
            "flips",
            table[:4],
            "falling, positive numerators over 2**64 that start with a half",
        )
        object.__setattr__(self, "_table", np.array(table, dtype=np.uint64))

    @classmethod
    def response(cls, keep: Fraction) -> Self:
        """Randomized response: the same flip probability at every level but 0."""
        return cls(flips=(UNIT // 2, first_flip(keep)))

    @classmethod
    def smooth(cls, keep: Fraction) -> Self:
        """Li and Li 2023: odds Rⁿ at level n, rounded so that the worst ratio is R."""
        return cls._descending(keep, paper=True)

    @classmethod
    def steepest(cls, keep: Fraction) -> Self:
        """The least flip probabilities of all rules with this worst ratio."""
        return cls._descending(keep, paper=False)

    @classmethod
    def _descending(cls, keep: Fraction, *, paper: bool) -> Self:
        first = first_flip(keep)
        kept = UNIT - first
        table = [UNIT // 2, first]
        inverse = _ONE * first // kept  # R⁻ⁿ on 192 bits: what is wanted, so not part of the proof
        while first < kept and table[-1] > LEAST and len(table) <= LEVELS:
            least = max(_ceil(table[-1] * first, kept), LEAST)
            inverse = inverse * first // kept
            wanted = _ceil(UNIT * inverse, _ONE + inverse) if paper else 0
            table.append(max(least, wanted))
        return cls(flips=tuple(table))

    @property
    def graded(self) -> bool:
        """Whether the level matters, and not the sign alone."""
        return len(self.flips) > 2

    def ratio(self, *, adjacent: bool = True) -> Fraction:
        """Worst ratio of a sign's probabilities, over all changes of level or the adjacent ones."""
        if not adjacent:
            return Fraction(UNIT - self.flips[-1], self.flips[-1])
        first = self.flips[1]
        most, least = UNIT - first, first
        for one, two in pairwise(self.flips):
            for own, other in ((one, two), (UNIT - two, UNIT - one)):
                if own * least > most * other:
                    most, least = own, other
        return Fraction(most, least)

    def levels(self, sums: Sums, divisors: Sums) -> Sums:
        """⌈|V|/d⌉, confined to the table."""
        if len(self.flips) == 2:
            return np.asarray(sums != 0, dtype=np.int64)
        return np.minimum(-(-np.abs(sums) // divisors), len(self.flips) - 1)

    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        """Flip probabilities times `UNIT`."""
        return self._table.take(self.levels(sums, divisors))

    def curve(self, positions: int, *, adjacent: bool) -> PrivacyCurve:
        """N-fold randomized response with the worst ratio as its odds."""
        ratio = self.ratio(adjacent=adjacent)
        keep = ratio / (ratio + 1)
        return RandomizedResponse(keep=keep, other=1 - keep, positions=positions)

    def facts(self) -> Mapping[str, str]:
        """The coins."""
        return {
            "distribution": "independent coins of 64 bits that flip the signs",
            "levels": str(len(self.flips) - 1),
            "flip_at_0": "1/2",
            "flip_at_level_1": f"{self.flips[1]}/2**64",
            "flip_at_last_level": f"{self.flips[-1]}/2**64",
        }


@frozen(kw_only=True)
class PrintedAlgorithm7(CoinRule):
    """Algorithm 7 as printed, which is not private: L_j = ⌈√k/(β·max|W_ij|)⌉ has lost its |x_j|.

    The text, the proof of theorem 4.7 and equation 24's context have ⌈|w_j·u|/(β·max|W_ij|)⌉. As
    printed, the level doesn't depend on the data, and a sign that changes has loss L_j·ε/k: about
    L_j times the claim. Kept to be found out; it can't be certified.
    """

    theorem: ClassVar[str] = "none: Li and Li 2023, algorithm 7 as printed, isn't private"

    ladder: Ladder
    levels: tuple[int, ...]

    @classmethod
    def of(cls, ladder: Ladder, projection: Projection, beta: Fraction) -> Self:
        """The printed levels; W there is this projection's matrix times its scale and √k."""
        entries = projection.column_maxima().tolist()
        squares = [1 / (beta**2 * squared(projection.scale) * m**2) for m in entries]
        return cls(ladder=ladder, levels=tuple(math.isqrt(math.ceil(s) - 1) + 1 for s in squares))

    def numerators(self, sums: Sums, divisors: Sums) -> NDArray[np.uint64]:
        """Flip probabilities times `UNIT`, the same whatever the data."""
        return np.broadcast_to(
            self.ladder.numerators(np.array(self.levels), np.ones(len(self.levels), np.int64)),
            sums.shape,
        )

    def curve(self, positions: int, *, adjacent: bool) -> PrivacyCurve:
        """Refuses."""
        raise ParameterError(
            "rule",
            "algorithm 7 as printed",
            "one that is private",
            "Ladder.smooth is what the paper's proof means.",
        )

    def facts(self) -> Mapping[str, str]:
        """The coins."""
        return {"distribution": "algorithm 7 as printed: not private"}


def first_flip(keep: Fraction) -> int:
    """Flip numerator of a sign that is kept with probability `keep`, at least `LEAST`."""
    require(Fraction(1, 2) <= keep <= 1, "keep", keep, "from 1/2 to 1")
    return max(math.ceil((1 - keep) * UNIT), LEAST)


@lru_cache(maxsize=4096)
def _of_unit(numerator: int) -> Fraction:
    return Fraction(numerator, UNIT)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


LADDERS: Mapping[str, Callable[[Fraction], Ladder]] = {
    "response": Ladder.response,
    "smooth": Ladder.smooth,
    "steepest": Ladder.steepest,
}
"""The flip ladders, by name."""
