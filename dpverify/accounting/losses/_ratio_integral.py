"""Powers of a likelihood ratio on a sample, integrated as sums of exponentials.

Noise with the loss t, of density m under the second law, is mixed to the ratio r = g/κ with
g = 1 − q + q·e^t, and from lo to hi

    M(s) = atoms + ∫ κ·m(t)·(r(t)^{1 + s} and, or, r(t)^{−s}) dt:

the one where the ratio is the loss (*forward*), the other where its inverse is (*mirrored*).

| loss | lo | κ | parts | atoms |
|---|---|---|---|---|
| removed | least t | 1 | forward | those of t at lo and hi |
| added | least t | 1 | mirrored | the same |
| batch | 0 | 1 | both | that of t at hi, of both parts; what is left of the laws, at 0 |
| replaced | least t | g(lo) | both | that of t at hi, of both parts |

The last one is Laplace noise of density e^{−z}/2 at z = (t + hi)/2 ≥ 0 (`sampled`): the laws'
ratio is g(t)/g(lo), and the second law's density in t is e^{−z}·g(lo)/4 = κ·m(t).

**Path.** m and ln r are analytic for 0 ≤ Im t < π, where 0 ≤ arg g ≤ Im t. So the integral is one
along a path there, from lo up at 45°, along, and down at 45° to hi. With x = ln r

    r^{1 + c + iy} = r^{1 + c}·e^{iyx},      |e^{iyx}| ≤ 1 for y ≥ 0,

and one set of points serves all y up to some Y: nothing oscillates that isn't small. The mirrored
part is the conjugate of the integral of r^{−c + iy}, of places −x̄ in the upper half plane again.

**Panels.** On each part of the path, halved until that is enough, the Gauss-Legendre rule of n
points is exact for polynomials of degree 2n − 1. If |f| ≤ B on the ellipse that is the image of
[−1, 1]'s of axes (ρ ± 1/ρ)/2, its Chebyshev coefficients are at most 2Bρ^{−k}, and the integral and
the rule have the weight 2 each: they differ by at most 4·Σ_{k ≥ 2n} 2Bρ^{−k} = 8Bρ^{−2n}/(1 − 1/ρ),
times half the panel's length (Trefethen 2013, chapters 8 and 19). B is computed in balls, on a
rectangle around the ellipse, with e^{iyx} at most e^{Y·max(0, −Im x)}. A panel on which the
integrand is small is left out, with its length times its bound.

**Normal noise** has no end. The path stays at a height H, and ends above some X; with a power P ≥ 0
what lies beyond is at most e^{H²/2μ²}·m(X)·g(X)^P over the slope (X + μ²/2)/μ² − P, which has to be
positive, since |g(t + iH)| ≤ g(t) and ln g rises by at most 1. If P < 0, |g| ≥ 1 as e^X·cos H ≥ 1,
and the bound is that of P = 0.

**Cut.** What lies outside of an interval of t may be left out of normal noise too: then it is a
measure like the others, and what it lacks is a probability.

**Modulus.** For all y′ ≥ y ≥ 0 the integral is at most that of |m·r^{1 + c}|·e^{−y·Im x} along the
path, which is bounded panel by panel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.losses._normal_mixture import NormalMixture
from dpverify.accounting.losses.base import Doubles
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.nodes import Nodes
from dpverify.enclosure import to_arb
from dpverify.errors import NumericalError

__all__ = ["Noise", "Ratio", "RatioIntegral"]

Noise = LaplaceLoss | BoundedRangeLoss | GaussianLoss

_RHO = 4
_LONG, _SHORT = 2.125, 1.875  # axes (ρ ± 1/ρ)/2
_ROOM = 12.0  # −ln of what a panel's bound may lie above its integrand, and more
_MOST_LOOKS = 2000  # at parts that are halved
_HIGHEST, _STRIP = 1.0, 3.0  # Im t of a path, where e^t cos H ≥ 1 for t ≥ H, and of all panels
_SHARE = 1 / 64  # of an integral's error for one panel
_NEGLIGIBLE = 1e-3  # of what one panel may be off by
_MOST_STEPS = 10_000
_PARTS, _FEW_BITS = 12, 64  # of a panel, in bounds
_SPLITS, _EVEN, _POINTS = 44, 64, 10  # of the rule in doubles
_SLACK, _TINY = 1e-9, 1e-300  # of a sum in doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Which ratio, and what of it.

    Attributes
    ----------
    base : loss of the noise
    rate : q
    forward, mirrored : the parts
    whole : whether from the least t on
    relative : whether κ is g(lo)
    cut : of normal noise, the least and the largest t that are left, or all
    """

    base: Noise
    rate: Fraction
    forward: bool
    mirrored: bool
    whole: bool
    relative: bool = False
    cut: tuple[float, float] | None = None

    @property
    def end(self) -> arb | None:
        """Hi, where there is one."""
        return arb(self.cut[1]) if self.cut else self.base.max_loss()

    def start(self) -> arb:
        """Lo."""
        if not self.whole:
            return arb(0)
        if self.cut:
            return arb(self.cut[0])
        end = self.end
        assert end is not None  # noqa: S101
        return -end

    def log_scale(self) -> arb:
        """Ln κ."""
        return self._log_mixed(self.start()) if self.relative else arb(0)

    def log_ratio(self, t: acb) -> acb:
        """Ln r, on the logarithm's main branch, for 0 ≤ Im t < π and a little around."""
        return (to_arb(self.rate) * t.expm1()).log1p() - self.log_scale()

    def log_density(self, t: acb) -> acb:
        """Ln of κ·m."""
        match self.base:
            case LaplaceLoss(shift=shift):
                return -(t + to_arb(shift)) / 2 - arb(4).log() + self.log_scale()
            case BoundedRangeLoss(epsilon=epsilon):
                reach = to_arb(epsilon)
                return -(t + reach) / 2 - (2 * -(-reach).expm1()).log() + self.log_scale()
            case GaussianLoss(mu_squared=mu_squared):
                square = to_arb(mu_squared)
                return -((t + square / 2) ** 2) / (2 * square) - (2 * arb.pi() * square).log() / 2

    def atoms(self) -> list[tuple[arb, arb, bool]]:
        """The second law's weight, ln r, and whether the part is mirrored, of each."""
        found = []
        if isinstance(self.base, LaplaceLoss):
            end = to_arb(self.base.shift)
            here = [((-end).exp() / 2, end)]
            if self.whole and not self.relative:
                here.append((arb(1) / 2, -end))
            scale = self.log_scale()
            parts = [part for part in (False, True) if (self.mirrored if part else self.forward)]
            found = [
                (weight * scale.exp(), self._log_mixed(t) - scale, part)
                for weight, t in here
                for part in parts
            ]
        if not self.whole:
            own, other = self.base.tails(arb(0))
            q = to_arb(self.rate)
            found.append((1 - (1 - q) * other - q * own - other, arb(0), False))
        return found

    def _log_mixed(self, t: arb) -> arb:
        return (to_arb(self.rate) * t.expm1()).log1p()

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c) in doubles: for planning."""
        logs, places = _terms(self)
        exponents = logs[:, None] + places[:, None] * c
        most = exponents.max(axis=0)
        with np.errstate(under="ignore"):
            found: Doubles = most + np.log(np.exp(exponents - most).sum(axis=0))
        if self.end is not None:
            return found
        assert isinstance(self.base, GaussianLoss)  # noqa: S101
        # The terms are all but the forward part, of which too much is below 0.
        mixture = NormalMixture(mu_squared=self.base.mu_squared, rate=self.rate)
        whole = mixture.log_moments(1 + c)
        weights, below = _below(self)
        with np.errstate(under="ignore", over="ignore"):
            less = (weights[:, None] * np.exp(below[:, None] * (1 + c))).sum(axis=0)
            rest = np.exp(found) - less
            total: Doubles = whole + np.log1p(rest * np.exp(-whole))
        return total


@lru_cache(maxsize=64)
def _terms(ratio: Ratio) -> tuple[Doubles, Doubles]:
    """Logarithms of weights at c = 0, and places, but for the forward part of normal noise."""
    with ctx.workprec(256):
        start, end = ratio.start(), ratio.end
        normal = end is None
        if isinstance(ratio.base, GaussianLoss) and normal:
            end = arb(14 * math.sqrt(ratio.base.mu_squared))
        assert end is not None  # noqa: S101
        logs, places = [], []
        for share, weight in _even() if ratio.cut else _graded():
            t = acb(start + (end - start) * arb(share))
            log, place = ratio.log_density(t).real, ratio.log_ratio(t).real
            log += ((end - start) * arb(weight)).log()
            if ratio.forward and not normal:
                logs.append(float(log + place))
                places.append(float(place))
            if ratio.mirrored:
                logs.append(float(log))
                places.append(-float(place))
        for mass, place, mirrored in ratio.atoms():
            if mass > 0:
                logs.append(float(mass.log() + (0 if mirrored else place)))
                places.append(float(-place if mirrored else place))
    return np.array(logs), np.array(places)


@lru_cache(maxsize=64)
def _below(ratio: Ratio) -> tuple[Doubles, Doubles]:
    """Weights and ln g below 0, under normal noise."""
    assert isinstance(ratio.base, GaussianLoss)  # noqa: S101
    square = float(ratio.base.mu_squared)
    reach = 14 * math.sqrt(square) + square / 2
    table = np.array(_graded())
    t = -reach * table[:, 0]
    density = np.exp(-((t + square / 2) ** 2) / (2 * square)) / math.sqrt(2 * math.pi * square)
    return reach * table[:, 1] * density, np.log1p(float(ratio.rate) * np.expm1(t))


@lru_cache(maxsize=1)
def _even() -> tuple[tuple[float, float], ...]:
    """The same on panels of equal length."""
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    return tuple(
        ((panel + (1 + float(x)) / 2) / _EVEN, float(w) / 2 / _EVEN)
        for panel in range(_EVEN)
        for x, w in zip(nodes, weights, strict=True)
    )


@lru_cache(maxsize=1)
def _graded() -> tuple[tuple[float, float], ...]:
    """Points of [0, 1] with weights, closer at both ends."""
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    ends = [0.0, *(2.0**-k for k in range(_SPLITS, 0, -1))]
    found = []
    for low, high in pairwise(ends):
        for x, w in zip(nodes, weights, strict=True):
            share, weight = (low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * w
            found += [(float(share), float(weight)), (1 - float(share), float(weight))]
    return tuple(found)


@lru_cache(maxsize=64)
def _legendre(points: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Nodes and weights of [−1, 1]."""
    with ctx.workprec(precision):
        return tuple(arb.legendre_p_root(points, k, weight=True) for k in range(points))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatioIntegral:
    """M(c + iy) for one c and all y from 0 to some Y.

    Attributes
    ----------
    places, weights : Σ w·e^{iyx} is M, but for the error
    error : bound on its modulus
    total : M(c)
    path : which found them
    """

    places: Sequence[acb]
    weights: Sequence[acb]
    error: arb
    total: arb
    path: _Path

    @classmethod
    def of(cls, ratio: Ratio, c: arb, most: float, effort: float) -> RatioIntegral:
        """At the current precision.

        Parameters
        ----------
        most : Y
        effort : −ln of what sums may be off by, about, relative to M(c)
        """
        return _Path.of(ratio, c, most, effort).integral()

    def at(self, y: arb) -> acb:
        """M(c + iy) for 0 ≤ y ≤ Y."""
        turn = acb(0, y)
        pairs = zip(self.weights, self.places, strict=True)
        found = sum((w * (turn * x).exp() for w, x in pairs), acb(0))
        return found + acb(arb(0, self.error), arb(0, self.error))

    def along(self, nodes: Nodes) -> list[acb]:
        """The same at each node of a line of this c."""
        off = acb(arb(0, self.error), arb(0, self.error))
        return [value + off for value in nodes.sums(self.weights, self.places)]

    def in_doubles(self) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Weights over M(c), places, and the error, also over M(c).

        What is in a place's ball moves e^{iyx}, of modulus 1 at most, by e^{Y·radius} − 1 at most.
        """
        scale = self.total.mid()
        weights = np.array([complex(w / scale) for w in self.weights])
        places = np.array([complex(x) for x in self.places])
        error = (self.error + self.total.rad()) / scale
        off = np.array([_radius(w / scale) for w in self.weights])
        moves = np.array([_radius(x) for x in self.places])
        with np.errstate(over="ignore"):
            off += (np.abs(weights) + off) * np.expm1(self.path.most * moves)
        return weights, places, (float(error.upper()) + float(off.sum())) * (1 + _SLACK)

    def modulus(self, y: float) -> float:
        """Bound on |M(c + iy′)|/M(c) for all y′ ≥ y."""
        sizes, least = _bounds(self)
        with np.errstate(under="ignore"):
            found = sizes @ np.exp(-y * least)
        return float(found) * (1 + _SLACK) + _TINY


def _radius(value: acb) -> float:
    """Of a ball around a rectangle's middle that holds it, but for round-off."""
    return math.hypot(float(value.real.rad()), float(value.imag.rad()))


@lru_cache(maxsize=16)
def _bounds(integral: RatioIntegral) -> tuple[Doubles, Doubles]:
    """What parts of panels make at most, over M(c), and the least Im x on each; of the rest 0."""
    path = integral.path
    with ctx.workprec(_FEW_BITS):
        found = [(path.fixed, 0.0)]
        for middle, half in path.panels:
            part = half / _PARTS
            for k in range(1 - _PARTS, _PARTS, 2):
                size, least = path.size(middle + k * part, abs(part.real), abs(part.imag), 0.0)
                found.append((2 * abs(part) * size, max(least, 0.0)))
        table = np.array([(float((size / integral.total).upper()), at) for size, at in found])
    return table[:, 0], table[:, 1]


@dataclass(slots=True, kw_only=True, eq=False)
class _Path:
    """Panels, as they are found.

    Attributes
    ----------
    limit : what one panel may be off by
    panels : middle and half of each
    fixed : bound on what doesn't fall with y
    """

    ratio: Ratio
    c: arb
    most: float
    effort: float
    limit: arb
    places: list[acb] = field(default_factory=list)
    weights: list[acb] = field(default_factory=list)
    panels: list[tuple[acb, acb]] = field(default_factory=list)
    error: arb = field(default_factory=lambda: arb(0))
    fixed: arb = field(default_factory=lambda: arb(0))

    @classmethod
    def of(cls, ratio: Ratio, c: arb, most: float, effort: float) -> _Path:
        (log_total,) = ratio.log_moment(np.array([float(c)]))
        limit = (arb(float(log_total)) - arb(effort)).exp() * _SHARE
        return cls(ratio=ratio, c=c, most=most, effort=effort, limit=limit)

    def integral(self) -> RatioIntegral:
        vertices = self._vertices()
        for mass, place, mirrored in self.ratio.atoms():
            power = -self.c if mirrored else 1 + self.c
            self.places.append(acb(-place if mirrored else place))
            self.weights.append(acb(mass * (power * place).exp()))
            self.fixed += self.weights[-1].real
        for first, second in pairwise(vertices):
            self._along(first, second - first)
        total = sum((w.real for w in self.weights), arb(0)) + arb(0, self.error.upper())
        if not total > 0:
            raise NumericalError(f"the moment at {self.c} of {self.ratio} is lost in round-off")
        return RatioIntegral(
            places=self.places,
            weights=self.weights,
            error=self.error.upper(),
            total=total,
            path=self,
        )

    def _vertices(self) -> list[acb]:
        """Of the path; what lies beyond the last one is an error."""
        start, end, base = self.ratio.start(), self.ratio.end, self.ratio.base
        high = _HIGHEST
        if isinstance(base, GaussianLoss):
            high = min(math.sqrt(base.mu_squared), high)
        if end is None:
            return [acb(start), acb(high, high), acb(arb(self._cut()), high)]
        half = (end - start) / 2
        if half <= high:
            return [acb(start), acb(start + half, half), acb(end)]
        rise = arb(high)
        return [acb(start), acb(start + rise, rise), acb(end - rise, rise), acb(end)]

    def _cut(self) -> float:
        """X for normal noise, and the error of what lies beyond."""
        assert isinstance(self.ratio.base, GaussianLoss)  # noqa: S101
        square, q = to_arb(self.ratio.base.mu_squared), to_arb(self.ratio.rate)
        mu = math.sqrt(self.ratio.base.mu_squared)
        power = max(float(self.c) + 1, -float(self.c), 0.0)
        reach = max(power * mu * mu, _HIGHEST) + 6 * mu
        height = arb(min(mu, _HIGHEST))
        for _ in range(_MOST_STEPS):
            x = arb(reach)
            density = (-((x + square / 2) ** 2 - height**2) / (2 * square)).exp()
            density /= (2 * arb.pi() * square).sqrt()
            beyond = arb(0)
            for part, exponent in (
                (self.ratio.forward, 1 + self.c),
                (self.ratio.mirrored, -self.c),
            ):
                rising = exponent.max(arb(0)).upper()
                slope = (x + square / 2) / square - rising
                size = (rising * (q * x.expm1()).log1p()).exp()
                beyond += density * size / slope if part and slope > 0 else arb(0)
                if part and not slope > 0:
                    beyond += arb("inf")
            if beyond <= self.limit:
                self.error += beyond
                self.fixed += beyond
                return reach
            reach += mu
        raise NumericalError(f"the range of {self.ratio} ends nowhere")

    def _along(self, start: acb, way: acb) -> None:
        """The panels of a part of the path, halves of halves."""
        points = math.ceil((self.effort + _ROOM) / (2 * math.log(_RHO)))
        fall = 4 * arb(_RHO) ** (-2 * points) / (1 - arb(1) / _RHO)
        rule = _legendre(points, ctx.prec)
        stack = [(0.0, 1.0)]
        looks = 0
        while stack:
            low, high = stack.pop()
            middle, half = start + way * arb((low + high) / 2), way * arb((high - low) / 2)
            length = 2 * abs(half)
            size, _ = self.size(middle, abs(half.real), abs(half.imag), 0.0)
            if size * length <= self.limit * _NEGLIGIBLE:
                self.error += size * length
                self.fixed += size * length
                continue
            long, short = half * arb(_LONG), half * arb(_SHORT)
            across = (long.real**2 + short.imag**2).sqrt(), (long.imag**2 + short.real**2).sqrt()
            wide, _ = self.size(middle, *across, self.most)
            if wide * length * fall <= self.limit:
                self.error += wide * length * fall
                self.panels.append((middle, half))
                self._add(middle, half, rule)
                continue
            stack += [((low + high) / 2, high), (low, (low + high) / 2)]
            looks += 1
            if looks > _MOST_LOOKS:
                raise NumericalError(f"the path of {self.ratio} takes too many panels")

    def size(self, middle: acb, across: arb, up: arb, most: float) -> tuple[arb, float]:
        """Bound on the integrand's modulus on a rectangle, at y up to `most`, and the least Im x.

        Infinite where the rectangle isn't in |Im t| < π, where g is neither 0 nor negative.
        """
        t = acb(middle.real + arb(0, across.upper()), middle.imag + arb(0, up.upper()))
        if not abs(t.imag) < _STRIP:
            return arb("inf"), 0.0
        log, place = self.ratio.log_density(t).real, self.ratio.log_ratio(t)
        size = arb(0)
        if self.ratio.forward:
            size += (log + (1 + self.c) * place.real).exp()
        if self.ratio.mirrored:
            size += (log - self.c * place.real).exp()
        least = place.imag.lower()
        if not size.is_finite() or not least.is_finite():
            return arb("inf"), 0.0
        rise = (-least).max(arb(0)) * arb(most)
        return (size * rise.exp()).upper(), float(least)

    def _add(self, middle: acb, half: acb, rule: Sequence[tuple[arb, arb]]) -> None:
        """The points of a panel."""
        for x, weight in rule:
            t = middle + half * x
            log, place, front = self.ratio.log_density(t), self.ratio.log_ratio(t), half * weight
            if self.ratio.forward:
                self.places.append(place)
                self.weights.append(front * (log + (1 + self.c) * place).exp())
            if self.ratio.mirrored:
                self.places.append(-place.conjugate())
                self.weights.append((front * (log - self.c * place).exp()).conjugate())
