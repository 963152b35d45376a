"""Sensitivity of whole records: bounds against brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    Edge,
    Items,
    L1Ball,
    Record,
)
from dpverify.data.domain import Ball, Box, Sets, Vectors
from dpverify.data.grid import Grid
from dpverify.enclosure import squared
from dpverify.errors import ParameterError
from dpverify_mechanisms.linear import distance as module
from dpverify_mechanisms.linear.distance import distance, farthest, grid_for, laplace_row
from dpverify_mechanisms.projections.independent import (
    OPORP,
    GaussianProjection,
    IdentityProjection,
    Projection,
    RademacherProjection,
)
from tests.helpers.profiles import examples

BOX = Box(low=Fraction(-1), high=Fraction(2))
NORMS: tuple[Literal[1, 2], ...] = (1, 2)


def projections(p: int, k: int, seed: int) -> list[Projection]:
    return [
        RademacherProjection(p=p, k=k, seed=seed),
        GaussianProjection(p=p, k=k, seed=seed),
        OPORP(p=p, k=min(k, p), seed=seed),
        IdentityProjection(p=p, k=p),
    ]


@examples(15)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_box_by_brute_force(p: int, k: int, seed: int) -> None:
    """Vertices of the box of differences, exactly; the general bounds are never below."""
    grid = grid_for(BOX, Record(), p, 6)
    for projection in projections(p, k, seed):
        rows = np.asarray(projection.apply(np.eye(p))).astype(object)
        for norm in NORMS:
            best = max(
                sum(abs(int(v)) ** norm for v in 6 * (np.array(signs, dtype=object) @ rows))
                for signs in itertools.product((-1, 1), repeat=p)
            )
            exact = Fraction(best) ** (2 if norm == 1 else 1)
            assert squared(distance(projection, grid, BOX, Record(), norm)) == exact
            searched, module._SEARCHED = module._SEARCHED, 0
            try:
                bound = squared(distance(projection, grid, BOX, Record(), norm))
            finally:
                module._SEARCHED = searched
            assert bound >= exact
            if projection.name in ("oporp", "identity"):
                assert bound == exact


@examples(20)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_no_two_records_of_a_ball_are_farther(p: int, k: int, seed: int) -> None:
    ball = Ball(radius=Fraction(3, 2), outside="clip")
    grid = grid_for(ball, Record(), p, 8)
    rng = np.random.default_rng(seed)
    records = ball.admit(rng.normal(size=(40, p)) * 10.0 ** rng.integers(-1, 3, (40, 1)))
    for projection in projections(p, k, seed):
        images = projection.apply(grid.round(records))
        gaps = images[:, None] - images[None]
        for norm in NORMS:
            largest = (np.abs(gaps) ** norm).sum(axis=-1).max() ** (2 / norm)
            bound = float(squared(distance(projection, grid, ball, Record(), norm)))
            assert largest <= bound


def test_a_ball_costs_little_more_than_twice_its_radius() -> None:
    ball = Ball(radius=Fraction(5))
    grid = grid_for(ball, Record(), 784, 1024)
    identity = IdentityProjection(p=784, k=784)
    size = squared(distance(identity, grid, ball, Record(), 2)) * grid.step**2
    assert 100 < size < 100 * (1 + 2e-3)


@examples(15)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99))
def test_no_two_sets_are_farther(p: int, k: int, most: int, seed: int) -> None:
    domain = Sets(min_size=1, max_size=most)
    every = [np.array(bits) for bits in itertools.product((0, 1), repeat=p)]
    sets = [bits for bits in every if 1 <= bits.sum() <= most]
    grid = grid_for(domain, Record(), p, 7)
    assert grid.step == 1
    for projection in projections(p, k, seed):
        rows = np.asarray(projection.apply(np.eye(p))).astype(object)
        for adjacency in (Record(), Items(changes=2)):
            for norm in NORMS:
                bound = squared(distance(projection, grid, domain, adjacency, norm))
                largest = Fraction(0)
                for x, y in itertools.combinations(sets, 2):
                    if adjacency != Record() and np.abs(x - y).sum() > 2:
                        continue
                    gap = (x - y).astype(object) @ rows
                    size = Fraction(sum(abs(int(v)) ** norm for v in gap))
                    largest = max(largest, size if norm == 2 else size**2)
                assert largest <= bound


def test_sets_need_a_largest_size() -> None:
    with pytest.raises(ParameterError, match="most=None must be declared"):
        distance(IdentityProjection(p=2, k=2), Grid(step=Fraction(1)), Sets(), Record(), 2)


def test_rounding_is_charged() -> None:
    """Records that differ by 2R before rounding can differ by more after it."""
    ball = Ball(radius=Fraction(1))
    grid = Grid(step=Fraction(2))
    ends = grid.round(np.array([[1.0], [-1.0 - 2.0**-30]]))
    gap = float(np.abs(ends[0] - ends[1])[0])
    assert gap * 2 > 2.0
    bound = distance(IdentityProjection(p=1, k=1), grid, ball, Record(), 2)
    assert gap**2 <= squared(bound)


def test_farthest_is_as_far_as_any_vertex_for_oporp() -> None:
    projection = OPORP(p=6, k=2, seed=3)
    signs = farthest(projection, BOX)
    grid = grid_for(BOX, Record(), 6, 1)
    exact = squared(distance(projection, grid, BOX, Record(), 2))
    assert float(((signs @ projection.matrix) ** 2).sum()) == exact


def test_adjacency_of_something_else() -> None:
    with pytest.raises(ParameterError, match="numeric records"):
        distance(
            IdentityProjection(p=2, k=2),
            Grid(step=Fraction(1)),
            BOX,
            Edge(weight=Fraction(1)),
            2,
        )


@pytest.mark.parametrize(
    ("step", "domain", "adjacency", "name"),
    [
        (Fraction(1, 8), Sets(max_size=2), Record(), "step"),
        (Fraction(1, 8), Sets(), Items(changes=1), "step"),
        (Fraction(1, 8), BOX, Items(changes=1), "domain"),
        (
            Fraction(1, 8),
            Ball(radius=Fraction(1), outside="clip"),
            Attribute(beta=Fraction(1)),
            "outside",
        ),
        (
            Fraction(1, 8),
            Ball(radius=Fraction(1), outside="clip"),
            L1Ball(radius=Fraction(1)),
            "outside",
        ),
    ],
)
def test_what_no_bound_is_proven_for(
    step: Fraction, domain: Vectors, adjacency: Adjacency, name: str
) -> None:
    """Entries of ±1/h under a count of items; and clipping, which moves all attributes."""
    projection = IdentityProjection(p=4, k=4)
    with pytest.raises(ParameterError) as caught:
        distance(projection, Grid(step=step), domain, adjacency, 2)
    assert caught.value.name == name
    with pytest.raises(ParameterError) as caught:
        laplace_row(projection, Grid(step=step), domain, adjacency)
    assert caught.value.name == name
