"""Noise distributions by name: the curve of each, and the noise that a target needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TypeVar, cast

from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian
from dpverify.accounting.curves.gaussian import (
    THEOREM,
    Gaussian,
    delta_gaussian,
    sigma_gaussian,
)
from dpverify.accounting.curves.laplace import Laplace, scale_laplace_curve
from dpverify.accounting.curves.randomized_response import (
    RandomizedResponse,
    keep_probability_curve,
)
from dpverify.accounting.solve import beside, brentq, largest_argument
from dpverify.accounting.targets import Target
from dpverify.enclosure import Enclosure, Real, SquareRoot, rational
from dpverify.errors import NumericalError, ParameterError, did_you_mean, require
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import count, positive_rational, whole

__all__ = ["DISTRIBUTIONS", "NoiseDistribution", "calibrate"]

Values = Mapping[str, Fraction]
_UP = Context(prec=17, rounding=ROUND_CEILING)
_SIGMA_DIGITS = Context(prec=10, rounding=ROUND_CEILING)
_SIGMA_WIDTH, _SIGMA_STEP = 1e-8, 1e-9
_SAMPLES_ACCURACY = 1e-3  # of a threshold: a millionth of the noise; each try takes a second
_Curve = TypeVar("_Curve", bound=PrivacyCurve)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDistribution:
    """A way to randomize a query, and its accountant.

    Attributes
    ----------
    kind : class of its curve
    theorem : what proves the curve
    query : parameters of the query, and what each is
    defaults : of those that may be left out
    noise : name of the noise's parameter, and what it is
    curve : exact curve for parameters and noise
    calibrate : the noise for (parameters, ε, δ) of so many releases together: an enclosure, or an
        exact number that is safe
    """

    kind: type[PrivacyCurve]
    theorem: str
    query: Mapping[str, str]
    defaults: Values
    noise: tuple[str, str]
    curve: Callable[[Values], PrivacyCurve]
    calibrate: Callable[[Values, Fraction, Fraction, int], Enclosure | Fraction]

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
        if share != 1:
            hint = "Gaussian noise is calibrated for samples."
            require(self.kind is Gaussian, "rate", rate, f"1 for {self.kind.__name__}", hint)
            return self._least_of_samples(values, target, releases, share)

        def advantage(noise: Enclosure | Fraction) -> float:
            curve = self.curve(self.with_noise(values, noise))
            return (curve if releases == 1 else releases * curve).delta_at(0).upper

        return target.least(
            lambda eps, delta: self.calibrate(values, eps, delta, releases), advantage
        )

    def _least_of_samples(
        self, values: Values, target: Target, releases: int, share: Fraction
    ) -> Fraction:
        size = values["sensitivity"]

        def advantage(sigma: Fraction) -> float:
            step = self.curve(self.with_noise(values, sigma)).poisson_sampled(rate=share)
            return (releases * step).delta_at(0).upper

        return target.least(
            lambda eps, delta: _sigma_of_samples(size, eps, delta, releases, share),
            advantage,
            accuracy=_SAMPLES_ACCURACY,
        )

    def with_noise(self, values: Values, noise: Enclosure | Fraction) -> Values:
        """All parameters, the noise's being its safe end."""
        safe = Fraction(noise.upper) if isinstance(noise, Enclosure) else noise
        return {**values, self.noise[0]: safe}


def calibrate(
    kind: type[_Curve],
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    advantage: Real | None = None,
    success: Real | None = None,
    prior: Real | None = None,
    tpr: Real | None = None,
    fpr: Real | None = None,
    times: Real = 1,
    rate: Real = 1,
    **query: Real,
) -> _Curve:
    """The curve of the least noise of a kind that is proven to reach a target.

    Parameters
    ----------
    kind : Gaussian, DiscreteGaussian, Laplace or RandomizedResponse
    epsilon, delta : the target, for all releases together: (ε, δ)-differential privacy
    advantage, success, prior, tpr, fpr : or a risk that it is, each at most so large; see `Risk`:
        the advantage, or how often a guess of what has the prior, by default 1/2, is right, or the
        true positive rate at a false positive rate
    times, rate : how many releases there are, each on a Poisson sample that a record enters with
        probability `rate`, which is 1 but for Gaussian noise
    query : the query's parameters: `sensitivity`, by default 1; for randomized response `values`,
        by default 2, and `positions`, by default 1

    Returns
    -------
    The curve, whose noise parameter is the safe end: `sigma` and `scale` are next above the least
    ones, `keep` is a coin's probability next below the largest one.

    Raises
    ------
    ParameterError
        If a number is outside its domain, or the noise doesn't reach the target at any scale.

    Examples
    --------
    >>> import dpverify as dpv
    >>> noise = dpv.calibrate(dpv.Gaussian, epsilon=1, delta=1e-6)
    >>> float(noise.sigma)
    4.224678889326837
    >>> noise.delta_at(epsilon=1).upper <= 1e-6
    True
    >>> dpv.calibrate(dpv.Gaussian, tpr="0.1", fpr="0.01").risk().tpr_at("0.01").upper <= 0.1
    True
    >>> step = dpv.calibrate(dpv.Gaussian, epsilon=1, delta=1e-6, times=10)
    >>> (10 * step).delta_at(epsilon=1).upper <= 1e-6
    True
    """
    names = {noise.kind: noise for noise in DISTRIBUTIONS.values()}
    if not isinstance(kind, type) or kind not in names:
        known = ", ".join(each.__name__ for each in names)
        raise ParameterError("kind", getattr(kind, "__name__", kind), f"one of {known}")
    noise = names[kind]
    for name, value in query.items():
        hint = did_you_mean(name, noise.query)
        require(name in noise.query, name, value, f"left out for {kind.__name__}", hint)
    values = {**noise.defaults, **{name: rational(name, value) for name, value in query.items()}}
    target = Target(
        epsilon=epsilon,
        delta=delta,
        advantage=advantage,
        success=success,
        prior=prior,
        tpr=tpr,
        fpr=fpr,
    )
    least = noise.least(values, target, times=times, rate=rate)
    return cast("_Curve", noise.curve(noise.with_noise(values, least)))


def _sigma_of_integers(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Fraction:
    """A σ of 17 digits with δ(ε) ≤ delta proven, next to the least one that a search finds."""
    require(epsilon >= 0, "epsilon", epsilon, "at least 0")
    rule = "in (0, 1): the privacy loss of this noise is unbounded"
    require(0 < delta < 1, "delta", delta, rule)
    size = whole("sensitivity", values["sensitivity"])

    def at(sigma: Fraction) -> Enclosure:
        curve = DiscreteGaussian(sigma=sigma, sensitivity=size)
        return (curve if times == 1 else times * curve).delta_at(epsilon)

    goal = Enclosure.of_exact(delta).lower
    share = largest_argument(lambda x: at(1 / Fraction(x)), delta)
    for near in beside(share, -1):
        sigma = Fraction(_UP.divide(1, Decimal(near)))
        if at(sigma).upper <= goal:  # the decimal that is printed is the σ that is proven
            return sigma
    raise NumericalError(f"no certified sigma near {1 / share!r}")


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
        sigma = Fraction(_SIGMA_DIGITS.create_decimal(Decimal(near)))
        if at(sigma).upper <= goal:
            return sigma
    raise NumericalError(f"no certified sigma near {math.exp(root)!r}")


def _limit_sigma(
    size: Fraction, epsilon: Fraction, delta: Fraction, times: int, rate: Fraction
) -> float:
    """Where to begin: as if μ² were T·q²·(e^{Δ²/σ²} − 1), as in the limit of many releases."""
    goal = float(delta)
    low, high = 0.05, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        mu_squared = times * float(rate) ** 2 * math.expm1(middle**-2)
        over = delta_gaussian(epsilon, 1, sensitivity=SquareRoot(Fraction(mu_squared))).lower > goal
        low, high = (middle, high) if over else (low, middle)
    return high * float(size)


def _keep(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Fraction:
    return keep_probability_curve(
        epsilon,
        delta,
        values=whole("values", values["values"]),
        positions=times * whole("positions", values["positions"]),
    )


def _scale(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Enclosure:
    size = positive_rational("sensitivity", values["sensitivity"])
    return scale_laplace_curve(epsilon, delta, row=[size], times=times)


_ONE = {"sensitivity": Fraction(1)}
DISTRIBUTIONS: Mapping[str, NoiseDistribution] = {
    "gaussian": NoiseDistribution(
        kind=Gaussian,
        theorem=THEOREM,
        query={"sensitivity": "the l2-sensitivity of the query"},
        defaults=_ONE,
        noise=("sigma", "the standard deviation of the noise"),
        curve=lambda values: Gaussian(sigma=values["sigma"], sensitivity=values["sensitivity"]),
        calibrate=lambda values, epsilon, delta, times: sigma_gaussian(
            epsilon, delta, sensitivity=SquareRoot(times * values["sensitivity"] ** 2)
        ),
    ),
    "discrete-gaussian": NoiseDistribution(
        kind=DiscreteGaussian,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.discrete_gaussian",
        query={"sensitivity": "how far the query, a whole number, moves"},
        defaults=_ONE,
        noise=("sigma", "the parameter of the noise, of probabilities like exp(-y^2/2 sigma^2)"),
        curve=lambda values: DiscreteGaussian(
            sigma=values["sigma"], sensitivity=whole("sensitivity", values["sensitivity"])
        ),
        calibrate=_sigma_of_integers,
    ),
    "laplace": NoiseDistribution(
        kind=Laplace,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.laplace",
        query={"sensitivity": "the l1-sensitivity of the query"},
        defaults=_ONE,
        noise=("scale", "the scale b of the noise, of density exp(-|x|/b)/2b"),
        curve=lambda values: Laplace(scale=values["scale"], sensitivity=values["sensitivity"]),
        calibrate=_scale,
    ),
    "randomized-response": NoiseDistribution(
        kind=RandomizedResponse,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.randomized_response",
        query={
            "values": "how many values an answer may have",
            "positions": "how many answers differ between neighbours",
        },
        defaults={"values": Fraction(2), "positions": Fraction(1)},
        noise=("keep", "the probability of the true answer, the others being equally likely"),
        curve=lambda values: RandomizedResponse.of_values(**values),
        calibrate=_keep,
    ),
}
