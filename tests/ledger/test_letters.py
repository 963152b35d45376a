"""Formulas of letters are the rational functions that they are."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpverify.ledger.letters import Quotient, letters

X, Y = letters("x y")
POINTS = [(Fraction(7, 11), Fraction(-13, 5)), (Fraction(-101, 3), Fraction(19, 17))]
Formula = tuple[object, ...]


def formulas() -> st.SearchStrategy[object]:
    """Trees of x, y and small fractions."""
    leaves = st.sampled_from(["x", "y"]) | st.fractions(-3, 3, max_denominator=3)
    return st.recursive(
        leaves,
        lambda inner: (
            st.tuples(st.sampled_from("+-*/"), inner, inner)
            | st.tuples(st.just("^"), inner, st.integers(-2, 3))
        ),
        max_leaves=5,
    )


def value(formula: object, x: object, y: object) -> object:
    if not isinstance(formula, tuple):
        return {"x": x, "y": y}.get(formula, formula) if isinstance(formula, str) else formula
    sign, one, other = formula
    a, b = value(one, x, y), other if sign == "^" else value(other, x, y)
    match sign:
        case "+":
            return a + b  # type: ignore[operator]
        case "-":
            return a - b  # type: ignore[operator]
        case "*":
            return a * b  # type: ignore[operator]
        case "/":
            return a / b  # type: ignore[operator]
    return a**b  # type: ignore[operator]


@given(formula=formulas())
def test_a_quotient_has_the_values_of_its_formula(formula: object) -> None:
    """Python's own arithmetic in fractions, also of what the quotient shows."""
    try:
        found = value(formula, X, Y)
        values = [value(formula, x, y) for x, y in POINTS]
    except ZeroDivisionError:
        return
    shown = str(found).replace("^", "**")
    for (x, y), expected in zip(POINTS, values, strict=True):
        scope = {"x": x, "y": y, "F": Fraction}
        assert eval(_exact(shown), scope) == expected  # noqa: S307  # of a polynomial over another


def _exact(text: str) -> str:
    """The text with its whole numbers as fractions, but for exponents."""
    import re

    return re.sub(r"(?<![*][*])\b(\d+)\b", r"F(\1)", text)


def test_equal_functions_are_one_value() -> None:
    one, other = (X**2 - Y**2) / (X - Y), X + Y
    assert one == other
    assert hash(one) == hash(other)
    assert 1 / (1 - X) == 1 + X / (1 - X)
    assert X != Y
    assert X + 1 != 2 * X
    assert not X - X
    assert 3 * X / X == 3


def test_what_isnt_a_rational_function() -> None:
    with pytest.raises(ZeroDivisionError, match="letters"):
        X / (Y - Y)
    with pytest.raises(TypeError):
        assert X < Y  # type: ignore[operator]
    with pytest.raises(TypeError):
        X + 0.5
    assert isinstance(X**-1, Quotient)
