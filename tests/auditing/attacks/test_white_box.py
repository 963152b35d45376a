"""The white-box attack: what counts prove, how they are drawn, and what the power promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from dpverify._fields import field_values
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.auditing.attacks import white_box
from dpverify.auditing.attacks.white_box import EventCounts, WhiteBoxAttack
from dpverify.auditing.finding import Finding
from dpverify.auditing.outputs import samples as chunked
from dpverify.auditing.statistics.clopper_pearson import lower_limit, upper_limit
from dpverify.auditing.statistics.power import (
    Event,
    events,
    roc_thresholds,
)
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.data.adjacency import Adjacency, Attribute, Items
from dpverify.data.domain import Box, Sets
from dpverify.errors import DrawError
from dpverify.privacy import Pair, WhiteBox
from dpverify.sampling.words import ReplayableWords, Words
from dpverify_audits.planted.linear_sketch import noise_scaled
from dpverify_audits.planted.min_hash import drawn
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.min_hash.sketch import MinHash
from dpverify_mechanisms.sign.sketch import SignSketch
from tests.helpers.attacks import counted, evidence_of, finding_of
from tests.helpers.claims import LEVEL, THOUSANDTH, Sketch
from tests.helpers.profiles import crossed, day_and_night, thinned
from tests.helpers.textbook import Normal

CHUNK = 60
"""Draws that are made together, in these tests."""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(white_box, "CHUNK", CHUNK)


def run(
    mechanism: WhiteBox, draws: int, *, seed: int = 3, workers: int = 1, roc: Sequence[float] = ()
) -> EventCounts:
    tests = events(mechanism.privacy(), THOUSANDTH, 1000, LEVEL)
    return counted(mechanism, tests, roc, draws=draws, seed=seed, workers=workers)


def test_the_same_seed_gives_the_same_counts(small_sketch: Sketch) -> None:
    sketch = small_sketch()
    assert run(sketch, 50) == run(sketch, 50)
    assert run(sketch, 50) != run(sketch, 50, seed=4)


@pytest.mark.nightly
@pytest.mark.parametrize("draws", [2 * CHUNK + 7, CHUNK - 1])
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
    for draws in (1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7):
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


@frozen(kw_only=True)
class SamePairTwice(LinearSketch):
    """A sketch that is attacked at its first worst pair, twice."""

    def worst_pairs(self) -> Sequence[Pair]:
        return [LinearSketch.worst_pairs(self)[0]] * 2


def test_chunks_and_sides_and_pairs_have_their_own_draws(small_sketch: Sketch) -> None:
    """Were a stream of words used twice, counts would double, or be the same for both pairs."""
    honest = small_sketch()
    sketch = SamePairTwice(**field_values(honest))
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
    sketch, draws, threshold = small_sketch(), 70, 0.123456789
    tests = [Event(name="any", threshold=threshold, swapped=True, ordering=0.0)]
    found = counted(sketch, tests, [-threshold], draws=draws, seed=3, workers=1)
    swapped, plain = found.counts[0][0], found.roc[0]
    assert (swapped.hits, swapped.false_hits) == (draws - plain.false_hits, draws - plain.hits)


@pytest.mark.parametrize("draws", day_and_night(300, 3000))
def test_the_two_orders_are_alike(small_sketch: Sketch, draws: int) -> None:
    """Gaussian losses are symmetric, so both orders estimate the same two rates."""
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


@pytest.mark.parametrize(("noise", "draws"), day_and_night((0.7, 400), (0.7, 2000), (1.0, 2000)))
def test_rates_are_those_of_the_release(small_sketch: Sketch, noise: float, draws: int) -> None:
    """Each count in its own exact interval, 34 of them: false alarm rate below 1e-6."""
    sketch = small_sketch()
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


def audit(mechanism: WhiteBox, **settings: Any) -> Finding:
    standard = {"delta": THOUSANDTH, "workers": 1}
    return finding_of(WhiteBoxAttack(), mechanism, mechanism.worst_pairs(), **standard | settings)


@pytest.mark.nightly
@pytest.mark.parametrize("draws", [300, 2000])
def test_an_audit_finds_noise_that_is_too_small(small_sketch: Sketch, draws: int) -> None:
    sketch = small_sketch()
    found = audit(noise_scaled(sketch, 0.5), draws=draws, seed=1)
    assert found.verdict == "violation"
    assert found.audit == "white-box"
    assert found.level == 0.01
    assert found.pair is not None
    assert evidence_of(found).hits > evidence_of(found).false_hits
    assert "refuted" in found.statement
    correct = audit(sketch, draws=draws, seed=1)
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
    [
        ("raises", "raised RuntimeError"),
        ("NaN", "released .*, NaN among them"),
        ("shape", "released .* array of shape .* and .* array of shape"),
    ],
)
def test_a_mechanism_at_fault_is_named_with_its_pair(fault: str, says: str) -> None:
    with pytest.raises(DrawError, match=f"Faulty {says}.*, on the pair 'only'"):
        audit(Faulty([], fault), draws=20)


OVER_THE_DRAW: dict[str, Any] = {
    "response": drawn(),
    "noise": MinHash.noisy_min_hash(
        p=12, k=8, buckets=3, seed=1, epsilon=2, domain=Sets(min_size=4), adjacency=Items(changes=1)
    ),
    "signs": SignSketch.dp_signrp_rr(
        p=5,
        k=6,
        seed=1,
        epsilon=2,
        delta=THOUSANDTH,
        domain=Box(low=-1, high=1),
        adjacency=Attribute(beta=1),
        least_norm=1,
    ),
}


@pytest.mark.parametrize(("side", "name"), crossed([0, 1], OVER_THE_DRAW))
def test_data_that_are_admitted_once_have_the_same_scores(
    monkeypatch: pytest.MonkeyPatch, name: str, side: int
) -> None:
    """As where each draw is a release, and its likelihood ratio looks at both data sets."""
    sketch = OVER_THE_DRAW[name]
    pair = sketch.worst_pairs()[0]
    task = sketch, pair, 40, True, (3, "white-box", 0, 1), 60.0
    scores = white_box._chunk(*task)[side]
    monkeypatch.setattr(white_box, "prepares", lambda *_: False)
    assert np.array_equal(scores, white_box._chunk(*task)[side])
    assert np.unique(scores).size > 1


def test_a_subclass_that_releases_otherwise_is_released() -> None:
    class Emptied(MinHash):
        def release(self, records: Any, *, rng: Words | None = None) -> NDArray[Any]:
            return np.zeros_like(super().release(records, rng=rng))

    sketch = Emptied(**field_values(drawn()))
    pair = sketch.worst_pairs()[0]
    own = sketch.redrawn(5)
    emptied = np.zeros((1, *sketch.shape(1)), sketch.dtype())
    score = white_box._redrawer(sketch, pair, 0)(5, ReplayableWords(1))
    assert score == own.log_likelihood_ratio(emptied, pair.record, pair.neighbour)


@pytest.mark.parametrize("budget", thinned(range(100, 601, 100), 3))
def test_what_ends_after_some_releases_ends_for_both_sides(budget: int) -> None:
    """It says nothing of the data."""
    left = iter(range(budget))

    class Ending(Normal):
        def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
            noisy = super().release(records, rng=rng)
            return noisy if next(left, None) is not None else np.zeros_like(noisy)

    pair = Pair(name="0 and 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    settings = {"delta": THOUSANDTH, "draws": 250, "seed": 1, "workers": 1}
    assert finding_of(WhiteBoxAttack(), Ending(), [pair], **settings).verdict != "violation"
