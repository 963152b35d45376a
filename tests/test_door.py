"""The front door: its names, what loads them, and what importing it costs."""

from __future__ import annotations

import ast
import doctest
import importlib
import subprocess
import sys

import pytest

import dpverify as dpv
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.usefixtures("all_candidates")  # of which examples speak


def test_every_name_is_loaded_from_where_type_checkers_see_it() -> None:
    tree = ast.parse((ROOT / "dpverify" / "__init__.py").read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    parts = {name for name, module in seen.items() if module == "dpverify"}
    assert parts == set(dpv._PARTS)
    for name in parts:
        assert getattr(dpv, name) is importlib.import_module(f"dpverify.{name}")
        del seen[name]
    assert seen == dpv._HOMES
    assert sorted([*seen, "__version__"]) == sorted(dpv.__all__)


@pytest.mark.parametrize("name", dpv.__all__)
def test_names_exist(name: str) -> None:
    assert getattr(dpv, name) is not None
    assert name in dir(dpv)


@pytest.mark.parametrize("module", sorted({*dpv._HOMES.values()}))
def test_examples_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="Gausian"):
        _ = dpv.Gausian  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"it is dpverify\.curves\.Staircase"):
        _ = dpv.Staircase  # type: ignore[attr-defined]


def test_only_what_is_public_is_completed() -> None:
    assert dir(dpv) == sorted([*dpv.__all__, "curves"])


def test_neither_a_curve_nor_a_process_of_an_audit_loads_what_few_need() -> None:
    # scipy's packages and joblib take a tenth of a second to import, or two; numpy.ma a sixtieth.
    code = """
import sys, dpverify, dpverify.auditing.attacks._behaviour
(dpverify.Gaussian(sigma=4) + 5 * dpverify.Laplace(scale=2)).epsilon_at(1e-6)
heavy = ("joblib", "numpy.ma", "pandas")
heavy += ("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special")
print([name for name in heavy if name in sys.modules])
"""
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_importing_it_loads_none_of_its_parts() -> None:
    code = (
        "import sys, dpverify; print(sorted(m for m in sys.modules if m.startswith('dpverify.')))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == (
        "['dpverify._version']\n"
    )
