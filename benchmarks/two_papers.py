"""Lower bounds on ε of the mechanisms of DP-Sniper's and StatDP's papers, beside theirs.

Prints ``docs/two-papers.md``. The mechanisms, their parameters and the pairs are those of
DP-Sniper's published code: Bichsel, Steffen, Bogunovic and Vechev 2021, "DP-Sniper: Black-Box
Discovery of Differential Privacy Violations using Classifiers"; Ding, Wang, Wang, Zhang and Kifer
2018, "Detecting Violations of Differential Privacy"; Lyu, Su and Li 2017, "Understanding the Sparse
Vector Technique for Differential Privacy". So are the figures of both tools: the best of
DP-Sniper's two classifiers, and of two runs of StatDP, each counted on 200 million draws a side.

Ours is `dpverify.audit` of the black-box kind, at confidence 0.9 as theirs, with a million draws
counted on each side and its two million for training; ``--draws`` takes others. What is done is
kept in ``out/two_papers.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.kept import Kept
from dpverify.auditing.audit import audit
from dpverify.auditing.finding import EventEvidence
from dpverify.data.adjacency import LInf
from dpverify.privacy import Pair

Array = NDArray[Any]
Rng = np.random.Generator
Many = Callable[[Array, int, Rng], Array]
"""Draws n outputs at once for a vector of answers."""

ALPHA = 0.1
EPSILON = 0.1


def laplace(answers: Array, n: int, rng: Rng) -> Array:
    """One answer with noise."""
    return np.asarray(answers[0] + rng.laplace(scale=1 / EPSILON, size=n))


def truncated_geometric(answers: Array, n: int, rng: Rng) -> Array:
    """Balcer and Vadhan's GeoSample of a count from 0 to 5, by its distribution function."""
    count, most, k = int(answers[0]), 5, math.ceil(math.log(2 / EPSILON))
    base = 2**k
    total = (2 * base + 1) * (base + 1) ** (most - 1)
    steps = [base ** (count - z) * (base + 1) ** (most - count + z) for z in range(count)]
    steps += [
        total - base ** (z - count + 1) * (base + 1) ** (most - 1 - z + count)
        for z in range(count, most)
    ]
    return np.searchsorted(steps, rng.integers(1, total + 1, size=n))


def histogram(answers: Array, n: int, rng: Rng, *, scale: float) -> Array:
    """Counts with noise."""
    return answers + rng.laplace(scale=scale, size=(n, answers.size))


def noisy_max(answers: Array, n: int, rng: Rng, *, noise: str, value: bool) -> Array:
    """The place of the largest answer with noise, or the answer itself."""
    noisy = answers + getattr(rng, noise)(scale=2 / EPSILON, size=(n, answers.size))
    return np.asarray(noisy.max(axis=1) if value else noisy.argmax(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A sparse vector technique, as Lyu, Su and Li list them.

    Attributes
    ----------
    part : of ε for the threshold
    scales : of the noise of threshold and answers, in units of the inverse of their parts of ε
    threshold : that answers are compared to
    most : answers above, after which it ends; None for no end
    renewed : whether an answer above draws the threshold anew
    numeric : whether it gives the noisy answers above
    """

    part: float = 0.5
    scales: tuple[float, float]
    threshold: float = 1.0
    most: int | None = 1
    renewed: bool = False
    numeric: bool = False

    def __call__(self, answers: Array, n: int, rng: Rng) -> Array:
        """Per answer 1 or 0 and −1 after the end; or the number, −1000, and −2000."""
        first, second = self.scales[0] / self.part, self.scales[1] / (1 - self.part)
        bar = self.threshold + rng.laplace(scale=first / EPSILON, size=n)
        noisy = answers + (
            rng.laplace(scale=second / EPSILON, size=(n, answers.size)) if second else 0.0
        )
        noisy = np.broadcast_to(noisy, (n, answers.size))
        given = np.empty((n, answers.size))
        above = np.zeros(n, dtype=int)
        for place in range(answers.size):
            passed = noisy[:, place] >= bar
            ended = above >= (self.most or math.inf)
            number = noisy[:, place] if self.numeric else 1.0
            given[:, place] = np.where(passed, number, -1000.0 if self.numeric else 0.0)
            given[ended, place] = -2000.0 if self.numeric else -1.0
            above += passed
            if self.renewed:
                fresh = self.threshold + rng.laplace(scale=first / EPSILON, size=n)
                bar = np.where(passed, fresh, bar)
        return given


def numerical_sparse(answers: Array, n: int, rng: Rng) -> Array:
    """Wang et al.'s: two answers above with noise of their own, 0 for others, −1000 at the end."""
    size = (n, answers.size)
    bar = 1 + rng.laplace(scale=3 / EPSILON, size=(n, 1))
    passed = answers + rng.laplace(scale=12 / EPSILON, size=size) >= bar
    given = np.where(passed, answers + rng.laplace(scale=6 / EPSILON, size=size), 0.0)
    return np.where(passed.cumsum(axis=1) - passed >= 2, -1000.0, given)


def bloom(answers: Array, n: int, rng: Rng, *, f: float, once: bool) -> Array:
    """RAPPOR: twenty bits of a Bloom filter, each answered at random, for good and each time."""
    # Where MurmurHash3 puts "0" and "1", by seeds 0 to 3.
    ones = np.zeros(20)
    ones[[0, 11, 18] if answers[0] == 0 else [3, 10, 13]] = 1
    kept = f / 2 + (1 - f) * ones
    bits = rng.random((n, 20)) < (kept if once else 0.45 + 0.1 * kept)
    return bits.astype(float)


def parallel(answers: Array, n: int, rng: Rng, *, parts: Sequence[Many]) -> Array:
    """Outputs of all parts, side by side."""
    return np.column_stack([part(answers, n, rng) for part in parts])


def weak_laplace(answers: Array, n: int, rng: Rng) -> Array:
    """Twenty times one answer with noise, each with ε = 0.005."""
    return np.asarray(answers[0] + rng.laplace(scale=200, size=(n, 20)))


def prefix_sum(answers: Array, n: int, rng: Rng) -> Array:
    """Sums of ever more noisy answers."""
    return (answers + rng.laplace(scale=1 / EPSILON, size=(n, answers.size))).cumsum(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A mechanism of the table.

    Attributes
    ----------
    name : in DP-Sniper's code
    many : its draws
    pair : answers on both sides
    epsilon : the true one, for any pair
    sniper, statdp : published, the estimate and its lower limit
    """

    name: str
    many: Many
    pair: tuple[str, str]
    epsilon: float
    sniper: tuple[float, float]
    statdp: tuple[float, float] | None


_SVT34 = (
    Sparse(scales=(1, 2), most=2, numeric=True),
    Sparse(part=0.25, scales=(1, 1), most=2),
)
_FIRST, _LAST = "1111100000", "0000011111"
_ALL, _SPLIT = "1111111111", "2222200000"
_BLOOM = math.log(0.5125 / 0.4875), math.log(0.525 / 0.475)

ROWS = tuple(
    Row(name=name, many=many, pair=pair, epsilon=epsilon, sniper=sniper, statdp=statdp)
    for (name, many), pair, epsilon, sniper, statdp in (
        (("LaplaceMechanism", laplace), ("0", "1"), 0.1, (0.0999, 0.0976), (0.1001, 0.0998)),
        (
            ("TruncatedGeometric", truncated_geometric),
            ("2", "1"),
            math.log(9 / 8),
            (0.1178, 0.1156),
            (0.1179, 0.1169),
        ),
        (
            ("NoisyHist1", partial(histogram, scale=10)),
            ("01111", "11111"),
            0.1,
            (0.1, 0.0978),
            (0.0999, 0.0994),
        ),
        (
            ("NoisyHist2", partial(histogram, scale=0.1)),
            ("01111", "11111"),
            10,
            (4.6032, 4.602),
            (10.0341, 10.0022),
        ),
        (
            ("ReportNoisyMax1", partial(noisy_max, noise="laplace", value=False)),
            ("11111", "02222"),
            0.1,
            (0.0948, 0.0925),
            (0.0926, 0.0921),
        ),
        (
            ("ReportNoisyMax2", partial(noisy_max, noise="exponential", value=False)),
            ("11111", "02222"),
            0.1,
            (0.1002, 0.0979),
            (0.1001, 0.0997),
        ),
        (
            ("ReportNoisyMax3", partial(noisy_max, noise="laplace", value=True)),
            ("11111", "22222"),
            0.25,
            (0.251, 0.2488),
            (0.2001, 0.1991),
        ),
        (
            ("ReportNoisyMax4", partial(noisy_max, noise="exponential", value=True)),
            ("11111", "22222"),
            math.inf,
            (0.3556, 0.3534),
            (0.1998, 0.1988),
        ),
        (
            ("SVT1", Sparse(scales=(1, 2), threshold=0.5)),
            (_LAST, _FIRST),
            0.1,
            (0.0881, 0.0858),
            (0.0328, 0.0298),
        ),
        (
            ("SVT2", Sparse(scales=(1, 2), renewed=True)),
            (_LAST, _FIRST),
            0.1,
            (0.0882, 0.0859),
            (0.0433, 0.0407),
        ),
        (
            ("SVT3", Sparse(scales=(1, 1), numeric=True)),
            (_LAST, _FIRST),
            math.inf,
            (0.1844, 0.1822),
            (0.1986, 0.1793),
        ),
        (
            ("SVT4", Sparse(part=0.25, scales=(1, 1))),
            (_ALL, _SPLIT),
            0.175,
            (0.1718, 0.1696),
            (0.1738, 0.1719),
        ),
        (
            ("SVT5", Sparse(scales=(1, 0), most=None)),
            (_ALL, "0222222222"),
            math.inf,
            (1.7628, 1.7612),
            (math.inf, 14.3143),
        ),
        (
            ("SVT6", Sparse(scales=(1, 1), most=None)),
            (_LAST, _FIRST),
            math.inf,
            (0.2742, 0.272),
            (0.3256, 0.322),
        ),
        (
            ("Rappor", partial(bloom, f=0.75, once=False)),
            ("1", "0"),
            6 * _BLOOM[0],
            (0.303, 0.3008),
            (0.2495, 0.2416),
        ),
        (
            ("OneTimeRappor", partial(bloom, f=0.95, once=True)),
            ("0", "1"),
            6 * _BLOOM[1],
            (0.6019, 0.5999),
            (0.4763, 0.4706),
        ),
        (("LaplaceParallel", weak_laplace), ("1", "0"), 0.1, (0.0372, 0.035), (0.0143, 0.0135)),
        (
            ("SVT34Parallel", partial(parallel, parts=_SVT34)),
            (_ALL, _SPLIT),
            math.inf,
            (0.2638, 0.2616),
            (0.2214, 0.1963),
        ),
        (("PrefixSum", prefix_sum), (_ALL, "0000000000"), 1, (0.5795, 0.5774), (0.3522, 0.3516)),
        (("NumericalSVT", numerical_sparse), (_FIRST, _LAST), 0.1, (0.0368, 0.0345), None),
    )
)


def pair_of(row: Row) -> Pair:
    """Its neighbours: each answer moves by at most 1."""
    record, neighbour = (np.array([[float(digit) for digit in side]]) for side in row.pair)
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

Printed by `python -m benchmarks.two_papers`. The mechanisms, their parameters and the neighbours
are those of DP-Sniper's published code (Bichsel and others 2021), which has those of StatDP (Ding
and others 2018) among them. All bounds are one-sided lower ones on ε, at confidence {confidence:g}.

- **ours**: `dpv.audit` by outputs alone, {draws} draws counted on each side, and twice as many for
  training; the median of {seeds} seeds. It is told nothing of an output's flags.
- **published**: lower limits, and in brackets the estimates, of 10.7 million draws in each of two
  phases of training and 200 million counted: the better of DP-Sniper's two classifiers, the better
  of two runs of StatDP.

One limit in ten may be above the truth: DP-Sniper's of Rappor and StatDP's of NoisyHist2 are.

Of a million counted draws the limit of an event of 2 % of outputs lies 0.013 below its estimate, of
200 million 0.001: a good part of what SVT2 and SVT4 lack, whose best event is of 2 %.

The true ε is that of the worst pair; RAPPOR's is that of these two values. `--only` leaves
rows out.

| mechanism | true ε | ours | published: DP-Sniper | StatDP | our event | seconds |
|---|---|---|---|---|---|---|
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
