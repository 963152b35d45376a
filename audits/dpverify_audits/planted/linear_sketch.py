"""Linear sketches with wrong noise, a wrong grid, or an estimate that keeps the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from attrs import evolve, frozen
from numpy.typing import NDArray

from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.data.grid import Grid
from dpverify.privacy import Certifiable, Estimator
from dpverify_audits.planted.bug import Mislabelled, PlantedBug, by_its_accountant, noise_times
from dpverify_mechanisms.linear.estimators import SquaredDistance
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.independent import OPORP, RademacherProjection

__all__ = [
    "BUGS",
    "gaussian",
    "half_sensitivity",
    "halves_to_even",
    "laplace",
    "noise_scaled",
    "whole_steps",
]

_EPSILON, _DELTA = Fraction(2), Fraction(1, 1000)
_UNIT = Attribute(beta=Fraction(1))
_K = 4


def gaussian() -> LinearSketch:
    """An OPORP of 12 attributes in [0, 1]."""
    return LinearSketch.calibrated(
        OPORP(p=12, k=_K, seed=1),
        epsilon=_EPSILON,
        delta=_DELTA,
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=_UNIT,
    )


def laplace() -> LinearSketch:
    """A dense projection, whose ℓ1 and ℓ2 sensitivities differ."""
    return LinearSketch.calibrated(
        RademacherProjection(p=12, k=_K, seed=1),
        epsilon=_EPSILON,
        delta=Fraction(0),
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=_UNIT,
        noise="laplace",
    )


def whole_steps() -> LinearSketch:
    """β is one step of the grid, and the domain's ends lie half-way between two of its points."""
    return LinearSketch.calibrated(
        OPORP(p=12, k=_K, seed=1),
        epsilon=_EPSILON,
        delta=_DELTA,
        domain=Box(low=Fraction(1, 2), high=Fraction(5, 2)),
        adjacency=_UNIT,
        grid_steps=1,
    )


def noise_scaled(sketch: LinearSketch, factor: float) -> Certifiable:
    """The sketch with its noise scaled by `factor` and its claim unchanged."""
    noise = evolve(sketch.noise, scale=sketch.noise.scale * factor)
    return Mislabelled(claim=sketch, actual=evolve(sketch, noise=noise))


def half_sensitivity(sketch: LinearSketch) -> Certifiable:
    """The sketch with noise for half its sensitivity; noise is proportional to it."""
    return noise_scaled(sketch, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HalvesToEven(Grid):
    """Rounds as numpy.rint does."""

    def round(
        self, records: NDArray[np.float64], *, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Nearest whole numbers of steps, halves to the even one."""
        return np.rint(records / float(self.step), out=out)


def halves_to_even(sketch: LinearSketch) -> Certifiable:
    """The sketch on a grid that rounds halves to even."""
    return Mislabelled(
        claim=sketch, actual=evolve(sketch, grid=_HalvesToEven(step=sketch.grid.step))
    )


def _moved_by_two(sketch: LinearSketch, threshold: float) -> tuple[float, float]:
    """The worst pair's values −1 and 0 come out as 0 and 2, plus noise on the whole numbers.

    Its bin has the attribute that moves from 1 to 2, or from 0 to 2, less two that are 1, or 0.
    L ≥ t where the released value is at most −1/2 − t·s².
    """
    scale = float(sketch.noise.scale)
    most = np.floor(-0.5 - threshold * scale**2) + 0.5
    own, other = (float(scipy.special.ndtr((most - value) / scale)) for value in (0, 2))
    return own, other


@frozen(kw_only=True)
class _DistanceWithNoise(SquaredDistance):
    """Leaves the noise in: E‖a + e − b − f‖² = ‖a − b‖² + 2kv."""

    def estimate(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """Squared distances of what was released."""
        values = SquaredDistance.estimate(self, first, second)
        return np.asarray(values + 2 * self._values() * self._noise()[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _BelievesItsDistance(Mislabelled):
    """Offers an estimator that leaves the noise in."""

    def estimators(self) -> Sequence[Estimator]:
        """The wrong one alone."""
        (sketch,) = {e.sketch for e in self.claim.estimators() if isinstance(e, SquaredDistance)}
        return (_DistanceWithNoise(sketch=sketch),)


BUGS: tuple[PlantedBug[LinearSketch], ...] = (
    PlantedBug(
        name="noise scaled by 0.8",
        mistake="the noise's standard deviation is 0.8 of what the claim needs",
        twin=gaussian,
        plant=lambda sketch: noise_scaled(sketch, 0.8),
        found_by=("white-box", "moments", "grey-box"),
        draws=8000,
        rates=noise_times(0.8),
        epsilon=by_its_accountant,
    ),
    PlantedBug(
        name="sensitivity halved",
        mistake="noise calibrated to a move of beta/2, as if records moved both ways from a middle",
        twin=gaussian,
        plant=half_sensitivity,
        found_by=("white-box", "moments", "grey-box"),
        rates=noise_times(0.5),
        epsilon=by_its_accountant,
    ),
    PlantedBug(
        name="laplace noise for the l2 sensitivity",
        mistake="the Gaussian mechanism's norm, which is 1/√k of the one that Laplace noise needs",
        twin=laplace,
        plant=lambda sketch: noise_scaled(sketch, _K**-0.5),
        found_by=("white-box", "moments", "grey-box"),
        rates=noise_times(_K**-0.5),
        epsilon=by_its_accountant,
    ),
    PlantedBug(
        name="halves rounded to even",
        mistake="records rounded with numpy.rint: 1/2 goes to 0 and 3/2 to 2, a move of two steps",
        twin=whole_steps,
        plant=halves_to_even,
        draws=1500,
        rates=_moved_by_two,
        found_by=("white-box", "grey-box"),
    ),
    PlantedBug(
        name="noise left in the squared distance",
        mistake="the distance of the noisy sketches taken as it is, without subtracting 2kv",
        twin=gaussian,
        plant=lambda sketch: _BelievesItsDistance(claim=sketch, actual=sketch),
        found_by=("moments",),
        epsilon=by_its_accountant,
    ),
)
