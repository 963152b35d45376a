"""Laplace against Gaussian noise on a vector, at the same (ε, δ): the variance that each needs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpverify.accounting.curves.gaussian import sigma_gaussian
from dpverify.accounting.curves.laplace import scale_laplace, scale_laplace_curve
from dpverify.enclosure import Enclosure, Real, SquareRoot
from dpverify.numbers import rationals

__all__ = ["NoiseVariances", "noise_variances"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseVariances:
    """Variances per coordinate, in the query's unit squared, at one (ε, δ).

    Attributes
    ----------
    pure_laplace : 2(Δ₁/ε)², at δ = 0
    laplace : 2b² with b from the exact curve
    gaussian : σ² of the analytic Gaussian mechanism; infinite at δ = 0
    """

    pure_laplace: Enclosure
    laplace: Enclosure
    gaussian: Enclosure


def noise_variances(epsilon: Real, delta: Real, *, row: Iterable[Real]) -> NoiseVariances:
    """Compare Laplace and Gaussian noise on a vector that moves by `row`, at the same (ε, δ).

    Raises
    ------
    ParameterError
        If a value is outside its domain; NaN always is.
    """
    entries = rationals("row", row)
    pure = scale_laplace(epsilon, sensitivity=sum(map(abs, entries), Fraction(0)))
    exact_scale = scale_laplace_curve(epsilon, delta, row=entries)
    length = SquareRoot(sum((entry**2 for entry in entries), Fraction(0)))
    infinite = Enclosure(math.inf, math.inf)
    sigma = sigma_gaussian(epsilon, delta, sensitivity=length) if delta else infinite
    return NoiseVariances(
        pure_laplace=_square(pure, 2), laplace=_square(exact_scale, 2), gaussian=_square(sigma, 1)
    )


def _square(value: Enclosure, factor: int) -> Enclosure:
    if math.isinf(value.upper):
        return value
    ends = (Enclosure.of_exact(factor * Fraction(end) ** 2) for end in (value.lower, value.upper))
    low, high = ends
    return Enclosure(low.lower, high.upper)
