"""δ(ε) of a composition by inverting its moment generating function, with every error bounded.

For a privacy loss L with M(s) = E[e^{sL}; L < ∞], let f(ε) = E[(1 − e^{ε−L})₊; L < ∞], so that δ(ε)
is f(ε) plus the mass at L = ∞. Its Laplace transform is ∫ e^{sε} f(ε) dε = M(s)/(s(s + 1)) for
0 < Re s < top.

**Trapezoid rule.** Poisson's summation of e^{cε}f(ε) says for every c in (0, top) and T > 0, with
sₖ = c + 2πik/T,

    (1/T)·Σₖ M(sₖ)·e^{−sₖε}/(sₖ(sₖ + 1)) = Σₘ e^{cmT}·f(ε + mT).

All terms on the right are positive and that of m = 0 is f(ε). For m < 0, f ≤ 1 bounds them by the
geometric series of e^{−cT}; for m > 0, f(x) ≤ P[L > x] ≤ M(b)e^{−bx} with any b in (c, top) bounds
them by M(b)e^{−bε} times that of e^{−(b−c)T}. So the sum exceeds f(ε) by a known little.

**Lattice.** Let L = o + uJ with integers J, and ε = o + uj + θ with 0 ≤ θ ≤ u. Then f is linear in
e^θ on that interval, f(ε) = Σ_{i≥1} P[J = j + i]·(1 − e^{θ−iu}), and with z = e^{su} the generating
function over j is M(s)e^{−so}·K(z), K(z) = 1/(z − 1) − e^θ/(z·e^u − 1). The inverse discrete
Fourier transform at the N points sₖ, T = Nu, has the same aliases as above and no other error:

    (1/N)·Σ_{|k| < N/2} M(sₖ)·e^{−sₖ(ε−θ)}·K(zₖ) = Σₘ e^{cmT}·f(ε + mT).

**Smoothing.** Where M doesn't decay and there is no lattice, f, which is convex in y = e^ε, is
averaged: X = e^{w(U₁ + … + Uₙ) − κ}, U uniform on [−1, 1], κ = n·ln(sinh(w)/w), so that E X = 1,
and φ_w(ε) = E f at yX has the transform of f times (sinh(ws)/(ws))ⁿ·e^{sκ}. By Jensen φ_w ≥ f. And

    f(y) ≥ 2φ_w − φ_w′     if  e^{−κ′−nw′} + 1 ≤ 2e^{−κ−nw}  and  w′ ≥ w.

Proof: with g = 2X − 1, yX is the midpoint of y and yg, hence E f(yX) ≤ ½f(y) + ½E f(yg). With
t = e^{wΣU}, X′ − g = A·t^{w′/w} − 2B·t + 1 is convex in t and by the condition not above 0 at the
smallest t, so as t rises it changes sign once, from − to +; its mean is 0. Both X′ and g rise with
t, so by convexity E f(yX′) − E f(yg) ≥ E f′(yg)·y(X′ − g) ≥ 0, f′(yg) at the change of sign being
at most every later and at least every earlier one. The gap is of second order in w.

**Nodes left out.** Only nodes near the real axis matter. For all others |M(sₖ)| ≤ M(c)·Π|φᵣ| where
each factor is evaluated in doubles with a proven bound on its error (`PrivacyLoss.characteristic`);
factors are at most 1, so the product is cut off as soon as it is small enough. Beyond the last node
that is looked at, Π of the factors' envelopes and the power law of the kernel bound the rest. What
is left out is in the result's radius.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
from flint import acb, acb_mat, arb
from numpy.typing import NDArray

from dpverify.accounting.losses.base import Doubles, Transforms, transform
from dpverify.errors import NumericalError

__all__ = [
    "ORDER",
    "EveryNode",
    "Inversion",
    "Kernel",
    "LatticeKernel",
    "Line",
    "SmoothKernel",
    "Trapezoid",
    "invert",
    "widened",
]

ORDER = 32  # n of the smoothing
_CHUNK = 1 << 14
_BLOCK = 8  # factors between two looks at which nodes are still open
_WORK = 40  # of a node, kernels and a root search included, in factors
ONE = arb(1)
_SLACK = 1e-9  # relative, of sums of exponentials of doubles: far above their round-off


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where to integrate, for values near one ε: any numbers give proven bounds, these tight ones.

    Attributes
    ----------
    c, b : 0 < c < b < top
    period : T, or the least one where the lattice decides
    threshold : logarithm of the |M(s)·K(s)| / M(c), K the kernel, that may be left out at a node
    most_nodes : how many nodes may be looked at
    most_work : how many factors, of M and of what a value takes, may be evaluated by balls
    """

    c: float
    b: float
    period: float
    threshold: float
    most_nodes: int
    most_work: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothKernel:
    """1/(s(s + 1)) times the transform of the smoothing; `width` w is 0 where there is none."""

    width: float = 0.0

    def period(self, least: float) -> tuple[arb, int | None]:
        """T, and the number of nodes where it is finite."""
        return arb(least), None

    def value(self, s: acb) -> acb:
        """K(s)."""
        plain = 1 / (s * (s + 1))
        if not self.width:
            return plain
        scaled = s * arb(self.width)
        return plain * (scaled.sinh() / scaled) ** ORDER * (s * self._kappa()).exp()

    def log_bound(self, c: float, y: Doubles) -> Doubles:
        """Upper bound on ln |K(c + iy)|."""
        bound: Doubles = -np.log(np.hypot(c, y) * np.hypot(c + 1, y)) + _SLACK
        if self.width:
            wy = self.width * y
            size = np.sqrt(math.sinh(self.width * c) ** 2 + np.sin(wy) ** 2 + _SLACK * _SLACK)
            ratio = size / (self.width * np.hypot(c, y))
            bound += ORDER * np.log(ratio) + self._log_scale(c)
        return bound

    def log_majorant(self, c: float, y: float) -> tuple[float, int]:
        """Upper bound on ln |K(c + iy)|, and a power p so that y′^−p majorises it beyond y."""
        bound, power = -2 * math.log(y) + _SLACK, 2
        if self.width:
            bound += ORDER * math.log(math.cosh(self.width * c) / (self.width * y))
            bound, power = bound + self._log_scale(c), power + ORDER
        return bound, power

    def at_least(self, s: arb) -> arb:
        """Factor of the smoothing alone at a real point."""
        return (self.value(acb(s)) * s * (s + 1)).real

    def _kappa(self) -> arb:
        w = arb(self.width)
        return ORDER * (w.sinh() / w).log()

    def _log_scale(self, c: float) -> float:
        return float((c * self._kappa()).upper()) * (1 + _SLACK) + _SLACK


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeKernel:
    """K(z)·u for losses in base + unit·ℤ, the part that doesn't depend on ε."""

    base: arb
    unit: arb

    def period(self, least: float) -> tuple[arb, int | None]:
        """T = Nu with an odd N."""
        half = math.ceil(least / float(self.unit.mid()) / 2)
        return self.unit * (2 * half + 1), half

    def log_bound(self, c: float, y: Doubles) -> Doubles:
        """Upper bound on ln |u·K|: its numerator is z(e^u − e^θ) + e^θ − 1."""
        u = float(self.unit.mid())
        small, tiny = math.exp(-c * u), math.exp(-(c + 1) * u)
        turn = 4 * np.sin(u * y / 2) ** 2
        one = math.expm1(-c * u) ** 2 * (1 - _SLACK) + small * turn * (1 - _SLACK)
        other = math.expm1(-(c + 1) * u) ** 2 * (1 - _SLACK) + tiny * turn * (1 - _SLACK)
        # The sine's argument is below π/2 and relatively exact, so its square is.
        top = math.log(u * (1 + small) * -math.expm1(-u)) - c * u * (1 - 2.0**-50)
        found: Doubles = top - (np.log(one) + np.log(other)) / 2 + 4 * _SLACK
        return found


Kernel = SmoothKernel | LatticeKernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trapezoid(ABC):
    """One trapezoid sum, ready for every ε near the one that it was made for.

    Attributes
    ----------
    c, b, period : as in `Line`
    dropped : bound on (1/T)·Σ |M(sₖ)·K(sₖ)| over all nodes left out
    beyond : M(b), times the smoothing's factor
    most : bound on f everywhere
    """

    c: arb
    b: arb
    period: arb
    dropped: arb
    beyond: arb
    most: arb = ONE

    @abstractmethod
    def total(self, epsilon: arb) -> tuple[arb, arb]:
        """T times the sum over the nodes, and the ε that it is for: a lattice's point below."""

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε), or its average φ(ε)."""
        start, total = self.total(epsilon)
        total /= self.period
        dropped = self.dropped * (-self.c * start).exp()
        left = (-self.c * self.period).exp()
        right = (-(self.b - self.c) * self.period).exp()
        if not (left < 1 and right < 1):
            raise NumericalError(f"no contour between {self.c} and {self.b}")
        alias = self.most * left / (1 - left)
        alias += self.beyond * (-self.b * epsilon).exp() * right / (1 - right)
        return (total - alias - dropped).union(total + dropped)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inversion(Trapezoid):
    """A sum by balls.

    Attributes
    ----------
    points : sₖ for k = 0 and those k > 0 that are not left out
    weights : M(sₖ)·K(sₖ); on a lattice the two parts of it, with e^θ to come
    lattice : base and unit
    """

    points: Sequence[acb]
    weights: Sequence[Sequence[acb]]
    lattice: LatticeKernel | None

    def total(self, epsilon: arb) -> tuple[arb, arb]:
        """The terms, added up."""
        if self.lattice is None:
            return epsilon, self._sum(self.weights[0], epsilon)
        return self._line(self.lattice, epsilon)

    def _line(self, lattice: LatticeKernel, epsilon: arb) -> tuple[arb, arb]:
        """The lattice point below ε and the sum from there.

        Where ε may be a lattice point two lines meet, and δ is on the upper one.
        """
        place = (epsilon - lattice.base) / lattice.unit
        lowest = place.lower().floor().unique_fmpz()
        highest = place.upper().floor().unique_fmpz()
        if lowest is None or highest is None or highest - lowest > 1:
            raise NumericalError(f"epsilon = {epsilon} is too wide for the lattice")
        lines = []
        for j in range(int(lowest), int(highest) + 1):
            start = lattice.base + lattice.unit * j
            one, other = (self._sum(weights, start) for weights in self.weights)
            lines.append(one - (epsilon - start).exp() * other)
        return lattice.base + lattice.unit * int(lowest), reduce(arb.max, lines)

    def _sum(self, weights: Sequence[acb], epsilon: arb) -> arb:
        terms = [(w * (-s * epsilon).exp()).real for w, s in zip(weights, self.points, strict=True)]
        return 2 * sum(terms, arb(0)) - terms[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EveryNode(Trapezoid):
    """A sum by balls over all nodes up to some k.

    The turns e^{−2πikε/T} are products of two, in a table each. Repeated products, as Horner's rule
    has them, would widen a ball with every turn.

    Attributes
    ----------
    weights : M(sₖ)·K(sₖ), half of it for k = 0, where k = column + columns·row, and zeros
    """

    weights: acb_mat

    @classmethod
    def of(cls, weights: Sequence[acb], **line: arb) -> Self:
        """From a weight for each node."""
        columns = math.isqrt(len(weights) - 1) + 1
        rows = -(-len(weights) // columns)
        rest = [acb(0)] * (rows * columns - len(weights))
        table = acb_mat(rows, columns, [weights[0] / 2, *weights[1:], *rest])
        return cls(weights=table, **line)

    def total(self, epsilon: arb) -> tuple[arb, arb]:
        """By a product of matrices."""
        rows, columns = self.weights.nrows(), self.weights.ncols()
        angle = -2 * arb.pi() * epsilon / self.period
        near = acb_mat(columns, 1, [acb(0, angle * k).exp() for k in range(columns)])
        far = acb_mat(1, rows, [acb(0, angle * (k * columns)).exp() for k in range(rows)])
        return epsilon, 2 * (-self.c * epsilon).exp() * (far * (self.weights * near))[0, 0].real


def widened(width: float) -> float:
    """A w′ near 2w with which 2φ_w − φ_w′ is a lower bound; the condition is proven by balls."""

    def exponent(w: float) -> arb:
        return ORDER * (arb(w) + (arb(w).sinh() / arb(w)).log())

    factor = 2 + ORDER * width
    for _ in range(40):
        wider = width * factor
        if (-exponent(wider)).exp() + 1 <= 2 * (-exponent(width)).exp():
            return wider
        factor = 2 + 1.5 * (factor - 2)
    raise NumericalError(f"no second width next to {width}")


def invert(losses: Transforms, kernels: Sequence[Kernel], line: Line) -> list[Inversion] | None:
    """Trapezoid sums along one line at the current precision, one for each kernel.

    Returns
    -------
    One `Inversion` a kernel, all on the same nodes; None where more nodes or factors would be
    needed than the line allows.
    """
    c, b = arb(line.c), arb(line.b)
    period, last = kernels[0].period(line.period)
    step = 2 * arb.pi() / period
    h = float(step.mid())
    rest = 0.0
    if not (h > 0 and math.isfinite(line.threshold)):  # beyond doubles: no sum of nodes is
        return None
    if last is None:
        last, rest = _last_node(losses, kernels, line, h)
    if last > line.most_nodes:
        return None
    kept, dropped = _significant(losses, kernels, line, h, last)
    if kept is None:
        return None
    points = [acb(c)] + [acb(c, step * int(k)) for k in kept]
    moments = transform(losses, points)
    beyond = transform(losses, [acb(b)])[0].real
    # Both signs of k; thresholds are relative to M(c).
    bound = 2 / period * moments[0].real * arb(line.threshold).exp() * arb(dropped + rest)
    found = []
    for kernel in kernels:
        if isinstance(kernel, LatticeKernel):
            lattice, smoothing = kernel, arb(1)
            z = [(s * kernel.unit).exp() for s in points]
            up = kernel.unit.exp()
            weights = [
                [m * kernel.unit / (x - 1) for m, x in zip(moments, z, strict=True)],
                [m * kernel.unit / (x * up - 1) for m, x in zip(moments, z, strict=True)],
            ]
        else:
            lattice, smoothing = None, kernel.at_least(b)
            weights = [[m * kernel.value(s) for m, s in zip(moments, points, strict=True)]]
        found.append(
            Inversion(
                c=c,
                b=b,
                period=period,
                points=points,
                weights=weights,
                dropped=bound,
                beyond=beyond * smoothing,
                lattice=lattice,
            )
        )
    return found


def _last_node(
    losses: Transforms, kernels: Sequence[Kernel], line: Line, h: float
) -> tuple[int, float]:
    """Where envelope and majorant leave less than a thousand nodes' threshold, and what is left.

    A power law beyond node K sums to at most its value there times K/(p − 1).
    """
    last = 16
    while True:
        y = last * h
        envelope = sum(count * loss.envelope(line.c, y) for loss, count in losses)
        rest = 0.0
        for kernel in kernels:
            assert isinstance(kernel, SmoothKernel)  # noqa: S101
            bound, power = kernel.log_majorant(line.c, y)
            exponent = bound + envelope + math.log(last / (power - 1)) - line.threshold
            rest = max(rest, math.exp(min(exponent, 700.0)) * (1 + _SLACK))
        if rest <= 1000 or last > line.most_nodes:
            return last, rest
        last += last // 4


def _significant(
    losses: Transforms, kernels: Sequence[Kernel], line: Line, h: float, last: int
) -> tuple[NDArray[np.int64] | None, float]:
    """Nodes 1 … last that may matter, and the sum of the bounds of all others over the threshold.

    Falls as early as possible: the factors that dampen most, on average over the range, come first.
    """
    reach = max(last, 1)
    sample: Doubles = h * np.floor(np.linspace(1, reach, min(reach, 64)))
    strengths = [
        float(_dampening(losses[r : r + 1], line.c, sample).sum()) for r in range(len(losses))
    ]
    order = [losses[r] for r in np.argsort(strengths, kind="stable")]
    most = line.most_work // (len(losses) + _WORK)
    kept: list[NDArray[np.int64]] = []
    count, dropped = 0, 0.0
    for start in range(1, last + 1, _CHUNK):
        nodes = np.arange(start, min(start + _CHUNK, last + 1), dtype=np.int64)
        y: Doubles = nodes.astype(np.float64) * h
        size = np.max([kernel.log_bound(line.c, y) for kernel in kernels], axis=0) - line.threshold
        for first in [None, *range(0, len(order), _BLOCK)]:
            if first is not None:
                size += _dampening(tuple(order[first : first + _BLOCK]), line.c, y)
            closed = size <= 0
            if closed.any():
                dropped += float(np.exp(size[closed]).sum()) * (1 + _SLACK)
                nodes, y, size = (x[~closed] for x in (nodes, y, size))
            if not nodes.size:
                break
        kept.append(nodes)
        count += nodes.size
        if count > most:
            return None, dropped
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64), dropped


def _dampening(losses: Transforms, c: float, y: Doubles) -> Doubles:
    """Upper bound on ln |M(c + iy)/M(c)|."""
    total = np.zeros_like(y)
    for loss, count in losses:
        value, error = loss.characteristic(c, y)
        # Rounded up; a modulus near 1 loses at most the last digits.
        total += count * np.log(np.minimum(np.abs(value) + error * (1 + _SLACK) + 1e-15, 1.0))
    return total
