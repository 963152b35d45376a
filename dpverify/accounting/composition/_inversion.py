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

**Nodes left out.** Only nodes near the real axis matter. For all others |M(sₖ)| ≤ M(c)·Π|φᵣ| where
each factor is evaluated in doubles with a proven bound on its error (`PrivacyLoss.characteristic`);
factors are at most 1, so the product is cut off as soon as it is small enough. Beyond the last node
that is looked at, Π of the factors' envelopes and the power law of the kernel bound the rest. What
is left out is in the result's radius. Where M doesn't decay there is `_extremal`.
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

from dpverify.accounting.losses.base import (
    Doubles,
    EvenHeights,
    Transforms,
    transform,
    transform_along,
)
from dpverify.accounting.losses.nodes import Nodes
from dpverify.errors import NumericalError

__all__ = [
    "WORK",
    "Inversion",
    "Kernel",
    "LatticeKernel",
    "Line",
    "PlainKernel",
    "Trapezoid",
    "by_dampening",
    "invert",
    "last_node",
]

_CHUNK = 1 << 14
_BLOCK = 8  # factors between two looks at which nodes are still open
WORK = 40  # of a node, kernels and a root search included, in factors
_REST = 1000.0  # thresholds, that may lie beyond all nodes
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

    @property
    def is_finite(self) -> bool:
        """Whether it isn't beyond doubles; no sum of nodes is."""
        return math.isfinite(self.period) and math.isfinite(self.threshold)


@dataclass(frozen=True, slots=True)
class PlainKernel:
    """1/(s(s + 1))."""

    def period(self, least: float) -> tuple[arb, int | None]:
        """T, and the number of nodes where it is finite."""
        return arb(least), None

    def log_bound(self, c: float, y: Doubles) -> Doubles:
        """Upper bound on ln |K(c + iy)|."""
        bound: Doubles = -np.log(np.hypot(c, y) * np.hypot(c + 1, y)) + _SLACK
        return bound


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


Kernel = PlainKernel | LatticeKernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trapezoid(ABC):
    """One trapezoid sum, ready for every ε near the one that it was made for.

    Attributes
    ----------
    c, b, period : as in `Line`
    dropped : bound on (1/T)·Σ |M(sₖ)·K(sₖ)| over all nodes left out
    beyond : M(b)
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
        """Encloses f(ε)."""
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
    nodes : sₖ for k = 0 and those k > 0 that are not left out
    weights : M(sₖ)·K(sₖ), half of it for k = 0; on a lattice two parts of it, with e^θ to come
    lattice : base and unit
    """

    nodes: Nodes
    weights: Sequence[acb_mat]
    lattice: LatticeKernel | None = None

    @classmethod
    def of(
        cls,
        nodes: Nodes,
        weights: Sequence[Sequence[acb]],
        lattice: LatticeKernel | None = None,
        **line: arb,
    ) -> Self:
        """From a weight for each node, or two."""
        tables = [nodes.table([first / 2, *rest]) for first, *rest in weights]
        return cls(c=nodes.c, nodes=nodes, weights=tables, lattice=lattice, **line)

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

    def _sum(self, weights: acb_mat, epsilon: arb) -> arb:
        return 2 * (-self.c * epsilon).exp() * self.nodes.total(weights, -epsilon).real


def invert(losses: Transforms, kernel: Kernel, line: Line) -> Inversion | None:
    """A trapezoid sum at the current precision; None where it takes more than the line allows."""
    c, b = arb(line.c), arb(line.b)
    period, last = kernel.period(line.period)
    step = 2 * arb.pi() / period
    h = float(step.mid())
    rest = 0.0
    if not line.is_finite or not h > 0:
        return None
    if last is None:
        last, rest = last_node(losses, line, h)
    if last > line.most_nodes:
        return None
    most = line.most_work // (len(losses) + WORK)
    kept, dropped = _significant(losses, kernel, line, h, last, most)
    if kept is None:
        return None
    nodes = Nodes.of(c, step, [0, *kept.tolist()])
    points, moments = nodes.points, transform_along(losses, nodes)
    lattice = kernel if isinstance(kernel, LatticeKernel) else None
    if lattice:
        up = lattice.unit.exp()
        z = [(s * lattice.unit).exp() for s in points]
        weights = [
            [m * lattice.unit / (x - 1) for m, x in zip(moments, z, strict=True)],
            [m * lattice.unit / (x * up - 1) for m, x in zip(moments, z, strict=True)],
        ]
    else:
        weights = [[m / (s * (s + 1)) for m, s in zip(moments, points, strict=True)]]
    return Inversion.of(
        nodes,
        weights,
        lattice,
        b=b,
        period=period,
        # Both signs of k; thresholds are relative to M(c).
        dropped=2 / period * moments[0].real * arb(line.threshold).exp() * arb(dropped + rest),
        beyond=transform(losses, [acb(b)])[0].real,
    )


def last_node(losses: Transforms, line: Line, h: float) -> tuple[int, float]:
    """Where the envelope leaves little, and how many thresholds that is.

    From node K on the kernel is less than 1/y², of which the sum is less than K times that at K.
    """

    def beyond(last: int) -> float:
        y = last * h
        envelope = sum(count * loss.envelope(line.c, y) for loss, count in losses)
        exponent = envelope - 2 * math.log(y) + math.log(last) - line.threshold + _SLACK
        return math.exp(min(exponent, 700.0)) * (1 + _SLACK)

    last, most = 16, line.most_nodes + 1
    if not beyond(most) <= _REST:  # no earlier node will do
        return most, 0.0
    while not (rest := beyond(last)) <= _REST:
        last += last // 4
    return last, rest


def _significant(
    losses: Transforms, kernel: Kernel, line: Line, h: float, last: int, most: int
) -> tuple[NDArray[np.int64] | None, float]:
    """Nodes 1 … last that may matter, and the sum of the bounds of all others over the threshold.

    No nodes where more than `most` may.
    """
    order = by_dampening(losses, line.c, h, last)
    kept: list[NDArray[np.int64]] = []
    count, dropped = 0, 0.0
    for start in range(1, last + 1, _CHUNK):
        nodes = np.arange(start, min(start + _CHUNK, last + 1), dtype=np.int64)
        y: Doubles = nodes.astype(np.float64) * h
        size = kernel.log_bound(line.c, y) - line.threshold
        for first in [None, *range(0, len(order), _BLOCK)]:
            if first is not None:
                size += _dampening(order[first : first + _BLOCK], line.c, nodes, h)
            closed = size <= 0
            if closed.any():
                dropped += float(np.exp(size[closed]).sum()) * (1 + _SLACK)
                nodes, size = nodes[~closed], size[~closed]
            if not nodes.size:
                break
        kept.append(nodes)
        count += nodes.size
        if count > most:
            return None, dropped
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64), dropped


def by_dampening(losses: Transforms, c: float, step: float, last: int) -> Transforms:
    """Those first that dampen most, on average over a range of nodes, so that these fall early."""
    reach = max(last, 1)
    sample = np.linspace(1, reach, min(reach, 64)).astype(np.int64)
    strengths = [float(_dampening((pair,), c, sample, step).sum()) for pair in losses]
    return tuple(losses[r] for r in np.argsort(strengths, kind="stable"))


def _dampening(losses: Transforms, c: float, nodes: NDArray[np.int64], step: float) -> Doubles:
    """Upper bound on ln |M(c + iy)/M(c)| at some nodes, in rising order."""
    even = EvenHeights(int(nodes[0]), nodes.size, step)
    is_even = int(nodes[-1]) - int(nodes[0]) == nodes.size - 1
    total = np.zeros(nodes.size)
    for loss, count in losses:
        value, error = (
            loss.characteristic_along(c, even)
            if is_even
            else loss.characteristic(c, nodes.astype(np.float64) * step)
        )
        # Rounded up; a modulus near 1 loses at most the last digits.
        total += count * np.log(np.minimum(np.abs(value) + error * (1 + _SLACK) + 1e-15, 1.0))
    return total
