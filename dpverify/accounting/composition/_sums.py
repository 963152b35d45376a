"""f(ε) by one sum over nodes or atoms, or between two; `curve` lists which losses take which."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from flint import arb

from dpverify.accounting.composition._drops import Drops, has_drops
from dpverify.accounting.composition._enumeration import Enumeration, has_few_sums
from dpverify.accounting.composition._extremal import (
    NodesInDoubles,
    sum_in_doubles,
    sums_around,
)
from dpverify.accounting.composition._inversion import (
    WORK,
    Inversion,
    LatticeKernel,
    Line,
    PlainKernel,
    invert,
)
from dpverify.accounting.composition._lattice import common_unit
from dpverify.accounting.composition._noise_sums import (
    NoiseSums,
    has_gaussian_sums,
    has_laplace_sums,
    has_rows_sums,
    laplace_end,
    laplace_sums,
)
from dpverify.accounting.composition._saddle import Transform
from dpverify.accounting.composition._sampled import (
    SampledSum,
)
from dpverify.accounting.curves._laplace_halves import LaplaceEnd, LaplaceSums
from dpverify.accounting.losses.base import (
    ExponentialLoss,
    Losses,
    Step,
    Transforms,
    step_ball,
)
from dpverify.accounting.losses.smooth_samples import SmoothLoss
from dpverify.errors import NumericalError

__all__ = ["Sums", "common_spacing"]

_FINEST = 1 << 22  # points of a lattice's period
_BETWEEN_EFFORT, _LEFT_OUT = 25.0, 1.0  # most nodes left out are far below the threshold
_MOST_BETWEEN, _ENOUGH_BETWEEN, _LEAST_BETWEEN = 1 << 18, 1 << 17, 1 << 10  # nodes of two sums
_BETWEEN_WORK = 1 << 24  # nodes times losses, as long as the nodes aren't enough
_RESOLUTION = 2e-10  # aim for the relative width of ε between two sums
_COARSER = 1.5
_FEW_BALLS = 500  # nodes of samples, from which on doubles are tried
_FEWER_BALLS, _MOST_SMOOTH = 60, 1 << 18  # of many terms each; nodes of these
_IN_DOUBLES = 1e-10  # relative width of ε by these
_FEW_NODES = 10_000  # that a sum over samples takes before large losses are split off


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """f(ε) by one sum, or by one that is above and one that is below."""

    sums: tuple[
        NodesInDoubles
        | Inversion
        | Enumeration
        | NoiseSums
        | LaplaceEnd
        | LaplaceSums
        | Drops
        | SampledSum,
        ...,
    ]

    @classmethod
    def near(cls, losses: Transforms, c: float, eps: float, log_size: float, effort: float) -> Sums:
        """Sums for values of about e^log_size at about ε, at the current precision."""
        unit = common_spacing(losses)
        line = Transform.of(losses).plan(c, eps, log_size, effort)
        # A lattice may be finer than doubles are.
        if unit is not None and line.period < _FINEST * float(step_ball(unit).mid()):
            kernel = LatticeKernel(base=_base(losses), unit=step_ball(unit))
            on_lattice = replace(
                line,
                most_nodes=_FINEST // 2,
                threshold=line.threshold - c * float(kernel.unit.mid()),
            )
            found = invert(losses, kernel, on_lattice)
            if found is not None:
                return cls(sums=(found,))
        if has_few_sums(losses):
            return cls(sums=(Enumeration.of(losses),))
        end = laplace_end(losses, eps, 2 / c)
        if end is not None:
            return cls(sums=(end,))
        if has_gaussian_sums(losses):
            return cls(sums=(NoiseSums.of(losses),))
        inverted = cls._inverted(losses, line, eps)
        if inverted is not None:
            return inverted
        if has_laplace_sums(losses):
            return cls(sums=(laplace_sums(losses),))
        if has_rows_sums(losses):
            return cls(sums=(NoiseSums.of(losses),))
        # δ is off by a share of c(c + 1)h²/8, and ε by a share of (c + 1)h²/8.
        aim = _RESOLUTION * max(eps, 1 / (c + 1))
        line = Transform.of(losses).plan(c, eps, log_size, _BETWEEN_EFFORT)
        line = replace(line, threshold=line.threshold + _LEFT_OUT)
        nodes = line.period / math.sqrt(8 * aim / (c + 1))
        most = max(min(_BETWEEN_WORK // len(losses), _MOST_BETWEEN), _ENOUGH_BETWEEN)
        nodes = int(min(max(nodes, _ENOUGH_BETWEEN), most)) if line.is_finite else 0
        while nodes >= _LEAST_BETWEEN and line.is_finite:
            between = sums_around(losses, line, nodes)
            if between is not None:
                return cls(sums=between)
            nodes = int(nodes / _COARSER)
        if has_drops(losses):
            return cls(sums=(Drops(losses=losses),))
        raise NumericalError(
            f"delta near epsilon={eps!r} needs a line that is beyond doubles, or more than "
            f"{_MOST_BETWEEN} nodes"
        )

    @classmethod
    def of_few_nodes(
        cls, losses: Transforms, c: float, eps: float, log_size: float, effort: float
    ) -> Sums | None:
        """One sum where M falls fast along its line; None where it doesn't."""
        line = replace(
            Transform.of(losses).plan(c, eps, log_size, effort),
            most_nodes=_FEW_NODES,
            most_work=_FEW_NODES * 10,
        )
        return cls._inverted(losses, line, eps)

    @classmethod
    def _inverted(cls, losses: Transforms, line: Line, eps: float) -> Sums | None:
        """By balls, but for many nodes of samples where doubles are sharp enough."""
        smooth = any(isinstance(loss, SmoothLoss) for loss, _ in losses)
        if smooth:
            line = replace(line, most_nodes=min(line.most_nodes, _MOST_SMOOTH))
        if any(isinstance(loss, ExponentialLoss) for loss, _ in losses):
            balls = _FEWER_BALLS if smooth else _FEW_BALLS
            few = replace(line, most_work=min(line.most_work, balls * (len(losses) + WORK)))
            found = invert(losses, PlainKernel(), few)
            if found is not None:
                return cls(sums=(found,))
            doubles = sum_in_doubles(losses, line)
            if doubles is not None:
                near = doubles.value(arb(eps))
                if near.rad() <= _IN_DOUBLES * max(line.c * eps, 1.0) * near.lower():
                    return cls(sums=(doubles,))
            if smooth:  # terms are many
                return None
        found = invert(losses, PlainKernel(), line)
        return None if found is None else cls(sums=(found,))

    @property
    def is_between(self) -> bool:
        """Whether the result's width is that of two sums, of doubles or of a grid."""
        return isinstance(self.sums[0], Drops | SampledSum | NodesInDoubles)

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε)."""
        balls = [found.value(epsilon) for found in self.sums]
        return balls[0].upper().union(balls[1].lower()) if len(balls) == 2 else balls[0]


@lru_cache(maxsize=64)
def common_spacing(losses: Losses) -> Step | None:
    """The common unit of all differences between atoms, if there is one."""
    spacings: dict[Step, None] = {}
    for loss, _ in losses:
        support = loss.support
        if support is None:
            return None
        spacings.update(dict.fromkeys(support.spacings))
    return common_unit(spacings) if spacings else None


def _base(losses: Losses) -> arb:
    total = arb(0)
    for loss, count in losses:
        support = loss.support
        assert support is not None  # noqa: S101
        total += count * sum((n * step_ball(step) for step, n in support.base), arb(0))
    return total
