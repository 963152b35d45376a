"""Privacy losses of Gaussian noise on a Poisson sample.

Every record is in the sample with probability q, by a coin of its own. Where one record more makes
the difference, the output follows (1 − q)·Q + q·P with it and Q without it, for the pair P, Q that
dominates the noise: `PoissonSampled` proves it. With the noise's loss ℓ = ln(P/Q) and Q's law of x,

    removed:  the pair (1 − q)·Q + q·P, Q     M(s) = E_Q[g^{1 + s}],     g = 1 − q + q·e^ℓ,
    added:    the pair Q, (1 − q)·Q + q·P     M(s) = E_Q[g^{−s}].

The loss of the second is below −ln(1 − q), and the first has no largest value. Where a record is
replaced (`ReplacedSampleLoss`) the pair is (1 − q)·N(0, 1) + q·N(±μ, 1), and in x ~ N(0, 1)

    replaced:   M(s) = E[g(x)·(g(x)/g(−x))^s].
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from attrs import evolve, field, frozen
from flint import acb, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.losses._normal_mixture import NormalMixture, PowerIntegral
from dpverify.accounting.losses.base import (
    Doubles,
    ExponentialLoss,
    TailedLoss,
)
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.nodes import Nodes
from dpverify.accounting.losses.sampled import ReplacedSampleLoss, sampled_tails
from dpverify.enclosure import number_string, to_arb
from dpverify.errors import require
from dpverify.numbers import to_rational

__all__ = ["BULGE", "MixtureLoss", "PoissonReplacedLoss", "PoissonSampledLoss"]

BULGE = 2.0
"""Of sums in doubles (`PowerIntegral.of`)."""


class MixtureLoss(ExponentialLoss, TailedLoss):
    """What is known by the powers of a `NormalMixture`."""

    __slots__ = ()

    base: GaussianLoss
    rate: Fraction

    @property
    def added(self) -> bool:
        """Whether the first law is the one without the record."""
        return False

    @property
    @abstractmethod
    def mixture(self) -> NormalMixture:
        """Of which ratio, at a standard normal x."""

    def power(self, c: arb) -> arb:
        """The a of the integral that M(c) is."""
        return -c if self.added else 1 + c

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

    def transform_along(self, nodes: Nodes) -> list[acb]:
        """The integral on one line."""
        values = PowerIntegral.of(self.mixture, self.power(nodes.c)).along(nodes)
        return [value.conjugate() for value in values] if self.added else values

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        return self.mixture.log_moments(-c if self.added else 1 + c)

    def exponentials(
        self, c: float, most: float
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
        """The sum on the shifted line, which serves every y; of the record added its conjugate."""
        del most
        weights, logs, error = _line(self, c)
        return (weights.conj(), -logs.conj(), error) if self.added else (weights, logs, error)

    def envelope(self, c: float, y: float) -> float:
        """Every term on the shifted line falls with y."""
        weights, logs, error = _line(self, c)
        total = float(np.abs(weights) @ np.exp(-y * logs.imag)) * (1 + 1e-9) + error
        return min(math.log(total), 0.0)


@frozen(kw_only=True)
class PoissonSampledLoss(MixtureLoss):
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

    def max_loss(self) -> arb | None:
        """−ln(1 − q) where the record is added, which isn't reached."""
        return -(1 - to_arb(self.rate)).log() if self.added else None

    def tails(self, place: arb) -> tuple[arb, arb]:
        """From those of the noise."""
        return sampled_tails(self.base, self.rate, place, added=self.added)

    def reverse(self) -> PoissonSampledLoss:
        """Removed for added."""
        return evolve(self, added=not self.added)


@frozen(kw_only=True)
class PoissonReplacedLoss(MixtureLoss, ReplacedSampleLoss):
    """That of one record that is replaced, its own reverse, of a rate below 1."""

    base: GaussianLoss

    def __attrs_post_init__(self) -> None:
        require(0 < self.rate < 1, "rate", self.rate, "in (0, 1)")

    @property
    def mixture(self) -> NormalMixture:
        """r, at a standard normal x."""
        return NormalMixture(mu_squared=self.base.mu_squared, rate=self.rate, replaced=True)


@lru_cache(maxsize=32)
def _line(
    loss: MixtureLoss, c: float
) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
    """Weights over M(c) and logarithms of g on the shifted line, and what a sum is off by."""
    with ctx.workprec(128):
        integral = PowerIntegral.of(loss.mixture, loss.power(arb(c)), most_bulge=BULGE)
        return integral.in_doubles()
