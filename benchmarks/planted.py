"""The table of planted bugs: what finds each, with how many draws; prints ``docs/planted-bugs.md``.

For each kind of audit the draws on each side are doubled from 50 until it finds the bug at
α = 0.05. A kind that doesn't with 3,200 at the first seed has not found it. Every twin is audited
in short runs, of which at most the 99.9 % quantile of Bin(runs, α) may accuse it.

``--full`` takes 20 seeds and 1,000 short runs, else ``--seeds`` and ``--runs`` say how many. What
is done is kept in ``out/planted.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import math
import sys
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.kept import Kept
from dpverify.auditing.attacks.table import ATTACKS
from dpverify.auditing.audit import audit
from dpverify.auditing.config import fitting_delta
from dpverify.auditing.request import applicable
from dpverify.auditing.settings import AuditKind
from dpverify.errors import ParameterError
from dpverify.estimation import moments
from dpverify.guarantee import claimed_epsilon
from dpverify.privacy import WhiteBox
from dpverify.sampling.words import ReplayableWords
from dpverify_audits.planted import SUITE, PlantedBug
from dpverify_audits.planted.bug import FoundBy

__all__ = ["claimed_delta", "epsilon_of", "found", "kinds_of", "page"]

ALPHA = 0.05
FIRST, MOST = 50, 3_200
SHORT = 40
"""Draws of a short run."""
CERTAIN = ("exhaustive",)
"""Kinds that draw nothing."""
KINDS: tuple[FoundBy, ...] = (*ATTACKS, "moments")

Bug = PlantedBug[Any]


@cache
def claimed_delta(bug: Bug) -> Fraction:
    """δ of the claim: 0, or what all claims here have that aren't pure."""
    return Fraction(0) if fitting_delta(bug.twin().privacy()) == 0 else Fraction(1, 1000)


@cache
def broken(bug: Bug) -> Any:
    """Make the broken mechanism once."""
    return bug.broken()


def kinds_of(bug: Bug) -> list[FoundBy]:
    """Kinds of audit that can be run on it."""
    kinds: list[FoundBy] = []
    for kind in KINDS:
        try:
            if kind == "moments":
                if not exact_estimators(broken(bug)):
                    continue
            else:
                applicable(broken(bug), [kind])
        except ParameterError:
            continue
        kinds.append(kind)
    return kinds


def exact_estimators(mechanism: Any) -> list[Any]:
    """Estimators whose moments are exact."""
    offered = mechanism.estimators() if hasattr(mechanism, "estimators") else ()
    return [estimator for estimator in offered if estimator.order == "exact"]


def found(bug: Bug, kind: FoundBy, draws: int, seed: int) -> bool:
    """Whether one audit of one kind accuses the broken mechanism."""
    mechanism = broken(bug)
    if kind == "moments":
        estimators = exact_estimators(mechanism)
        probe = mechanism.probes(ReplayableWords(7, "synthetic"))[-1]
        drawn = moments.draw_estimates(mechanism, estimators, probe, draws=draws, seed=seed)
        level = ALPHA / (2 * len(estimators))
        for estimator, values in zip(estimators, drawn, strict=True):
            mean = estimator.expectation(probe.record, probe.neighbour)
            variance = estimator.variance(probe.record, probe.neighbour)
            if "refuted" in moments.judge(moments.Moments.of(values), mean, variance, level):
                return True
        return False
    report = audit(
        mechanism,
        alpha=ALPHA,
        delta=claimed_delta(bug),
        draws=draws,
        kinds=[kind],
        seed=seed,
        workers=1,
    )
    return report.verdict == "violation"


def timed(bug: Bug, kind: FoundBy, draws: int, seed: int) -> tuple[bool, float]:
    """Whether it is found, and the seconds of processor time."""
    start = process_time()
    accused = found(bug, kind, draws, seed)
    return accused, process_time() - start


def needed(bug: Bug, kind: FoundBy, seed: int) -> tuple[int | None, float]:
    """Draws with which it is found, None beyond `MOST`, and the seconds of that audit."""
    draws = FIRST
    while True:
        accused, seconds = timed(bug, kind, draws, seed)
        if accused or draws >= MOST:
            return draws if accused else None, seconds
        draws *= 2


def cell(kept: Kept, bug: Bug, kind: FoundBy, seeds: int) -> str:
    """Median draws and seconds, or a dash."""
    key = f"{bug.name}/{kind}"
    if kind in CERTAIN:
        accused, seconds = kept.get(key, partial(timed, bug, kind, FIRST, 0))
        return f"{seconds:.3f} s" if accused else "–"
    if not kept.get(f"{key}/most", partial(timed, bug, kind, MOST, 0))[0]:
        return "–"
    rows = [kept.get(f"{key}/{seed}", partial(needed, bug, kind, seed)) for seed in range(seeds)]
    draws = median(math.inf if draws is None else draws for draws, _ in rows)
    if math.isinf(draws):
        return f"more than {MOST:,}"
    return f"{draws:,.0f} ({median(seconds for _, seconds in rows):.2f} s)"


def epsilon_of(bug: Bug) -> tuple[str, float]:
    """ε of the broken mechanism at the claimed δ: “=” exactly, else “≥” a lower bound.

    Where nothing gives it exactly, the bound is that of the best event {L ≥ t} in closed form, or
    the black-box audit's at level 0.95.
    """
    mechanism, delta = broken(bug), claimed_delta(bug)
    if bug.epsilon is not None:
        return "=", bug.epsilon(mechanism, delta)
    if bug.rates is not None:
        twin = bug.twin()
        most = 2 * claimed_epsilon(twin.privacy(), delta)
        pairs = [bug.rates(twin, t) for t in np.linspace(-most, most, 401).tolist()]
        d = float(delta)
        return "≥", max(math.log((p - d) / q) if q > 0 else math.inf for p, q in pairs if p > d)
    report = audit(mechanism, alpha=ALPHA, draws=bug.draws, kinds=["black-box"], seed=0, workers=1)
    return "≥", max(finding.epsilon_lower or 0.0 for finding in report.findings)


def alarms(bug: Bug, first: int, runs: int) -> int:
    """Short runs that accuse the twin, of those from `first` on."""
    twin = bug.twin()
    kinds: list[AuditKind] = ["white-box" if isinstance(twin, WhiteBox) else "black-box"]
    verdicts = [
        audit(
            twin,
            alpha=ALPHA,
            delta=claimed_delta(bug),
            draws=SHORT,
            kinds=kinds,
            seed=1000 + run,
            workers=1,
        ).verdict
        for run in range(first, first + runs)
    ]
    return verdicts.count("violation")


def twins() -> dict[str, Bug]:
    """For each bug's name the first bug that has an equal twin: one count speaks for all."""
    named: dict[str, Bug] = {}
    firsts: list[tuple[Any, Bug]] = []
    for bug in SUITE:
        twin = bug.twin()
        same = next((first for other, first in firsts if _same(other, twin)), None)
        if same is None:
            firsts.append((twin, bug))
        named[bug.name] = same or bug
    return named


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and bool(first == second)


def page(kept: Kept, *, seeds: int, runs: int) -> str:
    """The documentation page."""
    first = twins()
    kinds = [kind for kind in KINDS if any(kind in kinds_of(bug) for bug in SUITE)]
    finds = ["| bug | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    sizes = [
        "| bug | ε claimed | δ | ε of the bug | false alarms of its twin |",
        "|---|---|---|---|---|",
    ]
    unfound = []
    for bug in SUITE:
        print(bug.name, file=sys.stderr, flush=True)
        possible = kinds_of(bug)
        cells = [cell(kept, bug, kind, seeds) if kind in possible else "" for kind in kinds]
        if not any(entry.strip("–") for entry in cells):
            unfound.append(bug.name)
        finds.append(f"| {bug.name} | " + " | ".join(cells) + " |")
    for bug in SUITE:
        print(f"{bug.name}: its twin", file=sys.stderr, flush=True)
        block = 50
        speaks = first[bug.name]
        count = sum(
            kept.get(f"{speaks.name}/twin/{start}", partial(alarms, speaks, start, block))
            for start in range(0, runs, block)
        )
        sign, value = kept.get(f"{bug.name}/epsilon", partial(epsilon_of, bug))
        claimed = claimed_epsilon(bug.twin().privacy(), claimed_delta(bug))
        sizes.append(
            f"| {bug.name} | {claimed:.4g} | {float(claimed_delta(bug)):g} | {sign} {value:.4g} "
            f"| {count} of {runs} |"
        )
    most = int(binom.ppf(0.999, runs, ALPHA))
    return _PAGE.format(
        bugs=len(SUITE),
        seeds=seeds,
        runs=runs,
        short=SHORT,
        most=most,
        reach=f"{MOST:,}",
        unfound=", ".join(unfound) or "none",
        finds="\n".join(finds),
        sizes="\n".join(sizes),
    )


_PAGE = """\
# Planted bugs

`dpverify_audits.planted` holds {bugs} broken mechanisms, each with a correct twin that has the same
claim; `dpverify audit planted` audits all of them. The first are the papers' sketches with a
mistake; the others, from “one noise vector for all rows” on, are small mechanisms of which only the
releases are known. Printed by `python -m benchmarks.planted` (`--full` takes 20 seeds and 1,000
runs).

## What finds them

The number of draws on each side with which an audit of that kind alone finds the bug at level 0.05
(doubled from 50 until it does), and the processor time of that audit in seconds. Medians; number of
seeds: {seeds}. An audit accuses by chance with probability up to 0.05, so with few seeds a single
entry may be chance. Exhaustive audits draw nothing; grey-box audits draw up to 8 times as much if
their model says that this is needed. Planning that only depends on the claim is done once for all
seeds, so its time isn't in the medians. A dash: not found with {reach} draws at the first seed, or
by a kind that draws nothing. Empty: the kind can't be run on that mechanism.

Found by no kind: {unfound}.

{finds}

## What they are worth

ε is at the claimed δ. “=”: in closed form, by enumeration, or by the broken mechanism's own
accountant if only its parameters are wrong, at the pairs that the mechanism
names; inf if one neighbour has outputs that the other never has. “≥”: a lower bound, from the best
threshold of the claimed privacy loss in closed form, or at 95 % confidence from outputs. It may be
below the claim if the mistake isn't in a single release, but in a link between rows or an estimate.

The twin is audited in {runs} short runs of {short} draws per side at level 0.05, by the likelihood
ratio if it has one, else by its outputs. At most {most} of them may accuse it: the 99.9 %
quantile of Bin({runs}, 0.05). Bugs with equal twins share one count.

{sizes}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="20 seeds, 1,000 short runs")
    parser.add_argument("--seeds", type=int, default=3, help="of every audit")
    parser.add_argument("--runs", type=int, default=100, help="short runs of every twin")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    kept = Kept(given.out / "planted.jsonl")
    seeds, runs = (20, 1000) if given.full else (given.seeds, given.runs)
    print(page(kept, seeds=seeds, runs=runs), end="")


if __name__ == "__main__":
    main()
