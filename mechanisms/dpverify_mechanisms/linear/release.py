"""The release of a noisy linear sketch: an exact product, and exactly rounded noise.

**The exact path.** Records become whole numbers X of grid steps (`Grid`), P is a whole-number
matrix times a public scale, X @ P is computed without error (every partial sum stays below 2⁵³,
checked from public numbers), and the noise is an exactly rounded Gaussian or Laplace variable on
the product's grid. What is released is a matrix of integers; one of its steps is h·scale in the
records' unit. So the released value is the rounding of (sketch of the gridded record + noise), and
the curve of the ideal noise holds for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
import scipy
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from dpverify.data.blocks import ROWS, admitted_blocks, row_blocks
from dpverify.data.domain import Vectors, dense, is_sparse
from dpverify.data.grid import Grid
from dpverify.enclosure import (
    Enclosure,
    Exact,
    SquareRoot,
)
from dpverify.errors import NumericalError, require_known
from dpverify.privacy import Prepared
from dpverify.sampling.words import Words
from dpverify_mechanisms.linear._one_pass import one_pass
from dpverify_mechanisms.linear.calibration import Noise
from dpverify_mechanisms.linear.distance import check_sums
from dpverify_mechanisms.projections.base import Projection, single_is_exact

__all__ = ["NoisyProduct"]

_SINGLE = 2**24  # below it every whole number is a float of single precision


@frozen(kw_only=True)
class NoisyProduct(Prepared):
    """Release of records @ P + noise, or of (records + noise) @ P, whatever it claims.

    Parameters
    ----------
    projection : realised, public
    noise : exactly rounded, in steps of the grid that it is added on
    grid : fixed-point grid of the records
    domain : declared domain of the records
    at : where the noise is added, "output" or "input"

    Raises
    ------
    ParameterError
        If the product could exceed exact doubles.
    """

    projection: Projection
    noise: Noise
    grid: Grid
    domain: Vectors
    at: Literal["output", "input"] = "output"
    _largest_sum: int = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        require_known("at", self.at, ("output", "input"))
        bound = self.projection.largest_sum(self.grid.check_reach(self.domain))
        check_sums(bound, self.grid)
        object.__setattr__(self, "_largest_sum", bound)

    @property
    def p(self) -> int:
        """Number of attributes of a record."""
        return self.projection.p

    def prepared_blocks(self, records: Any) -> Iterator[NDArray[np.int64]]:
        """What the noise is added to, in steps: the product, or the records."""
        p = self.projection.p
        if self.at == "output" and self.projection.signs_a_row is not None:
            # As little is done with each record as its admission takes: both are done together.
            products = admitted_blocks(records, _Product(sketch=self), attributes=p)
            yield from row_blocks(products, at_once=sys.maxsize)
            return
        admitted = admitted_blocks(records, self.domain, attributes=p)
        if self.at == "input":
            for block in row_blocks(admitted):
                yield dense(self._gridded(block)).astype(np.int64)
        else:
            for block in row_blocks(admitted, at_once=self.projection.height):
                yield self._product(block, np.int64)

    def randomized(self, exact: NDArray[np.int64], rng: Words) -> NDArray[np.int64]:
        """The sketch of a block, which gets its noise in place."""
        for start in range(0, len(exact), ROWS):
            part = exact[start : start + ROWS]
            part += self.noise.sample(part.shape, rng=rng)
        if self.at == "output":
            return exact
        # The noise has no bound: in the one case in billions that it takes sums beyond exact
        # doubles nothing is released.
        if not self.projection.largest_sum(int(np.abs(exact).max())) < 2**53:
            raise NumericalError("the noisy records are too large for an exact product; try again.")
        return self.projection.apply(exact.astype(np.float64)).astype(np.int64)

    def noiseless(self, records: Any) -> NDArray[np.float64]:
        """Exact product in steps, without noise: for likelihoods and tests, never for release."""
        return self.admitted(records, np.float64)

    def admitted(self, records: Any, dtype: Any) -> NDArray[Any]:
        """Exact product in steps of records that the domain admits."""
        product = one_pass(
            records,
            domain=self.domain,
            grid=self.grid,
            projection=self.projection,
            largest_sum=self._largest_sum,
        )
        if product is not None:
            return product.astype(dtype, copy=False)
        return self._product(self.domain.admit(records, attributes=self.projection.p), dtype)

    def _product(self, x: Any, dtype: Any) -> NDArray[Any]:
        """Exact product in steps of admitted records, which are gridded a few rows at a time.

        In single precision, at half the cost, where every sum stays within its whole numbers.
        """
        rows = x.shape[0]
        product = np.empty((rows, self.projection.k), dtype=dtype)
        if is_sparse(x):
            np.copyto(product, self.projection.apply(self._gridded(x)), casting="unsafe")
            return product
        single = self._largest_sum < _SINGLE and single_is_exact()
        precision = np.float32 if single else np.float64
        height = min(self.projection.height, rows)
        held = np.empty((height, x.shape[1]), dtype=precision)
        for start in range(0, rows, height):
            part = x[start : start + height]
            steps = self.grid.round(part, out=held[: len(part)])
            applied = self.projection.apply(steps)
            np.copyto(product[start : start + height], applied, casting="unsafe")
        return product

    def _gridded(self, x: Any) -> Any:
        """Whole steps of a block; 0 stays 0, so that sparse records stay sparse."""
        if is_sparse(x):
            return scipy.sparse.csr_array(
                (self.grid.round(x.data), x.indices, x.indptr), shape=x.shape
            )
        return self.grid.round(x)

    def shape(self, rows: int) -> tuple[int, ...]:
        """Shape of the release of this number of records."""
        return rows, self.projection.k

    def dtype(self) -> np.dtype[Any]:
        """Type of the released numbers, whatever the records are."""
        return np.dtype(np.int64)  # whole numbers of steps

    def _step(self) -> Exact:
        scale = self.projection.scale
        if isinstance(scale, SquareRoot):
            return SquareRoot(scale.radicand * self.grid.step**2)
        return scale * self.grid.step

    def _noise_step(self) -> Exact:
        return self._step() if self.at == "output" else self.grid.step

    def step(self) -> Enclosure:
        """Size of one step of the released integers in the records' unit."""
        return Enclosure.of_exact(self._step())

    def redrawn(self, seed: int) -> Self:
        """The same sketch with another projection of its kind and the same noise.

        The noise level stays what it is, so this is for moments over the draw of P; the privacy of
        the other sketch follows from its own projection.
        """
        return evolve(self, projection=evolve(self.projection, seed=seed))


@frozen(kw_only=True)
class _Product:
    """Admission of records by a domain, as their product in steps."""

    sketch: NoisyProduct

    def admit(self, records: Any, *, attributes: int | None = None) -> NDArray[np.int64]:
        """The product of records inside the domain; RecordsError if they aren't."""
        del attributes  # the sketch's own
        return self.sketch.admitted(records, np.int64)
