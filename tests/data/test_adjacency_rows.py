"""Neighbours by rows that come, go, are replaced or change places."""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import L2, AddRemove, Adjacency, LInf, Permutation, Replace
from dpverify.data.grid import Grid
from dpverify.data.rows import row_key
from dpverify.errors import ParameterError

ANN, BOB = {"name": "Ann", "age": 41}, {"name": "Bob", "age": 7}
OLDER = {"name": "Ann", "age": 42}
OWN = {"user": "name"}

CASES: list[tuple[Adjacency, Any, Any, bool]] = [
    (AddRemove(), [ANN], [], True),
    (AddRemove(), [ANN, BOB], [BOB], True),
    (AddRemove(), [ANN, BOB], [BOB, ANN], False),  # what stays keeps its order
    (AddRemove(), [ANN], [OLDER], False),
    (AddRemove(k=2), [ANN], [OLDER], True),
    (AddRemove(k=2), [ANN, BOB, ANN, BOB], [BOB, BOB], True),
    (AddRemove(k=1), [ANN, BOB, ANN, BOB], [BOB, BOB], False),
    (AddRemove(**OWN), [ANN, BOB, OLDER], [BOB], True),
    (AddRemove(**OWN), [ANN, BOB, OLDER], [ANN, BOB], False),  # some of her rows
    (AddRemove(**OWN), [ANN], [BOB], False),
    (AddRemove(k=2, **OWN), [ANN], [BOB], True),
    (AddRemove(k=2, **OWN), [ANN, BOB], [BOB, ANN], False),
    (Replace(), [ANN, BOB], [OLDER, BOB], True),
    (Replace(), [ANN, BOB], [BOB, ANN], False),
    (Replace(k=2), [ANN, BOB], [BOB, ANN], True),
    (Replace(), [ANN], [], False),
    (Replace(**OWN), [ANN, BOB, OLDER], [OLDER, BOB], True),
    (Replace(**OWN), [ANN, BOB, OLDER], [BOB, {"name": "Eve", "age": 1}], True),
    (Replace(**OWN), [ANN, BOB], [BOB, BOB], False),  # one user less
    (Replace(**OWN), [ANN, BOB], [OLDER, {"name": "Bob", "age": 8}], False),
    (Permutation(), [ANN, BOB], [BOB, ANN], True),
    (Permutation(), [ANN, BOB], [ANN, ANN], False),
    (AddRemove(), np.eye(3), np.eye(3)[1:], True),
    (AddRemove(), np.array([3.0, 5.0]), np.array([3.0]), True),
    (AddRemove(), [3, 5], [5], True),
    (AddRemove(), sparse.csr_array(np.eye(2)), np.eye(2)[:1], True),
    (AddRemove(), np.zeros((1, 2)), np.zeros((0, 2)), True),
    (Replace(), np.array([[0.0]]), np.array([[-0.0]]), True),
    (Permutation(), np.array([0.0, 1.0]), np.array([1.0, -0.0]), False),
    (Permutation(), [float("nan"), 1.0], [1.0, float("nan")], True),
    (LInf(1), np.array([3, 5]), np.array([4, 4]), True),
    (LInf(1), [[3.0, 5.0]], [[4.5, 5.0]], False),
    (L2(5), [0.0, 0.0], [3.0, 4.0], True),
    (L2("4.999"), [0.0, 0.0], [3.0, 4.0], False),
    (LInf(1), [2**60], [2**60 + 1], True),
    (LInf(1), [2**60], [2**60 + 2], False),  # one double
    (LInf(1), np.array([2**63], "u8"), np.array([2**63 + 2], "u8"), False),
    (LInf(1), np.array([2**80], object), np.array([2**80 + 2], object), False),
    (LInf(Fraction(1, 3)), np.array([0], object), np.array([Fraction(1, 3)]), True),
    (L2(1), [2**60, 0], [2**60 + 2, 0], False),
]


@pytest.mark.parametrize(("adjacency", "data", "neighbour", "related"), CASES, ids=str)
def test_who_is_related(adjacency: Adjacency, data: Any, neighbour: Any, related: bool) -> None:
    assert adjacency.relates(data, neighbour) is related
    assert adjacency.relates(neighbour, data) is related
    assert adjacency.relates(data, data)


def naive(first: list[int], second: list[int]) -> int:
    """Edits without replacements, by the textbook's table."""
    table = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            steps = min(table[i, j + 1], table[i + 1, j]) + 1
            table[i + 1, j + 1] = min(steps, table[i, j]) if a == b else steps
    return int(table[-1, -1])


few = st.lists(st.integers(0, 2), max_size=6)


@given(first=few, second=few, k=st.integers(1, 4))
def test_relations_by_their_definitions(first: list[int], second: list[int], k: int) -> None:
    assert AddRemove(k=k).relates(first, second) is (naive(first, second) <= k)
    same = len(first) == len(second)
    differ = sum(a != b for a, b in zip(first, second, strict=False))
    assert Replace(k=k).relates(first, second) is (same and differ <= k)
    assert Permutation().relates(first, second) is (Counter(first) == Counter(second))


def test_data_frames_are_rows() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for made in (pandas.DataFrame, pyarrow.Table.from_pylist):
        assert AddRemove().relates(made([ANN, BOB]), made([BOB]))
        assert not AddRemove().relates(made([ANN, BOB]), made([OLDER]))
        assert Replace().relates(made([ANN, BOB]), [OLDER, BOB])


def test_the_index_of_pandas_counts_unless_it_is_numbers_without_a_name() -> None:
    pandas = pytest.importorskip("pandas")
    several = pandas.MultiIndex.from_tuples([("Ann", 1), ("Bob", 2), ("Eve", 3)])
    days = pandas.date_range("2020", periods=3)
    named = pandas.Index([7, 8, 9], name="whose")
    for index in (several, days, named, pandas.Index(["x", "y", "z"])):
        frame = pandas.DataFrame({"age": [41, 41, 41]}, index=index)
        assert AddRemove().relates(frame[:2], frame[:1])
        assert not Replace().relates(frame[:2], frame[1:])
        assert not AddRemove().relates(frame[:2], frame[2:])
        assert AddRemove().relates(frame[:1], frame[:0])
    assert AddRemove(user="whose").relates(frame.set_index(named), frame.set_index(named)[1:])
    for index in ([5, 3, 4], range(1, 4)):
        frame = pandas.DataFrame({"age": [41, 7, 8]}, index=index)
        assert AddRemove().relates(frame, frame[1:].reset_index(drop=True))
    with pytest.raises(ParameterError, match="a frame with 2 columns 'whose' must be"):
        AddRemove().relates(pandas.DataFrame({"whose": [1, 2, 3]}, index=named), [])


def test_what_differs_has_another_key() -> None:
    values: list[Any] = [0, -0.0, 1, 0.5, float("nan"), float("inf"), None, "1", b"1", "nan"]
    values += [date(2020, 1, 1), date(2020, 1, 2), "2020-01-01", (1,), (1, 1), {"a": 1}, {"a": 2}]
    assert len({row_key(value) for value in values}) == len(values)
    assert row_key(np.float32(0.5)) == row_key(0.5)
    assert row_key([1, {"a": np.int8(1)}]) == row_key((1, {"a": 1.0}))


def test_what_has_no_rows_is_refused() -> None:
    with pytest.raises(ParameterError, match="data set=str must be a list of rows"):
        AddRemove().relates("Ann", "Bob")
    with pytest.raises(ParameterError, match=r"user=name must be a column of every row"):
        AddRemove(user="name").relates([{"age": 3}], [])
    with pytest.raises(ParameterError, match="k=0 must be at least 1"):
        Replace(k=0)
    with pytest.raises(ParameterError, match=r"neighbour=.* AddRemove and Replace relate other"):
        LInf(1).relates([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("adjacency", "unit"),
    [
        (AddRemove(), "one row, added or removed"),
        (AddRemove(k=3), "at most 3 rows, added or removed"),
        (Replace(user="name"), "all rows of one user (column 'name'), replaced by any other"),
        (AddRemove(2, "id"), "all rows of at most 2 users (column 'id'), added or removed"),
        (Permutation(), "the order of the rows"),
        (LInf("0.5"), "the answers of all queries, each changed by at most 0.5"),
        (L2(2), "the answers of all queries, moved by at most 2 in l2"),
    ],
)
def test_units_in_words(adjacency: Adjacency, unit: str) -> None:
    assert adjacency.unit == unit


def test_a_curve_has_any_adjacency_and_a_release_of_ours_has_not() -> None:
    assert ApproxDP(epsilon=1, adjacency=AddRemove()).adjacency == AddRemove()
    with pytest.raises(ParameterError, match="Guarantees for different neighbours don't add up"):
        ApproxDP(epsilon=1, adjacency=AddRemove()) + ApproxDP(epsilon=1, adjacency=Replace())
    with pytest.raises(
        ParameterError, match="the number of rows is public; for rows that are added"
    ):
        Grid.dividing(Fraction(1), steps=1).bound(AddRemove())
