"""Releases of Tumult Core, on which Tumult Analytics is built: noise of its measurements.

What `privacy_function(1)` says of each of them: ε = 1, and for the Gaussians ρ = 1/2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
from tmlt.core.measurements.noise_mechanisms import (
    AddDiscreteGaussianNoise,
    AddGaussianNoise,
    AddGeometricNoise,
    AddLaplaceNoise,
)

__all__ = ["RELEASES"]


def _noised(measurement: Any, kind: Any) -> Callable[[Any], Any]:
    def release(record: Any) -> Any:
        return measurement(kind(np.ravel(record)[0]))

    return release


_FLOATS, _INTEGERS = NumpyFloatDomain(), NumpyIntegerDomain()

RELEASES: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "Laplace": lambda: _noised(AddLaplaceNoise(_FLOATS, 1), np.float64),
    "Laplace, whole": lambda: _noised(AddLaplaceNoise(_INTEGERS, 1), np.int64),
    "geometric": lambda: _noised(AddGeometricNoise(1), np.int64),
    "discrete Gaussian": lambda: _noised(AddDiscreteGaussianNoise(1), np.int64),
    "Gaussian": lambda: _noised(AddGaussianNoise(_FLOATS, 1), np.float64),
}
"""What makes each of them."""
