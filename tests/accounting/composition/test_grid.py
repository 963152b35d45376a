"""Two products on a lattice: around what closed forms say, and narrow."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._cells import Cells
from dpverify.accounting.composition._grid import GridDirection, _Grid, _product, by_the_largest
from dpverify.accounting.losses.base import Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import ResponseLoss
from dpverify.errors import ParameterError
from tests.helpers.profiles import day_and_night

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


@pytest.mark.parametrize("epsilon", [2.51, 4.0])
def test_errors_as_large_as_they_may_be_are_covered(epsilon: float) -> None:
    """In the worst direction: along the kernel by their 2-norm, and at every place alike."""
    losses, _, _, _ = CASES[1]
    with ctx.workprec(128):
        grid = _Grid.near(losses, math.log(1e-3), EFFORT, eps=epsilon)
        value, law = grid.value(arb(epsilon)), grid.high
        start = math.floor(epsilon / grid.unit) + 1
        share = -math.expm1(epsilon - start * grid.unit)
        kernel = np.zeros(len(law.folded))
        places = (start - law.first + np.arange(len(grid.kernels[0].values))) % len(kernel)
        kernel[places] = grid.kernels[0].values + share * grid.kernels[1].values
        size = 0.1 * float(np.abs(law.folded).max())
        for error, off in (
            (size * kernel / np.linalg.norm(kernel), (1.0, size)),
            (np.full(len(kernel), size), (size, math.inf)),
        ):
            folded = replace(law, folded=law.folded - error, off=off)
            found = replace(grid, high=folded).value(arb(epsilon))
            assert value.lower() < found.upper() < 1.5 * value.upper()


def test_the_mass_at_the_largest_loss_bounds_epsilon_from_below() -> None:
    """Of 30 Laplace losses and a response all of it next to the end; of one below its formula."""
    laplace, response = LaplaceLoss(shift=F(1)), ResponseLoss(step=F(1))
    with ctx.workprec(128):
        many = ((laplace, 30), (response, 1))
        assert by_the_largest(many, arb(1e-40)) == pytest.approx(31)
        assert by_the_largest(many, arb(0.74 * 2.0**-30)) == 0  # 0.731 of it is there
        for delta in (0.1, 0.2, 0.3):
            assert 0 < by_the_largest(((laplace, 1),), arb(delta)) < 1 + 2 * math.log1p(-delta)
        unbounded = (GaussianLoss(mu_squared=F(1)), 1)
        assert by_the_largest(((laplace, 30), unbounded), arb(1e-40)) == 0


def test_round_off_of_a_product_is_bounded() -> None:
    """Against the same product by one convolution after another, in more digits."""
    losses = ((GaussianLoss(mu_squared=F(1)), 6), (LaplaceLoss(shift=F(1, 2)), 3))
    unit, bits, c = 0.25, 9, 0.75
    with ctx.workprec(128):
        laws = []
        for loss, _ in losses:
            cells = Cells.of(loss, -40.0)
            cells.refine(c, 128, unit)
            laws.append(cells.above(unit))
    found = _product(laws, [6, 3], c, unit, bits)
    exact = np.zeros(1 << bits, dtype=np.longdouble)
    exact[-found.first % (1 << bits)] = 1
    for law, (_, count) in zip(laws, losses, strict=True):
        weights = law.weights * np.exp(np.longdouble(c * unit) * law.places)
        for _ in range(count):
            exact = sum(
                weight * np.roll(exact, place)
                for place, weight in zip(law.places.tolist(), weights, strict=True)
            )
    total = exact.sum()
    off = np.abs(found.folded - exact / total)
    assert math.exp(found.scale) == pytest.approx(float(total), rel=1e-9)
    assert off.max() < found.off[0] + found.relative
    assert np.linalg.norm(off) < found.off[1] + found.relative
    assert max(*found.off, found.relative) < 1e-11
    assert 1 <= found.total < 1 + 1e-6


def test_mean_and_deviation_of_a_sum() -> None:
    losses = ((GaussianLoss(mu_squared=F(1)), 3), (GaussianLoss(mu_squared=F(1, 4)), 4))
    assert GridDirection(losses=losses).mean_and_deviation() == pytest.approx((2.0, 2.0), rel=1e-3)


def test_more_than_a_lattice_bears_is_refused() -> None:
    noise = GaussianLoss(mu_squared=F(1, 10**12))
    with pytest.raises(ParameterError, match=r"^times=1000000000001 .* at most 1000000000000"):
        _Grid.near(((noise, 10**12 + 1),), -9.0, EFFORT, eps=1.0)


def _direct(sigma: int, rate: float, eps: float, kind: str) -> float:
    """δ(ε) of two releases, summing over every pair of outputs, in doubles."""
    outputs = np.arange(-8 * sigma, 8 * sigma + 2)
    p, o = (np.exp(-((outputs - move) ** 2) / (2 * sigma**2)) for move in (1, 0))
    p, o = p / p.sum(), o / o.sum()
    mixed = (1 - rate) * o + rate * p
    if kind == "batch":  # what the removal's loss is above 0, its mirror image, and the rest at 0
        up = outputs > 0
        rest = 1 - mixed[up].sum() - o[up].sum()
        own = np.concatenate([mixed[up], o[up], [rest]])
        other = np.concatenate([o[up], mixed[up], [rest]])
    else:
        own, other = (o, mixed) if kind == "added" else (mixed, o)
    loss = np.log(own) - np.log(other)
    order = np.argsort(loss)
    own, other, loss = own[order], other[order], loss[order]
    above = [np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (own, other)]
    first = np.searchsorted(loss, eps - loss)
    return float(own @ above[0][first] - math.exp(eps) * (other @ above[1][first]))


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "sigma"), day_and_night(("coin", 10**4), ("batch", 1001)))
def test_wide_discrete_gaussian_noise_on_samples_is_added_up(kind: str, sigma: int) -> None:
    noise = dpv.DiscreteGaussian(sigma=sigma)
    once = (
        noise.poisson_sampled(rate="0.5")
        if kind == "coin"
        else noise.sampled_without_replacement(size=1, out_of=2)
    )
    eps = 1.2 / sigma
    found = (2 * once).delta_at(eps)
    ways = ["added", "removed"] if kind == "coin" else [kind]
    assert found.width < 1e-5
    exact = max(_direct(sigma, 0.5, eps, way) for way in ways)
    assert found.lower * (1 - 1e-6) <= exact <= found.upper * (1 + 1e-6)
