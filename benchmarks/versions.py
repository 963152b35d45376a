"""The certified core on the oldest and the newest supported Python, numpy and scipy.

``python -m benchmarks.versions`` (``make versions``) makes an environment for each, under
``out/versions/``: every dependency at its lower bound in ``pyproject.toml`` with the oldest Python,
and the newest releases with each Python that uv finds. It prints one line for each: what is
installed, whether the accountant, the calibration and an exact release answer to the last bit as
they do here or refuse, and what the tests of the core said. It exits with 1 where one is wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.core import CORE

__all__ = ["ENVIRONMENTS", "TESTS", "answers", "compared", "main", "make"]

ENVIRONMENTS = (
    ("3.11", "lowest-direct"),
    ("3.11", "highest"),
    ("3.12", "highest"),
    ("3.13", "highest"),
    ("3.14", "highest"),
)
"""Python, and which releases uv resolves to: those at the lower bounds, or the newest."""
TESTS = (
    "tests/accounting/curves/test_gaussian.py",
    "tests/accounting/curves/test_laplace.py",
    "tests/mechanisms/baselines/test_randomized_response.py",
    "tests/accounting/composition/test_compose.py",
    "tests/test_enclosure.py",
    "tests/sampling/test_coins.py",
    "tests/sampling/test_rounded_noise.py",
    "tests/sampling/test_words.py",
    "tests/cli/test_snapshots.py",
    "tests/certificate/test_checks.py",
    "tests/mechanisms/linear/test_sketch.py",
    "tests/execution/test_other_arithmetic.py",
)
"""Tests of the certified core, of the samplers and of verification."""
_ROOT = Path(__file__).parents[1]
_SHOWN = """
import platform
from importlib.metadata import version
names = ("numpy", "scipy", "python-flint")
print(", ".join([f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in names)]))
"""


def make(python: str, resolution: str) -> Path | None:
    """An environment's interpreter; None where uv has no such Python."""
    folder = _ROOT / "out" / "versions" / f"{python}-{resolution}"
    made = _run("uv", "venv", "--clear", "--python", python, "--no-python-downloads", str(folder))
    if made.returncode:
        return None
    interpreter = folder / "bin" / "python"
    words = ["--python", str(interpreter), "--resolution", resolution, "--group", "dev"]
    _run("uv", "pip", "install", *words, "--editable", str(_ROOT)).check_returncode()
    return interpreter


def answers(interpreter: str | Path) -> dict[str, Any]:
    """What the core answers there."""
    found = _run(str(interpreter), "-c", CORE, "", "")
    found.check_returncode()
    read: dict[str, Any] = json.loads(found.stdout)
    return read


def compared(found: dict[str, Any], usual: dict[str, Any]) -> str:
    """In words: the same, refused, or which answers differ."""
    wrong = [name for name in usual if found.get(name) != usual[name]]
    if not wrong:
        return "the same answers"
    refused = all(str(found.get(name)).startswith("refused") for name in wrong)
    return f"{'refused' if refused else 'DIFFERENT'}: {', '.join(wrong)}"


def main() -> int:
    """Print a line for each environment."""
    usual, code = answers(sys.executable), 0
    for python, resolution in ENVIRONMENTS:
        interpreter = make(python, resolution)
        if interpreter is None:
            print(f"Python {python}, {resolution}: not there")
            continue
        shown = _run(str(interpreter), "-c", _SHOWN).stdout.strip()
        said = compared(answers(interpreter), usual)
        # An old library beside a new one may warn, which is no fault of the core.
        options = ["-q", "-W", "default", "-p", "no:cacheprovider", "-m", "not nightly"]
        tested = _run(str(interpreter), "-m", "pytest", *options, *TESTS)
        summary = tested.stdout.strip().splitlines()[-1]
        print(f"{shown} ({resolution}): {said}; {summary}", flush=True)
        code |= bool(tested.returncode) or said.startswith("DIFFERENT")
    return code


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=_ROOT, capture_output=True, text=True, check=False)  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
