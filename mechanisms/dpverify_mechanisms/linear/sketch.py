"""Noisy linear sketches: x ↦ x·P + noise, for every projection and noise of the papers.

**The exact path.** Records become whole numbers X of grid steps (`Grid`), P is a whole-number
matrix times a public scale, X @ P is computed without error (every partial sum stays below 2⁵³,
checked from public numbers), and the noise is an exactly rounded Gaussian or Laplace variable on
the product's grid. What is released is a matrix of integers; one of its steps is h·scale in the
records' unit. So the released value is the rounding of (sketch of the gridded record + noise), and
the curve of the ideal noise holds for it.

**Its privacy** depends on the ratio of integers alone: how many steps the sketches of neighbours
are apart before the noise, and how many the noise is wide (`linear_claim`).

**Noise at the input**, x ↦ (x + noise)·P, is the same mechanism for the identity in place of P,
followed by a public map; so D is taken for the identity, and k may be as large as one likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from statistics import fmean
from typing import Any, Literal, Self

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray
from scipy import sparse

from dpverify.accounting.curves.gaussian import THEOREM, sigma_gaussian
from dpverify.accounting.published import published_sigmas, sigma_li
from dpverify.data.adjacency import Adjacency, Attribute, L1Ball, Record
from dpverify.data.blocks import ROWS, admitted_blocks, joined, row_blocks
from dpverify.data.domain import Vectors, dense, is_sparse
from dpverify.data.grid import Grid
from dpverify.enclosure import (
    Enclosure,
    Exact,
    Real,
    SquareRoot,
    enclose,
    exact_string,
    rational,
    squared,
    to_arb,
)
from dpverify.errors import NumericalError, ParameterError, require
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.numbers import whole
from dpverify.privacy import Certifiable, Errors, Estimator, Pair, Streaming
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.words import Words, release_words
from dpverify_mechanisms.linear.calibration import Level, Neighbours, Noise
from dpverify_mechanisms.linear.distance import check_bound, grid_for
from dpverify_mechanisms.linear.estimators import Cosine, InnerProduct, SquaredDistance
from dpverify_mechanisms.linear.likelihood import input_ratio, output_ratio
from dpverify_mechanisms.linear.worst_pairs import pairs_apart
from dpverify_mechanisms.projections.base import Projection, single_is_exact
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    RademacherProjection,
)

__all__ = ["GRID_STEPS", "LAPLACE", "LinearSketch"]

_COMPARED_AT = Fraction(1, 10**6)  # the δ at which `facts` shows published levels
_SINGLE = 2**24  # below it every whole number is a float of single precision
GRID_STEPS = 1024
"""Steps that the adjacency's bound is divided into unless the caller says otherwise."""
LAPLACE = "Dwork, McSherry, Nissim and Smith 2006, proposition 1"

_NORMS: Mapping[str, Literal[1, 2]] = {"l1": 1, "l2": 2}


@frozen(kw_only=True)
class LinearSketch(Streaming, Certifiable):
    """Release of records @ P + noise, or of (records + noise) @ P, exactly.

    Parameters
    ----------
    projection : realised, public
    noise : exactly rounded, in steps of the grid that it is added on
    grid : fixed-point grid of the records; the adjacency's bound is a whole number of its steps
    domain : declared domain of the records
    adjacency : whom the claim protects
    at : where the noise is added, "output" or "input"

    Raises
    ------
    ParameterError
        If the adjacency doesn't fit the grid, or the product could exceed exact doubles.
    """

    projection: Projection
    noise: Noise
    grid: Grid
    domain: Vectors
    adjacency: Adjacency
    at: Literal["output", "input"] = "output"
    _largest_sum: int = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if not squared(self._distance()) > 0:
            raise ParameterError(
                "seed", self.projection.seed, "one that draws a projection that isn't all zeros"
            )
        bound = self.projection.largest_sum(self.grid.check_reach(self.domain))
        if not bound < 2**53:
            raise ParameterError(
                "step",
                self.grid.step,
                f"coarse enough: partial sums reach {bound}, beyond 2**53",
                "Fewer grid steps, or a narrower domain, keep the product exact.",
            )
        object.__setattr__(self, "_largest_sum", bound)

    @classmethod
    def calibrated(
        cls,
        projection: Projection,
        *,
        epsilon: Real,
        delta: Real,
        domain: Vectors,
        adjacency: Adjacency,
        noise: Literal["gaussian", "laplace"] = "gaussian",
        at: Literal["output", "input"] = "output",
        grid_steps: int = GRID_STEPS,
        level: Level = sigma_gaussian,
    ) -> Self:
        """The sketch with the least noise that is (ε, δ)-differentially private.

        Parameters
        ----------
        projection, domain, adjacency, at : as in the class
        epsilon, delta : the target, exact
        noise : "gaussian" needs δ > 0; "laplace" doesn't, and needs less noise with it
        grid_steps : steps that the adjacency's bound is divided into
        level : the theorem that Gaussian noise is chosen by, as a function of ε, δ and the
            sensitivity; the papers' own (`accounting.published`) ask for more than is needed
        """
        epsilon, delta = rational("epsilon", epsilon), rational("delta", delta)
        check_bound(domain, adjacency)
        grid = grid_for(domain, adjacency, projection.p, whole("grid_steps", grid_steps))
        neighbours = Neighbours(
            projection=_before_noise(projection, at), grid=grid, domain=domain, adjacency=adjacency
        )
        return cls(
            projection=projection,
            noise=neighbours.least_noise(noise, epsilon=epsilon, delta=delta, level=level),
            grid=grid,
            domain=domain,
            adjacency=adjacency,
            at=at,
        )

    @classmethod
    def best(
        cls,
        projection: Projection,
        *,
        squared_distance: float,
        **target: Any,
    ) -> Self:
        """The cheaper of Gaussian and Laplace noise for the squared-distance estimator.

        Both are calibrated to the same guarantee, and the exact variances of the estimate of a
        squared distance of this size are compared; what P adds to them is the same for both.

        Parameters
        ----------
        projection : realised, public
        squared_distance : that the user expects, in the records' unit
        target : epsilon, delta, domain, adjacency, at and grid_steps as in `calibrated`
        """
        sketches = [cls.calibrated(projection, noise="laplace", **target)]
        if target["delta"] > 0:
            sketches.append(cls.calibrated(projection, noise="gaussian", **target))
        return min(
            sketches, key=lambda s: SquaredDistance(sketch=s).noise_variance(squared_distance)
        )

    # The names of Li and Li 2023; `target`: see `calibrated`

    @classmethod
    def raw_data_g_opt(cls, *, p: int, **target: Any) -> Self:
        """Noise on the records themselves: section 3.6."""
        return cls.calibrated(IdentityProjection(p=p, k=p), **target)

    @classmethod
    def dp_rp_g(cls, *, p: int, k: int, seed: int, **target: Any) -> Self:
        """A Gaussian projection with the noise of theorem 3.1, more than is needed: algorithm 1."""
        return cls.dp_rp_g_opt(p=p, k=k, seed=seed, level=sigma_li, **target)

    @classmethod
    def dp_rp_g_opt(cls, *, p: int, k: int, seed: int, **target: Any) -> Self:
        """A Gaussian projection with the least Gaussian noise: algorithm 1, theorem 3.5."""
        return cls.calibrated(GaussianProjection(p=p, k=k, seed=seed), **target)

    @classmethod
    def dp_rp_l(cls, *, p: int, k: int, seed: int, **target: Any) -> Self:
        """A Gaussian projection with Laplace noise: algorithm 2."""
        return cls.dp_rp_g_opt(p=p, k=k, seed=seed, noise="laplace", **target)

    @classmethod
    def dp_rp_g_opt_b(cls, *, p: int, k: int, seed: int, **target: Any) -> Self:
        """A Rademacher projection: algorithm 3."""
        return cls.calibrated(RademacherProjection(p=p, k=k, seed=seed), **target)

    @classmethod
    def dp_oporp(cls, *, p: int, k: int, seed: int, **target: Any) -> Self:
        """One permutation and one random projection: algorithm 5."""
        return cls.calibrated(OPORP(p=p, k=k, seed=seed), **target)

    @property
    def p(self) -> int:
        """Number of attributes of a record."""
        return self.projection.p

    # The claim

    def privacy(self) -> PrivacyCurve:
        """The curve of the noise for this realised projection; see `Neighbours.curve`."""
        return self._neighbours().curve(self.noise)

    def guarantee(self) -> Guarantee:
        gaussian = isinstance(self.noise, RoundedGaussian)
        return Guarantee(
            curve=self.privacy(),
            adjacency=self.adjacency,
            randomness="the noise alone, for this realised public projection",
            data_choice="at any time, also by someone who has seen the projection",
            theorem=THEOREM if gaussian else LAPLACE,
            given=(self._neighbours().projection.source,),
            statements=("li2023.theorem-3.5" if gaussian else "slides2025.page-10.laplace",),
        )

    def sensitivity(self) -> Exact:
        """Bound on the distance of neighbours' sketches in the records' unit.

        In ℓ2 for Gaussian noise, in ℓ1 for Laplace noise.
        """
        return SquareRoot(squared(self._distance()) * squared(self._noise_step()))

    def facts(self) -> Mapping[str, Any]:
        projection, neighbours = self.projection, self._neighbours()
        reach = self.grid.check_reach(self.domain)
        gaussian = isinstance(self.noise, RoundedGaussian)
        facts: dict[str, dict[str, Any]] = {
            "grid": {
                "step": exact_string(self.grid.step),
                "largest_value_in_steps": str(reach),
                "largest_partial_sum": str(projection.largest_sum(reach)),
            },
            "projection": {
                "kind": projection.name,
                "rows": projection.p,
                "columns": projection.k,
                "sha256": projection.sha256(),
                "scale_squared": str(squared(projection.scale)),
                "integer_row_norm_l1": str(projection.row_norm(1)),
                "integer_row_norm_l2_squared": str(squared(projection.row_norm(2))),
            },
            "sensitivity": {
                f"{name}_squared_in_steps": str(squared(neighbours.apart(norm)))
                for name, norm in _NORMS.items()
            }
            | {"l2" if gaussian else "l1": Enclosure.of_exact(self.sensitivity())},
            "noise": {
                "distribution": ("Gaussian" if gaussian else "Laplace")
                + f", rounded exactly to the grid of the {self.at}",
                "scale_in_steps": exact_string(Fraction(self.noise.scale)),
                "sigma" if gaussian else "scale": self._in_units(Fraction(self.noise.scale)),
                "variance_in_steps": self.noise.variance(),
            },
        }
        if self.adjacency == Record():
            facts["projection"]["integer_spectral_norm"] = neighbours.projection.spectral_norm()
        if gaussian:
            # What the papers ask for where this noise is (ε, δ)-private with δ = 1e-6.
            epsilon = Fraction(self.privacy().epsilon_at(_COMPARED_AT).upper)
            levels = self.published_levels(epsilon, _COMPARED_AT) if epsilon else {}
            facts["published"] = {
                f"sigma_by_{name.replace(', ', '_').replace(' ', '_')}": level
                for name, level in levels.items()
            }
        return facts

    def published_levels(self, epsilon: Fraction, delta: Fraction) -> Mapping[str, Enclosure]:
        """Gaussian noise levels that the papers' theorems ask for, in the records' unit."""
        in_units = SquareRoot(squared(self._neighbours().apart(2)) * squared(self._noise_step()))
        drawn = None
        if (
            isinstance(self.projection, GaussianProjection)
            and isinstance(self.adjacency, Attribute | L1Ball)
            and self.at == "output"
        ):
            p, k = self.projection.p, self.projection.k
            moves = self.grid.moves(self.adjacency, self.domain, attributes=p)
            drawn = (self.grid.step * moves, p, k)
        return published_sigmas(epsilon, delta, sensitivity=in_units, any_gaussian=drawn)

    def _in_units(self, steps: Fraction) -> Enclosure:
        return enclose(lambda: to_arb(steps) * to_arb(self._noise_step()))

    def _step(self) -> Exact:
        scale = self.projection.scale
        if isinstance(scale, SquareRoot):
            return SquareRoot(scale.radicand * self.grid.step**2)
        return scale * self.grid.step

    def _noise_step(self) -> Exact:
        return self._step() if self.at == "output" else self.grid.step

    def step(self) -> Enclosure:
        return Enclosure.of_exact(self._step())

    def _distance(self) -> Exact:
        """How far apart neighbours' sketches can be, in the noise's steps and its own norm."""
        return self._neighbours().apart(self._norm())

    def _norm(self) -> Literal[1, 2]:
        return 2 if isinstance(self.noise, RoundedGaussian) else 1

    def _neighbours(self) -> Neighbours:
        return Neighbours(
            projection=_before_noise(self.projection, self.at),
            grid=self.grid,
            domain=self.domain,
            adjacency=self.adjacency,
        )

    # The release

    def release_blocks(self, records: Any, *, rng: Words | None = None) -> Iterator[NDArray[Any]]:
        rng = release_words(rng)
        for exact in self._exact_blocks(records):
            yield self._noised(exact, rng)

    def releaser(self, records: Any, count: int, *, rng: Words) -> Callable[[], NDArray[Any]]:
        """Release the records at each of so many calls; all before the noise is computed once."""
        del count
        blocks: list[NDArray[np.int64]] = []

        def release() -> NDArray[Any]:
            if not blocks:
                blocks.extend(self._exact_blocks(records))
            released: NDArray[Any] = joined(self._noised(exact.copy(), rng) for exact in blocks)
            return released

        return release

    def _exact_blocks(self, records: Any) -> Iterator[NDArray[np.int64]]:
        """What the noise is added to, in steps: the product, or the records."""
        admitted = admitted_blocks(records, self.domain, attributes=self.projection.p)
        if self.at == "input":
            for block in row_blocks(admitted):
                yield dense(self._gridded(block)).astype(np.int64)
        else:
            for block in row_blocks(admitted, at_once=self.projection.height):
                yield self._product(block, np.int64)

    def _noised(self, exact: NDArray[np.int64], rng: Words) -> NDArray[np.int64]:
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
        return self._product(self.domain.admit(records, attributes=self.projection.p), np.float64)

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
            return sparse.csr_array((self.grid.round(x.data), x.indices, x.indptr), shape=x.shape)
        return self.grid.round(x)

    def shape(self, rows: int) -> tuple[int, ...]:
        return rows, self.projection.k

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int64)  # whole numbers of steps

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.int64], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour); see `linear_likelihood`."""
        own, other = (self.noiseless(x)[0].astype(np.int64) for x in (record, neighbour))
        rows = outputs.reshape(len(outputs), -1)
        if self.at == "input":
            return input_ratio(self.noise, self.projection, rows, own, other)
        return output_ratio(self.noise, rows, own, other)

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbours whose sketches are as far apart as possible; see `linear_pairs`."""
        return pairs_apart(
            _before_noise(self.projection, self.at),
            self.grid,
            self.domain,
            self.adjacency,
            self._norm(),
        )

    # Utility

    def errors_at(self, at: Sequence[Any], *, draws: int = 16) -> Errors:
        """Error of the squared distance, over P and noise.

        `at` are squared distances of interest, in the records' unit and between records that differ
        evenly in all attributes; or pairs of one and of the number of attributes that differ. The
        fewer differ, the less the projection itself adds.
        """
        del draws
        estimator = SquaredDistance(sketch=self)
        variances = []
        for interest in at:
            squared_distance, differing = (
                interest if isinstance(interest, tuple) else (interest, self.p)
            )
            require(squared_distance >= 0, "at", squared_distance, "at least 0")
            require(1 <= differing <= self.p, "differing", differing, f"from 1 to p={self.p}")
            variances.append(estimator.spread_variance(squared_distance, differing))
        return Errors(variance=fmean(variances))

    def redrawn(self, seed: int) -> Self:
        """The same sketch with another projection of its kind and the same noise.

        The noise level stays what it is, so this is for moments over the draw of P; the privacy of
        the other sketch follows from its own projection.
        """
        return evolve(self, projection=evolve(self.projection, seed=seed))

    def estimators(self) -> Sequence[Estimator]:
        """Squared distance and inner product, and for noise at the output the cosine."""
        exact = (SquaredDistance(sketch=self), InnerProduct(sketch=self))
        return exact if self.at == "input" else (*exact, Cosine(sketch=self))


def _before_noise(projection: Projection, at: Literal["output", "input"]) -> Projection:
    """What is applied to the records before the noise."""
    return projection if at == "output" else IdentityProjection(p=projection.p, k=projection.p)
