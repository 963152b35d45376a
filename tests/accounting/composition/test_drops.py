"""Bounded losses near the largest that they can be, on a grid of drops from it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._drops import Drops, has_drops
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.losses.base import Log, Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from tests.helpers.profiles import day_and_night

F = Fraction
BIT = ResponseLoss(step=Log(F(3)))
SKEW = FiniteLoss(pairs=((F(1, 2), F(1, 8)), (F(1, 4), F(1, 2)), (F(1, 4), F(3, 8))))


def position(keep: float, differ: float) -> list[tuple[float, float]]:
    """Loss and probability of one bit that differs with a probability."""
    odds = math.log(keep / (1 - keep))
    return [(odds, differ * keep), (0.0, 1 - differ), (-odds, differ * (1 - keep))]


def excess(atoms: list[tuple[float, float]], count: int, epsilon: float) -> float:
    sums = [(0.0, 1.0)]
    for _ in range(count):
        sums = [(x + y, p * r) for x, p in sums for y, r in atoms]
    return math.fsum(p * -math.expm1(epsilon - x) for x, p in sums if x > epsilon)


SKEW_ATOMS = [(math.log(4), 0.5), (-math.log(2), 0.25), (math.log(2 / 3), 0.25)]
CASES: list[tuple[Losses, list[tuple[float, float]], int, float]] = [
    (((BIT, 5),), position(0.75, 1.0), 5, 5 * math.log(3)),
    (((SKEW, 4),), SKEW_ATOMS, 4, 4 * math.log(4)),
    (
        ((PositionLoss(differ=F(1, 3), losses=((BIT, 1),)), 4),),
        position(0.75, 1 / 3),
        4,
        4 * math.log(3),
    ),
]


@pytest.mark.parametrize(
    ("losses", "atoms", "count", "most"), CASES, ids=["bits", "skew", "position"]
)
def test_few_atoms_by_all_their_sums(
    losses: Losses, atoms: list[tuple[float, float]], count: int, most: float
) -> None:
    """Next to the end, where the grid is finest, and as far off as ε = 0."""
    for gap in (most / 2, 1e-3):
        epsilon = most - gap
        with ctx.workprec(128):
            found = Drops(losses=losses).value(arb(epsilon))
        exact = excess(atoms, count, epsilon)
        assert found.lower() - 1e-14 < exact < found.upper() + 1e-14
        assert found.rad() < 1e-2 * gap * found.mid()


@pytest.mark.parametrize("gap", [0.9, 1e-3, 1e-9])
@pytest.mark.parametrize("count", day_and_night(2, 1, 3))
def test_laplace_noise_by_its_closed_form(count: int, gap: float) -> None:
    losses = ((LaplaceLoss(shift=F(1)), count),)
    epsilon = F(count) - F(gap)
    curve = count * dpv.Laplace(scale=1)
    with ctx.workprec(256):
        found = Drops(losses=losses).value(arb(epsilon.numerator) / epsilon.denominator)
    exact = curve.delta_at(epsilon)
    assert found.lower() < exact.upper
    assert exact.lower < found.upper()
    assert found.rad() < 2e-3 * found.mid()


def test_drops_that_end_before_the_grid_does() -> None:
    """Those of a small shift, beside a large one."""
    shifts = ((F(1, 8), 2), (F(1), 1))
    losses = tuple((LaplaceLoss(shift=shift), count) for shift, count in shifts)
    for epsilon in (F(1, 4), F(3, 4)):
        with ctx.workprec(128):
            found = Drops(losses=losses).value(arb(float(epsilon)))
        exact = Laplace.of_shifts(shifts).delta_at(epsilon)
        assert found.lower() < exact.upper
        assert exact.lower < found.upper()
        assert found.rad() < 2e-3 * found.mid()


def test_at_the_largest_loss_and_beyond_it_nothing_is_left() -> None:
    drops = Drops(losses=((LaplaceLoss(shift=F(1)), 2),))
    assert drops.value(arb(2)) == 0
    assert drops.value(arb(3)) == 0
    assert drops.value(arb(2, 1e-9)).overlaps(arb(0))


def test_which_losses_have_drops() -> None:
    assert has_drops(((BIT, 10**9),))
    assert not has_drops(((BIT, 10**9 + 1),))
    assert has_drops(((PositionLoss(differ=F(1, 3), losses=((BIT, 1),)), 2),))
    normal = GaussianLoss(mu_squared=F(1))
    assert not has_drops(((BIT, 1), (normal, 1)))
    assert not has_drops(((PositionLoss(differ=F(1, 3), losses=((normal, 1),)), 2),))
