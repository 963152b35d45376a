"""Staircase noise: its exact privacy curve.

With β = e^(−ε₀) the density is a on |x| < γΔ, aβ up to Δ, and falls by β with every further Δ:
f(x + Δ) = βf(x) for x ≥ 0. a = (1 − β)/(2Δ(γ + β(1 − γ))), 0 ≤ γ ≤ 1: Geng and Viswanath 2014
(arXiv:1212.1186v3), equation 21. It is the noise of least variance, or of least size, for pure
ε₀-differential privacy of a number of sensitivity Δ, for γ chosen for that.

**Exact.** Moved by v ≤ Δ, a point changes by at most one step of the stairs, so that the loss is
ε₀, 0 or −ε₀, and ε₀ with probability p where −ε₀ has βp. So δ(ε) = p·(1 − e^(ε−ε₀)) for ε ≤ ε₀, and
the total variation δ(0) = p·(1 − β) gives p. The density is symmetric and falls with |x|, so that
f(x) ≥ f(x − v) where x ≤ v/2, and the total variation is P[|X| < v/2], which rises with v: the
worst pair of neighbours is v = Δ at every ε, and composes as such (a smaller p is a post-processing
of a larger).

    δ(0) = P[|X| < Δ/2] = 2aΔ·(γ + β(½ − γ)) for γ ≤ ½, and aΔ above.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen
from flint import arb, ctx

from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.discrete import StaircaseLoss
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, enclose, short_string, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_positive_rational, to_rational

__all__ = ["Staircase"]

_PRECISION = 192


@frozen(kw_only=True)
class Staircase(PrivacyCurve):
    """Exact privacy curve of staircase noise on a number whose sensitivity is a step's length.

    Parameters
    ----------
    epsilon : ε₀ > 0, a step down is a factor of e^(−ε₀); exact
    gamma : which part of a step is high, in [0, 1]
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> noise = dpv.curves.Staircase(epsilon=1, gamma="0.25")
    >>> noise.epsilon_at(delta=0).upper
    1.0
    >>> f"{noise.delta_at(epsilon=0):.4f} {dpv.ApproxDP(epsilon=1).delta_at(epsilon=0):.4f}"
    '0.4112 0.4622'
    """

    epsilon: Fraction = field(converter=to_positive_rational)
    gamma: Fraction = field(converter=to_rational)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        rule = "from 2**-60 to 2**60"
        good = Fraction(1, 2**60) <= self.epsilon <= 2**60
        require(good, "epsilon", short_string(self.epsilon), rule)
        require(0 <= self.gamma <= 1, "gamma", self.gamma, "in [0, 1]")

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13; exactly 0 from ε₀ on."""
        if epsilon >= self.epsilon:
            return Enclosure(0.0, 0.0)
        return enclose(lambda: -self._loss().up() * to_arb(epsilon - self.epsilon).expm1())

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ) = ε₀ + ln(1 − δ/p)."""
        if delta == 0:
            return Enclosure.of_exact(self.epsilon)

        def value() -> arb:
            return to_arb(self.epsilon) + (1 - to_arb(delta) / self._loss().up()).log()

        with ctx.workprec(_PRECISION):
            if not self._loss().up() > to_arb(delta) or value() <= 0:
                return Enclosure(0.0, 0.0)
            if not value() > 0:
                return Enclosure(0.0, Enclosure.of_ball(value()).upper)
        return enclose(value)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[L ≥ threshold] on both sides; ε₀/noise replaces ε₀."""
        reach = float(self.epsilon)
        scaled = Staircase(epsilon=self.epsilon / Fraction(noise), gamma=self.gamma)
        with ctx.workprec(64):
            up = float(scaled._loss().up())
            down = float(scaled._loss().up() * to_arb(-scaled.epsilon).exp())
        if threshold > reach:
            return 0.0, 0.0
        if threshold > 0:
            return up, down
        return (1 - down, 1 - up) if threshold > -reach else (1.0, 1.0)

    def losses(self) -> Losses:
        """The privacy loss, for composition."""
        return ((self._loss(), 1),)

    def _loss(self) -> StaircaseLoss:
        return StaircaseLoss(epsilon=self.epsilon, gamma=self.gamma)
