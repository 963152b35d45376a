"""Low digits: a column where they were made, and none where noise covers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.auditing.audit import audit
from dpverify.auditing.outputs.digits import Digits, digits
from dpverify.auditing.outputs.features import features
from dpverify.data.adjacency import Attribute
from dpverify.privacy import Pair

NOISE = np.random.default_rng(1).laplace(size=(4000, 1))
HALF = np.repeat([[0.0], [1.0]], 2000, axis=0)
PAIR = Pair(name="0 or 1", record=np.zeros((1, 1)), neighbour=np.ones((1, 1)))


@pytest.mark.parametrize(
    "numbers",
    [NOISE, 1e6 + NOISE, 1e-5 * NOISE, NOISE.astype(np.float32), np.round(NOISE), np.exp(NOISE)],
)
def test_noise_and_whole_numbers_have_none(numbers: NDArray[Any]) -> None:
    assert not digits(numbers.astype(np.float64)).columns


@pytest.mark.parametrize(
    "made",
    [
        np.round(NOISE, 4) + 1e-7 * HALF,
        np.round(NOISE, 1) + 1e-3 * HALF,
        np.round(NOISE, 2) + np.round(NOISE * 7, 0) * 1e-4 + 1e-6 * HALF,
        np.round(1e3 * NOISE) + 1e-4 * HALF + 1e-6 * NOISE,
    ],
)
def test_what_is_hidden_in_digits_has_a_column(made: NDArray[Any]) -> None:
    both = np.hstack([NOISE, made])
    found = digits(both)
    assert set(found.columns) == {1}
    columns = found(both)
    apart = np.abs(columns[:2000].mean(axis=0) - columns[2000:].mean(axis=0))
    assert np.any(apart > columns[:2000].std(axis=0) + columns[2000:].std(axis=0))


def test_of_each_column_the_places_that_were_made() -> None:
    still = np.zeros((4000, 1))
    large = np.round(1e9 * NOISE) + 0.01 * HALF  # ten times that is beyond what doubles hold
    tenths = np.round(10 * NOISE, 1)
    found = digits(np.hstack([still, large, tenths, NOISE, tenths + 1e-3 * HALF]))
    # At a hundredth part the last column would show the same again.
    assert found == Digits(columns=(1, 2, 4, 4), factors=(1.0, 1.0, 1.0, 10.0))


def test_outputs_that_are_far_larger_than_those_of_training_have_remainders() -> None:
    """An infinite one counts as 1e300."""
    assert np.isfinite(Digits((0, 0), (8.0, 1e9))(np.array([[1e300], [-1e300]]))).all()


def test_their_columns_have_names_and_few_places() -> None:
    made = np.round(NOISE, 2) + np.zeros((1, 40))
    learned = features(made)
    assert len(learned.names) == 40 + 16
    assert "output[0]·10 mod 1" in learned.names
    assert learned.matrix(made).shape == (4000, 56)


def hidden(write: Callable[[float, float], Any]) -> Any:
    def released(record: NDArray[np.float64], rng: np.random.Generator) -> Any:
        return write(round(float(record[0]) + rng.laplace(), 4), float(record[0]))

    claim: Any = {"epsilon": 1, "adjacency": Attribute(1), "of": "record", "pairs": [PAIR]}
    return audit(released, kinds=["black-box"], draws=200, workers=1, **claim)


def test_a_record_in_the_low_digits_is_found_and_rounding_is_not_accused() -> None:
    assert hidden(lambda noisy, x: {"mean": noisy + x * 1e-7}).verdict == "violation"
    assert hidden(lambda noisy, _: noisy).verdict == "no_violation_found"
