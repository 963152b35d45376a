"""How many pairs of outputs a sequential audit needs; prints ``docs/sequential-audits.md``.

The means are those of "Sequentially Auditing Differential Privacy" (González, Dulce-Rubio, Ramdas
and Ribero 2025), who took them from DP-Auditorium: of the data sets [0] and [0, 1], with noise of
scale 2/(nε), so that how much of it there is tells n; or of the right scale for a noisy n, beside a
mean that is divided by n itself. Beside them stand Laplace noise of half the scale, the sparse
vector techniques that Lyu, Su and Li list as wrong, and steps of training, seen along a canary's
direction, without noise or with noise that is divided by the size of the batch. Of the sparse
vector techniques and of the means with a noisy count `benchmarks.best_bettor` says what the best
bettor would need.

``--seeds`` audits of each; what is done is kept in ``out/sequential.jsonl``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.best_bettor import best, best_of, mean_law
from benchmarks.kept import Kept
from benchmarks.published import Sparse
from dpverify.auditing.audit import audit
from dpverify.auditing.finding import BetEvidence
from dpverify.data.adjacency import AddRemove, LInf
from dpverify.privacy import Pair

Array = NDArray[Any]
Rng = np.random.Generator

ALPHA = 0.05
MOST = 2000
"""Pairs after which an audit ends."""


def mean(rows: Array, rng: Rng, *, noise: str, epsilon: float, noisy: bool) -> float:
    """A mean, with noise for a count of rows, or for a noisy one."""
    draw, n = getattr(rng, noise), len(rows)
    count = max(1e-12, n + draw(scale=2 / epsilon)) if noisy else n
    return float(np.sum(rows) / n + draw(scale=2 / (count * epsilon)))


def count(rows: Array, rng: Rng) -> float:
    """A count with Laplace noise of half the scale for ε = 1."""
    return float(len(rows) + rng.laplace(scale=0.5))


def step(rows: Array, rng: Rng, *, noise: float) -> float:
    """A step of training along a canary's direction: a batch's gradients, clipped to norm 1."""
    gradients = rng.normal(scale=0.1, size=32)
    return float(gradients.sum() + np.sum(rows) + noise * rng.normal()) / 32


def sparse(answers: Any, rng: Rng, *, technique: Sparse) -> Any:
    """The answers of a sparse vector technique."""
    return technique(np.asarray(answers, dtype=float), 1, rng)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An audited mechanism.

    Attributes
    ----------
    name : in words
    function : of a data set or of answers, and a generator
    pair : both
    epsilon, delta : claimed
    published : pairs that González and others needed
    technique : that the function is, if it is one
    noise : of the mean with a noisy count that the function is, if it is one
    """

    name: str
    function: Callable[..., Any]
    pair: tuple[Any, Any]
    epsilon: float
    delta: float = 0.0
    published: str = "–"
    technique: Sparse | None = None
    noise: str | None = None


def _means() -> list[Row]:
    published = {
        ("laplace", False): ("331", "920"),
        ("laplace", True): ("192", "770, 5 % missed"),
        ("normal", False): ("264", "562"),
        ("normal", True): ("1139, 15 % missed", "4776, 95 % missed"),
    }
    return [
        Row(
            name=f"mean, {noise} noise {'of a noisy count' if noisy else 'that tells the count'}",
            function=partial(mean, noise=noise, epsilon=epsilon, noisy=noisy),
            pair=([0.0], [0.0, 1.0]),
            epsilon=epsilon,
            delta=1e-5 if noise == "normal" else 0.0,
            published=needed,
            noise=noise if noisy else None,
        )
        for (noise, noisy), both in published.items()
        for epsilon, needed in zip((0.01, 0.1), both, strict=True)
    ]


_FIRST, _LAST = [1.0] * 20 + [0.0] * 20, [0.0] * 20 + [1.0] * 20
_CANARY: tuple[Any, Any] = ([], [1.0])

ROWS = (
    *_means(),
    Row(name="count, Laplace noise of half the scale", function=count, pair=_CANARY, epsilon=1),
    *(
        Row(
            name="steps of training without noise",
            function=partial(step, noise=0.0),
            pair=_CANARY,
            epsilon=epsilon,
            delta=1e-5,
            published=needed,
        )
        for epsilon, needed in ((0.01, "60"), (0.1, "75"))
    ),
    Row(
        name="steps of training, noise divided by the batch's size",
        function=partial(step, noise=5 / 32),
        pair=_CANARY,
        epsilon=1,
        delta=1e-5,
    ),
    # A tenth of the scales that the other page has for ε = 0.1.
    *(
        Row(
            name=f"{name} of 40 answers",
            function=partial(sparse, technique=technique),
            pair=(_LAST, _FIRST),
            epsilon=1,
            technique=technique,
        )
        for name, technique in (
            ("SVT3", Sparse(scales=(0.1, 0.1), numeric=True)),
            ("SVT4", Sparse(part=0.25, scales=(0.1, 0.1), most=20)),
            ("SVT5", Sparse(scales=(0.1, 0), most=None)),
            ("SVT6", Sparse(scales=(0.1, 0.1), most=None)),
        )
    ),
)


def needed(row: Row, seed: int) -> int | None:
    """Pairs of outputs after which the claim is refuted, None where it isn't."""
    data = len(row.pair[1]) <= 2
    record, neighbour = row.pair if data else (np.array([side]) for side in row.pair)
    report = audit(
        row.function,
        epsilon=row.epsilon,
        delta=row.delta,
        adjacency=AddRemove() if data else LInf(1),
        of="dataset" if data else "record",
        pairs=[Pair(name="the pair", record=record, neighbour=neighbour)],
        kinds=["sequential"],
        alpha=ALPHA,
        draws=MOST,
        seed=seed,
        workers=1,
    )
    (finding,) = report.findings
    assert isinstance(finding.evidence, BetEvidence), finding
    return finding.evidence.draws if finding.verdict == "violation" else None


def least(row: Row) -> tuple[float, float] | None:
    """What the best bettor and any test need in the median; None where the laws aren't computed."""
    first, second = (np.array(side) for side in row.pair)
    if row.noise is not None:
        laws = (mean_law(side, row.epsilon, noise=row.noise) for side in (first, second))
        return best_of(*laws, epsilon=row.epsilon, alpha=ALPHA, rng=np.random.default_rng(0))
    if row.technique is None:
        return None
    return best(row.technique, (first, second), epsilon=row.epsilon, alpha=ALPHA)


def page(kept: Kept, *, seeds: int) -> str:
    """The documentation page."""
    lines = []
    for row in ROWS:
        found = [
            kept.get(f"{row.name}/{row.epsilon}/{seed}", partial(needed, row, seed))
            for seed in range(seeds)
        ]
        counts = [math.inf if count is None else count for count in found]
        middle, high = median(counts), float(np.quantile(counts, 0.9, method="higher"))
        known = kept.get(f"{row.name}/{row.epsilon}/least", partial(least, row)) or [math.inf] * 2
        cells = (
            row.name,
            f"{row.epsilon:g}",
            f"{row.delta:g}",
            f"{sum(count is not None for count in found)} of {seeds}",
            _pairs(middle),
            _pairs(high),
            *(_pairs(math.ceil(each) if each < math.inf else each) for each in known),
            row.published,
        )
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return _PAGE.format(alpha=ALPHA, most=f"{MOST:,}", rows="\n".join(lines))


def _pairs(count: float) -> str:
    return "–" if count == math.inf else f"{count:g}"


_PAGE = """\
# How soon a bug is found

The number of pairs of outputs, one from each side, after which the sequential audit refutes a claim
at level {alpha}, by outputs alone; it gives up after {most}. The noisy means are those of
“Sequentially Auditing Differential Privacy” (González and others 2025), whose average numbers are
in the last column (their training steps are of a neural network). Printed by
`python -m benchmarks.sequential`.

*Best* is the median of a bettor who knows both output distributions and bets for the largest
growth. *Any* is a lower bound on the median of every test at this level
(`benchmarks.best_bettor`). So no test finds SVT3 from these answers in a hundred pairs, and with a
noisy count even the best bettor finds only one of the means. The difference between our number and
the best is the price of learning where to bet. For the sparse vector techniques the direction of
the bets, from one side to the other, is known beforehand.

| mechanism | claimed ε | δ | found | median | 90 % | best | any | published |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=51, help="audits of each")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    print(page(Kept(given.out / "sequential.jsonl"), seeds=given.seeds), end="")


if __name__ == "__main__":
    main()
