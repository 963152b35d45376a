"""Neighbours that a linear sketch keeps as far apart as possible: what its audits draw from.

The loss of a linear sketch depends on the difference of the records alone; over two backgrounds an
audit tests that the code path keeps to that. For an ℓ1 ball the pairs fall short of the claim by
what it is charged for rounding, and for whole records where the claimed distance is a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import Adjacency, Attribute, Record, largest_move
from dpverify.data.domain import Ball, Box, Sets, Vectors, indicator
from dpverify.data.grid import Grid
from dpverify.privacy import Pair
from dpverify_mechanisms.linear.distance import farthest
from dpverify_mechanisms.projections.base import Projection

__all__ = ["pairs_apart"]


def pairs_apart(
    projection: Projection,
    grid: Grid,
    domain: Vectors,
    adjacency: Adjacency,
    norm: Literal[1, 2],
) -> Sequence[Pair]:
    """Neighbouring records, each of shape (1, p), whose products are far apart in this norm."""
    sizes = np.asarray((abs(projection.matrix) ** norm).sum(axis=1)).ravel()
    match domain:
        case Sets():
            return [_sets(projection, grid, domain, adjacency, sizes)]
        case Box() | Ball() if isinstance(adjacency, Record):
            return [_records(projection, domain)]
        case Box() | Ball():
            moved = grid.step * grid.bound(adjacency)
            return _attributes(domain, sizes, moved)


def _records(projection: Projection, domain: Box | Ball) -> Pair:
    direction = farthest(projection, domain)
    match domain:
        case Ball():
            record = direction * float(domain.radius)
            opposite = -record
        case Box():
            low, high = domain.ends
            record = np.where(direction > 0, high, low)
            opposite = np.where(direction > 0, low, high)
    return Pair(name="opposite records", record=record[None], neighbour=opposite[None])


def _attributes(domain: Box | Ball, sizes: NDArray[np.float64], moved: Fraction) -> list[Pair]:
    """The attribute with the largest row moves as far as it may, and not a rounding further."""
    match domain:
        case Ball():
            low, high = -float(domain.radius), float(domain.radius)
            moves = [("all others 0", low, min(largest_move(low, moved), high), 0.0)]
        case Box():
            low, high = domain.ends
            moves = [
                ("all others at the low end", low, min(largest_move(low, moved), high), low),
                ("all others at the high end", high, max(largest_move(high, -moved), low), high),
            ]
    worst = int(np.argmax(sizes))
    pairs = []
    for name, start, target, others in moves:
        record = np.full(sizes.size, others)
        record[worst] = start
        neighbour = record.copy()
        neighbour[worst] = target
        pairs.append(
            Pair(
                name=f"attribute {worst} moves by beta, {name}",
                record=record[None],
                neighbour=neighbour[None],
            )
        )
    return pairs


def _exchange(least: int, most: int, items: int, changes: int) -> tuple[int, int]:
    """How many items one set has alone, and the other: the most that the domain has room for.

    The rest, as many as the smaller set needs to be of the least size, they share.
    """
    room = []
    for taken in range(min(changes // 2, most) + 1):
        shared = max(least - taken, 0)
        added = min(changes - taken, most - shared, items - shared - taken)
        if added >= taken:
            room.append((added + taken, added, taken))
    _, added, taken = max(room)
    return added, taken


def _sets(
    projection: Projection,
    grid: Grid,
    domain: Sets,
    adjacency: Adjacency,
    sizes: NDArray[np.float64],
) -> Pair:
    """Two sets of which one has the items of the largest rows and the other has not."""
    p, most = projection.p, domain.max_size or projection.p
    if isinstance(adjacency, Record):
        order = np.argsort(-farthest(projection, domain), kind="stable")
        size = min(max(p // 2, domain.min_size), most)
        first, second = order[:size], order[-size:]
    else:
        order = np.argsort(-sizes, kind="stable")
        changes = 1 if isinstance(adjacency, Attribute) else grid.bound(adjacency)
        added, taken = _exchange(domain.min_size, min(most, p), p, changes)
        shared = order[added + taken : added + max(domain.min_size, taken)]
        first = np.concatenate([order[:added], shared])
        second = np.concatenate([order[added : added + taken], shared])
    return Pair(name="sets apart", record=indicator(first, p), neighbour=indicator(second, p))
