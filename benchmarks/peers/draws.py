"""Outputs of other libraries' Laplace mechanisms, run as ``draws LIBRARY VALUE COUNT OUT``.

ε = 1 for a number that moves by 1. The seconds of processor time are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np


def release(library: str) -> Callable[[float], float]:
    """The library's mechanism."""
    if library == "diffprivlib":
        from diffprivlib.mechanisms import Laplace

        made: Callable[[float], float] = Laplace(epsilon=1.0, sensitivity=1.0).randomise
        return made
    import opendp.prelude as dp

    dp.enable_features("contrib")
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measurement: Callable[[float], float] = dp.m.make_laplace(*real, 1.0)
    return measurement


if __name__ == "__main__":
    library, value, count, out = sys.argv[1:]
    mechanism = release(library)
    start = process_time()
    drawn = [mechanism(float(value)) for _ in range(int(count))]
    print(process_time() - start)
    np.save(out, np.array(drawn))
