"""How far apart the sketches of neighbours can be before the noise: a proven bound, in steps.

Let D be the set of differences x − y of the gridded records of neighbours, in grid steps. The
sensitivity in steps of the product's grid is the largest ‖zP‖ over z in D, for the integer P.

**One attribute, or an ℓ1 ball.** The extreme points of {‖z‖₁ ≤ m} are ±m times unit vectors and a
norm is convex: m·max‖row‖, attained.

**Any two records of a ball** of radius R: rounding moves each value by at most ½ step, so a
difference by at most 1 step, and ‖z‖₂ ≤ 2R/h + √p. Then ‖zP‖₂ ≤ ‖z‖₂‖P‖₂, and ‖zP‖₁ ≤ √k‖zP‖₂.

**Sets** that differ in at most n items (n = 2m for any two of at most m items): z has that many
entries ±1 at most, so ‖zP‖ is at most √n‖P‖₂ (√k times that for ℓ1), and at most n times the
largest row.

**Any two records of a box** that is W steps wide: |z| ≤ W in every attribute. ‖zP‖ is convex, so
its maximum is at a vertex, W times a vector of signs: searched for p ≤ 12. Beyond that, the smaller
of two bounds: ‖z‖₂‖P‖₂ with ‖z‖₂ = W√p, and the triangle inequality in every column,
|(zP)_j| ≤ W Σ_i|P_ij|. The latter is attained where no two rows share a column's sign pattern, as
in OPORP, whose bins hold different attributes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    BitFlip,
    Items,
    L1Ball,
    Record,
)
from dpverify.data.domain import Ball, Box, Sets, Vectors, dense
from dpverify.data.grid import Grid
from dpverify.enclosure import Exact, SquareRoot, exact_string, squared
from dpverify.errors import ParameterError, require
from dpverify_mechanisms.projections.base import Projection

__all__ = [
    "GRID_STEPS",
    "check_bound",
    "check_sums",
    "distance",
    "farthest",
    "grid_for",
    "laplace_row",
]

GRID_STEPS = 1024
"""Steps that the adjacency's bound is divided into unless the caller says otherwise."""
_SEARCHED = 12  # attributes up to which all vertices of a box are tried


def distance(
    projection: Projection,
    grid: Grid,
    domain: Vectors,
    adjacency: Adjacency,
    norm: Literal[1, 2],
) -> Exact:
    """Bound on the ℓ1 or ℓ2 distance of the noiseless sketches of neighbours, in steps.

    Raises
    ------
    ParameterError
        If the adjacency is not one of numeric records, or doesn't fit the grid.
    """
    _require_fit(projection.p, grid, domain, adjacency)
    match adjacency:
        case Items():
            return _of_items(projection, adjacency.changes, norm)
        case Attribute() | BitFlip() | L1Ball():
            moves = grid.moves(adjacency, domain, attributes=projection.p)
            return _times(moves, projection.row_norm(norm))
        case Record():
            return _of_records(projection, grid, domain, norm)
    raise ParameterError("adjacency", adjacency.unit, "one of numeric records for a linear sketch")


def laplace_row(
    projection: Projection, grid: Grid, domain: Vectors, adjacency: Adjacency
) -> tuple[Fraction, ...] | None:
    """A move in steps that no neighbours' sketches are worse than, under Laplace noise.

    The privacy of Laplace noise depends on the whole vector of moves. None where whole records
    change, of which only ℓ1 distances are known, and where such a distance proves more.
    """
    _require_fit(projection.p, grid, domain, adjacency)
    if isinstance(adjacency, Record):
        return None
    moves = grid.moves(adjacency, domain, attributes=projection.p)
    row = tuple(moves * value for value in projection.majorant())
    known = distance(projection, grid, domain, adjacency, 1)
    return row if sum(row) ** 2 <= squared(known) else None


def farthest(projection: Projection, domain: Vectors) -> NDArray[np.float64]:
    """A difference of whole records that P stretches far: for audits, not for proof.

    Found by the power method: of norm 1 for a ball, else with signs for entries.
    """
    matrix = projection.matrix
    direction = 1.0 + np.arange(projection.p) / projection.p  # not orthogonal to much
    for _ in range(200):
        direction = matrix @ (direction @ matrix)
        if isinstance(domain, Ball):
            direction /= np.linalg.norm(direction)
        else:
            direction = np.where(direction < 0, -1.0, 1.0)
    return direction


def grid_for(domain: Vectors, adjacency: Adjacency, attributes: int, steps: int) -> Grid:
    """Grid of which the adjacency's bound is `steps` steps.

    For sets a step is 1. Where whole records change, the width of a box is `steps` steps; the
    radius of a ball √p times as many, so that rounding p attributes adds little to the distance.
    """
    match adjacency, domain:
        case _, Sets():
            return Grid(step=Fraction(1))
        case Attribute(beta=bound), _:
            return Grid.dividing(bound, steps=steps)
        case L1Ball(radius=bound), _:
            return Grid.dividing(bound, steps=steps)
        case Record(), Box():
            return Grid.dividing(domain.high - domain.low, steps=steps)
        case Record(), Ball():
            finer = 1 << ((attributes - 1).bit_length() + 1) // 2  # at least √p
            return Grid.dividing(domain.radius, steps=steps * finer)
    return Grid.dividing(Fraction(1), steps=steps)


def check_sums(bound: int, grid: Grid) -> None:
    """Refuse a grid so fine that a partial sum of a product could exceed exact doubles.

    Raises
    ------
    ParameterError
        Naming the bound on the sums.
    """
    require(
        bound < 2**53,
        "step",
        grid.step,
        f"coarser: partial sums reach {bound}, beyond 2**53",
        "Fewer grid steps, or a narrower domain, keep the product exact.",
    )


def check_bound(domain: Vectors, adjacency: Adjacency) -> None:
    """Refuse a β that is wider than the domain.

    Raises
    ------
    ParameterError
        Naming the width, which gives the same protection with less noise.
    """
    if not (isinstance(adjacency, Attribute) and isinstance(domain, Box | Sets)):
        return
    width = domain.high - domain.low if isinstance(domain, Box) else Fraction(1)
    if adjacency.beta > width:
        raise ParameterError(
            "beta",
            adjacency.beta,
            f"at most {exact_string(width)}, the width of the domain",
            "No attribute can move further, so the width gives the same protection.",
        )


def _require_fit(p: int, grid: Grid, domain: Vectors, adjacency: Adjacency) -> None:
    """Refuse combinations for which the bounds of this module aren't proven, and empty domains."""
    if isinstance(domain, Sets):
        require(grid.step == 1, "step", grid.step, "1 for sets")
        require(domain.min_size <= p, "min_size", domain.min_size, f"at most p={p}, all items")
    elif isinstance(adjacency, Items):
        raise ParameterError(
            "domain",
            type(domain).__name__,
            "sets, where items are protected",
            'Declare it: data.domain = { kind = "sets", min_size = 1 }.',
        )
    if isinstance(domain, Ball) and domain.outside == "clip" and not isinstance(adjacency, Record):
        raise ParameterError(
            "outside",
            "clip",
            "refuse for a ball, unless whole records are protected",
            "Scaling a record down moves all of its attributes, by more than the one that differs.",
        )


def _of_records(projection: Projection, grid: Grid, domain: Vectors, norm: Literal[1, 2]) -> Exact:
    p, spectral = projection.p, Fraction(projection.spectral_norm().upper)
    match domain:
        case Ball():
            span = 2 * domain.reach / grid.step + math.isqrt(p - 1) + 1  # at least √p
            return _of_norm(span**2, spectral, projection.k, norm)
        case Sets(max_size=most):
            if most is None:
                raise ParameterError(
                    "most", None, "declared", "Without a largest size no bound is better than p."
                )
            return _of_items(projection, min(2 * most, p), norm)
        case Box():
            width = grid.width(domain)
            if p <= _SEARCHED:
                return _times(width, _largest_vertex(projection, norm))
            columns = [int(c) for c in np.asarray(abs(projection.matrix).sum(axis=0)).ravel()]
            bounds: list[Exact] = [
                _of_norm(Fraction(width**2 * p), spectral, projection.k, norm),
                Fraction(width * sum(columns))
                if norm == 1
                else SquareRoot(Fraction(width**2 * sum(c * c for c in columns))),
            ]
            return min(bounds, key=squared)


def _of_items(projection: Projection, count: int, norm: Literal[1, 2]) -> Exact:
    spectral = Fraction(projection.spectral_norm().upper)
    together = _of_norm(Fraction(count), spectral, projection.k, norm)
    return min(together, _times(count, projection.row_norm(norm)), key=squared)


def _of_norm(span_squared: Fraction, spectral: Fraction, k: int, norm: Literal[1, 2]) -> SquareRoot:
    """√(span²)·‖P‖₂, and √k times that for ℓ1."""
    return SquareRoot(span_squared * spectral**2 * (k if norm == 1 else 1))


def _largest_vertex(projection: Projection, norm: Literal[1, 2]) -> Exact:
    """Largest ‖sP‖ over all vectors s of signs, exactly; s and −s have the same."""
    p = projection.p
    codes = np.arange(2 ** (p - 1))[:, None] >> np.arange(p)
    signs = 1.0 - 2.0 * (codes & 1)
    matrix = dense(projection.matrix)
    products = np.abs(signs @ matrix)
    sizes = (products**norm).sum(axis=1)
    slack = 4 * (projection.k + 2) * 2.0**-53
    best = max(
        sum(int(value) ** norm for value in products[row].tolist())
        for row in np.flatnonzero(sizes >= sizes.max() * (1 - slack)).tolist()
    )
    return Fraction(best) if norm == 1 else SquareRoot(Fraction(best))


def _times(count: int, size: Exact) -> Exact:
    if isinstance(size, SquareRoot):
        return SquareRoot(count**2 * size.radicand)
    return count * size
