"""Records on a fixed-point grid, inside a declared domain.

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
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.adjacency import Adjacency, AttributeAdjacency, BitFlip, L1Ball
from dpverify.errors import ParameterError, RecordsError, require

__all__ = ["Domain", "Grid"]

_LARGEST = 2**52  # steps: beyond, doubles have no halves left to round


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Declared range of every attribute, and what happens to records outside it.

    Attributes
    ----------
    low, high : the range, both ends included. Declared, never read off the data. Records are
        doubles, so the ends that count are the doubles nearest to these: a stored 0.1 is inside
        [0, 0.1], though that double is above one tenth.
    outside : "refuse" raises, "clip" moves the value to the nearest end. Clipping is monotone and
        never moves two values apart, so it keeps every adjacency of this package.
    """

    low: Fraction
    high: Fraction
    outside: Literal["refuse", "clip"] = "refuse"

    def __post_init__(self) -> None:
        require(self.low < self.high, "high", self.high, f"greater than low={self.low}")

    def admit(self, records: ArrayLike, *, attributes: int | None = None) -> NDArray[np.float64]:
        """Records as a matrix of doubles inside the domain, of shape (rows, attributes).

        Raises
        ------
        RecordsError
            If the shape is wrong, a value is NaN or infinite, or one is outside the domain and the
            rule is to refuse. The message is for the owner: it names a value of the data.
        """
        x = _as_matrix(records)
        if attributes is not None and x.shape[1] != attributes:
            raise RecordsError(
                f"records of shape {x.shape} must have {attributes} attributes, "
                "as many as the projection has rows."
            )
        least, most = x.min(), x.max()  # NaN spreads to both
        low, high = self.ends
        if low <= least and most <= high:
            return x
        if not (np.isfinite(least) and np.isfinite(most)):
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise RecordsError(
                f"record {row}, attribute {column} is {x[row, column]}: "
                "records must be finite. Fill in missing values before the release."
            )
        if self.outside == "clip":
            return np.clip(x, low, high)
        row, column = np.argwhere((x < low) | (x > high))[0]
        raise RecordsError(
            f"record {row}, attribute {column} is {x[row, column]}, outside the declared domain "
            f"[{low}, {high}]. Widen the domain if it was declared too "
            'narrow, or set outside = "clip".'
        )

    def count_outside(self, records: ArrayLike) -> int:
        """Number of values outside the domain: a fact about the data, never to be published."""
        x = _as_matrix(records)
        low, high = self.ends
        return int(np.count_nonzero((x < low) | (x > high)))

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest double of the domain."""
        return float(self.low), float(self.high)


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

    def moves(self, adjacency: Adjacency, *, attributes: int) -> int:
        """Largest ℓ1 distance in steps between the rounded records of neighbours.

        Raises
        ------
        ParameterError
            If the adjacency's bound is not a whole number of steps.
        """
        match adjacency:
            case AttributeAdjacency(beta=bound):
                extra = 0
            case BitFlip():
                bound, extra = Fraction(1), 0
            case L1Ball(radius=bound):
                # Rounding adds less than a step to the difference of each attribute, and all may
                # differ: less than p steps in all, and the whole is an integer.
                extra = attributes - 1
        whole = bound / self.step
        if whole.denominator != 1:
            raise ParameterError("step", self.step, f"a whole fraction of {bound}")
        return whole.numerator + extra

    def round(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        """⌊x/h + ½⌋ of every value, exactly, as doubles that hold whole numbers.

        Where 1/h is a power of two, x/h is exact, and so is the comparison of its fraction with ½
        (a fraction below 2⁻⁵³ may round, but not across ½). Elsewhere x/h carries a relative error
        of at most 2⁻⁵¹, and the values so near to a half that it could matter are decided in
        rational arithmetic.
        """
        inverse = 1 / self.step
        quotient = records * float(inverse)
        whole = np.floor(quotient)
        quotient -= whole
        if not _is_power_of_two(inverse):
            self._settle(records, whole, quotient)
        whole += quotient >= 0.5
        return whole

    def _settle(
        self,
        records: NDArray[np.float64],
        whole: NDArray[np.float64],
        fraction: NDArray[np.float64],
    ) -> None:
        """Decide the values whose fraction is too near to ½; beyond 2⁴⁹ steps that is all."""
        near = np.abs(fraction - 0.5) <= (np.abs(whole) + 1) * 2.0**-50
        values, where = np.unique(records[near], return_inverse=True)
        exact = [self.steps(Fraction(value)) for value in values.tolist()]
        whole[near] = np.array(exact, dtype=np.float64)[where]
        fraction[near] = 0.0

    def check_reach(self, domain: Domain) -> int:
        """Largest number of steps from 0 in the domain, refused beyond exact doubles."""
        reach = max(abs(self.steps(Fraction(end))) for end in domain.ends)
        require(reach < _LARGEST, "step", self.step, f"coarse enough for {reach} < 2**52 steps")
        return reach


def _as_matrix(records: ArrayLike) -> NDArray[np.float64]:
    try:
        x = np.asarray(records, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RecordsError(f"records must be numbers: {error}.") from None
    if x.ndim != 2 or 0 in x.shape:
        raise RecordsError(
            f"records of shape {x.shape} must form a matrix with a row for each record, "
            "with at least one row and one column."
        )
    return x


def _is_power_of_two(value: Fraction) -> bool:
    return all(part & (part - 1) == 0 for part in (value.numerator, value.denominator))
