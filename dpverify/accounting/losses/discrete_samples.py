"""Privacy losses of discrete noise on samples, as finitely many atoms.

The laws are those of `sampled`. Let ℓ have atoms of probabilities w on the first side, thus
w·e^{−ℓ} on the second one, and let either side have mass m that the other one doesn't have. With
G = ln(1 − q + q·e^ℓ), and where q < 1, these are the atoms of finite loss:

**A record removed.** G, of probability w·e^{G − ℓ}, and ln(1 − q), of probability (1 − q)·m.

**Added.** −G, of probability w·e^{−ℓ}, and −ln(1 − q), of probability m.

**Replaced, without replacement.** Where ℓ > 0, G and −G, of probabilities w·e^{G − ℓ} and
w·e^{−ℓ}; and 0, of the rest. As ℓ is its own reverse, 1 is m, the probability z that ℓ = 0, and
Σ w + w·e^{−ℓ} over ℓ > 0, so the rest, without the infinite losses' q·m, is

    z + (1 − q)·(m + Σ_{ℓ > 0} w·(1 − e^{−ℓ})).

**Without some outputs** (`cut_discrete`) these atoms are what the others make of each law: the
first law's mass at an output with ℓ > 0 and at its mirror image is w·e^{G − ℓ} + w·e^{−ℓ} +
(1 − q)·w·(1 − e^{−ℓ}) = w + w·e^{−ℓ}. Its mass on outputs that are left out is at most what either
law of the base has there, which is the same for both.
"""

from __future__ import annotations

from attrs import evolve, frozen
from flint import arb

from dpverify.accounting.losses.base import PrivacyLoss, TransformedLoss
from dpverify.accounting.losses.discrete import AtomicLoss
from dpverify.accounting.losses.discrete_gaussian import (
    CutDiscreteGaussianLoss,
    DiscreteGaussianLoss,
)
from dpverify.accounting.losses.sampled import BatchLoss, SampledLoss
from dpverify.enclosure import to_arb

__all__ = ["DiscreteBatchLoss", "DiscreteSampledLoss", "cut_discrete"]


@frozen(kw_only=True)
class DiscreteSampledLoss(AtomicLoss, SampledLoss):
    """The loss of a release on a Poisson sample, for one record that is removed or added."""

    base: AtomicLoss

    def atoms(self) -> list[tuple[arb, arb]]:
        """One for each of the base, and one for what shows the record's absence."""
        q, rest, mass = map(to_arb, (self.rate, 1 - self.rate, self.base.infinity_mass))
        found, sign = [], -1 if self.added else 1
        for weight, loss in self.base.atoms():
            on_sample = (q * loss.expm1()).log1p()
            power = -loss if self.added else on_sample - loss
            found.append((weight * power.exp(), sign * on_sample))
        if self.base.infinity_mass and self.rate < 1:
            found.append((mass if self.added else rest * mass, sign * rest.log()))
        return found

    def reverse(self) -> DiscreteSampledLoss:
        """Removed for added."""
        return evolve(self, added=not self.added)


@frozen(kw_only=True)
class DiscreteBatchLoss(AtomicLoss, BatchLoss):
    """The loss of a release on a batch of a fixed size, for one record that is replaced."""

    base: AtomicLoss

    def atoms(self) -> list[tuple[arb, arb]]:
        """Two for each positive one of the base, and 0."""
        q, mass = to_arb(self.rate), to_arb(self.base.infinity_mass)
        found, zero, moved = [], arb(0), mass
        for weight, loss in self.base.atoms():
            if loss > 0:
                on_sample = (q * loss.expm1()).log1p()
                other = weight * (-loss).exp()
                found += [(other * on_sample.exp(), on_sample), (other, -on_sample)]
                moved -= weight * (-loss).expm1()
            elif not loss < 0:
                zero += weight
        rest = zero + to_arb(1 - self.rate) * moved
        return [*found, (rest, arb(0))] if rest > 0 else found


def cut_discrete(loss: PrivacyLoss, most: arb) -> tuple[TransformedLoss, arb] | None:
    """Discrete Gaussian noise, or that on a sample, of finitely many outputs, and the others' mass.

    None of other noise, and where more than `most` would have to be left out.
    """
    base = loss.base if isinstance(loss, SampledLoss | BatchLoss) else loss
    cut = CutDiscreteGaussianLoss.of(base, most) if isinstance(base, DiscreteGaussianLoss) else None
    if cut is None:
        return None
    if isinstance(loss, SampledLoss):
        return DiscreteSampledLoss(base=cut, rate=loss.rate, added=loss.added), cut.lost()
    if isinstance(loss, BatchLoss):
        return DiscreteBatchLoss(base=cut, rate=loss.rate), cut.lost()
    return cut, cut.lost()
