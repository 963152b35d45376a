"""Rows: copies that share nothing, and keys of dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpverify.data.rows import copies, row_key

VALUES: list[Any] = [0, 0.0, -0.0, float("nan"), 1, True, 1.0, -2.5, "1", b"1", None, np.float64(1)]


@pytest.mark.parametrize("value", [*VALUES, [1, 2]])
def test_copies_of_rows_share_nothing_that_changes(value: Any) -> None:
    rows = [{"a": value}, {"a": value}]
    copy = copies(rows)
    first, second = copy(), copy()
    assert repr(first) == repr(second) == repr(rows)
    first[0]["a"] = "another"
    first.append({})
    if isinstance(value, list):
        second[0]["a"].append(3)
    assert repr(copy()) == repr(rows) == repr([{"a": value}] * 2)


def test_rows_have_one_key_where_their_values_have() -> None:
    for one in VALUES:
        for other in VALUES:
            alike = row_key({"a": one}) == row_key({"a": other})
            assert alike == (row_key(one) == row_key(other)), (one, other)
            assert row_key({1: one}) != row_key({"1": one})
