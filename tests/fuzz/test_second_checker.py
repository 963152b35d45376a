"""Verify and the second checker on mutated certificates; `second_checker` is the long run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.paths import ROOT


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2))
def test_both_say_the_same(seed: int) -> None:
    """In a process of its own, since it keeps what verify derives."""
    command = [sys.executable, "-m", "tests.fuzz.second_checker", "--count", "2000"]
    found = subprocess.run(
        [*command, "--seed", str(seed)], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert found.returncode == 0, found.stdout + found.stderr
