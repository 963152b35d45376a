"""Laws along rays, against the tails of the losses and against themselves elsewhere."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import acb, arb, ctx

from dpverify.accounting.losses._ray_laws import ray_law
from dpverify.accounting.losses.base import TailedLoss
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.accounting.losses.smooth_samples import SmoothBatchLoss

KINDS = (SmoothBatchLoss, PoissonReplacedLoss, PoissonSampledLoss)
PLACES = ("1e-6", "0.003", "0.4", "3")
STEP = arb(2) ** -60


def made(kind: type, mu: str = "1.5", rate: str = "0.01") -> TailedLoss:
    found = kind(base=GaussianLoss(mu_squared=Fraction(mu) ** 2), rate=Fraction(rate))
    assert isinstance(found, TailedLoss)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mu", ["0.2", "1.5", "3"])
@pytest.mark.parametrize("place", PLACES)
def test_density_is_what_tails_lose(kind: type, mu: str, place: str) -> None:
    with ctx.workprec(512):
        loss, x = made(kind, mu), arb(place)
        law = ray_law(loss)
        assert law is not None
        above, below = (loss.tails(x + side * x * STEP)[0] for side in (-1, 1))
        lost = (above - below) / (2 * x * STEP)
        assert abs(law.log_density(acb(x)).exp() / lost - 1) < arb(2) ** -90


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("turn", [acb(1), acb(3, 1), acb(1, 1), acb(1, 2)])
def test_slope_is_the_densitys(kind: type, place: str, turn: acb) -> None:
    with ctx.workprec(512):
        law = ray_law(made(kind))
        assert law is not None
        x = arb(place) * turn
        slope = law.slope((-x).exp())
        logs = [law.log_density(x * (1 + side * STEP)) for side in (-1, 1)]
        quotient = (logs[1] - logs[0]) / (2 * x * STEP)
        assert abs(quotient - slope.alpha * x - slope.beta) < abs(quotient) * arb(2) ** -90


@pytest.mark.parametrize("kind", KINDS)
def test_other_side_has_the_rest_of_the_mass(kind: type) -> None:
    with ctx.workprec(128):
        loss = made(kind)
        law = ray_law(loss)
        assert law is not None
        after, before = (loss.tails(side * arb(2) ** -90)[0] for side in (1, -1))
        assert abs(before - after - law.atom()) < arb(2) ** -70
        if not law.mirrored:
            z = arb("0.7")
            y, log = law.below(acb(z))
            # In z, so many tails are gained as y falls.
            near, far = (
                loss.tails(law.below(acb(z + side * z * arb(2) ** -40))[0].real)[0]
                for side in (-1, 1)
            )
            assert y.real < 0
            assert abs(log.exp() / ((far - near) / (2 * z * arb(2) ** -40)) - 1) < arb(2) ** -60


def test_other_losses_have_none() -> None:
    normal = GaussianLoss(mu_squared=Fraction(1))
    assert ray_law(normal) is None
    assert ray_law(PoissonSampledLoss(base=normal, rate=Fraction(1, 2))) is None
    assert ray_law(PoissonSampledLoss(base=normal, rate=Fraction(1, 9), added=True)) is None
    laplace = SmoothBatchLoss(base=LaplaceLoss(shift=Fraction(1)), rate=Fraction(1, 9))
    assert ray_law(laplace) is None
