"""Outward rounding, exact numbers and their decimals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from itertools import starmap
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st

from dpverify.enclosure import (
    Enclosure,
    SquareRoot,
    decimal_string,
    enclose,
    exact,
    exact_string,
    number_string,
    rational,
    squared,
    to_arb,
)
from dpverify.errors import NumericalError, ParameterError
from tests.helpers.profiles import examples

moderate = examples(100)

MAX = 1.7976931348623157e308
TINY = 5e-324
# From far below the subnormal doubles to far above the largest one.
exponents = st.integers(-1300, 1300)
mantissas = st.integers(-(2**70), 2**70)
doubles = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def fractions(draw: st.DrawFn) -> Fraction:
    mantissa, exponent = draw(mantissas), draw(exponents)
    return Fraction(mantissa, draw(st.sampled_from([1, 3, 7, 10**9]))) * Fraction(2) ** exponent


def dyadic(ball: Any) -> Fraction:
    """An exact ball as a fraction."""
    mantissa, exponent = ball.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def ends(ball: Any) -> tuple[Fraction, Fraction]:
    """Both ends of a ball, without any rounding."""
    middle, radius = dyadic(ball.mid()), dyadic(ball.rad())
    return middle - radius, middle + radius


def make_ball(mantissa: int, exponent: int, radius: int) -> Any:
    with ctx.workprec(4096):  # so that the ball is the one asked for
        return arb(mantissa, radius) * arb(2) ** exponent


def holds(found: Enclosure, low: Fraction, high: Fraction) -> bool:
    """Whether [low, high] lies inside; infinite ends compare as one expects."""
    return found.lower <= low and high <= found.upper


def steps(x: float, count: int, towards: float) -> float:
    for _ in range(count):
        x = math.nextafter(x, towards)
    return x


# --- rounding outwards


@given(fractions())
@example(Fraction(10) ** 400)
@example(-(Fraction(10) ** 400))
@example(Fraction(10) ** -400)
@example(-(Fraction(10) ** -400))
@example(Fraction(MAX))
@example(Fraction(TINY) / 2)
@example(Fraction(3, 2) * Fraction(TINY))
@example(Fraction(0))
@moderate
def test_of_exact_is_the_tightest_enclosure(value: Fraction) -> None:
    found = Enclosure.of_exact(value)
    assert holds(found, value, value)
    if found.lower == found.upper:
        assert Fraction(found.lower) == value
    else:
        assert math.nextafter(found.lower, math.inf) == found.upper
        assert found.lower < value < found.upper


def test_of_exact_beyond_the_doubles() -> None:
    big, small = Fraction(10) ** 400, Fraction(10) ** -400
    assert Enclosure.of_exact(big) == Enclosure(MAX, math.inf)
    assert Enclosure.of_exact(-big) == Enclosure(-math.inf, -MAX)
    assert Enclosure.of_exact(small) == Enclosure(0.0, TINY)
    assert Enclosure.of_exact(-small) == Enclosure(-TINY, 0.0)


@given(doubles)
@moderate
def test_a_double_is_a_point(value: float) -> None:
    found = Enclosure.of_exact(Fraction(value))
    assert found == Enclosure(value, value)
    assert found.width == 0


@given(mantissas, exponents, st.integers(0, 2**20))
@example(1, 1300, 0)
@example(-1, 1300, 0)
@example(1, -1300, 0)
@example(-1, -1300, 0)
@example(2**53 + 1, 0, 0)
@example(2**70 - 1, -1100, 1)
@moderate
def test_of_ball_rounds_outwards_by_little(mantissa: int, exponent: int, radius: int) -> None:
    ball = make_ball(mantissa, exponent, radius)
    low, high = ends(ball)
    for precision in (53, 200):
        with ctx.workprec(precision):
            found = Enclosure.of_ball(ball)
        assert holds(found, low, high)
        # A ball that is right because it is huge fails: three doubles further in is too far.
        assert steps(found.lower, 3, math.inf) > low
        assert steps(found.upper, 3, -math.inf) < high


@given(st.fractions(min_value=0), exponents)
@example(Fraction(4), 2)
@example(Fraction(2), 1300)
@example(Fraction(2), -1300)
@example(Fraction(2), -1299)
@moderate
def test_of_exact_square_root(radicand: Fraction, exponent: int) -> None:
    value = SquareRoot(radicand * Fraction(4) ** exponent)
    found = Enclosure.of_exact(value)
    assert 0 <= Fraction(found.lower) ** 2 <= value.radicand
    assert found.upper == math.inf or value.radicand <= Fraction(found.upper) ** 2
    assert steps(found.lower, 2, math.inf) >= found.upper


def test_square_root_that_is_a_double_is_a_point() -> None:
    assert Enclosure.of_exact(SquareRoot(Fraction(0))) == Enclosure(0.0, 0.0)
    assert Enclosure.of_exact(SquareRoot(Fraction(9, 4))) == Enclosure(1.5, 1.5)


def outward_failures(
    round_ball: Callable[[Any], Enclosure], balls: Iterable[Any]
) -> list[tuple[Any, Enclosure]]:
    """Balls that the rounding doesn't enclose."""
    found = [(ball, round_ball(ball)) for ball in balls]
    return [(ball, enclosure) for ball, enclosure in found if not holds(enclosure, *ends(ball))]


def naive(ball: Any) -> Enclosure:
    """What looks right: `float` of each end, which rounds to nearest and so often inwards."""
    return Enclosure(float(ball.lower()), float(ball.upper()))


def test_naive_rounding_of_balls_would_fail() -> None:
    with ctx.workprec(128):
        roots = [arb(k).sqrt() for k in range(2, 102)]
        caught = outward_failures(naive, roots)
        assert len(caught) > len(roots) / 2
        assert outward_failures(Enclosure.of_ball, roots) == []


def test_naive_upper_end_alone_would_fail() -> None:
    # The safe end is the one a user acts on: it must not be below the ball's own end.
    with ctx.workprec(128):
        roots = [arb(k).sqrt() for k in range(2, 102)]
        short = [x for x in roots if Fraction(float(x.upper())) < ends(x)[1]]
        assert short
        assert all(Fraction(Enclosure.of_ball(x).upper) >= ends(x)[1] for x in short)


# --- enclosures as values


@pytest.mark.parametrize(
    "pair", [(math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan), (1.0, 0.5), (math.inf, 1.0)]
)
def test_ends_out_of_order_are_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(NumericalError, match="no enclosure has ends"):
        Enclosure(*pair)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "0 +/- inf"])
def test_balls_that_are_not_finite_are_refused(text: str) -> None:
    with pytest.raises(NumericalError, match="not finite"):
        Enclosure.of_ball(arb(text))


@pytest.mark.parametrize(
    ("lower", "upper", "width"),
    [
        (1.0, 1.0, 0.0),
        (0.0, 0.0, 0.0),
        (1.0, 1.5, 0.5),
        (-1.5, -1.0, 0.5),
        (-1.0, 1.0, math.inf),
        (0.0, TINY, math.inf),
        (-TINY, 0.0, math.inf),
        (1.0, math.inf, math.inf),
        (TINY, MAX, math.inf),
    ],
)
def test_width(lower: float, upper: float, width: float) -> None:
    assert Enclosure(lower, upper).width == width


def test_contains_compares_exactly() -> None:
    found = Enclosure.of_exact(Fraction(1, 10))
    assert Decimal("0.1") in found
    assert Fraction(1, 10) in found
    assert Decimal("0.1") not in Enclosure(0.1, 0.1)  # this double isn't one tenth
    assert 0.1 in Enclosure(0.1, 0.1)
    assert 2 not in found
    with pytest.raises(ParameterError):
        assert math.nan in found  # noqa: PLW0177


def test_enclosures_are_frozen() -> None:
    found: Any = Enclosure(1.0, 2.0)
    with pytest.raises(FrozenInstanceError):
        found.lower = 0.0
    assert str(found) == f"{found}" == "[1.0, 2.0]"


def test_comparisons_are_certain_or_raise() -> None:
    found = Enclosure(1.0, 2.0)
    assert found < Enclosure(3.0, 4.0)
    assert found <= Enclosure(2.0, 4.0)
    assert found <= Fraction(2)
    assert found < math.inf
    assert not found > 2
    assert not found >= Decimal("2.1")
    assert np.float64(0.5) < found
    assert not np.float32(0.5) > found
    for doubtful in (found, Enclosure(2.0, 3.0), 1.5, Fraction(3, 2), 2, np.float64(2)):
        with pytest.raises(NumericalError, match="overlap: which is larger is not decided"):
            assert found < doubtful
    with pytest.raises(ParameterError, match="other=nan must be a number"):
        assert found < math.nan  # noqa: PLW0177
    with pytest.raises(TypeError):
        assert found < "3"
    assert found == Enclosure(1.0, 2.0) != Enclosure(1.0, 3.0)
    assert found != Enclosure(1.5, 1.5)


@given(doubles, doubles)
@moderate
def test_points_compare_as_their_numbers(one: float, other: float) -> None:
    first, second = Enclosure(one, one), Enclosure(other, other)
    assert (first < second) is (one < other)
    assert (first >= second) is (first >= other) is (one >= other)


def test_the_safe_end_is_the_number() -> None:
    found = Enclosure(1.00001, 1.00002)
    assert found.safe == float(found) == 1.00002
    keep = Enclosure(0.74999, 0.75, safe_end="lower")
    assert keep.safe == float(keep) == 0.74999
    assert str(keep) == "[0.74999, 0.75], the lower end being the safe one"
    assert (f"{found:.4f}", f"{keep:.4f}") == ("1.0001", "0.7499")
    assert f"{Enclosure(math.inf, math.inf):.2f}" == "inf"


@given(doubles, st.integers(0, 20), st.sampled_from("eg"))
@moderate
def test_formats_are_rounded_towards_safety(value: float, digits: int, kind: str) -> None:
    assert Decimal(f"{Enclosure(value, value):.{digits}{kind}}") >= Decimal(value)
    lower = Enclosure(value, value, safe_end="lower")
    assert Decimal(f"{lower:.{digits}{kind}}") <= Decimal(value)


# --- decimals


@given(doubles)
@example(MAX)
@example(-MAX)
@example(TINY)
@example(-TINY)
@example(2.2250738585072014e-308)
@example(2.2250738585072009e-308)
@example(1e16)
@example(1e17)
@example(1e-7)
@example(9.999999999999999e-7)
@moderate
def test_decimal_strings_round_outwards_and_read_back(value: float) -> None:
    lower, upper = decimal_string(value, ROUND_FLOOR), decimal_string(value, ROUND_CEILING)
    assert Fraction(Decimal(lower)) <= Fraction(value) <= Fraction(Decimal(upper))
    for text in (lower, upper):
        assert float(text) == value
        assert len(Decimal(text).as_tuple().digits) <= 18


def test_decimal_strings_read_well() -> None:
    assert decimal_string(0.0, ROUND_FLOOR) == "0"
    assert decimal_string(0.5, ROUND_CEILING) == "0.5"
    assert decimal_string(1.0, ROUND_CEILING) == "1"
    assert decimal_string(100.0, ROUND_CEILING) == "100"
    assert float(decimal_string(math.inf, ROUND_CEILING)) == math.inf


@given(fractions())
@moderate
def test_json_still_holds_the_value(value: Fraction) -> None:
    found = Enclosure.of_exact(value)
    written = found.as_json()
    assert Enclosure(float(written["lower"]), float(written["upper"])) == found
    if math.isfinite(found.lower) and math.isfinite(found.upper):
        assert Fraction(written["lower"]) <= value <= Fraction(written["upper"])


@given(
    st.one_of(
        st.fractions(),
        st.decimals(allow_nan=False, allow_infinity=False, places=30).map(Fraction),
        st.integers(10**27, 10**41).map(Fraction),
    )
)
@example(Fraction(Decimal("1.23456789012345678901234567890123456789")))
@example(Fraction(Decimal("0.1") ** 40))
@moderate
def test_exact_string_is_exact(value: Fraction) -> None:
    assert Fraction(exact_string(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1, 10), "0.1"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(100), "100"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-1, 3), "-1/3"),
        (Fraction(1, 10**12), "0.000000000001"),
        (Fraction(1, 2**53), "0.00000000000000011102230246251565404236316680908203125"),
        (Fraction(1, 2**60), "1/1152921504606846976"),
        (Fraction(10**45 + 1), str(10**45 + 1)),
    ],
)
def test_exact_string(value: Fraction, text: str) -> None:
    assert exact_string(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(4), "4"),
        (Fraction("0.1"), "0.1"),
        (Fraction(0.1), "0.1"),
        (Fraction(1, 3), "1/3"),
        (Fraction(1 / 3), "0.3333333333333333"),
        (Fraction(10**400), str(10**400)),
    ],
)
def test_number_string_is_short_for_every_double(value: Fraction, text: str) -> None:
    assert number_string(value) == text


# --- exact numbers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, Fraction(2)),
        (0.1, Fraction(3602879701896397, 36028797018963968)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1e-400"), Fraction(1, 10**400)),
        (Fraction(1, 3), Fraction(1, 3)),
        (-0.0, Fraction(0)),
        (np.float64(0.5), Fraction(1, 2)),
        (np.int64(7), Fraction(7)),
        (np.uint8(255), Fraction(255)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        ("0.1", Fraction(1, 10)),
        (" -1e-6", Fraction(-1, 10**6)),
        ("1/3", Fraction(1, 3)),
        ("-10/4", Fraction(-5, 2)),
    ],
)
def test_rational_reads_exactly(value: Any, expected: Fraction) -> None:
    found = rational("x", value)
    assert type(found) is Fraction
    assert found == expected
    assert type(found.numerator) is int


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        np.float64("nan"),
        "0.1.2",
        "1_000",
        "1/0",
        "1.5/3",
        "1/-3",
        "1 / 3",
        "1/3/5",
        "1/" + "9" * 5000,
        "nan",
        "",
        "٣",
        None,
        1j,
        np.float32("inf"),
    ],
)
def test_rational_refuses_what_is_no_finite_real(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^beta=.* must be a finite real number") as caught:
        rational("beta", value)
    assert caught.value.name == "beta"


@pytest.mark.parametrize("radicand", [Fraction(-1), Fraction(-1, 10**400), math.nan])
def test_square_root_refuses_negatives(radicand: Any) -> None:
    with pytest.raises(ParameterError, match=r"radicand=.* must be at least 0"):
        SquareRoot(radicand)


def test_square_roots_stay_unevaluated() -> None:
    root = SquareRoot(Fraction(2, 3))
    assert exact("x", root) is root
    assert exact("x", Decimal("0.5")) == Fraction(1, 2)
    assert squared(root) == Fraction(2, 3)
    assert squared(Fraction(-3, 2)) == Fraction(9, 4)
    assert str(root) == "√(2/3)"


@given(fractions(), st.sampled_from([10, 53, 300]))
@moderate
def test_to_arb_holds_the_number(value: Fraction, precision: int) -> None:
    with ctx.workprec(precision):
        low, high = ends(to_arb(value))
        assert low <= value <= high
        root_low, root_high = ends(to_arb(SquareRoot(abs(value))))
    assert max(root_low, Fraction(0)) ** 2 <= abs(value) <= root_high**2


# --- enclose


def test_enclose_raises_the_precision_until_the_width_is_reached() -> None:
    tried: list[int] = []

    def cancelling() -> Any:
        tried.append(ctx.prec)
        return (1 + arb(10) ** -200).log()  # 665 bits are lost

    before = ctx.prec
    found = enclose(cancelling)
    assert ctx.prec == before
    assert tried == sorted(set(tried))
    assert tried[0] < 665 < tried[-1]
    assert found.width <= 1e-13
    # x − x²/2 < log(1 + x) < x
    assert Fraction(found.lower) < Fraction(1, 10**200) < Fraction(found.upper) * (1 + 1e-12)


def test_enclose_stops_at_the_first_precision_that_will_do() -> None:
    tried: list[int] = []

    def root() -> Any:
        tried.append(ctx.prec)
        return arb(2).sqrt()

    found = enclose(root)
    assert len(tried) == 1
    assert Fraction(found.lower) ** 2 < 2 < Fraction(found.upper) ** 2
    assert math.nextafter(found.lower, math.inf) == found.upper


@pytest.mark.parametrize("width", [1e-3, 1e-6])
def test_enclose_accepts_the_width_asked_for_and_no_more(width: float) -> None:
    def ball(relative: str) -> Callable[[], Any]:
        return lambda: arb(3, arb(relative) * 3)

    assert enclose(ball(f"{width / 3}"), width=width).width <= width
    with pytest.raises(NumericalError, match=f"relative width {width}"):
        enclose(ball(f"{width}"), width=width)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: arb(2).sqrt() ** 2 - 2,  # 0 that no precision shows to be 0
        lambda: arb("nan"),
        lambda: arb("inf"),
        lambda: 1 / (arb(3).sqrt() ** 2 - 3),
        lambda: arb(1, 1e-9),  # a ball that no precision shrinks
    ],
    ids=["zero", "nan", "infinite", "pole", "wide"],
)
def test_enclose_refuses_what_it_cannot_enclose(compute: Callable[[], Any]) -> None:
    before = ctx.prec
    with pytest.raises(NumericalError, match="no enclosure of relative width"):
        enclose(compute)
    assert ctx.prec == before


def test_enclose_takes_exact_values_as_they_are() -> None:
    points = [enclose(lambda k=k: arb(k)) for k in (-2, 0, 3)]  # type: ignore[misc]
    assert points == list(starmap(Enclosure, [(-2.0, -2.0), (0.0, 0.0), (3.0, 3.0)]))
