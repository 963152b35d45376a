"""``python -m benchmarks.libraries.install``: environments, one a library, in ``out/libraries``.

``python -m benchmarks.libraries.install opendp --into FOLDER`` makes one of them, elsewhere.
Beside the library each gets what dpverify needs, at versions that fit the library or else at
dpverify's own; dpverify itself is found by PYTHONPATH. A library that wants an older NumPy has its
environment to itself (`dpverify_audits.libraries.apart`). What can't be installed takes no other
with it: the installer's last words are kept as the reason.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path

from benchmarks.peers.install import pip
from dpverify_audits.libraries.apart import APART
from tests.helpers.paths import ROOT

__all__ = ["INTO", "PINS", "RESULTS", "python_of", "reasons"]

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "libraries"
"""What was found of each library, and which couldn't be installed."""
INTO = ROOT / "out" / "libraries"
PINS: dict[str, list[str]] = tomllib.loads((HERE / "pins.toml").read_text(encoding="utf-8"))
"""Requirements of each library, by its name in the package index."""


def python_of(library: str, into: Path) -> Path:
    """The interpreter that can import it."""
    return into / library / "bin" / "python"


def reasons() -> dict[str, str]:
    """Why libraries aren't there, by name, as the last installation left them; "" where one is."""
    record = RESULTS / "installed.json"
    known: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    return known


def main() -> None:
    """Make what isn't there, and say which library is missing and why."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=", ".join(PINS))
    parser.add_argument("--into", type=Path, default=INTO, help="folder of the environments")
    given = parser.parse_args()
    unknown = sorted(set(given.libraries) - set(PINS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(PINS)}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["audit"]]
    given.into.mkdir(parents=True, exist_ok=True)
    known = reasons()
    for library in given.libraries or PINS:
        folder = given.into / library
        # The library decides first; where it and dpverify want different versions, dpverify wins,
        # unless the auditor is another process.
        missing = pip(folder, PINS[library]) or (library not in APART and pip(folder, needed)) or ""
        known[library] = missing
        print(f"{library}: {missing or 'installed'}", flush=True)
        (RESULTS / "installed.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
