"""Lower bounds on ε of the mechanisms of DP-Sniper's and StatDP's papers, beside theirs.

Prints ``docs/two-papers.md``. The mechanisms and the figures of both tools are in
`benchmarks.published`; what the best events would give is by `benchmarks.best_event`.

Ours is `dpverify.audit` of the black-box kind, at confidence 0.9 as theirs, with a million draws
counted on each side and its two million for training; ``--draws`` takes others. What is done is
kept in ``out/two_papers.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.best_event import best
from benchmarks.kept import Kept
from benchmarks.published import EPSILON, ROWS, Array, Rng, Row
from dpverify.auditing.audit import audit
from dpverify.auditing.finding import EventEvidence
from dpverify.data.adjacency import LInf
from dpverify.privacy import Pair

ALPHA = 0.1


def pair_of(row: Row) -> Pair:
    """Its neighbours: each answer moves by at most 1."""
    record, neighbour = (side[None] for side in row.sides)
    return Pair(name=" and ".join(row.pair), record=record, neighbour=neighbour)


def measured(row: Row, draws: int, seed: int) -> tuple[float, str, float]:
    """Our lower bound, its event, and seconds of processor time."""
    start = process_time()

    def many(answers: Any, n: int, rng: Rng) -> Array:
        return row.many(np.atleast_1d(np.asarray(answers, dtype=float)), n, rng)

    report = audit(
        many,
        epsilon=EPSILON,
        adjacency=LInf(1),
        of="record",
        many=True,
        pairs=[pair_of(row)],
        kinds=["black-box"],
        alpha=ALPHA,
        draws=draws,
        seed=seed,
        workers=1,
    )
    (finding,) = report.findings
    assert isinstance(finding.evidence, EventEvidence), finding
    return finding.epsilon_lower or 0.0, finding.evidence.event, process_time() - start


def _number(value: float) -> str:
    return "unbounded" if value == math.inf else f"{value:.4g}"


def _published(figures: tuple[float, float] | None) -> str:
    return "–" if figures is None else f"{figures[1]:.4f} ({_number(figures[0])})"


def page(kept: Kept, rows: Sequence[Row], *, draws: int, seeds: int) -> str:
    """The documentation page."""
    lines = []
    for row in rows:
        runs = [
            kept.get(f"{row.name}/{draws}/{seed}", partial(measured, row, draws, seed))
            for seed in range(seeds)
        ]
        bound, event, seconds = sorted(runs)[seeds // 2]
        cells = (
            row.name,
            _number(row.epsilon),
            f"{bound:.4f}",
            f"{kept.get(f'{row.name}/{draws}/best', partial(best, row, draws, ALPHA)):.4f}",
            _published(row.sniper),
            _published(row.statdp),
            f"`{event}`",
            f"{seconds:.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return _PAGE.format(
        draws=f"{draws:,}", seeds=seeds, confidence=1 - ALPHA, rows="\n".join(lines)
    )


_PAGE = """\
# Two papers' mechanisms

The mechanisms, their parameters and the neighbours are those of DP-Sniper's published code (Bichsel
and others 2021), which includes those of StatDP (Ding and others 2018). All bounds are one-sided
lower bounds on ε, at confidence {confidence:g}. Printed by `python -m benchmarks.two_papers`.

- **ours**: `dpv.audit` by outputs alone, with {draws} counted draws on each side and twice as many
  for training; the median of {seeds} seeds. It doesn't know what the parts of an output mean.
- **best**: the same limit, with the same number of draws and the expected counts, for the best
  event by somebody who knows both distributions (`benchmarks.best_event`).
- **published**: lower limits, with estimates in brackets, from 10.7 million draws in each of two
  phases of training and 200 million counted draws: the better of DP-Sniper's two classifiers, and
  the better of two runs of StatDP.

One limit in ten may be above the true value: DP-Sniper's of Rappor and StatDP's of NoisyHist2 are.

With a million counted draws, the limit for an event of 2 % of the outputs is 0.013 below its
estimate, with 200 million 0.001: this explains most of the difference for SVT1, SVT2 and SVT4. Ours
can exceed the best by chance in counting. The best events of SVT3 and ReportNoisyMax4 have 0.2 % of
the outputs or less; the audit's cautious choice prefers larger events.

The true ε is that of the worst pair, and for RAPPOR that of these two values.

| mechanism | true ε | ours | best | published: DP-Sniper | StatDP | our event | seconds |
|---|---|---|---|---|---|---|---|
{rows}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=10**6, help="that are counted on each side")
    parser.add_argument("--seeds", type=int, default=3, help="an odd number, for the median")
    parser.add_argument("--only", nargs="+", choices=[row.name for row in ROWS], help="mechanisms")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    rows = [row for row in ROWS if given.only is None or row.name in given.only]
    kept = Kept(given.out / "two_papers.jsonl")
    print(page(kept, rows, draws=given.draws, seeds=given.seeds), end="")


if __name__ == "__main__":
    main()
