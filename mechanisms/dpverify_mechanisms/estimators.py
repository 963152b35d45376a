"""Estimators of squared distance, inner product and cosine from two noisy linear sketches.

Notation: x, y are two gridded records, a = xP, b = yP; the released rows are a + e and b + f, with
independent noise of variance v and fourth moment w per coordinate (exactly rounded noise: v is not
σ², and that is what is removed). A = ⟨a + e, b + f⟩, B = ‖a + e‖² − kv, C = ‖b + f‖² − kv estimate
⟨x, y⟩, ‖x‖², ‖y‖² without bias. Given P their covariances are

    Var A    = v(‖a‖² + ‖b‖²) + kv²         Cov(A, B) = 2v⟨a, b⟩
    Var B    = 4v‖a‖² + k(w − v²)            Cov(B, C) = 0

(odd moments of the noise vanish). They are linear in ‖a‖², ‖b‖², ⟨a, b⟩, whose means over P are
‖x‖², ‖y‖², ⟨x, y⟩, so by the law of total covariance the covariances over P and noise are these,
with x and y for a and b, plus those of (⟨a,b⟩, ‖a‖², ‖b‖²) over P, which the projection knows.
Moments are over the draw of P with the noise level held fixed, or for the realised P.

All estimates are of the *gridded* records. They are Kenthapadi et al. 2013, theorem 2 (distance)
and Li and Li 2023, theorems 3.9 and 3.10 (inner product), with the moments of what is really drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify_mechanisms.dots import dot

if TYPE_CHECKING:
    from dpverify_mechanisms.linear_sketch import LinearSketch

__all__ = ["Cosine", "InnerProduct", "SquaredDistance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SketchEstimator(ABC):
    """What the estimators share: the units, the noise's moments, the quadratic forms.

    Parameters
    ----------
    sketch : the mechanism that released the rows
    realised : if true, moments are over the noise alone, for the realised projection
    """

    name: ClassVar[str]
    order: ClassVar[Literal["exact", "delta method"]] = "exact"
    compares: ClassVar[Literal["records", "release and query"]] = "records"

    sketch: LinearSketch
    realised: bool = False

    @abstractmethod
    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Estimates from rows of different records, of shapes (…, k) that broadcast."""

    @abstractmethod
    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """What is estimated, for the gridded records."""

    @abstractmethod
    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        """Mean of the estimate."""

    @abstractmethod
    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Variance of the estimate."""

    # Everything below is in the records' unit.

    @property
    def _step(self) -> float:
        return self.sketch.step().upper

    def _noise(self) -> tuple[float, float]:
        """Variance and fourth moment of the noise of one coordinate."""
        noise = self.sketch.noise
        return noise.variance().upper * self._step**2, noise.fourth_moment().upper * self._step**4

    def _dot(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(dot(first, second) * self._step**2)

    def _gridded(self, record: ArrayLike) -> NDArray[np.float64]:
        x = self.sketch.domain.admit(np.atleast_2d(record), attributes=self.sketch.projection.p)
        steps: NDArray[np.float64] = self.sketch.grid.round(x)[0]
        return steps * float(self.sketch.grid.step)

    def _forms(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
        """⟨x, y⟩, ‖x‖², ‖y‖², or the same of xP and yP for the realised P."""
        if self.realised:
            rows = np.stack([x, y]) @ self.sketch.projection.matrix
            x, y = rows * (self._step / float(self.sketch.grid.step))
        return float(x @ y), float(x @ x), float(y @ y)

    def _covariance(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Covariance matrix of (A, B, C), shape (3, 3)."""
        v, w = self._noise()
        k = self.sketch.projection.k
        xy, xx, yy = self._forms(x, y)
        noise = np.array(
            [
                [v * (xx + yy) + k * v * v, 2 * v * xy, 2 * v * xy],
                [2 * v * xy, 4 * v * xx + k * (w - v * v), 0.0],
                [2 * v * xy, 0.0, 4 * v * yy + k * (w - v * v)],
            ]
        )
        if self.realised:
            return noise
        forms = ((x, y), (x, x), (y, y))
        noise += [[self._drawn(a, b, c, d) for c, d in forms] for a, b in forms]
        return noise

    def _drawn(self, a: Any, b: Any, c: Any, d: Any) -> float:
        """Cov(⟨aP, bP⟩, ⟨cP, dP⟩) over the draw of P."""
        projection = self.sketch.projection
        diagonal = float(np.sum(a * b * c * d))
        off = float((a @ c) * (b @ d) + (a @ d) * (b @ c)) - 2 * diagonal
        return (
            float(projection.pair_variance) * off + float(projection.diagonal_variance) * diagonal
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredDistance(_SketchEstimator):
    """‖x − y‖²: the squared distance of the rows less 2kv.

    Kenthapadi et al. 2013, algorithm 2 and theorem 2, whose variance 2r⁴/k + 8σ²r² + 8σ⁴k is the
    case of a Gaussian projection and unrounded noise.
    """

    name: ClassVar[str] = "squared distance"

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimates of ‖x − y‖²."""
        difference = first - second
        return self._dot(difference, difference) - 2 * self.sketch.projection.k * self._noise()[0]

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """‖x − y‖² of the gridded records."""
        z = self._gridded(record) - self._gridded(other)
        return float(z @ z)

    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        """‖x − y‖², or ‖(x − y)P‖² for the realised P."""
        z = self._gridded(record) - self._gridded(other)
        return self._forms(z, z)[0]

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """4·2v‖z‖² + k(w₂ − 4v²) + Var‖zP‖², with w₂ = 2w + 6v² the noise difference's moment."""
        v, w = self._noise()
        z = self._gridded(record) - self._gridded(other)
        drawn = 0.0 if self.realised else self._drawn(z, z, z, z)
        return 8 * v * self._forms(z, z)[0] + self.sketch.projection.k * (2 * w + 2 * v * v) + drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerProduct(_SketchEstimator):
    """⟨x, y⟩: the inner product of two rows, which are not noisy copies of one another.

    Li and Li 2023, theorems 3.9 and 3.10.
    """

    name: ClassVar[str] = "inner product"

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimates of ⟨x, y⟩."""
        return self._dot(first, second)

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """⟨x, y⟩ of the gridded records."""
        return float(self._gridded(record) @ self._gridded(other))

    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        """⟨x, y⟩, or ⟨xP, yP⟩ for the realised P."""
        return self._forms(self._gridded(record), self._gridded(other))[0]

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """Var A of the module's docstring."""
        return float(self._covariance(self._gridded(record), self._gridded(other))[0, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine(_SketchEstimator):
    """Cosine of two records, A/√(BC): the noise's share is taken out of both norms.

    A ratio has no closed mean and variance; these are the delta method's, of second order for the
    mean (bias ½ΣΣ gᵢⱼ Covᵢⱼ) and first order for the variance (∇gᵀ Cov ∇g), which are good where
    the norms stand well above their noise. The estimate is NaN where a norm's isn't positive.
    """

    name: ClassVar[str] = "cosine"
    order: ClassVar[Literal["exact", "delta method"]] = "delta method"

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Estimates of the cosine, not confined to [−1, 1]."""
        floor = self.sketch.projection.k * self._noise()[0]
        squares = (self._dot(first, first) - floor, self._dot(second, second) - floor)
        product = np.where(
            np.minimum(*squares) > 0, np.maximum(squares[0], 0) * np.maximum(squares[1], 0), np.nan
        )
        return np.asarray(self._dot(first, second) / np.sqrt(product))

    def truth(self, record: ArrayLike, other: ArrayLike) -> float:
        """⟨x, y⟩/(‖x‖‖y‖) of the gridded records."""
        x, y = self._gridded(record), self._gridded(other)
        return float(x @ y / np.sqrt((x @ x) * (y @ y)))

    def expectation(self, record: ArrayLike, other: ArrayLike) -> float:
        """Second-order approximation of the mean."""
        x, y = self._gridded(record), self._gridded(other)
        a, b, c = self._forms(x, y)
        root = np.sqrt(b * c)
        rho = a / root
        second = np.array(
            [
                [0.0, -1 / (2 * b * root), -1 / (2 * c * root)],
                [-1 / (2 * b * root), 3 * rho / (4 * b * b), rho / (4 * b * c)],
                [-1 / (2 * c * root), rho / (4 * b * c), 3 * rho / (4 * c * c)],
            ]
        )
        return float(rho + (second * self._covariance(x, y)).sum() / 2)

    def variance(self, record: ArrayLike, other: ArrayLike) -> float:
        """First-order approximation of the variance."""
        x, y = self._gridded(record), self._gridded(other)
        a, b, c = self._forms(x, y)
        root = np.sqrt(b * c)
        gradient = np.array([1 / root, -a / (2 * b * root), -a / (2 * c * root)])
        return float(gradient @ self._covariance(x, y) @ gradient)
