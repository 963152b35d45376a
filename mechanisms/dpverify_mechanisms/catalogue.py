"""The mechanisms that configurations and `dpverify.mechanism` know, in one table.

Each row has the paper's name, what it announces, and the constructor that meets a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpverify.accounting.curves.gaussian import sigma_gaussian
from dpverify.accounting.published import (
    sigma_classical,
    sigma_kenthapadi,
    sigma_kenthapadi_any_projection,
    sigma_li,
    sigma_li_any_projection,
)
from dpverify.data.adjacency import Adjacency, Attribute
from dpverify.data.domain import Vectors
from dpverify.enclosure import Enclosure, Exact, SquareRoot, squared
from dpverify.errors import ParameterError
from dpverify.family import MechanismFamily, Parameter, Request
from dpverify.privacy import Certifiable
from dpverify_mechanisms.baselines.noise_addition import NoiseAddition
from dpverify_mechanisms.baselines.randomized_response import RandomizedResponse
from dpverify_mechanisms.linear.calibration import Level
from dpverify_mechanisms.linear.distance import GRID_STEPS, grid_for
from dpverify_mechanisms.linear.sketch import LinearSketch
from dpverify_mechanisms.min_hash.exponential import REFUSAL
from dpverify_mechanisms.min_hash.sketch import MinHash
from dpverify_mechanisms.projections.base import Projection
from dpverify_mechanisms.projections.hadamard import FJLT
from dpverify_mechanisms.projections.independent import (
    GaussianProjection,
    RademacherProjection,
    SparseProjection,
    UniformProjection,
)
from dpverify_mechanisms.projections.sjlt import SJLT, DKSProjection
from dpverify_mechanisms.secret.sketch import CovarianceSketch, CutSketch
from dpverify_mechanisms.sign.flip_rules import LADDERS
from dpverify_mechanisms.sign.sketch import SignSketch

__all__ = ["CATALOGUE"]


def _choice(name: str, meaning: str, default: str, *others: str) -> Parameter:
    return Parameter(
        name=name, meaning=meaning, kind="choice", default=default, choices=(default, *others)
    )


# How requests become mechanisms


def _by(make: Callable[..., Certifiable], *without: str) -> Callable[[Request], Certifiable]:
    """Call a constructor with all that is asked, but for what it doesn't take."""

    def build(request: Request) -> Certifiable:
        asked = {
            "rows": request.rows,
            "p": request.p,
            "seed": request.seed,
            "epsilon": request.epsilon,
            "delta": request.delta,
            "domain": request.domain,
            "adjacency": request.adjacency,
            **request.parameters,
        }
        return make(**{name: value for name, value in asked.items() if name not in without})

    return build


_PROJECTIONS: Mapping[str, Callable[..., Projection]] = {
    "gaussian": GaussianProjection,
    "rademacher": RademacherProjection,
    "achlioptas": lambda **size: SparseProjection(**size, sparsity=3),
    "very-sparse": lambda *, p, **size: SparseProjection(
        **size, p=p, sparsity=max(1, round(p**0.5))
    ),
    "uniform": UniformProjection,
}
_LEVELS: Mapping[str, Level] = {
    "analytic": sigma_gaussian,
    "kenthapadi": sigma_kenthapadi,
    "li": sigma_li,
    "classical": sigma_classical,
}
_ANY_PROJECTION = {
    "kenthapadi-any": sigma_kenthapadi_any_projection,
    "li-any": sigma_li_any_projection,
}


def _private_projection(
    *,
    p: int,
    k: int,
    seed: int,
    projection: str,
    copies: int,
    sigma: str,
    domain: Vectors,
    adjacency: Adjacency,
    epsilon: Fraction,
    delta: Fraction,
) -> LinearSketch:
    drawn = (
        DKSProjection(p=p, k=k, seed=seed, copies=copies)
        if projection == "dks"
        else _PROJECTIONS[projection](p=p, k=k, seed=seed)
    )
    if sigma in _LEVELS:
        level = _LEVELS[sigma]
    elif projection == "gaussian" and isinstance(adjacency, Attribute):
        # σ is proportional to β, so β in steps of the product's grid gives σ in those steps.
        grid = grid_for(domain, adjacency, p, GRID_STEPS)
        moves = grid.moves(adjacency, domain, attributes=p)
        beta = SquareRoot(moves**2 / squared(drawn.scale))

        def level(epsilon: Any, delta: Any, *, sensitivity: Exact) -> Enclosure:
            del sensitivity  # the theorem is for every projection
            return _ANY_PROJECTION[sigma](epsilon, delta, beta=beta, p=p, k=k)

    else:
        raise ParameterError(
            "sigma", sigma, "used with a gaussian projection and attribute adjacency alone"
        )
    return LinearSketch.calibrated(
        drawn, epsilon=epsilon, delta=delta, domain=domain, adjacency=adjacency, level=level
    )


def _sjlt(
    *, p: int, k: int, seed: int, sparsity: int, construction: Any, independence: int, **target: Any
) -> LinearSketch:
    projection = SJLT(
        p=p,
        k=k,
        seed=seed,
        sparsity=sparsity,
        construction=construction,
        hashing=independence or "independent",
    )
    return LinearSketch.calibrated(projection, **target)


def _fjlt(*, p: int, k: int, seed: int, density: Fraction, **target: Any) -> LinearSketch:
    return LinearSketch.calibrated(FJLT(p=p, k=k, seed=seed, density=density), **target)


def _signrp(*, least_norm: Fraction, **target: Any) -> SignSketch:
    return SignSketch.dp_signrp_rr(least_norm=least_norm or None, **target)


def _signrp_smooth(
    *, p: int, k: int, seed: int, projection: str, ladder: str, **target: Any
) -> SignSketch:
    drawn = _PROJECTIONS[projection](p=p, k=k, seed=seed)
    return SignSketch.calibrated(drawn, ladder=LADDERS[ladder], **target)


def _signoporp_smooth(*, ladder: str, **target: Any) -> SignSketch:
    return SignSketch.dp_signoporp_rr(ladder=LADDERS[ladder], **target)


# The table

_K = Parameter(name="k", meaning="number of projected values")
_NOISE = _choice(
    "noise", "distribution of the noise; laplace also reaches delta 0", "gaussian", "laplace"
)
_BOTH = "epsilon, or (epsilon, delta)"
_APPROXIMATE = "(epsilon, delta)"


def _linear(
    name: str,
    paper: str,
    make: Callable[..., LinearSketch],
    *parameters: Parameter,
    without: tuple[str, ...] = ("rows",),
    guarantee: str = "",
    estimates: tuple[str, ...] = ("squared distance", "inner product", "cosine"),
) -> MechanismFamily:
    laplace = ", or epsilon" if _NOISE in parameters else ""
    return MechanismFamily(
        name=name,
        paper=paper,
        guarantee=guarantee or _APPROXIMATE + laplace,
        adjacency=("attribute", "l1-ball", "record", "items"),
        domain=("box", "ball", "sets"),
        estimates=estimates,
        parameters=parameters,
        build=_by(make, *without),
        seeded="seed" not in without,
    )


_LI = "Li and Li 2023, "
_LINEAR = (
    _linear(
        "raw-data-g-opt",
        _LI + "section 3.6",
        LinearSketch.raw_data_g_opt,
        _NOISE,
        without=("rows", "seed"),
    ),
    _linear("dp-rp-g", _LI + "algorithm 1, theorem 3.1", LinearSketch.dp_rp_g, _K),
    _linear("dp-rp-g-opt", _LI + "algorithm 1, theorem 3.5", LinearSketch.dp_rp_g_opt, _K),
    _linear("dp-rp-l", _LI + "algorithm 2", LinearSketch.dp_rp_l, _K, guarantee=_BOTH),
    _linear("dp-rp-g-opt-b", _LI + "algorithm 3", LinearSketch.dp_rp_g_opt_b, _K, _NOISE),
    _linear("dp-oporp", _LI + "algorithm 5", LinearSketch.dp_oporp, _K, _NOISE),
    _linear(
        "private-projection",
        "Kenthapadi et al. 2013, algorithms 1 and 2",
        _private_projection,
        _K,
        _choice("projection", "distribution of the projection", *_PROJECTIONS, "dks"),
        Parameter(name="copies", meaning="copies of each attribute in a dks projection", default=4),
        _choice(
            "sigma",
            "theorem that the noise is chosen by; any: whatever projection is drawn",
            *_LEVELS,
            *_ANY_PROJECTION,
        ),
    ),
    _linear(
        "sjlt",
        "Stausholm 2021, section 6",
        _sjlt,
        _K,
        Parameter(name="sparsity", meaning="non-zeros in a row of P", max_="k"),
        _choice("construction", "where the non-zeros of a row are", "block", "graph"),
        Parameter(
            name="independence",
            meaning="degree of independence of polynomial hashing, 0 for fully random",
            default=0,
            min_=4,
            off=0,
        ),
        _NOISE,
    ),
    _linear(
        "fjlt",
        "Stausholm 2021, section 5",
        _fjlt,
        _K,
        Parameter(
            name="density",
            meaning="probability that an entry of the sparse matrix is not 0",
            kind="number",
            min_=0,
            max_=1,
        ),
        _choice("at", "where the noise is added", "output", "input"),
        _NOISE,
        estimates=("squared distance", "inner product"),
    ),
)

_SIGNS = Parameter(name="k", meaning="number of signs in all")
_REPETITIONS = Parameter(
    name="repetitions",
    meaning="independent OPORPs side by side, which share the k signs",
    default=1,
)
_LADDER = _choice(
    "ladder",
    "flips that fall with the value: the paper's, or the least that are as private",
    "smooth",
    "steepest",
)
_BOUNDED = ("attribute", "l1-ball")
_HELD = (
    "its theorem is about a mechanism whose noise set is held at one record's; the one that runs "
    "reads it off every record, and for its outputs no finite epsilon holds."
)


def _signs(
    name: str,
    statement: str,
    make: Callable[..., SignSketch] | None,
    *parameters: Parameter,
    estimates: tuple[str, ...] = ("sign collision", "bit agreement"),
    adjacency: tuple[str, ...] = (*_BOUNDED, "record"),
) -> MechanismFamily:
    return MechanismFamily(
        name=name,
        paper=_LI + statement,
        guarantee=_BOTH if make else "individual DP alone",
        adjacency=adjacency,
        domain=("box",),
        estimates=estimates,
        parameters=(_SIGNS, *parameters),
        build=_by(make, "rows") if make else None,
        refusal="" if make else _HELD,
    )


_SIGN = (
    _signs(
        "dp-signrp-rr",
        "algorithm 6",
        _signrp,
        Parameter(
            name="least_norm",
            meaning="declared l2 norm of every record, for a claim over the draw; 0 for the "
            "realised one",
            kind="number",
            default=0,
            min_=0,
            off=0,
        ),
        estimates=("sign collision", "angle", "cosine"),
    ),
    _signs(
        "dp-signrp-rr-smooth",
        "algorithm 7, as theorem 4.7 proves it",
        _signrp_smooth,
        _choice("projection", "distribution of the projection", "rademacher", "gaussian"),
        _LADDER,
        estimates=("bit agreement",),
        adjacency=_BOUNDED,
    ),
    _signs("dp-signoporp-rr", "algorithm 8", SignSketch.dp_signoporp_rr, _REPETITIONS),
    _signs(
        "dp-signoporp-rr-smooth",
        "algorithm 8",
        _signoporp_smooth,
        _REPETITIONS,
        _LADDER,
        estimates=("bit agreement",),
        adjacency=_BOUNDED,
    ),
    _signs("idp-signrp-g", "algorithm 9", None, adjacency=("attribute",)),
    _signs("idp-signrp-rr", "algorithm 11", None, adjacency=("attribute",)),
    _signs("idp-signoporp", "section 6.2", None, adjacency=("attribute",)),
)

_FUNCTIONS = Parameter(name="k", meaning="number of hash functions")
_BUCKETS = Parameter(name="buckets", meaning="B, the values that a function takes", min_=2)
_READING = _choice(
    "reading",
    "whether the hash functions count as random, or nothing is assumed of them",
    "over the draw",
    "realised",
)


def _sets(
    name: str,
    paper: str,
    make: Callable[..., MinHash] | None,
    *parameters: Parameter,
    estimates: str = "Jaccard similarity",
    refusal: str = "",
) -> MechanismFamily:
    return MechanismFamily(
        name=name,
        paper=paper,
        guarantee=_BOTH if make else "none",
        adjacency=("items",),
        domain=("sets",),
        estimates=(estimates,),
        parameters=(_FUNCTIONS, *parameters),
        build=_by(make, "rows") if make else None,
        refusal=refusal,
    )


_AUMULLER = "Aumüller et al. 2020, "
_MIN_HASH = (
    _sets("rr-min-hash", _AUMULLER + "section 4", MinHash.rr_min_hash, _BUCKETS, _READING),
    _sets("noisy-min-hash", _AUMULLER + "section 5", MinHash.noisy_min_hash, _BUCKETS, _READING),
    _sets(
        "range-b-min-hash",
        _AUMULLER + "section 3.1",
        None,
        _BUCKETS,
        refusal="it adds no randomness to its hash values: for comparison. Use rr-min-hash.",
    ),
    _sets(
        "exponential-min-hash",
        "Yan et al. 2018, as reviewed by Aumüller et al. 2020, appendix A",
        None,
        estimates="Jaccard similarity, biased",
        refusal=REFUSAL,
    ),
)


def _sketch_rows(least: int) -> Parameter:
    return Parameter(
        name="sketch_rows",
        meaning="rows of the released matrix: the more, the less the estimates vary",
        min_=least,
    )


_SECRET = (
    MechanismFamily(
        name="jl-graph-cuts",
        paper="Blocki et al. 2012, section 3, as in the slides",
        guarantee=_APPROXIMATE,
        adjacency=("edge",),
        domain=("graph",),
        estimates=("cut of any set of vertices",),
        parameters=(_sketch_rows(1),),
        build=_by(CutSketch.calibrated, "rows", "seed", "domain"),
        seeded=False,
    ),
    MechanismFamily(
        name="jl-covariance",
        paper="Blocki et al. 2012, section 4, as in the slides",
        guarantee=_APPROXIMATE,
        adjacency=("row",),
        domain=("ball",),
        estimates=("squared norm of the data in any direction",),
        parameters=(_sketch_rows(4),),
        build=_by(CovarianceSketch.calibrated, "rows", "seed"),
        seeded=False,
    ),
)
_BASELINES = (
    MechanismFamily(
        name="randomized-response",
        paper="Kenthapadi et al. 2013, algorithms 5 and 6",
        guarantee=_BOTH,
        adjacency=("bit-flip", "record"),
        domain=("box",),
        estimates=("squared distance", "inner product"),
        parameters=(),
        build=_by(RandomizedResponse.calibrated, "rows", "seed"),
        seeded=False,
    ),
    MechanismFamily(
        name="noise-addition",
        paper="Kenthapadi et al. 2013, algorithms 3 and 4",
        guarantee=_APPROXIMATE,
        adjacency=("bit-flip", "attribute"),
        domain=("box",),
        estimates=("squared distance",),
        parameters=(),
        build=_by(NoiseAddition.calibrated, "seed"),
        seeded=False,
    ),
)

CATALOGUE = (*_LINEAR, *_SIGN, *_MIN_HASH, *_SECRET, *_BASELINES)
"""All of them; the entry point of the package."""
