"""Size: a projection that is never stored, measured and hashed in one pass.

``python -m benchmarks.size P K KIND`` prints one line: shape, exact norms, digest, seconds of CPU
time, entries a second, and the peak of resident memory.
"""

from __future__ import annotations

import resource
import sys
from math import sqrt
from time import process_time

from dpverify.enclosure import squared
from dpverify_mechanisms.projections.independent import (
    GaussianProjection,
    RademacherProjection,
    UniformProjection,
)

__all__ = ["main"]

_KINDS = {kind.name: kind for kind in (GaussianProjection, RademacherProjection, UniformProjection)}


def main(p: int, k: int, kind: str) -> str:
    """Measure one projection."""
    projection = _KINDS[kind](p=p, k=k, seed=1)
    start = process_time()
    norm = sqrt(squared(projection.row_norm(2)) * squared(projection.scale))
    digest = projection.sha256()
    seconds = process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{kind} {p:,} x {k:,}, stored: {projection.stored}, l2-sensitivity {norm:.6f}, "
        f"SHA-256 {digest[:16]}, {seconds:.1f} s, {p * k / seconds / 1e6:.1f} M entries/s, "
        f"peak {peak:.2f} GiB"
    )


if __name__ == "__main__":
    print(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
