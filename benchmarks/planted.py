"""The table of planted releases: which audits find each, with how many draws, and false alarms.

For each kind of audit the draws on each side are doubled from 50 until it finds the bug at
α = 0.05, on up to 6,400; the table has medians over the seeds. The lower bound on ε of the broken
mechanism is the black-box audit's at the bug's own number of draws, and the exact value where it
can be enumerated. The correct twin is audited in short runs by the first kind that found the bug,
of which at most the 99.9 % quantile of Bin(runs, α) may accuse it. ``--full`` takes 20 seeds and
1,000 short runs; without it, 3 and 100.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from scipy.stats import binom

from dpverify.auditing.exhaustive import exhaust
from dpverify.auditing.findings import AuditKind
from dpverify.auditing.run import audit
from dpverify_audits.planted import RELEASES, PlantedRelease
from dpverify_audits.planted.releases import Reports

__all__ = ["Row", "measured"]

ALPHA = 0.05
FIRST, MOST = 50, 6_400
SHORT = 100
"""Draws of a short run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A planted release; `needs` holds median draws (None: not found) and seconds of each kind."""

    name: str
    claimed: float
    shown: float
    exact: bool
    needs: dict[str, tuple[float | None, float]]
    false_alarms: int
    runs: int
    most: int


def found_with(bug: PlantedRelease, kind: AuditKind, seed: int) -> tuple[float, float]:
    """Draws with which the bug is found (infinite: not with `MOST`), and seconds of that run."""
    draws = FIRST
    while True:
        start = perf_counter()
        report = audit(bug.broken(), alpha=ALPHA, draws=draws, kinds=[kind], seed=seed, workers=1)
        seconds = perf_counter() - start
        if report.verdict == "violation":
            return draws, seconds
        if draws >= MOST:
            return math.inf, seconds
        draws *= 2


def shown(bug: PlantedRelease) -> tuple[float, bool]:
    """ε of the broken mechanism at its pair, exactly, or a 95 % lower bound."""
    broken = bug.broken()
    if isinstance(broken, Reports):
        return exhaust(broken, [[*broken.record], [*broken.neighbour]]).epsilon().lower, True
    report = audit(broken, alpha=ALPHA, draws=bug.draws, kinds=["black-box"], seed=0, workers=1)
    return max(finding.epsilon_lower or 0.0 for finding in report.findings), False


def measured(bug: PlantedRelease, seeds: int, runs: int) -> Row:
    """One row of the table."""
    needs: dict[str, tuple[float | None, float]] = {}
    for kind in bug.found_by:
        rows = [found_with(bug, kind, seed) for seed in range(seeds)]
        draws, seconds = (median(column) for column in zip(*rows, strict=True))
        needs[kind] = (draws if math.isfinite(draws) else None, seconds)
    # Exhaustive and grey-box checks draw nothing; they are repeated for nothing.
    drawing = [kind for kind in bug.found_by if kind not in ("exhaustive", "grey-box")]
    alarms = sum(
        audit(
            bug.twin(), alpha=ALPHA, draws=SHORT, kinds=drawing[:1], seed=1000 + run, workers=1
        ).verdict
        == "violation"
        for run in range(runs)
    )
    epsilon, exact = shown(bug)
    return Row(
        name=bug.name,
        claimed=float(bug.twin().claim),
        shown=epsilon,
        exact=exact,
        needs=needs,
        false_alarms=alarms,
        runs=runs,
        most=int(binom.ppf(0.999, runs, ALPHA)),
    )


def line(row: Row) -> str:
    """The row in Markdown."""
    needs = "; ".join(
        f"{kind} {'not found' if draws is None else f'{draws:,.0f}'} ({seconds:.2f} s)"
        if kind not in ("exhaustive", "grey-box")
        else f"{kind} ({seconds:.3f} s)"
        for kind, (draws, seconds) in row.needs.items()
    )
    value = f"{'=' if row.exact else '≥'} {row.shown:.3g}"
    alarms = f"{row.false_alarms} of {row.runs} (at most {row.most})"
    return f"| {row.name} | {row.claimed:g} | {value} | {needs} | {alarms} |"


def main() -> None:
    """Print the table, and write it under ``out/``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="20 seeds, 1,000 short runs")
    full = parser.parse_args().full
    print("| bug | ε claimed | ε of the bug | found with draws a side (seconds) | false alarms |")
    print("|---|---|---|---|---|")
    rows = []
    for bug in RELEASES:
        rows.append(measured(bug, *((20, 1000) if full else (3, 100))))
        print(line(rows[-1]), flush=True)
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "planted.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
