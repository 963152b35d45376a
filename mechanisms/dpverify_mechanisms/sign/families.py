"""The sign sketches that configurations can name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dpverify.errors import require
from dpverify.privacy import MechanismFamily, Parameter, Request
from dpverify_mechanisms.projections.independent import GaussianProjection, RademacherProjection
from dpverify_mechanisms.sign.flip_rules import Ladder
from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = [
    "DP_SIGNOPORP_RR",
    "DP_SIGNOPORP_RR_SMOOTH",
    "DP_SIGNRP_RR",
    "DP_SIGNRP_RR_SMOOTH",
    "IDP_SIGNOPORP",
    "IDP_SIGNRP_G",
    "IDP_SIGNRP_RR",
]

_K = Parameter(name="k", domain="whole number from 1", meaning="number of signs in all")
_REPETITIONS = Parameter(
    name="repetitions",
    domain="whole number from 1",
    meaning="independent OPORPs side by side, which share the k signs",
    default=1,
)
_PROJECTION = Parameter(
    name="projection",
    domain="rademacher or gaussian",
    meaning="distribution of the projection",
    kind="choice",
    default="rademacher",
    choices=("rademacher", "gaussian"),
)
_LEAST_NORM = Parameter(
    name="least_norm",
    domain="0, or a positive number",
    meaning="declared l2 norm of every record, for a claim over the draw; 0 for the realised one",
    kind="number",
    default=0,
)
_DRAWS = {"rademacher": RademacherProjection, "gaussian": GaussianProjection}
_LADDER = Parameter(
    name="ladder",
    domain="smooth or steepest",
    meaning="flips that fall with the value: the paper's, or the least that are as private",
    kind="choice",
    default="smooth",
    choices=("smooth", "steepest"),
)
_LADDERS = {"smooth": Ladder.smooth, "steepest": Ladder.steepest}
_HELD = (
    "its theorem is about a mechanism whose noise set is held at one record's; the one that runs "
    "reads it off every record, and for its outputs no finite epsilon holds."
)


def _build(make: Callable[..., SignSketch], request: Request) -> SignSketch:
    given: dict[str, Any] = dict(request.parameters)
    require(given["k"] >= 1, "k", given["k"], "at least 1")
    if "projection" in given:
        given["projection"] = _DRAWS[given["projection"]]
    if "least_norm" in given:
        given["least_norm"] = given["least_norm"] or None
    if "ladder" in given:
        given["ladder"] = _LADDERS[given["ladder"]]
    return make(
        p=request.attributes,
        seed=request.seed,
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,
        adjacency=request.adjacency,
        **given,
    )


def _signrp_graded(*, p: int, k: int, seed: int, projection: Any, **target: Any) -> SignSketch:
    return SignSketch.calibrated(projection(p=p, k=k, seed=seed), **target)


def _family(
    name: str,
    statement: str,
    make: Callable[..., SignSketch] | None,
    *parameters: Parameter,
    estimates: tuple[str, ...] = ("sign collision", "bit agreement"),
    adjacency: tuple[str, ...] = ("attribute", "l1-ball", "record"),
) -> MechanismFamily:
    individual = make is None
    return MechanismFamily(
        name=name,
        paper=f"Li and Li 2023, {statement}",
        guarantee="individual DP alone" if individual else "epsilon, or (epsilon, delta)",
        adjacency=adjacency,
        domain=("box",),
        estimates=estimates,
        parameters=(_K, *parameters),
        build=None if make is None else partial(_build, make),
        refusal=_HELD if individual else "",
    )


_SMOOTH = ("bit agreement",)
_BOUNDED = ("attribute", "l1-ball")

DP_SIGNRP_RR = _family(
    "dp-signrp-rr",
    "algorithm 6",
    SignSketch.dp_signrp_rr,
    _LEAST_NORM,
    estimates=("sign collision", "angle", "cosine"),
)
DP_SIGNRP_RR_SMOOTH = _family(
    "dp-signrp-rr-smooth",
    "algorithm 7, as theorem 4.7 proves it",
    _signrp_graded,
    _PROJECTION,
    _LADDER,
    estimates=_SMOOTH,
    adjacency=_BOUNDED,
)
DP_SIGNOPORP_RR = _family(
    "dp-signoporp-rr", "algorithm 8", SignSketch.dp_signoporp_rr, _REPETITIONS
)
DP_SIGNOPORP_RR_SMOOTH = _family(
    "dp-signoporp-rr-smooth",
    "algorithm 8",
    SignSketch.dp_signoporp_rr,
    _REPETITIONS,
    _LADDER,
    estimates=_SMOOTH,
    adjacency=_BOUNDED,
)
IDP_SIGNRP_G = _family("idp-signrp-g", "algorithm 9", None, adjacency=("attribute",))
IDP_SIGNRP_RR = _family("idp-signrp-rr", "algorithm 11", None, adjacency=("attribute",))
IDP_SIGNOPORP = _family("idp-signoporp", "section 6.2", None, adjacency=("attribute",))
