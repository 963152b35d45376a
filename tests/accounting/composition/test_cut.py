"""Gaussian noise on samples without its tails, also discrete, beside what knows all of it."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from flint import acb, arb, ctx

import dpverify as dpv
from dpverify.accounting.composition._direction import (
    CutDirection,
    Direction,
    TailedDirection,
    direction_of,
    without_tails,
)
from dpverify.accounting.composition._grid import GridDirection
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.discrete_pair import DiscretePair
from dpverify.accounting.losses.base import EvenHeights, Losses
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete_gaussian import (
    CutDiscreteGaussianLoss,
    DiscreteGaussianLoss,
)
from dpverify.accounting.losses.discrete_samples import (
    DiscreteBatchLoss,
    DiscreteSampledLoss,
    cut_discrete,
)
from dpverify.accounting.losses.poisson_sampled import PoissonSampledLoss
from dpverify.accounting.losses.smooth_samples import CutLoss, SmoothBatchLoss
from dpverify.enclosure import Enclosure
from tests.helpers.profiles import day_and_night
from tests.helpers.sampled_oracle import SampledOracle
from tests.helpers.sampled_pairs import Batch, Normal, Removal

NORMAL = GaussianLoss(mu_squared=Fraction(1))
WHOLE = DiscreteGaussianLoss(sigma_squared=1, sensitivity=1)


def _cut(sigma: str, rate: str, times: int, delta: str, *, added: bool) -> CutDirection:
    base = GaussianLoss(mu_squared=1 / Fraction(sigma) ** 2)
    loss = PoissonSampledLoss(base=base, rate=rate, added=added)
    direction = direction_of(((loss, times),))
    assert isinstance(direction, Direction)
    found = without_tails(direction.losses, Fraction(delta))
    assert found is not None
    return found


@pytest.mark.parametrize("added", day_and_night(True, False))
@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta"),
    day_and_night(
        ("1", "0.01", 1000, "1e-6"),
        ("0.7", "0.1", 20, "1e-12"),
        ("2", "0.5", 300, "1e-8"),
        ("1", "1e-3", 10**4, "1e-5"),
    ),
)
def test_little_is_lost(sigma: str, rate: str, times: int, delta: str, added: bool) -> None:
    cut = _cut(sigma, rate, times, delta, added=added)
    found, most = cut.epsilon_at(Fraction(delta)), Fraction(delta)
    loss = next(iter(cut.whole.losses))[0]
    assert isinstance(loss, CutLoss)
    truth = direction_of(((loss.whole, times),)).epsilon_at(most)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.width < 1e-6
    assert cut.delta_at(Fraction(found.lower)).upper >= most
    assert cut.delta_at(Fraction(found.upper)).lower <= most


@pytest.mark.parametrize(
    ("pair", "times", "delta"),
    day_and_night(
        (Removal(Normal(1 / 8), 0.00007), 40, 9e-70),
        (Batch(Normal(1 / 8), 0.0014), 54, 3.87e-4),
        (Removal(Normal(1 / 32), 0.00005), 23, 3.85e-8),
    ),
)
def test_samples_that_are_nearly_normal_without_tails_are_asked_so_first(
    pair: Removal | Batch, times: int, delta: float
) -> None:
    """Beside lattices; with all tails they are 1e-7 to 1e-12 wide, after seconds."""
    noise, rate = dpv.Gaussian(sigma=round(1 / pair.noise.a)), Fraction(pair.q)
    one = (
        noise.poisson_sampled(rate=rate)
        if isinstance(pair, Removal)
        else noise.sampled_without_replacement(size=rate.numerator, out_of=rate.denominator)
    )
    found = (times * one).epsilon_at(delta)
    low, high = SampledOracle(pair, times, 1 << 11).epsilon(delta)
    assert low <= found.upper
    assert found.lower <= high
    assert found.width < 1e-14


@pytest.mark.parametrize("rate", ["1e-25", "1e-3", "0.5"])
@pytest.mark.parametrize("times", [2, 7])
def test_laws_that_are_close_need_no_epsilon(rate: str, times: int) -> None:
    """Distances in total variation add up; of one release it is q(2Φ(μ/2) − 1)."""
    curve = times * dpv.Gaussian(sigma=1).poisson_sampled(rate=rate)
    assert isinstance(curve, Composed)
    with mp.workdps(40):
        distance = times * mp.mpf(rate) * (2 * mp.ncdf(0.5) - 1)
        if distance < 0.9:
            most = Fraction(str(mp.nstr(distance * (1 + mp.mpf(10) ** -20), 30)))
            assert curve._is_hardly_seen(most)
            assert curve.epsilon_at(most) == Enclosure(0.0, 0.0)
    assert not curve._is_hardly_seen(Fraction(1, 10**30))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sigma", "times", "delta"), [(1.0, 10**8, 1e-6), (1.0, 10**9, 1e-6), (2.0, 10**7, 1e-8)]
)
def test_rates_so_small_that_sums_are_nearly_normal(sigma: float, times: int, delta: float) -> None:
    """At q = 10⁻⁹ the sum has the variance Tq²(e^{μ²} − 1), and next to no skewness."""
    training = times * dpv.Gaussian(sigma=sigma).poisson_sampled(rate="1e-9")
    found = training.epsilon_at(delta)
    assert found.width < 1e-9
    spread = 1e-9 * math.sqrt(times * math.expm1(sigma**-2))
    z = found.upper / spread - spread / 2
    near = spread * (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / 2**0.5) / 2)
    assert near == pytest.approx(delta, rel=1e-2)


def test_what_is_lost_is_the_noise_outside() -> None:
    """By both normal laws of the noise's loss."""
    loss = PoissonSampledLoss(base=NORMAL, rate="0.1")
    with ctx.workprec(128), mp.workdps(25):
        found, lost = CutLoss.of(loss, arb("1e-9")) or pytest.fail("nothing was cut")
        low, high = found.ends
        own, other = (
            mp.ncdf(low, middle, 1) + mp.ncdf(-high, -middle, 1)
            for middle in (mp.mpf("0.5"), mp.mpf("-0.5"))
        )
        assert float(lost) == pytest.approx(float(own / 10 + other * 9 / 10), rel=1e-12)
        moment = found.transform([acb(0)])[0].real
        assert (1 - moment).overlaps(lost) or abs(1 - moment - lost) < 1e-20
    assert lost < 1e-9
    batch = SmoothBatchLoss(base=NORMAL, rate=Fraction(1, 10))
    with ctx.workprec(128):
        cut, lost = CutLoss.of(batch, arb("1e-9")) or pytest.fail("nothing was cut")
        assert abs(1 - cut.transform([acb(0)])[0].real - lost) < 1e-20
        assert CutLoss.of(SmoothBatchLoss(base=LaplaceLoss(shift=1), rate="0.1"), arb(1)) is None


def test_of_other_noise_nothing_is_cut() -> None:
    direction = direction_of((dpv.Laplace(scale=1).poisson_sampled(rate="0.1").losses()[0],) * 2)
    assert isinstance(direction, Direction)
    assert without_tails(direction.losses, Fraction(1, 10**6)) is None


@pytest.mark.nightly
def test_a_cut_that_forgets_what_it_loses_is_noticed() -> None:
    """Cut where a tenth of δ is lost, with and without counting it."""
    base, rate, delta = NORMAL, Fraction(1, 100), Fraction(1, 10**6)
    loss = PoissonSampledLoss(base=base, rate=rate)
    truth = (1000 * dpv.Gaussian(sigma=1).poisson_sampled(rate=rate)).epsilon_at(delta)
    with ctx.workprec(128):
        found, lost = CutLoss.of(loss, arb("1e-10")) or pytest.fail("nothing was cut")
    whole = Direction(losses=((found, 1000),))
    honest = CutDirection(whole=whole, beyond=1000 * lost).epsilon_at(delta)
    assert honest.lower <= truth.lower <= truth.upper <= honest.upper
    assert not truth.upper <= CutDirection(whole=whole, beyond=arb(0)).epsilon_at(delta).upper


def _on_sample(sigma: str, times: int, rate: str, *, batch: bool = False) -> Losses:
    noise = dpv.DiscreteGaussian(sigma=sigma)
    if batch:
        size, out_of = Fraction(rate).as_integer_ratio()
        one = noise.sampled_without_replacement(size=size, out_of=out_of)
    else:
        one = noise.poisson_sampled(rate=rate)
    ((loss, _),) = one.losses()
    return ((loss, times),)


@pytest.mark.parametrize("batch", day_and_night(False, True))
@pytest.mark.parametrize(
    ("sigma", "times", "rate", "delta"),
    day_and_night(
        ("3", 1000, "0.001", "1e-6"),
        ("0.948", 189, "0.103", "3.2e-12"),
        ("8.822", 7519, "0.0426", "1.66e-8"),
        ("4", 4033, "1.4e-5", "1.6e-12"),
        ("100", 1000, "0.01", "1e-9"),
    ),
)
def test_finitely_many_outputs_say_more_of_discrete_noise_than_a_lattice(
    sigma: str, times: int, rate: str, delta: str, batch: bool
) -> None:
    losses, most = _on_sample(sigma, times, rate, batch=batch), Fraction(delta)
    cut = without_tails(losses, most)
    assert cut is not None
    found, wide = cut.epsilon_at(most), GridDirection(losses=losses).epsilon_at(most)
    assert wide.lower <= found.upper
    assert found.lower <= wide.upper
    assert found.width < 1e-7 < wide.width
    assert TailedDirection(losses=losses).epsilon_at(most) == found
    value = TailedDirection(losses=losses).delta_at(Fraction(found.upper))
    assert value.lower <= most
    assert value.width < 1e-5


@pytest.mark.parametrize("delta", day_and_night("1e-300", "1e-120"))
def test_a_delta_that_a_lattice_only_bounds(delta: str) -> None:
    """What is left out is a small share of it, and not of the bound."""
    losses = _on_sample("30", 100, "0.3")
    direction = TailedDirection(losses=losses)
    found = direction.delta_at(Fraction(direction.epsilon_at(Fraction(delta)).upper))
    assert found.lower <= Fraction(delta)
    assert found.width < 1e-5


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("epsilon", [0.02, 0.3])
def test_three_discrete_releases_on_samples_by_all_their_outputs(
    added: bool, epsilon: float
) -> None:
    """Of σ = 1, each at −16 to 17: 39,304 sums of logarithms."""
    y = np.arange(-16.0, 18.0)
    noise = np.exp(-(y**2) / 2)
    noise /= noise.sum()
    moved = np.exp(-((y - 1) ** 2) / 2)
    moved /= moved.sum()
    mixed = 0.9 * noise + 0.1 * moved
    p, q = (noise, mixed) if added else (mixed, noise)
    own, other = (np.einsum("i,j,k->ijk", law, law, law) for law in (p, q))
    truth = math.fsum(np.maximum(own - math.exp(epsilon) * other, 0).ravel())
    ((loss, times),) = _on_sample("1", 3, "0.1")
    losses = ((loss.reverse() if added else loss, times),)
    cut = without_tails(losses, Fraction(1, 10**6))
    assert cut is not None
    found = cut.delta_at(Fraction(epsilon))
    assert found.width < 1e-7
    assert found.lower * (1 - 1e-12) <= truth <= found.upper * (1 + 1e-12)


@pytest.mark.parametrize("move", [1, 3])
def test_no_output_is_left_out_in_vain(move: int) -> None:
    whole = DiscreteGaussianLoss(sigma_squared=4, sensitivity=move)
    with ctx.workprec(128):
        cut = CutDiscreteGaussianLoss.of(whole, arb("1e-9")) or pytest.fail("nothing was cut")
        less = CutDiscreteGaussianLoss(whole=whole, reach=cut.reach - 1)
        assert cut.lost() <= arb("1e-9") < less.lost()
        samples = DiscreteSampledLoss(base=cut, rate="0.1"), DiscreteBatchLoss(base=cut, rate="0.1")
        for loss in (cut, *samples):
            left = 1 - loss.transform([acb(0)])[0].real
            assert left < cut.lost() * (1 + arb("1e-15"))
        reversed_ = cut.transform([acb(-3)])[0].real  # M(−1 − s) is M(s): its own reverse
        assert reversed_.overlaps(cut.transform([acb(2)])[0].real)
    assert CutDiscreteGaussianLoss.of(whole, arb(0)) is None
    wide = DiscreteGaussianLoss(sigma_squared=10**8, sensitivity=1)
    assert CutDiscreteGaussianLoss.of(wide, arb("1e-9")) is None


@pytest.mark.parametrize("epsilon", ["0.5", "12"])
def test_discrete_noise_next_to_a_coin_is_a_finite_sum(epsilon: str) -> None:
    """Whose losses are on no lattice with it: without its tails, to the last digits."""
    with mp.workdps(40):
        variance, keep, outputs = mp.mpf("0.49"), mp.mpf("0.7"), range(-40, 42)
        laws = [[mp.exp(-((y - move) ** 2) / (2 * variance)) for y in outputs] for move in (1, 0)]
        one, other = ([p / sum(law) for p in law] for law in laws)
        coin = [(keep, 1 - keep), (1 - keep, keep)]
        truth = sum(
            max(p * a - mp.exp(mp.mpf(epsilon)) * q * b, 0)
            for p, q in zip(one, other, strict=True)
            for a, b in coin
        )
        curve = dpv.DiscreteGaussian(sigma="0.7") + dpv.RandomizedResponse(keep="0.7")
        found = curve.delta_at(epsilon)
        assert found.lower <= truth <= found.upper
        assert found.width <= 1e-14
    back = curve.epsilon_at(found.upper)
    assert back.lower <= Fraction(epsilon) * (1 + Fraction(1, 10**14))
    assert back.upper >= Fraction(epsilon) * (1 - Fraction(1, 10**13))


def test_discrete_noise_next_to_an_infinite_loss_keeps_its_mass() -> None:
    """Exactly at the mass no ε is enough; and an ε beyond doubles is beyond all other losses."""
    mass = Fraction(1, 10)
    pair = DiscretePair(p=["0.6", "0.3", "0.1", "0"], q=["0.3", "0.6", "0", "0.1"])
    curve = dpv.DiscreteGaussian(sigma=2) + pair
    assert curve.epsilon_at(mass).lower == math.inf
    assert curve.delta_at(10**3).lower == pytest.approx(0.1)
    assert (3 * dpv.Laplace(scale=1)).delta_at(10**400).upper == 0


def test_outputs_that_are_forgotten_are_noticed() -> None:
    """Cut where a tenth of δ is lost, with and without counting it."""
    delta, ((loss, times),) = Fraction(1, 10**6), _on_sample("1", 100, "0.1")
    truth = (without_tails(((loss, times),), delta) or pytest.fail("nothing")).epsilon_at(delta)
    with ctx.workprec(128):
        found, lost = cut_discrete(loss, arb("1e-9")) or pytest.fail("nothing was cut")
    whole = Direction(losses=((found, times),))
    honest = CutDirection(whole=whole, beyond=times * lost).epsilon_at(delta)
    assert honest.lower <= truth.lower <= truth.upper <= honest.upper
    assert not truth.upper <= CutDirection(whole=whole, beyond=arb(0)).epsilon_at(delta).upper


def test_what_is_no_law_has_no_bound_from_its_complement() -> None:
    """1 − δ is what the laws leave, not what outputs that are left do."""
    ((loss, times),) = _on_sample("0.1", 1000, "0.9")
    with ctx.workprec(128):
        found, _ = cut_discrete(loss, arb("1e-30")) or pytest.fail("nothing was cut")
    assert Direction(losses=((found, times),))._far_above(Fraction(1)) == 0.0
    whole = Direction(losses=((DiscreteGaussianLoss(sigma_squared="0.01", sensitivity=1), times),))
    assert whole._far_above(Fraction(1)) > 0.99


def test_sums_of_many_atoms_as_products_of_matrices() -> None:
    """Within their bound of the sum in 40 digits."""
    with ctx.workprec(128):
        cut = CutDiscreteGaussianLoss.of(WHOLE, arb("1e-60")) or pytest.fail("nothing was cut")
    loss = DiscreteSampledLoss(base=cut, rate="0.1")
    heights = EvenHeights(3, 50, 0.37)
    values, bound = loss.characteristic_along(2.0, heights)
    others, _ = loss.characteristic(2.0, heights.y)
    assert np.all(np.abs(values - others) < 2 * bound)
    assert np.any(values != others)  # another way
    with ctx.workprec(160):
        points = [acb(2, float(y)) for y in heights.y]
        least = loss.transform([acb(2)])[0]
        for value, off, exact in zip(values, bound, loss.transform(points), strict=True):
            assert abs(acb(complex(value)) - exact / least) <= off
    assert bound.max() < 1e-10
