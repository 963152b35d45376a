"""Selection: sparse vectors, noisy maxima, the exponential mechanism, thresholds, reports.

The sparse vectors are named after Lyu, Su and Li 2017, "Understanding the sparse vector technique
for differential privacy" (PVLDB 10, 6), with sensitivity 1 and ε = 1 unless it is said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpverify_audits.control_flow.case import Case, Close, case, claim

__all__ = ["CASES"]

_STOP = -1.0  # stands where a sparse vector has stopped
_ANSWERS = (
    ((0, 0, 0, 0, 0), (1, 1, 1, 1, 1)),
    ((0, 1, 1, 1, 1), (1, 0, 0, 0, 0)),
    ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1)),
    ((5, 0, 0, 0, 0), (4, 1, 1, 1, 1)),
)
_UPWARDS = (((0, 0, 0, 0), (1, 1, 1, 1)), ((0, 2, 0, 1), (1, 2, 1, 1)))


def _sparse_vector(
    x: Any,
    rng: Any,
    *,
    threshold_scale: float,
    query_scale: float,
    count: int | None,
    reset: bool = False,
    value: Callable[[float, float, Any], float] = lambda query, noisy, rng: 1.0,
) -> Any:
    """One answer for each query: 0 below the noisy threshold, else `value`; −1 after `count`."""
    released = np.full(x.size, _STOP)
    noise, found = rng.laplace(scale=threshold_scale), 0
    for place, query in enumerate(x.tolist()):
        noisy = query + (rng.laplace(scale=query_scale) if query_scale else 0.0)
        if noisy < 1 + noise:
            released[place] = 0.0
            continue
        released[place] = value(query, noisy, rng)
        found += 1
        if found == count:
            break
        if reset:
            noise = rng.laplace(scale=threshold_scale)
    return released


def _algorithm_1(c: int) -> partial[Any]:
    return partial(_sparse_vector, threshold_scale=2, query_scale=4 * c, count=c)


def _algorithm_2(c: int) -> partial[Any]:
    """The threshold's noise is drawn anew after each find."""
    return partial(_sparse_vector, threshold_scale=2 * c, query_scale=4 * c, count=c, reset=True)


def _algorithm_7(c: int) -> partial[Any]:
    """A third of ε each for the threshold, the comparisons, and fresh noise on what is released."""
    return partial(
        _sparse_vector,
        threshold_scale=3,
        query_scale=6 * c,
        count=c,
        value=lambda query, noisy, rng: query + rng.laplace(scale=3 * c),
    )


# Twins whose mistake a few thousand draws show. (Those of Algorithms 3, 4 and 6 take more: there
# the outputs that tell are rare.)
_ALGORITHM_5 = partial(_sparse_vector, threshold_scale=2, query_scale=0, count=None)
_FORGOTTEN = partial(_sparse_vector, threshold_scale=0.5, query_scale=0.5, count=2)
_BARE = partial(  # a branch without its noise
    _sparse_vector,
    threshold_scale=3,
    query_scale=6,
    count=1,
    value=lambda query, noisy, rng: query,
)


def _first_above(query_scale: float, x: Any, rng: Any) -> float:
    """Only the place."""
    threshold = 1 + rng.laplace(scale=2)
    for place, query in enumerate(x.tolist()):
        if query + rng.laplace(scale=query_scale) >= threshold:
            return float(place)
    return float(x.size)


def _drawn_before(query_scale: float, x: Any, rng: Any) -> Any:
    """All noise is drawn at once, and the answers are cut off afterwards."""
    above = x + rng.laplace(scale=query_scale, size=x.size) >= 1 + rng.laplace(scale=2)
    released = above.astype(float)
    released[np.cumsum(above) - above > 0] = _STOP
    return released


def _noisy_max(law: str, scale: float, x: Any, rng: Any) -> int:
    return int(np.argmax(x + getattr(rng, law)(scale=scale, size=x.size)))


def _best_so_far(scale: float, x: Any, rng: Any) -> int:
    best, place = -math.inf, 0
    for number, query in enumerate(x.tolist()):
        noisy = query + rng.laplace(scale=scale)
        if noisy > best:
            best, place = noisy, number
    return place


def _exponential(rate: float, x: Any, rng: Any) -> int:
    weights = np.exp(rate * (x - x.max()))
    return int(rng.choice(x.size, p=weights / weights.sum()))


def _by_cumulation(rate: float, x: Any, rng: Any) -> int:
    weights = np.exp(rate * (x - x.max()))
    left = rng.random() * weights.sum()
    for place, weight in enumerate(weights.tolist()):
        left -= weight
        if left <= 0:
            return place
    return int(x.size - 1)


def _race(rate: float, x: Any, rng: Any) -> int:
    """The first of exponential clocks whose rates are the weights."""
    return int(np.argmin([rng.exponential(math.exp(-rate * query)) for query in x.tolist()]))


def _permute_and_flip(rate: float, x: Any, rng: Any) -> int:
    """McKenna and Sheldon 2020."""
    best = x.max()
    for place in rng.permutation(x.size).tolist():
        if rng.random() <= math.exp(rate * (x[place] - best)):
            return int(place)
    raise AssertionError("the best is always taken")


def _two_best(rate: float, x: Any, rng: Any) -> Any:
    """One after the other, with half of ε each."""
    first = _exponential(rate, x, rng)
    rest = np.delete(np.arange(x.size), first)
    return np.array([first, rest[_exponential(rate, x[rest], rng)]])


def _median_interval(rate: float, x: Any, rng: Any) -> float:
    """The exponential mechanism over the intervals between sorted values in [0, 4]."""
    ends = np.concatenate([[0.0], np.sort(np.clip(x, 0, 4)), [4.0]])
    ranks = -np.abs(np.arange(ends.size - 1) - (ends.size - 2) / 2)
    weights = np.diff(ends) * np.exp(rate * ranks)
    place = rng.choice(weights.size, p=weights / weights.sum())
    return float(rng.uniform(ends[place], ends[place + 1]))


_LEAK = 0.02
_THRESHOLD = 1 + math.log(1 / (2 * _LEAK))


def _thresholded(threshold: float, x: Any, rng: Any) -> Any:
    """Noise on the bins that aren't empty, and only what is above the threshold."""
    released = np.zeros(x.size)
    for place in np.flatnonzero(x).tolist():
        noisy = x[place] + rng.laplace()
        if noisy > threshold:
            released[place] = noisy
    return released


def _partitions(threshold: float, x: Any, rng: Any) -> frozenset[int]:
    """Only the names of the bins."""
    kept = np.flatnonzero(x)
    noisy = x[kept] + rng.laplace(size=kept.size)
    return frozenset(kept[noisy > threshold].tolist())


def _warner(odds: float, x: Any, rng: Any) -> float:
    """The first coin decides whether to answer truly, the second gives the answer otherwise."""
    if rng.random() < odds:
        return float(x[0])
    return float(rng.integers(2))


def _by_value(keep: float, x: Any, rng: Any) -> float:
    """A branch for each value, with draws of its own."""
    if x[0] == 1:
        return 1.0 if rng.random() < keep else 0.0
    return float(rng.choice([0, 1], p=[keep, 1 - keep]))


def _one_of(keep: float, x: Any, rng: Any) -> int:
    """One of four, or one of the others."""
    if rng.random() < keep:
        return int(x[0])
    return int(rng.choice([value for value in range(4) if value != x[0]]))


def _unary(keep: float, x: Any, rng: Any) -> Any:
    """One-hot bits, each kept or flipped."""
    bits = []
    for value in range(4):
        bit = int(x[0]) == value
        bits.append(int(bit if rng.random() < keep else not bit))
    return np.array(bits)


def _hashed(keep: float, x: Any, rng: Any) -> Any:
    """Local hashing: the hash's seed, and its bucket of three by randomized response."""
    seed = int(rng.integers(1 << 16))
    bucket = (seed * (2 * int(x[0]) + 1) >> 3) % 3
    if rng.random() >= keep:
        bucket = (bucket + int(rng.integers(1, 3))) % 3
    return np.array([seed, bucket])


_EVEN = math.e / (1 + math.e)
_HALF = math.exp(0.5) / (1 + math.exp(0.5))
_CATEGORY = (((0,), (1,)), ((2,), (3,)))
_BIT = (((0,), (1,)),)
_BINS = (((0, 3, 5), (1, 3, 5)), ((2, 0, 5), (3, 0, 5)))


def _pairs(function: Callable[..., Any], right: Any, wrong: Any) -> tuple[Any, Any]:
    return partial(function, right), partial(function, wrong)


class _Categories(Close):
    """One category for any other."""

    def relates(self, first: Any, second: Any) -> bool:
        """Always."""
        return True


_CHOSEN = _Categories(unit="one category for any other")

CASES: tuple[Case, ...] = (
    *(
        case(name, "sparse vector", *functions, curve=claim(1), adjacency=Close(), data=_ANSWERS)
        for name, functions in (
            ("Algorithm 1, c = 1", (_algorithm_1(1), _ALGORITHM_5)),
            ("Algorithm 1, c = 3", (_algorithm_1(3), _FORGOTTEN)),
            ("Algorithm 2, c = 1", (_algorithm_2(1), _ALGORITHM_5)),
            ("Algorithm 2, c = 2", (_algorithm_2(2), _FORGOTTEN)),
            ("Algorithm 7 with numbers, c = 1", (_algorithm_7(1), _BARE)),
            ("Algorithm 7 with numbers, c = 2", (_algorithm_7(2), _BARE)),
            ("only the place", _pairs(_first_above, 4, 0.5)),
            ("noise drawn before", _pairs(_drawn_before, 4, 0.5)),
        )
    ),
    case(
        "Algorithm 1 for monotone queries",
        "sparse vector",
        partial(_sparse_vector, threshold_scale=2, query_scale=4, count=2),
        _ALGORITHM_5,
        curve=claim(1),
        adjacency=Close(monotone=True),
        data=_UPWARDS,
    ),
    *(
        case(name, "selection", *functions, curve=claim(1), adjacency=Close(), data=_ANSWERS)
        for name, functions in (
            ("noisy max, Laplace", _pairs(partial(_noisy_max, "laplace"), 2, 0.5)),
            ("noisy max, exponential", _pairs(partial(_noisy_max, "exponential"), 2, 0.5)),
            ("noisy max, Gumbel", _pairs(partial(_noisy_max, "gumbel"), 2, 0.5)),
            ("noisy max, the best so far", _pairs(_best_so_far, 2, 0.5)),
            ("exponential mechanism by choice", _pairs(_exponential, 0.5, 2)),
            ("exponential mechanism by cumulation", _pairs(_by_cumulation, 0.5, 2)),
            ("exponential mechanism by a race", _pairs(_race, 0.5, 2)),
            ("permute-and-flip", _pairs(_permute_and_flip, 0.5, 2)),
            ("the two best, one by one", _pairs(_two_best, 0.25, 2)),
        )
    ),
    case(
        "median by the exponential mechanism",
        "selection",
        *_pairs(_median_interval, 1, 4),
        curve=claim(2),
        adjacency=_CHOSEN,
        data=(((0, 0, 0, 4, 4), (0, 0, 4, 4, 4)), ((1, 1, 1, 1, 1), (1, 1, 1, 1, 3))),
    ),
    *(
        case(name, "threshold", *functions, curve=claim(1, _LEAK), adjacency=Close(), data=_BINS)
        for name, functions in (
            ("thresholded histogram", _pairs(_thresholded, _THRESHOLD, 0.5)),
            ("partition selection", _pairs(_partitions, _THRESHOLD, 0.5)),
        )
    ),
    case(
        "randomized response by two coins",
        "branches",
        *_pairs(_warner, 0.5, 0.9),
        curve=claim(math.log(3)),
        adjacency=Close(),
        data=_BIT,
    ),
    case(
        "randomized response, a branch for each value",
        "branches",
        *_pairs(_by_value, _EVEN, 0.95),
        curve=claim(1),
        adjacency=Close(),
        data=_BIT,
    ),
    *(
        case(name, "branches", *functions, curve=claim(1), adjacency=_CHOSEN, data=_CATEGORY)
        for name, functions in (
            ("one of four", _pairs(_one_of, math.e / (math.e + 3), 0.9)),
            ("unary encoding", _pairs(_unary, _HALF, 0.95)),
            # A hash hides its twin from features that know nothing of it.
            ("local hashing", (partial(_hashed, math.e / (math.e + 2)),)),
        )
    ),
)
