"""Noisy linear sketches: x ↦ x·P + noise, for every projection and noise of the papers.

**The exact path.** Records become whole numbers X of grid steps (`Grid`), P is a whole-number
matrix times a public scale, X @ P is computed without error (every partial sum stays below 2⁵³,
checked from public numbers), and the noise is an exactly rounded Gaussian on the product's grid.
What is released is a matrix of integers; one of its steps is h·scale in the records' unit. So the
released value is the rounding of (sketch of the gridded record + N(0, σ²)), and the analytic
Gaussian curve holds for it.

**Its privacy** depends on the ratio of integers alone: neighbours differ by at most D steps times a
row, so Δ/σ = moves·max‖row‖₂/s, where s is the noise's scale in steps and its square is rational.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpverify.accounting.gaussian import THEOREM, GaussianCurve, sigma_gaussian
from dpverify.accounting.sensitivity import largest_row_norm
from dpverify.adjacency import Adjacency, AttributeAdjacency, BitFlip, L1Ball
from dpverify.domain import Box
from dpverify.enclosure import (
    Enclosure,
    Exact,
    SquareRoot,
    enclose,
    exact_string,
    squared,
    to_arb,
)
from dpverify.errors import ParameterError
from dpverify.grid import Grid
from dpverify.guarantee import Guarantee
from dpverify.mechanism import Estimator, Pair
from dpverify.sampling.gaussian import RoundedGaussian
from dpverify.sampling.words import Words
from dpverify_mechanisms.dots import dot
from dpverify_mechanisms.estimators import Cosine, InnerProduct, SquaredDistance
from dpverify_mechanisms.projections import Projection

__all__ = ["GRID_STEPS", "LinearSketch"]

GRID_STEPS = 1024
"""Steps that β is divided into unless the caller says otherwise."""

_ROWS = 128  # records a block: their doubles stay in the cache between the steps


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSketch:
    """Release of records @ P + Gaussian noise, exactly.

    Parameters
    ----------
    projection : realised, public
    noise : exactly rounded noise, in steps of the product's grid
    grid : fixed-point grid of the records; the adjacency's bound is a whole number of its steps
    domain : declared range of every attribute
    adjacency : whom the claim protects

    Raises
    ------
    ParameterError
        If the adjacency doesn't fit the grid, or the product could exceed exact doubles.
    """

    projection: Projection
    noise: RoundedGaussian
    grid: Grid
    domain: Box
    adjacency: Adjacency

    def __post_init__(self) -> None:
        self._moves()
        bound = self.largest_sum()
        if not bound < 2**53:
            raise ParameterError(
                "step",
                self.grid.step,
                f"coarse enough: partial sums reach {bound}, beyond 2**53",
                "Fewer grid steps, or a narrower domain, keep the product exact.",
            )

    @classmethod
    def calibrated(
        cls,
        projection: Projection,
        *,
        epsilon: Fraction,
        delta: Fraction,
        domain: Box,
        adjacency: Adjacency,
        grid_steps: int = GRID_STEPS,
    ) -> Self:
        """The sketch with the least noise that is (ε, δ)-differentially private.

        Parameters
        ----------
        projection, domain, adjacency : as in the class
        epsilon, delta : the target, exact
        grid_steps : steps that the adjacency's bound is divided into
        """
        match adjacency:
            case AttributeAdjacency(beta=bound):
                width = domain.high - domain.low
                if bound > width:
                    raise ParameterError(
                        "beta",
                        exact_string(bound),
                        f"at most {exact_string(width)}, the width of the domain",
                        "No attribute can move further, so the width gives the same protection.",
                    )
            case L1Ball(radius=bound):
                pass
            case BitFlip():
                bound = Fraction(1)
        grid = Grid.dividing(bound, steps=grid_steps)
        norm = largest_row_norm(projection.matrix, 2)
        distance = SquareRoot(grid.moves(adjacency, attributes=projection.p) ** 2 * squared(norm))
        scale = sigma_gaussian(epsilon, delta, sensitivity=distance).upper
        return cls(
            projection=projection,
            noise=RoundedGaussian(scale=scale),
            grid=grid,
            domain=domain,
            adjacency=adjacency,
        )

    # The claim

    def privacy(self) -> GaussianCurve:
        """Exact curve for this realised projection."""
        return GaussianCurve(mu_squared=self._distance().radicand / Fraction(self.noise.scale) ** 2)

    def guarantee(self) -> Guarantee:
        """The claim with its conditions."""
        return Guarantee(
            curve=self.privacy(),
            adjacency=self.adjacency,
            randomness="the noise alone, for this realised public projection",
            data_choice="at any time, also by someone who has seen the projection",
            theorem=THEOREM,
        )

    def sensitivity(self) -> Exact:
        """ℓ2-sensitivity in the records' unit."""
        return SquareRoot(self._distance().radicand * squared(self._step()))

    def facts(self) -> Mapping[str, Any]:
        """Public numbers that the claim rests on."""
        projection, scale = self.projection, self.projection.scale
        l1 = largest_row_norm(projection.matrix, 1)
        l2 = largest_row_norm(projection.matrix, 2)
        return {
            "grid": {
                "step": exact_string(self.grid.step),
                "low_steps": self.grid.steps(Fraction(self.domain.ends[0])),
                "high_steps": self.grid.steps(Fraction(self.domain.ends[1])),
                "largest_partial_sum": str(self.largest_sum()),
            },
            "projection": {
                "kind": projection.name,
                "rows": projection.p,
                "columns": projection.k,
                "sha256": projection.sha256(),
                "scale_squared": str(squared(scale)),
                "integer_row_norm_l1": str(l1),
                "integer_row_norm_l2_squared": str(squared(l2)),
            },
            "sensitivity": {
                "steps_moved": self._moves(),
                "l2_squared_in_steps": str(self._distance().radicand),
                "l1": self._in_units(self._moves() * l1),
                "l2": Enclosure.of_exact(self.sensitivity()),
            },
            "noise": {
                "distribution": "Gaussian, rounded exactly to the grid of the product",
                "scale_in_steps": exact_string(Fraction(self.noise.scale)),
                "sigma": self._in_units(Fraction(self.noise.scale)),
                "variance_in_steps": self.noise.variance(),
            },
        }

    def _in_units(self, steps: Fraction) -> Enclosure:
        return enclose(lambda: to_arb(steps) * to_arb(self._step()))

    def _step(self) -> Exact:
        scale = self.projection.scale
        if isinstance(scale, SquareRoot):
            return SquareRoot(scale.radicand * self.grid.step**2)
        return scale * self.grid.step

    def step(self) -> Enclosure:
        """Size of one step of the released integers, in the records' unit."""
        return Enclosure.of_exact(self._step())

    def _moves(self) -> int:
        return self.grid.moves(self.adjacency, attributes=self.projection.p)

    def _distance(self) -> SquareRoot:
        """ℓ2-sensitivity in steps of the product's grid."""
        norm = largest_row_norm(self.projection.matrix, 2)
        return SquareRoot(self._moves() ** 2 * squared(norm))

    def largest_sum(self) -> int:
        """Bound on every partial sum of the product, from public numbers."""
        reach = self.grid.check_reach(self.domain)
        columns = abs(self.projection.matrix).sum(axis=0)
        return reach * int(np.asarray(columns).max())

    # The release

    def release(self, records: ArrayLike, *, rng: Words) -> NDArray[np.int64]:
        """Noisy sketch of every record, in whole steps.

        Parameters
        ----------
        records : (n, p) array inside the domain
        rng : `SecureWords` for anything that leaves the machine

        Returns
        -------
        (n, k) int64 array; `step` is the size of one.

        Raises
        ------
        RecordsError
            If the records don't fit the projection or the domain.
        """
        x = self.domain.admit(records, attributes=self.projection.p)
        sketch = np.empty((x.shape[0], self.projection.k), dtype=np.int64)
        for start in range(0, x.shape[0], _ROWS):
            block = x[start : start + _ROWS]
            sketch[start : start + _ROWS] = self._product(self.grid.round(block))
        sketch += self.noise.sample(sketch.shape, rng=rng)
        return sketch

    def noiseless(self, records: ArrayLike) -> NDArray[np.float64]:
        """Exact product in steps, without noise: for likelihoods and tests, never for release."""
        x = self.domain.admit(records, attributes=self.projection.p)
        return self._product(self.grid.round(x))

    def _product(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        product: NDArray[np.float64] = steps @ self.projection.matrix
        return product

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.int64], record: ArrayLike, neighbour: ArrayLike
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour) of the noise before rounding.

        Rounding to steps changes it by at most ½‖a − b‖₁/s² for noiseless rows a and b: ½√k/s of
        its standard deviation. Any score is valid for an attack; this one is the best up to that.
        """
        first, second = (
            self.noiseless(np.atleast_2d(x))[0].astype(np.int64) for x in (record, neighbour)
        )
        offset = (dot(first, first) - dot(second, second)) / 2
        rows = outputs.reshape(len(outputs), -1)
        return (dot(rows, first - second) - offset) / self.noise.scale**2

    def worst_pairs(self) -> Sequence[Pair]:
        """The attribute with the largest row of P moves by β, at both ends of the domain.

        The loss of a linear sketch depends on the difference of the records alone, so these pairs
        are worst; the two backgrounds test that the code path keeps to that. For an ℓ1 ball they
        fall short of the claim by what it is charged for rounding.
        """
        matrix = self.projection.matrix
        sizes = np.asarray((matrix * matrix).sum(axis=1)).ravel()
        worst = int(np.argmax(sizes))
        moved = float(self.grid.step * self.grid.moves(self.adjacency, attributes=1))
        low, high = self.domain.ends
        pairs = []
        for name, background, target in (
            ("all others at the low end", low, min(low + moved, high)),
            ("all others at the high end", high, max(high - moved, low)),
        ):
            record = np.full(self.projection.p, background)
            neighbour = record.copy()
            neighbour[worst] = target
            pairs.append(
                Pair(
                    name=f"attribute {worst} moves by beta, {name}",
                    record=record[None],
                    neighbour=neighbour[None],
                )
            )
        return pairs

    # Utility

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Synthetic records of the domain, from almost equal to independent."""
        pairs = self.domain.probes(self.projection.p, rng)
        return [
            Pair(name=f"synthetic {number}", record=record, neighbour=other)
            for number, (record, other) in enumerate(pairs, start=1)
        ]

    def redrawn(self, seed: int) -> Self:
        """The same sketch with another projection of its kind and the same noise."""
        return replace(self, projection=replace(self.projection, seed=seed))

    def estimators(self) -> Sequence[Estimator]:
        """Squared distance, inner product and cosine from two released rows."""
        return (SquaredDistance(sketch=self), InnerProduct(sketch=self), Cosine(sketch=self))
