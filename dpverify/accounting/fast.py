"""Many values of the analytic Gaussian curve at once, in doubles: for plots and searches.

Nothing here is certified: a value may be off by up to about 1e-13 relatively, on either side. What
a user acts on comes from `delta_gaussian`.

With μ = Δ/σ, s = ε/μ − μ/2 and Mills' ratio m(t) = Φ(−t)/φ(t),

    δ(ε; μ) = Φ(−s) − e^ε Φ(−s − μ) = φ(s)·(m(s) − m(s + μ)) = φ(s)·∫ G(t) dt over [s, s + μ],

with G(t) = −m′(t) = 1 − t·m(t) > 0. The difference of ratios cancels where μ is small beside
max(1, s); there the integral is taken, by Gauss and Legendre's rule. G itself cancels for large t,
where its asymptotic series 1/t² − 3/t⁴ + 15/t⁶ − … takes over. The exponent −s²/2 reaches −740, so
s is carried in two doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpverify.errors import require

__all__ = ["delta_gaussian_array"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_ASYMPTOTIC = 11.0  # from here on 20 terms of the series are right to the last digit
_TERMS = np.cumprod([1.0, *(-(2.0 * k + 1) for k in range(1, 20))])
_SPLITTER = 2.0**27 + 1
_FAR = -5.0

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def delta_gaussian_array(
    epsilon: ArrayLike, sigma: ArrayLike, *, sensitivity: ArrayLike = 1.0
) -> NDArray[np.float64]:
    """δ(ε) of Gaussian noise, for arrays that broadcast; not certified.

    Parameters
    ----------
    epsilon : ≥ 0, in nats
    sigma : > 0, same unit as `sensitivity`
    sensitivity : > 0, ℓ2-sensitivity

    Returns
    -------
    Doubles of the broadcast shape; 0 where δ is below the smallest positive double.

    Raises
    ------
    ParameterError
        If a value is outside its domain; NaN always is.
    """
    eps, scale, reach = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (epsilon, sigma, sensitivity))
    )
    _check("epsilon", eps, eps >= 0, "finite and at least 0")
    _check("sigma", scale, scale > 0, "finite and positive")
    _check("sensitivity", reach, reach > 0, "finite and positive")
    shape = eps.shape
    eps, scale, reach = (np.ravel(value) for value in (eps, scale, reach))
    # s = εσ/Δ − Δ/2σ, in two doubles.
    mu = _divide((reach, np.zeros_like(reach)), scale)
    s = _subtract(_divide(_product(eps, scale), reach), (mu[0] / 2, mu[1] / 2))
    result = np.empty_like(eps)
    far = s[0] < _FAR
    near = ~far & (mu[0] < np.maximum(1.0, s[0]) / 10)
    for part, formula in ((far, _plain), (near, _integral), (~far & ~near, _difference)):
        if part.any():
            result[part] = formula((s[0][part], s[1][part]), mu[0][part])
    return np.clip(result, 0.0, 1.0).reshape(shape)


def _plain(s: Pair, mu: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(scipy.special.ndtr(-s[0]) - _density(s) * _mills(s[0] + mu))


def _difference(s: Pair, mu: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(_density(s) * (_mills(s[0]) - _mills(s[0] + mu)))


def _integral(s: Pair, mu: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros_like(mu)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * _slope(s[0] + mu * (1 + node) / 2)
    return np.asarray(_density(s) * total * mu / 2)


def _slope(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """G(t) = 1 − t·m(t)."""
    values = 1 - t * _mills(t)
    large = t > _ASYMPTOTIC
    if large.any():
        inverse = 1 / t[large] ** 2
        values[large] = inverse * np.polynomial.polynomial.polyval(inverse, _TERMS)
    return values


def _mills(t: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(np.pi / 2) * scipy.special.erfcx(t / np.sqrt(2.0)))


def _density(s: Pair) -> NDArray[np.float64]:
    """φ(s): the second double moves it by the factor exp(−s₀s₁), the square's error by another."""
    high = np.minimum(np.abs(s[0]), 60.0)  # beyond, φ underflows, and squares need no care
    square, error = _product(high, high)
    low = np.where(np.abs(s[0]) <= 60.0, s[0] * s[1], 0.0)
    return np.asarray(
        np.exp(-square / 2) * np.exp(-error / 2 - low) / np.sqrt(2 * np.pi) * (high < 60.0)
    )


# Two doubles whose sum is the number: Dekker's products, sums and quotients.


def _product(a: NDArray[np.float64], b: NDArray[np.float64]) -> Pair:
    with np.errstate(over="ignore", invalid="ignore"):
        value = a * b
        a_high, b_high = (x * _SPLITTER - (x * _SPLITTER - x) for x in (a, b))
        a_low, b_low = a - a_high, b - b_high
        error = ((a_high * b_high - value) + a_high * b_low + a_low * b_high) + a_low * b_low
    return value, np.where(np.isfinite(error), error, 0.0)


def _divide(a: Pair, b: NDArray[np.float64]) -> Pair:
    quotient = a[0] / b
    back, error = _product(quotient, b)
    with np.errstate(over="ignore", invalid="ignore"):
        rest = ((a[0] - back) - error + a[1]) / b
    return quotient, np.where(np.isfinite(rest), rest, 0.0)


def _subtract(a: Pair, b: Pair) -> Pair:
    value = a[0] - b[0]
    moved = value - a[0]
    error = (a[0] - (value - moved)) - (b[0] + moved)
    return value, error + (a[1] - b[1])


def _check(name: str, values: NDArray[Any], good: NDArray[np.bool_], rule: str) -> None:
    fine = good & np.isfinite(values)
    if not fine.all():
        require(False, name, values[~fine].flat[0], rule)
