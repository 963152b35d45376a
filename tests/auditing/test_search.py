"""The search for worst pairs, and the shrink to a pair that a person can read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing import search as module
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.report import Report
from dpverify.auditing.search import search, shrunk
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    BitFlip,
    Edge,
    Items,
    L1Ball,
    Record,
    Row,
)
from dpverify.data.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.errors import ParameterError
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords, Words
from dpverify_audits.planted import SUITE
from dpverify_audits.planted.releases import Counts, Reports
from tests.helpers.profiles import examples

pytestmark = pytest.mark.usefixtures("all_candidates")

UNIT = Attribute(beta=Fraction(1))
BITS = Box(low=Fraction(0), high=Fraction(1))
EIGHT = Box(low=Fraction(0), high=Fraction(8))
CLAIM = ApproxDP(epsilon=Fraction(1))
CASES: list[tuple[Adjacency, Domain | None, int]] = [
    (UNIT, None, 3),
    (UNIT, EIGHT, 1),
    (UNIT, Ball(radius=Fraction(2)), 4),
    (BitFlip(), BITS, 3),
    (L1Ball(radius=Fraction(3)), EIGHT, 3),
    (Row(radius=Fraction(2)), None, 3),
    (Record(), EIGHT, 2),
    (Items(changes=2), Sets(min_size=2, max_size=4), 6),
    (Edge(weight=Fraction(1)), Graphs(), 4),
]


def words(seed: int) -> ReplayableWords:
    return ReplayableWords(seed, "test")


def space(
    domain: Domain | None, attributes: int, adjacency: Adjacency = UNIT, **more: Any
) -> Matrices:
    return Matrices(adjacency=adjacency, domain=domain, attributes=attributes, **more)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_drawn_pairs_are_different_neighbours_in_the_domain(
    case: tuple[Adjacency, Domain | None, int],
) -> None:
    adjacency, domain, attributes = case
    made = space(domain, attributes, adjacency)
    pairs = made.drawn(20, words(1))
    assert len({(p.record.tobytes(), p.neighbour.tobytes()) for p in pairs}) == len(pairs) == 20
    assert all(made.fits(pair) for pair in pairs)
    again = made.drawn(20, words(1))
    assert [p.neighbour.tolist() for p in again] == [p.neighbour.tolist() for p in pairs]


def test_there_may_be_fewer_than_asked_for() -> None:
    pairs = space(BITS, 1, BitFlip()).drawn(20, words(1))
    assert sorted(pair.record.item() for pair in pairs) == [0.0, 1.0]


@examples(40)
@given(case=st.sampled_from(CASES), seed=st.integers(0, 1000))
def test_a_shrink_without_conditions_ends_at_a_simplest_pair(
    case: tuple[Adjacency, Domain | None, int], seed: int
) -> None:
    adjacency, domain, attributes = case
    made = space(domain, attributes, adjacency)
    small = shrunk(made.drawn(1, words(seed))[0], made, lambda _: True)
    assert made.fits(small)
    changed = small.record != small.neighbour
    cells = 2 if isinstance(adjacency, Edge) else 1
    assert np.count_nonzero(changed) == cells
    least = domain.min_size if isinstance(domain, Sets) else 0
    assert min(np.count_nonzero(small.record), np.count_nonzero(small.neighbour)) <= least
    assert abs(small.record - small.neighbour).max() <= 1


def test_a_shrink_keeps_what_it_must() -> None:
    pair = Pair(
        name="found",
        record=np.array([[3.7, 0.25, -9.0, 6.5, 2.0]]),
        neighbour=np.array([[3.7, 0.25, -8.0, 6.5, 2.0]]),
    )

    def keeps(candidate: Pair) -> bool:
        return bool(candidate.record[0, 3] >= 4 and candidate.record[0, 2] < 0)

    small = shrunk(pair, space(None, 5), keeps)
    assert small.record.tolist() == [[0.0, 0.0, -1.0, 4.0, 0.0]]
    assert small.neighbour.tolist() == [[0.0, 0.0, 0.0, 4.0, 0.0]]
    assert shrunk(pair, space(None, 5), lambda _: False) is pair


# --- functions of a third party -----------------------------------------------------------------


def laplace(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return record + rng.laplace(size=record.shape)


def sharp_beyond_four(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    """A sum whose noise is too small where the third value is at least 4."""
    return float(record.sum() + rng.laplace(scale=1.0 if record[2] < 4 else 0.3))


def silent_on_one_side(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    if record[0] == 5:
        raise KeyError("five")
    return float(record[0] + rng.laplace())


def never(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    raise ValueError("never")


def of(function: Any, attributes: int = 5, **settings: Any) -> Mechanism:
    options: dict[str, Any] = {"of": "record", "adjacency": UNIT, "claim": CLAIM, "domain": EIGHT}
    return adapt(function, attributes=attributes, **options | settings)


def audited(mechanism: Any, draws: int = 1000, seed: int = 1, **options: Any) -> Report:
    return audit(mechanism, draws=draws, seed=seed, workers=1, **{"kinds": ["black-box"]} | options)


def test_a_bug_away_from_the_extreme_points_is_found_and_shrunk() -> None:
    mechanism = of(sharp_beyond_four)
    extreme = space(EIGHT, 5).extremes(1)
    assert audited(mechanism, pairs=extreme).verdict == "no_violation_found"
    (violation,) = audited(mechanism).violations
    assert violation.pair is not None
    both = np.concatenate([violation.pair.record, violation.pair.neighbour])
    assert both[:, 2].min() == 4  # no smaller value shows it
    others = np.delete(both, 2, axis=1)
    assert np.count_nonzero(others) <= 1
    assert np.array_equal(both, np.rint(both))


@pytest.mark.nightly
def test_few_draws_tell_many_small_differences_from_one() -> None:
    """A user counted on each day of a week, among 15 counted once."""

    def week(record: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        return record + rng.laplace(scale=2, size=record.shape)

    days = np.eye(7)[np.arange(15) % 7]
    pairs = [
        Pair(name=str(number), record=np.zeros((1, 7)), neighbour=moved[None])
        for number, moved in enumerate([*days, np.ones(7)])
    ]
    ranks = []
    for seed in range(3):
        config = AuditConfig(draws=1000, seed=seed, workers=1)
        ranked = module._Bounds(mechanism=of(week, 7), config=config).ranked(pairs, "search", 60)
        ranks.append([place for _, place in ranked].index(15))
    assert max(ranks) <= 1


@pytest.mark.parametrize("large", [1e100, 1e300, np.inf])
def test_outputs_of_any_size_are_compared(large: float) -> None:
    """Numpy's warnings are errors here."""
    farthest, apart = module._distances(np.full((2, 1), large), np.array([[0.0], [1e-100]]))
    assert 0 < farthest <= module._NEVER
    assert 0 < apart <= module._NEVER**2


def test_a_search_is_the_same_each_time_and_with_workers() -> None:
    mechanism: Any = of(sharp_beyond_four)
    first, second = (
        search(mechanism, (), space(EIGHT, 5), AuditConfig(draws=100, seed=3, workers=workers))
        for workers in (1, 2)
    )
    assert first.pair is not None
    assert second.pair is not None
    assert first.pair.record.tolist() == second.pair.record.tolist()
    assert first.bound == second.bound


def test_pairs_that_are_given_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "choose", refuse)
    audited(of(laplace, 1), pairs=space(EIGHT, 1).extremes())
    with pytest.raises(AssertionError):
        audited(of(laplace, 1), pairs=space(EIGHT, 1).extremes(), search=True)


@pytest.mark.nightly
def test_counted_draws_are_none_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted at a pair is what an audit of that pair alone counts."""
    found = audited(of(sharp_beyond_four))
    assert [finding.pair for finding in found.findings]
    pairs = [finding.pair for finding in found.findings if finding.pair is not None]
    alone = audited(of(sharp_beyond_four), pairs=pairs)
    assert [f.evidence for f in alone.findings] == [f.evidence for f in found.findings]
    # A search that draws otherwise and ends at the same pairs changes no count.
    monkeypatch.setattr(module, "_SHRINKS", 23)
    again = audited(of(sharp_beyond_four))
    if [f.pair and f.pair.record.tolist() for f in again.findings] == [
        p.record.tolist() for p in pairs
    ]:
        assert [f.evidence for f in again.findings] == [f.evidence for f in found.findings]


def test_one_side_that_fails_beats_every_bound() -> None:
    found = search(
        of(silent_on_one_side, 1), (), space(EIGHT, 1), AuditConfig(draws=200, seed=1, workers=1)
    )
    assert found.bound == float("inf")
    assert found.pair is not None
    assert 5 in (found.pair.record.item(), found.pair.neighbour.item())
    assert found.failed == {}


def picky(record: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Raises unless the first value is whole and the second at least 1; leaks where it is 5."""
    if record[0] % 1 or record[1] < 1:
        raise ValueError("picky")
    return silent_on_one_side(record, rng)


@pytest.mark.nightly
def test_pairs_that_fail_on_both_sides_do_not_end_the_search() -> None:
    found = search(of(picky, 2), (), space(EIGHT, 2), AuditConfig(draws=200, seed=1, workers=1))
    assert len(found.failed) > 3
    assert all("picky raised" in reason for reason in found.failed.values())
    assert found.bound == float("inf")
    report = audited(of(picky, 2), kinds=["determinism"], draws=200)
    assert report.verdict == "violation"
    assert "pairs of shape (1, 2), in [0, 8]; " in report.searched
    assert "of them could not be drawn from: picky raised" in str(report)


def sum_of_several(data: NDArray[np.float64], rng: np.random.Generator) -> float:
    if len(data) < 2:
        raise ValueError("too few")
    return float(data.sum() + rng.laplace())


def test_some_pairs_that_fail_are_reported_and_the_others_audited() -> None:
    mechanism = of(sum_of_several, 1, of="dataset", rows=(1, 3))
    report = audited(mechanism, draws=60)
    assert report.verdict == "no_violation_found"
    assert "pairs of shape (1 or 3, 1), in [0, 8]; " in report.searched
    assert "too few" in report.searched


def test_a_search_of_failures_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOST", 0)
    found = search(of(never, 1), (), space(EIGHT, 1), AuditConfig(draws=200, seed=1, workers=1))
    assert found.pair is None
    assert len(found.failed) == 1


class Whole:
    """Takes whole numbers alone, as diffprivlib's geometric mechanism."""

    def randomise(self, value: int) -> int:
        if type(value) is not int:
            raise TypeError("int")
        return value + int(np.random.default_rng().geometric(0.5))


def test_a_mechanism_of_whole_numbers_is_not_accused_of_refusing_others() -> None:
    mechanism = adapt(Whole(), adjacency=UNIT, claim=ApproxDP(epsilon=Fraction(50)), domain=EIGHT)
    found = search(mechanism, (), space(EIGHT, 1), AuditConfig(draws=200, seed=1, workers=1))
    assert len(found.candidates) > 5
    assert all(pair.record % 1 == pair.neighbour % 1 == 0 for pair in found.candidates)
    assert found.failed == {}
    assert found.pair is not None
    half = Pair(name="half", record=np.array([[0.5]]), neighbour=np.array([[1.0]]))
    with pytest.raises(ParameterError, match="a whole number, for this mechanism"):
        audited(mechanism, pairs=[half])


@pytest.mark.nightly
def test_every_pair_that_is_named_is_audited_beside_the_one_that_is_found() -> None:
    extreme = space(EIGHT, 5).extremes(2)
    named = [replace(pair, name="found by search") for pair in extreme[1:]] + [extreme[0]]
    report = audited(of(sharp_beyond_four), pairs=named, search=True)
    pairs = [finding.pair for finding in report.findings]
    assert all(any(pair is each for each in pairs) for pair in named)
    assert report.verdict == "violation"
    assert len({pair.name for pair in pairs if pair}) == 3


def test_a_function_that_never_works_is_named_and_nothing_is_said() -> None:
    report = audited(of(never, 1))
    assert report.verdict == "inconclusive"
    assert "never raised ValueError: never, on the pair" in report.failed[0]
    assert "25 pairs" in report.searched
    assert "25 of them could not be drawn from" in report.searched


def test_what_can_not_be_searched() -> None:
    @dataclass(frozen=True)
    class Bare(Mechanism):
        adjacency = UNIT

        def release(self, records: Any, *, rng: Words) -> Any:
            return records

        def privacy(self) -> ApproxDP:
            return CLAIM

    with pytest.raises(ParameterError, match="doesn't state its number of attributes"):
        audited(Bare())
    with pytest.raises(ParameterError, match="bounded, if records are replaced"):
        audited(of(laplace, 1, adjacency=Record(), domain=None))


# --- planted bugs whose extreme pairs hide them -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Unnamed(Mechanism):
    """A planted release that doesn't say where its bug shows."""

    subject: Counts | Reports

    @property
    def adjacency(self) -> Adjacency:
        return self.subject.adjacency

    @property
    def domain(self) -> Domain:
        return BITS

    @property
    def attributes(self) -> int:
        return len(self.subject.record)

    rows = (1,)

    def release(self, records: Any, *, rng: Words) -> NDArray[Any]:
        return self.subject.release(records, rng=rng)

    def privacy(self) -> ApproxDP:
        return self.subject.privacy()


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        "off by one in L",
        "replacement from B − 1 buckets",
        "hashes by the order of the set",
        "data-dependent N₊",
    ],
)
def test_the_search_finds_planted_bugs_that_the_extreme_points_hide(name: str) -> None:
    (bug,) = (bug for bug in SUITE if bug.name == name)
    subject = bug.broken()
    assert isinstance(subject, Counts | Reports)
    broken, twin = Unnamed(subject), Unnamed(bug.twin())
    extreme = space(BITS, broken.attributes, broken.adjacency).extremes(1)
    assert audited(broken, bug.draws, pairs=extreme).verdict == "no_violation_found"
    found = audited(broken, bug.draws).violations[0].pair
    assert found is not None
    assert np.count_nonzero(found.record != found.neighbour) == 1
    assert audited(twin, bug.draws).verdict == "no_violation_found"


@pytest.mark.nightly
def test_one_attribute_of_a_thousand_that_weighs_more_is_found_with_noise_alone() -> None:
    """The function draws its own noise, so there are no runs without."""
    found = 0
    for place in (100, 311, 640, 977):
        weights, rng = np.ones(1000), np.random.default_rng(place)
        weights[place] = 3.0

        def total(record: NDArray[np.float64], weights: Any = weights, rng: Any = rng) -> float:
            return float(record @ weights + rng.laplace())

        for violation in audited(of(total, 1000, domain=BITS), 10_000).violations:
            assert violation.pair is not None
            changed = violation.pair.record != violation.pair.neighbour
            found += np.flatnonzero(changed).tolist() == [place]
    assert found >= 2
