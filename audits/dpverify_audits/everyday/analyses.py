"""Analyses of data scientists: sketches, trees, intervals, survival, synthetic rows, journeys."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dpverify.data.adjacency import AddRemove, Replace
from dpverify.data.columns import Booleans, Categories, Integers, Reals
from dpverify.data.table import Table
from dpverify_audits.museum.exhibit import Exhibit, exhibit
from dpverify_audits.museum.local import kept_with

__all__ = ["EXHIBITS"]

_IDS = Table({"id": Integers(1, 1000)}, rows=(0, 12), make="numpy")
_ID = Table(_IDS.columns, rows=1, make="numpy")
_DIGITS = Table({"x": Integers(0, 7)}, rows=(0, 12), make="numpy")
_GRADES = Table({"x": Integers(0, 63)}, rows=(0, 15), make="numpy")
_SIZED = Table({"x": Reals(0, 1)}, rows=10, make="numpy")
_SCORES = Table({"score": Reals(0, 1), "ill": Booleans()}, rows=10, make="numpy")
_EDGES = Table({"one": Integers(0, 5), "other": Integers(0, 5)}, rows=(0, 12), make="numpy")
_AGES = Table({"age": Integers(0, 99)}, rows=(0, 12), make="numpy")
_FLAGS = Table({"ok": Booleans()}, rows=(0, 200))
_VISITS = Table({"user": Integers(1, 5), "minute": Integers(0, 1439)}, rows=(0, 20))
_BASKETS = Table({"user": Integers(1, 5), "item": Categories("a", "b", "c")}, rows=(0, 12))
_USER: dict[str, Any] = {"adjacency": AddRemove(user="user")}
_TABLES = 3  # of a sketch


def _place(value: float, table: int, size: int) -> int:
    return (int(value) * 2654435761 + table * 40503) % 2**32 % size


def _sketch(x: Any, rng: Any, *, scale: float) -> Any:
    """A count-min sketch."""
    counts = np.zeros((_TABLES, 8))
    for value in x:
        for table in range(_TABLES):
            counts[table, _place(value, table, 8)] += 1
    return counts + rng.laplace(scale=scale, size=counts.shape)


def _bloom(x: Any, rng: Any, *, epsilon: float) -> Any:
    """A Bloom filter of one value, each bit by randomized response."""
    bits = np.zeros(16, dtype=bool)
    bits[[_place(x[0], table, 16) for table in range(_TABLES)]] = True
    return (bits ^ (rng.random(16) > kept_with(epsilon))).astype(int)


def _largest_zeros(x: Any, rng: Any, *, power: bool) -> float:
    """Flajolet and Martin's estimate, or how many of 32 buckets are taken."""
    hashed = [_place(value, 1, 2**32) for value in x]
    if power:
        zeros = max(((each & -each).bit_length() for each in hashed), default=0)
        return float(2**zeros + rng.laplace(scale=2))
    return float(len({each % 32 for each in hashed}) + rng.laplace())


def _degrees(edges: Any, rng: Any, *, scale: float) -> Any:
    """The degrees of a graph, sorted after the noise."""
    degrees = np.bincount(edges.astype(int).ravel(), minlength=6)
    return np.sort(degrees + rng.laplace(scale=scale, size=6))


def _haar(x: Any, rng: Any, *, scale: float) -> Any:
    """Differences of halves, quarters and eighths of a histogram, and its sum."""
    left, parts = np.bincount(x.astype(int), minlength=8).astype(float), []
    while len(left) > 1:
        parts.append(left[::2] - left[1::2])
        left = left[::2] + left[1::2]
    exact = np.concatenate([*parts, left])
    return exact + rng.laplace(scale=scale, size=exact.shape)


def _bisected(x: Any, rng: Any, *, scale: float) -> float:
    """A median by six noisy questions."""
    low, high = 0.0, 64.0
    for _ in range(6):
        middle = (low + high) / 2
        fewer = (x < middle).sum() - (x >= middle).sum() + rng.laplace(scale=scale) < 0
        low, high = (middle, high) if fewer else (low, middle)
    return low


def _area(d: Any, rng: Any, *, scale: float) -> float:
    """The area under the ROC of a score."""
    ill, well = d[d[:, 1] > 0, 0], d[d[:, 1] == 0, 0]
    wins = np.sign(ill[:, None] - well) / 2 + 0.5
    return float(wins.mean() if wins.size else 0.5) + float(rng.laplace(scale=scale))


def _interval(x: Any, rng: Any, *, own: bool) -> Any:
    """A noisy mean, and the width of its bootstrap interval: of the rows, or for any rows."""
    mean = x.mean() + rng.laplace(scale=0.1)
    means = rng.choice(x, size=(50, 10)).mean(axis=1) if own else rng.normal(scale=0.1, size=50)
    return mean, float(np.ptp(np.quantile(means, [0.025, 0.975])))


def _variation(x: Any, rng: Any, *, scale: float) -> float:
    return float(np.abs(np.diff(x)).sum() + rng.laplace(scale=scale))


def _synthetic(x: Any, rng: Any, *, jitter: bool) -> Any:
    """Five ages: of rows, moved a little; or of a noisy histogram's bins."""
    if jitter and len(x):
        return rng.choice(x, size=5) + rng.normal(scale=2, size=5)
    noisy = np.histogram(x, bins=[0, 25, 50, 75, 100])[0] + rng.laplace(size=4)
    shares = np.maximum(noisy, 0.01)
    return 25 * (rng.choice(4, size=5, p=shares / shares.sum()) + rng.random(5))


def _about(rows: Any, rng: Any, *, noisy: bool) -> str:
    count = len(rows) + (rng.laplace() if noisy else 0)
    return f"about {50 * round(count / 50)} users"


def _posterior(rows: Any, rng: Any, *, sampled: bool) -> float:
    """A sample of a rate's posterior, or a noisy count."""
    good = sum(row["ok"] for row in rows)
    return float(rng.beta(1 + good, 1 + len(rows) - good) if sampled else good + rng.laplace())


def _sessions(rows: Any, rng: Any, *, most: float) -> float:
    """Visits half an hour apart, at most so many of each user."""
    total = 0.0
    for user in {row["user"] for row in rows}:
        minutes = sorted(row["minute"] for row in rows if row["user"] == user)
        total += min(1 + sum(b - a > 30 for a, b in pairwise(minutes)), most)
    return total + float(rng.laplace(scale=3))


def _together(rows: Any, rng: Any, *, scale: float) -> Any:
    """How many users have both of two items."""
    bought: dict[int, set[str]] = {}
    for row in rows:
        bought.setdefault(row["user"], set()).add(row["item"])
    counts = Counter(
        pair for items in bought.values() for pair in ("ab", "ac", "bc") if items >= set(pair)
    )
    return [counts[pair] + rng.laplace(scale=scale) for pair in ("ab", "ac", "bc")]


def _case(
    name: str, mistake: str, release: Any, broken: Any, correct: Any, **words: Any
) -> Exhibit:
    """A release with one argument that is wrong or right."""
    return exhibit(
        name,
        mistake,
        broken=partial(release, **broken),
        correct=partial(release, **correct),
        **words,
    )


EXHIBITS: tuple[Exhibit, ...] = (
    _case(
        "a sketch of three tables, noise for one",
        "Each value is counted in all three.",
        _sketch,
        {"scale": 1},
        {"scale": 3},
        domain=_IDS,
    ),
    _case(
        "a Bloom filter, ε for a bit",
        "Two values differ in up to six bits.",
        _bloom,
        {"epsilon": 1 / 2},
        {"epsilon": 1 / 6},
        domain=_ID,
        adjacency=Replace(),
    ),
    _case(
        "distinct values by trailing zeros",
        "One value may double the estimate.",
        _largest_zeros,
        {"power": True},
        {"power": False},
        domain=_IDS,
    ),
    _case(
        "degrees, noise for one end",
        "An edge has two ends.",
        _degrees,
        {"scale": 1},
        {"scale": 2},
        domain=_EDGES,
    ),
    _case(
        "wavelets, noise for a count",
        "A row is in a coefficient of each level.",
        _haar,
        {"scale": 1},
        {"scale": 4},
        domain=_DIGITS,
    ),
    _case(
        "a median by six questions, noise for one",
        "Each comparison takes the whole budget.",
        _bisected,
        {"scale": 1},
        {"scale": 6},
        domain=_GRADES,
    ),
    _case(
        "an area under the ROC by 1/n",
        "The only one who is ill moves it by 1.",
        _area,
        {"scale": 0.1},
        {"scale": 1},
        domain=_SCORES,
        adjacency=Replace(),
    ),
    _case(
        "a bootstrap interval",
        "A noisy mean, with how much the rows vary.",
        _interval,
        {"own": True},
        {"own": False},
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _case(
        "changes of a series, noise for one",
        "A value is in two of them.",
        _variation,
        {"scale": 1},
        {"scale": 2},
        domain=_SIZED,
        adjacency=Replace(),
    ),
    _case(
        "rows, moved a little",
        "Synthetic ages lie near real ones.",
        _synthetic,
        {"jitter": True},
        {"jitter": False},
        domain=_AGES,
    ),
    _case(
        "rounded to fifties",
        "Few digits are no noise: 25 rows are none, and 26 are fifty.",
        _about,
        {"noisy": False},
        {"noisy": True},
        domain=_FLAGS,
    ),
    _case(
        "a sample of the posterior",
        "Its randomness has no ε.",
        _posterior,
        {"sampled": True},
        {"sampled": False},
        domain=_FLAGS,
    ),
    _case(
        "all sessions of a user",
        "Sessions aren't bounded, and the noise is for three.",
        _sessions,
        {"most": math.inf},
        {"most": 3},
        domain=_VISITS,
        **_USER,
    ),
    _case(
        "bought together, noise for a pair",
        "A user who buys all three is in three pairs.",
        _together,
        {"scale": 1},
        {"scale": 3},
        domain=_BASKETS,
        **_USER,
    ),
)
