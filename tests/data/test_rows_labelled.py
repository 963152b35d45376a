"""Data sets of rows with labels, as models of scikit-learn's style take them."""

from __future__ import annotations

import numpy as np

from dpverify.auditing.pair_text import pair_lines
from dpverify.data.adjacency import AddRemove, Replace
from dpverify.data.rows import rows_of
from dpverify.privacy import Pair

X = np.array([[0.1], [0.9], [0.5]])
LABELS = np.array([0, 0, 1])


def test_a_row_is_one_of_both() -> None:
    assert [(x.tolist(), y) for x, y in rows_of((X, LABELS))][2] == ([0.5], 1)
    assert Replace().relates((X, LABELS), (X, 0 * LABELS))
    assert not Replace().relates((X, LABELS), (X, 1 - LABELS))
    assert not Replace().relates((X, LABELS), (2 * X, LABELS))
    assert AddRemove().relates((X, LABELS), (X[:2], LABELS[:2]))
    assert not AddRemove().relates((X, LABELS), (X[:1], LABELS[:1]))


def test_a_tuple_of_rows_stays_one() -> None:
    assert rows_of(((0, 1), (1, 0))) == [(0, 1), (1, 0)]
    assert len(rows_of((X, X[:2]))) == 2


def test_a_pair_shows_the_label_that_moved() -> None:
    pair = Pair(name="label", record=(X, LABELS), neighbour=(X, 0 * LABELS))
    assert "      row 2: y 1 -> 0" in pair_lines(pair)
