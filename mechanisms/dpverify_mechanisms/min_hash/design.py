"""Choosing K, B and the rule of a MinHash sketch by the exact variance of its estimates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from statistics import fmean

from dpverify.data.adjacency import Items
from dpverify.data.domain import Sets
from dpverify.errors import require
from dpverify_mechanisms.linear.design import Design, DesignPoint
from dpverify_mechanisms.min_hash.hashing import KeyedHashes
from dpverify_mechanisms.min_hash.rules import BucketNoise, BucketResponse
from dpverify_mechanisms.min_hash.sketch import MinHash, Reading

__all__ = ["design_min_hash"]


def design_min_hash(
    *,
    epsilon: Fraction,
    delta: Fraction,
    domain: Sets,
    adjacency: Items,
    items: int,
    similarities: Sequence[Fraction],
    functions: Sequence[int],
    buckets: Sequence[int] = (2, 3, 4, 8),
    rules: Sequence[type[BucketResponse | BucketNoise]] = (BucketResponse,),
    reading: Reading = "over the draw",
    seed: int = 0,
) -> Design[MinHash]:
    """The K, the B and the rule with the least exact variance of the estimated similarity.

    Parameters
    ----------
    epsilon, delta, domain, adjacency, reading : the guarantee, the same for all candidates
    items : size of the universe
    similarities : of interest, in [0, 1]; the mean of their variances is minimised
    functions, buckets, rules : candidates
    seed : of every candidate's hash functions

    Raises
    ------
    ParameterError
        If there is no candidate, or a similarity is outside its range.
    """
    for similarity in similarities:
        require(0 <= similarity <= 1, "similarities", similarity, "in [0, 1]")
    require(len(similarities) > 0, "similarities", similarities, "non-empty")
    points = []
    for rule, b, k in product(rules, buckets, functions):
        sketch = MinHash.calibrated(
            KeyedHashes(items=items, functions=k, buckets=b, seed=seed),
            rule=rule,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            adjacency=adjacency,
            reading=reading,
        )
        estimator = sketch.estimators()[0]
        points.append(
            DesignPoint(
                parameters={"k": k, "buckets": b, "rule": rule.__name__},
                variance=fmean(float(estimator.variance_at(Fraction(s))) for s in similarities),
                mechanism=sketch,
            )
        )
    require(len(points) > 0, "functions", functions, "non-empty, like buckets and rules")
    return Design(curve=tuple(points))
