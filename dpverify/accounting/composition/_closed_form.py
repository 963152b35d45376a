"""Compositions that equal one mechanism whose curve has a closed form.

Of Gaussian losses μ² adds up, and Laplace losses are those of one vector with the shifts of all.
Normal rows that change alike are so many more rows.
"""

from __future__ import annotations

from fractions import Fraction

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.poisson_replaced import PoissonReplaced
from dpverify.accounting.curves.poisson_sampled import PoissonSampled
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss, NormalRowsLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.guarantee import PrivacyCurve

__all__ = ["closed_form"]


def closed_form(losses: Losses) -> PrivacyCurve | None:
    """A curve that is the same as that of these losses; None where none is known."""
    if losses[0][1] == len(losses) == 1:
        loss = losses[0][0]
        if isinstance(loss, PoissonSampledLoss):
            base = Gaussian.from_mu_squared(loss.base.mu_squared)
            return PoissonSampled(curve=base, rate=loss.rate)
        if isinstance(loss, PoissonReplacedLoss):
            base = Gaussian.from_mu_squared(loss.base.mu_squared)
            return PoissonReplaced(curve=base, rate=loss.rate)
    squares = [n * loss.mu_squared for loss, n in losses if isinstance(loss, GaussianLoss)]
    if len(squares) == len(losses):
        return Gaussian.from_mu_squared(sum(squares, Fraction(0)))
    shifts = [(loss.shift, n) for loss, n in losses if isinstance(loss, LaplaceLoss)]
    if len(shifts) == len(losses):
        curve = Laplace.of_shifts(tuple(sorted(shifts)))
        return curve if curve.is_exact else None
    rows = [(loss, n) for loss, n in losses if isinstance(loss, NormalRowsLoss)]
    changes = {loss.gammas for loss, _ in rows}
    if len(rows) == len(losses) and len(changes) == 1:
        return _normal_rows(sum(n * loss.rows for loss, n in rows), *changes)
    return None


def _normal_rows(rows: int, gammas: tuple[Fraction, ...]) -> RankOneNormal | RankTwoNormal | None:
    """That of a change γ, or of γ and −γ/(1 + γ), in either order of the pair."""
    gamma = max(gammas[-1], -gammas[0] / (1 + gammas[0]))
    if len(gammas) == 1:
        return RankOneNormal(rows=rows, gamma=gamma)
    if gammas == (-gamma / (1 + gamma), gamma):
        return RankTwoNormal(rows=rows, gamma=gamma)
    return None
