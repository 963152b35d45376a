"""Bugs that show in rare outputs: how often an audit finds them; prints a table.

Every subject claims (1, δ). The broken one has 2.8 times that δ, nearly all of it in outputs that
the other side hardly ever gives; the correct twin attains its claim exactly. The reference is told
the best event beforehand and spends the whole level on it with the same exact test: the draws are
as many as give it a power of 80 %, computed, not simulated. The audit knows the outputs alone. What
it must reach is 72 %.

A run draws training and counted outputs and makes the black-box attack at the level that it has in
an audit of all kinds; the other kinds can only add to what it finds. `--whole` runs that audit,
release by release. Each count comes with its 95 % interval (Clopper and Pearson).

``--full`` makes 200 runs at each δ; else ``--runs`` and ``--deltas`` say. What is done is kept in
``out/rare_events.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import beta, binom

from benchmarks.kept import Kept
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.two_sample_binomial import Counts
from tests.helpers.rare_events import (
    ALPHA,
    FACTOR,
    SUBJECTS,
    Law,
    Rare,
    claim_of,
    finds,
    whole,
)

__all__ = ["ALPHA", "AT_LEAST", "FACTOR", "SUBJECTS", "Law", "Rare", "draws_for", "finds", "whole"]

POWER = 0.8
AT_LEAST = 0.72
DELTAS = ("0.01", "0.001", "0.0001")


def power(p: float, q: float, delta: Fraction, draws: int) -> float:
    """Probability that the test of one event at the whole level refutes the claim.

    Over five equally likely counts of the other side.
    """
    found = []
    for part in (0.1, 0.3, 0.5, 0.7, 0.9):
        false_hits = int(binom.ppf(part, draws, q))

        def refuted(hits: int, false_hits: int = false_hits) -> bool:
            counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
            caution = 1.0 if q == 0 else None
            judged = judge(counts, claim_of(delta), delta, ALPHA, caution=caution)
            return judged.refuted_at is not None

        few, many = (int(binom.ppf(part, draws, p)) for part in (1e-9, 1 - 1e-9))
        if not refuted(many):
            found.append(0.0)
            continue
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if refuted(middle) else (middle, many)
        found.append(float(binom.sf(many - 1, draws, p)))
        if q == 0:
            break
    return float(np.mean(found))


def draws_for(subject: Rare, delta: Fraction) -> int:
    """Fewest draws, to 3 %, with which the test of the best event has its power."""
    p, q = subject.best(FACTOR * float(delta), float(delta))

    def enough(draws: int) -> bool:
        return power(p, q, delta, draws) >= POWER

    few, many = 1, math.ceil(4 / delta)
    while not enough(many):
        few, many = many, 2 * many
    while many > 1.03 * few:
        middle = math.ceil(math.sqrt(few * many))
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def interval(count: int, runs: int) -> tuple[float, float]:
    """Clopper's and Pearson's, 95 %."""
    low = float(beta.ppf(0.025, count, runs - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, runs - count)) if count < runs else 1.0
    return low, high


def _cell(count: int, runs: int) -> str:
    low, high = interval(count, runs)
    return f"{count} of {runs} ({low:.1%} to {high:.1%})"


def table(kept: Kept, *, runs: int, deltas: list[str], entire: int) -> str:
    """Markdown; `entire` runs of each are of the whole audit, at the first δ."""
    lines = [
        f"| mechanism, level {ALPHA} | δ | draws | bug found | twin accused | whole audit: found "
        "| accused |",
        "|---|---|---|---|---|---|---|",
    ]
    for delta in map(Fraction, deltas):
        for subject in SUBJECTS:
            key = f"{subject.name}/{float(delta):g}"
            draws = kept.get(f"{key}/draws", partial(draws_for, subject, delta))
            cells = []
            for name, count in (
                ("attack", runs),
                ("whole", entire if delta == max(map(Fraction, deltas)) else 0),
            ):
                for factor in (FACTOR, 1.0):
                    hits = 0
                    for seed in range(count):
                        make = _ATTACKS[name]
                        run = partial(make, subject, delta, draws, seed, factor=factor)
                        hits += kept.get(f"{key}/{name}/{factor}/{seed}", run)
                    cells.append(_cell(hits, count) if count else "")
            lines.append(f"| {subject.name} | {float(delta):g} | {draws:,} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def _accuses(subject: Rare, delta: Fraction, draws: int, seed: int, *, factor: float) -> bool:
    return whole(subject, delta, draws, seed, factor=factor).verdict == "violation"


_ATTACKS: dict[str, Callable[..., bool]] = {"attack": finds, "whole": _accuses}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="200 runs at each δ")
    parser.add_argument("--runs", type=int, default=20, help="of each")
    parser.add_argument("--deltas", nargs="+", default=["0.01"], help="that are claimed")
    parser.add_argument("--whole", type=int, default=0, help="runs of the whole audit")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    kept = Kept(given.out / "rare_events.jsonl")
    runs, deltas = (200, [*DELTAS]) if given.full else (given.runs, given.deltas)
    print(table(kept, runs=runs, deltas=deltas, entire=200 if given.full else given.whole))


if __name__ == "__main__":
    main()
