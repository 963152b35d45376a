"""Bounds of δ and ε by the parts of a composition, where no method resolves the whole.

A release on a sample is a post-processing of the one that reads the record surely: with probability
1 − q its outcome is drawn anew without the record. So T releases cost no more than T of those, and
no less than one of their own. Of unlike parts, each (εᵢ, δᵢ)-private, the sum is (Σεᵢ, Σδᵢ)-private
and no less than any part. That is narrow where one part costs nearly all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from dpverify.accounting.losses.base import PrivacyLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss
from dpverify.enclosure import Enclosure
from dpverify.guarantee import PrivacyCurve

__all__ = ["delta_apart", "epsilon_apart", "unsampled"]

_SMALL = Fraction(1, 10**9)  # δ at which ε is shared out

_Parts = Sequence[tuple[PrivacyCurve, PrivacyCurve]]
"""Of each part a curve that is no less, and one that is no more."""


def epsilon_apart(parts: _Parts, delta: Fraction) -> Enclosure:
    """Encloses ε(δ): each part has an even share of δ, with which its own ε may be infinite."""
    share = delta / len(parts)
    needs = [most.epsilon_at(share).upper for most, _ in parts]
    lower = max(least.epsilon_at(delta).lower for _, least in parts)
    if math.inf in needs:
        return Enclosure(lower, math.inf)
    return Enclosure(lower, Enclosure.of_exact(sum(map(Fraction, needs), Fraction(0))).upper)


def delta_apart(parts: _Parts, epsilon: Fraction) -> Enclosure:
    """Encloses δ(ε): each part has as much of ε as it needs at a small δ."""
    needs = [Fraction(most.epsilon_at(_SMALL).upper) for most, _ in parts]
    total = sum(needs, Fraction(0))
    upper = sum(
        (
            Fraction(most.delta_at(epsilon * need / total if total else epsilon).upper)
            for (most, _), need in zip(parts, needs, strict=True)
        ),
        Fraction(0),
    )
    lower = max(least.delta_at(epsilon).lower for _, least in parts)
    return Enclosure(lower, min(Enclosure.of_exact(upper).upper, 1.0))


def unsampled(loss: PrivacyLoss) -> PrivacyLoss | None:
    """The loss where the record is in the sample surely; None of what is on no sample."""
    match loss:
        case ReplacedSampleLoss(base=GaussianLoss(mu_squared=mu_squared)):
            return GaussianLoss(mu_squared=4 * mu_squared)
        case ReplacedSampleLoss(base=LaplaceLoss(shift=shift)):
            return LaplaceLoss(shift=2 * shift)
        case PoissonSampledLoss() | SampledLoss() | BatchLoss():
            return loss.base
    return None
