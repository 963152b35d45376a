"""numpy's own seeds and generators, by one hash of many."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.sampling.generators import _FEW, generators
from dpverify.sampling.words import ReplayableWords

MANY = 3 * _FEW


class Given:
    """Words that were chosen."""

    policy: ClassVar[str] = "replayable: chosen"

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.given = words

    def words(self, count: int) -> NDArray[np.uint64]:
        assert count == self.given.size
        return self.given.ravel()


def numpys(words: NDArray[np.uint64]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words.tolist())))


@pytest.mark.parametrize("count", [1, _FEW - 1, _FEW, MANY])
def test_each_is_what_numpy_makes_of_the_next_four_words(count: int) -> None:
    words = ReplayableWords(1).words(4 * count).reshape(count, 4)
    made = list(generators(ReplayableWords(1), count))
    assert [g.bit_generator.state for g in made] == [numpys(w).bit_generator.state for w in words]
    assert len({id(g) for g in made}) == count


def test_words_of_which_numpy_takes_one_half() -> None:
    edges = [0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    words = np.random.default_rng(1).choice(np.array(edges, dtype=np.uint64), (500, 4))
    words[0] = 0
    states = [g.bit_generator.state for g in generators(Given(words), 500)]
    assert states == [numpys(row).bit_generator.state for row in words]


@pytest.mark.parametrize("number", [0, 7])
def test_what_else_a_mechanism_may_ask_of_its_generator(number: int) -> None:
    words = ReplayableWords(2).words(4 * MANY).reshape(MANY, 4)
    own = numpys(words[number])
    made = list(generators(ReplayableWords(2), MANY))[number]
    for copied in (copy.deepcopy(made), cloudpickle.loads(cloudpickle.dumps(made))):
        assert copied.spawn(1)[0].random() == numpys(words[number]).spawn(1)[0].random()
    for _ in range(2):  # other children each time
        assert [g.random() for g in made.spawn(2)] == [g.random() for g in own.spawn(2)]
    ours: Any = made.bit_generator.seed_seq
    theirs: Any = own.bit_generator.seed_seq
    assert (ours.entropy, ours.spawn_key) == (theirs.entropy, theirs.spawn_key)
    for dtype in (np.uint32, np.uint64):
        assert (ours.generate_state(3, dtype) == theirs.generate_state(3, dtype)).all()
        assert (ours.generate_state(4, dtype) == theirs.generate_state(4, dtype)).all()
    assert made.random() == own.random()
