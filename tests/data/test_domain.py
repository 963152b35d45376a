"""Domains see the values that stand for a record, however its array holds them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Ball, Box, Sets, Vectors, dense
from dpverify.errors import ParameterError, RecordsError
from dpverify_mechanisms.linear.sketch import LinearSketch

UNIT = Box(low=Fraction(-1), high=Fraction(1))
SPARSE = [
    sparse.bsr_array,
    sparse.coo_array,
    sparse.csc_array,
    sparse.csr_array,
    sparse.dia_array,
    sparse.dok_array,
    sparse.lil_array,
]


def in_parts(value: float, parts: int) -> sparse.csr_array:
    """One record whose first attribute is held in many entries."""
    columns = np.zeros(parts, dtype=np.int64)
    return sparse.csr_array((np.full(parts, value), columns, np.array([0, parts])), shape=(1, 3))


def test_entries_of_one_place_are_added_up_before_anything_is_decided() -> None:
    with pytest.raises(RecordsError, match=r"is 5\.0"):
        UNIT.admit(in_parts(1.0, 5))
    assert UNIT.admit(in_parts(0.125, 4)).toarray().tolist() == [[0.5, 0, 0]]
    with pytest.raises(RecordsError, match="item 0 is 2"):
        Sets().admit(in_parts(1.0, 2))
    with pytest.raises(RecordsError, match=r"norm 2\.0"):
        Ball(radius=Fraction(1)).admit(in_parts(0.5, 4))


BELOW, ABOVE = [0.6, 0.8 * (1 + 2.0**-25)], [0.6, 0.8 * (1 + 2.0**-20)]


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    "domain",
    [Box(low=-1, high=1, outside="clip"), Ball(radius=1, outside="clip")],
    ids=str,
)
def test_a_record_is_admitted_as_it_is_alone(domain: Vectors, kind: Callable[..., Any]) -> None:
    """Norms up to the limit of a ball, a little above its radius, and others beyond it."""
    rows = [[0.6, 0.2], BELOW, ABOVE, [0.0, 5.0], [-1e100, 3.0], [0.0, 0.0]]
    alone = [dense(domain.admit(kind([row]))) for row in rows]
    for number, row in enumerate(rows):
        for other in rows:
            both = dense(domain.admit(kind([row, other])))
            assert both[0].tolist() == alone[number][0].tolist()


def test_parts_are_not_rounded_one_by_one() -> None:
    """Half a step, a thousand times: each rounded for itself would be a thousand steps."""
    sketch = LinearSketch.raw_data_g_opt(
        p=3,
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        domain=UNIT,
        adjacency=Attribute(beta=Fraction(1)),
    )
    half = float(sketch.grid.step) / 2
    up, down = in_parts(half, 1000), in_parts(-half, 1000)
    none = sparse.csr_array(
        (
            np.concatenate([up.data, down.data]),
            np.zeros(2000, dtype=np.int64),
            np.array([0, 2000]),
        ),
        shape=(1, 3),
    )
    assert none.toarray().tolist() == [[0, 0, 0]]
    assert sketch.noiseless(none).tolist() == sketch.noiseless(np.zeros((1, 3))).tolist()


@pytest.mark.parametrize("domain", [UNIT, Ball(radius=Fraction(9)), Sets()])
def test_the_callers_array_stays_as_it_is(domain: Vectors) -> None:
    """Unsorted, with a zero, and read-only, as a memory map is."""
    x = sparse.csr_array(
        (np.array([1.0, 0.0, 1.0]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3)
    )
    for array in (x.data, x.indices, x.indptr):
        array.flags.writeable = False
    assert domain.admit(x).toarray().tolist() == [[1, 0, 1]]
    assert x.indices.tolist() == [2, 1, 0]
    assert x.indptr.tolist() == [0, 3]


def test_what_a_sparse_array_remembers_of_itself_is_not_trusted() -> None:
    """Looked at, and then changed in place, it still remembers that no place stands twice."""
    x = sparse.csr_array(np.ones((1, 3)))
    assert x.has_canonical_format
    x.indices[:] = 0
    with pytest.raises(RecordsError, match=r"attribute 0 is 3\.0, outside"):
        UNIT.admit(x)


@pytest.mark.parametrize("form", [np.array, *SPARSE])
def test_every_sparse_format_is_read(form: Any) -> None:
    assert dense(UNIT.admit(form(np.array([[0, 0.5, 1]])))).tolist() == [[0, 0.5, 1]]


@pytest.mark.parametrize("form", [np.array, *SPARSE])
def test_complex_numbers_are_refused(form: Any) -> None:
    with pytest.raises(RecordsError, match="complex"):
        UNIT.admit(form(np.array([[1j]])))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_huge_records_are_clipped_without_a_warning(form: Any) -> None:
    """Warnings go to the terminal, which may be logged, and tell of the records."""
    records = form([[1e200, -1e200], [3.0, 4.0]])
    clipped = dense(Ball(radius=1, outside="clip").admit(records))
    assert clipped == pytest.approx(np.array([[0, 0], [0.6, 0.8]]))


def test_what_is_below_a_mask_is_no_value() -> None:
    masked = np.ma.masked_equal([[0.25, 0.5]], 0.5)
    with pytest.raises(RecordsError, match="masked"):
        Box(0, 1).admit(masked)
    assert Box(0, 1).admit(masked[:, :1]).tolist() == [[0.25]]


@pytest.mark.parametrize("radius", [Fraction(1, 10**200), Fraction(10**400), Fraction(0)])
def test_radii_whose_squares_are_no_doubles(radius: Fraction) -> None:
    with pytest.raises(ParameterError, match="radius"):
        Ball(radius=radius)


def test_a_sparse_array_that_does_not_hold_together() -> None:
    x = sparse.csr_array((np.array([1.0]), np.array([0]), np.array([0, 1])), shape=(1, 3))
    x.indices[0] = 7
    with pytest.raises(RecordsError, match="holds together"):
        UNIT.admit(x)
