"""The secret projections of Blocki et al. that configurations can name."""

from __future__ import annotations

from dpverify.privacy import MechanismFamily, Parameter, Request
from dpverify_mechanisms.secret.sketch import CovarianceSketch, CutSketch

__all__ = ["JL_COVARIANCE", "JL_GRAPH_CUTS"]

_ROWS = Parameter(
    name="sketch_rows",
    domain="whole number from 1, for covariances from 4",
    meaning="rows of the released matrix: the more, the less the estimates vary",
)


def _cuts(request: Request) -> CutSketch:
    return CutSketch.calibrated(
        vertices=request.attributes,
        rows=request.parameters["sketch_rows"],
        epsilon=request.epsilon,
        delta=request.delta,
        adjacency=request.adjacency,  # type: ignore[arg-type]
    )


def _covariance(request: Request) -> CovarianceSketch:
    return CovarianceSketch.calibrated(
        attributes=request.attributes,
        rows=request.parameters["sketch_rows"],
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,  # type: ignore[arg-type]
        adjacency=request.adjacency,  # type: ignore[arg-type]
    )


JL_GRAPH_CUTS = MechanismFamily(
    name="jl-graph-cuts",
    paper="Blocki et al. 2012, section 3, as in the slides",
    guarantee="(epsilon, delta)",
    adjacency=("edge",),
    domain=("graph",),
    estimates=("cut of any set of vertices",),
    parameters=(_ROWS,),
    build=_cuts,
    seeded=False,
)
JL_COVARIANCE = MechanismFamily(
    name="jl-covariance",
    paper="Blocki et al. 2012, section 4, as in the slides",
    guarantee="(epsilon, delta)",
    adjacency=("row",),
    domain=("ball",),
    estimates=("squared norm of the data in any direction",),
    parameters=(_ROWS,),
    build=_covariance,
    seeded=False,
)
