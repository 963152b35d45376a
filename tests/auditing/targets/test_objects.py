"""Estimators, batches, features, and objects that are known by what they offer."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpverify as dpv
from dpverify.auditing.targets.estimators import Fitted
from dpverify.auditing.targets.functions import adapt
from dpverify.errors import DrawError, ParameterError
from dpverify.privacy import Pair

NOISE = np.random.default_rng(1)
PAIR = Pair(name="one row", record=np.zeros((2, 1)), neighbour=np.zeros((3, 1)))


class Rows:
    """One row more or less."""

    unit = "one row"
    of = "dataset"

    def relates(self, data: Any, neighbour: Any) -> bool:
        return abs(len(data) - len(neighbour)) == 1


def audited(subject: Any, **words: Any) -> dpv.Report:
    settings: dict[str, Any] = {"epsilon": 1, "adjacency": Rows(), "pairs": [PAIR], "workers": 1}
    return dpv.audit(subject, **settings | {"kinds": ["black-box"], "draws": 150} | words)


class Mean:
    """As scikit-learn's estimators are written."""

    def __init__(self, scale: float = 1.0, random_state: Any = None) -> None:
        self.scale, self.random_state = scale, random_state

    def fit(self, X: Any, y: Any = None) -> Mean:
        assert not hasattr(self, "total_")
        noise = NOISE.laplace(scale=self.scale)
        self.total_, self.names_ = len(X) + noise, ["only"]
        return self


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "no_violation_found"), (0.3, "violation")])
def test_what_an_estimator_learned_is_its_output(scale: float, verdict: str) -> None:
    model = Mean(scale)
    assert audited(model).verdict == verdict
    assert not hasattr(model, "total_")


class Drawn(Mean):
    """With a source of its own."""

    def __init__(self, source: Any, scale: float = 1.0) -> None:
        super().__init__(scale)
        self.held = {"sources": [source]}

    def fit(self, X: Any, y: Any = None) -> Drawn:
        (source,) = self.held["sources"]
        if isinstance(source, np.random.SeedSequence):
            source = np.random.default_rng(source.spawn(1)[0])
        elif isinstance(source, np.random.BitGenerator):
            source = np.random.Generator(source)
        size = abs(math.log(source.random() or 0.5))
        self.total_ = len(X) + self.scale * (size if source.random() < 0.5 else -size)
        return self


def the_module(seed: int) -> Any:
    random.seed(seed)
    return random


@pytest.mark.parametrize(
    "make",
    [
        np.random.default_rng,
        np.random.RandomState,
        np.random.PCG64,
        np.random.SeedSequence,
        random.Random,
        random.SystemRandom,
        the_module,
    ],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "no_violation_found"), (0.2, "violation")])
def test_copies_share_the_source_that_an_estimator_holds(
    make: Callable[[int], Any], scale: float, verdict: str
) -> None:
    report = audited(Drawn(make(2), scale), kinds=["black-box", "determinism"], alpha=1e-5)
    assert report.verdict == verdict, report


def test_estimators_that_are_not_guessed_at() -> None:
    class Labelled:
        def fit(self, X: Any, y: Any) -> Any:
            self.total_ = float(np.sum(y))
            return self

    with pytest.raises(ParameterError, match="random_state=3 must be None"):
        audited(Mean(random_state=3))
    with pytest.raises(DrawError, match="learns from X and y"):
        Fitted(Labelled())(PAIR.record)
    assert Fitted(Labelled())((PAIR.record, np.ones(2))) == {"total_": 2.0}

    class Silent(Mean):
        def fit(self, X: Any) -> Any:  # type: ignore[override]
            return self

    assert "no attributes that end in _" in str(audited(Silent()))

    class Both(Mean):
        def quick_result(self, data: Any) -> float:
            return 0.0

    with pytest.raises(ParameterError, match=r"quick_result, fit=.*only one of these"):
        audited(Both())


def test_an_object_of_pydp() -> None:
    class Count:
        def quick_result(self, data: Any) -> float:
            assert type(data) is list
            assert all(type(value) is float for value in data)
            return len(data) + float(np.random.default_rng().laplace(scale=0.3))

    assert audited(Count()).verdict == "violation"


def batch(data: Any, n: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(scale=0.3, size=n)


def alone(data: Any, n: int) -> list[dict[str, float]]:
    return [{"count": each} for each in batch(data, n, np.random.default_rng())]


@pytest.mark.parametrize("function", [batch, alone])
def test_many_draws_at_once(function: Any) -> None:
    assert audited(function, many=True).verdict == "violation"
    mechanism = adapt(function, adjacency=Rows(), claim=dpv.ApproxDP(epsilon=1), many=True)
    assert mechanism.replayable == (function is batch)


def test_many_draws_that_are_not_as_many() -> None:
    report = audited(lambda data, n, rng: [1.0], many=True)
    assert "gave 1 outputs where" in str(report)
    assert report.verdict == "inconclusive"
    with pytest.raises(ParameterError, match="data and a number of draws"):
        audited(lambda data: 1.0, many=True)


@pytest.mark.parametrize(
    "many",
    [
        lambda noisy: pd.DataFrame({"count": noisy}),
        lambda noisy: pl.DataFrame({"count": noisy, "again": noisy}),
        lambda noisy: pa.table({"count": noisy}),
        lambda noisy: dict(enumerate(noisy)),
        lambda noisy: set(noisy),
        lambda noisy: "x" * len(noisy),
        lambda noisy: bytes(len(noisy)),
        lambda noisy: iter(noisy),
        lambda noisy: noisy[0],
        lambda noisy: np.array(1.0),
        lambda noisy: np.append(noisy, 0),
        lambda noisy: np.tile(noisy, (len(noisy) + 1, 1)),
    ],
)
def test_what_holds_no_draws_is_not_read_as_many(many: Callable[[Any], Any]) -> None:
    """The columns, keys and letters of one answer leak nothing, whatever its numbers do."""
    report = audited(lambda data, n, rng: many(batch(data, n, rng)), many=True)
    assert report.verdict == "inconclusive"
    assert "Return a list of outputs" in str(report)
    words: Any = {"epsilon": None, "adjacency": None, "features": lambda output: output}
    for features in (None, words["features"]):
        report = audited(Batches(many), **words | {"features": features})
        assert report.verdict == "inconclusive"
        assert "Return a list of outputs" in str(report)


class Batches:
    """Makes several outputs at once, in its own way."""

    adjacency = Rows()

    def __init__(self, many: Callable[[Any], Any]) -> None:
        self.many = many

    def privacy(self) -> dpv.ApproxDP:
        return dpv.ApproxDP(epsilon=1)

    def release(self, data: Any, *, rng: Any) -> float:
        return float(len(data))

    def release_many(self, data: Any, n: int, *, rng: Any) -> Any:
        return self.many(batch(data, n, np.random.default_rng()))


class Longer(list[Any]):
    """Says that it is as long as it was, and never ends."""

    def __iter__(self) -> Iterator[Any]:
        return iter(int, 1)


def test_so_many_draws_as_are_asked_for_are_taken() -> None:
    assert audited(lambda data, n, rng: Longer(batch(data, n, rng)), many=True).failed == ()


@pytest.mark.parametrize("many", [lambda x: pd.Series(x, x), tuple, pl.Series, pd.Index])
def test_rows_one_after_the_other_are_many_draws(many: Callable[[Any], Any]) -> None:
    report = audited(lambda data, n, rng: many(batch(data, n, rng)), many=True)
    assert report.verdict == "violation"


def hashed(data: Any, rng: np.random.Generator) -> tuple[int, int]:
    """A report of one of 1,000 values by a hash whose seed is released with it: ε = 1 is less."""
    seed, value = int(rng.integers(2**40)), len(data)
    truth = hash((seed, value)) % 4
    keep = rng.random() < 0.9
    return seed, truth if keep else int((truth + rng.integers(1, 4)) % 4)


def test_features_of_the_users_own() -> None:
    def supports(report: tuple[int, int]) -> list[bool]:
        return [hash((report[0], value)) % 4 == report[1] for value in (2, 3)]

    assert audited(hashed).verdict == "no_violation_found"
    assert audited(hashed, features=supports).verdict == "violation"
    report = audited(hashed, features=supports, kinds=None, draws=100)
    assert "hashed" in str(report)
    assert {finding.audit for finding in report.findings} >= {"black-box", "sequential"}
    assert "grey-box" not in {finding.audit for finding in report.findings}
    assert "draws its own randomness" not in report.replay
    with pytest.raises(ParameterError, match="a function of an output"):
        audited(hashed, features=7)
