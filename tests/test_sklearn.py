"""Private sketches in scikit-learn: a transform is a release, which is said and counted."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dpverify as dpv
from dpverify.errors import ParameterError
from dpverify.guarantee import Draw
from dpverify.sklearn import PrivateSketch

ROWS = np.random.default_rng(1).random((12, 6))
FRESH = "every transform draws fresh noise, so that no two agree"
NOT_REPEATED = {"check_estimators_pickle": FRESH, "check_fit_idempotent": FRESH}


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.* are outside .0, 1. and count")  # scikit-learn's own data
def test_it_is_an_estimator() -> None:
    """All checks but the two that compare two releases, and these fail by that alone."""
    results = check_estimator(
        PrivateSketch(again=True), expected_failed_checks=NOT_REPEATED, on_skip=None
    )
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(NOT_REPEATED)


def test_a_row_is_released_once_unless_somebody_says_again() -> None:
    sketch = PrivateSketch(k=4, epsilon=2).fit(ROWS)
    assert float(sketch.spent().epsilon_at(0)) == 0
    first = sketch.transform(ROWS[:8])
    assert float(sketch.spent().epsilon_at(0)) == 2
    sketch.transform(ROWS[8:])  # others: one release of each
    assert float(sketch.spent().epsilon_at(0)) == 2
    with pytest.raises(
        ParameterError,
        match=r"3 of 4 were released before, or occur twice here\. For each of them that spends 2",
    ):
        sketch.transform(np.vstack([ROWS[6:9], np.zeros((1, 6))]))
    second = sketch.set_params(again=True).transform(ROWS[:8])
    assert not np.array_equal(first, second)
    assert float(sketch.spent().epsilon_at(0)) == 4
    sketch.set_params(epsilon=1).fit(ROWS).transform(ROWS[:1])  # to fit anew gives nothing back
    assert float(sketch.spent().epsilon_at(0)) == 5


def test_of_threads_at_once_one_releases() -> None:
    sketch = PrivateSketch(k=4, epsilon=2).fit(ROWS)
    release, ready = sketch.mechanism_.release, threading.Barrier(2)

    class Slow:
        guarantee, step = sketch.mechanism_.guarantee, sketch.mechanism_.step

        def release(self, rows: Any) -> Any:
            with suppress(threading.BrokenBarrierError):
                ready.wait(0.05)  # for another thread, if one gets so far
            return release(rows)

    sketch.mechanism_ = Slow()  # type: ignore[assignment]  # what transform asks of it

    def released(_: int) -> bool:
        try:
            return len(sketch.transform(ROWS)) == len(ROWS)
        except ParameterError:
            return False

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(released, range(2))) == [False, True]


def test_what_a_release_spends_is_what_was_fitted() -> None:
    sketch = PrivateSketch(k=4, epsilon=2).fit(ROWS)
    sketch.transform(ROWS)
    with pytest.raises(ParameterError, match="that spends 2 once more"):
        sketch.set_params(epsilon=1).transform(ROWS)


def test_a_copy_takes_no_digests_along() -> None:
    sketch = PrivateSketch(k=4, epsilon=2)
    sketch.fit_transform(ROWS)
    assert not clone(sketch).__dict__.keys() & {"_released", "mechanism_"}
    copy = pickle.loads(pickle.dumps(sketch))  # noqa: S301 - our own
    assert copy._released.key != sketch._released.key
    assert float(copy.spent().epsilon_at(0)) == 2
    assert copy.transform(ROWS).shape == (12, 4)
    assert float(deepcopy(copy).spent().epsilon_at(0)) == 4  # of rows that may be the same


SKETCH = PrivateSketch(k=4, epsilon=2)
ZERO = np.where(np.arange(6) == 0, 0, ROWS)


@pytest.mark.filterwarnings("ignore:.* are outside .0, 1. and count")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ZERO, np.where(np.arange(6) == 0, -0.0, ROWS)),
        (ZERO + 5 * (ZERO == 0), ZERO + 6 * (ZERO == 0)),
        (ROWS, ROWS.astype(np.float32)),
        (ROWS[::2], scipy.sparse.csr_array(ROWS)),
    ],
    ids=["zeros", "clipped", "single", "sparse"],
)
def test_rows_that_are_released_alike_are_the_same(first: Any, second: Any) -> None:
    sketch = clone(SKETCH)
    sketch.fit_transform(first)
    with pytest.raises(ParameterError, match="of 12 were released before"):
        sketch.transform(second)


def test_resampled_rows_are_released_as_often_as_they_stand() -> None:
    rows = ROWS[[0, 1, 1, 2, 1]]
    with pytest.raises(ParameterError, match="2 of 5 were released before, or occur twice here"):
        clone(SKETCH).fit_transform(rows)
    sketch = clone(SKETCH).set_params(again=True)
    sketch.fit_transform(rows)
    assert float(sketch.spent().epsilon_at(0)) == 6


@pytest.mark.parametrize(
    ("settings", "width", "values"),
    [
        ({}, 6, None),
        ({"mechanism": "dp-signoporp-rr", "k": 6}, 6, {-1.0, 1.0}),
        (
            {
                "mechanism": "rr-min-hash",
                "k": 5,
                "delta": 1e-6,
                "domain": dpv.Sets(min_size=1),
                "parameters": {"buckets": 3},
            },
            5,
            {0.0, 1.0, 2.0},
        ),
    ],
    ids=["values", "signs", "hashes"],
)
def test_every_kind_of_sketch(settings: Any, width: int, values: set[float] | None) -> None:
    rows = (ROWS > 0.3).astype(float) if "domain" in settings else ROWS
    sketch = PrivateSketch(epsilon=50, again=True, **settings)  # some sets are equal
    released = sketch.fit_transform(rows)
    assert released.shape == (12, width)
    assert len(sketch.get_feature_names_out()) == width
    assert values is None or set(np.unique(released)) <= values


OTHER = Draw(source="another seed", realised="other functions")


def test_releases_on_one_draw_of_hashes_cost_more_than_on_two() -> None:
    sketch = PrivateSketch(
        "rr-min-hash",
        k=8,
        epsilon=2,
        delta=1e-3,
        domain=dpv.Sets(min_size=3),
        parameters={"buckets": 4},
        again=True,
    )
    sets = np.eye(6, 12) + np.eye(6, 12, 2) + np.eye(6, 12, 4)
    sketch.fit_transform(sets)
    once = sketch.spent().epsilon_at(1e-3)
    assert once.upper == sketch.mechanism_.privacy().epsilon_at(1e-3).upper
    sketch.transform(sets)
    one = sketch.mechanism_.guarantee()
    both = dpv.compose(one, one, same_records=True).curve.epsilon_at(1e-3)
    apart = dpv.compose(one, replace(one, draws=(OTHER,))).curve.epsilon_at(1e-3)
    assert sketch.spent().epsilon_at(1e-3) == both
    assert both.lower > apart.upper


def test_released_values_are_in_the_records_unit() -> None:
    released = PrivateSketch("raw-data-g-opt", epsilon=1000).fit_transform(ROWS)
    assert released == pytest.approx(ROWS, abs=0.05)


def test_in_a_pipeline() -> None:
    model = make_pipeline(PrivateSketch(epsilon=100), KNeighborsClassifier(1))
    labels = np.arange(12) % 2
    assert model.fit(ROWS, labels).predict(1 - ROWS).shape == (12,)


def test_what_is_moved_into_the_unit_interval_is_said() -> None:
    with pytest.warns(UserWarning, match="2 values are outside .0, 1. and count"):
        PrivateSketch(k=2).fit_transform([[0.5, 3.0, 1.0], [-1.0, 0.25, 0.0]])
    PrivateSketch(k=2, domain=dpv.Box(0, 4)).fit_transform([[0.5, 3.0, 1.0]])
    PrivateSketch(k=2, domain=dpv.Box(0, 1, outside="clip")).fit_transform([[0.5, 3.0, 1.0]])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"domain": 3}, "domain=3 must be a domain, as dpv.Box"),
        ({"domain": "box"}, "domain=box must be a domain"),
        ({"parameters": 3}, "parameters=3 must be a dictionary"),
        ({"adjacency": "record"}, "adjacency=record must be an adjacency, as dpv.Record"),
        ({"adjacency": 1}, "adjacency=1 must be an adjacency"),
    ],
)
def test_settings_of_another_kind(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        PrivateSketch(**settings).fit(ROWS)
