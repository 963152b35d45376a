"""Which tests reach which lines, and how long each takes: a plugin of pytest, and what it notes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData

__all__ = [
    "TESTS",
    "Reached",
    "environment",
    "pytest_runtest_logreport",
    "pytest_runtest_protocol",
    "pytest_unconfigure",
]

TESTS = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not nightly"]
"""Of every change, in one process, up to the first that fails."""
_DATA, _SECONDS = "reached.coverage", "reached.json"
_VARIABLE = "DPVERIFY_REACHED"
_seconds: dict[str, float] = {}


def environment(root: Path) -> dict[str, str]:
    """Of a process that imports a copy of the project."""
    roots = map(str, (root, root / "mechanisms", root / "audits"))
    return os.environ | {"PYTHONPATH": os.pathsep.join(roots)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """What runs from here on, fixtures included, is reached by the test."""
    coverage = Coverage.current()
    assert coverage is not None
    coverage.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what a test takes."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0) + report.duration


def pytest_unconfigure() -> None:
    """Note what all of them took."""
    Path(os.environ[_VARIABLE]).write_text(json.dumps(_seconds), encoding="utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """What the tests of some folders reach.

    Attributes
    ----------
    lines : of each file, the tests that reach a line of it
    seconds : that each test takes
    """

    lines: Mapping[Path, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]

    @classmethod
    def by(cls, folders: Sequence[str], files: Sequence[Path], root: Path, out: Path) -> Reached:
        """Run the tests of the folders in a copy of the project, which has to pass."""
        command = [sys.executable, "-m", "coverage", "run", "--rcfile", os.devnull]
        command += ["--data-file", str(out / _DATA), "--include", ",".join(map(str, files))]
        subprocess.run(  # noqa: S603  # this interpreter
            [*command, "-m", "pytest", "-p", "benchmarks.reached", *TESTS, *folders],
            cwd=root,
            env=environment(root) | {_VARIABLE: str(out / _SECONDS)},
            check=True,
        )
        return cls.read(files, root, out)

    @classmethod
    def read(cls, files: Sequence[Path], root: Path, out: Path) -> Reached:
        """What such a run has noted."""
        measured = CoverageData(str(out / _DATA))
        measured.read()
        lines = {file: measured.contexts_by_lineno(str(root / file)) for file in files}
        return cls(lines, json.loads((out / _SECONDS).read_text(encoding="utf-8")))

    def tests(self, file: Path, lines: Iterable[int]) -> list[str]:
        """Those that reach one of the lines, the fastest first."""
        reached = {test for line in lines for test in self.lines[file].get(line, ()) if test}
        return sorted(reached, key=lambda test: (self.seconds[test], test))
