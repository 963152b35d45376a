"""The black-box audit: what it finds, what it says, and what it makes of bad mechanisms."""

from __future__ import annotations

import math
import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.attacks import _scores
from dpverify.auditing.attacks._scores import _inequality
from dpverify.auditing.attacks.base import COUNTED, Target
from dpverify.auditing.attacks.black_box import (
    BlackBoxAttack,
    _power,
    _thresholds,
    choose,
    most_telling,
)
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import EventEvidence, Finding
from dpverify.auditing.outputs import samples
from dpverify.auditing.outputs.features import Truth
from dpverify.auditing.outputs.samples import CHUNK, sample_pair
from dpverify.auditing.outputs.values import objects, value_of
from dpverify.auditing.statistics.claim_test import judge
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify.data.adjacency import Items, Record
from dpverify.errors import DrawError, ParameterError
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords, Words
from tests.helpers.attacks import finding_of
from tests.helpers.profiles import crossed, day_and_night
from tests.helpers.textbook import SUBJECTS, Laplace, measured

LAPLACE, RESPONSE, HALVED, BITS = SUBJECTS
PAIR = LAPLACE.pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Mechanism):
    """A mechanism made of one function."""

    function: Callable[[Any, Words], Any]
    name: str = "the thing"
    adjacency = Record()

    def release(self, records: Any, *, rng: Words) -> Any:
        return self.function(records, rng)

    def privacy(self) -> ApproxDP:
        return ApproxDP(epsilon=Fraction(1))


def black_box(mechanism: Any, pair: Pair, **settings: Any) -> Finding:
    return finding_of(BlackBoxAttack(), mechanism, [pair], **{"alpha": 0.05} | settings)


def on_neighbour(records: Any) -> bool:
    return bool(np.all(records == PAIR.neighbour))


def test_a_halved_scale_is_found_and_told() -> None:
    finding = black_box(HALVED.mechanism, HALVED.pair, draws=2000, seed=1, workers=1)
    assert finding.verdict == "violation"
    assert finding.epsilon_lower is not None
    assert 1.5 < finding.epsilon_lower < 2.2
    evidence = finding.evidence
    assert isinstance(evidence, EventEvidence)
    assert evidence.draws == evidence.false_draws == 2000
    assert evidence.refuted_at is not None
    assert evidence.event.startswith("output[0] ")
    for part in (evidence.event, f"{evidence.hits} of 2000", "refutes", "level 0.05"):
        assert part in finding.statement


def test_a_correct_mechanism_is_not_accused() -> None:
    finding = black_box(LAPLACE.mechanism, PAIR, draws=2000, seed=1, workers=1)
    assert finding.verdict == "no_violation_found"
    assert finding.epsilon_lower is not None
    assert 0.8 < finding.epsilon_lower < 1
    assert "does not refute" in finding.statement


@pytest.mark.parametrize(
    ("subject", "runs"), day_and_night((HALVED, 1), *((subject, 5) for subject in SUBJECTS))
)
def test_little_is_lost_against_the_best_event(subject: Any, runs: int) -> None:
    bound, reference, _ = np.median([measured(subject, 4000, seed) for seed in range(runs)], axis=0)
    assert bound >= 0.95 * reference


def test_the_counts_are_those_of_the_event() -> None:
    """The event's words, applied to the counted draws by hand."""
    finding = black_box(LAPLACE.mechanism, PAIR, draws=1500, seed=4, workers=1)
    assert isinstance(finding.evidence, EventEvidence)
    words, sign, threshold = finding.evidence.event.split()
    assert words == "output[0]"
    sides = sample_pair(LAPLACE.mechanism, PAIR, AuditConfig(draws=1500, seed=4), COUNTED)
    own, other = sides if finding.evidence.own_side == "record" else sides[::-1]
    for side, count in ((own, "hits"), (other, "false_hits")):
        # The threshold is a training output, told to six digits; no counted one is that near.
        inside = side >= float(threshold) if sign == "≥" else side <= float(threshold)
        assert np.count_nonzero(inside) == getattr(finding.evidence, count)


def test_training_and_counted_draws_are_different() -> None:
    first, second = (
        sample_pair(LAPLACE.mechanism, PAIR, AuditConfig(draws=50, seed=1), kind)
        for kind in (COUNTED, "black-box training")
    )
    assert not np.intersect1d(first[0], second[0]).size
    assert not np.intersect1d(first[0], first[1] - 1).size


@pytest.mark.nightly
def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = BITS
    alone, together = (
        AuditConfig(draws=2500, seed=2, workers=1),
        AuditConfig(draws=2500, seed=2, workers=2),
    )
    ones = sample_pair(subject.mechanism, subject.pair, alone, "test")
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    twos = sample_pair(subject.mechanism, subject.pair, together, "test")
    for one, two in zip(ones, twos, strict=True):
        assert np.array_equal(one, two)
    rng = ReplayableWords(2, "test", f"pair {subject.pair.name!r}", 1, 2)
    later = subject.mechanism.release(subject.pair.neighbour, rng=rng)
    assert np.array_equal(ones[1][2 * CHUNK], later)


def sets(records: Any, rng: Words) -> set[str]:
    """Reports each item of the set with probability 3/4, and b's absence never."""
    coins = rng.words(3) >> np.uint64(62)
    return {item for item, coin in zip("abc", coins, strict=True) if coin and item in records}


def test_sets_are_audited() -> None:
    mechanism = Function(function=sets)
    pair = Pair(name="with and without b", record=frozenset("ab"), neighbour=frozenset("a"))
    assert Items(changes=1).unit
    finding = black_box(mechanism, pair, draws=500, seed=3, workers=1)
    assert finding.verdict == "violation"
    assert "contains 'b'" in finding.statement


def test_a_rare_output_is_found() -> None:
    def rare(records: Any, rng: Words) -> float:
        word = int(rng.words(1)[0])
        return 9.5 if word % 100 == 0 and on_neighbour(records) else (word >> 40) / 2.0**24

    finding = black_box(Function(function=rare), PAIR, draws=5000, seed=3, workers=1)
    assert finding.verdict == "violation"


def raises(records: Any, rng: Words) -> float:
    if on_neighbour(records):
        raise ZeroDivisionError("by nothing")
    return 1.0


def hangs(records: Any, rng: Words) -> float:
    while on_neighbour(records):
        time.sleep(0.01)
    return 1.0


def nan(records: Any, rng: Words) -> float:
    return math.nan if on_neighbour(records) else 1.0


def shapes(records: Any, rng: Words) -> Any:
    return np.zeros(2 if on_neighbour(records) else 3)


def ragged(records: Any, rng: Words) -> Any:
    return np.zeros(1 + int(rng.words(1)[0]) % 2)


def words(records: Any, rng: Words) -> str:
    return "no" if on_neighbour(records) else "yes"


def always(records: Any, rng: Words) -> float:
    raise ValueError("never")


@pytest.mark.parametrize(
    ("function", "event"),
    [
        (raises, "structure is "),
        (nan, "structure is "),
        (shapes, "structure is "),
        (words, "output is 'no'"),
        (ragged, None),
    ],
)
def test_what_differs_in_structure_is_counted(function: Any, event: str | None) -> None:
    finding = black_box(Function(function=function), PAIR, draws=200, seed=1)
    assert finding.verdict == ("violation" if event else "no_violation_found")
    if event:
        assert event in finding.statement
    told = "It raised 0 of 200 times on the record and 200 of 200 on the neighbour"
    assert (told in finding.statement) == (function is raises)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (hangs, "took longer than 0.2 s"),
        (always, "raised ValueError: never"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_bad_mechanisms_are_named(
    function: Any, reason: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    monkeypatch.setattr(samples, "CHUNK", 10)
    finding = black_box(
        Function(function=function), PAIR, draws=20, seed=1, workers=workers, time_limit=0.2
    )
    assert finding.verdict == "inconclusive"
    for part in ("the thing", reason, "'0 and 1'"):
        assert part in finding.statement


def test_what_no_worker_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    monkeypatch.setattr(samples, "CHUNK", 10)
    held = (value for value in range(3))  # generators can't be pickled

    def holding(records: Any, rng: Words) -> float:
        return 0.0 if held else 1.0

    two, one = (
        black_box(Function(function=holding), PAIR, draws=20, seed=1, workers=workers)
        for workers in (2, 1)
    )
    assert two == one


class BreaksOnTheWay:
    """Can be pickled, and not be made again."""

    def __init__(self, needed: int) -> None:
        self.needed = needed

    def __reduce__(self) -> Any:
        return (type(self), ())

    def __call__(self, records: Any, rng: Words) -> float:
        return 0.0


@pytest.mark.nightly
def test_what_breaks_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_INLINE", 0.0)
    monkeypatch.setattr(samples, "CHUNK", 10)
    subject = Function(function=BreaksOnTheWay(1))
    finding = black_box(subject, PAIR, draws=20, seed=1, workers=2)
    assert finding.verdict == "inconclusive"
    assert "Function" in finding.statement or "worker" in finding.statement


def test_another_alarm_is_given_back() -> None:
    def handler(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 60)
        sample_pair(LAPLACE.mechanism, PAIR, AuditConfig(draws=5, seed=1, workers=1), "test")
        assert signal.getsignal(signal.SIGALRM) is handler
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("p", [0.5, 0.3])
def test_the_smallest_epsilon_that_is_found_is_found(p: float) -> None:
    """Of Laplace noise on an event {x ≤ t} less noise leaves p and makes q smaller."""
    rng, draws, level, q = np.random.default_rng(1), 1000, 0.01, p * math.exp(-1)
    record, neighbour = np.split(np.arange(4.0) // 2, 2)
    choice = replace(choose(record[:, None], neighbour[:, None]), p=p, q=q)
    claim = ApproxDP(epsilon=Fraction(1))
    epsilon = _power(choice, 1.0, 0.0, level, draws)["smallest_epsilon_found"]
    assert 1.2 < epsilon < 1.8
    sides = zip(
        rng.binomial(draws, p, size=300).tolist(),
        rng.binomial(draws, p * math.exp(-epsilon), size=300).tolist(),
        strict=True,
    )
    counts = [Counts(hits=hits, draws=draws, false_hits=others) for hits, others in sides]
    found = [judge(each, claim, Fraction(0), level).refuted_at is not None for each in counts]
    assert sum(found) >= 0.97 * len(found)  # 0.99 of them in the mean


@pytest.mark.nightly
def test_power_is_what_happens() -> None:
    """The bound promised with probability 0.99 is reached, and not by far."""
    findings = [black_box(Laplace(), PAIR, draws=1000, seed=s, workers=1) for s in range(60)]
    reached = sum((f.epsilon_lower or 0) >= f.power["expected_bound"] for f in findings)
    assert reached >= 57
    assert all(1.1 < f.power["smallest_epsilon_found"] < 2 for f in findings)


def test_both_orders_of_the_pair_are_looked_at() -> None:
    rng = np.random.default_rng(1)
    often, seldom = rng.random((2, 2000, 1)) < [[[0.05]], [[0.001]]]
    for record, neighbour, swapped in ((often, seldom, False), (seldom, often, True)):
        choice = choose(record * 1.0, neighbour * 1.0)
        assert choice.swapped == swapped
        assert choice.p > choice.q


@pytest.mark.parametrize(
    ("values", "name"),
    [({"alpha": 0.0}, "alpha"), ({"delta": Fraction(1)}, "delta"), ({"draws": 1}, "draws")],
)
def test_values_outside_their_range(values: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        black_box(LAPLACE.mechanism, PAIR, **({"seed": 1} | values))


def test_an_error_crosses_process_borders() -> None:
    assert str(pickle.loads(pickle.dumps(DrawError("why")))) == "why"  # noqa: S301


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ((["yes"], ["no"]), "output[-1] is 'no'"),
        (({"a": 1.0}, [1.0]), "structure is \"dict{'a': float}\""),
    ],
)
def test_what_holds_or_not_is_said_in_words(outputs: tuple[Any, Any], said: str) -> None:
    own, other = (objects([value_of(output)] * 40) for output in outputs)
    assert choose(own, other, classifiers=False).event == said
    name = Truth("there is output[1]")
    assert _inequality(name, 1.0, above=True) == "there is output[1]"
    assert _inequality(name, 0.0, above=False) == "not: there is output[1]"
    assert _inequality("output", 1.0, above=True) == "output ≥ 1"


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "?"])
def test_outputs_that_came_again_are_counted_one_by_one(
    kind: str, collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where different outputs have equal keys, and of both zeros and of what is no number."""
    if collide:
        monkeypatch.setattr(_scores, "_keys", lambda matrix: np.zeros(len(matrix), dtype="u8"))
    rng = np.random.default_rng(5)
    own, other = (rng.integers(-2, 3, size=(size, 2)).astype(kind) for size in (40, 60))
    if kind[0] == "f":
        own[::7] = np.nan
        other[::5] *= -1  # makes negative zeros
        other[1] = 7.25
    score = _scores._Repeated.of(own, other)
    told = [
        [tuple(map(repr, (row + row.dtype.type(0)).tolist())) for row in side]
        for side in (own, other)
    ]
    seen = [Counter(side) for side in told]
    expected = [
        math.log((seen[0][row] + 0.5) / (seen[1][row] + 0.5))
        if seen[0][row] + seen[1][row] > 1
        else 0.0
        for row in told[1]
    ]
    assert score(other).tolist() == expected


@pytest.mark.parametrize(("draws", "brief"), crossed([100, 1000], [False, True]))
def test_the_pair_that_tells_more_is_the_one_attacked(draws: int, brief: bool) -> None:
    """Also where neither refutes the claim; one at which releases fail is kept, and reported."""

    def noisy(x: Any, rng: Words) -> float:
        if np.min(x) < 0:
            raise DrawError("broke")
        return float(np.sum(x) + np.random.default_rng(int(rng.words(1)[0])).laplace())

    telling, weak, failing, clear, clearer = (
        Pair(name=str(end), record=np.zeros((1, 1)), neighbour=np.full((1, 1), end))
        for end in (0.9, 0.1, -1.0, 6.0, 9.0)
    )
    config = AuditConfig(draws=draws, brief=brief, workers=1, seed=1)
    for pairs in ([telling, weak], [weak, telling]):
        assert most_telling(Target(Function(function=noisy), pairs), config) is telling
    assert most_telling(Target(Function(function=noisy), [telling, failing]), config) is failing
    for found, simple in ((clear, weak), (clear, clearer), (clearer, clear)):
        target = Target(Function(function=noisy), [found, simple], spare=frozenset([simple.name]))
        assert most_telling(target, config) is (found if simple is weak or brief else simple)


def test_thresholds_are_values_at_many_ranks_and_those_beside() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.normal(size=3000), rng.integers(0, 9, 500), np.zeros(7), rng.normal(size=2)):
        ordered = np.sort(values.astype(float))
        tried, distinct = _thresholds(ordered), np.unique(ordered)
        assert set(tried) <= set(distinct)
        assert {ordered[0], ordered[-1], ordered[ordered.size // 400 * 7]} <= set(tried)
        assert tried.size == distinct.size or tried.size >= 400
        # Beside the smallest is the next one, wherever there is one.
        assert set(distinct[:2]) <= set(tried)
        assert np.all(np.diff(tried) > 0)
