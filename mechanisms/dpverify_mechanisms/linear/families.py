"""The linear sketches that configurations can name: one class, a constructor for each name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dpverify.accounting.curves.gaussian import sigma_gaussian
from dpverify.accounting.published import (
    sigma_classical,
    sigma_kenthapadi,
    sigma_kenthapadi_any_projection,
    sigma_li,
    sigma_li_any_projection,
)
from dpverify.data.adjacency import AttributeAdjacency
from dpverify.enclosure import Enclosure, Exact, SquareRoot, squared
from dpverify.errors import ParameterError, require
from dpverify.privacy import MechanismFamily, Parameter, Request
from dpverify_mechanisms.linear.calibration import Level
from dpverify_mechanisms.linear.distance import grid_for
from dpverify_mechanisms.linear.sketch import GRID_STEPS, LinearSketch
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import (
    GaussianProjection,
    RademacherProjection,
    SparseProjection,
    UniformProjection,
)
from dpverify_mechanisms.projections.sjlt import SJLT, DKSProjection

__all__ = [
    "DP_OPORP",
    "DP_RP_G",
    "DP_RP_G_OPT",
    "DP_RP_G_OPT_B",
    "DP_RP_L",
    "FJLT_SKETCH",
    "PRIVATE_PROJECTION",
    "RAW_DATA_G_OPT",
    "SJLT_SKETCH",
]

_K = Parameter(name="k", domain="whole number from 1", meaning="number of projected values")
_NOISE = Parameter(
    name="noise",
    domain="gaussian or laplace",
    meaning="distribution of the noise; laplace also reaches delta 0",
    kind="choice",
    default="gaussian",
    choices=("gaussian", "laplace"),
)

Draw = Callable[[Request], Projection]


def _size(request: Request) -> Mapping[str, int]:
    k = int(request.parameters["k"])
    require(k >= 1, "k", k, "at least 1")
    return {"p": request.attributes, "k": k, "seed": request.seed}


def _plain(projection: Callable[..., Projection]) -> Draw:
    return lambda request: projection(**_size(request))


def _sjlt(request: Request) -> Projection:
    given = request.parameters
    return SJLT(
        **_size(request),
        sparsity=given["sparsity"],
        construction=given["construction"],
        hashing=given["independence"] or "independent",
    )


def _fjlt(request: Request) -> Projection:
    return FJLT(**_size(request), density=request.parameters["density"])


_PROJECTIONS: Mapping[str, Draw] = {
    "gaussian": _plain(GaussianProjection),
    "rademacher": _plain(RademacherProjection),
    "achlioptas": _plain(partial(SparseProjection, sparsity=3)),
    "very-sparse": lambda request: SparseProjection(
        **_size(request), sparsity=max(1, round(request.attributes**0.5))
    ),
    "uniform": _plain(UniformProjection),
    "dks": lambda request: DKSProjection(**_size(request), copies=request.parameters["copies"]),
}
_LEVELS: Mapping[str, Level] = {
    "analytic": sigma_gaussian,
    "kenthapadi": sigma_kenthapadi,
    "li": sigma_li,
    "classical": sigma_classical,
}


def _sketch(draw: Draw, options: Mapping[str, Any], request: Request) -> LinearSketch:
    given = {
        name: request.parameters[name] for name in ("noise", "at") if name in request.parameters
    }
    return LinearSketch.calibrated(
        draw(request),
        epsilon=request.epsilon,
        delta=request.delta,
        domain=request.domain,  # type: ignore[arg-type]
        adjacency=request.adjacency,
        **(dict(options) | given),
    )


def _private_projection(request: Request) -> LinearSketch:
    draw = _PROJECTIONS[request.parameters["projection"]]
    rule = request.parameters["sigma"]
    if rule in _LEVELS:
        return _sketch(draw, {"level": _LEVELS[rule]}, request)
    any_projection = {
        "kenthapadi-any": sigma_kenthapadi_any_projection,
        "li-any": sigma_li_any_projection,
    }[rule]
    projection, adjacency = draw(request), request.adjacency
    if projection.name != "gaussian" or not isinstance(adjacency, AttributeAdjacency):
        raise ParameterError(
            "sigma", rule, "used with a gaussian projection and attribute adjacency alone"
        )
    # σ is proportional to β, so β in steps of the product's grid gives σ in those steps.
    grid = grid_for(request.domain, adjacency, projection.p, GRID_STEPS)  # type: ignore[arg-type]
    moves = grid.moves(adjacency, request.domain, attributes=projection.p)  # type: ignore[arg-type]
    beta = SquareRoot(moves**2 / squared(projection.scale))

    def level(epsilon: Any, delta: Any, *, sensitivity: Exact) -> Enclosure:
        del sensitivity  # the theorem is for every projection
        return any_projection(epsilon, delta, beta=beta, p=projection.p, k=projection.k)

    return _sketch(lambda _: projection, {"level": level}, request)


def _family(
    name: str,
    paper: str,
    build: Callable[[Request], LinearSketch],
    *parameters: Parameter,
    guarantee: str | None = None,
    estimates: tuple[str, ...] = ("squared distance", "inner product", "cosine"),
) -> MechanismFamily:
    return MechanismFamily(
        name=name,
        paper=paper,
        guarantee=guarantee or _kinds(parameters),
        adjacency=("attribute", "l1-ball", "record", "items"),
        domain=("box", "ball", "sets"),
        estimates=estimates,
        parameters=parameters,
        build=build,
        seeded=_K in parameters,
    )


def _kinds(parameters: tuple[Parameter, ...]) -> str:
    return "(epsilon, delta)" + (", or epsilon" if _NOISE in parameters else "")


def _li(
    name: str,
    statement: str,
    make: Callable[..., LinearSketch],
    *parameters: Parameter,
    guarantee: str | None = None,
) -> MechanismFamily:
    def build(request: Request) -> LinearSketch:
        drawn = {"seed": request.seed} if _K in parameters else {}
        return make(
            p=request.attributes,
            epsilon=request.epsilon,
            delta=request.delta,
            domain=request.domain,
            adjacency=request.adjacency,
            **drawn,
            **request.parameters,
        )

    paper = f"Li and Li 2023, {statement}"
    return _family(name, paper, build, *parameters, guarantee=guarantee)


RAW_DATA_G_OPT = _li("raw-data-g-opt", "section 3.6", LinearSketch.raw_data_g_opt, _NOISE)
DP_RP_G = _li("dp-rp-g", "algorithm 1, theorem 3.1", LinearSketch.dp_rp_g, _K)
DP_RP_G_OPT = _li("dp-rp-g-opt", "algorithm 1, theorem 3.5", LinearSketch.dp_rp_g_opt, _K)
DP_RP_L = _li(
    "dp-rp-l", "algorithm 2", LinearSketch.dp_rp_l, _K, guarantee="epsilon, or (epsilon, delta)"
)
DP_RP_G_OPT_B = _li("dp-rp-g-opt-b", "algorithm 3", LinearSketch.dp_rp_g_opt_b, _K, _NOISE)
DP_OPORP = _li("dp-oporp", "algorithm 5", LinearSketch.dp_oporp, _K, _NOISE)
PRIVATE_PROJECTION = _family(
    "private-projection",
    "Kenthapadi et al. 2013, algorithms 1 and 2",
    _private_projection,
    _K,
    Parameter(
        name="projection",
        domain=", ".join(_PROJECTIONS),
        meaning="distribution of the projection",
        kind="choice",
        default="gaussian",
        choices=tuple(_PROJECTIONS),
    ),
    Parameter(
        name="copies",
        domain="whole number from 1",
        meaning="copies of each attribute in a dks projection",
        default=4,
    ),
    Parameter(
        name="sigma",
        domain=", ".join([*_LEVELS, "kenthapadi-any, li-any"]),
        meaning="theorem that the noise is chosen by; any: whatever projection is drawn",
        kind="choice",
        default="analytic",
        choices=(*_LEVELS, "kenthapadi-any", "li-any"),
    ),
)
SJLT_SKETCH = _family(
    "sjlt",
    "Stausholm 2021, section 6",
    partial(_sketch, _sjlt, {}),
    _K,
    Parameter(
        name="sparsity", domain="whole number from 1 to k", meaning="non-zeros in a row of P"
    ),
    Parameter(
        name="construction",
        domain="block or graph",
        meaning="where the non-zeros of a row are",
        kind="choice",
        default="block",
        choices=("block", "graph"),
    ),
    Parameter(
        name="independence",
        domain="0, or a whole number from 4",
        meaning="degree of independence of polynomial hashing, 0 for fully random",
        default=0,
    ),
    _NOISE,
)
FJLT_SKETCH = _family(
    "fjlt",
    "Stausholm 2021, section 5",
    partial(_sketch, _fjlt, {}),
    _K,
    Parameter(
        name="density",
        domain="in (0, 1]",
        meaning="probability that an entry of the sparse matrix is not 0",
        kind="number",
    ),
    Parameter(
        name="at",
        domain="output or input",
        meaning="where the noise is added",
        kind="choice",
        default="output",
        choices=("output", "input"),
    ),
    _NOISE,
    estimates=("squared distance", "inner product"),
)
