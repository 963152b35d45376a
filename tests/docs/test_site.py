"""The documentation site: every public module and name has its place on an API page."""

from __future__ import annotations

import pkgutil
import re
import runpy
from collections import Counter

import pytest

import dpverify
import dpverify_mechanisms
from tests.helpers.paths import ROOT


def described(folder: str) -> Counter[str]:
    """What the pages of a folder take from docstrings, and how often."""
    return Counter(
        name
        for page in (ROOT / "docs" / folder).glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.M)
    )


def test_every_module_is_on_one_api_page() -> None:
    there = {
        module.name
        for package in (dpverify, dpverify_mechanisms)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.ispkg and not re.search(r"\._|^dpverify\.cli", module.name)
    }
    shown = described("api")
    missing = there - shown.keys()
    assert not missing, f"give each of {missing} a line “::: MODULE” in a page of docs/api"
    assert shown == Counter(there)


def test_every_name_of_the_door_is_described_by_its_task() -> None:
    names = {f"dpverify.{name}" for name in dpverify.__all__ if name != "__version__"}
    assert described("reference") == Counter({*names, "dpverify.sklearn.PrivateSketch"})
    table = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\[([\w.]+)\]", table)) == {*described("reference")}


CODE = '''
def plan(source: int, kinds: str, rows: int) -> float:
    """What it is worth.

    Parameters
    ----------
    source : a configuration, or data; of data only the number of rows and the types
        of columns are read
    kinds : iterable of str
        Attacks to make.
    rows : how many there are

    Returns
    -------
    The error, at
    most.
    """
'''


def test_descriptions_of_several_lines_are_no_types() -> None:
    griffe = pytest.importorskip("griffe")
    extension = runpy.run_path(str(ROOT / "docs" / "extensions" / "parameters.py"))
    with griffe.temporary_visited_module(CODE) as module:
        extension["DescribedParameters"]().on_object(obj=module["plan"])
        _, parameters, returns = module["plan"].docstring.parsed
    read = {item.name: (str(item.annotation), item.description) for item in parameters.value}
    long = "a configuration, or data; of data only the number of rows and the types\n"
    assert read == {
        "source": ("int", long + "of columns are read"),
        "kinds": ("iterable of str", "Attacks to make."),
        "rows": ("int", "how many there are"),
    }
    (result,) = returns.value
    assert (str(result.annotation), result.description) == ("float", "The error, at\nmost.")
