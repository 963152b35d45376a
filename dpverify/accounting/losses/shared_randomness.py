"""The privacy loss that public randomness makes of several.

**One position of a shared draw.** Public randomness, drawn once and seen by everyone, decides
whether a position differs; if it does, each of several releases loses Lᵢ there, else nothing is
lost. Given the draw the releases are independent, so M = (1 − d) + d·ΠMᵢ: composed on the draw
first, averaged afterwards. Independent draws multiply outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from attrs import field, frozen
from flint import acb, arb, ctx

from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    Step,
    Support,
    TransformedLoss,
    Transforms,
    escaping,
    log_moment,
    most_lost,
    sum_string,
    transform,
)
from dpverify.enclosure import number_string, to_arb
from dpverify.errors import require
from dpverify.numbers import to_rational

__all__ = ["PositionLoss"]


@frozen(kw_only=True)
class PositionLoss(TransformedLoss):
    """One position that differs with probability d by public randomness which releases share.

    m independent positions are this loss m times.

    Parameters
    ----------
    differ : d in (0, 1], exact
    losses : what every release that uses this draw loses there if it differs
    """

    differ: Fraction = field(converter=to_rational)
    losses: Transforms

    def __attrs_post_init__(self) -> None:
        require(0 < self.differ <= 1, "differ", self.differ, "in (0, 1]")
        good = bool(self.losses) and all(count >= 1 for _, count in self.losses)
        require(good, "losses", self.losses, "not empty, with multiplicities of at least 1")

    def __str__(self) -> str:
        return f"({sum_string(self.losses)}) with probability {number_string(self.differ)}"

    @property
    def infinity_mass(self) -> Fraction:
        """That of the releases together, times d."""
        return self.differ * escaping(self.losses)

    @property
    def abscissa(self) -> float:
        """The smallest of the releases'."""
        return min(loss.abscissa for loss, _ in self.losses)

    @property
    def support(self) -> Support | None:
        """0 and the sums of the releases' atoms."""
        spacings: list[Step] = []
        for loss, _ in self.losses:
            support = loss.support
            if support is None:
                return None
            spacings += [step for step, _ in support.base]
            spacings += support.spacings
        return Support(base=(), spacings=tuple(dict.fromkeys(spacings)))

    def max_loss(self) -> arb | None:
        """That of the releases together, or 0."""
        most = most_lost(self.losses)
        return None if most is None else most.max(arb(0))

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """(1 − d) + d·ΠMᵢ."""
        d = to_arb(self.differ)
        return [1 - d + d * value for value in transform(self.losses, points)]

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        d = float(self.differ)
        inner = log_moment(self.losses, c)
        rest = np.log1p(-d) if d < 1 else -math.inf
        found: Doubles = np.logaddexp(rest, math.log(d) + inner)
        return found

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """A mixture: 1, and the releases' product with the weight d·M(c)/(1 − d + d·M(c))."""
        weight = self._weight(c)
        value = np.ones(y.shape, dtype=np.complex128)
        error = np.zeros_like(y)
        for loss, count in self.losses:
            factor, off = loss.characteristic(c, y)
            value *= factor**count
            error += count * (off + ROUND_OFF)
        # Factors of modulus at most 1 + off: the product's error is at most exp(Σ off) − 1; and the
        # truth is of modulus 1 at most.
        wrong = np.expm1(np.minimum(error, 1.0))
        wrong[error > 1] = np.abs(value[error > 1]) + 1
        return (1 - weight) + weight * value, weight * wrong + ROUND_OFF

    def envelope(self, c: float, y: float) -> float:
        """The mass that loses nothing stays."""
        weight = self._weight(c)
        inner = sum(count * loss.envelope(c, y) for loss, count in self.losses)
        return min(math.log(1 - weight + weight * math.exp(inner) + ROUND_OFF), 0.0)

    def reverse(self) -> PositionLoss:
        """Every release exchanged."""
        reversed_losses = tuple((loss.reverse(), count) for loss, count in self.losses)
        return PositionLoss(differ=self.differ, losses=reversed_losses)

    def _weight(self, c: float) -> float:
        with ctx.workprec(96):
            inner = to_arb(self.differ) * transform(self.losses, [acb(c)])[0].real
            return float((inner / (1 - to_arb(self.differ) + inner)).mid())
