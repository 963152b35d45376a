"""Mechanisms by name: installed packages are looked through once, and again for a name not seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from dpverify import catalogue
from dpverify.catalogue import family_of
from dpverify.errors import ConfigurationError
from tests.helpers.cases import CASES


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is installed, and how often it was looked through."""
    state = SimpleNamespace(more=[], looks=0)

    def entry_points(*, group: str) -> list[Any]:
        state.looks += 1
        return [*metadata.entry_points(group=group), *state.more]

    monkeypatch.setattr(catalogue, "entry_points", entry_points)
    catalogue._known.cache_clear()
    yield state
    catalogue._known.cache_clear()


def test_packages_are_looked_through_once(announced: Any) -> None:
    for name in ("dp-oporp", "fjlt", "dp-oporp"):
        assert family_of(name).name == name
    assert announced.looks == 1


def test_what_is_installed_later_is_found(announced: Any) -> None:
    with pytest.raises(ConfigurationError, match="there is no mechanism later"):
        family_of("later")
    later = replace(family_of("dp-oporp"), name="later")
    announced.more.append(SimpleNamespace(load=lambda: (later,)))
    assert family_of("later") is later


@pytest.mark.parametrize("name", ["dp-oporp", "noise-addition"])
def test_a_delta_that_is_no_double_is_reached(name: str) -> None:
    # From 1/2 on the noise's last digit moves δ by less than its own.
    for number in range(500, 1000, 7):
        target = replace(CASES[name], epsilon=Fraction(1151, 1000), delta=Fraction(number, 1000))
        curve = family_of(name).make(target).privacy()
        assert curve.delta_at(target.epsilon).lower < target.delta


def test_a_noise_level_that_misses_the_target_is_refused() -> None:
    family, target = family_of("dp-oporp"), CASES["dp-oporp"]
    less = replace(
        family, build=lambda _: family.make(replace(target, epsilon=Fraction(2001, 1000)))
    )
    with pytest.raises(ConfigurationError, match=r"has delta\(2\) of up to .* and not 0\.001"):
        less.make(target)
