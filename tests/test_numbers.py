"""Numbers in their order: what has labels, keys or none of an order is refused, and not guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpverify as dpv
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.curves.laplace import scale_laplace_curve
from dpverify.accounting.noise_variances import noise_variances
from dpverify.errors import ParameterError


def pair(p: Any) -> DiscretePair:
    return DiscretePair(p=p, q=[0, 1])


def together(columns: Any) -> dpv.Gaussian:
    return dpv.curves.matrix_mechanism(np.ones((2, 3)), sigma=1, together=[columns])  # type: ignore[return-value]


READERS: list[Callable[[Any], Any]] = [
    pair,
    together,
    lambda row: dpv.Laplace.of_row(row, scale=1),
    lambda row: scale_laplace_curve(1, "1e-6", row=row),
    lambda row: noise_variances(1, "1e-6", row=row),
    lambda row: dpv.curves.matrix_mechanism([row], sigma=1),
    lambda rows: dpv.curves.matrix_mechanism(rows, sigma=1),
]
LABELLED = [
    {0: "0.5", 1: "0.5"},
    {0: "0.5", 1: "0.5"}.values(),
    "01",
    b"\x00\x01",
    np.array(1),
    pd.Series({"a": 0, "b": 1}),
    pl.Series([0, 1]),
    pl.DataFrame({"a": [0, 1, 1]}),
    pd.DataFrame({"0": [0, 1], "1": [1, 1]}),
]


@pytest.mark.parametrize("values", LABELLED, ids=lambda values: type(values).__name__)
def test_what_has_labels_or_no_order_is_refused(values: Any) -> None:
    """A table iterates over its columns: A was transposed, and of A = (1, 1, 1)ᵀ 1 in place of √3.

    Two laws as dictionaries were both read as their keys, of which they had the same.
    """
    for read in READERS:
        with pytest.raises(ParameterError, match=r"a list or an array|rows of numbers"):
            read(values)


@pytest.mark.parametrize("make", [list, tuple, np.array, iter])
def test_what_has_an_order_is_read_in_it(make: Callable[[list[int]], Any]) -> None:
    assert pair(make([0, 1])).epsilon_at(0).upper == 0
    assert together(make([0, 2])).mu_squared == 8
    assert dpv.Laplace.of_row(make([2, 1]), scale=1).sensitivity == 3
    assert dpv.curves.matrix_mechanism([make([2, 1])], scale=1).sensitivity == 2


def test_columns_of_one_person_may_be_a_set() -> None:
    assert together({0, 1}) == together([1, 0])
