"""Random words under two policies: secure for releases, replayable for everything rebuilt.

A release is always made with `SecureWords`, whose key exists nowhere but inside the running cipher.
Audits, projections and hashes use `ReplayableWords`, which give the same words on every machine
and under every version of numpy: only raw words of a named bit generator are used, never numpy's
distributions, which may change.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpverify.errors import EntropyError, ParameterError, require
from dpverify.execution.process import this_process

__all__ = ["SHARED", "ReplayableWords", "SecureWords", "Words", "check_seed", "release_words"]

_T = TypeVar("_T")

SHARED = 4096
"""Words a call, up to which calls share a block: see `ReplayableWords.made`."""
_AHEAD = 8192  # words at most that are drawn before they are asked for, if calls take few
_CALLS = 4  # that share a block, if they take many
_ZEROS = memoryview(bytes(1 << 16))  # what is encrypted, a piece that stays in the cache


class Words(Protocol):
    """A source of independent uniform 64-bit words."""

    policy: ClassVar[str]

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw the next `count` words."""
        ...


class SecureWords(threading.local):
    """AES-256 in counter mode under a key drawn from the operating system for this object alone.

    An AES keystream is indistinguishable from uniform words to anyone who can't break AES; the
    guarantee of a release is information-theoretic up to that assumption. The object can't be
    copied, pickled or asked for its key. A forked process draws a key of its own: with its
    parent's, two releases would carry the same noise, and their difference none. So does each
    thread that shares the object.

    Raises
    ------
    EntropyError
        If the operating system has no entropy to give: there is no fallback.
    """

    policy: ClassVar[str] = "secure: AES-256-CTR keyed from the operating system, key not kept"

    def __init__(self) -> None:
        self._draw_key()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw the next `count` words."""
        if this_process() != self._process:
            self._draw_key()
        drawn = np.empty(count, dtype=np.uint64)
        space = drawn.view(np.uint8).data
        for start in range(0, len(space), len(_ZEROS)):
            part = space[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)], part)
        return drawn

    def _draw_key(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # 15 ms

        try:
            key = os.urandom(32)
        except (OSError, NotImplementedError) as error:
            raise EntropyError(f"the operating system gives no random bytes: {error}.") from None
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._process = this_process()


class ReplayableWords:
    """Raw words of Philox-4x64, seeded by numpy's SeedSequence from a seed and a key of the case.

    Parameters
    ----------
    seed : int, from 0 to below 2¹²⁸; public
    key : ints below 2²⁴ and strings of at least 3 characters that name the case. Different keys
        give independent streams, so that neither the order of the cases nor the number of workers
        changes a result. The limits keep the words that numpy makes of a key apart: those of a
        string but its last are at least 2²⁹, and its last one, behind the mark 1, at least 2²⁴ or
        preceded by another.

    Attributes
    ----------
    taken : words that were asked for so far
    """

    policy: ClassVar[str] = "replayable: numpy SeedSequence, Philox-4x64 raw words"

    def __init__(self, seed: int, *key: int | str) -> None:
        check_seed(seed)
        spawn_key = tuple(_as_integer(part) for part in key)
        self._generator = np.random.Philox(np.random.SeedSequence(seed, spawn_key=spawn_key))
        self._ahead = np.empty(0, np.uint64)
        self._made: dict[Hashable, object] = {}  # of the words ahead
        self._next = 0  # of the words ahead
        self.taken = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draw the next `count` words."""
        self.taken += count
        if self._next == self._ahead.size:
            return self._generator.random_raw(count)
        drawn = self._ahead[self._next : self._next + count]
        self._next += drawn.size
        return np.concatenate([drawn, self._generator.random_raw(count - drawn.size)])

    def made(
        self, count: int, key: Hashable, make: Callable[[NDArray[np.uint64]], _T]
    ) -> tuple[_T, int]:
        """Draw the next `count` words, as what is made of them together with those that follow.

        An array costs little for each of its words and much for itself, so that calls that take few
        words each share one. No word depends on it, nor what is made of one.

        Parameters
        ----------
        count : at most `SHARED`
        key : names what is made
        make : of an array of words, as many as were taken before; called seldom

        Returns
        -------
        What was made, and the place in it of the first of the `count` words.
        """
        if count > self._ahead.size - self._next:
            kept = self._ahead[self._next :]
            fresh = max(count - kept.size, min(self.taken, max(_AHEAD, _CALLS * count)))
            self._ahead = np.concatenate([kept, self._generator.random_raw(fresh)])
            self._next = 0
            self._made.clear()
        if key not in self._made:
            self._made[key] = make(self._ahead)
        place = self._next
        self._next += count
        self.taken += count
        return self._made[key], place  # type: ignore[return-value]  # what this key names


def check_seed(seed: int) -> None:
    """Refuse a seed of replayable words that runs over into those of the key.

    Raises
    ------
    ParameterError
        If it isn't from 0 to below 2¹²⁸.
    """
    require(0 <= seed < 2**128, "seed", seed, "a whole number from 0 to below 2**128")


def release_words(rng: Words | None) -> Words:
    """Words for a release: secure ones, unless an audit gives its own.

    Raises
    ------
    ParameterError
        If `rng` is a seed or a generator of numpy: whoever knows its state takes the noise off.
    """
    if rng is None:
        return SecureWords()
    if not hasattr(rng, "words"):
        raise ParameterError(
            "rng",
            repr(rng),
            "left out, or a source of words",
            "A release that can be replayed isn't private: audits draw with ReplayableWords(seed).",
        )
    return rng


def _as_integer(part: int | str) -> int:
    if isinstance(part, int):
        require(0 <= part < 2**24, "key", part, "a whole number below 2**24")
        return part
    text = part.encode()
    require(len(text) >= 3 and min(text) >= 32, "key", repr(part), "3 printable characters or more")
    return int.from_bytes(b"\x01" + text, "big")
