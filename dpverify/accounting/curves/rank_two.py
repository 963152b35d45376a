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
determinants cancel), so M(s) = E[e^{sL}] = ((1 − γs)(1 + γs/(1 + γ)))^(−r/2) for 0 < Re s < 1/γ,
and δ(ε) = E[(1 − e^{ε−L})₊] has the Laplace transform ∫ e^{sε}δ(ε)dε = M(s)/(s(s + 1)). With f the
right side, Poisson's summation of e^{cε}δ(ε) says for every c in (0, 1/γ) and h > 0

    (h/2π)·Σ_k f(c + ikh)·e^{−(c + ikh)ε} = Σ_m δ(ε + 2πm/h)·e^{2πmc/h},

all terms on the right positive, that of m = 0 being δ(ε). Those of m < 0 are at most e^{2πmc/h}
(δ ≤ 1), a geometric series. For m > 0, δ(x) ≤ P[L > x] ≤ M(b)·e^{−bx} with b in (c, 1/γ): a
geometric series again. On the left |M(c + iy)| falls with |y|, so what is left out beyond |k| = K
is at most (h/π)·e^{−cε}·|M(c + iKh)|·Σ_{k>K} 1/(kh)² ≤ e^{−cε}·|M(c + iKh)|/(πKh).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from attrs import field, frozen
from flint import acb, arb, ctx
from scipy.optimize import minimize_scalar

from dpverify.accounting.curves._roots import falling_root, largest_argument
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import NormalRowsLoss
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, Real, enclose, rational, to_arb
from dpverify.errors import NumericalError, require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_count, to_positive_rational

__all__ = ["RankTwoNormal", "max_gamma_two", "replaced_row_gamma"]

_WIDTH = 1e-10
_PRECISION = 160
_MOST_NODES = 100_000


@frozen(kw_only=True)
class RankTwoNormal(PrivacyCurve):
    """Curve of r draws of N(0, I) against r draws of N(0, diag(1 + γ, 1/(1 + γ))).

    Parameters
    ----------
    rows : r ≥ 4 (with fewer the integral converges too slowly)
    gamma : γ > 0, exact
    """

    rows: int = field(converter=to_count)
    gamma: Fraction = field(converter=to_positive_rational)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        require(self.rows >= 4, "rows", self.rows, "at least 4")

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), of relative width at most about 1e-10, for ε ≥ 0."""
        eps = epsilon
        c = self._saddle(float(eps))
        with ctx.workprec(_PRECISION):
            ball = self._sum(eps, c)
            if not ball.rad() <= _WIDTH / 2 * abs(ball):
                raise NumericalError(f"delta({eps}) is only known to be {ball}")
            value = Enclosure.of_ball(ball)
        return Enclosure(max(value.lower, 0.0), min(value.upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses the smallest ε ≥ 0 with δ(ε) ≤ delta, for delta in (0, 1)."""
        require(delta > 0, "delta", delta, "in (0, 1): the privacy loss is unbounded")
        ends = Enclosure.of_exact(delta)
        return Enclosure(
            falling_root(self.delta_at, ends.upper).lower,
            falling_root(self.delta_at, ends.lower).upper,
        )

    def rates(self, threshold: float, *, noise: float = 1.0) -> tuple[float, float]:
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

    def _log_moment(self, s: float) -> float:
        gamma = float(self.gamma)
        return -self.rows / 2 * (math.log1p(-gamma * s) + math.log1p(gamma / (1 + gamma) * s))

    def _saddle(self, eps: float) -> float:
        """Where ln|f(c)e^(−cε)| is about least; any c in (0, 1/γ) is right, this one is fast."""
        top = 1 / float(self.gamma)
        result = minimize_scalar(
            lambda u: self._log_moment(u * top) - u * top * eps - math.log(u * (u * top + 1)),
            bounds=(1e-9, 1 - 1e-9),
            method="bounded",
            options={"xatol": 1e-6},
        )
        return float(result.x) * top * (1 - 1e-9)

    def _sum(self, eps: Fraction, c: float) -> arb:
        e, gamma, middle = to_arb(eps), to_arb(self.gamma), arb(c)
        half = arb(self.rows) / 2
        end = (c + 1 / float(self.gamma)) / 2

        def moment(s: acb) -> acb:
            other = 1 + gamma / (1 + gamma) * s
            return (-half * ((1 - gamma * s).log() + other.log())).exp()

        # The step makes both aliases about 2⁻⁵⁸ of the term at the saddle; proven below.
        target = self._log_moment(c) - c * float(eps) - math.log(c * (c + 1)) - 40
        beyond = self._log_moment(end) - end * float(eps) - target
        period = arb(max(-target / c, beyond / (end - c), 40 / c))
        step = 2 * arb.pi() / period

        def term(k: int) -> arb:
            s = acb(middle, step * k)
            return (moment(s) / (s * (s + 1)) * (-s * e).exp()).real

        first = total = term(0)
        for k in range(1, _MOST_NODES):
            total += 2 * term(k)
            size = abs(moment(acb(middle, step * k))) * (-middle * e).exp() / (arb.pi() * step * k)
            if size < first * step * arb(2) ** -44:
                break
        else:
            raise NumericalError(f"the integral needs more than {_MOST_NODES} nodes")
        left = (-middle * period).exp()
        right = (-(arb(end) - middle) * period).exp()
        if not (middle > 0 and left < 1 and right < 1 and gamma * arb(end) < 1):
            raise NumericalError(f"no contour at {c}")
        alias = left / (1 - left) + abs(moment(acb(end))) * (-arb(end) * e).exp() * right / (
            1 - right
        )
        value = total * step / (2 * arb.pi())
        return (value - alias - size).union(value + size)


def _tail(up: float, down: float, rows: int, threshold: float) -> float:
    """P[up·X₁ − down·X₂ ≥ t] for independent X ~ χ²_r, in doubles, by inversion."""
    top = 1 / (2 * up)

    def log_size(u: float) -> float:
        s = u * top
        return -rows / 2 * (math.log1p(-u) + math.log1p(2 * down * s)) - s * threshold - math.log(s)

    found = minimize_scalar(log_size, bounds=(1e-9, 1 - 1e-9), method="bounded")
    c = float(found.x) * top
    mean, spread = rows * (up - down), math.sqrt(2 * rows * (up * up + down * down))
    reach = abs(threshold) + abs(mean) + 40 * spread + 80 * up + 40 / c
    nodes = np.arange(200_000) * (2 * math.pi / reach)
    s = c + 1j * nodes
    logs = -rows / 2 * (np.log(1 - 2 * up * s) + np.log(1 + 2 * down * s)) - s * threshold
    terms = (np.exp(logs) / s).real
    return float(min(max((2 * terms.sum() - terms[0]) / reach, 0.0), 1.0))


def max_gamma_two(rows: int, *, epsilon: Real, delta: Real) -> Fraction:
    """A γ with which `rows` rows are (ε, δ)-private, proven, next to the largest one."""
    eps, target = rational("epsilon", epsilon), rational("delta", delta)
    require(eps >= 0, "epsilon", epsilon, "at least 0")
    require(0 < target < 1, "delta", delta, "in (0, 1): the privacy loss is unbounded")
    return Fraction(
        largest_argument(
            lambda gamma: RankTwoNormal(rows=rows, gamma=Fraction(gamma)).delta_at(eps),
            Enclosure.of_exact(target).lower,
        )
    )


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
