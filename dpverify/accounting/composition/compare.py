"""One composition by every theorem, to see how loose each bound is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from dpverify.accounting.composition.compose import Claims, compose, grouped
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
from dpverify.guarantee import Guarantee

__all__ = ["compared"]


def compared(
    releases: Iterable[Guarantee | Claims], delta: Real, *, same_records: bool = False
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
    total = compose(*releases, same_records=same_records)
    curves = [Composed(losses=losses) for losses in grouped(total.parts)]
    share = target / (2 * len(curves))
    points = tuple(
        ApproxDP(epsilon=Fraction(curve.epsilon_at(share).upper), delta=share) for curve in curves
    )
    found = {"exact privacy losses": total.curve.epsilon_at(target)}
    divergences = [_divergence(loss) for loss, _ in _all(curves)]
    if None not in divergences:
        parts = tuple(
            (divergence, count)
            for divergence, (_, count) in zip(divergences, _all(curves), strict=True)
            if divergence is not None
        )
        renyi = RDP(parts=parts)
        found[f"Rényi: {renyi.theorem}"] = renyi.epsilon_at(target)
    rho = _rho(curves)
    if rho is not None:
        concentrated = ZCDP(rho=rho)
        found[f"zCDP: {concentrated.theorem}"] = concentrated.epsilon_at(target)
    for bound in reversed(applicable_bounds(points)):
        found[bound.theorem] = bound.epsilon_at(target)
    return found


def _all(curves: Iterable[Composed]) -> Iterator[tuple[PrivacyLoss, int]]:
    for curve in curves:
        yield from curve.losses()


def _divergence(loss: PrivacyLoss) -> RenyiDivergence | None:
    match loss:
        case GaussianLoss(mu_squared=mu_squared):
            return GaussianRenyi(mu_squared=mu_squared)
        case LaplaceLoss(shift=shift):
            return LaplaceRenyi(ratio=shift)
        case FiniteLoss(pairs=pairs) if not loss.infinity_mass:
            return FiniteRenyi(pairs=pairs)
        case ResponseLoss(step=Log(argument=odds), share=share) if not loss.infinity_mass:
            other = share / (1 + odds)
            return FiniteRenyi(pairs=((odds * other, other), (other, odds * other), *_both(share)))
    return None


def _both(share: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
    return ((1 - share, 1 - share),) if share < 1 else ()


def _rho(curves: Iterable[Composed]) -> Fraction | None:
    """ρ of all releases: μ²/2 of Gaussian noise, what pure ε-privacy gives for bounded losses."""
    total = Fraction(0)
    for loss, count in _all(curves):
        if isinstance(loss, GaussianLoss):
            total += count * loss.mu_squared / 2
            continue
        largest = loss.max_loss()
        if largest is None or loss.infinity_mass:
            return None
        bound = Fraction(Enclosure.of_ball(largest).upper)
        if bound > 0:
            total += count * ZCDP.pure(bound).rho
    return total or None
