"""Every planted bug is found by the audits that it names; its correct twin isn't accused.

By day `test_planted_by_day` tries one kind of each with few draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dpverify.auditing.statistics import claim_test
from dpverify.auditing.statistics import power as planning
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.estimation import moments
from dpverify.privacy import Certifiable, Estimator, Pair
from dpverify.sampling.words import ReplayableWords
from dpverify_audits.planted import SUITE, Mislabelled, PlantedBug
from dpverify_mechanisms.linear.sketch import LinearSketch
from tests.helpers.attacks import counted
from tests.helpers.profiles import day_and_night, sampled

ALPHA = 0.01
"""Level of one audit, over everything that it looks at."""
DELTA = Fraction(1, 1000)
"""Where events are chosen; the claim is refuted at any ε. All claims with a δ have this one."""
MOMENT_DRAWS = 3000
"""With which a correct formula is confirmed; a planted bug shows with fewer."""
FEW_DRAWS = 800
MOMENT_LEVEL = ALPHA / 4
"""Mean and variance of at most two exact estimators."""

Bug = PlantedBug[Any]


@cache
def installed() -> tuple[Bug, ...]:
    """Planted bugs of every installed package, as an audit finds them."""
    found = entry_points(group="dpverify.audits")
    return tuple(bug for entry in found for bug in entry.load() if isinstance(bug, PlantedBug))


@cache
def twin_of(bug: Bug) -> Certifiable:
    twin: Certifiable = bug.twin()
    return twin


def planted(bug: Bug) -> Mislabelled:
    broken = bug.plant(twin_of(bug))
    assert isinstance(broken, Mislabelled)
    return broken


def found_by(audit: str) -> list[Bug]:
    return [bug for bug in installed() if audit in bug.found_by]


def sketches() -> list[Bug]:
    """Those of the papers' mechanisms; the others are in `test_planted_releases`."""
    return [bug for bug in installed() if isinstance(bug.broken(), Mislabelled)]


SLOW = ("w for its square",)
"""Its curve's `rates` are integrals, of which the choice of events takes ten seconds."""
BY_DAY = {
    "white-box": (
        "algorithm 7 as printed",
        "flips for one sign",
        "levels start at 1",
        "replacement from all buckets",
    ),
    "moments": (
        "noise left in the squared distance",
        "weights not shrunk",
    ),
}
"""Those that `test_planted_by_day` leaves to these audits."""


def parameters(bugs: Sequence[Bug]) -> list[Any]:
    return sampled(bugs, {bug.name for bug in bugs} - set(SLOW))


def twins(bugs: Sequence[Bug]) -> list[Bug]:
    """The bug with most draws of each twin: one attack on that twin speaks for all of them."""
    most: dict[Callable[[], Certifiable], Bug] = {}
    for bug in sorted(bugs, key=lambda bug: bug.draws):
        most[bug.twin] = bug
    return list(most.values())


seeds = pytest.mark.parametrize("seed", day_and_night(1, 2, 3, 4, 5))


# --- the suite


def test_the_suite_is_installed() -> None:
    assert len(SUITE) >= 40
    assert {bug.name for bug in SUITE} <= {bug.name for bug in installed()}
    assert len({bug.name for bug in installed()}) == len(installed())
    for bug in installed():
        assert bug.mistake
        assert bug.found_by
        assert ("white-box" in bug.found_by) == (bug.rates is not None)


@pytest.mark.parametrize("bug", parameters(sketches()))
def test_a_planted_bug_changes_the_behaviour_and_not_the_claim(bug: Bug) -> None:
    correct = twin_of(bug)
    broken = planted(bug)
    assert broken.privacy() == correct.privacy()
    assert broken.facts() == correct.facts()
    assert broken.guarantee() == correct.guarantee()
    assert broken.adjacency == correct.adjacency
    assert broken.domain == correct.domain
    assert broken.shape(3) == correct.shape(3)
    # Released in other steps, it would be another bug than it says.
    assert broken.actual.step() == correct.step()


# --- the attack


@cache
def level(bug: Bug) -> float:
    """Three events in both orders for every pair share the level."""
    return ALPHA / (6 * len(twin_of(bug).worst_pairs()))


@cache
def events_of(bug: Bug) -> tuple[planning.Event, ...]:
    return planning.events(twin_of(bug).privacy(), DELTA, bug.draws, level(bug))


def counts(bug: Bug, mechanism: Certifiable, seed: int) -> tuple[tuple[Counts, ...], ...]:
    return counted(mechanism, events_of(bug), draws=bug.draws, seed=seed, workers=1).counts


@cache
def broken_counts(bug: Bug, seed: int) -> tuple[tuple[Counts, ...], ...]:
    return counts(bug, planted(bug), seed)


def judged(bug: Bug, row: Sequence[Counts]) -> list[claim_test.Judgement]:
    """Of one pair's events."""
    curve = twin_of(bug).privacy()
    return [
        claim_test.judge(counted, curve, DELTA, level(bug), ordering=event.ordering)
        for event, counted in zip(events_of(bug), row, strict=False)
    ]


@seeds
@pytest.mark.parametrize("bug", sampled(found_by("white-box"), BY_DAY["white-box"]))
def test_the_attack_finds_the_bug(bug: Bug, seed: int) -> None:
    assert any(
        finding.refuted_at is not None
        for row in broken_counts(bug, seed)
        for finding in judged(bug, row)
    )


@pytest.mark.parametrize("bug", sampled(found_by("white-box"), BY_DAY["white-box"]))
def test_the_finds_are_promised_and_not_luck(bug: Bug) -> None:
    """One event is refuted by the 0.5 % quantile of its hits and the 99.5 % one of its others."""
    assert bug.rates is not None
    unlucky = []
    for event in events_of(bug)[:3]:
        p, q = bug.rates(twin_of(bug), event.threshold)
        hits, false_hits = binom.ppf(0.005, bug.draws, p), binom.ppf(0.995, bug.draws, q)
        unlucky.append(Counts(hits=int(hits), false_hits=int(false_hits), draws=bug.draws))
    assert any(finding.refuted_at is not None for finding in judged(bug, unlucky))


@pytest.mark.nightly
@seeds
@pytest.mark.parametrize("bug", parameters(found_by("white-box")))
def test_the_rates_are_those_of_the_broken_release(bug: Bug, seed: int) -> None:
    """At one of the pairs in one order; false with probability at most 1e-4 for the six counts."""
    assert bug.rates is not None
    events = events_of(bug)[:3]
    rates = [bug.rates(twin_of(bug), event.threshold) for event in events]

    def plausible(hits: int, rate: float) -> bool:
        least, most = (binom.ppf(tail, bug.draws, rate) for tail in (8e-6, 1 - 8e-6))
        return bool(least <= hits <= most)

    assert any(
        all(
            plausible(c.hits, own) and plausible(c.false_hits, other)
            for c, (own, other) in zip(order, rates, strict=True)
        )
        for row in broken_counts(bug, seed)
        for order in (row[:3], row[3:])
    )


@seeds
@pytest.mark.parametrize("bug", sampled(twins(found_by("white-box")), ["levels start at 1"]))
def test_the_attack_does_not_accuse_the_correct_twin(bug: Bug, seed: int) -> None:
    """At level 0.01 over all its events."""
    curve = twin_of(bug).privacy()
    found = [f for row in counts(bug, twin_of(bug), seed) for f in judged(bug, row)]
    assert all(finding.refuted_at is None for finding in found)
    bound = max(finding.epsilon_lower for finding in found)
    assert bound <= curve.epsilon_at(DELTA).upper
    # An attack that is blind accuses nobody either: this one does see the mechanism.
    assert bound > 0


# --- the moments

Verdicts = tuple[moments.MomentVerdict, moments.MomentVerdict]


def verdicts(mechanism: Certifiable, estimators: Sequence[Estimator], seed: int) -> list[Verdicts]:
    """Verdicts on mean and variance of every estimator, at the last probe, as a certificate's."""
    probe = mechanism.probes(ReplayableWords(7, "synthetic"))[-1]
    drawn = moments.draw_estimates(mechanism, estimators, probe, draws=FEW_DRAWS, seed=seed)
    return [judged_moments(*pair, probe) for pair in zip(estimators, drawn, strict=True)]


def judged_moments(
    estimator: Estimator,
    values: NDArray[np.float64],
    probe: Pair,
    *,
    factor: float = 1.0,
    lost: float = 0.0,
) -> Verdicts:
    """Verdicts on the estimates at the probe; the variance may be given a mistake."""
    return moments.judge(
        moments.Moments.of(values),
        estimator.expectation(probe.record, probe.neighbour),
        factor * estimator.variance(probe.record, probe.neighbour) - lost,
        MOMENT_LEVEL,
    )


def exact_estimators(mechanism: Certifiable) -> list[Estimator]:
    return [estimator for estimator in mechanism.estimators() if estimator.order == "exact"]


@seeds
@pytest.mark.parametrize("bug", sampled(found_by("moments"), BY_DAY["moments"]))
def test_the_moments_find_the_bug(bug: Bug, seed: int) -> None:
    broken = planted(bug)
    estimators = exact_estimators(broken)
    assert 1 <= len(estimators) <= 2
    found = any("refuted" in verdict for verdict in verdicts(broken, estimators, seed))
    assert found, f"{bug.draws} draws refute no formula: `found_by` promises that they do"


@pytest.mark.nightly
@pytest.mark.parametrize("twin", list({bug.twin: None for bug in found_by("moments")}))
def test_the_moments_do_not_accuse_the_correct_twin(twin: Callable[[], Certifiable]) -> None:
    """But for what the level allows in five runs, all of them together."""
    correct, accused = twin(), 0
    for seed in range(1, 6):
        found = verdicts(correct, exact_estimators(correct), seed)
        accused += any("refuted" in verdict for verdict in found)
    assert accused <= 1


# --- estimators with a mistake

CONFIRMED: moments.MomentVerdict = "confirmed_within_margin"
RECORDS = np.random.default_rng(0).random((2, 1, 12))
PROBE = Pair(name="", record=RECORDS[0], neighbour=RECORDS[1])

Drawn = tuple[LinearSketch, list[Estimator], list[NDArray[np.float64]]]


@pytest.fixture(scope="module")
def drawn(small_sketch: Callable[[], LinearSketch]) -> Drawn:
    """A sketch, its exact estimators, and estimates of each."""
    sketch = small_sketch()
    estimators = exact_estimators(sketch)
    assert [estimator.name for estimator in estimators] == ["squared distance", "inner product"]
    values = moments.draw_estimates(sketch, estimators, PROBE, draws=MOMENT_DRAWS, seed=7)
    return sketch, estimators, values


def noise_floor(sketch: LinearSketch) -> tuple[float, float]:
    """k·v and k·v² for noise of variance v, in the records' unit."""
    v = sketch.noise.variance().upper * sketch.step().upper ** 2
    return sketch.projection.k * v, sketch.projection.k * v**2


@pytest.mark.nightly
def test_the_correct_formulas_are_confirmed(drawn: Drawn) -> None:
    _, estimators, values = drawn
    for estimator, estimates in zip(estimators, values, strict=True):
        assert judged_moments(estimator, estimates, PROBE) == (CONFIRMED, CONFIRMED)


@pytest.mark.nightly
@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_a_variance_that_is_off_by_half_is_refuted(factor: float, drawn: Drawn) -> None:
    _, estimators, values = drawn
    for estimator, estimates in zip(estimators, values, strict=True):
        verdict = judged_moments(estimator, estimates, PROBE, factor=factor)
        assert verdict == (CONFIRMED, "refuted")


@pytest.mark.nightly
def test_a_variance_without_the_noise_times_noise_is_refuted(drawn: Drawn) -> None:
    """Var ⟨a + e, b + f⟩ = v(‖a‖² + ‖b‖²) + kv² + …, and the second term is easily forgotten."""
    sketch, estimators, values = drawn
    square = noise_floor(sketch)[1]
    # Of the squared distance, whose noise has variance 2v, it is 2k(2v)².
    for estimator, estimates, times in zip(estimators, values, (8, 1), strict=True):
        mean, variance = judged_moments(estimator, estimates, PROBE, lost=times * square)
        assert mean != "refuted"
        assert variance == "refuted"


@pytest.mark.nightly
def test_an_estimate_that_keeps_the_noise_is_refuted(drawn: Drawn) -> None:
    sketch, (distance, _), (estimates, _) = drawn
    kept = estimates + 2 * noise_floor(sketch)[0]
    assert judged_moments(distance, kept, PROBE) == ("refuted", CONFIRMED)
