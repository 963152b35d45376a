"""Privacy losses of noise on samples, where the noise's loss has a density with atoms at its ends.

Laplace noise on one number and exponential mechanisms have that, and normal noise for batches. The
laws are those of `sampled`; here are their moment generating functions, as sums of exponentials.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from attrs import evolve, frozen
from flint import acb, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.losses._ratio_integral import Noise, Ratio, RatioIntegral
from dpverify.accounting.losses.base import Doubles, ExponentialLoss, TailedLoss
from dpverify.accounting.losses.continuous import BoundedRangeLoss, LaplaceLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss

__all__ = ["Noise", "SmoothBatchLoss", "SmoothLoss", "SmoothReplacedLoss", "SmoothSampledLoss"]

_SHARE = 0.55  # of the working precision, which panels are to reach
_EFFORT = 40.0  # of a sum in doubles
_STEP = 6  # binary digits of Y


class SmoothLoss(ExponentialLoss, TailedLoss):
    """What is known by the integral of a ratio's powers."""

    __slots__ = ()

    base: Noise
    rate: Fraction

    @property
    @abstractmethod
    def ratio(self) -> Ratio:
        """Which one."""

    def transform(self, points: Sequence[acb]) -> list[acb]:
        """One path for each real part."""
        lines: dict[str, list[int]] = {}
        for number, s in enumerate(points):
            lines.setdefault(repr(s.real.mid().man_exp()), []).append(number)
        found: dict[int, acb] = {}
        for numbers in lines.values():
            heights = [points[n].imag for n in numbers]
            most = max(float(abs(y).upper()) for y in heights) * (1 + 2.0**-40)
            effort = _SHARE * ctx.prec * math.log(2)
            integral = RatioIntegral.of(self.ratio, points[numbers[0]].real, most, effort)
            for number, y in zip(numbers, heights, strict=True):
                value = integral.at(abs(y))
                found[number] = value.conjugate() if y < 0 else value
        return [found[number] for number in range(len(points))]

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


def _above(y: float) -> float:
    """A power of 2^`_STEP` that is no less."""
    return 2.0 ** (_STEP * math.ceil((math.log2(max(y, 2.0**-500)) + 1e-9) / _STEP))


@lru_cache(maxsize=64)
def _line(loss: SmoothLoss, c: float, most: float) -> RatioIntegral:
    with ctx.workprec(128):
        return RatioIntegral.of(loss.ratio, arb(c), most, _EFFORT)


@lru_cache(maxsize=64)
def _in_doubles(
    loss: SmoothLoss, c: float, most: float
) -> tuple[NDArray[np.complex128], NDArray[np.complex128], float]:
    return _line(loss, c, most).in_doubles()


@frozen(kw_only=True)
class SmoothSampledLoss(SmoothLoss, SampledLoss):
    """The loss of a release on a Poisson sample, for one record that is removed or added."""

    base: LaplaceLoss | BoundedRangeLoss

    @property
    def ratio(self) -> Ratio:
        """G."""
        return Ratio(
            base=self.base,
            rate=self.rate,
            forward=not self.added,
            mirrored=self.added,
            whole=True,
        )

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
