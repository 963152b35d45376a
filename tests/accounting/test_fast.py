"""The double path stays within 1e-13 of the certified one, which it is no substitute for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting import delta_gaussian, sigma_gaussian
from dpverify.accounting.fast import delta_gaussian_array
from dpverify.errors import ParameterError
from tests.helpers.profiles import examples

MOST = 1e-13
log_epsilon = st.floats(-8, 4)


def error(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """Relative distance from the enclosure."""
    proven = delta_gaussian(epsilon, sigma, sensitivity=sensitivity)
    value = float(delta_gaussian_array(epsilon, sigma, sensitivity=sensitivity))
    outside = max(proven.lower - value, value - proven.upper, 0.0)
    return outside / max(proven.lower, 1e-300)


@examples(300)
@given(log_epsilon, st.floats(-4, 8), st.floats(-3, 3))
def test_the_error_is_small_anywhere(
    log_eps: float, log_sigma: float, log_sensitivity: float
) -> None:
    assert error(10**log_eps, 10**log_sigma, 10**log_sensitivity) <= MOST


@examples(300)
@given(log_epsilon, st.floats(-299, -0.4))
def test_at_a_delta_that_is_neither_0_nor_1(log_eps: float, log_delta: float) -> None:
    sigma = sigma_gaussian(10**log_eps, 10**log_delta).upper
    assert error(10**log_eps, sigma) <= MOST


def test_the_textbook_formula_fails_this_test() -> None:
    """Φ(a) − e^ε Φ(b) in doubles loses every digit where they nearly agree."""
    eps, sigma = 1e-5, 1e5
    a, b = 0.5 / sigma - eps * sigma, -0.5 / sigma - eps * sigma
    textbook = math.erfc(-a / math.sqrt(2)) / 2 - math.exp(eps) * math.erfc(-b / math.sqrt(2)) / 2
    proven = delta_gaussian(eps, sigma)
    assert abs(textbook - proven.lower) > 1e-12 * proven.lower
    assert error(eps, sigma) <= MOST


def test_arrays_broadcast() -> None:
    table = delta_gaussian_array([[0.5], [1.0]], [1.0, 2.0, 4.0])
    assert table.shape == (2, 3)
    assert np.all(np.diff(table, axis=0) < 0)
    assert np.all(np.diff(table, axis=1) < 0)
    assert table[1, 2] == float(delta_gaussian_array(1.0, 4.0))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"epsilon": [1.0, -1.0]}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"sigma": 0.0}, "sigma"),
        ({"sensitivity": [math.nan]}, "sensitivity"),
    ],
)
def test_values_outside_their_domain(values: dict[str, object], name: str) -> None:
    good: dict[str, object] = {"epsilon": 1.0, "sigma": 1.0, "sensitivity": 1.0}
    with pytest.raises(ParameterError, match=name):
        delta_gaussian_array(**good | values)  # type: ignore[arg-type]
