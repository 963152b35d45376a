"""The least value of a convex function: of pieces of lines, which is known exactly, and smooth."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpverify.accounting.convex import Ends, enclose_least, least_by_lines
from dpverify.enclosure import Enclosure, rational_of, to_arb
from tests.helpers.profiles import examples

LINES = st.lists(
    st.tuples(st.fractions(0, 3, max_denominator=40), st.fractions(-2, 2, max_denominator=40)),
    min_size=1,
    max_size=5,
)
"""Heights at 0, and slopes."""
OPEN = Fraction(1, 8)  # the largest slope, and a line below, of those without a last place


def value(lines: list[tuple[Fraction, Fraction]], y: Fraction) -> Fraction:
    return max(height + slope * y for height, slope in lines)


def least(lines: list[tuple[Fraction, Fraction]], last: Fraction) -> Fraction:
    """At an end, or where two lines meet."""
    places = {Fraction(0), last}
    for height, slope in lines:
        for other, steeper in lines:
            if slope != steeper and 0 <= (place := (height - other) / (steeper - slope)) <= last:
                places.add(place)
    return min(value(lines, place) for place in places)


def around(exact: Fraction, below: float = 0.0, above: float = 0.0) -> Enclosure:
    found = Enclosure.of_exact(exact)
    return Enclosure(found.lower - below, found.upper + above)


def pieces(
    lines: list[tuple[Fraction, Fraction]], is_open: bool
) -> tuple[list[tuple[Fraction, Fraction]], Fraction, Ends]:
    """Lines of a function, where it is least at the latest, and what is known of its ends."""
    if is_open:
        lines = [(h, min(s, OPEN)) for h, s in lines] + [(Fraction(0), OPEN)]
    steepest = max(abs(slope) for _, slope in lines) + Fraction(1, 10**6)
    ends = Ends(
        first=around(value(lines, Fraction(0))),
        fall=-arb(float(steepest)),
        rise=arb(1) / 8 if is_open else arb(float(steepest)),
        is_open=is_open,
    )
    return lines, Fraction(100) if is_open else Fraction(1), ends


@examples(150)
@given(
    LINES,
    st.booleans(),
    st.lists(
        st.tuples(st.floats(-12, 0), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8
    ),
    st.sampled_from([0.0, 1e-13, 1e-3, 0.3]),
)
def test_lines_hold_whatever_is_known(
    lines: list[tuple[Fraction, Fraction]],
    is_open: bool,
    places: list[tuple[float, float, float]],
    width: float,
) -> None:
    """However wide, and wherever in that the truth lies; also of places next to each other."""
    lines, last, ends = pieces(lines, is_open)
    known = {
        x: around(value(lines, Fraction(math.exp(x))), width * below + 1e-12, width * above + 1e-12)
        for x, below, above in [(0.0, 1.0, 1.0), *places]
    }
    found = least_by_lines(known, ends)
    assert found.lower <= least(lines, last) <= found.upper


@examples(80)
@given(LINES, st.booleans())
def test_kinks_are_found_in_a_few_looks(
    lines: list[tuple[Fraction, Fraction]], is_open: bool
) -> None:
    lines, last, ends = pieces(lines, is_open)
    looks = []

    def at(x: float) -> Enclosure:
        looks.append(x)
        return around(value(lines, Fraction(math.exp(x))), 1e-15, 1e-15)

    found = enclose_least(at, [0.0, -1.0], ends)
    truth = least(lines, last)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < 1e-11
    assert len(looks) <= 45


@pytest.mark.parametrize("share", [0.5, 1e-2, 1e-6])
def test_smooth_functions_are_sharp(share: float) -> None:
    """Of e^{−y} + fy, that is least at −ln f."""
    looks = []

    def at(x: float) -> Enclosure:
        looks.append(x)
        y = math.exp(x)
        found = math.exp(-y) + share * y
        return Enclosure(found * (1 - 1e-15), found * (1 + 1e-15))

    ends = Ends(first=Enclosure(1.0, 1.0), fall=arb(-1), rise=arb(share), is_open=True)
    found = enclose_least(at, [0.0], ends)
    truth = share - share * math.log(share)
    assert found.lower <= truth <= found.upper
    assert found.width < 2e-12
    assert len(looks) <= 40


@pytest.mark.parametrize("is_open", [True, False])
def test_a_kink_between_two_doubles_hides_no_tiny_value(is_open: bool) -> None:
    """At the nearest double it is 1e-17 or so, and at the next one, on the flat side, 1e-100."""
    tiny, slope, place = (
        Fraction(1, 10**100),
        Fraction(1, 10**120),
        Fraction(3 if is_open else 1, 5),
    )
    steep = (1 - tiny) / place

    def at(x: float) -> Enclosure:
        with ctx.workprec(800):
            y = rational_of(arb(x).exp().mid())
        over = (place - y) * steep if is_open else (y - place)
        exact = tiny + max(over, Fraction(0)) + slope * y
        return Enclosure.of_exact(exact)

    ends = Ends(
        first=Enclosure.of_exact(Fraction(1) if is_open else tiny),
        fall=-arb(2),
        rise=to_arb(slope) if is_open else arb(2),
        is_open=is_open,
    )
    found = enclose_least(at, [0.0, -1.0], ends)
    truth = tiny + (slope * place if is_open else 0)
    assert found.lower <= truth <= found.upper
    assert found.width < 1e-11


def test_a_slope_that_is_not_one_is_noticed() -> None:
    """The planted bug: that the function doesn't fall from its first place on."""
    ends = Ends(first=Enclosure(1.0, 1.0), fall=arb(0), rise=arb(1))
    known = {x: Enclosure(y, y) for x, y in ((0.0, 0.5), (-1.0, 0.25))}
    least_value = 0.1  # where y is 0.2, on two lines from (0, 1) and to (e⁻¹, 0.25)
    assert least_by_lines(known, ends).lower > least_value
    falls = Ends(first=ends.first, fall=arb(-5), rise=arb(1))
    assert least_by_lines(known, falls).lower <= least_value


@pytest.mark.parametrize("mirrored", [False, True])
def test_lines_through_what_is_hardly_known_are_no_steeper_than_it_may_be(mirrored: bool) -> None:
    """Of max(1 − y, y − 0.4), which is 0.3 at 0.7: beside the truth a lower end is a wrong line."""
    wide, exact = 1.0 if mirrored else 0.25, {0.25: 0.75, 0.5: 0.5, 0.9: 0.5, 1.0: 0.6}
    ends = Ends(first=Enclosure(1.0, 2.0), fall=arb(-9), rise=arb(9))
    known = {
        math.log(y): Enclosure(value - (0.12 if y == wide else 1e-12), value + 1e-12)
        for y, value in exact.items()
    }
    assert 0.29 < least_by_lines(known, ends).lower <= 0.3
