"""The template of a third party: installed beside the package, it audits and certifies itself."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpverify.auditing.settings import VARIABLE
from tests.helpers.paths import ROOT

TEMPLATE = ROOT / "examples" / "third_party"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One in which the template is installed, as pip does it."""
    place = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(place)]
    command = [sys.executable, "-m", "pip", "install", *options, str(TEMPLATE)]
    subprocess.run(command, check=True, capture_output=True)
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return {**inherited, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}


def ran(environment: dict[str, str], *command: str, folder: Path = TEMPLATE) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dpverify(environment: dict[str, str], *arguments: str) -> str:
    code = "import sys; from dpverify.cli import main; main(sys.argv[1:])"
    return ran(environment, "-c", code, *arguments)


@pytest.mark.nightly
def test_its_tests(environment: dict[str, str]) -> None:
    quicker = {**environment, VARIABLE: "dev"}
    shown = ran(quicker, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    assert "5 passed" in shown


@pytest.mark.nightly
def test_the_commands_find_it(environment: dict[str, str], tmp_path: Path) -> None:
    listed = json.loads(dpverify(environment, "mechanisms", "--json"))["result"]
    assert "survey-answers" in [family["name"] for family in listed]
    audited = json.loads(
        dpverify(environment, "audit", "survey", "--draws", "100", "--workers", "1", "--json")
    )
    assert [found["verdict"] for found in audited["result"]] == ["no_violation_found"] * 2
    assert "profile ci" in dpverify(environment, "audit", "--show-config")


def test_nothing_but_public_names() -> None:
    for path in TEMPLATE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                assert node.module is not None
                assert not any(part.startswith("_") for part in node.module.split("."))
                assert not any(name.name.startswith("_") for name in node.names)
                assert not node.module.startswith(("dpverify_mechanisms", "dpverify_audits"))
