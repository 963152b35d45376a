"""What a function is a function of: it is declared, and the audit runs that and nothing else."""

from __future__ import annotations

import copy
import functools
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dpverify as dpv
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing import audit as run
from dpverify.auditing.report import Report
from dpverify.auditing.spaces.matrices import Matrices
from dpverify.auditing.spaces.rows import Rows
from dpverify.auditing.targets.functions import adapt
from dpverify.auditing.targets.pairs import space_of
from dpverify.data.adjacency import (
    Attribute,
    Edge,
    Record,
    Row,
)
from dpverify.data.domain import Box, Graphs
from dpverify.errors import ParameterError
from dpverify.privacy import Exhaustive, Mechanism, Pair
from dpverify.sampling.words import ReplayableWords
from tests.helpers.profiles import day_and_night, thinned

UNIT = Attribute(beta=Fraction(1))
BITS = Box(low=Fraction(0), high=Fraction(1))
CLAIM = ApproxDP(epsilon=Fraction(1))
FLAG = {"c": dpv.Integers(0, 1)}


def of(function: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"adjacency": Record(), "claim": CLAIM}
    return adapt(function, **settings | options)


def audited(mechanism: Mechanism, **options: Any) -> Report:
    kinds: Any = ["black-box"]
    return run.audit(mechanism, **{"draws": 250, "seed": 1, "workers": 1, "kinds": kinds} | options)


def mean(data: Any, rng: np.random.Generator) -> float:
    return float(np.mean(data) + rng.laplace(scale=1 / len(data)))


def too_little_noise(data: Any, rng: np.random.Generator) -> float:
    """Its ε is n: 1 at a single row."""
    return float(np.mean(data) + rng.laplace(scale=1 / len(data) ** 2))


def never(*_: Any) -> None:
    raise AssertionError("drawn from")


def undrawn(data: Any) -> Any:
    never()


# --- declared -----------------------------------------------------------------------------------


def test_what_is_not_declared_is_refused_with_both_ways_out() -> None:
    with pytest.raises(ParameterError, match=r'missing.*of="record".*of="dataset"'):
        of(mean)
    with pytest.raises(ParameterError, match=r"of=rows must be record or dataset"):
        of(mean, of="rows")


@pytest.mark.parametrize("adjacency", [Edge(weight=Fraction(1)), Row(radius=Fraction(1))])
def test_an_adjacency_of_data_sets_says_so_itself(adjacency: Any) -> None:
    assert of(mean, adjacency=adjacency).of == "dataset"
    with pytest.raises(ParameterError, match=r"of=record must be dataset for \w+\. Leave it out"):
        of(mean, adjacency=adjacency, of="record")


@dataclass(frozen=True)
class AddOrRemove:
    """Somebody's own adjacency, of data sets of any kind with a length."""

    unit = "one row, added or removed"

    def relates(self, data: Any, neighbour: Any) -> bool:
        rows = [x.shape[0] if hasattr(x, "shape") else len(x) for x in (data, neighbour)]
        return bool(abs(rows[0] - rows[1]) == 1)


class OfRecords(AddOrRemove):
    of = "record"


def test_an_adjacency_of_ones_own_may_say_so_too() -> None:
    assert of(mean, adjacency=OfRecords()).of == "record"
    with pytest.raises(ParameterError, match="of=missing"):
        of(mean, adjacency=AddOrRemove())


class Randomises:
    def randomise(self, value: float) -> float:
        return value


class Measurement:
    input_carrier_type = "Vec<f64>"

    def __call__(self, values: Sequence[float]) -> Any:
        assert type(values) is list
        return values


def test_objects_of_libraries() -> None:
    assert of(Randomises()).of == "record"
    with pytest.raises(ParameterError, match="must be record for a mechanism of a single number"):
        of(Randomises(), of="dataset")
    with pytest.raises(ParameterError, match="of records, for a single number"):
        of(Randomises(), adjacency=Edge(weight=Fraction(1)))
    with pytest.raises(ParameterError, match="of=missing"):
        of(Measurement())
    words = ReplayableWords(1, "key")
    record = of(Measurement(), of="record", attributes=3)
    assert record.release(np.ones((1, 3)), rng=words) == [1.0, 1.0, 1.0]
    rows = of(Measurement(), of="dataset", rows=3)
    assert rows.attributes == 1
    assert rows.release(np.ones((3, 1)), rng=words) == [1.0, 1.0, 1.0]
    wide = Pair(name="wide", record=np.zeros((3, 2)), neighbour=np.eye(3, 2))
    with pytest.raises(ParameterError, match=r'of shape \(n,\) or \(n, 1\).*of="record"'):
        audited(rows, pairs=[wide])


# --- a mean whose noise falls with n² -----------------------------------------------------------


def test_too_little_noise_is_found_and_its_twin_is_not_accused() -> None:
    for function, verdict in ((mean, "no_violation_found"), (too_little_noise, "violation")):
        mechanism = of(function, of="dataset", domain=BITS, rows=(1, 10), attributes=1)
        assert audited(mechanism).verdict == verdict
        record = np.zeros((10, 1))
        neighbour = record.copy()
        neighbour[7] = 1
        pair = Pair(name="the eighth of ten", record=record, neighbour=neighbour)
        assert audited(of(function, of="dataset"), pairs=[pair]).verdict == verdict


def test_no_size_is_taken_by_default() -> None:
    with pytest.raises(ParameterError, match=r"doesn't state its number of rows.*`rows`"):
        audited(of(undrawn, of="dataset", domain=BITS, attributes=1))
    with pytest.raises(ParameterError, match="doesn't state its number of attributes"):
        audited(of(undrawn, of="dataset", domain=BITS, rows=3))
    with pytest.raises(ParameterError, match="doesn't state its number of attributes"):
        audited(of(undrawn, of="record", domain=BITS))
    with pytest.raises(
        ParameterError, match="rows=3 must be left out for a function of one record"
    ):
        of(undrawn, of="record", rows=3)
    mechanism = of(undrawn, of="dataset", rows=[np.int64(2), 3], attributes=np.int64(2))
    assert (mechanism.rows, mechanism.attributes) == ((2, 3), 2)
    for rows in (0, (), (1, 0), 2.5, "ten", True):
        with pytest.raises(ParameterError, match=r"rows=.* must be "):
            of(undrawn, of="dataset", rows=rows)


@pytest.mark.parametrize("adjacency", [UNIT, Record()])
def test_data_sets_of_the_sizes_asked_for_with_any_row_changed(adjacency: Any) -> None:
    rows = (1, 3, 7)
    space = Matrices(adjacency=adjacency, domain=BITS, attributes=2, rows=rows)
    extreme = space.extremes()
    assert {len(pair.record) for pair in extreme} == set(rows)
    assert len({pair.name for pair in extreme}) == len(extreme)
    drawn = space.drawn(60, ReplayableWords(1, "test"))
    assert {len(pair.record) for pair in drawn} == set(rows)
    assert all(space.fits(pair) for pair in [*extreme, *drawn])
    changed = {
        int(np.flatnonzero((pair.record != pair.neighbour).any(axis=1))[0])
        for pair in drawn
        if len(pair.record) == 7
    }
    assert len(changed) > 3


def test_a_graph_is_one_data_set_whatever_the_rows() -> None:
    edge = Edge(weight=Fraction(1))

    def edges(graph: Any, rng: np.random.Generator) -> float:
        assert graph.shape == (4, 4)
        return float(graph.sum() / 2 + rng.laplace())

    mechanism = of(edges, adjacency=edge, domain=Graphs(), attributes=4)
    assert audited(mechanism, draws=200).verdict == "no_violation_found"


# --- pairs that don't fit -----------------------------------------------------------------------

ZEROS = np.zeros((4, 2))
ONE = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
MISFITS: list[tuple[str, dict[str, Any], Any, Any]] = [
    ('of="dataset", and', {"of": "record"}, ZEROS, ONE),
    ("one record", {"of": "record"}, sparse.csr_array(ZEROS[:1]), sparse.csr_array(ONE[:1])),
    ("one record", {"of": "record"}, [{"age": 1}], [{"age": 2}]),
    ('of="record"', {"of": "dataset"}, np.zeros(4), np.ones(4)),
    ("different", {"of": "dataset"}, ONE, ONE.copy()),
    ("of the records' shape", {"of": "dataset"}, ZEROS, ZEROS[:3]),
    ("finite number", {"of": "dataset"}, ZEROS, np.where(ONE > 0, np.nan, 0.0)),
    ("in the declared domain", {"of": "dataset", "domain": BITS}, ZEROS, 3 * ONE),
    ("attributes=3 must be 2", {"of": "dataset", "attributes": 3}, ZEROS, ONE),
]


@pytest.mark.parametrize(("says", "options", "record", "neighbour"), MISFITS)
def test_a_pair_that_does_not_fit_is_refused_before_anything_is_drawn(
    says: str, options: dict[str, Any], record: Any, neighbour: Any
) -> None:
    pair = Pair(name="mine", record=record, neighbour=neighbour)
    with pytest.raises(ParameterError, match=says) as caught:
        audited(of(undrawn, **options), pairs=[pair])
    assert ".." not in str(caught.value)


@pytest.mark.parametrize("word", ["journal", "progress"])
def test_what_an_audit_is_kept_or_told_by_is_checked_before_anything_is_drawn(word: str) -> None:
    asked: dict[str, Any] = {
        word: "audit.json",
        "pairs": [Pair(name="mine", record=ZEROS, neighbour=ONE)],
    }
    with pytest.raises(ParameterError, match=f"{word}=audit.json must be"):
        dpv.audit(of(undrawn, of="dataset"), **asked)


def test_a_pair_alone_is_no_list() -> None:
    pair: Any = Pair(name="mine", record=ZEROS, neighbour=ONE)
    with pytest.raises(ParameterError, match="in a list"):
        audited(of(undrawn, of="dataset"), pairs=pair)


def test_one_record_may_be_flat_or_a_row() -> None:
    def noisy(record: Any, rng: np.random.Generator) -> Any:
        assert record.shape == (2,)
        return record + rng.laplace(size=2)

    for record in (np.zeros(2), np.zeros((1, 2)), [0.0, 0.0], [[0, 0]]):
        pair = Pair(name="mine", record=record, neighbour=np.ones(np.shape(record)))
        assert not audited(of(noisy, of="record"), pairs=[pair], draws=50).failed


class ToMore(AddOrRemove):
    def relates(self, data: Any, neighbour: Any) -> bool:
        return len(neighbour) == len(data) + 1


def test_an_adjacency_of_one_order_is_refused() -> None:
    pair = Pair(name="mine", record=[1], neighbour=[1, 2])
    with pytest.raises(ParameterError, match="the same in both orders"):
        audited(of(undrawn, of="dataset", adjacency=ToMore()), pairs=[pair])


class Elementwise(AddOrRemove):
    def relates(self, data: Any, neighbour: Any) -> Any:
        return np.abs(np.subtract(data, neighbour)) <= 1


def test_an_adjacency_that_does_not_say_yes_or_no_is_named() -> None:
    pair = Pair(name="mine", record=[1, 2], neighbour=[1, 3])
    with pytest.raises(ParameterError, match=r"`relates` says whether .* ambiguous"):
        audited(of(undrawn, of="dataset", adjacency=Elementwise()), pairs=[pair])


class Anything(AddOrRemove):
    def relates(self, data: Any, neighbour: Any) -> bool:
        return True


def rows_that_come() -> Any:
    yield 1


@pytest.mark.parametrize("adjacency", [Anything(), dpv.AddRemove()])
@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: sqlite3.connect(":memory:"), "sqlite3.Connection"),
        (rows_that_come, "generator"),
        (lambda: [threading.Lock()], "_thread.lock"),
        (lambda: {"log": sys.__stdout__}, "_io."),
    ],
)
def test_data_that_can_not_be_copied_are_named_and_no_adjacency(
    make: Any, named: str, adjacency: Any
) -> None:
    pair = Pair(name="mine", record=make(), neighbour=make())
    with pytest.raises(ParameterError, match=rf"can be copied, .*{named}.* a file's path") as told:
        audited(of(undrawn, of="dataset", adjacency=adjacency), pairs=[pair])
    assert "djacency" not in str(told.value)
    assert "relates" not in str(told.value)


def test_data_that_differ_in_what_is_no_number_are_different() -> None:
    pd: Any = pytest.importorskip("pandas")
    frames = [pd.DataFrame({name: [1.0]}) for name in "ab"]
    vectors = [[{"v": np.array([1, last])}] for last in (2, 3)]
    zeros = [[{"x": -0.0}, {"x": 0.0}], [{"x": 0.0}, {"x": -0.0}]]
    for record, neighbour in (frames, vectors, zeros):
        pair = Pair(name="mine", record=record, neighbour=neighbour)
        mechanism = of(lambda data, rng: rng.laplace(), of="dataset", adjacency=Anything())
        assert audited(mechanism, pairs=[pair]).verdict == "no_violation_found"
        same = Pair(name="mine", record=record, neighbour=copy.deepcopy(record))
        with pytest.raises(ParameterError, match="different data sets"):
            audited(mechanism, pairs=[same])


def test_equal_data_are_equal_whichever_texts_are_one_object() -> None:
    one, other = (" ".join(words) for words in [["South", "Bath"]] * 2)
    pair = Pair(name="mine", record=[{"city": one}] * 2, neighbour=[{"city": one}, {"city": other}])
    with pytest.raises(ParameterError, match="different data sets"):
        audited(of(undrawn, of="dataset", adjacency=dpv.AddRemove()), pairs=[pair])


def test_an_adjacency_of_ones_own_can_not_be_searched() -> None:
    pair = Pair(name="mine", record=[1], neighbour=[1, 2])
    mechanism = of(undrawn, of="dataset", adjacency=AddOrRemove(), rows=2, attributes=1)
    for options in ({}, {"pairs": [pair], "search": True}):
        with pytest.raises(ParameterError, match=r"an adjacency of dpverify.*Name the pairs"):
            audited(mechanism, **options)


@pytest.mark.parametrize("name", day_and_night("", "a", "é", "“two words”"))
def test_a_pair_may_have_any_name(name: str) -> None:
    pair = Pair(name=name, record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    kinds = ["determinism", "precision", "black-box", "trade-off", "sequential", "grey-box"]
    report = audited(of(mean, of="dataset"), pairs=[pair], kinds=kinds, draws=100)
    assert not report.failed
    assert not [f for f in report.findings if f.statement.startswith("Could not be audited")]


@pytest.mark.parametrize("name", ["a\nb", "\ud800", 7])
def test_a_name_that_can_not_be_printed_is_refused(name: Any) -> None:
    pair = Pair(name=name, record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    with pytest.raises(ParameterError, match="printable"):
        audited(of(undrawn, of="dataset"), pairs=[pair])


# --- the whole data set, of every kind ----------------------------------------------------------


class Frame:
    """A table, as pandas has it: an array by its interface, with a length and named columns."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)
        self.columns = ["age"]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


WHOLE: list[tuple[Callable[[Any], float], Any, Any]] = [
    (np.sum, np.ones((3, 2)), np.ones((4, 2))),
    (lambda data: data.sum(), sparse.csr_array(np.ones((3, 2))), sparse.csr_array(np.ones((4, 2)))),
    (lambda data: data.values[:, data.columns.index("age")].sum(), Frame([[1]]), Frame([[1], [2]])),
    (lambda data: sum(each["age"] for each in data), [{"age": 1}], [{"age": 1}, {"age": 2}]),
    (sum, [1, 2, 3], [1, 2]),
    (lambda data: sum(map(len, data)), [[1], [2, 3]], [[1]]),
    (len, "abc", "ab"),
]


@pytest.mark.parametrize(("total", "record", "neighbour"), thinned(WHOLE, 3, rows=True))
def test_the_function_gets_what_the_pair_holds(
    total: Callable[[Any], float], record: Any, neighbour: Any
) -> None:
    seen: set[type] = set()

    def function(data: Any, rng: np.random.Generator) -> float:
        seen.add(type(data))
        return total(data) + rng.laplace(scale=3)

    pair = Pair(name="one more", record=record, neighbour=neighbour)
    mechanism = of(function, of="dataset", adjacency=AddOrRemove())
    kinds = ["determinism", "precision", "black-box", "trade-off", "sequential", "grey-box"]
    report = audited(mechanism, pairs=[pair], kinds=kinds, draws=100)
    assert seen == {type(record)}
    assert not report.failed


def test_a_data_set_of_another_kind_is_not_searched() -> None:
    pair = Pair(name="mine", record=Frame([[1]]), neighbour=Frame([[2]]))
    with pytest.raises(ParameterError, match="search=True must be left out"):
        audited(of(undrawn, of="dataset"), pairs=[pair], search=True)


def test_what_a_release_changes_in_its_argument_is_gone_at_the_next() -> None:
    """Else noise adds up in the data, and hides what is wrong."""

    def added(data: Any, rng: np.random.Generator) -> Any:
        data += rng.laplace(scale=0.01, size=data.shape)
        return data.copy()

    @dataclass(frozen=True)
    class Adds(Mechanism):
        adjacency = Record()

        def release(self, records: Any, *, rng: Any) -> Any:
            return added(records, np.random.default_rng(int(rng.words(1)[0])))

        def privacy(self) -> ApproxDP:
            return CLAIM

    pair = Pair(name="mine", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    for mechanism in (Adds(), of(added, of="dataset"), of(added, of="record")):
        assert audited(mechanism, pairs=[pair]).verdict == "violation"
        assert pair.record.item() == 0


def test_a_release_of_two_numbers_is_not_of_two_rows() -> None:
    """Its halves may depend on each other, as they are one output."""

    @dataclass(frozen=True)
    class TwiceTheSame(Mechanism):
        adjacency = Record()

        def release(self, records: Any, *, rng: Any) -> Any:
            return np.repeat(rng.words(1) % 2, 2)

        def privacy(self) -> ApproxDP:
            return CLAIM

    pair = Pair(name="mine", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    twice = of(lambda data, rng: np.repeat(rng.integers(2), len(data)), of="dataset")
    for mechanism in (TwiceTheSame(), twice):
        report = audited(mechanism, pairs=[pair], kinds=["determinism"])
        assert report.verdict == "no_violation_found"


def test_several_rows_are_not_enumerated_by_the_first() -> None:
    @dataclass(frozen=True)
    class Enumerated(Mechanism, Exhaustive):
        adjacency = Record()

        def release(self, records: Any, *, rng: Any) -> Any:
            return np.asarray(records)

        def distribution(self, record: Any) -> Any:
            return {float(record[0]): Fraction(1)}

        def privacy(self) -> ApproxDP:
            return CLAIM

    row, other = np.zeros((1, 1)), np.ones((1, 1))
    pair = Pair(name="mine", record=row, neighbour=other)
    assert audited(Enumerated(), pairs=[pair], kinds=["exhaustive"]).verdict == "violation"
    rest = np.zeros((1, 1))
    several = Pair(
        name="mine", record=np.stack([rest, row])[:, 0], neighbour=np.stack([rest, other])[:, 0]
    )
    report = audited(Enumerated(), pairs=[several], kinds=["exhaustive"])
    assert report.verdict == "inconclusive"
    assert "single records" in report.findings[0].statement


# --- what is called -----------------------------------------------------------------------------


async def later(data: Any, rng: Any) -> Any:
    return data


def one_by_one(data: Any, rng: Any) -> Any:
    yield data


class Later:
    async def __call__(self, data: Any) -> Any:
        return data


def any_arguments(*arguments: Any) -> Any:
    return arguments


def generator_first(rng: Any, data: Any) -> Any:
    return data


def generator_third(data: Any, verbose: Any, rng: Any = None) -> Any:
    return data


@pytest.mark.parametrize(
    "function",
    [
        generator_first,
        generator_third,
        later,
        one_by_one,
        Later(),
        functools.partial(later),
        Randomises,
        any_arguments,
        max,
    ],
)
def test_what_gives_no_output_or_takes_anything_is_refused(function: Any) -> None:
    with pytest.raises(ParameterError, match=r"Wrap it in one|not a class"):
        of(function, of="record")


@pytest.mark.parametrize(
    "function",
    [
        lambda data, rng: rng,
        lambda data, noise: noise,
        lambda data, *, rng: rng,
        lambda data, *, generator=None: generator,
        lambda data, scale=1, rng=None: rng,
        functools.partial(lambda bound, data, rng: rng, 1),
    ],
)
def test_a_generator_is_given_wherever_it_stands(function: Any) -> None:
    mechanism = of(function, of="dataset")
    rng = ReplayableWords(1, "key")
    assert mechanism.replayable
    assert isinstance(mechanism.release(np.zeros((1, 1)), rng=rng), np.random.Generator)


def test_a_decorated_function_is_called_as_the_decorator_is() -> None:
    def inner(data: Any, rng: Any) -> Any:
        return rng

    @functools.wraps(inner)
    def hands_on(*arguments: Any) -> Any:
        return inner(*arguments)

    @functools.wraps(inner)
    def draws_its_own(data: Any, verbose: Any = False) -> Any:
        assert verbose is False
        return inner(data, 1)

    assert of(hands_on, of="dataset").generator == ""
    assert of(draws_its_own, of="dataset").generator is None


@pytest.mark.parametrize("what", day_and_night("dataset", "record"))
def test_a_mask_that_is_released_is_not_passed_over(what: Any) -> None:
    def masked(data: Any, rng: Any) -> Any:
        return np.ma.masked_array([rng.laplace()], mask=[np.sum(data) > 0])

    pair = Pair(name="mine", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))
    assert audited(of(masked, of=what), pairs=[pair], draws=200).verdict == "violation"


def test_an_object_that_refuses_zero_is_named() -> None:
    class Picky:
        def randomise(self, value: Any) -> Any:
            raise ValueError("not 0")

    with pytest.raises(ParameterError, match="takes a number: ValueError: not 0"):
        of(Picky())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"adjacency": "attribute"}, "`unit` and `relates`"),
        ({"adjacency": Attribute}, "`unit` and `relates`"),
        ({"domain": (0, 1)}, r"a domain"),
        ({"attributes": 0}, "at least 1"),
        ({"attributes": 2.5}, "a whole number"),
    ],
)
def test_arguments_of_a_wrong_kind_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        of(mean, of="record", **options)


@dataclass(frozen=True)
class NamesPairs(Mechanism):
    """A mechanism with pairs of its own, which may be wrong."""

    pairs: Sequence[Any]
    adjacency: Any = UNIT

    def release(self, records: Any, *, rng: Any) -> Any:
        never()

    def privacy(self) -> ApproxDP:
        return CLAIM

    def worst_pairs(self) -> Sequence[Any]:
        return self.pairs


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (1, r"a Pair\(name"),
        (Pair(name="same", record=ZEROS, neighbour=ZEROS.copy()), "neighbours|different data sets"),
        (Pair(name="far", record=ZEROS, neighbour=3 * ONE), "one of neighbours"),
    ],
)
def test_the_mechanisms_own_pairs_are_neighbours_too(pair: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        audited(NamesPairs([pair]))


@pytest.mark.parametrize("subject", [NamesPairs, Randomises(), Later(), 7])
def test_what_is_no_mechanism_is_refused(subject: Any) -> None:
    with pytest.raises(ParameterError, match="`release`, `adjacency` and `privacy`"):
        audited(subject)


def test_rows_of_a_table_are_of_data_sets() -> None:
    table = dpv.Table({"age": dpv.Integers(0, 9)}, rows=(0, 3))
    with pytest.raises(ParameterError, match=r"of a Table\. Take AddRemove\(\) or Replace\(\)"):
        of(undrawn, adjacency=UNIT, domain=table)


def test_what_an_adjacency_does_not_take_is_said_as_it_says_it() -> None:
    pair = Pair(name="sets", record={1}, neighbour={1, 2})
    with pytest.raises(ParameterError) as refused:
        audited(of(undrawn, of="dataset", adjacency=dpv.AddRemove()), pairs=[pair])
    rule = "data set=set must be a list of rows, a matrix or vector, or a data frame."
    assert str(refused.value) == f"pair='sets' must be of data sets that AddRemove relates: {rule}"


@pytest.mark.parametrize(
    "words",
    [
        {"adjacency": dpv.AddRemove(), "domain": dpv.Table(FLAG, rows=10**12)},
        {"adjacency": dpv.AddRemove(), "domain": dpv.Integers(0, 1), "attributes": 10**12},
        {"adjacency": dpv.AddRemove(), "domain": dpv.Integers(0, 1), "rows": 10**40},
        {"adjacency": dpv.Attribute(1), "rows": 10**12},
        {"adjacency": dpv.Attribute(1), "rows": range(10**12)},
        {"adjacency": dpv.Attribute(1), "attributes": 10**40},
    ],
)
def test_data_sets_that_no_memory_holds_are_refused(words: Any) -> None:
    sizes = {} if isinstance(words.get("domain"), dpv.Table) else {"attributes": 1, "rows": 1}
    with pytest.raises(ParameterError, match="at most"):
        dpv.audit(lambda data, rng: 0.0, epsilon=1, of="dataset", draws=20, **sizes | words)


def test_a_search_makes_no_data_set_of_all_the_rows_that_there_may_be() -> None:
    mechanism = adapt(
        lambda data, rng: 0.0,
        adjacency=dpv.AddRemove(),
        claim=CLAIM,
        domain=dpv.Table(FLAG, rows=(0, 10**12)),
    )
    space = space_of(mechanism, ())
    assert isinstance(space, Rows)
    assert space.rows == (0, 10_000)
