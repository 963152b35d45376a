"""Neighbouring sets that MinHash sketches tell apart best: what its claims and audits rest on.

**Least similar neighbours.** ‖x − y‖₁ = d ≤ α and |x|, |y| ≥ τ. The union has u = (|x| + |y| + d)/2
items and 1 − J = d/u. |x| + |y| has the parity of d, hence u ≥ τ + ⌈d/2⌉, with equality for two
sets of τ items, or of τ and τ + 1 where d is odd. d/(τ + ⌈d/2⌉) rises with d up to disjoint sets at
d = 2τ, so

    1 − J ≤ α/(τ + ⌈α/2⌉),      attained,

and J ≥ 1 − α/τ of Aumüller et al. 2020, section 3, is true but never tight. A universe of m items
allows d ≤ 2(m − τ) only, and sets of one declared size even d only.

**For realised functions** neighbours are searched for at which many positions are far apart. The
claim allows for all K, which such a search seldom reaches: what it leaves is unused by these
neighbours, though perhaps not by all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets, indicator
from dpverify.errors import ParameterError, require
from dpverify.privacy import Pair
from dpverify_mechanisms.min_hash.hashing import HashFamily
from dpverify_mechanisms.min_hash.rules import BucketRule

__all__ = ["farthest_sets", "least_similar", "pair_of_sets", "searched"]

_CANDIDATES = 2048  # items that the search for a bad pair looks at
_STARTS = 32


def farthest_sets(domain: Sets, adjacency: Items, items: int) -> tuple[int, int]:
    """Numbers of differing items and of all items of the least similar neighbours.

    Raises
    ------
    ParameterError
        If no two sets of the domain are neighbours.
    """
    least = domain.min_size
    require(items >= least, "items", items, f"at least least={least}")
    differing = min(adjacency.changes, 2 * least, 2 * (items - least))
    if domain.max_size == least:
        differing -= differing % 2
    if differing < 1:
        raise ParameterError(
            "domain",
            domain,
            "one in which sets have neighbours",
            "Allow more sizes, more changes or more items.",
        )
    return differing, least + -(-differing // 2)


def least_similar(domain: Sets, adjacency: Items, items: int) -> Pair:
    """Neighbours of the least similarity, chosen without any hash functions."""
    differing, union = farthest_sets(domain, adjacency, items)
    everything = np.arange(union)
    more = -(-differing // 2)
    return pair_of_sets(
        f"least similar neighbours, {differing} of {union} items differ",
        everything[: union - (differing - more)],
        everything[more:],
        items=items,
    )


def searched(hashes: HashFamily, rule: BucketRule, *, domain: Sets, adjacency: Items) -> Pair:
    """Few items that most functions rank low, joined to a set that they rank high."""
    least, most = domain.min_size, domain.max_size or hashes.items
    ranks = hashes.ranks(np.arange(min(hashes.items, _CANDIDATES + least)))
    free = len(ranks) - least  # candidates that may join a set
    added = min(adjacency.changes, most - least, free)
    dropped = 0 if added else min(adjacency.changes // 2, least, free)
    added = added or dropped
    order = np.argsort((ranks * 2.0**-64).mean(axis=1), kind="stable")
    found: list[tuple[int, NDArray[Any], NDArray[Any]]] = []
    for first in order[:_STARTS].tolist():
        # The set that interferes least: its items seldom rank below the first one to join.
        beaten = np.count_nonzero(ranks < ranks[first], axis=1)
        beaten[first] = hashes.functions + 1
        record = np.argsort(beaten, kind="stable")[:least]
        joining = [first]
        kept = record[dropped:]
        while len(joining) < added:
            lowest = ranks[np.concatenate([kept, joining])].min(axis=0)
            gain = np.count_nonzero(ranks < lowest, axis=1)
            gain[np.concatenate([record, joining])] = -1
            joining.append(int(gain.argmax()))
        neighbour = np.concatenate([kept, joining])
        ends = [hashes.bucket(ranks[s].min(axis=0)[None])[0] for s in (record, neighbour)]
        found.append((int(rule.apart(*ends).sum()), record, neighbour))
    steps, record, neighbour = max(found, key=lambda pair: pair[0])
    return pair_of_sets(
        f"searched for these hash functions: a loss of up to {steps} steps",
        neighbour,
        record,
        items=hashes.items,
    )


def pair_of_sets(name: str, record: NDArray[Any], neighbour: NDArray[Any], *, items: int) -> Pair:
    """Two sets, given by their items, as rows of shape (1, items)."""
    own, other = (indicator(members, items) for members in (record, neighbour))
    return Pair(name=name, record=own, neighbour=other)
