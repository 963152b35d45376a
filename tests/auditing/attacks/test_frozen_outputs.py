"""Calls for noise, replayed with frozen outputs: right ones, and wrong ones by their line."""

from __future__ import annotations

import logging
import math
import random
import sys
import threading
import types
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpverify as dpv
from dpverify.auditing.attacks._tape import Tape
from dpverify.auditing.attacks._taped_call import Noise, digest
from dpverify.auditing.attacks.base import Target
from dpverify.auditing.attacks.frozen_outputs import FrozenOutputsAttack
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import DeclarationEvidence, Finding
from dpverify.errors import ParameterError
from dpverify.privacy import Pair


class OneRow:
    unit = "one row"

    def relates(self, data: Any, neighbour: Any) -> bool:
        return True


def data(value: float) -> np.ndarray[Any, Any]:
    """Ten rows, of which the fourth is the one that changes."""
    rows = np.arange(10.0).reshape(-1, 1) / 10
    rows[3] = value
    return rows


NEAR = Pair(name="near", record=data(0.3), neighbour=data(1.0))
FAR = Pair(name="far", record=data(0.3), neighbour=data(100.0))


def found(
    function: Callable[..., Any], pair: Pair = NEAR, *, epsilon: Any = 2, delta: Any = 0
) -> Finding:
    claim = dpv.ApproxDP(epsilon=epsilon, delta=delta)
    mechanism = dpv.adapt(function, adjacency=OneRow(), claim=claim, of="dataset")
    config = AuditConfig(draws=200, workers=1)
    (finding,) = FrozenOutputsAttack().run(Target(mechanism, [pair]), config)
    assert finding.pair is pair
    return finding


def line_of(function: Callable[..., Any], offset: int = 1) -> str:
    return f"test_frozen_outputs.py:{function.__code__.co_firstlineno + offset}"


def total(rows: Any) -> float:
    return float(np.clip(rows, 0, 1).sum())


def above(rows: Any) -> list[float]:
    return [float((rows > q / 10).sum()) for q in range(6)]


# --- right ones


def mean(rows: Any, rng: Any) -> Any:
    return np.clip(rows, 0, 1).mean() + rng.laplace(scale=0.1)


def located(rows: Any, rng: Any) -> Any:
    return rng.laplace(total(rows) - total(data(0.3)), 1)


def scaled(rows: Any, rng: Any) -> Any:
    return [total(rows) - 0.5 * rng.standard_normal() * 2, 7]


def vectors(rows: Any, rng: Any) -> Any:
    sums = np.array([total(rows), 0.0])
    sums += rng.normal(0, 1, size=2)
    return sums


def places(rows: Any, rng: Any) -> Any:
    noise = rng.laplace(scale=1, size=2)
    return {"sum": total(rows) + noise[0], "nothing": noise[1] + 0}


def of_numpy(rows: Any) -> Any:
    return total(rows) + np.random.laplace(0, 1)  # noqa: NPY002  # as people do


def of_numpys_own(rows: Any) -> Any:
    return np.random.default_rng().normal(total(rows), 1)


def of_python(rows: Any) -> Any:
    return random.gauss(total(rows), 1)


def sparse_vector(rows: Any, rng: Any) -> Any:
    threshold, out = 12 + rng.laplace(scale=1), []
    for value in above(rows):
        out.append(bool(value + rng.laplace(scale=2) >= threshold))
        if out[-1]:
            break
    return out


def shared_threshold(rows: Any, rng: Any) -> Any:
    noise = rng.laplace(scale=1)
    return [value + rng.laplace(scale=2) >= 12 + noise for value in above(rows)]


def noisy_maximum(rows: Any, rng: Any) -> Any:
    return int(np.argmax(np.array(above(rows)) + rng.laplace(scale=1, size=6)))


def smooth(rows: Any, rng: Any) -> Any:
    return float(np.median(rows)) + rng.laplace(scale=max(float(np.std(rows)), 0.01))


def rejecting(rows: Any, rng: Any) -> Any:
    while True:
        value = total(rows) / 10 + rng.laplace()
        if 0 <= value <= 1:
            return value


def branching(rows: Any, rng: Any) -> Any:
    first = total(rows) + rng.laplace(scale=1)
    return (first, total(rows) / 10 + rng.laplace(scale=0.1)) if first > 5 else first


def response(rows: Any, rng: Any) -> Any:
    bit = bool(rows[3, 0] > 0.5)
    return bit if rng.random() < 0.7 else not bit


def exponential(rows: Any, rng: Any) -> Any:
    weights = np.exp(np.array(above(rows)) / 2)
    return rng.choice(6, p=weights / weights.sum())


def shuffled(rows: Any, rng: Any) -> Any:
    order = [0, 1, 2]
    rng.shuffle(order)
    return total(rows) + rng.laplace(), rng.permutation(3)[0] >= 0, len(order)


MADE = np.random.default_rng(0)


def made_before(rows: Any) -> Any:
    return total(rows) + MADE.laplace()


CACHE: dict[bytes, Any] = {}


def cached(rows: Any, rng: Any) -> Any:
    key = rows.tobytes()
    if key not in CACHE:
        CACHE[key] = total(rows) + rng.laplace()
    return CACHE[key]


def catching(rows: Any, rng: Any) -> Any:
    try:
        return total(rows) + (rng.laplace() if rows[3] < 0.5 else rng.normal())
    except Exception:
        return 0


@dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
def noisy(value: float, rng: Any) -> Any:
    return value + rng.laplace(scale=1)


@dpv.primitive(sensitivity=1, norm="linf", noise=dpv.ApproxDP(epsilon=1))
def first_above(values: list[float], rng: Any) -> Any:
    threshold = 5 + rng.laplace(scale=2)
    return [value + rng.laplace(scale=4) >= threshold for value in values]


def marked(rows: Any, rng: Any) -> Any:
    return noisy(total(rows), rng)


def marked_smooth(rows: Any, rng: Any) -> Any:
    @dpv.primitive(sensitivity=1e-3, noise=dpv.ApproxDP(epsilon=1))
    def noisy_median(value: float, scale: float) -> Any:
        return value + rng.laplace(scale=scale)

    return noisy_median(float(rows.sum()), float(np.std(rows)))


def marked_vector(rows: Any, rng: Any) -> Any:
    return first_above(above(rows), rng)


def drawn_keys(rows: Any, rng: Any) -> Any:
    noisy_count = total(rows) + rng.laplace()
    dpv.ensure_equal("categories", {"a", "b"})
    return dpv.ensure_equal("kept", round(noisy_count, 3))


def alternating(rows: Any, rng: Any) -> Any:
    STATE[0] += 1
    return noisy(float(STATE[0] % 2) * 50, rng)


def in_fours(rows: Any, rng: Any) -> Any:
    """Two runs and two more agree with any order D, D′, D′, D."""
    STATE[0] += 1
    return noisy(float(STATE[0] // 2 % 2) * 50, rng)


def marked_smooth_by_name(rows: Any, rng: Any) -> Any:
    @dpv.primitive(sensitivity=1e-3, noise=dpv.ApproxDP(epsilon=1))
    def noisy_median(value: float, scale: float) -> Any:
        return value + rng.laplace(scale=scale)

    return noisy_median(value=float(rows.sum()), scale=float(np.std(rows)))


STATE = [0]

COVERED = [
    *(mean, places, of_numpy, sparse_vector, exponential, branching),
    *(marked, marked_vector, drawn_keys, located, shared_threshold),
]
GAUSSIAN = [scaled, vectors, of_numpys_own, of_python]
UNMEASURED = [
    *(smooth, response, shuffled, made_before, cached, catching, marked_smooth, alternating),
    *(in_fours, marked_smooth_by_name),
]


@pytest.mark.parametrize("function", COVERED)
def test_what_the_claim_covers(function: Callable[..., Any]) -> None:
    finding = found(function, epsilon=5 if function in (sparse_vector, shared_threshold) else 2)
    assert finding.verdict == "no_violation_found"
    assert "covered by the claim at what was tried" in finding.statement


@pytest.mark.parametrize("function", GAUSSIAN)
def test_gaussian_noise_is_composed_as_such(function: Callable[..., Any]) -> None:
    assert found(function, epsilon=3, delta="1e-3").verdict == "no_violation_found"
    refuted = found(function, epsilon="0.1", delta="1e-9")
    seeded = function in (scaled, vectors)  # else luck may leave it unconfirmed
    assert refuted.verdict in (("violation",) if seeded else ("violation", "inconclusive"))
    assert "normal at" in refuted.statement


@pytest.mark.parametrize("function", UNMEASURED)
def test_what_cannot_be_measured_is_not_accused(function: Callable[..., Any]) -> None:
    assert found(function).verdict == "inconclusive"


def test_a_sum_above_the_claim_is_not_accused() -> None:
    """Sparse vector loses in all its calls, of which the output shows next to nothing."""
    pair = Pair(name="all", record=data(0.05), neighbour=data(0.95))
    finding = found(sparse_vector, pair, epsilon=2)
    assert finding.verdict == "inconclusive"
    assert "lose more together than the claimed ε = 2" in finding.statement
    assert f"{line_of(sparse_vector, 3)}, loses" in finding.statement
    assert found(noisy_maximum, pair).verdict == "inconclusive"


# --- wrong ones


def unclipped(rows: Any, rng: Any) -> Any:
    return rows.mean() + rng.laplace(scale=0.1)


def halved(rows: Any, rng: Any) -> Any:
    return np.clip(rows, 0, 1).mean() + rng.laplace(scale=0.01)


def spent_twice(rows: Any, rng: Any) -> Any:
    sums = [float(np.clip(rows, 0, 100).sum())] * 2
    return [x + rng.laplace(scale=10) for x in sums]


def bare(rows: Any, rng: Any) -> Any:
    return total(rows) + rng.laplace(), rows.max()


def reused(rows: Any, rng: Any) -> Any:
    noise = rng.laplace()
    return total(rows) + noise, noise + 3.0


def raising(rows: Any, rng: Any) -> Any:
    value = total(rows) + rng.laplace()
    if rows.max() > 50:
        raise ValueError("too large")
    return value


def one_side(rows: Any, rng: Any) -> Any:
    value = total(rows) + rng.laplace()
    return value if rows.max() > 50 else value + 0 * rng.normal(1)


WRONG = [
    (unclipped, FAR, "{}, loses 99.7, and ε = 1 is claimed"),
    (halved, NEAR, "{}, loses 7, and ε = 1 is claimed"),
    (spent_twice, FAR, "2 calls whose inputs move lose more together than the claimed ε = 1"),
    (bare, NEAR, "with the outputs of all its calls frozen its own output depends on the data"),
    (raising, FAR, "with the same outputs it raised ValueError: too large on one side"),
]


@pytest.mark.parametrize(("function", "pair", "reason"), WRONG)
def test_wrong_ones_are_named_and_confirmed(
    function: Callable[..., Any], pair: Pair, reason: str
) -> None:
    finding = found(function, pair, epsilon=1)
    assert finding.verdict == "violation"
    assert reason.format(line_of(function)) in finding.statement
    assert finding.level == 0.01  # of the fresh draws


def test_calls_on_one_side_alone() -> None:
    finding = found(one_side, FAR)
    assert finding.verdict == "inconclusive"
    assert f"{line_of(one_side, 2)}, is made on one side alone" in finding.statement


def test_noise_of_scale_0_is_none() -> None:
    finding = found(lambda rows, rng: total(rows) + rng.normal(scale=0))
    assert finding.verdict == "violation"
    assert "has no noise and an input that moves" in finding.statement


def test_no_calls_say_nothing() -> None:
    for function in (lambda rows: 7, lambda rows: total(rows) + MADE.laplace()):
        assert found(function).verdict == "inconclusive"
    assert "no call for noise was recorded" in found(lambda rows: 7).statement
    assert found(total).verdict == "violation"


def test_noise_that_is_used_twice_is_named() -> None:
    assert "outside the model: noise that is used twice (call 1 at" in found(reused).statement


def marked_unclipped(rows: Any, rng: Any) -> Any:
    first = noisy(total(rows), rng)
    return first, noisy(float(rows.sum()), rng)


def columns(rows: Any, rng: Any) -> Any:
    noisy_sum = total(rows) + rng.laplace()
    dpv.ensure_equal("categories", sorted(rows.ravel().tolist()))
    return noisy_sum


def test_a_broken_declaration_has_a_level() -> None:
    finding = found(marked_unclipped, FAR, epsilon=100)
    assert (finding.verdict, finding.level) == ("violation", 0.01)
    evidence = finding.evidence
    assert isinstance(evidence, DeclarationEvidence)
    assert evidence.declaration == "primitive noisy (call 2, in l1)"
    assert evidence.place.endswith(line_of(marked_unclipped, 2))
    assert evidence.moved == pytest.approx(99.7)
    assert evidence.allowed == 1
    by_name = found(lambda rows, rng: noisy(value=rows.sum(), rng=rng), FAR, epsilon=100)
    assert by_name.verdict == "violation"
    assert found(marked_unclipped, NEAR, epsilon=100).verdict == "no_violation_found"


@pytest.mark.parametrize("alpha", [0.01, 1e-9])
def test_a_declaration_is_tried_as_often_as_its_level_asks(alpha: float) -> None:
    """All coins may choose the side that agrees: a smaller level asks for more of them."""
    runs: list[float] = []

    def counted(rows: Any, rng: Any) -> Any:
        runs.append(float(rows[3, 0]))
        return marked_unclipped(rows, rng)

    claim = dpv.ApproxDP(epsilon=100)
    mechanism = dpv.adapt(counted, adjacency=OneRow(), claim=claim, of="dataset")
    config = AuditConfig(draws=20, workers=1, alpha=alpha)
    recordings = 3
    attack = FrozenOutputsAttack(recordings=recordings)
    (finding,) = attack.run(Target(mechanism, [FAR]), config)
    assert (finding.verdict, finding.level) == ("violation", alpha)
    coins = len(runs) / recordings - 4
    assert recordings * 2**-coins <= alpha / 64 < 2 * recordings * 2**-coins
    assert len({*runs}) == 2


def test_what_must_not_depend_on_the_data() -> None:
    finding = found(columns, NEAR, epsilon=100)
    assert finding.verdict == "violation"
    assert "ensure_equal('categories')" in finding.statement
    assert "given the same outputs so far it differs between the neighbours" in finding.statement


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["shape", "more"])
@pytest.mark.parametrize("before", [True, False])
def test_what_must_not_depend_on_the_data_and_is_said_on_one_side_alone(
    *, before: bool, name: str, first: int
) -> None:
    def branched(rows: Any, rng: Any) -> Any:
        dpv.ensure_equal("shape", rows.shape)
        if before and rows[3] > 0.9:
            dpv.ensure_equal(name, 7)
        noisy_sum = total(rows) + rng.laplace()
        if not before and rows[3] > 0.9:
            dpv.ensure_equal(name, 7)
        dpv.ensure_equal("columns", 1)
        return noisy_sum

    sides = (NEAR.record, NEAR.neighbour)
    pair = Pair(name="near", record=sides[first], neighbour=sides[1 - first])
    finding = found(branched, pair)
    assert finding.verdict == "inconclusive"
    assert f"ensure_equal('{name}')" in finding.statement
    where = line_of(branched, 3 if before else 6)
    assert finding.statement.endswith(f"{where} is called on one side alone")


def test_what_must_not_depend_on_the_data_is_compared_by_its_name() -> None:
    def in_order(rows: Any, rng: Any, *, far: float = 0) -> Any:
        names = ["a", "b"] if rows[3] > 0.9 else ["b", "a"]
        for name in names:
            dpv.ensure_equal(name, ord(name) + far * (names[0] == "a"))
        return total(rows) + rng.laplace()

    assert found(in_order).verdict == "no_violation_found"
    broken = found(lambda rows, rng: in_order(rows, rng, far=1))
    assert broken.verdict == "violation"
    assert "ensure_equal('b')" in broken.statement


@pytest.mark.parametrize("say", [warnings.warn, logging.getLogger("x").warning, print])
def test_side_effects_are_said_and_not_accused(say: Callable[[str], Any]) -> None:
    def saying(rows: Any, rng: Any) -> Any:
        if rows[3] > 0.9:
            say("large")
        return total(rows) + rng.laplace()

    finding = found(saying, epsilon=2)
    assert finding.verdict == "inconclusive"
    assert "what it warns, logs or prints depends on the data" in finding.statement


def test_the_losses_are_the_accountants() -> None:
    """0.7 of Laplace noise of scale 1, twice, is exactly 1.4 at δ = 0."""

    def twice(rows: Any, rng: Any) -> Any:
        return [total(rows) + rng.laplace(), total(rows) + rng.laplace()]

    assert found(twice, epsilon="1.4").verdict == "no_violation_found"
    assert "lose more together" in found(twice, epsilon="1.39").statement


# --- libraries, which are taped where they are loaded


def test_libraries_that_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Measurement:
        input_metric, output_measure, input_domain = "SymmetricDistance()", "MaxDivergence", "Vec"

        def __call__(self, value: Any) -> float:
            return float(sum(value) + np.random.default_rng().laplace())

        def map(self, distance: int) -> float:
            assert isinstance(distance, int)
            return distance / 2

    class Laplace:
        epsilon, delta, sensitivity = 1.0, 0.0, 0.5

        def randomise(self, value: float) -> float:
            return value + random.random()

    for name, holder in {"opendp.mod": Measurement, "diffprivlib.mechanisms": Laplace}.items():
        module = types.ModuleType(name)
        setattr(module, holder.__name__, holder)
        monkeypatch.setitem(sys.modules, name, module)
    measure, mechanism = Measurement(), Laplace()
    before = Measurement.__call__, Laplace.randomise
    # One row replaced is 2 in the symmetric distance; 0.7 of a sensitivity of 0.5 is 1.4.
    for function, epsilon in (
        (lambda rows: measure(rows.ravel().tolist()), Fraction(1)),
        (lambda rows: mechanism.randomise(total(rows)), Fraction("1.4")),
    ):
        finding = found(function, epsilon=epsilon)
        assert finding.verdict == "no_violation_found", finding.statement
        assert "loses" in found(function, epsilon=epsilon * Fraction("0.99")).statement
    fewer = Pair(name="fewer", record=data(0.3), neighbour=data(0.3)[1:])
    finding = found(lambda rows: measure(rows.ravel().tolist()), fewer, epsilon="0.5")
    assert finding.verdict == "no_violation_found"
    assert before == (Measurement.__call__, Laplace.randomise)


def test_global_functions_are_as_they_were() -> None:
    before = np.random.laplace, np.random.default_rng, random.gauss
    found(mean)
    assert before == (np.random.laplace, np.random.default_rng, random.gauss)


# --- parts


def test_marks_do_nothing_outside() -> None:
    class Fixed:
        def laplace(self, scale: float) -> float:
            return 0.5

    assert noisy(1.0, Fixed()) == 1.5
    assert noisy.__name__ == "noisy"
    assert dpv.ensure_equal("name", [1]) == [1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sensitivity": -1}, "sensitivity=-1 must be at least 0"),
        ({"norm": "l3"}, "norm=l3 must be l1, l2 or linf"),
        ({"noise": 1}, "noise=1 must be a privacy curve"),
        ({"noise": dpv.Laplace}, r"noise=.*Laplace.* must be a privacy curve, as dpv.Laplace\("),
    ],
)
def test_what_a_mark_refuses(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        dpv.primitive(**{"sensitivity": 1, "noise": dpv.Laplace(scale=1), **words})


def test_noise_is_a_number_wherever_one_is_wanted() -> None:
    tape = Tape(1)
    noise = tape.ask(tape.generator, "laplace", (), {})
    assert isinstance(noise, Noise)
    value = float(noise)
    assert (-noise).plain() == -value
    assert (noise / 2).plain() == value / 2
    assert round(noise) == round(value)
    assert math.floor(noise) == math.floor(value)
    assert bool(np.greater(noise, 0)) == (value > 0)
    assert f"{noise:.3f}" == f"{value:.3f}"
    assert np.exp(noise) == np.exp(value)
    assert np.float64(2) + noise == 2 + value
    assert tape.calls[0].raw
    many = tape.ask(tape.generator, "normal", (0, 1, 3), {})
    assert [float(x) for x in many] == np.asarray(many).tolist()
    assert many.mean() == np.asarray(many).mean()
    assert (10 - many[1]) + np.asarray(many)[1] == pytest.approx(10)


def test_digests_are_of_what_is_held() -> None:
    equal = [
        ({"a", "b", "c"}, {"c", "b", "a"}),
        ([1, 2.0, np.int64(3)], (1.0, 2, 3)),
        (-0.0, 0.0),
        (math.nan, float("nan")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.array([1.0, 2.0]), np.array([1, 2])),
        (np.ndarray, np.ndarray),
    ]
    assert all(digest(one) == digest(other) for one, other in equal)
    different = [
        ([1, 2], [2, 1]),
        (True, 1),
        (math.inf, -math.inf),
        (np.zeros(2), np.zeros((2, 1))),
    ]
    assert all(digest(one) != digest(other) for one, other in different)


def test_tables_have_columns() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2]})
    assert digest(table) == digest(table.copy())
    assert digest(table) != digest(table.rename(columns={"a": "b"}))
    assert digest(table) != digest(table.astype(float))


@pytest.mark.parametrize(("scale", "verdict"), [(1, "no_violation_found"), (1.001, "violation")])
def test_round_off_of_single_precision_is_no_broken_declaration(scale: float, verdict: str) -> None:
    @dpv.primitive(sensitivity=1, noise=dpv.Gaussian(sigma=4), norm="l2")
    def sums(value: Any, rng: Any) -> Any:
        return value + rng.normal(scale=4, size=3)

    def clipped(rows: Any, rng: Any) -> Any:
        single = rows.astype(np.float32)
        norms = np.linalg.norm(single, axis=1, keepdims=True) / np.float32(scale)
        return sums((single / np.maximum(1, norms)).sum(axis=0), rng)

    rows = np.random.default_rng(3).normal(scale=5, size=(20, 3))
    moves = set()
    for row in np.random.default_rng(4).normal(scale=5, size=(3, 3)):
        short = Pair(name="p", record=rows, neighbour=np.vstack([rows, row]))
        one = found(clipped, short, delta=1e-5)
        assert one.verdict == verdict
        told: Any = one.evidence
        moves.add(told.moved if verdict == "violation" else told.distance)
    assert max(moves) > 1 + 1e-9  # so round-off, or the bug, is there


@dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
def noisy_number(value: float) -> float:
    return value + float(np.random.default_rng().laplace())


class Branching:
    """Its first answer, by noise that isn't recorded, decides about the input of the second."""

    adjacency = OneRow()
    of = "dataset"

    def __init__(self, seed: int, *, own: bool) -> None:
        self.generator = np.random.default_rng(seed) if own else None
        self.threshold = 3 + seed / 2

    def privacy(self) -> dpv.PrivacyCurve:
        return 2 * dpv.Laplace(scale=1)

    def release(self, data: Any, rng: Any) -> float:
        source = self.generator or np.random.Generator(np.random.PCG64(int(rng.words(1)[0])))
        return noisy_number(100.0 if data.sum() + source.laplace() > self.threshold else 0.0)


@pytest.mark.parametrize("own", [True, False])
def test_a_declaration_is_not_broken_by_noise_that_a_mechanism_draws_itself(own: bool) -> None:
    for seed in range(8):
        attack = FrozenOutputsAttack()
        config = AuditConfig(draws=50, workers=1, seed=seed)
        (finding,) = attack.run(Target(Branching(seed, own=own), [NEAR]), config)
        assert finding.verdict != "violation", (seed, finding)


@dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
def counted(value: float) -> float:
    return value + float(np.random.default_rng().laplace())


@dpv.primitive(sensitivity=2, noise=dpv.Laplace(scale=2))
def summed(value: float) -> float:
    return value + float(np.random.default_rng().laplace(scale=2))


def in_turn(rows: Any) -> tuple[dict[str, float], list[Callable[[], None]]]:
    """Two calls in an order that depends on the data, which the output doesn't show."""
    out = {"count": 0.0, "sum": 0.0}
    calls: list[Callable[[], None]] = [
        lambda: out.update(count=counted(len(rows))),
        lambda: out.update(sum=summed(1000 + total(rows))),
    ]
    return out, calls if total(rows) < 5 else calls[::-1]


def caught(rows: Any, rng: Any) -> Any:
    out, calls = in_turn(rows)
    for call in calls:
        try:
            call()
        except:  # noqa: E722  # as people do
            out["failed"] = 1
    return out


def in_futures_that_nobody_asks(rows: Any, rng: Any) -> Any:
    out, calls = in_turn(rows)
    with ThreadPoolExecutor(1) as executor:
        for call in calls:
            executor.submit(call)
    return out


def in_threads(rows: Any, rng: Any) -> Any:
    out, calls = in_turn(rows)
    for call in calls:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    return out


def returned_after_all(rows: Any, rng: Any) -> Any:
    out, calls = in_turn(rows)
    for call in calls:
        with suppress(BaseException):
            call()
    return out


def noise_of_two_scales(rows: Any, rng: Any) -> Any:
    noise = rng.laplace()
    with suppress(BaseException):
        noise = 3.0 + (noise if total(rows) < 5 else noise * 2)
    return counted(3 if isinstance(noise, float) else 500)


@pytest.mark.parametrize(
    "function",
    [caught, in_futures_that_nobody_asks, in_threads, returned_after_all, noise_of_two_scales],
)
def test_a_replay_whose_end_is_caught_disproves_nothing(function: Callable[..., Any]) -> None:
    finding = found(function)
    assert finding.verdict == "inconclusive"
    assert "outside the model: call 1" in finding.statement or "scale" in finding.statement


def racing(rows: Any, rng: Any) -> Any:
    """Two threads whose calls come in an order that the data decide, for the clock to see."""
    first = threading.Event()

    def small() -> float:
        if total(rows) > 5:
            first.wait(1)
        return counted(len(rows))

    def large() -> float:
        if total(rows) <= 5:
            first.wait(1)
        return counted(1000)

    def ended(call: Callable[[], float]) -> float:
        value = call()
        first.set()
        return value

    with ThreadPoolExecutor(2) as executor:
        return list(executor.map(ended, [small, large]))


def test_calls_of_several_threads_have_no_order() -> None:
    finding = found(racing)
    assert finding.verdict == "inconclusive", finding.statement
    assert "threads" in finding.statement


@dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
def failing(value: float, rng: Any) -> float:
    noisy = value + rng.laplace()
    if noisy < 5:
        raise ValueError("not enough")
    return float(noisy)


def or_else(other: Callable[[Any], Any], rows: Any, rng: Any) -> Any:
    try:
        return failing(total(rows), rng)
    except ValueError:
        return other(rows)


@pytest.mark.parametrize(
    ("other", "verdict", "says"),
    [
        (lambda rows: -1.0, "no_violation_found", "1 call for noise is covered"),
        (lambda rows: 100 * total(rows), "violation", "its own output depends on the data"),
    ],
)
def test_what_a_primitive_raises_is_frozen(
    other: Callable[[Any], Any], verdict: str, says: str
) -> None:
    finding = found(partial(or_else, other))
    assert finding.verdict == verdict
    assert says in finding.statement


@dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
def one_by_one(value: float) -> Any:
    yield value + np.random.default_rng().laplace()


def test_what_cannot_be_kept_is_named() -> None:
    finding = found(lambda rows: next(one_by_one(total(rows))))
    assert finding.verdict == "inconclusive"
    assert "gives a generator, which can't be kept" in finding.statement


@pytest.mark.filterwarnings("error")
def test_infinite_inputs_are_not_measured_without_a_warning() -> None:
    finding = found(lambda rows: counted(math.inf if total(rows) else 0.0))
    assert finding.verdict == "inconclusive"
    assert "can't be measured" in finding.statement


class Adder:
    """Marked methods."""

    @dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
    def add(self, value: float) -> float:
        return value + float(np.random.default_rng().laplace())

    @classmethod
    @dpv.primitive(sensitivity=1, noise=dpv.Laplace(scale=1))
    def add_too(cls, value: float) -> float:
        return value + float(np.random.default_rng().laplace())


@pytest.mark.parametrize("method", [Adder().add, Adder.add_too])
@pytest.mark.parametrize(
    ("times", "verdict", "says"),
    [(1, "no_violation_found", "1 call for noise is"), (3, "violation", "at most 1 is declared")],
)
def test_a_method_is_a_primitive(method: Any, times: int, verdict: str, says: str) -> None:
    for named in (False, True):

        def function(rows: Any, rng: Any, named: bool = named) -> Any:
            value = times * total(rows)
            return method(value=value) if named else method(value)

        finding = found(function)
        assert finding.verdict == verdict
        assert says in finding.statement
