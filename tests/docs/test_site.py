"""The documentation site: every public module has its place on an API page."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter

import dpverify
import dpverify_mechanisms
from tests.helpers.paths import ROOT


def test_every_module_is_on_one_api_page() -> None:
    shown = Counter(
        name
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.M)
    )
    there = {
        module.name
        for package in (dpverify, dpverify_mechanisms)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.ispkg and not re.search(r"\._|^dpverify\.cli", module.name)
    }
    assert shown == Counter(there)
