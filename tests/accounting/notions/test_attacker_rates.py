"""What a curve leaves to the strongest attacker: exact trade-off functions as oracles."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.notions.attacker_rates import attacker_bound, trade_off
from dpverify.errors import ParameterError
from dpverify.guarantee import PrivacyCurve
from tests.helpers.profiles import examples

RATES = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000))


def gaussian_trade_off(mu_squared: Fraction, rate: Fraction) -> mpmath.mpf:
    """Φ(μ + Φ⁻¹(f)), in 40 digits."""
    with mpmath.workdps(40):
        mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
        quantile = mpmath.sqrt(2) * mpmath.erfinv(
            2 * mpmath.mpf(rate.numerator) / rate.denominator - 1
        )
        return mpmath.ncdf(mu + quantile)


@examples(60)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=30), RATES)
def test_gaussian_bound_is_the_exact_trade_off(mu_squared: Fraction, rate: Fraction) -> None:
    found = attacker_bound(Gaussian.from_mu_squared(mu_squared), rate)
    exact = gaussian_trade_off(mu_squared, rate)
    upper = mpmath.mpf(found.true_positive_rate.upper)
    assert exact <= upper  # safe
    assert upper - exact <= 1e-12  # and not loose


@examples(25)
@given(st.fractions(min_value=Fraction(501, 1000), max_value=Fraction(999, 1000)), RATES)
def test_one_bit_of_randomized_response(keep: Fraction, rate: Fraction) -> None:
    """Its best test is known exactly: accept one answer, with a coin on the other."""
    found = attacker_bound(
        RandomizedResponse(keep=keep, other=1 - keep, positions=1), rate
    ).true_positive_rate
    ratio = keep / (1 - keep)
    exact = min(ratio * rate, 1 - (1 - rate) / ratio)
    assert Fraction(found.upper) >= exact
    assert float(found.upper - exact) <= 1e-12


@pytest.mark.parametrize("keep", [Fraction(3, 4), Fraction(9, 10)])
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 10), Fraction(1, 4), Fraction(3, 5)])
def test_the_trade_off_of_one_bit_has_a_kink(keep: Fraction, rate: Fraction) -> None:
    found = trade_off(RandomizedResponse(keep=keep), rate)
    exact = min(keep / (1 - keep) * rate, 1 - (1 - rate) * (1 - keep) / keep)
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-12


def _normal(place: str) -> Fraction:
    """Φ to thirty digits."""
    with mpmath.workdps(40):
        return Fraction(mpmath.nstr(mpmath.ncdf(mpmath.mpf(place)), 30))


@pytest.mark.parametrize(
    ("curve", "rate", "truth"),
    [
        (
            ApproxDP.from_odds(4, delta=Fraction(1, 10**40)),
            Fraction(1, 10**60),
            Fraction(1, 10**40) + 4 * Fraction(1, 10**60),
        ),
        (
            2 * RandomizedResponse(keep=1 - Fraction(5, 10**78)),
            Fraction(1, 2),
            1 - Fraction(25, 10**156) / 2,
        ),
        (RandomizedResponse(keep=Fraction(3, 4)), Fraction(1, 10**300), Fraction(3, 10**300)),
        (
            ApproxDP(epsilon=Fraction(1, 10**9), delta=Fraction(1, 10**30)),
            Fraction(1, 10**60),
            Fraction(1, 10**30) + Fraction(1 + Fraction(1, 10**9), 10**60),
        ),
        (Gaussian(sigma=10), _normal("-21"), _normal("-20.9")),
    ],
    ids=["with a proof", "almost without noise", "rare", "a wide plateau", "in the tail"],
)
def test_rates_far_from_one_another_are_known_as_well(
    curve: PrivacyCurve, rate: Fraction, truth: Fraction
) -> None:
    found = trade_off(curve, rate)
    assert found.lower <= truth * (1 + Fraction(1, 10**20))
    assert found.upper >= truth * (1 - Fraction(1, 10**20))
    assert found.width < 2e-12


@settings(max_examples=8)
@given(st.fractions(min_value=Fraction(1, 10), max_value=6), RATES)
def test_rates_of_laplace_noise_are_those_of_a_threshold(shift: Fraction, rate: Fraction) -> None:
    """The best test of Laplace(0, 1) against Laplace(a, 1) is a threshold on the output."""
    found = attacker_bound(Laplace.of_shifts(((shift, 1),)), rate).true_positive_rate
    a, f = float(shift), float(rate)
    quantile = -mpmath.log(2 * f) if f <= 0.5 else mpmath.log(2 * (1 - f))  # P[X ≥ q] = f
    beyond = quantile - a
    exact = mpmath.exp(-beyond) / 2 if beyond >= 0 else 1 - mpmath.exp(beyond) / 2
    assert found.upper >= exact - 1e-15
    assert found.upper - exact <= 1e-3  # the planning rates of this curve are on a lattice


class _Careless:
    """A planted bug: the bound with δ left out."""

    def __init__(self, curve: Gaussian) -> None:
        self.curve = curve

    def delta_at(self, epsilon: Fraction) -> object:
        exact = self.curve.delta_at(epsilon)
        return type(exact)(0.0, 0.0)

    def epsilon_at(self, delta: int) -> object:
        return self.curve.epsilon_at(delta)

    def rates(self, threshold: float) -> tuple[float, float]:
        return self.curve.rates(threshold)


def test_leaving_out_delta_is_noticed() -> None:
    careless = _Careless(Gaussian(sigma=1))
    found = attacker_bound(careless, Fraction(1, 100))  # type: ignore[arg-type]
    exact = gaussian_trade_off(Fraction(1), Fraction(1, 100))
    assert found.true_positive_rate.upper < exact


@pytest.mark.parametrize("rate", [0, 1, -1, float("nan")])
def test_rates_outside_their_domain_are_refused(rate: float) -> None:
    with pytest.raises(ParameterError, match="false_positive_rate"):
        attacker_bound(Gaussian(sigma=1), rate)
