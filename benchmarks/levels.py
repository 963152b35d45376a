"""False alarms of every mode of audit on true claims; prints ``docs/audit-levels.md``.

Every null attains its claim exactly, so that a test that spends a little too much accuses it too
often; every mode has a control beside it, a claim that is too low or noise that isn't exact, which
it must accuse more often than a true claim may be. Draws are few, where a level is hardest to keep.

``--full`` makes 10,000 runs of every null, else ``--runs`` says how many, and a tenth as many of
its control. What is done is kept in ``out/levels.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from benchmarks.kept import Kept
from tests.helpers.levels import ALPHA, MODES, Mode, accusations, most

__all__ = ["ALPHA", "MODES", "Mode", "accusations", "most"]

_BLOCK = 100  # runs that are kept together


def page(kept: Kept, *, runs: int, controls: int) -> str:
    """The documentation page."""
    lines = []
    for mode in MODES:
        counts = []
        for true, count in ((True, runs), (False, controls)):
            total = 0
            for first in range(0, count, _BLOCK):
                key = f"{mode.name}/{'null' if true else 'control'}/{first}"
                total += kept.get(key, partial(accusations, mode, first, _BLOCK, true=true))
            print(f"{mode.name}: {total} of {count}", file=sys.stderr, flush=True)
            counts.append(total)
        accused, caught = counts
        lines.append(f"| {mode.name} | {mode.null} | {accused:,} | {mode.control} | {caught:,} |")
    return _PAGE.format(
        runs=f"{runs:,}",
        controls=f"{controls:,}",
        most=f"{most(runs):,}",
        least=f"{most(controls):,}",
        alpha=ALPHA,
        table="\n".join(lines),
    )


_PAGE = """\
# Levels, measured

How often each mode of audit accuses a true claim at level {alpha}, in {runs} runs. Every true claim
is attained exactly, and draws are few, which is the hardest case for a level. Except with
probability 1e-4, a mode that keeps its level accuses at most {most} times. The control has a false
claim, and must be accused more than {least} times of {controls}, since a test that accuses nobody
would keep its level too. Printed by `python -m benchmarks.levels` (`--full` makes 10,000 runs).

| mode | null | accused | control | accused |
|---|---|---|---|---|
{table}

Exact tests with few draws stay below their level, since counts are whole numbers. The level of the
moment checks is asymptotic, and they never decide a verdict about privacy. Exhaustive audits draw
nothing, and never accuse a true claim.
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="10,000 runs")
    parser.add_argument("--runs", type=int, default=200, help="of every null, in hundreds")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    kept = Kept(given.out / "levels.jsonl")
    runs = 10_000 if given.full else 100 * (given.runs // 100)
    print(page(kept, runs=runs, controls=max(runs // 10, 100)), end="")


if __name__ == "__main__":
    main()
