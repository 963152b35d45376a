"""A report says "the whole width of the domain, so any change of one attribute": it has to be so.

The ends of a domain are doubles, and β is their decimals' distance. Where an end lies at half a
step of the grid, the doubles can be a step further apart than β is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpverify.catalogue import family_of
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify.data.grid import Grid
from dpverify_mechanisms.linear.distance import GRID_STEPS
from tests.contracts.test_projected import check
from tests.helpers.cases import CASES, request

P = 4
WHOLE = [
    name
    for name, asked in CASES.items()
    if isinstance(asked.adjacency, Attribute) and isinstance(asked.domain, Box)
]
SMALL: Mapping[str, dict[str, Any]] = {
    name: {"p": P, "rows": 3, **CASES[name].parameters} for name in WHOLE
}


def made(name: str, low: Fraction, width: Fraction) -> Any:
    build: Callable[..., Any] | None = family_of(name.partition(" ")[0]).build
    assert build is not None
    domain = Box(low=low, high=low + width)
    beta = Attribute(beta=width)
    return build(request(domain=domain, adjacency=beta, delta=CASES[name].delta, **SMALL[name]))


def from_end_to_end(mechanism: Any, place: int) -> tuple[Any, Any]:
    """One attribute goes from the low end to the high one; all others are at either."""
    low, high = mechanism.domain.ends
    rows = getattr(mechanism, "rows", 1)
    one = np.full((rows, P), high if place else low)
    one[0] = low
    two = one.copy()
    two[0, place] = high
    return one, two


@pytest.mark.parametrize("name", WHOLE)
@given(
    places=st.integers(0, 2),
    digits=st.integers(1, 10**4),
    half=st.integers(-3000, 3000),
)
@example(places=1, digits=1, half=3)  # [0.35, 102.75]: the double of 0.35 lies below it
def test_any_change_of_one_attribute_is_charged(
    name: str, places: int, digits: int, half: int
) -> None:
    """Steps of so many decimals, and a low end at half a step."""
    step = Fraction(digits, 10**places)
    mechanism = made(name, (half + Fraction(1, 2)) * step, GRID_STEPS * step)
    for place in (0, P - 1):
        check(mechanism, *from_end_to_end(mechanism, place))


def test_the_doubles_can_be_a_step_further_apart() -> None:
    """What was charged before: β over the step."""
    domain = Box(low=Fraction(35, 100), high=Fraction(10275, 100))
    beta = Attribute(beta=domain.high - domain.low)
    grid = Grid.dividing(beta.beta, steps=GRID_STEPS)
    assert grid.bound(beta) == GRID_STEPS
    assert grid.width(domain) == grid.moves(beta, domain, attributes=2) == GRID_STEPS + 1
    narrower = Attribute(beta=beta.beta / 2)
    assert grid.moves(narrower, domain, attributes=2) == GRID_STEPS // 2
