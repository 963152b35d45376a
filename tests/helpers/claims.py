"""Gaussian claims, and the counts that they lead one to expect."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpverify.accounting.curves.gaussian import Gaussian, sigma_gaussian
from dpverify.auditing.statistics.two_sample_binomial import Counts
from dpverify_mechanisms.linear.sketch import LinearSketch
from tests.helpers.profiles import day_and_night

LEVEL = 0.01 / 16
LEVELS = (0.0095, 1e-5, 1e-5)
"""Of a certificate's events in record order, about."""
MILLIONTH = Fraction(1, 10**6)
THOUSANDTH = Fraction(1, 1000)
TARGETS = (
    (Fraction(5), MILLIONTH),
    (Fraction(1), Fraction(1, 10**5)),
    (Fraction(2), THOUSANDTH),
    (Fraction(1, 10), THOUSANDTH),
)
BY_DAY = day_and_night(*TARGETS)
"""The first target; the others by night."""

Sketch = Callable[..., LinearSketch]


def claim(epsilon: Fraction, delta: Fraction) -> Gaussian:
    """The curve of noise that just meets the target."""
    return Gaussian.from_mu_squared(1 / Fraction(sigma_gaussian(epsilon, delta).upper) ** 2)


def expected(curve: Gaussian, threshold: float, draws: int, noise: float = 1.0) -> Counts:
    p, q = curve.rates(threshold, noise=noise)
    return Counts(hits=round(draws * p), false_hits=round(draws * q), draws=draws)
