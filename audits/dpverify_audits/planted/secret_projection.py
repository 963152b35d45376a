"""Secret projections with too little smoothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from attrs import evolve, frozen
from numpy.typing import NDArray

from dpverify.data.domain import Ball
from dpverify.privacy import Certifiable
from dpverify_audits.planted.bug import Mislabelled, PlantedBug, Rates, by_its_accountant
from dpverify_mechanisms.secret.sketch import CovarianceSketch, CutSketch

__all__ = ["BUGS", "covariance", "cuts", "one_direction", "unshrunk", "with_floor"]

_EPSILON, _DELTA = Fraction(2), Fraction(1, 1000)


def cuts() -> CutSketch:
    """Six vertices, eight secret rows."""
    return CutSketch.calibrated(p=6, sketch_rows=8, epsilon=_EPSILON, delta=_DELTA)


def covariance() -> CovarianceSketch:
    """Three attributes, eight secret rows; w² is just below 4, so that w has the same grid."""
    return CovarianceSketch.calibrated(
        p=3,
        sketch_rows=8,
        epsilon=_EPSILON,
        delta=_DELTA,
        domain=Ball(radius=Fraction(15, 16)),
    )


def with_floor(sketch: CutSketch, w: Fraction) -> Certifiable:
    """The sketch with another smoothing."""
    return Mislabelled(claim=sketch, actual=evolve(sketch, w=w))


@frozen(kw_only=True)
class _Unshrunk(CutSketch):
    """Adds the floor without shrinking the weights: w·I + L."""

    def covariance(self, records: Any) -> tuple[NDArray[np.int64], Fraction]:
        """Integer matrix and unit of w·I + L."""
        matrix, unit = CutSketch.covariance(self, records)
        p, q, n = self.w.numerator, self.w.denominator, self.p
        lift = np.diag(np.full(n, int(self.w / unit)))
        return (matrix - lift) // (n * q - p) * (n * q) + lift, unit


def unshrunk(sketch: CutSketch) -> Certifiable:
    """The sketch that leaves the factor 1 − w/n out."""
    actual = _Unshrunk(
        sketch_rows=sketch.sketch_rows, p=sketch.p, w=sketch.w, adjacency=sketch.adjacency
    )
    return Mislabelled(claim=sketch, actual=actual)


def one_direction(sketch: CutSketch) -> Fraction:
    """The least w by one divergence alone: that of the empty graph's law from an edge's.

    The wider law's own, which is the larger one, is forgotten.
    """
    half, eps = sketch.sketch_rows / 2, float(_EPSILON)

    def excess(gamma: float) -> float:
        s = (1 + gamma) / gamma * (half * math.log1p(gamma) - eps)
        below = scipy.special.gammainc
        own, other = (float(below(half, max(x, 0.0))) for x in (s, s / (1 + gamma)))
        return own - math.exp(eps) * other - float(_DELTA)

    gamma = scipy.optimize.brentq(excess, 0.1, 100.0)
    return Fraction(round(2 / (gamma + 2 / sketch.p) * 1024), 1024)


def _unsquared(sketch: CovarianceSketch) -> CovarianceSketch:
    """The sketch with w, to three digits, in the place of w²."""
    return evolve(sketch, w_squared=Fraction(round(math.sqrt(sketch.w_squared) * 1024), 1024))


def _turned(sketch: CovarianceSketch, threshold: float) -> Rates:
    """Rates of the row that is turned: L is a quadratic form in each of the r normal rows.

    Its eigenvalues under the broken law are one above 0, one below, and zeros.
    """
    turned, half = sketch.worst_pairs()[0], sketch.sketch_rows / 2
    (own, other), broken = (
        [
            matrix * float(unit)
            for matrix, unit in map(s.covariance, (turned.record, turned.neighbour))
        ]
        for s in (sketch, _unsquared(sketch))
    )
    form = (np.linalg.inv(other) - np.linalg.inv(own)) / 2
    least = threshold - half * (np.linalg.slogdet(other)[1] - np.linalg.slogdet(own)[1])

    def reached(law: NDArray[Any]) -> float:
        spectrum = np.sort(np.linalg.eigvals(law @ form).real)
        down, up = float(spectrum[0]), float(spectrum[-1])
        return float(
            scipy.stats.chi2(sketch.sketch_rows).expect(
                lambda x: scipy.special.gammaincc(half, max(least - down * x, 0.0) / (2 * up))
            )
        )

    return reached(broken[0]), reached(broken[1])


def _smoothed(
    floor: Callable[[CutSketch], Fraction], share: Callable[[CutSketch], Fraction]
) -> Callable[[CutSketch, float], Rates]:
    """Rates of a graph with an edge against the empty one, by the chi-squared law of the rows.

    Along the edge the rows have variance floor + 2·share, or floor, in place of the claim's.
    """

    def rates(sketch: CutSketch, threshold: float) -> Rates:
        gamma, half = float(sketch.privacy().gamma), sketch.sketch_rows / 2
        least = (1 + gamma) / gamma * (threshold + half * math.log1p(gamma))
        own, other = (float((floor(sketch) + edges * share(sketch)) / sketch.w) for edges in (2, 0))
        above = scipy.special.gammaincc
        return float(above(half, least / own)), float(above(half, least / other))

    return rates


BUGS: tuple[PlantedBug[Any], ...] = (
    PlantedBug(
        name="smoothing halved",
        mistake="the covariance is lifted by w/2, and the claim is for w",
        twin=cuts,
        plant=lambda sketch: with_floor(sketch, sketch.w / 2),
        rates=_smoothed(lambda s: s.w / 2, lambda s: 1 - s.w / 2 / s.p),
        epsilon=by_its_accountant,
    ),
    PlantedBug(
        name="weights not shrunk",
        mistake="w is added and the factor 1 − w/n left out, so that an edge weighs more",
        twin=cuts,
        plant=unshrunk,
        found_by=("white-box", "moments"),
        draws=2000,
        rates=_smoothed(lambda s: s.w, lambda s: Fraction(1)),
    ),
    PlantedBug(
        name="one direction",
        mistake="w calibrated to the divergence of the narrower law from the wider one alone",
        twin=cuts,
        plant=lambda sketch: with_floor(sketch, one_direction(sketch)),
        rates=_smoothed(one_direction, lambda s: 1 - one_direction(s) / s.p),
        epsilon=by_its_accountant,
    ),
    PlantedBug(
        name="w for its square",
        mistake="the covariance of the data is lifted by w, and the claim is for w²",
        twin=covariance,
        plant=lambda sketch: Mislabelled(claim=sketch, actual=_unsquared(sketch)),
        found_by=("white-box", "moments"),
        draws=3000,
        rates=_turned,
        epsilon=by_its_accountant,
    ),
)
