"""Two functions of bounded frequency, one on either side of the excess, and the sums by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.accounting.composition._enumeration import Enumeration
from dpverify.accounting.composition._extremal import (
    ExtremalKernel,
    sum_in_doubles,
    sums_around,
)
from dpverify.accounting.composition._inversion import Line, PlainKernel, invert
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.losses.base import EvenHeights, Log, Losses, TransformedLoss, Transforms
from dpverify.accounting.losses.continuous import GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import FiniteLoss, ResponseLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.enclosure import to_arb
from tests.helpers.profiles import day_and_night, examples

F = Fraction
LINE = Line(c=2.0, b=6.0, period=40.0, threshold=-40.0, most_nodes=0, most_work=0)
BY_NODES = replace(LINE, b=4.0, period=20.0, threshold=-34.0, most_nodes=1 << 14, most_work=10**6)
SMALL = pytest.mark.parametrize(("c", "h"), [(0.3, 0.5), (2.0, 0.01), (30.0, 0.2)])
MAKERS = (ExtremalKernel.above, ExtremalKernel.below)
BITS: Transforms = (
    (ResponseLoss(step=Log(F(3, 2))), 3),
    (ResponseLoss(step=F(1, 3)), 4),
    (FiniteLoss(pairs=((F(1, 2), F(1, 8)), (F(1, 2), F(3, 4)), (F(0), F(1, 8)))), 2),
)
"""At most 2·3·ln(3/2) + 4/3 + 2·ln 4 = 6.5."""


def interpolated(x: float, c: float, h: float, *, above: bool) -> float:
    """G at x, by the series that defines it."""
    rates = np.array([[c * h], [(c + 1) * h]])
    theta = rates / -np.expm1(-rates)
    shift = float(np.log(theta[1] / theta[0])[0]) / h if above else 0.0
    places = np.arange(int(60 / (c * h))) + shift
    values = np.exp(-rates * places)
    slopes = rates[1] * values[1] - rates[0] * values[0]
    if not above:
        slopes[0] -= float((theta[1] - theta[0])[0])
    terms = (values[0] - values[1]) / (x - places) ** 2 + slopes / (x - places)
    return (math.sin(math.pi * (x - shift)) / math.pi) ** 2 * math.fsum(terms)


@SMALL
@pytest.mark.parametrize("above", [True, False])
def test_on_one_side_of_the_excess(c: float, h: float, above: bool) -> None:
    sign, gaps = (1 if above else -1), []
    for x in (-30.3, -2.71, -0.9, -0.31, -0.01, 0.013, 0.21, 0.49, 0.77, 1.4, 3.3, 12.6):
        excess = math.exp(-c * h * x) - math.exp(-(c + 1) * h * x) if x > 0 else 0
        gaps.append(sign * (interpolated(x, c, h, above=above) - excess))
    assert -1e-13 * h < min(gaps)
    assert max(gaps) > 1e-3 * h


@SMALL
@pytest.mark.parametrize("above", [True, False])
def test_kernel_is_the_transform(c: float, h: float, above: bool) -> None:
    """The sum over nodes is G, and what a period away it adds to it, at any place."""
    nodes = 64
    with ctx.workprec(128):
        kernel = MAKERS[not above](c, nodes * h, nodes)
    k = np.arange(nodes)
    values, _ = kernel.at(k)
    values[0] /= 2
    for x in (-7.3, 0.2, 1.7):
        found = 2 / (nodes * h) * float((values * np.exp(2j * np.pi * k * x / nodes)).real.sum())
        periods = int(8 + 60 / (nodes * c * h))
        wanted = math.fsum(
            interpolated(x + m * nodes, c, h, above=above) for m in range(-periods, periods + 1)
        )
        assert found == pytest.approx(wanted, abs=1e-4 * h)  # G is O(1/x²)


@SMALL
def test_kernel_in_doubles(c: float, h: float) -> None:
    """Values within their bounds of those at 400 bits, and their sizes below theirs."""
    nodes = 1000
    period = nodes * h
    k = np.array([0, 1, 2, 7, 100, 499, 501, 900, 998, 999])
    for make in MAKERS:
        with ctx.workprec(128):
            kernel = make(c, period, nodes)
        values, errors = kernel.at(k)
        bounds = kernel.log_bound(c, 2 * np.pi * k / period)
        for index, value, error, bound in zip(k, values, errors, bounds, strict=True):
            exact = exact_transform(c, h, int(index) / nodes, above=make is MAKERS[0])
            assert abs(complex(exact) - value) <= error < 1e-9 * abs(values[0])
            assert abs(value) <= math.exp(bound)


def exact_transform(c: float, h: float, share: float, *, above: bool) -> mpmath.mpc:
    """h·Ĝ by sums of geometric series, as they stand."""
    with mpmath.workdps(120):
        rates = [mpmath.mpf(c) * h, (mpmath.mpf(c) + 1) * h]
        theta = [v / (1 - mpmath.exp(-v)) for v in rates]
        shift = mpmath.log(theta[1] / theta[0]) / (rates[1] - rates[0]) if above else 0
        z = mpmath.exp(-2j * mpmath.pi * mpmath.mpf(share))
        series = [mpmath.exp(-v * shift) / (1 - mpmath.exp(-v) * z) for v in rates]
        values, slopes = series[0] - series[1], rates[1] * series[1] - rates[0] * series[0]
        if not above:
            slopes -= theta[1] - theta[0]
        turn = mpmath.exp(-2j * mpmath.pi * mpmath.mpf(share) * shift)
        return h * turn * ((1 - mpmath.mpf(share)) * values + slopes / (2j * mpmath.pi))


@examples(30)
@given(
    c=st.floats(0.3, 8),
    beyond=st.floats(0.2, 8),
    period=st.floats(4, 60),
    threshold=st.floats(-60, -4),
    nodes=st.integers(40, 4000),
    epsilon=st.fractions(0, 4),
)
def test_any_line_encloses(
    c: float, beyond: float, period: float, threshold: float, nodes: int, epsilon: Fraction
) -> None:
    """Whatever is left out, and however far apart the nodes are."""
    line = Line(c=c, b=c + beyond, period=period, threshold=threshold, most_nodes=0, most_work=0)
    with ctx.workprec(160):
        above, below = _around(BITS, line, nodes)
        true = Enumeration.of(BITS).value(to_arb(epsilon))
        assert above(to_arb(epsilon)).upper() >= true.lower()
        assert below(to_arb(epsilon)).lower() <= true.upper()


def test_both_gaps_are_there_next_to_an_atom() -> None:
    """Neither side is an accident of a wide ball."""
    losses: Transforms = ((ResponseLoss(step=F(1)), 2),)
    with ctx.workprec(160):
        above, below = _around(losses, LINE, 1000)
        for epsilon in (arb(0.01), arb(0.03)):  # a quarter, and three, of a step from it
            true = Enumeration.of(losses).value(epsilon)
            assert above(epsilon).lower() > true + 1e-5
            assert below(epsilon).upper() < true - 1e-5


def _around(
    losses: Transforms, line: Line, nodes: int
) -> tuple[Callable[[arb], arb], Callable[[arb], arb]]:
    found = sums_around(losses, line, nodes)
    assert found is not None
    return found[0].value, found[1].value


def test_many_laplace_scales_beside_the_closed_form() -> None:
    """Fifteen shifts, whose subsets can all be counted; the gap is of second order."""
    shifts = tuple((F(k * k + 17, 600), 1 + k % 2) for k in range(1, 16))
    losses = tuple((LaplaceLoss(shift=shift), n) for shift, n in shifts)
    line = Line(c=3.0, b=9.0, period=24.0, threshold=-50.0, most_nodes=0, most_work=0)
    gaps = []
    with ctx.workprec(128):
        for nodes in (1 << 11, 1 << 14):
            above, below = _around(losses, line, nodes)
            for epsilon in (F(0), F(1), F(2), F(3, 2)):
                true = Laplace.of_shifts(shifts).delta_at(epsilon)
                assert true.width < 1e-12
                low, high = below(to_arb(epsilon)).lower(), above(to_arb(epsilon)).upper()
                assert low <= true.upper
                assert true.lower <= high
            gaps.append(float(high - low))
    assert 32 < gaps[0] / gaps[1] < 128
    assert gaps[1] < 1e-6


@pytest.mark.parametrize(
    "loss",
    [
        LaplaceLoss(shift=F(1, 7)),
        PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 99)),
        PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 99), added=True),
        PoissonReplacedLoss(base=GaussianLoss(mu_squared=F(1)), rate=F(1, 99)),
        ResponseLoss(step=F(1, 7), share=F(2, 3)),
        FiniteLoss(pairs=[(F(k, 946), F(44 - k, 946)) for k in range(1, 44)]),
    ],
    ids=str,
)
def test_even_heights(loss: TransformedLoss) -> None:
    """Turns at heights in a row are those at the heights, and so is a loss's function."""
    heights = EvenHeights(12_345, 1001, 0.37)
    assert np.abs(heights.turns(0.9) - np.exp(0.9j * heights.y)).max() < 1e-11
    values, errors = loss.characteristic(2.0, heights.y)
    along, others = loss.characteristic_along(2.0, heights)
    assert (np.abs(values - along) <= errors + others).all()


@pytest.mark.parametrize("count", [3, 200])
def test_sums_at_even_heights_are_off_by_less_than_their_bound(count: int) -> None:
    """By far less, as all roundings rarely go one way."""
    draw = np.random.default_rng(7)
    weights = draw.normal(size=count) + 1j * draw.normal(size=count)
    places = draw.normal(size=count) + 1j * draw.exponential(size=count)
    heights = EvenHeights(0, 400, 0.37)
    found, off = heights.sum(weights, places)
    with mpmath.workdps(40):
        for k in (0, 1, 57, 399):
            y = mpmath.mpf(0.37) * k
            exact = sum(
                mpmath.mpc(w) * mpmath.exp(1j * y * mpmath.mpc(x))
                for w, x in zip(weights, places, strict=True)
            )
            error = float(abs(exact - mpmath.mpc(found[k])))
            assert error < off[k] < 1e-10 * np.abs(weights).sum()


@pytest.mark.nightly
def test_sixty_small_losses() -> None:
    """Of a millionth each, where Chernoff's bound is no guide."""
    curve = dpv.compose(*(dpv.Laplace(scale=10**6 + k * 7919) for k in range(60)))
    found = curve.epsilon_at(F(1, 10**6))
    assert 4.1441e-6 < found.lower <= found.upper < 4.1443e-6
    assert found.width < 2e-8


@pytest.mark.parametrize("scales", day_and_night(15, 30, 60))
def test_many_different_scales(scales: int) -> None:
    """As narrow as ε is asked for, in both directions of the search."""
    losses: Losses = tuple((LaplaceLoss(shift=F(1, 3 + k)), 1) for k in range(scales))
    curve = dpv.compose(*(dpv.Laplace(scale=3 + k) for k in range(scales)))
    assert curve.losses() == tuple(sorted(losses, key=repr))
    found = curve.epsilon_at(F(1, 10**6))
    assert 0 < found.width <= 2e-9 * found.upper
    assert curve.delta_at(F(found.lower)).upper >= 1e-6 >= curve.delta_at(F(found.upper)).lower


@pytest.mark.parametrize("digits", [8, 13, 20, 60])
def test_next_to_the_largest_loss_of_many(digits: int) -> None:
    """There it is the mass of that loss alone, 2⁻ⁿ, however near: as doubles they are equal."""
    shifts, gap = [F(1000 + k) for k in range(60)], F(1, 10**digits)
    curve = dpv.compose(*(dpv.Laplace(scale=1 / shift) for shift in shifts))
    found = curve.delta_at(sum(shifts) - gap)
    mass = gap / 2**60
    assert found.lower <= mass * (1 + 60 * gap)
    assert mass * (1 - gap) <= found.upper <= float(mass) * (1 + 1e-6) + 5e-324


def test_hundreds_of_millions_of_laplace_losses() -> None:
    """Their sum is nearly normal, with the variances of each; subsets of so many aren't listed."""
    scales = 10_000, 30_000
    parts = dpv.compose(*(dpv.Laplace(scale=scale) for scale in scales))
    found = (10**8 * parts).epsilon_at(F(1, 10**6))
    normal = dpv.Gaussian(sigma=1 / math.sqrt(sum(10**8 / scale**2 for scale in scales)))
    assert found.upper == pytest.approx(normal.epsilon_at(F(1, 10**6)).upper, rel=1e-4)


@pytest.mark.parametrize("times", [10**17, 2**64])
def test_round_off_of_all_is_no_answer(times: int) -> None:
    losses: Transforms = ((ResponseLoss(step=Log(F(3))), times),)
    assert sums_around(losses, LINE, 1 << 10) is None


def test_kernels_beyond_doubles_are_no_answer() -> None:
    assert sums_around(BITS, replace(LINE, period=1e200), 1 << 10) is None


@pytest.mark.parametrize("c", [0.7, 3.0])
def test_a_sum_in_doubles_is_that_of_balls(c: float) -> None:
    """Over all nodes, and those that are left out: of samples beside other noise."""
    normal = GaussianLoss(mu_squared=F(1, 16))
    losses = (
        (PoissonSampledLoss(base=normal, rate=F(1, 5)), 40),
        (PoissonReplacedLoss(base=normal, rate=F(1, 5)), 20),
        (ResponseLoss(step=F(1, 3)), 3),
    )
    line = replace(BY_NODES, c=c, b=c + 2)
    with ctx.workprec(128):
        balls, doubles = invert(losses, PlainKernel(), line), sum_in_doubles(losses, line)
        assert balls is not None
        assert doubles is not None
        for epsilon in (0.3, 1.7):
            exact, found = (sums.total(arb(epsilon))[1] for sums in (balls, doubles))
            assert found.contains(exact.mid())
            assert exact.rad() < found.rad() < 1e-9 * doubles.moment
        assert sum_in_doubles(losses, replace(line, period=1e200)) is None


def test_the_errors_of_a_sum_in_doubles_are_charged() -> None:
    """A node that is off by as much as all of them may be moves the sum to the end of its ball."""
    loss = PoissonSampledLoss(base=GaussianLoss(mu_squared=F(1, 16)), rate=F(1, 5))
    with ctx.workprec(128):
        found = sum_in_doubles(((loss, 30),), BY_NODES)
        assert found is not None
        wrong = found.weights.copy()
        wrong[0] += found.off / 1.01
        moved = replace(found, weights=wrong).total(arb(1))[1].mid()
        ball = found.total(arb(1))[1]
        assert ball.contains(moved)
        assert moved - ball.mid() > 0.5 * ball.rad()
