"""Low decimal digits as features: what a number says below the digits that noise covers.

Noise that is wide beside 10⁻ᵏ spreads y·10ᵏ mod 1 evenly over [0, 1). Where training outputs aren't
spread so, for some k, digits were made: by rounding, or by what a mechanism hides in them
(``round(noisy, 4) + 1e-7 * secret``). That remainder is then a column of its own: scores of y alone
see its size, to which the digits add nothing.

Only k count at which a double still holds y·10ᵏ to 2⁻¹⁶: what the bits below show is for the
precision attack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Digits", "digits"]

_PLACES = range(13)  # k
_ROWS = 500  # training outputs that are looked at
_WIDE = 2.0  # quartiles of y·10ᵏ apart, from where on noise spreads the remainder
_LARGEST = 2.0**36  # of y·10ᵏ
_BINS = 16
_UNEVEN = 60.0  # chi-squared of so many bins; even ones pass it with probability 2e-7
_SAME = 1e-3  # range of remainders that are one
_MOST = 16  # columns
_HALF = 1 / 32  # of a bin, so that round-off near a whole number stays in one place


@dataclass(frozen=True, slots=True)
class Digits:
    """Remainders of columns.

    Attributes
    ----------
    columns, factors : y·factor mod 1 of each column
    """

    columns: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Of the columns that they make of columns with these names."""
        pairs = zip(self.columns, self.factors, strict=True)
        return tuple(f"{names[column]}·{factor:g} mod 1" for column, factor in pairs)

    def __call__(self, matrix: NDArray[Any]) -> NDArray[np.float64]:
        """Remainders of shape (draws, columns), in [−1/32, 31/32)."""
        return _remainders(matrix[:, self.columns], np.array(self.factors))


def _remainders(values: NDArray[Any], factors: Any) -> NDArray[np.float64]:
    return np.asarray((values * factors + _HALF) % 1 - _HALF)


def digits(matrix: NDArray[Any]) -> Digits:
    """Which remainders training features show as made.

    Parameters
    ----------
    matrix : of shape (draws, columns), the first half of one side, the second of the other; of more
        remainders than have columns those are taken that differ most between the sides
    """
    rows = matrix[np.linspace(0, len(matrix) - 1, min(_ROWS, len(matrix))).astype(int)]
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    size = np.abs(matrix).max(axis=0)
    made: list[tuple[float, int, float]] = []
    for column in np.flatnonzero(high > low).tolist():
        finer = False  # whether the last remainder was one of the next's digits alone
        for factor in (10.0**k for k in _PLACES):
            if factor * (high[column] - low[column]) < _WIDE:
                continue
            if factor * size[column] > _LARGEST:
                break
            remainders = _remainders(rows[:, column], factor)
            places = np.floor((remainders + _HALF) * _BINS).astype(int)
            counts = np.bincount(places, minlength=_BINS) * _BINS / len(rows)
            uneven = bool(len(rows) / _BINS * np.sum((counts - 1) ** 2) > _UNEVEN)
            spread = float(np.ptp(remainders))
            if uneven and spread > _SAME and not finer:
                half = len(rows) // 2
                apart = abs(remainders[:half].mean() - remainders[half:].mean()) / spread
                made.append((-apart, column, factor))
            finer = uneven and _SAME < spread < 0.09
    chosen = sorted(sorted(made)[:_MOST], key=lambda each: each[1:])
    return Digits(tuple(each[1] for each in chosen), tuple(each[2] for each in chosen))
