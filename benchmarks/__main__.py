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

from benchmarks.speed.table import Row, markdown

AREAS = ("accounting", "auditing", "sketching", "noise", "growth")
HEADING = """# Benchmarks

Printed by `python -m benchmarks` (`make bench`), which also writes `out/benchmarks.json`. Every row
is measured in one run, both sides on the same work and in turns: medians of several repetitions. A
ratio below 1 says that dpverify costs less; an aim is the largest ratio that we want. A row of
which the peer is “aim” compares with a number that was set beforehand. `python -m benchmarks AREA`
measures one area again."""


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    libraries = ("dpverify", "numpy", "scipy", "python-flint", "scikit-learn")
    return {
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def measured(areas: list[str]) -> list[Row]:
    """Rows of these areas, each module saying first what it begins with."""
    rows: list[Row] = []
    for area in areas:
        print(f"{area} …", file=sys.stderr)
        rows += import_module(f"benchmarks.speed.{area}").rows()
    return rows


def page(rows: list[Row]) -> str:
    """All tables, under the name of their areas."""
    parts = [HEADING, ", ".join(f"{name} {value}" for name, value in machine().items()) + "."]
    for area in dict.fromkeys(row.area for row in rows):
        parts += [f"## {area.capitalize()}", markdown([row for row in rows if row.area == area])]
    return "\n\n".join(parts)


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help="default: all")
    areas = parser.parse_args().areas or list(AREAS)
    if unknown := set(areas) - set(AREAS):
        parser.error(f"no area {', '.join(sorted(unknown))}: there are {', '.join(AREAS)}")
    rows = measured(areas)
    document = {
        "machine": machine(),
        "rows": [{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows],
    }
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "benchmarks.md").write_text(page(rows) + "\n", encoding="utf-8")
    (out / "benchmarks.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    print(page(rows))


if __name__ == "__main__":
    main()
