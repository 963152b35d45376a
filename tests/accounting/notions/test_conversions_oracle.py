"""Divergences and conversions against integrals and minima in sixty digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from mpmath import mpf

from dpverify.accounting.notions.renyi import (
    RDP,
    FiniteRenyi,
    GaussianRenyi,
    LaplaceRenyi,
    PureRenyi,
    RenyiDivergence,
)
from dpverify.accounting.notions.zcdp import ZCDP, rho_of_pure
from dpverify.enclosure import Enclosure
from tests.helpers.profiles import crossed

ORDERS = [Fraction(1001, 1000), Fraction(3, 2), Fraction(2), Fraction(7), Fraction(60)]
FOUR = ((Fraction(1, 2), Fraction(1, 8)), (Fraction(1, 4), Fraction(3, 8)))
PAIRS = (*FOUR, (Fraction(1, 8), Fraction(1, 4)), (Fraction(1, 8), Fraction(1, 4)))


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(60):
        yield


def real(value: Fraction) -> Any:
    return mpf(value.numerator) / value.denominator


def assert_inside(value: Any, found: Enclosure, *, width: float = 1e-12) -> None:
    assert mpf(found.lower) <= value <= mpf(found.upper)
    assert found.width <= width


def gaussian(order: Any, mu: Any) -> Any:
    def power(x: Any) -> Any:
        return mpmath.npdf(x, mu) ** order * mpmath.npdf(x) ** (1 - order)

    centre = order * mu
    return mpmath.log(mpmath.quad(power, [centre + step for step in range(-24, 25, 6)]))


def laplace(order: Any, shift: Any) -> Any:
    def power(x: Any) -> Any:
        return mpmath.exp(-abs(x) * order - abs(x - shift) * (1 - order)) / 2

    return mpmath.log(mpmath.quad(power, [-mpmath.inf, 0, shift, shift + 10, mpmath.inf]))


def finite(order: Any, pairs: tuple[tuple[Fraction, Fraction], ...]) -> Any:
    sums = [
        mpmath.fsum(real(p) ** order * real(q) ** (1 - order) for p, q in side)
        for side in (pairs, [(q, p) for p, q in pairs])
    ]
    return mpmath.log(max(sums))


CASES: dict[str, tuple[RenyiDivergence, Callable[[Any], Any]]] = {
    "gaussian": (GaussianRenyi(mu_squared=Fraction(9, 4)), lambda a: gaussian(a, mpf(3) / 2)),
    "laplace": (LaplaceRenyi(ratio=Fraction(4, 3)), lambda a: laplace(a, mpf(4) / 3)),
    "binary": (
        FiniteRenyi.response(keep=Fraction(4, 5)),
        lambda a: finite(a, ((Fraction(4, 5), Fraction(1, 5)), (Fraction(1, 5), Fraction(4, 5)))),
    ),
    "four values": (
        FiniteRenyi.response(keep=Fraction(1, 2), values=4),
        lambda a: finite(
            a,
            (
                (Fraction(1, 2), Fraction(1, 6)),
                (Fraction(1, 6), Fraction(1, 2)),
                (Fraction(1, 3), Fraction(1, 3)),
            ),
        ),
    ),
    "asymmetric": (FiniteRenyi(pairs=PAIRS), lambda a: finite(a, PAIRS)),
    "the other way": (
        FiniteRenyi(pairs=tuple((q, p) for p, q in PAIRS)),
        lambda a: finite(a, PAIRS),
    ),
}


@pytest.mark.parametrize(("name", "order"), crossed(CASES, ORDERS))
def test_divergence(name: str, order: Fraction) -> None:
    part, truth = CASES[name]
    curve = RDP(parts=((part, 3),))
    value = 3 * truth(real(order)) / (real(order) - 1)
    found = curve.divergence(order)
    assert abs(value - mpf(found.lower)) <= 1e-13 * value  # the integral has its own error
    assert abs(value - mpf(found.upper)) <= 1e-13 * value


@pytest.mark.parametrize("order", ORDERS)
def test_pure_privacy_is_randomized_response(order: Fraction) -> None:
    ratio = Fraction(7, 3)
    near = Fraction(str(mpmath.nstr(mpmath.log(real(ratio)), 40)))
    pure = RDP(parts=((PureRenyi(epsilon=near), 1),)).divergence(order)
    response = RDP(parts=((FiniteRenyi.response(keep=Fraction(7, 10)), 1),))
    assert pure.upper == pytest.approx(response.divergence(order).upper, rel=1e-15)


def least(function: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Minimum of a unimodal function of ln x, by golden section."""
    low, high = mpmath.log(low), mpmath.log(high)
    share = (mpmath.sqrt(5) - 1) / 2
    for _ in range(180):
        first, second = high - share * (high - low), low + share * (high - low)
        if function(mpmath.exp(first)) < function(mpmath.exp(second)):
            high = second
        else:
            low = first
    return function(mpmath.exp((low + high) / 2))


@pytest.mark.parametrize(
    ("rho", "delta"), crossed(["1e-3", "0.5", "20"], ["0.4", "1e-6", "1e-100", "1e-300"])
)
def test_zero_concentrated_conversions(rho: str, delta: str) -> None:
    r, d = mpf(rho), mpf(delta)
    curve = ZCDP(rho=Fraction(rho))

    def cks_epsilon(s: Any) -> Any:  # proposition 12 as printed, at order a = s + 1
        a = s + 1
        return a * r + mpmath.log1p(-1 / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)

    value = max(mpf(0), least(cks_epsilon, mpf("1e-9"), mpf("1e9")))
    found = curve.epsilon_at(Fraction(delta))
    assert_inside(value, found)

    eps = Fraction(found.upper) + Fraction(1, 3)

    def cks_delta(s: Any) -> Any:  # corollary 13 as printed
        a = s + 1
        exponent = (a - 1) * (a * r - real(eps))
        return exponent - mpmath.log(a - 1) + a * mpmath.log1p(-1 / a)

    bound = mpmath.exp(least(cks_delta, mpf("1e-9"), mpf("1e9")))
    if bound > mpf("1e-305"):
        assert_inside(bound, curve.delta_at(eps))

    older = ZCDP(rho=Fraction(rho), conversion="bun-steinke")
    assert_inside(r + 2 * mpmath.sqrt(-r * mpmath.log(d)), older.epsilon_at(Fraction(delta)))


@pytest.mark.parametrize(
    ("name", "delta", "conversion"),
    crossed(CASES, ["1e-6", "0.3", "1e-60"], ["mironov", "canonne-kamath-steinke"]),
)
def test_renyi_conversions_at_the_best_order(name: str, delta: str, conversion: Any) -> None:
    part, _ = CASES[name]
    curve = RDP(parts=((part, 40),), conversion=conversion)
    d = mpf(delta)
    # The divergence itself is tested above; here from its own printed form, in sixty digits.
    log_moment: dict[str, Callable[[Any], Any]] = {
        "gaussian": lambda a: (a - 1) * a * mpf(9) / 8,
        "laplace": lambda a: mpmath.log(
            a / (2 * a - 1) * mpmath.exp((a - 1) * mpf(4) / 3)
            + (a - 1) / (2 * a - 1) * mpmath.exp(-a * mpf(4) / 3)
        ),
        **{key: CASES[key][1] for key in ("binary", "four values", "asymmetric", "the other way")},
    }

    def epsilon(s: Any) -> Any:
        a = s + 1
        divergence = 40 * log_moment[name](a) / s
        if conversion == "mironov":
            return divergence - mpmath.log(d) / s
        return divergence + mpmath.log1p(-1 / a) - mpmath.log(d * a) / s

    # Where an infinite order is best, one of 1e30 is within 1e-27 of it.
    assert_inside(least(epsilon, mpf("1e-6"), mpf("1e30")), curve.epsilon_at(Fraction(delta)))


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "5", "40"])
def test_tight_rho_of_pure_privacy(epsilon: str) -> None:
    eps = mpf(epsilon)
    found = rho_of_pure(Fraction(epsilon))
    assert_inside(eps * mpmath.tanh(eps / 2), found)
    assert found.upper <= float(eps) ** 2 / 2 * (1 + 1e-15)
    pure = RDP(parts=((PureRenyi(epsilon=Fraction(epsilon)), 1),))
    for order in ORDERS:  # D_α ≤ αρ, and no smaller ρ will do
        assert pure.divergence(order).upper <= float(order) * found.upper
    assert pure.divergence(1 + Fraction(1, 10**12)).lower >= found.lower * (1 - 1e-9)
