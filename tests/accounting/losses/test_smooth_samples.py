"""Noise of a smooth density on samples: integrals along a path, beside quadrature and tails."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.losses import _ratio_integral
from dpverify.accounting.losses._ratio_integral import RatioIntegral
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.smooth_samples import (
    SmoothBatchLoss,
    SmoothLoss,
    SmoothReplacedLoss,
    SmoothSampledLoss,
)
from dpverify.errors import NumericalError
from tests.helpers.profiles import day_and_night, examples, thinned

F = Fraction


def _by_quadrature(loss: SmoothLoss, s: Any) -> Any:
    """M(s) of Laplace noise from both densities, in the noisy number z and its own cases."""
    base, rate = loss.ratio.base, loss.ratio.rate
    assert isinstance(base, LaplaceLoss)
    q, a = mp.mpf(rate.numerator) / rate.denominator, mp.mpf(float(base.shift))

    def law(z: Any, moved: Any) -> Any:
        return (1 - q) * mp.exp(-abs(z)) / 2 + q * mp.exp(-abs(z - moved)) / 2

    def other(z: Any) -> Any:
        return mp.exp(-abs(z)) / 2

    def batch(z: Any) -> Any:
        """Above a loss of 0 the removal's pair, and mirrored."""
        own = law(z, a)
        return own * (own / other(z)) ** s + other(z) * (other(z) / own) ** s

    def pair(z: Any) -> Any:
        if isinstance(loss, SmoothReplacedLoss):
            own, less = law(z, a), law(z, -a)
        else:
            own, less = law(z, a), other(z)
        if isinstance(loss, SmoothSampledLoss) and loss.added:
            own, less = less, own
        return own * (own / less) ** s

    if isinstance(loss, SmoothBatchLoss):
        above = mp.quad(batch, [a / 2, a, a + 10, mp.inf])
        spread = 1 - mp.exp(-a / 2)  # by which both sides of noise differ where it is moved
        return above + (1 - q) * spread
    return mp.quad(pair, [-mp.inf, -a - 10, -a, 0, a, a + 10, mp.inf])


LAPLACE = LaplaceLoss(shift=F(3, 2))
LOSSES = [
    SmoothSampledLoss(base=LAPLACE, rate=F(1, 10)),
    SmoothSampledLoss(base=LAPLACE, rate=F(1, 10), added=True),
    SmoothBatchLoss(base=LAPLACE, rate=F(1, 10)),
    SmoothReplacedLoss(base=LAPLACE, rate=F(1, 10)),
    SmoothSampledLoss(base=LaplaceLoss(shift=F(8)), rate=F(1, 2)),
    SmoothReplacedLoss(base=LaplaceLoss(shift=F(1, 8)), rate=F(99, 100)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("s", day_and_night(0.25 + 1.5j, 0j, 3 - 5j))
def test_transforms_agree_with_quadrature(loss: SmoothLoss, s: complex) -> None:
    with mp.workdps(20):
        truth = complex(_by_quadrature(loss, mp.mpc(s)))
    with ctx.workprec(128):
        (found,) = loss.transform([acb(s.real, s.imag)])
        assert found.rad() < 1e-18 * abs(found)
        assert complex(found) == pytest.approx(truth, rel=1e-13)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("base", "gap"),
    day_and_night((LaplaceLoss(shift=F(60)), None), (LaplaceLoss(shift=F(80)), 30), (LAPLACE, 30)),
    ids=str,
)
def test_doubles_know_what_balls_lose_where_the_rate_is_near_one(
    base: LaplaceLoss, gap: int | None
) -> None:
    """There ln(1 − q + q·e^t) cancels, which angles have to know as well as moments."""
    rate, c, y = F(1) if gap is None else 1 - F(1, 10**gap), 0.01, 4.0
    for added in (False, True):
        loss = SmoothSampledLoss(base=base, rate=rate, added=added)
        found, error = loss.characteristic(c, np.array([y]))
        with ctx.workprec(256):
            moment, whole = loss.transform([acb(c, y), acb(c)])
            assert abs(found[0] - complex(moment / whole)) <= error[0]
        assert error[0] < 1e-8


def test_points_with_one_middle_have_their_own_radius() -> None:
    loss = SmoothSampledLoss(base=LAPLACE, rate=F(1, 2))
    with ctx.workprec(128):
        sharp, wide = loss.transform([acb(1, 2), acb(arb(1, 0.25), 2)])
        for c in (0.8, 1.2):
            assert wide.overlaps(loss.transform([acb(c, 2)])[0])
        assert sharp.rad() < 1e-18


BASES = [LAPLACE, BoundedRangeLoss(epsilon=F(2)), GaussianLoss(mu_squared=F(1))]


@pytest.mark.parametrize("base", thinned(BASES, 2), ids=str)
@examples(100, day=4)
@given(rate=st.fractions(F(1, 1000), F(99, 100), max_denominator=1000), c=st.floats(0.01, 20))
def test_moments_lie_between_those_of_cells_of_tails(
    base: LaplaceLoss, rate: Fraction, c: float
) -> None:
    """Σ of P[l ≤ L < r]·e^{cl} is less than M(c), and of e^{cr} more."""
    losses: list[SmoothBatchLoss | SmoothSampledLoss] = [SmoothBatchLoss(base=base, rate=rate)]
    if not isinstance(base, GaussianLoss):
        losses += [SmoothSampledLoss(base=base, rate=rate, added=added) for added in (False, True)]
    for loss in losses:
        with ctx.workprec(128):
            most = loss.max_loss() or arb(math.log1p(float(rate) * math.expm1(30)))
            places = [arb(float(x)) for x in np.linspace(-1.01, 1.01, 201) * float(most)]
            tails = [loss.tails(place)[0] for place in places]
            masses = [here - after for here, after in pairwise(tails)]
            ends = [(arb(c) * place).exp() for place in places]
            low, high = (
                sum((mass * end for mass, end in zip(masses, side, strict=True)), arb(0))
                for side in (ends[:-1], ends[1:])
            )
            if isinstance(base, GaussianLoss):
                high = arb("inf")
            else:
                high += (1 - tails[0]) * (arb(c) * places[0]).exp()
            (moment,) = loss.transform([acb(c)])
            assert low <= moment.real <= high
            assert moment.real.rad() < 1e-15 * moment.real


@pytest.mark.parametrize(("points", "within"), [(0, True), (9, False)])
def test_a_rule_of_fewer_points_than_its_bound_is_noticed(
    points: int, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = SmoothSampledLoss(base=BoundedRangeLoss(epsilon=F(2)), rate=F(1, 2))
    with ctx.workprec(128):
        truth = loss.transform([acb(2, 30)])[0]
        rule = _ratio_integral._legendre
        monkeypatch.setattr(_ratio_integral, "_legendre", lambda n, bits: rule(n - points, bits))
        found = RatioIntegral.of(loss.ratio, arb(2), 32.0, 40.0).at(arb(30))
        assert found.overlaps(truth) is within


@pytest.mark.parametrize(
    ("share", "room"), [(0.0, 0.0), (30.0, 60.0), (0.0, 60.0)], ids=["rule", "left out", "tail"]
)
def test_each_error_of_a_coarse_path_is_counted(
    share: float, room: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By panels of few points, by panels that are left out, by what lies beyond all panels."""
    loss = SmoothBatchLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 2))
    with ctx.workprec(128):
        truth = loss.transform([acb(1, 2)])[0]
        monkeypatch.setattr(_ratio_integral, "_NEGLIGIBLE", share)
        monkeypatch.setattr(_ratio_integral, "_ROOM", room)
        found = RatioIntegral.of(loss.ratio, arb(1), 2.0, 6.0)
        assert found.at(arb(2)).overlaps(truth)
        assert found.error < found.total


def test_a_panel_s_bound_knows_what_rises_below_the_real_line() -> None:
    ratio, below = LOSSES[0].ratio, acb(0.5, -0.5)
    with ctx.workprec(128):
        path = _ratio_integral._Path.of(ratio, arb(1), 9.0, 40.0)
        bound, _ = path.size(below, arb(0.01), arb(0.01), 9.0)
        place = ratio.log_ratio(below)
        assert abs((ratio.log_density(below) + acb(2, 9) * place).exp()) <= bound


def test_the_mass_at_the_largest_loss() -> None:
    """That of noise beyond both centres."""
    half, a = F(1, 2), 1.5
    for loss, mass in (
        (SmoothSampledLoss(base=LAPLACE, rate=half), (1 + math.exp(-a)) / 4),
        (SmoothSampledLoss(base=LAPLACE, rate=half, added=True), 0.5),
        (SmoothBatchLoss(base=LAPLACE, rate=half), (1 + math.exp(-a)) / 4),
        (SmoothReplacedLoss(base=LAPLACE, rate=half), (1 + math.exp(-a)) / 4),
    ):
        most = loss.max_loss()
        assert most is not None
        assert float(loss.tails(most.lower())[0]) == pytest.approx(mass, rel=1e-14)


@pytest.mark.parametrize("shift", day_and_night(F(10**6), F(10**30)))
def test_a_path_that_is_too_long_is_refused(shift: Fraction) -> None:
    with pytest.raises(NumericalError), ctx.workprec(128):
        SmoothSampledLoss(base=LaplaceLoss(shift=shift), rate=F(1, 2)).transform([acb(1, 1e9)])
