"""Privacy filters: their costs and limits, and what an adaptive adversary can make of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpverify as dpv
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.composition.filters import (
    FILTERS,
    BasicFilter,
    Cost,
    Filter,
    GaussianFilter,
    ZCDPFilter,
)
from dpverify.accounting.losses.discrete import FiniteLoss
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import day_and_night

MILLIONTH = Fraction(1, 10**6)
ONE = Fraction(1)


def filtered(kind: type[Filter], epsilon: Fraction = ONE, delta: Fraction = MILLIONTH) -> Filter:
    return kind(epsilon=epsilon, delta=delta)


def test_a_rational_largest_loss_costs_itself() -> None:
    curves = dpv.curves
    for curve in (
        curves.Staircase(epsilon="0.1", gamma="0.3"),
        curves.BoundedRange(epsilon="0.1"),
        curves.DiscreteLaplace(scale=20, sensitivity=2),
    ):
        cost = filtered(BasicFilter).cost(curve, None)
        assert cost == {"epsilon": Fraction(1, 10), "delta": 0}


@pytest.mark.parametrize("kind", FILTERS.values())
@pytest.mark.parametrize("larger", [0, 1])
def test_limits_are_proven_one_by_one(kind: type[Filter], larger: int) -> None:
    """A budget's file states its limits: none of them may be larger than what the goal allows."""
    goal = filtered(kind)
    limits = goal.limits()
    assert goal.proves(limits)
    name = list(limits)[larger]
    more = (limits[name] + goal.delta) / 10**6
    assert not goal.proves({**limits, name: limits[name] + more})


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, "1e-6"), ("0.1", "1e-9"), (8, "1e-3"), (30, "1e-40")]
)
def test_the_gaussian_limit_is_the_least_noise(epsilon: str, delta: str) -> None:
    goal = GaussianFilter(epsilon=Fraction(epsilon), delta=Fraction(delta))
    with mpmath.workdps(60):
        mu = mpmath.sqrt(
            mpmath.mpf(goal.limits()["mu_squared"].numerator)
            / goal.limits()["mu_squared"].denominator
        )
        eps = mpmath.mpf(str(epsilon))
        spent = [
            mpmath.ncdf(m / 2 - eps / m) - mpmath.exp(eps) * mpmath.ncdf(-m / 2 - eps / m)
            for m in (mu, mu * (1 + mpmath.mpf("1e-12")))
        ]
        assert spent[0] <= mpmath.mpf(delta) < spent[1]
    assert goal.proves(goal.limits())
    assert not goal.proves({**goal.limits(), "mu_squared": goal.limits()["mu_squared"] * 2})


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5", "50", "200"])
def test_what_pure_privacy_costs(epsilon: str) -> None:
    """The μ of randomized response by its one vertex; ρ = ε·tanh(ε/2)."""
    curve = dpv.ApproxDP(epsilon=epsilon)
    with mpmath.workdps(200):
        eps = mpmath.mpf(epsilon)
        miss = 1 / (1 + mpmath.exp(eps))
        cost = filtered(ZCDPFilter).cost(curve, None)["rho"]
        rho = eps * mpmath.tanh(eps / 2)
        assert (
            rho <= mpmath.mpf(cost.numerator) / cost.denominator <= rho * (1 + mpmath.mpf("1e-10"))
        )
        cost = filtered(GaussianFilter).cost(curve, None)["mu_squared"]
        below = 1 - mpmath.mpf("1e-10")
        half = mpmath.sqrt(mpmath.mpf(cost.numerator) / cost.denominator) / 2
        tails = [mpmath.erfc(x / mpmath.sqrt(2)) / 2 for x in (half, half * below)]
        assert tails[0] <= miss < tails[1]


def test_what_noise_costs() -> None:
    gaussian, zcdp, basic = (filtered(kind) for kind in (GaussianFilter, ZCDPFilter, BasicFilter))
    noise = 3 * dpv.Gaussian(sigma=4)
    assert gaussian.cost(noise, None) == {"mu_squared": Fraction(3, 16), "delta": 0}
    assert zcdp.cost(noise, None) == {"rho": Fraction(3, 32), "delta": 0}
    discrete = dpv.DiscreteGaussian(sigma=4, sensitivity=2)
    assert zcdp.cost(discrete, None) == {"rho": Fraction(1, 8), "delta": 0}
    assert basic.cost(4 * dpv.Laplace(scale=10), None) == {"epsilon": Fraction(2, 5), "delta": 0}
    point = dpv.ApproxDP(epsilon="0.1", delta="1e-9")
    assert basic.cost(2 * point, None)["epsilon"] == Fraction(1, 5)
    assert basic.cost(point, None)["delta"] == Fraction(1, 10**9)
    # A certified ε(δ) counts as the few digits that it is calibrated for.
    calibrated = dpv.calibrate(dpv.Gaussian, epsilon=1, delta=MILLIONTH)
    assert basic.cost(calibrated, MILLIONTH) == {"epsilon": ONE, "delta": MILLIONTH}
    epsilon = basic.cost(dpv.Gaussian(sigma=3), MILLIONTH)["epsilon"]
    assert dpv.Gaussian(sigma=3).delta_at(epsilon).upper <= MILLIONTH
    assert epsilon <= Fraction(dpv.Gaussian(sigma=3).epsilon_at(MILLIONTH).upper) * (
        1 + Fraction(1, 10**11)
    )


class Unknown(PrivacyCurve):
    """A curve whose loss isn't known."""

    def _delta(self, epsilon: Fraction) -> dpv.Enclosure:
        return dpv.Gaussian(sigma=2).delta_at(epsilon)

    def _epsilon(self, delta: Fraction) -> dpv.Enclosure:
        return dpv.Gaussian(sigma=2).epsilon_at(delta)

    def _rates(self, threshold: float, noise: float) -> tuple[float, float]:
        raise NotImplementedError


@pytest.mark.parametrize("kind", FILTERS.values(), ids=FILTERS)
def test_what_has_no_finite_cost_needs_a_delta(kind: type[Filter]) -> None:
    with pytest.raises(ParameterError, match=r"^delta=None must be given.* counts as one point"):
        filtered(kind).cost(Unknown(), None)
    cost = filtered(kind).cost(Unknown(), MILLIONTH)
    assert cost["delta"] == MILLIONTH
    if kind is BasicFilter:
        with pytest.raises(ParameterError, match=r"^delta=None must be given"):
            filtered(kind).cost(dpv.Gaussian(sigma=4), None)
    else:
        point = dpv.ApproxDP(epsilon=cost_of_basic(Unknown()), delta=MILLIONTH)
        assert cost == filtered(kind).cost(point, None)
    with pytest.raises(ParameterError, match=r"^delta=.* must be larger"):
        BasicFilter(epsilon=ONE, delta=MILLIONTH).cost(
            dpv.ApproxDP(epsilon=1, delta="1e-3"), MILLIONTH
        )


def cost_of_basic(curve: PrivacyCurve) -> Fraction:
    return filtered(BasicFilter).cost(curve, MILLIONTH)["epsilon"]


def test_losses_of_one_order_are_seen_in_both() -> None:
    """Only q gives the third output: it shows everything in one order, and in the other nothing."""
    third = Fraction(1, 3)
    pairs = ((third, third), (2 * third, third), (Fraction(0), third))
    for sides in (pairs, tuple((q, p) for p, q in pairs)):
        curve = Composed(losses=((FiniteLoss(pairs=sides), 1),))
        assert filtered(BasicFilter).cost(curve, None)["delta"] == third
        assert filtered(BasicFilter).cost(curve, None)["epsilon"] >= Fraction(math.log(2))
        assert filtered(GaussianFilter).cost(curve, None)["delta"] == third


def test_slack_is_below_delta() -> None:
    kept = GaussianFilter(epsilon=ONE, delta=MILLIONTH, slack=MILLIONTH)
    with pytest.raises(ParameterError, match=r"^slack=0.000001 must be below delta=0.000001"):
        kept.limits()
    with pytest.raises(ParameterError, match="take basic composition"):
        ZCDPFilter(epsilon=ONE, delta=Fraction(0)).limits()


# An adversary who chooses each release by all outcomes before it, enumerated: at each node of a
# tree one of a few (ε, δ) that fits, by the worst mechanism there is, with its four outcomes.

POINTS = [(e, d) for e in ("0.05", "0.3", "1", "2") for d in ("0", "0.002")]
Strategy = Callable[[tuple[int, ...]], int]


def outcomes(epsilon: str, delta: str) -> Iterator[tuple[float, float]]:
    told = 1 / (1 + math.exp(-float(epsilon)))
    rest = 1 - float(delta)
    yield rest * told, rest * (1 - told)
    yield rest * (1 - told), rest * told
    if float(delta):
        yield float(delta), 0.0
        yield 0.0, float(delta)


def divergence(kind: type[Filter], strategy: Strategy, depth: int, cheap: int = 1) -> float:
    """δ at the target's ε of the whole transcript; a `cheap` filter charges a share of the cost."""
    slack = Fraction(0 if kind is BasicFilter else "0.01")
    goal = kind(epsilon=Fraction(2), delta=Fraction(1, 10), slack=slack)
    limits = goal.limits()
    costs = [goal.cost(dpv.ApproxDP(epsilon=e, delta=d), None) for e, d in POINTS]

    def excess(path: tuple[int, ...], spent: Cost, p: float, q: float) -> float:
        choice = strategy(path) % len(POINTS)
        after = {name: spent[name] + costs[choice][name] / cheap for name in limits}
        if len(path) == depth or any(after[name] > limits[name] for name in limits):
            return max(p - math.exp(2) * q, 0.0)
        return sum(
            excess((*path, number), after, p * own, q * other)
            for number, (own, other) in enumerate(outcomes(*POINTS[choice]))
        )

    return excess((), dict.fromkeys(limits, Fraction(0)), 1.0, 1.0)


@pytest.mark.parametrize("kind", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize(("depth", "examples"), day_and_night((4, 10), (7, 100)))
def test_no_strategy_exceeds_the_target(kind: type[Filter], depth: int, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.randoms(use_true_random=False))
    def check(random: object) -> None:
        salt = random.random()  # type: ignore[attr-defined]
        found = divergence(kind, lambda path: hash((salt, path)), depth)
        assert found <= 0.1 * (1 + 1e-9)

    check()


@pytest.mark.parametrize("kind", FILTERS.values(), ids=FILTERS)
def test_a_filter_that_charges_too_little_is_noticed(kind: type[Filter]) -> None:
    """Planted: a quarter of the cost. Many releases of ε = 1 then exceed the target."""
    one = POINTS.index(("1", "0"))
    assert divergence(kind, lambda _: one, 8) <= 0.1
    assert divergence(kind, lambda _: one, 8, cheap=8) > 0.1
