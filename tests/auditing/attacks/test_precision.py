"""The precision attack: it breaks every sum of doubles, and finds nothing in the exact path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks import precision
from dpverify.auditing.attacks.precision import VIEWS, PrecisionAttack
from dpverify.auditing.finding import Finding
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.errors import DrawError, ParameterError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify.sampling.words import Words
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.linear.textbook import textbook_release
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)
from tests.helpers.attacks import evidence_of, finding_of
from tests.helpers.profiles import day_and_night, thinned

PURE = ApproxDP(epsilon=Fraction(1))
PAIR = Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
DELTA = Fraction(1, 10**6)


def audit(mechanism: Any, pairs: Sequence[Pair], **settings: Any) -> Finding:
    standard = {"draws": 1000, "workers": 1, "delta": Fraction(0)}
    return finding_of(PrecisionAttack(), mechanism, pairs, **standard | settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Mechanism):
    """A function of (records, numpy generator), with a claim."""

    function: Callable[[Any, np.random.Generator], Any]
    curve: PrivacyCurve = PURE

    @property
    def adjacency(self) -> Attribute:
        return Attribute(beta=Fraction(1))

    def release(self, records: Any, *, rng: Words) -> Any:
        seed = int(rng.words(1)[0])
        return self.function(records, np.random.Generator(np.random.PCG64(seed)))

    def privacy(self) -> PrivacyCurve:
        return self.curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact(Mechanism):
    """Rounded Laplace noise on a grid of 1/1024."""

    @property
    def adjacency(self) -> Attribute:
        return Attribute(beta=Fraction(1))

    def release(self, records: Any, *, rng: Words) -> Any:
        return records + RoundedLaplace(scale=1024.0).sample(records.shape, rng=rng) * 2.0**-10

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=Fraction(1))


def whole(x: Any, rng: np.random.Generator) -> Any:
    return x + rng.geometric(0.6, x.shape) - rng.geometric(0.6, x.shape)


def wide(x: Any, rng: np.random.Generator) -> Any:
    return x + rng.geometric(1e-3, x.shape) - rng.geometric(1e-3, x.shape)


@pytest.mark.parametrize("seed", thinned(range(10), 5))
def test_breaks_numpys_laplace_in_2000_runs(seed: int) -> None:
    subject = Subject(function=lambda x, rng: x + rng.laplace(0.0, 1.0, x.shape))
    finding = audit(subject, [PAIR], seed=seed)
    assert finding.verdict == "violation"
    assert finding.epsilon_lower is not None
    assert finding.epsilon_lower > 1
    assert evidence_of(finding).draws == 750


def test_breaks_numpys_normal() -> None:
    subject = Subject(
        function=lambda x, rng: x + rng.normal(0.0, 2.0, x.shape),
        curve=Gaussian.from_mu_squared(Fraction(1, 4)),
    )
    assert audit(subject, [PAIR], delta=DELTA).verdict == "violation"


@pytest.mark.parametrize(
    "projection",
    day_and_night(
        OPORP(p=16, k=8, seed=3),
        GaussianProjection(p=16, k=8, seed=3),
        RademacherProjection(p=16, k=8, seed=3),
    ),
)
def test_breaks_every_textbook_sketch(projection: Projection) -> None:
    sketch = LinearSketch.calibrated(
        projection,
        epsilon=Fraction(1),
        delta=DELTA,
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=Attribute(beta=Fraction(1)),
    )
    record = np.zeros((1, 16))
    neighbour = record.copy()
    neighbour[0, 0] = 1.0
    pair = Pair(name="empty", record=record, neighbour=neighbour)
    broken = Subject(
        function=lambda x, rng: textbook_release(sketch, x, rng=rng), curve=sketch.privacy()
    )
    # Of 1000 draws one seed in ten doesn't find it.
    assert audit(broken, [pair], delta=DELTA, draws=2000).verdict == "violation"
    assert audit(sketch, [pair], delta=DELTA).verdict == "no_violation_found"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rng: np.where(x != 0, x + rng.laplace(0.0, 1.0, x.shape), 0.0),  # empty bins
        lambda x, rng: wide(x / 2 + 0.25, rng),  # phase of a lattice
        lambda x, rng: np.copysign(np.zeros(x.shape), x - 0.5),  # signed zero
        lambda x, rng: np.where(x > 0, np.inf, rng.laplace(0.0, 1.0, x.shape)),  # infinity
        lambda x, rng: np.float32(x) + np.float32(rng.laplace(0.0, 1.0, x.shape)),
    ],
    ids=["empty bin", "phase", "signed zero", "infinity", "float32"],
)
def test_breaks_zeros_phases_and_infinities(function: Any) -> None:
    assert audit(Subject(function=function), [PAIR]).verdict == "violation"


@pytest.mark.parametrize(("values", "side"), [((0.0, 1.0), "neighbour"), ((1.0, 0.0), "record")])
def test_a_finding_names_the_side_whose_outputs_tell(
    values: tuple[float, float], side: str
) -> None:
    def sometimes_infinite(x: Any, rng: np.random.Generator) -> Any:
        often = rng.random(x.shape) < 0.2
        return np.where((x > 0) & often, np.inf, rng.laplace(0.0, 1.0, x.shape))

    record, neighbour = (np.full((1, 1), value) for value in values)
    pair = Pair(name="ends", record=record, neighbour=neighbour)
    finding = audit(Subject(function=sometimes_infinite), [pair])
    assert f"from the {side}, and 0 times from the" in finding.statement


@pytest.mark.parametrize(("draws", "share"), day_and_night((2000, 0.1), (20_000, 0.01)))
def test_finds_nothing_on_the_exact_path(draws: int, share: float) -> None:
    finding = audit(Exact(), [PAIR], draws=draws)
    assert finding.verdict == "no_violation_found"
    assert finding.power["smallest_share"] < share


@pytest.mark.nightly
def test_finds_nothing_on_the_exact_path_in_a_million() -> None:
    assert audit(Exact(), [PAIR], draws=1_000_000).verdict == "no_violation_found"


def forgetful(x: Any, rng: np.random.Generator) -> Any:
    """Forty coordinates that ignore the record: every claim of it is true."""
    return rng.laplace(0.0, 1.0, 40)


NULL = Subject(function=forgetful, curve=ApproxDP(epsilon=Fraction(1, 100)))


def alarms(audits: int) -> int:
    return sum(
        audit(NULL, [PAIR], alpha=0.05, draws=160, seed=seed).verdict == "violation"
        for seed in range(audits)
    )


@pytest.mark.parametrize("runs", day_and_night(20, 100))
def test_level_on_true_nulls(runs: int) -> None:
    assert binom.sf(alarms(runs) - 1, runs, 0.05) > 1e-3


def test_counting_the_training_draws_would_break_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level test can fail: an event counted where it was learned refutes true claims."""

    def careless(own: Any, other: Any, *, ratio: float) -> Any:
        view = VIEWS["low bits, by coordinate and binade"]
        event = precision.unreached(view(own), view(other))
        hits, leaked = (int(event.holds(*view(side)).sum()) for side in (own, other))
        return "careless", Counts(hits=hits, false_hits=leaked, draws=len(own))

    monkeypatch.setattr(precision, "_counted", careless)
    assert alarms(10) >= 8


def test_replays_and_does_not_depend_on_the_workers() -> None:
    first, second = (audit(Exact(), [PAIR], draws=2500, workers=workers) for workers in (1, 2))
    assert first == second


def test_lowest_bit_of_doubles() -> None:
    values = np.array([1.0, -3.0, 0.75, 2.0**-1074, 3 * 2.0**900, 12.0])
    assert precision._lowest_bit(values).tolist() == [0, 0, -2, -1074, 900, 2]


def test_draws_too_few_for_the_claim_are_inconclusive() -> None:
    subject = Subject(function=whole, curve=ApproxDP(epsilon=Fraction(9)))
    assert audit(subject, [PAIR]).verdict == "inconclusive"


def test_refuses_what_it_cannot_read() -> None:
    with pytest.raises(ParameterError, match="Sets have no precision"):
        audit(Subject(function=lambda x, rng: {1, 2}), [PAIR])
    with pytest.raises(DrawError, match="Subject raised ValueError: no"):
        audit(Subject(function=_raise), [PAIR])
    with pytest.raises(ParameterError, match="pairs"):
        audit(Exact(), [])


def _raise(x: Any, rng: np.random.Generator) -> Any:
    raise ValueError("no")
