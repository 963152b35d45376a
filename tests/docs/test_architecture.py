"""ARCHITECTURE.md speaks of folders and floors that are there."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.helpers.paths import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", TEXT)))


def test_paths_are_found() -> None:
    assert len(PATHS) > 40


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    there = re.sub(r"[^/]*[A-Z]{4}.*", "", path)  # up to a part that stands for a name
    assert any((ROOT / base / there).exists() for base in ("", "dpverify", "tests"))


def test_the_floors_are_those_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [
        contract["layers"]
        for contract in contracts["contracts"]
        if contract.get("containers") == ["dpverify"]
    ]
    named = [set(re.findall(r"\b[a-z]\w+", layer)) for layer in layers]  # what isn't private
    floors = [names for names in named if names]
    rows = re.findall(r"^\| ((?:`\w+(?:\.py|/)`(?:, )?)+) \|", TEXT, flags=re.MULTILINE)
    shown = [set(re.findall(r"`(\w+)", row)) for row in rows]
    assert [row for row in shown if row in floors] == floors
