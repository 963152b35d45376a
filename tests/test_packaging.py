"""What is shipped: the published schema, the namespaces, and a wheel built from the sdist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.requirements import Requirement

from dpverify.certificate.compose import composition_schema
from dpverify.certificate.schema import json_schema
from tests.helpers.modules import modules
from tests.helpers.paths import ROOT
from tests.helpers.profiles import day_and_night

PACKAGES = {
    "dpverify": "",
    "dpverify_mechanisms": "mechanisms",
    "dpverify_audits": "audits",
    "dpverify_check": "audits",
}


def all_modules() -> list[str]:
    found = [module.__name__ for name in PACKAGES for module in modules(import_module(name))]
    return [*PACKAGES, *found]


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


def test_all_is_the_namespace() -> None:
    named = [
        name
        for name in all_modules()
        if not hasattr(import_module(name), "__path__") and not name.startswith("dpverify_check.")
    ]  # the second checker is a program
    assert len(named) > 200
    for name in (*PACKAGES, *named):
        module = import_module(name)
        listed = getattr(module, "__all__", [])
        assert len(set(listed)) == len(listed), name
        assert [entry for entry in listed if not hasattr(module, entry)] == [], name
        public = {
            entry
            for entry, value in vars(module).items()
            if not entry.startswith(("_", "pytest_"))  # pytest finds its hooks by their names
            and getattr(value, "__module__", None) == name
        }
        assert public <= set(listed), name


_IN_EXTRAS_ALONE = (
    *(
        "jinja2",
        "matplotlib",
        "sklearn",
        "mlxtend",
        "pyarrow",
        "distributed",
        "fsspec",
        "pandas",
        "polars",
    ),
    *("duckdb", "hypothesis", "numba", "mpmath", "pytest"),
)
_WITHOUT_EXTRAS = f"""
import sys
from importlib import import_module
from dpverify.cli import _run
from dpverify.errors import MissingExtraError

sys.modules.update(dict.fromkeys({_IN_EXTRAS_ALONE}))  # None stops an import
sys.path.append("examples/third_party/src")
for name in sys.argv[1:]:
    try:
        import_module(name)
    except MissingExtraError as error:
        print(name, str(error).split()[-1])
print(_run("calibrate gaussian -p sensitivity=1 --epsilon 1 --delta 1e-6".split()))
print(_run("audit dp_survey.family:SUITE --kind black-box --draws 100 -q --workers 1".split()))
print(_run("certify examples/mnist.toml --out out".split()))
"""


def test_the_core_accounts_and_audits_without_extras() -> None:
    names = [name for name in all_modules() if name.startswith("dpverify.")]
    names.remove("dpverify.testing.plugin")  # pytest loads it
    found = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRAS, *names],
        check=True, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    lines = found.stdout.splitlines()
    assert [line for line in lines if "dpverify[" in line] == [
        "dpverify.certificate.report.html 'dpverify[report]'.",
        "dpverify.certificate.report.plots 'dpverify[report]'.",
        "dpverify.sklearn 'dpverify[audit]'.",
        "dpverify.testing.strategies 'dpverify[test]'.",
    ]
    assert any(re.match("survey-answers.*: no violation found", line) for line in lines)
    assert [line for line in lines if line in ("0", "1", "2", "3", "4")] == ["0", "0", "2"]
    assert found.stderr == (
        "dpverify: a report needs matplotlib: pip install 'dpverify[report]'.\n"
    )


def test_no_extra_is_needed_by_the_core() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {Requirement(text).name for text in project["dependencies"]}
    in_extras = {
        Requirement(text).name
        for extra, texts in project["optional-dependencies"].items() if extra != "all"
        for text in texts
    }  # fmt: skip
    assert core & in_extras == set()
    known = {"scikit-learn": "sklearn"}
    assert {known.get(name, name) for name in in_extras} == set(_IN_EXTRAS_ALONE)


@pytest.mark.parametrize("straight", day_and_night(["--wheel"], []))
def test_wheel_holds_everything(tmp_path: Path, straight: list[str]) -> None:
    """By night the wheel that is built from the sdist."""
    options = ["--no-isolation", *straight, "--outdir", str(tmp_path)]
    command = [sys.executable, "-m", "build", *options, str(ROOT)]
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
    for expected in (
        "dpverify = dpverify.cli:main",
        "dpverify_mechanisms.catalogue",
        "[dpverify.audits]",
    ):
        assert expected in text
