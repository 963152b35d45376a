"""Privacy losses of noise on samples, where the noise's loss has a density with atoms at its ends.

Laplace noise on one number and exponential mechanisms have that, and normal noise for batches. The
laws are those of `sampled`; here are their moment generating functions, as sums of exponentials.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from attrs import evolve, frozen
from flint import acb, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.losses._ratio_integral import Noise, Ratio, RatioIntegral
from dpverify.accounting.losses.base import Doubles, ExponentialLoss, PrivacyLoss
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.nodes import Nodes
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss
from dpverify.enclosure import to_arb

__all__ = [
    "CutLoss",
    "Noise",
    "SmoothBatchLoss",
    "SmoothLoss",
    "SmoothReplacedLoss",
    "SmoothSampledLoss",
]

_SHARE = 0.55  # of the working precision, which panels are to reach
_EFFORT = 40.0  # of a sum in doubles
_STEP = 6  # binary digits of Y
_FIRST, _LAST = 6, 200  # half standard deviations, at which noise may be cut


class SmoothLoss(ExponentialLoss):
    """What is known by the integral of a ratio's powers."""

    __slots__ = ()

    @property
    @abstractmethod
    def ratio(self) -> Ratio:
        """Which one."""

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """One path for each real part."""
        lines: dict[str, list[int]] = {}
        for number, s in enumerate(points):
            ball = s.real.mid(), s.real.rad()
            lines.setdefault(repr([x.man_exp() for x in ball]), []).append(number)
        found: dict[int, acb] = {}
        for numbers in lines.values():
            heights = [points[n].imag for n in numbers]
            most = max(float(abs(y).upper()) for y in heights) * (1 + 2.0**-40)
            integral = RatioIntegral.of(self.ratio, points[numbers[0]].real, most, _effort())
            for number, y in zip(numbers, heights, strict=True):
                value = integral.at(abs(y))
                found[number] = value.conjugate() if y < 0 else value
        return [found[number] for number in range(len(points))]

    def transform_along(self, nodes: Nodes) -> list[acb]:
        """One path."""
        most = float((nodes.step * nodes.kept[-1]).upper()) * (1 + 2.0**-40)
        return RatioIntegral.of(self.ratio, nodes.c, most, _effort()).along(nodes)

    def log_moment(self, c: Doubles) -> Doubles:
        """Ln M(c)."""
        return self.ratio.log_moment(c)

    def exponentials(
        self, c: float, most: float
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
        """From the path's panels."""
        return _in_doubles(self, c, _above(most))

    def envelope(self, c: float, y: float) -> float:
        """Along the path, everything falls with y."""
        return min(math.log(_line(self, c, _above(y)).modulus(y)), 0.0)


def _effort() -> float:
    """Of integrals at the current precision."""
    precision: int = ctx.prec
    return _SHARE * precision * math.log(2)


def _above(y: float) -> float:
    """A power of 2^`_STEP` that is no less."""
    return 2.0 ** (_STEP * math.ceil((math.log2(max(y, 2.0**-500)) + 1e-9) / _STEP))


@lru_cache(maxsize=64)
def _line(loss: SmoothLoss, c: float, most: float) -> RatioIntegral:
    """With as many more digits as ln(1 − q + q·e^t) may lose where q is near 1."""
    rest = 1 - loss.ratio.rate
    lost = (rest.denominator // rest.numerator).bit_length() if rest else 0
    with ctx.workprec(128 + lost):
        return RatioIntegral.of(loss.ratio, arb(c), most, _EFFORT)


@lru_cache(maxsize=64)
def _in_doubles(
    loss: SmoothLoss, c: float, most: float
) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
    return _line(loss, c, most).in_doubles()


def _one_way(loss: SampledLoss | PoissonSampledLoss, base: Noise) -> Ratio:
    """G, or its inverse where the record is added."""
    return Ratio(base=base, rate=loss.rate, forward=not loss.added, mirrored=loss.added, whole=True)


@frozen(kw_only=True)
class SmoothSampledLoss(SmoothLoss, SampledLoss):
    """The loss of a release on a Poisson sample, for one record that is removed or added."""

    base: LaplaceLoss | BoundedRangeLoss

    @property
    def ratio(self) -> Ratio:
        """G."""
        return _one_way(self, self.base)

    def reverse(self) -> SmoothSampledLoss:
        """Removed for added."""
        return evolve(self, added=not self.added)


@frozen(kw_only=True)
class SmoothBatchLoss(SmoothLoss, BatchLoss):
    """The loss of a release on a batch of a fixed size, for one record that is replaced."""

    base: Noise

    @property
    def ratio(self) -> Ratio:
        """G, and its mirror image."""
        return Ratio(base=self.base, rate=self.rate, forward=True, mirrored=True, whole=False)


@frozen(kw_only=True)
class SmoothReplacedLoss(SmoothLoss, ReplacedSampleLoss):
    """The loss of one number with Laplace noise on a Poisson sample, for a record replaced."""

    base: LaplaceLoss

    @property
    def ratio(self) -> Ratio:
        """G over its least value, and its mirror image."""
        return Ratio(
            base=self.base, rate=self.rate, forward=True, mirrored=True, whole=True, relative=True
        )


@frozen(kw_only=True)
class CutLoss(SmoothLoss):
    """Gaussian noise on a Poisson sample or in a batch, without its tails: less than a law.

    Parameters
    ----------
    whole : the loss
    ends : the least and the largest loss of the noise that are left
    """

    whole: PoissonSampledLoss | SmoothBatchLoss
    ends: tuple[float, float]

    @property
    def is_law(self) -> bool:
        """Not: probabilities don't add up to 1."""
        return False

    @property
    def ratio(self) -> Ratio:
        """That of the loss, between the ends."""
        loss = self.whole
        ratio = loss.ratio if isinstance(loss, SmoothBatchLoss) else _one_way(loss, loss.base)
        return replace(ratio, cut=self.ends)

    def max_loss(self) -> arb:
        """At the last end, or, where the record is added, at the first one."""
        ratio = self.ratio
        t = arb(self.ends[1] if ratio.forward else self.ends[0])
        log = ratio.log_ratio(acb(t)).real
        return log if ratio.forward else -log

    @classmethod
    def of(cls, loss: PrivacyLoss, most: arb) -> tuple[CutLoss, arb] | None:
        """With about so much left out, and a bound on it; None of other noise."""
        normal = isinstance(loss, SmoothBatchLoss) and isinstance(loss.base, GaussianLoss)
        if not (normal or isinstance(loss, PoissonSampledLoss)):
            return None
        assert isinstance(loss, PoissonSampledLoss | SmoothBatchLoss)  # noqa: S101
        assert isinstance(loss.base, GaussianLoss)  # noqa: S101
        mu = math.sqrt(loss.base.mu_squared)
        for step in range(_FIRST, _LAST):
            reach = mu * mu / 2 + mu * step / 2
            cut = cls(whole=loss, ends=(-reach, reach))
            if (lost := cut.lost()) <= most:
                return cut, lost
        return None

    def lost(self) -> arb:
        """Bound on the first law's mass outside."""
        ratio, q = self.ratio, to_arb(self.whole.rate)
        above, below = (self.whole.base.tails(arb(end)) for end in self.ends[::-1])
        sides = [above, (1 - below[0], 1 - below[1])] if ratio.whole else [above]
        total = arb(0)
        for own, other in sides:
            if ratio.forward:
                total += (1 - q) * other + q * own
            if ratio.mirrored:
                total += other
        return total.upper()
