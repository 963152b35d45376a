"""Generators of numpy that are seeded by random words, for functions that draw with them.

Each is what ``np.random.Generator(np.random.PCG64(np.random.SeedSequence(four_words)))`` makes, to
the last bit, and an object of its own. Nearly all the time of that goes into the hashing of the
words by `SeedSequence`, which is therefore done for many at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from dpverify.sampling.words import Words

__all__ = ["generators"]

_WORDS = 4  # of 64 bits, in a seed and in a state
_POOL = 4  # numbers of 32 bits
_FEW = 14  # seeds that numpy hashes sooner than arrays are made of them


def generators(rng: Words, count: int) -> Iterator[np.random.Generator]:
    """Generators of numpy, each seeded by the next four words.

    Parameters
    ----------
    rng : gives all the words at once
    count : how many generators

    Examples
    --------
    >>> from dpverify.sampling.words import ReplayableWords
    >>> [round(g.normal(), 3) for g in generators(ReplayableWords(1), 2)]
    [0.249, 0.488]
    """
    entropy = rng.words(_WORDS * count).reshape(count, _WORDS)
    seeds: Iterator[Any]
    if count < _FEW:
        seeds = map(np.random.SeedSequence, entropy.tolist())
    else:
        seeds = map(_Seed, zip(_states(entropy), repeat(entropy), range(count), strict=False))
    return map(np.random.Generator, map(np.random.PCG64, seeds))


@ISpawnableSeedSequence.register  # a tuple is made sooner than anything that Python initialises
class _Seed(tuple[NDArray[np.uint64], NDArray[np.uint64], int]):
    """A seed: its state, which is known, and the row of all entropies from which that was hashed.

    Whatever else is asked of it, numpy's own seed answers.
    """

    @cached_property
    def _own(self) -> np.random.SeedSequence:
        _, entropy, row = self
        return np.random.SeedSequence(entropy[row].tolist())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying asks before there is anything
            raise AttributeError(name)
        return getattr(self._own, name)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        if n_words == _WORDS and dtype is np.uint64:
            return self[0]
        return self._own.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        return self._own.spawn(n_children)


def _states(entropy: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """For each row of four words, ``SeedSequence(row).generate_state(4, np.uint64)``.

    The hash is Melissa O'Neill's `seed_seq_fe`, with the constants of numpy's SeedSequence, which
    numpy has promised not to change. Of a word below 2**32 numpy takes one half alone.
    """
    halves = np.ascontiguousarray(entropy.astype("<u8").view("<u4").T.astype(np.uint32))
    pool = _hashed(halves[:_POOL], _IN[: _POOL + 1])
    step = _POOL
    for source in range(_POOL):
        others = [place for place in range(_POOL) if place != source]
        constants = _IN[step : step + _POOL]
        pool[others] = _mixed(pool[others], _hashed(pool[source], constants))
        step += len(others)
    for half in halves[_POOL:]:
        pool = _mixed(pool, _hashed(half, _IN[step : step + _POOL + 1]))
        step += _POOL
    made = _hashed(np.concatenate([pool, pool]), _OUT)
    states = np.ascontiguousarray(made.T).astype("<u4").view("<u8").astype(np.uint64)
    for row in np.flatnonzero((entropy < 2**32).any(axis=1)):
        states[row] = np.random.SeedSequence(entropy[row].tolist()).generate_state(4, np.uint64)
    return states


def _constants(first: int, factor: int, count: int) -> NDArray[np.uint32]:
    """Powers of a factor: each step of a hash flips by one and multiplies by the next."""
    powers = [first * pow(factor, power, 2**32) % 2**32 for power in range(count + 1)]
    return np.array(powers, dtype=np.uint32)[:, None]


_IN = _constants(0x43B0D7E5, 0x931E8875, 4 + 12 + 16)  # begin, stir, take the other halves
_OUT = _constants(0x8B51F9DD, 0x58F38DED, 2 * _WORDS)


def _hashed(value: NDArray[np.uint32], constants: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """As many steps of the hash as constants but one, each on a row, or all on the only one."""
    value = (value ^ constants[:-1]) * constants[1:]
    return value ^ (value >> np.uint32(16))


def _mixed(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.uint32]:
    mixed: NDArray[np.uint32] = one * np.uint32(0xCA01F9DD) - other * np.uint32(0x4973F715)
    return mixed ^ (mixed >> np.uint32(16))
