"""The privacy loss of noise on a Poisson sample.

Every record is in the sample with probability q, by a coin of its own. Where one record more makes
the difference, the output follows (1 − q)·Q + q·P with it and Q without it, for the pair P, Q that
dominates the noise: `PoissonSampled` proves it. With the noise's loss ℓ = ln(P/Q) and Q's law of x,

    removed:  the pair (1 − q)·Q + q·P, Q     M(s) = E_Q[g^{1 + s}],     g = 1 − q + q·e^ℓ,
    added:    the pair Q, (1 − q)·Q + q·P     M(s) = E_Q[g^{−s}].

The loss of the second is below −ln(1 − q), and the first has no largest value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from attrs import evolve, field, frozen
from flint import acb, arb, ctx

from dpverify.accounting.losses._normal_mixture import NormalMixture, PowerIntegral
from dpverify.accounting.losses.base import (
    ROUND_OFF,
    Characteristic,
    Doubles,
    TailedLoss,
    TransformedLoss,
)
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.sampled import sampled_tails
from dpverify.enclosure import number_string, to_arb
from dpverify.errors import require
from dpverify.numbers import to_rational

__all__ = ["PoissonSampledLoss"]

_BLOCK = 1 << 20  # numbers that are held at once


@frozen(kw_only=True)
class PoissonSampledLoss(TransformedLoss, TailedLoss):
    """The loss of Gaussian noise on a Poisson sample, for one record that is removed or added.

    Parameters
    ----------
    base : the noise's loss
    rate : q in (0, 1), exact
    added : whether the record is added, and the first law the one without it
    """

    base: GaussianLoss
    rate: Fraction = field(converter=to_rational)
    added: bool = False

    def __attrs_post_init__(self) -> None:
        require(0 < self.rate < 1, "rate", self.rate, "in (0, 1)")

    def __str__(self) -> str:
        order = ", reversed" if self.added else ""
        return f"{self.base}.poisson_sampled(rate={number_string(self.rate)}){order}"

    @property
    def mixture(self) -> NormalMixture:
        """g, at a standard normal x."""
        return NormalMixture(mu_squared=self.base.mu_squared, rate=self.rate)

    def power(self, c: arb) -> arb:
        """The power of g whose mean M(c) is."""
        return -c if self.added else 1 + c

    def max_loss(self) -> arb | None:
        """−ln(1 − q) where the record is added, which isn't reached."""
        return -(1 - to_arb(self.rate)).log() if self.added else None

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """Integrals on one line for each real part."""
        found: dict[int, acb] = {}
        lines: dict[str, list[int]] = {}
        for number, s in enumerate(points):
            lines.setdefault(repr(s.real.mid().man_exp()), []).append(number)
        for numbers in lines.values():
            integral = PowerIntegral.of(self.mixture, self.power(points[numbers[0]].real))
            heights = [points[n].imag for n in numbers]
            values = integral.at([abs(y) for y in heights])
            for number, y, value in zip(numbers, heights, values, strict=True):
                found[number] = value.conjugate() if self.added != (y < 0) else value
        return [found[number] for number in range(len(points))]

    def tails(self, place: arb) -> tuple[arb, arb]:
        """From those of the noise."""
        return sampled_tails(self.base, self.rate, place, added=self.added)

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        return self.mixture.log_moments(-c if self.added else 1 + c)

    def characteristic(self, c: float, y: Doubles) -> Characteristic:
        """The sum on the shifted line; the modulus of each term is at most its weight's."""
        weights, logs, error = _line(self, c)
        size = np.abs(weights)
        values = np.empty(y.shape, dtype=np.complex128)
        rows = max(_BLOCK // len(logs), 1)
        for first in range(0, len(y), rows):
            part = y[first : first + rows, None]
            values[first : first + rows] = np.exp(1j * part * logs) @ weights
        off = 8 + float(len(logs)) / 16
        bound = error + ROUND_OFF * (off * size.sum() + (size @ np.abs(logs)) * y)
        return (values.conj() if self.added else values), bound

    def envelope(self, c: float, y: float) -> float:
        """Every term on the shifted line falls with y."""
        weights, logs, error = _line(self, c)
        total = float(np.abs(weights) @ np.exp(-y * logs.imag)) * (1 + 1e-9) + error
        return min(math.log(total), 0.0)

    def reverse(self) -> PoissonSampledLoss:
        """Removed for added."""
        return evolve(self, added=not self.added)


@lru_cache(maxsize=32)
def _line(loss: PoissonSampledLoss, c: float) -> tuple[Doubles, Doubles, float]:
    """Weights over M(c) and logarithms of g on the shifted line, and what a sum is off by."""
    with ctx.workprec(128):
        integral = PowerIntegral.of(loss.mixture, loss.power(arb(c)))
        return integral.in_doubles()
