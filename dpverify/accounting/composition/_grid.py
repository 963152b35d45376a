"""δ(ε) of losses that are known by their tails: laws on a lattice on either side, multiplied.

`Cells` gives two laws on a lattice for each loss, one that dominates it and one that it dominates,
and so do their products. The product of tilted laws w·e^{cx} on a lattice of N points is what the
fast Fourier transform computes of them, folded to N points; with the tilt it is precise where δ is
tiny. With G the folded law over its scale e^k, and unfolded places x ≥ s for ε in [s − h, s),

    e^{cε − k}·f(ε) = Σ_x g(x)·K(x − ε),      K(z) = e^{−cz}·(1 − e^{−z})₊ ≤ e^{−cz},

and the sum S over the N folded places from s on has all of it but what lies beyond, which is at
most e^{−cz}·ΣG for the last z. S has too much of what f is a period and more away: at most
Σ_{m≠0} e^{cmT}·f(ε + mT), as in `_inversion`, bounded by f ≤ 1 on the left, Chernoff on the right.
A loss of very many atoms has such laws by `ManyAtoms`; a single loss needs no lattice:
`curves._by_tails`.

With m a loss's P[L = ∞], and e what its law above has at infinity besides, what escapes is at least
1 − Π(1 − m)ⁿ, and at most Π(the laws' totals)·(1 − Π(1 − m)ⁿ + Σne).

**Round-off**, u = 2⁻⁵³. A tilted weight errs by at most u·(4 + 4|cx| + 4|ln w| + 4|k|) relative, a
law's largest, which multiplies δ by its power. A transform of N = 2ⁿ points errs by at most 8nu
times its vector's 2-norm, in that norm: a butterfly is a rotation, which errs by (√5 + 1)u for
twiddle factors that are right to u, and a sum, an orthogonal map but for its scale (Higham 2002,
theorem 24.2). The largest weight of a law stays out of it, being the constant at place 0. Powers by
squaring err by 4u a factor, relative. So the error at a node is at most ΠB·Σ n(e/B + 4u) where
each factor's modulus and its error e are at most B together. Sums are pairwise, which errs by
less than 40u of the sum of moduli.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb, ctx

from dpverify.accounting.composition._cells import Cells, Law
from dpverify.accounting.composition._many_atoms import ManyAtoms
from dpverify.accounting.composition._root import root
from dpverify.accounting.composition._saddle import Transform
from dpverify.accounting.curves._by_tails import delta_by_tails, epsilon_by_tails
from dpverify.accounting.losses.base import (
    Doubles,
    Losses,
    TailedLoss,
    escaping,
    most_lost,
    power,
    sum_string,
)
from dpverify.accounting.losses.shuffled import ShuffledLoss
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError, require

__all__ = ["GridDirection", "by_the_largest", "require_few"]

_PRECISION = 128
_COARSE, _FINE = (
    (1 << 10, 16),
    (1 << 13, 20),
)  # cells of all losses together, and binary digits of N
_LEAST_CELLS = 1 << 8  # of each
_FINEST = 2.0**-40  # unit, of the largest loss
_ROUNDS = 6
_EFFORT = 34.0  # −ln of the share that aliases, and what is left out, may make
_FAR = 50.0  # −ln of what the kernel is cut off at
_TAIL = 25.0  # −ln of the share that is put at infinity
_LOG_DELTA, _LEAST = -50.0, 1e-300  # of f, as long as nothing is known
_BELOW = 0.0, *(2.0**-step for step in (42, 31, 24, 18, 12))  # the largest loss, of it
_NARROW = 1e-9  # relative width, next to the largest loss, from which on no lattice is tried
_WIDE = 1e-3  # relative width, from which on a lattice is tried next to its end
_SLACK = 2.0**-44
_U = 2.0**-53
_LARGEST = 700.0  # logarithm of a double, and more
_MOST = 10**12  # releases


def require_few(counts: Sequence[int]) -> None:
    """Refuse more releases on samples than are added up."""
    require(sum(counts) <= _MOST, "times", sum(counts), f"at most {_MOST} in all on samples")


def by_the_largest(losses: Losses, goal: arb) -> float:
    """A lower bound of ε from the mass p of losses of no less than an x each, n of them.

    There f(ε) ≥ p·(1 − e^{ε − nx}); 0 where nothing is known of a loss.
    """
    known = [(mass, most) for mass, most in _next_to_the_largest(losses) if mass > goal]
    ends = [most + (-goal / mass).log1p() for mass, most in known]
    return max([0.0, *(Enclosure.of_ball(end).lower for end in ends)])


def _next_to_the_largest(losses: Losses) -> Iterator[tuple[arb, arb]]:
    """Bounds on p, and nx, of the largest losses, and where these have no mass below them."""
    largest = [loss.max_loss() for loss, _ in losses]
    for share in _BELOW:
        mass, most = arb(1), arb(0)
        for (loss, count), end in zip(losses, largest, strict=True):
            if end is None or not isinstance(loss, TailedLoss):
                return
            place = (end * (1 - arb(share))).lower()
            own = loss.tails(place)[0] - to_arb(loss.infinity_mass)
            mass, most = mass * own.lower().max(arb(0)) ** count, most + count * place
        yield mass.lower(), most.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class GridDirection:
    """δ and its inverse for the pair in one order, between two products on a lattice."""

    losses: Losses

    def is_below(self, eps: Fraction, delta: Fraction) -> bool:
        """Whether δ(ε) is at most `delta` by a coarse bound, which may fail to show it."""
        with ctx.workprec(_PRECISION):
            escapes = to_arb(escaping(self.losses))
            if self._beyond(eps):
                return bool(escapes <= to_arb(delta))
            return bool(self._coarse(eps).value(to_arb(eps)) + escapes <= to_arb(delta))

    def delta_at(self, eps: Fraction) -> Enclosure:
        """Encloses δ(ε)."""
        least = escaping(self.losses)
        if self._beyond(eps):
            return Enclosure.of_exact(least)
        if self._single is not None:
            return delta_by_tails(self._single, eps)
        with ctx.workprec(_PRECISION):
            size = self._coarse(eps).value(to_arb(eps)).upper().max(arb(_LEAST)).log()
            grid = _Grid.near(self.losses, float(size), _FINE, eps=float(eps))
            value = grid.value(to_arb(eps))
            for mass, most in _next_to_the_largest(self.losses):
                value = value.max(-mass * (to_arb(eps) - most).expm1())
            found = Enclosure.of_ball(value + to_arb(least))
        return Enclosure(max(found.lower, Enclosure.of_exact(least).lower), min(found.upper, 1.0))

    def epsilon_at(self, delta: Fraction) -> Enclosure:
        """Encloses ε(δ)."""
        if self._single is not None:
            return epsilon_by_tails(self._single, delta)
        target = delta - escaping(self.losses)
        with ctx.workprec(_PRECISION):
            ceiling = most_lost(self.losses)
            if target < 0 or (target == 0 and ceiling is None):
                return Enclosure(math.inf, math.inf)
            end = None if ceiling is None else Enclosure.of_ball(ceiling)
            if target == 0 and end is not None:
                return Enclosure(max(end.lower, 0.0), max(end.upper, 0.0))
            most, goal = math.inf if end is None else end.upper, to_arb(target)
            least = by_the_largest(self.losses, goal)
            if most <= least * (1 + _NARROW):
                return Enclosure(least, most)
            ends: Enclosure | None = None
            for effort in (_COARSE, _FINE, _FINE):  # again where the first guess was far off
                near = None if ends is None else ends.upper
                grid = _Grid.near(self.losses, float(goal.log()), effort, eps=near)
                if ends is None and grid.value(arb(0)) <= goal:
                    return Enclosure(0.0, 0.0)
                better = root(grid.value, near or grid.eps, 1 / grid.c, goal, most, is_exact=False)
                ends = better or ends
                if effort is _FINE and ends is not None and ends.width <= _WIDE:
                    break
            if ends is None and end is not None:
                return Enclosure(max(least, self._below_the_end(goal, end.lower)), most)
        if ends is None:
            raise NumericalError(f"no certified epsilon for delta={delta} near {grid.eps!r}")
        return Enclosure(max(least, ends.lower), ends.upper)

    def _below_the_end(self, goal: arb, end: float) -> float:
        """A proven lower bound of ε next to the largest loss, where a lattice resolves nothing."""
        for eps in (end * (1 - 2.0**-step) for step in range(24, 0, -2)):
            if _Grid.near(self.losses, _LOG_DELTA, _COARSE, eps=eps).value(arb(eps)) >= goal:
                return eps
        return 0.0

    def mean_and_deviation(self) -> tuple[float, float]:
        """Of the sum, in doubles, of its laws in a few cells."""
        mean = variance = 0.0
        with ctx.workprec(_PRECISION):
            for loss, count in self.losses:
                assert isinstance(loss, TailedLoss)  # noqa: S101
                cells = _cells(loss, _LOG_DELTA)
                cells.refine(0.0, _COARSE[0], 0.0)
                here, spread = cells.mean_and_variance()
                mean, variance = mean + count * here, variance + count * spread
        return mean, math.sqrt(variance)

    @property
    def _single(self) -> TailedLoss | None:
        ((loss, count), *others) = self.losses
        return loss if isinstance(loss, TailedLoss) and count == 1 and not others else None

    def _beyond(self, eps: Fraction) -> bool:
        with ctx.workprec(_PRECISION):
            ceiling = most_lost(self.losses)
            return ceiling is not None and bool(to_arb(eps) >= ceiling)

    def _coarse(self, eps: Fraction) -> _Grid:
        return _Grid.near(self.losses, _LOG_DELTA, _COARSE, eps=float(eps))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Product:
    """A folded law G, and what is known of it.

    Attributes
    ----------
    folded : G
    scale : k, and the place of G's first point in units
    total : bound on its sum
    off : what a point errs by at most, and the 2-norm of all errors
    relative : what all weights err by, relative
    """

    folded: Doubles
    scale: float
    first: int
    total: float
    off: tuple[float, float]
    relative: float


class _Kernel(NamedTuple):
    """Values of a positive function, their sum and their 2-norm."""

    values: Doubles
    sum: float
    norm: float

    @classmethod
    def of(cls, values: Doubles) -> _Kernel:
        return cls(values, float(values.sum()), float(np.linalg.norm(values)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Grid:
    """f(ε) for every ε near the one that it was made for."""

    eps: float
    c: float
    unit: float
    high: _Product
    low: _Product
    kernels: tuple[_Kernel, _Kernel]  # K and e^{−(c + 1)x} at the first places
    alias: tuple[arb, float, float]  # f on the left; b and its exponent's logarithm on the right
    beyond: arb  # bound on what escapes in the law above and not in the losses

    @classmethod
    def near(
        cls, losses: Losses, log_size: float, effort: tuple[int, int], *, eps: float | None = None
    ) -> _Grid:
        """For f of about e^log_size, at an ε where that is known."""
        most, bits = effort
        nodes = 1 << bits
        counts = [count for _, count in losses]
        require_few(counts)
        tail = log_size - _TAIL - math.log(sum(counts))
        cells = [_cells(loss, tail) for loss, _ in losses if isinstance(loss, TailedLoss)]
        if len(cells) < len(losses):
            raise NumericalError(
                f"the law of one of {sum_string(losses)} is known by moments alone"
            )
        reach = max(each.reach for each in cells)
        c, unit, place = 1.0, 0.0, eps or 0.0
        share = max(most // len(cells), _LEAST_CELLS)
        transform = Transform(
            log=lambda at: sum(
                (n * each.log_moment(at) for each, n in zip(cells, counts, strict=True)),
                np.zeros_like(at),
            ),
            top=math.inf,
        )
        for number in range(_ROUNDS):
            for each in cells:
                each.refine(c, min(_LEAST_CELLS << number, share), unit)
            before = c
            if eps is None:
                c = transform.saddle(lambda at, m: (m - np.log(at) - np.log1p(at) - log_size) / at)
                moment = float(transform.log(np.array([c]))[0])
                place = max((moment - math.log(c) - math.log1p(c) - log_size) / c, 0.0)
            else:
                c = transform.saddle(lambda at, m: m - at * (eps or 0) - np.log(at) - np.log1p(at))
            line = transform.plan(c, place, log_size, _EFFORT)
            unit = max(2.0 ** math.ceil(math.log2(line.period / nodes)), reach * _FINEST)
            if abs(c / before - 1) < 0.02:
                break
        for each in cells:
            each.refine(c, share, unit)
        above, below = [each.above(unit) for each in cells], [each.below(unit, c) for each in cells]
        b = arb(line.b)
        moments = sum(
            n * float(law.log_moment(np.array([line.b]), unit)[0])
            for law, n in zip(below, counts, strict=True)
        )
        period = arb(unit * nodes)
        left, right = (-arb(c) * period).exp(), (-(b - c) * period).exp()
        if not (left < 1 and right < 1):
            raise NumericalError(f"no contour between {c} and {line.b}")
        log_right = moments + float((right / (1 - right)).log()) if right > 0 else -math.inf
        x = np.arange(min(nodes - 2, math.ceil(_FAR / (c * unit)))) * unit
        return cls(
            kernels=(
                _Kernel.of(np.exp(-c * x) * -np.expm1(-x)),
                _Kernel.of(np.exp(-(c + 1) * x)),
            ),
            eps=place,
            c=c,
            unit=unit,
            high=_product(above, counts, c, unit, bits),
            low=_product(below, counts, c, unit, bits),
            beyond=_beyond(losses, above),
            alias=(left / (1 - left), line.b, log_right + 1e-6 * (1 + abs(moments))),
        )

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε), and what escapes in the law above alone."""
        ends = Enclosure.of_ball(epsilon)
        high, low = self._part(self.high, ends.lower), self._part(self.low, ends.upper)
        left, b, log_right = self.alias
        alias = left + (arb(log_right) - arb(b) * ends.upper).exp()
        lower, upper = (low[0] - alias).max(arb(0)), high[1] + self.beyond
        if lower > upper:
            raise NumericalError(f"the bounds on the lattice cross: {lower} and {upper}")
        return lower.union(upper)

    def _part(self, law: _Product, eps: float) -> tuple[arb, arb]:
        """S·e^{k − cε} less and more its errors, and what lies beyond the sum.

        At places z₀ + x the kernel is e^{−cz₀}·(K(x) + (1 − e^{−z₀})·e^{−(c + 1)x}).
        """
        start = math.floor(Fraction(eps) / Fraction(self.unit)) + 1
        nearest = float(start * Fraction(self.unit) - Fraction(eps))  # exact, for both are doubles
        (main, rest), share = self.kernels, -math.expm1(-nearest)
        count, offset = len(main.values), (start - law.first) % len(law.folded)
        values = law.folded[offset : offset + count]
        if len(values) < count:
            values = np.concatenate([values, law.folded[: count - len(values)]])
        total = float(np.sum(values * main.values) + share * np.sum(values * rest.values))
        summed, norm = main.sum + share * rest.sum, main.norm + share * rest.norm
        off = min(law.off[0] * summed, law.off[1] * norm)
        off = (off + _SLACK * (abs(total) + 2 * law.off[0] * summed)) * (1 + 1e-9)
        beyond = math.exp(-self.c * self.unit * (count - 1)) * law.total * (1 + 1e-9)
        factor = (arb(law.scale) - arb(self.c) * (arb(eps) + arb(nearest))).exp()
        wide = arb(law.relative)
        lower = factor * (arb(total) - arb(off)) * (-wide).exp()
        upper = factor * (arb(total) + arb(off) + arb(beyond)) * wide.exp()
        return lower.lower(), upper.upper()


def _cells(loss: TailedLoss, log_tail: float) -> Cells | ManyAtoms:
    if isinstance(loss, ShuffledLoss):
        return ManyAtoms.of(loss, log_tail)
    return Cells.of(loss, log_tail)


def _product(
    laws: Sequence[Law], counts: Sequence[int], c: float, unit: float, bits: int
) -> _Product:
    """The tilted laws' product, folded to N points."""
    nodes = 1 << bits
    log_bound = np.zeros(nodes // 2 + 1)
    errors = np.zeros(nodes // 2 + 1)
    total = np.ones(nodes // 2 + 1, dtype=np.complex128)
    scale = relative = log_sum = 0.0
    first = 0
    for law, count in zip(laws, counts, strict=True):
        logs = np.log(law.weights) + c * unit * law.places
        peak = float(logs.max())
        if not math.isfinite(peak):
            raise NumericalError(f"a moment of {count} releases is beyond all doubles")
        log_moment = peak + math.log(float(np.exp(logs - peak).sum()))
        tilted = np.exp(logs - log_moment)
        here = int(np.argmax(tilted))
        relative += (
            count
            * _U
            * float(
                (4 + 4 * np.abs(c * unit * law.places) + 4 * np.abs(np.log(law.weights))).max()
                + 4 * abs(log_moment)
            )
        )
        points = np.zeros(nodes)
        others = np.delete(tilted, here)
        np.add.at(points, np.delete(law.places - law.places[here], here) % nodes, others)
        factor = tilted[here] + np.fft.rfft(points)
        error = 8 * bits * _U * math.sqrt(nodes) * float(np.linalg.norm(points))
        # Entries that fold onto one another are added with errors of their own.
        error += len(others) * _U * float(others.sum()) + _LEAST
        bound = np.abs(factor) * (1 + 4 * _U) + error
        log_bound += count * (np.log(bound) + 8 * _U)
        errors += count * (error / bound + 4 * _U)
        total *= power(factor, count)
        scale += count * log_moment
        first += count * int(law.places[here])
        log_sum += count * math.log(float(tilted.sum()) * (1 + 1e-12))
    if not log_bound.max() < _LARGEST:
        raise NumericalError(f"the round-off of {sum(counts)} releases has no bound on a lattice")
    error_at = np.exp(log_bound) * errors * (1 + 1e-9)
    # Nodes of both signs.
    mean = 2 * float(error_at.sum()) / nodes
    norm = math.sqrt(2 * float(np.dot(error_at, error_at)) / nodes)
    folded = np.fft.irfft(total, nodes)
    own = 8 * bits * _U * float(np.linalg.norm(folded)) * (1 + 1e-9)
    return _Product(
        folded=folded,
        scale=scale,
        first=first,
        total=math.exp(log_sum) * (1 + 1e-9),
        off=(mean + own, norm + own),
        relative=relative + abs(scale) * 4 * _U * len(laws),
    )


def _beyond(losses: Losses, laws: Sequence[Law]) -> arb:
    """Bound on what escapes in the laws' product, less what does in that of the losses."""
    total, extra = arb(1), arb(0)
    for (loss, count), law in zip(losses, laws, strict=True):
        finite = float(law.weights.sum()) * (1 + 2.0**-46)
        total *= (arb(finite) + law.infinite + to_arb(loss.infinity_mass)).max(arb(1)) ** count
        extra += count * arb(law.infinite)
    return ((total - 1) * to_arb(escaping(losses)) + total * extra).upper()
