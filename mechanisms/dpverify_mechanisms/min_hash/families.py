"""The MinHash sketches that configurations can name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dpverify.privacy import MechanismFamily, Parameter, Request
from dpverify_mechanisms.min_hash.exponential import REFUSAL
from dpverify_mechanisms.min_hash.sketch import MinHash

__all__ = ["EXPONENTIAL_MIN_HASH", "NOISY_MIN_HASH", "RANGE_B_MIN_HASH", "RR_MIN_HASH"]

_K = Parameter(name="k", domain="whole number from 1", meaning="number of hash functions")
_BUCKETS = Parameter(
    name="buckets", domain="whole number from 2", meaning="B, the values that a function takes"
)
_READING = Parameter(
    name="reading",
    domain="over the draw, or realised",
    meaning="whether the hash functions count as random, or nothing is assumed of them",
    kind="choice",
    default="over the draw",
    choices=("over the draw", "realised"),
)


def _build(make: Callable[..., MinHash], request: Request) -> MinHash:
    given: dict[str, Any] = dict(request.parameters)
    return make(
        items=request.attributes,
        seed=request.seed,
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,
        adjacency=request.adjacency,
        **given,
    )


def _family(name: str, section: str, make: Callable[..., MinHash]) -> MechanismFamily:
    return MechanismFamily(
        name=name,
        paper=f"Aumüller et al. 2020, {section}",
        guarantee="epsilon, or (epsilon, delta)",
        adjacency=("items",),
        domain=("sets",),
        estimates=("Jaccard similarity",),
        parameters=(_K, _BUCKETS, _READING),
        build=partial(_build, make),
    )


RR_MIN_HASH = _family("rr-min-hash", "section 4", MinHash.rr_min_hash)
NOISY_MIN_HASH = _family("noisy-min-hash", "section 5", MinHash.noisy_min_hash)
RANGE_B_MIN_HASH = MechanismFamily(
    name="range-b-min-hash",
    paper="Aumüller et al. 2020, section 3.1",
    guarantee="none",
    adjacency=("items",),
    domain=("sets",),
    estimates=("Jaccard similarity",),
    parameters=(_K, _BUCKETS),
    build=None,
    refusal="it adds no randomness to its hash values: for comparison. Use rr-min-hash.",
)
EXPONENTIAL_MIN_HASH = MechanismFamily(
    name="exponential-min-hash",
    paper="Yan et al. 2018, as reviewed by Aumüller et al. 2020, appendix A",
    guarantee="none",
    adjacency=("items",),
    domain=("sets",),
    estimates=("Jaccard similarity, biased",),
    parameters=(_K,),
    build=None,
    refusal=REFUSAL,
)
