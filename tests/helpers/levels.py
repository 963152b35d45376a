"""Every mode of audit with a true claim that it may seldom accuse, and a control that it must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks.base import Target
from dpverify.auditing.attacks.exhaustive import exhaust
from dpverify.auditing.attacks.trade_off import TradeOffAttack
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import AuditKind
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import AddRemove, L1Ball
from dpverify.data.columns import Booleans
from dpverify.data.table import Table
from dpverify.estimation import moments
from dpverify.privacy import Pair
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import Words
from dpverify_audits.planted import SUITE
from dpverify_audits.planted.releases import Counts, Reports
from tests.helpers.textbook import Laplace, Normal

__all__ = ["ALPHA", "FALSE_ALARM", "MODES", "SEARCHED", "Mode", "accusations", "most"]


ALPHA = 0.05


FALSE_ALARM = 1e-4
"""Probability with which a mode that spends exactly α is called one that spends more."""


_PAIR = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


_TENTH = Fraction(1, 10)


class _TooLow(Normal):
    """The claim of a move of 0.3, where one of 1 is made."""

    def privacy(self) -> Gaussian:
        return Gaussian.from_mu_squared(Fraction(9, 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way to audit, with a true claim and a control.

    Attributes
    ----------
    name, null, control : in words
    accuses : whether one run accuses the null, or the control where the flag is false
    """

    name: str
    null: str
    control: str
    accuses: Callable[[int, bool], bool]


def _run(mechanism: Any, seed: int, kind: AuditKind | None, draws: int, delta: Fraction) -> bool:
    pairs = None if mechanism.worst_pairs() else [_PAIR]
    report = audit(
        mechanism,
        alpha=ALPHA,
        delta=delta,
        draws=draws,
        seed=seed,
        kinds=None if kind is None else [kind],
        pairs=pairs,
        workers=1,
    )
    return report.verdict == "violation"


def _normal(true: bool) -> Any:
    """σ = 1 on a move of 1; the control claims it for a move of 0.3."""
    return Normal() if true else _TooLow()


def _white_box(seed: int, true: bool) -> bool:
    return _run(_normal(true), seed, "white-box", 50, _TENTH)


def _trade_off(seed: int, true: bool) -> bool:
    config = AuditConfig(delta=_TENTH, alpha=ALPHA, draws=100, seed=seed, workers=1)
    (finding,) = TradeOffAttack().run(Target(_normal(true), [_PAIR]), config)
    return finding.verdict == "violation"


def _by_outputs(kind: AuditKind, draws: int) -> Callable[[int, bool], bool]:
    """ε = 1 exactly; the control has half the noise."""

    def accuses(seed: int, true: bool) -> bool:
        return _run(Laplace(scale=1.0 if true else 0.5), seed, kind, draws, Fraction(0))

    return accuses


def _planted(name: str) -> tuple[Any, Any]:
    """Twin and bug."""
    bug = next(bug for bug in SUITE if bug.name == name)
    return bug.twin(), bug.broken()


def _of_bug(name: str, kind: AuditKind | None, draws: int) -> Callable[[int, bool], bool]:
    twin, broken = _planted(name)

    def accuses(seed: int, true: bool) -> bool:
        return _run(twin if true else broken, seed, kind, draws, Fraction(0))

    return accuses


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Weights of three values for both rows, drawn by a seed."""

    seed: int

    def __call__(self, row: tuple[int, ...]) -> tuple[int, ...]:
        drawn = np.random.default_rng((self.seed, *row)).integers(1, 100, size=3)
        return tuple(int(weight) for weight in drawn)


def _exhaustive(seed: int, true: bool) -> bool:
    """Random laws with the claim that they attain; the control's is lower by 1e-9 of it."""
    mechanism = Reports(weights=_Drawn(seed), record=(0,), neighbour=(1,), claim=Fraction(1))
    epsilon = exhaust(mechanism, [[0], [1]]).epsilon()
    claim = Fraction(epsilon.upper) if true else Fraction(epsilon.lower) * (1 - Fraction(1, 10**9))
    return _run(replace(mechanism, claim=claim), seed, "exhaustive", 20, Fraction(0))


def _two_routes(records: Any, noise: RoundedLaplace, rng: Words) -> Any:
    """The same noise, of which one neighbour asks for more than it takes: always proposed."""
    return records + noise.sample((1 + int(records[0, 0]), 1), rng=rng)[:1]


def _grey_box(seed: int, true: bool) -> bool:
    """Noise calls that depend on the data, ε = 1 exactly; the control has half the noise."""
    mechanism = Counts(
        draw=_two_routes,
        record=(0,),
        neighbour=(1,),
        noise=RoundedLaplace(scale=1.0 if true else 0.5),
    )
    return _run(mechanism, seed, "grey-box", 50, Fraction(0))


def _spare(scale: float, row: Any, rng: Any) -> Any:
    """Laplace noise, asked for twice and released once: always proposed."""
    released, spare = (row + rng.laplace(scale=scale) for _ in range(2))
    return released if spare is not None else None


def _frozen_outputs(seed: int, true: bool) -> bool:
    """ε = 1 exactly, of calls that lose twice as much; the control has half the noise."""
    mechanism = adapt(
        partial(_spare, 1.0 if true else 0.5),
        adjacency=L1Ball(radius=Fraction(1)),
        claim=ApproxDP(epsilon=1),
        of="record",
        name="spare",
    )
    return _run(mechanism, seed, "frozen-outputs", 50, Fraction(0))


def _count(scale: float, rows: Any, rng: Any) -> float:
    return len(rows) + float(rng.laplace(scale=scale))


def _searched(seed: int, true: bool, **options: Any) -> bool:
    """Where a search finds the pair; the control has half the noise."""
    report = audit(
        partial(_count, 1.0 if true else 0.5),
        epsilon=1,
        adjacency=AddRemove(),
        domain=Table({"x": Booleans()}, rows=(0, 2)),
        alpha=ALPHA,
        seed=seed,
        workers=1,
        **options,
    )
    return report.verdict == "violation"


def _moments(seed: int, true: bool) -> bool:
    """Mean 0 and variance 1 of normal estimates; the control says a variance of 1.3."""
    drawn = np.random.default_rng(seed).standard_normal(800)
    found = moments.judge(moments.Moments.of(drawn), 0.0, 1.0 if true else 1.3, ALPHA / 2)
    return "refuted" in found


_SHRUNK = "noise before the projection at the output's scale"


_SEEDED = "seeded generator"


MODES = (
    Mode(
        name="white-box",
        null="Gaussian, Δ = σ, 50 draws, δ = 0.1",
        control="claimed for Δ = 0.3 σ",
        accuses=_white_box,
    ),
    Mode(
        name="trade-off curve",
        null="Gaussian, Δ = σ, 100 draws, δ = 0.1",
        control="claimed for Δ = 0.3 σ",
        accuses=_trade_off,
    ),
    Mode(
        name="black-box",
        null="Laplace, ε = 1, 50 draws",
        control="half the noise",
        accuses=_by_outputs("black-box", 50),
    ),
    Mode(
        name="sequential",
        null="Laplace, ε = 1, up to 64 pairs, a look after each",
        control="half the noise",
        accuses=_by_outputs("sequential", 64),
    ),
    Mode(
        name="precision",
        null="Laplace noise on whole numbers, ε = 1, 100 draws",
        control="a finer grid",
        accuses=_of_bug(_SHRUNK, "precision", 100),
    ),
    Mode(
        name="determinism",
        null="Laplace noise on whole numbers, ε = 1, 20 draws",
        control="a fixed seed",
        accuses=_of_bug(_SEEDED, "determinism", 20),
    ),
    Mode(
        name="exhaustive",
        null="random laws of three values, with their ε",
        control="ε lower by 1e-9 of it",
        accuses=_exhaustive,
    ),
    Mode(
        name="frozen outputs",
        null="two calls of Laplace noise, of which one is released, ε = 1, 50 draws",
        control="half the noise",
        accuses=_frozen_outputs,
    ),
    Mode(
        name="grey-box",
        null="Laplace noise by calls that depend on the data, ε = 1, 50 draws",
        control="half the noise",
        accuses=_grey_box,
    ),
    Mode(
        name="moments",
        null="mean and variance of 800 normal estimates",
        control="a variance of 1.3",
        accuses=_moments,
    ),
    Mode(
        name="all that apply, together",
        null="randomized response over four values, ε = 1, 40 draws",
        control="the keep probability of two values",
        accuses=_of_bug("keep probability of two buckets", None, 40),
    ),
)


BRIEF = Mode(
    name="black-box, brief",
    null="count of rows with Laplace noise, ε = 1, a search, up to 1,000 draws",
    control="half the noise",
    accuses=partial(_searched, kinds=["black-box"], draws=1000, brief=True),
)
SHARED = Mode(
    name="all that count the same draws, at the more telling of two pairs",
    null="count of rows with Laplace noise, ε = 1, a search, 100 draws",
    control="half the noise",
    accuses=partial(
        _searched, kinds=["black-box", "trade-off", "sequential", "determinism"], draws=100
    ),
)
SEARCHED = (BRIEF, SHARED)
"""Beside the table, for which ten thousand searches take too long."""


def accusations(mode: Mode, first: int, runs: int, *, true: bool) -> int:
    """How many of the runs from `first` on accuse."""
    return sum(mode.accuses(seed, true) for seed in range(first, first + runs))


def most(runs: int) -> int:
    """How many accusations of a true claim are compatible with the level."""
    return int(binom.ppf(1 - FALSE_ALARM, runs, ALPHA))
