"""Bounds from scores: their level, and the bounds beside jax_privacy's; prints its page.

That is ``docs/scores-compared.md``. The null scores attain what is claimed exactly, so that a bound
whose level isn't kept is above the true ε too often. ``--full`` makes 10,000 runs of each, else
``--runs`` says how many. The comparison gives the same scores to both, ``--seeds`` times. What is
done is kept in ``out/scores.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.kept import Kept
from benchmarks.peers.install import installed
from dpverify.auditing.attacks.scores import Design, audit_scores
from tests.helpers.null_scores import (
    ALPHA,
    DELTA,
    NULLS,
    Law,
    Null,
    Scores,
    above,
    laplace,
    most,
    normal,
    response,
)

__all__ = ["LAWS", "NULLS", "Null", "above", "most"]

_BLOCK = 100  # runs that are kept together
_SIZES = (10, 100, 1000, 10_000)


LAWS: dict[str, Law] = {
    "normal, 1 apart": partial(normal, 1.0),
    "normal, 2 apart": partial(normal, 2.0),
    "normal, 4 apart": partial(normal, 4.0),
    "normal, 8 apart": partial(normal, 8.0),
    "Laplace, ε = 1": laplace,
    "randomized response, ε = 1": response,
}


def _drawn(law: Law, count: int, seed: int) -> Scores:
    return law(count, np.random.default_rng((7, seed, count)))


def _ours(law: Law, count: int, seed: int) -> list[float]:
    designs: tuple[Design, ...] = ("independent", "one-run")
    drawn = _drawn(law, count, seed)
    return [
        audit_scores(*drawn, delta=DELTA, alpha=ALPHA, design=design).epsilon_lower
        for design in designs
    ]


def _theirs(count: int, seeds: int) -> dict[str, Any]:
    """Of jax_privacy, by the place of the law and the seed."""
    with tempfile.TemporaryDirectory() as folder:
        for place, law in enumerate(LAWS.values()):
            for seed in range(seeds):
                high, low = _drawn(law, count, seed)
                np.savez(Path(folder) / f"{place}-{seed}.npz", high=high, low=low)
        done = subprocess.run(  # noqa: S603  # an environment of our own
            [
                *(installed("jax-privacy").python, "-m", "benchmarks.peers.scores"),
                *(folder, str(ALPHA), str(float(DELTA))),
            ],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[1],
        )
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def page(kept: Kept, *, runs: int, seeds: int) -> str:
    """The documentation page."""
    nulls = []
    for null in NULLS:
        for count in _SIZES:
            total = 0
            for first in range(0, runs, _BLOCK):
                key = f"null/{null.name}/{count}/{first}"
                total += kept.get(key, partial(above, null, count, first, _BLOCK))
            print(f"{null.name}, {count}: {total} of {runs}", file=sys.stderr, flush=True)
            nulls.append(f"| {null.name} | {count:,} | {total:,} |")
    compared = []
    for count in _SIZES:
        answers = kept.get(f"jax/{count}/{seeds}", partial(_theirs, count, seeds))
        for place, (name, law) in enumerate(LAWS.items()):
            ours = [
                kept.get(f"ours/{name}/{count}/{seed}", partial(_ours, law, count, seed))
                for seed in range(seeds)
            ]
            stems = [f"{place}-{seed}" for seed in range(seeds)]
            pearson = [
                max(answers[stem][0], answers[f"{stem}/split"], answers[f"{stem}/splits"])
                for stem in stems
            ]
            cells = (
                median(one for one, _ in ours),
                median(answers[stem][0] for stem in stems),
                median(answers[f"{stem}/split"] for stem in stems),
                median(answers[f"{stem}/splits"] for stem in stems),
                median(run for _, run in ours),
                median(answers[f"{stem}/one run"] for stem in stems),
                median(answers[f"{stem}/model"] for stem in stems),
            )
            least = min(own - best for (own, _), best in zip(ours, pearson, strict=True))
            row = " | ".join(f"{cell:.3f}" for cell in cells)
            compared.append(f"| {name} | {count:,} | {row} | {least:+.3f} |")
    return _PAGE.format(
        runs=f"{runs:,}",
        most=f"{most(runs):,}",
        alpha=ALPHA,
        seeds=seeds,
        delta=float(DELTA),
        nulls="\n".join(nulls),
        compared="\n".join(compared),
    )


_PAGE = """\
# Scores, measured

Printed by `python -m benchmarks.scores` (`--full` makes 10,000 runs).

## The level

How often the bound of `audit_scores` at level {alpha} is above the true ε, in {runs} runs. *Number*
is that of scores on each side (for one-run scores, in all). The scores attain their ε exactly.
Except with probability 1e-4, a bound that keeps its level is above it at most {most} times.

| scores | number | above the true ε |
|---|---|---|
{nulls}

## Compared with jax-privacy 2.0

Median lower bounds on ε at δ = {delta:g}, level {alpha}, over {seeds} seeds, from the same scores:
`audit_scores`, then the Clopper-Pearson bounds of `CanaryScoreAuditor` with Bonferroni's correction
(its default), with one split, and with many. *Least* is the smallest difference, over the seeds,
between our bound and the best of those three. A user has to choose one of the three beforehand,
since the best of three has no level; nor is a level proven for the default, which divides by the
number of corners of the convex hull of the same scores. The one-run columns treat the same scores
as those of one training run. *Model* is its number from the model of Gaussian differential privacy,
which is not a lower bound on ε.

| scores | per side | ours | default | split | 20 splits | ours, one run | one run | model | least |
|---|---|---|---|---|---|---|---|---|---|
{compared}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="10,000 runs")
    parser.add_argument("--runs", type=int, default=200, help="of every null, in hundreds")
    parser.add_argument("--seeds", type=int, default=20, help="of the comparison")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    runs = 10_000 if given.full else 100 * (given.runs // 100)
    print(page(Kept(given.out / "scores.jsonl"), runs=runs, seeds=given.seeds), end="")


if __name__ == "__main__":
    main()
