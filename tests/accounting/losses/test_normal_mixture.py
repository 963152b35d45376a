"""Powers of a mixed normal likelihood ratio: integrals on the real line, and bounds of a rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy
from flint import acb, arb, ctx

from dpverify.accounting.losses._normal_mixture import (
    NormalMixture,
    PowerIntegral,
    Window,
    _Rule,
)
from dpverify.accounting.losses.nodes import Nodes
from dpverify.errors import NumericalError

F = Fraction
MIXTURES = [
    NormalMixture(mu_squared=F(1), rate=F(1, 10)),
    NormalMixture(mu_squared=F(9), rate=F(1, 2)),
    NormalMixture(mu_squared=F(1, 16), rate=F(99, 100)),
]
REPLACED = [replace(mixture, replaced=True) for mixture in MIXTURES]
POWERS = [1.5, 12.0, -0.7, -8.0]
CUT = Window(end=2.5, width=0.3)
WINDOW = Window(start=0.5, end=2.5, width=0.4)
WINDOWS = [None, CUT, WINDOW]
KINDS = [(a, window) for a in POWERS for window in WINDOWS if a >= 1 or window is None]
X = np.arange(-16 * 64, 56 * 64) / 64


def integrand(mixture: NormalMixture, a: complex, window: Window | None) -> Callable[[Any], Any]:
    """φ·g^a, or φ·g·r^{a − 1}, and both Φ of the window, wherever g has no zero."""
    q, mu = float(mixture.rate), math.sqrt(mixture.mu_squared)

    def value(z: Any) -> Any:
        log = np.log(1 - q + q * np.exp(mu * z - mu * mu / 2))
        other = np.log(1 - q + q * np.exp(-mu * z - mu * mu / 2)) if mixture.replaced else 0
        found = np.exp(a * log - (a - 1) * other - z * z / 2) / math.sqrt(2 * math.pi)
        if window:
            scale = window.width * math.sqrt(2)
            found = found * scipy.special.erfc((z - window.end) / scale) / 2
            if window.start > -math.inf:
                found = found * scipy.special.erfc((window.start - z) / scale) / 2
        return found

    return value


def mixtures(a: float) -> list[NormalMixture]:
    """A record that is replaced has powers from 1 on."""
    return [*MIXTURES, *(REPLACED if a >= 1 else [])]


def integral(values: Any) -> Any:
    """The trapezoid rule on the real line, which is right to all digits here."""
    return values.sum() / 64


def test_the_ratio_and_its_slope_far_from_the_middle() -> None:
    """To the left of all doubles of e^ℓ, on both sides of where the formula changes, and beyond."""
    for mixture in MIXTURES:
        mu, q = mpmath.sqrt(mixture.mu_squared), mpmath.mpf(float(mixture.rate))
        exponents = [-800.0, -3.0, 0.0, 29.9, 30.1, 690.0, 1e6]
        x = np.array([float(ell / mu + mu / 2) for ell in exponents])
        for place, log, share in zip(x, mixture.log_ratio(x), mixture.share(x), strict=True):
            up = q * mpmath.exp(mu * place - mu * mu / 2)
            assert log == pytest.approx(float(mpmath.log(1 - q + up)), rel=1e-12)
            assert share == pytest.approx(float(up / (1 - q + up)), rel=1e-9)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("mixture", [*MIXTURES, *REPLACED], ids=str)
def test_moments_for_planning(mixture: NormalMixture, window: Window | None) -> None:
    """Next to a single peak, with two of them, on the left, and far out; in one call, too."""
    mu = math.sqrt(mixture.mu_squared)
    powers = np.array([1.5, 20.0, 90 / mu, 110 / mu, 9e5 / mu, 1.1e6 / mu])
    if window:
        powers = powers[:3]
    elif not mixture.replaced:
        powers = np.append(powers, [0.0, -30.0, -130 / mu])
    truth = []
    for a in powers:
        first = 0 if a * mu < 1e3 else a * mu
        x = np.arange(min(a * mu, first) - 20, max(a * mu, 0) + 20, 1 / 32)
        logs = mixture.log_power(x, a) - x * x / 2
        if window:
            logs += window.log(x)
        truth.append(scipy.special.logsumexp(logs) - math.log(32 * math.sqrt(2 * math.pi)))
    tolerance = 1e-12 if window is None else 2e-3
    together = mixture.log_moments(powers, window)
    assert together == pytest.approx(np.array(truth), rel=tolerance, abs=tolerance)
    for a, found in zip(powers, together, strict=True):
        (alone,) = mixture.log_moments(np.array([a]), window)
        assert alone == pytest.approx(found, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("rest", [F(1, 10**12), F(1, 10**25), F(1, 10**250)])
def test_the_ratio_where_all_but_few_records_are_sampled(rest: F) -> None:
    """It falls to 1 − q, which doubles lose beside 1."""
    mixture = NormalMixture(mu_squared=F(4), rate=1 - rest)
    with mpmath.workdps(300):
        for x in (-1e3, -30.0, -5.0, -0.5, 0.0, 1.0, 5.0):
            true = mpmath.log(
                mpmath.mpf(rest.numerator) / rest.denominator * (1 - mpmath.exp(2 * x - 2))
                + mpmath.exp(2 * x - 2)
            )
            (found,) = mixture.log_mixed(np.array([x]))
            assert found == pytest.approx(float(true), rel=1e-13)


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_moments_where_hardly_a_record_is_missed(mixture: NormalMixture) -> None:
    """Of powers that nothing else is of any size in, without a jump."""
    powers = -np.geomspace(1e9, 1e60, 52) / math.sqrt(mixture.mu_squared)
    most = powers * math.log(1 - mixture.rate)
    found = mixture.log_moments(powers)
    assert (found <= most * (1 + 1e-15)).all()  # both are rounded
    assert found == pytest.approx(most, rel=1e-5)


@pytest.mark.parametrize("effort", [6.0, 14.0])
@pytest.mark.parametrize(("a", "window"), KINDS)
def test_what_a_rule_is_off_by(a: float, effort: float, window: Window | None) -> None:
    """At least what the theorem says of the integrand's norms, and what is left out; little more.

    The norms and the terms that are left out are those of the very integrand, not of bounds on it.
    """
    for mixture in mixtures(a):
        with ctx.workprec(96):
            rule = _Rule.of(mixture, arb(a), window, effort)
            found = rule.integral()
        d, h, f = rule.height, rule.step, integrand(mixture, a, window)
        norms = (integral(np.abs(f(X + 1j * v))) for v in (0.0, 2 * d))
        aliases = sum(norms) / math.expm1(2 * math.pi * d / h)
        every = h * np.abs(f(np.arange(math.floor(-16 / h), math.ceil(56 / h)) * h + 1j * d)).sum()
        left_out = every - float(sum((abs(w) for w in found.weights), arb(0)))
        assert aliases + left_out < found.error < 5 * math.exp(-effort) * found.total
        assert found.total.contains(arb(integral(f(X)).real))


@pytest.mark.parametrize(("a", "window"), KINDS)
def test_terms_of_sums_in_doubles_are_not_much_larger_than_the_sum(
    a: float, window: Window | None
) -> None:
    def bulge(mixture: NormalMixture, most: float) -> float:
        with ctx.workprec(96):
            found = PowerIntegral.of(mixture, arb(a), window, effort=30.0, most_bulge=most)
            sizes = sum((abs(w) for w in found.weights), arb(0))
            return float((sizes / found.total).log())

    assert max(bulge(mixture, 0.5) for mixture in mixtures(a)) < 0.51
    assert max(bulge(mixture, math.inf) for mixture in mixtures(a)) > 1


@pytest.mark.parametrize(("a", "window"), KINDS)
def test_integrals_at_all_heights(a: float, window: Window | None) -> None:
    """One after another by two products, and at any places."""
    for mixture in mixtures(a):
        with ctx.workprec(96):
            found = PowerIntegral.of(mixture, arb(a), window)
            values = found.along(Nodes.of(arb(0), arb("0.75"), range(7)))
            single = found.at([arb("0.75") * k for k in range(7)])
            scale = float(found.total)
        for k, value in enumerate(values):
            truth = integral(integrand(mixture, a + 0.75j * k, window)(X))
            assert abs(complex(value) - truth) < 1e-12 * scale
            assert value.real.rad() < 1e-12 * scale
            assert single[k].overlaps(value)
        weights, logs, error = found.in_doubles()
        assert error < 1e-12
        assert weights @ np.exp(0.75j * logs) * scale == pytest.approx(
            complex(values[1]), abs=1e-12 * scale
        )


@pytest.mark.parametrize("window", [CUT, WINDOW])
@pytest.mark.parametrize("height", [0.05, 0.5, 1.0])
def test_a_window_off_the_line_is_bounded(height: float, window: Window) -> None:
    """By its value on the real line and the bulge, which it comes near to far outside."""
    x = np.linspace(-1, 5, 400)
    with ctx.workprec(200):
        sizes = [float(abs(window.at(acb(place, height))).log()) for place in x.tolist()]
    excess = np.array(sizes) - window.log(x)
    most = (window.bulge - 1) * height**2 / 2
    assert (excess < most * (1 + 1e-12)).all()
    assert excess.max() > 0.45 * most  # one of two edges alone is far from the other


def test_what_no_line_serves_is_refused() -> None:
    wide = NormalMixture(mu_squared=F(10**10), rate=F(1, 2))
    with pytest.raises(NumericalError, match="no line of integration"):
        PowerIntegral.of(wide, arb(1))
    with pytest.raises(NumericalError, match="points of a mixture are too many"):
        PowerIntegral.of(NormalMixture(mu_squared=F(10**8), rate=F(1, 2)), arb(1000))


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("height", [0.01, 0.4, 1.2])
def test_the_modulus_on_a_line(mixture: NormalMixture, height: float) -> None:
    """By which it is decided what a sum leaves out."""
    rule = _Rule(mixture=mixture, a=arb(2), window=None, height=height, step=0.1, effort=40.0)
    mu, rate = math.sqrt(mixture.mu_squared), float(mixture.rate)
    x = np.linspace(-4, 4, 17)
    ratio = 1 - rate + rate * np.exp(mu * (x + 1j * height) - mu * mu / 2)
    found = rule._log_modulus(x, height * mu)
    assert found == pytest.approx(np.log(np.abs(ratio)), abs=1e-12)
