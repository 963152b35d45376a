"""The checks by cases can fail, either way."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

from dpverify.errors import ParameterError
from dpverify.ledger.checks import Check, Oracle, at_most, equals, order, wherever
from dpverify.ledger.letters import letters


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


def test_a_bound_holds_wherever_it_is_said_to() -> None:
    check = wherever(lambda n: (2 * n, n * n), "enumeration")
    assert check(lambda: [(2,), (4,)]).ratios == (0.5, 1)
    found = check(lambda: [(2,), (Fraction(1, 2),), (1,)])
    assert not found.holds
    assert found.counterexample == "at n=1/2: 1 above 0.25"


def test_a_bound_that_is_reached_at_an_end_alone_is_not_tight() -> None:
    def check(ends: list[tuple[int]]) -> Check:
        return at_most(lambda f, n: (n, f(n)), [(1,), (2,)], "enumeration", ends=ends)

    found = check([(0,)])(lambda n: 3 * n)
    assert (found.holds, found.tight, found.ends) == (True, False, ("n=0",))
    assert found.slack == "0.333 to 0.333 of the bound; reached at n=0"
    assert check([])(lambda n: 2 if n == 2 else 9 * n).tight
    assert not check([(0,)])(lambda n: 3 * n - 1).holds
    assert check([(4,)])(lambda n: 3 * n).ends == ()


def test_a_statement_on_nothing_does_not_hold() -> None:
    assert not wherever(lambda n: (n, n), "enumeration")(list).holds


X, Y = letters("x y")


def test_an_identity_is_of_all_numbers() -> None:
    check = equals(lambda x, y: (x + y) * (x - y), [(X, Y)], "identity")
    found = check(lambda x, y: x**2 - y**2)
    assert (found.holds, found.how) == (True, "by algebra, an identity in letters, one case")
    # equal wherever one of them is 1, but not as functions
    found = check(lambda x, y: x**2 - y**2 + (x - 1) * (y - 1))
    assert found.counterexample == "at x; y: x^2 + x*y - x - y^2 - y + 1 in place of x^2 - y^2"


def compared(cases: list[tuple[object, ...]], oracle: Oracle) -> Check:
    return equals(lambda x: x, cases, oracle)


@pytest.mark.parametrize(
    "made",
    [
        lambda: compared([(X,)], "points"),
        lambda: compared([(X,), (Fraction(3),)], "identity"),
        lambda: at_most(lambda f, x: (x, f(x)), [(X,)], "identity"),
        lambda: wherever(lambda x: (x, x), "identity"),
        lambda: order(lambda x: x, [(X,)], "identity", factor=2)(lambda x: x),
        lambda: compared([(X,)], "identity")(lambda x: arb(2)),
        lambda: compared([(Fraction(2),)], "points")(lambda x: X),
    ],
)
def test_the_word_identity_covers_equalities_in_letters_alone(made: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=r"identity|letters|another one"):
        made()
