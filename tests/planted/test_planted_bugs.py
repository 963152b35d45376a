"""Every planted bug is found, by the attack and by the moments; its correct twin isn't accused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from dpverify.auditing import moments, whitebox
from dpverify.mechanism import Certifiable, Estimator, Pair
from dpverify_audits.planted import SUITE, PlantedBug
from dpverify_mechanisms.linear_sketch import LinearSketch

ALPHA = 0.01
EPSILON, DELTA = Fraction(2), Fraction(1, 1000)
EVENTS = 8
"""Two events in both orders for two pairs."""
LEVEL = ALPHA / EVENTS
MOMENT_DRAWS = 3000
MOMENT_LEVEL = ALPHA / 4
"""Mean and variance of two estimators."""

Sketch = Callable[..., LinearSketch]


@cache
def installed() -> tuple[PlantedBug, ...]:
    """Planted bugs of every installed package, as an audit finds them."""
    found = entry_points(group="dpverify.audits")
    return tuple(bug for entry in found for bug in entry.load())


every_bug = pytest.mark.parametrize("bug", installed(), ids=lambda bug: str(bug.name))
sizes = pytest.mark.parametrize(
    ("draws", "seed"),
    [(10_000, 1), *(pytest.param(20_000, s, marks=pytest.mark.nightly) for s in (1, 2, 3))],
)


def findings(mechanism: Certifiable, draws: int, seed: int) -> list[whitebox.Finding]:
    curve = mechanism.privacy()
    tests = whitebox.events(curve, DELTA, draws, LEVEL)
    found = whitebox.attack(mechanism, draws=draws, seed=seed, tests=tests, workers=1)
    judged = [whitebox.judge(c, curve, DELTA, LEVEL) for row in found.counts for c in row]
    assert len(judged) == EVENTS
    return judged


# --- the suite


def test_the_suite_is_installed() -> None:
    assert set(SUITE) <= set(installed())
    assert len({bug.name for bug in installed()}) == len(installed())
    assert all(bug.mistake for bug in installed())


@every_bug
def test_a_planted_bug_changes_the_release_and_not_the_claim(
    bug: PlantedBug, small_sketch: Sketch
) -> None:
    correct = small_sketch(EPSILON, DELTA)
    broken = bug.plant(correct)
    assert broken.privacy() == correct.privacy()
    assert broken.facts() == correct.facts()
    assert broken.guarantee() == correct.guarantee()


# --- the attack


@sizes
@every_bug
def test_the_attack_finds_the_bug(
    bug: PlantedBug, draws: int, seed: int, small_sketch: Sketch
) -> None:
    found = findings(bug.plant(small_sketch(EPSILON, DELTA)), draws, seed)
    assert any(finding.refuted_at is not None for finding in found)


@sizes
def test_the_attack_does_not_accuse_the_correct_twin(
    draws: int, seed: int, small_sketch: Sketch
) -> None:
    """At level 0.01 over all eight events."""
    correct = small_sketch(EPSILON, DELTA)
    found = findings(correct, draws, seed)
    assert all(finding.refuted_at is None for finding in found)
    bound = max(finding.epsilon_lower for finding in found)
    assert bound <= correct.privacy().epsilon(DELTA).upper
    # An attack that is blind accuses nobody either: this one does see the mechanism.
    assert bound >= 0.5


def test_the_finds_are_promised_and_not_luck(small_sketch: Sketch) -> None:
    """The suite's mildest bug scales the noise by 0.8, which 10,000 draws find 99 times in 100."""
    curve = small_sketch(EPSILON, DELTA).privacy()
    scale = whitebox.power(curve, EPSILON, DELTA, 10_000, LEVEL).noise_scale
    assert scale is not None
    assert scale >= 0.8


# --- the moments


@dataclass(frozen=True, slots=True)
class Altered:
    """An estimator with a mistake: its estimates are moved, or its variance is another."""

    correct: Estimator
    shift: float = 0.0
    variance_factor: float = 1.0
    variance_shift: float = 0.0

    @property
    def name(self) -> str:
        return self.correct.name

    @property
    def over(self) -> Literal["draw and noise", "noise"]:
        return self.correct.over

    @property
    def compares(self) -> Literal["records", "release and query"]:
        return self.correct.compares

    @property
    def order(self) -> Literal["exact", "delta method"]:
        return self.correct.order

    def estimate(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        return self.correct.estimate(first, second) + self.shift

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        return self.correct.truth(record, other)

    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        return self.correct.expectation(record, other)

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        correct = self.correct.variance(record, other)
        return self.variance_factor * correct + self.variance_shift


Verdicts = tuple[moments.MomentVerdict, moments.MomentVerdict]


def verdicts(mechanism: Certifiable, estimators: Sequence[Estimator]) -> list[Verdicts]:
    """Verdicts on mean and variance of every estimator, for one pair of records."""
    x, y = np.random.default_rng(0).random((2, 12))
    drawn = moments.draw_estimates(
        mechanism,
        estimators,
        Pair(name="", record=x[None], neighbour=y[None]),
        draws=MOMENT_DRAWS,
        seed=7,
    )
    return [
        moments.judge(
            moments.Moments.of(values),
            estimator.expectation(x, y),
            estimator.variance(x, y),
            MOMENT_LEVEL,
        )
        for estimator, values in zip(estimators, drawn, strict=True)
    ]


def exact_estimators(sketch: LinearSketch) -> list[Estimator]:
    return [estimator for estimator in sketch.estimators() if estimator.order == "exact"]


def noise_floor(sketch: LinearSketch) -> tuple[float, float]:
    """k·v and k·v² for noise of variance v, in the records' unit."""
    v = sketch.noise.variance().upper * sketch.step().upper ** 2
    return sketch.projection.k * v, sketch.projection.k * v**2


CONFIRMED: moments.MomentVerdict = "confirmed within the margin"


def test_the_correct_formulas_are_confirmed(small_sketch: Sketch) -> None:
    sketch = small_sketch(EPSILON, DELTA)
    estimators = exact_estimators(sketch)
    assert [estimator.name for estimator in estimators] == ["squared distance", "inner product"]
    assert verdicts(sketch, estimators) == [(CONFIRMED, CONFIRMED)] * 2
    # Nor does the wrapper that carries the mistakes make one.
    wrapped = [Altered(estimator) for estimator in estimators]
    assert verdicts(sketch, wrapped) == [(CONFIRMED, CONFIRMED)] * 2


@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_a_variance_that_is_off_by_half_is_refuted(factor: float, small_sketch: Sketch) -> None:
    sketch = small_sketch(EPSILON, DELTA)
    wrong = [Altered(e, variance_factor=factor) for e in exact_estimators(sketch)]
    assert verdicts(sketch, wrong) == [(CONFIRMED, "refuted")] * 2


def test_a_variance_without_the_noise_times_noise_is_refuted(small_sketch: Sketch) -> None:
    """Var ⟨a + e, b + f⟩ = v(‖a‖² + ‖b‖²) + kv² + …, and the second term is easily forgotten."""
    sketch = small_sketch(EPSILON, DELTA)
    square = noise_floor(sketch)[1]
    distance, product = exact_estimators(sketch)
    # Of the squared distance, whose noise has variance 2v, it is 2k(2v)².
    wrong = [
        Altered(distance, variance_shift=-8 * square),
        Altered(product, variance_shift=-square),
    ]
    for mean, variance in verdicts(sketch, wrong):
        assert mean != "refuted"
        assert variance == "refuted"


def test_an_estimate_that_keeps_the_noise_is_refuted(small_sketch: Sketch) -> None:
    sketch = small_sketch(EPSILON, DELTA)
    distance, _ = exact_estimators(sketch)
    assert verdicts(sketch, [Altered(distance, shift=2 * noise_floor(sketch)[0])]) == [
        ("refuted", CONFIRMED)
    ]


@every_bug
def test_the_moments_find_the_bug(bug: PlantedBug, small_sketch: Sketch) -> None:
    """The release's noise is not what the estimators take off."""
    sketch = small_sketch(EPSILON, DELTA)
    found = verdicts(bug.plant(sketch), exact_estimators(sketch))
    assert all(variance == "refuted" for _, variance in found)
    assert found[0][0] == "refuted"  # the squared distance, from which 2kv is subtracted
