"""Linear sketches whose release is not what they claim."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.sampling.gaussian import RoundedGaussian
from dpverify.sampling.words import Words
from dpverify_mechanisms.linear_sketch import LinearSketch

__all__ = ["half_sensitivity", "noise_scaled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mislabelled(LinearSketch):
    """Claims what its own fields say and releases with other noise."""

    actual: RoundedGaussian

    def release(self, records: ArrayLike, *, rng: Words) -> NDArray[np.int64]:
        """Release with the noise that is really used."""
        honest = {f.name: getattr(self, f.name) for f in fields(LinearSketch)}
        return replace(LinearSketch(**honest), noise=self.actual).release(records, rng=rng)


def noise_scaled(sketch: LinearSketch, factor: float) -> LinearSketch:
    """The sketch with its noise scaled by `factor` and its claim unchanged."""
    honest = {f.name: getattr(sketch, f.name) for f in fields(LinearSketch)}
    return _Mislabelled(**honest, actual=RoundedGaussian(scale=sketch.noise.scale * factor))


def half_sensitivity(sketch: LinearSketch) -> LinearSketch:
    """The sketch with noise for half its sensitivity; noise is proportional to it."""
    return noise_scaled(sketch, 0.5)
