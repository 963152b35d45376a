"""Privacy of r secret normal rows of which one data row is replaced: a change of rank two.

Rows are i.i.d. N(0, B + aaᵀ) or N(0, B + a′a′ᵀ), with B ≥ w²I the same for both. The relative
eigenvalues of the two covariances are 1 but for two, 1 + γ₁ ≥ 1 ≥ 1/(1 + γ₂). In the coordinates
that diagonalise both, each of the two is N(0, 1) against N(0, 1 + γ₁) or N(0, 1/(1 + γ₂)). The
channel of `rank_one` (multiply by √c, add N(0, 1 − c)), applied to each coordinate by itself,
shows that the divergences rise with γ₁ and γ₂; so with γ ≥ γ₁, γ₂ the pair

    P = N(0, I)ʳ,    Q = N(0, diag(1 + γ, 1/(1 + γ)))ʳ

dominates. Rescaling one coordinate and swapping both exchanges P and Q: one direction is enough.

**The largest γ** (`replaced_row_gamma`). N(0, B − w²I) may be added to rows of covariance
w²I + aaᵀ, so B = w²I is worst. Then 1 + γ₁ is the largest of (1 + z′²)/(1 + z²) with z = aᵀx/w,
z′ = a′ᵀx/w over unit vectors x, and 1 + γ₂ the same with a and a′ exchanged. If ‖a − a′‖ ≤ ρ and
‖a‖, ‖a′‖ ≤ R, then |z′ − z| ≤ τ = ρ/w and |z′|, |z| ≤ R/w.
 - Without the norms it is at most the largest (1 + (z + τ)²)/(1 + z²): the square of the largest
   singular value σ of a shear by τ, σ − 1/σ = τ, at z = 1/σ, z′ = σ. So γ²/(1 + γ) = τ², and both
   eigenvalues are reached in the limit by a = (N, 0), a′ = (N, ρ), N → ∞: the curve is exact.
 - Where R/w < σ, which is R(R − ρ) < w², that point is out of reach; the ratio rises with z′ up to
   R/w and 1 + γ = (w² + R²)/(w² + max(0, R − ρ)²). For ρ ≥ √2·R it is reached by orthogonal rows
   of norm R: exact again. In between it is an upper bound.

**The curve.** L = ln dP/dQ = ½(γX₁ − X₂·γ/(1 + γ)) with independent X ~ χ²_r under P (the
determinants cancel), so E[e^{sL}] = ((1 − γs)(1 + γs/(1 + γ)))^(−r/2), and δ(ε) = E[(1 − e^{ε−L})₊]
is an integral (`_rows_integral`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy
from attrs import frozen
from flint import arb, ctx

from dpverify.accounting.curves._rows_integral import rows_excess
from dpverify.accounting.curves.rank_one import NormalRows
from dpverify.accounting.losses.base import Doubles, Losses
from dpverify.accounting.losses.continuous import NormalRowsLoss
from dpverify.enclosure import Enclosure, enclose, to_arb
from dpverify.errors import NumericalError

__all__ = ["RankTwoNormal", "replaced_row_gamma"]

_WIDTH = 1e-10
_PRECISION = 160
_LEAST = arb(2) ** -1074  # the smallest double
_AROUND = 2.0 ** -np.arange(32)  # a peak, where what is integrated is cut
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@frozen(kw_only=True)
class RankTwoNormal(NormalRows):
    """Curve of r draws of N(0, I) against r draws of N(0, diag(1 + γ, 1/(1 + γ))).

    Parameters
    ----------
    rows : r ≥ 1
    gamma : γ > 0, exact
    """

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), of relative width about 1e-15 and never above 1e-10, for ε ≥ 0."""
        with ctx.workprec(_PRECISION):
            changes = (self.gamma, self.rows), (-self.gamma / (1 + self.gamma), self.rows)
            ball = rows_excess(changes, to_arb(epsilon))
            if not (ball.rad() <= _WIDTH / 2 * abs(ball) or ball < _LEAST):
                raise NumericalError(f"delta({epsilon}) is only known to be {ball}")
            value = Enclosure.of_ball(ball)
        return Enclosure(max(value.lower, 0.0), min(value.upper, 1.0))

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides.

        With `noise` the floor w is scaled by it, so that the shear γ/√(1 + γ) is divided by it,
        along the same axes.
        """
        gamma = float(self.gamma)
        shear = gamma / math.sqrt(1 + gamma)
        claimed, real = (2 * math.asinh(tau / 2) for tau in (shear, shear / noise))
        half = math.sinh(claimed / 2)
        # L = sinh(claimed/2)·(S₁ − S₂), where S₁ and S₂ have variances e^(±real/2) under P.
        return (
            _tail(half * math.exp(real / 2), half * math.exp(-real / 2), self.rows, threshold),
            _tail(half * math.exp(-real / 2), half * math.exp(real / 2), self.rows, threshold),
        )

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        gammas = self.gamma, -self.gamma / (1 + self.gamma)
        return ((NormalRowsLoss(rows=self.rows, gammas=gammas), 1),)


def _tail(up: float, down: float, rows: int, threshold: float) -> float:
    """P[up·X₁ − down·X₂ ≥ t] for independent X ~ χ²_r, in doubles.

    Where −t ≥ down·X₂ any X₁ will do. Above, X₂ = −t/down + v², or v² where t is positive, and what
    is integrated over v is smooth, and falls on both sides of a peak.
    """
    half, least, rest = rows / 2, max(-threshold, 0.0) / down, max(threshold, 0.0)
    whole = math.log(2) * (1 - half) - math.lgamma(half)

    def logs(v: Doubles) -> Doubles:
        square = least + v * v
        tails = scipy.special.gammaincc(half, (rest + down * v * v) / (2 * up))
        with np.errstate(divide="ignore"):
            sizes: Doubles = np.log(tails) + np.log(v) + whole
        return sizes + (half - 1) * np.log(square) - square / 2

    low, high = 0.0, math.sqrt(rows) + 40
    for spaced in (np.geomspace(1e-12, 1, 100), *[np.linspace(0, 1, 100)] * 2):
        places = low + (high - low) * spaced[1:]
        top = int(logs(places).argmax())
        low, high = places[max(top - 1, 0)], places[min(top + 1, len(places) - 1)]
    around = _AROUND * (math.sqrt(rows) + 40)
    edges = np.unique(np.concatenate([[0.0], places[top] - around, places[top] + around]))
    edges = edges[edges >= 0]
    widths = np.diff(edges)[:, np.newaxis]
    points = edges[:-1, np.newaxis] + widths * (1 + _NODES) / 2
    total = float((np.exp(logs(points)) * widths / 2 * _WEIGHTS).sum())
    return min(total + float(scipy.special.gammainc(half, least / 2)), 1.0)


def replaced_row_gamma(*, floor: Fraction, moved: Fraction, norm: Fraction) -> Fraction:
    """An upper bound on γ, tight to a relative 2⁻⁵⁰, where one data row is replaced.

    Parameters
    ----------
    floor : w² > 0: the covariance is AᵀA + w²I
    moved : ρ > 0, bound on ‖a − a′‖
    norm : R > 0, bound on ‖a‖ and ‖a′‖
    """
    if norm * (norm - moved) < floor:
        rest = max(norm - moved, Fraction(0))
        return (floor + norm**2) / (floor + rest**2) - 1
    square = moved**2 / floor
    # σ² − 1 with σ = τ/2 + √(1 + τ²/4) is τσ.
    root = enclose(lambda: to_arb(square) / 2 + (to_arb(square) + to_arb(square) ** 2 / 4).sqrt())
    return Fraction(root.upper)
