"""The linear sketch as the papers print it, in doubles: for comparison only.

Not differentially private as it stands: the low bits of ``x @ P + normal`` show which neighbour it
was. It has no guarantee to state, so nothing can certify it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpverify_mechanisms.linear.sketch import LinearSketch

__all__ = ["textbook_release"]


def textbook_release(
    sketch: LinearSketch, records: NDArray[np.float64], *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Release of records @ P + rng.normal() in doubles, with the same P and the same σ.

    Parameters
    ----------
    sketch : gives projection and noise level
    records : (n, p) array
    rng : numpy's generator

    Returns
    -------
    (n, k) float64 array in the records' unit
    """
    unit = sketch.step().upper
    projection = sketch.projection.matrix * (unit / float(sketch.grid.step))
    sigma = sketch.noise.scale * unit
    noisy: NDArray[np.float64] = records @ projection
    noisy += rng.normal(0.0, sigma, noisy.shape)
    return noisy
