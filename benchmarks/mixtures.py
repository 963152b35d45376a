"""``python -m benchmarks.mixtures``: unlike releases composed, beside other libraries.

Five hundred random cells: one to four kinds of releases (Gaussian and Laplace noise, randomized
response, and in every fifth cell Gaussian noise on Poisson samples), each with a count, and a δ;
for one record that is added or removed, or, in every 25th cell, replaced. With ``--sampled`` one
kind, Gaussian noise on Poisson samples, of up to 10⁵ releases, rates of 1e-5 to 1, σ of 0.3 to 100,
and in every second cell a δ down to 1e-100, beside the bounds of `tests.helpers.sampled_oracle`.
With ``--samples`` one of the eight other kinds: Gaussian noise, Laplace noise or randomized
response, on Poisson samples of which a record is removed or replaced, or on batches of a fixed
size; up to 10⁴ releases (300 of randomized response), rates of 1e-4 to 1. Either takes half an hour
of the processor; what is done is kept in ``out/mixtures.jsonl``, from which an interrupted run goes
on. An enclosure of ε agrees with dp-accounting's two values only if
its lower end isn't above the pessimistic one, nor its upper end below the optimistic one, but for
one part in 10⁸: dp-accounting adds no round-off. The lattices count theirs.

The libraries live in the environment of `benchmarks.accountants`. Seconds are of the processor, in
a process that has answered before.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.kept import Kept
from benchmarks.peers.mixtures import LIBRARIES, Answer, Cell, Release, timed
from benchmarks.peers.protocol import answered
from tests.helpers.sampled_oracle import AnswersOracle, SampledOracle
from tests.helpers.sampled_pairs import Batch, Laplace, Normal, Removal, Replaced, answers

SLACK = 1e-8  # relative, of dp-accounting's round-off
POINTS = 1 << 16  # of a lattice
PAIRS: dict[tuple[str, bool], type[Removal | Replaced | Batch]] = {
    ("samples", False): Removal,
    ("samples", True): Replaced,
    ("batches", True): Batch,
}
"""By how a record comes into a sample, and whether it is replaced."""
PARAMETERS = {
    "gaussian": (-0.5, 1.5, 4),
    "laplace": (-0.5, 1.5, 4),
    "randomized-response": (0.52, 0.98, 2.5),
}
"""Logarithms of σ or of b, or probabilities of the truth; and of the most releases."""


def cells(count: int) -> list[Cell]:
    """The same ones in every run."""
    rng = random.Random(2024)  # noqa: S311  # parameters of a benchmark

    def log_uniform(low: float, high: float) -> float:
        return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")

    def release(kind: str) -> Release:
        match kind:
            case "gaussian" | "laplace":
                return Release(kind, log_uniform(1, 30), rng.randint(1, 30))
            case "randomized-response":
                odds = log_uniform(0.05, 1.5)
                return Release(kind, round(1 / (1 + math.exp(-odds)), 4), rng.randint(1, 20))
        return Release(kind, log_uniform(0.7, 4), rng.randint(1, 200), log_uniform(1e-3, 0.3))

    plain = ("gaussian", "laplace", "randomized-response")
    found = []
    for number in range(count):
        replaced, sampled = number % 25 == 0, number % 5 == 0
        chosen = [rng.choice(plain) for _ in range(rng.randint(0 if sampled else 2, 3))]
        if replaced:
            chosen = chosen and ["gaussian"]
        if sampled:
            chosen.append("sampled")
        releases = tuple(release(kind) for kind in chosen)
        found.append(Cell(releases, 10 ** -rng.uniform(2, 10), replaced))
    return found


def sampled_cells(count: int) -> list[Cell]:
    """Gaussian noise on Poisson samples, over all that is asked of an accountant of training."""
    rng = random.Random(2025)  # noqa: S311  # parameters of a benchmark

    def power(low: float, high: float) -> float:
        return float(f"{10 ** rng.uniform(low, high):.3g}")

    return [
        Cell(
            (Release("sampled", power(-0.52, 2), round(power(0, 5)), power(-5, 0)),),
            power(-100 if number % 2 else -12, -1),
            replaced=False,
        )
        for number in range(count)
    ]


def cells_of_other_samples(count: int) -> list[Cell]:
    """What else is released on samples, one kind after another."""
    rng = random.Random(2026)  # noqa: S311  # parameters of a benchmark

    def power(low: float, high: float) -> float:
        return float(f"{10 ** rng.uniform(low, high):.3g}")

    found = []
    kinds = [one for one in product(PARAMETERS, PAIRS) if one != ("gaussian", ("samples", False))]
    for number in range(count):
        noise, (samples, replaced) = kinds[number % len(kinds)]
        low, high, most_times = PARAMETERS[noise]
        parameter = rng.uniform(low, high) if noise == "randomized-response" else power(low, high)
        release = Release(
            f"{noise} on {samples}", parameter, round(power(0, most_times)), power(-4, 0)
        )
        least = -40 if number // len(kinds) % 2 else -12
        found.append(Cell((release,), power(least, -1), replaced))
    return found


def ask(python: str, library: str, asked: list[Cell]) -> list[list[Answer]]:
    """Answers of a library, in a process of its own."""
    question = json.dumps([cell.as_json() for cell in asked])
    found = answered(python, "mixtures", library, question=question).splitlines()[-1]
    return [[Answer(*one) for one in row] for row in json.loads(found)]


def lattices(cell: Cell) -> list[Answer]:
    """Bounds of a cell of one kind of samples, from below and above."""
    ((kind, parameter, times, rate),) = cell.releases
    noise, _, samples = kind.partition(" on ")
    pair = PAIRS[samples or "samples", cell.replaced]
    if noise == "randomized-response":
        oracle: SampledOracle | AnswersOracle = AnswersOracle(answers(pair, parameter, rate), times)
    else:
        law = Laplace if noise == "laplace" else Normal
        oracle = SampledOracle(pair(law(1 / parameter), rate), times, POINTS)
    return timed(lambda asked: [*oracle.epsilon(asked.delta)], cell)


def beside_lattices(
    asked: list[Cell], ours: list[list[Answer]], theirs: list[list[Answer]]
) -> None:
    """Print how many enclosures lie beyond bounds that share no code with them."""
    ends = [
        [one.value for one in (*mine, *bounds)] for mine, bounds in zip(ours, theirs, strict=True)
    ]
    unsafe = [n for n, (_, high, least, _) in enumerate(ends) if high < least]
    above = [n for n, (low, _, _, most) in enumerate(ends) if low > most]
    widths = [most / least - 1 for _, _, least, most in ends if least > 0]
    print(
        f"lattices: above our upper end {len(unsafe)}, below our lower end {len(above)}; width "
        f"median {median(widths):.1e}, at most {max(widths):.1e}, above 1e-2 in "
        f"{sum(width > 1e-2 for width in widths)}; lower end 0 in "
        f"{sum(least == 0 < most for _, _, least, most in ends)}; "
        f"{_milliseconds(sum(one.seconds for one in bounds) for bounds in theirs)} ms"
    )
    for n in (*unsafe, *above):
        print(f"  {asked[n]}: {ends[n]}")


def report(asked: list[Cell], ours: list[list[Answer]], theirs: dict[str, Any]) -> None:
    """Print who is below a proven bound, and who is tighter and faster."""
    low, high = ([row[side].value for row in ours] for side in (0, 1))
    spent = [sum(one.seconds for one in row) for row in ours]  # both ends are one answer
    widths = [b / a - 1 for a, b in zip(low, high, strict=True) if a > 0]
    print(
        f"{len(asked)} cells; dpverify: width median {median(widths):.1e}, at most "
        f"{max(widths):.1e}, above 1e-9 in {sum(width > 1e-9 for width in widths)}; lower end 0 in "
        f"{sum(a == 0 < b for a, b in zip(low, high, strict=True))}; "
        f"{sum(b == math.inf for b in high)} failed; {_milliseconds(spent)} ms, more than 1 s in "
        f"{sum(seconds > 1 for seconds in spent)}"
    )
    for library, rows in theirs.items():
        upper = [row[-1] for row in rows]
        known = [n for n, one in enumerate(upper) if math.isfinite(one.value)]
        below = [n for n in known if upper[n].value < low[n] * (1 - SLACK)]
        print(
            f"{library}: {len(known)} answered; below the lower end {len(below)}; ours is lower in "
            f"{sum(high[n] <= upper[n].value for n in known)}, faster in "
            f"{sum(spent[n] <= upper[n].seconds for n in known)}; theirs above ours by "
            f"{median(upper[n].value / high[n] - 1 for n in known if high[n] > 0):.1e} (median); "
            f"{_milliseconds(upper[n].seconds for n in known)} ms"
        )
        if len(rows[0]) > 1:
            wrong = [n for n in known if high[n] < rows[n][0].value * (1 - SLACK)]
            print(f"{library}, optimistic: above our upper end {len(wrong)}")
            below += wrong
        for n in below:
            print(f"  {asked[n]}: {low[n]!r} {high[n]!r}, {[one.value for one in rows[n]]}")


def _milliseconds(seconds: Iterable[float]) -> str:
    return f"{median(seconds) * 1e3:.0f}"


def main() -> None:
    """Ask everyone, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=500)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--sampled", action="store_true", help="Gaussian noise on Poisson samples")
    kinds.add_argument("--samples", action="store_true", help="other noise, other samples")
    parser.add_argument("--peers-python", default=os.environ.get("DPVERIFY_PEERS_PYTHON"))
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    options = parser.parse_args()
    chosen = cells_of_other_samples if options.samples else cells
    asked = (sampled_cells if options.sampled else chosen)(options.cells)
    theirs = {}
    if options.peers_python and not options.samples:
        for library in ("dp_accounting", "prv_accountant", "autodp"):
            theirs[library] = ask(options.peers_python, library, asked)
    if not (options.sampled or options.samples):
        report(asked, ask(sys.executable, "dpverify", asked), theirs)
        return
    kept = Kept(options.out / "mixtures.jsonl")
    ours: list[list[Answer]] = []
    bounds: list[list[Answer]] = []
    LIBRARIES["dpverify"](asked[0])
    for cell in asked:
        for rows, who, answer in (
            (ours, "dpverify", partial(timed, LIBRARIES["dpverify"])),
            (bounds, "lattices", lattices),
        ):
            found = kept.get(f"{who} {cell.as_json()}", partial(answer, cell))
            rows.append([Answer(*one) for one in found])
    report(asked, ours, theirs)
    beside_lattices(asked, ours, bounds)


if __name__ == "__main__":
    main()
