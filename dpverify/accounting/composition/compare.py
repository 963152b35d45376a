"""One composition by every theorem, to see how loose each bound is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from dpverify.accounting.composition.compose import Release, compose, grouped
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.composition.theorems import applicable_bounds
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.losses.base import Log, PrivacyLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.notions.renyi import (
    RDP,
    FiniteRenyi,
    GaussianRenyi,
    LaplaceRenyi,
    RenyiDivergence,
)
from dpverify.accounting.notions.zcdp import ZCDP
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve

__all__ = ["compared"]


def compared(
    releases: Iterable[Release], delta: Real, *, same_records: bool = False
) -> Mapping[str, Enclosure]:
    """ε of all releases together at this δ, by each theorem that applies, by its name.

    Theorems that know a release by one (ε, δ) alone are given its exact ε at an even share of half
    of δ; releases on one public draw count as one release there, of their exact composition. Rényi
    and concentrated differential privacy are given the exact divergences.

    Parameters
    ----------
    releases, same_records : as for `compose`
    delta : in (0, 1)

    Returns
    -------
    Enclosures of what each theorem proves, "exact privacy losses" first.
    """
    target = rational("delta", delta)
    require(0 < target < 1, "delta", delta, "in (0, 1)")
    each = tuple(releases)
    curves_alone = [release for release in each if isinstance(release, PrivacyCurve)]
    if len(curves_alone) == len(each):
        whole, groups = compose(*curves_alone), [curve.losses() for curve in curves_alone]
    else:
        total = compose(*each, same_records=same_records)
        whole, groups = total.curve, list(grouped(total.parts))
    curves = [Composed(losses=losses) for losses in groups]
    share = target / (2 * len(curves))
    ends = [curve.epsilon_at(share).upper for curve in curves]
    found = {"exact privacy losses": whole.epsilon_at(target)}
    losses = [pair for curve in curves for pair in curve.losses() if not _says_nothing(pair[0])]
    parts = [
        (divergence, count)
        for divergence, count in ((_divergence(loss), count) for loss, count in losses)
        if divergence is not None
    ]
    if 0 < len(parts) == len(losses):
        renyi = RDP(parts=tuple(parts))
        found[f"Rényi: {renyi.theorem}"] = renyi.epsilon_at(target)
    rho = _rho(losses)
    if rho is not None:
        concentrated = ZCDP(rho=rho)
        found[f"zCDP: {concentrated.theorem}"] = concentrated.epsilon_at(target)
    if math.inf not in ends:
        points = tuple(ApproxDP(epsilon=Fraction(end), delta=share) for end in ends)
        for bound in reversed(applicable_bounds(points)):
            found[bound.theorem] = bound.epsilon_at(target)
    return found


def _says_nothing(loss: PrivacyLoss) -> bool:
    return isinstance(loss, FiniteLoss) and all(p == q for p, q in loss.pairs)


def _divergence(loss: PrivacyLoss) -> RenyiDivergence | None:
    match loss:
        case GaussianLoss(mu_squared=mu_squared):
            return GaussianRenyi(mu_squared=mu_squared)
        case LaplaceLoss(shift=shift):
            return LaplaceRenyi(ratio=shift)
        case FiniteLoss(pairs=pairs) if _infinity_mass(loss) == 0:
            return FiniteRenyi(pairs=pairs)
        case ResponseLoss(step=Log(argument=odds), share=share) if not loss.infinity_mass:
            other = share / (1 + odds)
            return FiniteRenyi(pairs=((odds * other, other), (other, odds * other), *_both(share)))
    return None


def _both(share: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
    return ((1 - share, 1 - share),) if share < 1 else ()


def _infinity_mass(loss: PrivacyLoss) -> Fraction:
    """Of the order of the neighbours that has the larger one."""
    return max(loss.infinity_mass, loss.reverse().infinity_mass)


def _rho(losses: Sequence[tuple[PrivacyLoss, int]]) -> Fraction | None:
    """ρ of all releases: μ²/2 of Gaussian noise, what pure ε-privacy gives for bounded losses."""
    total = Fraction(0)
    for loss, count in losses:
        if isinstance(loss, GaussianLoss):
            total += count * loss.mu_squared / 2
            continue
        largest = [side.max_loss() for side in (loss, loss.reverse())]
        known = [Enclosure.of_ball(most).upper for most in largest if most is not None]
        if len(known) < 2 or _infinity_mass(loss):
            return None
        bound = Fraction(max(known))
        if bound > 0:
            total += count * ZCDP.pure(bound).rho
    return total or None
