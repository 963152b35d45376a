"""``make bench``: what dpverify costs beside its peers; prints ``docs/benchmarks.md``.

``python -m benchmarks AREA …`` measures some areas again, and prints the others as they were. All
is kept under ``out/`` as Markdown and JSON, with machine and versions; where these have changed,
nothing that was kept is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict, fields
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.install import known
from benchmarks.speed.table import Growth, Row, growths, markdown

AREAS = ("accounting", "auditing", "sketching", "roofline", "noise", "draws", "waits", "growth")
HEADING = """# Benchmarks

Printed by `python -m benchmarks` (`make bench`), which also writes `out/benchmarks.json`. Every row
is measured in one run on the same work, in turns where both sides are in one process: medians of
several repetitions, unless a remark says otherwise. A ratio below 1 says that dpverify costs less;
an aim is the largest ratio that we want. A row of which the peer is “aim” compares with a number
that was set beforehand. An accountant's answer starts from cold caches, unless its row says that it
was asked in a row; audits are told in seconds of processor time, draws included, as medians over
seeds. The other libraries live in environments of their own, which
`python -m benchmarks.peers.install` makes under `out/peers`; one that isn't there is a row that
says so. An earlier version is a checkout of it that `DPVERIFY_BEFORE` names. Innermost loops are
numpy's, unless a row says that numba's ran."""
_COMMAND = "`python -m benchmarks {}` measures these again."
GROWTH = """Seconds at each size, and the exponent of a power law: fitted to all sizes by least
squares, and between the last two, where fixed costs matter least. Theory is for large sizes."""


def machine() -> dict[str, str]:
    """What the numbers depend on."""
    libraries = ["dpverify", "numpy", "scipy", "python-flint", "scikit-learn"]
    libraries += ["numba"] if find_spec("numba") else []
    return {
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def peers() -> dict[str, str]:
    """Versions of what was installed for comparison."""
    return {peer.name: peer.version for peer in known() if not peer.missing}


def kept(path: Path) -> list[Row | Growth]:
    """What earlier runs left there, if machine and versions are still the same."""
    if not path.exists():
        return []
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["machine"] != machine():
        return []
    rows = [Row(**_own(Row, row)) for row in document["rows"]]
    grown = [Growth(**_own(Growth, row)) for row in document["growth"]]
    return [*rows, *grown]


def _own(kind: type[Row | Growth], stored: dict[str, Any]) -> dict[str, Any]:
    """Its fields, without what follows from them."""
    values = {field.name: stored[field.name] for field in fields(kind)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def area(row: Row | Growth) -> str:
    """The module that measured it."""
    return row.area if isinstance(row, Row) else "growth"


def page(found: list[Row | Growth]) -> str:
    """All tables, under the name of their areas."""
    here = ", ".join(f"{name} {value}" for name, value in machine().items())
    others = ", ".join(f"{name} {value}" for name, value in peers().items())
    parts = [HEADING, f"Here: {here}. Others: {others or 'none'}."]
    rows = [row for row in found if isinstance(row, Row)]
    for name in dict.fromkeys(row.area for row in rows):
        table = markdown([row for row in rows if row.area == name])
        parts += [f"## {name.capitalize()}", _COMMAND.format(name), table]
    if grown := [row for row in found if isinstance(row, Growth)]:
        parts += ["## Growth", _COMMAND.format("growth"), GROWTH, growths(grown)]
    return "\n\n".join(parts)


def stored(found: list[Row | Growth]) -> dict[str, Any]:
    """The same for programs, with what follows from the rows."""
    return {
        "machine": machine(),
        "peers": peers(),
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
    os.environ["DPVERIFY_LOOPS"] = "numpy"
    out = Path("out")
    out.mkdir(exist_ok=True)
    found = kept(out / "benchmarks.json")
    for name in areas:
        print(f"{name} …", file=sys.stderr)
        rows = list(import_module(f"benchmarks.speed.{name}").rows())
        found = sorted(
            [*(row for row in found if area(row) != name), *rows],
            key=lambda row: AREAS.index(area(row)),
        )
        (out / "benchmarks.json").write_text(json.dumps(stored(found), indent=2), encoding="utf-8")
    (out / "benchmarks.md").write_text(page(found) + "\n", encoding="utf-8")
    print(page(found))


if __name__ == "__main__":
    main()
