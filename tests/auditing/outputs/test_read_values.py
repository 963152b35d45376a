"""Journals know a mechanism by the values that its code reads from elsewhere."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dpverify as dpv
from dpverify.auditing.outputs.journal import AuditJournal, fingerprint
from dpverify.auditing.outputs.read_values import read_values
from dpverify.errors import ConfigurationError

SCALE = 1.0
TABLE = {"scale": [1.0]}
settings = ModuleType("settings_of_mine")
settings.SCALE = 1.0  # type: ignore[attr-defined]


def noise(rng: Any) -> float:
    return float(rng.laplace(scale=SCALE))


def called(rows: Any, rng: Any) -> float:
    return len(rows) + noise(rng)


def inside(rows: Any, rng: Any) -> float:
    return len(rows) + sum(noise(rng) for _ in range(1))


def of_module(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace(scale=settings.SCALE))


def of_table(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace(scale=TABLE["scale"][0]))


@functools.cache
def scale() -> float:
    return SCALE


def cached(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace(scale=scale()))


class Counts:
    sensitivity = 1.0

    def __call__(self, rows: Any, rng: Any) -> float:
        return float(len(rows) + rng.laplace(scale=self.sensitivity))


class More(Counts):
    pass


class WithStatic(Counts):
    @staticmethod
    def count(rows: Any, rng: Any) -> float:
        return called(rows, rng)


class WithClass(Counts):
    @classmethod
    def count(cls, rows: Any, rng: Any) -> float:
        return called(rows, rng)


class WithProperty(Counts):
    @property
    def scale(self) -> float:
        return SCALE


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, rows: Any, rng: Any) -> float:
        return float(len(rows) + rng.laplace(scale=self.scale))


HERE = sys.modules[__name__]


@pytest.mark.parametrize(
    ("mechanism", "place", "name", "key"),
    [
        (called, HERE, "SCALE", f"{__name__}.SCALE"),
        (inside, HERE, "SCALE", f"{__name__}.SCALE"),
        (cached, HERE, "SCALE", f"{__name__}.SCALE"),
        (WithStatic.count, HERE, "SCALE", f"{__name__}.SCALE"),
        (WithStatic(), HERE, "SCALE", f"{__name__}.SCALE"),
        (WithClass(), HERE, "SCALE", f"{__name__}.SCALE"),
        (WithProperty(), HERE, "SCALE", f"{__name__}.SCALE"),
        (functools.partial(called, rng=None), HERE, "SCALE", f"{__name__}.SCALE"),
        (of_table, HERE, "TABLE", f"{__name__}.TABLE"),
        (of_module, settings, "SCALE", "settings_of_mine.SCALE"),
        (Counts(), Counts, "sensitivity", f"{__name__}.Counts.sensitivity"),
        (More(), Counts, "sensitivity", f"{__name__}.Counts.sensitivity"),
        (More().__call__, Counts, "sensitivity", f"{__name__}.Counts.sensitivity"),
    ],
)
def test_what_code_reads_is_told_by_its_name(
    mechanism: Any, place: Any, name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_values(mechanism)
    assert read_values(mechanism) == before
    monkeypatch.setattr(place, name, {"scale": [0.5]} if name == "TABLE" else 0.5)
    after = read_values(mechanism)
    assert [each for each in before if before[each] != after.get(each)] == [key]


def test_what_methods_partials_and_slots_hold_is_told() -> None:
    for make in (
        Slotted,
        lambda scale: Slotted(scale).__call__,
        lambda scale: functools.partial(Slotted.__call__, Slotted(scale)),
    ):
        assert read_values(make(1.0)) == read_values(make(1.0)) != read_values(make(0.5))


def test_nothing_of_installed_packages_or_of_python_is_told() -> None:
    for value in (dpv.audit, Path(), 1.5, "text", functools.partial):
        assert list(read_values(value)) == ["all that it holds"]


def test_sets_are_the_same_in_any_order() -> None:
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert list(one) != list(other)
    assert fingerprint(one) == fingerprint(other)


def test_a_journal_is_refused_once_a_global_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited() -> str:
        return dpv.audit(
            called,
            epsilon=1,
            adjacency=dpv.AddRemove(),
            pairs=[dpv.Pair(name="one row", record=[1], neighbour=[1, 2])],
            kinds=["determinism"],
            draws=20,
            workers=1,
            journal=AuditJournal(tmp_path / "journal"),
        ).verdict

    assert audited() == audited()
    monkeypatch.setattr(HERE, "SCALE", 0.5)
    with pytest.raises(ConfigurationError, match=r"SCALE was 1\.0 and is 0\.5\."):
        audited()
