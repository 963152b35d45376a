from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpverify.data import grid as grid_module
from dpverify.data.adjacency import Attribute, BitFlip, L1Ball
from dpverify.data.domain import Box
from dpverify.data.grid import Grid
from dpverify.errors import ParameterError, RecordsError

STEPS = [
    Fraction(1, 1024),
    Fraction(1, 10240),
    Fraction(3, 1024),
    Fraction(1),
    Fraction(4),
    Fraction(7, 9),
]
UNIT = Box(low=Fraction(0), high=Fraction(1))
WIDE = Box(low=Fraction(-1000), high=Fraction(1000))


def exact_round(x: float, step: Fraction) -> int:
    return math.floor(Fraction(x) / step + Fraction(1, 2))


@given(
    st.sampled_from(STEPS),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.integers(-10_000, 10_000),
)
@example(Fraction(1), [-0.25], 0)
@example(Fraction(1, 1024), [0.0], 0)
@example(Fraction(4), [0.0], -1)
def test_rounding_is_exact_also_next_to_halves(
    step: Fraction, values: list[float], half: int
) -> None:
    tie = float((half + Fraction(1, 2)) * step)
    values = [*values, tie, math.nextafter(tie, math.inf), math.nextafter(tie, -math.inf)]
    rounded = Grid(step=step).round(np.array([values]))
    assert rounded[0].tolist() == [exact_round(x, step) for x in values]


def test_the_one_double_that_rounds_across_a_half_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.array([[0.25, math.nextafter(0.5, 0)]])
    assert Grid(step=Fraction(1)).round(values).tolist() == [[0, 0]]
    monkeypatch.setattr(grid_module, "_BELOW_HALF", math.nan)
    assert Grid(step=Fraction(1)).round(values).tolist() == [[0, 1]]


@pytest.mark.parametrize("step", [Fraction(1, 1024), Fraction(7, 9)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chunks_of_a_large_array_are_rounded_alike(step: Fraction, dtype: type) -> None:
    values = np.random.default_rng(0).integers(-(2**12), 2**12, (3, 30_001)) / 4096
    rounded: NDArray[Any] = np.empty(values.shape, dtype=dtype)
    assert Grid(step=step).round(values, out=rounded) is rounded
    for place in ((0, 0), (1, 2767), (1, 2766), (2, 30_000)):  # the second chunk begins at 32,768
        assert rounded[place] == exact_round(values[place], step)
    again = [Grid(step=step).round(values[:, [column]]) for column in range(0, 30_001, 1000)]
    assert np.array_equal(np.hstack(again), rounded[:, ::1000])


@pytest.mark.parametrize("step", [Fraction(383, 102400), Fraction(1, 3)])
def test_rounding_is_exact_up_to_the_largest_reach(step: Fraction) -> None:
    values = [float(n * step) for n in range(2**51, 2**51 + 2_000_000, 3331)]
    values += [
        14065583396525.512
    ]  # found by search: off by one step if only its fraction is mended
    rounded = Grid(step=step).round(np.array([values]))
    assert rounded[0].tolist() == [exact_round(x, step) for x in values]


def moved(x: float, beta: Fraction, share: float) -> float:
    """A double at most beta above x."""
    y = x + share * float(beta)
    return y if Fraction(y) - Fraction(x) <= beta else math.nextafter(y, -math.inf)


@given(
    st.sampled_from([Fraction(1), Fraction(1, 10), Fraction(3), Fraction(383, 100)]),
    st.floats(-100, 100),
    st.floats(0, 1),
)
@example(Fraction(1), 0.5 / 1024, 1.0)
@example(Fraction(1), 1.5 / 1024, 1.0)
def test_neighbours_move_by_at_most_the_bound(beta: Fraction, x: float, share: float) -> None:
    y = moved(x, beta, share)
    if not 0 <= Fraction(y) - Fraction(x) <= beta:
        return
    grid = Grid.dividing(beta, steps=1024)
    low, high = grid.round(np.array([[x, y]]))[0].tolist()
    assert 0 <= high - low <= grid.moves(Attribute(beta=beta), WIDE, attributes=5) == 1024


def test_rounding_halves_to_even_would_double_the_sensitivity() -> None:
    pair = np.array([[0.5, 1.5]])
    assert np.diff(np.rint(pair)).tolist() == [[2.0]]
    assert np.diff(Grid(step=Fraction(1)).round(pair)).tolist() == [[1.0]]


def test_l1_ball_is_charged_what_rounding_can_add() -> None:
    """All pairs of a fine lattice in two dimensions: the charge holds and is attained."""
    grid, radius = Grid(step=Fraction(1)), Fraction(2)
    fine = [Fraction(n, 4) for n in range(9)]
    largest = 0
    for a, b in itertools.product(fine, repeat=2):
        for c, d in itertools.product(fine, repeat=2):
            if abs(a - c) + abs(b - d) <= radius:
                move = abs(grid.steps(a) - grid.steps(c)) + abs(grid.steps(b) - grid.steps(d))
                largest = max(largest, move)
    assert largest == grid.moves(L1Ball(radius=radius), WIDE, attributes=2) == 3


def test_bit_flip_is_one_unit() -> None:
    assert Grid(step=Fraction(1)).moves(BitFlip(), UNIT, attributes=9) == 1


def test_bound_that_is_no_whole_number_of_steps() -> None:
    with pytest.raises(ParameterError, match="step=1/3 must be a whole fraction of 1/2"):
        Grid(step=Fraction(1, 3)).bound(Attribute(beta=Fraction(1, 2)))


def test_too_fine_for_doubles() -> None:
    with pytest.raises(ParameterError, match="coarse enough"):
        Grid(step=Fraction(1, 2**52)).check_reach(UNIT)


def test_domain_refuses_and_names_the_value() -> None:
    with pytest.raises(
        RecordsError, match=r"record 1, attribute 0 is 1.5, outside .* \[0.0, 1.0\]"
    ):
        UNIT.admit([[0.5, 0.5], [1.5, 0.5]])
    for bad in (math.nan, math.inf, -math.inf):
        for outside in ("refuse", "clip"):
            domain = Box(low=Fraction(0), high=Fraction(1), outside=outside)
            with pytest.raises(RecordsError, match="record 0, attribute 1 is"):
                domain.admit([[0.5, bad]])


def test_a_declared_decimal_admits_the_double_that_is_written_so() -> None:
    tenth = Box(low=Fraction(-1, 10), high=Fraction(1, 10))
    assert tenth.admit([[0.1, -0.1]]).tolist() == [[0.1, -0.1]]
    with pytest.raises(RecordsError):
        tenth.admit([[math.nextafter(0.1, 1), 0.0]])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_clipping_moves_nothing_apart(pair: list[float]) -> None:
    domain = Box(low=Fraction(-1, 10), high=Fraction(1), outside="clip")
    x, y = domain.admit([pair])[0].tolist()
    assert abs(Fraction(x) - Fraction(y)) <= abs(Fraction(pair[0]) - Fraction(pair[1]))
    assert domain.count_outside([pair]) == sum(not -0.1 <= value <= 1 for value in pair)


@pytest.mark.parametrize("records", [[], [[]], [1.0], [[["x"]]], [["x"]], 3.0])
def test_not_a_matrix_of_numbers(records: object) -> None:
    with pytest.raises(RecordsError, match="records"):
        UNIT.admit(records)


def test_empty_domain_and_wrong_width() -> None:
    with pytest.raises(ParameterError, match="high=0 must be greater than low=0"):
        Box(low=Fraction(0), high=Fraction(0))
    with pytest.raises(RecordsError, match="must have 3 attributes"):
        UNIT.admit([[0.5, 0.5]], attributes=3)
