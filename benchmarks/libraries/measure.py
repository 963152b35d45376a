"""``python -m benchmarks.libraries.measure LIBRARY``: audits one library, in its environment.

Each mechanism is audited by all kinds that apply, with precision where its outputs are whole
numbers; where the claim is refuted, a second time with another seed, and it counts as refuted if
both runs refute it. The low bits of doubles are audited by themselves: they are a question of their
own, which most libraries' documentation leaves open.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.kept import Kept, stamp
from dpverify.auditing.audit import audit
from dpverify.auditing.formatting import jsonable
from dpverify.auditing.report import Report
from dpverify_audits.libraries import SUITE, Entry

__all__ = ["ALPHA", "SEEDS", "audited", "main"]

ALPHA = 1e-3
"""Level of one run of one mechanism."""

SEEDS = (1, 2)


def audited(entry: Entry) -> dict[str, Any]:
    """What is found of one mechanism, by JSON's own types."""
    start = process_time()
    run = partial(audit, draws=entry.draws, alpha=ALPHA, workers=1, time_limit=30.0)
    reports = [run(entry(), seed=SEEDS[0], without=["precision-of-doubles"])]
    if reports[0].verdict == "violation":
        reports.append(run(entry(), seed=SEEDS[1], without=["precision-of-doubles"]))
    seconds = process_time() - start
    whole = [finding for finding in reports[0].findings if finding.audit == "precision"]
    low_bits = None if whole else run(entry(), seed=SEEDS[0], kinds=["precision"])
    verdicts = {report.verdict for report in reports}
    told = _told(reports[-1])
    return {
        "claim": [reports[0].claim[0], float(reports[0].claim[1])],
        "unit": entry.adjacency.unit,
        "reading": entry.reading,
        "verdict": verdicts.pop() if len(verdicts) == 1 else "not reproduced",
        "lower": min(report.epsilon_lower for report in reports),
        "found": told,
        "known": entry.known,
        "example": entry.example,
        "low bits": low_bits.verdict if low_bits else "whole",
        "reach": _reach(reports[0]),
        "draws": entry.draws,
        "seconds": round(seconds, 1),
        "by": stamp(),
    }


def _told(report: Report) -> str:
    """What shows it, or why nothing can be said."""
    for finding in report.findings:
        if finding.verdict == report.verdict == "violation":
            return f"{finding.audit}: {finding.statement}"
    if report.verdict == "inconclusive":
        return next(iter(report.failed), "") or next(
            finding.statement for finding in report.findings if finding.verdict == "inconclusive"
        )
    return ""


def _reach(report: Report) -> Any:
    """The smallest ε that the attack on outputs finds 99 times in 100, where it says that."""
    reaches = [f.power.get("smallest_epsilon_found") for f in report.findings]
    return jsonable(min((reach for reach in reaches if reach is not None), default=None))


def main() -> None:
    """Audit what isn't kept yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("library")
    parser.add_argument("--kept", type=Path, required=True, help="file of what is done")
    given = parser.parse_args()
    kept = Kept(given.kept)
    for entry in SUITE.part(given.library):
        print(f"{given.library}: {entry.name}", file=sys.stderr, flush=True)
        kept.get(f"{entry.name}/{entry.draws}", partial(audited, entry))


if __name__ == "__main__":
    main()
