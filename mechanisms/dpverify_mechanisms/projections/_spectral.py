"""Certified spectral norm of a matrix of whole numbers.

Written for M with n rows and k ≤ n columns (else for its transpose), u = 2⁻⁵³, γ_n = nu/(1 − nu).
A dot product of length n in doubles, in any order of summation and fused or not, is off by at most
γ_n times the sum of its absolute terms.

1. Ĝ is MᵀM in doubles, made symmetric by its lower triangle. Entry by entry it is off by at most
   γ_n |M|ᵀ|M|, hence ‖Ĝ − MᵀM‖₂ ≤ η = γ_n‖M‖²_F; and by nothing at all if n·max|M|² < 2⁵³.
2. Let V be any square matrix with λ_min(VᵀV) ≥ 1 − ρ > 0, and U ≥ 0 an upper bound of λ_max(VᵀĜV).
   Every x is Vy, and xᵀĜx ≤ U‖y‖² ≤ U‖x‖²/(1 − ρ): so λ_max(MᵀM) ≤ U/(1 − ρ) + η.
3. With approximate eigenvectors for V, both matrices are almost diagonal, and Gershgorin's circles
   give U and ρ: computed entries, plus at most 3γ_k |V|ᵀ|Ĝ||V| and γ_k |V|ᵀ|V| for the round-off.
4. The Rayleigh quotient of a column of V gives the lower end in the same way.

Entries of V below 2⁻⁶⁰ are set to 0 first, which V is free to have: nothing underflows. Error
terms are themselves computed in doubles, with relative errors below 2⁻³⁰ that a factor covers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.domain import dense
from dpverify.enclosure import Enclosure, SquareRoot
from dpverify.errors import NumericalError

__all__ = ["root", "squared_spectral_norm"]

_COVER = 1 + 2.0**-29
_LARGEST = 2**20  # columns, for which the covered errors stay below 2⁻³⁰


def squared_spectral_norm(matrix: Any) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of ‖M‖₂², about k·10⁻¹⁵ apart relatively.

    Parameters
    ----------
    matrix : (n, k) whole numbers below 2⁵³ as doubles, an ndarray or a scipy sparse array

    Raises
    ------
    NumericalError
        If the approximate eigenvectors are too far from orthogonal, or both sizes exceed 2²⁰.
    """
    gram, gram_error = _gram(matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T)
    size = len(gram)
    if size > _LARGEST:
        raise NumericalError(f"a Gram matrix of {size} columns is beyond 2**20")
    vectors = np.linalg.eigh(gram)[1]
    vectors[np.abs(vectors) < 2.0**-60] = 0.0
    magnitudes = np.abs(vectors)
    ones = magnitudes.sum(axis=1)

    rotated = vectors.T @ (gram @ vectors)
    error = 3 * _gamma(size) * _COVER * (magnitudes.T @ (np.abs(gram) @ ones))
    diagonal = rotated.diagonal().copy()
    np.fill_diagonal(rotated, 0.0)
    radius = _COVER * np.abs(rotated).sum(axis=1) + error

    overlap = vectors.T @ vectors - np.eye(size)
    rho = Fraction(
        float((_COVER * (np.abs(overlap).sum(axis=1) + _gamma(size) * magnitudes.T @ ones)).max())
    )
    if not rho < Fraction(1, 2):
        raise NumericalError("the approximate eigenvectors are not orthogonal")
    upper = max(_sum(d, r) for d, r in zip(diagonal, radius, strict=True))
    lower = max(_sum(d, -e) for d, e in zip(diagonal, error, strict=True))
    return (
        max(max(lower, Fraction(0)) / (1 + rho) - gram_error, Fraction(0)),
        max(upper, Fraction(0)) / (1 - rho) + gram_error,
    )


def root(bounds: tuple[Fraction, Fraction]) -> Enclosure:
    """Enclosure of the root of a number between two bounds."""
    lower, upper = (Enclosure.of_exact(SquareRoot(bound)) for bound in bounds)
    return Enclosure(lower.lower, upper.upper)


def _gram(matrix: Any) -> tuple[NDArray[np.float64], Fraction]:
    """MᵀM in doubles, symmetric, and a bound of its error in the spectral norm."""
    gram = dense(matrix.T @ matrix)
    gram = np.tril(gram) + np.tril(gram, -1).T
    rows, largest = matrix.shape[0], int(abs(matrix).max())
    if rows * largest**2 < 2**53:
        return gram, Fraction(0)
    frobenius = Fraction(float(gram.trace() * _COVER))
    return gram, Fraction(_gamma(rows) * _COVER) * frobenius


def _gamma(length: int) -> float:
    """γ_n, by a factor of 1 + 2⁻²⁰ or so too large."""
    unit = length * 2.0**-53
    return unit / (1 - unit) * (1 + 2.0**-20)


def _sum(centre: float, radius: float) -> Fraction:
    return Fraction(float(centre)) + Fraction(float(radius))
