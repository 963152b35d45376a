"""The documentation site: every public module and name has its place on an API page."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter

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
    assert described("api") == Counter(there)


def test_every_name_of_the_door_is_described_by_its_task() -> None:
    names = {f"dpverify.{name}" for name in dpverify.__all__ if name != "__version__"}
    assert described("reference") == Counter({*names, "dpverify.sklearn.PrivateSketch"})
    table = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\[([\w.]+)\]", table)) == {*described("reference")}
