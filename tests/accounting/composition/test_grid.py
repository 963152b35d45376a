"""Two products on a lattice: around what closed forms say, and narrow."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._grid import GridDirection, _Grid
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import ResponseLoss
from dpverify.errors import ParameterError

F = Fraction
EFFORT = 1 << 9, 13
"""Cells, and binary digits of the points."""

LEAKY = ResponseLoss(step=F(1, 4), infinity_mass=F(1, 1000))
CASES: list[tuple[Losses, dpv.PrivacyCurve, list[float], float]] = [
    (((GaussianLoss(mu_squared=F(1)), 30),), 30 * dpv.Gaussian(sigma=1), [15, 70], 0.02),
    (((GaussianLoss(mu_squared=F(1, 9)), 4),), 4 * dpv.Gaussian(sigma=3), [0, 2.5], 0.02),
    (
        ((GaussianLoss(mu_squared=F(1, 4)), 3), (GaussianLoss(mu_squared=F(1)), 1)),
        3 * dpv.Gaussian(sigma=2) + dpv.Gaussian(sigma=1),
        [1.5, 4],
        0.02,
    ),
    (((LaplaceLoss(shift=F(1, 2)), 8),), 8 * dpv.Laplace(scale=2), [1, 2.9], 0.1),
    (((LEAKY, 6),), 6 * dpv.ApproxDP(epsilon="0.25", delta="0.001"), [0.3, 1.2], math.inf),
]


@pytest.mark.parametrize(("losses", "curve", "places", "width"), CASES, ids=lambda x: str(x)[:30])
def test_the_lattice_is_around_the_closed_form(
    losses: Losses, curve: dpv.PrivacyCurve, places: list[float], width: float
) -> None:
    """At the ε that it was made for, and a little beside it; by what is escaping less."""
    escaping = 1 - math.prod((1 - float(loss.infinity_mass)) ** n for loss, n in losses)
    with ctx.workprec(128):
        for place in places:
            size = math.log(curve.delta_at(place).upper - escaping)
            grid = _Grid.near(losses, size, EFFORT, eps=place)
            for epsilon in (place, 0.98 * place + 0.01):
                found, exact = grid.value(arb(epsilon)), curve.delta_at(epsilon)
                assert found.lower() < exact.upper - escaping + 1e-16
                assert found.upper() > exact.lower - escaping - 1e-16
                assert found.rad() < width * found.mid()


@pytest.mark.parametrize(
    ("losses", "curve", "places", "width"), CASES[1:4], ids=lambda x: str(x)[:30]
)
def test_where_delta_is_sought_the_lattice_is_made_near_its_epsilon(
    losses: Losses, curve: dpv.PrivacyCurve, places: list[float], width: float
) -> None:
    del places, width
    with ctx.workprec(128):
        grid = _Grid.near(losses, math.log(1e-6), EFFORT)
        assert grid.eps == pytest.approx(curve.epsilon_at("1e-6").upper, rel=0.1)
        assert grid.value(arb(grid.eps)).rad() < 0.2 * grid.value(arb(grid.eps)).mid()


def test_one_direction_and_its_ends() -> None:
    losses = ((LEAKY, 2),)
    direction, shown = GridDirection(losses=losses), 1 - F(999, 1000) ** 2
    assert shown in direction.delta_at(F(1, 2))
    assert direction.delta_at(F(1, 2)).width < 1e-15
    assert direction.is_below(F(1, 2), shown + F(1, 10**9))
    assert not direction.is_below(F(1, 2), shown - F(1, 10**9))
    assert not direction.is_below(F(1, 4), F(1, 100))
    assert direction.epsilon_at(shown - F(1, 10**9)).lower == math.inf
    end = direction.epsilon_at(shown)
    assert F(1, 2) in end
    assert end.width < 1e-15
    assert direction.epsilon_at(F(99, 100)).upper == 0.0
    assert (
        GridDirection(losses=((GaussianLoss(mu_squared=1), 2),)).epsilon_at(F(0)).lower == math.inf
    )


def test_mean_and_deviation_of_a_sum() -> None:
    losses = ((GaussianLoss(mu_squared=F(1)), 3), (GaussianLoss(mu_squared=F(1, 4)), 4))
    assert GridDirection(losses=losses).mean_and_deviation() == pytest.approx((2.0, 2.0), rel=1e-3)


def test_more_than_a_lattice_bears_is_refused() -> None:
    noise = GaussianLoss(mu_squared=F(1, 10**12))
    with pytest.raises(ParameterError, match=r"^times=1000000000001 .* at most 1000000000000"):
        _Grid.near(((noise, 10**12 + 1),), -9.0, EFFORT, eps=1.0)
