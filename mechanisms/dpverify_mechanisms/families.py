"""The mechanisms that configurations can name: one class, a constructor for each name."""

from __future__ import annotations

from functools import partial

from dpverify.errors import require
from dpverify.mechanism import MechanismFamily, Parameter, Request
from dpverify_mechanisms.linear_sketch import LinearSketch
from dpverify_mechanisms.projections import (
    OPORP,
    GaussianProjection,
    Projection,
    RademacherProjection,
)

__all__ = ["DP_OPORP", "DP_RP_G_OPT", "DP_RP_G_OPT_B"]


def _sketch(projection: type[Projection], request: Request) -> LinearSketch:
    k = request.parameters["k"]
    require(k >= 1, "k", k, "at least 1")
    return LinearSketch.calibrated(
        projection(p=request.attributes, k=k, seed=request.seed),
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,
        adjacency=request.adjacency,
    )


def _family(name: str, statement: str, projection: type[Projection], sizes: str) -> MechanismFamily:
    return MechanismFamily(
        name=name,
        paper=f"Li and Li 2023, {statement}",
        guarantee="(epsilon, delta)",
        adjacency=("attribute", "l1-ball"),
        domain=("box",),
        estimates=("squared distance", "inner product", "cosine"),
        parameters=(Parameter(name="k", domain=sizes, meaning="number of projected values"),),
        build=partial(_sketch, projection),
    )


DP_OPORP = _family("dp-oporp", "algorithm 5", OPORP, "whole number from 1 to p")
DP_RP_G_OPT = _family("dp-rp-g-opt", "algorithm 1", GaussianProjection, "whole number from 1")
DP_RP_G_OPT_B = _family("dp-rp-g-opt-b", "algorithm 3", RademacherProjection, "whole number from 1")
