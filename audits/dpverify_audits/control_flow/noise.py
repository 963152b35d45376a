"""Noise by every way in which people draw it: own generators, loops, rejection, branches, caches.

A number moves by at most 1, or a vector by 1 in ℓ1, and ε = 1, unless it is said otherwise.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy

from dpverify.accounting.curves.gaussian import Gaussian
from dpverify_audits.control_flow.case import Case, Close, Release, case, claim

__all__ = ["CASES"]

_NUMBER = (((0.0,), (1.0,)), ((3.0,), (2.0,)))
_SYSTEM = random.SystemRandom()
_SHARED = np.random.default_rng()
_NORMAL = Gaussian(sigma=1)
_DELTA = 0.05


def _noisy(noise: Callable[[Any], float]) -> tuple[Release, Release]:
    """The number with noise of scale 1; the twin has a quarter of it."""
    return (lambda x, rng: x[0] + noise(rng)), (lambda x, rng: x[0] + noise(rng) / 4)


def _two(exponential: Callable[[], float]) -> float:
    """A difference of exponentials is Laplace."""
    return exponential() - exponential()


def _urandom(rng: Any) -> float:
    uniform = (secrets.randbits(53) + 0.5) * 2.0**-53 - 0.5
    return -math.copysign(math.log1p(-2 * abs(uniform)), uniform)


_OWN: dict[str, Callable[[Any], float]] = {
    "numpy's global generator": lambda rng: np.random.laplace(),  # noqa: NPY002 (what is tested)
    "a RandomState of its own": lambda rng: np.random.RandomState().laplace(),
    "Python's global generator": lambda rng: _two(lambda: random.expovariate(1)),
    "SystemRandom": lambda rng: _two(lambda: _SYSTEM.expovariate(1)),
    "secrets": _urandom,
    "a generator of the module": lambda rng: _SHARED.laplace(),
    "a fresh default_rng": lambda rng: np.random.default_rng().laplace(),
    "scipy's global generator": lambda rng: float(scipy.stats.laplace.rvs()),
    "a generator seeded from the one given": lambda rng: np.random.default_rng(
        rng.integers(1 << 62)
    ).laplace(),
    "a spawned generator": lambda rng: rng.spawn(1)[0].laplace(),
    "the bit generator of the one given": lambda rng: np.random.Generator(
        rng.bit_generator
    ).laplace(),
}


def _inverse(rng: Any) -> float:
    uniform = rng.random() - 0.5
    return float(-np.sign(uniform) * np.log1p(-2 * abs(uniform)))


def _rejected_laplace(rng: Any) -> float:
    """From under a Cauchy envelope, by rejection."""
    while True:
        x = rng.standard_cauchy()
        # e^−|x|·(1 + x²) is at most 1.
        if rng.random() <= math.exp(-abs(x)) * (1 + x * x):
            return float(x)


_STAIR = 1 / (1 + math.exp(0.5))


def _staircase(rng: Any) -> float:
    """Geng and Viswanath 2014, Algorithm 1."""
    sign = 1 if rng.random() < 0.5 else -1
    steps = rng.geometric(1 - math.exp(-1)) - 1
    uniform = rng.random()
    wide = rng.random() >= _STAIR / (_STAIR + math.exp(-1) * (1 - _STAIR))
    if wide:
        return float(sign * (steps + _STAIR + (1 - _STAIR) * uniform))
    return float(sign * (steps + _STAIR * uniform))


_SHAPES: dict[str, tuple[str, Callable[[Any], float]]] = {
    "Laplace noise": ("straight", lambda rng: rng.laplace()),
    "inverse of the distribution function": ("straight", _inverse),
    "difference of exponentials": ("straight", lambda rng: _two(rng.exponential)),
    "mixture of normals": ("straight", lambda rng: rng.normal() * math.sqrt(2 * rng.exponential())),
    "logistic noise": ("straight", lambda rng: rng.logistic()),
    "Cauchy noise": ("straight", lambda rng: rng.standard_cauchy()),
    "median of three noises": (
        "straight",
        lambda rng: 2 * float(np.median(rng.laplace(size=3))),
    ),
    "staircase noise": ("branches", _staircase),
    "Laplace noise by rejection": ("rejection", _rejected_laplace),
}


def _truncated(x: Any, rng: Any) -> float:
    """Drawn again beyond a reach that leaves δ to each end: Geng, Ding, Guo and Kumar 2020."""
    reach = math.log(1 + (math.e - 1) / (2 * _DELTA))
    while abs(noise := rng.laplace()) > reach:
        pass
    return float(x[0] + noise)


def _narrow(x: Any, rng: Any) -> float:
    while abs(noise := rng.laplace()) > 1:
        pass
    return float(x[0] + noise)


def _polar(sigma: float, x: Any, rng: Any) -> float:
    """Marsaglia's polar method."""
    while True:
        u, v = 2 * rng.random(2) - 1
        if 0 < (s := u * u + v * v) < 1:
            return float(x[0] + sigma * u * math.sqrt(-2 * math.log(s) / s))


def _coin(rng: Any, p: float) -> bool:
    return bool(rng.random() < p)


def _geometric_by_coins(rng: Any, p: float) -> int:
    count = 0
    while not _coin(rng, p):
        count += 1
    return count


def _by_coins(p: float, x: Any, rng: Any) -> float:
    return float(x[0] + _geometric_by_coins(rng, p) - _geometric_by_coins(rng, p))


def _discrete_gaussian(sigma: float, x: Any, rng: Any) -> float:
    """Canonne, Kamath and Steinke 2020, Algorithm 3, with probabilities in doubles."""
    t = math.floor(sigma) + 1
    p = 1 - math.exp(-1 / t)
    while True:
        y = _geometric_by_coins(rng, p) - _geometric_by_coins(rng, p)
        if _coin(rng, math.exp(-((abs(y) - sigma**2 / t) ** 2) / (2 * sigma**2))):
            return float(x[0] + y)


def _zcdp(sigma: float, delta: float) -> float:
    rho = 1 / (2 * sigma**2)
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def _binomial_delta(trials: int, epsilon: float) -> float:
    """Of Bin(trials, 1/2) against itself moved by 1: symmetric, so one direction is enough."""
    places = np.arange(-1, trials + 2)
    own, moved = (scipy.stats.binom.pmf(places - move, trials, 0.5) for move in (0, 1))
    return float(np.maximum(own - math.exp(epsilon) * moved, 0).sum())


def _loop(scale: float, x: Any, rng: Any) -> Any:
    released = []
    for value in x:
        released.append(value + rng.laplace(scale=scale))  # noqa: PERF401 (a loop is the point)
    return np.array(released)


def _tree(scale: float, x: Any, rng: Any) -> Any:
    """Prefix sums by a binary tree over four counts: each count is in three nodes."""
    leaves = x + rng.laplace(scale=scale, size=4)
    pairs = x.reshape(2, 2).sum(axis=1) + rng.laplace(scale=scale, size=2)
    root = x.sum() + rng.laplace(scale=scale)
    return np.array([leaves[0], pairs[0], pairs[0] + leaves[2], root])


def _two_routes(x: Any, rng: Any) -> float:
    return float(x[0] + (rng.laplace() if x[0] > 0.5 else _two(rng.exponential)))


def _one_route_short(x: Any, rng: Any) -> float:
    return float(x[0] + (rng.laplace() if x[0] > 0.5 else rng.exponential()))


def _unused(x: Any, rng: Any) -> float:
    """More draws than it needs where the count is large."""
    return float(x[0] + rng.laplace(size=1 + int(x[0]))[0])


def _unused_twin(x: Any, rng: Any) -> float:
    return float(x[0] + rng.laplace(size=1 + int(x[0])).mean() / 2)


def _parity(x: Any, rng: Any) -> float:
    """The noise is symmetric, so its sign may depend on the data."""
    return float(x[0] + rng.laplace()) if int(x[0]) % 2 else float(x[0] - rng.laplace())


def _parity_twin(x: Any, rng: Any) -> float:
    return float(x[0] + rng.exponential()) if int(x[0]) % 2 else float(x[0] - rng.exponential())


def _capped(x: Any, rng: Any) -> float:
    if x[0] > 2:
        return float(2 + rng.laplace())
    return float(x[0] + rng.laplace())


def _capped_twin(x: Any, rng: Any) -> float:
    if x[0] > 2:
        return 2.0
    return float(x[0] + rng.laplace())


def _asked_twice(x: Any, rng: Any) -> Any:
    """The second question is answered from the first answer."""
    answers: dict[str, float] = {}
    for question in ("count", "count"):
        if question not in answers:
            answers[question] = float(x[0] + rng.laplace())
    return np.array([answers["count"], answers["count"]])


def _asked_twice_anew(x: Any, rng: Any) -> Any:
    return x[0] + rng.laplace(size=2)


@cache
def _sum(values: tuple[float, ...]) -> float:
    return sum(values)


def _cached_sum(scale: float, x: Any, rng: Any) -> float:
    return float(_sum(tuple(x.tolist())) + rng.laplace(scale=scale))


def _pooled(scale: float, x: Any, rng: Any) -> Any:
    """Noise is drawn in a batch, and taken from it."""
    pool = iter(rng.laplace(scale=scale, size=16))
    return np.array([value + next(pool) for value in x])


def _after(then: Callable[[Any], Any], scale: float, x: Any, rng: Any) -> Any:
    return then(x + rng.laplace(scale=scale, size=x.shape))


def _clip(x: Any) -> Any:
    return np.clip(x, 0, 2)


def _both(function: Callable[..., Any], right: Any, wrong: Any) -> tuple[Release, Release]:
    return partial(function, right), partial(function, wrong)


_L1 = Close(unit="one count moves by 1")
_VECTOR = (((0, 0, 0, 0), (1, 0, 0, 0)), ((2, 1, 0, 3), (2, 1, 1, 3)))

CASES: tuple[Case, ...] = (
    *(
        case(name, "own generator", *_noisy(noise), curve=claim(1), adjacency=Close(), data=_NUMBER)
        for name, noise in _OWN.items()
    ),
    *(
        case(name, flow, *_noisy(noise), curve=claim(1), adjacency=Close(), data=_NUMBER)
        for name, (flow, noise) in _SHAPES.items()
    ),
    *(
        case(name, flow, *functions, curve=curve, adjacency=Close(), data=_NUMBER)
        for name, flow, functions, curve in (
            ("truncated Laplace noise", "rejection", (_truncated, _narrow), claim(1, _DELTA)),
            ("polar normal noise", "rejection", _both(_polar, 1.0, 0.5), _NORMAL),
            (
                "discrete Gaussian noise",
                "rejection",
                _both(_discrete_gaussian, 2.0, 0.5),
                claim(_zcdp(2.0, 0.01), 0.01),
            ),
            (
                "two-sided geometric noise by coins",
                "loops",
                _both(_by_coins, 1 - math.exp(-1), 1 - math.exp(-2.5)),
                claim(1),
            ),
            (
                "two-sided geometric noise",
                "straight",
                (
                    lambda x, rng: x[0] + int(np.subtract(*rng.geometric(1 - math.exp(-1), 2))),
                    lambda x, rng: x[0] + int(np.subtract(*rng.geometric(1 - math.exp(-2.5), 2))),
                ),
                claim(1),
            ),
            (
                "rounded Laplace noise",
                "straight",
                (
                    lambda x, rng: math.floor(x[0] + rng.laplace()),
                    lambda x, rng: math.floor(x[0] + rng.laplace() / 3),
                ),
                claim(1),
            ),
            (
                "binomial noise",
                "straight",
                (
                    lambda x, rng: x[0] + rng.binomial(60, 0.5),
                    lambda x, rng: x[0] + rng.binomial(4, 0.5),
                ),
                claim(0.5, _binomial_delta(60, 0.5)),
            ),
            (
                "mean of four normal noises",
                "straight",
                (
                    lambda x, rng: x[0] + rng.normal(scale=2, size=4).mean(),
                    lambda x, rng: x[0] + rng.normal(scale=1, size=4).mean(),
                ),
                _NORMAL,
            ),
            ("the same noise by two routes", "branches", (_two_routes, _one_route_short), claim(1)),
            ("draws that aren't used", "branches", (_unused, _unused_twin), claim(1)),
            ("a sign by the data", "branches", (_parity, _parity_twin), claim(1)),
            ("a branch for large values", "branches", (_capped, _capped_twin), claim(1)),
            ("the same question twice", "caching", (_asked_twice, _asked_twice_anew), claim(1)),
            ("a cached sum", "caching", _both(_cached_sum, 1.0, 0.5), claim(1)),
        )
    ),
    *(
        case(name, flow, *_both(function, *scales), curve=claim(1), adjacency=_L1, data=_VECTOR)
        for name, flow, function, scales in (
            ("noise in a loop", "loops", _loop, (1.0, 0.5)),
            ("prefix sums by a tree", "loops", _tree, (3.0, 1.0)),
            ("a pool of noise", "caching", _pooled, (1.0, 0.5)),
            (
                "clipped after the noise",
                "post-processing",
                partial(_after, partial(np.clip, a_min=0, a_max=2)),
                (1.0, 0.5),
            ),
            ("sorted after the noise", "post-processing", partial(_after, np.sort), (1.0, 0.4)),
            ("the largest noisy count", "post-processing", partial(_after, np.max), (1.0, 0.4)),
        )
    ),
)
