"""Secret normal rows: what graph sketches and covariance sketches have in common.

The rows of the release are i.i.d. N(0, Σ), for Σ = floor·I + share·(quadratic form of the data).

**What is released** is every coordinate rounded to a public grid of step h, exactly
(`RoundedNormals`): post-processing of the real rows. h² ≤ 2⁻³²·floor, so the rounding errors are
uniform on a step's cube, independent of each other and of the row, up to Fourier coefficients of at
most exp(−2π²·2³²): they add ‖c‖²h²/12 to the variance of c·y, which is removed, and change the
estimators' variance by a relative 1e-10 at most.

**What it tells.** For a public query with coefficients c, ‖Yc‖²/r is cᵀΣc·χ²_r/r over the r rows:
unbiased, of variance 2(cᵀΣc)²/r. For a graph c is the set's indicator less its mean,
‖c‖² = s(n − s)/n, and cᵀLc is the cut.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike, NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.data.adjacency import Edge, Row
from dpverify.enclosure import Enclosure, enclose, exact_string, to_arb
from dpverify.errors import require
from dpverify.guarantee import Guarantee
from dpverify.numbers import to_count
from dpverify.privacy import Certifiable, Estimator
from dpverify.sampling.normal_vectors import RoundedNormals
from dpverify.sampling.words import Words, release_words

__all__ = ["QuadraticForm", "SecretRows", "rows_for_accuracy"]

_FINENESS = 2**32  # floor/h² is at least this
_DELTA = Fraction(1, 10**6)  # at which `facts` compares the exact and the published ε
_DRAWS = 16  # whose scores are computed at once: as doubles they stay in the cache


@frozen(kw_only=True)
class SecretRows(Certifiable):
    """Release of secret normal rows, their law, its likelihood and the step.

    Parameters
    ----------
    sketch_rows : r, number of secret rows
    """

    answers: ClassVar[str]
    """What the quadratic form of a query is."""

    sketch_rows: int = field(converter=to_count)

    @property
    @abstractmethod
    def floor(self) -> Fraction:
        """Smallest eigenvalue that the covariance can have, in the data's unit squared."""

    @property
    @abstractmethod
    def share(self) -> Fraction:
        """Factor of the data's quadratic form in the covariance."""

    @abstractmethod
    def covariance(self, records: Any) -> tuple[NDArray[np.int64], Fraction]:
        """Integer matrix and unit whose product is Σ: secret, for likelihoods and tests."""

    @abstractmethod
    def query(self, query: ArrayLike) -> NDArray[np.float64]:
        """Coefficients c of a query, of the query's shape (…, columns)."""

    @abstractmethod
    def privacy(self) -> RankOneNormal | RankTwoNormal:
        """Exact or proven curve."""

    @abstractmethod
    def published(self, delta: Fraction) -> ApproxDP:
        """What the paper's theorem proves at this δ."""

    def _grid_step(self) -> Fraction:
        """Largest power of two h with h² ≤ 2⁻³²·floor."""
        ratio = self.floor / _FINENESS
        exponent = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2 + 1
        step = Fraction(2) ** exponent
        while step * step > ratio:
            step /= 2
        return step

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[np.int64]:
        """Rounded secret rows of shape (sketch_rows, p), in whole steps."""
        return self.releaser(records, 1, rng=release_words(rng))()

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], NDArray[np.int64]]:
        """Release the records at each call; their covariance is computed once."""
        del count

        @cache
        def drawn() -> Callable[[], NDArray[np.int64]]:
            matrix, unit = self.covariance(records)
            square = self._grid_step() ** 2
            normals = RoundedNormals(matrix, scale=unit / square, least=self.floor / square)
            return partial(normals.sample, self.sketch_rows, rng=rng)

        return lambda: drawn()()

    def shape(self, rows: int) -> tuple[int, ...]:
        """Shape of the release, which doesn't grow with the data."""
        del rows
        return self.sketch_rows, self.p

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int64)  # whole numbers of steps

    def step(self) -> Enclosure:
        """Size of one step of the released integers."""
        return Enclosure.of_exact(self._grid_step())

    def log_likelihood_ratio(
        self, outputs: NDArray[np.int64], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour) of the rows before rounding.

        For covariances S and S + D it is half of Σ yᵀ((S + D)⁻¹ − S⁻¹)y over the rows y, and of
        their number times ln det(S + D) − ln det S. With the few eigenvalues λ of D and their
        vectors u the first is −Σ λ·(yᵀS⁻¹u)(yᵀ(S + D)⁻¹u).
        """
        own, unit = self.covariance(record)
        other, _ = self.covariance(neighbour)
        first, second, moved = (matrix * float(unit) for matrix in (own, other, other - own))
        touched = np.flatnonzero(moved.any(axis=1))
        values, vectors = np.linalg.eigh(moved[np.ix_(touched, touched)])
        few = np.abs(values) > 2.0**-40 * np.abs(values).max(initial=0.0)
        directions = np.zeros((self.p, np.count_nonzero(few)))
        directions[touched] = vectors[:, few] * float(self._grid_step())
        solved = [np.linalg.solve(matrix, directions) for matrix in (first, second)]
        squares = np.empty(len(outputs))
        for start in range(0, len(outputs), _DRAWS):
            rows = outputs[start : start + _DRAWS].reshape(-1, self.p).astype(np.float64)
            along = (rows @ solved[0]) * (rows @ solved[1])
            of_rows = -(along @ values[few])
            squares[start : start + _DRAWS] = of_rows.reshape(-1, self.sketch_rows).sum(axis=1)
        logs = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
        return np.asarray((squares + self.sketch_rows * logs) / 2)

    def estimators(self) -> Sequence[Estimator]:
        """The quadratic form of a public query."""
        return (QuadraticForm(sketch=self),)

    def facts(self) -> Mapping[str, Any]:
        curve = self.privacy()
        return {
            "sketch": {
                "rows": self.sketch_rows,
                "columns": self.p,
                "floor": exact_string(self.floor),
                "share": exact_string(self.share),
                "step": exact_string(self._grid_step()),
            },
            "claim": {
                "relative_change": exact_string(curve.gamma),
                "delta": exact_string(_DELTA),
                "epsilon": curve.epsilon_at(_DELTA),
                "epsilon_published": self.published(_DELTA).epsilon_bound(),
            },
        }

    def _guarantee(
        self,
        adjacency: Edge | Row,
        theorem: str,
        statements: tuple[str, ...] = (),
    ) -> Guarantee:
        return Guarantee(
            curve=self.privacy(),
            adjacency=adjacency,
            randomness="the secret projection, which is all that is random and is never stored",
            data_choice="before the release; the projection stays secret for ever",
            theorem=theorem,
            statements=statements,
        )


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
        """Quadratic form of the gridded data, which of a graph centring doesn't change."""
        matrix, unit = self.sketch.covariance(record)
        data = matrix - int(self.sketch.floor / unit) * np.eye(len(matrix), dtype=np.int64)
        x = np.asarray(other, dtype=np.float64).reshape(-1)
        return float(x @ data @ x) * float(unit / self.sketch.share)

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


def rows_for_accuracy(*, eta: Fraction, nu: Fraction) -> int:
    """Rows r = ⌈8 ln(2/ν)/η²⌉: a relative error of η with probability 1 − ν, for one query.

    Blocki et al. 2012, section 3: the error is relative to the smoothed graph's cut.
    """
    require(0 < eta < 1, "eta", eta, "in (0, 1)")
    require(0 < nu < 1, "nu", nu, "in (0, 1)")
    return math.ceil(enclose(lambda: 8 * (2 / to_arb(nu)).log() / to_arb(eta) ** 2).upper)
