"""MinHash sketches whose buckets are randomized too little.

The published level that misuses Chernoff's bound isn't among them: where it fails, its δ is off by
a few thousandths at a probability that no audit of this size can see. `MinHash.levels` shows it
exactly.

The moments don't see wrong coins here: they are taken at disjoint sets, whose buckets collide with
probability 1/B whatever the coins are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from dpverify.accounting.curves.randomized_response import RandomizedResponse, keep_probability
from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets
from dpverify.privacy import Certifiable
from dpverify.sampling.coins import flips, uniform_below
from dpverify.sampling.words import Words
from dpverify_audits.planted.bug import Enumerable, PlantedBug, Rates, by_enumeration, noise_times
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise
from dpverify_mechanisms.min_hash.rules import BucketNoise, BucketResponse, BucketRule
from dpverify_mechanisms.min_hash.sketch import MinHash

__all__ = ["BUGS", "drawn", "noisy", "response"]

_EPSILON, _DELTA = Fraction(2), Fraction(1, 1000)


def response() -> MinHash:
    """Randomized response for any hash functions; two single items differ under both of these."""
    return MinHash.rr_min_hash(
        p=12,
        k=2,
        buckets=4,
        seed=1,
        epsilon=_EPSILON,
        domain=Sets(min_size=1),
        adjacency=Items(changes=2),
        reading="realised",
    )


def noisy() -> MinHash:
    """Noise for any hash functions; two single items are B − 1 apart under both of these."""
    return MinHash.noisy_min_hash(
        p=12,
        k=2,
        buckets=3,
        seed=6,
        epsilon=_EPSILON,
        domain=Sets(min_size=1),
        adjacency=Items(changes=2),
        reading="realised",
    )


def drawn() -> MinHash:
    """Randomized response over the draw of the functions, of which 0.8 differ on average."""
    return MinHash.rr_min_hash(
        p=12,
        k=8,
        buckets=2,
        seed=1,
        epsilon=_EPSILON,
        delta=_DELTA,
        domain=Sets(min_size=4),
        adjacency=Items(changes=1),
    )


def _with_rule(sketch: MinHash, rule: BucketRule) -> Certifiable:
    return Enumerable(claim=sketch, actual=evolve(sketch, rule=rule))


def _keep(sketch: MinHash) -> Fraction:
    assert isinstance(sketch.rule, BucketResponse)  # noqa: S101 - the twins here have no other
    return sketch.rule.keep


def _equivalent(keep: Callable[[MinHash], Fraction]) -> Callable[[MinHash, float], Rates]:
    """Rates of another keep probability: the log-odds grow by what noise below 1 stands for."""

    def rates(sketch: MinHash, threshold: float) -> Rates:
        other = (1 - keep(sketch)) / (sketch.hashes.buckets - 1)
        broken = RandomizedResponse(keep=keep(sketch), other=other, positions=1).loss()
        factor = sketch.rule.loss(sketch.hashes.buckets).upper / broken.upper
        return noise_times(factor)(sketch, threshold)

    return rates


@frozen(kw_only=True)
class _AnyBucket(BucketResponse):
    """Reports any of all B buckets where it should report another one."""

    def draw(self, values: NDArray[np.int64], buckets: int, *, rng: Words) -> NDArray[Any]:
        """Every bucket kept, or one of all B in its place."""
        kept = flips(int(self.keep * 2**64), values.shape, rng=rng)
        return np.where(kept, values, uniform_below(buckets, values.shape, rng=rng))

    def law(self, value: int, buckets: int) -> list[Fraction]:
        """Probability of every reported bucket."""
        lie = (1 - self.keep) / buckets
        return [lie + (self.keep if at == value else 0) for at in range(buckets)]


def _kept_or_hit(sketch: MinHash) -> Fraction:
    """Probability of the true bucket where the replacement may be it too."""
    return _keep(sketch) + (1 - _keep(sketch)) / sketch.hashes.buckets


def _for_one_function(sketch: MinHash) -> Fraction:
    """Probability of the true bucket that suffices where one bucket differs."""
    return keep_probability(_EPSILON, values=sketch.hashes.buckets)


def _for_one_step(sketch: MinHash) -> BucketNoise:
    """Noise for K buckets that are one step apart."""
    ratio = math.exp(-float(_EPSILON) / sketch.hashes.functions)
    return BucketNoise(noise=GeometricNoise(ratio=Fraction(ratio)))


BUGS: tuple[PlantedBug[MinHash], ...] = (
    PlantedBug(
        name="replacement from all buckets",
        mistake="a bucket that isn't kept is replaced by any of all B, the true one among them",
        twin=response,
        plant=lambda sketch: _with_rule(sketch, _AnyBucket(keep=_keep(sketch))),
        rates=_equivalent(_kept_or_hit),
        epsilon=by_enumeration,
        found_by=("white-box", "exhaustive"),
    ),
    PlantedBug(
        name="keep probability for one hash function",
        mistake="e^ε/(e^ε + B − 1), as if the K hash functions couldn't all differ",
        twin=response,
        plant=lambda sketch: _with_rule(sketch, BucketResponse(keep=_for_one_function(sketch))),
        rates=_equivalent(_for_one_function),
        epsilon=by_enumeration,
        found_by=("white-box", "exhaustive"),
    ),
    PlantedBug(
        name="bucket noise for one step",
        mistake="noise of scale K/ε, without the factor B − 1 that buckets can be apart",
        twin=noisy,
        plant=lambda sketch: _with_rule(sketch, _for_one_step(sketch)),
        found_by=("white-box", "moments", "exhaustive"),
        rates=lambda sketch, t: noise_times(1 / (sketch.hashes.buckets - 1))(sketch, t),
        epsilon=by_enumeration,
    ),
    PlantedBug(
        name="mean number of differing functions",
        mistake="keep probability for ⌈Kp⌉ functions, the mean, where δ asks for a quantile",
        twin=drawn,
        plant=lambda sketch: _with_rule(sketch, BucketResponse(keep=_for_one_function(sketch))),
        rates=_equivalent(_for_one_function),
    ),
)
