"""Bounds of δ and ε by the parts of a composition, where no method resolves the whole.

A release on a sample is a post-processing of the one that reads the record surely: with probability
1 − q its outcome is drawn anew without the record. So T releases cost no more than T of those, and
no less than one of their own. Of unlike parts, each (εᵢ, δᵢ)-private, the sum is (Σεᵢ, Σδᵢ)-private
and no less than any part. That is narrow where one part costs nearly all.

**Noise that hardly ever moves.** Discrete Gaussian noise is 0 but for a probability of at most
2e^{−v}/(1 − e^{−v}), v = 1/2σ², as k² ≥ k. Where it is 0 the loss is Δ²/2σ². Let s be the sum of
these over all releases, and τ that of the probabilities: the loss of all is s but for τ at most, so

    (1 − τ)·(1 − e^{ε − s})₊ ≤ δ(ε) ≤ (1 − e^{ε − s})₊ + τ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb, ctx

from dpverify.accounting.losses.base import Losses, PrivacyLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss
from dpverify.accounting.targets import LEAST_DELTA
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve

__all__ = ["delta_apart", "epsilon_apart", "still_delta", "still_epsilon", "unsampled"]

_SMALL = Fraction(1, 10**9)  # δ at which ε is shared out
_MOST = 1e9  # ε of a part, as where a loss may be infinite
_PRECISION, _FAR = 512, 60  # bits, and how far τ is below 1 and below δ

_Parts = Sequence[tuple[PrivacyCurve, PrivacyCurve]]
"""Of each part a curve that is no less, and one that is no more."""


def epsilon_apart(parts: _Parts, delta: Fraction) -> Enclosure:
    """Encloses ε(δ): each part has an even share of δ, with which its own ε may be infinite.

    A share below all targets is as good as 0, which leaves the largest loss.
    """
    share = delta / len(parts)
    needs = [_needed(most, share if share >= LEAST_DELTA else Fraction(0)) for most, _ in parts]
    lower = max(least.epsilon_at(delta).lower for _, least in parts)
    if math.inf in needs:
        return Enclosure(lower, math.inf)
    return Enclosure(lower, Enclosure.of_exact(sum(map(Fraction, needs), Fraction(0))).upper)


def _needed(part: PrivacyCurve, delta: Fraction) -> float:
    try:
        return part.epsilon_at(delta).upper
    except ParameterError:  # its loss is unbounded
        return math.inf


def delta_apart(parts: _Parts, epsilon: Fraction) -> Enclosure:
    """Encloses δ(ε): each part has as much of ε as it needs at a small δ, or any other share."""
    needs = [Fraction(min(most.epsilon_at(_SMALL).upper, _MOST)) for most, _ in parts]
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


def still_delta(losses: Losses, epsilon: Fraction) -> Enclosure | None:
    """Encloses δ(ε) of noise that hardly ever moves; None where it does, or isn't discrete."""
    with ctx.workprec(_PRECISION):
        known = _still(losses)
        if known is None:
            return None
        s, tau = known
        here = -(to_arb(epsilon) - s).min(arb(0)).expm1()
        found = Enclosure.of_ball(((1 - tau) * here).union(here + tau))
    return Enclosure(max(found.lower, 0.0), min(found.upper, 1.0))


def still_epsilon(losses: Losses, delta: Fraction) -> Enclosure | None:
    """Encloses ε(δ); None also where δ isn't far above τ."""
    with ctx.workprec(_PRECISION):
        known = _still(losses)
        if known is None or not known[1] * 2**_FAR <= to_arb(delta):
            return None
        (s, tau), goal = known, to_arb(delta)
        least, most = 1 - goal / (1 - tau), 1 - goal + tau
        if not least > 0:
            return None
        found = Enclosure.of_ball((s + least.log()).union(s + most.log()))
    return Enclosure(max(found.lower, 0.0), max(found.upper, 0.0))


def _still(losses: Losses) -> tuple[arb, arb] | None:
    s, tau = Fraction(0), arb(0)
    for loss, count in losses:
        if not isinstance(loss, DiscreteGaussianLoss):
            return None
        fall = (-to_arb(1 / (2 * loss.sigma_squared))).exp()
        s += count * loss.sensitivity**2 / (2 * loss.sigma_squared)
        tau += count * 2 * fall / (1 - fall)
    return (to_arb(s), tau.upper()) if tau < arb(2) ** -_FAR else None


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
