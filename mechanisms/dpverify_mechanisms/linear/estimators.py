"""Estimators of squared distance, inner product and cosine from two noisy linear sketches.

Notation: x, y are two gridded records, a = xP, b = yP; the released rows are a + e and b + f, with
independent symmetric noise of variance v and fourth moment w per coordinate (exactly rounded noise:
v is not σ², and that is what is removed). A = ⟨a + e, b + f⟩, B = ‖a + e‖² − kv, C = ‖b + f‖² − kv
estimate ⟨x, y⟩, ‖x‖², ‖y‖² without bias. Given P their covariances are

    Var A    = v(‖a‖² + ‖b‖²) + kv²         Cov(A, B) = 2v⟨a, b⟩
    Var B    = 4v‖a‖² + k(w − v²)            Cov(B, C) = 0

(odd moments of the noise vanish). They are linear in ‖a‖², ‖b‖², ⟨a, b⟩, whose means over P are
‖x‖², ‖y‖², ⟨x, y⟩, so by the law of total covariance the covariances over P and noise are these,
with x and y for a and b, plus those of (⟨a,b⟩, ‖a‖², ‖b‖²) over P, which the projection knows.
Moments are over the draw of P with the noise level held fixed, or for the realised P.

**Noise at the input.** The rows are uP and tP with u = x + e, t = y + f, and noise in each of the p
attributes. Given the noise, P estimates ⟨u, t⟩ without bias, with a variance over P that is a
polynomial in ‖u‖²‖t‖², ⟨u, t⟩² and S = Σu²t² (`Projection.form_covariance`); so

    Var⟨uP, tP⟩ = Var⟨u, t⟩ + c·(E‖u‖²‖t‖² + E⟨u, t⟩² − 2ES) + d·ES + e·(E⟨u, t⟩² − ES),

and the expectations on the right are those of independent coordinates.

All estimates are of the *gridded* records. They are Kenthapadi et al. 2013, theorem 2 (distance),
Stausholm 2021, lemma 3 (distance, any projection with E[P Pᵀ] = I and any symmetric noise), and Li
and Li 2023, theorems 3.9 and 3.10 (inner product), with the moments of what is really drawn.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from dpverify.data.domain import as_rows, dense
from dpverify.errors import ParameterError
from dpverify.privacy import Estimator
from dpverify_mechanisms.linear._dot import dot
from dpverify_mechanisms.linear.release import NoisyProduct
from dpverify_mechanisms.projections.base import off_diagonal

__all__ = ["Cosine", "InnerProduct", "SquaredDistance"]

_of_zero = np.errstate(divide="ignore", invalid="ignore")  # NaN is what is said of it


@frozen(kw_only=True)
class _SketchEstimator(Estimator):
    """What the estimators share: the units, the noise's moments, the quadratic forms.

    Parameters
    ----------
    sketch : the mechanism that released the rows
    realised : if true, moments are over the noise alone, for the realised projection
    """

    sketch: NoisyProduct
    realised: bool = False

    @property
    def over(self) -> Literal["draw and noise", "noise"]:
        return "noise" if self.realised else "draw and noise"

    def __attrs_post_init__(self) -> None:
        if self.realised and self.sketch.at == "input":
            raise ParameterError(
                "realised", True, "false where the noise is at the input", "Use moments over P."
            )

    # Everything below is in the records' unit.

    @property
    def _step(self) -> float:
        return self.sketch.step().upper

    def _noise(self) -> tuple[float, float]:
        """Variance and fourth moment of the noise of one value, where it is added."""
        noise, step = self.sketch.noise, self._step
        if self.sketch.at == "input":
            step = float(self.sketch.grid.step)
        return noise.variance().upper * step**2, noise.fourth_moment().upper * step**4

    def _values(self) -> int:
        """How many values of a row carry noise."""
        projection = self.sketch.projection
        return projection.k if self.sketch.at == "output" else projection.p

    def _dot(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(dot(first, second) * self._step**2)

    def _gridded(self, record: Any) -> NDArray[np.float64]:
        return self._steps(record) * float(self.sketch.grid.step)

    def _moved(self, record: Any, other: Any) -> NDArray[np.float64]:
        """The difference x − y, of which no digits are lost far from 0."""
        return (self._steps(record) - self._steps(other)) * float(self.sketch.grid.step)

    def _steps(self, record: Any) -> NDArray[np.float64]:
        x: Any = self.sketch.domain.admit(as_rows(record), attributes=self.sketch.projection.p)
        steps: NDArray[np.float64] = self.sketch.grid.round(dense(x))[0]
        return steps

    def _forms(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
        """⟨x, y⟩, ‖x‖², ‖y‖², or the same of xP and yP for the realised P."""
        x, y = self._seen(x, y)
        return float(x @ y), float(x @ x), float(y @ y)

    def _seen(self, *vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """The vectors, or their products with the realised P."""
        rows = np.stack(vectors)
        if not self.realised:
            return rows
        projected: NDArray[np.float64] = rows @ self.sketch.projection.matrix
        return projected * (self._step / float(self.sketch.grid.step))

    def _covariance(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Covariance matrix of (A, B, C), shape (3, 3), for noise at the output."""
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
        return noise + self._form_covariance((x, y), (x, x), (y, y))

    def _form_covariance(self, *forms: tuple[Any, Any]) -> NDArray[np.float64]:
        """Covariance matrix over P of the forms ⟨aP, bP⟩ of these pairs a, b."""
        covariance = self.sketch.projection.form_covariance
        return np.array([[covariance(*own, *other) for other in forms] for own in forms])


@frozen(kw_only=True)
class SquaredDistance(_SketchEstimator):
    """‖x − y‖²: the squared distance of the rows less 2kv.

    Kenthapadi et al. 2013, algorithm 2 and theorem 2, whose variance 2r⁴/k + 8σ²r² + 8σ⁴k is the
    case of a Gaussian projection and unrounded noise.
    """

    name: ClassVar[str] = "squared distance"

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimates of ‖x − y‖²."""
        difference = first - second
        return self._dot(difference, difference) - 2 * self._values() * self._noise()[0]

    def truth(self, record: Any, other: Any) -> float:
        """‖x − y‖² of the gridded records."""
        z = self._moved(record, other)
        return float(z @ z)

    def expectation(self, record: Any, other: Any) -> float:
        """‖x − y‖², or ‖(x − y)P‖² for the realised P."""
        z = self._moved(record, other)
        return self._forms(z, z)[0]

    def variance(self, record: Any, other: Any) -> float:
        """Noise's share plus Var‖zP‖² over P, for z = x − y."""
        z = self._moved(record, other)
        zz = self._forms(z, z)[0]
        if self.realised:
            return self.noise_variance(zz)
        return self._variance(zz, float((z**4).sum()), off_diagonal(z * z, z * z))

    def spread_variance(self, squared_distance: float, differing: int) -> float:
        """Variance for records that differ evenly in `differing` attributes."""
        fourth = squared_distance**2 / differing
        return self._variance(squared_distance, fourth, (differing - 1) * fourth)

    def noise_variance(self, squared_distance: float) -> float:
        """4·2v‖z‖² + k(w₂ − 4v²), where w₂ = 2w + 6v² is the noise difference's fourth moment.

        For noise at the input, of p values, the same before the projection.
        """
        v, w = self._noise()
        return 8 * v * squared_distance + self._values() * (2 * w + 2 * v * v)

    def _variance(self, zz: float, fourth: float, rest: float) -> float:
        """From ‖z‖², Σz⁴ and ‖z‖⁴ − Σz⁴, whose means at the input are of z with noise of 2v."""
        projection = self.sketch.projection
        if self.sketch.at == "input":
            (v, w), p = self._noise(), projection.p
            fourth += 12 * v * zz + p * (2 * w + 6 * v * v)
            rest += 4 * (p - 1) * v * (zz + p * v)
        return (
            self.noise_variance(zz)
            + float(2 * projection.pair_variance + projection.diagonal_covariance) * rest
            + float(projection.diagonal_variance) * fourth
        )


@frozen(kw_only=True)
class InnerProduct(_SketchEstimator):
    """⟨x, y⟩: the inner product of two rows, which are not noisy copies of one another.

    Li and Li 2023, theorems 3.9 and 3.10.
    """

    name: ClassVar[str] = "inner product"

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Unbiased estimates of ⟨x, y⟩."""
        return self._dot(first, second)

    def truth(self, record: Any, other: Any) -> float:
        """⟨x, y⟩ of the gridded records."""
        return float(self._gridded(record) @ self._gridded(other))

    def expectation(self, record: Any, other: Any) -> float:
        """⟨x, y⟩, or ⟨xP, yP⟩ for the realised P."""
        return self._forms(self._gridded(record), self._gridded(other))[0]

    def variance(self, record: Any, other: Any) -> float:
        """Var A of the module's docstring."""
        x, y = self._gridded(record), self._gridded(other)
        if self.sketch.at == "output":
            return float(self._covariance(x, y)[0, 0])
        v, (_, xx, yy), projection = self._noise()[0], self._forms(x, y), self.sketch.projection
        p = projection.p
        spread = v * (xx + yy) + p * v * v  # Var⟨u, t⟩, and what S gains
        gained = float((p - 1) * projection.pair_variance + projection.diagonal_variance) * spread
        return spread + gained + projection.form_covariance(x, y, x, y)


@frozen(kw_only=True)
class Cosine(_SketchEstimator):
    """Cosine of two records, A/√(BC): the noise's share is taken out of both norms.

    A ratio has no closed mean and variance; these are the delta method's, of second order for the
    mean (bias ½ΣΣ gᵢⱼ Covᵢⱼ) and first order for the variance (∇gᵀ Cov ∇g), which are good where
    the norms stand well above their noise. The estimate is NaN where a norm's isn't positive; the
    cosine of a record of norm 0, with its mean and variance, is NaN too.
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

    @_of_zero
    def truth(self, record: Any, other: Any) -> float:
        """⟨x, y⟩/(‖x‖‖y‖) of the gridded records."""
        x, y = self._gridded(record), self._gridded(other)
        return float(x @ y / np.sqrt((x @ x) * (y @ y)))

    @_of_zero
    def expectation(self, record: Any, other: Any) -> float:
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

    @_of_zero
    def variance(self, record: Any, other: Any) -> float:
        """First-order approximation of the variance; at nearly parallel x and y no terms cancel.

        With y = λx + r, r orthogonal to x, and s = 1 − ρ² = ‖r‖²/‖y‖², the noise's share of
        ∇gᵀ Cov ∇g is vs(1/b + 1/c) + kv²/(bc) + k(w − v²)ρ²(1/b² + 1/c²)/4, and what is linear in
        the forms Q(x, y) = ⟨xP, yP⟩ is (λs/2·Q(x, x) + s·Q(x, r) − λb/(2c)·Q(r, r))/√(bc).
        """
        (v, w), k = self._noise(), self.sketch.projection.k
        x, z = self._seen(self._gridded(record), self._moved(record, other))
        b = x @ x
        along = (x @ z) / b
        slope, rest = 1 - along, along * x - z
        c = slope * slope * b + rest @ rest
        s = (rest @ rest) / c
        kurtosis = k * (w - v * v) * (1 - s) * (1 / b**2 + 1 / c**2) / 4
        noise = v * s * (1 / b + 1 / c) + k * v * v / (b * c) + kurtosis
        if self.realised:
            return float(noise)
        weights = np.array([slope * s / 2, s, -slope * b / (2 * c)])
        forms = self._form_covariance((x, x), (x, rest), (rest, rest))
        return float(noise + weights @ forms @ weights / (b * c))
