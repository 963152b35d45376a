"""What is shipped: the published schema, the namespaces, and a wheel built from the sdist."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpverify.certificate.compose import composition_schema
from dpverify.certificate.schema import json_schema
from tests.helpers.paths import ROOT

PACKAGES = {"dpverify": "", "dpverify_mechanisms": "mechanisms", "dpverify_audits": "audits"}


def modules() -> list[str]:
    names = list(PACKAGES)
    for package in PACKAGES:
        path = import_module(package).__path__
        names += [found.name for found in pkgutil.walk_packages(path, f"{package}.")]
    return names


def published(name: str) -> dict[str, Any]:
    text = resources.files("dpverify.certificate").joinpath(f"schemas/{name}-1.json")
    schema: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    return schema


@pytest.mark.parametrize(
    ("name", "schema"), [("certificate", json_schema), ("composition", composition_schema)]
)
def test_published_schema_is_the_models(name: str, schema: Callable[[], dict[str, Any]]) -> None:
    assert published(name) == schema(), (
        "the model changed: publish a new version, or before the first release write what "
        f"{schema.__name__}() returns to dpverify/certificate/schemas/{name}-1.json"
    )


def test_certificates_validate(certificate: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(published("certificate"))
    validator.validate(certificate)
    certificate = certificate | {"surprise": 1}
    assert not validator.is_valid(certificate)


@pytest.mark.parametrize("name", modules())
def test_all_is_the_namespace(name: str) -> None:
    module = import_module(name)
    if name.count(".") == 0 or not hasattr(module, "__path__"):
        listed = getattr(module, "__all__", [])
        assert len(set(listed)) == len(listed)
        assert [entry for entry in listed if not hasattr(module, entry)] == []
        public = {
            entry
            for entry, value in vars(module).items()
            if not entry.startswith(("_", "pytest_"))  # pytest finds its hooks by their names
            and getattr(value, "__module__", None) == name
        }
        assert public <= set(listed)


def test_wheel_from_sdist_holds_everything(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, folder in PACKAGES.items():
        source = ROOT / folder / package
        for path in source.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"{package}/{path.relative_to(source).as_posix()}" in names
    (entry_points,) = [name for name in names if name.endswith("entry_points.txt")]
    text = zipfile.ZipFile(wheel).read(entry_points).decode()
    for expected in ("dpverify = dpverify.cli:main", "dp-oporp", "[dpverify.audits]"):
        assert expected in text
