from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.errors import ParameterError, RecordsError

MATRICES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, 1.0, -1.0, 0.1]),
)


def naive(matrix: np.ndarray[Any, Any], norm: int) -> Fraction:
    return max(sum((abs(Fraction(x)) ** norm for x in row), Fraction(0)) for row in matrix.tolist())


@given(MATRICES)
def test_exact_for_any_doubles(matrix: np.ndarray[Any, Any]) -> None:
    for form in (matrix, sparse.csr_array(matrix)):
        assert largest_row_norm(form, 1) == naive(matrix, 1)
        assert largest_row_norm(form, 2).radicand == naive(matrix, 2)


def test_rows_that_doubles_cannot_tell_apart() -> None:
    """In doubles both rows have the same norm, and the first would be taken."""
    matrix = np.array([[1.0, 0.0], [1.0, 1e-9]])
    assert (matrix**2).sum(axis=1)[0] == (matrix**2).sum(axis=1)[1]
    assert largest_row_norm(matrix, 2).radicand == 1 + Fraction(1e-9) ** 2


@pytest.mark.parametrize("size", [1e308, 5e-324, 1e-200, 1e200])
def test_neither_overflow_nor_underflow(size: float) -> None:
    matrix = np.array([[size, size], [size, 0.0]])
    assert largest_row_norm(matrix, 1) == 2 * Fraction(size)
    assert largest_row_norm(matrix, 2).radicand == 2 * Fraction(size) ** 2


def test_integers_are_exact_or_refused() -> None:
    assert largest_row_norm(np.array([[2**53, -1]]), 1) == 2**53 + 1
    with pytest.raises(RecordsError, match="beyond 2"):
        largest_row_norm(np.array([[2**53 + 1, 0]]), 1)


@pytest.mark.parametrize(
    "entry",
    [1j, Fraction(1, 3), 2**70 + 1, "0.1", None, np.longdouble(1) + np.longdouble(2) ** -60],
)
def test_what_a_double_would_round_is_refused(entry: Any) -> None:
    """Downwards, say, and of a complex number to its real part, 0."""
    with pytest.raises(RecordsError, match="must hold doubles"):
        largest_row_norm(np.array([[entry, 0]]), 1)
    if isinstance(entry, complex):
        with pytest.raises(RecordsError, match="must hold doubles"):
            largest_row_norm(sparse.csr_array(np.array([[entry, 0]])), 1)


def test_what_a_double_holds_may_be_of_any_type() -> None:
    for entry in (Fraction(5, 4), np.float32(1.25), np.longdouble(1.25), 1.25 + 0j):
        assert largest_row_norm(np.array([[entry]]), 1) == Fraction(5, 4)


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros(3),
        [["a"]],
        [[1], [1, 2]],
        [[math.nan]],
        [[math.inf, 1.0]],
    ],
)
def test_what_is_no_projection_is_refused(matrix: Any) -> None:
    with pytest.raises(RecordsError, match="a projection"):
        largest_row_norm(matrix, 2)


def test_another_norm_is_refused() -> None:
    with pytest.raises(ParameterError, match="norm=3 must be 1 or 2"):
        largest_row_norm(np.eye(2), 3)  # type: ignore[call-overload]


def test_the_largest_norm_of_zero_rows_is_zero() -> None:
    assert largest_row_norm(np.zeros((2, 2)), 1) == 0
