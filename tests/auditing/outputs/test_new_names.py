"""Outputs whose members and keys are new each time, such as noisy numbers and random names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.values import objects, value_of


def _named(rng: np.random.Generator) -> str:
    return "".join(rng.permutation([*"abcdefghij"]))


NEW_EACH_TIME: dict[str, Callable[[float, np.random.Generator], Any]] = {
    "a set": lambda number, rng: {number},
    "a set of whole numbers": lambda number, rng: {int(1e9 * number), 10**12},
    "a set of texts": lambda number, rng: {f"{number:.9f}"},
    "a set in a dict": lambda number, rng: {"a": frozenset({number, "b"})},
    "a key": lambda number, rng: {number: 1},
    "a key of text": lambda number, rng: {f"{number:.9f}": 1},
    "by a new key": lambda number, rng: {_named(rng): number},
    "by one of two new keys": lambda number, rng: {_named(rng): number, _named(rng): 7},
    "by new keys in new keys": lambda number, rng: {_named(rng): {_named(rng): [number]}},
}


@pytest.mark.parametrize("name", NEW_EACH_TIME)
def test_what_comes_under_a_new_name_each_time_is_read(name: str) -> None:
    for scale, verdict in ((0.2, "violation"), (1, "no_violation_found")):

        def function(rows: Any, rng: np.random.Generator, scale: float = scale) -> Any:
            return NEW_EACH_TIME[name](len(rows) + rng.laplace(scale=scale), rng)

        pair = dpv.Pair(name="one row more", record=[], neighbour=[1])
        words: dict[str, Any] = {"epsilon": 1, "adjacency": dpv.AddRemove(), "pairs": [pair]}
        report = dpv.audit(function, kinds=["black-box"], draws=200, workers=1, **words)
        assert report.verdict == verdict


def test_what_stands_by_its_key_has_one_column() -> None:
    rng = np.random.default_rng(1)
    outputs = [value_of({7: rng.normal(), 8: [rng.normal()]}) for _ in range(20)]
    named = features(objects(outputs)).names
    assert sorted(named) == ["output[7]", "output[8][-1]", "output[8][0]", "sum(output[8])"]


def test_members_of_several_types_have_an_order() -> None:
    found = dict(value_of({10**400, 1.5, float("nan"), "a", None, (1, 2)}).leaves)
    assert found["sorted(output)[0]"] == 1.5
    assert found["sorted(output)[1] mod 2**32"] == 10**400 % 2**32
