"""Exactly rounded multivariate normal vectors: round(N(0, Σ)) for an exact rational covariance Σ.

**Why.** A mechanism that publishes secret Gaussian rows has its proof for real numbers. Rounding
every coordinate of the real vector to a public grid is post-processing, so the proof holds for the
integers that are released; a lattice distribution "close to" N(0, Σ), or the product of a lattice
matrix with the data, would be a different mechanism. So the law of the integers has to be exact.

**What is sampled.** y = L·g, with L the exact Cholesky factor of Σ (in units of the grid's step)
and g independent real standard normals. Neither is ever written down:
 - g_j is a cell and a place in it. The cell is K_j = round(2⁴⁰·g_j), drawn exactly
   (`RoundedGaussian`); given K_j, the tail probability of g_j is uniform between those of the
   cell's two ends, and its binary digits are drawn only when they are needed. With no digits,
   |g_j − 2⁻⁴⁰K_j| ≤ 2⁻⁴¹.
 - L is L̂(I + F), with L̂ a lower triangular matrix of fixed-point numbers and F bounded as follows.

**The bound on F.** Let D = Σ − L̂L̂ᵀ, computed in integers, without error, and let λ be a proven
lower bound on the smallest eigenvalue of Σ, with ‖D‖_F < λ. Then L̂L̂ᵀ ≥ (λ − ‖D‖_F)·I, and
E = L̂⁻¹ΣL̂⁻ᵀ − I = L̂⁻¹DL̂⁻ᵀ has ‖E‖_F ≤ e = ‖D‖_F/(λ − ‖D‖_F). The Cholesky factor of I + E is
I + F with F lower triangular, so L = L̂(I + F) by uniqueness (the diagonal of L̂ is positive), and
F + Fᵀ + FFᵀ = E. Since tr F² = Σ f_ii² ≥ 0, ‖F + Fᵀ‖_F² = 2‖F‖_F² + 2 tr F² ≥ 2‖F‖_F², hence
√2·f ≤ e + f² for f = ‖F‖_F. The same holds with tE for E, t in [0, 1], where f starts at 0 and
moves continuously; for e ≤ ¼ it can't jump over the gap between the two roots of √2·f = e + f²,
so f ≤ (√2 − √(2 − 4e))/2 ≤ e.

**The decision.** With Ĝ the known approximation of g, |g_j − Ĝ_j| ≤ ρ, and ℓ_i the i-th row of L̂,

    |y_i − ℓ_i·Ĝ| ≤ ‖ℓ_i‖·(e·‖g‖ + √n·ρ),        ‖g‖ ≤ ‖Ĝ‖ + √n·ρ,

and a product computed in doubles, in any order, is off by γ_n·‖ℓ_i‖‖Ĝ‖ more, γ_n = nu/(1 − nu),
u = 2⁻⁵³ (L̂ and Ĝ being exact doubles there). Where no half-integer lies within that distance of
the product, its nearest integer is round(y_i), whatever the digits that were not drawn. Where one
does, that coordinate alone is computed again, in integers, with a better L̂ (a Newton step: the
lower half of E added to L̂, then D computed anew) and then with 64 more digits of every g_j of its
row, and so on; all coordinates of a row share their digits, and a half-integer is hit with
probability 0. So the law is exact: doubles decide speed alone. That a coordinate was undecided can
be seen in the run time.

**Digits without quantiles.** The tail probability T falls nearly linearly over a cell [a, b] of
width h. With |g| = x and the digits v, which are uniform, T(x) is at v on the chord from T(b) to
T(a), and so is the chord at x′ = b − hv. The chord is off by at most (h²/8)·sup|T″|, T has a slope
of at least inf φ there, and T″ = xφ; hence |x − x′| ≤ B(h²/8)·sup φ/inf φ ≤ B(h²/8)·exp(Bh) with
B = max(|a|, |b|). Where that leaves a coordinate open, balls enclose x itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from flint import arb, ctx, fmpz_mat
from numpy.typing import NDArray

from dpverify.enclosure import to_arb
from dpverify.errors import NumericalError, require
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import Words

__all__ = ["LARGEST_ENTRY", "RoundedNormals"]

LARGEST_ENTRY = 2**62
"""Bound on the integers of a covariance."""

_CELL_BITS = 40  # finer cells take longer to draw, coarser ones leave more rows undecided
_CELLS = RoundedGaussian(scale=2.0**_CELL_BITS)
_UNIT_ROUNDOFF = 2.0**-53
_SMALL = 2.0**51  # below it a distance to the nearest integer has no round-off
_STEP_BITS = 40  # fixed-point digits that a Newton step adds
_WORD_BITS = 64
_MOST_LEVELS = 16
_LARGEST_ERROR = 0.25
_COLUMNS = 64  # of a triangle that are multiplied at once: what is above them is left out
# Every bound below is a product and sum of a few doubles, or a norm of less than 2²⁰ of them:
# this factor covers their round-off.
_OUTWARDS = 1 + 2.0**-30


class RoundedNormals:
    """Distribution of round(N(0, scale·matrix)), coordinate by coordinate, sampled exactly.

    Parameters
    ----------
    matrix : (n, n) symmetric integers below 2⁶²; n < 2²⁰
    scale : > 0, exact; with it the covariance is in squared grid steps
    least : > 0, proven lower bound on the smallest eigenvalue of scale·matrix. The proof needs it
        to be true.

    Raises
    ------
    NumericalError
        If the Cholesky factor can't be enclosed: the condition number is near 2⁵³.
    """

    def __init__(self, matrix: NDArray[np.int64], *, scale: Fraction, least: Fraction) -> None:
        n = matrix.shape[0]
        rule = "square, not empty"
        require(matrix.shape == (n, n) and 0 < n < 2**20, "matrix", matrix.shape, rule)
        require(least > 0, "least", least, "positive")
        self._key = matrix.tobytes(), n, scale, least
        self._factor = _factor(*self._key, 0)

    def sample(self, rows: int, *, rng: Words) -> NDArray[np.int64]:
        """Independent vectors, of shape (rows, n).

        Parameters
        ----------
        rows : number of vectors
        rng : words; the cells of all rows are drawn first, then, row by row, what undecided ones
            need
        """
        require(rows >= 1, "rows", rows, "at least 1")
        factor, n = self._factor, self._key[1]
        cells = _CELLS.sample((rows, n), rng=rng)
        known = cells * 2.0**-_CELL_BITS  # exact: a power of two, and fewer than 53 bits
        product = _times_transposed(known, factor.doubles)
        slack = math.sqrt(n) * 2.0 ** -(_CELL_BITS + 1)
        gamma = n * _UNIT_ROUNDOFF / (1 - n * _UNIT_ROUNDOFF)
        norms = np.sqrt(np.vecdot(known, known))
        bound = (factor.error * (norms + slack) + slack + gamma * norms) * _OUTWARDS
        nearest = np.rint(product)
        product -= nearest  # exact below 2⁵¹
        away = np.abs(product, out=product)
        outwards = factor.norms * _OUTWARDS
        # Nearly always one comparison decides all; a NaN is the largest.
        if away.max() < _room(bound.max() * outwards.max()) and np.abs(nearest).max() < _SMALL:
            return nearest.astype(np.int64)
        decided = (np.abs(nearest) < _SMALL) & (away < _room(bound[:, None] * outwards))
        drawn = np.where(decided, nearest, 0).astype(np.int64)
        for row in np.flatnonzero(~decided.all(axis=1)).tolist():
            open_ones = np.flatnonzero(~decided[row]).tolist()
            drawn[row, open_ones] = _settle(cells[row].tolist(), open_ones, self._key, rng)
        return drawn


def _times_transposed(known: NDArray[Any], lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows times the transpose of a lower triangular matrix, most of its zeros left out."""
    product = np.empty_like(known)
    for start in range(0, len(lower), _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        stop = columns.stop
        np.matmul(known[:, :stop], lower[columns, :stop].T, out=product[:, columns])
    return product


def _room(distance: Any) -> Any:
    """How far from its nearest integer a product may be that is off by so much."""
    return 0.5 - distance - _UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True, kw_only=True)
class _Factor:
    """L̂ with what is proven about it.

    Attributes
    ----------
    integers, bits : L̂·2^bits, lower triangular, exact, as rows of Python integers
    doubles : L̂ rounded to doubles; exactly L̂ at the first level
    norms : ‖ℓ_i‖, in doubles, within a relative 2⁻³⁰
    residual : D, rounded to doubles
    error : proven bound e on ‖F‖_F
    """

    integers: list[list[int]]
    bits: int
    doubles: NDArray[np.float64]
    norms: NDArray[np.float64]
    residual: NDArray[np.float64]
    error: float


@lru_cache(maxsize=6)
def _factor(entries: bytes, n: int, scale: Fraction, least: Fraction, level: int) -> _Factor:
    """Level 0 is a Cholesky factor in doubles; each further one is a Newton step from the last."""
    matrix = np.frombuffer(entries, dtype=np.int64).reshape(n, n)
    require(bool(np.array_equal(matrix, matrix.T)), "matrix", "given", "symmetric")
    if level == 0:
        try:
            start = np.linalg.cholesky(matrix * float(scale))
        except np.linalg.LinAlgError as error:
            raise NumericalError(f"no Cholesky factor in doubles: {error}") from None
        bits = 52 - math.frexp(float(np.abs(start).max()))[1]
        rounded = np.rint(np.ldexp(start, bits)).astype(np.int64).tolist()
        return _proven(matrix, scale, least, rounded, bits)
    last = _factor(entries, n, scale, least, level - 1)
    half = scipy.linalg.solve_triangular(last.doubles, last.residual, lower=True)
    change = scipy.linalg.solve_triangular(last.doubles, half.T, lower=True)
    change = np.tril(change) - np.diag(change.diagonal()) / 2
    bits = last.bits + _STEP_BITS
    correction = np.tril(last.doubles @ change)
    moved = [
        [(old << _STEP_BITS) + round(math.ldexp(new, bits)) for old, new in zip(*pair, strict=True)]
        for pair in zip(last.integers, correction.tolist(), strict=True)
    ]
    return _proven(matrix, scale, least, moved, bits)


def _proven(
    matrix: NDArray[np.int64],
    scale: Fraction,
    least: Fraction,
    integers: list[list[int]],
    bits: int,
) -> _Factor:
    """Bound F for a proposed L̂: nothing about how it was found is trusted."""
    n = matrix.shape[0]
    root = fmpz_mat(integers)
    excess = fmpz_mat(matrix.tolist()) * (scale.numerator << 2 * bits)
    excess -= root * root.transpose() * scale.denominator
    denominator = scale.denominator << 2 * bits
    residual = np.array([int(d) / denominator for d in excess.entries()]).reshape(n, n)
    # The last term is for entries that underflow, or whose squares do.
    size = float(np.linalg.norm(residual)) * _OUTWARDS + n * 2.0**-500
    room = math.nextafter(float(least), 0.0) - size
    error = size / room * _OUTWARDS if room > 0 else math.inf
    positive = all(row[index] > 0 for index, row in enumerate(integers))
    if not (error <= _LARGEST_ERROR and positive):
        raise NumericalError(
            f"the Cholesky factor has a relative residual of {error}: the covariance is nearly "
            "singular, or its smallest eigenvalue is below the stated one"
        )
    one = 1 << bits
    doubles = np.array([[value / one for value in row] for row in integers])
    return _Factor(
        integers=integers,
        bits=bits,
        doubles=doubles,
        norms=np.sqrt(np.vecdot(doubles, doubles)),
        residual=residual,
        error=error,
    )


def _settle(
    cells: list[int], coordinates: list[int], key: tuple[bytes, int, Fraction, Fraction], rng: Words
) -> list[int]:
    """round(y_i) for some coordinates of one row, from its cells and, if need be, more digits."""
    places, digits = [0] * len(cells), 0
    settled: dict[int, int] = {}
    for level in range(1, _MOST_LEVELS):
        factor = _factor(*key, level)
        bits = _CELL_BITS + digits + 8
        # L is lower triangular: once it costs something, only what the last one needs is refined.
        needed = max(coordinates) + 1 if digits else len(cells)
        for centres, radius in _points(cells[:needed], places[:needed], digits, bits):
            for index in coordinates:
                if index not in settled:
                    low, high = _ends(factor, index, centres, radius, bits)
                    if low == high:
                        settled[index] = low
            if len(settled) == len(coordinates):
                return [settled[index] for index in coordinates]
        words = rng.words(len(cells)).tolist()
        places = [(old << _WORD_BITS) | new for old, new in zip(places, words, strict=True)]
        digits += _WORD_BITS
    raise NumericalError(f"coordinates {coordinates} stay undecided after {digits} digits")


def _ends(
    factor: _Factor, index: int, centres: list[int], radius: int, bits: int
) -> tuple[int, int]:
    """Nearest integers to the two ends of what y_i may be, given g to `radius`·2^−bits.

    Coordinates of g behind the i-th may be left out.
    """
    row = factor.integers[index][: len(centres)]
    value = Fraction(
        sum(a * b for a, b in zip(row, centres, strict=True)), 1 << (factor.bits + bits)
    )
    slack = math.sqrt(len(centres)) * (radius / (1 << bits))
    norm = math.hypot(*(centre / (1 << bits) for centre in centres))
    distance = float(factor.norms[index]) * (factor.error * (norm + slack) + slack)
    bound = Fraction(distance * _OUTWARDS) + Fraction(1, 2**500)
    half = Fraction(1, 2)
    return math.floor(value - bound + half), math.floor(value + bound + half)


def _points(
    cells: list[int], places: list[int], digits: int, bits: int
) -> Iterator[tuple[list[int], int]]:
    """Fixed-point centres of every g_j, of `bits` bits, and the largest radius, in the same.

    Once without quantiles, and with digits a second time, closer.
    """
    if digits == 0:
        yield [cell << (bits - _CELL_BITS) for cell in cells], 1 << (bits - _CELL_BITS - 1)
        return
    yield _interpolated(cells, places, digits, bits)
    with ctx.workprec(bits + 96):  # some 50 of them are lost in differences
        ends = [
            _place(abs(cell), place, digits) * (1 << bits)
            for cell, place in zip(cells, places, strict=True)
        ]
        lows = [int(end.lower().floor().unique_fmpz()) for end in ends]
        highs = [int(end.upper().ceil().unique_fmpz()) for end in ends]
    centres = [(low + high) // 2 for low, high in zip(lows, highs, strict=True)]
    radius = max(high - centre for high, centre in zip(highs, centres, strict=True))
    yield _signed(centres, cells), radius


def _interpolated(
    cells: list[int], places: list[int], digits: int, bits: int
) -> tuple[list[int], int]:
    """The points x′ of the chords, within B(h²/8)·exp(Bh) and what the digits leave open."""
    half = 1 << (bits - _CELL_BITS - 1)
    digit = 1 << (bits - _CELL_BITS - digits)  # the last one, of h
    centres = [
        (2 * abs(cell) + 1) * half - place * digit - digit // 2
        for cell, place in zip(cells, places, strict=True)
    ]
    farthest = (2 * max(map(abs, cells)) + 1) * 2.0 ** -(_CELL_BITS + 1)
    curved = farthest * math.exp(farthest * 2.0**-_CELL_BITS) * _OUTWARDS
    radius = math.ceil(math.ldexp(curved, bits - 2 * _CELL_BITS - 3)) + digit // 2
    return _signed(centres, cells), radius


def _signed(sizes: list[int], cells: list[int]) -> list[int]:
    """On the side of 0 that each cell is on."""
    return [-size if cell < 0 else size for size, cell in zip(sizes, cells, strict=True)]


def _place(cell: int, place: int, digits: int) -> arb:
    """|g| in the cell |K|, where the place in its tail probability is known to `digits` bits."""
    outer, inner = (_tail(Fraction(2 * cell + side, 1 << (_CELL_BITS + 1))) for side in (1, -1))
    low, high = (outer + (inner - outer) * (place + end) / (1 << digits) for end in (0, 1))
    return _quantile(low.union(high))


def _tail(x: Fraction) -> arb:
    return (to_arb(x) / arb(2).sqrt()).erfc() / 2


def _quantile(p: arb) -> arb:
    return arb(2).sqrt() * (2 * p).erfcinv()
