"""Privacy losses against the pairs that they are of: both laws, output by output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy.optimize import brentq
from scipy.stats import binom

from dpverify.accounting.losses.base import (
    Doubles,
    Log,
    PrivacyLoss,
    TailedLoss,
    TransformedLoss,
)
from dpverify.accounting.losses.continuous import BoundedRangeLoss, GaussianLoss, LaplaceLoss
from dpverify.accounting.losses.discrete import (
    AtomicLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    ResponseLoss,
    StaircaseLoss,
)
from dpverify.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from dpverify.accounting.losses.discrete_samples import DiscreteBatchLoss, DiscreteSampledLoss
from dpverify.accounting.losses.poisson_sampled import PoissonReplacedLoss, PoissonSampledLoss
from dpverify.accounting.losses.sampled import BatchLoss, ReplacedSampleLoss, SampledLoss
from dpverify.accounting.losses.shared_randomness import PositionLoss
from dpverify.accounting.losses.shuffled import ShuffledLoss
from tests.helpers.profiles import crossed

F = Fraction
TENTH = F(1, 10)
_FAR, _LEAST = 8.0, 1e-300
NORMAL, LAPLACE = GaussianLoss(mu_squared=F(9, 4)), LaplaceLoss(shift=F(3, 2))


@dataclass(frozen=True)
class Outputs:
    """Masses of finitely many outputs under both laws."""

    p: Doubles
    q: Doubles

    @cached_property
    def losses(self) -> Doubles:
        with np.errstate(divide="ignore", invalid="ignore"):  # none where neither law has any
            return np.log(self.p) - np.log(self.q)

    def tails(self, place: float) -> tuple[float, float]:
        kept = self.losses >= place
        return math.fsum(self.p[kept]), math.fsum(self.q[kept])

    def moment(self, s: complex) -> complex:
        finite = np.minimum(self.p, self.q) > _LEAST
        return complex(self.p[finite] @ np.exp(s * self.losses[finite]))


@dataclass(frozen=True)
class Moved:
    """Two mixtures of one noise, moved by several shifts: weights by shift."""

    density: Callable[[Any], Any]
    beyond: Callable[[float], float]
    reach: int
    p: dict[float, float]
    q: dict[float, float]

    def _loss(self, z: float) -> float:
        own, other = (
            sum(w * self.density(z - shift) for shift, w in law.items()) for law in (self.p, self.q)
        )
        return math.log(own / other)

    def tails(self, place: float) -> tuple[float, float]:
        """The loss is monotone, so that it is large on one side of a number."""
        ends = self._loss(-_FAR), self._loss(_FAR)
        if not min(ends) < place < max(ends):
            return (1.0, 1.0) if place <= min(ends) else (0.0, 0.0)
        z = brentq(lambda z: self._loss(z) - place, -_FAR, _FAR, xtol=1e-15)
        own, other = (
            sum(w * self.beyond(z - shift) for shift, w in law.items()) for law in (self.p, self.q)
        )
        return (own, other) if ends[0] < ends[1] else (1 - own, 1 - other)

    def moment(self, s: complex) -> complex:
        """By the rule of Gauss and Legendre between the kinks."""
        total = 0j
        for end in np.arange(-2 * self.reach, 2 * self.reach) / 2:
            z, weights = _rule(end, end + 0.5)
            own, other = (
                sum(w * self.density(z - shift) for shift, w in law.items())
                for law in (self.p, self.q)
            )
            total += weights @ (own * np.exp(s * np.log(own / other)))
        return complex(total)


@dataclass(frozen=True)
class Range:
    """Densities e^{±ℓ/2} but for a factor, of losses up to ε₀."""

    epsilon: float

    def tails(self, place: float) -> tuple[float, float]:
        nodes, weights = _rule(min(max(place, -self.epsilon), self.epsilon), self.epsilon)
        scale = weights / (4 * math.sinh(self.epsilon / 2))
        return float(scale @ np.exp(nodes / 2)), float(scale @ np.exp(-nodes / 2))

    def moment(self, s: complex) -> complex:
        nodes, weights = _rule(-self.epsilon, self.epsilon)
        scale = weights / (4 * math.sinh(self.epsilon / 2))
        return complex(scale @ np.exp((s + 0.5) * nodes))


@dataclass(frozen=True)
class Mirrored:
    """What a loss is above 0, its mirror image below, and the rest of both sides at 0."""

    half: Moved | Outputs

    def tails(self, place: float) -> tuple[float, float]:
        own, other = self.half.tails(abs(place))
        return (own, other) if place > 0 else (1 - other, 1 - own)


@lru_cache(maxsize=256)
def _rule(low: float, high: float) -> tuple[Doubles, Doubles]:
    """Of Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return low + (nodes + 1) * (high - low) / 2, weights * (high - low) / 2


def normal(p: dict[float, float], q: dict[float, float]) -> Moved:
    return Moved(
        lambda z: np.exp(-z * z / 2) / math.sqrt(2 * math.pi),
        lambda z: math.erfc(z / math.sqrt(2)) / 2,
        16,
        p,
        q,
    )


def laplace(p: dict[float, float], q: dict[float, float]) -> Moved:
    return Moved(
        lambda z: np.exp(-abs(z)) / 2,
        lambda z: math.exp(-z) / 2 if z > 0 else 1 - math.exp(z) / 2,
        40,
        p,
        q,
    )


def listed(pairs: Sequence[tuple[float, float]]) -> Outputs:
    return Outputs(*np.array(pairs, dtype=np.float64).T)


def masses(weight: Callable[[int], float], move: int) -> Outputs:
    """Noise on whole numbers, and the same moved."""
    law = np.array([weight(k) for k in range(-90, 91)])
    return Outputs(law / law.sum(), np.roll(law, move) / law.sum())


def staircase(epsilon: float, parts: int, high: int) -> Outputs:
    """A step in so many equal parts, of which the first ones are high."""

    def weight(k: int) -> float:
        part = k if k >= 0 else -k - 1
        return math.exp(-epsilon * (part // parts + (part % parts >= high)))

    law = np.array([weight(k) for k in range(-90 * parts, 90 * parts)])
    return Outputs(law / law.sum(), np.roll(law, parts) / law.sum())


def tokens(epsilon: float, users: int, rho: float) -> Outputs:
    """Of the numbers of all tokens and of those of kind 1."""
    e, count = math.exp(-epsilon), np.arange(users)[:, None]
    heads = binom.pmf(np.arange(users + 1), count, 0.5) * binom.pmf(count, users - 1, rho)
    joined = np.roll(heads, 1, axis=1)
    p, q = (joined + e * heads) / (1 + e), (e * joined + heads) / (1 + e)
    real = np.arange(users + 1) <= count + 1
    return Outputs(p[real], q[real])


def on_sample(pair: Outputs, *, added: bool = False) -> Outputs:
    """For a coin of ¼, without the record where it shows its absence or its presence."""
    mixed = 0.75 * pair.q + 0.25 * pair.p
    return Outputs(pair.q, mixed) if added else Outputs(mixed, pair.q)


def position(differ: float, coin: Outputs) -> Outputs:
    both = (np.outer(side, side).ravel() * differ for side in (coin.p, coin.q))
    return Outputs(*(np.append(side, 1 - differ) for side in both))


COIN = listed([(0.75, 0.25), (0.25, 0.75)])
ON_SAMPLE = {0.0: 0.9, 1.5: 0.1}
AT_0: dict[float, float] = {0.0: 1.0}
REPLACED = ON_SAMPLE, {0.0: 0.9, -1.5: 0.1}
UP, DOWN = math.e / (1 + math.e), 1 / (1 + math.e)
Oracle = Outputs | Moved | Range | Mirrored
DISCRETE: list[tuple[AtomicLoss, Outputs]] = [
    (
        ResponseLoss(step=F(1), share=F(1, 2), infinity_mass=TENTH),
        listed(
            [(0.1, 0), (0, 0.1), (0.45, 0.45), (0.45 * UP, 0.45 * DOWN), (0.45 * DOWN, 0.45 * UP)]
        ),
    ),
    (DiscreteLaplaceLoss(scale=F(2), sensitivity=3), masses(lambda k: math.exp(-abs(k) / 2), -3)),
    (DiscreteLaplaceLoss(scale=F(2), sensitivity=4), masses(lambda k: math.exp(-abs(k) / 2), -4)),
    (StaircaseLoss(epsilon=F(1), gamma=F(1, 2)), staircase(1, 2, 1)),
]
PAIRS: list[tuple[PrivacyLoss, Oracle]] = [
    *DISCRETE,
    *(
        (DiscreteSampledLoss(base=base, rate=F(1, 4), added=added), on_sample(pair, added=added))
        for base, pair in DISCRETE
        for added in (False, True)
    ),
    *(
        (DiscreteBatchLoss(base=base, rate=F(1, 4)), Mirrored(on_sample(pair)))
        for base, pair in DISCRETE
    ),
    (
        FiniteLoss(
            pairs=((F(1, 2), F(1, 4)), (F(3, 8), F(5, 8)), (F(1, 8), F(0)), (F(0), F(1, 8)))
        ),
        listed([(1 / 2, 1 / 4), (3 / 8, 5 / 8), (1 / 8, 0), (0, 1 / 8)]),
    ),
    (
        FiniteLoss(pairs=((F(1, 4), F(1, 8)), (F(1, 4), F(1, 8)), (F(1, 2), F(3, 4)))),
        listed([(1 / 2, 1 / 4), (1 / 2, 3 / 4)]),
    ),
    (
        DiscreteLaplaceLoss(scale=F(1, 2), sensitivity=1),
        masses(lambda k: math.exp(-abs(k) * 2), -1),
    ),
    (StaircaseLoss(epsilon=F(1), gamma=F(1, 4)), staircase(1, 4, 1)),
    (StaircaseLoss(epsilon=F(1), gamma=F(3, 4)), staircase(1, 4, 3)),
    (StaircaseLoss(epsilon=F(1), gamma=F(0)), staircase(1, 1, 0)),
    (
        DiscreteGaussianLoss(sigma_squared=F(7), sensitivity=2),
        masses(lambda k: math.exp(-k * k / 14), -2),
    ),
    (
        DiscreteGaussianLoss(sigma_squared=F(1, 2), sensitivity=3),
        masses(lambda k: math.exp(-k * k), -3),
    ),
    (NORMAL, normal({1.5: 1}, AT_0)),
    (LAPLACE, laplace({1.5: 1}, AT_0)),
    (BoundedRangeLoss(epsilon=F(3, 2)), Range(1.5)),
    (
        PositionLoss(differ=F(1, 4), losses=((ResponseLoss(step=Log(F(3))), 2),)),
        position(0.25, COIN),
    ),
    (PoissonSampledLoss(base=NORMAL, rate=TENTH), normal(ON_SAMPLE, AT_0)),
    (PoissonSampledLoss(base=NORMAL, rate=TENTH, added=True), normal(AT_0, ON_SAMPLE)),
    (SampledLoss(base=LAPLACE, rate=TENTH), laplace(ON_SAMPLE, AT_0)),
    (SampledLoss(base=LAPLACE, rate=TENTH, added=True), laplace(AT_0, ON_SAMPLE)),
    (BatchLoss(base=NORMAL, rate=TENTH), Mirrored(normal(ON_SAMPLE, AT_0))),
    (BatchLoss(base=LAPLACE, rate=TENTH), Mirrored(laplace(ON_SAMPLE, AT_0))),
    (ReplacedSampleLoss(base=NORMAL, rate=TENTH), normal(*REPLACED)),
    (PoissonReplacedLoss(base=NORMAL, rate=TENTH), normal(*REPLACED)),
    (ReplacedSampleLoss(base=LAPLACE, rate=TENTH), laplace(*REPLACED)),
    (ShuffledLoss(epsilon=F(1), users=5), tokens(1, 5, math.exp(-1))),
    (ShuffledLoss(epsilon=F(1), users=1), tokens(1, 1, math.exp(-1))),
    (ShuffledLoss(epsilon=F(1), users=6, response=True), tokens(1, 6, 2 / (1 + math.e))),
    (ShuffledLoss(epsilon=F(3), users=200), tokens(3, 200, math.exp(-3))),
    (ShuffledLoss(epsilon=F(1, 10), users=200), tokens(0.1, 200, math.exp(-0.1))),
]


def named(value: object) -> str | None:
    return str(value[0]) if isinstance(value, tuple) else None


@pytest.mark.parametrize(("case", "bits"), crossed(PAIRS, [24, 128]), ids=named)
def test_tails_are_those_of_the_pair(case: tuple[PrivacyLoss, Oracle], bits: int) -> None:
    """In few digits, too, in which what a sum leaves out is seen."""
    loss, pair = case
    if not isinstance(loss, TailedLoss):
        return
    with ctx.workprec(bits):
        most = loss.max_loss()
        end = 5.0 if most is None else float(most)
        places = [x for x in (-1.37, -0.43, -0.02, 0.03, 0.08, 0.61, 1.23) if abs(x) < end]
        places += [end * share for share in (-1.01, -0.99, 0.99, 1.01)]
        found = [loss.tails(arb(place)) for place in places]
    for place, tails in zip(places, found, strict=True):
        for ball, exact in zip(tails, pair.tails(place), strict=True):
            assert ball.rad() < 2.0 ** (14 - bits)
            assert ball.lower() - 1e-12 < exact < ball.upper() + 1e-12


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: str(case[0]))
def test_moments_are_those_of_the_pair(case: tuple[PrivacyLoss, Oracle]) -> None:
    loss, pair = case
    if not isinstance(loss, TransformedLoss) or isinstance(pair, Mirrored):
        return
    points = [0.3 + 2j, 1.7 - 0.8j]
    with ctx.workprec(96):
        found = loss.transform([acb(s) for s in points])
    for s, ball in zip(points, found, strict=True):
        assert complex(ball) == pytest.approx(pair.moment(s), rel=1e-11)
