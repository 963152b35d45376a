"""Mechanisms by name: installed packages are looked through once, and again for a name not seen."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from dpverify import catalogue
from dpverify.catalogue import family_of
from dpverify.errors import ConfigurationError


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
