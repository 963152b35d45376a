"""``make bench``: what dpverify costs beside its peers; prints ``docs/benchmarks.md``.

``python -m benchmarks AREA …`` measures some areas only. Rows are kept under ``out/`` as Markdown
and JSON, with machine and versions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.speed.table import Growth, Row, growths, markdown

AREAS = ("accounting", "auditing", "sketching", "noise", "growth")
HEADING = """# Benchmarks

Printed by `python -m benchmarks` (`make bench`), which also writes `out/benchmarks.json`. Every row
is measured in one run, both sides on the same work and in turns: medians of several repetitions. A
ratio below 1 says that dpverify costs less; an aim is the largest ratio that we want. A row of
which the peer is “aim” compares with a number that was set beforehand. `python -m benchmarks AREA`
measures one area again. The other libraries live in environments of their own, which
`python -m benchmarks.peers.install` makes under `out/peers`; one that isn't there is a row that
says so."""
GROWTH = """Seconds at each size, and the exponent of a power law: fitted to all sizes by least
squares, and between the last two, where fixed costs matter least. Theory is for large sizes."""


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    libraries = ("dpverify", "numpy", "scipy", "python-flint", "scikit-learn")
    return {
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def measured(areas: list[str]) -> list[Row | Growth]:
    """Rows of these areas, each module saying first what it begins with."""
    rows: list[Row | Growth] = []
    for area in areas:
        print(f"{area} …", file=sys.stderr)
        rows += import_module(f"benchmarks.speed.{area}").rows()
    return rows


def page(found: list[Row | Growth]) -> str:
    """All tables, under the name of their areas."""
    parts = [HEADING, ", ".join(f"{name} {value}" for name, value in machine().items()) + "."]
    rows = [row for row in found if isinstance(row, Row)]
    for area in dict.fromkeys(row.area for row in rows):
        parts += [f"## {area.capitalize()}", markdown([row for row in rows if row.area == area])]
    if grown := [row for row in found if isinstance(row, Growth)]:
        parts += ["## Growth", GROWTH, growths(grown)]
    return "\n\n".join(parts)


def stored(found: list[Row | Growth]) -> dict[str, Any]:
    """The same for programs, with what follows from the rows."""
    return {
        "machine": machine(),
        "rows": [
            {**asdict(row), "ratio": row.ratio, "met": row.met}
            for row in found
            if isinstance(row, Row)
        ],
        "growth": [
            {**asdict(row), "exponent": row.exponent, "last": row.last}
            for row in found
            if isinstance(row, Growth)
        ],
    }


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help="default: all")
    areas = parser.parse_args().areas or list(AREAS)
    if unknown := set(areas) - set(AREAS):
        parser.error(f"no area {', '.join(sorted(unknown))}: there are {', '.join(AREAS)}")
    rows = measured(areas)
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "benchmarks.md").write_text(page(rows) + "\n", encoding="utf-8")
    (out / "benchmarks.json").write_text(json.dumps(stored(rows), indent=2), encoding="utf-8")
    print(page(rows))


if __name__ == "__main__":
    main()
