"""Coins and dice: exact probabilities, checked on the words themselves."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.errors import ParameterError
from dpverify.sampling.coins import flips, packed_flips, uniform_below
from dpverify.sampling.words import ReplayableWords, SecureWords

LAST = 2**64 - 1


class Script:
    """Words given beforehand, read-only, as a source may hand them out."""

    policy: ClassVar[str] = "scripted"

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count
        drawn = np.array(taken, dtype=np.uint64)
        drawn.flags.writeable = False
        return drawn


@pytest.mark.parametrize("numerator", [0, 1, 2**53 + 1, 2**63, LAST])
def test_a_coin_is_true_for_exactly_its_numerator_of_words(numerator: int) -> None:
    """The words below the numerator, and no others: the edges are all that could go wrong."""
    edges = [w for w in (0, numerator - 1, numerator, numerator + 1, LAST) if 0 <= w <= LAST]
    drawn = flips(numerator, (len(edges),), rng=Script(*edges))
    assert drawn.tolist() == [w < numerator for w in edges]


def test_numerators_broadcast() -> None:
    numerators = np.array([0, 2**63, LAST], dtype=np.uint64)
    drawn = flips(numerators, (2, 3), rng=Script(0, 2**63, LAST - 1, LAST, 2**63 - 1, LAST))
    assert drawn.tolist() == [[False, False, True], [False, True, False]]


def test_small_integer_arrays_are_whole_numbers_too() -> None:
    assert flips(np.array([1, 2]), (2,), rng=Script(0, 2)).tolist() == [True, False]


@pytest.mark.parametrize(
    "numerators",
    [-1, 2**64, 0.5, float("nan"), [0.0], [1, -1], [-1, 2**63], True, np.array([2.0**63])],
)
def test_other_numerators_are_refused(numerators: object) -> None:
    with pytest.raises(ParameterError, match="numerators"):
        flips(numerators, (2,), rng=ReplayableWords(1))  # type: ignore[arg-type]


def test_blocks_of_coins_are_the_same_coins() -> None:
    whole = flips(2**62, (10, 3), rng=ReplayableWords(5))
    rng = ReplayableWords(5)
    parts = [flips(2**62, (rows, 3), rng=rng) for rows in (1, 4, 5)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_packed_coins_are_the_same_coins() -> None:
    """Also where a call takes many words, and where others were taken between."""
    plain, packed = ReplayableWords(5, "coins"), ReplayableWords(5, "coins")
    for number, shape in enumerate([(1, 13)] * 700 + [(400, 13), (2, 13), (3, 5), (1, 13)]):
        assert number % 300 or np.array_equal(plain.words(2), packed.words(2))
        coins = packed_flips(2**62 + number % 2, shape, rng=packed)
        expected = np.packbits(flips(2**62 + number % 2, shape, rng=plain), axis=1)
        assert np.array_equal(coins, expected)


def test_a_die_keeps_whole_multiples_only() -> None:
    """2⁶⁴ = 3·m + 1: one word is left over, drawn again after all others."""
    assert LAST % 3 == 0
    drawn = uniform_below(3, (4,), rng=Script(LAST, LAST - 1, 4, LAST, 7, LAST, 5))
    assert drawn.tolist() == [1, (LAST - 1) % 3, 1, 2]


def test_a_die_is_uniform_over_every_kept_word() -> None:
    """All words of the largest multiples, seen through the edges of each side's share."""
    bound = 2**63
    assert uniform_below(bound, (3,), rng=Script(0, bound - 1, LAST)).tolist() == [
        0,
        bound - 1,
        bound - 1,
    ]
    bound = 2**62 + 1  # three whole multiples fit; what is left over is almost a fourth
    kept = 3 * bound - 1
    drawn = uniform_below(bound, (2,), rng=Script(kept, kept + 1, 11))
    assert drawn.tolist() == [bound - 1, 11]


def test_a_die_with_one_side_and_an_empty_shape() -> None:
    assert uniform_below(1, (2, 2), rng=SecureWords()).tolist() == [[0, 0], [0, 0]]
    assert uniform_below(6, (0,), rng=SecureWords()).shape == (0,)


def test_a_die_of_a_cryptographic_source() -> None:
    """χ² of six sides stays below 34: exceeded with probability 2.4e-6."""
    counts = Counter(uniform_below(6, (60_000,), rng=SecureWords()).tolist())
    assert set(counts) == set(range(6))
    assert sum((count - 10_000) ** 2 / 10_000 for count in counts.values()) < 34


@pytest.mark.parametrize("bound", [0, -3, 2**63 + 1])
def test_other_bounds_are_refused(bound: int) -> None:
    with pytest.raises(ParameterError, match="bound"):
        uniform_below(bound, (2,), rng=ReplayableWords(1))
