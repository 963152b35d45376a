"""Rows in blocks: no release depends on how its rows came, and one block at a time is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from dpverify.data.adjacency import Attribute, BitFlip, Items, Row
from dpverify.data.blocks import ROWS, admitted_blocks, joined, row_blocks
from dpverify.data.domain import Ball, Box, Sets, is_sparse
from dpverify.errors import RecordsError
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.min_hash.sketch import MinHash
from dpverify_mechanisms.projections.independent import OPORP
from dpverify_mechanisms.secret.sketch import CovarianceSketch, CutSketch
from dpverify_mechanisms.sign.sketch import SignSketch
from tests.helpers.profiles import day_and_night

P = 12
UNIT = Box(low=Fraction(0), high=Fraction(1))
ONE = Attribute(beta=Fraction(1))
TARGET: dict[str, Any] = {"epsilon": Fraction(2), "delta": Fraction(1, 1000)}
SETS: dict[str, Any] = {
    "domain": Sets(min_size=1),
    "adjacency": Items(changes=1),
    "epsilon": Fraction(20),
}
OPORPS = OPORP(p=P, k=4, seed=1)

MECHANISMS: dict[str, Any] = {
    "gaussian sketch": LinearSketch.calibrated(OPORPS, domain=UNIT, adjacency=ONE, **TARGET),
    "laplace sketch": LinearSketch.calibrated(
        OPORPS, domain=UNIT, adjacency=ONE, noise="laplace", **TARGET
    ),
    "noise at the input": LinearSketch.calibrated(
        OPORPS, domain=UNIT, adjacency=ONE, at="input", **TARGET
    ),
    "sign sketch": SignSketch.dp_signoporp_rr(
        p=P, k=4, seed=1, domain=UNIT, adjacency=ONE, epsilon=Fraction(2)
    ),
    "randomized response": RandomizedResponse.calibrated(
        p=P, domain=UNIT, adjacency=BitFlip(), **TARGET
    ),
    "min-hash response": MinHash.rr_min_hash(p=P, k=3, buckets=3, seed=1, **SETS),
    "min-hash noise": MinHash.noisy_min_hash(p=P, k=3, buckets=3, seed=1, **SETS),
}
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def records(rows: int) -> NDArray[np.float64]:
    """Bits of which none or few are set, so that all mechanisms take them; no row is empty."""
    words = ReplayableWords(4, "rows").words(rows * P).reshape(rows, P)
    chosen = np.asarray(words % np.uint64(4) == 0)
    chosen[:, 0] |= ~chosen.any(axis=1)
    return chosen.astype(np.float64)


def blocks(x: NDArray[np.float64], sizes: Sequence[int], *, thin: bool = False) -> Iterator[Any]:
    """Blocks of these sizes over and over; with `thin` every other one is sparse."""
    start = number = 0
    while start < len(x):
        size = sizes[number % len(sizes)]
        block = x[start : start + size]
        yield sparse.csr_array(block) if thin and number % 2 == 0 else block
        start, number = start + size, number + 1


class Stream:
    """Replayable words of which one in 256 is 0, and how often they were asked for.

    At 0 rounded noise is undecided: it draws a further word, after all others of its block.
    """

    policy = ReplayableWords.policy

    def __init__(self, seed: int = 3) -> None:
        self.calls = 0
        self._source = ReplayableWords(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        self.calls += 1
        words = self._source.words(count)
        words[words % np.uint64(256) == 0] = 0
        return words


def released(mechanism: Any, given_records: Any) -> NDArray[Any]:
    result: NDArray[Any] = mechanism.release(given_records, rng=Stream())
    return result


@pytest.mark.parametrize(
    "cuts",
    day_and_night([[7], [ROWS], [1, 7, 1000]], [[1], [7], [1000], [ROWS], [3000], [1, 7, 1000]]),
    ids=len,
)
@every_mechanism
def test_no_release_depends_on_how_its_rows_came(mechanism: Any, cuts: list[list[int]]) -> None:
    """2,500 rows are two whole blocks of noise and a part of one."""
    x = records(2500)
    whole = released(mechanism, x)
    assert whole.shape == mechanism.shape(2500)
    assert not np.array_equal(whole, mechanism.release(x, rng=Stream(4)))
    assert np.array_equal(whole, released(mechanism, sparse.csr_array(x)))
    for sizes in cuts:
        again = released(mechanism, blocks(x, sizes, thin=len(sizes) > 1))
        assert np.array_equal(whole, again), sizes


@given(
    st.sampled_from(sorted(MECHANISMS)),
    st.lists(st.integers(1, 700), min_size=1, max_size=6),
    st.booleans(),
)
def test_any_blocking_gives_the_same_release(name: str, sizes: list[int], thin: bool) -> None:
    mechanism, x = MECHANISMS[name], records(1300)
    assert np.array_equal(released(mechanism, x), released(mechanism, blocks(x, sizes, thin=thin)))


@every_mechanism
def test_a_generator_is_read_no_further_than_needed(mechanism: Any) -> None:
    """A block of `ROWS` rows is randomized before the next one is asked for."""
    rng, calls = Stream(), []

    def generator() -> Iterator[NDArray[np.float64]]:
        for _ in range(4):
            calls.append(rng.calls)
            yield records(ROWS)

    mechanism.release(generator(), rng=rng)
    assert calls[0] == 0
    assert all(np.diff(calls) > 0)


def test_rows_wait_for_no_more_than_a_block() -> None:
    """However small the blocks, `ROWS` rows go on as soon as they are there."""
    read = 0

    def generator() -> Iterator[NDArray[np.float64]]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield np.zeros((5, 2))

    stream = row_blocks(generator())
    assert next(stream).shape == (ROWS, 2)
    assert read == -(-ROWS // 5)
    assert [len(block) for block in stream] == [ROWS] * 3 + [5000 - 4 * ROWS]


def test_blocks_of_one_array_may_go_on_together() -> None:
    arrays = [np.zeros((5000, 2)), np.zeros((200, 2)), np.zeros((3000, 2))]
    sizes = [len(block) for block in row_blocks(iter(arrays), at_once=3 * ROWS + 1)]
    assert sizes == [3 * ROWS, ROWS, ROWS, ROWS, 2 * ROWS, 8200 - 8 * ROWS]
    assert [len(block) for block in row_blocks(iter(arrays[1:2]), at_once=1)] == [200]


@every_mechanism
def test_the_block_at_fault_is_named(mechanism: Any) -> None:
    with pytest.raises(RecordsError, match=r"^record 4, \w+ 0 is nan"):
        released(mechanism, iter([records(3), records(1), np.full((2, P), np.nan), records(3)]))
    for wrong in (np.ones((2, P + 1)), np.zeros((0, P)), np.ones(P), "x"):
        with pytest.raises(RecordsError, match=r"^block 2: records"):
            released(mechanism, iter([records(3), records(1), wrong, records(3)]))
    with pytest.raises(RecordsError, match="there are no records"):
        released(mechanism, iter([]))
    with pytest.raises(RecordsError, match="an array or blocks of rows, and not 3"):
        released(mechanism, 3)


def test_a_single_array_is_no_block() -> None:
    with pytest.raises(RecordsError, match=r"^record 0, attribute 1 is"):
        next(admitted_blocks([[0.5, 1.5]], UNIT, attributes=2))
    assert next(admitted_blocks([[0.5, 1.0]], UNIT, attributes=2)).tolist() == [[0.5, 1.0]]


def test_a_table_is_one_array() -> None:
    """What numpy reads as an array is one, though it be iterable: not over rows, in a table."""

    class Table:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
            return np.asarray(records(4), dtype=dtype)

        def __iter__(self) -> Iterator[str]:
            return iter(["first column", "second column"])

    (block,) = admitted_blocks(Table(), UNIT, attributes=P)
    assert np.array_equal(block, records(4))


def test_joined_rows_are_sparse_where_a_block_is() -> None:
    x = records(9)
    assert np.array_equal(joined([x]), x)
    assert np.array_equal(joined(iter([x[:2], x[2:]])), x)
    mixed = joined([x[:2], sparse.csr_array(x[2:])])
    assert is_sparse(mixed)
    assert np.array_equal(mixed.toarray(), x)


# Mechanisms that take the data set as one


def test_distances_take_blocks() -> None:
    mechanism = NoiseAddition.calibrated(
        rows=30, p=P, domain=UNIT, adjacency=BitFlip(), grid_steps=2, **TARGET
    )
    x = records(30)
    for sizes in ([1], [7, 2]):
        again = released(mechanism, blocks(x, sizes, thin=True))
        assert np.array_equal(released(mechanism, x), again)
    with pytest.raises(RecordsError, match="29 records"):
        released(mechanism, blocks(x[1:], [7]))


def test_covariances_take_blocks() -> None:
    sketch = CovarianceSketch.calibrated(
        p=P,
        sketch_rows=8,
        domain=Ball(radius=Fraction(4)),
        adjacency=Row(radius=Fraction(1)),
        **TARGET,
    )
    x = records(2500)
    matrix, unit = sketch.covariance(x)
    steps = x / 2**-14  # the grid divides the radius into 2¹⁶
    exact = (steps.T @ steps).astype(np.int64)
    lift = sketch.w_squared * 2**28
    assert unit == Fraction(1, 2**28)
    assert np.array_equal(matrix, exact + int(lift) * np.eye(P, dtype=np.int64))
    for sizes in ([1], [7, 1000], [3000]):
        again, same_unit = sketch.covariance(blocks(x, sizes, thin=True))
        assert np.array_equal(matrix, again)
        assert same_unit == unit


def test_a_graph_is_taken_whole() -> None:
    sketch = CutSketch(p=4, sketch_rows=8, w=Fraction(1))
    with pytest.raises(RecordsError, match="whole, and not in blocks"):
        released(sketch, iter([np.zeros((2, 4)), np.zeros((2, 4))]))
    assert released(sketch, np.zeros((4, 4))).shape == (8, 4)
