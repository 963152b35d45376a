"""A mechanism that keeps its noise is not accused, and one without noise still is."""

from __future__ import annotations

import functools
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from threading import RLock, local
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import pytest
from scipy.stats import kruskal

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.audit import audit
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.outputs.memory import _chance, copier, shares_noise
from dpverify.auditing.outputs.samples import one_side
from dpverify.auditing.report import Report
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute
from dpverify.privacy import Pair

PAIR = Pair(name="0 and 1", record=np.zeros(1), neighbour=np.ones(1))
ANSWERS: dict[bytes, float] = {}


class Kept:
    """Answers are kept in the object, as a permanent randomized response's are."""

    def __init__(self) -> None:
        self.answers: dict[bytes, float] = {}

    def __call__(self, x: Any, rng: Any) -> float:
        key = x.tobytes()
        if key not in self.answers:
            self.answers[key] = float(x[0] + np.random.default_rng().laplace())
        return self.answers[key]


def in_a_closure() -> Callable[[Any], float]:
    answers: dict[bytes, float] = {}

    def function(x: Any) -> float:
        noisy = float(x[0] + np.random.default_rng().laplace())
        return answers.setdefault(x.tobytes(), noisy)

    return function


def in_the_module(x: Any) -> float:
    return ANSWERS.setdefault(x.tobytes(), float(x[0] + np.random.default_rng().laplace()))


@functools.cache
def noise_of(x: float) -> float:
    return float(np.random.default_rng().laplace())


def by_functools(x: Any) -> float:
    return float(x[0]) + noise_of(float(x[0]))


def a_bit_in_a_closure() -> Callable[[Any], int]:
    answers: dict[bytes, bool] = {}

    def function(x: Any) -> int:
        true = answers.setdefault(x.tobytes(), np.random.default_rng().random() < 0.731)
        return int(x[0]) if true else 1 - int(x[0])

    return function


def a_part_in_a_closure() -> Callable[[Any, Any], tuple[float, float]]:
    answer = in_a_closure()
    return lambda x, rng: (answer(x), float(rng.laplace()))


def a_set_in_a_closure() -> Callable[[Any], frozenset[float]]:
    answer = in_a_closure()
    return lambda x: frozenset({answer(x)})


def a_part_without_noise(x: Any, rng: Any) -> tuple[float, float, int]:
    return float(x[0]), float(rng.laplace()), 7


def without_noise(x: Any) -> float:
    return float(x[0])


def of_one_seed(x: Any) -> float:
    return float(x[0] + np.random.default_rng(7).laplace())


def audited(function: Any, epsilon: float = 1) -> Report:
    mechanism = adapt(
        function,
        of="record",
        adjacency=Attribute(beta=Fraction(1)),
        claim=ApproxDP(epsilon=Fraction(epsilon)),
    )
    return audit(mechanism, pairs=[PAIR], draws=200, workers=1, without=["precision"])


@pytest.mark.parametrize(
    "make",
    [
        Kept,
        in_a_closure,
        lambda: in_the_module,
        lambda: functools.partial(in_the_module),
        lambda: by_functools,
        a_bit_in_a_closure,
        a_part_in_a_closure,
        a_set_in_a_closure,
    ],
)
def test_kept_answers_are_said_and_nobody_is_accused(make: Callable[[], Any]) -> None:
    ANSWERS.clear()
    noise_of.cache_clear()
    report = audited(make())
    assert report.verdict == "inconclusive"
    assert not report.findings
    assert "keeps its output" in report.failed[0]
    assert "Give the audit a function that makes it anew" in report.failed[0]


@pytest.mark.parametrize(
    "function",
    [
        without_noise,
        of_one_seed,
        a_part_without_noise,
        pytest.param(functools.partial(without_noise), marks=pytest.mark.nightly),
        pytest.param(functools.partial(functools.partial(of_one_seed)), marks=pytest.mark.nightly),
    ],
)
def test_missing_noise_is_still_a_violation(function: Any) -> None:
    assert audited(function).verdict == "violation"


def locked() -> Callable[[Any], float]:
    lock, kept = RLock(), in_a_closure()

    def answer(x: Any) -> float:
        with lock:
            return kept(x)

    return answer


def of_a_thread() -> Callable[[Any], float]:
    here = local()

    def answer(x: Any) -> float:
        known = vars(here).setdefault("known", {})
        return float(known.setdefault(x.sum(), x.sum() + np.random.default_rng().laplace()))

    return answer


@pytest.mark.parametrize("make", [locked, of_a_thread])
def test_what_belongs_to_one_process_is_made_anew_in_copies(make: Callable[[], Any]) -> None:
    """Or nothing could be copied, and correct mechanisms with a cache would be accused."""
    report = audited(make())
    assert report.verdict == "inconclusive"
    assert "keeps its output" in report.failed[0]


def in_a_data_base() -> Callable[[Any], float]:
    known = sqlite3.connect(":memory:")
    known.execute("create table answers (sum primary key, answer)")

    def answer(x: Any) -> float:
        draw = (float(x.sum()), float(x.sum() + np.random.default_rng().laplace()))
        known.execute("insert or ignore into answers values (?, ?)", draw)
        found = known.execute("select answer from answers where sum = ?", draw[:1])
        return float(found.fetchone()[0])

    return answer


def counting_in_a_generator() -> Callable[[Any, Any], float]:
    numbers = iter(number for number in range(10**9))  # which can't be copied
    return lambda x, rng: next(numbers) + x.sum() + rng.laplace(scale=0.01)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (in_a_data_base, "nobody can tell whether it has no noise or keeps it"),
        (counting_in_a_generator, "gives others later than sooner"),
    ],
)
def test_what_cannot_be_copied_is_not_judged(make: Callable[[], Any], says: str) -> None:
    report = audited(make())
    assert report.verdict == "inconclusive"
    assert says in report.failed[0]


def uncopied(answer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    held = iter(number for number in (1,))
    return lambda x, rng: answer(x, rng) if held else None


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (lambda x, rng: 0.5, "no_violation_found"),
        (lambda x, rng: x.sum() + rng.laplace(), "no_violation_found"),
        (lambda x, rng: x.sum() + rng.laplace(scale=0.1), "violation"),
    ],
)
def test_what_cannot_be_copied_and_keeps_nothing_is_audited(answer: Any, verdict: str) -> None:
    assert audited(uncopied(answer)).verdict == verdict


def test_made_anew_it_is_audited() -> None:
    def anew(x: Any, rng: Any) -> float:
        return Kept()(x, rng)

    assert audited(anew).verdict == "no_violation_found"
    assert audited(anew, epsilon=0).verdict == "violation"


@pytest.mark.parametrize("size", [1, 3])
def test_sets_and_parts_that_never_change_are_not_taken_for_kept(size: int) -> None:
    def noisy(x: Any, rng: Any) -> Any:
        coins = rng.random(size) < 0.731
        return frozenset(np.flatnonzero(coins != (x[0] == 0))) if size == 1 else (*coins, 7)

    assert audited(noisy).verdict == "no_violation_found"


class Offset:
    """Each release is private by noise that is kept, and has hardly any of its own."""

    def __init__(self) -> None:
        self.noise: float | None = None

    def __call__(self, x: Any, rng: Any) -> float:
        if self.noise is None:
            self.noise = float(rng.laplace())
        return float(x[0] + self.noise + rng.laplace(scale=0.05))


class AddsUp:
    """Each release is a little larger than the last."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any, rng: Any) -> float:
        self.count += 1
        return float(x[0] + rng.laplace() + self.count * 2e-3)


class Counts:
    """Keeps how often it released, and nothing of its noise."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any, rng: Any) -> float:
        self.count += 1
        return float(x[0] + rng.laplace(scale=0.5))


def test_what_releases_share_is_noticed() -> None:
    said: dict[str, Any] = {
        "epsilon": 1,
        "adjacency": Attribute(beta=Fraction(1)),
        "of": "record",
        "pairs": [PAIR],
        "search": False,
        "draws": 300,
        "workers": 1,
        "kinds": ["black-box"],
    }
    report = audit(Offset(), **said)
    assert report.verdict == "inconclusive"
    assert report.failed[0].startswith("Offset keeps noise, or what adds up, from one release")
    assert audit(Counts(), **said).verdict == "violation"


class Own:
    """Keeps a generator."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def __call__(self, x: Any, rng: Any) -> float:
        return float(x[0] + self.rng.laplace(scale=5) + rng.laplace())


@pytest.mark.parametrize("made", [AddsUp, Counts, Own])
def test_what_adds_up_is_noticed(made: Callable[[], Any]) -> None:
    adjacency, claim = Attribute(beta=Fraction(1)), ApproxDP(epsilon=1)
    mechanism = adapt(made(), adjacency=adjacency, claim=claim, of="record")
    config = AuditConfig(workers=1)
    copied = copier(mechanism)
    assert copied is not None
    one_side(mechanism, PAIR, 0, 1000, (0, "search"), config.time_limit)
    said = shares_noise(mechanism, PAIR, copied, config)
    assert said.startswith("AddsUp keeps noise, or what adds up,") == (made is AddsUp)


@pytest.mark.parametrize("groups", [2, 20])
def test_the_test_of_kruskal_and_wallis(groups: int) -> None:
    rng = np.random.default_rng(groups)
    for shift in (0.0, 1.0):
        drawn = rng.normal(size=(groups, 20)) + shift * np.arange(groups)[:, None]
        for values in (drawn, np.round(drawn).astype(float)):
            assert _chance(values) == pytest.approx(kruskal(*values).pvalue, rel=1e-9, abs=1e-300)


class Colour(Enum):
    """An argument of noise."""

    RED = 1

    def scale(self) -> float:
        return float(self.value)


@dataclass
class Shared:
    """Draws from a generator that all objects of the class share."""

    offset: float = 0.0
    source: ClassVar[np.random.Generator] = np.random.default_rng()
    made: ClassVar[list[int]] = []

    def add(self, value: float) -> float:
        type(self).latest = value  # type: ignore[attr-defined]
        return value + self.offset + float(self.source.laplace(scale=Colour.RED.scale()))

    def __call__(self, x: Any, rng: Any) -> float:
        return self.add(float(x[0]))


def in_a_function(x: Any, rng: Any) -> float:
    return Shared().add(float(x[0]))


@pytest.mark.parametrize("function", [in_a_function, Shared()])
def test_classes_are_as_they_were(function: Any) -> None:
    Shared().add(0)
    before = [dict(vars(each)) for each in (Shared, Colour)]
    report = audit(
        function,
        epsilon=1,
        adjacency=Attribute(beta=1),
        of="record",
        attributes=1,
        draws=100,
        workers=1,
        kinds=["black-box"],
    )
    assert report.verdict == "no_violation_found"
    for each, own in zip((Shared, Colour), before, strict=True):
        names = own.keys() - {"latest"}
        assert vars(each).keys() - {"latest", "__slotnames__"} == names - {"__slotnames__"}
        assert [name for name in names if vars(each)[name] is not own[name]] == []


def test_a_module_that_its_user_packs_by_value_stays_so() -> None:
    module = sys.modules[__name__]
    mechanism = adapt(
        in_a_function, adjacency=Attribute(beta=1), claim=ApproxDP(epsilon=1), of="record"
    )
    before = cloudpickle.list_registry_pickle_by_value()
    assert copier(mechanism) is not None
    assert cloudpickle.list_registry_pickle_by_value() == before
    cloudpickle.register_pickle_by_value(module)
    try:
        assert copier(mechanism) is not None
        assert __name__ in cloudpickle.list_registry_pickle_by_value()
    finally:
        cloudpickle.unregister_pickle_by_value(module)
