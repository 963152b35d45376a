"""What the benchmark of accountants compares with: enclosures that don't rest on one code alone.

**Gaussian noise and randomized response.** dpverify's enclosure, confirmed by mpmath at 400 digits
from the definitions: with Φ, and as a sum over the number of true answers. A root's two ends are
confirmed by the side of δ on which the curve lies there.

**Laplace noise** composed T times with shift a = 1/b. Up to T = 500 dpverify's closed form, which
its tests compare with numerical integration. Beyond, the integral

    δ(ε) = (1/2πi) ∫ M(s)^T e^(−sε)/(s(s + 1)) ds     along Re s = c > 0,
    M(s) = E[e^(sL)] = (e^(sa) + e^(−(1+s)a))/2 + e^(−a/2) sinh((s + ½)a)/(2s + 1),

by the trapezoid rule with step h = 2π/P, in balls. By Poisson's formula the rule gives
Σₙ δ(ε + nP) e^(cnP) over all integers n. For P ≥ Ta − ε the terms n ≥ 1 are 0, and those of n ≤ −1
are at most e^(−cP)/(1 − e^(−cP)) together, since δ ≤ 1. Nodes with |Im s| ≥ y are left out: there

    |M(s)| ≤ (e^(ca) + e^(−(1+c)a))/2 + e^(−a/2) cosh((c + ½)a)/2y = B,

so that they add at most B^T e^(−cε)/πy. Where y would have to be too large (few coordinates move
by anything but a or −a), the lattice's wide enclosure is all there is.

**Different parameters**: dpverify's enclosure alone, which only its own tests confirm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks.peers.dpverify import ours
from benchmarks.peers.protocol import Case
from dpverify.accounting.curves.laplace import Laplace
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError

__all__ = ["truth"]

_DIGITS = 400  # 1 − e^(−1e-300) still has 100 of them
_LARGEST_CLOSED_FORM = 500
_PRECISION = 192
_MOST_NODES = 1 << 17


def truth(case: Case) -> Enclosure:
    """Enclose the exact answer to a case.

    Raises
    ------
    NumericalError
        If mpmath contradicts dpverify's enclosure, or there is none.
    """
    if case.mechanism == "laplace" and not case.others:
        if case.count <= _LARGEST_CLOSED_FORM or case.solve == "delta":
            return _by_curve(case)
        contour = _contour_root(1 / Fraction(case.parameter), case.count, case.given)
        return contour or _by_curve(case)
    claimed = ours(case)
    if case.others:
        return claimed
    with mpmath.workdps(_DIGITS):
        confirmed = _confirmed(case, claimed)
    if not confirmed:
        raise NumericalError(f"mpmath contradicts {claimed} for {case}")
    return claimed


def _by_curve(case: Case) -> Enclosure:
    curve = Laplace.of_shifts(((1 / Fraction(case.parameter), case.count),))
    return curve.epsilon_at(case.given) if case.solve == "epsilon" else curve.delta_at(case.given)


def _confirmed(case: Case, claimed: Enclosure) -> bool:
    delta = _gaussian if case.mechanism == "gaussian" else _randomized_response
    if case.solve == "delta":
        return bool(claimed.lower <= delta(case, case.given) <= claimed.upper)
    above = claimed.lower == 0 or delta(case, claimed.lower) >= case.given
    return bool(above and delta(case, claimed.upper) <= case.given)


def _gaussian(case: Case, epsilon: float) -> mpmath.mpf:
    mu = mpmath.sqrt(case.count) / mpmath.mpf(case.parameter)
    eps = mpmath.mpf(epsilon)

    def cdf(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

    return cdf(mu / 2 - eps / mu) - mpmath.exp(eps) * cdf(-mu / 2 - eps / mu)


def _randomized_response(case: Case, epsilon: float) -> mpmath.mpf:
    """Sum over the number of true answers, from all of them down to where the loss is ε."""
    odds = mpmath.mpf(case.parameter) / (1 - mpmath.mpf(case.parameter))
    own = mpmath.mpf(case.parameter) ** case.count
    ratio = mpmath.exp(epsilon) / odds**case.count  # e^ε times the other side's share
    total = mpmath.mpf(0)
    for false in range(case.count + 1):
        if ratio >= 1:
            break
        total += own * (1 - ratio)
        own *= (case.count - false) / ((false + 1) * odds)
        ratio *= odds * odds
    return total


def _contour_root(shift: Fraction, count: int, delta: float) -> Enclosure | None:
    """Enclose ε(δ) of `count` Laplace coordinates; None where the integral converges too slowly."""
    start = _saddle_point(float(shift), count, delta)
    if start is None:
        return None
    c, near = start
    most = shift * count
    period = float(max(most, Fraction((60 - math.log(delta)) / c))) * 1.01
    nodes = 1 << 10
    while True:
        integral = _Contour(shift, count, c, period, nodes)
        if integral.left_out(near) <= delta * 1e-16:
            break
        nodes *= 2
        if nodes > _MOST_NODES:
            return None
    guess = integral.root(near, delta)
    with ctx.workprec(_PRECISION):
        for width in (1e-14, 1e-13, 1e-12, 1e-11, 1e-10):
            lower, upper = guess * (1 - width), guess * (1 + width)
            if integral.delta(lower) >= delta >= integral.delta(upper):
                return Enclosure(lower, upper)
    raise NumericalError(f"no certified root near {guess!r}")


def _saddle_point(shift: float, count: int, delta: float) -> tuple[float, float] | None:
    """The c where M(c)^T e^(−cε)/(c(c + 1)) is least, and its ε, by the saddle-point formula.

    None where δ is hardly above the probability that every coordinate loses a.
    """

    def cumulants(c: float) -> tuple[float, float, float]:
        step = 1e-4 * c
        low, middle, high = (
            count * float(_log_moments(np.array([x + 0j]), shift)[0].real)
            for x in (c - step, c, c + step)
        )
        return middle, (high - low) / (2 * step), max((high - 2 * middle + low) / step**2, 1e-30)

    def excess(log_c: float) -> float:
        c = math.exp(log_c)
        value, slope, bend = cumulants(c)
        area = 0.5 * math.log(2 * math.pi * bend) + math.log(c * (c + 1))
        return value - c * slope - area - math.log(delta)

    least, most = -12.0, math.log(100 / shift)
    if not excess(least) > 0 > excess(most):
        return None
    c = math.exp(float(brentq(excess, least, most, rtol=1e-9)))
    return c, cumulants(c)[1]


def _log_moments(s: NDArray[np.complex128], shift: float) -> NDArray[np.complex128]:
    """Logarithm of M(s) in doubles, for proposals; with e^(sa) taken out, nothing overflows."""
    rest = (1 + np.exp(-(1 + 2 * s) * shift)) / 2 - np.expm1(-(2 * s + 1) * shift) / (2 * s + 1) / 2
    found: NDArray[np.complex128] = s * shift + np.log(rest)
    return found


@dataclass(frozen=True, slots=True)
class _Contour:
    """The trapezoid rule on Re s = c, with step 2π/period, at s = c and `nodes` − 1 nodes above.

    Those below are their mirror images.
    """

    shift: Fraction
    count: int
    c: float
    period: float
    nodes: int

    def left_out(self, epsilon: float) -> float:
        """What the other nodes add at most, in doubles: decides only whether to go on."""
        a, y = float(self.shift), 2 * math.pi * self.nodes / self.period
        rest = (1 + math.exp(-(1 + 2 * self.c) * a)) / 2
        rest += (1 + math.exp(-(2 * self.c + 1) * a)) / (4 * y)
        exponent = self.count * (self.c * a + math.log(rest)) - self.c * epsilon
        return math.exp(min(exponent, 700.0)) / (math.pi * y)

    def root(self, near: float, delta: float) -> float:
        """Where the rule in doubles equals δ; ln δ falls with a slope of about −c near there."""
        s = np.asarray(self.c + 2j * math.pi / self.period * np.arange(self.nodes), np.complex128)
        weights = self.count * _log_moments(s, float(self.shift)) - np.log(s) - np.log(s + 1)
        epsilon = near
        for _ in range(40):
            terms = weights - s * epsilon
            largest = float(terms[0].real)
            total = 2 * float(np.exp(terms - largest).real.sum()) - 1
            excess = largest + math.log(total / self.period) - math.log(delta)
            epsilon += excess / self.c
            if abs(excess) <= 1e-15 * self.c * epsilon:
                break
        return epsilon

    def delta(self, epsilon: float) -> arb:
        """Ball that holds δ(ε), at the precision in force."""
        a, step = to_arb(self.shift), 2 * arb.pi() / arb(self.period)
        c, eps = arb(self.c), arb(epsilon)
        total = arb(0)
        for node in range(self.nodes):
            s = acb(c, node * step)
            moment = ((s * a).exp() + (-(1 + s) * a).exp()) / 2
            moment += (-a / 2).exp() * ((s + arb("0.5")) * a).sinh() / (2 * s + 1)
            term = (moment**self.count * (-s * eps).exp() / (s * (s + 1))).real
            total += term if node else term / 2
        y = (self.nodes - 1) * step
        bound = ((c * a).exp() + (-(1 + c) * a).exp()) / 2
        bound += (-a / 2).exp() * ((c + arb("0.5")) * a).cosh() / (2 * y)
        left_out = bound**self.count * (-c * eps).exp() / (arb.pi() * y)
        wrapped = (-c * arb(self.period)).exp()
        wrapped /= 1 - wrapped
        return total * 2 / arb(self.period) + left_out.union(-left_out) - wrapped.union(arb(0))
