"""The Gaussian model of scores, reported only where a test accepts it.

Under μ-Gaussian differential privacy with the likelihood ratio as its score both sides are normal
with one variance, μ standard deviations apart. Draws say nothing about a tail that they don't
reach, so ε from μ at a small δ rests on that model: it is given only where a test of the model
accepts, is labelled, and never decides a verdict. The test is at a level of 5 % at least: a small
α, which makes an audit cautious, would make a guard lax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy
from numpy.typing import NDArray

from dpverify.accounting.curves.gaussian import epsilon_gaussian
from dpverify.errors import require

__all__ = ["GaussianFit", "gaussian_fit"]

Array = NDArray[np.float64]

_GUARD = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianFit:
    """The Gaussian model of a score, and whether the draws allow it.

    Attributes
    ----------
    p_value : of the model, by the test that guards it
    mu, mu_lower : estimate and lower confidence limit under the model, None where it is rejected
    epsilon_lower : ε of mu_lower at the claimed δ, None where the model is rejected
    """

    p_value: float
    mu: float | None = None
    mu_lower: float | None = None
    epsilon_lower: float | None = None


def gaussian_fit(own: Array, other: Array, *, delta: Fraction, alpha: float) -> GaussianFit:
    """Fit μ-Gaussian differential privacy to scores, if they look normal with one variance.

    The guard is Bonferroni's of three tests: Anderson and Darling's of normality on each side, by
    the approximation of D'Agostino and Stephens 1986 (table 4.9), and the ratio of the variances.

    Parameters
    ----------
    own, other : scores of shape (draws,), at least 8 each
    delta : in (0, 1), the claimed δ
    alpha : level of the limit of μ; the guard is at 5 %, or at this if it is larger
    """
    n, m = own.size, other.size
    require(min(n, m) >= 8, "draws", min(n, m), "at least 8")
    if not (np.all(np.isfinite(own)) and np.all(np.isfinite(other))):
        return GaussianFit(p_value=0.0)
    spread = float(own.var(ddof=1)), float(other.var(ddof=1))
    if min(spread) == 0:
        return GaussianFit(p_value=0.0)
    ratio = float(scipy.special.fdtrc(n - 1, m - 1, spread[0] / spread[1]))
    p_value = min(1.0, 3 * min(_normality(own), _normality(other), 2 * min(ratio, 1 - ratio)))
    if not p_value > max(alpha, _GUARD):
        return GaussianFit(p_value=p_value)
    pooled = ((n - 1) * spread[0] + (m - 1) * spread[1]) / (n + m - 2)
    mu = abs(float(own.mean() - other.mean())) / math.sqrt(pooled)
    error = math.sqrt(1 / n + 1 / m + mu**2 / (2 * (n + m - 2)))
    lower = max(0.0, mu + float(scipy.special.ndtri(alpha)) * error)
    epsilon = epsilon_gaussian(delta, 1, sensitivity=lower).lower if lower else 0.0
    return GaussianFit(p_value=p_value, mu=mu, mu_lower=lower, epsilon_lower=epsilon)


def _normality(values: Array) -> float:
    """Approximate p-value of Anderson and Darling's test of normality, both moments estimated."""
    n = values.size
    z = np.sort((values - values.mean()) / values.std(ddof=1))
    weights = 2 * np.arange(1, n + 1) - 1
    logs = scipy.special.log_ndtr(z) + scipy.special.log_ndtr(-z[::-1])
    statistic = -n - float(np.mean(weights * logs))
    a = statistic * (1 + 0.75 / n + 2.25 / n**2)
    if a < 0.2:
        return 1 - math.exp(-13.436 + 101.14 * a - 223.73 * a**2)
    if a < 0.34:
        return 1 - math.exp(-8.318 + 42.796 * a - 59.938 * a**2)
    if a < 0.6:
        return math.exp(0.9177 - 4.279 * a - 1.38 * a**2)
    # Beyond 10 the fitted parabola turns up again.
    a = min(a, 10.0)
    return math.exp(1.2937 - 5.709 * a + 0.0186 * a**2)
