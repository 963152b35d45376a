"""Estimates from secret rows: a cut of the graph, or the data's squared length along a direction.

For a public query with coefficients c, ‖Yc‖²/r is cᵀΣc·χ²_r/r over the r rows: unbiased, of
variance 2(cᵀΣc)²/r. For a graph c is the set's indicator less its mean, ‖c‖² = s(n − s)/n, and cᵀLc
is the cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.privacy import Estimator

if TYPE_CHECKING:
    from dpverify_mechanisms.secret.rows import SecretRows

__all__ = ["QuadraticForm"]


@frozen(kw_only=True)
class QuadraticForm(Estimator):
    """Quadratic form of the data in a public query: a cut, or ‖Ax‖².

    (‖Yc‖²/r − ‖c‖²(floor + h²/12))/share, unbiased, of variance 2V²/r/share² with
    V = cᵀΣc + ‖c‖²h²/12.
    """

    compares: ClassVar[Literal["records", "release and query"]] = "release and query"

    sketch: SecretRows

    @property
    def name(self) -> str:
        return self.sketch.answers

    def estimate(self, first: NDArray[np.int64], second: ArrayLike) -> NDArray[np.float64]:
        """Estimates from releases (…, r, columns) and queries (…, columns) that broadcast."""
        c = self.sketch.query(second)
        values = np.matmul(first * self._step, c[..., None])[..., 0]
        offset = (float(self.sketch.floor) + self._step**2 / 12) * np.vecdot(c, c)
        return np.asarray((np.mean(values * values, axis=-1) - offset) / float(self.sketch.share))

    def truth(self, record: Any, other: ArrayLike) -> float:
        """Quadratic form of the gridded data."""
        c = self.sketch.query(other).reshape(-1)
        return float(self._form(record, c) - float(self.sketch.floor) * (c @ c)) / float(
            self.sketch.share
        )

    def variance(self, record: Any, other: ArrayLike) -> float:
        """2V²/r/share²."""
        c = self.sketch.query(other).reshape(-1)
        form = self._form(record, c) + self._step**2 / 12 * float(c @ c)
        return 2 * (form / float(self.sketch.share)) ** 2 / self.sketch.sketch_rows

    @property
    def _step(self) -> float:
        return self.sketch.step().upper

    def _form(self, record: Any, c: NDArray[np.float64]) -> float:
        matrix, unit = self.sketch.covariance(record)
        return float(c @ (matrix * float(unit)) @ c)
