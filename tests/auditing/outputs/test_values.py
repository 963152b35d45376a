"""Any Python value as an output: what it says, and that nothing else decides it."""

from __future__ import annotations

import ctypes
import datetime
import hashlib
import math
import re
import sqlite3
from abc import ABC, abstractmethod
from array import array
from collections import ChainMap, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from statistics import NormalDist
from types import ModuleType, SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import pytest
import scipy.sparse

from dpverify.auditing.outputs import reader
from dpverify.auditing.outputs.arrays import Drawn, joined, raised_in
from dpverify.auditing.outputs.features import features
from dpverify.auditing.outputs.leaves import Block
from dpverify.auditing.outputs.reader import PLACED
from dpverify.auditing.outputs.tables import parts_of
from dpverify.auditing.outputs.values import Value, kept, objects, value_of
from dpverify.errors import DrawError
from dpverify.privacy import Pair

MECHANISM: Any = "for messages"
PAIR = Pair(name="any", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


class Colour(Enum):
    RED = 1


class Model:
    """As scikit-learn's are, when they have learned."""

    def __init__(self) -> None:
        self.coef_ = np.array([1.5, math.nan])
        self.fit_ = print
        self.rng = np.random.default_rng(1)


class Slots:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 3


Named = namedtuple("Named", "x y")  # noqa: PYI024 - as people write it


@pytest.mark.parametrize(
    ("output", "leaves"),
    [
        (None, {"output": "None"}),
        ("yes", {"output": "yes"}),
        ("about 41.5 of 60", {"output": "about # of #", "number 0 in output": 41.5}),
        ("a b", {"'a' in output": 1.0}),
        (b"\x01\x02", {"len(output)": 2.0, "output[1]": 2.0}),
        (math.nan, {"output": "NaN"}),
        (-math.inf, {"output": -math.inf}),
        ([1, None], {"len(output)": 2.0, "output[0]": 1.0, "output[1]": "None"}),
        ((False, True), {"len(output)": 2.0, "output[1]": 1.0, "sum(output)": 1.0}),
        ([], {"len(output)": 0.0}),
        ({"b": 1, "a": 2}, {"len(output)": 2.0, "order of output": "'b', 'a'"}),
        ({"a": 2, "b": [3]}, {"len(output)": 2.0, "output['a']": 2.0, "output['b'][0]": 3.0}),
        ({"x", "y"}, {"len(output)": 2.0, "'x' in output": 1.0}),
        ([("ann", 4.5)], {"'ann' in output": 1.0, "output['ann'][1]": 4.5}),
        ([{"who": "ann", "n": 4}], {"output['ann']['n']": 4.0, "output[0]['n']": 4.0}),
        (Colour.RED, {"output": "Colour.RED"}),
        (Named(1, "z"), {"output['x']": 1.0, "output['y']": "z"}),
        (datetime.timedelta(minutes=1), {"output": 60.0}),
        (datetime.date(1, 1, 2), {"output": 2.0}),
        (datetime.datetime(1970, 1, 2), {"output": 86400.0}),
        (np.datetime64("1970-01-03"), {"output": 2.0}),
        (scipy.sparse.csr_array([[0, 7]]), {"stored in output": 1.0, "output[(0, 1)]": 7.0}),
        (Model(), {"output.coef_[0]": 1.5, "output.coef_[1]": "NaN"}),
        (Slots(), {"output.count": 3.0}),
        (np.array(["a", "b"]), {"output[0]": "a", "'b' in output": 1.0}),
        ((n for n in (1, 2)), {"len(output)": 2.0, "output[1]": 2.0}),
        (np.array([0.0, -0.0]), {"output[1]": "-0.0"}),
        (Fraction(1, 3), {"output.numerator": 1.0, "output.denominator": 3.0}),
    ],
)
def test_leaves(output: Any, leaves: dict[str, Any]) -> None:
    found = value_of(kept(output)).leaves
    assert set(leaves.items()) <= set(found)


def test_tables_by_row_and_by_what_stands_in_a_row() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": ["b", "a"], "n": [2.5, 1.5]})
    both = dict(value_of(frame).leaves), dict(value_of(frame.iloc[::-1]).leaves)
    for leaves in both:
        assert leaves["output['a']['n']"] == 1.5
        assert leaves["output['b']['n']"] == 2.5
    assert both[0]["output[0]['n']"] != both[1]["output[0]['n']"]
    seen, declared = (
        frame.assign(city=pandas.Categorical(frame.city, [*c])) for c in ("ab", "abc")
    )
    assert value_of(seen) != value_of(declared)  # a category without rows
    grouped = dict(value_of(frame.groupby("city")["n"].sum()).leaves)
    assert "'a' in output" in grouped or grouped["len(output)"] == 2


def test_large_arrays_are_blocks() -> None:
    leaves = dict(value_of({"a": np.arange(100.0)}).leaves)
    block = leaves["output['a']"]
    assert isinstance(block, Block)
    assert block.numbers[7] == 7
    outputs = objects([value_of({"a": np.arange(100.0) + n}) for n in range(5)])
    assert features(outputs).matrix(outputs)[3].max() == 102 + 0.0


def test_a_value_is_what_it_was_when_it_was_released() -> None:
    shared = [1, "x"]
    first = kept(shared)
    shared[0] = 2
    assert dict(first.leaves)["output[0]"] == 1
    numbers = np.zeros(2)
    second = kept(numbers)
    numbers += 1
    assert second.tolist() == [0, 0]


def test_a_place_in_memory_says_nothing() -> None:
    class Plain:
        pass

    assert value_of(Plain()) == value_of(Plain())
    told = [Value.of_raised(ValueError(f"no {Plain()!r}")) for _ in range(2)]
    assert told[0] == told[1]


@pytest.mark.parametrize("wrap", [lambda x: {"a": x}, lambda x: [x, None]])
def test_what_lies_deep_is_read(wrap: Callable[[Any], Any]) -> None:
    def nested(rows: int) -> Any:
        output: Any = {"n": rows, "z": 0.25}
        for _ in range(12):
            output = wrap(output)
        return output

    assert value_of(nested(2)) != value_of(nested(3))
    assert any(number == 3.0 for _, number in value_of(nested(3)).leaves)


def test_what_a_list_costs_grows_with_its_depth_and_does_not_double() -> None:
    def leaves(depth: int) -> int:
        output: Any = "a"
        for _ in range(depth):
            output = [output]
        return len(value_of(output).leaves)

    steps = np.diff([leaves(depth) for depth in range(1, 9)], 2)
    assert steps.max() <= 2
    assert ("output[-1][-1][0]", 4.0) in value_of([[[9.0, "a"]], [[5.0], [4.0, "a"]]]).leaves


def test_a_decimal_of_many_digits_is_no_ratio() -> None:
    read = dict(value_of(Decimal("-12." + "3" * 20_000)).leaves)
    assert read["output.mantissa"] == -1.2333333333333333
    assert read["output.magnitude"] == 1
    assert "output.numerator" not in read


def test_what_refers_to_itself_ends() -> None:
    endless: list[Any] = []
    endless += [endless, endless, "x"]
    assert value_of(endless).structure


def test_other_draws_have_no_part_in_an_output() -> None:
    """Alone, among numbers, or beside another kind: the same leaves, hence the same features."""
    for odd in (None, "x", [1, 2, 3], math.nan, {"a": 1}, 2**70, frozenset("a")):
        for output in (1.5, 3, True, [1.0, 2.0], (4, 5), np.array([6, 7]), 2.0**60, {"b"}):
            alone = Drawn.of([kept(output)], MECHANISM, PAIR, 0, [])
            among = Drawn.of([kept(output), kept(odd)], MECHANISM, PAIR, 0, [])
            assert alone.values()[0] == among.values()[0]
            both, _ = joined([alone, alone, among, alone])
            assert value_of(both[0]) == alone.values()[0]
            told, _ = joined([alone, alone], like=objects([value_of(None)]))
            assert told[0] == alone.values()[0]
            learned = features(alone.outputs)
            own, beside = (learned.matrix(each.outputs)[0] for each in (alone, among))
            assert np.array_equal(own, beside)


def test_features_are_learned_from_training_outputs_alone() -> None:
    training = objects([value_of({"a": n % 3, "b": "x"}) for n in range(12)])
    learned = features(training)
    fresh = objects([value_of({"a": 1, "c": 5, "b": "y"}), Value.of_raised(KeyError("b"))])
    matrix = learned.matrix(fresh)
    assert not any("'c'" in name or "'y'" in name for name in learned.names)
    assert matrix.shape == (2, len(learned.names))
    assert np.all(np.isfinite(matrix))
    assert not matrix[1].any()


def test_what_was_raised_is_counted() -> None:
    calm = np.zeros(4)
    raising = objects([Value.of_raised(ValueError("odd")), *(value_of(1.0) for _ in range(3))])
    assert raised_in(calm, calm) == ""
    told = raised_in(raising, calm)
    assert "1 of 4 times on the record and 0 of 4 on the neighbour: ValueError: odd" in told


def test_a_number_of_digits_is_seen() -> None:
    assert value_of("0.50").leaves != value_of("0.5").leaves
    assert ("len(output)", 4.0) in value_of("0.50").leaves


@pytest.mark.parametrize("lazy", [lambda: 1, [partial(int, 1)], {"a": lambda: 1}])
def test_what_gives_values_when_it_is_called_is_refused(lazy: Any) -> None:
    with pytest.raises(DrawError, match="an audit reads values alone: release what it gives"):
        value_of(lazy)


class _Said(float):
    """A number with attributes."""


class _Told(str):
    """A text with attributes."""


def _with(value: Any, **attributes: Any) -> Any:
    vars(value).update(attributes)
    return value


class _Broken:
    """A collection that can't be gone through."""

    def __len__(self) -> int:
        return 1

    def __contains__(self, value: Any) -> bool:
        return True

    def __iter__(self) -> Any:
        raise ValueError("no")


def _broken_off(secret: int) -> Iterator[int]:
    yield secret
    raise ValueError("no")


class _Array(np.ndarray):
    """An array with attributes."""


class _Untold:
    """An object of which pickle is told nothing."""

    def __init__(self, row: int) -> None:
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Untold, (0,))

    def __getstate__(self) -> None:
        return None


SAME = [*range(99)]


def made(secret: int) -> dict[str, Any]:
    """Outputs of types that are made for them."""

    class Property:
        @property
        def told(self) -> int:
            return secret

        def itself(self) -> int:
            return super().__hash__()

    kind = type("Made", (), {"told": secret})
    return {"attribute": kind(), "property": Property(), "type": kind}


MADE = made(1), made(2)

TOLD_APART = {
    **{f"{how} of a type": (MADE[0][how], MADE[1][how]) for how in MADE[0]},
    "exponent": (Decimal("1.0"), Decimal("1.00")),
    "exponent within": ([Decimal("1.0"), "x"], [Decimal("1.00"), "x"]),
    "far decimals": (Decimal("1e-999999999"), Decimal("-1e-999999999")),
    "the last of many digits": tuple(Decimal("0." + "7" * 20_000 + n) for n in "12"),
    "sign of a decimal zero": (Decimal("0"), Decimal("-0")),
    "digits of a decimal NaN": (Decimal("NaN"), Decimal("NaN1")),
    "truth": (True, 1),
    "truth within": ((True, 1), (1, 1)),
    "truth deep within": ([[True]], [[1]]),
    "one truth of many": ([True, *SAME], [1, *SAME]),
    "truth in a set": ({True}, {1}),
    "kind of set": ({1}, frozenset({1})),
    "whole or not": (1, 1.0),
    "whole or not within": ([1, 2], [1, 2.0]),
    "numpy's or Python's": (1.0, np.float64(1)),
    "precision": (np.float32(1), np.float64(1)),
    "width of an array": (np.array([1], np.int8), np.array([1])),
    "order of bytes": (np.array([1], ">i4"), np.array([1], "<i4")),
    "list or tuple": ([1, 2], (1, 2)),
    "list or array": ([1, 2], np.array([1, 2])),
    "number or array": (np.array(1.0), np.float64(1)),
    "text or bytes": ("ab", b"ab"),
    "bytes or array": (b"ab", bytearray(b"ab")),
    "sign of zero": (0.0, -0.0),
    "sign of zero within": ([0.0], [-0.0]),
    "sign of one zero of many": (np.zeros(100), np.r_[-0.0, np.zeros(99)]),
    "place of NaN among many": (np.r_[math.nan, 0, SAME], np.r_[0, math.nan, SAME]),
    "sign of NaN": (math.nan, -math.nan),
    "class of numbers": (1.0, type("Euros", (float,), {})(1)),
    "class of lists": ([1], type("Row", (list,), {})([1])),
    "class of arrays": (np.ones((1, 1)), np.ones((1, 1)).view(np.matrix)),
    "key": ({1: 0}, {True: 0}),
    "order of many keys": (dict.fromkeys(SAME), dict.fromkeys(SAME[::-1])),
    "attribute": (SimpleNamespace(a=1), SimpleNamespace(a=1.0)),
    "zone": (datetime.datetime(1, 1, 1), datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)),
    "unit": (np.datetime64(1, "s"), np.datetime64(1, "D")),
    "microsecond": tuple(datetime.datetime(9999, 1, 1, 0, 0, 0, n) for n in (1, 2)),
    "end of a word": ("y" * 310 + "a", "y" * 310 + "b"),
    "end of a member": ({"y" * 310 + "a"}, {"y" * 310 + "b"}),
    "end of a key": ({"y" * 310 + "a": 1}, {"y" * 310 + "b": 1}),
    "under a mask": tuple(np.ma.array([1, n], mask=[False, True]) for n in (1, 2)),
    "part beyond the named ones": ([None] * 5000 + [0], [None] * 5000 + [1]),
    "word beyond the named ones": ([None] * 5000 + ["a"], [None] * 5000 + ["b"]),
    "end of a long member": ({"y" * 20_010 + "a", 1}, {"y" * 20_010 + "b", 1}),
    "end of a long key": ({("y" * 20_010 + "a",): 1}, {("y" * 20_010 + "b",): 1}),
    "middle bits": tuple(10**400 + n * 2**64 for n in (0, 1)),
    "middle bits of a numerator": tuple(Fraction(10**400 + n * 2**64, 3) for n in (0, 3)),
    "middle bits within": tuple([10**400 + n * 2**64] for n in (0, 1)),
    "second time of an hour": tuple(datetime.datetime(2000, 1, 1, fold=n) for n in (0, 1)),
    "most that a deque holds": (deque([1], maxlen=5), deque([1], maxlen=6)),
    "truth of an attribute": tuple({"n": 1, "a": _with(_Said(2), h=n)} for n in (False, True)),
    "what a dict makes": (defaultdict(list), defaultdict(dict)),
    "step of an empty range": (range(0, 0, 1), range(0, 0, 2)),
    "further mapping": (ChainMap({"a": 1}), ChainMap({"a": 1}, {"a": 2})),
    "type of an array's items": (array("b", [1]), array("i", [1])),
    "name of a field": tuple(np.array([(1,)], dtype=[(name, int)]) for name in "ab"),
    "width of texts": tuple(np.array(["a"], dtype=width) for width in ("U1", "U9")),
    "what fills a mask": tuple(np.ma.array([1.0], fill_value=n) for n in (0, 1)),
    "attribute of a number": (_Said(1), _with(_Said(1), row=7)),
    "attribute of a number within": (["a", _Said(1)], ["a", _with(_Said(1), row=7)]),
    "attribute of one of several numbers": ([2, _Said(1)], [2, _with(_Said(1), row=7)]),
    "attribute of a text": (_Told("a"), _with(_Told("a"), row=7)),
    "attribute of an array": tuple(_with(np.ones(2).view(_Array), row=n) for n in (7, 8)),
    "what pickle isn't told": (_Untold(1), _Untold(2)),
    "numpy's truth": (np.True_, True),
    "sign of a numeral": ("+1", "01"),
    "form of a numeral": ("10.00", "1.0e1"),
    "letter of an exponent": ("1e5", "1E5"),
    "decimals of two numerals": ("1.5 2.50", "1.50 2.5"),
    "numeral beyond doubles": ("1e999", "2e999"),
    "digits beyond a double": ("0.10000000000000000001", "0.10000000000000000002"),
    "digits of another script": ("\u0661", "\u0662"),
    "one numeral of many": tuple(" ".join(map(str, [*range(60), n])) for n in (3, 4)),
    "bits of one NaN of many": tuple(
        np.r_[np.array([0x7FF8 << 48 | n], np.uint64).view(float), np.zeros(99)] for n in (0, 1)
    ),
    "high bits": tuple(10**5000 + n * 2**3000 for n in (0, 1)),
    "bytes in a state": tuple((ctypes.c_double * 2)(1, n) for n in (1, 2)),
    "large number beside": tuple(deque([1], maxlen=2**60 + n) for n in (0, 1)),
    "state of two numbers": (NormalDist(1, 2), NormalDist(2, 2)),
    "masked or not": (np.ma.masked, np.ma.array(1.0)),
    "category that no row has": tuple(
        pandas.Categorical(["a"], categories=["a", more]) for more in "bc"
    ),
    "whole number beyond doubles beside one": tuple((np.uint64(2**63 + n), 0.5) for n in (0, 1)),
    "name of a part beyond the named ones": tuple([None] * 5000 + [{n}] for n in (1, 1.0)),
    "order of numbers beyond the named ones": (
        [None, *[0.5] * 5000, 1, 2],
        [None, *[0.5] * 5000, 2, 1],
    ),
    "beside the parts of an iterator": (iter([deque([1], 3)]), iter([deque([1], 4)])),
    "attribute of a member": ({_Said(1), "a"}, {_with(_Said(1), row=7), "a"}),
    "attribute of an exception": (ValueError("a"), _with(ValueError("a"), row=7)),
    "what stands before an exception": (_broken_off(1), _broken_off(2)),
    "what can't be iterated": tuple(_with(_Broken(), row=row) for row in (7, 8)),
    "columns called as the index": tuple(
        pandas.DataFrame({"a": [row]}, index=pandas.Index([5], name="a")) for row in (7, 8)
    ),
    "columns called as a level": tuple(
        pandas.DataFrame(
            {"a": [row]}, index=pandas.MultiIndex.from_arrays([[1], [2]], names=["a", "b"])
        )
        for row in (7, 8)
    ),
}


def _holder(function: Any) -> Any:
    """An object with a function, which pickle can't follow."""
    return SimpleNamespace(unread=lambda: None, predict=function)


def _called(n: int) -> Any:
    class Called:
        def __call__(self) -> int:
            return n

    return Called()


def _prepared(n: int) -> Any:
    class Prepared:
        shown = cached_property(lambda self: n)

    return Prepared()


def _by_default(n: int) -> Any:
    def answer(more: int = n) -> int:
        return more

    return answer


def _own_error(n: int) -> Exception:
    error: Exception = type("Own", (Exception,), {"row": n})("a")
    return error


_CARRYING: dict[str, Callable[[int], Any]] = {
    "closure": lambda n: _holder(lambda: n),
    "closure of a closure": lambda n: _holder(partial(map, _called(n).__call__)),
    "default": lambda n: _holder(_by_default(n)),
    "constant": lambda n: _holder(eval(f"lambda: {n}")),  # noqa: S307
    "attribute of a function": lambda n: _holder(_with(lambda: 1, row=n)),
    "partial": lambda n: _holder(partial(lambda: n)),
    "method": lambda n: _holder(NormalDist(n).pdf),
    "callable": lambda n: _holder(np.poly1d([1, n])),
    "cache": lambda n: lru_cache(lambda: n),
    "each number": lambda n: np.vectorize(lambda x: n),
    "call": _called,
    "prepared": _prepared,
    "base": lambda n: type("Own", (type("Base", (), {"row": n}),), {})(),
    "exception": _own_error,
}
TOLD_APART |= {
    f"number that a function holds: {way}": (made(5), made(6)) for way, made in _CARRYING.items()
}


def test_a_class_that_an_exception_was_given_is_read() -> None:
    own, other = (Value.of_raised(_own_error(n)) for n in (5, 6))
    assert own.leaves != other.leaves


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (memoryview(array("q", [0])), memoryview(array("Q", [0]))),
        (memoryview(bytes(6)).cast("B", [2, 3]), memoryview(bytes(6)).cast("B", [3, 2])),
        (
            type("Made", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_int)]})(1),
            type("Made", (ctypes.Structure,), {"_fields_": [("b", ctypes.c_int)]})(1),
        ),
        ((ctypes.c_int8 * 2)(1, 1), (ctypes.c_uint8 * 2)(1, 1)),
        (
            datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
            datetime.datetime(2020, 1, 1, tzinfo=ZoneInfo("UTC")),
        ),
    ],
)
def test_types_of_memory_and_zones_are_told(one: Any, other: Any) -> None:
    assert value_of(one) == value_of(one)
    assert value_of(one).structure != value_of(other).structure


def test_what_a_function_of_an_object_knows_by_name_says_no_more() -> None:
    """Classes and modules next to it are neither read nor refused."""

    class Shape(ABC):
        @abstractmethod
        def area(self) -> float: ...

    @dataclass
    class Square(Shape):
        side: float

        def area(self) -> float:
            return float(np.square(self.side)) if self.side else Square(1.0).area()

    def forth(number: int) -> int:
        return back(number - 1) if number else 0

    def back(number: int) -> int:
        return forth(number)

    square: Any = Square(2.0)
    square.forth, square.modules, square.own = forth, lambda: np, square.area
    value = value_of(square)
    assert value == value_of(square)
    assert len([name for name, _ in value.leaves if not PLACED.search(name)]) < 60


@pytest.mark.parametrize("name", TOLD_APART)
def test_what_python_tells_apart_is_told_apart(name: str) -> None:
    """By itself, stacked with others of its kind, and stacked with the other."""
    own, other = (kept(output) for output in TOLD_APART[name])
    assert value_of(own).leaves != value_of(other).leaves
    sides = [Drawn.of([each] * 6, MECHANISM, PAIR, 0, []) for each in (own, other)]
    learned = features(np.concatenate(joined(sides)))
    told, otherwise = (learned.matrix(side) for side in joined(sides))
    assert not np.array_equal(told, otherwise)
    assert np.array_equal(told, np.tile(told[0], (6, 1)))


def test_tables_are_told_apart_by_what_is_beside_their_values() -> None:
    pandas = pytest.importorskip("pandas")
    plain, said = pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [1]})
    said.attrs["rows"] = 7
    days = pandas.date_range("2000", periods=2, freq="D")
    choice = pandas.Categorical(["a"], categories=["a", "b"])
    for own, other in (
        (plain, said),
        (plain, pandas.DataFrame({"a": np.array([1], np.int8)})),
        (pandas.Series([1]), pandas.Series([1], dtype="int8")),
        (pandas.Series([1], name="a"), pandas.Series([1], name="b")),
        (pandas.Series([1, 2]), pandas.Series([1, 2], index=range(5, 7))),
        (plain, plain.rename_axis(columns="b")),
        (plain, plain.set_flags(allows_duplicate_labels=False)),
        (plain, pandas.DataFrame([[1]], columns=pandas.CategoricalIndex(["a"]))),
        (days, pandas.DatetimeIndex(list(days))),
        (pandas.Index([1], dtype="int8"), pandas.Index([1])),
        (pandas.Timestamp("2000").as_unit("s"), pandas.Timestamp("2000").as_unit("ns")),
        (choice, pandas.Categorical(["a"], categories=["a", "b"], ordered=True)),
        (choice, pandas.Categorical(["a"], categories=["b", "a"])),
        (choice, pandas.Categorical(["a"], categories=["a"])),
    ):
        assert value_of(own).leaves != value_of(other).leaves


def test_more_parts_than_can_be_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_PARTS", 1000)
    endless: list[Any] = []
    endless += [endless] * 9
    with pytest.raises(DrawError, match="more than 1,000 parts: release fewer"):
        value_of(endless)


@pytest.mark.parametrize("array", [False, True])
def test_one_of_a_thousand_parts_has_a_column(array: bool) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(40, 1000))
    numbers[20:, 777] += 10
    outputs = [{"a": row} if array else dict(enumerate(row.tolist())) for row in numbers]
    names = features(objects([value_of(output) for output in outputs])).names
    assert any("[777]" in name for name in names)
    assert len(names) < 1000


def test_rows_of_pandas_are_those_of_reset_index() -> None:
    """Its own methods as the oracle, which make further frames."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": ["b", "a", "b"], "n": [2.5, 1.5, 0.5]})
    indexed = [
        frame.set_index("city"),
        frame.set_index(["city", "n"]).assign(m=1),
        frame.groupby("city").n.sum(),
        frame.groupby("city").size(),
        frame.set_index(pandas.RangeIndex(3, name="place")),
        frame[frame.n > 1].iloc[1:],
        frame.rename(columns={"n": "index"}).iloc[[2, 0]],
        frame.n.iloc[[2, 0]],
        frame.set_index(pandas.date_range("2020-01-01", periods=3)),
        frame.iloc[:0].set_index("city"),
    ]
    for value in indexed:
        rows = value.reset_index().to_dict("records")
        read = parts_of(value, 99)
        assert read == rows
        assert [list(row) for row in read or ()] == [list(row) for row in rows]  # in order
    assert parts_of(frame, 99) == frame.to_dict("records")
    assert parts_of(frame.n, 99) == [2.5, 1.5, 0.5]


def _caused(cause: Exception) -> Exception:
    error = ValueError("a")
    error.__cause__ = cause
    return error


def _noted(note: str) -> Exception:
    error = ValueError("a")
    error.add_note(note)
    return error


@pytest.mark.parametrize(
    "errors",
    [
        (_noted("Ann"), _noted("Bob")),
        (_caused(KeyError("Ann")), _caused(KeyError("Bob"))),
        (_caused(_caused(KeyError("Ann"))), _caused(_caused(KeyError("Bob")))),
        (_caused(_with(KeyError(), row=7)), _caused(_with(KeyError(), row=8))),
        (_with(KeyError(), row=True), _with(KeyError(), row=1)),
        (KeyError("a", True), KeyError("a", np.True_)),
        (_with(ValueError("a"), row=7), _with(ValueError("a"), row=8)),
        (ValueError("y" * 30_000 + "a"), ValueError("y" * 30_000 + "b")),
        (ExceptionGroup("a", [KeyError("Ann")]), ExceptionGroup("a", [KeyError("Bob")])),
    ],
)
def test_what_comes_with_an_exception_is_read(errors: tuple[Exception, Exception]) -> None:
    own, other = map(Value.of_raised, errors)
    assert own.leaves != other.leaves
    own, other = map(value_of, errors)
    assert own.leaves != other.leaves


def test_a_character_among_random_ones_has_a_column() -> None:
    """As of bytes that are released in hexadecimal digits."""
    rng = np.random.default_rng(1)
    sides = [
        objects([value_of(f"{rng.integers(2**60):015x}{side}") for _ in range(200)])
        for side in "ab"
    ]
    learned = features(np.concatenate(sides))
    own, other = map(learned.matrix, sides)
    assert any((own[:, n].max() < other[:, n].min()) for n in range(own.shape[1]))


def test_each_number_and_each_word_of_a_text_has_a_name() -> None:
    leaves = dict(value_of(" ".join(f"w{n} {n}.5" for n in range(300))).leaves)
    assert leaves["number 599 in output"] == 299.5
    assert leaves["'w299' in output"] == 1


def test_whole_numbers_beyond_doubles_are_read_in_lists() -> None:
    leaves = dict(value_of([["Ann", 10**400], ["Bob", -(10**400)]]).leaves)
    assert (leaves["output['Ann'][1]"], leaves["output['Bob'][1]"]) == (math.inf, -math.inf)
    assert value_of([10**400, 1]).leaves != value_of([10**400, 2]).leaves


def test_what_is_read_already_is_not_read_again() -> None:
    """Beside a list, a frame's rows or a text there is nothing; sets have no order to tell."""
    arrays = {"coef_": np.eye(2), 0: [np.arange(3)]}
    several: list[Any] = [[1.5, "a", {"b": 2}], "a 1", {"a": None}, {"c", "b", "a", 2.5}]
    for plain in [*several, Decimal("1.5"), arrays]:
        assert not any("beside" in name for name, _ in value_of(plain).leaves)


def test_what_has_any_attribute_is_no_table() -> None:
    class Settings:
        def __init__(self) -> None:
            self.sum = 2.5

        def __getattr__(self, name: str) -> int:
            if name.startswith("__"):
                raise AttributeError(name)
            return 0

    assert ("output.sum", 2.5) in value_of(Settings()).leaves


def test_what_raises_while_it_is_read_is_no_exception_of_the_mechanism() -> None:
    class NoArray:
        def __array__(self) -> Any:
            raise ValueError("no")

    with pytest.raises(DrawError, match=r"What is released can't be read: ValueError: no"):
        value_of([NoArray()])


@pytest.mark.parametrize(
    "hides",
    [
        hashlib.sha256(b"a"),
        sqlite3.connect(":memory:"),
        compile("1", "", "eval"),
        re.match("a", "a"),
    ],
    ids=lambda hides: type(hides).__name__,
)
def test_what_hides_its_values_is_refused(hides: Any) -> None:
    with pytest.raises(DrawError, match="an audit reads values alone"):
        value_of({"a": hides})


def test_a_query_that_was_not_collected_is_refused() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(DrawError, match="an audit reads values alone"):
        value_of(polars.DataFrame({"a": [1]}).lazy())


def test_a_module_is_read_by_its_name_and_one_that_was_made_by_what_it_holds() -> None:
    assert value_of([1.5, np]).leaves == value_of([1.5, np]).leaves
    assert ("output[1]", "numpy") in value_of([1.5, np]).leaves
    made = [ModuleType("made"), ModuleType("made")]
    for module, number in zip(made, (3, 4), strict=True):
        module.secret = number  # type: ignore[attr-defined]
    assert value_of([1.5, made[0]]).leaves != value_of([1.5, made[1]]).leaves


def test_what_leads_on_and_on_is_refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies deepest is read by what it says of itself, which takes as long as many numbers."""
    monkeypatch.setattr(reader, "_PARTS", 5000)
    nodes = [SimpleNamespace() for _ in range(100)]
    for node in nodes:
        node.others = nodes
    read: list[Any] = []

    def said(value: Any) -> str:
        read.append(value)
        return "a node"

    monkeypatch.setattr(reader, "said", said)
    with pytest.raises(DrawError, match="more than 5,000 parts"):
        value_of(nodes[0])
    assert len(read) < 100
