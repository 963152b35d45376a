"""Software bill of materials, and whether every licence in it is allowed.

``python -m benchmarks.bill`` prints a CycloneDX 1.6 document of what dpverify and its extras need,
as installed here; it exits with 1 and names the package where a licence isn't on the list.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement

__all__ = ["ALLOWED", "bill", "licence", "needed", "refused"]

ALLOWED = (
    "Apache", "BSD", "MIT", "ISC", "PSF", "Python Software Foundation", "HPND", "MPL-2.0",
    "Mozilla Public License 2.0", "0BSD", "Unlicense", "Zlib", "CC0-1.0", "LGPL-3.0-or-later",
)  # fmt: skip
"""Permissive ones; the MPL, which asks for changes to its own files alone; FLINT's LGPL."""


def needed(name: str = "dpverify") -> dict[str, list[str]]:
    """Every installed package that this one needs, with what it needs in turn."""
    found: dict[str, list[str]] = {}
    extras = distribution(name).metadata.get_all("Provides-Extra", [])
    waiting = [(name, tuple(extras))]
    done: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        asked = waiting.pop()
        if asked in done:
            continue
        done.add(asked)
        own, wanted = asked
        try:
            requires = distribution(own).requires or []
        except PackageNotFoundError:  # of another platform
            continue
        needs = found.setdefault(_canonical(own), [])
        for text in requires:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in (*wanted, "")):
                waiting.append((_canonical(requirement.name), tuple(sorted(requirement.extras))))
                needs.append(_canonical(requirement.name))
    return {key: sorted(set(value) - {key}) for key, value in sorted(found.items())}


def licence(name: str) -> str:
    """What a package says of its licence: the expression, the classifiers, or the text's head."""
    about = distribution(name).metadata
    expression = about.get_all("License-Expression", [])
    if expression:
        return str(expression[0])
    classifiers = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", [])
                   if c.startswith("License ::")]  # fmt: skip
    named = [c for c in classifiers if c != "OSI Approved"]
    return (
        " AND ".join(named) or str([*about.get_all("License", []), "unknown"][0]).partition("\n")[0]
    )


def refused(names: list[str]) -> dict[str, str]:
    """Packages whose licence isn't allowed, with what it is."""
    said = {name: licence(name) for name in names}
    return {
        name: text
        for name, text in said.items()
        if not all(any(word in part for word in ALLOWED) for part in text.split(" AND "))
    }


def bill() -> dict[str, Any]:
    """The document: components with version, licence and package URL, and who needs whom."""
    tree = needed()
    versions = {name: distribution(name).version for name in tree}

    def reference(name: str) -> str:
        return f"pkg:pypi/{name}@{versions[name]}"

    def component(name: str, kind: str) -> dict[str, Any]:
        return {
            "type": kind,
            "bom-ref": reference(name),
            "name": name,
            "version": versions[name],
            "purl": reference(name),
            "licenses": [{"license": {"name": licence(name)}}],
        }

    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("dpverify", "library")},
        "components": [component(name, "library") for name in tree if name != "dpverify"],
        "dependencies": [
            {"ref": reference(name), "dependsOn": [reference(n) for n in needs if n in versions]}
            for name, needs in tree.items()
        ],
    }


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    print(json.dumps(bill(), indent=2))
    wrong = refused(list(needed()))
    for package, text in wrong.items():
        print(f"{package}: {text!r} is not on the list of licences.", file=sys.stderr)
    sys.exit(bool(wrong))
