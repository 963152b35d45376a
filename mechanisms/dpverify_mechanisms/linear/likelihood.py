"""Privacy losses of linear sketches: the likelihood ratios that their audits attack with.

They are those of the noise before rounding. For Gaussian noise rounding changes a ratio by at most
½‖a − b‖₁/s² for noiseless rows a and b: ½√k/s of its standard deviation. Any score is valid for an
attack; this one is the best up to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.data.domain import dense
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify_mechanisms.linear._dot import dot
from dpverify_mechanisms.linear.calibration import Noise
from dpverify_mechanisms.projections.base import Projection

__all__ = ["input_ratio", "output_ratio"]

Steps = NDArray[np.int64]


def output_ratio(noise: Noise, outputs: Steps, own: Steps, other: Steps) -> NDArray[np.float64]:
    """Ln p(output | own) − ln p(output | other) for noise at the output.

    Parameters
    ----------
    outputs : (draws, k), in steps
    own, other : (k,), noiseless rows
    """
    match noise:
        case RoundedGaussian(scale=scale):
            offset = (dot(own, own) - dot(other, other)) / 2
            return np.asarray((dot(outputs, own - other) - offset) / scale**2)
        case RoundedLaplace(scale=scale):
            sums = np.abs(outputs - other).sum(axis=1) - np.abs(outputs - own).sum(axis=1)
            return np.asarray(sums / scale)


def input_ratio(
    noise: Noise, projection: Projection, outputs: Steps, own: Steps, other: Steps
) -> NDArray[np.float64]:
    """The same for noise at the input: the Gaussian ratio for the covariance s²·PᵀP."""
    matrix: Any = projection.matrix
    gram = dense(matrix.T @ matrix)
    direction, *_ = np.linalg.lstsq(gram, (own - other).astype(np.float64), rcond=None)
    centred = outputs - (own + other) / 2
    return np.asarray(centred @ direction / noise.variance().upper)
