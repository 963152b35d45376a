"""The verdicts of the first 563 statements, and why those that changed did.

``verdicts.txt`` has what they were at first, and a reason where it is another one now, or where
referees disagreed and it stays.
``python -m tests.audits.papers.verdicts`` prints the page made of it, docs/ledger-changes.md, with
what the page of statements has now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from dpverify.ledger.statements import Verdict
from tests.helpers.paths import ROOT

__all__ = ["changed", "first", "now", "page"]

_ENTRY = re.compile(r"^#### (?P<failing>\S+): (?P<verdict>\w+)$|^ - `(?P<id>[^`]+)`", re.MULTILINE)
_HEADING = re.compile(r"^### (\w+)$", re.MULTILINE)


def first() -> dict[str, tuple[str, str]]:
    """By id, the first verdict, and why it changed or stays; empty where nobody asked."""
    found = {}
    for line in Path(__file__).with_name("verdicts.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, verdict, *why = line.split(": ", 2)
            found[name] = verdict, "".join(why)
    return found


def now() -> dict[str, str]:
    """By id, the verdict on the page of statements."""
    found = {}
    parts = ["", *_HEADING.split((ROOT / "docs" / "claims.md").read_text("utf-8"))]
    for heading, part in zip(parts[::2], parts[1::2], strict=True):
        for entry in _ENTRY.finditer(part):
            found[entry["failing"] or entry["id"]] = entry["verdict"] or heading
    return found


def changed() -> dict[str, tuple[str, str]]:
    """By id, the first verdict and the one now, where they differ; a dash where it's withdrawn."""
    today = now()
    pairs = {name: (verdict, today.get(name, "–")) for name, (verdict, _) in first().items()}
    return {name: (before, after) for name, (before, after) in pairs.items() if before != after}


def _counts(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    yield "| verdict | at first | now | of those at first |"
    yield "|---|---|---|---|"
    kept = {name: verdict for name, verdict in after.items() if name in before}
    counts = [Counter(verdicts.values()) for verdicts in (before, after, kept)]
    for verdict in get_args(Verdict):
        yield f"| {verdict} | " + " | ".join(str(count[verdict]) for count in counts) + " |"
    yield "| all | " + " | ".join(str(count.total()) for count in counts) + " |"


def page() -> str:
    """The page of changes."""
    known, pairs = first(), changed()
    lines = [
        "# How verdicts changed",
        "",
        f"The first {len(known)} statements of [the ledger](claims.md) were read against another",
        "one, made without knowledge of it, and by referees. This is what changed, and why, by the",
        "rule of [how statements are judged](ledger.md). A dash: the statement was withdrawn.",
        "",
        *_counts({name: verdict for name, (verdict, _) in known.items()}, now()),
        "",
        f"{len(pairs)} of them have another verdict:",
        "",
        "| statement | at first | now | why |",
        "|---|---|---|---|",
        *(
            f"| {name} | {before} | {after} | {known[name][1]} |"
            for name, (before, after) in pairs.items()
        ),
        "",
        "Referees disagreed about these, and they stay:",
        "",
        "| statement | verdict | why |",
        "|---|---|---|",
        *(
            f"| {name} | {verdict} | {why} |"
            for name, (verdict, why) in known.items()
            if why and name not in pairs
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
