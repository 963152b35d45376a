"""Neighbours at which a sign sketch loses most: the search for a worst pair.

The loss is largest where every touched value crosses 0. An attribute moves from minus half of its
bound to plus half (as far as the domain lets it) over a background that puts the values just there:
the record nearest to 0, or the least-squares solution in the domain. Where a pair makes all N signs
of the claim cross, it is worst; in general it is the best that was found. Whole records move from
a random one to a solution for its opposite values; records of a least norm lie on its sphere, at
the widest angle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.data.adjacency import Record, largest_move
from dpverify.privacy import Pair
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.sign.randomized_signs import RandomizedSigns

__all__ = ["candidates"]

Vector = NDArray[np.float64]
_ITERATIONS = 500
_TRIES = 4  # attributes, or random records


def candidates(sketch: RandomizedSigns, least_norm: Fraction | None) -> Sequence[Pair]:
    """Pairs of neighbours of the domain, of data sets of shape (1, p), in both orders."""
    if isinstance(sketch.adjacency, Record):
        pairs = _records(sketch)
    elif least_norm is not None:
        pairs = [("records of the least norm", *_of_least_norm(sketch, least_norm))]
    else:
        pairs = _attributes(sketch)
    return [
        Pair(name=name + swapped, record=one[None], neighbour=two[None])
        for name, first, second in pairs
        for swapped, one, two in (("", first, second), (", swapped", second, first))
    ]


def _attributes(sketch: RandomizedSigns) -> list[tuple[str, Vector, Vector]]:
    matrix: Any = scipy.sparse.csr_array(sketch.projection.matrix)
    touching = (matrix != 0).astype(np.int64) @ sketch.live()
    pairs = []
    for attribute in np.argsort(-touching, kind="stable")[:_TRIES].tolist():
        start, stop = _span(sketch)
        row = matrix[[attribute]].toarray().ravel()
        backgrounds = [("nearest to 0", _centre(sketch))]
        if (middle := (start + stop) / 2) != 0:
            backgrounds.append(("astride 0", _solve(sketch, -middle * row, fixed=attribute)))
        for name, background in backgrounds:
            first, second = background.copy(), background.copy()
            first[attribute], second[attribute] = start, stop
            title = f"attribute {attribute} moves by the bound over a background {name}"
            pairs.append((title, first, second))
    return pairs


def _of_least_norm(sketch: RandomizedSigns, least_norm: Fraction) -> tuple[Vector, Vector]:
    """Attribute 0 moves; the others share what the norm still lacks, rounded up to the grid."""
    start, stop = _span(sketch)
    lacking = max(float(least_norm) ** 2 - min(start**2, stop**2), 0.0)
    step = float(sketch.grid.step)
    share = math.ceil(math.sqrt(lacking / max(sketch.projection.p - 1, 1)) / step) * step
    low, high = sketch.domain.ends
    first = np.full(sketch.projection.p, np.clip(share if high >= -low else -share, low, high))
    second = first.copy()
    first[0], second[0] = start, stop
    return first, second


def _records(sketch: RandomizedSigns) -> list[tuple[str, Vector, Vector]]:
    low, high = sketch.domain.ends
    words = ReplayableWords(0, "worst records").words(_TRIES * sketch.projection.p)
    uniform = ((words >> np.uint64(11)) * 2.0**-53).reshape(_TRIES, -1)
    pairs = []
    for first in np.clip(low + (high - low) * uniform, low, high):
        second = _solve(sketch, -np.asarray(first @ sketch.projection.matrix), fixed=None)
        pairs.append(("a record and one of opposite signs", first, second))
    return pairs


def _span(sketch: RandomizedSigns) -> tuple[float, float]:
    """Where an attribute starts and stops: about 0, as far as the domain lets it."""
    low, high = sketch.domain.ends
    step, moves = float(sketch.grid.step), sketch.grid.bound(sketch.adjacency)
    start = max(low, min(-step * (moves // 2), high - step * moves))
    return start, min(largest_move(start, sketch.grid.step * moves), high)


def _centre(sketch: RandomizedSigns) -> Vector:
    low, high = sketch.domain.ends
    return np.full(sketch.projection.p, min(max(0.0, low), high))


def _solve(sketch: RandomizedSigns, target: NDArray[Any], *, fixed: int | None) -> Vector:
    """Record of the domain and on the grid whose projected values come near to `target`.

    Least squares by accelerated projected gradients (Beck and Teboulle 2009, FISTA).
    """
    record, (low, high) = _centre(sketch), sketch.domain.ends
    free = np.flatnonzero(np.arange(sketch.projection.p) != fixed)
    if free.size == 0:
        return record
    columns: Any = scipy.sparse.csr_array(sketch.projection.matrix)[free].T
    # A step may be as long as one over the largest eigenvalue, at most the Gram matrix's norm.
    gram: Any = columns @ columns.T
    slowness = max(float(abs(gram).sum(axis=1).max()), 1.0)
    solution = ahead = record[free]
    momentum = 1.0
    for _ in range(_ITERATIONS):
        gradient = columns.T @ (columns @ ahead - target)
        following = np.clip(ahead - gradient / slowness, low, high)
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / faster * (following - solution)
        solution, momentum = following, faster
    steps = sketch.grid.round(solution)
    record[free] = np.clip(steps * float(sketch.grid.step), low, high)
    return record
