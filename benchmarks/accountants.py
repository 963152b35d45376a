"""``python -m benchmarks.accountants``: dpverify's accountant beside other libraries'.

Every library answers the same questions: a smallest ε at δ, or δ at ε, for one analytic Gaussian on
a grid that reaches into the extremes, and for compositions of Gaussian noise, Laplace noise and
randomized response. Answers are compared with enclosures of the truth (`benchmarks.truth`): a value
below the lower end is below the truth by proof, and unsafe where its library calls it an upper one.

The libraries live in an environment of their own (`benchmarks.peers`), whose interpreter is given
as ``--peers-python`` or in DPVERIFY_PEERS_PYTHON. A part of the questions is asked by default, all
of them with ``--full``. Whatever is printed and written under ``out/`` is the same in every run,
but for seconds, memory, and failures by the time limit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Literal

from benchmarks.peers.protocol import Case, Reply, answered
from benchmarks.truth import truth
from dpverify.enclosure import Enclosure

OURS = "dpverify"
PEERS = ("dp_accounting", "prv_accountant", "autodp", "diffprivlib", "opendp")

# Where the enclosure of the truth is wider, an answer's excess is not measured, only its side.
WIDEST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Questions that are counted together."""

    name: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One method on one grid; relative to the truth, and None where nothing was measured.

    Attributes
    ----------
    asked, answers : cases, and finite values of at least 0; the rest `failures`, with the commonest
        `reason`
    below, shortfall : how many values are below the truth, and by how much the worst
    excess, worst_excess : by how much the others are above, median and worst
    seconds, memory : the median of an answer, and the most bytes
    """

    grid: str
    method: str
    claim: str
    asked: int
    answers: int
    failures: int
    reason: str
    below: int
    shortfall: float | None
    excess: float | None
    worst_excess: float | None
    seconds: float | None
    memory: int


def grids(*, full: bool) -> list[Grid]:
    """Make the questions: the whole grids, or a part that shows what they show."""
    deltas = (1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-100, 1e-300) if full else (1e-6, 1e-12, 1e-100)
    counts = (1, 10, 100, 1_000, 10_000) if full else (1, 1_000, 10_000)
    scales = (1.0, 10.0, 100.0) if full else (10.0,)
    log_odds = (0.01, 0.1, 1.0) if full else (0.1,)
    sigmas = (1e-4, 1e-2, 0.1, 1.0, 10.0, 1e3, 1e8) if full else (1e-4, 1.0, 1e8)
    epsilons = (1e-8, 1e-2, 1.0, 10.0, 1e4) if full else (1e-8, 1.0, 1e4)
    coins = [1 / (1 + math.exp(-epsilon)) for epsilon in log_odds]
    one_gaussian = (
        *cases("gaussian", sigmas, [1], "epsilon", (0.4, *deltas)),
        *cases("gaussian", sigmas, [1], "delta", epsilons),
    )
    composed = {
        "composed Gaussian": cases("gaussian", scales, counts, "epsilon", deltas),
        "composed Laplace": cases("laplace", scales, counts, "epsilon", deltas),
        "composed randomized response": cases(
            "randomized-response", coins, counts, "epsilon", deltas
        ),
    }
    return [
        Grid(name="one Gaussian", cases=one_gaussian),
        *(Grid(name=name, cases=tuple(found)) for name, found in composed.items()),
    ]


def cases(
    mechanism: Literal["gaussian", "laplace", "randomized-response"],
    parameters: Iterable[float],
    counts: Iterable[int],
    solve: Literal["epsilon", "delta"],
    given: Iterable[float],
) -> list[Case]:
    return [
        Case(mechanism=mechanism, parameter=parameter, count=count, solve=solve, given=value)
        for parameter, count, value in product(parameters, counts, given)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one method of one library made of all cases."""

    library: str
    version: str
    method: str
    claim: str
    replies: tuple[Reply, ...]


def ask(
    library: str, python: str, asked: Sequence[Case], *, limit: int, repeat: int = 1
) -> list[Answers]:
    """Put all cases to a library, in a process of its own on one core."""
    cases = [asdict(case) for case in asked]
    question = json.dumps({"limit": limit, "repeat": repeat, "cases": cases})
    found = json.loads(answered(python, library, question=question))
    return [
        Answers(
            library=library.replace("_", "-"),
            version=found["version"],
            method=name,
            claim=method["claim"],
            replies=tuple(Reply(**reply) for reply in method["replies"]),
        )
        for name, method in found["methods"].items()
    ]


def summary(
    grid: str,
    answers: Answers,
    replies: Sequence[Reply],
    truths: Sequence[Enclosure],
    *,
    widest: float = WIDEST,
) -> Summary | None:
    """Count one method's replies to one grid; None where it offers nothing there."""
    pairs = [
        (reply, exact)
        for reply, exact in zip(replies, truths, strict=True)
        if reply.value is not None or reply.error
    ]
    if not pairs:
        return None
    shortfalls, excesses, seconds, reasons = [], [], [], []
    for reply, exact in pairs:
        if reply.value is None or not 0 <= reply.value < math.inf:
            reasons.append(reply.error or f"value {reply.value}")
            continue
        seconds.append(reply.seconds)
        if reply.value < exact.lower:
            shortfalls.append((exact.lower - reply.value) / exact.lower)
        elif exact.lower > 0 and exact.width <= widest:
            excesses.append(max(0.0, (reply.value - exact.upper) / exact.upper))
    return Summary(
        grid=grid,
        method=f"{answers.library}: {answers.method}",
        claim=answers.claim,
        asked=len(pairs),
        answers=len(seconds),
        failures=len(reasons),
        reason=max(sorted(set(reasons)), key=reasons.count, default=""),
        below=len(shortfalls),
        shortfall=max(shortfalls, default=None),
        excess=median(excesses) if excesses else None,
        worst_excess=max(excesses, default=None),
        seconds=median(seconds) if seconds else None,
        memory=max(reply.memory for reply, _ in pairs),
    )


HEADER = (
    f"{'method':32}{'claims':>9}{'asked':>6}{'failed':>7}{'below':>6}"
    f"{'worst':>9}{'above':>9}{'worst':>9}{'ms':>8}{'MiB':>6}"
)


def line(row: Summary) -> str:
    def share(value: float | None) -> str:
        return f"{'-' if value is None else f'{value:.1e}':>9}"

    taken = "-" if row.seconds is None else f"{row.seconds * 1e3:.1f}"
    return (
        f"{row.method:32}{row.claim:>9}{row.asked:6}{row.failures:7}{row.below:6}"
        f"{share(row.shortfall)}{share(row.excess)}{share(row.worst_excess)}"
        f"{taken:>8}{row.memory >> 20:6}"
    )


def report(asked: Sequence[Grid], answered: Sequence[Answers]) -> dict[str, object]:
    """Print a table for each grid, and return all of it."""
    rows, start = [], 0
    details = []
    for grid in asked:
        place = slice(start, start + len(grid.cases))
        start = place.stop
        truths = [truth(case) for case in grid.cases]
        found = [summary(grid.name, a, a.replies[place], truths) for a in answered]
        rows += [row for row in found if row is not None]
        wide = sum(exact.width > WIDEST for exact in truths if exact.lower > 0)
        print(f"\n{grid.name}: {len(truths)} cases, excess not measured for {wide}\n{HEADER}")
        print("\n".join(line(row) for row in rows if row.grid == grid.name))
        details += [
            {
                "case": asdict(case),
                "truth": exact.as_json(),
                "values": {f"{a.library}: {a.method}": a.replies[index].value for a in answered},
            }
            for index, case, exact in zip(
                range(place.start, place.stop), grid.cases, truths, strict=True
            )
        ]
    return {
        "versions": {answers.library: answers.version for answers in answered},
        "summaries": [asdict(row) for row in rows],
        "cases": details,
    }


def main() -> None:
    """Ask everyone, compare, print the tables, and keep them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all questions, up to an hour")
    parser.add_argument("--limit", type=int, default=20, help="seconds a case")
    parser.add_argument(
        "--peers-python",
        default=os.environ.get("DPVERIFY_PEERS_PYTHON"),
        help="interpreter with benchmarks/peers/requirements.txt; without it dpverify alone",
    )
    options = parser.parse_args()
    asked = grids(full=options.full)
    everything = [case for grid in asked for case in grid.cases]
    answered = ask(OURS, sys.executable, everything, limit=options.limit)
    if options.peers_python:
        for peer in PEERS:
            answered += ask(peer, options.peers_python, everything, limit=options.limit)
    document = report(asked, answered)
    out = Path("out")
    out.mkdir(exist_ok=True)
    text = json.dumps(document, indent=1, allow_nan=True)
    (out / "accountants.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
