"""Noise and selections that deployments name, beside the four of `calibrate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from flint import arb

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_laplace import DiscreteLaplace
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.partition_selection import (
    PartitionSelection,
    gaussian_threshold,
    laplace_threshold,
)
from dpverify.accounting.curves.selection import (
    BoundedRange,
    exponential_mechanism,
    noisy_max,
    permute_and_flip,
    sparse_vector,
)
from dpverify.accounting.curves.staircase import Staircase
from dpverify.accounting.curves.truncated_laplace import (
    TruncatedLaplace,
    bound_of_truncated_laplace,
)
from dpverify.accounting.noise_distribution import NoiseDistribution, Values
from dpverify.accounting.solve import falling_root, largest_argument
from dpverify.accounting.targets import check_target
from dpverify.enclosure import Enclosure, enclose, short_string, to_arb
from dpverify.errors import require
from dpverify.guarantee import PrivacyCurve
from dpverify.numbers import whole

__all__ = ["NAMED"]

_UNIT = {"sensitivity": Fraction(1)}
_SCORES = {**_UNIT, "monotonic": Fraction(0)}
_SCORES_TEXT = {
    "sensitivity": "how far a score moves between neighbours",
    "monotonic": "1 if all scores move the same way, as counts if a row comes or goes; else 0",
}
_COUNT = {
    "sensitivity": "how much a person adds to a count",
    "groups": "how many groups a person is in at most",
}


def _largest(
    curve: Callable[[Fraction], PrivacyCurve], epsilon: Fraction, delta: Fraction, times: int
) -> Fraction:
    """The largest number of which so many curves have δ(ε) ≤ delta together; δ rises with it."""

    def at(number: float) -> Enclosure:
        one = curve(Fraction(number))
        return (one if times == 1 else times * one).delta_at(epsilon)

    return Fraction(largest_argument(at, delta))


def _scale_of_integers(
    values: Values, epsilon: Fraction, delta: Fraction, times: int
) -> Enclosure | Fraction:
    size = whole("sensitivity", values["sensitivity"])
    _check(epsilon, delta)
    if delta == 0:
        return Enclosure.of_exact(times * size / epsilon)

    def curve(share: Fraction) -> DiscreteLaplace:
        return DiscreteLaplace(scale=size / share, sensitivity=size)

    return size / _largest(curve, epsilon, delta, times)


def _step(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Fraction:
    _check(epsilon, delta)
    if delta == 0:
        return epsilon / times
    gamma = values["gamma"]
    return _largest(lambda step: Staircase(epsilon=step, gamma=gamma), epsilon, delta, times)


def _most_of_staircase(values: Values) -> Fraction:
    """P[L = ε₀] for steep steps: 1/2γ, which is at most 1, or 1/2 for γ = 0."""
    return 1 / max(2 * values["gamma"], Fraction(1)) if values["gamma"] else Fraction(1, 2)


def _scale_of_choice(
    values: Values, epsilon: Fraction, delta: Fraction, times: int
) -> Enclosure | Fraction:
    """Of one, ε₀ = 2 ln r with r = (z + √(δ(z² − 1 + δ)))/(1 − δ), z = e^(ε/2)."""
    _check(epsilon, delta)
    if times > 1 and delta > 0:
        length = _largest(lambda range_: BoundedRange(epsilon=range_), epsilon, delta, times)
        return _moves(values) / length

    def range_of() -> arb:
        z, share = to_arb(epsilon / times / 2).exp(), to_arb(delta)
        return 2 * ((z + (share * (z * z - 1 + share)).sqrt()) / (1 - share)).log()

    return enclose(lambda: to_arb(_moves(values)) / range_of())


def _scale_of_maximum(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Enclosure:
    _check(epsilon, delta)
    pure = _pure(epsilon, delta, times)
    return enclose(lambda: to_arb(_moves(values)) / pure())


def _scale_of_queries(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Enclosure:
    _check(epsilon, delta)
    pure, spent = _pure(epsilon, delta, times), values["sensitivity"] / values["threshold_scale"]
    left = Fraction(enclose(pure).lower)
    rule = f"below {short_string(left)}, what one release may cost"
    rule += ": the threshold alone costs that much"
    require(spent < left, "sensitivity/threshold_scale", short_string(spent), rule)
    moves = values["cutoff"] * _moves(values)
    return enclose(lambda: to_arb(moves) / (pure() - to_arb(spent)))


def _bound(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Enclosure:
    _once("truncated-laplace", times)
    return bound_of_truncated_laplace(
        epsilon, delta, scale=values["scale"], sensitivity=values["sensitivity"]
    )


def _threshold(values: Values, epsilon: Fraction, delta: Fraction, times: int) -> Enclosure:
    _check(epsilon, delta)
    _once("thresholds", times)
    start = PartitionSelection(noise=_noise(values), threshold=0, groups=values["groups"])
    counts = (start.groups * start.noise).delta_at(epsilon)
    rule = f"above {counts.upper:.4g}, the delta of the noise on the counts at this epsilon"
    require(counts.upper < delta, "delta", short_string(delta), rule)
    size = values["sensitivity"]

    def at(distance: float) -> Enclosure:
        threshold = size + Fraction(distance)
        curve = PartitionSelection(noise=start.noise, threshold=threshold, groups=values["groups"])
        return curve.delta_at(epsilon)

    found = falling_root(at, delta)
    ends = [Enclosure.of_exact(size + Fraction(end)) for end in (found.lower, found.upper)]
    return Enclosure(ends[0].lower, ends[1].upper)


def _once(name: str, times: int) -> None:
    hint = "Calibrate one of them for its share of the target."
    require(times == 1, "times", times, f"1 for {name}", hint)


def _noise(values: Values) -> Gaussian | Laplace:
    size = values["sensitivity"]
    if "sigma" in values:
        return Gaussian(sigma=values["sigma"], sensitivity=size)
    return Laplace(scale=values["scale"], sensitivity=size)


def _check(epsilon: Fraction, delta: Fraction) -> None:
    check_target(epsilon, delta)
    require(epsilon > 0 or delta > 0, "epsilon", epsilon, "positive where delta is 0")


def _moves(values: Values) -> Fraction:
    return (1 if values["monotonic"] else 2) * values["sensitivity"]


def _pure(epsilon: Fraction, delta: Fraction, times: int) -> Callable[[], arb]:
    """The largest ε₀ of which so many pure releases have δ(ε) ≤ delta together."""
    if delta == 0:
        return lambda: to_arb(epsilon / times)
    if times == 1:
        return lambda: ((to_arb(epsilon).exp() + to_arb(delta)) / (1 - to_arb(delta))).log()
    largest = _largest(lambda step: ApproxDP(epsilon=step), epsilon, delta, times)
    return lambda: to_arb(largest)


def _made(kind: Callable[..., PrivacyCurve]) -> Callable[[Values], PrivacyCurve]:
    return lambda values: kind(**values)


NAMED: Mapping[str, NoiseDistribution] = {
    "discrete-laplace": NoiseDistribution(
        kind=DiscreteLaplace,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.discrete_laplace",
        query={"sensitivity": "how far the query, a whole number, moves"},
        defaults=_UNIT,
        noise=("scale", "the scale b of the noise, of probabilities like exp(-|z|/b)"),
        curve=_made(DiscreteLaplace),
        calibrate=_scale_of_integers,
    ),
    "staircase": NoiseDistribution(
        kind=Staircase,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.staircase",
        query={"gamma": "which part of a step is high"},
        defaults={"gamma": Fraction(1, 2)},
        noise=("step", "the logarithm of a step down, epsilon of the noise"),
        curve=lambda values: Staircase(epsilon=values["step"], gamma=values["gamma"]),
        calibrate=_step,
        weakens=True,
        most=_most_of_staircase,
    ),
    "truncated-laplace": NoiseDistribution(
        kind=TruncatedLaplace,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.truncated_laplace",
        query={"sensitivity": "how far the query moves", "scale": "the scale b of the noise"},
        defaults=_UNIT,
        noise=("bound", "what no noise exceeds in size"),
        curve=_made(TruncatedLaplace),
        calibrate=_bound,
    ),
    "exponential": NoiseDistribution(
        kind=exponential_mechanism,
        theorem="the worst mechanism of bounded range; dpverify.accounting.curves.selection",
        query=_SCORES_TEXT,
        defaults=_SCORES,
        noise=("scale", "s, where a choice has a probability like exp(score/s)"),
        curve=_made(exponential_mechanism),
        calibrate=_scale_of_choice,
    ),
    "noisy-max": NoiseDistribution(
        kind=noisy_max,
        theorem="a proven upper bound; dpverify.accounting.curves.selection",
        query=_SCORES_TEXT,
        defaults=_SCORES,
        noise=("scale", "the scale b of the Laplace noise on each score"),
        curve=_made(noisy_max),
        calibrate=_scale_of_maximum,
    ),
    "permute-and-flip": NoiseDistribution(
        kind=permute_and_flip,
        theorem="a proven upper bound; dpverify.accounting.curves.selection",
        query=_SCORES_TEXT,
        defaults=_SCORES,
        noise=("scale", "s, where a score x below the best is taken with exp(-x/s)"),
        curve=_made(permute_and_flip),
        calibrate=_scale_of_maximum,
    ),
    "sparse-vector": NoiseDistribution(
        kind=sparse_vector,
        theorem="a proven upper bound; dpverify.accounting.curves.selection",
        query={
            **_SCORES_TEXT,
            "threshold_scale": "the scale of the Laplace noise on the threshold",
            "cutoff": "after how many scores above the threshold it ends",
        },
        defaults={**_SCORES, "cutoff": Fraction(1)},
        noise=("scale", "the scale of the Laplace noise on each score"),
        curve=_made(sparse_vector),
        calibrate=_scale_of_queries,
    ),
    "laplace-threshold": NoiseDistribution(
        kind=laplace_threshold,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.partition_selection",
        query={**_COUNT, "scale": "the scale b of the Laplace noise on a count"},
        defaults={**_UNIT, "groups": Fraction(1)},
        noise=("threshold", "what a noisy count has to reach to be shown; not below sensitivity"),
        curve=_made(laplace_threshold),
        calibrate=_threshold,
    ),
    "gaussian-threshold": NoiseDistribution(
        kind=gaussian_threshold,
        theorem="the exact hockey-stick divergence; dpverify.accounting.curves.partition_selection",
        query={**_COUNT, "sigma": "the standard deviation of the noise on a count"},
        defaults={**_UNIT, "groups": Fraction(1)},
        noise=("threshold", "what a noisy count has to reach to be shown; not below sensitivity"),
        curve=_made(gaussian_threshold),
        calibrate=_threshold,
    ),
}
