"""Privacy of r secret normal rows whose covariance changes by a matrix of rank one.

Rows are i.i.d. N(0, Σ) or N(0, Σ + t·bbᵀ), t > 0. In the coordinates x ↦ Σ^(−½)x, turned so that
Σ^(−½)b is an axis, all coordinates but one have the same law and are independent of it; that one
is N(0, 1) or N(0, 1 + γ), γ = t·bᵀΣ⁻¹b. Those maps are invertible, so the pair is that of r draws
of N(0, 1) =: Q against r of N(0, 1 + γ) =: P. With S the sum of the r squares,

    ln dP/dQ = −(r/2)·ln(1 + γ) + S·γ/2(1 + γ),

which rises with S; S is χ²_r under Q and (1 + γ)χ²_r under P. With G(x) = P[χ²_r > x] and
s(ε) = (2(1 + γ)/γ)·(ε + (r/2)·ln(1 + γ)), the hockey-stick divergences in the two directions are

    δ(ε; P‖Q) = G(s(ε)/(1 + γ)) − e^ε·G(s(ε)),
    δ(ε; Q‖P) = (1 − G(s(−ε))) − e^ε·(1 − G(s(−ε)/(1 + γ))),       0 where s(−ε) ≤ 0,

and the curve is the larger one at every ε.

**It rises with γ.** For γ < γ′ the channel x ↦ x·√(γ/γ′) + √(1 − γ/γ′)·N(0, 1) takes N(0, 1) to
itself and N(0, 1 + γ′) to N(0, 1 + γ). So the pair of γ is a post-processing of that of γ′, and
both divergences of the former are at most those of the latter (data processing). A proven upper
bound on γ therefore gives a proven curve.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import scipy
from attrs import field, frozen
from flint import arb

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import NormalRowsLoss
from dpverify.accounting.solve import falling_root, largest_argument
from dpverify.accounting.targets import check_delta, check_target
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_count, to_positive_rational

__all__ = ["NormalRows", "RankOneNormal"]

_UNBOUNDED = "in (0, 1): the privacy loss is unbounded"


@frozen(kw_only=True)
class NormalRows(PrivacyCurve):
    """Curve of r draws of a normal vector whose covariance changes, by a size γ at which δ rises.

    Parameters
    ----------
    rows : r ≥ 1
    gamma : γ > 0, exact
    """

    rows: int = field(converter=to_count)
    gamma: Fraction = field(converter=to_positive_rational)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    @classmethod
    def max_gamma(cls, rows: int, *, epsilon: Real, delta: Real) -> Fraction:
        """A γ with which `rows` rows are (ε, δ)-private, proven, next to the largest one.

        Parameters
        ----------
        rows : r ≥ 1
        epsilon, delta : the target, exact; see `check_target`
        """
        eps, target = rational("epsilon", epsilon), rational("delta", delta)
        require(eps >= 0, "epsilon", epsilon, "at least 0")
        require(0 < target < 1, "delta", delta, _UNBOUNDED)
        check_target(eps, target)
        return Fraction(
            largest_argument(lambda x: cls(rows=rows, gamma=Fraction(x)).delta_at(eps), target)
        )

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta, for delta in [1e-300, 1 - 1e-15]."""
        require(delta > 0, "delta", delta, _UNBOUNDED)
        check_delta(delta)
        return falling_root(self.delta_at, delta)


@frozen(kw_only=True)
class RankOneNormal(NormalRows):
    """Curve of r draws of N(0, 1) against r draws of N(0, 1 + γ), both directions.

    Parameters
    ----------
    rows : r ≥ 1
    gamma : γ > 0, exact: the relative change of the variance in the direction that changes
    """

    statements: ClassVar[tuple[str, ...]] = ("slides2025.appendix-d.determinants.exact",)

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), of relative width about 1e-14, for ε ≥ 0."""
        value = enclose(lambda: self._wider(epsilon).max(self._narrower(epsilon)))
        return Enclosure(value.lower, min(value.upper, 1.0))

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides, in the direction where the divergence is larger.

        At 0, where both are the same, the wider law comes first.

        With `noise` the variance that both laws share is scaled by it, the change staying what it
        is: for a graph, the smoothing w is scaled.
        """
        gamma, half = float(self.gamma), self.rows / 2
        ends = [
            (1 + gamma) / gamma * (side * threshold + half * np.log1p(gamma)) for side in (1, -1)
        ]
        # Half of s, over the variances of the two laws: the first is the wider one.
        above, below = scipy.special.gammaincc, scipy.special.gammainc
        wider = [float(above(half, max(ends[0], 0) / v)) for v in (noise + gamma, noise)]
        narrower = [float(below(half, max(ends[1], 0) / v)) for v in (noise, noise + gamma)]
        odds = np.exp(min(threshold, 700.0))
        excess = wider[0] - odds * wider[1], narrower[0] - odds * narrower[1]
        if threshold == 0 or excess[0] >= excess[1]:
            return wider[0], wider[1]
        return narrower[0], narrower[1]

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        return ((NormalRowsLoss(rows=self.rows, gammas=(self.gamma,)), 1),)

    def _half_s(self, epsilon: arb) -> arb:
        gamma = to_arb(self.gamma)
        return (1 + gamma) / gamma * (epsilon + arb(self.rows) / 2 * (1 + gamma).log())

    def _wider(self, eps: Fraction) -> arb:
        half, s = arb(self.rows) / 2, self._half_s(to_arb(eps))
        own = (s / (1 + to_arb(self.gamma))).gamma_upper(half, regularized=1)
        return own - to_arb(eps).exp() * s.gamma_upper(half, regularized=1)

    def _narrower(self, eps: Fraction) -> arb:
        half, s = arb(self.rows) / 2, self._half_s(-to_arb(eps))
        if s <= 0:
            return arb(0)
        if not s > 0:
            return arb("nan")  # undecided: more precision
        # Arb's lower function loses all digits below its argument's bulk; the upper one doesn't.
        other = 1 - (s / (1 + to_arb(self.gamma))).gamma_upper(half, regularized=1)
        return 1 - s.gamma_upper(half, regularized=1) - to_arb(eps).exp() * other
