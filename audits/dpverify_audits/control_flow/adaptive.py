"""Noise that adapts: smooth sensitivity, propose-test-release, subsampling, queries that follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify_audits.control_flow.case import Case, Close, case, claim

__all__ = ["CASES"]

_BITS = (((0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1)), ((1, 1, 1, 0, 0, 0), (1, 1, 1, 1, 0, 0)))
_ONE_OF = Close(unit="one of the values, in [0, 1]")
_DELTA = 0.02


def _median(x: Any) -> float:
    return float(np.sort(x)[(x.size - 1) // 2])


def _smooth_sensitivity(x: Any, beta: float) -> float:
    """Of the median of values in [0, 1]: Nissim, Raskhodnikova and Smith 2007, section 3.1."""
    n, middle = x.size, (x.size - 1) // 2
    padded = np.concatenate([np.zeros(n + 1), np.sort(x), np.ones(n + 1)])
    most = 0.0
    for k in range(n + 1):
        local = max(
            padded[n + 1 + middle + t] - padded[n + 1 + middle + t - k - 1] for t in range(k + 2)
        )
        most = max(most, math.exp(-k * beta) * local)
    return float(most)


def _smooth_cauchy(share: float, x: Any, rng: Any) -> float:
    """Their lemma 2.7 with γ = 2: noise of scale 6S/ε for β = ε/6."""
    noise = float(rng.standard_cauchy())
    return _median(x) + share * 6 * _smooth_sensitivity(x, 1 / 6) * noise


def _smooth_laplace(share: float, x: Any, rng: Any) -> float:
    """Noise of scale 2S/ε for β = ε/(2 ln(2/δ))."""
    beta = 1 / (2 * math.log(2 / _DELTA))
    scale = share * 2 * _smooth_sensitivity(x, beta)
    return _median(x) + float(rng.laplace(scale=scale))


def _local(x: Any, rng: Any) -> float:
    """The local sensitivity, which tells what it is."""
    values = np.sort(x)
    middle = (x.size - 1) // 2
    scale = max(values[middle + 1] - values[middle], 1e-3)
    return _median(x) + float(rng.laplace(scale=scale))


def _tested(scale: float, x: Any, rng: Any) -> float:
    """The majority, if it is far enough from changing: Dwork and Roth 2014, theorem 7.3."""
    ones, n = int(x.sum()), x.size
    majority = ones > n / 2
    flips = ones - n // 2 if majority else n // 2 + 1 - ones
    if flips - 1 + rng.laplace(scale=scale) > math.log(1 / _DELTA):
        return float(majority)
    return -1.0


def _untested(x: Any, rng: Any) -> float:
    return float(x.sum() > x.size / 2)


def _poisson(rate: float, x: Any, rng: Any) -> float:
    """A count of those who are sampled, one by one."""
    count = 0
    for value in x.tolist():
        if rng.random() < rate and value:
            count += 1
    return float(count + rng.laplace())


def _without_replacement(size: int, x: Any, rng: Any) -> float:
    chosen = rng.choice(x, size=size, replace=False)
    return float(chosen.sum() + rng.laplace())


def _sampled_report(rate: float, x: Any, rng: Any) -> float:
    """Who is sampled answers by randomized response; the others toss a coin."""
    if rng.random() >= rate:
        return float(rng.integers(2))
    keep = math.exp(2) / (1 + math.exp(2))
    return float(x[0] if rng.random() < keep else 1 - x[0])


def _amplified(epsilon: float, rate: float) -> float:
    return math.log(1 + rate * (math.exp(epsilon) - 1))


def _sampled_epsilon(rate: float) -> float:
    p = rate * math.exp(2) / (1 + math.exp(2)) + (1 - rate) / 2
    return math.log(p / (1 - p))


def _second_after_first(scale: float, x: Any, rng: Any) -> Any:
    """What is asked second depends on what was answered first."""
    first = x[0] + rng.laplace(scale=scale)
    second = x.sum() if first > 1 else x[0]
    return np.array([first, second + rng.laplace(scale=scale)])


def _stops(scale: float, x: Any, rng: Any) -> Any:
    """It stops at the first large answer, and answers three times at most."""
    released = np.full(3, -10.0)
    for place in range(3):
        released[place] = x.sum() + rng.laplace(scale=scale)
        if released[place] > 2:
            break
    return released


def _noise_by_answer(scale: float, x: Any, rng: Any) -> Any:
    """The law of the second noise is chosen by the first answer."""
    first = x.sum() + rng.laplace(scale=scale)
    if first > 1:
        noise = rng.laplace(scale=scale)
    else:
        noise = rng.exponential(scale=scale) - rng.exponential(scale=scale)
    return np.array([first, x.sum() + noise])


def _chosen_mechanism(scale: float, x: Any, rng: Any) -> Any:
    """A public coin chooses between two mechanisms."""
    if rng.random() < 0.5:
        return np.array([0.0, x.sum() + rng.laplace(scale=scale)])
    return np.array([1.0, x.sum() + rng.logistic(scale=scale)])


def _mean(scale: float, x: Any, rng: Any) -> float:
    """A noisy sum over a noisy count, with half of ε each."""
    total = np.clip(x, 0, 1).sum() + rng.laplace(scale=scale)
    count = x.size + rng.laplace(scale=scale)
    return float(np.clip(total / max(count, 1.0), 0, 1))


def _step(sigma: float, x: Any, rng: Any) -> Any:
    """Clipped gradients, one by one, with normal noise."""
    total = np.zeros(2)
    for value in x.tolist():
        gradient = np.array([value, 3 * value])
        total += gradient / max(1.0, float(np.linalg.norm(gradient)))
    return total + rng.normal(scale=sigma, size=2)


def _cube(rate: float, x: Any, rng: Any) -> Any:
    """Density e^(−rate·max|z|): Hardt and Talwar 2010, for answers that move by at most 1 each."""
    radius = rng.gamma(x.size + 1, 1 / rate)
    return x + radius * rng.uniform(-1, 1, size=x.size)


def _median_of_noisy(scale: float, x: Any, rng: Any) -> float:
    """Three answers with a third of ε each, of which the middle one is released."""
    return float(np.median([x.sum() + rng.laplace(scale=scale) for _ in range(3)]))


def _padded(scale: float, x: Any, rng: Any) -> float:
    """As many dummies as a coin says, which the noise doesn't depend on."""
    dummies = 0
    while rng.random() < 0.5:
        dummies += 1
    return float(x.sum() + dummies + rng.laplace(scale=scale))


def _raised(scale: float, x: Any, rng: Any) -> float:
    """An error inside, which is caught, decides how the sum is made and not what it is."""
    try:
        total = float(sum(1 / value for value in x.tolist()) * 0 + x.sum())
    except ZeroDivisionError:
        total = float(np.count_nonzero(x))
    return total + float(rng.laplace(scale=scale))


def _recursive(scale: float, x: Any, rng: Any) -> float:
    """Halves until one value is left, with noise where both halves meet last."""

    def total(values: Any) -> float:
        if values.size == 1:
            return float(values[0])
        middle = values.size // 2
        return total(values[:middle]) + total(values[middle:])

    return total(x) + float(rng.laplace(scale=scale))


def _pairs(function: Callable[..., Any], right: Any, wrong: Any) -> tuple[Any, Any]:
    return partial(function, right), partial(function, wrong)


_NORMAL = Gaussian(sigma=1)

CASES: tuple[Case, ...] = (
    *(
        case(name, flow, *functions, curve=curve, adjacency=_ONE_OF, data=_BITS)
        for name, flow, functions, curve in (
            (
                "Cauchy noise by smooth sensitivity",
                "smooth sensitivity",
                (partial(_smooth_cauchy, 1.0), _local),
                claim(1),
            ),
            (
                "Laplace noise by smooth sensitivity",
                "smooth sensitivity",
                (partial(_smooth_laplace, 1.0), _local),
                claim(1, _DELTA),
            ),
            (
                "majority, tested for stability",
                "propose-test-release",
                (partial(_tested, 1.0), _untested),
                claim(1, _DELTA),
            ),
            (
                "Poisson subsampling",
                "subsampling",
                _pairs(_poisson, 0.25, 1.0),
                claim(_amplified(1, 0.25)),
            ),
            (
                "sampling without replacement",
                "subsampling",
                _pairs(_without_replacement, 2, 6),
                claim(_amplified(1, 1 / 3)),
            ),
            (
                "the second question by the first answer",
                "composition",
                _pairs(_second_after_first, 2, 0.5),
                claim(1),
            ),
            ("it stops at a large answer", "composition", _pairs(_stops, 3, 0.5), claim(1)),
            (
                "the second noise by the first answer",
                "composition",
                _pairs(_noise_by_answer, 2, 0.5),
                claim(1),
            ),
            (
                "a coin chooses the mechanism",
                "branches",
                _pairs(_chosen_mechanism, 1, 0.4),
                claim(1),
            ),
            ("noisy sum over noisy count", "post-processing", _pairs(_mean, 2, 0.1), claim(1)),
            ("clipped gradients", "loops", _pairs(_step, 1.0, 0.3), _NORMAL),
            (
                "median of noisy answers",
                "post-processing",
                _pairs(_median_of_noisy, 3, 0.5),
                claim(1),
            ),
            ("dummies by coins", "loops", _pairs(_padded, 1, 0.25), claim(1)),
            ("an exception that is caught", "exceptions", _pairs(_raised, 1, 0.4), claim(1)),
            ("a recursion", "recursion", _pairs(_recursive, 1, 0.4), claim(1)),
        )
    ),
    case(
        "randomized response of a sample",
        "subsampling",
        *_pairs(_sampled_report, 0.5, 1.0),
        curve=claim(_sampled_epsilon(0.5)),
        adjacency=Close(),
        data=(((0,), (1,)),),
    ),
    case(
        "noise in a cube",
        "straight",
        *_pairs(_cube, 1, 4),
        curve=claim(1),
        adjacency=Close(),
        data=(((0, 0, 0), (1, 1, 1)), ((0, 1, 0), (1, 0, 0))),
    ),
)
