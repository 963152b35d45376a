"""What noise on a linear sketch guarantees, and the least of it that a target needs.

Both depend on how far the sketches of neighbours can be apart before the noise, in its steps: in ℓ2
for Gaussian noise, of scale s, whose curve has μ = D₂/s; for Laplace noise, of scale b, on the
whole vector of moves, or on D₁/b alone where that vector isn't known (`distance`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from attrs import frozen

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.accounting.curves.laplace import Laplace, scale_laplace, scale_laplace_curve
from dpverify.data.adjacency import Adjacency
from dpverify.data.domain import Vectors
from dpverify.data.grid import Grid
from dpverify.enclosure import Enclosure, Exact, SquareRoot, short_string, squared
from dpverify.errors import ParameterError, require_known
from dpverify.guarantee import PrivacyCurve
from dpverify.sampling.rounded_gaussian import RoundedGaussian
from dpverify.sampling.rounded_laplace import RoundedLaplace
from dpverify_mechanisms.linear.distance import distance, laplace_row
from dpverify_mechanisms.projections.base import Projection

__all__ = ["Level", "Neighbours", "Noise"]

Noise = RoundedGaussian | RoundedLaplace
Level = Callable[..., Enclosure]
"""A theorem that Gaussian noise is chosen by: σ for ε, δ and the sensitivity."""


@frozen(kw_only=True)
class Neighbours:
    """The sketches of neighbours before the noise.

    Parameters
    ----------
    projection : what is applied before the noise: the identity where the noise is at the input
    grid, domain, adjacency : of the records
    """

    projection: Projection
    grid: Grid
    domain: Vectors
    adjacency: Adjacency

    def apart(self, norm: Literal[1, 2]) -> Exact:
        """Bound on their distance in steps."""
        return distance(self.projection, self.grid, self.domain, self.adjacency, norm)

    def curve(self, noise: Noise) -> PrivacyCurve:
        """The curve of the noise for this realised projection.

        Exact for Gaussian noise; for Laplace noise exact where all rows have one shape, else that
        of a row that majorises them all. For whole records under Laplace noise it is what pure
        ε alone implies.
        """
        scale = Fraction(noise.scale)
        match noise:
            case RoundedGaussian():
                return Gaussian.from_mu_squared(squared(self.apart(2)) / scale**2)
            case RoundedLaplace():
                row = self._row()
                if row is None:
                    return ApproxDP(epsilon=_divided(self.apart(1), scale))
                return Laplace.of_row(row, scale=scale)

    def least_noise(
        self,
        kind: Literal["gaussian", "laplace"],
        *,
        epsilon: Fraction,
        delta: Fraction,
        level: Level = sigma_gaussian,
    ) -> Noise:
        """The least noise of its kind that is (ε, δ)-differentially private.

        Parameters
        ----------
        kind : "gaussian" needs δ > 0; "laplace" doesn't, and needs less noise with it
        epsilon, delta : the target, exact
        level : for Gaussian noise; the papers' own ask for more than is needed

        Raises
        ------
        ParameterError
            If Gaussian noise would be finer than the grid, or Laplace noise than a 64th of it; if
            either would be wider than 2⁴⁴ steps.
        """
        require_known("noise", kind, ("gaussian", "laplace"))
        match kind:
            case "gaussian":
                scale = level(epsilon, delta, sensitivity=self.apart(2)).upper
                if scale < RoundedGaussian.min_scale:
                    raise ParameterError(
                        "epsilon",
                        short_string(epsilon),
                        f"smaller with Gaussian noise, which would be {scale:.3g} of a step of the "
                        f"records' grid, and needs {RoundedGaussian.min_scale:.0f}",
                        f'noise = "laplace" goes down to {RoundedLaplace.min_scale:.3g} of a step.',
                    )
                _check_width(epsilon, scale)
                return RoundedGaussian(scale=scale)
            case "laplace":
                row = self._row()
                if delta > 0 and row is not None:
                    least = scale_laplace_curve(epsilon, delta, row=row)
                else:
                    least = scale_laplace(epsilon, sensitivity=self.apart(1))
                _check_width(epsilon, least.upper)
                return RoundedLaplace(scale=least.upper)

    def _row(self) -> tuple[Fraction, ...] | None:
        return laplace_row(self.projection, self.grid, self.domain, self.adjacency)


def _check_width(epsilon: Fraction, scale: float) -> None:
    if scale > RoundedGaussian.max_scale:
        raise ParameterError(
            "epsilon",
            short_string(epsilon),
            f"larger: the noise would be {scale:.3g} steps of the records' grid, and may be 2**44",
        )


def _divided(size: Exact, scale: Fraction) -> Exact:
    if isinstance(size, SquareRoot):
        return SquareRoot(size.radicand / scale**2)
    return size / scale
