"""Sums over releases on Poisson samples, against integrals on the real line in doubles."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy.special import ndtr

from dpverify.accounting.composition import _sampled
from dpverify.accounting.composition._direction import Direction
from dpverify.accounting.composition._inversion import Line
from dpverify.accounting.composition._sampled import (
    _WIDTH,
    SAMPLED_EFFORTS,
    SampledSum,
    _last_node,
    _powers,
    sampled_bounds,
    sampled_guess,
    sampled_root,
    sampled_value,
)
from dpverify.accounting.losses._normal_mixture import PowerIntegral, Window
from dpverify.accounting.losses.base import Doubles
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.accounting.losses.nodes import Nodes
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.enclosure import to_arb
from tests.helpers.profiles import day_and_night

F = Fraction


def made(mu: Fraction, rate: Fraction, *, added: bool = False) -> PoissonSampledLoss:
    return PoissonSampledLoss(base=GaussianLoss(mu_squared=mu * mu), rate=rate, added=added)


def single(mu: float, q: float, epsilon: Doubles, *, added: bool) -> Doubles:
    """Σ(p − e^ε·q)₊ of one release, at any real ε, from the place where the loss is ε."""
    odds = np.exp(-epsilon if added else epsilon)
    with np.errstate(divide="ignore"):
        z = np.log(np.maximum((odds - 1 + q) / q, 0)) / mu + mu / 2
    sign = 1 if added else -1
    noise, mixed = ndtr(sign * z), (1 - q) * ndtr(sign * z) + q * ndtr(sign * (z - mu))
    own, other = (noise, mixed) if added else (mixed, noise)
    found: Doubles = own - np.exp(epsilon) * other
    return found


def replaced(mu: float, q: float, epsilon: float) -> float:
    """Of two releases of which a record is replaced: a sum over squares of both noisy numbers."""
    x = np.linspace(-10 - mu, 10 + mu, 2001)
    middle, up, down = (np.exp(-((x - a) ** 2) / 2) / math.sqrt(2 * math.pi) for a in (0, mu, -mu))
    own, other = (1 - q) * middle + q * up, (1 - q) * middle + q * down
    loss = np.log(own / other)
    excess = np.maximum(-np.expm1(epsilon - loss[:, None] - loss), 0)
    return float(own @ excess @ own * (x[1] - x[0]) ** 2)


def twice(mu: float, q: float, epsilon: float, *, added: bool) -> float:
    """Of two releases: the mean of one's, by what the other one shows."""
    x = np.linspace(-10, 10 + mu, 60_001)
    normal, moved = (np.exp(-((x - a) ** 2) / 2) / math.sqrt(2 * math.pi) for a in (0, mu))
    mixed = (1 - q) * normal + q * moved
    loss = np.log(1 - q + q * np.exp(mu * x - mu * mu / 2))
    values = normal if added else mixed
    rest = single(mu, q, epsilon + loss if added else epsilon - loss, added=added)
    return float(np.trapezoid(values * rest, x))


@pytest.mark.parametrize("effort", day_and_night(24.0, 8.0))
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(
    ("mu", "rate", "epsilon"),
    [(F(1), F(1, 4), 0.2), (F(2), F(1, 100), 1.5), (F(1, 2), F(1, 2), 0.9)],
)
def test_two_releases_are_an_integral(
    mu: Fraction, rate: Fraction, epsilon: float, effort: float, *, added: bool
) -> None:
    """Narrow at the ε that a sum was made for, by as much as it was asked to; right beside it."""
    if added and epsilon >= -2 * math.log1p(-rate):
        return
    loss = made(mu, rate, added=added)
    with ctx.workprec(128):
        sums = SampledSum.near(loss, 2, epsilon, effort)
        for place in (epsilon, 0.99 * epsilon):
            found = sums.value(arb(place))
            exact = twice(float(mu), float(rate), place, added=added)
            assert found.lower() * (1 - 1e-7) < exact < found.upper() * (1 + 1e-7)
            if place == epsilon:
                assert found.rad() < 10 * math.exp(-effort) * found.mid()


@pytest.mark.parametrize(
    ("mu", "rate", "epsilon"),
    [(F(1), F(1, 4), 0.2), (F(2), F(1, 100), 1.5), (F(1, 2), F(1, 2), 0.9)],
)
def test_two_releases_of_which_a_record_is_replaced(
    mu: Fraction, rate: Fraction, epsilon: float
) -> None:
    loss = PoissonReplacedLoss(base=GaussianLoss(mu_squared=mu * mu), rate=rate)
    with ctx.workprec(128):
        found = SampledSum.near(loss, 2, epsilon, 24.0).value(arb(epsilon))
    assert float(found) == pytest.approx(replaced(float(mu), float(rate), epsilon), rel=1e-4)
    assert found.rad() < 1e-9 * found.mid()


@pytest.mark.parametrize("times", [30, 400])
def test_many_releases_are_an_integral_of_their_moments(times: int) -> None:
    """Along a line of its own, of moments on the real line."""
    mu, q, epsilon, c = 0.5, 0.2, 1.0, 2.0
    x = np.arange(-12, 16, 1 / 16)
    log = np.log(1 - q + q * np.exp(mu * x - mu * mu / 2))
    y = np.arange(0, 60, 1 / 16)
    s = c + 1j * y
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) / 16
    moments = (density * np.exp(np.outer(1 + s, log))).sum(axis=1)
    terms = (moments**times * np.exp(-s * epsilon) / (s * (s + 1))).real
    exact = (terms.sum() - terms[0] / 2) / 16 / math.pi
    found = sampled_value(made(F(1, 2), F(1, 5)), times, F(1))
    assert float(found) == pytest.approx(exact, rel=1e-6)
    assert found.rad() < 1e-10 * found.mid()


@pytest.mark.parametrize(
    "windows",
    [
        [None],
        [Window(end=4.0, width=0.3)],
        [Window(end=2.0, width=0.3), Window(start=2.0, end=4.0, width=0.3)],
    ],
)
def test_what_lies_beyond_the_last_node(windows: list[Window | None]) -> None:
    """At least the next nodes' moduli, and no earlier node would do."""
    loss, times, c = made(F(1), F(1, 10)), 3, 1.5
    line = Line(c=c, b=2.0, period=9.0, threshold=-6.0, most_nodes=0, most_work=0)
    with ctx.workprec(128):
        parts = [PowerIntegral.of(loss.mixture, arb(1 + c), window) for window in windows]
        last, beyond = _last_node(parts, times, line)
        assert last is not None
        step = 2 * math.pi / line.period
        nodes = Nodes.of(arb(c), arb(step), range(8 * last))
        total = abs(_powers([[acb(part.total)] for part in parts], times)[0])
        powers = _powers([part.along(nodes) for part in parts], times)
    sizes = [
        abs(complex(p)) / abs((c + 1j * k * step) * (c + 1 + 1j * k * step))
        for k, p in enumerate(powers)
    ]
    assert sum(sizes[last + 1 :]) < beyond
    assert beyond < math.exp(line.threshold) * total * (1 + 1e-6)
    if last > 16:
        assert beyond > math.exp(line.threshold - 3) * total


@pytest.mark.parametrize(
    "windows",
    [
        [Window(end=4.0, width=0.2)],
        [Window(end=2.0, width=0.1), Window(start=2.0, end=9.0, width=0.1)],
        [Window(end=2.5, width=0.1), Window(start=2.5, end=4.0, width=0.1)],
        [Window(end=0.5, width=0.1), Window(start=0.5, end=9.0, width=0.1)],
    ],
)
def test_what_windows_leave_out_is_counted(windows: list[Window]) -> None:
    """The sum alone is less by what is above x₂, or below x₁; hardly where nothing is."""
    mu, rate, epsilon = F(1), F(1, 100), F(1, 20)
    exact = twice(float(mu), float(rate), float(epsilon), added=False)
    sums = _sampled._Sum(loss=made(mu, rate), times=2, eps=float(epsilon), effort=24.0)
    with ctx.workprec(128):
        found = sums.added_up(sums.along(sums.plan(math.log(exact), windows)))
        whole, alone = (
            each.value(arb(float(epsilon)))
            for each in (found, replace(found, log_beyond=-math.inf, power=arb(0)))
        )
    assert whole.overlaps(arb(exact, 1e-7 * exact))
    assert alone.rad() < 1e-9 * alone
    assert (float(alone) < 0.999 * exact) == (windows[-1].end < 9 or windows[-1].start > 1)


def test_the_mass_beyond_a_window_is_an_integral() -> None:
    window, mu, q = Window(end=3.0, width=0.4), 0.7, 0.2
    x = np.arange(-12, 16, 1 / 64)
    law = (1 - q) * np.exp(-x * x / 2) + q * np.exp(-((x - mu) ** 2) / 2)
    exact = 5 * (law * ndtr((x - 3) / 0.4)).sum() / 64 / math.sqrt(2 * math.pi)
    sums = _sampled._Sum(loss=made(F(7, 10), F(1, 5)), times=5, eps=1.0, effort=1.0)
    assert math.exp(sums.log_beyond(window)) == pytest.approx(exact, rel=1e-8)
    assert math.exp(sums.log_beyond(window)) > exact


@pytest.mark.parametrize("small", [F(1, 10**3), F(1, 10**40)])
def test_a_difference_of_powers_keeps_its_digits(small: F) -> None:
    """Where B is small the powers agree in all digits."""
    with ctx.workprec(600):
        first, second = acb("0.9", "0.1"), acb("0.3", "-0.2") * to_arb(small)
    with ctx.workprec(64):
        (found,) = _powers([[first], [second]], 1000)
    with ctx.workprec(600):
        exact = (first + second) ** 1000 - first**1000
        assert abs(found - exact) < abs(exact) * arb(2) ** -40
        assert found.overlaps(exact)


def test_one_release_alone_and_basic_composition_bound_epsilon() -> None:
    loss = made(F(1), F(1, 10))
    delta = F(1, 1000)
    found = sampled_bounds(loss, 4, delta)
    exact, _ = sampled_root(loss, 4, delta, 1.0)
    assert found.lower < exact < found.upper
    near, _ = sampled_root(loss, 2, delta, 1.0)
    assert twice(1.0, 0.1, near, added=False) == pytest.approx(1e-3, rel=0.5)
    assert sampled_bounds(made(F(1), F(1, 10), added=True), 4, delta).lower == 0.0
    one = sampled_bounds(loss, 1, delta)
    assert one.width < 1e-12


def test_shares_of_the_least_target_are_no_targets() -> None:
    """They bound nothing, and nothing is said of a δ that nobody asked for."""
    least = F(1, 10**300)
    found = sampled_bounds(made(F(1), F(1, 10)), 4, least)
    assert 0 < found.lower < found.upper == math.inf


@pytest.mark.parametrize(
    ("sigma", "times", "rate", "delta", "epsilon"),
    [
        (F(311, 1000), 14, F(485, 10**6), F(165, 10**82), 126.575271),  # many large losses
        (F(872, 1000), 371, F(231, 10**7), F(104, 10**12), 0.018513767),  # one of them
        (F(231, 100), 9240, F(199, 10**7), F(592, 10**21), 0.006847441),  # the normal law
    ],
)
def test_formulas_guess_what_makes_delta(
    sigma: F, times: int, rate: F, delta: F, epsilon: float
) -> None:
    """An epsilon from which the first sum finds the root; a far one takes seconds."""
    guess = sampled_guess(made(1 / sigma, rate), times, delta, 3 * epsilon)
    assert guess == pytest.approx(epsilon, rel=0.02)


def test_a_ratio_that_is_flat_in_doubles_has_no_window_there() -> None:
    """Of a replaced record ln r hardly rises around 0, where it is ε."""
    loss = PoissonReplacedLoss(base=GaussianLoss(mu_squared=F(225)), rate=F(3, 10))
    found = Direction(losses=((loss, 100),)).delta_at(F(0))
    assert 0 <= found.lower <= found.upper <= 1


@pytest.mark.parametrize(
    ("kind", "sigma", "rate", "times", "delta"),
    [
        (PoissonSampledLoss, F(2947, 1000), F(395, 10**14), 2, F(478, 10**13)),
        (PoissonReplacedLoss, F(133, 100), F(16, 10**15), 163, F(119, 10**13)),
    ],
)
def test_a_target_far_above_what_samples_make_is_met_at_zero(
    kind: type[PoissonSampledLoss | PoissonReplacedLoss], sigma: F, rate: F, times: int, delta: F
) -> None:
    """Where a sum may leave out more than all of it."""
    loss = kind(base=GaussianLoss(mu_squared=1 / sigma**2), rate=rate)
    assert Direction(losses=((loss, times),)).epsilon_at(delta).upper == 0


@pytest.mark.nightly
def test_the_first_effort_is_enough_for_a_delta_of_few_releases() -> None:
    """A second sum takes as long again, or longer."""
    precision, effort = SAMPLED_EFFORTS[0]
    with ctx.workprec(precision):
        found = SampledSum.near(made(F(2), F(1, 100)), 2, 0.3, effort).value(arb(0.3))
    assert found.rad() <= _WIDTH * found.lower()
