"""The privacy losses of the grey-box model, and its events of one release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.auditing.attacks._proposals import numbers
from dpverify.guarantee import PrivacyCurve

__all__ = [
    "ROUND_OFF",
    "Along",
    "AtLeast",
    "HasShape",
    "LaplaceLoss",
    "Loss",
    "NormalLoss",
    "Raised",
]

Vector = NDArray[Any]

ROUND_OFF = 1e-9
"""Relative: by how much more a least norm in doubles must be above the claim."""
_SIMULATED = 4096  # losses of the model


class Loss(Protocol):
    """The privacy loss of the model, for the neighbour against the record.

    Attributes
    ----------
    origin : the record's output without noise, flattened
    """

    origin: Vector

    def __call__(self, output: Vector) -> float:
        """Of a flattened output."""
        ...

    def simulated(self) -> Vector:
        """Of the neighbour's outputs, by the model."""
        ...

    def leak(self, claim: PrivacyCurve, allowed: float) -> str:
        """Where it is above the claim, in words; empty if it isn't."""
        ...


@dataclass(frozen=True, slots=True)
class NormalLoss(Loss):
    """Normal noise: linear in the output, N(μ²/2, μ²) on the neighbour's side."""

    origin: Vector
    weights: Vector
    mu: float

    def __call__(self, output: Vector) -> float:
        return float(self.weights @ (output - self.origin)) - self.mu**2 / 2

    def simulated(self) -> Vector:
        quantiles = scipy.special.ndtri((np.arange(_SIMULATED) + 0.5) / _SIMULATED)
        return np.asarray(self.mu**2 / 2 + self.mu * quantiles)

    def leak(self, claim: PrivacyCurve, allowed: float) -> str:
        curve = Gaussian.from_mu_squared((Fraction(self.mu) * (1 - Fraction(ROUND_OFF))) ** 2)
        return _leak(curve, claim, (allowed, allowed / 2, 0.0))


@dataclass(frozen=True, slots=True)
class LaplaceLoss(Loss):
    """Laplace noise: Σ |zᵢ| − |zᵢ − vᵢ| over the noise variables zᵢ that move."""

    origin: Vector
    inverse: Vector
    shift: Vector

    def __call__(self, output: Vector) -> float:
        return float(self._of(self.inverse @ (output - self.origin)))

    def _of(self, noise: Vector) -> Vector:
        return np.asarray((np.abs(noise) - np.abs(noise - self.shift)).sum(axis=-1))

    def simulated(self) -> Vector:
        rng = np.random.Generator(np.random.PCG64(0))
        return self._of(self.shift + rng.laplace(size=(_SIMULATED, self.shift.size)))

    def leak(self, claim: PrivacyCurve, allowed: float) -> str:
        # Nine digits, so that equal shifts stay equal; then below the truth, as δ rises with each.
        sizes = [Fraction(f"{size:.9g}") * (1 - Fraction(ROUND_OFF)) for size in abs(self.shift)]
        return _leak(Laplace.of_row(sizes, scale=1), claim, (allowed,))


def _leak(curve: PrivacyCurve, claim: PrivacyCurve, epsilons: tuple[float, ...]) -> str:
    for eps in epsilons:
        leaked, limit = curve.delta_at(eps).lower, claim.delta_at(eps).upper
        if leaked > limit:
            return f": δ({eps:.6g}) is {leaked:.4g}, and {limit:.4g} is claimed"
    return ""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Whether an output's score is so large; of another shape it isn't."""

    score: Callable[[Vector], float]
    threshold: float
    size: int

    def __call__(self, released: Any) -> bool:
        output = numbers(released)
        if output is None or output.size != self.size:
            return False
        return self.score(output.ravel()) >= self.threshold


@dataclass(frozen=True, slots=True)
class Along:
    """How far an output lies in a direction."""

    direction: Vector

    def __call__(self, output: Vector) -> float:
        return float(self.direction @ output)


@dataclass(frozen=True, slots=True)
class Raised:
    """Whether it raised, or whether it didn't."""

    yes: bool

    def __call__(self, released: Any) -> bool:
        return isinstance(released, BaseException) == self.yes


@dataclass(frozen=True, slots=True)
class HasShape:
    """Whether the output has this shape."""

    shape: tuple[int, ...]

    def __call__(self, released: Any) -> bool:
        output = numbers(released)
        return output is not None and output.shape == self.shape
