from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpverify.data.domain import Sets
from dpverify.errors import ParameterError, RecordsError
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.min_hash.exponential import REFUSAL, ExponentialMinHash
from dpverify_mechanisms.min_hash.hashing import TabledHashes
from tests.helpers.profiles import day_and_night

HALF = Fraction(1, 2)
MARKS = (0, 0, 0, 0)
X, Y = np.array([1, 1, 1, 0]), np.array([1, 1, 0, 0])  # neighbours: item 2 is removed


def control(*orders: tuple[int, ...], **parameters: Any) -> ExponentialMinHash:
    hashes = TabledHashes(
        items=4, functions=len(orders), buckets=2, orders=orders, marks=(MARKS,) * len(orders)
    )
    return ExponentialMinHash(hashes=hashes, ratio=HALF, domain=Sets(min_size=2), **parameters)


def every_order(**parameters: Any) -> list[ExponentialMinHash]:
    return [control(order, **parameters) for order in permutations(range(4))]


def test_law_of_the_places() -> None:
    """Items in order of rank have probabilities 4/7, 2/7 and 1/7."""
    law = control((2, 0, 1, 3)).distribution(X)
    assert law == {(1,): Fraction(4, 7), (2,): Fraction(2, 7), (0,): Fraction(1, 7)}
    both = control((2, 0, 1, 3), (0, 1, 2, 3)).distribution(Y)
    assert both[1, 0] == Fraction(4, 9)
    assert sum(both.values()) == 1


@pytest.mark.parametrize("draws", day_and_night(5_000, 20_000))
def test_release_follows_the_law(draws: int) -> None:
    """A false alarm below 1e-8."""
    sketch = control((2, 0, 1, 3), (3, 2, 1, 0))
    released = sketch.release(np.tile(X, (draws, 1)), rng=ReplayableWords(2))
    for output, share in sketch.distribution(X).items():
        count = int((released == output).all(axis=1).sum())
        assert binom.ppf(5e-10, draws, float(share)) <= count
        assert count <= binom.isf(5e-10, draws, float(share))
    mixed = sketch.release(np.tile([X, Y], (draws, 1)), rng=ReplayableWords(4))[1::2]
    for output, share in sketch.distribution(Y).items():
        count = int((mixed == output).all(axis=1).sum())
        assert binom.ppf(5e-10, draws, float(share)) <= count
        assert count <= binom.isf(5e-10, draws, float(share))


def test_one_neighbour_reaches_what_the_other_cannot() -> None:
    """For every function: no ε bounds the ratio, whatever is claimed."""
    for sketch in every_order():
        own, other = sketch.distribution(X), sketch.distribution(Y)
        assert own[2,] >= Fraction(1, 7)
        assert (2,) not in other
        assert sketch.claimed_epsilon().upper == pytest.approx(2 * np.log(2))
    leak = sum(sketch.distribution(X)[2,] for sketch in every_order()) / 24
    assert leak == Fraction(1, 3)  # a third of the outputs tell the neighbours apart


def test_the_estimate_is_biased() -> None:
    sketches = every_order()
    equal = sum(sketch.expectation(X, X) for sketch in sketches) / 24
    assert equal == Fraction(16 + 4 + 1, 49)  # the Jaccard similarity is 1
    close = sum(sketch.expectation(X, Y) for sketch in sketches) / 24
    assert close != Fraction(2, 3)
    direct = sum(
        share * sketch.distribution(Y).get(output, 0)
        for sketch in sketches
        for output, share in sketch.distribution(X).items()
    )
    assert close == direct / 24


def test_estimate_counts_equal_items() -> None:
    assert control((0, 1, 2, 3)).estimate(np.array([1, 2, 3, 4]), np.array([1, 2, 0, 4])) == 0.75


def test_self_adaptation_ends_in_min_hash() -> None:
    """With one choice the answer is certain, and unbiased."""
    sketches = every_order(choices=1)
    assert all(len(sketch.distribution(X)) == 1 for sketch in sketches)
    assert sum(sketch.expectation(X, Y) for sketch in sketches) / 24 == Fraction(2, 3)
    assert len(control((0, 1, 2, 3), choices=2).distribution(X)) == 2
    released = sketches[0].release(np.array([X, Y]), rng=ReplayableWords(1))
    assert released.tolist() == [[0], [0]]


def test_it_states_no_guarantee() -> None:
    assert not hasattr(control((0, 1, 2, 3)), "privacy")
    assert "isn't differentially private" in REFUSAL


@pytest.mark.parametrize(
    ("name", "wrong"), [("ratio", Fraction(1)), ("ratio", Fraction(1, 3)), ("choices", 0)]
)
def test_parameters_are_checked(name: str, wrong: Any) -> None:
    hashes = control((0, 1, 2, 3)).hashes
    with pytest.raises(ParameterError, match=name):
        ExponentialMinHash(hashes=hashes, domain=Sets(), **{"ratio": HALF} | {name: wrong})


def test_small_sets_are_refused() -> None:
    with pytest.raises(RecordsError, match="items"):
        control((0, 1, 2, 3)).release(np.array([[0, 0, 1, 0]]), rng=ReplayableWords(1))
