"""Exact numbers that oracles are made of: fractions, and balls from python-flint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from itertools import product
from math import factorial
from typing import Any

from flint import acb, arb

from dpverify.enclosure import to_arb

__all__ = [
    "apart",
    "ball",
    "cdf",
    "chi_square",
    "density",
    "drawn_delta",
    "gaussian_delta",
    "hockey_stick",
    "integral",
    "integrals",
    "number",
    "rounded",
    "worst_event",
]

_INTEGRALS: ContextVar[list[None] | None] = ContextVar("_INTEGRALS", default=None)


def number(value: Any) -> Any:
    """The ball of a fraction or integer; balls stay as they are."""
    if isinstance(value, int):
        return arb(value)
    return to_arb(value) if isinstance(value, Fraction) else value


def ball(text: str | int | Fraction) -> arb:
    """A ball around a rational number, written as a decimal string or a fraction."""
    return to_arb(Fraction(text))


def cdf(x: Any) -> Any:
    """Distribution function of the standard normal, at a real or complex ball."""
    return (-x / arb(2).sqrt()).erfc() / 2


def density(x: Any) -> Any:
    """Density of the standard normal, at a real or complex ball."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def integral(function: Callable[[acb], acb], low: Any, high: Any) -> arb:
    """A proven enclosure of an integral of a function that is analytic near the interval."""
    if (counted := _INTEGRALS.get()) is not None:
        counted.append(None)
    result: arb = acb.integral(lambda z, _: function(z), acb(low), acb(high)).real
    return result


@contextmanager
def integrals() -> Iterator[list[None]]:
    """Counts the integrals that are taken meanwhile, one entry each."""
    outer, counted = _INTEGRALS.get(), list[None]()
    token = _INTEGRALS.set(counted)
    try:
        yield counted
    finally:
        _INTEGRALS.reset(token)
        if outer is not None:
            outer.extend(counted)


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose integrals nobody counts: those of a formula are none of its oracle."""

    def uncounted(*arguments: Any) -> Any:
        token = _INTEGRALS.set(None)
        try:
            return function(*arguments)
        finally:
            _INTEGRALS.reset(token)

    return uncounted


def chi_square(n: int, x: arb) -> arb:
    """P(χ² of n degrees > x) for even n, the finite sum e^(−x/2) Σ_{i<n/2} (x/2)ⁱ/i!."""
    term = total = arb(1)
    for i in range(1, n // 2):
        term = term * (x / 2) / i
        total += term
    return (-x / 2).exp() * total


def gaussian_delta(epsilon: arb, mu: arb) -> arb:
    """Least δ of N(0, 1) against N(μ, 1), integrated: ∫ (φ(x − μ) − e^ε φ(x)) over x > ε/μ + μ/2.

    With x = ε/μ + μ/2 + y and z = ε/μ − μ/2 it is φ(z)∫ e^(−zy − y²/2)(1 − e^(−μy)) over y > 0, all
    digits of which are proven where δ is tiny too. The 40 standard deviations that the integral
    stops at leave less than 10⁻³⁰⁰.
    """
    z = epsilon / mu - mu / 2
    return density(z) * integral(
        lambda y: (-y * (z + y / 2)).exp() * (1 - (-mu * y).exp()), 0, mu + 40
    )


def drawn_delta(epsilon: arb, k: int, scale: arb) -> arb:
    """Least δ of (P, Px + noise) for normal P and unit noise, one attribute of x moved: exactly.

    The column of P that counts, times the move, has length r = scale·χ of k degrees, so that δ is
    the mean of `gaussian_delta` in closed form. What is left out, r/scale below 1/20 and above
    40 + √k, weighs less than 10⁻³⁰ for k of 20 or more; k is even.
    """
    half = 2 ** (k // 2 - 1) * factorial(k // 2 - 1)

    def weighted(r: acb) -> acb:
        mu = r * scale
        delta = cdf(mu / 2 - epsilon / mu) - epsilon.exp() * cdf(-epsilon / mu - mu / 2)
        return r ** (k - 1) * (-r * r / 2).exp() / half * delta

    return integral(weighted, arb(1) / 20, 40 + arb(k).sqrt())


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], factor: Fraction) -> Fraction:
    """Σ (pᵢ − factor·qᵢ)₊, the least δ of one law against another at e^ε = factor."""
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def worst_event(p: Sequence[Fraction], q: Sequence[Fraction], factor: Fraction) -> Fraction:
    """Largest P(S) − factor·Q(S) over all events S."""
    return max(
        sum((s * (a - factor * b) for s, a, b in zip(event, p, q, strict=True)), Fraction(0))
        for event in product((0, 1), repeat=len(p))
    )


def rounded(value: arb, digits: int) -> Fraction:
    """The decimal with so many digits after the point that is nearest to a ball, proven."""
    place = int((value * 10**digits + arb(1) / 2).floor().unique_fmpz())
    return Fraction(place, 10**digits)
