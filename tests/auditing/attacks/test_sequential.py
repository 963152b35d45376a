"""Sequential audits: quick where there is a bug, the same after a kill, honest about their bets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.attacks import sequential
from dpverify.auditing.attacks._bets import Bet, Event, EventBet, OddsBet
from dpverify.auditing.attacks.sequential import (
    _MOST_COLUMNS,
    CHUNK,
    _moved,
    _scored,
    _scores_of,
    bet,
    columns,
)
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.values import Value, objects, value_of
from dpverify.auditing.statistics.two_sample_binomial import claim_lines
from dpverify.data.adjacency import Adjacency, Record
from dpverify.errors import DrawError, ParameterError
from dpverify.guarantee import PrivacyCurve
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import Words
from dpverify_audits.planted import SUITE, PlantedBug
from tests.helpers.attacks import evidence_of
from tests.helpers.profiles import day_and_night, thinned

ALPHA = 0.05
PAIR = Pair(name="0 against 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
ONE = claim_lines(1.0, 0.0)


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Textbook Laplace noise beside `others` coordinates of noise alone."""

    scale: float
    others: int = 0

    @property
    def adjacency(self) -> Adjacency:
        return Record()

    def privacy(self) -> PrivacyCurve:
        return ApproxDP(epsilon=1)

    def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
        u = ((rng.words(1 + self.others) >> np.uint64(11)) + 0.5) * 2.0**-53
        noise = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
        noise[-1] += float(np.asarray(records)[0, 0]) / self.scale
        return np.asarray(self.scale * noise[None])


def pairs_needed(mechanism: Laplace, seed: int, most: int = 2000) -> int:
    found = bet(mechanism, PAIR, ONE, AuditConfig(alpha=ALPHA, draws=most, seed=seed))
    return evidence_of(found).draws if found.verdict == "violation" else most + 1


@pytest.mark.parametrize(
    ("others", "most", "runs"), day_and_night((0, 100, 7), (0, 100, 61), (7, 130, 61))
)
def test_half_the_scale_is_found_in_few_pairs(others: int, most: int, runs: int) -> None:
    """The best event known beforehand, with its best stake, needs 64 on average."""
    needed = [pairs_needed(Laplace(0.5, others), seed) for seed in range(runs)]
    assert np.median(needed) <= most


@pytest.mark.parametrize("seeds", day_and_night(5, 9))
def test_a_change_of_scale_is_found_in_few_pairs(seeds: int) -> None:
    @dataclass(frozen=True)
    class Scaled(Laplace):
        def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
            zero = np.zeros_like(records)
            return (1 + float(np.asarray(records)[0, 0])) * Laplace.release(self, zero, rng=rng)

    lines = claim_lines(0.1, 0.0)
    config = AuditConfig(alpha=ALPHA, draws=1000, seed=0)
    needed = [
        evidence_of(bet(Scaled(1.0), PAIR, lines, evolve(config, seed=seed))).draws
        for seed in range(seeds)
    ]
    assert np.median(needed) <= 120  # 172 of 25 seeds where the events alone are bet on, 84 now


@pytest.mark.nightly
@pytest.mark.parametrize(("runs", "most"), [(150, 16)])
def test_the_correct_twin_is_seldom_accused(runs: int, most: int) -> None:
    """Runs with many looks each; more accusations have probability 1e-3 at level 0.05."""
    accused = sum(pairs_needed(Laplace(1.0), seed, most=150) <= 150 for seed in range(runs))
    assert accused <= most


def test_the_wealth_is_that_of_the_bets_it_names() -> None:
    found = bet(Laplace(0.5), PAIR, ONE, AuditConfig(alpha=ALPHA, draws=500, seed=3))
    assert found.verdict == "violation"
    assert found.level == ALPHA
    assert evidence_of(found).log_wealth >= np.log(1 / ALPHA)
    assert evidence_of(found).event.startswith("score 0 ")
    assert (evidence_of(found).slope, evidence_of(found).intercept) in ONE


BLATANT = [bug for bug in SUITE if bug.name in ("sensitivity halved", "flips for one sign")]


@pytest.mark.parametrize("bug", thinned(BLATANT, 2), ids=lambda bug: str(bug.name))
def test_planted_bugs_white_box(bug: PlantedBug[Any]) -> None:
    """The mechanism's own likelihood ratio as the one score; the whole curve as the claim."""
    broken: Any = bug.broken()
    for mechanism, verdict in ((broken, "violation"), (bug.twin(), "no_violation_found")):
        curve = mechanism.privacy()
        (pair, *_) = mechanism.worst_pairs()
        lines = [
            line
            for epsilon in np.linspace(0, curve.epsilon_at(1e-3).upper, 9).tolist()
            for line in claim_lines(epsilon, curve.delta_at(epsilon).upper)
        ]
        found = bet(
            mechanism,
            pair,
            lines,
            AuditConfig(alpha=0.001, draws=1500, seed=1),
            score=lambda outputs, m=mechanism, p=pair: m.log_likelihood_ratio(  # type: ignore[misc]
                outputs, p.record, p.neighbour
            )[:, None],
        )
        assert found.verdict == verdict


@pytest.mark.parametrize("size", [2, 80])
def test_what_other_outputs_of_its_chunk_are_changes_no_score(size: int) -> None:
    """Else a bet would be on outputs to come: an exception makes objects of a whole chunk."""
    far = replace(PAIR, record=np.zeros((1, size)), neighbour=np.ones((1, size)))
    rng = np.random.default_rng(1)
    layout, numbers = rng.laplace(size=(2, 2, 1, size)), rng.laplace(size=(CHUNK, 1, size))
    score, moved = _scores_of((layout[0], layout[1])), _moved(far, (layout[0], layout[1]))
    mixed = objects([value_of(each) for each in numbers])
    mixed[-1] = Value.of_raised(ValueError("no"))
    alone, beside = (
        _scored(Laplace(scale=1.0), far, each, score, moved) for each in (numbers, mixed)
    )
    assert np.array_equal(alone[:-1], beside[:-1])
    assert alone.shape[1] > size % _MOST_COLUMNS


def test_scores_of_outputs() -> None:
    assert columns(np.array([[1.5], [2.5]])).tolist() == [[1.5], [2.5]]
    assert columns(np.array([[[1, 2]], [[3, 4]]])).tolist() == [[1, 2, 3], [3, 4, 7]]
    bits = columns(np.array([[[5]], [[128]]], dtype=np.uint8))
    assert bits.tolist() == [[0, 0, 0, 0, 0, 1, 0, 1, 2], [1, 0, 0, 0, 0, 0, 0, 0, 1]]
    assert columns(np.zeros((3, 500))).shape == (3, 65)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"alpha": 0.0}, "alpha"), ({"alpha": float("nan")}, "alpha"), ({"draws": 0}, "draws")],
)
def test_bad_input(values: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"alpha": 0.1, "draws": 10, "seed": 1}
    with pytest.raises(ParameterError, match=message):
        bet(Laplace(1.0), PAIR, ONE, AuditConfig(**good | values))
    with pytest.raises(ParameterError, match="lines"):
        bet(Laplace(1.0), PAIR, [], AuditConfig(**good))


def test_a_score_that_is_nan_is_an_error() -> None:
    with pytest.raises(DrawError, match="released what has no score, on the pair '0 against 1'"):
        bet(
            Laplace(1.0),
            PAIR,
            ONE,
            AuditConfig(alpha=0.1, draws=10, seed=1),
            score=lambda outputs: np.full((len(outputs), 1), np.nan),
        )


def test_outputs_without_an_order_are_bet_on() -> None:
    @dataclass(frozen=True)
    class Told(Laplace):
        def release(self, records: Any, *, rng: Words) -> Any:
            noisy = Laplace.release(self, records, rng=rng).item()
            return math.nan if noisy > 2 else {"above": noisy > 0.5}

    found = bet(Told(0.1), PAIR, ONE, AuditConfig(alpha=0.01, draws=500, seed=1))
    assert found.verdict == "violation"
    assert bet(Told(1.0), PAIR, ONE, AuditConfig(alpha=0.01, draws=500, seed=1)).verdict != (
        "violation"
    )


def test_infinities_of_both_signs_have_scores() -> None:
    outputs = np.array([[math.inf, -math.inf], [1.0, 2.0]])
    scores = columns(outputs)
    assert np.isfinite(scores).all()
    assert scores[1].tolist() == [1.0, 2.0, 3.0]


LAWS = st.lists(st.floats(0.05, 1), min_size=8, max_size=8)
PLACES = np.arange(4.0)


def wins(bet: Bet, numbers: list[float]) -> tuple[float, float]:
    """The mean of its factor, and the least, by enumeration of two outputs of four values each.

    The laws keep ε = 1.
    """
    own = np.array(numbers[:4]) / sum(numbers[:4])
    other = own * np.exp(np.array(numbers[4:]) - 0.5)
    other /= other.sum()
    factors = bet.factors(np.repeat(PLACES, 4)[:, None], np.tile(PLACES, 4)[:, None])
    return float(np.outer(own, other).ravel() @ factors), float(factors.min())


@given(LAWS, st.data())
def test_no_bet_wins_on_average_where_the_claim_is_true(numbers: list[float], data: Any) -> None:
    (slope, base), *_ = claim_lines(1.0, 0.1)
    stakes = st.floats(0, 1 / (slope + base))

    def event() -> Event:
        threshold, above = data.draw(st.sampled_from([0.0, 1.0, 2.0])), data.draw(st.booleans())
        return Event(column=0, threshold=threshold, above=above, slope=slope, base=base)

    bet = EventBet(
        events=(event(), event()),
        stakes=(data.draw(stakes), data.draw(stakes)),
        growth=0.0,
        weights=np.zeros(0),
    )
    mean, least = wins(bet, numbers)
    assert mean <= 1
    assert least > -1e-9


@given(LAWS, st.lists(st.floats(0, 1), min_size=4, max_size=4), st.data())
def test_no_odds_win_on_average_where_the_claim_is_true(
    numbers: list[float], shares: list[float], data: Any
) -> None:
    slope, base = data.draw(st.sampled_from([*ONE, *claim_lines(1.0, 0.1), *claim_lines(0.9, 0.2)]))
    bet = OddsBet(
        shares=lambda scores: np.array(shares)[scores[:, 0].astype(int)],
        slope=slope,
        base=base,
        most=data.draw(st.floats(0, 1)) / (slope + 2 * base),
        growth=0.0,
    )
    mean, least = wins(bet, numbers)
    true = slope * np.exp(-1) >= 1 or base >= 0.2  # laws that keep ε = 1 keep these
    assert mean <= 1 or not true
    assert least > -1e-9


@dataclass(frozen=True)
class Above(Mechanism):
    """Whether each of forty noisy answers is above a noisy threshold."""

    @property
    def adjacency(self) -> Adjacency:
        return Record()

    def privacy(self) -> PrivacyCurve:
        return ApproxDP(epsilon=1)

    def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
        u = ((rng.words(41) >> np.uint64(11)) + 0.5) * 2.0**-53
        noise = np.log(u / (1 - u))
        return np.asarray((np.asarray(records) + noise[:40] > noise[40])[None], dtype=float)


def test_what_moves_is_known_beforehand() -> None:
    """Bets along the move from one neighbour to the other need not learn where to look."""
    ones = np.repeat([0.0, 1.0], 20)[None]
    pair = Pair(name="halves", record=ones, neighbour=1 - ones)
    config = AuditConfig(alpha=ALPHA, draws=100, seed=0)
    needed = [
        evidence_of(bet(Above(), pair, ONE, evolve(config, seed=seed))).draws for seed in range(3)
    ]
    assert np.median(needed) <= 30  # 22; 49 where they learn


def test_a_shift_beneath_heavy_tails_is_found() -> None:
    """Half of all outputs are nothing but noise, and the others' has no mean."""

    @dataclass(frozen=True)
    class Heavy(Laplace):
        def release(self, records: Any, *, rng: Words) -> NDArray[np.float64]:
            u = ((rng.words(2) >> np.uint64(11)) + 0.5) * 2.0**-53
            wild = 1e9 if u[0] < 0.5 else 1.0
            noise = wild * math.tan(math.pi * (u[1] - 0.5))
            return np.array([[float(np.asarray(records)[0, 0]) + noise]])

    lines = claim_lines(0.05, 0.0)
    config = AuditConfig(alpha=ALPHA, draws=400, seed=0)
    needed = [
        evidence_of(bet(Heavy(1.0), PAIR, lines, evolve(config, seed=seed))).draws
        for seed in range(3)
    ]
    assert np.median(needed) <= 200  # 118; by events alone 400, and nothing found


def test_bets_are_computed_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    pools, after = ThreadpoolController(), sequential._Purse.after
    threads: set[int] = set()

    def noted(purse: Any, *blocks: Any) -> Any:
        threads.update(pool["num_threads"] for pool in pools.info())
        return after(purse, *blocks)

    monkeypatch.setattr(sequential._Purse, "after", noted)
    with pools.limit(limits=2):
        bet(Laplace(scale=1.0), PAIR, ONE, AuditConfig(draws=70, workers=1))
    assert threads == {1}
