"""Outputs whose members, keys and attributes are new each time: noisy numbers, random names."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_double
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest
import scipy.sparse

import dpverify as dpv
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.reader import PLACED
from dpverify.auditing.outputs.values import objects, value_of

pyarrow = pytest.importorskip("pyarrow")


def _named(rng: np.random.Generator) -> str:
    return "".join(rng.permutation([*"abcdefghij"]))


def _field(name: str, number: float) -> Any:
    made: Any = NamedTuple
    return made("Made", [(name, float)])(number)


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
    "what ends by a new key": lambda number, rng: {_named(rng): iter([number])},
    "an attribute": lambda number, rng: SimpleNamespace(**{_named(rng): number}),
    "an attribute's name": lambda number, rng: SimpleNamespace(**{f"{number:.9f}": 1}),
    "by new attributes in new keys": lambda number, rng: {
        _named(rng): SimpleNamespace(**{_named(rng): [number], _named(rng): 7})
    },
    "an attribute of a class": lambda number, rng: type("Made", (), {_named(rng): number}),
    "a field": lambda number, rng: _field(_named(rng), number),
    "by a new place": lambda number, rng: scipy.sparse.coo_array(
        ([number], ([rng.integers(2**20)], [0])), shape=(2**20, 1)
    ),
    "beside others": lambda number, rng: pyarrow.schema([], {_named(rng): f"{number:.9f}"}),
    "of C": lambda number, rng: (c_double * 2)(number, 7),
}


@pytest.mark.parametrize("name", NEW_EACH_TIME)
def test_what_comes_under_a_new_name_each_time_is_read(name: str) -> None:
    for scale, verdict in ((0.2, "violation"), (1, "no_violation_found")):

        def function(rows: Any, rng: np.random.Generator, scale: float = scale) -> Any:
            return NEW_EACH_TIME[name](len(rows) + rng.laplace(scale=scale), rng)

        pair = dpv.Pair(name="one row more", record=[], neighbour=[1])
        words: dict[str, Any] = {"epsilon": 1, "adjacency": dpv.AddRemove(), "pairs": [pair]}
        report = dpv.audit(function, kinds=["black-box"], draws=100, workers=1, **words)
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


@pytest.mark.parametrize("other", [1, True, [1], (1.0,), {"b": 1.0}])
def test_types_are_told_by_place(other: Any) -> None:
    found, others = (
        {name: leaf for name, leaf in value_of({"a": {"b": part}}).leaves if PLACED.search(name)}
        for part in (1.0, other)
    )
    assert found != others


def test_new_columns_are_read_by_place() -> None:
    found = dict(value_of(pandas.DataFrame({"a": [1.5], "b": [2.5]})).leaves)
    assert found["output[0].values()[1]"] == found["output[0]['b']"] == 2.5


def test_places_are_named_within_one_another() -> None:
    found = dict(value_of({"a": {"{0}": [1.5]}, "b": {}}).leaves)
    assert found["output.values()[0].values()[0][0]"] == found["output['a']['{0}'][0]"] == 1.5
    assert found["output.values()[0].keys()[0]"] == "{#}"
    assert not any("keys" in name for name in found if name.startswith("output['a']"))


def test_parts_with_names_of_their_own_come_first() -> None:
    names = [name for name, _ in value_of([{"a": 1.5}] * 1000).leaves]
    assert "output[999]['a']" in names
    assert len(names) <= 4097
