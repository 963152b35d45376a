"""Noisy linear sketches: x ↦ x·P + noise, for every projection and noise of the papers.

**What is released**, and how it is computed without error: `linear.release`.

**Its privacy** depends on the ratio of integers alone: how many steps the sketches of neighbours
are apart before the noise, and how many the noise is wide (`calibration`).

**Noise at the input**, x ↦ (x + noise)·P, is the same mechanism for the identity in place of P,
followed by a public map; so D is taken for the identity, and k may be as large as one likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import fmean
from typing import Any, Literal, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from dpverify.accounting.curves.gaussian import THEOREM, Gaussian, sigma_gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.published import published_sigmas, sigma_li
from dpverify.data.adjacency import Adjacency, Attribute, L1Ball, Record
from dpverify.data.domain import Vectors
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
from dpverify.errors import ParameterError, require, require_known
from dpverify.guarantee import Guarantee, PrivacyCurve
from dpverify.numbers import whole
from dpverify.privacy import Certifiable, Errors, Estimator, Pair
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify_mechanisms.linear.calibration import Level, Neighbours, Noise
from dpverify_mechanisms.linear.distance import GRID_STEPS, check_bound, grid_for
from dpverify_mechanisms.linear.estimators import Cosine, InnerProduct, SquaredDistance
from dpverify_mechanisms.linear.likelihood import input_ratio, output_ratio
from dpverify_mechanisms.linear.release import NoisyProduct
from dpverify_mechanisms.linear.worst_pairs import pairs_apart
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    RademacherProjection,
)

__all__ = ["LAPLACE", "LinearSketch"]

_COMPARED_AT = Fraction(1, 10**6)  # the δ at which `facts` shows published levels
LAPLACE = "Dwork, McSherry, Nissim and Smith 2006, proposition 1"

_NORMS: Mapping[str, Literal[1, 2]] = {"l1": 1, "l2": 2}


@frozen(kw_only=True)
class LinearSketch(NoisyProduct, Certifiable):
    """Release of records @ P + noise, or of (records + noise) @ P, exactly.

    Parameters
    ----------
    projection, noise, grid, domain, at : as in `NoisyProduct`; the adjacency's bound is a whole
        number of the grid's steps
    adjacency : whom the claim protects

    Raises
    ------
    ParameterError
        If the adjacency doesn't fit the grid, or the product could exceed exact doubles.
    """

    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        if not squared(self._distance()) > 0:
            raise ParameterError(
                "seed", self.projection.seed, "one that draws a projection that isn't all zeros"
            )
        super().__attrs_post_init__()

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
        require_known("at", at, ("output", "input"))
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
            statements=(Gaussian if gaussian else Laplace).statements,
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

    def added_noise(self) -> Noise | None:
        """The noise at the output; at the input it is mixed by the projection."""
        return self.noise if self.at == "output" else None

    # The attack

    def log_likelihood_ratio(
        self, outputs: NDArray[np.int64], record: Any, neighbour: Any
    ) -> NDArray[np.float64]:
        """Ln p(output | record) − ln p(output | neighbour); see `likelihood`."""
        own, other = (self.noiseless(x)[0].astype(np.int64) for x in (record, neighbour))
        rows = outputs.reshape(len(outputs), -1)
        if self.at == "input":
            return input_ratio(self.noise, self.projection, rows, own, other)
        return output_ratio(self.noise, rows, own, other)

    def worst_pairs(self) -> Sequence[Pair]:
        """Neighbours whose sketches are as far apart as possible; see `worst_pairs`."""
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

    def estimators(self) -> Sequence[Estimator]:
        """Squared distance and inner product, and for noise at the output the cosine."""
        exact = (SquaredDistance(sketch=self), InnerProduct(sketch=self))
        return exact if self.at == "input" else (*exact, Cosine(sketch=self))


def _before_noise(projection: Projection, at: Literal["output", "input"]) -> Projection:
    """What is applied to the records before the noise."""
    return projection if at == "output" else IdentityProjection(p=projection.p, k=projection.p)
