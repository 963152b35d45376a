"""ldp-toolbox: clients of frequency oracles; values are 0 to k - 1 (numpy's, and numba's of it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xxhash
from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
from ldp_toolbox.protocols.frequency.he import HistogramEncoding
from ldp_toolbox.protocols.frequency.lh import LocalHashing
from ldp_toolbox.protocols.frequency.ss import SubsetSelection
from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

from dpverify.data.adjacency import Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_VALUES = (([0], [1]), ([2], [3]))


def _supports(client: Any, value: int) -> list[bool]:
    """Of which values a hashed report is one: what anybody can read off it."""
    told, seed = client.obfuscate(value)
    return [
        xxhash.xxh32(str(other), seed=seed).intdigest() % client.g == told for other in range(4)
    ]


def _members(client: Any, value: int) -> list[bool]:
    """Which values are in a reported set."""
    chosen = np.isin(np.arange(client.k), client.obfuscate(value))
    return [bool(one) for one in chosen]


def _told(client: Any, value: int) -> Any:
    return np.asarray(client.obfuscate(value)).tolist()


def _of_value(release: Callable[[int], Any], data: Any) -> Any:
    return release(int(data[0]))


def entries() -> Iterator[Entry]:
    """All of them."""
    few = GeneralizedRandomizedResponse(2, 1.0)
    releases: dict[str, tuple[Callable[[int], Any], int]] = {
        "GeneralizedRandomizedResponse": (
            partial(_told, GeneralizedRandomizedResponse(4, 1.0)),
            2,
        ),
        "GeneralizedRandomizedResponse of two values": (partial(_told, few), 1),
        "UnaryEncoding, symmetric": (partial(_told, UnaryEncoding(4, 1.0, optimal=False)), 2),
        "UnaryEncoding, optimal": (partial(_told, UnaryEncoding(4, 1.0)), 2),
        "LocalHashing, binary": (partial(_supports, LocalHashing(4, 1.0, optimal=False)), 2),
        "LocalHashing, optimal": (partial(_supports, LocalHashing(4, 1.0)), 2),
        "SubsetSelection": (partial(_members, SubsetSelection(4, 1.0)), 2),
        "SubsetSelection, sets of two": (partial(_members, SubsetSelection(8, 1.0)), 2),
        "HistogramEncoding with thresholds": (partial(_members, HistogramEncoding(4, 1.0)), 2),
        "HistogramEncoding without": (
            partial(_told, HistogramEncoding(4, 1.0, thresholding=False)),
            2,
        ),
    }
    for name, (release, pairs) in releases.items():
        yield Entry(
            name=name,
            reading="epsilon of the protocol, for one value against any other",
            function=partial(_of_value, release),
            claim=claimed(1),
            adjacency=Replace(),
            pairs=_VALUES[:pairs],
            draws=300,
        )
