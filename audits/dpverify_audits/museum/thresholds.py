"""Thresholds and partitions.

A list of what is there can be published with noise and a threshold, if whoever is alone in a row is
so likely to be left out that δ pays for the rest. All of it is in the tail, and the tail is where
people round.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

from dpverify.data.adjacency import AddRemove
from dpverify.data.columns import Categories, Integers
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit

__all__ = ["EXHIBITS", "NAME", "discrete_laplace"]

NAME = "Thresholds and partitions"
_WORDS = Table({"word": Categories(*"abcd")}, rows=(0, 12))
_QUERIES = Table({"id": Integers(1, 4), "word": Categories(*"abcd")}, rows=(0, 12))


def discrete_laplace(rng: Any, scale: float) -> int:
    """A whole number z with odds exp(−|z|/scale)."""
    stop = -math.expm1(-1 / scale)
    return int(rng.geometric(stop) - rng.geometric(stop))


def _frequent(rows: Any, rng: Any, *, threshold: int, scale: float = 1) -> Any:
    """Words and noisy counts, of those that reach a threshold."""
    noisy = {
        word: count + discrete_laplace(rng, scale)
        for word, count in Counter(row["word"] for row in rows).items()
    }
    return {word: count for word, count in sorted(noisy.items()) if count >= threshold}


def _of_users(rows: Any, rng: Any, *, most: int, threshold: int, scale: float) -> Any:
    """The same, of at most so many words of each user, each once."""
    words: dict[Any, set[Any]] = {}
    for row in rows:
        theirs = words.setdefault(row["id"], set())
        if len(theirs) < most:
            theirs.add(row["word"])
    listed = [{"word": word} for theirs in words.values() for word in sorted(theirs)]
    return _frequent(listed, rng, threshold=threshold, scale=scale)


def _anonymous(rows: Any, rng: Any, *, noisy: bool) -> Any:
    """Words of at least three people, with their counts: k-anonymity."""
    if noisy:
        return _frequent(rows, rng, threshold=6)
    counts = Counter(row["word"] for row in rows)
    return {word: count for word, count in sorted(counts.items()) if count >= 3}


def _raw_then_noise(rows: Any, rng: Any, *, raw: bool) -> Any:
    """The threshold is on the count, and the noise comes after."""
    if not raw:
        return _frequent(rows, rng, threshold=6)
    counts = Counter(row["word"] for row in rows)
    return {w: n + discrete_laplace(rng, 1) for w, n in sorted(counts.items()) if n >= 4}


def _tail(threshold: int, scale: float = 1) -> float:
    """P[1 + Z ≥ threshold], of discrete Laplace noise Z: that one person's word is listed."""
    return math.exp(-(threshold - 1) / scale) / (1 + math.exp(-1 / scale))


_DELTA = _tail(6)

EXHIBITS: tuple[Exhibit, ...] = (
    exhibit(
        "The mass at the threshold",
        "δ is the chance to be above the threshold, and counts at it are listed too.",
        "A lone word is listed 2.7 times as often as δ says.",
        broken=partial(_frequent, threshold=5),
        correct=partial(_frequent, threshold=6),
        source="OpenDP 0.16.0, then_laplace_threshold; issue 2922",
        domain=_WORDS,
        delta=_DELTA * (1 + 1e-9),
    ),
    exhibit(
        "A threshold for one, a scale for three",
        "The threshold grows with ln(1/δ), and not with how much a user may add.",
        "Three words of one user are three chances, with wider noise each.",
        broken=partial(_of_users, most=3, threshold=6, scale=3),
        correct=partial(_of_users, most=3, threshold=19, scale=3),
        source="OpenDP up to 0.3, make_base_stability; its changelog, 0.4",
        domain=_QUERIES,
        adjacency=AddRemove(user="id"),
        delta="0.01",
    ),
    exhibit(
        "At least three people",
        "Exact counts of what at least three people have: k-anonymity.",
        "The third person makes the word appear, for certain.",
        broken=partial(_anonymous, noisy=False),
        correct=partial(_anonymous, noisy=True),
        source="Götz and others, TKDE 2012 (arXiv:0904.0682)",
        domain=_WORDS,
        delta=_DELTA * (1 + 1e-9),
        found_by=("determinism",),
    ),
    exhibit(
        "Noise after the threshold",
        "The raw count is compared, and what is listed gets its noise later.",
        "Whether a word is listed depends on one person alone.",
        broken=partial(_raw_then_noise, raw=True),
        correct=partial(_raw_then_noise, raw=False),
        source="after Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009, who add it before",
        domain=_WORDS,
        delta=_DELTA * (1 + 1e-9),
    ),
)
