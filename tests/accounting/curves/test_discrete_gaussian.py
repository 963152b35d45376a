"""The discrete Gaussian's curve against mpmath's sums, and against the curve that it isn't."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from flint import ctx

from dpverify.accounting import Gaussian
from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian, _added, _by_integral
from dpverify.enclosure import SquareRoot
from dpverify.errors import NumericalError, ParameterError
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import day_and_night

VARIANCES = [Fraction(1, 50), Fraction(1, 4), Fraction(1), Fraction(7, 3), Fraction(400)]
EPSILONS = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(22, 5), Fraction(12)]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(50):
        yield


def real(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def summed(variance: Fraction, sensitivity: int, epsilon: Fraction) -> Any:
    """Σ (p(y) − e^ε p(y + Δ))₊ over all y of any weight: no tails, tests or thresholds."""
    reach = int(25 * float(variance) ** 0.5) + 25
    law = {y: mpmath.exp(-mpmath.mpf(y * y) / (2 * real(variance))) for y in range(-reach, reach)}
    factor, total = mpmath.exp(real(epsilon)), mpmath.fsum(law.values())
    excess = (p - factor * law.get(y + sensitivity, 0) for y, p in law.items())
    return mpmath.fsum(e for e in excess if e > 0) / total


@pytest.mark.parametrize("sensitivity", [1, 2, 7])
@pytest.mark.parametrize("variance", VARIANCES)
def test_delta_is_the_sum_over_all_outputs(variance: Fraction, sensitivity: int) -> None:
    curve = DiscreteGaussian(sigma=SquareRoot(variance), sensitivity=sensitivity)
    for epsilon in EPSILONS:
        exact = summed(variance, sensitivity, epsilon)
        if exact < mpmath.mpf("1e-60"):  # beyond the sum's own reach
            continue
        found = curve.delta_at(epsilon)
        assert found.lower <= exact <= found.upper
        assert found.width <= 1e-13
        if not 0 < found.lower < 0.999:
            continue
        back = curve.epsilon_at(Fraction(found.upper))
        assert back.lower <= epsilon
        assert back.upper == pytest.approx(float(epsilon), rel=1e-9, abs=1e-9)
        assert back.upper - back.lower <= 1e-13 * max(back.upper, 1e-4)
        assert Fraction(curve.delta_at(Fraction(back.upper)).upper) <= Fraction(found.upper)


@pytest.mark.parametrize("tries", day_and_night(80, 400))
def test_little_noise_has_an_epsilon_at_every_delta(tries: int) -> None:
    """δ(ε) is nearly a step function there, and a double may lie on the wrong side of a step."""
    generator = random.Random(4)
    for _ in range(tries):
        variance = Fraction(10 ** generator.uniform(-3, -1))
        target = Fraction(10.0 ** -generator.uniform(0, 30))
        curve = DiscreteGaussian(sigma=SquareRoot(variance), sensitivity=generator.randint(1, 3))
        epsilon = curve.epsilon_at(target)
        assert epsilon.width <= 1e-13 * max(epsilon.upper, 1e-4)
        assert Fraction(curve.delta_at(Fraction(epsilon.upper)).upper) <= target


@pytest.mark.parametrize("first", [1, 50, 700])
@pytest.mark.parametrize("variance", [Fraction(60_000), Fraction(150_001, 2)])
def test_many_terms_and_their_integral_agree(variance: Fraction, first: int) -> None:
    """Where the sum is left for Euler and Maclaurin's formula."""
    with ctx.workprec(100):
        one, other = _added(variance, first), _by_integral(variance, first)
    assert one.overlaps(other)
    assert max(ball.rad() / abs(ball) for ball in (one, other)) < 2.0**-80


def test_a_sum_of_many_terms_is_the_curve() -> None:
    variance = Fraction(150_001, 2)
    curve = DiscreteGaussian(sigma=SquareRoot(variance), sensitivity=300)
    found, exact = curve.delta_at(1), summed(variance, 300, Fraction(1))
    assert found.lower <= exact <= found.upper
    assert found.width <= 1e-13


@pytest.mark.parametrize("scale", [10**6, 10**15, 2**1074])
def test_a_fine_grid_is_near_the_continuous_one(scale: int) -> None:
    """The tails differ by half a step's mass."""
    fine = DiscreteGaussian(sigma=scale, sensitivity=scale)
    curve = Gaussian(sigma=1)
    for epsilon in (0, 1, 6):
        found = fine.delta_at(epsilon)
        assert found.upper == pytest.approx(
            curve.delta_at(epsilon).upper, rel=max(8 / scale, 1e-13)
        )
        assert found.width <= 1e-13
    assert fine.epsilon_at(1e-300).upper == pytest.approx(curve.epsilon_at(1e-300).upper, rel=1e-5)


def test_it_is_not_the_continuous_curve() -> None:
    whole = DiscreteGaussian(sigma=1)
    wrong = Gaussian(sigma=1)
    for epsilon, excess in ((0, 1.04), (1, 1.11), (2, 1.19), (Fraction("4.4"), 1.51)):
        ratio = whole.delta_at(epsilon).lower / wrong.delta_at(epsilon).upper
        assert ratio == pytest.approx(excess, abs=0.006)


def test_delta_falls_in_epsilon_and_epsilon_in_delta() -> None:
    curve = DiscreteGaussian(sigma=SquareRoot(Fraction(3, 2)), sensitivity=2)
    deltas = [curve.delta_at(Fraction(n, 20)).upper for n in range(200)]
    assert deltas == sorted(deltas, reverse=True)
    epsilons = [curve.epsilon_at(10.0**-n).upper for n in range(1, 300, 13)]
    assert epsilons == sorted(epsilons)
    assert curve.epsilon_at(0.99) == curve.epsilon_at(0.999)
    assert curve.epsilon_at(0.99).upper == 0
    assert curve.delta_at(10**6).lower == 0 < curve.delta_at(10**6).upper < 1e-320


def test_rates_are_the_tails() -> None:
    curve: PrivacyCurve = DiscreteGaussian(sigma=1)
    assert curve.rates(float("-inf")) == (1, 1)
    assert curve.rates(float("inf")) == (0, 0)
    own, other = curve.rates(0.5)  # y ≥ 0, against y ≥ 1
    law = {y: mpmath.exp(-mpmath.mpf(y * y) / 2) for y in range(-20, 21)}
    total = mpmath.fsum(law.values())
    assert own == pytest.approx(float(sum(p for y, p in law.items() if y >= 0) / total), rel=1e-14)
    assert other == pytest.approx(1 - own, rel=1e-14)
    assert curve.rates(0.6, noise=0.5)[0] < curve.rates(0.6)[0]
    assert hash(curve) == hash(DiscreteGaussian(sigma=1))


def test_noise_that_is_nearly_none_is_not_summed_for_ever() -> None:
    for options in ({"sigma": "1e-30"}, {"sigma": 1, "sensitivity": 10**30}):
        with pytest.raises(NumericalError, match="stays open"):
            DiscreteGaussian(**options).delta_at(1)


@pytest.mark.parametrize("sigma", ["1e400", "1e300", "1e-60", "1e-400"])
def test_what_no_double_holds_is_not_composed(sigma: str) -> None:
    with pytest.raises(ParameterError, match=r"sigma=.* must be from 1e-50 to 1e50"):
        (2 * DiscreteGaussian(sigma=sigma)).delta_at(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 0}, "sigma=0 must be positive"),
        ({"sigma": "one"}, "sigma=one must be a finite real number"),
        ({"sigma": float("nan")}, "sigma=nan"),
        ({"sigma": 1, "sensitivity": 0}, "sensitivity=0 must be at least 1"),
        ({"sigma": 1, "sensitivity": 1.5}, r"sensitivity=1\.5 must be a whole number"),
    ],
)
def test_what_is_outside_its_domain_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DiscreteGaussian(**options)
    curve = DiscreteGaussian(sigma=0.5)
    assert curve.sigma_squared == Fraction(1, 4)
    with pytest.raises(ParameterError, match="epsilon=-1"):
        curve.delta_at(-1)
