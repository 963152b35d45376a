"""Write the conformance vectors again: ``python -m tests.conformance.make [CASE…]``.

Releases are drawn with secure noise, so that files differ from run to run; what is expected of them
doesn't.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from dpverify.certificate.archive import SKETCH
from dpverify.certificate.certify import CERTIFICATE, certify
from tests.conformance.cases import CASES, WRONG, Case

VECTORS = Path(__file__).parent / "vectors"


def main() -> None:
    """Certify every case, or those that are named."""
    named = sys.argv[1:]
    if not named:
        shutil.rmtree(VECTORS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, configuration in CASES.items():
            if named and case not in named:
                continue
            made(configuration, folder)
            kept = VECTORS / case
            kept.mkdir(parents=True, exist_ok=True)
            for file in (CERTIFICATE, SKETCH):
                if (folder / "out" / file).exists():
                    shutil.copy(folder / "out" / file, kept / file)
            shutil.rmtree(folder / "out")
    write_index()


def made(case: Case, folder: Path) -> dict[str, Any]:
    """Certify a case into the subfolder `out`, and return the certificate."""
    certify(case.tables(folder), folder / "out", base=folder, accept=lambda _: True)
    text = (folder / "out" / CERTIFICATE).read_text(encoding="utf-8")
    fields: dict[str, Any] = json.loads(text)
    return fields


def write_index() -> None:
    """List the cases, and the edits of them."""
    index: dict[str, Any] = {
        "right": list(CASES),
        "wrong": [
            {"of": case, "path": path, "value": value, "renewed": renewed, "line": line}
            for case, path, value, renewed, line in WRONG
        ],
    }
    text = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    (VECTORS / "index.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
