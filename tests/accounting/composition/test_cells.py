"""Laws on a lattice, one above and one below the pair whose tails are known."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx

from dpverify.accounting.composition._cells import Cells, Law, _floor
from dpverify.accounting.losses.base import TailedLoss
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss
from dpverify.errors import NumericalError
from tests.helpers.profiles import crossed

F = Fraction
NORMAL, LAPLACE = GaussianLoss(mu_squared=F(1)), LaplaceLoss(shift=F(3, 2))
LOSSES: list[TailedLoss] = [
    NORMAL,
    LAPLACE,
    BoundedRangeLoss(epsilon=F(2)),
    ResponseLoss(step=F(4, 3), share=F(1, 2), infinity_mass=F(1, 10)),
    FiniteLoss(pairs=((F(1, 2), F(1, 8)), (F(1, 2), F(7, 8)))),
    SampledLoss(base=LAPLACE, rate=F(1, 4)),
    SampledLoss(base=NORMAL, rate=F(1, 4)),
    SampledLoss(base=NORMAL, rate=F(1, 4), added=True),
    BatchLoss(base=NORMAL, rate=F(1, 4)),
    DiscreteGaussianLoss(sigma_squared=F(9), sensitivity=2),
    ReplacedSampleLoss(base=NORMAL, rate=F(1, 4)),
]
UNIT = 2.0**-6


def made(loss: TailedLoss, log_tail: float = -40.0, cells: int = 1 << 10) -> Cells:
    found = Cells.of(loss, log_tail)
    found.refine(1.0, cells, UNIT)
    return found


def excess(law: Law, epsilon: float) -> float:
    """Σ w(1 − e^{ε − x})₊ of the finite places."""
    return float(law.weights @ np.maximum(-np.expm1(epsilon - law.places * UNIT), 0))


@pytest.mark.parametrize(("log_tail", "loss"), crossed([-40.0, -2.0], LOSSES), ids=str)
def test_one_law_dominates_and_one_is_dominated(loss: TailedLoss, log_tail: float) -> None:
    """Also where much of the loss lies beyond all cells; nothing is far off where little does."""
    with ctx.workprec(128):
        cells = made(loss, log_tail)
        above, below = cells.above(UNIT), cells.below(UNIT)
        escaping = float(loss.infinity_mass)
        for epsilon in (-1.31, -0.4, 0.007, 0.3, 0.77, 1.2, 2.6, 4.9):
            own, other = loss.tails(arb(epsilon))
            exact = float(own - arb(epsilon).exp() * other) - escaping
            most, least = excess(above, epsilon) + above.infinite, excess(below, epsilon)
            assert least - 1e-13 < exact < most + 1e-13
            if log_tail == -40:
                assert most - least < 3 * UNIT


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_both_sides_masses_stay(loss: TailedLoss) -> None:
    with ctx.workprec(128):
        cells = made(loss)
        above, below = cells.above(UNIT), cells.below(UNIT)
        finite = 1 - float(loss.infinity_mass)
        _, least = loss.tails(arb(-100))
        for law in (above, below):
            assert law.weights.sum() == pytest.approx(finite, rel=1e-12)
        q = float(above.weights @ np.exp(-above.places * UNIT))
        assert q == pytest.approx(float(least), rel=1e-9)
        assert above.infinite < 1e-17
        assert below.infinite == 0


@pytest.mark.parametrize("loss", [NORMAL, BoundedRangeLoss(epsilon=F(2))], ids=str)
def test_smooth_laws_are_off_by_squares_of_the_unit(loss: TailedLoss) -> None:
    """Only there can neighbours be merged onto the lattice without moving them down."""
    with ctx.workprec(128):
        cells = made(loss, cells=1 << 12)
        above, below = cells.above(UNIT), cells.below(UNIT)
    for epsilon in (0.1, 0.5, 1.3):
        assert excess(above, epsilon) - excess(below, epsilon) < UNIT**2


def test_cells_are_halved_where_it_helps_and_no_further_than_the_unit() -> None:
    with ctx.workprec(128):
        few, many = made(NORMAL, cells=64), made(NORMAL, cells=1 << 16)
        assert len(few.tails) == 64
        widths = np.diff(sorted(many.tails))
        assert UNIT <= widths.min() < 2 * UNIT
        middle = [right - left for left, right in pairwise(sorted(few.tails)) if abs(left) < 1]
        assert max(middle) < 0.51 < np.diff(sorted(few.tails)).max()
        assert few.tails[0.0][0].overlaps(NORMAL.tails(arb(0))[0])


@pytest.mark.parametrize("log_tail", [-2.0, -40.0, -300.0])
def test_cells_end_where_little_lies_beyond(log_tail: float) -> None:
    """And half of the way there it isn't little."""
    with ctx.workprec(128):
        end = max(Cells.of(NORMAL, log_tail).tails)
        assert NORMAL.tails(arb(end))[0] < arb(log_tail).exp()
        low = max(math.exp(min(log_tail, -45.0)), 2.0**-100)
        assert 1 - NORMAL.tails(arb(-end))[1] < low
        high, below = NORMAL.tails(arb(end / 2))[0], 1 - NORMAL.tails(arb(-end / 2))[1]
        assert high >= arb(log_tail).exp() or below >= low


def test_moments_for_planning() -> None:
    """Of a normal law with mean ½ and variance 1, by the middles of its cells."""
    with ctx.workprec(128):
        cells = made(NORMAL)
        c = np.array([0.5, 2.0])
        assert cells.log_moment(c) == pytest.approx(c * (c + 1) / 2, rel=1e-3)
        assert cells.mean_and_variance() == pytest.approx((0.5, 1.0), rel=1e-3)
        assert cells.below(UNIT).log_moment(c, UNIT) == pytest.approx(c * (c + 1) / 2, rel=1e-3)


def test_a_place_is_never_rounded_up() -> None:
    with ctx.workprec(128):
        for bits in (3, 40, 49):
            place = _floor(arb("0.1"), 2.0**-bits)
            assert 0 <= Fraction(1, 10) - Fraction(place) < Fraction(1, 2**bits)
        with pytest.raises(NumericalError, match="is not resolved in units"):
            _floor(arb("0.1"), 2.0**-60)
