"""One work of another library, run as ``python -m benchmarks.peers.speed WORK``.

It is prepared once and done once for every line of standard input; each time the seconds of
processor time are printed, those of this thread alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import thread_time

__all__ = ["DRAWS", "ITEMS", "SCALE", "K"]

DRAWS, SCALE = 20_000, 1000.0
K, ITEMS, UNIVERSE = 128, 1000, 1_000_000


def _opendp(law: str) -> Callable[[], object]:
    """Whole numbers, as its discrete samplers draw them."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "gaussian":
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), SCALE)
    else:
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), SCALE)
    zeros = [0] * DRAWS
    return lambda: measurement(zeros)


def _datasketch() -> Callable[[], object]:
    """One set, item by item and hash values included, since it hashes bytes."""
    from datasketch import MinHash  # type: ignore[import-not-found]

    tokens = [str(item * 977 % UNIVERSE).encode() for item in range(ITEMS)]
    return lambda: MinHash(num_perm=K).update_batch(tokens)


WORKS: dict[str, Callable[[], Callable[[], object]]] = {
    "opendp-gaussian": lambda: _opendp("gaussian"),
    "opendp-laplace": lambda: _opendp("laplace"),
    "datasketch": _datasketch,
}


if __name__ == "__main__":
    work = WORKS[sys.argv[1]]()
    for _ in sys.stdin:
        start = thread_time()
        work()
        print(thread_time() - start, flush=True)
