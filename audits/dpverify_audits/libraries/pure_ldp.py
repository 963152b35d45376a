"""pure-ldp: clients of frequency oracles; values are 1 to d (Python's and numpy's generators)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xxhash
from pure_ldp import frequency_oracles as oracles

from dpverify.data.adjacency import Replace
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_VALUES = (([1], [2]), ([4], [3]))


def _supports(client: Any, value: int) -> list[bool]:
    """Of which values a hashed report is one: what anybody can read off it."""
    told, seed = client.privatise(value)
    return [
        xxhash.xxh32(str(index), seed=seed).intdigest() % client.g == told for index in range(4)
    ]


def _listed(client: Any, value: int) -> list[Any]:
    """A report that has several parts, some of them arrays."""
    return [np.asarray(part).tolist() for part in client.privatise(value)]


def _of_value(release: Callable[[int], Any], data: Any) -> Any:
    return release(int(data[0]))


def _bits(hash_index: int, size: int) -> Callable[[str], int]:
    """A hash function of a Bloom filter."""
    return lambda text: xxhash.xxh32(text, seed=hash_index).intdigest() % size


def entries() -> Iterator[Entry]:
    """All of them."""
    given = {"epsilon": 1.0, "d": 4}
    clients: dict[str, Callable[[int], Any]] = {
        "DEClient": oracles.DEClient(**given).privatise,
        "UEClient, symmetric": oracles.UEClient(**given).privatise,
        "UEClient, optimal": oracles.UEClient(**given, use_oue=True).privatise,
        "HEClient": oracles.HEClient(**given).privatise,
        "LHClient, binary": partial(_supports, oracles.LHClient(**given)),
        "LHClient, optimal": partial(_supports, oracles.LHClient(**given, use_olh=True)),
        "FastLHClient": partial(_supports, oracles.FastLHClient(**given, k=50)),
    }
    for t in (1, 2):
        client = oracles.HadamardMechClient(**given, t=t)
        clients[f"HadamardMechClient, t = {t}"] = partial(_listed, client)
    response = oracles.HadamardResponseServer(1.0, 4)
    clients["HadamardResponseClient"] = oracles.HadamardResponseClient(
        1.0, 4, response.get_hash_funcs()
    ).privatise
    for hadamard in (False, True):
        hashes = [_bits(0, 8), _bits(1, 8)]
        client = oracles.CMSClient(1.0, hashes, 8, is_hadamard=hadamard)
        name = "CMSClient, Hadamard" if hadamard else "CMSClient"
        clients[name] = partial(_listed, client)
    reading = "epsilon of the client, for one value against any other"
    one = partial(Entry, adjacency=Replace(), pairs=_VALUES, draws=300)
    for name, release in clients.items():
        yield one(
            name=name,
            reading=reading,
            claim=claimed(1),
            function=partial(_of_value, release),
        )
    f = 0.5
    bit = [[lambda text: int(text) % 8]]  # of each value its own
    rappor = oracles.RAPPORClient(f, 8, bit, num_of_cohorts=1)

    def report(data: Any) -> Any:
        bits, cohort = rappor.privatise(int(data[0]))
        return [*bits, cohort]

    yield one(
        name="RAPPORClient, one hash function",
        reading="`convert_f_to_eps(f, k)` of the client, for one value against any other",
        claim=claimed(rappor.convert_f_to_eps(f, 1)),
        function=report,
        known="new: docs/reports/pure-ldp-rappor.md",
        example=_RAPPOR,
    )


_RAPPOR = """\
from pure_ldp.frequency_oracles import RAPPORClient
client = RAPPORClient(f=0.5, m=8, hash_funcs=[[lambda text: int(text) % 8]], num_of_cohorts=1)
print("epsilon claimed:", client.convert_f_to_eps(0.5, 1))
for value in (1, 2):
    ones = [client.privatise(value)[0][0] for _ in range(10_000)]  # the bit of value 1
    print(value, "bit 0 is set", sum(ones) / 10_000, "of the time")
"""
