"""Sketches whose randomness is the secret projection itself: graph cuts and covariances.

Blocki, Blum, Datta and Sheffet 2012 (arXiv:1204.2136), sections 3 and 4. A secret real Gaussian
matrix times the data is published, and no noise is added. Its rows are i.i.d. normal, so the
mechanism is its covariance, which is the data's quadratic form lifted by a public floor:

    graph        Σ = w·I + (1 − w/n)·L          L the Laplacian of the n × n weights in [0, 1]
    covariance   Σ = w²·I + AᵀA                 A the data matrix, one record a row

**The graph's rows are the paper's.** Smoothing every pair's weight to w/n + (1 − w/n)u gives the
Laplacian L_H = (w/n)(nI − J) + (1 − w/n)L with J all ones, and M·E_H has rows N(0, L_H), which sum
to zero. Σ is L_H + (w/n)J: each row has one independent N(0, w/n) variable added to all of its
coordinates, the same to each. It knows nothing of the data, and subtracting the row's mean takes it
off, so that either release is a post-processing of the other and all curves agree.

**Privacy of a graph.** One weight's change t ≤ β changes Σ by (1 − w/n)·t·bbᵀ, b = e_u − e_v, and
bᵀΣ⁻¹b ≤ ‖b‖²/w = 2/w, reached by the empty graph. So `rank_one` gives the exact curve at
γ = 2β(1 − w/n)/w. **Of a covariance**: one row's move is a change of rank two, see `rank_two`. The
paper's neighbours are A and A + e·vᵀ with ‖v‖ ≤ 1: one row moves, by a rank-one matrix; the Gram
matrices differ by rank two. Its theorems are single points, far from tight; `published` has them.

**The data are gridded** before anything else, which the adjacency is charged for, so that Σ is an
integer matrix times a public unit. `rows` says what is released of it, and what it tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from statistics import fmean
from typing import Any, ClassVar, Self

import numpy as np
from attrs import field, frozen
from flint import arb
from numpy.typing import ArrayLike, NDArray

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import (
    RankTwoNormal,
    replaced_row_gamma,
)
from dpverify.data.adjacency import Edge, Row, largest_move
from dpverify.data.blocks import admitted_blocks, row_blocks
from dpverify.data.domain import Ball, Graphs, dense, uniform
from dpverify.data.grid import Grid
from dpverify.enclosure import Real, enclose, exact_string, rational, to_arb
from dpverify.errors import NumericalError, RecordsError, require
from dpverify.guarantee import Guarantee
from dpverify.numbers import count, to_count, to_positive_rational, to_rational
from dpverify.privacy import Errors, Pair
from dpverify.sampling.normal_vectors import LARGEST_ENTRY
from dpverify.sampling.words import Words
from dpverify_mechanisms.secret.rows import SecretRows

__all__ = ["CovarianceSketch", "CutSketch"]

_STEPS = 2**20  # of an edge's weight
_ROW_STEPS = 2**16  # at least, of the radius of a data row
_FLOOR_STEPS = 2**10  # w is rounded up to a whole number of 1/1024, or coarser for large graphs
_ONE_EDGE = Edge(weight=Fraction(1))
_ONE_ROW = Row(radius=Fraction(1))


@frozen(kw_only=True)
class CutSketch(SecretRows):
    """Sketch of a graph that answers every cut query, and any quadratic form of the Laplacian.

    Parameters
    ----------
    p : vertices n ≥ 2, public
    w : smoothing, 0 < w < n, exact
    adjacency : by how much one edge's weight may change
    """

    answers: ClassVar[str] = "cut"

    p: int = field(converter=to_count)
    w: Fraction = field(converter=to_rational)
    adjacency: Edge = _ONE_EDGE

    def __attrs_post_init__(self) -> None:
        require(self.p >= 2, "p", self.p, "at least 2")
        require(0 < self.w < self.p, "w", self.w, f"in (0, n={self.p})")
        most = _finest(self.p)
        rule = f"a fraction of denominator at most {most} for n={self.p}"
        require(self.w.denominator <= most, "w", self.w, rule)

    @classmethod
    def calibrated(
        cls,
        *,
        p: int,
        sketch_rows: int,
        epsilon: Real,
        delta: Real,
        adjacency: Edge = _ONE_EDGE,
    ) -> Self:
        """The sketch with the least smoothing that is (ε, δ)-private by the exact curve.

        γ = 2β(1/w − 1/n) is solved for w, which is below n for every target.
        """
        epsilon, delta = rational("epsilon", epsilon), rational("delta", delta)
        p, sketch_rows = count("p", p), count("sketch_rows", sketch_rows)
        gamma = RankOneNormal.max_gamma(sketch_rows, epsilon=epsilon, delta=delta)
        exact = 2 * _moved(adjacency) / (gamma + 2 * _moved(adjacency) / p)
        finest = _finest(p)
        require(finest >= 1, "p", p, "smaller: otherwise the sketch's sums would be too large")
        steps = min(_FLOOR_STEPS, 1 << finest.bit_length() - 1)
        w = Fraction(math.ceil(exact * steps), steps)
        require(w < p, "epsilon", epsilon, "larger for so few vertices, since w would be n")
        return cls(p=p, sketch_rows=sketch_rows, w=w, adjacency=adjacency)

    @property
    def domain(self) -> Graphs:
        """Weights in [0, 1]."""
        return Graphs()

    @property
    def floor(self) -> Fraction:
        """Smoothing w, the smallest eigenvalue."""
        return self.w

    @property
    def share(self) -> Fraction:
        """Factor 1 − w/n that smoothing leaves of the weights."""
        return 1 - self.w / self.p

    def covariance(self, records: Any) -> tuple[NDArray[np.int64], Fraction]:
        """Integer matrix and unit of Σ = w·I + (1 − w/n)·L, for weights in steps of 2⁻²⁰."""
        if isinstance(records, Iterator):
            raise RecordsError(
                "a graph is one symmetric matrix of weights: give it whole, and not in blocks of "
                "rows."
            )
        weights = self.domain.admit(records, attributes=self.p)
        steps = Grid(step=Fraction(1, _STEPS)).round(weights).astype(np.int64)
        p, q, n = self.w.numerator, self.w.denominator, self.p
        matrix = (p - n * q) * steps
        matrix[np.diag_indices(n)] = (n * q - p) * steps.sum(axis=1) + p * n * _STEPS
        return matrix, Fraction(1, q * n * _STEPS)

    def query(self, query: ArrayLike) -> NDArray[np.float64]:
        """The vector less its mean, which takes off what all coordinates share."""
        x = np.asarray(query, dtype=np.float64)
        return np.asarray(x - x.mean(axis=-1, keepdims=True))

    def privacy(self) -> RankOneNormal:
        """Exact curve: γ = 2β(1 − w/n)/w."""
        gamma = 2 * _moved(self.adjacency) * self.share / self.w
        return RankOneNormal(rows=self.sketch_rows, gamma=gamma)

    def published(self, delta: Fraction) -> ApproxDP:
        """ε = √(32 r ln(2/δ))·ln(4r/δ)/w: their section 3, for weights that change by at most 1."""
        r, d = self.sketch_rows, to_arb

        def bound() -> arb:
            logs = (2 / d(delta)).log(), (4 * r / d(delta)).log()
            return (32 * r * logs[0]).sqrt() * logs[1] / d(self.w)

        return ApproxDP(epsilon=Fraction(enclose(bound).upper), delta=delta)

    def guarantee(self) -> Guarantee:
        return self._guarantee(
            self.adjacency,
            "exact curve of a covariance's rank-one change, `dpverify.accounting.curves.rank_one`, "
            "for Blocki et al. 2012 (arXiv:1204.2136), section 3",
            statements=(
                "slides2025.appendix-d.determinants.exact",
                "slides2025.appendix-d.floor",
                "slides2025.appendix-e.matrix",
            ),
        )

    def errors_at(self, at: Sequence[Any], *, draws: int = 16) -> Errors:
        """Error of cuts; `at` are pairs of a number of vertices s and of the cut C around them.

        With γ calibrated, w/(1 − w/n) = 2/γ, so a cut of value C around s vertices has the standard
        deviation √(2/r)·(2s(n − s)/(nγ) + C). As √(r/2)·γ rises to the μ of the Gaussian mechanism
        with the same (ε, δ), it falls to 2s(n − s)/(nμ) with growing r, whatever C: more rows cost
        computation only. Take the first design whose error is small enough.
        """
        del draws
        lift, n = float(self.w / self.share), self.p
        means = [lift * size * (n - size) / n + cut for size, cut in at]
        return Errors(variance=2 / self.sketch_rows * fmean(mean**2 for mean in means))

    def worst_pairs(self) -> Sequence[Pair]:
        """The empty graph, to which one edge is added."""
        empty = np.zeros((self.p, self.p))
        pairs = []
        for other in sorted({1, self.p - 1}):
            graph = empty.copy()
            graph[0, other] = graph[other, 0] = min(largest_move(0.0, self.adjacency.weight), 1.0)
            pairs.append(Pair(name=f"edge (0, {other}) added", record=empty, neighbour=graph))
        return pairs

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Random graphs with random sets of vertices."""
        return [
            Pair(name=f"synthetic graph {number}", record=graph, neighbour=query)
            for number, (graph, query) in enumerate(self.domain.probes(self.p, rng), start=1)
        ]


@frozen(kw_only=True)
class CovarianceSketch(SecretRows):
    """Sketch of a data matrix that answers ‖Ax‖² for every direction x.

    Parameters
    ----------
    p : attributes d ≥ 1
    w_squared : w² > 0, exact
    domain : bound on every row's norm; rows that are small beside w are protected far better
    adjacency : by how much one row may move (up to twice the radius: a whole row replaced)
    """

    answers: ClassVar[str] = "squared length along a direction"

    p: int = field(converter=to_count)
    w_squared: Fraction = field(converter=to_positive_rational)
    domain: Ball
    adjacency: Row = _ONE_ROW

    def __attrs_post_init__(self) -> None:
        require(self.sketch_rows >= 4, "sketch_rows", self.sketch_rows, "at least 4")
        radius = exact_string(self.domain.radius)
        rule = f"smaller, or a coarser fraction, beside a radius of {radius}"
        hint = "Its entries have to fit 62 bits: a larger epsilon needs less of it."
        require(self._largest_entry(1) < LARGEST_ENTRY, "w_squared", self.w_squared, rule, hint)

    @classmethod
    def calibrated(
        cls,
        *,
        p: int,
        sketch_rows: int,
        epsilon: Real,
        delta: Real,
        domain: Ball,
        adjacency: Row = _ONE_ROW,
    ) -> Self:
        """The sketch with the least w that is (ε, δ)-private by the proven curve."""
        epsilon, delta = rational("epsilon", epsilon), rational("delta", delta)
        p, sketch_rows = count("p", p), count("sketch_rows", sketch_rows)
        gamma = RankTwoNormal.max_gamma(sketch_rows, epsilon=epsilon, delta=delta)
        moved, norm = _row_bounds(adjacency, domain, p)
        rest = max(norm - moved, Fraction(0))
        exact = (norm**2 - (1 + gamma) * rest**2) / gamma
        if exact <= norm * (norm - moved) or exact <= 0:
            exact = moved**2 * (1 + gamma) / gamma**2
        unit = _row_grid(domain).step ** 2
        sketch = cls(
            p=p,
            sketch_rows=sketch_rows,
            w_squared=(math.floor(exact / unit) + 1) * unit,
            domain=domain,
            adjacency=adjacency,
        )
        if not sketch.privacy().gamma <= gamma:
            raise NumericalError(f"w² = {sketch.w_squared} misses its target")
        return sketch

    @property
    def floor(self) -> Fraction:
        """w²."""
        return self.w_squared

    @property
    def share(self) -> Fraction:
        """One: the data are not shrunk."""
        return Fraction(1)

    def covariance(self, records: Any) -> tuple[NDArray[np.int64], Fraction]:
        """Integer matrix and unit of Σ = w²·I + AᵀA, for A on a grid.

        Records are dense, sparse, or an iterable of blocks of rows, of which one is in memory.
        """
        grid = _row_grid(self.domain)
        lift = self.w_squared / grid.step**2
        scale = lift.denominator
        gram = np.zeros((self.p, self.p), dtype=np.int64)
        rows = 0
        for x in row_blocks(admitted_blocks(records, self.domain, attributes=self.p)):
            steps = grid.round(dense(x))
            rows += len(steps)
            fits = self._largest_entry(rows) < LARGEST_ENTRY
            require(fits, "records", rows, "fewer rows")
            # Exact: values below 2¹⁸ in blocks of 2¹⁰ rows sum to less than 2⁴⁶.
            gram += (steps.T @ steps).astype(np.int64)
        matrix = gram * scale
        matrix[np.diag_indices(self.p)] += lift.numerator
        return matrix, grid.step**2 / scale

    def _largest_entry(self, rows: int) -> int:
        """Bound on the integer covariance of so many rows."""
        grid = _row_grid(self.domain)
        lift = self.w_squared / grid.step**2
        return rows * grid.check_reach(self.domain) ** 2 * lift.denominator + lift.numerator

    def query(self, query: ArrayLike) -> NDArray[np.float64]:
        """The direction itself."""
        return np.asarray(query, dtype=np.float64)

    def privacy(self) -> RankTwoNormal:
        """Proven curve; exact where rows may be replaced at will or have no bound that matters."""
        moved, norm = _row_bounds(self.adjacency, self.domain, self.p)
        gamma = replaced_row_gamma(floor=self.w_squared, moved=moved, norm=norm)
        return RankTwoNormal(rows=self.sketch_rows, gamma=gamma)

    def published(self, delta: Fraction) -> ApproxDP:
        """ε = 16·√(r ln(2/δ))·ln(16r/δ)/w: their section 4, for rows that move by at most 1."""
        r, d = self.sketch_rows, to_arb

        def bound() -> arb:
            logs = (2 / d(delta)).log(), (16 * r / d(delta)).log()
            return 16 * (r * logs[0] / d(self.w_squared)).sqrt() * logs[1]

        return ApproxDP(epsilon=Fraction(enclose(bound).upper), delta=delta)

    def guarantee(self) -> Guarantee:
        return self._guarantee(
            self.adjacency,
            "curve of a covariance when a row is replaced, `dpverify.accounting.curves.rank_two`, "
            "for Blocki et al. 2012 (arXiv:1204.2136), section 4",
        )

    def worst_pairs(self) -> Sequence[Pair]:
        """A row of the largest norm is turned, no further than to a right angle, or shortened."""
        radius = float(self.domain.radius) * (1 - 2.0**-40)
        sine = min(float(self.adjacency.radius) / (2 * radius), math.sqrt(0.5)) * (1 - 2.0**-40)
        long, short, one, other = np.zeros((4, 1, self.p))
        long[0, 0], short[0, 0] = radius, max(largest_move(radius, -self.adjacency.radius), 0.0)
        pairs = [Pair(name="one row shortened", record=long, neighbour=short)]
        if self.p > 1:
            one[0, :2] = radius * math.sqrt(1 - sine * sine), radius * sine
            other[0, :2] = one[0, 0], -one[0, 1]
            pairs.insert(0, Pair(name="one row turned", record=one, neighbour=other))
        return pairs

    def probes(self, rng: Words) -> Sequence[Pair]:
        """Random matrices with random directions."""
        scale = float(self.domain.radius) / math.sqrt(self.p)
        pairs = []
        for number in range(1, 21):
            draws = 2 * uniform((5 * number + 1) * self.p, rng) - 1
            table = draws.reshape(-1, self.p)
            pairs.append(
                Pair(
                    name=f"synthetic matrix {number}",
                    record=scale * table[1:],
                    neighbour=table[:1],
                )
            )
        return pairs


def _finest(vertices: int) -> int:
    """Largest denominator of w with which the entries stay in range."""
    return (LARGEST_ENTRY - 1) // (2 * vertices**2 * _STEPS)


def _moved(adjacency: Edge) -> Fraction:
    """Largest change of one gridded weight: a whole number of steps, at most 1."""
    return min(Fraction(math.ceil(adjacency.weight * _STEPS), _STEPS), Fraction(1))


def _row_grid(domain: Ball) -> Grid:
    """The coarsest power of two that divides the radius into 2¹⁶ steps or more."""
    bound = domain.radius / _ROW_STEPS
    step = Fraction(2) ** (bound.numerator.bit_length() - bound.denominator.bit_length() + 1)
    while step > bound:
        step /= 2
    return Grid(step=step)


def _row_bounds(adjacency: Row, domain: Ball, attributes: int) -> tuple[Fraction, Fraction]:
    """Bounds on a gridded row's move and norm.

    Rounding moves a row by at most h√d/2; clipping, where a row just inside `reach` stays and its
    neighbour is scaled to the radius, by what lies between the two.
    """
    root = Fraction(math.isqrt(attributes << 40) + 1, 2**20)
    spread = _row_grid(domain).step * root
    norm = domain.reach + spread / 2
    moved = adjacency.radius + spread + (domain.reach - domain.radius)
    return min(moved, 2 * norm), norm
