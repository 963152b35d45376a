"""Formulas of accountants, each right or wrong as it is called, and the curves that are true.

In doubles, as accountants compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.losses.discrete import FiniteLoss
from dpverify.enclosure import Real
from dpverify.guarantee import PrivacyCurve

__all__ = [
    "advanced",
    "amplified",
    "answers_curve",
    "bit",
    "central_limit",
    "classical",
    "concentrated",
    "documented",
    "epochs",
    "exact",
    "flipped_curve",
    "fractional_orders",
    "odometer",
    "permuted",
    "promised",
    "renyi",
    "sampled_curve",
    "sampled_delta",
    "trained_curve",
    "transformed",
    "unclamped",
    "weighted",
]


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _root(falling: Callable[[float], float], level: float, most: float = 1e4) -> float:
    """Where a falling function reaches the level, from above."""
    low, high = 0.0, most
    if falling(0.0) <= level:
        return 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if falling(middle) <= level else (middle, high)
    return high


def _shifted(mu: float, epsilon: float) -> float:
    """δ(ε) of a normal that moves by μ standard deviations (Balle and Wang, ICML 2018)."""
    lost = _phi(-epsilon / mu - mu / 2)
    return _phi(mu / 2 - epsilon / mu) - (math.exp(epsilon) * lost if lost else 0.0)


def _normal(mu: float, delta: float) -> float:
    return _root(partial(_shifted, mu), delta)


def exact(sigma: float, delta: float, steps: int = 1) -> float:
    """ε of Gaussian noise, of one release or several."""
    return _normal(math.sqrt(steps) / sigma, delta)


# Rényi: of a Poisson-sampled Gaussian, by whole orders (Mironov, Talwar and Zhang 2019).


def _moment(rate: float, sigma: float, order: int) -> float:
    """Logarithm of E[(P/Q)^order]."""
    terms = [
        math.log(math.comb(order, k))
        + k * math.log(rate)
        + (order - k) * math.log1p(-rate)
        + (k * k - k) / (2 * sigma**2)
        for k in range(order + 1)
    ]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


def _converted(rdp: float, order: float, delta: float) -> float:
    """ε of one order (Canonne, Kamath and Steinke 2020, proposition 12)."""
    return rdp + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)


def renyi(sigma: float, rate: float, steps: int, delta: float) -> float:
    """ε of Poisson-sampled Gaussian noise, by whole orders."""
    return max(
        0.0,
        min(
            _converted(steps * _moment(rate, sigma, order) / (order - 1), order, delta)
            for order in [*range(2, 64), 96, 128, 256]
        ),
    )


def sampled_curve(sigma: float, rate: Real, steps: int) -> PrivacyCurve:
    """So many Poisson-sampled steps with Gaussian noise."""
    return steps * Gaussian(sigma=sigma).poisson_sampled(rate=rate)


def central_limit(sigma: float, rate: float, steps: int, delta: float) -> float:
    """ε as if the privacy loss were normal."""
    return _normal(rate * math.sqrt(steps * math.expm1(1 / sigma**2)), delta)


def _series(rate: float, sigma: float, order: float, *, absolute: bool) -> float:
    """The same for an order that isn't whole, by two series that alternate in the end."""
    middle = sigma**2 * math.log(1 / rate - 1) + 0.5
    total, binomial, before = 0.0, 1.0, math.inf
    for i in range(1000):
        j = order - i
        low = (1 - rate) ** j * rate**i * math.exp((i * i - i) / (2 * sigma**2))
        high = (1 - rate) ** i * rate**j * math.exp((j * j - j) / (2 * sigma**2))
        low *= binomial * _phi((middle - i) / sigma)
        high *= binomial * _phi((j - middle) / sigma)
        total += low + high
        term = max(abs(low), abs(high))
        if term < (math.exp(-30) if absolute else min(before, math.exp(-30) * total)):
            return math.log(total)
        before, binomial = term, binomial * (order - i) / (i + 1)
    return math.inf


def fractional_orders(
    sigma: float, rate: float, steps: int, delta: float, *, absolute: bool
) -> float:
    """ε by orders that aren't whole."""
    orders = (2.5, 4.5, 8.5, 16.5, 32.5, 58.5, 59.5)
    moments = {order: _series(rate, sigma, order, absolute=absolute) for order in orders}
    return max(
        0.0,
        min(_converted(steps * m / (order - 1), order, delta) for order, m in moments.items()),
    )


def sampled_delta(sigma: float, rate: float, epsilon: float, *, both: bool) -> float:
    """δ of one Poisson-sampled Gaussian, by where the likelihood ratio passes e^ε."""

    def divergence(sign: float) -> float:
        odds = math.exp(sign * epsilon) - 1 + rate  # of the density with the record
        if odds <= 0:
            return 0.0
        z = sigma**2 * math.log(odds / rate) + 0.5
        with_ = (1 - rate) * _phi(-sign * z / sigma) + rate * _phi(-sign * (z - 1) / sigma)
        without = _phi(-sign * z / sigma)
        p, q = (with_, without) if sign > 0 else (without, with_)
        return max(0.0, p - math.exp(epsilon) * q)

    return max(divergence(-1), divergence(1) if both else 0.0)


def transformed(sigma: float, steps: int, delta: float) -> float:
    """ε by a fast Fourier transform of the privacy loss on a grid, rounded up."""
    mu, step = 1 / sigma, 1e-3
    reach = steps * mu**2 / 2 + 12 * mu * math.sqrt(steps)
    size = 1 << math.ceil(math.log2(2 * reach / step))
    losses = (np.arange(size) - size // 2) * step
    tails = np.array([_phi((x - mu**2 / 2) / mu) for x in losses])
    once = np.diff(tails, prepend=0.0)
    spectrum = np.fft.rfft(np.fft.ifftshift(once)) ** steps
    mass = np.fft.fftshift(np.fft.irfft(spectrum, size))
    above = np.cumsum(mass[::-1])[::-1]
    tilted = np.cumsum((mass * np.exp(-losses.clip(-50)))[::-1])[::-1]
    with np.errstate(over="ignore", invalid="ignore"):
        deltas = above - np.exp(losses) * tilted
    return float(losses[(losses >= 0) & (deltas <= delta)].min(initial=math.inf))


def odometer(epsilon: float, queries: int, delta: float, *, log: bool) -> float:
    """Optimal composition's closed form (Kairouz, Oh and Viswanath 2015, theorem 3.4)."""
    mean = queries * epsilon * math.tanh(epsilon / 2)
    inside = math.log(1 / delta) if log else 1 / delta
    return min(queries * epsilon, mean + epsilon * math.sqrt(2 * queries * inside))


def answers_curve(epsilon: float, queries: int) -> PrivacyCurve:
    """So many answers of ε each."""
    return queries * ApproxDP(epsilon=epsilon)


def advanced(epsilon: float, queries: int, delta: float, *, whole: bool) -> float:
    """Advanced composition (Dwork, Rothblum and Vadhan 2010), or its first term twice."""
    spread = epsilon * math.sqrt(2 * queries * math.log(1 / delta))
    if not whole:
        return 2 * spread
    return spread + queries * epsilon * math.expm1(epsilon)


def concentrated(sigma: float, delta: float, *, inverse: bool) -> float:
    """ε of ρ = 1/(2σ²), or of its inverse."""
    rho = 1 / (2 * sigma**2) if inverse else sigma**2 / 2
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def _calibrated(epsilon: float, delta: float, *, sign: float) -> float:
    """σ for (ε, δ) (Balle and Wang, ICML 2018, algorithm 1, where δ is small)."""

    def spent(u: float) -> float:
        return _phi(-math.sqrt(epsilon * u)) - math.exp(epsilon) * _phi(
            -math.sqrt(epsilon * (u + 2))
        )

    u = _root(spent, delta)
    return (math.sqrt(1 + u / 2) + sign * math.sqrt(u / 2)) / math.sqrt(2 * epsilon)


def promised(sigma: float, delta: float, *, sign: float) -> float:
    """The ε for which that σ is enough."""
    return _root(lambda epsilon: _calibrated(max(epsilon, 1e-9), delta, sign=sign), sigma, 20)


def classical(sigma: float, delta: float) -> float:
    """ε for which the textbook asks for that σ."""
    return math.sqrt(2 * math.log(1.25 / delta)) / sigma


def epochs(sigma: float, rows: int, batch: int, epochs: int, delta: float, *, last: bool) -> float:
    """ε of epochs of batches, with the last, smaller one or without."""
    steps = epochs * (math.ceil(rows / batch) if last else rows // batch)
    return renyi(sigma, batch / rows, steps, delta)


def trained_curve(sigma: float, rows: int, batch: int, epochs: int) -> PrivacyCurve:
    """The same, with all batches."""
    return sampled_curve(sigma, Fraction(batch, rows), epochs * math.ceil(rows / batch))


def weighted(
    sigma: float, rows: int, drawn: int, batch: int, steps: int, delta: float, *, of: str
) -> float:
    """ε at the batch's share of all rows, or of those that a sampler draws."""
    return renyi(sigma, batch / {"rows": rows, "drawn": drawn}[of], steps, delta)


def amplified(epsilon: float, rate: float, queries: int, *, again: bool) -> float:
    """Answers on a sample, each of ε; a new sample for each, or one for all."""
    if again:
        return queries * math.log1p(rate * math.expm1(epsilon))
    return math.log1p(rate * math.expm1(queries * epsilon))


def unclamped(sigma: float, delta: float) -> float:
    """ε by a conversion that isn't cut off at 0."""
    return min(_converted(order / (2 * sigma**2), order, delta) for order in range(2, 64))


def bit(p: float, *, lie: float) -> float:
    """Randomized response that tells the truth with probability p, and else lies with another."""
    return math.log((1 - lie * (1 - p)) / (lie * (1 - p)))


def documented(scale: float, *, inverse: bool) -> float:
    """ε of a scale, or the scale for it."""
    return 1 / scale if inverse else scale


def permuted(epsilon: float, times: int, delta: float, *, eighth: bool) -> float:
    """ε by ρ = ε²/8, the exponential mechanism's, or ε²/2, which any has."""
    rho = times * epsilon**2 / (8 if eighth else 2)
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def flipped_curve(epsilon: float, times: int) -> PrivacyCurve:
    """Permute-and-flip of two candidates, whose gap of 2 disappears: 1/2, and e^−ε/2.

    The second is moved towards the first by more than doubles may be wrong, which is a
    post-processing: the curve is below the truth, and so is what it refutes.
    """
    less = Fraction(math.exp(-epsilon) / 2 * (1 + 1e-12))
    law = FiniteLoss(pairs=((Fraction(1, 2), less), (Fraction(1, 2), 1 - less)))
    return Composed(losses=((law, times),))
