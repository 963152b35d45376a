from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import hadamard

from dpverify.enclosure import squared
from dpverify.errors import ParameterError
from dpverify_mechanisms.projections import hadamard as module
from dpverify_mechanisms.projections.base import digest
from dpverify_mechanisms.projections.hadamard import FJLT, walsh_hadamard
from tests.helpers.loops import RUNNERS, By, run_loops


@given(st.integers(0, 7), st.integers(1, 5), st.sampled_from([1, 4, 32, 2**16]), st.data())
def test_transform_is_the_matrix_s_whatever_fits_the_cache(
    levels: int, width: int, cached: int, data: Any
) -> None:
    order = 1 << levels
    value = st.integers(-(2**40), 2**40)
    size = order * width
    values = data.draw(st.lists(value, min_size=size, max_size=size))
    columns = np.array(values, dtype=np.float64).reshape(order, width)
    expected = hadamard(order).astype(object) @ columns.astype(int).astype(object)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CACHED", cached)
        walsh_hadamard(columns)
    assert (columns.astype(int) == expected).all()


@pytest.mark.parametrize("by", RUNNERS)
@pytest.mark.parametrize("levels", range(8))
def test_two_levels_at_once_are_the_same_transform(
    monkeypatch: pytest.MonkeyPatch, levels: int, by: By
) -> None:
    columns = np.random.default_rng(levels).integers(-(2**40), 2**40, (1 << levels, 3))
    met = run_loops(monkeypatch, module, by)
    walsh_hadamard(transformed := columns.astype(np.float64))
    assert (transformed == hadamard(1 << levels) @ columns).all()
    assert met == [columns.size]


def test_transform_of_a_long_vector_is_its_own_inverse() -> None:
    columns = np.random.default_rng(0).integers(-99, 100, (2**17, 3)).astype(np.float64)
    transformed = columns.copy()
    walsh_hadamard(transformed)
    assert (transformed[0] == columns.sum(axis=0)).all()
    assert (transformed[2**16] == columns[: 2**16].sum(axis=0) - columns[2**16 :].sum(axis=0)).all()
    walsh_hadamard(transformed)
    assert (transformed == columns * 2**17).all()


def factors(projection: FJLT) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    flips, mixing = projection._realised
    return flips, mixing if isinstance(mixing, np.ndarray) else mixing.toarray()


@pytest.mark.parametrize("density", [Fraction(1), Fraction(1, 20)])
@pytest.mark.parametrize(("p", "k"), [(1, 3), (2, 1), (5, 3), (8, 4), (37, 6)])
def test_matrix_is_signs_transform_and_mixing(p: int, k: int, density: Fraction) -> None:
    projection = FJLT(p=p, k=k, seed=1, density=density)
    flips, mixing = factors(projection)
    order = mixing.shape[1]
    assert order // 2 < p <= order
    assert (projection.matrix == flips[:, None] * (hadamard(order)[:p] @ mixing.T)).all()


def test_mixing_has_the_density_and_the_variance() -> None:
    projection = FJLT(p=500, k=40, seed=1, density=Fraction(1, 4))
    flips, mixing = factors(projection)
    assert set(flips.tolist()) == {-1.0, 1.0}
    assert abs(flips.sum()) < 6 * 500**0.5
    count = mixing.size
    hits = np.count_nonzero(mixing)
    assert abs(hits - count / 4) < 6 * (count * 3 / 16) ** 0.5
    square = (mixing**2).sum() / hits / 2**20
    assert abs(square - 1) < 6 * (2 / hits) ** 0.5
    # And with the scale, rows have norm 1 in the mean: E‖row‖² = 1 with the stated variance.
    norms = float(squared(projection.scale)) * (projection.matrix**2).sum(axis=1)
    deviation = float(projection.diagonal_variance + 499 * projection.diagonal_covariance) / 500
    assert abs(norms.mean() - 1) < 6 * deviation**0.5


def test_a_full_density_leaves_no_zero_out() -> None:
    mixing = factors(FJLT(p=64, k=64, seed=1, density=Fraction(1)))[1]
    # A rounded normal of scale 1024 is 0 with probability 3.9e-4: 1.6 of 4,096 are.
    assert np.count_nonzero(mixing == 0) < 15


@pytest.mark.parametrize(("p", "k", "by_matrix"), [(37, 6, True), (300, 500, False)])
def test_the_product_is_the_same_by_either_way(p: int, k: int, by_matrix: bool) -> None:
    projection = FJLT(p=p, k=k, seed=1, density=Fraction(1, 100))
    assert projection._dense_is_faster is by_matrix
    records = np.random.default_rng(0).integers(-1024, 1025, (70, p)).astype(np.float64)
    product = projection.apply(records)
    assert (product == projection.apply(sparse.csr_array(records))).all()  # by the transform
    assert (product == records @ projection.matrix).all()
    assert (projection.apply(records.astype(np.float32)) == product).all()


def test_empty_mixing_is_no_error() -> None:
    """A density at which nothing is drawn: the sketch is 0, and the bounds still count the sums."""
    projection = FJLT(p=5, k=2, seed=1, density=Fraction(1, 2**60))
    assert not projection.apply(np.ones((3, 5))).any()
    assert projection.largest_sum(7) >= 35
    assert projection.row_norm(1) == 0
    assert projection.spectral_norm().upper == 0


@pytest.mark.parametrize("density", [Fraction(1), Fraction(1, 20)])
@pytest.mark.parametrize("p", [3, 16, 40])
def test_largest_sum_bounds_the_butterflies_and_the_product(p: int, density: Fraction) -> None:
    projection = FJLT(p=p, k=6, seed=1, density=density)
    flips, mixing = factors(projection)
    bound = projection.largest_sum(1)
    assert bound >= p
    spread = hadamard(mixing.shape[1])[:p] * flips[:, None]
    # Records that pile everything onto one value between the transform and the product.
    for record in np.sign(spread.T):
        assert (np.abs(record @ spread) @ np.abs(mixing).T).max() <= bound
    # It isn't huge: within the root of what a row of Q with equal entries would need.
    assert bound <= max(p, p * np.abs(mixing).sum(axis=1).max() * 2**0.5 + 1)


def test_digest_covers_the_signs_and_the_mixing() -> None:
    projection = FJLT(p=9, k=4, seed=5, density=Fraction(1, 2))
    flips, mixing = factors(projection)
    assert projection.sha256() == digest("fjlt 9 4", flips[None], mixing)
    before = projection.sha256()
    flips.flags.writeable = True  # against the rule, to see that it would be noticed
    flips[0] *= -1
    assert projection.sha256() != before


@pytest.mark.parametrize("density", [Fraction(0), Fraction(-1), Fraction(9, 8), float("nan")])
def test_a_density_outside_its_range_is_refused(density: Any) -> None:
    with pytest.raises(ParameterError, match="density="):
        FJLT(p=4, k=2, seed=0, density=density)
