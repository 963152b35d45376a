"""Sums of few atoms: of equal losses on a lattice against every choice of their atoms."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._enumeration import Atoms, _power, _size
from dpverify.accounting.losses.base import Log
from dpverify.accounting.losses.discrete import (
    AtomicLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    ResponseLoss,
)
from dpverify.accounting.losses.discrete_gaussian import (
    CutDiscreteGaussianLoss,
    DiscreteGaussianLoss,
)

F = Fraction
LOSSES: list[tuple[AtomicLoss, int, int]] = [
    (DiscreteLaplaceLoss(scale=F(3, 2), sensitivity=3), 4, 13),
    (ResponseLoss(step=F(1, 3), share=F(3, 4)), 5, 11),
    (ResponseLoss(step=Log(F(3)), share=F(1)), 4, 5),
    (
        CutDiscreteGaussianLoss(
            whole=DiscreteGaussianLoss(sigma_squared=F(1, 4), sensitivity=1), reach=5
        ),
        3,
        34,
    ),
    (FiniteLoss(pairs=((F(1, 2), F(1, 4)), (F(1, 3), F(1, 3)), (F(1, 6), F(5, 12)))), 3, 10),
]


def number(ball: arb) -> mpmath.mpf:
    return mpmath.mpf(ball.mid().str(40, radius=False))


def by_place(atoms: Atoms) -> dict[str, mpmath.mpf]:
    found: defaultdict[str, mpmath.mpf] = defaultdict(mpmath.mpf)
    for weight, place in atoms:
        found[mpmath.nstr(number(place) + mpmath.mpf("1e-25"), 20)] += number(weight)
    return found


@pytest.mark.parametrize(("loss", "count", "sums"), LOSSES, ids=str)
def test_powers_are_all_choices_of_atoms(loss: AtomicLoss, count: int, sums: int) -> None:
    """Also of weights that are far below the largest one."""
    with ctx.workprec(140), mpmath.workdps(40):
        found = _power(loss, count)
        assert len(found) == _size((loss, count)) == sums
        choices = []
        for chosen in itertools.product(loss.atoms(), repeat=count):
            weight, place = arb(1), arb(0)
            for w, x in chosen:
                weight, place = weight * w, place + x
            choices.append((weight, place))
        exact, mine = by_place(choices), by_place(found)
        assert exact.keys() == mine.keys()
        for place, weight in exact.items():
            assert abs(mine[place] - weight) <= weight * mpmath.mpf("1e-30")
        assert all(w.rad() < 1e-30 * abs(w.mid()) for w, _ in found)


def test_discrete_gaussians_beside_laplace_noise_are_sharp() -> None:
    """Three of them make 100 sums, where one after another they would make 10,000."""
    together = dpv.compose(3 * dpv.DiscreteGaussian(sigma=2), dpv.Laplace(scale="4.73"))
    found = together.delta_at(1)
    assert found.width < 1e-14
    assert together.risk().tpr_at("0.01").width < 1e-12
