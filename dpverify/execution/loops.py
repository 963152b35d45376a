"""Loops over arrays that `compiled` makes machine code of.

They are plain Python, so that they can be run, and are tested, without a compiler. Arithmetic is
that of IEEE 754 in the order that is written: neither is reordered, and no product is fused with a
sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["SIGNATURES", "add_up", "butterflies", "least_ranks", "round_quantiles"]

_COLUMNS = 512  # values a stretch: what is kept of them stays in the first-level cache

SIGNATURES = {
    "add_up": "boolean(Array(float64, 2, 'C', True), float64, float64, float64, "
    "Array(intp, 2, 'C', True), int64, float64, Array(int64, 2, 'C'))",
    "butterflies": "void(Array(float64, 2, 'C'))",
    "least_ranks": "intp(Array(uint64, 2, 'C', True), Array(intp, 1, 'C', True), intp, intp, "
    "Array(uint64, 2, 'C'))",
    "round_quantiles": "intp(Array(int64, 1, 'C', True), float64, Array(float64, 2, 'C', True), "
    "Array(float64, 1, 'C', True), int64, int64, Array(int64, 1, 'C'), Array(intp, 1, 'C'))",
}
"""Types of the arguments of each, by name; True is for arrays that may be read-only."""


def add_up(
    records: Any,
    low: float,
    high: float,
    inverse: float,
    places: Any,
    digits: int,
    base: float,
    product: Any,
) -> bool:
    """Check records, put them on the grid and add them up in bins, in one pass.

    Whether all values are in [low, high], which a NaN isn't; if not, `product` is spoiled.

    **The grid.** 1/h is a power of two, so that q = x·inverse is x/h (what underflows is far from a
    half). With f = ⌊q⌋ and d = q − f a value becomes f + 1 where d ≥ ½, else f: ⌊q + ½⌋, if d is
    computed without error, or on the right side of ½. It is: for q ≥ 1 and for q ≤ −½ the numbers
    q and f are within a factor of 2 of each other, and their difference is exact (Sterbenz); for
    0 ≤ q < 1 it is q; for −½ < q < 0 it is more than ½ before it is rounded, so at least ½ after.

    **Several rows at once.** Sums of at most L steps, with base > 2L a power of two, are digits of
    a number, Σ S_r·baseʳ for as many rows as base^digits ≤ 2⁵³ has room for. Such numbers are added
    without error, and taken apart again by rounding S/base, which is exact: the lower digits are
    less than half of it.

    Parameters
    ----------
    records : (n, p) doubles
    low, high : ends of the domain
    inverse : 1/h, a power of two
    places : (entries, p); the bin of each attribute, + k where it is subtracted
    digits, base : rows that are added up at once, 1 to 3, and the base of their numbers
    product : (n, k), to be filled
    """
    n, p = records.shape
    k = product.shape[1]
    steps, sums = np.empty(_COLUMNS), np.empty(2 * k)
    fraction = 1.0 / base
    second = base if digits > 1 else 0.0
    third = base * base if digits > 2 else 0.0
    for row in range(0, n, digits):
        sums[:] = 0.0
        outside = 0
        for start in range(0, p, _COLUMNS):
            width = min(_COLUMNS, p - start)
            # The last rows may be taken twice, and come out twice the same.
            one = records[row, start : start + width]
            two = records[min(row + 1, n - 1), start : start + width]
            three = records[min(row + 2, n - 1), start : start + width]
            for j in range(width):
                x, y, z = one[j], two[j], three[j]
                inside = (low <= x) & (x <= high) & (low <= y) & (y <= high)
                outside += not (inside & (low <= z) & (z <= high))
                x, y, z = x * inverse, y * inverse, z * inverse
                a, b, c = np.floor(x), np.floor(y), np.floor(z)
                a += 1.0 if x - a >= 0.5 else 0.0
                b += 1.0 if y - b >= 0.5 else 0.0
                c += 1.0 if z - c >= 0.5 else 0.0
                steps[j] = a + second * b + third * c
            for entry in range(places.shape[0]):
                bins = places[entry, start : start + width]
                for j in range(width):
                    sums[bins[j]] += steps[j]
        if outside:
            return False
        for j in range(k):
            left = sums[j] - sums[k + j]
            for r in range(digits):
                above = np.rint(left * fraction)
                product[min(row + r, n - 1), j] = int(left - above * base)
                left = above
    return True


def round_quantiles(
    words: Any,
    scale: float,
    coefficients: Any,
    bounds: Any,
    row_bits: int,
    before: int,
    drawn: Any,
    undecided: Any,
) -> int:
    """Round scaled quantiles where the bounds of their polynomials decide, a word at a time.

    How many words they leave open, which become 0. The operations on doubles are those of
    `dpverify.sampling._quantile_table.Polynomials.round`, in the same order.

    Parameters
    ----------
    words : (n,) of 64 random bits, as signed numbers
    scale : of the draws
    coefficients, bounds : of the rows; see `Polynomials`
    row_bits, before : bits of a fraction that are a row's, and what to take off for the first row
    drawn : (n,), to be filled
    undecided : (n,), to be filled from the beginning with the places of open words
    """
    shift = 52 - row_bits
    centre = 1 + 2.0 ** -(row_bits + 1)
    degree = coefficients.shape[1] - 1
    count = 0
    for index in range(words.size):
        word = words[index]
        tail = np.float64((word >> 1) & 0x7FFF_FFFF_FFFF_FFFF)
        bits = tail.view(np.int64)
        row = max((bits >> shift) - before, 0)
        place = np.int64((bits & ((1 << shift) - 1)) | (1023 << 52))
        offset = place.view(np.float64) - centre
        value = coefficients[row, degree] * offset
        for power in range(degree - 1, 0, -1):
            value = (value + coefficients[row, power]) * offset
        value = (value + coefficients[row, 0]) * scale
        if word & 1:
            value = -value
        nearest = np.rint(value)
        limit = 0.5 - scale * bounds[row] * (1 + 2.0**-50) - 2.0**-53
        if abs(value - nearest) < limit:
            drawn[index] = int(nearest)
        else:
            drawn[index] = 0
            undecided[count] = index
            count += 1
    return count


def butterflies(columns: Any) -> None:
    """Walsh-Hadamard transform of every column in place, two levels in each pass over memory.

    Parameters
    ----------
    columns : (m, n), m a power of two
    """
    m, n = columns.shape
    size = m
    while size >= 4:
        quarter = size // 4
        for start in range(0, m, size):
            for row in range(start, start + quarter):
                for j in range(n):
                    a, b = columns[row, j], columns[row + quarter, j]
                    c, d = columns[row + 2 * quarter, j], columns[row + 3 * quarter, j]
                    a, b, c, d = a + c, b + d, a - c, b - d
                    columns[row, j], columns[row + quarter, j] = a + b, a - b
                    columns[row + 2 * quarter, j], columns[row + 3 * quarter, j] = c + d, c - d
        size = quarter
    if size == 2:
        for row in range(0, m, 2):
            for j in range(n):
                a, b = columns[row, j], columns[row + 1, j]
                columns[row, j], columns[row + 1, j] = a + b, a - b


def least_ranks(ranks: Any, ends: Any, first: int, row: int, least: Any) -> int:
    """Take the ranks of consecutive items into the minima of their sets; the last item's row.

    Parameters
    ----------
    ranks : (count, K), of the items `first`, `first` + 1, …
    ends : (rows + 1,), rising; set r has the items from ends[r] to below ends[r + 1]
    row : of the first item, or one before it
    least : (rows, K), changed in place
    """
    count, functions = ranks.shape
    for item in range(count):
        while ends[row + 1] <= first + item:
            row += 1
        for f in range(functions):
            least[row, f] = min(least[row, f], ranks[item, f])
    return row
