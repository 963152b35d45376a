"""Frames that are read by what they have in common: what is said is what taking them apart says."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpverify.auditing.outputs import frames
from dpverify.auditing.outputs.frames import read_frame
from dpverify.auditing.outputs.values import Value, kept, value_of

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_columns", {})
    monkeypatch.setattr(frames, "_alike", {})


def _people(rng: np.random.Generator) -> Any:
    """Numbers that are nowhere else in what pickle writes."""
    whole = rng.integers(10_000, 20_000, 4)
    return pd.DataFrame({"sex": ["f", "m", "m", "f"], "n": whole, "paid": rng.normal(size=4)})


def _with(change: Callable[[Any], Any]) -> Callable[[np.random.Generator], Any]:
    return lambda rng: change(_people(rng))


SHAPES: dict[str, Callable[[np.random.Generator], Any]] = {
    "rows": _people,
    "no rows": _with(lambda frame: frame.iloc[:0]),
    "some rows": _with(lambda frame: frame[frame.sex == "f"]),
    "series": _with(lambda frame: frame.paid),
    "series of whole numbers": _with(lambda frame: frame.n),
    "sum": _with(lambda frame: frame.groupby("sex").paid.sum()),
    "several sums": _with(lambda frame: frame.groupby("sex").agg({"n": "max", "paid": "sum"})),
    "index of whole numbers": _with(lambda frame: frame.set_index("n")),
    "two indices": _with(lambda frame: frame.set_index(["sex", "n"])),
    "turned": _with(lambda frame: frame[["n", "paid"]].T),
    "correlations": _with(lambda frame: frame[["n", "paid"]].describe()),
    "categories": _with(lambda frame: frame.astype({"sex": "category"})),
    "dates": _with(lambda frame: frame.set_index(pd.date_range("2020-01-01", periods=4))),
    "objects": _with(lambda frame: frame.astype(object)),
    "missing": _with(lambda frame: frame.assign(paid=frame.paid.where(frame.paid > 0))),
    "zeros": _with(lambda frame: frame.assign(paid=frame.paid.where(frame.paid > 0, -0.0))),
    "infinities": _with(lambda frame: frame.paid.where(frame.paid > 0, math.inf)),
    "large": _with(lambda frame: frame.assign(n=frame.n + 2**60)),
    "a sum beyond doubles": _with(lambda frame: frame.n * 4e11),
    "other types": _with(lambda frame: frame.astype({"n": "Int64", "paid": "float32"})),
    "shared memory": lambda rng: pd.Series(a := rng.normal(size=3), index=pd.Index(a, copy=False)),
}


@pytest.mark.parametrize("made", SHAPES.values(), ids=SHAPES)
def test_the_same_as_taken_apart(made: Callable[[np.random.Generator], Any]) -> None:
    rng = np.random.default_rng(1)
    for frame in (made(rng), made(rng)):
        assert kept(frame) == value_of(frame)


@pytest.mark.parametrize("shape", ["rows", "series", "sum", "several sums", "dates"])
def test_taken_apart_for_the_first_alone(shape: str) -> None:
    taken = []

    def take_apart(frame: Any) -> Value:
        taken.append(frame)
        return value_of(frame)

    rng = np.random.default_rng(1)
    values = [read_frame(SHAPES[shape](rng), take_apart) for _ in range(3)]
    assert len(taken) == 2  # of marks
    assert len({value.leaves for value in values}) == 3


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a number": lambda frame: frame.assign(paid=frame.paid + 1e-9),
    "a name": lambda frame: frame.rename(columns={"paid": "owed"}),
    "a text": lambda frame: frame.assign(sex=["f", "m", "m", "m"]),
    "an order": lambda frame: frame[["n", "sex", "paid"]],
    "an index": lambda frame: frame.set_axis([1, 2, 3, 5]),
    "a type": lambda frame: frame.astype({"n": float}),
    "an attribute": lambda frame: frame.attrs.update(rows=7) or frame,
    "a category": lambda frame: frame.astype({"sex": pd.CategoricalDtype(["f", "m", "x"])}),
    "a zero": lambda frame: frame.assign(paid=frame.paid * -0.0),
    "a class": lambda frame: type("Mine", (pd.DataFrame,), {})(frame),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_differs_is_told(change: Callable[[Any], Any]) -> None:
    frame = _people(np.random.default_rng(1))
    assert kept(frame.copy()) == kept(frame)
    assert kept(change(frame.copy())) != kept(frame)


def test_a_frame_of_foreign_objects_is_taken_apart() -> None:
    class Refuses:
        def __reduce__(self) -> Any:
            raise TypeError

    for held in (Refuses(), Fraction(1, 3)):
        frame = pd.DataFrame({"a": [1.5], "b": [held]})
        assert kept(frame) == value_of(frame)
