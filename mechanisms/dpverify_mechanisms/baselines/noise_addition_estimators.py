"""What noisy pairwise distances tell: the squared distance of a pair of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.errors import require
from dpverify.privacy import Estimator

if TYPE_CHECKING:
    from dpverify_mechanisms.baselines.noise_addition import NoiseAddition

__all__ = ["PairDistance"]


@frozen(kw_only=True)
class PairDistance(Estimator):
    """‖x_a − x_b‖² of the gridded records a and b: algorithm 4, the entry as it is.

    The rounded noise has mean 0, so the estimate is unbiased; its variance is that of the rounded
    noise, for which the paper has σ².
    """

    name: ClassVar[str] = "squared distance"
    compares: ClassVar[Literal["records", "release and query"]] = "release and query"

    mechanism: NoiseAddition

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimates from releases (…, n(n − 1)/2) and pairs of numbers (…, 2).

        The leading dimensions broadcast; the two numbers of a pair may come in any order.
        """
        places = self._places(second)
        leading = np.broadcast_shapes(first.shape[:-1], places.shape)
        released = np.broadcast_to(first, (*leading, first.shape[-1]))
        chosen = np.broadcast_to(places, leading)[..., None]
        steps = np.take_along_axis(released, chosen, axis=-1)[..., 0]
        return np.asarray(steps * float(self.mechanism.grid.step**2))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """‖x_a − x_b‖² of the gridded records."""
        place = int(self._places(np.asarray(other).reshape(2)))
        return int(self.mechanism.noiseless(record)[place]) * float(self.mechanism.grid.step**2)

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Variance of the rounded noise, about σ² + h⁴/12."""
        return self.mechanism.noise.variance().upper * float(self.mechanism.grid.step**4)

    def _places(self, pairs: ArrayLike) -> NDArray[np.int64]:
        numbers = np.sort(np.asarray(pairs, dtype=np.int64), axis=-1)
        low, high = numbers[..., 0], numbers[..., 1]
        rows = self.mechanism.rows
        valid = bool(((low >= 0) & (low < high) & (high < rows)).all())
        require(valid, "query", pairs, f"two different numbers of records in [0, {rows})")
        return np.asarray(low * (2 * rows - low - 1) // 2 + high - low - 1)
