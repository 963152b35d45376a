"""Laplace noise cut off at ±A: its exact privacy curve.

The density is like e^(−|x|/b) on [−A, A] and 0 outside: Geng, Ding, Guo and Kumar 2020
(arXiv:1810.00877). It is log-concave, so that δ rises with the size of a shift (`laplace`, the
worst neighbour), and the worst neighbours are v apart, the sensitivity; here v < 2A. The loss of
N(0) against N(v) is infinite below v − A, and (|x − v| − |x|)/b above, which falls with x. So the
best test is {x ≤ c}, with c = v − A from ε = v/b on, else the larger of that and (v − εb)/2:

    δ(ε) = F(c) − e^ε F(c − v),   F(x) = (e^(x/b) − D)/(2(1 − D)) for −A ≤ x ≤ 0,   D = e^(−A/b),

and F(x) = 1 − F(−x). With E = e^(−v/2b) and x = e^(ε/2) the middle case is a quadratic equation,

    D x² − 2E x + K = 0,   K = 2 − D − 2(1 − D)δ,   x = K/(E + √(E² − DK)).

**The least bound** for a δ. δ rises with D. It never falls below F(v − A), which is δ at
A = b·ln(1 + (e^(v/b) − 1)/2δ) for δ ≤ 1/2, the paper's theorem 1 for b = v/ε, and above 1/2 at
D = E²/(1 − δ + √((1 − δ)² + (2δ − 1)E²)). That A is the least bound from ε = v/b on, and where it
is at most (v + εb)/2; for larger A and ε < v/b it is that of the middle case, where
D = 2(δ − 1 + Ex)/(x² − 1 + 2δ), and δ exceeds the 1 − Ex of Laplace noise that isn't cut off.
"""

from __future__ import annotations

import math
from fractions import Fraction

from attrs import field, frozen
from flint import arb, ctx

from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Enclosure, enclose, short_string, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve, to_adjacency
from dpverify.numbers import to_positive_rational

__all__ = ["TruncatedLaplace", "bound_of_truncated_laplace"]

_PRECISION = 256


@frozen(kw_only=True)
class TruncatedLaplace(PrivacyCurve):
    """Exact privacy curve of truncated Laplace noise on a number.

    Of several releases an `ApproxDP` of one of its points is composed: its loss may be infinite
    with a probability that isn't rational.

    Parameters
    ----------
    scale : b > 0 of the noise before it is cut off; exact
    bound : A, which no noise exceeds in size; above half the sensitivity
    sensitivity : v > 0, in the same unit
    adjacency : whom it protects

    Examples
    --------
    >>> import dpverify as dpv
    >>> noise = dpv.curves.TruncatedLaplace(scale=1, bound=14)
    >>> f"{noise.delta_at(epsilon=1):.3g} {noise.delta_at(epsilon=100):.3g}"
    '7.15e-7 7.15e-7'
    """

    scale: Fraction = field(converter=to_positive_rational)
    bound: Fraction = field(converter=to_positive_rational)
    sensitivity: Fraction = field(default=Fraction(1), converter=to_positive_rational)
    adjacency: Adjacency | None = field(default=None, converter=to_adjacency)

    def __attrs_post_init__(self) -> None:
        rule = "above half the sensitivity: otherwise the outputs of neighbours don't overlap"
        require(2 * self.bound > self.sensitivity, "bound", self.bound, rule)
        size = max(self.bound, self.sensitivity) / self.scale
        rule = "at least 2**-20 times the bound and the sensitivity, and at most 2**60 times"
        require(Fraction(1, 2**60) <= size <= 2**20, "scale", short_string(self.scale), rule)

    @property
    def infinity_mass(self) -> Enclosure:
        """Encloses P[L = ∞], below which δ doesn't fall."""
        return enclose(lambda: self._below(self.sensitivity - self.bound))

    def _delta(self, epsilon: Fraction) -> Enclosure:
        """Encloses δ(ε), to a relative width of 1e-13."""
        edge = self.sensitivity - self.bound
        if epsilon * self.scale >= self.sensitivity:
            return self.infinity_mass
        last = max((self.sensitivity - epsilon * self.scale) / 2, edge)

        def value() -> arb:
            other = self._below(last - self.sensitivity)
            return self._below(last) - to_arb(epsilon).exp() * other

        found = enclose(value)
        return Enclosure(found.lower, min(found.upper, 1.0))

    def _epsilon(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ): infinite below the mass of infinite losses."""
        mass = self.infinity_mass
        if delta < mass.lower:
            return Enclosure(math.inf, math.inf)

        def root() -> arb:
            cut = to_arb(-self.bound / self.scale).exp()
            shift = to_arb(-self.sensitivity / self.scale / 2).exp()
            rest = 2 - cut - 2 * (1 - cut) * to_arb(delta)
            inside = (shift * shift - cut * rest).max(arb(0))
            return 2 * (rest / (shift + inside.sqrt())).log()

        if delta <= mass.upper:  # at the mass itself, or below it
            return Enclosure(0.0, math.inf)
        with ctx.workprec(_PRECISION):
            if root() <= 0:
                return Enclosure(0.0, 0.0)
            if not root() > 0:
                return Enclosure(0.0, Enclosure.of_ball(root()).upper)
        return enclose(root)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        """P[x ≤ c] on both sides; with scaled noise, b and A are multiplied by `noise`."""
        size, scale = self.sensitivity, self.scale
        reach, edge = float(size / scale), size - self.bound
        if threshold <= -reach:  # all that either side can give, but for what is infinite
            own, last = 1.0, self.bound
        elif threshold > reach:
            own, last = 0.0, edge
        else:
            own, last = 0.0, max((size - Fraction(threshold) * scale) / 2, edge)
        factor = Fraction(noise)
        with ctx.workprec(64):
            scaled = (scale * factor, self.bound * factor)
            return own or float(_below(last, *scaled)), float(_below(last - size, *scaled))

    def _below(self, x: Fraction) -> arb:
        return _below(x, self.scale, self.bound)


def _below(x: Fraction, scale: Fraction, bound: Fraction) -> arb:
    """F(x)."""
    if abs(x) >= bound:
        return arb(int(x > 0))
    if x > 0:
        return 1 - _below(-x, scale, bound)
    cut = to_arb(-bound / scale).exp()
    return cut * to_arb((x + bound) / scale).expm1() / (2 * (1 - cut))


def bound_of_truncated_laplace(
    epsilon: Fraction, delta: Fraction, *, scale: Fraction, sensitivity: Fraction
) -> Enclosure:
    """Encloses the least bound at which the noise of this scale is (ε, δ)-private.

    Parameters
    ----------
    epsilon : at least 0
    delta : in (0, 1), above that of Laplace noise which isn't cut off
    scale, sensitivity : of the noise and the query
    """
    size, reach = sensitivity / scale, (sensitivity / scale + epsilon) / 2
    require(0 < delta < 1, "delta", short_string(delta), "in (0, 1): this noise is bounded")
    if epsilon < size:
        least = enclose(lambda: -to_arb((epsilon - size) / 2).expm1()).upper
        rule = f"above {least:.4g}, the delta of this noise where it isn't cut off"
        require(delta > least, "delta", short_string(delta), rule)

    def at_edge() -> arb:
        if delta < Fraction(1, 2):
            return (to_arb(size).expm1() / to_arb(2 * delta)).log1p()
        rest = to_arb(1 - delta)
        root = (rest * rest + to_arb(2 * delta - 1) * to_arb(-size).exp()).sqrt()
        return to_arb(size) + (rest + root).log()

    def value() -> arb:
        found = at_edge()
        if epsilon < size and not found <= to_arb(reach):
            x = to_arb(epsilon).exp()
            cut = 2 * (to_arb((epsilon - size) / 2).expm1() + to_arb(delta))
            found = ((x - 1 + to_arb(2 * delta)) / cut).log()
        return to_arb(scale) * found

    return enclose(value)
