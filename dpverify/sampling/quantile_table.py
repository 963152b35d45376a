"""Exactly rounded draws round(s·X) of a symmetric law X, from a table of its tail quantiles.

**How it is exact.** A word of 64 random bits is one sign bit and a 63-bit integer w. The tail
probability p that the bits stand for lies in the cell [w, w + 1)·2⁻⁶⁴ ⊂ (0, ½), and the draw is
round(s·z(p)) with z the upper-tail quantile of the law. A table of Taylor polynomials, which does
not depend on s, gives a double ẑ with a proven bound |ẑ − z(p)| ≤ E for *every* p of the cell. If
s·ẑ is further than s·E (and its own round-off) from a half-integer, rounding s·ẑ gives the draw
whatever the bits below the word are. If not, the same cell is decided by ball arithmetic, and
where the boundary runs through the cell itself, 64 more bits split it. So the law of the draw is
exact to the last bit: the table decides speed alone. That the slow path is taken can be seen in the
run time.

**The bound E** of a row (one 64th of an octave of p, with centre c and half width 2⁻⁷ relative to
the octave) is the sum of
 - the Lagrange remainder of degree 6, |z⁽⁷⁾/7!|·2⁻⁴⁹, with the derivative enclosed over the row by
   the recurrence that the law's score gives for Taylor coefficients;
 - the rounding of the coefficients to doubles;
 - the round-off of Horner's rule, γ₁₂·Σ|aᵢ||t|ⁱ with γ₁₂ = 12u/(1 − 12u) and u = 2⁻⁵³;
 - the distance between p and the point where the row is evaluated, (2⁻⁵³·w + 1)·2⁻⁶⁴ (the word as
   a double, and the cell's own width, which dominates in the tail), times sup 1/f(z), with f the
   density, which must fall in the tail;
 - the round-off of the product s·ẑ, at most 2⁻⁵³·|ẑ| in units of s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from dpverify.enclosure import Enclosure, to_arb
from dpverify.sampling.words import Words

__all__ = ["Law", "Table", "build_table", "decide_word", "round_words"]

_OCTAVES = 24  # tail probabilities from 2⁻²⁵ to ½; the rest, 2⁻²⁴ of all words, is slow
_ROW_BITS = 6
_DEGREE = 6
_LEAST = 2.0 ** (63 - _OCTAVES)  # least 63-bit integer in the table
_BLOCK = 8192  # draws a block: its buffers stay in the second-level cache

_MANTISSA_BITS = 52
_SHIFT = _MANTISSA_BITS - _ROW_BITS
_FIRST_ROW = (1023 + 63 - _OCTAVES) << _ROW_BITS
_OFFSET_MASK = (1 << _SHIFT) - 1
_ONE = 1023 << _MANTISSA_BITS
_CENTRE = 1 + 2.0 ** -(_ROW_BITS + 1)

Table = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Coefficients, of shape (degree + 1, rows), and the bounds E, of shape (rows,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A symmetric law of unit scale, on balls.

    Attributes
    ----------
    tail : P[X > x] for x ≥ 0, strictly falling
    quantile : its inverse z(p), continued analytically a little above p = ½
    density : f(x), falling for x ≥ 0
    score : Taylor coefficients of −f′/f at z from those of z
    """

    tail: Callable[[arb], arb]
    quantile: Callable[[arb], arb]
    density: Callable[[arb], arb]
    score: Callable[[list[arb]], list[arb]]


def decide_word(law: Law, scale: float, word: int, *, rng: Words) -> int:
    """Draw that belongs to one word, by ball arithmetic alone."""
    cell, bits = word >> 1, 64
    while (size := _rounded_quantile(law, cell, bits, Fraction(scale))) is None:
        cell, bits = (cell << 64) | int(rng.words(1)[0]), bits + 64
    return -size if word & 1 else size


def round_words(
    words: NDArray[np.uint64], scale: float, drawn: NDArray[np.int64], table: Table
) -> Sequence[int]:
    """Fill `drawn` where the table decides; return the indices where it doesn't, in order."""
    coefficients, bounds = table
    limits = _limits(bounds, scale)
    least_limit = float(limits.min())
    undecided: list[int] = []
    size = min(_BLOCK, words.size)
    shifted, row = np.empty(size, np.uint64), np.empty(size, np.int64)
    tail, offset, value, coefficient = (np.empty(size) for _ in range(4))
    for start in range(0, words.size, _BLOCK):
        block = words[start : start + _BLOCK]
        if block.size < size:
            size = block.size
            shifted, row = shifted[:size], row[:size]
            tail, offset, value, coefficient = (
                buffer[:size] for buffer in (tail, offset, value, coefficient)
            )
        np.right_shift(block, 1, out=shifted)
        np.copyto(tail, shifted.view(np.int64), casting="unsafe")
        # The bits of the double are its row (exponent and first bits) and its place in the row.
        bits = tail.view(np.int64)
        np.right_shift(bits, _SHIFT, out=row)
        np.subtract(row, _FIRST_ROW, out=row)
        place = offset.view(np.int64)
        np.bitwise_and(bits, _OFFSET_MASK, out=place)
        np.bitwise_or(place, _ONE, out=place)
        np.subtract(offset, _CENTRE, out=offset)
        np.take(coefficients[_DEGREE], row, out=value, mode="clip")
        for degree in range(_DEGREE - 1, -1, -1):
            np.multiply(value, offset, out=value)
            np.take(coefficients[degree], row, out=coefficient, mode="clip")
            np.add(value, coefficient, out=value)
        np.multiply(value, scale, out=value)
        np.rint(value, out=coefficient)
        np.subtract(value, coefficient, out=value)  # exact: both are close
        np.abs(value, out=value)
        size_sign = shifted.view(np.int64)
        np.copyto(size_sign, (block & np.uint64(1)).view(np.int64))
        np.negative(size_sign, out=size_sign)
        out = drawn[start : start + _BLOCK]
        np.copyto(out, coefficient, casting="unsafe")
        np.bitwise_xor(out, size_sign, out=out)  # two's complement: (x ^ −1) − (−1) = −x
        np.subtract(out, size_sign, out=out)
        if not (value.max() < least_limit and tail.min() >= _LEAST):
            suspects = np.flatnonzero(~(value < least_limit) | (tail < _LEAST))
            wrong = ~(value[suspects] < limits.take(row[suspects], mode="clip"))
            wrong |= tail[suspects] < _LEAST
            undecided.extend((start + suspects[wrong]).tolist())
    return undecided


def _limits(bounds: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Largest safe distance to the nearest integer, row by row: ½ − s·E, rounded down."""
    return 0.5 - scale * bounds * (1 + 2.0**-50) - 2.0**-53


def build_table(law: Law) -> Table:
    """Enclose the polynomials and bounds of all rows (under a second)."""
    rows = (_OCTAVES << _ROW_BITS) + 1  # one more: 63-bit integers next to 2⁶³ round up to it
    coefficients, bounds = np.empty((_DEGREE + 1, rows)), np.empty(rows)
    with ctx.workprec(128):
        lower_end = law.quantile(to_arb(Fraction(int(_LEAST), 1 << 64)))
        for index in range(rows):
            octave, place = divmod(index, 1 << _ROW_BITS)
            unit = Fraction(1 << (63 - _OCTAVES + octave), 1 << 64)
            start = unit * Fraction((1 << _ROW_BITS) + place, 1 << _ROW_BITS)
            width = unit / (1 << _ROW_BITS)
            upper_end = law.quantile(to_arb(start + width))
            coefficients[:, index], bounds[index] = _row(
                law, unit, start, width, lower_end.union(upper_end)
            )
            lower_end = upper_end
    return coefficients, bounds


def _row(
    law: Law, unit: Fraction, start: Fraction, width: Fraction, values: arb
) -> tuple[list[float], float]:
    """Coefficients and bound of one row; `values` encloses z over it."""
    radius = arb(2) ** -(_ROW_BITS + 1)
    unit_ball = to_arb(unit)
    taylor = _taylor(law, law.quantile(to_arb(start + width / 2)), unit_ball, _DEGREE)
    doubles = [float(c) for c in taylor]
    remainder = abs(_taylor(law, values, unit_ball, _DEGREE + 1)[-1]) * radius ** (_DEGREE + 1)
    rounding = sum(
        (abs(c - arb(a)) * radius**i for i, (c, a) in enumerate(zip(taylor, doubles, strict=True))),
        arb(0),
    )
    size = sum((abs(arb(a)) * radius**i for i, a in enumerate(doubles)), arb(0))
    u = arb(2) ** -53
    horner = 12 * u / (1 - 12 * u) * size
    # Where p may lie below the row's start: by the rounding of w to a double and by no more.
    slack = 1 - arb(2) ** -40
    steepest = 1 / law.density(law.quantile(to_arb(start) * slack))
    distance = (u * to_arb(start + width) * arb(2) ** 64 + 1) * arb(2) ** -64 * (1 + arb(2) ** -40)
    evaluated = remainder + rounding + horner + steepest * distance
    bound = evaluated + u * (size + evaluated)
    return doubles, Enclosure.of_ball(bound.upper()).upper


def _taylor(law: Law, value: arb, unit: arb, degree: int) -> list[arb]:
    """Taylor coefficients of τ ↦ z(p + unit·τ) at a point (or a range) where z is `value`.

    z′ = −unit/f(z), hence z″ = r(z)·z′² with the score r = −f′/f, and therefore
    (n + 2)(n + 1)·zₙ₊₂ = [r(z)·(z′)²]ₙ.
    """
    z = [value, -unit / law.density(value)]
    for n in range(degree - 1):
        slope = [(i + 1) * z[i + 1] for i in range(n + 1)]
        square = [
            sum((slope[j] * slope[i - j] for j in range(i + 1)), arb(0)) for i in range(n + 1)
        ]
        score = law.score(z)
        product = sum((score[j] * square[n - j] for j in range(n + 1)), arb(0))
        z.append(product / ((n + 2) * (n + 1)))
    return z[: degree + 1]


def _rounded_quantile(law: Law, cell: int, bits: int, scale: Fraction) -> int | None:
    """round(s·z(p)) if it is one number for all p in the cell [cell, cell + 1)·2^−bits, else None.

    The draw is n where the tail probability of (n + ½)/s is at most the cell and that of (n − ½)/s
    is at least its end.
    """
    with ctx.workprec(96):
        start = law.quantile(arb(2 * cell + 1) * arb(2) ** -(bits + 1))
        guess = max(0, int(float((to_arb(scale) * start).mid().floor())))
    while True:
        above = _side(law, cell, bits, Fraction(2 * guess + 1, 2) / scale)
        if above == 0:
            return None
        if above > 0:
            guess += 1
            continue
        if guess == 0:
            return 0
        below = _side(law, cell, bits, Fraction(2 * guess - 1, 2) / scale)
        if below == 0:
            return None
        if below > 0:
            return guess
        guess -= 1


def _side(law: Law, cell: int, bits: int, x: Fraction) -> int:
    """−1, 0, +1: the tail probability of x is at most the cell, inside it, or at least its end.

    A boundary that can't be told from an end of the cell with 256 bits to spare counts as inside:
    more bits of the draw then decide, whatever the boundary is, and the law stays exact.
    """
    precision = 128
    while precision <= bits + 256:
        with ctx.workprec(precision):
            boundary = law.tail(to_arb(x)) * arb(2) ** bits
            if boundary <= cell:
                return -1
            if boundary >= cell + 1:
                return 1
            if boundary > cell and boundary < cell + 1:
                return 0
        precision *= 2
    return 0
