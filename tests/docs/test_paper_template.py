"""The template of a paper's ledger: installed beside the package, its commands and tests run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

TEMPLATE = ROOT / "examples" / "paper"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is installed, as pip does it."""
    place = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(place)]
    command = [sys.executable, "-m", "pip", "install", *options, str(TEMPLATE)]
    subprocess.run(command, check=True, capture_output=True)
    return place


def ran(installed: Path, *command: str) -> str:
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=TEMPLATE,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dpverify(installed: Path, *arguments: str) -> str:
    code = "import sys; from dpverify.cli import main; main(sys.argv[1:])"
    return ran(installed, "-c", code, *arguments)


@pytest.mark.nightly
def test_its_tests(installed: Path) -> None:
    shown = ran(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    assert "7 passed" in shown


@pytest.mark.nightly
def test_the_commands_find_it(installed: Path) -> None:
    assert "1 conservative, 1 misprint, 1 not_checkable" in dpverify(
        installed, "claims", "--paper", "toy2026", "--workers", "1"
    )
    assert "true is" in dpverify(installed, "claims", "show", "toy2026.lemma-1")
    sheet = dpverify(installed, "claims", "errata", "toy2026", "--workers", "1")
    assert "# Errata: a toy paper of 2026 on pairs of vertices" in sheet
    assert "      misprint at n=1: 1/2 in place of 0" in sheet


def test_it_needs_nothing_but_the_ledger() -> None:
    imported = {
        node.module
        for path in TEMPLATE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    ours = {module for module in imported if module.startswith("dpverify")}
    assert ours == {"dpverify.ledger.checks", "dpverify.ledger.statements"}
