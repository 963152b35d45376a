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

_FACTORS = 10.0 ** np.arange(13)
_ROWS = 500  # training outputs that are looked at
_WIDE = 2.0  # quartiles of y·10ᵏ apart, from where on noise spreads the remainder
_LARGEST = 2.0**36  # of y·10ᵏ
_BINS = 16
_UNEVEN = 60.0  # chi-squared of so many bins; even ones pass it with probability 2e-7
_SAME = 1e-3  # range of remainders that are one
_FINER = 0.09  # range of remainders that are digits of the next ones alone
_MOST = 16  # columns
_TOGETHER = 32  # columns that are looked at together
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
    with np.errstate(over="ignore"):  # counted outputs may be larger than those that factors fit
        scaled = np.nan_to_num(values * factors)
    return np.asarray((scaled + _HALF) % 1 - _HALF)


def digits(matrix: NDArray[Any]) -> Digits:
    """Which remainders training features show as made.

    Parameters
    ----------
    matrix : of shape (draws, columns), the first half of one side, the second of the other; of more
        remainders than have columns those are taken that differ most between the sides
    """
    rows = matrix[np.linspace(0, len(matrix) - 1, min(_ROWS, len(matrix))).astype(int)]
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    with np.errstate(over="ignore"):
        wide = high - low
    spread = np.flatnonzero(high > low)
    blocks = [spread[at : at + _TOGETHER] for at in range(0, len(spread), _TOGETHER)]
    made = [
        each
        for block in blocks
        for each in _made(rows, block, wide[block], np.abs(matrix[:, block]).max(axis=0))
    ]
    chosen = sorted(sorted(made)[:_MOST], key=lambda each: each[1:])
    return Digits(tuple(each[1] for each in chosen), tuple(each[2] for each in chosen))


def _made(
    rows: NDArray[Any], block: NDArray[Any], wide: NDArray[Any], size: NDArray[Any]
) -> list[tuple[float, int, float]]:
    """Of these columns: minus how far the sides' remainders are apart, the column, the factor.

    Parameters
    ----------
    rows : of shape (draws, all columns)
    block : the columns that are looked at
    wide, size : of these, the distance of the quartiles, and the largest absolute value
    """
    with np.errstate(over="ignore"):  # is too large too
        large = size[:, None] * _FACTORS > _LARGEST
        places, powers = np.nonzero((wide[:, None] * _FACTORS >= _WIDE) & ~large)
    remainders = _remainders(rows[:, block[places]], _FACTORS[powers])
    bins = np.floor((remainders + _HALF) * _BINS).astype(int) + _BINS * np.arange(len(places))
    counts = np.bincount(bins.ravel(), minlength=_BINS * len(places)).reshape(-1, _BINS)
    shares = counts * _BINS / len(rows)
    uneven = len(rows) / _BINS * np.sum((shares - 1) ** 2, axis=1) > _UNEVEN
    spread = np.ptp(remainders, axis=0) if len(places) else np.zeros(0)
    uneven &= spread > _SAME
    finer = uneven & (spread < _FINER)
    # Where the last remainder was one of the next's digits alone, that is the column.
    after = np.concatenate([[False], finer[:-1] & (places[1:] == places[:-1])])[: len(places)]
    half = len(rows) // 2
    found = []
    for at in np.flatnonzero(uneven & ~after).tolist():
        sides = remainders[:half, at], remainders[half:, at]
        apart = abs(sides[0].mean() - sides[1].mean()) / float(spread[at])
        found.append((-float(apart), int(block[places[at]]), float(_FACTORS[powers[at]])))
    return found
