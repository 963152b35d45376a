"""Parallel composition: the dearest part, where one part alone can change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dpverify as dpv
from dpverify.accounting.composition.parallel import parallel
from dpverify.data.adjacency import (
    L2,
    AddRemove,
    Adjacency,
    Edge,
    Group,
    LInf,
    Permutation,
    Replace,
)
from dpverify.errors import ParameterError

NORTH, SOUTH, POINT = dpv.Gaussian(sigma=2), dpv.Laplace(scale=1), dpv.ApproxDP(epsilon="0.5")


def test_it_is_the_largest_at_each_epsilon() -> None:
    parts = NORTH, SOUTH, POINT
    both = parallel(*parts)
    for epsilon in (0, "0.3", "0.9", 2):
        values = [part.delta_at(epsilon) for part in parts]
        assert both.delta_at(epsilon).upper == max(value.upper for value in values)
        assert both.delta_at(epsilon).lower == max(value.lower for value in values)
    assert both.epsilon_at("1e-6").upper == max(p.epsilon_at("1e-6").upper for p in parts)
    # Which part that is changes with epsilon: neither curve dominates.
    assert both.delta_at(0).upper == SOUTH.delta_at(0).upper
    assert both.delta_at(2).upper == NORTH.delta_at(2).upper
    assert str(both) == f"parallel({NORTH}, {SOUTH}, {POINT})"


def test_parts_that_add_up_first() -> None:
    sums = parallel(2 * NORTH, 3 * SOUTH)
    assert sums.delta_at(2).upper == max(
        (2 * NORTH).delta_at(2).upper, (3 * SOUTH).delta_at(2).upper
    )
    with pytest.raises(ParameterError, match=r"take parallel.* of the sums"):
        2 * parallel(NORTH, SOUTH)


def test_a_part_that_dominates_composes() -> None:
    quiet, loud = dpv.Gaussian(sigma=4), dpv.Gaussian(sigma=2)
    assert (2 * parallel(quiet, loud)).epsilon_at("1e-6") == (2 * loud).epsilon_at("1e-6")
    flat, steep = dpv.Laplace(scale=4), dpv.Laplace(scale=2)
    assert (2 * parallel(steep, flat)).epsilon_at("1e-6") == (2 * steep).epsilon_at("1e-6")
    assert (2 * parallel(POINT, POINT)).epsilon_at(0) == (2 * POINT).epsilon_at(0)
    with pytest.raises(ParameterError):
        parallel(2 * steep, dpv.Laplace(scale=1)).losses()


@pytest.mark.parametrize(
    "adjacency",
    [
        Replace(),
        AddRemove(k=2),
        AddRemove(user="name"),
        Group(AddRemove(), 2),
        Permutation(),
        LInf(radius=1),
        L2(radius=1),
        Edge(weight=1),
    ],
)
def test_neighbours_in_several_parts_are_refused(adjacency: Adjacency) -> None:
    curve = dpv.Gaussian(sigma=1, adjacency=adjacency)
    with pytest.raises(ParameterError, match=r"^adjacency=.* by which a single part changes"):
        parallel(curve, curve)


def test_one_row_that_comes_or_goes() -> None:
    curve = dpv.Gaussian(sigma=1, adjacency=AddRemove())
    assert parallel(curve, curve).adjacency == AddRemove()
    assert parallel(NORTH, NORTH).adjacency == AddRemove()
    with pytest.raises(ParameterError, match="the same for all releases"):
        parallel(curve, NORTH)
    with pytest.raises(ParameterError, match=r"^curves=none"):
        parallel()
    with pytest.raises(ParameterError, match=r"^curve=3 must be a privacy curve"):
        parallel(NORTH, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "on_replaced_rows",
    [
        lambda curve: curve.sampled_without_replacement(size=1, out_of=10),
        lambda curve: curve.shuffled(users=10),
        lambda curve: curve + SOUTH.shuffled(users=10),
    ],
)
@pytest.mark.parametrize(
    "of_rows_that_come_or_go",
    [
        lambda: parallel(POINT, POINT),
        lambda: 2 * parallel(POINT, POINT),
        lambda: dpv.curves.matrix_mechanism([[1, 0], [0, 1]], scale=2),
        lambda: dpv.curves.matrix_mechanism([[1, 0], [0, 1]], scale=2) + parallel(POINT, POINT),
    ],
)
def test_a_curve_that_knows_its_neighbours_is_for_no_others(
    of_rows_that_come_or_go: Callable[[], dpv.PrivacyCurve],
    on_replaced_rows: Callable[[dpv.PrivacyCurve], dpv.PrivacyCurve],
) -> None:
    """A row that leaves one part, or one entry of a histogram, for another changes both."""
    with pytest.raises(ParameterError, match=r"^adjacency="):
        on_replaced_rows(of_rows_that_come_or_go())
