"""One pass over dense records gives the integers, and the refusals, of numpy's several."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Ball, Box
from dpverify.data.grid import Grid
from dpverify.errors import RecordsError
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify_mechanisms.linear import _one_pass
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.independent import OPORP, RademacherProjection
from dpverify_mechanisms.projections.sjlt import SJLT
from tests.helpers.loops import RUNNERS, run_loops

SIGNED = Box(low=-1, high=1)
STEPS = 2**10


@pytest.fixture(params=RUNNERS)
def one_pass(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values the loop met."""
    return run_loops(monkeypatch, _one_pass, request.param)


def product(
    projection: Projection, *, step: Fraction = Fraction(1, STEPS), domain: Any = SIGNED
) -> LinearSketch:
    return LinearSketch(
        projection=projection,
        noise=RoundedGaussian(scale=100.0),
        grid=Grid(step=step),
        domain=domain,
        adjacency=Attribute(1),
    )


def by_numpy(sketch: LinearSketch, records: Any) -> Any:
    return sketch._product(sketch.domain.admit(records, attributes=sketch.p), np.float64)


def edges(step: Fraction) -> st.SearchStrategy[float]:
    """Values in [−1, 1] on halves of steps, beside them, beside 0, and anywhere."""
    halves = st.integers(-(2 * STEPS), 2 * STEPS).map(lambda n: float(n * step / 2))
    beside = st.tuples(halves, st.sampled_from([-2.0, 2.0])).map(lambda x: np.nextafter(*x))
    tiny = st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, -(2.0**-1030), 1.0, -1.0])
    inside = st.one_of(halves, beside, tiny, st.floats(-1, 1)).map(float)
    return inside.filter(lambda x: -1 <= x <= 1)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_integers_are_those_of_several_passes(one_pass: list[int], data: st.DataObject) -> None:
    p = data.draw(st.integers(4, 12))
    projection = data.draw(
        st.sampled_from(
            [OPORP(p=p, k=3, seed=2), OPORP(p=p, k=p, seed=2), SJLT(p=p, k=4, sparsity=2, seed=2)]
        )
    )
    # Sums of 12, 24 and 49 bits: three rows at once, two, and one.
    step = data.draw(st.sampled_from([Fraction(1, 2**10), Fraction(1, 2**20), Fraction(1, 2**45)]))
    rows = data.draw(st.integers(1, 5))
    values = st.lists(edges(step), min_size=rows * p, max_size=rows * p)
    records = np.array(data.draw(values)).reshape(rows, p)
    sketch = product(projection, step=step)
    found = sketch.noiseless(records)
    assert one_pass
    assert np.array_equal(found, by_numpy(sketch, records))
    exact = [[sketch.grid.steps(Fraction(x)) for x in row] for row in records.tolist()]
    matrix = projection.matrix.toarray().astype(int)
    assert np.array_equal(found, np.array(exact, dtype=object) @ matrix.astype(object))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype(np.float32),
        lambda x: np.rint(x).astype(np.int8),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1],
        lambda x: x.tolist(),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
        lambda x: x.astype(">f8"),
        lambda x: np.require(x, requirements="C").view(np.memmap),
    ],
    ids=["float32", "int8", "Fortran", "columns", "rows", "list", "unaligned", "big", "memmap"],
)
def test_records_of_any_kind(one_pass: list[int], change: Callable[[Any], Any]) -> None:
    records = change(np.random.default_rng(0).uniform(-1, 1, (5, 600)))
    sketch = product(OPORP(p=600, k=7, seed=1))
    assert np.array_equal(sketch.noiseless(records), by_numpy(sketch, records))
    assert one_pass


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, np.nextafter(1, 2), -1e300])
@pytest.mark.parametrize("place", [(0, 0), (4, 599)])
def test_what_is_outside_is_refused_in_the_same_words(
    one_pass: list[int], value: float, place: tuple[int, int]
) -> None:
    records = np.zeros((5, 600))
    records[place] = value
    sketch = product(OPORP(p=600, k=7, seed=1))
    with pytest.raises(RecordsError) as expected:
        by_numpy(sketch, records)
    with pytest.raises(RecordsError) as found:
        sketch.noiseless(records)
    assert str(found.value) == str(expected.value)
    with pytest.raises(RecordsError, match=f"record {place[0] + 5}"):
        sketch.release(iter([np.zeros((5, 600)), records]))
    clipped = product(sketch.projection, domain=Box(low=-1, high=1, outside="clip"))
    if np.isfinite(value):
        assert np.array_equal(clipped.noiseless(records), by_numpy(clipped, records))
    assert one_pass


def test_what_the_noise_is_added_to_does_not_depend_on_the_blocks(one_pass: list[int]) -> None:
    records = np.random.default_rng(1).uniform(-1, 1, (1030, 6))
    sketch = product(OPORP(p=6, k=4, seed=1))
    blocks = (records[start : start + 500] for start in range(0, 1030, 500))
    found = list(sketch.prepared_blocks(blocks))
    assert one_pass
    assert [len(block) for block in found] == [1024, 6]
    assert np.array_equal(np.concatenate(found), by_numpy(sketch, sparse.csr_array(records)))


@pytest.mark.parametrize(
    "sketch",
    [
        product(OPORP(p=6, k=4, seed=1), step=Fraction(1, 1000)),
        product(OPORP(p=6, k=4, seed=1), domain=Ball(3)),
        product(RademacherProjection(p=6, k=4, seed=1)),
    ],
    ids=["step", "domain", "projection"],
)
def test_what_the_loop_does_not_know_is_left_to_numpy(
    one_pass: list[int], sketch: LinearSketch
) -> None:
    records = np.random.default_rng(2).uniform(-1, 1, (3, 6))
    assert np.array_equal(sketch.noiseless(records), by_numpy(sketch, records))
    assert not one_pass
