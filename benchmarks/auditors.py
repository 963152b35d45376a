"""The common task: 95 % one-sided lower bounds on ε; prints ``docs/auditors-compared.md``.

Each subject of the black-box part is a textbook mechanism that is exactly ε-private on real
numbers. The audit is run for many seeds; beside its median stands the reference: the event that the
privacy loss makes best, known beforehand, counted on the same counted draws and judged by the same
exact test at the whole level. The white-box part does the same with the likelihood ratio; there the
reference is the threshold whose expected counts give the largest bound.

``--full`` takes 400 seeds, 100 at 1e5 draws and of the sketches, else ``--seeds`` says how many.
What is done is kept in ``out/auditors.jsonl``, from which an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.kept import Kept
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks.base import Target
from dpverify.auditing.attacks.trade_off import TradeOffAttack
from dpverify.auditing.attacks.white_box import WhiteBoxAttack, count_events
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import BandEvidence
from dpverify.auditing.statistics.two_sample_binomial import epsilon_limit
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.privacy import Pair, WhiteBox
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
    SparseProjection,
)
from tests.helpers.textbook import (
    ALPHA,
    NUMBERS,
    SUBJECTS,
    Bits,
    Laplace,
    Normal,
    Subject,
    measured,
)

__all__ = ["SUBJECTS", "Bits", "Laplace", "Normal", "Subject", "measured"]

DELTA = Fraction(1, 10**5)
"""Of the claims that have one."""


# --- white-box


@cache
def sketch(name: str) -> Any:
    """A mechanism with a likelihood ratio."""
    makers: dict[str, tuple[Callable[[], Projection], Any]] = {
        "DP-OPORP": (lambda: OPORP(p=64, k=16, seed=1), "gaussian"),
        "Gaussian projection": (lambda: GaussianProjection(p=64, k=16, seed=1), "gaussian"),
        "Rademacher projection": (lambda: RademacherProjection(p=64, k=16, seed=1), "gaussian"),
        "sparse projection": (lambda: SparseProjection(p=64, k=16, seed=1), "gaussian"),
        "Rademacher projection, Laplace noise": (
            lambda: RademacherProjection(p=64, k=16, seed=1),
            "laplace",
        ),
    }
    if name == "Gaussian":
        return Normal()
    projection, noise = makers[name]
    return LinearSketch.calibrated(
        projection(),
        epsilon=Fraction(2),
        delta=Fraction(0) if noise == "laplace" else DELTA,
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=Attribute(beta=Fraction(1)),
        noise=noise,
    )


SKETCHES = (
    "DP-OPORP",
    "Gaussian projection",
    "Rademacher projection",
    "sparse projection",
    "Rademacher projection, Laplace noise",
)


def _delta(name: str) -> Fraction:
    return Fraction(0) if "Laplace" in name else DELTA


@cache
def best_threshold(name: str, draws: int) -> float:
    """Where the event {L ≥ t} has the expected counts of the largest bound, on a grid."""
    curve, delta = sketch(name).privacy(), _delta(name)

    def bound(t: float) -> float:
        hits, false_hits = (round(draws * rate) for rate in curve.rates(t))
        return epsilon_limit(hits, false_hits, draws, delta=float(delta), alpha=ALPHA)

    grid: list[float] = np.linspace(0, curve.epsilon_at(delta).upper, 81).tolist()
    return max(grid, key=bound)


def white_box(name: str, draws: int, seed: int) -> tuple[float, float, float]:
    """Lower bound, the reference's, and the audit's seconds of processor time."""
    mechanism: WhiteBox = sketch(name)
    delta, t = _delta(name), best_threshold(name, draws)
    start = process_time()
    config = AuditConfig(delta=delta, alpha=ALPHA, draws=draws, seed=seed, workers=1)
    pairs = mechanism.worst_pairs()
    (finding,) = WhiteBoxAttack().run(Target(mechanism, pairs), config)
    seconds = process_time() - start
    # The same draws again: streams are named by seed, pair and side.
    counts = count_events(mechanism, pairs, (), config, roc=(t,)).roc[0]
    bound = counts.epsilon_lower(delta=float(delta), alpha=ALPHA)
    return finding.epsilon_lower or 0.0, bound, seconds


def modelled(mechanism: Any, pair: Pair, seed: int) -> float | None:
    """ε at δ = 1e-5 by the guarded Gaussian model, None where the guard refuses it."""
    config = AuditConfig(delta=DELTA, alpha=ALPHA, draws=10_000, seed=seed, workers=1)
    (finding,) = TradeOffAttack().run(Target(mechanism, [pair]), config)
    evidence = finding.evidence
    assert isinstance(evidence, BandEvidence)
    assert evidence.gaussian_model is not None
    return evidence.gaussian_model.epsilon_lower


# --- the page

PEERS = {
    "Laplace": (".915", ".971", ".981", ".955"),
    "randomized response": (".919", ".981", ".968", ".975"),
    "Laplace, scale halved": ("1.842", "1.959", "1.966", "1.930"),
    "64 bits, one differs": ("–", "–", ".969", ".934"),
}
"""As published for this task; not measured by this command."""


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _runs(
    kept: Kept, part: str, name: str, draws: int, seeds: int, make: Callable[[int], Any]
) -> list[tuple[float, float, float]]:
    """Bound, reference and seconds of every seed."""
    rows = []
    for seed in range(seeds):
        rows.append(kept.get(f"{part}/{name}/{draws}/{seed}", partial(make, seed)))
        if seed % 20 == 0:
            print(f"{part}, {name}, {draws:,} draws: {seed} of {seeds}", file=sys.stderr)
    return rows


def _medians(rows: list[tuple[float, float, float]]) -> tuple[str, ...]:
    """Medians of all three, and the ratio of the former two with its interval."""
    bound, reference, seconds = (median(column) for column in zip(*rows, strict=True))
    ratio = f"{bound / reference:.4f} ({' to '.join(f'{end:.3f}' for end in _interval(rows))})"
    return f"{bound:.4f}", f"{reference:.4f}", ratio, f"{seconds:.2f}"


def _interval(rows: list[tuple[float, float, float]]) -> list[float]:
    """Ends of the ratio's 95 % interval over draws of the seeds, by the bootstrap."""
    values, rng = np.array(rows)[:, :2], np.random.default_rng(0)
    medians = np.median(values[rng.integers(len(values), size=(2_000, len(values)))], axis=1)
    ends: list[float] = np.quantile(medians[:, 0] / medians[:, 1], [0.025, 0.975]).tolist()
    return ends


_TABLE = (
    _row(
        "",
        "true ε",
        "draws",
        "seeds",
        "median bound",
        "best event known",
        "ratio (95 %)",
        "seconds",
    ),
    _row(*["---"] * 8),
)


def page(kept: Kept, *, seeds: int, large: int, sketches: int) -> str:
    """The documentation page; seeds of everything, of 1e5 draws, and of the sketches."""
    black = list(_TABLE)
    for draws, count in ((10_000, seeds), (100_000, large)):
        for subject in SUBJECTS:
            runs = _runs(
                kept, "black-box", subject.name, draws, count, partial(measured, subject, draws)
            )
            cells = _medians(runs)
            black.append(_row(subject.name, f"{subject.epsilon:g}", f"{draws:,}", count, *cells))
    white, together = list(_TABLE), []
    for name, draws, count in (
        ("Gaussian", 10_000, seeds // 2),
        *((name, 10_000, sketches) for name in SKETCHES),
    ):
        runs = _runs(kept, "white-box", name, draws, count, partial(white_box, name, draws))
        true = sketch(name).privacy().epsilon_at(_delta(name)).upper
        white.append(_row(name, f"{true:.4g}", f"{draws:,}", count, *_medians(runs)))
        if name != "Gaussian":
            together += runs
    white.append(_row("all sketches together", 2, "10,000", len(together), *_medians(together)))
    models = [_row("", "true ε at δ = 1e-5", "seeds", "given", "median"), _row(*["---"] * 5)]
    subjects: tuple[tuple[str, float, Any, Pair], ...] = (
        (
            "Gaussian",
            Gaussian(sigma=1).epsilon_at(DELTA).upper,
            Normal(),
            NUMBERS,
        ),
        *((s.name, s.epsilon, s.mechanism, s.pair) for s in SUBJECTS),
    )
    for name, true, mechanism, pair in subjects:
        values = [
            kept.get(f"model/{name}/{seed}", partial(modelled, mechanism, pair, seed))
            for seed in range(seeds if name == "Gaussian" else sketches)
        ]
        given = [value for value in values if value is not None]
        middle = f"{median(given):.3f}" if 2 * len(given) > len(values) else "none"
        models.append(_row(name, f"{true:.4g}", len(values), f"{len(given)}", middle))
    peers = [
        _row(
            "",
            "jax 1e4",
            "jax 1e5",
            "DP-Sniper 1e6 (30 to 90 s)",
            "dp_auditorium 2e5 (50 to 110 s)",
        ),
        _row(*["---"] * 5),
        *(_row(name, *values) for name, values in PEERS.items()),
    ]
    return _PAGE.format(
        **{
            name: "\n".join(lines)
            for name, lines in {
                "black": black,
                "white": white,
                "models": models,
                "peers": peers,
            }.items()
        }
    )


_PAGE = """\
# Auditors compared

Medians over seeds of one-sided lower bounds on ε at confidence 95 %, and the ratio of the
median to that of the reference, with its 95 % interval over the choice of seeds. The reference is
an ideal: it knows the best event beforehand, and tests only that event on the same draws, at the
whole level, with the same exact test. Seconds are processor time of one audit in one process,
without loading libraries; draws are the counted draws on each side. Printed by
`python -m benchmarks.auditors` (`--full` takes 400 seeds, 100 at 1e5 draws and for the sketches).

## By outputs alone

Training takes twice as many additional draws. The mechanisms are textbook code in doubles. The
claim of “Laplace, scale halved” is ε = 1, which its bound refutes.

{black}

For comparison, published results of other tools for this task. They weren't measured by this
command, and each tool had its own number of draws: jax_privacy's Clopper-Pearson
limits with Bonferroni's correction on given scalar scores, DP-Sniper with 1e6 draws a phase, and
dp_auditorium's hockey-stick tester with 2e5.

{peers}

## By the likelihood ratio

The bound is that of the whole audit: one event has 0.95 of the level; five others, and six
of the second pair if there is one, share the rest. “Gaussian” is standard normal noise on a
number that moves by 1, in doubles; the sketches are exact, of 64 attributes and 16 values. δ is
1e-5, or 0 for Laplace noise.

{white}

## Under the Gaussian model

A lower limit of ε at δ = 1e-5 from 10,000 draws, if the draws look like Gaussian differential
privacy. It is labelled as a model's number, and never decides a verdict. Draws say nothing about a
tail that they don't reach, so without a check the model gives such a number for every mechanism; a
test of the model withholds it where the model is false.

{models}
"""


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="400 seeds, 100 at 1e5 and of sketches")
    parser.add_argument("--seeds", type=int, nargs=3, default=(20, 5, 2), help="in that order")
    parser.add_argument("--out", type=Path, default=Path("out"), help="what is done is kept there")
    given = parser.parse_args()
    kept = Kept(given.out / "auditors.jsonl")
    measured(SUBJECTS[1], 100, 0)  # loads what learns scores
    seeds, large, sketches = (400, 100, 100) if given.full else given.seeds
    print(page(kept, seeds=seeds, large=large, sketches=sketches), end="")


if __name__ == "__main__":
    main()
