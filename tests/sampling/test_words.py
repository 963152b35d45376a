from __future__ import annotations

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from dpverify.errors import ParameterError
from dpverify.sampling.words import ReplayableWords, SecureWords
from tests.helpers.profiles import day_and_night


def test_replayable_words_are_pinned() -> None:
    """A change here breaks the replay of every published certificate."""
    assert ReplayableWords(7, "white-box", 0, 1, 3).words(3).tolist() == [
        8375348224444704766,
        18390022670240340607,
        9837822809325044317,
    ]


def test_keys_name_independent_streams() -> None:
    keys: list[tuple[int | str, ...]] = [
        (),
        (0,),
        (1,),
        ("001",),
        ("abc",),
        ("abc", 0),
        ("abc", 1),
        (0, "abc"),
        ("abcdefgh",),
        ("abcdefgh", 1),
        ("abcd", "efgh"),
        (1, "abcdefgh"),
    ]
    streams = {tuple(ReplayableWords(5, *key).words(4).tolist()) for key in keys}
    assert len(streams) == len(keys)
    assert (
        ReplayableWords(5, "abc").words(4).tolist() == ReplayableWords(5, "abc").words(4).tolist()
    )
    assert (
        ReplayableWords(5, "abc").words(4).tolist() != ReplayableWords(6, "abc").words(4).tolist()
    )


def test_asking_in_parts_gives_the_same_words() -> None:
    whole, parts = ReplayableWords(5, "abc"), ReplayableWords(5, "abc")
    pieces = np.concatenate([parts.words(n) for n in (1, 7, 0, 24)])
    assert whole.words(32).tolist() == pieces.tolist()


def test_negative_seed() -> None:
    with pytest.raises(ParameterError, match="seed=-1 must be"):
        ReplayableWords(-1)


def test_secure_words_never_repeat_and_keep_their_key() -> None:
    one, two = SecureWords(), SecureWords()
    drawn = np.concatenate([one.words(1000), one.words(1000), two.words(2000)])
    assert np.unique(drawn).size == drawn.size
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            duplicate(one)


@pytest.mark.parametrize("count", day_and_night(20_000, 100_000))
def test_threads_that_share_an_object_draw_words_of_their_own(count: int) -> None:
    """One cipher between threads raises "Already borrowed" now and then."""
    rng = SecureWords()
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(rng.words, [count] * 24))
    assert np.unique(np.concatenate(drawn)).size == 24 * count


def test_no_entropy_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", exhausted)
    with pytest.raises(OSError, match="no entropy"):
        SecureWords()


def test_bits_of_both_sources_are_balanced() -> None:
    """Each of 64 bits within 6 standard deviations: below 2e-7 for both sources together."""
    count = 200_000
    for source in (SecureWords(), ReplayableWords(3, "bits")):
        words = source.words(count)
        for bit in range(64):
            ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
            assert abs(ones - count / 2) < 6 * (count / 4) ** 0.5


@pytest.mark.parametrize("part", [-1, 2**24, 0x65666768, "", "ab", "a\nbc"])
def test_keys_that_could_be_another(part: int | str) -> None:
    """numpy strings the 32-bit words of all parts together: 0x65666768, … would be "abcdefgh"."""
    with pytest.raises(ParameterError, match="key"):
        ReplayableWords(1, "abc", part)


@pytest.mark.parametrize("number", [None, 1], ids=["plain", "in a namespace of its own"])
def test_a_forked_process_has_words_of_its_own(
    monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    """In a new namespace of processes parent and child can both be process 1."""
    if number is not None:
        monkeypatch.setattr(os, "getpid", lambda: number)
    rng = SecureWords()
    rng.words(3)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child's lines aren't seen
        os.write(write, rng.words(2).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 16), dtype=np.uint64)
    os.close(read)
    os.close(write)
    assert not np.array_equal(theirs, rng.words(2))


def test_seeds_that_run_over_into_the_key() -> None:
    """numpy pads a seed to 128 bits before the key's words; a longer one would be another's key."""
    with pytest.raises(ParameterError, match="seed"):
        ReplayableWords(1 + (5 << 128))


def test_words_made_ahead_are_those_of_the_stream() -> None:
    """Asked for in any order: as they are, or as what is made of them, one thing or another."""
    ahead, plain = ReplayableWords(5, "abc"), ReplayableWords(5, "abc")
    factors = {"double": np.uint64(2), "triple": np.uint64(3)}
    sizes: list[int] = []
    for turn in range(300):
        count = turn % 7
        expected = plain.words(count)
        if turn % 3 == 0:
            assert ahead.words(count).tolist() == expected.tolist()
            continue
        key = "double" if turn % 2 else "triple"

        def make(words: NDArray[np.uint64], key: str = key) -> NDArray[np.uint64]:
            sizes.append(words.size)
            return words * factors[key]

        made, start = ahead.made(count, key, make)
        assert made[start : start + count].tolist() == (expected * factors[key]).tolist()
    assert len(sizes) < 30  # seldom, and for ever more words
    assert max(sizes) > 200
