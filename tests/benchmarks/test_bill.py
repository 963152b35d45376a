"""The bill of materials is whole, and every licence in it is allowed."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

from benchmarks import bill
from tests.helpers.paths import ROOT


def test_every_licence_is_allowed() -> None:
    assert bill.refused(list(bill.needed())) == {}


@pytest.mark.parametrize(
    "text", ["GPL-3.0-only", "MIT AND AGPL-3.0-or-later", "Proprietary", "unknown", "LGPL-2.1-only"]
)
def test_another_licence_is_not(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bill, "licence", lambda _: text)
    assert bill.refused(["rich"]) == {"rich": text}


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def test_all_that_is_declared_is_in_the_bill() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(text for name in extras for text in extras[name])]
    names = {name for text in declared if is_installed(name := Requirement(text).name)}
    assert {"numpy", "rich", "hypothesis"} <= names
    document = bill.bill()
    listed = {component["name"]: component for component in document["components"]}
    assert names - {"dpverify"} <= listed.keys()
    assert all(listed[name]["version"] == distribution(name).version for name in listed)
    references = [component["bom-ref"] for component in document["components"]]
    references.append(document["metadata"]["component"]["bom-ref"])
    assert len(set(references)) == len(references)
    used = [one for part in document["dependencies"] for one in (part["ref"], *part["dependsOn"])]
    assert set(used) == set(references)


def test_the_official_schema_admits_the_bill() -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    document = bill.bill()
    assert validator.validate_str(json.dumps(document)) is None
    del document["components"][0]["licenses"][0]["license"]["name"]
    assert validator.validate_str(json.dumps(document)) is not None


def test_the_lock_has_the_pinned_versions_and_only_hashes() -> None:
    """requirements.lock is made after constraints.txt, by the command at its head."""

    def requirements(text: str) -> dict[str, list[str]]:
        joined = text.replace("\\\n", " ")
        lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
        return {
            pin.strip(): hashes.split()
            for pin, _, hashes in (line.partition("--hash=") for line in lines)
        }

    pinned = requirements((ROOT / "constraints.txt").read_text())
    locked = requirements((ROOT / "requirements.lock").read_text())
    assert locked.keys() == pinned.keys()
    digest = re.compile(r"(--hash=)?sha256:[0-9a-f]{64}")
    assert all(hashes and all(map(digest.fullmatch, hashes)) for hashes in locked.values())
