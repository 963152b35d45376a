"""A second, naive implementation of the Gaussian mechanism's curve, and what judges the first.

Written from δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with μ = Δ/σ, in mpmath, at whatever precision
outlives the cancellation. Nothing here shares a formula, a root finder or a special function with
the accountant; roots are found with the curve's sign alone.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import mpmath

from dpverify.enclosure import Enclosure, SquareRoot

DIGITS = 60
WIDTH = 1e-13
# Below this doubles are subnormal and no relative width can be promised.
SMALLEST_NORMAL = 2.2250738585072014e-308

# An mpf is exact as it stands. It is `Any` because mpmath has no types.
Number = int | float | Decimal | Fraction | SquareRoot | Any


class Delta(Protocol):
    def __call__(self, epsilon: Any, sigma: Any, *, sensitivity: Any = 1) -> Enclosure: ...


class Epsilon(Protocol):
    def __call__(self, delta: Any, sigma: Any, *, sensitivity: Any = 1) -> Enclosure: ...


class Sigma(Protocol):
    def __call__(self, epsilon: Any, delta: Any, *, sensitivity: Any = 1) -> Enclosure: ...


def read(value: Number) -> Any:
    """The number at the precision in force, rounded once (a square root twice)."""
    if isinstance(value, SquareRoot):
        return mpmath.sqrt(read(value.radicand))
    if isinstance(value, mpmath.mpf):
        return value
    ratio = Fraction(value)
    return mpmath.mpf(ratio.numerator) / ratio.denominator


def delta_truth(
    epsilon: Number, sigma: Number, *, sensitivity: Number = 1, digits: int = DIGITS
) -> Any:
    """δ(ε, σ) to `digits` significant digits, as an mpf."""
    working = digits + 30
    while working < 100_000:
        with mpmath.workdps(working):
            eps, mu = read(epsilon), read(sensitivity) / read(sigma)
            a, b = mu / 2 - eps / mu, -mu / 2 - eps / mu
            first, second = _cdf(a), mpmath.exp(eps) * _cdf(b)
            value = first - second
            if value > 0:
                # A relative error of 10^-working in μ and ε moves both terms by at most a few
                # (1 + b²) 10^-working, as b² ≥ a² and b² ≥ 2ε; the difference then loses the
                # ratio of the first term to what is left.
                bits = mpmath.mag(1 + b * b) + mpmath.mag(first) - mpmath.mag(value)
                if working - 0.30103 * bits >= digits + 5:
                    return value
        working *= 2
    raise ArithmeticError(f"the oracle lost every digit at {epsilon=}, {sigma=}")


def sigma_truth(epsilon: Number, delta: Number) -> tuple[Any, Any]:
    """Ends, 10^-60 apart, around the smallest σ for Δ = 1."""
    with mpmath.workdps(2 * DIGITS):
        goal = mpmath.log(read(delta))
        return root(lambda s: goal - mpmath.log(delta_truth(epsilon, s, digits=100)))


def epsilon_truth(delta: Number, sigma: Number) -> tuple[Any, Any]:
    """Ends, 10^-60 apart, around the smallest ε for Δ = 1; both 0 where it is 0."""
    with mpmath.workdps(2 * DIGITS):
        goal = mpmath.log(read(delta))

        def rising(eps: Any) -> Any:
            return goal - mpmath.log(delta_truth(eps, sigma, digits=100))

        zero = mpmath.mpf(0)
        return (zero, zero) if rising(zero) >= 0 else root(rising)


def root(rising: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Ends, 10^-60 apart, around the root of a rising function on the positive numbers.

    Steps and halvings on a logarithmic scale come close; mpmath finishes, and isn't trusted.
    """
    low = high = mpmath.mpf(1)
    while rising(low) > 0:
        low /= 16
    while rising(high) < 0:
        high *= 16
    while high > low * 1.0001:
        middle = mpmath.sqrt(low * high)
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    ends = (mpmath.log(low), mpmath.log(high))
    found = mpmath.findroot(
        lambda t: rising(mpmath.exp(t)), ends, solver="anderson", tol=1e-300, verify=False
    )
    return bracket(rising, mpmath.exp(found))


def bracket(rising: Callable[[Any], Any], near: Any) -> tuple[Any, Any]:
    """Ends next to `near` between which the function changes its sign; without that, an error."""
    slack = mpmath.mpf(10) ** -DIGITS
    low, high = near * (1 - slack), near * (1 + slack)
    if not rising(low) < 0 < rising(high):
        raise ArithmeticError(f"no change of sign next to {near}")
    return low, high


def fault(found: Enclosure, low: Any, high: Any) -> str | None:
    """What is wrong with an enclosure of a truth that lies between two mpf, or None."""
    if not (mpmath.mpf(found.lower) <= low and high <= mpmath.mpf(found.upper)):
        return f"{found} does not hold {mpmath.nstr(low, 30)}"
    if found.width > WIDTH and high >= SMALLEST_NORMAL:
        return f"{found} has relative width {found.width}"
    return None


def delta_fault(
    function: Delta, epsilon: Number, sigma: Number, *, sensitivity: Number = 1
) -> str | None:
    """What is wrong with `function`, a `delta_gaussian`, at one point, or None."""
    found = function(epsilon, sigma, sensitivity=sensitivity)
    truth = delta_truth(epsilon, sigma, sensitivity=sensitivity)
    if found.lower >= 1:  # the oracle rounds 1 − 10^-1000000 to 1; the truth is below
        return f"{found} is not below 1"
    return fault(found, truth, truth)


def epsilon_fault(function: Epsilon, delta: Number, sigma: Number) -> str | None:
    """What is wrong with `function`, an `epsilon_gaussian`, at one point, or None."""
    return fault(function(delta, sigma), *epsilon_truth(delta, sigma))


def sigma_fault(function: Sigma, epsilon: Number, delta: Number) -> str | None:
    """What is wrong with `function`, a `sigma_gaussian`, at one point, or None."""
    found = function(epsilon, delta)
    wrong = fault(found, *sigma_truth(epsilon, delta))
    with mpmath.workdps(2 * DIGITS):
        if wrong is None and delta_truth(epsilon, found.upper) > read(delta):
            return f"noise {found.upper!r} is not enough for delta={delta}"
    return wrong


def _cdf(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2
