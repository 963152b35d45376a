from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import nmod_poly
from hypothesis import given
from hypothesis import strategies as st

from dpverify.enclosure import squared
from dpverify.errors import ParameterError
from dpverify_mechanisms.projections.sjlt import SJLT, BinaryField, DKSProjection, PolynomialHash
from tests.helpers.projection_oracle import times

FIELD = SJLT.base
UNTYPED: Any = SJLT
ELEMENTS = st.integers(0, 2**32 - 1)
SMALL = BinaryField(bits=11, modulus=0b1000_0000_0101)


@pytest.mark.parametrize("field", [FIELD, SMALL])
def test_modulus_is_irreducible(field: BinaryField) -> None:
    bits = [field.modulus >> place & 1 for place in range(field.bits + 1)]
    assert bits[-1] == 1
    factors = nmod_poly(bits, 2).factor()[1]
    assert [multiplicity for _, multiplicity in factors] == [1]


@given(ELEMENTS, ELEMENTS)
def test_products_are_those_of_long_division(a: int, b: int) -> None:
    assert int(FIELD.multiply(a, b)) == times(a, b, FIELD.bits, FIELD.modulus)
    a, b = a % 2**11, b % 2**11
    assert int(SMALL.multiply(a, b)) == times(a, b, SMALL.bits, SMALL.modulus)


@given(
    st.sampled_from([FIELD, SMALL]),
    st.integers(1, 3),
    st.integers(2, 6),
    st.data(),
)
def test_hash_is_the_polynomial(field: BinaryField, count: int, t: int, data: Any) -> None:
    element = st.integers(0, 2**field.bits - 1)
    coefficients = data.draw(
        st.lists(st.lists(element, min_size=t, max_size=t), min_size=count, max_size=count)
    )
    points = data.draw(st.lists(element, max_size=4))
    hashed = PolynomialHash(field, np.array(coefficients, dtype=np.uint64))
    expected = []
    for polynomial in coefficients:
        values = []
        for point in points:
            value = 0
            for coefficient in reversed(polynomial):
                value = times(value, point, field.bits, field.modulus) ^ coefficient
            values.append(value)
        expected.append(values)
    assert hashed(np.array(points, dtype=np.uint64)).tolist() == expected


@pytest.mark.parametrize("hashing", ["independent", 4])
def test_blocks_hold_one_entry_each(hashing: Any) -> None:
    projection = SJLT(p=50, k=24, sparsity=3, hashing=hashing, seed=0)
    blocks = projection.matrix.toarray().reshape(50, 3, 8)
    assert (np.abs(blocks).sum(axis=2) == 1).all()
    assert set(np.unique(blocks)) == {-1.0, 0.0, 1.0}
    assert projection.row_norm(1) == squared(projection.row_norm(2)) == 3


@pytest.mark.parametrize(("k", "s"), [(10, 3), (10, 10), (7, 1), (300, 4)])
def test_graph_rows_have_distinct_columns(k: int, s: int) -> None:
    projection = SJLT(p=50, k=k, sparsity=s, construction="graph", seed=0)
    assert (np.abs(projection.matrix.toarray()).sum(axis=1) == s).all()
    assert projection.matrix.nnz == 50 * s
    assert abs(projection.matrix.toarray()).max() == 1


def test_hashed_rows_need_no_matrix() -> None:
    """Four billion attributes: nothing of their number is stored."""
    projection = SJLT(p=2**32, k=512, sparsity=8, hashing=4, seed=1)
    sketch = np.zeros(512, dtype=np.int64)
    for attribute, steps in ((2**32 - 1, 5), (12345, -2), (2**32 - 1, -5), (12345, 2)):
        projection.update(sketch, attribute, steps)
        assert np.count_nonzero(sketch) >= (0 if steps == 2 else 6)
    assert not sketch.any()


def test_hashed_rows_are_spread_evenly() -> None:
    """Chi-squared of 8,000 places and signs over 2·16 cells of one block, level 1e-6."""
    projection = SJLT(p=8000, k=16, sparsity=1, hashing=4, seed=7)
    matrix = projection.matrix
    counts = np.bincount(matrix.indices * 2 + (matrix.data > 0), minlength=32)
    assert ((counts - 250) ** 2 / 250).sum() < 83.7


def test_copies_add_and_cancel() -> None:
    projection = DKSProjection(p=400, k=2, copies=3, seed=0)
    matrix = projection.matrix
    assert matrix.has_canonical_format
    assert (matrix.data != 0).all()
    sizes = np.abs(matrix.toarray()).sum(axis=1)
    assert set(sizes.tolist()) == {1.0, 3.0}
    assert projection.row_norm(1) == 3


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (partial(SJLT, k=4, sparsity=0), "sparsity=0 must be from 1 to k=4"),
        (partial(SJLT, k=4, sparsity=5), "sparsity=5 must be from 1 to k=4"),
        (partial(SJLT, k=4, sparsity=3), "sparsity=3 must be a divisor of k=4"),
        (partial(UNTYPED, k=4, sparsity=2, construction="rows"), "construction=rows must be"),
        (partial(SJLT, k=4, sparsity=2, hashing=3), "hashing=3 must be .* at least 4"),
        (partial(UNTYPED, k=4, sparsity=2, hashing="md5"), "hashing=md5 must be"),
        (partial(SJLT, k=12, sparsity=2, hashing=4), "k=12 must be sparsity=2 times a power"),
        (
            partial(SJLT, k=4, sparsity=2, hashing=4, construction="graph"),
            "construction=graph must be block for polynomial hashing",
        ),
        (partial(SJLT, p=2**32 + 1, k=4, sparsity=2, hashing=4), "p=4294967297 must be at most"),
        (partial(DKSProjection, k=4, copies=0), "copies=0 must be at least 1"),
    ],
)
def test_parameters_that_make_no_transform_are_refused(kind: partial[Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(**({"p": 9, "seed": 0} | kind.keywords))
