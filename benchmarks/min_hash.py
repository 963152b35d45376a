"""``python -m benchmarks.min_hash``: MinHash sketches against datasketch, speed and memory.

Each ratio compares works that took turns in one run: K = 128 functions on one set of 1,000 items.
datasketch is no dependency of this project: where another environment has it, give its Python as
``python -m benchmarks.min_hash --peer PATH``, and the peer's side is timed there, before and after
ours; its better median counts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets, indicator
from dpverify.sampling.words import SecureWords
from dpverify_mechanisms.min_hash.hashing import KeyedHashes
from dpverify_mechanisms.min_hash.sketch import MinHash

K, ITEMS, UNIVERSE = 128, 1000, 1_000_000
REPETITIONS = 41

# Runs in the peer's environment: hash values included, since datasketch hashes bytes.
PEER = f"""
import json, time
from statistics import median
from datasketch import MinHash
tokens = [str(i * 977 % {UNIVERSE}).encode() for i in range({ITEMS})]
def update():
    sketch = MinHash(num_perm={K})
    for token in tokens:
        sketch.update(token)
def update_batch():
    MinHash(num_perm={K}).update_batch(tokens)
def seconds(work):
    taken = []
    for _ in range({REPETITIONS}):
        start = time.perf_counter(); work(); taken.append(time.perf_counter() - start)
    return median(taken)
print(json.dumps([seconds(update), seconds(update_batch)]))
"""


def seconds(work: Callable[[], object]) -> float:
    """Median seconds."""
    taken = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def peer(python: str) -> list[float]:
    """Seconds of datasketch's update, item by item, and update_batch."""
    done = subprocess.run([python, "-c", PEER], check=True, capture_output=True, text=True)  # noqa: S603
    found: list[float] = json.loads(done.stdout)
    return found


def rr_min_hash() -> MinHash:
    """RRMinHash on a million items for sets of at least 50."""
    return MinHash.rr_min_hash(
        p=UNIVERSE,
        k=K,
        buckets=2,
        seed=1,
        epsilon=Fraction(4),
        delta=Fraction(1, 10**6),
        domain=Sets(min_size=50),
        adjacency=Items(changes=1),
    )


def _peak(pipe: Any) -> None:
    rng = np.random.default_rng(0)
    rows, entries = 100_000, 100
    places = rng.integers(0, UNIVERSE, (rows, entries), dtype=np.int32)
    starts = np.arange(rows + 1) * entries
    x = sparse.csr_array((np.ones(rows * entries), places.ravel(), starts), shape=(rows, UNIVERSE))
    x.sum_duplicates()
    x.data[:] = 1
    sketch = rr_min_hash()
    start = time.perf_counter()
    sketch.release(x, rng=SecureWords())
    took = time.perf_counter() - start
    pipe.send((took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 2**30))


def memory() -> tuple[float, float]:
    """Seconds and peak resident GiB of a process: records, hash functions and release."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe()
    process = context.Process(target=_peak, args=(sender,))
    process.start()
    took, peak = receiver.recv()
    process.join()
    return took, peak


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="Python of an environment that has datasketch")
    python = parser.parse_args().peer
    items = np.sort(np.arange(ITEMS) * 977 % UNIVERSE)
    record = indicator(items, UNIVERSE)
    hashes = KeyedHashes(items=UNIVERSE, functions=K, buckets=2, seed=1)
    sketch = rr_min_hash()
    before = peer(python) if python else []
    ours = {
        "hashing alone": seconds(partial(hashes.values, record)),
        "whole private release": seconds(lambda: sketch.release(record, rng=SecureWords())),
    }
    after = peer(python) if python else []
    for name, mine in ours.items():
        print(f"K = {K}, {ITEMS} items, {name}: {mine * 1e3:.3f} ms")
        for method, *theirs in zip(("update", "update_batch"), before, after, strict=False):
            least = min(theirs)
            print(f"  datasketch {method}: {least * 1e3:.3f} ms, {least / mine:.1f} times as long")
    took, peak = memory()
    print(f"100,000 x {UNIVERSE:,}, 100 items a row, whole release: {took:.2f} s, {peak:.2f} GiB")


if __name__ == "__main__":
    main()
