"""What calibration has to know of a noise: its parameters, its curve, and what a target needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction

from dpverify._decimals import context
from dpverify.accounting.curves.gaussian import Gaussian, delta_gaussian, sigma_gaussian
from dpverify.accounting.solve import brentq
from dpverify.accounting.targets import Target
from dpverify.enclosure import Enclosure, Real, SquareRoot, enclose, rational, to_arb
from dpverify.errors import NumericalError, require
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import count

__all__ = ["NoiseDistribution", "Values"]

Values = Mapping[str, Fraction]
_SIGMA_DIGITS = context(10, ROUND_CEILING)
_SIGMA_WIDTH, _SIGMA_STEP = 1e-8, 1e-9
_LEAST_MU_SQUARED = 1e-120
_SAMPLES_ACCURACY = 1e-3  # of a threshold: a millionth of the noise; each try takes a second


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDistribution:
    """A way to randomize a query, and its accountant.

    Attributes
    ----------
    kind : class of its curve, or what makes it
    theorem : what proves the curve
    query : parameters of the query, and what each is
    defaults : of those that may be left out
    noise : name of the noise's parameter, and what it is
    curve : exact curve for parameters and noise
    calibrate : the noise for (parameters, ε, δ) of so many releases together: an enclosure, or an
        exact number that is safe
    weakens : whether the noise is the less, the larger its parameter
    most : of one release, a δ that it doesn't exceed at any ε, however little noise there is
    """

    kind: Callable[..., PrivacyCurve]
    theorem: str
    query: Mapping[str, str]
    defaults: Values
    noise: tuple[str, str]
    curve: Callable[[Values], PrivacyCurve]
    calibrate: Callable[[Values, Fraction, Fraction, int], Enclosure | Fraction]
    weakens: bool = False
    most: Callable[[Values], Fraction] = lambda _: Fraction(1)

    @property
    def name(self) -> str:
        """What Python calls its kind."""
        return getattr(self.kind, "__name__", str(self.kind))

    def least(
        self, values: Values, target: Target, *, times: Real = 1, rate: Real = 1
    ) -> Enclosure | Fraction:
        """The least noise for a target: an enclosure, or an exact number that is safe.

        Parameters
        ----------
        values : the query's parameters
        target : for all releases together
        times, rate : how many there are, each on a Poisson sample of this rate
        """
        releases, share = count("times", times), rational("rate", rate)
        require(0 < share <= 1, "rate", rate, "in (0, 1]")
        self._check(values)
        most = _together(share * self.most(values), releases)
        if share != 1:
            hint = "Gaussian noise is calibrated for samples."
            require(self.kind is Gaussian, "rate", rate, f"1 for {self.name}", hint)
            size_of_query = values["sensitivity"]
            return target.least(
                lambda eps, delta: _sigma_of_samples(size_of_query, eps, delta, releases, share),
                float,
                most=most,
                accuracy=_SAMPLES_ACCURACY,
            )

        def size(noise: Enclosure | Fraction) -> float:
            safe = float(self.with_noise(values, noise)[self.noise[0]])
            return -safe if self.weakens else safe

        return target.least(
            lambda eps, delta: self.calibrate(values, eps, delta, releases), size, most=most
        )

    def _check(self, values: Values) -> None:
        """Refuse a query's parameters that no curve has, by one with some noise."""
        size = abs(values.get("sensitivity", Fraction(1))) or Fraction(1)
        self.curve({**values, self.noise[0]: Fraction(1, 2) if self.weakens else size})

    def with_noise(self, values: Values, noise: Enclosure | Fraction) -> Values:
        """All parameters, the noise's being its safe end."""
        if isinstance(noise, Enclosure):
            finite = math.isfinite(noise.upper)
            require(finite, self.noise[0], noise.upper, "finite", "Ask for a larger epsilon.")
        safe = Fraction(noise.upper) if isinstance(noise, Enclosure) else noise
        return {**values, self.noise[0]: safe}


def _together(most: Fraction, times: int) -> Fraction:
    """At least 1 − (1 − most)ⁿ."""
    if most == 1 or times == 1:
        return most
    return Fraction(enclose(lambda: -(times * (-to_arb(most)).log1p()).expm1()).upper)


def _sigma_of_samples(
    size: Fraction, epsilon: Fraction, delta: Fraction, times: int, rate: Fraction
) -> Fraction:
    """A σ with δ(ε) ≤ delta proven for all releases, within a relative 1e-8 of the least one.

    δ falls as σ rises, since more noise is the same with some added.
    """
    sigma_gaussian(epsilon, delta, sensitivity=size)  # refuses what isn't a target
    goal, log_goal = Enclosure.of_exact(delta).lower, math.log(delta)

    def at(sigma: Fraction) -> Enclosure:
        step = Gaussian(sigma=sigma, sensitivity=size).poisson_sampled(rate=rate)
        return (times * step).delta_at(epsilon)

    def excess(log: float) -> float:
        found = at(Fraction(math.exp(log)))
        return math.log(max(found.upper, 1e-320)) - log_goal

    low = high = math.log(_limit_sigma(size, epsilon, delta, times, rate))
    below = above = excess(low)
    reach = 0.02
    while below <= 0:
        low, reach = low - reach, 2 * reach
        below = excess(low)
    reach = 0.02
    while above > 0:
        high, reach = high + reach, 2 * reach
        above = excess(high)
    root = brentq(excess, low, high, xtol=_SIGMA_WIDTH / 8, rtol=2**-50) if low < high else low
    for step in range(40):  # the decimal that is printed is the σ that is proven
        near = math.exp(root) * (1 + step * _SIGMA_STEP)
        sigma = Fraction(_SIGMA_DIGITS.create_decimal_from_float(near))
        if at(sigma).upper <= goal:
            return sigma
    raise NumericalError(f"no certified sigma near {math.exp(root)!r}")


def _limit_sigma(
    size: Fraction, epsilon: Fraction, delta: Fraction, times: int, rate: Fraction
) -> float:
    """Where to begin: as if μ² were T·q²·(e^{Δ²/σ²} − 1), as in the limit of many releases."""
    goal = float(delta)

    def over(sigma: float) -> bool:
        mu_squared = times * float(rate) ** 2 * math.expm1(sigma**-2)
        if mu_squared < _LEAST_MU_SQUARED:
            return False
        return delta_gaussian(epsilon, 1, sensitivity=SquareRoot(Fraction(mu_squared))).lower > goal

    low, high = 0.07, 1e60  # between which e^{1/σ²} and μ² are doubles far from their ends
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if over(middle) else (low, middle)
    return high * float(size)
