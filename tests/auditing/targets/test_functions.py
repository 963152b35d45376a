"""Adapters: what a function is called with, and that its audit replays."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing import audit as run
from dpverify.auditing.finding import AuditKind
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Attribute, Record
from dpverify.data.domain import Box
from dpverify.errors import ParameterError
from dpverify.privacy import Pair
from dpverify.sampling.words import ReplayableWords

UNIT = Attribute(beta=Fraction(1))
CLAIM = ApproxDP(epsilon=Fraction(1))
# Of draws alone: in doubles even the correct mechanism fails the precision audit.
ON_PAPER: tuple[AuditKind, ...] = ("grey-box", "determinism", "black-box", "sequential")


def laplace(record: Any, rng: np.random.Generator) -> Any:
    return record + rng.laplace(scale=1.0, size=record.shape)


def halved(record: Any, rng: np.random.Generator) -> Any:
    return record + rng.laplace(scale=0.5, size=record.shape)


def adapted(function: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"of": "record", "attributes": 1, "adjacency": UNIT}
    return adapt(function, claim=CLAIM, **settings | options)


def test_a_function_gets_each_record_and_a_generator_of_its_own() -> None:
    seen: list[Any] = []

    def function(record: Any, rng: np.random.Generator) -> Any:
        seen.append((record.shape, rng.random()))
        return record.sum()

    released = adapted(function).release(np.ones((3, 2)), rng=ReplayableWords(1, "key"))
    assert released.tolist() == [2.0, 2.0, 2.0]
    assert [shape for shape, _ in seen] == [(2,)] * 3
    assert len({draw for _, draw in seen}) == 3


@pytest.mark.parametrize("of", ["record", "dataset"])
def test_many_calls_are_those_of_release(of: str) -> None:
    kept: list[Any] = []

    def function(data: Any, rng: np.random.Generator) -> Any:
        kept.append((data, rng))
        data += 1  # of a copy
        return (data * rng.random()).sum(axis=-1)

    mechanism = adapted(function, of=of, adjacency=UNIT if of == "record" else Record())
    data, words = np.zeros((2, 3)), ReplayableWords(1, "key")
    release = mechanism.releaser(data, 40, rng=ReplayableWords(1, "key"))
    for _ in range(40):
        assert release().tolist() == mechanism.release(data, rng=words).tolist()
    assert len({id(part) for call in kept for part in call}) == 2 * len(kept)
    assert not data.any()


def test_what_one_call_raises_ends_none_of_the_others() -> None:
    def function(record: Any, rng: np.random.Generator) -> Any:
        if rng.random() < 0.5:
            raise StopIteration
        return 1.0

    release = adapted(function).releaser(np.zeros((1, 1)), 100, rng=ReplayableWords(1, "key"))
    outcomes = []
    for _ in range(100):
        try:
            outcomes.append(release())
        except StopIteration:
            outcomes.append(None)
    assert outcomes.count(None) in range(20, 80)
    assert outcomes.count(1.0) == 100 - outcomes.count(None)


def test_the_same_words_give_the_same_release() -> None:
    mechanism = adapted(laplace)
    first, again, other = (
        mechanism.release(np.zeros((2, 2)), rng=ReplayableWords(seed, "key")) for seed in (1, 1, 2)
    )
    assert mechanism.replayable
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_function_of_the_record_alone_is_labelled() -> None:
    mechanism = adapted(lambda record: record * 2, name="twice")
    assert not mechanism.replayable
    assert mechanism.release(np.ones((1, 1)), rng=ReplayableWords(1, "key")).tolist() == [2.0]
    report = run.audit(mechanism, draws=50, kinds=["black-box"], workers=1)
    assert report.mechanism == "twice"
    assert "a second run gives other draws" in report.replay


@pytest.mark.parametrize("second", ["generator", "rng"])
def test_an_optional_generator_is_given(second: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def f(record, {second}=None): return float({second} is not None)", space)  # noqa: S102
    assert adapted(space["f"]).release([[0.0]], rng=ReplayableWords(1, "key")) == 1.0


def test_another_optional_argument_is_left_alone() -> None:
    mechanism = adapted(lambda record, scale=3.0: scale)
    assert mechanism.release([[0.0]], rng=ReplayableWords(1, "key")) == 3.0


class Randomises:
    """As in diffprivlib."""

    def randomise(self, value: Any) -> Any:
        assert type(value) in (int, float)
        return value + (0.5 if type(value) is float else 1)


class Measurement:
    """As in OpenDP."""

    input_carrier_type = "Vec<f64>"

    def __call__(self, value: Any) -> Any:
        assert type(value) is list
        return [x + 1 for x in value]


def test_numbers_of_python() -> None:
    words = ReplayableWords(1, "key")
    assert adapted(Randomises()).release(np.array([[1.0]]), rng=words) == 1.5
    assert adapted(Randomises()).release(np.array([[1]]), rng=words) == 2
    measured = adapted(Measurement(), attributes=2)
    assert measured.release(np.ones((1, 2)), rng=words) == [2.0, 2.0]
    assert adapted(Measurement()).release(np.ones((1, 1)), rng=words) == [2.0]
    assert adapted(Randomises()).name == "Randomises"


class Strict:
    """Takes one type alone, as the libraries do."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def randomise(self, value: Any) -> Any:
        if type(value) is not self.kind:
            raise TypeError(f"must be {self.kind.__name__}")
        return value

    __call__ = randomise


@pytest.mark.parametrize("kind", [float, int])
def test_a_mechanism_gets_the_numbers_that_it_takes(kind: type) -> None:
    mechanism = adapted(Strict(kind))
    released = mechanism.release(np.array([[3.0]]), rng=ReplayableWords(1, "key"))
    assert released == 3
    assert type(released) is kind


@pytest.mark.parametrize(("carrier", "kind"), [("f64", float), ("i32", int), ("bool", bool)])
def test_a_measurement_gets_its_carrier_type(carrier: str, kind: type) -> None:
    measurement: Any = Strict(kind)
    measurement.input_carrier_type = carrier
    measurement.randomise = None
    for records in (np.ones((1, 1)), np.ones((1, 1), dtype=int)):
        released = adapted(measurement).release(records, rng=ReplayableWords(1, "key"))
        assert released == 1
        assert type(released) is kind


def test_other_numbers_are_refused() -> None:
    words = ReplayableWords(1, "key")
    with pytest.raises(ParameterError, match=r"record=0\.5 must be a whole number"):
        adapted(Strict(int)).release(np.array([[0.5]]), rng=words)
    with pytest.raises(ParameterError, match="takes a number: TypeError: must be str"):
        adapted(Strict(str))
    with pytest.raises(ParameterError, match="attributes=2 must be 1"):
        adapted(Strict(int), attributes=2)
    measurement: Any = Measurement()
    measurement.input_carrier_type = "DataFrame"
    with pytest.raises(ParameterError, match="input_carrier_type=DataFrame must be numbers"):
        adapted(measurement)
    measurement.input_carrier_type = "f64"
    with pytest.raises(ParameterError, match="attributes=2 must be 1"):
        adapted(measurement, attributes=2)


def test_sets_stay_sets() -> None:
    released = adapted(lambda record: {1, 2}).release([[0.0]], rng=ReplayableWords(1, "key"))
    assert released == {1, 2}


@pytest.mark.parametrize("function", [7, lambda: 0, lambda a, b, c: 0])
def test_what_is_no_mechanism_is_refused(function: Any) -> None:
    with pytest.raises(ParameterError, match="function of a record"):
        adapted(function)


def test_its_record_can_not_be_spoilt() -> None:
    def function(record: Any, rng: np.random.Generator) -> Any:
        record += 1
        return record

    records = np.zeros((1, 1))
    adapted(function).release(records, rng=ReplayableWords(1, "key"))
    assert records.tolist() == [[0.0]]


def test_the_halved_scale_is_found_and_the_twin_is_not_accused() -> None:
    for function, verdict in ((laplace, "no_violation_found"), (halved, "violation")):
        report = run.audit(adapted(function), draws=250, kinds=ON_PAPER, workers=1, seed=3)
        assert report.verdict == verdict
        assert sum(finding.level for finding in report.findings) <= 0.01
        drawn = [f for f in report.findings if f.audit in ("black-box", "sequential")]
        assert {f.verdict for f in drawn} == {verdict}


def test_precision_finds_doubles() -> None:
    report = run.audit(adapted(laplace), draws=1000, kinds=["precision"], workers=1)
    assert report.verdict == "violation"


def test_the_same_findings_for_any_number_of_workers() -> None:
    one, two = (
        run.audit(adapted(halved), draws=500, kinds=["black-box"], workers=workers, seed=5)
        for workers in (1, 2)
    )
    assert [f.statement for f in one.findings] == [f.statement for f in two.findings]


def raises(record: Any, rng: np.random.Generator) -> Any:
    if record[0] != 0:
        raise KeyError("lost")
    return rng.laplace()


def hangs(record: Any, rng: np.random.Generator) -> Any:
    while record[0] != 0:
        pass
    return rng.laplace()


def nan(record: Any, rng: np.random.Generator) -> Any:
    return record * np.nan


def always(record: Any, rng: np.random.Generator) -> Any:
    raise KeyError("lost")


def reshapes(record: Any, rng: np.random.Generator) -> Any:
    return np.zeros(1 + int(record[0] != 0))


@pytest.mark.parametrize(
    ("function", "says", "verdict"),
    [
        (raises, "KeyError", "violation"),  # on one side alone: it tells them apart
        pytest.param(reshapes, "shape", "violation", marks=pytest.mark.nightly),
        (hangs, "longer than", "inconclusive"),
        (always, "KeyError: 'lost'", "inconclusive"),
        (nan, "", "no_violation_found"),  # and nothing else
    ],
)
def test_a_mechanism_that_fails_is_never_passed(function: Any, says: str, verdict: str) -> None:
    pairs = Matrices(adjacency=UNIT, domain=None, attributes=1).extremes()
    report = run.audit(adapted(function), draws=50, pairs=pairs, workers=1, time_limit=0.1)
    assert report.verdict == verdict
    assert len(report.failed) == (2 if verdict == "inconclusive" else 0)
    assert all(says in reason and function.__name__ in reason for reason in report.failed)
    assert not report.failed or "up from zero" in report.failed[0]
    assert says in str(report)
    found = {finding.audit for finding in report.violations}
    assert found >= ({"grey-box", "determinism", "black-box"} if verdict == "violation" else set())


def test_a_pair_that_fails_beside_one_that_does_not_makes_it_inconclusive() -> None:
    def function(record: Any, rng: np.random.Generator) -> Any:
        if record[0] < 0:
            raise KeyError("negative")
        return record + rng.laplace()

    pairs = [
        Pair(name=f"from {low}", record=np.array([[low]]), neighbour=np.array([[low + 1]]))
        for low in (0.0, -2.0)
    ]
    report = run.audit(adapted(function), pairs=pairs, draws=100, kinds=["black-box"], workers=1)
    assert [finding.verdict for finding in report.findings] == ["no_violation_found"]
    assert report.verdict == "inconclusive"


def test_pairs_must_be_neighbours() -> None:
    far = Pair(name="far", record=np.zeros((1, 1)), neighbour=np.full((1, 1), 2.0))
    with pytest.raises(ParameterError, match="neighbours"):
        run.audit(adapted(laplace), draws=50, pairs=[far])


@pytest.mark.parametrize("kinds", [["white-box"], ["exhaustive"], []])
def test_a_kind_that_does_not_apply_is_refused(kinds: Any) -> None:
    with pytest.raises(ParameterError, match="black-box"):
        run.audit(adapted(laplace), draws=50, kinds=kinds)


def test_extreme_pairs_lie_in_the_domain() -> None:
    domain = Box(low=Fraction(0), high=Fraction(1, 2))
    pairs = Matrices(adjacency=UNIT, domain=domain, attributes=2).extremes()
    data = [(pair.record.tolist(), pair.neighbour.tolist()) for pair in pairs]
    assert data[:2] == [([[0.0, 0.0]], [[0.5, 0.0]]), ([[0.5, 0.5]], [[0.0, 0.5]])]
    assert ([[0.0, 0.0]], [[0.0, 0.5]]) in data  # every place, and not the first alone


def test_pairs_that_a_function_is_made_with_are_audited() -> None:
    pair = Pair(name="own", record=np.array([[0.0]]), neighbour=np.array([[1.0]]))
    halved_again = adapted(lambda x, rng: x + rng.laplace(scale=0.2, size=1), pairs=[pair])
    report = run.audit(halved_again, kinds=["black-box"], draws=400, alpha=1e-4, workers=1)
    assert report.verdict == "violation"
    assert not report.searched
    wide = Pair(name="wide", record=np.zeros((2, 1)), neighbour=np.array([[0.0], [1.0]]))
    with pytest.raises(ParameterError, match="one record"):
        run.audit(adapted(laplace, pairs=[wide]), draws=100)


def test_an_iterator_is_read_once() -> None:
    """It was read to see of what kind it is, and then again, when it was empty."""

    def listed(data: Any, rng: Any) -> Any:
        return iter([float(data[0])])

    report = run.audit(
        listed,
        epsilon=1,
        adjacency=Attribute(beta=Fraction(1)),
        of="record",
        pairs=[Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))],
        kinds=["black-box"],
        draws=100,
        search=False,
        workers=1,
    )
    assert report.verdict == "violation"
