"""The white-box attack: what counts prove, how they are drawn, and what the power promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, norm

from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.auditing.attacks.white_box import CHUNK, EventCounts, WhiteBoxAttack
from dpverify.auditing.finding import Finding
from dpverify.auditing.outputs import samples as chunked
from dpverify.auditing.statistics import power as planning
from dpverify.auditing.statistics.claim_test import curve_lines, judge
from dpverify.auditing.statistics.clopper_pearson import lower_limit, upper_limit
from dpverify.auditing.statistics.power import (
    DETECTION,
    Event,
    ceiling,
    events,
    levels,
    power,
    roc_thresholds,
)
from dpverify.auditing.statistics.two_sample_binomial import Counts, claim_lines
from dpverify.data.adjacency import Adjacency, Attribute
from dpverify.errors import DrawError, ParameterError
from dpverify.privacy import Pair, WhiteBox
from dpverify.sampling.words import Words
from dpverify_audits.planted.linear_sketch import noise_scaled
from dpverify_mechanisms.linear.sketch import LinearSketch
from tests.helpers.attacks import counted, evidence_of, finding_of

LEVEL = 0.01 / 16
LEVELS = (0.0095, 1e-5, 1e-5)
"""Of a certificate's events in record order, about."""
MILLIONTH = Fraction(1, 10**6)
THOUSANDTH = Fraction(1, 1000)
TARGETS = (
    (Fraction(5), MILLIONTH),
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(2), THOUSANDTH),
    (Fraction(1, 10), THOUSANDTH),
)

Sketch = Callable[..., LinearSketch]


def claim(epsilon: Fraction, delta: Fraction) -> Gaussian:
    """The curve of noise that just meets the target."""
    return Gaussian.from_mu_squared(1 / Fraction(sigma_gaussian(epsilon, delta).upper) ** 2)


def expected(curve: Gaussian, threshold: float, draws: int, noise: float = 1.0) -> Counts:
    p, q = curve.rates(threshold, noise=noise)
    return Counts(hits=round(draws * p), false_hits=round(draws * q), draws=draws)


# --- what counts prove


@pytest.mark.parametrize(("hits", "false_hits"), [(0, 0), (50, 50), (0, 1000), (1000, 1000)])
def test_counts_that_are_alike_prove_nothing(hits: int, false_hits: int) -> None:
    curve = claim(Fraction(1), THOUSANDTH)
    counts = Counts(hits=hits, false_hits=false_hits, draws=1000)
    finding = judge(counts, curve, THOUSANDTH, LEVEL)
    assert (finding.epsilon_lower, finding.refuted_at) == (0.0, None)


def test_an_event_that_tells_the_sides_apart_refutes_every_small_claim() -> None:
    counts = Counts(hits=10_000, false_hits=0, draws=10_000)
    finding = judge(counts, claim(Fraction(1), MILLIONTH), MILLIONTH, LEVEL)
    assert finding.epsilon_lower > 7
    assert finding.refuted_at is not None
    # A claim of ε = 100 leaves room for such counts.
    generous = judge(counts, claim(Fraction(100), MILLIONTH), MILLIONTH, LEVEL)
    assert generous.refuted_at is None
    assert generous.epsilon_lower == finding.epsilon_lower


@pytest.mark.parametrize("ordering", [None, 0.05])
@pytest.mark.parametrize(("hits", "false_hits"), [(900, 20), (5000, 800), (9999, 9000)])
@pytest.mark.parametrize("delta", [MILLIONTH, Fraction(1, 30)])
def test_the_bound_is_within_what_two_limits_and_the_ratio_give(
    hits: int, false_hits: int, delta: Fraction, ordering: float | None
) -> None:
    """Better than Clopper and Pearson's limits at half the level, and below the counted ratio."""
    counts = Counts(hits=hits, false_hits=false_hits, draws=10_000)
    curve = claim(Fraction(1, 2), Fraction(1, 10**5))
    found = judge(counts, curve, delta, LEVEL, ordering=ordering).epsilon_lower
    p, q = lower_limit(hits, 10_000, LEVEL / 2), upper_limit(false_hits, 10_000, LEVEL / 2)
    split = max(math.log(max(p - delta, 1e-9) / q), 0.0)
    other = (10_001 - false_hits) / (10_001 - hits)
    assert found < math.log(max(hits / false_hits, other))
    if ordering is None:
        assert found > split
    # The other ordering is worse here, and no other test: its bound is rejected as well.
    elif found > 0:
        lines = claim_lines(found, float(delta))
        assert counts.refutes(lines, alpha=LEVEL, delta=ordering)
        lines = claim_lines(found * 1.01 + 0.01, float(delta))
        assert not counts.refutes(lines, alpha=LEVEL, delta=ordering)


def test_a_refutation_needs_more_than_the_claim_allows() -> None:
    """More hits never save a claim; the first find is between 2 and 5 standard errors off."""
    curve, draws = claim(Fraction(1), THOUSANDTH), 20_000
    for event in events(curve, THOUSANDTH, draws, LEVEL)[:3]:
        p, q = curve.rates(event.threshold)
        spread = math.sqrt((p * (1 - p) + math.exp(2 * event.threshold) * q * (1 - q)) / draws)

        def refuted(errors: float, event: Event = event, spread: float = spread) -> bool:
            p, q = curve.rates(event.threshold)
            counts = Counts(
                hits=round(draws * (p + errors * spread)), false_hits=round(draws * q), draws=draws
            )
            found = judge(counts, curve, THOUSANDTH, LEVEL, ordering=event.ordering)
            return found.refuted_at is not None

        found = [refuted(errors) for errors in np.arange(0, 9, 0.5).tolist()]
        first = found.index(True)
        assert found == [False] * first + [True] * (len(found) - first)
        assert 2 <= first / 2 <= 5


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_lines_are_points_of_the_curve(epsilon: Fraction, delta: Fraction) -> None:
    """No line is below the curve's own events, and together they are hardly above."""
    curve = claim(epsilon, delta)
    lines = curve_lines(curve, delta)
    for threshold in np.linspace(0, float(epsilon), 40).tolist():
        p, q = curve.rates(threshold)
        allowed = min(slope * q + base for slope, base in lines)
        assert p <= allowed * (1 + 1e-12)
        assert allowed <= p * 1.01


def test_a_curve_is_refuted_where_its_claimed_point_is_not() -> None:
    """Far too many hits at t = 0, which (ε, δ) allows and δ(0) forbids."""
    curve = claim(Fraction(5), MILLIONTH)
    counts = Counts(hits=8000, false_hits=2000, draws=10_000)
    found = judge(counts, curve, MILLIONTH, LEVEL)
    assert found.refuted_at is not None
    assert found.refuted_at < 1
    assert found.epsilon_lower < 5
    assert not counts.refutes(claim_lines(5.0, 1e-6), alpha=LEVEL, delta=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_a_bound_above_the_claim_is_always_a_refutation(epsilon: Fraction, delta: Fraction) -> None:
    """With the least number of hits for which it is one."""
    curve, draws = claim(epsilon, delta), 10_000
    for false_hits in (0, 5, 800):

        def bound(hits: int, false_hits: int = false_hits) -> float:
            counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
            return judge(counts, curve, delta, LEVEL).epsilon_lower

        low, high, claimed = false_hits, draws, curve.epsilon_at(delta).upper
        if bound(high) <= claimed:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if bound(middle) > claimed else (middle, high)
        counts = Counts(hits=high, false_hits=false_hits, draws=draws)
        assert judge(counts, curve, delta, LEVEL).refuted_at is not None


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("draws", [100, 5000, 10**6])
def test_expected_counts_never_accuse_the_claim(
    epsilon: Fraction, delta: Fraction, draws: int
) -> None:
    curve = claim(epsilon, delta)
    truth = curve.epsilon_at(delta).lower
    for threshold in np.linspace(-float(epsilon), 2 * float(epsilon), 13).tolist():
        finding = judge(expected(curve, threshold, draws), curve, delta, LEVEL)
        assert finding.epsilon_lower <= truth
        assert finding.refuted_at is None


@pytest.mark.parametrize(
    ("hits", "false_hits"),
    [(-1, 5), (5, -1), (101, 5), (5, 101)],
)
def test_counts_that_are_none_are_refused(hits: int, false_hits: int) -> None:
    counts = Counts(hits=hits, false_hits=false_hits, draws=100)
    with pytest.raises(ParameterError):
        judge(counts, claim(Fraction(1), THOUSANDTH), THOUSANDTH, LEVEL)


# --- events


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_three_events_in_both_orders(epsilon: Fraction, delta: Fraction) -> None:
    curve = claim(epsilon, delta)
    chosen = events(curve, delta, 10_000, LEVEL)
    names = ["tail", "reach", "middle"]
    assert [(e.name, e.swapped) for e in chosen] == [(n, s) for s in (False, True) for n in names]
    for plain, swapped in zip(chosen[:3], chosen[3:], strict=True):
        assert (plain.threshold, plain.ordering) == (swapped.threshold, swapped.ordering)
    tail, reach, middle = chosen[:3]
    assert tail.threshold >= 0
    assert reach.threshold >= 0
    assert middle.threshold == 0
    # Each is ordered for the point of the claim that it is to test.
    assert tail.ordering == pytest.approx(float(delta), rel=1e-12)
    for event in (reach, middle):
        assert event.ordering == curve.delta_at(event.threshold).upper


def test_levels_add_up_and_most_is_the_first_events() -> None:
    for pairs in (1, 2, 5):
        shared = levels(0.01, pairs)
        assert [len(row) for row in shared] == [6] * pairs
        flat = [level for row in shared for level in row]
        assert 0.01 * (1 - 1e-9) <= math.fsum(flat) <= 0.01
        assert flat[0] > 0.0097
        assert len(set(flat[1:])) == 1


def test_events_follow_from_the_claim_alone(small_sketch: Sketch) -> None:
    """A release with other noise than claimed is attacked at the same thresholds."""
    sketch = small_sketch()
    broken = noise_scaled(sketch, 0.5)
    assert events(broken.privacy(), THOUSANDTH, 1000, LEVEL) == events(
        sketch.privacy(), THOUSANDTH, 1000, LEVEL
    )
    assert roc_thresholds(broken.privacy()) == roc_thresholds(sketch.privacy())


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS[:3])
def test_the_tail_event_is_where_the_claim_promises_most(
    epsilon: Fraction, delta: Fraction
) -> None:
    curve, draws = claim(epsilon, delta), 100_000
    tail = events(curve, delta, draws, LEVEL)[0].threshold
    at_tail = judge(expected(curve, tail, draws), curve, delta, LEVEL).epsilon_lower
    # Whole counts move the bound by up to about half a count of the rarer side.
    for threshold in np.linspace(0, 2 * float(epsilon), 81).tolist():
        other = judge(expected(curve, threshold, draws), curve, delta, LEVEL).epsilon_lower
        assert other <= at_tail * 1.03
    assert ceiling(curve, delta, draws, LEVEL) == pytest.approx(at_tail, rel=1e-9)
    assert ceiling(curve, delta, draws, LEVEL) < curve.epsilon_at(delta).lower


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_the_ceiling_rises_with_draws_and_level(epsilon: Fraction, delta: Fraction) -> None:
    curve = claim(epsilon, delta)
    by_draws = [ceiling(curve, delta, draws, LEVEL) for draws in (10**2, 10**4, 10**6)]
    assert all(few <= many for few, many in pairwise(by_draws))
    assert by_draws[-1] < curve.epsilon_at(delta).lower
    assert ceiling(curve, delta, 10**6, LEVEL) < ceiling(curve, delta, 10**6, 0.5)


def test_roc_thresholds_are_symmetric() -> None:
    found = roc_thresholds(claim(Fraction(2), THOUSANDTH))
    assert len(found) == 17
    np.testing.assert_allclose(found, [-t for t in reversed(found)], atol=1e-12)
    assert found == sorted(found)
    assert all(math.isfinite(t) for t in found)


# --- drawing


def run(
    mechanism: WhiteBox, draws: int, *, seed: int = 3, workers: int = 1, roc: Sequence[float] = ()
) -> EventCounts:
    tests = events(mechanism.privacy(), THOUSANDTH, 1000, LEVEL)
    return counted(mechanism, tests, roc, draws=draws, seed=seed, workers=workers)


def test_the_same_seed_gives_the_same_counts(small_sketch: Sketch) -> None:
    sketch = small_sketch()
    assert run(sketch, 300) == run(sketch, 300)
    assert run(sketch, 300) != run(sketch, 300, seed=4)


@pytest.mark.parametrize("draws", [CHUNK - 1, 2 * CHUNK + 37])
def test_workers_do_not_change_the_counts(
    small_sketch: Sketch, draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "_INLINE", 0.0)  # else so little is drawn here
    sketch = small_sketch()
    roc = roc_thresholds(sketch.privacy())
    assert run(sketch, draws, roc=roc) == run(sketch, draws, workers=2, roc=roc)


def test_draws_are_all_made_and_counted(small_sketch: Sketch) -> None:
    sketch = small_sketch()
    tests = events(sketch.privacy(), THOUSANDTH, 1000, LEVEL)
    for draws in (1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 37):
        done: list[int] = []
        found = counted(sketch, tests, [-1e9], done.append, draws=draws, seed=3, workers=1)
        pairs = sketch.worst_pairs()
        assert sum(done) == 2 * draws * len(pairs)
        assert len(found.counts) == len(pairs)
        for row in found.counts:
            assert len(row) == len(tests)
            for counts in row:
                assert counts.draws == draws
                assert max(counts.hits, counts.false_hits) <= draws
        assert found.roc == (Counts(hits=draws, false_hits=draws, draws=draws),)


def test_one_draw_more_adds_one_draw(small_sketch: Sketch) -> None:
    """Also over the border of a chunk: the draws before it stay as they are."""
    sketch = small_sketch()
    for draws in (CHUNK - 1, CHUNK, 2 * CHUNK - 1):
        for before, after in zip(
            run(sketch, draws).counts, run(sketch, draws + 1).counts, strict=True
        ):
            for few, many in zip(before, after, strict=True):
                assert many.hits - few.hits in (0, 1)
                assert many.false_hits - few.false_hits in (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePairTwice(LinearSketch):
    """A sketch that is attacked at its first worst pair, twice."""

    def worst_pairs(self) -> Sequence[Pair]:
        return [LinearSketch.worst_pairs(self)[0]] * 2


def test_chunks_and_sides_and_pairs_have_their_own_draws(small_sketch: Sketch) -> None:
    """Were a stream of words used twice, counts would double, or be the same for both pairs."""
    honest = small_sketch()
    sketch = SamePairTwice(**{f.name: getattr(honest, f.name) for f in fields(LinearSketch)})
    roc = [0.0]
    one, two = run(sketch, CHUNK, roc=roc), run(sketch, 2 * CHUNK, roc=roc)
    assert any(
        second.hits != 2 * first.hits or second.false_hits != 2 * first.false_hits
        for first, second in zip(one.counts[0], two.counts[0], strict=True)
    )
    assert one.counts[0] != one.counts[1]
    # With shared noise the loss would differ by exactly μ² between the sides, draw by draw.
    curve = sketch.privacy()
    assert isinstance(curve, Gaussian)
    mu_squared = float(curve.mu_squared)
    shifted = run(sketch, CHUNK, roc=[t for u in (0.3, 0.9) for t in (u, u - mu_squared)]).roc
    assert any(
        upper.hits != lower.false_hits
        for upper, lower in zip(shifted[::2], shifted[1::2], strict=True)
    )


def test_swapped_events_count_the_complement(small_sketch: Sketch) -> None:
    """{−L ≥ t} on the neighbour's side is all but {L > −t}; no loss equals the threshold."""
    sketch, draws, threshold = small_sketch(), 700, 0.123456789
    tests = [Event(name="any", threshold=threshold, swapped=True, ordering=0.0)]
    found = counted(sketch, tests, [-threshold], draws=draws, seed=3, workers=1)
    swapped, plain = found.counts[0][0], found.roc[0]
    assert (swapped.hits, swapped.false_hits) == (draws - plain.false_hits, draws - plain.hits)


def test_the_two_orders_are_alike(small_sketch: Sketch) -> None:
    """Gaussian losses are symmetric, so both orders estimate the same two rates."""
    draws = 3000
    for row in run(small_sketch(), draws).counts:
        for plain, swapped in zip(row[:3], row[3:], strict=True):
            for one, other in (
                (plain.hits, swapped.hits),
                (plain.false_hits, swapped.false_hits),
            ):
                rate = (one + other) / (2 * draws)
                # Five standard deviations; the two counts come from different sides.
                assert abs(one - other) <= 5 * math.sqrt(2 * draws * rate * (1 - rate)) + 1


@dataclass(frozen=True, slots=True)
class Transparent(WhiteBox):
    """Releases its record's first value, which is the loss too, and notes what it was given."""

    given: list[tuple[tuple[int, ...], str]]

    @property
    def adjacency(self) -> Adjacency:
        return Attribute(beta=Fraction(2))

    def release(self, records: ArrayLike, *, rng: Words) -> NDArray[Any]:
        rows = np.asarray(records)
        self.given.append((rows.shape, rng.policy))
        return rows[:, :1]

    def privacy(self) -> Gaussian:
        return Gaussian(sigma=1)

    def log_likelihood_ratio(
        self, outputs: NDArray[Any], record: ArrayLike, neighbour: ArrayLike
    ) -> NDArray[np.float64]:
        np.testing.assert_array_equal(record, [[1.0, 0.0]])
        np.testing.assert_array_equal(neighbour, [[-2.0, 0.0]])
        return np.asarray(outputs[:, 0, 0], dtype=np.float64)

    def worst_pairs(self) -> Sequence[Pair]:
        return [Pair(name="only", record=np.array([[1.0, 0.0]]), neighbour=np.array([[-2.0, 0.0]]))]


@pytest.mark.parametrize(
    ("threshold", "swapped", "hits", "false_hits"),
    [
        (1.0, False, 600, 0),  # the threshold itself belongs to the event
        (math.nextafter(1.0, 2.0), False, 0, 0),
        (-2.0, False, 600, 600),
        (math.nextafter(-2.0, 0.0), False, 600, 0),
        (2.0, True, 600, 0),
        (math.nextafter(2.0, 3.0), True, 0, 0),
        (-1.0, True, 600, 600),
        (math.nextafter(-1.0, 0.0), True, 600, 0),
    ],
)
def test_events_of_a_known_loss(
    threshold: float, swapped: bool, hits: int, false_hits: int
) -> None:
    mechanism = Transparent([])
    event = Event(name="any", threshold=threshold, swapped=swapped, ordering=0.0)
    found = counted(mechanism, [event], draws=600, seed=1, workers=1)
    assert found.counts == ((Counts(hits=hits, false_hits=false_hits, draws=600),),)
    # Users release one record at a time or many; the attack must not depend on neighbours in a
    # batch, so it asks for single rows, and with words that can be replayed.
    assert len(mechanism.given) == 1200
    assert {shape for shape, _ in mechanism.given} == {(1, 2)}
    assert all(policy.startswith("replayable") for _, policy in mechanism.given)


# --- rates


@pytest.mark.parametrize("mu", [Fraction(1, 50), Fraction(1), Fraction(7, 2)])
@pytest.mark.parametrize("noise", [0.1, 0.8, 1.0])
def test_rates_against_the_normal_distribution(mu: Fraction, noise: float) -> None:
    curve, scale = Gaussian.from_mu_squared(mu**2), float(mu)
    for threshold in np.linspace(-5 * scale, 5 * scale, 21).tolist():
        own, other = curve.rates(threshold, noise=noise)
        for rate, mean in ((own, scale**2 / 2), (other, -(scale**2) / 2)):
            assert rate == pytest.approx(norm.sf(threshold, mean, noise * scale), rel=1e-9)
            with mpmath.workdps(40):
                z = (mpmath.mpf(mean) - threshold) / (mpmath.mpf(noise) * scale)
                assert rate == pytest.approx(float(mpmath.ncdf(z)), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_rates_attain_the_curve(epsilon: float) -> None:
    """δ(ε) = P[L ≥ ε] − e^ε Q[L ≥ ε]: the event at t = ε is the claim's hardest there."""
    curve = Gaussian.from_mu_squared(Fraction(3, 2))
    own, other = curve.rates(epsilon)
    assert own - math.exp(epsilon) * other == pytest.approx(
        curve.delta_at(epsilon).upper, abs=1e-15
    )
    for threshold in (epsilon - 0.1, epsilon + 0.1):
        own, other = curve.rates(threshold)
        assert own - math.exp(epsilon) * other < curve.delta_at(epsilon).lower


@pytest.mark.parametrize("noise", [1.0, 0.7])
def test_rates_are_those_of_the_release(small_sketch: Sketch, noise: float) -> None:
    """Each count in its own exact interval, 34 of them: false alarm rate below 1e-6."""
    sketch, draws = small_sketch(), 2000
    mechanism = sketch if noise == 1.0 else noise_scaled(sketch, noise)
    roc = roc_thresholds(sketch.privacy())
    level = 1e-6 / (2 * 2 * len(roc))
    for threshold, counts in zip(roc, run(mechanism, draws, roc=roc).roc, strict=True):
        for count, rate in zip(
            (counts.hits, counts.false_hits),
            sketch.privacy().rates(threshold, noise=noise),
            strict=True,
        ):
            # The loss is discrete; its steps are of the order of 1/s, which moves no rate by 1 %.
            assert lower_limit(count, draws, level) <= rate * 1.01 + 1e-4
            assert rate * 0.99 - 1e-4 <= upper_limit(count, draws, level)


# --- power


def detections(
    curve: Gaussian,
    delta: Fraction,
    draws: int,
    rates: Sequence[tuple[Event, float, float, float]],
    runs: int,
) -> int:
    """Simulated audits in which an event, of this level and these rates on its sides, has a find.

    Distinct counts are judged once.
    """
    rng = np.random.default_rng(11)
    lines = curve_lines(curve, delta)

    @cache
    def refuted(event: Event, level: float, hits: int, false_hits: int) -> bool:
        counts = Counts(hits=hits, false_hits=false_hits, draws=draws)
        return counts.refutes(lines, alpha=level, delta=event.ordering)

    found = 0
    for _ in range(runs):
        drawn = [
            (event, level, int(rng.binomial(draws, p)), int(rng.binomial(draws, q)))
            for event, level, p, q in rates
        ]
        found += any(refuted(*case) for case in drawn)
    return found


SLOW = pytest.mark.nightly
POWER_CASES = [
    (Fraction(2), THOUSANDTH, 2000),
    pytest.param(Fraction(2), THOUSANDTH, 200, marks=SLOW),
    pytest.param(Fraction(5), MILLIONTH, 100_000, marks=SLOW),
    pytest.param(Fraction(1), Fraction(1, 10**5), 100_000, marks=SLOW),
]


def planned(curve: Gaussian, delta: Fraction, draws: int) -> list[tuple[Event, float]]:
    return list(zip(events(curve, delta, draws, LEVELS[0])[:3], LEVELS, strict=True))


@pytest.mark.parametrize(("epsilon", "delta", "draws"), POWER_CASES)
def test_the_promised_noise_scale_is_found(epsilon: Fraction, delta: Fraction, draws: int) -> None:
    """In at least 99 % of audits; the test fails a true promise with probability 1e-6."""
    curve, runs = claim(epsilon, delta), 200
    scale = power(curve, epsilon, delta, draws, LEVELS).noise_scale
    assert scale is not None
    assert 0.05 < scale < 1

    def at(noise: float) -> list[tuple[Event, float, float, float]]:
        return [
            (event, level, *curve.rates(event.threshold, noise=noise))
            for event, level in planned(curve, delta, draws)
        ]

    found = detections(curve, delta, draws, at(scale), runs)
    assert binom.cdf(found, runs, 0.99) > 1e-6, found
    # The controls: the claim itself is not found, and the promise isn't far too modest.
    false = detections(curve, delta, draws, at(1.0), 100)
    assert binom.sf(false - 1, 100, sum(LEVELS)) > 1e-6, false
    assert detections(curve, delta, draws, at((1 + scale) / 2), 50) < 40


EXCESS_CASES = [
    (Fraction(2), THOUSANDTH, 2000),
    pytest.param(Fraction(2), THOUSANDTH, 20_000, marks=SLOW),
    pytest.param(Fraction(5), MILLIONTH, 100_000, marks=SLOW),
    pytest.param(Fraction(1), Fraction(1, 10**5), 100_000, marks=SLOW),
]


@pytest.mark.parametrize(
    ("epsilon", "delta", "draws"), [*EXCESS_CASES, (Fraction(1, 10), THOUSANDTH, 2000)]
)
def test_the_smallest_excess_is_found(epsilon: Fraction, delta: Fraction, draws: int) -> None:
    """In at least 99 % of audits; the test fails a true promise with probability 1e-6."""
    curve, runs = claim(epsilon, delta), 300
    excess = power(curve, epsilon, delta, draws, LEVELS).smallest_excess
    assert 0 < excess < 1
    (tail, level), *_ = planned(curve, delta, draws)
    q = curve.rates(tail.threshold)[1]
    allowed = math.exp(float(epsilon)) * q + float(delta)
    found = detections(curve, delta, draws, [(tail, level, allowed + excess, q)], runs)
    assert binom.cdf(found, runs, 0.99) > 1e-6, found


@pytest.mark.parametrize("draws", [1, 5])
def test_too_few_draws_find_nothing(draws: int) -> None:
    """At this level so few draws refute nothing, whatever the counts, and power must say so."""
    curve = claim(Fraction(2), THOUSANDTH)
    best = Counts(hits=draws, false_hits=0, draws=draws)
    assert judge(best, curve, THOUSANDTH, LEVELS[0]).refuted_at is None
    stated = power(curve, Fraction(2), THOUSANDTH, draws, LEVELS)
    assert stated.noise_scale is None
    assert stated.smallest_excess == math.inf
    assert stated.reach is None


@given(
    st.one_of(
        st.floats(0, 1),
        st.floats(-12, 0).map(lambda x: 10.0**x),
        st.floats(-12, 0).map(lambda x: 1 - 10.0**x),
    ),
    st.integers(1, 10**7),
)
@example(0.0, 5)
@example(1.0, 5)
@settings(max_examples=300, deadline=None)
def test_quantiles_of_the_binomial_law(p: float, draws: int) -> None:
    assert planning._few(p, draws) == binom.ppf((1 - DETECTION) / 2, draws, p)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS[:3])
def test_power_grows_with_the_draws(epsilon: Fraction, delta: Fraction) -> None:
    curve = claim(epsilon, delta)
    stated = [power(curve, epsilon, delta, draws, LEVELS) for draws in (100, 1000, 10**4, 10**5)]
    for few, many in pairwise(stated):
        assert many.noise_scale is not None
        assert (few.noise_scale or 0) <= many.noise_scale < 1
        assert few.smallest_excess >= many.smallest_excess > 0
        assert few.reach is None or (many.reach is not None and few.reach <= many.reach)
    assert stated[-1].reach is not None
    assert stated[-1].reach <= float(epsilon)


@pytest.mark.parametrize("draws", [20_000, pytest.param(10**6, marks=SLOW)])
def test_twice_the_claimed_delta_is_found_at_the_reach(draws: int) -> None:
    """On one of the events; the test fails a true promise with probability 1e-6."""
    epsilon, runs = Fraction(2), 100
    curve = claim(epsilon, THOUSANDTH)
    reach = power(curve, epsilon, THOUSANDTH, draws, LEVELS).reach
    assert reach is not None
    allowed = curve.delta_at(reach).upper
    best = 0
    for event, level in planned(curve, THOUSANDTH, draws):
        q = curve.rates(event.threshold)[1]
        p = min(slope * q + base for slope, base in claim_lines(reach, 2 * allowed))
        best = max(best, detections(curve, THOUSANDTH, draws, [(event, level, p, q)], runs))
    assert binom.cdf(best, runs, 0.99) > 1e-6, best


# --- whole audits


def audit(mechanism: WhiteBox, **settings: Any) -> Finding:
    standard = {"delta": THOUSANDTH, "workers": 1}
    return finding_of(WhiteBoxAttack(), mechanism, mechanism.worst_pairs(), **standard | settings)


def test_an_audit_finds_noise_that_is_too_small(small_sketch: Sketch) -> None:
    sketch = small_sketch()
    found = audit(noise_scaled(sketch, 0.5), draws=2000, seed=1)
    assert found.verdict == "violation"
    assert found.audit == "white-box"
    assert found.level == 0.01
    assert found.pair is not None
    assert evidence_of(found).hits > evidence_of(found).false_hits
    assert "refuted" in found.statement
    correct = audit(sketch, draws=2000, seed=1)
    assert correct.verdict == "no_violation_found"
    assert correct.epsilon_lower is not None
    assert 0 < correct.epsilon_lower < 2
    few = audit(sketch, draws=5, seed=1)
    assert few.verdict == "inconclusive"


@dataclass(frozen=True, slots=True)
class Faulty(Transparent):
    """Goes wrong after a while, in the way that is asked for."""

    fault: str = "raises"

    def release(self, records: ArrayLike, *, rng: Words) -> NDArray[Any]:
        rows = Transparent.release(self, records, rng=rng)
        if len(self.given) <= 10:
            return rows
        match self.fault:
            case "raises":
                raise RuntimeError("no more")
            case "NaN":
                return rows * np.nan
        return rows[:, :0]


@pytest.mark.parametrize(
    ("fault", "says"),
    [("raises", "raised RuntimeError"), ("NaN", "released a NaN"), ("shape", "changed the shape")],
)
def test_a_mechanism_at_fault_is_named_with_its_pair(fault: str, says: str) -> None:
    with pytest.raises(DrawError, match=f"Faulty {says}.*, on the pair 'only'"):
        audit(Faulty([], fault), draws=20)
