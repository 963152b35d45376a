"""Noise distributions by name: the curve of each, and the noise that a target needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dpverify.accounting.curves.gaussian import THEOREM, Gaussian, sigma_gaussian
from dpverify.accounting.curves.laplace import Laplace, scale_laplace_curve
from dpverify.accounting.curves.randomized_response import (
    RandomizedResponse,
    keep_probability_curve,
)
from dpverify.enclosure import Enclosure, Real, rational
from dpverify.errors import ParameterError, require
from dpverify.guarantee import PrivacyCurve

__all__ = ["DISTRIBUTIONS", "NoiseDistribution"]

Values = Mapping[str, Fraction]
_DOWN = Context(prec=18, rounding=ROUND_FLOOR)  # less truthful answers are as private


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDistribution:
    """A way to randomise a query, and its accountant.

    Attributes
    ----------
    theorem : what proves the curve
    query : parameters of the query, and what each is
    defaults : of those that may be left out
    noise : name of the noise's parameter, and what it is
    curve : exact curve for parameters and noise
    calibrate : the noise for (parameters, ε, δ): an enclosure whose upper end is safe, or a decimal
        that is safe as it stands
    """

    theorem: str
    query: Mapping[str, str]
    defaults: Values
    noise: tuple[str, str]
    curve: Callable[[Values], PrivacyCurve]
    calibrate: Callable[[Values, Real, Real], Enclosure | str]


def _gaussian(values: Values) -> PrivacyCurve:
    sensitivity, sigma = values["sensitivity"], values["sigma"]
    for name in ("sensitivity", "sigma"):
        require(values[name] > 0, name, values[name], "positive")
    return Gaussian.from_mu_squared((sensitivity / sigma) ** 2)


def _laplace(values: Values) -> PrivacyCurve:
    require(values["sensitivity"] > 0, "sensitivity", values["sensitivity"], "positive")
    return Laplace.of_row([values["sensitivity"]], scale=values["scale"])


def _scale(values: Values, epsilon: Real, delta: Real) -> Enclosure:
    require(values["sensitivity"] > 0, "sensitivity", values["sensitivity"], "positive")
    return scale_laplace_curve(epsilon, delta, row=[values["sensitivity"]])


def _whole(name: str, value: Fraction) -> int:
    if value.denominator != 1:
        raise ParameterError(name, value, "a whole number")
    return value.numerator


def _response(values: Values) -> PrivacyCurve:
    count, keep = _whole("values", values["values"]), values["keep"]
    require(count >= 2, "values", count, "at least 2")
    require(Fraction(1, count) <= keep < 1, "keep", keep, f"in [1/{count}, 1)")
    positions = _whole("positions", values["positions"])
    return RandomizedResponse(keep=keep, other=(1 - keep) / (count - 1), positions=positions)


def _keep(values: Values, epsilon: Real, delta: Real) -> str:
    keep = keep_probability_curve(
        rational("epsilon", epsilon),
        rational("delta", delta),
        values=_whole("values", values["values"]),
        positions=_whole("positions", values["positions"]),
    )
    return str(_DOWN.divide(Decimal(keep.numerator), Decimal(keep.denominator)))


DISTRIBUTIONS: Mapping[str, NoiseDistribution] = {
    "gaussian": NoiseDistribution(
        theorem=THEOREM,
        query={"sensitivity": "the l2-sensitivity of the query"},
        defaults={},
        noise=("sigma", "the standard deviation of the noise"),
        curve=_gaussian,
        calibrate=lambda values, epsilon, delta: sigma_gaussian(
            epsilon, delta, sensitivity=values["sensitivity"]
        ),
    ),
    "laplace": NoiseDistribution(
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.laplace",
        query={"sensitivity": "the l1-sensitivity of the query"},
        defaults={},
        noise=("scale", "the scale b of the noise, of density exp(-|x|/b)/2b"),
        curve=_laplace,
        calibrate=_scale,
    ),
    "randomized-response": NoiseDistribution(
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.randomized_response",
        query={
            "values": "how many values an answer may have",
            "positions": "how many answers differ between neighbours",
        },
        defaults={"values": Fraction(2), "positions": Fraction(1)},
        noise=("keep", "the probability of the true answer, the others being equally likely"),
        curve=_response,
        calibrate=_keep,
    ),
}
