"""δ of two releases on Poisson samples, by quadrature over the first and closed form of the second.

It shares no formula with the accountant but the normal law: sup_A P(A) − αQ(A) of one release is
taken at the threshold where the likelihood ratio crosses, and the outer integral is mpmath's.
"""

from __future__ import annotations

from typing import Any

import mpmath as mp

__all__ = ["beside_noise", "one_release", "two_releases"]


def one_release(alpha: Any, q: Any, mu: Any, *, added: bool) -> Any:
    """sup_A P(A) − αQ(A) of one release's pair, for any α > 0."""
    # With (1 − q)Q + qP on one side the test is {ratio P/Q above, or below, some β}.
    if not added:
        beta = 1 + (alpha - 1) / q
        return q * _normal(beta, mu) if beta > 0 else 1 - alpha
    rest = 1 - alpha * (1 - q)
    return rest * _normal(alpha * q / rest, mu) if rest > 0 else mp.mpf(0)


def two_releases(epsilon: str, q: str, sigma: str, *, added: bool) -> Any:
    """δ(ε) of one order."""
    mu, rate, alpha = 1 / mp.mpf(sigma), mp.mpf(q), mp.exp(mp.mpf(epsilon))

    def ratio(x: Any) -> Any:
        return 1 - rate + rate * mp.exp(mu * x - mu * mu / 2)

    def value(x: Any) -> Any:
        g = ratio(x)
        weight, inner = (1, alpha * g) if added else (g, alpha / g)
        return mp.npdf(x) * weight * one_release(inner, rate, mu, added=added)

    kink = (1 / alpha if added else alpha) / (1 - rate) - 1 + rate
    places = [mp.mpf(x) for x in range(-14, 46)]
    if kink > 0:
        place = (mp.log(kink / rate) + mu * mu / 2) / mu
        places += [place + d for d in (-0.3, 0, 0.3) if -14 < place + d < 45]
    largest = max(value(x) for x in places)  # the quadrature's aim is of absolute error
    return largest and mp.quad(lambda x: value(x) / largest, sorted(places)) * largest


def beside_noise(epsilon: str, q: str, sigma: str, other: str, *, added: bool) -> Any:
    """δ(ε) of one release on a sample and one of Gaussian noise on all records, in one order."""
    mu, nu, rate = 1 / mp.mpf(sigma), 1 / mp.mpf(other), mp.mpf(q)
    alpha = mp.exp(mp.mpf(epsilon))

    def value(x: Any) -> Any:
        g = 1 - rate + rate * mp.exp(mu * x - mu * mu / 2)
        weight, inner = (1, alpha * g) if added else (g, alpha / g)
        return mp.npdf(x) * weight * _normal(inner, nu)

    return mp.quad(value, [mp.mpf(x) for x in range(-12, 16)])


def _normal(beta: Any, mu: Any) -> Any:
    """sup_A P(A) − βQ(A) for normal laws μ apart, either way."""
    place = mp.log(beta) / mu + mu / 2
    return mp.ncdf(mu - place) - beta * mp.ncdf(-place)
