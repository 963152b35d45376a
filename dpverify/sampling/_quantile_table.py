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

**Two tables.** Polynomials of degree 3 on rows of one 512th of an octave cost half of those of
degree 6 on rows eight times as wide, and decide all but one word in six up to scales of 2⁴⁰; what
they leave open goes to the others, and what those leave open to ball arithmetic. The coarse
ones are derived from the fine ones (`_coarsened`), so that a table is built in under a second.

**The bound E** of a fine row (one 64th of an octave of p, with centre c and half width 2⁻⁷ relative
to the octave) is the sum of
 - the Lagrange remainder of degree 6, |z⁽⁷⁾/7!|·2⁻⁴⁹, with the derivative enclosed over the row by
   the recurrence that the law's score gives for Taylor coefficients;
 - the rounding of the coefficients to doubles;
 - the round-off of Horner's rule, Σ γ₂ᵢ₊₁|aᵢ||t|ⁱ with γₙ = nu/(1 − nu) and u = 2⁻⁵³, for aᵢ meets
   one addition and i products and additions more (Higham 2002, equation 5.2; a₆ meets 12 in all):
   a₀, which is nearly all of the sum, is rounded once;
 - the distance between p and the point where the row is evaluated, (2⁻⁵³·w + 1)·2⁻⁶⁴ (the word as
   a double, and the cell's own width, which dominates in the tail), times sup 1/f(z), with f the
   density, which must fall in the tail;
 - the round-off of the product s·ẑ, at most 2⁻⁵³·|ẑ| in units of s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb, floor, frexp, prod
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from dpverify.enclosure import Enclosure, to_arb
from dpverify.execution.compiled import compiled
from dpverify.execution.loops import round_quantiles
from dpverify.sampling.words import SHARED, ReplayableWords, Words

__all__ = ["Law", "Polynomials", "Table", "build_table", "decide_word", "draw"]

_OCTAVES = 24  # tail probabilities from 2⁻²⁵ to ½; the rest, 2⁻²⁴ of all words, is slow
_ROW_BITS, _DEGREE = 6, 6
_COARSE_OCTAVES, _COARSE_ROW_BITS, _COARSE_DEGREE = 16, 9, 3  # fewer: their bounds are alike
_COARSE_SCALE = 2.0**40  # beyond, the coarse polynomials leave more than one word in six undecided
_LEAST = 1 << (63 - _OCTAVES)  # least 63-bit integer in the table
_FEW = 20  # draws that Python makes sooner than numpy
_BLOCK = 16_384  # draws a block: less pays for more calls, much more leaves the caches

_MANTISSA_BITS = 52
_LAST_OCTAVE = 1023 + 63
_ONE = 1023 << _MANTISSA_BITS
_UNIT_ROUND_OFF = 2.0**-53
_NONE = np.empty(0, np.intp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law:
    """A symmetric law of unit scale, on balls; equal to itself alone, by which its table is found.

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
    while (size := _rounded_quantile(law, cell, bits, scale)) is None:
        cell, bits = (cell << 64) | int(rng.words(1)[0]), bits + 64
    return -size if word & 1 else size


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomials:
    """Approximations ẑ of the quantile, each with its bound, row by row of the tail probability.

    Attributes
    ----------
    octaves, row_bits : octaves below ½, and the logarithm of the number of rows in each
    coefficients : (1 + rows, degree + 1) doubles, rising; the first row is NaN, for all words below
        the table: they come out undecided
    bounds : (1 + rows,) doubles E, the first infinite
    largest_bound : of the others
    rows : of each row the coefficients, falling but the last, which comes after them, and the bound
    """

    octaves: int
    row_bits: int
    coefficients: NDArray[np.float64]
    bounds: NDArray[np.float64]
    largest_bound: float
    rows: Sequence[tuple[list[float], float, float]]

    @classmethod
    def guarded(
        cls,
        octaves: int,
        row_bits: int,
        coefficients: NDArray[np.float64],
        bounds: NDArray[np.float64],
    ) -> Polynomials:
        """With the row for all words below the table put before the others."""
        coefficients = np.insert(coefficients, 0, np.nan, axis=0)
        bounds = np.insert(bounds, 0, np.inf)
        first, falling = coefficients[:, 0].tolist(), coefficients[:, :0:-1].tolist()
        return cls(
            octaves=octaves,
            row_bits=row_bits,
            coefficients=coefficients,
            bounds=bounds,
            largest_bound=float(bounds[1:].max()),
            rows=list(zip(falling, first, bounds.tolist(), strict=True)),
        )

    def round(
        self, words: NDArray[np.uint64], scale: float, drawn: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        """Fill `drawn` where the bounds decide; return the indices where they don't, in order."""
        if words.size <= _FEW:
            return self._round_few(words, scale, drawn)
        shift = _MANTISSA_BITS - self.row_bits
        before = (_LAST_OCTAVE - self.octaves << self.row_bits) - 1  # row 0, from exponent 0 on
        if (loop := compiled(round_quantiles, values=words.size)) is not None:
            left = np.empty(words.size, np.intp)
            signed = words.view(np.int64)
            table = self.coefficients, self.bounds, self.row_bits, before
            return left[: loop(signed, scale, *table, drawn, left)]
        centre = 1 + 2.0 ** -(self.row_bits + 1)
        degree = self.coefficients.shape[1] - 1
        least_limit = _limits(self.largest_bound, scale)
        size = min(_BLOCK, words.size)
        gathered, row = np.empty((size, degree + 1)), np.empty(size, np.int64)
        tail, offset, value = (np.empty(size) for _ in range(3))
        undecided = []
        for start in range(0, words.size, _BLOCK):
            block = words[start : start + _BLOCK]
            if block.size < size:
                size = block.size
                gathered, row = gathered[:size], row[:size]
                tail, offset, value = tail[:size], offset[:size], value[:size]
            whole = value.view(np.uint64)
            np.right_shift(block, 1, out=whole)
            np.copyto(tail, whole.view(np.int64), casting="unsafe")
            # The bits of the double are its row (exponent and first bits) and its place in the row.
            bits, place = tail.view(np.int64), offset.view(np.int64)
            np.right_shift(bits, shift, out=row)
            np.subtract(row, before, out=row)
            np.bitwise_and(bits, (1 << shift) - 1, out=place)
            np.bitwise_or(place, _ONE, out=place)
            np.subtract(offset, centre, out=offset)
            np.take(self.coefficients, row, axis=0, out=gathered, mode="clip")
            np.multiply(gathered[:, degree], offset, out=value)
            for power in range(degree - 1, 0, -1):
                np.add(value, gathered[:, power], out=value)
                np.multiply(value, offset, out=value)
            np.add(value, gathered[:, 0], out=value)
            np.multiply(value, scale, out=value)
            sign = offset.view(np.uint64)
            np.left_shift(block, 63, out=sign)
            np.bitwise_xor(whole, sign, out=whole)  # of the double, by its highest bit
            rounded = tail
            np.rint(value, out=rounded)
            np.subtract(value, rounded, out=value)  # exact: both are close
            np.abs(value, out=value)
            if not value.max() < least_limit:  # a NaN is the largest
                suspects = np.flatnonzero(~(value < least_limit))
                limits = _limits(self.bounds.take(row[suspects], mode="clip"), scale)
                suspects = suspects[~(value[suspects] < limits)]
                rounded[suspects] = 0
                undecided.append(start + suspects)
            np.copyto(drawn[start : start + _BLOCK], rounded, casting="unsafe")
        return np.concatenate(undecided) if undecided else _NONE

    def _round_few(
        self, words: NDArray[np.uint64], scale: float, drawn: NDArray[np.int64]
    ) -> NDArray[np.intp]:
        """The same by Python's doubles, in the same operations, sooner than arrays are made."""
        shift = self.row_bits
        rows = 1 << shift
        before = ((_LAST_OCTAVE - self.octaves - 1022) << shift) - 1
        centre = 1 + 2.0 ** -(shift + 1)
        undecided = []
        for index, word in enumerate(words.tolist()):
            fraction, exponent = frexp(float(word >> 1))  # in [½, 1), or 0
            within = (2 * fraction - 1) * rows
            place = floor(within)
            row = (exponent << shift) + place - before
            if row > 0:
                offset = 1 + (within - place) / rows - centre
                falling, first, bound = self.rows[row]
                value = 0.0
                for coefficient in falling:
                    value = (value + coefficient) * offset
                value = (value + first) * (-scale if word & 1 else scale)
                nearest = round(value)
                if abs(value - nearest) < _limits(bound, scale):
                    drawn[index] = nearest
                    continue
            drawn[index] = 0
            undecided.append(index)
        return np.array(undecided, dtype=np.intp) if undecided else _NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Polynomials of one law: `coarse` ones decide almost all words, `fine` ones the rest."""

    coarse: Polynomials
    fine: Polynomials


def draw(
    law: Law, table: Table, scale: float, shape: tuple[int, ...], *, rng: Words
) -> NDArray[np.int64]:
    """Independent draws round(scale·X).

    One word a draw, in C order; the words that stay undecided take theirs after all others, in
    order, so that the result depends on the stream alone.
    """
    count = prod(shape)
    if isinstance(rng, ReplayableWords) and count <= SHARED:
        made, start = rng.made(
            count, (law, scale), lambda words: _rounded(table, scale, [words], words.size)
        )
        drawn = made[0][start : start + count]
        left = [(place - start, word) for place, word in made[1] if 0 <= place - start < count]
    else:
        sizes = (min(_BLOCK, count - start) for start in range(0, count, _BLOCK))
        drawn, left = _rounded(table, scale, map(rng.words, sizes), count)
    for place, word in left:
        drawn[place] = decide_word(law, scale, word, rng=rng)
    return drawn.reshape(shape)


def _rounded(
    table: Table, scale: float, blocks: Iterable[NDArray[np.uint64]], count: int
) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Draws of so many words, and the places and words that no polynomial decides."""
    drawn = np.empty(count, dtype=np.int64)
    first, *others = (table.coarse, table.fine) if scale <= _COARSE_SCALE else (table.fine,)
    places: list[NDArray[np.intp]] = []
    left: list[NDArray[np.uint64]] = []
    start = 0
    for words in blocks:
        undecided = first.round(words, scale, drawn[start : start + words.size])
        if undecided.size:
            places.append(start + undecided)
            left.append(words[undecided])
        start += words.size
    if not places:
        return drawn, []
    index, words = np.concatenate(places), np.concatenate(left)
    for polynomials in others:
        if not index.size:
            break
        again = np.empty(index.size, np.int64)
        undecided = polynomials.round(words, scale, again)
        drawn[index] = again
        index, words = index[undecided], words[undecided]
    return drawn, list(zip(index.tolist(), words.tolist(), strict=True))


def _limits(bounds: Any, scale: float) -> Any:
    """Largest safe distance to the nearest integer, row by row: ½ − s·E, rounded down."""
    return 0.5 - scale * bounds * (1 + 2.0**-50) - 2.0**-53


@cache
def build_table(law: Law) -> Table:
    """Enclose the polynomials and bounds of all rows (under a second)."""
    rows = (_OCTAVES << _ROW_BITS) + 1  # one more: 63-bit integers next to 2⁶³ round up to it
    coefficients, bounds = np.empty((rows, _DEGREE + 1)), np.empty(rows)
    with ctx.workprec(128):
        lower_end = law.quantile(to_arb(Fraction(_LEAST, 1 << 64)))
        for index in range(rows):
            octave, place = divmod(index, 1 << _ROW_BITS)
            unit = Fraction(1 << (63 - _OCTAVES + octave), 1 << 64)
            start = unit * Fraction((1 << _ROW_BITS) + place, 1 << _ROW_BITS)
            width = unit / (1 << _ROW_BITS)
            upper_end = law.quantile(to_arb(start + width))
            coefficients[index], bounds[index] = _row(
                law, unit, start, width, lower_end.union(upper_end)
            )
            lower_end = upper_end
    return Table(
        coarse=_coarsened(coefficients, bounds),
        fine=Polynomials.guarded(_OCTAVES, _ROW_BITS, coefficients, bounds),
    )


def _coarsened(fine: NDArray[np.float64], bounds: NDArray[np.float64]) -> Polynomials:
    """Each polynomial expanded about the centres of eight narrower rows, and cut off.

    With t = c + u and |u| ≤ r it is Σ bₖuᵏ for bₖ = Σᵢ C(i, k)·aᵢ·cⁱ⁻ᵏ. Let Bₖ be the same sum of
    sizes. In doubles bₖ is off by at most γ₇Bₖ, since C(i, k)·cⁱ⁻ᵏ is exact (c is an odd number
    below 8, times 2⁻¹⁰); what is cut off is at most Σ Bₖrᵏ over the higher k; Horner's rule adds at
    most γ₆ and the scale u of the kept Σ Bₖrᵏ(1 + γ₇), so that 16u of it, beside the bound of the
    fine polynomial, cover all. The bound's own round-off is less than 2⁻⁴⁰ of it.
    """
    radius = 2.0 ** -(_COARSE_ROW_BITS + 1)
    pieces = 1 << (_COARSE_ROW_BITS - _ROW_BITS)
    centres = (2 * np.arange(pieces) + 1 - pieces) * radius
    powers = range(_DEGREE + 1)

    def expanded(rows: NDArray[np.float64], at: NDArray[Any]) -> NDArray[np.float64]:
        parts = [
            sum(rows[:, i, None] * (comb(i, k) * at ** (i - k)) for i in powers[k:]) for k in powers
        ]
        return np.stack(parts, axis=-1).reshape(-1, _DEGREE + 1)

    sizes = expanded(np.abs(fine), np.abs(centres)) * radius ** np.arange(_DEGREE + 1)
    kept, cut = sizes[:, : _COARSE_DEGREE + 1].sum(axis=1), sizes[:, _COARSE_DEGREE + 1 :].sum(1)
    wider = np.repeat(bounds, pieces) + cut + 16 * _UNIT_ROUND_OFF * kept
    coefficients = np.ascontiguousarray(expanded(fine, centres)[:, : _COARSE_DEGREE + 1])
    first = (_OCTAVES - _COARSE_OCTAVES) << _COARSE_ROW_BITS
    return Polynomials.guarded(
        _COARSE_OCTAVES,
        _COARSE_ROW_BITS,
        coefficients[first:],
        wider[first:] * (1 + 2.0**-40),
    )


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
    sizes = [abs(arb(a)) * radius**i for i, a in enumerate(doubles)]
    size = sum(sizes, arb(0))
    u = arb(2) ** -53
    operations = (min(2 * i + 1, 2 * _DEGREE) for i in range(_DEGREE + 1))
    horner = sum((n * u / (1 - n * u) * x for n, x in zip(operations, sizes, strict=True)), arb(0))
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
    slope: list[arb] = []
    square: list[arb] = []
    for n in range(degree - 1):
        slope.append((n + 1) * z[n + 1])
        square.append(sum((slope[j] * slope[n - j] for j in range(n + 1)), arb(0)))
        score = law.score(z)
        product = sum((score[j] * square[n - j] for j in range(n + 1)), arb(0))
        z.append(product / ((n + 2) * (n + 1)))
    return z[: degree + 1]


def _rounded_quantile(law: Law, cell: int, bits: int, scale: float) -> int | None:
    """round(s·z(p)) if it is one number for all p in the cell [cell, cell + 1)·2^−bits, else None.

    Almost always the quantile of the whole cell, as one ball, says which. Otherwise the draw is n
    where the tail probability of (n + ½)/s is at most the cell and that of (n − ½)/s is at least
    its end.
    """
    with ctx.workprec(bits + 32):
        factor, middle, half = arb(scale), (2 * cell + 1, -bits - 1), (1, -bits - 1)
        draws = (factor * law.quantile(arb(middle, half)) + 0.5).floor().unique_fmpz()
        if draws is not None:
            return int(draws)
        guess = max(0, int(float((factor * law.quantile(arb(middle))).mid().floor())))
    exact = Fraction(scale)
    while True:
        above = _side(law, cell, bits, Fraction(2 * guess + 1, 2) / exact)
        if above == 0:
            return None
        if above > 0:
            guess += 1
            continue
        if guess == 0:
            return 0
        below = _side(law, cell, bits, Fraction(2 * guess - 1, 2) / exact)
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
