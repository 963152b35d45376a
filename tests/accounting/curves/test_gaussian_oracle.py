"""The accountant's Gaussian curve against a naive one in sixty digits and more."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpverify.accounting.curves.gaussian import delta_gaussian, epsilon_gaussian, sigma_gaussian
from dpverify.enclosure import SquareRoot
from tests.helpers.gaussian_oracle import (
    SMALLEST_NORMAL,
    bracket,
    delta_fault,
    delta_truth,
    epsilon_fault,
    epsilon_truth,
    sigma_fault,
    sigma_truth,
)
from tests.helpers.profiles import crossed, day_and_night, thinned

EPSILONS = ["1e-8", "1e-6", "1e-4", "1e-2", "0.1", "1", "10", "20", "100", "1e3", "1e4"]
DELTAS = ["0.999999", "0.4", "0.1", "1e-3", "1e-6", "1e-10", "1e-30", "1e-100", "1e-300"]
# Noise per sensitivity, off the powers of two and of ten so that σ is not a double.
RATIOS = [f"3.7e{exponent}" for exponent in range(-4, 8)] + ["1e-4", "1e8"]
GRID = [(epsilon, ratio) for epsilon in ["0", *EPSILONS] for ratio in RATIOS]
# From here on δ is below 10^-200000000000, and the tail of a ball of usual precision has no digits.
FAR = 1_000_000


@pytest.mark.parametrize(("epsilon", "delta"), crossed(EPSILONS, DELTAS))
def test_sigma_and_the_curve_at_that_sigma(epsilon: str, delta: str) -> None:
    eps, target = Decimal(epsilon), Decimal(delta)
    assert sigma_fault(sigma_gaussian, eps, target) is None
    noise = sigma_gaussian(eps, target).upper
    assert delta_fault(delta_gaussian, eps, noise) is None
    assert epsilon_fault(epsilon_gaussian, target, noise) is None


@pytest.mark.parametrize(
    ("epsilon", "ratio"),
    thinned(((e, r) for e, r in GRID if Decimal(e) * Decimal(r) <= FAR), 3, rows=True),
)
def test_delta_from_little_noise_to_much(epsilon: str, ratio: str) -> None:
    eps, noise = Decimal(epsilon), Decimal(ratio)
    assert delta_fault(delta_gaussian, eps, noise) is None


@pytest.mark.parametrize(
    ("epsilon", "ratio"),
    thinned(((e, r) for e, r in GRID if Decimal(e) * Decimal(r) > FAR), 3, rows=True),
)
def test_delta_far_below_the_doubles_still_has_an_upper_end(epsilon: str, ratio: str) -> None:
    eps, noise = Decimal(epsilon), Decimal(ratio)
    assert delta_fault(delta_gaussian, eps, noise) is None


@pytest.mark.parametrize("ratio", RATIOS)
def test_delta_of_sensitivities_that_are_not_one(ratio: str) -> None:
    eps, noise = Decimal("1e-3"), Decimal(ratio) * 3
    assert delta_fault(delta_gaussian, eps, noise, sensitivity=3) is None
    root = SquareRoot(Fraction(17, 3))
    assert delta_fault(delta_gaussian, eps, Decimal(ratio), sensitivity=root) is None
    assert delta_fault(delta_gaussian, eps, root, sensitivity=Decimal("0.7")) is None


def test_below_the_doubles_the_upper_end_stays_above_the_truth() -> None:
    found = delta_gaussian(Decimal(100), Decimal(1000))
    assert 0 < delta_truth(100, 1000) < SMALLEST_NORMAL
    assert found.lower == 0 < found.upper


def hockey_stick(eps: Any, mu: Any) -> Any:
    """∫ (φ(x − μ) − e^ε φ(x))₊ dx: the definition, before theorem 8 of Balle and Wang."""

    def excess(x: Any) -> Any:
        return mpmath.npdf(x - mu) - mpmath.exp(eps) * mpmath.npdf(x)

    crossing = mu / 2 + eps / mu
    steps = [crossing + k for k in range(0, 60, 2)]
    return mpmath.quad(excess, [*steps, mpmath.inf])


@pytest.mark.parametrize(
    ("eps", "mu"), day_and_night(("8", "3"), ("0", "1"), ("1", "0.5"), ("0.1", "0.05"))
)
def test_oracle_is_the_hockey_stick_divergence(eps: str, mu: str) -> None:
    with mpmath.workdps(50):
        integral = hockey_stick(mpmath.mpf(eps), mpmath.mpf(mu))
        truth = delta_truth(Decimal(eps), 1, sensitivity=Decimal(mu))
        assert abs(integral - truth) < truth * mpmath.mpf("1e-35")


@pytest.mark.parametrize("ratio", ["1e-4", "1", "3.7e5", "1e8"])
@pytest.mark.parametrize("epsilon", ["0", "1e-8", "1", "1e4"])
def test_oracle_keeps_its_digits(epsilon: str, ratio: str) -> None:
    eps, noise = Decimal(epsilon), Decimal(ratio)
    with mpmath.workdps(400):
        usual, finer = delta_truth(eps, noise), delta_truth(eps, noise, digits=200)
        assert abs(usual - finer) <= finer * mpmath.mpf("1e-60")


def test_oracle_refuses_a_root_that_is_none() -> None:
    with mpmath.workdps(100):
        low, high = bracket(lambda x: x * x - 2, mpmath.sqrt(2))
        assert low * low < 2 < high * high
        for slip in ("1e-50", "-1e-50"):
            with pytest.raises(ArithmeticError, match="no change of sign"):
                bracket(lambda x: x * x - 2, mpmath.sqrt(2) + mpmath.mpf(slip))


def test_oracle_roots_agree_with_each_other() -> None:
    low, high = sigma_truth(Decimal(1), Decimal("1e-6"))
    with mpmath.workdps(100):
        assert epsilon_truth(Decimal("1e-6"), low)[1] > 1 > epsilon_truth(Decimal("1e-6"), high)[0]
    assert epsilon_truth(Decimal("0.4"), 1) == (0, 0)  # δ(0) = 0.383 at σ = 1
