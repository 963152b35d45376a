"""What Kenthapadi et al. compare their projection with, as configurations name it."""

from __future__ import annotations

from dpverify.privacy import MechanismFamily, Request
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse

__all__ = ["NOISE_ADDITION", "RANDOMIZED_RESPONSE"]


def _randomized_response(request: Request) -> RandomizedResponse:
    return RandomizedResponse.calibrated(
        request.attributes,
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,  # type: ignore[arg-type]
        adjacency=request.adjacency,  # type: ignore[arg-type]
    )


def _noise_addition(request: Request) -> NoiseAddition:
    return NoiseAddition.calibrated(
        rows=request.rows,
        p=request.attributes,
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,  # type: ignore[arg-type]
        adjacency=request.adjacency,  # type: ignore[arg-type]
    )


RANDOMIZED_RESPONSE = MechanismFamily(
    name="randomized-response",
    paper="Kenthapadi et al. 2013, algorithms 5 and 6",
    guarantee="epsilon, or (epsilon, delta)",
    adjacency=("bit-flip", "record"),
    domain=("box",),
    estimates=("squared distance", "inner product"),
    parameters=(),
    build=_randomized_response,
    seeded=False,
)
NOISE_ADDITION = MechanismFamily(
    name="noise-addition",
    paper="Kenthapadi et al. 2013, algorithms 3 and 4",
    guarantee="(epsilon, delta)",
    adjacency=("bit-flip", "attribute"),
    domain=("box",),
    estimates=("squared distance",),
    parameters=(),
    build=_noise_addition,
    seeded=False,
)
