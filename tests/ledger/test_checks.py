"""The checks by cases can fail, either way."""

from fractions import Fraction

import pytest

from dpverify.ledger.checks import order, wherever


@pytest.mark.parametrize(
    ("said", "holds"),
    [(Fraction(1, 2), True), (2, True), (Fraction(49, 100), False), (Fraction(201, 100), False)],
)
def test_an_order_is_right_up_to_its_factor_either_way(said: Fraction, holds: bool) -> None:
    check = order(lambda n: n, [(1,), (10**6,)], "points", factor=2)
    assert check(lambda n: said * n).holds is holds


def test_an_order_is_of_every_case() -> None:
    check = order(lambda n: n, [(1,), (10,)], "points", factor=2)
    assert not check(lambda n: Fraction(n * n)).holds


def test_a_statement_holds_wherever_it_is_said_to() -> None:
    check = wherever(lambda n: n % 2 == 0, "enumeration", "n =")
    assert check(lambda: [2, 4]).holds
    found = check(lambda: [2, 3, 5])
    assert not found.holds
    assert found.counterexample == "n = 3"


def test_a_statement_on_nothing_does_not_hold() -> None:
    assert not wherever(lambda _: True, "enumeration")(list).holds


def test_fractions_are_shown_as_fractions() -> None:
    check = wherever(lambda _: False, "enumeration")
    assert check(lambda: [(Fraction(1, 2), ("a", 3))]).counterexample == "case (1/2, (a, 3))"
