"""Records on a fixed-point grid.

The guarantee has to hold for the numbers that the program really computes with. So records are
first put on a grid of step h, of which the adjacency's bound is a whole number of steps, by
x ↦ ⌊x/h + ½⌋ in exact arithmetic. That map is monotone and commutes with whole-step shifts; hence
an attribute that moves by at most β moves by at most β/h steps, and nothing is lost to rounding.
(Rounding halves to even does not commute: it sends ½ to 0 and 3/2 to 2, and doubles the
sensitivity.) A record is the double that is stored: adjacency is between doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    BitFlip,
    Items,
    L1Ball,
)
from dpverify.data.domain import Ball, Box, Sets, Vectors
from dpverify.errors import ParameterError, require

__all__ = ["Grid"]

_CHUNK = 1 << 15  # values rounded at a stretch: their buffers stay in the cache
_BELOW_HALF = math.nextafter(0.5, 0)
_AUDITS = (
    "In a release the number of rows is public; for rows that are added, removed or reordered, "
    "write a function of your own and audit it."
)
_LARGEST = 2**52  # steps: beyond, doubles have no halves left to round


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Fixed-point grid of a rational step."""

    step: Fraction

    def __post_init__(self) -> None:
        require(self.step > 0, "step", self.step, "positive")

    @classmethod
    def dividing(cls, length: Fraction, *, steps: int) -> Grid:
        """Grid of which `length` is `steps` steps."""
        require(steps >= 1, "steps", steps, "at least 1")
        return cls(step=length / steps)

    def steps(self, value: Fraction) -> int:
        """⌊value/h + ½⌋."""
        return math.floor(value / self.step + Fraction(1, 2))

    @property
    def whole_inverse(self) -> float | None:
        """1/h where that is a power of two: multiplying by it is exact."""
        inverse, plain = _inverse(self.step.numerator, self.step.denominator)
        return inverse if plain else None

    def width(self, domain: Box) -> int:
        """Steps from one end of the domain to the other."""
        low, high = _ends(self, domain)
        return high - low

    def bound(self, adjacency: Adjacency) -> int:
        """The adjacency's bound in steps.

        Raises
        ------
        ParameterError
            If it has none, or one that is not a whole number of steps.
        """
        match adjacency:
            case Attribute(beta=bound) | L1Ball(radius=bound):
                pass
            case BitFlip():
                bound = Fraction(1)
            case Items(changes=changes):
                bound = Fraction(changes)  # of zeros and ones
            case _:
                rule = "one that bounds an l1 distance of records"
                raise ParameterError("adjacency", adjacency.unit, rule, _AUDITS)
        whole = bound / self.step
        if whole.denominator != 1:
            raise ParameterError("step", self.step, f"a whole fraction of {bound}")
        return whole.numerator

    def moves(self, adjacency: Adjacency, domain: Vectors, *, attributes: int) -> int:
        """Largest ℓ1 distance in steps between the rounded records of neighbours.

        Where the bound is the whole width of a box, any change of an attribute is meant. Its ends
        are doubles, and can be a step further apart than the decimals that were declared.

        Raises
        ------
        ParameterError
            As `bound`.
        """
        moves = self.bound(adjacency)
        match adjacency, domain:
            case L1Ball(), _:
                # Rounding adds less than a step to the difference of each attribute, and all may
                # differ: less than p steps in all, and the whole is an integer.
                return moves + attributes - 1
            case Attribute(beta=beta), Box(low=low, high=high) if beta >= high - low:
                return max(moves, self.width(domain))
        return moves

    def round(
        self, records: NDArray[np.float64], *, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """⌊x/h + ½⌋ of every value, exactly, as floating-point numbers that hold whole numbers.

        Where 1/h is a power of two, q = x/h is exact (what underflows is far from a half), and so
        is the floor of q + ½ as a double, but for q = ½ − 2⁻⁵⁴, which is set right:
         - for q ≤ −½ the sum is a multiple of q's last place that isn't larger than q: a double;
         - for −½ < q ≤ ½ − 2⁻⁵³ it is between the doubles 0 and 1 − 2⁻⁵³, and so is its rounding;
         - for n − ½ ≤ q < n + ½ with n ≥ 1 it is between the doubles n and n + 1 − u, with u the
           last place of n + ½, and so is its rounding.
        Elsewhere q carries a relative error of at most 2⁻⁵¹, and the values so near to a half that
        it could matter are decided in rational arithmetic.

        Parameters
        ----------
        records : array of doubles of any shape
        out : contiguous array of the same shape for the result, or None for a new one of doubles;
            whoever gives one of single precision knows that the steps fit into it
        """
        inverse, plain = _inverse(self.step.numerator, self.step.denominator)
        flat = np.ascontiguousarray(records).reshape(-1)
        result = np.empty(records.shape) if out is None else out
        rounded = result.reshape(-1)
        buffers = [np.empty(min(_CHUNK, flat.size)) for _ in range(2)]
        for start in range(0, flat.size, _CHUNK):
            chunk, target = (array[start : start + _CHUNK] for array in (flat, rounded))
            quotient, whole = (buffer[: chunk.size] for buffer in buffers)
            np.multiply(chunk, inverse, out=quotient)
            if plain:
                np.add(quotient, 0.5, out=whole)
                np.floor(whole, out=target, casting="same_kind")
                if (below := quotient == _BELOW_HALF).any():
                    target[below] = 0.0
            else:
                np.rint(quotient, out=whole)
                self._settle(chunk, whole, quotient)
                np.copyto(target, whole, casting="same_kind")
        return result

    def _settle(
        self,
        records: NDArray[np.float64],
        whole: NDArray[np.float64],
        quotient: NDArray[np.float64],
    ) -> None:
        """Decide the values too near to a half; beyond 2⁴⁹ steps that is all. Spends `quotient`."""
        np.subtract(quotient, whole, out=quotient)  # exact: both are close
        np.abs(quotient, out=quotient)
        far = 0.5 - (max(whole.max(), -whole.min()) + 1) * 2.0**-50
        if quotient.max() < far:
            return
        near = quotient >= far
        values, where = np.unique(records[near], return_inverse=True)
        exact = [self.steps(Fraction(value)) for value in values.tolist()]
        whole[near] = np.array(exact, dtype=np.float64)[where]

    def check_reach(self, domain: Vectors) -> int:
        """Largest number of steps from 0 in the domain, refused beyond exact doubles."""
        match domain:
            case Box():
                reach = max(map(abs, _ends(self, domain)))
            case Ball():
                reach = self.steps(domain.reach)
            case Sets():
                reach = self.steps(Fraction(1))
        require(reach < _LARGEST, "step", self.step, f"coarse enough for {reach} < 2**52 steps")
        return reach


@lru_cache(maxsize=256)
def _ends(grid: Grid, domain: Box) -> tuple[int, int]:
    """Both ends of the domain in steps."""
    low, high = (grid.steps(Fraction(end)) for end in domain.ends)
    return low, high


@lru_cache(maxsize=256)
def _inverse(numerator: int, denominator: int) -> tuple[float, bool]:
    """1/h as a double, and whether it is a power of two."""
    plain = all(part & (part - 1) == 0 for part in (numerator, denominator))
    return denominator / numerator, plain
