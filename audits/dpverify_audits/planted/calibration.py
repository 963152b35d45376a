"""Gaussian noise on linear sketches, calibrated by a wrong formula or added to a part alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from dpverify._fields import field_values
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.enclosure import Enclosure
from dpverify.privacy import Certifiable
from dpverify.sampling.words import Words
from dpverify_audits.planted.bug import (
    Mislabelled,
    PlantedBug,
    by_its_accountant,
    noise_times,
    without_limit,
)
from dpverify_audits.planted.linear_sketch import noise_scaled
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    RademacherProjection,
)

__all__ = ["BUGS", "dense", "gaussian_rows", "half_noisy", "loose", "tight", "usual"]

_DELTA = Fraction(1, 1000)
_BETA = Fraction(1)
_TIGHT, _USUAL, _LOOSE = Fraction(1, 2), Fraction(2), Fraction(20)


def _sketch(projection: Projection, epsilon: Fraction) -> LinearSketch:
    return LinearSketch.calibrated(
        projection,
        epsilon=epsilon,
        delta=_DELTA,
        domain=Box(low=Fraction(0), high=Fraction(1)),
        adjacency=Attribute(beta=_BETA),
    )


def tight() -> LinearSketch:
    """An OPORP of sensitivity 1 with a small ε, whose σ is above 1."""
    return _sketch(OPORP(p=12, k=4, seed=1), _TIGHT)


def usual() -> LinearSketch:
    """An OPORP with an ε above 1."""
    return _sketch(OPORP(p=12, k=4, seed=1), _USUAL)


def loose() -> LinearSketch:
    """An OPORP with an ε far beyond what the classical theorem is for."""
    return _sketch(OPORP(p=12, k=4, seed=1), _LOOSE)


def gaussian_rows() -> LinearSketch:
    """A Gaussian projection, whose rows have norm 1 on average alone."""
    return _sketch(GaussianProjection(p=12, k=4, seed=1), _USUAL)


def dense() -> LinearSketch:
    """A projection whose entries have equal size, so that every coordinate tells as much."""
    return _sketch(RademacherProjection(p=12, k=4, seed=1), _USUAL)


def _sigma(sketch: LinearSketch) -> float:
    """σ in the records' unit."""
    step: Enclosure = sketch.step()
    return float(sketch.noise.scale) * step.upper


def _laplace_scale(sketch: LinearSketch) -> float:
    """β/ε in place of σ: noise of this scale would do if it were Laplace's."""
    return float(_BETA / _USUAL) / _sigma(sketch)


def _classical(sketch: LinearSketch) -> float:
    """β√(2 ln(1.25/δ))/ε in place of σ: Dwork and Roth 2014, theorem A.1, which is for ε < 1."""
    return math.sqrt(2 * math.log(1.25 / _DELTA)) / float(_LOOSE) / _sigma(sketch)


def _as_variance(sketch: LinearSketch) -> float:
    """√σ in place of σ."""
    return 1 / math.sqrt(_sigma(sketch))


def _expected_norm(sketch: LinearSketch) -> float:
    """Noise for rows of norm 1 in place of the largest one that was realised."""
    return float(_BETA) / Enclosure.of_exact(sketch.sensitivity()).upper


@frozen(kw_only=True)
class _HalfNoisy(LinearSketch):
    """Leaves the second half of every sketch without noise."""

    def release(self, records: Any, *, rng: Words | None = None) -> NDArray[np.int64]:
        """The correct release with its second half as it was before the noise."""
        released = LinearSketch.release(self, records, rng=rng)
        half = self.projection.k // 2
        released[:, half:] = self.noiseless(records)[:, half:]
        return released


def half_noisy(sketch: LinearSketch) -> Certifiable:
    """The sketch with noise on its first half."""
    return Mislabelled(claim=sketch, actual=_HalfNoisy(**field_values(sketch)))


def _scaled(
    name: str,
    mistake: str,
    twin: Callable[[], LinearSketch],
    factor: Callable[[LinearSketch], float],
    *,
    draws: int = 1000,
) -> PlantedBug[LinearSketch]:
    """A bug whose noise is the correct one times a factor below 1."""
    return PlantedBug(
        name=name,
        mistake=mistake,
        twin=twin,
        plant=lambda sketch: noise_scaled(sketch, factor(sketch)),
        found_by=("white-box", "moments", "grey-box"),
        draws=draws,
        rates=lambda sketch, t: noise_times(factor(sketch))(sketch, t),
        epsilon=by_its_accountant,
    )


BUGS: tuple[PlantedBug[LinearSketch], ...] = (
    _scaled(
        "delta dropped",
        "Gaussian noise with the scale β/ε of Laplace noise",
        usual,
        _laplace_scale,
    ),
    _scaled(
        "classical sigma for a large ε",
        "σ = β√(2 ln(1.25/δ))/ε, whose proof needs ε < 1, at ε = 20",
        loose,
        _classical,
        draws=2000,
    ),
    _scaled(
        "sigma given as a variance",
        "σ passed to a generator that takes a variance, so that the deviation is √σ",
        tight,
        _as_variance,
        draws=4000,
    ),
    _scaled(
        "expected row norm",
        "noise for rows of norm 1, which a Gaussian projection's have on average alone",
        gaussian_rows,
        _expected_norm,
        draws=1500,
    ),
    PlantedBug(
        name="noise on half the coordinates",
        mistake="a noise vector of k/2 values, which leaves the rest of a sketch as it is",
        twin=dense,
        plant=half_noisy,
        found_by=("white-box", "moments", "grey-box", "precision", "black-box", "sequential"),
        draws=4000,
        # L has its claimed mean and half its claimed variance.
        rates=noise_times(math.sqrt(0.5)),
        epsilon=without_limit,
    ),
)
