"""Noise distributions by name: the curve of each, and the noise that a target needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TypeVar, cast

from dpverify._decimals import context
from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian
from dpverify.accounting.curves.gaussian import (
    THEOREM,
    Gaussian,
    sigma_gaussian,
)
from dpverify.accounting.curves.laplace import Laplace, scale_laplace_curve
from dpverify.accounting.curves.randomized_response import (
    RandomizedResponse,
    keep_probability_curve,
)
from dpverify.accounting.named_noises import NAMED
from dpverify.accounting.noise_distribution import NoiseDistribution, Values
from dpverify.accounting.solve import beside, largest_argument
from dpverify.accounting.targets import Target, check_target
from dpverify.enclosure import Enclosure, Real, SquareRoot, rational
from dpverify.errors import NumericalError, ParameterError, did_you_mean, require
from dpverify.execution.arithmetic import usual_arithmetic
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import positive_rational, whole

__all__ = ["DISTRIBUTIONS", "calibrate"]

_UP = context(17, ROUND_CEILING)
_Curve = TypeVar("_Curve", bound=PrivacyCurve)


@usual_arithmetic()
def calibrate(
    kind: Callable[..., _Curve],
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
    kind : Gaussian, DiscreteGaussian, Laplace, RandomizedResponse, or of `dpv.curves`
        DiscreteLaplace, Staircase, TruncatedLaplace, exponential_mechanism, noisy_max,
        permute_and_flip, sparse_vector, laplace_threshold or gaussian_threshold
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
    if not callable(kind) or kind not in names:
        known = ", ".join(each.name for each in names.values())
        raise ParameterError("kind", getattr(kind, "__name__", kind), f"one of {known}")
    noise = names[kind]
    for name, value in query.items():
        hint = did_you_mean(name, noise.query)
        require(name in noise.query, name, value, f"left out for {noise.name}", hint)
    for name, meaning in noise.query.items():
        missing = name not in query and name not in noise.defaults
        require(not missing, name, "missing", f"given, {meaning}")
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
    check_target(epsilon, delta)
    size = whole("sensitivity", values["sensitivity"])

    def at(sigma: Fraction) -> Enclosure:
        curve = DiscreteGaussian(sigma=sigma, sensitivity=size)
        return (curve if times == 1 else times * curve).delta_at(epsilon)

    goal = Enclosure.of_exact(delta).lower
    share = largest_argument(lambda x: at(1 / Fraction(x)), delta)
    for near in beside(share, -1):
        sigma = Fraction(_UP.divide(1, Decimal.from_float(near)))
        if at(sigma).upper <= goal:  # the decimal that is printed is the σ that is proven
            return sigma
    raise NumericalError(f"no certified sigma near {1 / share!r}")


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
        weakens=True,
    ),
    **NAMED,
}
