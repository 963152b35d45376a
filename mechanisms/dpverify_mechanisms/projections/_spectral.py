"""Certified spectral norm of a matrix of whole numbers, the same on every machine.

Written for M with n rows and k ≤ n columns (else for its transpose), G = MᵀM, λ its largest
eigenvalue, u = 2⁻⁵³, γ_n = nu/(1 − nu). Eigenvalues in doubles have last digits that depend on the
processor. So λ is enclosed by neighbours on a grid that follows from M alone: odd multiples of 2ˢ,
the largest power of two that is at most 2⁻²⁰·tr G/k, hence at most 2⁻²⁰λ. On which side of a grid
point c λ lies is proven, in doubles where they suffice, else exactly: the answer never depends on
the way. Where 2ˢ < 1, c isn't whole, so that no eigenvalue of G is on the grid.

1. Ĝ is G in doubles, from products of halves of the digits that are exact. At most four roundings
   of terms whose absolute values sum to at most |M|ᵀ|M| put it off by ‖Ĝ − G‖₂ ≤ γ₄·tr G.
2. λ ≤ c if Cholesky's method ends for A, which is cI − Ĝ with m = 2γ_{k+12}·kc taken off the
   diagonal. Its result R has RᵀR = A + E with |E| ≤ γ_{k+2}|R|ᵀ|R| in any order of operations,
   pivots inverted before they multiply included (Higham 2002, Accuracy and Stability of Numerical
   Algorithms, 2nd edition, theorem 10.3), and ‖ |R|ᵀ|R| ‖₂ ≤ tr RᵀR ≤ tr A/(1 − γ_{k+2}). So
   A ≥ −γ_{k+2}/(1 − γ_{k+2})·tr A, where tr A ≤ kc, and m covers that, 1, and the rounded diagonal.
3. λ > c if the Rayleigh quotient of any vector is above c + m: were λ ≤ c, then ‖ |G| ‖₂ ≤ tr G
   ≤ kc, and the quotient, two products of length k and a division, were at most λ + m.
4. Else all eigenvalues of G − cI, which are real, are at most 0 exactly if its characteristic
   polynomial has no negative coefficient (Descartes). That takes seconds at k = 256 and its time
   rises with about k⁴; it is needed where λ is within m of the grid: one time in 10⁴ at k = 256.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.data.domain import dense
from dpverify.enclosure import Enclosure, SquareRoot
from dpverify.errors import NumericalError

__all__ = ["root", "squared_spectral_norm"]

_FINE = 2**20


def squared_spectral_norm(matrix: Any) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of ‖M‖₂², at most 2⁻¹⁹ apart relatively: no digit rests on rounding.

    Parameters
    ----------
    matrix : (n, k) whole numbers below 2⁵³ as doubles, an ndarray or a scipy sparse array

    Raises
    ------
    NumericalError
        If n times the largest entry is beyond 2⁴⁹.
    """
    gram = _Gram(matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T)
    if gram.trace == 0:
        return Fraction(0), Fraction(0)
    unit = _power_of_two_below(Fraction(gram.trace, gram.size * _FINE))
    upper = (2 * math.ceil((gram.estimate / unit - 1) / 2) + 1) * unit
    while not gram.at_most(upper):
        upper += 2 * unit
    while gram.at_most(upper - 2 * unit):
        upper -= 2 * unit
    return upper - 2 * unit, upper


def root(bounds: tuple[Fraction, Fraction]) -> Enclosure:
    """Enclosure of the root of a number between two bounds."""
    lower, upper = (Enclosure.of_exact(SquareRoot(bound)) for bound in bounds)
    return Enclosure(lower.lower, upper.upper)


class _Gram:
    """G = MᵀM, exactly as a sum of weighted parts and rounded to doubles.

    Attributes
    ----------
    size : int, k
    trace : int, exact
    estimate : largest eigenvalue as computed: a Rayleigh quotient
    """

    def __init__(self, matrix: Any) -> None:
        self._parts = _parts(matrix)
        self._rounded: NDArray[np.float64] = np.sum([part * w for part, w in self._parts], axis=0)
        self.size = len(self._rounded)
        self.trace = sum(sum(map(int, part.diagonal())) * weight for part, weight in self._parts)
        last = self.size - 1
        vector = scipy.linalg.eigh(self._rounded, subset_by_index=[last, last])[1][:, 0]
        quotient = (vector @ (self._rounded @ vector)) / (vector @ vector)
        self.estimate = Fraction(float(quotient))

    def at_most(self, bound: Fraction) -> bool:
        """Whether λ ≤ bound > 0, with proof either way."""
        unit = Fraction(self.size + 12, 2**53)
        margin = 2 * unit / (1 - unit) * self.size * bound
        if self.estimate > bound + margin:
            return False
        shifted = -self._rounded
        shifted[np.diag_indices(self.size)] += float(bound - margin)
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return self._exactly_at_most(bound)
        return True

    def _exactly_at_most(self, bound: Fraction) -> bool:
        whole = [part.astype(np.int64).astype(object) * weight for part, weight in self._parts]
        shifted = np.sum(whole, axis=0) * bound.denominator
        shifted[np.diag_indices(self.size)] -= bound.numerator
        polynomial = flint.fmpz_mat(shifted.tolist()).charpoly()
        return all(coefficient >= 0 for coefficient in polynomial.coeffs())


def _parts(matrix: Any) -> list[tuple[NDArray[np.float64], int]]:
    """MᵀM as a sum of matrices of exact whole numbers times weights."""
    rows, largest = matrix.shape[0], int(abs(matrix).max())
    if rows * largest**2 < 2**53:
        return [(dense(matrix.T @ matrix), 1)]
    half = -(-largest.bit_length() // 2)
    if not rows * 4**half < 2**52:
        raise NumericalError(f"sums of {rows} squares of numbers up to {largest} are not exact")
    high = (matrix / 2**half).astype(np.int64).astype(np.float64)  # towards 0: no larger in size
    low = matrix - high * 2**half
    crossed = dense(high.T @ low)
    return [
        (dense(high.T @ high), 4**half),
        (crossed + crossed.T, 2**half),
        (dense(low.T @ low), 1),
    ]


def _power_of_two_below(number: Fraction) -> Fraction:
    """Largest power of two that is at most a number > 0."""
    power = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length())
    return power if power <= number else power / 2
