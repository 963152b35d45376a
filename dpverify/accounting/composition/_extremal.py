"""δ(ε) between two sums over finitely many nodes, where M doesn't decay and there is no lattice.

With E_c the mean under the law tilted by c, f(ε) = M(c)e^{−cε}·E_c g((L − ε)/h), where

    g(x) = e^{−λx} − e^{−λ′x} for x > 0, else 0,      λ = ch,      λ′ = λ + h.

Let G be a continuous function, O(x⁻²), whose Fourier transform Ĝ(ξ) = ∫ G(x)e^{−2πiξx}dx is 0 for
|ξ| ≥ 1. Poisson's summation on nodes sₖ = c + 2πik/T, T = Nh, then says for every law

    (h/T)·Σ_{|k|<N} Ĝ(k/N)·M(sₖ)e^{−sₖε} = M(c)e^{−cε}·E_c Σₘ G((L − ε + mT)/h).

So if G ≥ g the sum is at least f(ε), and if G ≤ g it is at most Σₘ e^{cmT}f(ε + mT), whose aliases
are bounded in `_inversion`. There is nothing beyond the last node, however M behaves. What follows
are functions as those of Graham and Vaaler (1981), who have them for one e^{−λx}. Their gaps are
about h²/24 and h²/12 of the tilted law's density: δ is enclosed to a relative c(c + 1)h²/8 or so.

**Interpolation.** For 0 ≤ α < 1 let S(x) = sin²π(x − α)/π², ψ(v) = ve^{−αv}/(1 − e^{−v}), p(x) =
e^{−λx}, and

    G_λ(x) = S(x)·Σ_{n≥0} (p(x′)/(x − x′)² + p′(x′)/(x − x′)),      x′ = n + α.

As 1/(x′ − x) = ∫ e^{−t(x′−x)}dt over t > 0,

    x < α:      G_λ(x) = S(x)∫₀^∞ e^{tx}ψ(λ + t)dt.                                           (1)

The same for 1/(x − x′)² over all n in ℤ gives 1/S(x) = ∫ e^{−tx}ψ(−t)dt for α − 1 < x < α, the
integral over all of ℝ. Multiplied by p(x) that is ∫ e^{−tx}ψ(λ − t)dt, of which t < 0 is (1). Hence

    x > α − 1:  G_λ(x) − p(x) = −S(x)∫₀^∞ e^{−tx}ψ(λ − t)dt,                                  (2)

at first for x < α, and, since both sides are analytic, for all x > α − 1.

**Above.** G = G_λ − G_λ′ with e^{αh} = Θ(λ′)/Θ(λ), Θ(v) = v/(1 − e^{−v}), so that ψ(λ) = ψ(λ′). As
(ln Θ)′ is in (0, 1), so is α. As (ln ψ)″ = −v⁻² + (2 sinh(v/2))⁻² < 0, ψ(v + h)/ψ(v) falls in v; it
is 1 at λ. So by (1) G ≥ 0 for x ≤ 0, and by (2) G ≥ e^{−λx} − e^{−λ′x} = g for x ≥ 0.

**Below.** α = 0, thus ψ = Θ, and G = G_λ − G_λ′ − η·S(x)/x with η = Θ(λ′) − Θ(λ). Here −1/x is
∫₀^∞ e^{tx}dt for x < 0, and 1/x is ∫₀^∞ e^{−tx}dt for x > 0. As Θ is convex, Θ(v + h) − Θ(v) rises
in v; it is η at λ. So by (1) G ≤ 0 for x < 0, and by (2) G ≤ g for x > 0; at 0 both are 0.

**Transforms.** That of sin²πx/(πx)² is (1 − |ξ|)₊, and that of x times it sgn(ξ)/2πi on (−1, 1). So
for 0 < ξ < 1 Ĝ(ξ) = (1 − ξ)A + B/2πi with A, B = Σ G(x′)e^{−2πiξx′}, Σ G′(x′)e^{−2πiξx′}: geometric
series. B is 0 at 0 and 1, both above and below: Ĝ is continuous, G O(x⁻²). With E = e^λ − 1,
w = 1 − e^{−2πiξ}, r = 1/(1 + w/E), the same of λ′, V = Θ(λ)/E, A and B are e^{−2πiξα}·r·r′ times

    above:  ψ(λ)·(1/λ − 1/λ′ + w·(1/λE′ − 1/λ′E)),      ψ(λ)·w·(1/E − 1/E′),
    below:  (1/E − 1/E′)·(1 − w),                       w·(V − V′ + w·(Θ(λ) − Θ(λ′))/EE′).

**Round-off**, u = 2⁻⁵³. w is off by 16u relative. Re w is |w|²/2 ≥ 0, so |1 + w/E|² is
1 + |w|²(1/E + 1/E²), and r is off by 32u. A sum of products above is off by 64u of that of their
moduli, e^{−2πiξα} by 36u; all of h·Ĝ by less than 256u of what it is with moduli throughout.

The sum of `_inversion` over all nodes is added up in the same way, by doubles, where M is a sum of
many terms and doubles are sharp enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from dpverify.accounting.composition._inversion import (
    Line,
    PlainKernel,
    Trapezoid,
    by_dampening,
    last_node,
)
from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    EvenHeights,
    Transforms,
    power,
    transform,
)

__all__ = ["ExtremalKernel", "NodesInDoubles", "sum_in_doubles", "sums_around"]

_MOST_VALUES = 1 << 22  # factors at all nodes that are not left out
_CHUNK, _BLOCK = 1 << 13, 4  # nodes in a row, and factors between two looks at which matter
_SPARSE = 0.8  # share that doesn't matter, from which on the rest is no longer even
_U = 2.0**-53
_TINY = 1e-300  # more than what underflows
_SLACK = 1e-8  # relative, of the kernel's size in doubles where E is above 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExtremalKernel:
    """h·Ĝ at the nodes: a number, times e^{−2πiξα}·r·r′, times a line in w for A and one for B."""

    nodes: int
    unit: float
    scale: float
    place: float
    ends: tuple[float, float]
    values: tuple[float, float]
    slopes: tuple[float, float]

    @classmethod
    def above(cls, c: float, period: float, nodes: int) -> Self:
        """G ≥ g, at the current precision."""
        h, (u, v), (e, f), (t, s) = _parts(c, period, nodes)
        place = (s / t).log() / h
        return cls(
            nodes=nodes,
            unit=float(h),
            scale=float(h * t * (-place * u).exp()),
            place=float(place),
            ends=(float(e), float(f)),
            values=(float(1 / u - 1 / v), float(1 / (u * f) - 1 / (v * e))),
            slopes=(float(1 / e - 1 / f), 0.0),
        )

    @classmethod
    def below(cls, c: float, period: float, nodes: int) -> Self:
        """G ≤ g, at the current precision."""
        h, _, (e, f), (t, s) = _parts(c, period, nodes)
        value = float(1 / e - 1 / f)
        return cls(
            nodes=nodes,
            unit=float(h),
            scale=float(h),
            place=0.0,
            ends=(float(e), float(f)),
            values=(value, -value),
            slopes=(float(t / e - s / f), float((t - s) / (e * f))),
        )

    @property
    def is_finite(self) -> bool:
        """Whether no number of it is beyond doubles."""
        numbers = (self.unit, self.scale, self.place, *self.ends, *self.values, *self.slopes)
        return all(map(math.isfinite, numbers)) and min(self.ends) > 0

    def at(self, nodes: NDArray[np.int64]) -> Characteristic:
        """At nodes 0 ≤ k < N in doubles, and bounds on the moduli of their errors."""
        share = nodes / self.nodes
        late = 2 * nodes > self.nodes
        angle = 2 * np.pi * np.where(late, self.nodes - nodes, nodes) / self.nodes
        w = 2 * np.sin(angle / 2) ** 2 + 1j * np.where(late, -1.0, 1.0) * np.sin(angle)
        rates = (1 + w / self.ends[0]) * (1 + w / self.ends[1])
        turn = np.exp(-2j * np.pi * (share * self.place))
        (a, b), (d, e) = self.values, self.slopes
        value = (1 - share) * (a + b * w) + w * (d + e * w) / 2j / np.pi
        found: NDArray[np.complex128] = self.scale * turn * value / rates
        return found, 256 * _U * self._size(np.abs(w)) + _TINY

    def log_bound(self, c: float, y: Doubles) -> Doubles:
        """Upper bound on ln |h·Ĝ| at heights y."""
        del c  # it is the line's
        size = self._size(2 * np.abs(np.sin(self.unit * y / 2)))
        found: Doubles = np.log(np.maximum(size, _TINY)) + _SLACK
        return found

    def _size(self, w: Doubles) -> Doubles:
        """The sum of the moduli, from |w|."""
        (a, b), (d, e) = ((abs(x), abs(y)) for x, y in (self.values, self.slopes))
        first, second = (1 + w * w * (1 / end + 1 / end / end) for end in self.ends)
        found: Doubles = a + b * w + w * (d + e * w) / (2 * math.pi)
        return self.scale * found / np.sqrt(first * second)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodesInDoubles(Trapezoid):
    """A sum by doubles.

    Attributes
    ----------
    moment : M(c)
    step : between the heights of nodes
    weights : M(sₖ)/M(c) times the kernel, half of it for k = 0, where k = column + columns·row, and
        zeros
    off : bound on the sum of their errors' moduli
    size, high : sums of the weights' moduli, and of these times their heights
    """

    moment: arb
    step: float
    weights: NDArray[np.complex128]
    off: float
    size: float
    high: float

    def total(self, epsilon: arb) -> tuple[arb, arb]:
        """The terms, added up: an angle is off by 8u relative, and the sum by 128u of the moduli.

        Its turns are products of two, and numpy adds up to 2¹⁰ numbers in a row by pairs.
        """
        eps = float(epsilon.mid())
        rows, columns = self.weights.shape
        near = np.exp(-1j * (eps * self.step) * np.arange(columns))
        far = np.exp(-1j * (eps * self.step) * (columns * np.arange(rows)))
        found = np.sum((self.weights * near).sum(axis=1) * far).real
        off = self.off + 8 * _U * abs(eps) * self.high + 128 * _U * self.size
        ball = arb(float(found), 1.01 * off) + arb(0, epsilon.rad() * 1.01 * self.high)
        return epsilon, 2 * self.moment * (-self.c * epsilon).exp() * ball


def sums_around(losses: Transforms, line: Line, nodes: int) -> tuple[NodesInDoubles, ...] | None:
    """A sum that is above f, and one below it, at the current precision.

    Parameters
    ----------
    nodes : N of the line's period

    Returns
    -------
    None where more nodes matter than are looked at, or doubles know too little: of kernels beyond
    them, or of so many factors that all of a sum is round-off.
    """
    kernels = [make(line.c, line.period, nodes) for make in _KERNELS]
    if not all(kernel.is_finite for kernel in kernels):
        return None
    return _in_doubles(losses, line, kernels, nodes, 0.0)


def sum_in_doubles(losses: Transforms, line: Line) -> NodesInDoubles | None:
    """The trapezoid sum of `_inversion` in doubles, at the current precision.

    Returns
    -------
    None where there are more nodes than are looked at, as for `sums_around`.
    """
    step = 2 * math.pi / line.period
    if not line.is_finite or not step > 0:
        return None
    last, rest = last_node(losses, line, step)
    if last > line.most_nodes or last * len(losses) > _MOST_VALUES:
        return None
    found = _in_doubles(losses, line, [_Plain(c=line.c, step=step)], last + 1, rest)
    return None if found is None else found[0]


def _in_doubles(
    losses: Transforms, line: Line, kernels: Sequence[_Kernel], nodes: int, rest: float
) -> tuple[NodesInDoubles, ...] | None:
    """A sum for each kernel, where `rest` is what all later nodes make over the threshold."""
    if sum(count for _, count in losses) * 8 * _U > 1:
        return None
    period, step = arb(line.period), 2 * math.pi / line.period
    order = by_dampening(losses, line.c, step, nodes - 1)
    parts, count = [], 0
    for first in range(0, nodes, _CHUNK):
        part = _Part.of(order, kernels, line, first, min(_CHUNK, nodes - first), step)
        parts.append(part)
        count += len(part.nodes)
        if count * len(losses) > _MOST_VALUES:
            return None
    kept, values, errors = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("nodes", "values", "errors")
    )
    moment, beyond = (transform(losses, [acb(at)])[0].real for at in (line.c, line.b))
    dropped = arb(sum(part.dropped for part in parts) + rest) * arb(line.threshold).exp()
    found = []
    for kernel in kernels:
        factors, off = kernel.at(kept)
        weights = values * factors
        wrong = np.abs(values) * off + (np.abs(factors) + off) * errors + 8 * _U * np.abs(weights)
        weights[kept == 0] /= 2
        sizes = np.abs(weights)
        found.append(
            NodesInDoubles(
                c=arb(line.c),
                b=arb(line.b),
                period=period,
                dropped=2 / period * moment * dropped,
                beyond=beyond,
                moment=moment,
                step=step,
                weights=_table(kept, weights),
                off=float(wrong.sum()) * 1.01,
                size=float(sizes.sum()),
                high=float((sizes * kept).sum()) * step,
            )
        )
    return tuple(found)


def _table(nodes: NDArray[np.int64], weights: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """The weights in rows, and zeros for all other nodes."""
    columns = math.isqrt(int(nodes.max(initial=0))) + 1
    table = np.zeros((int(nodes.max(initial=0)) // columns + 1) * columns, dtype=np.complex128)
    table[nodes] = weights
    return table.reshape(-1, columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Some nodes in a row, of which those are left that matter.

    Attributes
    ----------
    nodes : k of each
    values, errors : M(sₖ)/M(c), and bounds on their errors' moduli
    dropped : the sum of the bounds of all others over the threshold
    """

    nodes: NDArray[np.int64]
    values: NDArray[np.complex128]
    errors: Doubles
    dropped: float

    @classmethod
    def of(
        cls,
        losses: Transforms,
        kernels: Sequence[_Kernel],
        line: Line,
        first: int,
        count: int,
        step: float,
    ) -> Self:
        """With each factor's modulus and its error e at most B, ΠB·Σ n(e/B + 8u) is the error."""
        even = EvenHeights(first, count, step)
        heights: EvenHeights | None = even
        y, nodes = even.y, np.arange(first, first + count)
        limit = np.max([kernel.log_bound(line.c, y) for kernel in kernels], axis=0) - line.threshold
        values = np.ones(count, dtype=np.complex128)
        logs, errors = np.zeros(count), np.zeros(count)
        dropped = 0.0
        for number, (loss, times) in enumerate(losses, start=1):
            factor, error = (
                loss.characteristic_along(line.c, heights)
                if heights
                else loss.characteristic(line.c, y)
            )
            bound = np.abs(factor) * (1 + 4 * _U) + error
            values *= power(factor, times)
            logs += times * (np.log(bound) + 8 * _U)
            errors += times * (error / bound + 8 * _U)
            if number % _BLOCK and number < len(losses):
                continue
            closed = limit + logs <= 0
            share = np.count_nonzero(closed) / max(len(nodes), 1)
            if share > _SPARSE or (share and (not heights or number == len(losses))):
                dropped += float(np.exp((limit + logs)[closed]).sum()) * (1 + _SLACK)
                heights = None
                nodes, y, limit, values, logs, errors = (
                    x[~closed] for x in (nodes, y, limit, values, logs, errors)
                )
        off = np.exp(logs) * errors * (1 + ROUND_OFF * (1 + np.abs(logs)))
        return cls(nodes=nodes, values=values, errors=off, dropped=dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain:
    """1/(s(s + 1)), by doubles."""

    c: float
    step: float

    def at(self, nodes: NDArray[np.int64]) -> Characteristic:
        """At nodes k ≥ 0, and bounds on the moduli of their errors."""
        s = self.c + 1j * (nodes * self.step)
        found = (1 / (s * (s + 1))).astype(np.complex128, copy=False)
        return found, ROUND_OFF * np.abs(found)

    def log_bound(self, c: float, y: Doubles) -> Doubles:
        """Upper bound on its logarithm at heights y."""
        return PlainKernel().log_bound(c, y)


_Kernel = ExtremalKernel | _Plain
_KERNELS = (ExtremalKernel.above, ExtremalKernel.below)


def _parts(
    c: float, period: float, nodes: int
) -> tuple[arb, tuple[arb, arb], tuple[arb, arb], tuple[arb, arb]]:
    """h, λ and λ′, their E and their Θ."""
    h = arb(period) / nodes
    rates = arb(c) * h, arb(c) * h + h
    ends = rates[0].expm1(), rates[1].expm1()
    return h, rates, ends, (rates[0] / -(-rates[0]).expm1(), rates[1] / -(-rates[1]).expm1())
