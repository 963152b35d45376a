"""Sensitivity of a linear map that has been realised: the largest norm of a row of P.

One attribute that moves by β moves x·P by β times a row, so the ℓq-sensitivity for β-adjacency is
β·max‖row‖_q: Kenthapadi et al. 2013, definition 2; Li and Li 2023, equations 7 and 8. For a matrix
of doubles (or integers) it is computed exactly: ℓ1 as a rational, ℓ2 as the root of a rational.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import scipy
from numpy.exceptions import ComplexWarning
from numpy.typing import NDArray

from dpverify.data.domain import is_sparse
from dpverify.enclosure import Exact, SquareRoot
from dpverify.errors import ParameterError, RecordsError

__all__ = ["largest_row_norm"]

Matrix: TypeAlias = "NDArray[Any] | scipy.sparse.sparray"


@overload
def largest_row_norm(matrix: Matrix, norm: Literal[1]) -> Fraction: ...
@overload
def largest_row_norm(matrix: Matrix, norm: Literal[2]) -> SquareRoot: ...
def largest_row_norm(matrix: Matrix, norm: Literal[1, 2]) -> Exact:
    """Largest ℓ1 or ℓ2 norm of a row, exactly.

    Parameters
    ----------
    matrix : (p, k) array of numbers, dense or sparse; a double stands for its exact value
    norm : 1 or 2

    Returns
    -------
    Fraction for ℓ1, SquareRoot of a Fraction for ℓ2.

    Raises
    ------
    RecordsError
        If the matrix is empty, not two-dimensional, or holds NaN, infinities or what is no double.
    ParameterError
        If the norm is neither 1 nor 2.

    Notes
    -----
    The norms are first computed in doubles, of which a sum of k terms is off by less than
    (k + 2)·2⁻⁵³ relatively; the rows within twice that of the largest are compared as rationals.
    """
    if norm not in (1, 2):
        raise ParameterError("norm", norm, "1 or 2")
    rows = _checked(matrix)
    largest = abs(rows).max()
    if largest == 0:
        return Fraction(0) if norm == 1 else SquareRoot(Fraction(0))
    # By a power of two in two halves, each of them a double: exact, and squares can't overflow.
    half = 2.0 ** -(int(np.frexp(largest)[1]) // 2)
    scaled = abs(rows) * half * half
    sizes = np.asarray((scaled**norm).sum(axis=1)).ravel()
    slack = 4 * (rows.shape[1] + 2) * 2.0**-53
    candidates = np.flatnonzero(sizes >= sizes.max() * (1 - slack))
    best = Fraction(0)
    for row in _distinct(rows, candidates):
        best = max(best, _exact_power_sum(row, norm))
    return best if norm == 1 else SquareRoot(best)


def _checked(matrix: Any) -> Any:
    sparse = is_sparse(matrix)
    try:
        given: Any = scipy.sparse.csr_array(matrix) if sparse else np.asarray(matrix)
        with warnings.catch_warnings(action="ignore", category=ComplexWarning):
            rows = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise RecordsError(f"a projection must hold numbers: {error}.") from None
    held, values = (given.data, rows.data) if sparse else (given, rows)
    if held.dtype.kind not in "biuf" or held.dtype.itemsize > values.dtype.itemsize:
        lost = np.count_nonzero(values != held)
        if lost:
            raise RecordsError(f"a projection must hold doubles, and {lost} of its values aren't.")
    if rows.ndim != 2 or 0 in rows.shape:
        raise RecordsError(f"a projection of shape {rows.shape} must be a matrix that isn't empty.")
    if held.dtype.kind in "iu" and held.size and _reach(held) > 2**53:
        raise RecordsError("a projection of integers beyond 2**53 doesn't fit into exact doubles.")
    if not np.isfinite(values).all():
        raise RecordsError("a projection must hold finite numbers, and this one doesn't.")
    return rows


def _reach(integers: NDArray[Any]) -> int:
    return max(int(integers.max()), -int(integers.min()))


def _distinct(rows: Any, candidates: NDArray[np.intp]) -> list[NDArray[np.float64]]:
    """Candidate rows as sorted magnitudes, each of them once: many projections have few."""
    seen: dict[bytes, NDArray[np.float64]] = {}
    for index in candidates.tolist():
        row = rows[[index]].data if is_sparse(rows) else rows[index]
        sizes = np.sort(np.abs(row[row != 0]))
        seen.setdefault(sizes.tobytes(), sizes)
    return list(seen.values())


def _exact_power_sum(row: NDArray[np.float64], norm: int) -> Fraction:
    values, counts = np.unique(row, return_counts=True)
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    return sum((count * Fraction(value) ** norm for value, count in pairs), Fraction(0))
